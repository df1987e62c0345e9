/* SPDX-License-Identifier: MIT */
#include "base/figures.h"
#include "base/hash.h"
#include "cli/training.h"
#include "costmodel/comm_report.h"
#include "costmodel/drift.h"
#include "costmodel/model_report.h"

static const struct option_spec file_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples"},
    {"model", 'm', OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "model file to judge"},
    {"drift", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also its error now beside that at its promotion, by class"},
    {0},
};

#define CLASS(member) MEMBER_OF(struct drift_class, member)
static const struct figure class_figures[] = {
    {"class", "at promotion, and now", -28, 0, FIGURE_PLAIN, CLASS(then.name)},
    {"promoted", "n then", 8, 0, FIGURE_PLAIN, CLASS(then.n)},
    {"promoted_mape", "mean %", 8, 2, FIGURE_PERCENT, CLASS(then.mape)},
    {"recent", "n now", 8, 0, FIGURE_PLAIN, CLASS(now.n)},
    {"recent_mape", "mean %", 8, 2, FIGURE_PERCENT, CLASS(now.mape)},
    {"recent_ratio", "took/said", 10, 3, FIGURE_PLAIN, CLASS(ratio)},
    {0},
};

static void print_text(const struct training *judged, const struct drift *drift)
{
    struct cli *cli = judged->cli;
    struct buf out = {0};

    model_print_file(&judged->model, cli_shown(cli, "model"), &out);
    buf_printf(&out, "\n");
    model_print_setting(&judged->model, cli->arena, &out);
    buf_printf(&out, "samples         %zu in %s\n", judged->n,
               cli_shown(cli, "db"));
    evaluation_print(&judged->evaluation, &out);
    if (drift) {
        buf_printf(&out, "drift           %s%s\n",
                   drift->is_seen ? "since " : "none seen",
                   drift->is_seen ? drift->since : "");
        figures_table(class_figures, drift->classes, MAX_INTERVALS,
                      sizeof(*drift->classes), &out);
    }
    comm_report_print(judged->comm_samples, judged->n_comm, &out);
    cli_print_report(cli, &out);
}

static void print_json(const struct training *judged, const struct drift *drift)
{
    json_t *root = evaluation_to_json(&judged->evaluation);
    char hash[HASH_TEXT_MAX];

    json_object_update_new(
        root,
        json_pack(
            "{s:s, s:s, s:o, s:I, s:o, s:o}", "model",
            cli_shown(judged->cli, "model"), "hash",
            hash_text(hash, judged->model.hash), "intervals",
            covered_to_json(&judged->evaluation), "samples",
            (json_int_t)judged->n, "exchanges",
            comm_report_to_json(judged->comm_samples, judged->n_comm), "cases",
            held_out_to_json(&judged->model, judged->samples, judged->n)));
    if (drift)
        json_object_set_new(
            root, "drift",
            json_pack("{s:s?, s:o}", "since",
                      drift->is_seen ? drift->since : NULL, "classes",
                      figures_list(class_figures, drift->classes, MAX_INTERVALS,
                                   sizeof(*drift->classes))));
    cli_print_json(root);
}

static int run_eval(struct cli *cli, struct err *err)
{
    struct training judged = {.cli = cli};
    struct drift drift, *asked = NULL;
    int rc;

    if (!cli_given(cli, "db") || !cli_given(cli, "model"))
        return err_set(
            err, ERR_USAGE,
            "options '--db' and '--model' are needed: where the samples "
            "are and what is judged by them");
    if (model_load(&judged.model, cli_string(cli, "model"), cli->arena, err))
        return -1;
    judged.device = model_device(&judged.model);
    rc = training_open(&judged, STORE_READ, err) || training_load(&judged, err);
    store_close(judged.store);
    if (rc)
        return -1;
    evaluate_model(&judged.evaluation, &judged.model, judged.samples, judged.n);
    if (!judged.evaluation.errors[PREDICTOR_NET].n)
        return err_set(err, ERR_INPUT,
                       "'%s' holds no held-out case (the last of each ten) to "
                       "judge by",
                       cli_string(cli, "db"));
    if (cli_given(cli, "drift"))
        drift_find(asked = &drift, &judged.model, judged.samples, judged.n);
    print_json(&judged, asked);
    print_text(&judged, asked);
    return 0;
}

const struct command command_eval = {
    .name = "eval",
    .synopsis = "--db FILE --model FILE [options]",
    .summary = "tell how well a cost model predicts held-out samples",
    .options = {file_options, setting_options},
    .json = "print JSON",
    .run = run_eval,
};
