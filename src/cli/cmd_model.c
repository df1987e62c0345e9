/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "base/text.h"
#include "cli/training.h"
#include "costmodel/model_import.h"
#include "costmodel/model_json.h"
#include "costmodel/model_report.h"

#include <stdio.h>
#include <string.h>

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "import: model file to write"},
    {0},
};

static int import(struct cli *cli, struct err *err)
{
    struct model model;
    char hash[HASH_TEXT_MAX];

    if (!cli_given(cli, "output"))
        return err_set(err, ERR_USAGE,
                       "option '--output' is needed: where the model goes");
    if (cli_check_output(cli, err) ||
        model_import(&model, cli->args[1], cli->arena, err) ||
        training_save(&model, cli_string(cli, "output"), err))
        return -1;
    cli_print_json(json_pack("{s:s, s:s}", "output", cli_shown(cli, "output"),
                             "hash", hash_text(hash, model.hash)));
    if (strcmp(cli_string(cli, "output"), "-") != 0)
        cli_printf("model           %s, hash %s\n", cli_shown(cli, "output"),
                   hash_text(hash, model.hash));
    return 0;
}

static int info(struct cli *cli, struct err *err)
{
    struct model model;
    char hash[HASH_TEXT_MAX];
    json_t *root;

    if (cli_given(cli, "output"))
        return err_set(err, ERR_USAGE,
                       "option '--output' is for 'model import'");
    if (model_load(&model, cli->args[1], cli->arena, err))
        return -1;
    model_print(&model, text_shown(cli->args[1], cli->arena), cli->arena,
                cli_text());
    root = model_to_json(&model);
    json_object_set_new(root, "hash", json_string(hash_text(hash, model.hash)));
    json_object_set_new(root, "format", json_integer(model.format));
    cli_print_json(root);
    return 0;
}

static int run_model(struct cli *cli, struct err *err)
{
    const char *verb = cli->args[0];

    if (!strcmp(verb, "import"))
        return import(cli, err);
    if (!strcmp(verb, "info"))
        return info(cli, err);
    return err_set(err, ERR_USAGE,
                   "no 'model %s'; there are 'model import' and 'model info'",
                   verb);
}

const struct command command_model = {
    .name = "model",
    .synopsis = "info FILE [--json] | import DIR -o FILE",
    .summary = "print what is in a model file, or make one of published nets",
    .options = {own_options},
    .json = "print all, or what was written, as JSON",
    .n_args = {2, 2},
    .run = run_model,
};
