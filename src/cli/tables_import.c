/* SPDX-License-Identifier: MIT */
#include "cli/command.h"
#include "io/tables_io.h"

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", "-", 0, 0, NULL,
     "write the table list there instead of to standard output"},
    {"columns", 0, OPTION_STRING, "COLUMN=NAME,...", NULL, 0, 0, NULL,
     "columns that a CSV file has under other names"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "columns of the tables whose width the source does not say"},
    {0},
};

static int run_import(struct cli *cli, struct err *err)
{
    const char *columns = cli_string(cli, "columns");
    const struct tables_options options = {
        .dim = (uint32_t)cli_u64(cli, "dim"),
        .warn = cli_warn,
        .columns = columns ? columns : "",
    };
    struct table_list list;

    if (tables_load(&list, cli->args[0], &options, cli->arena, err))
        return -1;
    return tables_save(&list, "", cli_string(cli, "output"), err);
}

const struct command command_tables_import = {
    .name = "tables import",
    .synopsis = "SOURCE [options]",
    .summary = "write a table list from what other programs have",
    .options = {own_options},
    .n_args = {1, 1},
    .run = run_import,
};
