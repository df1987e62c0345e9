/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include <math.h>

void verify_init(struct verify *verify, const struct placement *placement,
                 struct arena *arena)
{
    *verify = (struct verify){
        .output_hashes = ARENA_NEW(arena, uint64_t, placement->n_ranks),
        .weight_hashes = ARENA_NEW(arena, uint64_t, placement->n_ranks),
    };
}

static double limit_of(const struct table *table, enum verify_what what)
{
    if (table->precision == PRECISION_FP16)
        return VERIFY_FP16_LIMIT;
    return what == VERIFY_OUTPUTS && table->comm_precision == PRECISION_FP16
               ? VERIFY_FP16_LIMIT
               : VERIFY_FP32_LIMIT;
}

void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tally)
{
    double limit = limit_of(table, what);

    if (what == VERIFY_OUTPUTS) {
        verify->output_error = fmax(verify->output_error, tally->error);
        verify->n_outputs += tally->n;
    } else {
        verify->weight_error = fmax(verify->weight_error, tally->error);
        verify->n_weights += tally->n;
    }
    if (tally->error > limit && !verify->failed) {
        verify->failed = table;
        verify->failed_what = what;
        verify->failed_error = tally->error;
        verify->failed_limit = limit;
    }
}
