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

/* What a database comes to, which is whole, and its rows in order; the version
 * is that of the file. The caller drops and closes them, also where it fails.
 */
static int read_contents(json_t **contents, struct store **sorted,
                         struct store *store, const char *path,
                         struct arena *arena, struct err *err)
{
    char text[HASH_TEXT_MAX];
    uint64_t hash = 0;
    int rc = store_sorted(sorted, store, err) ||
             store_describe(contents, store, err) ||
             store_hash(&hash, *sorted, err);

    quote_texts(json_object_get(*contents, "machines"), arena);
    json_object_set_new(*contents, "db", json_string(text_shown(path, arena)));
    json_object_set_new(*contents, "hash", json_string(hash_text(text, hash)));
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

        fwrite(text, 1, len, stdout);
        if (json_is_string(member))
            fputs(json_string_value(member), stdout);
        else if (member)
            printf("%lld", (long long)json_integer_value(member));
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
            fputs(before, stdout);
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

/* Drops the contents. */
static void tell(const struct cli *cli, json_t *contents,
                 void (*print)(const json_t *contents, struct arena *arena))
{
    if (cli_given(cli, "json")) {
        cli_print_json(contents);
        return;
    }
    print(contents, cli->arena);
    json_decref(contents);
}

static int report(struct cli *cli,
                  void (*print)(const json_t *contents, struct arena *arena),
                  struct err *err)
{
    json_t *contents = NULL;
    struct store *store, *sorted = NULL;
    int rc;

    if (store_open(&store, cli->args[0], STORE_READ, err))
        return -1;
    rc =
        read_contents(&contents, &sorted, store, cli->args[0], cli->arena, err);
    store_close(store);
    store_close(sorted);
    if (rc)
        json_decref(contents);
    else
        tell(cli, contents, print);
    return rc;
}

static int run_info(struct cli *cli, struct err *err)
{
    return report(cli, print_info, err);
}

static int run_check(struct cli *cli, struct err *err)
{
    return report(cli, print_line, err);
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
    const char *output = cli_string(cli, "output");
    struct store *all = NULL, *sorted = NULL;
    json_t *contents = NULL;
    int rc;

    if (!output)
        return err_set(err, ERR_USAGE,
                       "option '--output' is needed: the database that is "
                       "made");
    rc = cli_check_output(cli, err) || store_open_memory(&all, output, err);
    for (size_t i = 0; !rc && i < cli->n_args; i++)
        rc = add_file(all, cli->args[i], err);
    rc = rc ||
         read_contents(&contents, &sorted, all, output, cli->arena, err) ||
         store_save(sorted, output, err);
    store_close(sorted);
    store_close(all);
    if (rc) {
        json_decref(contents);
        return -1;
    }
    if (strcmp(output, "-") != 0)
        tell(cli, contents, print_line);
    return 0;
}

static int run_export(struct cli *cli, struct err *err)
{
    const char *path = cli->args[0];
    struct store *store = NULL, *sorted = NULL;
    json_t *contents = NULL;
    struct buf text = {0};
    int rc = cli_check_output(cli, err) ||
             store_open(&store, path, STORE_READ, err) ||
             read_contents(&contents, &sorted, store, path, cli->arena, err) ||
             store_to_csv(&text, sorted, err) ||
             file_write_checked(cli_string(cli, "output"), text.data, text.len,
                                store_csv_check, err);

    store_close(store);
    store_close(sorted);
    buf_release(&text);
    if (rc) {
        json_decref(contents);
        return -1;
    }
    if (cli_given(cli, "json"))
        cli_print_json(contents);
    else
        json_decref(contents);
    return 0;
}

static int run_import(struct cli *cli, struct err *err)
{
    const char *path = cli->args[0], *db = cli_string(cli, "db"), *text;
    struct store *read = NULL, *store = NULL, *sorted = NULL;
    json_t *contents = NULL;
    size_t len;
    int rc;

    if (!db)
        return err_set(err, ERR_USAGE,
                       "option '--db' is needed: the file that gets the rows");
    rc = file_read(&text, &len, path, cli->arena, err) ||
         store_from_csv(&read, text, len,
                        strcmp(path, "-") ? text_shown(path, cli->arena)
                                          : "<stdin>",
                        cli->arena, err) ||
         store_open(&store, db, STORE_WRITE, err) ||
         store_merge(store, read, err) ||
         read_contents(&contents, &sorted, store, db, cli->arena, err);
    store_close(read);
    store_close(store);
    store_close(sorted);
    if (rc) {
        json_decref(contents);
        return -1;
    }
    tell(cli, contents, print_line);
    return 0;
}

const struct command command_db_info = {
    .name = "db info",
    .synopsis = "DB [options]",
    .summary = "what a cost database holds",
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_info,
};
const struct command command_db_check = {
    .name = "db check",
    .synopsis = "DB [options]",
    .summary = "whether a cost database is whole",
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_check,
};
const struct command command_db_merge = {
    .name = "db merge",
    .synopsis = "DB... -o FILE [options]",
    .summary = "put cost databases together into a new one",
    .options = {merge_options},
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
    .json = "print JSON instead of text",
    .n_args = {1, 1},
    .run = run_import,
};
