/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/estimate.h"

#include "costmodel/formulas/roofline.h"

#include <math.h>
#include <string.h>

#define US_PER_MS 1000
/* Least estimate: a net's answer is divided by it. On a CPU, the roofline of
 * tables without lookups is 0. */
#define LEAST_MS 1e-6

size_t estimate_width(const struct estimate *estimate)
{
    return estimate->totals.n + (estimate->gpu.name ? FUSED_LANES : 0);
}

void estimate_fill(const struct estimate *estimate, struct feature_input *input,
                   double *out)
{
    double *lanes = out + estimate->totals.n, ms;

    memset(input->parts, 0, sizeof(input->parts));
    if (estimate->is_monotone && !(input->n_lookups > 0)) {
        memset(out, 0, estimate_width(estimate) * sizeof(*out));
        return;
    }
    feature_set_fill(&estimate->totals, input, out);
    if (!estimate->gpu.name)
        return;
    fused_fill(&estimate->gpu, input, false, lanes);
    ms = fused_added_ms(&estimate->gpu, lanes);
    for (unsigned k = 0; k < ROOFLINE_PARTS; k++)
        input->parts[k] = ms > 0 ? lanes[FUSED_PART + k] / ms : 0;
}

void estimate_describe(const struct estimate *estimate,
                       const struct feature_set *features,
                       const struct feature_input *input, double *row,
                       double *vector)
{
    struct feature_input seen = *input, own = *input;

    if (estimate->is_monotone) {
        seen.precision = PRECISION_FP32;
        seen.row_bytes = input->dim * precision_bytes(PRECISION_FP32);
    }
    estimate_fill(estimate, &seen, vector);
    feature_set_fill(features, &seen, row);
    if (own.precision != seen.precision || own.row_bytes != seen.row_bytes)
        estimate_fill(estimate, &own, vector);
}

double estimate_added_ms(const struct estimate *estimate, const double *sums)
{
    double ms = estimate->totals.n ? 0 : 1;

    if (estimate->gpu.name)
        return fused_added_ms(&estimate->gpu, sums + estimate->totals.n);
    for (unsigned k = 0; k < estimate->totals.n; k++)
        ms += estimate->totals.items[k].rate_ms * sums[k];
    return ms;
}

/* A total outside the training range is clamped to that range before its power
 * is applied. */
double estimate_ms(const struct estimate *estimate, const double *sums)
{
    const struct feature *pos = estimate->totals.items;
    double log2_ratio = 0;

    if (!estimate->gpu.name)
        return estimate->totals.n
                   ? estimate->base_ms + estimate_added_ms(estimate, sums)
                   : 1;
    for (unsigned k = 0; k < estimate->totals.n; k++)
        if (pos[k].power != 0)
            log2_ratio +=
                pos[k].power *
                (fmin(fmax(log2(1 + sums[k]), pos[k].min), pos[k].max) -
                 pos[k].mean);
    return fmax(exp2(log2_ratio) *
                    fused_ms(&estimate->gpu, sums + estimate->totals.n),
                LEAST_MS);
}

double estimate_bound(const struct estimate *estimate, double ratio)
{
    if (!estimate->totals.n)
        return ratio;
    return ratio < estimate->ratio_min   ? estimate->ratio_min
           : ratio > estimate->ratio_max ? estimate->ratio_max
                                         : ratio;
}

uint32_t estimate_head_inputs(const struct estimate *estimate)
{
    return estimate->totals.n + (estimate->is_monotone ? HEAD_CONTEXT : 0);
}

double estimate_weight(const struct estimate *estimate, double share,
                       double unit_ms)
{
    return estimate->is_monotone ? US_PER_MS * share * unit_ms : share;
}

double estimate_ratio(const struct estimate *estimate, double answer,
                      double unit_ms)
{
    return estimate_bound(estimate, estimate->is_monotone
                                        ? answer / (US_PER_MS * unit_ms)
                                        : answer);
}
