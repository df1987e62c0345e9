/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file.h"
#include "base/file_write.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/command.h"
#include "io/store_csv.h"
#include "io/store_merge.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec merge_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", NULL, 0, 0, NULL,
     "database to create"},
    {0},
};
static const struct option_spec export_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "file to write; '-' is standard output"},
    {0},
};
static const struct option_spec import_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database to add missing rows to; created if missing"},
    {0},
};

/* Working data of a `db` command, and the contents of the database that the
 * command reports at the end. */
struct db_work {
    struct cli *cli;
    const char *path; /* path of the database that is reported */
    struct store *store, *sorted;
    json_t *contents;
};

/* Reads a summary of the database and its hash, which covers all rows in sorted
 * order. Reading also checks that the database is intact. The schema version is
 * read from the file. */
static int read_contents(struct db_work *work, struct err *err)
{
    uint64_t hash = 0;

    if (store_sorted(&work->sorted, work->store, err) ||
        store_describe(&work->contents, work->store, err) ||
        store_hash(&hash, work->sorted, err))
        return -1;
    json_object_set_new(work->contents, "db",
                        json_string(text_shown(work->path, work->cli->arena)));
    json_object_set_new(work->contents, "hash", json_string(HASH_TEXT(hash)));
    return 0;
}

/* Length of the report as text (without --json). */
enum words { SAY_NOTHING, SAY_LINE, SAY_ALL };

/* Makes the texts in the description of a machine safe to print. With SAY_ALL
 * prints the lines of the member "text". This member is always removed. */
static void say_machine(json_t *machine, enum words words, struct arena *arena)
{
    json_t *text = json_object_get(machine, "text"), *member;
    const char *key;
    size_t i;

    json_array_foreach(text, i, member)
    {
        if (words == SAY_ALL && json_is_string(member))
            cli_printf("%s%s\n", i ? "  " : "\n",
                       text_shown(json_string_value(member), arena));
    }
    json_object_del(machine, "text");
    json_object_foreach(machine, key, member)
    {
        if (json_is_string(member))
            json_string_set(member,
                            text_shown(json_string_value(member), arena));
    }
}

static void say(const struct db_work *work, enum words words)
{
    const char *db, *hash;
    json_int_t schema, n_samples, n_exchanges, n_ceilings, n_products;
    json_int_t n_replaced, n_kept;
    json_t *machines, *machine;
    size_t i;

    json_unpack(work->contents,
                "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "db", &db,
                "hash", &hash, "schema", &schema, "samples", &n_samples,
                "exchanges", &n_exchanges, "ceilings", &n_ceilings, "products",
                &n_products, "replaced", &n_replaced, "kept", &n_kept,
                "machines", &machines);
    if (words == SAY_LINE)
        cli_printf("%s: %lld samples, %lld exchanges, content %s\n", db,
                   n_samples, n_exchanges, hash);
    if (words == SAY_ALL)
        cli_printf("%s\n"
                   "content    %s\n"
                   "schema     version %lld\n"
                   "verdicts   %lld replaced a model, %lld kept it\n"
                   "ceilings   %lld\n"
                   "products   %lld\n",
                   db, hash, schema, n_replaced, n_kept, n_ceilings,
                   n_products);
    json_array_foreach(machines, i, machine)
        say_machine(machine, words, work->cli->arena);
}

/* Closes the databases and, if nothing failed, reports the contents. */
static int finish(struct db_work *work, int rc, enum words words)
{
    store_close(work->store);
    store_close(work->sorted);
    if (!rc) {
        say(work, words);
        cli_print_json(json_incref(work->contents));
    }
    json_decref(work->contents);
    return rc ? -1 : 0;
}

/* Runs `db info` and `db check`. The two commands differ only in the length of
 * the report. */
static int run_report(struct cli *cli, struct err *err)
{
    struct db_work work = {.cli = cli, .path = cli->args[0]};
    const int rc = store_open(&work.store, work.path, STORE_READ, err) ||
                   read_contents(&work, err);

    return finish(&work, rc,
                  cli->command == &command_db_info ? SAY_ALL : SAY_LINE);
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
    struct db_work work = {.cli = cli, .path = cli_string(cli, "output")};
    int rc = store_open_memory(&work.store, work.path, err);

    for (size_t i = 0; !rc && i < cli->n_args; i++)
        rc = add_file(work.store, cli->args[i], err);
    rc = rc || read_contents(&work, err) ||
         store_save(work.sorted, work.path, err);
    return finish(&work, rc, strcmp(work.path, "-") ? SAY_LINE : SAY_NOTHING);
}

static int run_export(struct cli *cli, struct err *err)
{
    struct db_work work = {.cli = cli, .path = cli->args[0]};
    struct buf text = {0};
    const int rc = store_open(&work.store, work.path, STORE_READ, err) ||
                   read_contents(&work, err) ||
                   store_to_csv(&text, work.sorted, err) ||
                   file_write_checked(cli_string(cli, "output"), text.data,
                                      text.len, store_csv_check, err);

    buf_release(&text);
    return finish(&work, rc, SAY_NOTHING);
}

static int run_import(struct cli *cli, struct err *err)
{
    struct db_work work = {.cli = cli, .path = cli_string(cli, "db")};
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
    return finish(&work, rc, SAY_LINE);
}

const struct command command_db_info = {
    .name = "db info",
    .synopsis = "DB [options]",
    .summary = "print a summary of a cost database",
    .n_args = {1, 1},
    .run = run_report,
};
const struct command command_db_check = {
    .name = "db check",
    .synopsis = "DB [options]",
    .summary = "check that a cost database is intact",
    .n_args = {1, 1},
    .run = run_report,
};
const struct command command_db_merge = {
    .name = "db merge",
    .synopsis = "DB... -o FILE [options]",
    .summary = "merge cost databases into a new one",
    .options = {merge_options},
    .needs = {"output"},
    .n_args = {1, UINT_MAX},
    .run = run_merge,
};
const struct command command_db_export = {
    .name = "db export",
    .synopsis = "DB [options]",
    .summary = "write a cost database as CSV text, without loss",
    .options = {export_options},
    .n_args = {1, 1},
    .run = run_export,
};
const struct command command_db_import = {
    .name = "db import",
    .synopsis = "FILE --db FILE [options]",
    .summary = "add the output of db export to a cost database",
    .options = {import_options},
    .needs = {"db"},
    .n_args = {1, 1},
    .run = run_import,
};
