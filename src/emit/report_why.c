/* SPDX-License-Identifier: MIT */
#include "emit/report_parts.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TABLES_SHOWN 10u
#define N_DEVICES_SHOWN 6u
#define NAME_WIDTH 32u
/* Of the step: what is less is not worth a word. */
#define NOTABLE_FRAC 1e-3

struct part {
    const char *name;
    double ms, mean_ms, last_ms; /* of the GPU, all, the one ready last */
};
#define N_PARTS 4
#define WAITING "waiting"

static double ready_ms(const struct report_device *device)
{
    return device->cost.compute_ms + device->cost.bwd_comm_ms;
}

/* The device that is ready for the forward last, so that all others wait for
 * it; device r where none is notably later. */
static uint32_t last_ready(const struct report *report, uint32_t r)
{
    double notable_ms = NOTABLE_FRAC * report->plan->total_ms;
    uint32_t last = r;

    for (uint32_t i = 0; i < report->n_devices; i++)
        if (ready_ms(&report->devices[i]) >
            ready_ms(&report->devices[last]) + (last == r ? notable_ms : 0))
            last = i;
    return last;
}

static void name_parts(struct part parts[N_PARTS], const struct report *report,
                       uint32_t r, uint32_t last)
{
    const struct report_device *a = &report->devices[r], *b = &report->mean;
    const struct report_device *c = &report->devices[last];
    const struct part named[N_PARTS] = {
        {"compute", a->cost.compute_ms, b->cost.compute_ms, c->cost.compute_ms},
        {"backward communication", a->cost.bwd_comm_ms, b->cost.bwd_comm_ms,
         c->cost.bwd_comm_ms},
        {WAITING, a->waiting_ms, b->waiting_ms, c->waiting_ms},
        {"forward communication", a->cost.fwd_comm_ms, b->cost.fwd_comm_ms,
         c->cost.fwd_comm_ms},
    };

    memcpy(parts, named, sizeof(named));
}

/* The part of device r that is furthest above the mean. */
static struct part largest_excess(const struct report *report, uint32_t r)
{
    struct part parts[N_PARTS];
    size_t most = 0;

    name_parts(parts, report, r, r);
    for (size_t i = 1; i < N_PARTS; i++)
        if (parts[i].ms - parts[i].mean_ms >
            parts[most].ms - parts[most].mean_ms)
            most = i;
    return parts[most];
}

/* The shard on device r that costs most alone, or n_shards. */
static size_t dearest_shard(const struct plan *plan, uint32_t r)
{
    size_t dearest = plan->n_shards;

    for (size_t i = 0; plan->shard_ms && i < plan->n_shards; i++)
        if (plan->shards[i].device == r && !isnan(plan->shard_ms[i]) &&
            (dearest == plan->n_shards ||
             plan->shard_ms[i] > plan->shard_ms[dearest]))
            dearest = i;
    return dearest;
}

/* What makes a device slow: a part, and the table that weighs most there. */
static void print_cause(const struct report *report, uint32_t r,
                        struct buf *out)
{
    const struct plan *plan = report->plan;
    struct part part = largest_excess(report, r);
    size_t i = dearest_shard(plan, r);

    if (part.ms - part.mean_ms < NOTABLE_FRAC * plan->total_ms)
        buf_printf(out, "GPU %u: as the mean in all its parts\n", r);
    else
        buf_printf(out, "GPU %u: its %s is %.3f ms above the mean\n", r,
                   part.name, part.ms - part.mean_ms);
    if (i < plan->n_shards && strcmp(part.name, WAITING) != 0)
        buf_printf(out, "  %stable '%.40s' costs most there, %.3f ms alone\n",
                   plan->shards[i].kind == SHARD_TABLE ? "" : "a piece of ",
                   plan->problem.tables[plan->shards[i].table].name,
                   plan->shard_ms[i]);
}

static void print_parts(const struct report *report, uint32_t r, uint32_t last,
                        struct buf *out)
{
    struct part parts[N_PARTS];
    char name[16];

    name_parts(parts, report, r, last);
    snprintf(name, sizeof(name), "GPU %u", r);
    buf_printf(out, "\n%-28s %10s     mean", "slowest GPU, ms", name);
    snprintf(name, sizeof(name), "GPU %u", last);
    if (last != r)
        buf_printf(out, " %10s, which is ready last", name);
    buf_printf(out, "\n");
    for (size_t i = 0; i < N_PARTS; i++) {
        buf_printf(out, "  %-26s %10.3f %8.3f", parts[i].name, parts[i].ms,
                   parts[i].mean_ms);
        if (last != r)
            buf_printf(out, " %10.3f", parts[i].last_ms);
        buf_printf(out, "\n");
    }
}

/* By total, which holds the waiting, GPUs differ little; so beside the slowest
 * stands the one that the others wait for. */
void report_slowest(const struct report *report, struct buf *out)
{
    uint32_t r = report->by_total[0], last = last_ready(report, r);

    if (!report->is_priced || report->n_devices < 2)
        return;
    print_parts(report, r, last, out);
    print_cause(report, r, out);
    if (last != r)
        print_cause(report, last, out);
}

/* What a table's shards cost, each alone. */
struct table_cost {
    double alone_ms;
    size_t begin, end; /* its shards */
};

static int compare_costs(const void *left, const void *right)
{
    const struct table_cost *a = left, *b = right;

    if (a->alone_ms != b->alone_ms)
        return a->alone_ms > b->alone_ms ? -1 : 1;
    return (a->begin > b->begin) - (a->begin < b->begin);
}

/* "0 3 5": its devices in the order of its shards, each once. */
static void print_holders(const struct plan *plan,
                          const struct table_cost *cost, struct buf *out)
{
    uint32_t shown[N_DEVICES_SHOWN];
    size_t n_shown = 0;

    for (size_t i = cost->begin; i < cost->end; i++) {
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

static void print_table(const struct plan *plan, const struct table_cost *cost,
                        double sum_ms, struct buf *out)
{
    const struct table *table =
        &plan->problem.tables[plan->shards[cost->begin].table];
    size_t n_shards[N_SHARD_KINDS] = {0};
    char kinds[REPORT_KINDS_MAX];

    n_shards[shard_kind_idx(plan->shards[cost->begin].kind)] =
        cost->end - cost->begin;
    text_column(out, table->name, NAME_WIDTH);
    buf_printf(out, " %9.3f %4.1f %12" PRIu64 " %5u %8.2f  %-7s ",
               cost->alone_ms, sum_ms > 0 ? 100 * cost->alone_ms / sum_ms : 0,
               table->num_embeddings, table->dim, table->pooling_factor,
               report_kinds(kinds, n_shards));
    print_holders(plan, cost, out);
    buf_printf(out, "\n");
}

/* Fills costs, one a table, dearest first; returns their sum. */
static double sum_costs(const struct plan *plan, struct table_cost *costs,
                        size_t *n)
{
    double sum_ms = 0;

    *n = 0;
    for (size_t i = 0; i < plan->n_shards; i++) {
        double ms = isnan(plan->shard_ms[i]) ? 0 : plan->shard_ms[i];

        if (!i || plan->shards[i].table != plan->shards[i - 1].table)
            costs[(*n)++] = (struct table_cost){.begin = i};
        costs[*n - 1].alone_ms += ms;
        costs[*n - 1].end = i + 1;
        sum_ms += ms;
    }
    qsort(costs, *n, sizeof(*costs), compare_costs);
    return sum_ms;
}

void report_tables(const struct report *report, struct buf *out)
{
    const struct plan *plan = report->plan;
    struct table_cost *costs;
    double sum_ms;
    size_t n;

    if (!plan->shard_ms)
        return;
    costs = mem_alloc(plan->n_shards, sizeof(*costs));
    sum_ms = sum_costs(plan, costs, &n);
    buf_printf(out,
               "\ndearest tables, each shard priced alone (fused they cost "
               "less)\n%-*s  alone ms    %%         rows   dim  pooling  "
               "shards  GPUs\n",
               (int)NAME_WIDTH, "table");
    for (size_t i = 0; i < n && i < N_TABLES_SHOWN; i++)
        print_table(plan, &costs[i], sum_ms, out);
    mem_free(costs);
}
