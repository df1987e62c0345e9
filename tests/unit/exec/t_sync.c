/* SPDX-License-Identifier: MIT */
#include "exec/sync.h"

#include "core/sharding_groups.h"
#include "exec/exec.h"
#include "exec_fixture.h"
#include "tests/tap.h"

/* Syncs whose shards do not fit into the scratch memory, so that they take
 * several rounds, and copies whose weights do not fit into memory together. */

static void run(struct fixture *fixture, struct exec_result *result,
                uint64_t memory_bytes)
{
    struct exec_options options;
    struct err err = {0};

    exec_options_init(&options);
    options.n_iterations = 1;
    options.wait_for_quiet = false;
    options.memory_bytes = memory_bytes;
    ok(!exec_run(result, &fixture->plan, fixture->world, fixture->device,
                 &options, &fixture->arena, &err) &&
           !result->failure,
       "%u groups run %s %s", fixture->plan.problem.groups.count, err.msg,
       result->failure ? result->failure : "");
}

/* Each of three groups has two GPUs. The first of them averages almost twice
 * SYNC_BYTES, in odd numbers of rows. */
static void make_plan(struct fixture *fixture)
{
    fixture_init(fixture, 2, 60);
    fixture->plan.problem.groups.count = 3;
    add_table(fixture, "a", 400001, 20, 4)->optimizer =
        OPTIMIZER_ROWWISE_ADAGRAD;
    add_columns(fixture, 0, 0, 12);
    add_columns(fixture, 1, 12, 20);
    add_table(fixture, "b", 500003, 8, 4)->optimizer =
        OPTIMIZER_ROWWISE_ADAGRAD;
    fixture->tables[1].precision = PRECISION_FP16;
    add_whole(fixture, 0);
    add_table(fixture, "c", 301, 8, 4)->optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    add_replicas(fixture);
    plan_derive_kinds(&fixture->plan);
}

int main(void)
{
    struct fixture fixture;
    struct exec_result result = {0};
    double bytes;

    make_plan(&fixture);
    bytes = plan_sync_bytes(&fixture.plan);
    ok(bytes > 1.5 * (double)SYNC_BYTES, "%.0f bytes take several rounds",
       bytes);
    run(&fixture, &result, 0);
    ok(result.averages.n > 1000 && result.averages.error < 1e-3,
       "averages are those of the reference, within %.1g",
       result.averages.error);
    is_i64((int64_t)(3 * result.sync.sent_bytes + 0.5), (int64_t)(4 * bytes),
           "each GPU sends 4/3 of its bytes");
    run(&fixture, &result, (uint64_t)220 << 20);
    is_i64(result.n_turns > 1, 1, "in several turns");
    ok(!result.averages.n && !(result.sync.sent_bytes > 0) && !result.sync.n,
       "there is no sync if weights are loaded in turns");
    fixture_release(&fixture);
    return tap_done();
}
