/* SPDX-License-Identifier: MIT */
#include "emit/report_dense.h"

#include "base/text.h"

#include <inttypes.h>

static void print_cost(const struct plan *plan, struct buf *out)
{
    const struct dense_cost *cost = &plan->dense;
    const double *given_ms = plan->problem.job.dense_ms;

    if (job_dense_ms(&plan->problem.job) > 0) {
        buf_printf(out, "%g ms forward and %g ms backward, as given",
                   given_ms[0], given_ms[1]);
        return;
    }
    if (!(dense_cost_ms(cost) > 0)) {
        buf_printf(out, "not priced by this cost model");
        return;
    }
    buf_printf(out, "%.3f ms of the step", dense_cost_ms(cost));
    if (cost->error_frac > 0)
        buf_printf(out, " +-%.0f %%", 100 * cost->error_frac);
    if (cost->is_measured)
        buf_printf(out, ", by measured matrix products");
    buf_printf(out, "\n        %.3f forward, %.3f backward, %.3f update",
               cost->forward_ms, cost->backward_ms, cost->update_ms);
    if (cost->reduce_ms > 0)
        buf_printf(out, ", %.3f of %.3f all-reduce", cost->exposed_ms,
                   cost->reduce_ms);
}

/* Prints the layers with a blank after each part, where a line can break. */
static void print_layers(const struct dense *dense, struct buf *out)
{
    struct buf text = {0};

    dense_print(dense, &text);
    for (const char *c = text.data; *c; c++)
        buf_printf(out, "%c%s", *c, *c == ';' ? " " : "");
    buf_release(&text);
}

void report_dense(const struct plan *plan, struct buf *out)
{
    const struct problem *problem = &plan->problem;
    const struct dense *dense = problem->job.dense;
    const struct dense_memory memory = problem_dense_memory(problem);
    const uint64_t items[N_DENSE_ITEMS] = {memory.weights, memory.masters,
                                           memory.gradients, memory.optimizer,
                                           memory.activations};

    if (!dense)
        return;
    buf_printf(out, "dense   ");
    print_cost(plan, out);
    buf_printf(out, "\n        ");
    print_layers(dense, out);
    buf_printf(out, "\n        %" PRIu64 " parameters; on each GPU:\n",
               dense->n_parameters);
    for (unsigned i = 0; i < N_DENSE_ITEMS; i++)
        if (items[i])
            buf_printf(out, "        %-22s %10s\n", dense_item_names[i],
                       TEXT_BYTES(items[i]));
}
