/* SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "base/text.h"
#include "cli/training.h"
#include "costmodel/comm_fit.h"
#include "costmodel/model_import.h"
#include "costmodel/model_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", NULL, 0, 0, NULL,
     "import: model file to write"},
    {"json", 0, OPTION_FLAG, NULL, NULL, 0, 0, NULL, "info: print all as JSON"},
    {0},
};

static int import(struct cli *cli, struct err *err)
{
    struct model model;
    char hash[HASH_TEXT_MAX];

    if (!cli_given(cli, "output"))
        return err_set(err, ERR_USAGE,
                       "option '--output' is needed: where the model goes");
    if (model_import(&model, cli_arg(cli, 1), cli_arena(cli), err))
        return -1;
    if (training_save(&model, cli_string(cli, "output"), err))
        return -1;
    if (strcmp(cli_string(cli, "output"), "-") != 0)
        printf("model           %s, hash %s\n", cli_shown(cli, "output"),
               hash_text(hash, model.hash));
    return 0;
}

static void print_unknown(void)
{
    printf(" %12s", "-");
}

static void print_significant(double value)
{
    if (isfinite(value))
        printf(" %12.6g", value);
    else
        print_unknown();
}

static void print_fixed(double value, int n_decimals)
{
    if (isfinite(value))
        printf(" %12.*f", n_decimals, value);
    else
        print_unknown();
}

static void print_features(const struct model *model)
{
    printf("%-16s %12s %12s %12s %12s\n", "feature", "mean", "deviation",
           "least", "most");
    for (unsigned f = 0; f < model->features.n; f++) {
        printf("%-16s", feature_set_name(&model->features, f));
        print_significant(model->mean[f]);
        print_significant(model->std[f]);
        print_significant(model->min[f]);
        print_significant(model->max[f]);
        putchar('\n');
    }
}

static void print_errors(const struct model *model)
{
    if (!model->n_errors)
        return;
    printf("%-28s %8s %12s %12s %12s %12s %12s\n", "held-out fused samples",
           "n", "MSE ms^2", "mean %", "median %", "p90 %", "Kendall");
    for (size_t i = 0; i < model->n_errors; i++) {
        const struct errors *errors = &model->errors[i];

        printf("%-28s %8zu", errors->name, errors->n);
        print_significant(errors->mse);
        print_fixed(100 * errors->mape, 2);
        print_fixed(100 * errors->median_ape, 2);
        print_fixed(100 * errors->p90_ape, 2);
        print_fixed(errors->kendall_tau, 4);
        putchar('\n');
    }
}

/* Where there are several. */
static void print_ranges(const struct model *model)
{
    for (size_t i = 0; model->n_ranges > 1 && i < model->n_ranges; i++) {
        const struct model_range *range = &model->ranges[i];

        printf("                %s, %s, batch %u to %u: %" PRIu64 " samples\n",
               precision_name(range->precision),
               optimizer_name(range->optimizer), range->batch_min,
               range->batch_max, range->n_samples);
    }
}

static void print_estimate(const struct estimate *estimate)
{
    if (!estimate->totals.n)
        return;
    printf("estimate        %.4g us", 1000 * estimate->base_ms);
    for (unsigned i = 0; i < estimate->totals.n; i++)
        if (estimate->rate_ms[i] > 0)
            printf(" + %.4g ns %s", 1e6 * estimate->rate_ms[i],
                   total_set_name(&estimate->totals, i));
    printf(", times %.2f to %.2f by the net\n", estimate->ratio_min,
           estimate->ratio_max);
}

static void print_training(const struct model *model)
{
    const struct model_training *training = &model->training;

    if (training->n_train)
        printf("samples         %" PRIu64 " for training, %" PRIu64
               " for validation, %" PRIu64 " fused cases held out\n"
               "training        %" PRIu64 " epochs, the best was %" PRIu64
               ", %s loss, seed %" PRIu64 ", version %s\n",
               training->n_train, training->n_validation, training->n_held_out,
               training->epochs, training->best_epoch, training->loss,
               training->seed, training->version);
    if (*training->measured_from)
        printf("measured        %s to %s\n", training->measured_from,
               training->measured_to);
}

static void print_info(const struct model *model, struct cli *cli)
{
    const struct mlp_shape *shape = &model->mlp.shape;
    char hash[HASH_TEXT_MAX];

    printf("model           %s, hash %s, format %u\n",
           text_shown(cli_arg(cli, 1), cli_arena(cli)),
           hash_text(hash, model->hash), model->format);
    printf("basis           %s: %s\n", cost_basis_name(model->basis),
           model->source);
    printf("setting         %s\n", model_setting_text(model, cli_arena(cli)));
    training_print_environments(model, cli);
    print_ranges(model);
    print_training(model);
    printf("net             %u features, %u, %u (sum) and %u totals, %u, 1: "
           "%zu weights\n",
           shape->n_features, shape->n_hidden, shape->n_embed, shape->n_totals,
           shape->n_head, model->mlp.n_params);
    print_estimate(&model->estimate);
    if (model->has_comm)
        printf("communication   %s (%s)\n",
               comm_fit_text(&model->comm, cli_arena(cli)), model->comm.source);
    else
        printf("communication   not measured\n");
    if (model->floor_gbps > 0)
        printf("floor           bytes of a step / %.1f GB/s, the highest rate "
               "measured\n",
               model->floor_gbps);
    else
        printf("floor           unknown\n");
    print_errors(model);
    print_features(model);
}

static int info(struct cli *cli, struct err *err)
{
    struct model model;
    char hash[HASH_TEXT_MAX];
    json_t *root;

    if (cli_given(cli, "output"))
        return err_set(err, ERR_USAGE,
                       "option '--output' is for 'model import'");
    if (model_load(&model, cli_arg(cli, 1), cli_arena(cli), err))
        return -1;
    if (!cli_flag(cli, "json")) {
        print_info(&model, cli);
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
    const char *verb = cli_arg(cli, 0);

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
    .min_args = 2,
    .max_args = 2,
    .run = run_model,
};
