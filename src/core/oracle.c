/* SPDX-License-Identifier: MIT */
#include "core/oracle.h"

#include <math.h>

const char *cost_basis_name(enum cost_basis basis)
{
    switch (basis) {
    case BASIS_ANALYTIC:
        return "analytic";
    case BASIS_MODELLED:
        return "modelled";
    case BASIS_MEASURED:
        return "measured";
    }
    return "unknown";
}

void oracle_close(struct oracle *oracle)
{
    if (oracle && oracle->ops->close)
        oracle->ops->close(oracle);
}

double oracle_total_ms(size_t n_devices, const double *compute_ms,
                       const double *bwd_ms, const double *fwd_ms)
{
    double total = 0;

    for (size_t r = 0; r < n_devices; r++) {
        double ms = compute_ms[r] + bwd_ms[r] + fwd_ms[r];

        if (!isfinite(ms))
            return ms;
        total = fmax(total, ms);
    }
    return total;
}
