/* SPDX-License-Identifier: MIT */

#include "core/rank_law.h"

#include <math.h>
#include <string.h>

double reuse_bin_count(unsigned k)
{
    return k < 2 ? k + 1.0 : ldexp(3.0, (int)k - 2);
}

unsigned reuse_bin_of(double count)
{
    unsigned k = 0;

    while (k < REUSE_BINS - 1 && count > ldexp(1.0, (int)k))
        k++;
    return k;
}

double table_reuse(const struct table *table, double n_lookups,
                   double bins[REUSE_BINS])
{
    double n_rows = (double)table->num_embeddings, unique = 0;
    double share = 0, lookups = 0; /* of a histogram that was given */
    double rows[REUSE_BINS] = {0};
    struct rank_law law;

    memset(bins, 0, REUSE_BINS * sizeof(bins[0]));
    if (n_lookups <= 0)
        return 0;
    if (table->has_bins) { /* unique rows follow from the mean count */
        for (unsigned k = 0; k < REUSE_BINS; k++) {
            bins[k] = table->bins[k];
            share += bins[k];
            lookups += bins[k] * reuse_bin_count(k);
        }
        return share > 0 ? fmin(n_lookups * share / lookups, n_rows) : 0;
    }
    if (table->num_embeddings == 1) { /* no chance in it, so no Poisson */
        bins[reuse_bin_of(n_lookups)] = 1;
        return fmin(n_lookups, 1);
    }
    law_init(&law, table, n_lookups);
    law_add_rows(&law, n_lookups, 0, n_rows, rows);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        unique += rows[k];
    for (unsigned k = 0; k < REUSE_BINS && unique > 0; k++)
        bins[k] = rows[k] / unique;
    return fmin(unique, fmin(n_rows, n_lookups));
}
