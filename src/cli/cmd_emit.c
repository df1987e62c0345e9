/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file_write.h"
#include "cli/command.h"
#include "emit/formats.h"
#include "io/plan_json.h"

#include <string.h>

static const struct option_spec own_options[] = {
    {"format", 'f', OPTION_CHOICE, "FORMAT", NULL, 0, 0, EMIT_FORMAT_NAMES,
     "format to write"},
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "file to write; '-' is standard output"},
    {"module", 0, OPTION_STRING, "FQN", EMIT_DEFAULT_MODULE, 0, 0, NULL,
     "torchrec: name of the module that holds the tables"},
    {"sequence-module", 0, OPTION_STRING, "FQN", NULL, 0, 0, NULL,
     "torchrec: name of the module that holds the sequence tables"},
    {"prefix", 0, OPTION_STRING, "P", NULL, 0, 0, NULL,
     "torchrec: prefix of each table name"},
    {"comm", 0, OPTION_CHOICE, "HOW", "uniform", 0, 0, "uniform|hierarchical",
     "hugectr: exchanges between all GPUs, or first inside each host"},
    {0},
};

/* Refuses options that apply only to other formats than that of the output. */
static int check_options(const struct cli *cli, const char *format,
                         struct err *err)
{
    static const char *const names[] = {"module", "sequence-module", "prefix"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (cli_given(cli, names[i]) && strcmp(format, "torchrec") != 0 &&
            (i != 2 || strcmp(format, "torchrec-constraints") != 0))
            return err_usage(
                err, "option '--%s' belongs to --format torchrec, not %s",
                names[i], format);
    if (cli_given(cli, "comm") && strcmp(format, "hugectr") != 0)
        return err_usage(
            err, "option '--comm' belongs to --format hugectr, not %s", format);
    return 0;
}

static int run_emit(struct cli *cli, struct err *err)
{
    const char *format = cli_string(cli, "format");
    const struct emit_options options = {
        .module = cli_string(cli, "module"),
        .sequence_module = cli_string(cli, "sequence-module"),
        .prefix = cli_string(cli, "prefix"),
        .comm = cli_string(cli, "comm"),
    };
    const struct emitter *emitter = emit_formats[cli_choice(cli, "format")];
    struct plan plan = {0};
    struct buf out = {0};
    int rc;

    if (check_options(cli, format, err) ||
        plan_load(&plan, cli->args[0], cli->arena, err))
        return -1;
    rc = emitter->emit(&plan, &options, &out, err) ||
         file_write_checked(cli_string(cli, "output"), out.data, out.len,
                            emitter->check, err);
    if (!rc)
        cli_print_json(json_pack("{s:s, s:s, s:I, s:I, s:I}", "format", format,
                                 "output", cli_shown(cli, "output"), "bytes",
                                 (json_int_t)out.len, "tables",
                                 (json_int_t)plan.problem.n_tables, "shards",
                                 (json_int_t)plan.n_shards));
    buf_release(&out);
    return rc ? -1 : 0;
}

const struct command command_emit = {
    .name = "emit",
    .synopsis = "PLAN --format FORMAT [options]",
    .summary = "write a plan for a training framework",
    .options = {own_options},
    .needs = {"format"},
    .ends_at_once = true,
    .n_args = {1, 1},
    .run = run_emit,
};
