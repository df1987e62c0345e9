/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/model_report.h"

#include "base/hash.h"
#include "costmodel/formulas/comm_curves.h"

#include <inttypes.h>
#include <math.h>

#define ERRORS(member) MEMBER_OF(struct errors, member)
const struct figure error_figures[] = {
    {NULL, "held-out fused samples", -26, 0, FIGURE_PLAIN, ERRORS(name)},
    {NULL, "n", 6, 0, FIGURE_PLAIN, ERRORS(n)},
    {NULL, "MSE ms^2", 10, 5, FIGURE_SIGNIFICANT, ERRORS(mse)},
    {NULL, "mean %", 7, 2, FIGURE_PERCENT, ERRORS(mape)},
    {NULL, "median %", 8, 2, FIGURE_PERCENT, ERRORS(median_ape)},
    {NULL, "p90 %", 7, 2, FIGURE_PERCENT, ERRORS(p90_ape)},
    {NULL, "Kendall", 7, 4, FIGURE_PLAIN, ERRORS(kendall_tau)},
    {0},
};

void model_print_setting(const struct model *model, struct arena *arena,
                         struct buf *out)
{
    buf_printf(out, "setting         %s\n", model_setting_text(model, arena));
    for (size_t i = 0; i < model->n_environments; i++)
        buf_printf(out, "%-15s %s, %" PRIu64 " samples\n",
                   i ? "" : "measured on",
                   environment_text(&model->environments[i], arena),
                   model->environments[i].n_samples);
}

void model_print_samples(const struct model_training *training, struct buf *out)
{
    buf_printf(out,
               "samples         %" PRIu64 " for training, %" PRIu64
               " for validation, %" PRIu64 " fused cases held out\n",
               training->n_train, training->n_validation, training->n_held_out);
}

void model_print_comm(const struct model *model, const char *unknown,
                      struct arena *arena, struct buf *out)
{
    if (model->has_comm)
        buf_printf(out, "communication   %s (%s)\n",
                   comm_curves_text(&model->comm, arena), model->comm.source);
    else
        buf_printf(out, "communication   not measured%s\n", unknown);
}

void model_print_products(const struct model *model, struct buf *out)
{
    const struct product_times *products = &model->products;

    if (products->n)
        buf_printf(out,
                   "products        %zu measured, others predicted to %.1f %% "
                   "in the median, %.1f %% in nine of ten\n",
                   products->n, 100 * products->median_error_frac,
                   100 * products->error_frac);
}

void model_print_file(const struct model *model, const char *path,
                      struct buf *out)
{
    buf_printf(out, "model           %s, hash %s", path,
               HASH_TEXT(model->hash));
}

void model_print_kind(const struct model *model, struct arena *arena,
                      struct buf *out)
{
    const struct error_list *choice = &model->choice;

    buf_printf(out, "kind            %s%s\n", model_kind_text(model, arena),
               choice_text(model, arena));
    for (size_t i = 0; i < choice->n; i++)
        buf_printf(out,
                   "                %s: mean error %.2f %%, median %.2f %%, "
                   "p90 %.2f %%\n",
                   choice->items[i].name, 100 * choice->items[i].mape,
                   100 * choice->items[i].median_ape,
                   100 * choice->items[i].p90_ape);
}

/* Least power of a total that is printed. */
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

/* Prints the training ranges of a model if there are several ranges. */
static void print_ranges(const struct model *model, struct buf *out)
{
    for (size_t i = 0; model->ranges.n > 1 && i < model->ranges.n; i++) {
        const struct model_range *range = &model->ranges.items[i];

        buf_printf(out,
                   "                %s, %s, batch %u to %u: %" PRIu64
                   " samples\n",
                   precision_names[range->precision],
                   optimizer_names[range->optimizer], range->batch_min,
                   range->batch_max, range->n_samples);
    }
}

static void print_roofline(const struct estimate *estimate, struct buf *out)
{
    const struct gpu_spec *gpu = &estimate->gpu;
    const struct feature *totals = estimate->totals.items;

    buf_printf(
        out,
        "estimate        roofline of %s at %.4g us a launch, %.4g cycles "
        "a row, %.4g us a row of the longest bag, %.4g GB/s, L2 %.4g "
        "GB/s",
        gpu->name, gpu->launch_us, gpu->row_cycles, gpu->bag_row_us,
        gpu->dram_gbps, gpu->l2_gbps);
    if (gpu->hot_rows > 0)
        buf_printf(out, ", hot lookups %.4g rows more", gpu->hot_rows);
    for (unsigned i = 0; i < estimate->totals.n; i++)
        if (fabs(totals[i].power) >= LEAST_POWER)
            buf_printf(out, ", %s ^ %.3f", totals[i].name, totals[i].power);
    buf_printf(out, "\n");
}

static void print_estimate(const struct estimate *estimate, struct buf *out)
{
    const struct feature *totals = estimate->totals.items;

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
        model_print_samples(training, out);
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

void model_print(const struct model *model, const char *path,
                 struct arena *arena, struct buf *out)
{
    model_print_file(model, path, out);
    buf_printf(out, ", format %u\nbasis           %s: %s\n", model->format,
               cost_basis_names[model->basis], model->source);
    model_print_setting(model, arena, out);
    print_ranges(model, out);
    model_print_kind(model, arena, out);
    print_training(model, out);
    print_net(model, out);
    print_estimate(&model->estimate, out);
    model_print_comm(model, "", arena, out);
    model_print_products(model, out);
    if (model->floor_gbps > 0)
        buf_printf(out,
                   "floor           bytes of a step / %.1f GB/s, the highest "
                   "rate measured\n",
                   model->floor_gbps);
    else
        buf_printf(out, "floor           unknown\n");
    FIGURES_TABLE(error_figures, model->errors.items, model->errors.n, out);
    FIGURES_TABLE(feature_figures, model->features.items, model->features.n,
                  out);
}
