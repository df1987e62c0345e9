/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/estimate.h"

#include "costmodel/formulas/roofline.h"

#include <math.h>

size_t estimate_width(const struct estimate *estimate)
{
    return estimate->totals.n + (estimate->gpu.name ? FUSED_LANES : 0);
}

void estimate_fill(const struct estimate *estimate, struct feature_input *input,
                   double *out)
{
    double *lanes = out + estimate->totals.n, ms;

    feature_set_fill(&estimate->totals, input, out);
    if (!estimate->gpu.name)
        return;
    fused_fill(&estimate->gpu, input, false, lanes);
    ms = fused_added_ms(&estimate->gpu, lanes);
    for (unsigned k = 0; k < ROOFLINE_PARTS; k++)
        input->parts[k] = ms > 0 ? lanes[FUSED_PART + k] / ms : 0;
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
    return exp2(log2_ratio) *
           fused_ms(&estimate->gpu, sums + estimate->totals.n);
}

double estimate_bound(const struct estimate *estimate, double ratio)
{
    if (!estimate->totals.n)
        return ratio;
    return ratio < estimate->ratio_min   ? estimate->ratio_min
           : ratio > estimate->ratio_max ? estimate->ratio_max
                                         : ratio;
}
