/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/training.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/modelfile/model_json.h"
#include "costmodel/modelfile/model_report.h"

#include <string.h>

static const struct option_spec import_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", NULL, 0, 0, NULL,
     "model file to write"},
    {0},
};

static int run_import(struct cli *cli, struct err *err)
{
    struct model model;

    if (model_import(&model, cli->args[0], cli->arena, err) ||
        training_save(&model, cli_string(cli, "output"), err))
        return -1;
    cli_print_json(json_pack("{s:s, s:s}", "output", cli_shown(cli, "output"),
                             "hash", HASH_TEXT(model.hash)));
    if (strcmp(cli_string(cli, "output"), "-") != 0)
        cli_printf("model           %s, hash %s\n", cli_shown(cli, "output"),
                   HASH_TEXT(model.hash));
    return 0;
}

static int run_info(struct cli *cli, struct err *err)
{
    struct model model;
    json_t *root;

    if (model_load(&model, cli->args[0], cli->arena, err))
        return -1;
    model_print(&model, text_shown(cli->args[0], cli->arena), cli->arena,
                cli_text());
    root = model_to_json(&model);
    json_object_set_new(root, "hash", json_string(HASH_TEXT(model.hash)));
    json_object_set_new(root, "format", json_integer(model.format));
    cli_print_json(root);
    return 0;
}

const struct command command_model_info = {
    .name = "model info",
    .synopsis = "FILE [options]",
    .summary = "print the contents of a model file",
    .n_args = {1, 1},
    .run = run_info,
};
const struct command command_model_import = {
    .name = "model import",
    .synopsis = "DIR -o FILE [options]",
    .summary = "make a model file from published nets",
    .options = {import_options},
    .needs = {"output"},
    .n_args = {1, 1},
    .run = run_import,
};
