/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/store_csv.h"
#include "io/store_merge.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec merge_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "the database that is made"},
    {0},
};
static const struct option_spec export_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", "-", 0, 0, NULL,
     "write there instead of to standard output"},
    {0},
};
static const struct option_spec import_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database that gets what it lacks; made where missing"},
    {0},
};

/* Texts of others as they may be printed. */
static void quote_texts(json_t *machines, struct arena *arena)
{
    const char *key;
    json_t *machine, *text;
    size_t i;

    json_array_foreach(machines, i, machine)
    {
        json_object_foreach(machine, key, text)
        {
            if (json_is_string(text))
                json_string_set(text,
                                text_shown(json_string_value(text), arena));
        }
    }
}

/* What a command has in hand, and what it says in the end. */
struct work {
    struct cli *cli;
    const char *path; /* of what it tells of */
    struct store *store, *sorted;
    json_t *contents;
};

/* What the database comes to, which is whole, and its rows in order; the
 * version is that of the file. */
static int read_contents(struct work *work, struct err *err)
{
    char text[HASH_TEXT_MAX];
    uint64_t hash = 0;
    struct arena *arena = work->cli->arena;

    if (store_sorted(&work->sorted, work->store, err) ||
        store_describe(&work->contents, work->store, err) ||
        store_hash(&hash, work->sorted, err))
        return -1;
    quote_texts(json_object_get(work->contents, "machines"), arena);
    json_object_set_new(work->contents, "db",
                        json_string(text_shown(work->path, arena)));
    json_object_set_new(work->contents, "hash",
                        json_string(hash_text(text, hash)));
    return 0;
}

/* Closes all, and prints the contents where nothing failed; `print` is NULL
 * where only --json has them printed. */
static int finish(struct work *work, int rc,
                  void (*print)(const json_t *contents, struct arena *arena))
{
    store_close(work->store);
    store_close(work->sorted);
    if (!rc && print && !cli_given(work->cli, "json"))
        print(work->contents, work->cli->arena);
    if (!rc)
        cli_print_json(json_incref(work->contents));
    json_decref(work->contents);
    return rc ? -1 : 0;
}

/* Prints the text with members of the object where it has "{NAME}". */
static void print_filled(const char *text, const json_t *object,
                         struct arena *arena)
{
    while (*text) {
        const size_t len = strcspn(text, "{"), end = strcspn(text, "}");
        const json_t *member =
            text[len]
                ? json_object_get(object, arena_strndup(arena, text + len + 1,
                                                        end - len - 1))
                : NULL;

        cli_printf("%.*s", (int)len, text);
        if (json_is_string(member))
            cli_printf("%s", json_string_value(member));
        else if (member)
            cli_printf("%lld", (long long)json_integer_value(member));
        text += text[len] ? end + 1 : len;
    }
}

static void print_machine(const json_t *machine, struct arena *arena)
{
    static const char *const known[][2] = {{"driver", "driver {driver}"},
                                           {"cuda", "CUDA {cuda}"},
                                           {"host", "host {host}"}};
    const char *before = "\n  system     ";

    print_filled("\n{device}, {isa}", machine, arena);
    if (json_integer_value(json_object_get(machine, "threads")))
        print_filled(", {threads} threads", machine, arena);
    for (int i = 0; i < 3; i++)
        if (*json_string_value(json_object_get(machine, known[i][0]))) {
            cli_printf("%s", before);
            print_filled(known[i][1], machine, arena);
            before = ", ";
        }
    print_filled("\n  settings   {settings}: batch {min_batch} to {max_batch}, "
                 "{precisions}, {optimizers}\n"
                 "  samples    {samples}, {disturbed} of them disturbed\n",
                 machine, arena);
    if (json_is_string(json_object_get(machine, "first")))
        print_filled("  measured   {first} to {last}\n", machine, arena);
    print_filled("  exchanges  {exchanges}\n", machine, arena);
}

static void print_info(const json_t *contents, struct arena *arena)
{
    const json_t *machines = json_object_get(contents, "machines");

    print_filled("{db}\n"
                 "content    {hash}\n"
                 "schema     version {schema}\n"
                 "verdicts   {replaced} replaced a model, {kept} kept it\n"
                 "ceilings   {ceilings}\n",
                 contents, arena);
    for (size_t i = 0; i < json_array_size(machines); i++)
        print_machine(json_array_get(machines, i), arena);
}

static void print_line(const json_t *contents, struct arena *arena)
{
    print_filled(
        "{db}: {samples} samples, {exchanges} exchanges, content {hash}\n",
        contents, arena);
}

/* info and check, which differ in how much they say. */
static int run_report(struct cli *cli, struct err *err)
{
    struct work work = {.cli = cli, .path = cli->args[0]};
    const int rc = store_open(&work.store, work.path, STORE_READ, err) ||
                   read_contents(&work, err);

    return finish(&work, rc,
                  cli->command == &command_db_info ? print_info : print_line);
}

static int add_file(struct store *all, const char *path, struct err *err)
{
    struct store *store;
    int rc;

    if (store_open(&store, path, STORE_READ, err))
        return -1;
    rc = store_verify(store, err) || store_merge(all, store, err);
    store_close(store);
    return rc ? -1 : 0;
}

static int run_merge(struct cli *cli, struct err *err)
{
    struct work work = {.cli = cli, .path = cli_string(cli, "output")};
    int rc;

    rc = cli_check_output(cli, err) ||
         store_open_memory(&work.store, work.path, err);
    for (size_t i = 0; !rc && i < cli->n_args; i++)
        rc = add_file(work.store, cli->args[i], err);
    rc = rc || read_contents(&work, err) ||
         store_save(work.sorted, work.path, err);
    return finish(&work, rc, strcmp(work.path, "-") ? print_line : NULL);
}

static int run_export(struct cli *cli, struct err *err)
{
    struct work work = {.cli = cli, .path = cli->args[0]};
    struct buf text = {0};
    const int rc = cli_check_output(cli, err) ||
                   store_open(&work.store, work.path, STORE_READ, err) ||
                   read_contents(&work, err) ||
                   store_to_csv(&text, work.sorted, err) ||
                   file_write_checked(cli_string(cli, "output"), text.data,
                                      text.len, store_csv_check, err);

    buf_release(&text);
    return finish(&work, rc, NULL);
}

static int run_import(struct cli *cli, struct err *err)
{
    struct work work = {.cli = cli, .path = cli_string(cli, "db")};
    const char *path = cli->args[0], *text;
    struct store *read = NULL;
    size_t len;
    int rc;

    rc = file_read(&text, &len, path, cli->arena, err) ||
         store_from_csv(&read, text, len,
                        strcmp(path, "-") ? text_shown(path, cli->arena)
                                          : "<stdin>",
                        cli->arena, err) ||
         store_open(&work.store, work.path, STORE_WRITE, err) ||
         store_merge(work.store, read, err) || read_contents(&work, err);
    store_close(read);
    return finish(&work, rc, print_line);
}

const struct command command_db_info = {
    .name = "db info",
    .synopsis = "DB [options]",
    .summary = "what a cost database holds",
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_report,
};
const struct command command_db_check = {
    .name = "db check",
    .synopsis = "DB [options]",
    .summary = "whether a cost database is whole",
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_report,
};
const struct command command_db_merge = {
    .name = "db merge",
    .synopsis = "DB... -o FILE [options]",
    .summary = "put cost databases together into a new one",
    .options = {merge_options},
    .needs = {"output"},
    .json = "print JSON instead of text",
    .n_args = {1, UINT_MAX},
    .run = run_merge,
};
const struct command command_db_export = {
    .name = "db export",
    .synopsis = "DB [options]",
    .summary = "write a cost database as text, with nothing lost",
    .options = {export_options},
    .json = "say as JSON what was written",
    .n_args = {1, 1},
    .run = run_export,
};
const struct command command_db_import = {
    .name = "db import",
    .synopsis = "FILE --db FILE [options]",
    .summary = "add what db export wrote to a cost database",
    .options = {import_options},
    .needs = {"db"},
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_import,
};
