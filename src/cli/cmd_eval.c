/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/figures.h"
#include "base/hash.h"
#include "base/interrupt.h"
#include "cli/training.h"
#include "costmodel/learning/comm_report.h"
#include "costmodel/learning/drift.h"
#include "costmodel/learning/evaluation_report.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/modelfile/model_report.h"

#include <math.h>

static const struct option_spec file_options[] = {
    {"db", 0, OPTION_DATABASE, "FILE", NULL, 0, 0, NULL,
     "cost database with the samples"},
    {"model", 'm', OPTION_STRING, "FILE", NULL, 0, 0, NULL,
     "model file to evaluate"},
    {"drift", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL,
     "also compare its error now with that at its promotion, by class"},
    {"learning-curve", 0, OPTION_DOUBLE, "S", NULL, 0.1, 1e6, NULL,
     "also train models on shares of the samples and print their errors; at "
     "most S seconds in all"},
    {0},
};

#define CLASS(member) MEMBER_OF(struct drift_class, member)
static const struct figure class_figures[] = {
    {"class", "at promotion, and now", -28, 0, FIGURE_PLAIN, CLASS(then.name)},
    {"promoted", "n then", 8, 0, FIGURE_PLAIN, CLASS(then.n)},
    {"promoted_mape", "mean %", 8, 2, FIGURE_PERCENT, CLASS(then.mape)},
    {"recent", "n now", 8, 0, FIGURE_PLAIN, CLASS(now.n)},
    {"recent_mape", "mean %", 8, 2, FIGURE_PERCENT, CLASS(now.mape)},
    {"recent_ratio", "meas/pred", 10, 3, FIGURE_PLAIN, CLASS(ratio)},
    {0},
};

/* Learning curve: errors of models of one kind, trained on a 16th of the cases,
 * an eighth, and so on up to all cases. */
#define N_SHARES 5
struct curve {
    struct curve_point {
        uint64_t n_samples;
        double mape;
    } points[N_SHARES];
    size_t n; /* number of points: shares of the cases with which a model could
                 be trained */
};
#define LEARNED(member) MEMBER_OF(struct curve_point, member)
static const struct figure curve_figures[] = {
    {"samples", "trained on", -16, 0, FIGURE_COUNT, LEARNED(n_samples)},
    {"mape", "mean %", 8, 2, FIGURE_PERCENT, LEARNED(mape)},
    {0},
};

/* Copies all held-out samples, and the samples of a share of the other cases.
 * The cases have a fixed random order, so a larger share contains every smaller
 * share. Returns the number of samples copied. */
static size_t take_share(struct sample *out, const struct training *judged,
                         double share)
{
    size_t n = 0;

    for (size_t i = 0; i < judged->n; i++) {
        const struct sample *sample = &judged->samples[i];
        const uint64_t hash = hash_bytes(&sample->case_idx, 8, 0);

        if (sample_split(sample) == SPLIT_HELD_OUT ||
            (double)(hash >> 11) * 0x1p-53 < share)
            out[n++] = *sample;
    }
    return n;
}

/* Trains one model for each share of the cases. Returns -1 with ERR_INPUT if
 * even all cases are too few for a model. */
static int find_curve(struct curve *curve, const struct training *judged,
                      struct err *err)
{
    struct arena *arena = judged->cli->arena;
    const double end_ms =
        clock_ms() + 1000 * cli_double(judged->cli, "learning-curve");
    struct training one = *judged;
    struct train_options options;
    struct paired paired;

    train_options_init(&options);
    one.samples = ARENA_NEW(arena, struct sample, judged->n);
    for (int i = 0; i < N_SHARES && !interrupt_requested(); i++) {
        one.n = take_share(one.samples, judged, ldexp(1, i + 1 - N_SHARES));
        one.model = (struct model){0};
        options.time_limit_s =
            fmax((end_ms - clock_ms()) / 1000 / (N_SHARES - i), 1e-3);
        if (training_fit(
                &one, (int)model_kind(&judged->model), &options,
                arena_printf(arena, "model %d of %d, epochs", i + 1, N_SHARES),
                err))
            continue;
        evaluate_pair(&paired, &judged->model, &one.model, one.samples, one.n);
        curve->points[curve->n++] = (struct curve_point){
            one.model.training.n_train + one.model.training.n_validation,
            paired.new_mape};
    }
    return curve->n || interrupt_requested() ? 0 : -1;
}

static void print_text(const struct training *judged, const struct drift *drift,
                       const struct curve *curve)
{
    struct cli *cli = judged->cli;
    struct buf *out = cli_text();

    model_print_file(&judged->model, cli_shown(cli, "model"), out);
    cli_printf("\n");
    model_print_setting(&judged->model, cli->arena, out);
    cli_printf("samples         %zu in %s\n", judged->n, cli_shown(cli, "db"));
    evaluation_print(&judged->evaluation, out);
    if (drift) {
        cli_printf("drift           %s%s\n",
                   drift->is_seen ? "since " : "none seen",
                   drift->is_seen ? drift->since : "");
        FIGURES_TABLE(class_figures, drift->classes, MAX_INTERVALS, out);
    }
    if (curve->n)
        FIGURES_TABLE(curve_figures, curve->points, curve->n, out);
    comm_report_print(judged->comm_samples, judged->n_comm, out);
}

static void print_json(const struct training *judged, const struct drift *drift,
                       const struct curve *curve)
{
    json_t *root = evaluation_to_json(&judged->evaluation);
    json_t *drifted = NULL, *learned = NULL;

    if (drift)
        drifted = json_pack(
            "{s:s?, s:o}", "since", drift->is_seen ? drift->since : NULL,
            "classes",
            FIGURES_LIST(class_figures, drift->classes, MAX_INTERVALS));
    if (curve->n)
        learned = FIGURES_LIST(curve_figures, curve->points, curve->n);
    json_object_update_new(
        root,
        json_pack("{s:s, s:s, s:o, s:I, s:o, s:o, s:o*, s:o*}", "model",
                  cli_shown(judged->cli, "model"), "hash",
                  HASH_TEXT(judged->model.hash), "intervals",
                  covered_to_json(&judged->evaluation), "samples",
                  (json_int_t)judged->n, "exchanges",
                  comm_report_to_json(judged->comm_samples, judged->n_comm),
                  "cases",
                  held_out_to_json(&judged->model, judged->samples, judged->n),
                  "drift", drifted, "learning", learned));
    cli_print_json(root);
}

static int run_eval(struct cli *cli, struct err *err)
{
    struct training judged = {.cli = cli};
    struct drift drift, *asked = NULL;
    struct curve curve = {.n = 0};
    int rc;

    if (model_load(&judged.model, cli_string(cli, "model"), cli->arena, err))
        return -1;
    judged.device = judged.model.setting;
    rc = training_load(&judged, STORE_READ, err);
    store_close(judged.store);
    if (rc)
        return -1;
    evaluate_model(&judged.evaluation, &judged.model, judged.samples, judged.n);
    if (!judged.evaluation.errors[PREDICTOR_NET].n)
        return err_input(
            err,
            "'%s' has no held-out cases (one in ten) to evaluate a model on",
            cli_string(cli, "db"));
    if (cli_given(cli, "drift"))
        drift_find(asked = &drift, &judged.model, judged.samples, judged.n);
    if (cli_given(cli, "learning-curve") && find_curve(&curve, &judged, err))
        return -1;
    print_json(&judged, asked, &curve);
    print_text(&judged, asked, &curve);
    return 0;
}

const struct command command_eval = {
    .name = "eval",
    .synopsis = "--db FILE --model FILE [options]",
    .summary = "measure how well a cost model predicts held-out samples",
    .options = {file_options, setting_options, progress_options},
    .needs = {"db", "model"},
    .run = run_eval,
};
