/* SPDX-License-Identifier: MIT */
#include "emit/report_parts.h"

#include <math.h>

/* Clusters up to here are printed whole, larger ones by their ends. */
#define N_SHOWN_MAX 32u
#define N_SLOWEST 8u
#define N_FASTEST 4u

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
        tables = fmax(tables, (double)(memory->total - memory->reserve));
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
static void print_times(const struct report *report,
                        const struct report_device *device, struct buf *out)
{
    if (report->is_priced)
        buf_printf(out, " %8.3f %8.3f %8.3f %8.3f", device->cost.compute_ms,
                   device->cost.bwd_comm_ms,
                   device->cost.fwd_comm_ms + device->waiting_ms,
                   device->cost.total_ms);
    else
        buf_printf(out, " %8s %8s %8s %8s", "-", "-", "-", "-");
}

static void print_device(const struct report *report, uint32_t r,
                         const struct unit *unit, struct buf *out)
{
    const struct report_device *device = &report->devices[r];
    const struct memory_items *memory = &device->cost.memory;
    double have = (double)report->plan->problem.cluster.memory_bytes[r];
    char kinds[REPORT_KINDS_MAX];

    buf_printf(out, "%-4u", r);
    print_times(report, device, out);
    print_amount(out, unit, (double)memory->total);
    buf_printf(out, " %5.1f",
               have > 0 ? 100 * (double)memory->total / have : 0);
    print_amount(out, unit, (double)memory->weights);
    print_amount(out, unit, (double)memory->optimizer);
    print_amount(out, unit, (double)memory->io);
    print_amount(out, unit, (double)memory->reserve);
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
    print_times(report, &report->mean, out);
    print_amount(out, unit, total);
    buf_printf(out, "\n");
}

/* Explains the abbreviations that occur. */
static void print_legend(const struct report *report, struct buf *out)
{
    bool occurs[N_SHARD_KINDS] = {false};

    for (size_t i = 0; i < report->plan->n_shards; i++)
        occurs[shard_kind_idx(report->plan->shards[i].kind)] = true;
    buf_printf(out, "shards: ");
    for (size_t i = 0, n = 0; i < N_SHARD_KINDS; i++)
        if (occurs[i])
            buf_printf(out, "%s%s %s", n++ ? ", " : "",
                       shard_traits[i].initials, shard_traits[i].pieces);
    if (report->is_priced)
        buf_printf(out, "; fwd comm holds the waiting");
    buf_printf(out, "\n");
}

void report_devices(const struct report *report, struct buf *out)
{
    struct unit unit = choose_unit(report);
    uint32_t n = report->n_devices;

    buf_printf(out,
               "\n      compute bwd comm fwd comm    total          memory "
               "weights   optim      io reserve\n"
               "GPU        ms       ms       ms       ms     %s     %%     "
               "%s     %s     %s     %s  shards\n",
               unit.name, unit.name, unit.name, unit.name, unit.name);
    if (n <= N_SHOWN_MAX) {
        for (uint32_t r = 0; r < n; r++)
            print_device(report, r, &unit, out);
    } else {
        for (uint32_t i = 0; i < N_SLOWEST; i++)
            print_device(report, report->by_total[i], &unit, out);
        buf_printf(out,
                   "...  %u more between the %u slowest and the %u "
                   "fastest\n",
                   n - N_SLOWEST - N_FASTEST, N_SLOWEST, N_FASTEST);
        for (uint32_t i = n - N_FASTEST; i < n; i++)
            print_device(report, report->by_total[i], &unit, out);
    }
    if (n > 1)
        print_mean(report, &unit, out);
    print_legend(report, out);
}
