/* SPDX-License-Identifier: MIT */
#include "exec/tally.h"

#include <math.h>

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

        /* An empty bag has scale 0 and must be exactly 0. */
        if (difference > 0 || isnan(difference))
            tally->error = fmax(tally->error, isnan(error) ? INFINITY : error);
    }
    tally->n += n;
}

struct tally tally_sum(const struct tally *tallies, unsigned n_threads)
{
    struct tally sum = {0};

    for (unsigned i = 0; i < n_threads; i++) {
        sum.error = fmax(sum.error, tallies[i].error);
        sum.n += tallies[i].n;
    }
    return sum;
}
