/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "cli/command.h"
#include "io/tables_io.h"

#include <limits.h>
#include <string.h>

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "write the table list there instead of to standard output"},
    {"columns", 0, OPTION_STRING, "COLUMN=NAME,...", NULL, 0, 0, NULL,
     "columns that a CSV file has under other names"},
    {"names", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "names of the tables, one a line, or with commas: a,b,c"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables whose width the source does not say"},
    {0},
};

/* "a,b,c", or the lines of a file. */
static int read_names(const char **out, struct cli *cli, struct err *err)
{
    size_t len;

    *out = cli_string(cli, "names");
    return *out && !strchr(*out, ',')
               ? file_read(out, &len, *out, cli->arena, err)
               : 0;
}

/* A file, or the words of a command line. */
static int read_source(struct table_list *list,
                       const struct tables_options *options, struct cli *cli,
                       struct err *err)
{
    const char *text = "";

    if (cli->n_args == 1)
        return tables_load(list, cli->args[0], options, cli->arena, err);
    for (size_t i = 0; i < cli->n_args; i++)
        text = arena_printf(cli->arena, "%s%s ", text, cli->args[i]);
    return tables_from_dlrm(list, text, strlen(text), "command line", options,
                            cli->arena, err);
}

static int run_import(struct cli *cli, struct err *err)
{
    const char *columns = cli_string(cli, "columns");
    struct buf notes = {0};
    struct tables_options options = {
        .dim = (uint32_t)cli_u64(cli, "dim"),
        .warn = cli_warn,
        .columns = columns ? columns : "",
        .notes = &notes,
    };
    struct table_list list = {0};
    int rc = read_names(&options.names, cli, err) ||
             read_source(&list, &options, cli, err) ||
             tables_save(&list, notes.data ? notes.data : "",
                         cli_string(cli, "output"), err);

    if (!rc)
        cli_print_json(json_pack("{s:s, s:I}", "output",
                                 cli_shown(cli, "output"), "tables",
                                 (json_int_t)list.n_tables));
    buf_release(&notes);
    return rc ? -1 : 0;
}

const struct command command_tables_import = {
    .name = "tables import",
    .synopsis = "SOURCE [options], or [options] -- COMMAND WORD...",
    .summary = "write a table list from what other programs have",
    .options = {own_options},
    .n_args = {1, UINT_MAX},
    .run = run_import,
};
