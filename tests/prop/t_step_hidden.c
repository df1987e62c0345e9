/* SPDX-License-Identifier: MIT */
#include "core/plan.h"
#include "core/plan_price.h"
#include "costmodel/formulas/comm_model.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "io/tables_io.h"
#include "tests/tap.h"

#include <glob.h>
#include <math.h>
#include <string.h>

/* If the input is hidden, no host delays a step, overlap is free, nothing is
 * replicated and the dense part takes no time, then the step of `sdd` is the
 * same as before it modelled these effects: the slowest lookups, forward and
 * backward, and two exchanges. Tested on all shipped lists: whole, cut by
 * columns and cut by rows.
 *
 * The time of a device alone (alone_ms) is between the time of its lookups and
 * the time of the whole step. */

#define GIB (UINT64_C(1) << 30)

struct tally {
    unsigned n, n_hidden;
    double worst;     /* relative error of the hidden ones */
    unsigned n_alone; /* devices alone */
    unsigned n_short; /* devices alone, shorter than their lookups */
    unsigned n_long;  /* devices alone, longer than the step */
};

/* Places a third of the tables whole, a third in two halves and a third in row
 * blocks, if allowed. */
static void cut(struct plan *plan, struct arena *arena)
{
    const struct problem *problem = &plan->problem;
    const uint32_t n_devices = problem->cluster.n_devices;

    plan->shards =
        ARENA_NEW(arena, struct shard, problem->n_tables * n_devices);
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];
        struct shard shard = shard_whole(problem, t, t % n_devices);
        const uint64_t rows =
            (table->num_embeddings + n_devices - 1) / n_devices;

        if (t % 3 == 1 && table->kinds & SHARD_COLUMN && table->dim % 8 == 0) {
            shard.kind = SHARD_COLUMN;
            shard.col_end = table->dim / 2;
            plan->shards[plan->n_shards++] = shard;
            shard.col_begin = table->dim / 2;
            shard.col_end = table->dim;
            shard.device = (t + 1) % n_devices;
        } else if ((t % 3 == 2 || !(table->kinds & SHARD_TABLE)) &&
                   table->num_embeddings >= UINT64_C(8) * n_devices) {
            shard.kind = SHARD_ROW;
            for (uint32_t r = 0; r + 1 < n_devices; r++) {
                shard.row_begin = r * rows;
                shard.row_end = (r + 1) * rows;
                shard.device = r;
                plan->shards[plan->n_shards++] = shard;
            }
            shard.row_begin = (n_devices - 1) * rows;
            shard.row_end = table->num_embeddings;
            shard.device = n_devices - 1;
        }
        plan->shards[plan->n_shards++] = shard;
    }
}

/* Checks the step against the parts of the devices. An input is hidden if it
 * takes no longer than the lookups, because exchanges share their links, and if
 * two batches in flight are enough. */
static void look(const struct plan *plan, struct tally *tally)
{
    const uint32_t n_devices = plan->problem.cluster.n_devices;
    double compute_ms = 0, most[N_STEP_PARTS] = {0}, want, in_turn = 0;

    for (uint32_t r = 0; r < n_devices; r++) {
        compute_ms = fmax(compute_ms, plan->devices[r].compute_ms);
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            most[p] = fmax(most[p], plan->devices[r].parts_ms[p]);
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        const struct device_cost *device = &plan->devices[r];

        tally->n_alone++;
        tally->n_short += !(device->alone_ms >= device->compute_ms - 1e-9);
        tally->n_long += !(device->alone_ms <= plan->total_ms + 1e-9);
    }
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        in_turn += most[p];
    want = compute_ms + most[STEP_OUTPUT] + most[STEP_GRADIENT];
    tally->n++;
    if (most[STEP_INPUT] > compute_ms || in_turn > 2 * want)
        return;
    tally->n_hidden++;
    tally->worst = tap_worst(tally->worst, fabs(plan->total_ms / want - 1));
}

static void price(const char *path, const char *cost, uint32_t n_devices,
                  struct tally *tally)
{
    static const struct tables_options options = {.dim = 64};
    uint64_t memory_bytes[64], reserve_bytes[64] = {0};
    struct plan plan = {0};
    struct oracle *oracle = NULL;
    struct table_list list;
    struct err err = {0};
    struct arena arena = {0};

    for (uint32_t r = 0; r < n_devices; r++)
        memory_bytes[r] = 80 * GIB;
    if (tables_load(&list, path, &options, &arena, &err))
        goto out;
    plan.problem = (struct problem){.tables = list.tables,
                                    .n_tables = list.n_tables,
                                    .cluster = {.n_devices = n_devices,
                                                .devices_per_host = 8,
                                                .memory_bytes = memory_bytes,
                                                .reserve_bytes = reserve_bytes},
                                    .batch = 65536,
                                    .kinds = SHARD_ALL_KINDS,
                                    .job.asks_host = true};
    problem_find_hot_rows(&plan.problem, &arena);
    if (oracle_open(&oracle, cost, &plan.problem, &arena, &err))
        goto out;
    memset(((struct comm_oracle *)(void *)oracle)->step.overlap_cost, 0,
           sizeof(double[N_PHASES]));
    cut(&plan, &arena);
    if (!plan_price(&plan, oracle, &arena, &err))
        look(&plan, tally);
out:
    if (err.code)
        ok(0, "%s", err.msg);
    arena_release(&arena);
}

int main(void)
{
    static const char *const costs[] = {"roofline:h100",
                                        "model:data/models/h100.nsm"};
    glob_t lists;

    if (glob("data/tables/*.csv", 0, NULL, &lists))
        return 1;
    for (size_t c = 0; c < 2; c++) {
        struct tally tally = {0};

        for (size_t i = 0; i < lists.gl_pathc; i++)
            for (uint32_t n = 8; n <= 64; n *= 2)
                price(lists.gl_pathv[i], costs[c], n, &tally);
        printf("# %s: %u steps, %u with a hidden input\n", costs[c], tally.n,
               tally.n_hidden);
        ok(tally.n_hidden >= tally.n / 2,
           "%s: the input of most steps is hidden", costs[c]);
        is_near(tally.worst, 0, 1e-9, "their times are unchanged");
        ok(tally.n_alone && !tally.n_short,
           "no device alone is shorter than its lookups");
        is_i64(tally.n_long, 0, "no device alone is longer than the step");
    }
    globfree(&lists);
    return tap_done();
}
