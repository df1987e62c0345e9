/* SPDX-License-Identifier: MIT */
#include "base/figures.h"
#include "base/hash.h"
#include "base/text.h"
#include "cli/training.h"
#include "costmodel/model_import.h"
#include "costmodel/model_json.h"

#include <inttypes.h>
#include <math.h>
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
    if (cli_given(cli, "json"))
        cli_print_json(json_pack("{s:s, s:s}", "output",
                                 cli_shown(cli, "output"), "hash",
                                 hash_text(hash, model.hash)));
    else if (strcmp(cli_string(cli, "output"), "-") != 0)
        printf("model           %s, hash %s\n", cli_shown(cli, "output"),
               hash_text(hash, model.hash));
    return 0;
}

/* Smaller powers do not show. */
#define LEAST_POWER 5e-4

#define FEATURE(member) MEMBER_OF(struct feature, member)
static const struct figure feature_figures[] = {
    {NULL, "feature", -16, 0, FIGURE_PLAIN, FEATURE(name)},
    {NULL, "mean", 12, 6, FIGURE_SIGNIFICANT, FEATURE(mean)},
    {NULL, "deviation", 12, 6, FIGURE_SIGNIFICANT, FEATURE(std)},
    {NULL, "least", 12, 6, FIGURE_SIGNIFICANT, FEATURE(min)},
    {NULL, "most", 12, 6, FIGURE_SIGNIFICANT, FEATURE(max)},
    {0},
};

#define ERRORS(member) MEMBER_OF(struct errors, member)
static const struct figure error_figures[] = {
    {NULL, "held-out fused samples", -28, 0, FIGURE_PLAIN, ERRORS(name)},
    {NULL, "n", 8, 0, FIGURE_PLAIN, ERRORS(n)},
    {NULL, "MSE ms^2", 12, 6, FIGURE_SIGNIFICANT, ERRORS(mse)},
    {NULL, "mean %", 12, 2, FIGURE_PERCENT, ERRORS(mape)},
    {NULL, "median %", 12, 2, FIGURE_PERCENT, ERRORS(median_ape)},
    {NULL, "p90 %", 12, 2, FIGURE_PERCENT, ERRORS(p90_ape)},
    {NULL, "Kendall", 12, 4, FIGURE_PLAIN, ERRORS(kendall_tau)},
    {0},
};

/* Where there are several. */
static void print_ranges(const struct model *model, struct buf *out)
{
    for (size_t i = 0; model->n_ranges > 1 && i < model->n_ranges; i++) {
        const struct model_range *range = &model->ranges[i];

        buf_printf(
            out,
            "                %s, %s, batch %u to %u: %" PRIu64 " samples\n",
            precision_name(range->precision), optimizer_name(range->optimizer),
            range->batch_min, range->batch_max, range->n_samples);
    }
}

static void print_roofline(const struct estimate *estimate, struct buf *out)
{
    const struct gpu_spec *gpu = &estimate->gpu;
    const struct feature *totals = estimate->totals.at;

    buf_printf(
        out,
        "estimate        roofline of %s at %.4g us a launch, %.4g cycles "
        "a row, %.4g us a row of the longest bag, %.4g GB/s, L2 %.4g "
        "GB/s",
        gpu->name, gpu->launch_us, gpu->row_cycles, gpu->bag_row_us,
        gpu->dram_gbps, gpu->l2_gbps);
    for (unsigned i = 0; i < estimate->totals.n; i++)
        if (fabs(totals[i].power) >= LEAST_POWER)
            buf_printf(out, ", %s ^ %.3f", totals[i].name, totals[i].power);
    buf_printf(out, "\n");
}

static void print_estimate(const struct estimate *estimate, struct buf *out)
{
    const struct feature *totals = estimate->totals.at;

    if (!estimate->totals.n)
        return;
    if (estimate->gpu.name) {
        print_roofline(estimate, out);
        return;
    }
    buf_printf(out, "estimate        %.4g us", 1000 * estimate->base_ms);
    for (unsigned i = 0; i < estimate->totals.n; i++)
        if (totals[i].rate_ms > 0)
            buf_printf(out, " + %.4g ns %s", 1e6 * totals[i].rate_ms,
                       totals[i].name);
    buf_printf(out, ", times %.2f to %.2f by the net\n", estimate->ratio_min,
               estimate->ratio_max);
}

static void print_net(const struct model *model, struct buf *out)
{
    const struct mlp_shape *shape = &model->mlp.shape;

    if (model->mlp.n_params)
        buf_printf(out,
                   "net             %u features, %u, %u (sum) and %u totals, "
                   "%u, 1: %zu weights\n",
                   shape->n_features, shape->n_hidden, shape->n_embed,
                   shape->n_totals, shape->n_head, model->mlp.n_params);
}

static void print_training(const struct model *model, struct buf *out)
{
    const struct model_training *training = &model->training;

    if (training->n_train)
        training_print_samples(training, out);
    if (training->n_train && model->mlp.n_params)
        buf_printf(out,
                   "training        %" PRIu64 " epochs, the best was %" PRIu64
                   ", %s loss, seed %" PRIu64 ", version %s\n",
                   training->epochs, training->best_epoch, training->loss,
                   training->seed, training->version);
    if (*training->measured_from)
        buf_printf(out, "measured        %s to %s\n", training->measured_from,
                   training->measured_to);
}

static void print_info(const struct model *model, struct cli *cli,
                       struct buf *out)
{
    training_print_model(model, text_shown(cli->args[1], cli->arena), out);
    buf_printf(out, ", format %u\nbasis           %s: %s\n", model->format,
               cost_basis_names[model->basis], model->source);
    training_print_setting(model, cli, out);
    print_ranges(model, out);
    training_print_kind(model, cli, out);
    print_training(model, out);
    print_net(model, out);
    print_estimate(&model->estimate, out);
    training_print_comm(model, "", cli, out);
    if (model->floor_gbps > 0)
        buf_printf(out,
                   "floor           bytes of a step / %.1f GB/s, the highest "
                   "rate measured\n",
                   model->floor_gbps);
    else
        buf_printf(out, "floor           unknown\n");
    figures_table(error_figures, model->errors, model->n_errors,
                  sizeof(*model->errors), out);
    figures_table(feature_figures, model->features.at, model->features.n,
                  sizeof(*model->features.at), out);
}

static int info(struct cli *cli, struct err *err)
{
    struct model model;
    struct buf out = {0};
    char hash[HASH_TEXT_MAX];
    json_t *root;

    if (cli_given(cli, "output"))
        return err_set(err, ERR_USAGE,
                       "option '--output' is for 'model import'");
    if (model_load(&model, cli->args[1], cli->arena, err))
        return -1;
    if (!cli_given(cli, "json")) {
        print_info(&model, cli, &out);
        cli_print_report(&out);
        return 0;
    }
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
