/* SPDX-License-Identifier: MIT */
#include "emit/report_figures.h"

#include "base/ranked.h"
#include "core/host.h"
#include "emit/caches_table.h"
#include "emit/formats.h"
#include "emit/placed_tables.h"

#include <math.h>
#include <stdlib.h>

#define USUAL_COLUMNS 80u

double report_own_ms(const struct device_cost *cost, bool waits)
{
    return cost->compute_ms + cost->bwd_comm_ms +
           (waits ? 0 : cost->fwd_comm_ms);
}

/* A device waits from the end of its backward until the last device is ready. A
 * communication model may include less waiting in its times. So the waiting is
 * limited to the range from 0 to the device's forward communication. */
void report_init(struct report *report, const struct plan *plan,
                 const struct report_options *options)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    double last_ms;

    *report = (struct report){
        .plan = plan,
        .options = *options,
        .n_devices = n_devices,
        .devices = mem_alloc(n_devices, sizeof(*report->devices)),
    };
    if (!options->n_columns)
        report->options.n_columns = USUAL_COLUMNS;
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        report->devices[shard->device].n_shards[shard_kind_idx(shard->kind)]++;
    }
    bottleneck_find(&report->bottleneck, plan, options->waits,
                    options->without_ms);
    last_ms =
        report_own_ms(&plan->devices[report->bottleneck.gpu], options->waits);
    for (uint32_t r = 0; r < n_devices; r++) {
        struct report_device *device = &report->devices[r];

        device->cost = plan->devices[r];
        device->own_ms = report_own_ms(&device->cost, options->waits);
        if (options->waits)
            device->waiting_ms = fmax(
                fmin(last_ms - device->own_ms, device->cost.fwd_comm_ms), 0);
        device->cost.fwd_comm_ms -= device->waiting_ms;
    }
}

void report_release(struct report *report)
{
    mem_free(report->devices);
    *report = (struct report){0};
}

static void find_phase(struct bottleneck *out, const struct plan *plan,
                       bool waits)
{
    static const char *const names[] = {"compute", "backward communication",
                                        "forward communication"};
    const struct device_cost *last = &plan->devices[out->gpu];
    const double parts_ms[] = {
        last->compute_ms, last->bwd_comm_ms,
        waits ? plan->total_ms - report_own_ms(last, true) : last->fwd_comm_ms};
    const bool has_parts = plan_has_parts(plan);
    const double *ms = has_parts ? plan->exposed_ms : parts_ms;
    unsigned most = 0;

    for (unsigned p = 1; p < (has_parts ? N_STEP_PARTS : 3u); p++)
        if (ms[p] > ms[most])
            most = p;
    out->phase = has_parts ? step_part_names[most] : names[most];
    out->phase_ms = ms[most];
}

/* Returns a saving in whole microseconds, as reports print it. */
static double printed_us(const struct saving *saving)
{
    return round(1000 * saving->ms);
}

bool savings_equal(const struct saving *a, const struct saving *b)
{
    return printed_us(a) == printed_us(b);
}

static int compare_savings(const void *left, const void *right)
{
    const struct saving *a = left, *b = right;
    const double x[] = {-printed_us(a), -a->alone_ms, a->table};
    const double y[] = {-printed_us(b), -b->alone_ms, b->table};

    return ranked_compare_reals(x, y, 3);
}

size_t savings_find(struct saving *savings, const struct plan *plan,
                    const double *without_ms)
{
    const double notable_ms = REPORT_NOTABLE_FRAC * plan->total_ms;
    size_t n = 0;

    for (size_t i = 0, end; i < plan->n_shards; i = end) {
        struct saving saving = {.table = plan->shards[i].table, .begin = i};

        end = saving.end = emit_shards_end(plan, i);
        saving.ms = plan->total_ms - without_ms[saving.table];
        for (size_t k = i; plan->shard_ms && k < end; k++)
            saving.alone_ms += plan->shard_ms[k];
        if (saving.ms > notable_ms)
            savings[n++] = saving;
    }
    qsort(savings, n, sizeof(*savings), compare_savings);
    return n;
}

/* Sets the table of the bottleneck. */
static void find_table(struct bottleneck *out, const struct plan *plan,
                       const double *without_ms)
{
    struct saving *savings =
        mem_alloc(plan->problem.n_tables, sizeof(*savings));

    if (savings_find(savings, plan, without_ms)) {
        out->table = savings[0].table;
        out->table_ms = savings[0].ms;
    }
    mem_free(savings);
}

void bottleneck_find(struct bottleneck *out, const struct plan *plan,
                     bool waits, const double *without_ms)
{
    *out = (struct bottleneck){.table = (uint32_t)plan->problem.n_tables};
    for (uint32_t r = 1; r < plan->problem.cluster.n_devices; r++)
        if (report_own_ms(&plan->devices[r], waits) >
            report_own_ms(&plan->devices[out->gpu], waits))
            out->gpu = r;
    find_phase(out, plan, waits);
    if (without_ms)
        find_table(out, plan, without_ms);
}

void report_bottleneck(const struct report *report, struct buf *out)
{
    const struct bottleneck *bottleneck = &report->bottleneck;
    const struct plan *plan = report->plan;

    buf_printf(out, "binds   ");
    if (plan_waits_for_host(plan))
        buf_printf(out,
                   "the host, which takes longer than the GPUs unless a dense "
                   "part hides it;\n        among the GPUs: ");
    if (plan->problem.cluster.n_devices > 1)
        buf_printf(out, "GPU %u, %s; ", bottleneck->gpu,
                   report->options.waits ? "which is ready last"
                                         : "the slowest");
    buf_printf(out, "%s, %.3f ms of the GPU work; ", bottleneck->phase,
               bottleneck->phase_ms);
    if (bottleneck->table == plan->problem.n_tables) {
        buf_printf(out, "no one table\n");
        caches_print_binding(plan, bottleneck->gpu, out);
        return;
    }
    buf_printf(out, "table '%s'", plan->problem.tables[bottleneck->table].name);
    placed_print_where(plan, bottleneck->table, out);
    buf_printf(out, ", without which it is %.3f ms shorter\n",
               bottleneck->table_ms);
    caches_print_binding(plan, bottleneck->gpu, out);
}
