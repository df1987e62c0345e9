/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "cli/comm_report.h"
#include "cli/training.h"

#include <stdio.h>

static const struct option_spec file_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples"},
    {"model", 'm', OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "model file to judge"},
    {0},
};

static void print_text(const struct training *judged)
{
    struct cli *cli = judged->cli;
    struct buf out = {0};

    training_print_model(&judged->model, cli_shown(cli, "model"), &out);
    buf_printf(&out, "\n");
    training_print_setting(&judged->model, cli, &out);
    buf_printf(&out, "samples         %zu in %s\n", judged->n,
               cli_shown(cli, "db"));
    evaluation_print(&judged->evaluation, &out);
    comm_report_print(judged->comm_samples, judged->n_comm, &out);
    cli_print_report(&out);
}

static void print_json(const struct training *judged)
{
    json_t *root = evaluation_to_json(&judged->evaluation);
    char hash[HASH_TEXT_MAX];

    json_object_update_new(
        root,
        json_pack("{s:s, s:s, s:o, s:I, s:o}", "model",
                  cli_shown(judged->cli, "model"), "hash",
                  hash_text(hash, judged->model.hash), "intervals",
                  covered_to_json(&judged->evaluation), "samples",
                  (json_int_t)judged->n, "exchanges",
                  comm_report_to_json(judged->comm_samples, judged->n_comm)));
    cli_print_json(root);
}

static int run_eval(struct cli *cli, struct err *err)
{
    struct training judged = {.cli = cli};
    int rc = -1;

    if (!cli_given(cli, "db") || !cli_given(cli, "model"))
        return err_set(
            err, ERR_USAGE,
            "options '--db' and '--model' are needed: where the samples "
            "are and what is judged by them");
    if (model_load(&judged.model, cli_string(cli, "model"), cli->arena, err) ||
        training_open(&judged, STORE_READ, err))
        goto out;
    judged.device = model_device(&judged.model);
    if (training_load(&judged, err))
        goto out;
    evaluate_model(&judged.evaluation, &judged.model, judged.samples, judged.n);
    if (!judged.evaluation.errors[PREDICTOR_NET].n) {
        err_set(err, ERR_INPUT,
                "'%s' holds no held-out case (the last of each ten) to judge "
                "by",
                cli_string(cli, "db"));
        goto out;
    }
    (cli_given(cli, "json") ? print_json : print_text)(&judged);
    rc = 0;
out:
    store_close(judged.store);
    return rc;
}

const struct command command_eval = {
    .name = "eval",
    .synopsis = "--db FILE --model FILE [options]",
    .summary = "tell how well a cost model predicts held-out samples",
    .options = {file_options, setting_options},
    .json = "print JSON",
    .run = run_eval,
};
