/* SPDX-License-Identifier: MIT */
#include "search/starts.h"

#include <math.h>

#include "base/clock.h"
#include "base/interrupt.h"
#include "search/build.h"
#include "search/bump.h"

/* Work of all that is built (struct build_outcome), once something was found:
 * about a second of one core. */
#define MAX_WORK 20000000
/* Tables times devices: beyond, cutting one by one takes too long. */
#define MAX_BUMP_WORK 8192
/* Pieces of the starting points are at most this share of the mean load, or of
 * what is left of it beside the pieces that stand on every device. */
static const double peak_fracs[] = {INFINITY, 1,   0.8,  0.65, 0.5, 0.4,
                                    0.3,      0.2, 0.15, 0.1,  0.05};
static const double left_fracs[] = {1.04, 1.02, 1, 0.98, 0.9, 0.5};
/* And memory is this dear: the mean load for so many times the least that all
 * tables take; what there is does not matter while it is enough. */
static const double memory_fracs[] = {0,   0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,   1,     10};

/* And replicas count so much of what they take alone; where the first share
 * finds no room at any price, the others are not asked. */
static const double replica_fracs[] = {1, 0.5, 0.2};

#define N_REPLICA_FRACS (sizeof replica_fracs / sizeof *replica_fracs)
#define N_FRACS (sizeof peak_fracs / sizeof *peak_fracs)
#define N_LEFT_FRACS (sizeof left_fracs / sizeof *left_fracs)
#define N_PEAKS (N_FRACS + N_LEFT_FRACS)
#define N_PRICES (sizeof memory_fracs / sizeof *memory_fracs)

struct build_task {
    struct build_options options;
    struct build_outcome outcome;
    struct snapshot snapshot;
    bool is_built;
};

/* Builds of one price of memory and one weight of replicas. */
struct batch {
    const struct parts *parts;
    struct build_task tasks[N_PEAKS];
    unsigned n;
};

/* Whether *snapshot would be kept. */
static bool is_wanted(const struct starts *starts,
                      const struct snapshot *snapshot, uint32_t n_kept)
{
    if (!isfinite(snapshot->total_ms))
        return false;
    for (unsigned i = 0; i < starts->n; i++)
        if (starts->best[i].total_ms == snapshot->total_ms)
            return false;
    return starts->n < n_kept ||
           snapshot->total_ms < starts->best[starts->n - 1].total_ms;
}

/* Keeps what was priced, in its place. */
static void keep(struct starts *starts, const struct parts *parts,
                 struct snapshot *snapshot)
{
    const uint32_t n_kept = parts->tuning->n_starts;
    struct snapshot gone = {0};
    unsigned i;

    starts->n_priced++;
    if (!is_wanted(starts, snapshot, n_kept))
        return;
    if (starts->n == n_kept)
        gone = starts->best[--starts->n];
    for (i = starts->n++;
         i > 0 && starts->best[i - 1].total_ms > snapshot->total_ms; i--)
        starts->best[i] = starts->best[i - 1];
    starts->best[i] = *snapshot;
    *snapshot = gone;
}

void starts_add(struct starts *starts, const struct parts *parts,
                struct snapshot *snapshot)
{
    snapshot_price(snapshot, parts);
    keep(starts, parts, snapshot);
}

static void build_one(void *ctx, size_t i, unsigned thread)
{
    struct batch *batch = ctx;
    struct build_task *task = &batch->tasks[i];

    (void)thread;
    task->is_built =
        build(&task->snapshot, batch->parts, &task->options, &task->outcome);
    if (task->is_built)
        snapshot_price(&task->snapshot, batch->parts);
}

static double peak_ms(const struct build_load *load, size_t i)
{
    if (i < N_FRACS)
        return peak_fracs[i] * load->mean_ms;
    return left_fracs[i - N_FRACS] * (load->mean_ms - load->spread_ms);
}

static void set_tasks(struct batch *batch, const struct build_load *load,
                      const struct build_options *options)
{
    size_t n_peaks = load->spread_ms > 0 ? N_PEAKS : N_FRACS;

    batch->n = 0;
    for (size_t i = 0; i < n_peaks; i++) {
        batch->tasks[batch->n].options = *options;
        batch->tasks[batch->n++].options.peak_ms = peak_ms(load, i);
    }
}

static bool is_over(const struct starts *starts, uint64_t work, double end_ms)
{
    return starts->n &&
           (work >= MAX_WORK || interrupt_requested() || clock_ms() >= end_ms);
}

static void build_starts(struct starts *starts, const struct parts *parts,
                         struct pool *pool, double end_ms)
{
    const struct build_load load = build_least_load(parts);
    const uint32_t n_devices = parts->problem->cluster.n_devices;
    struct build_options options = {.peak_bytes = parts->units->most_room_bytes,
                                    .max_replicas = BUILD_MAX_REPLICAS};
    struct batch batch = {.parts = parts};
    uint64_t work = 0;

    for (size_t i = 0; i < N_REPLICA_FRACS * N_PRICES; i++) {
        if (i == parts->tuning->n_prices || is_over(starts, work, end_ms) ||
            (i == N_PRICES && !starts->n))
            break;
        options.replica_frac = replica_fracs[i / N_PRICES];
        options.ms_per_byte = memory_fracs[i % N_PRICES] * load.mean_ms *
                              n_devices / (load.all_bytes + 1);
        options.max_work = MAX_WORK;
        set_tasks(&batch, &load, &options);
        pool_run(pool, batch.n, build_one, &batch);
        for (unsigned k = 0; k < batch.n; k++) {
            work += batch.tasks[k].outcome.work;
            if (batch.tasks[k].is_built)
                keep(starts, parts, &batch.tasks[k].snapshot);
        }
    }
    for (unsigned k = 0; k < N_PEAKS; k++)
        snapshot_release(&batch.tasks[k].snapshot);
}

static void bump_starts(struct starts *starts, const struct parts *parts,
                        double end_ms)
{
    struct snapshot next = {0};

    for (unsigned i = 0; i < 2 * N_BUMPS && !is_over(starts, 0, end_ms); i++)
        if (bump_start(&next, parts, (enum bump)(i / 2), i % 2,
                       &starts->n_priced))
            starts_add(starts, parts, &next);
    snapshot_release(&next);
}

void starts_find(struct starts *starts, const struct parts *parts,
                 struct pool *pool, double end_ms)
{
    uint64_t work =
        (uint64_t)parts->n_units * parts->problem->cluster.n_devices;

    build_starts(starts, parts, pool, end_ms);
    if (parts->tuning->bumps && work <= MAX_BUMP_WORK)
        bump_starts(starts, parts, end_ms);
}

void starts_release(struct starts *starts)
{
    for (unsigned i = 0; i < starts->n; i++)
        snapshot_release(&starts->best[i]);
}
