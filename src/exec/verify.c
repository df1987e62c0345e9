/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include <math.h>

void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tally)
{
    double limit = table->precision == PRECISION_FP16 ? VERIFY_FP16_LIMIT
                                                      : VERIFY_FP32_LIMIT;

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
