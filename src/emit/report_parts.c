/* SPDX-License-Identifier: MIT */
#include "emit/report_parts.h"

#include "base/ranked.h"
#include "base/text.h"
#include "emit/formats.h"

#include <inttypes.h>
#include <stdio.h>

/* Clusters up to here are printed whole, larger ones by their ends. */
#define N_SHOWN_MAX 32u
#define N_SLOWEST 8u
#define N_FASTEST 4u
#define N_TABLES_SHOWN 10u
#define N_DEVICES_SHOWN 6u
#define NAME_WIDTH 32u
/* Of the step: what is less is not worth a word. */
#define NOTABLE_FRAC 1e-3

/* --- the GPUs --- */

struct unit {
    const char *name;
    double n_bytes;
    int n_decimals; /* of amounts, so that they keep to their columns */
};

/* One unit for the whole table, so that its columns compare by eye: that of
 * what the tables take, as the reserve is printed before the table, too. */
static struct unit choose_unit(const struct report *report)
{
    static const struct unit units[] = {
        {"KiB", 0x1p10, 0}, {"MiB", 0x1p20, 0}, {"GiB", 0x1p30, 0}};
    struct unit unit = units[0];
    double largest = 0, tables = 0;

    for (uint32_t r = 0; r < report->n_devices; r++) {
        const struct memory_items *memory = &report->devices[r].cost.memory;

        largest = fmax(largest, (double)memory->total);
        tables = fmax(tables,
                      (double)(memory->total - memory->reserve - memory->nccl));
    }
    for (size_t i = 1; i < sizeof units / sizeof *units; i++)
        if (tables >= units[i].n_bytes || largest >= 1e6 * unit.n_bytes)
            unit = units[i];
    unit.n_decimals = largest < 1e4 * unit.n_bytes   ? 2
                      : largest < 1e5 * unit.n_bytes ? 1
                                                     : 0;
    return unit;
}

static void print_amount(struct buf *out, const struct unit *unit,
                         double n_bytes)
{
    buf_printf(out, " %7.*f", unit->n_decimals, n_bytes / unit->n_bytes);
}

/* The start of a row. */
static void print_times(const struct report_device *device, struct buf *out)
{
    buf_printf(out, " %8.3f %8.3f %8.3f %8.3f", device->cost.compute_ms,
               device->cost.bwd_comm_ms,
               device->cost.fwd_comm_ms + device->waiting_ms,
               device->cost.total_ms);
}

static void print_device(const struct report *report, uint32_t r,
                         const struct unit *unit, struct buf *out)
{
    const struct report_device *device = &report->devices[r];
    const struct memory_items *memory = &device->cost.memory;
    double have = (double)report->plan->problem.cluster.memory_bytes[r];
    char kinds[REPORT_KINDS_MAX];

    buf_printf(out, "%-4u", r);
    print_times(device, out);
    print_amount(out, unit, (double)memory->total);
    buf_printf(out, " %5.1f",
               have > 0 ? 100 * (double)memory->total / have : 0);
    buf_printf(out, "  %s\n", report_kinds(kinds, device->n_shards));
}

static void print_mean(const struct report *report, const struct unit *unit,
                       struct buf *out)
{
    double total = 0;

    for (uint32_t r = 0; r < report->n_devices; r++)
        total +=
            (double)report->devices[r].cost.memory.total / report->n_devices;
    buf_printf(out, "mean");
    print_times(&report->mean, out);
    print_amount(out, unit, total);
    buf_printf(out, "\n");
}

/* Explains the abbreviations that occur. */
static void print_legend(const struct report *report, struct buf *out)
{
    const struct job *job = &report->plan->problem.job;
    bool occurs[N_SHARD_KINDS] = {false};

    for (size_t i = 0; i < report->plan->n_shards; i++)
        occurs[shard_kind_idx(report->plan->shards[i].kind)] = true;
    buf_printf(out, "shards: ");
    for (size_t i = 0, n = 0; i < N_SHARD_KINDS; i++)
        if (occurs[i])
            buf_printf(out, "%s%s %s", n++ ? ", " : "",
                       shard_traits[i].initials, shard_traits[i].pieces);
    buf_printf(out, "; fwd comm holds the waiting%s\n",
               plan_has_parts(report->plan) && job_dense_ms(job) > 0
                   ? " and the dense part"
                   : "");
}

typedef void print_row(const struct report *report, uint32_t r,
                       const struct unit *unit, struct buf *out);

/* Of all devices, or of many the slowest and the fastest. */
static void print_rows(const struct report *report, print_row *print,
                       const struct unit *unit, struct buf *out)
{
    uint32_t n = report->n_devices;

    if (n <= N_SHOWN_MAX) {
        for (uint32_t r = 0; r < n; r++)
            print(report, r, unit, out);
        return;
    }
    for (uint32_t i = 0; i < N_SLOWEST; i++)
        print(report, report->slowest[i], unit, out);
    buf_printf(out, "...  %u more between the %u slowest and the %u fastest\n",
               n - N_SLOWEST - N_FASTEST, N_SLOWEST, N_FASTEST);
    for (uint32_t i = n - N_FASTEST; i < n; i++)
        print(report, report->slowest[i], unit, out);
}

void report_error(const struct plan *plan, struct buf *out)
{
    const double frac = plan_error_frac(plan);

    if (frac > 0)
        buf_printf(out, " +-%.0f %%", 100 * frac);
}

#define MOST_OUTSIDE 3

void report_outside(const struct cost_source *cost, struct buf *out)
{
    const size_t n =
        cost->n_outside < MOST_OUTSIDE ? cost->n_outside : MOST_OUTSIDE;

    for (size_t i = 0; i < n; i++) {
        const struct cost_outside *at = &cost->outside[i];

        buf_printf(out, "        outside of what was measured: %s%s%s%s %.6g",
                   at->feature, at->table ? " of table '" : "",
                   at->table ? at->table : "", at->table ? "'" : "", at->value);
        buf_printf(out, " (%.6g to %.6g)%s\n", at->least, at->most,
                   i + 1 == n && n < cost->n_outside ? " and more" : "");
    }
}

json_t *report_outside_json(const struct cost_source *cost)
{
    return PLACE_LIST_ROWS(cost->outside, cost->n_outside, cost_outside_fields);
}

#define LINE_PARTS 3

void report_job(const struct plan *plan, struct buf *out)
{
    if (!plan_has_parts(plan)) {
        buf_printf(out,
                   "        as the cost model's authors published it, "
                   "whatever the pipeline%s\n",
                   plan->problem.job.dedup != DEDUP_NONE
                       ? " and the de-duplication"
                       : "");
        return;
    }
    buf_printf(out, "        ");
    job_describe(&plan->problem.job, out);
    buf_printf(out, "\n        exposed:");
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        buf_printf(out, "%s %s %.3f",
                   !p                    ? ""
                   : p % LINE_PARTS == 0 ? ",\n                "
                                         : ",",
                   step_part_names[p], plan->exposed_ms[p]);
    buf_printf(out, " ms\n");
}

static void print_phases(const struct report *report, uint32_t r,
                         const struct unit *unit, struct buf *out)
{
    (void)unit;
    buf_printf(out, "%-4u", r);
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        buf_printf(out, " %8.3f", report->devices[r].cost.parts_ms[p]);
    buf_printf(out, " %8.3f\n", report->devices[r].waiting_ms);
}

void report_phases(const struct report *report, struct buf *out)
{
    if (!plan_has_parts(report->plan))
        return;
    buf_printf(out, "\nGPU ");
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        buf_printf(out, " %8s", step_part_names[p]);
    buf_printf(out, " %8s  ms\n", "waiting");
    print_rows(report, print_phases, NULL, out);
}

/* Of a GPU's memory. */
static void print_items(const struct report *report, uint32_t r,
                        const struct unit *unit, struct buf *out)
{
    const struct memory_items *memory = &report->devices[r].cost.memory;

    buf_printf(out, "%-4u", r);
    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        buf_printf(out, " %9.*f", unit->n_decimals,
                   (double)memory->item[i] / unit->n_bytes);
    buf_printf(out, "\n");
}

void report_devices(const struct report *report, struct buf *out)
{
    struct unit unit = choose_unit(report);

    buf_printf(out,
               "\n      compute bwd comm fwd comm    total          memory\n"
               "GPU        ms       ms       ms       ms     %s     %%  "
               "shards\n",
               unit.name);
    print_rows(report, print_device, &unit, out);
    if (report->n_devices > 1)
        print_mean(report, &unit, out);
    print_legend(report, out);
    buf_printf(out, "\nGPU ");
    for (unsigned i = 0; i < N_MEMORY_ITEMS; i++)
        buf_printf(out, " %9s", memory_item_names[i]);
    buf_printf(out, "  %s\n", unit.name);
    print_rows(report, print_items, &unit, out);
}

/* --- what makes the slowest slow --- */

/* The parts of a step. */
static const struct {
    const char *name;
    size_t offset;
} parts[] = {
    {"compute", offsetof(struct report_device, cost.compute_ms)},
    {"backward communication",
     offsetof(struct report_device, cost.bwd_comm_ms)},
    {"waiting", offsetof(struct report_device, waiting_ms)},
    {"forward communication", offsetof(struct report_device, cost.fwd_comm_ms)},
};
#define N_PARTS (sizeof parts / sizeof *parts)

static double part_ms(const struct report_device *device, size_t part)
{
    return *(const double *)((const char *)device + parts[part].offset);
}

/* The device that is ready for the forward last, so that all others wait for
 * it; device r where none is notably later. */
static uint32_t last_ready(const struct report *report, uint32_t r)
{
    double notable_ms = NOTABLE_FRAC * report->plan->total_ms;
    uint32_t last = r;

    for (uint32_t i = 0; i < report->n_devices; i++)
        if (report_ready_ms(&report->devices[i]) >
            report_ready_ms(&report->devices[last]) +
                (last == r ? notable_ms : 0))
            last = i;
    return last;
}

static double excess_ms(const struct report *report, uint32_t r, size_t part)
{
    return part_ms(&report->devices[r], part) - part_ms(&report->mean, part);
}

/* The shard on device r that costs most alone, or n_shards. */
static size_t dearest_shard(const struct plan *plan, uint32_t r)
{
    size_t dearest = plan->n_shards;

    for (size_t i = 0; i < plan->n_shards; i++)
        if (plan->shards[i].device == r &&
            (dearest == plan->n_shards ||
             plan->shard_ms[i] > plan->shard_ms[dearest]))
            dearest = i;
    return dearest;
}

/* What makes a device slow: the part that is furthest above the mean, and the
 * table that weighs most there. */
static void print_cause(const struct report *report, uint32_t r,
                        struct buf *out)
{
    const struct plan *plan = report->plan;
    size_t i = dearest_shard(plan, r), most = 0;

    for (size_t p = 1; p < N_PARTS; p++)
        if (excess_ms(report, r, p) > excess_ms(report, r, most))
            most = p;
    if (excess_ms(report, r, most) < NOTABLE_FRAC * plan->total_ms)
        buf_printf(out, "GPU %u: as the mean in all its parts\n", r);
    else
        buf_printf(out, "GPU %u: its %s is %.3f ms above the mean\n", r,
                   parts[most].name, excess_ms(report, r, most));
    if (i < plan->n_shards &&
        parts[most].offset != offsetof(struct report_device, waiting_ms))
        buf_printf(out, "  %stable '%.40s' costs most there, %.3f ms alone\n",
                   plan->shards[i].kind == SHARD_TABLE ? "" : "a piece of ",
                   plan->problem.tables[plan->shards[i].table].name,
                   plan->shard_ms[i]);
}

static void print_parts(const struct report *report, uint32_t r, uint32_t last,
                        struct buf *out)
{
    char name[16];

    snprintf(name, sizeof(name), "GPU %u", r);
    buf_printf(out, "\n%-28s %10s     mean", "slowest GPU, ms", name);
    snprintf(name, sizeof(name), "GPU %u", last);
    if (last != r)
        buf_printf(out, " %10s, which is ready last", name);
    buf_printf(out, "\n");
    for (size_t i = 0; i < N_PARTS; i++) {
        buf_printf(out, "  %-26s %10.3f %8.3f", parts[i].name,
                   part_ms(&report->devices[r], i), part_ms(&report->mean, i));
        if (last != r)
            buf_printf(out, " %10.3f", part_ms(&report->devices[last], i));
        buf_printf(out, "\n");
    }
}

/* By total, which holds the waiting, GPUs differ little; so beside the slowest
 * stands the one that the others wait for. */
void report_slowest(const struct report *report, struct buf *out)
{
    uint32_t r = report->slowest[0], last = last_ready(report, r);

    if (report->n_devices < 2)
        return;
    print_parts(report, r, last, out);
    print_cause(report, r, out);
    if (last != r)
        print_cause(report, last, out);
}

/* --- the dearest tables --- */

/* "0 3 5": the devices of shards begin .. end, in their order, each once. */
static void print_holders(const struct plan *plan, size_t begin, size_t end,
                          struct buf *out)
{
    uint32_t shown[N_DEVICES_SHOWN];
    size_t n_shown = 0;

    for (size_t i = begin; i < end; i++) {
        uint32_t device = plan->shards[i].device;
        bool is_new = true;

        for (size_t k = 0; k < n_shown; k++)
            is_new &= shown[k] != device;
        if (!is_new)
            continue;
        if (n_shown == N_DEVICES_SHOWN) {
            buf_printf(out, " ...");
            return;
        }
        buf_printf(out, "%s%u", n_shown ? " " : "", device);
        shown[n_shown++] = device;
    }
}

static void print_table(const struct plan *plan, size_t begin, double alone_ms,
                        double sum_ms, struct buf *out)
{
    const struct shard *shard = &plan->shards[begin];
    const struct table *table = &plan->problem.tables[shard->table];
    size_t n_shards[N_SHARD_KINDS] = {0}, end = emit_shards_end(plan, begin);
    char kinds[REPORT_KINDS_MAX];

    n_shards[shard_kind_idx(shard->kind)] = end - begin;
    text_column(out, table->name, NAME_WIDTH);
    buf_printf(out, " %9.3f %4.1f %12" PRIu64 " %5u %8.2f  %-7s ", alone_ms,
               sum_ms > 0 ? 100 * alone_ms / sum_ms : 0, table->num_embeddings,
               table->dim, table->pooling_factor,
               report_kinds(kinds, n_shards));
    print_holders(plan, begin, end, out);
    buf_printf(out, "\n");
}

void report_tables(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    /* First shards of tables, by what all cost alone. */
    struct ranked *ranked = mem_alloc(plan->n_shards, sizeof(*ranked));
    double sum_ms = 0;
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++) {
        if (!i || plan->shards[i].table != plan->shards[i - 1].table)
            ranked[n++].idx = (uint32_t)i;
        ranked[n - 1].key -= plan->shard_ms[i];
        sum_ms += plan->shard_ms[i];
    }
    ranked_sort(ranked, n);
    buf_printf(out,
               "\ndearest tables, each shard priced alone (fused they cost "
               "less)\n%-*s  alone ms    %%         rows   dim  pooling  "
               "shards  GPUs\n",
               (int)NAME_WIDTH, "table");
    for (size_t i = 0; i < n && i < N_TABLES_SHOWN; i++)
        print_table(plan, ranked[i].idx, 0 - ranked[i].key, sum_ms, out);
    mem_free(ranked);
}
