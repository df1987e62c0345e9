/* SPDX-License-Identifier: MIT */
#include "emit/wire_line.h"

#include <math.h>

/* Smallest gain that the line mentions; it is printed in whole percent. */
#define LEAST_GAIN_FRAC 0.005

bool emit_has_wire_line(const struct plan *plan)
{
    return plan->wire.break_even_gbps > 0 &&
           plan->wire.gain_frac >= LEAST_GAIN_FRAC;
}

/* Rounds down to two digits. */
static double round_down(double x)
{
    const double unit = pow(10, floor(log10(x)) - 1);

    return unit * floor(x / unit);
}

void emit_wire_line(const struct plan *plan, struct buf *out)
{
    const struct wire_regret *wire = &plan->wire;
    const double slowest = wire->assumed_gbps * wire_shares[N_WIRES - 1];

    if (!emit_has_wire_line(plan))
        return;
    buf_printf(out,
               "%s %.*f GB/s assumed; below %g, plan with --%s-gbps: "
               "%.0f %% faster at %g",
               wire->is_inter ? "wire" : "NVLink",
               wire->assumed_gbps < 100 ? 1 : 0, wire->assumed_gbps,
               round_down(wire->break_even_gbps),
               wire->is_inter ? "inter" : "intra", 100 * wire->gain_frac,
               round_down(slowest));
}
