/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include <stdio.h>

double tally_scale(const double *row, uint32_t n)
{
    double scale = 0;

    for (uint32_t i = 0; i < n; i++)
        if (fabs(row[i]) > scale)
            scale = fabs(row[i]);
    return scale;
}

void tally_row(struct tally *tally, const double *want, const float *got,
               uint32_t n, double scale)
{
    for (uint32_t i = 0; i < n; i++) {
        double difference = fabs(got[i] - want[i]);
        double error = difference / (fabs(want[i]) + scale);

        /* An empty bag has scale 0, and its outputs must be exactly 0. */
        if (difference > 0 || isnan(difference))
            tally->error = fmax(tally->error, isnan(error) ? INFINITY : error);
    }
    tally->n += n;
}

void tally_add(struct tally *sum, const struct tally *tally)
{
    sum->error = fmax(sum->error, tally->error);
    sum->n += tally->n;
}

void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tallies, unsigned n)
{
    static const char *const whats[N_VERIFIED] = {
        [VERIFY_OUTPUTS] = "outputs",
        [VERIFY_WEIGHTS] = "updated weights",
        [VERIFY_AVERAGES] = "averaged weights"};
    struct verify_findings *found = &verify->found;
    struct tally tally = {0};
    const bool is_half =
        table->precision == PRECISION_FP16 ||
        (table->comm_precision == PRECISION_FP16 &&
         (what == VERIFY_OUTPUTS || table->output == OUTPUT_SEQUENCE));
    double limit = is_half ? VERIFY_FP16_LIMIT : VERIFY_FP32_LIMIT;

    for (unsigned i = 0; i < n; i++)
        tally_add(&tally, &tallies[i]);
    tally_add(&found->tallies[what], &tally);
    if (tally.error > limit && !found->failure[0])
        snprintf(found->failure, sizeof(found->failure),
                 "table '%s': its %s differ from the unsharded reference by "
                 "%.2g, more than %g",
                 table->name, whats[what], tally.error, limit);
}
