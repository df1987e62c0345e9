/* SPDX-License-Identifier: MIT */
/* Several processes of one rank each get the same results as one process of all
 * ranks. */
#include "exec/exec.h"

#include <sys/mman.h>

#include "device/world_fork.h"
#include "exec_fixture.h"
#include "tests/tap.h"

#define N_RANKS 3

/* Results of the processes, or of this one. */
struct found {
    bool is_right, is_timed, is_chunked;
    uint64_t output_hash, weight_hash;
};

static void run_plan(struct found *found, struct world *world,
                     uint32_t n_chunks, uint64_t memory_bytes)
{
    struct exec_result result = {0};
    struct exec_options options;
    struct fixture fixture = {0};
    struct err err = {0};

    fixture.plan = (struct plan){.problem = {.tables = fixture.tables,
                                             .cluster.n_devices = N_RANKS,
                                             .batch = 101},
                                 .shards = fixture.shards};
    add_table(&fixture, "columns", 900, 32, 4);
    add_columns(&fixture, 0, 0, 20);
    add_columns(&fixture, 1, 20, 32);
    add_table(&fixture, "rows", 1000, 16, 3);
    add_rows(&fixture, 0, 0, 300);
    add_rows(&fixture, 2, 300, 1000);
    add_table(&fixture, "copies", 100, 8, 2);
    add_replicas(&fixture);
    plan_derive_kinds(&fixture.plan);
    exec_options_init(&options);
    options.n_iterations = 1;
    options.wait_for_quiet = false;
    options.step.n_chunks = n_chunks;
    options.memory_bytes = memory_bytes;
    if (device_open(&fixture.device, DEVICE_CPU, 0, 1, &err) ||
        exec_run(&result, &fixture.plan, world, fixture.device, &options,
                 &fixture.arena, &err)) {
        if (!memory_bytes)
            fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    if (!world->rank)
        *found = (struct found){
            .is_right = !result.failure,
            .is_timed = result.step.median_ms > 0,
            .is_chunked = result.in_chunks[0].median_ms > 0 &&
                          result.in_chunks[1].median_ms > 0,
            .output_hash = result.output_hash,
            .weight_hash = result.weight_hash,
        };
    device_close(fixture.device);
    world_close(world);
    arena_release(&fixture.arena);
}

/* Runs the plan with n processes; n = 1 uses this process. */
static struct found run(uint32_t n, uint32_t n_chunks)
{
    struct found *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct world *world = NULL;
    struct err err = {0};
    struct found copy;
    int rc;

    fflush(stdout);
    rc = n > 1 ? world_fork(&world, n, &err) : world_open(&world, &err);
    if (!rc && world) {
        run_plan(found, world, n_chunks, 0);
        if (n > 1)
            exit(0);
    }
    ok(!rc && found->is_right, "%u processes, %u chunks: %s", n, n_chunks,
       err.msg);
    copy = *found;
    munmap(found, sizeof(*found));
    return copy;
}

/* The memory limit of a host applies to the sum of its processes. */
static void test_memory(uint64_t memory_bytes, bool fits)
{
    struct world *world = NULL;
    struct found found;
    struct err err = {0};
    int rc;

    fflush(stdout);
    rc = world_fork(&world, N_RANKS, &err);
    if (!rc && world) {
        run_plan(&found, world, 1, memory_bytes);
        exit(0);
    }
    ok(!rc == fits, "in %" PRIu64 " bytes", memory_bytes);
}

int main(void)
{
    const struct found whole = run(N_RANKS, 1), chunks = run(N_RANKS, 2);
    struct found alone;

    test_memory(UINT64_C(1) << 20, false);
    test_memory(UINT64_C(1) << 32, true);
    /* runs last, because this process has threads from then on */
    alone = run(1, 1);
    ok(alone.output_hash && alone.output_hash == whole.output_hash &&
           alone.output_hash == chunks.output_hash,
       "the same outputs");
    ok(alone.weight_hash && alone.weight_hash == whole.weight_hash &&
           alone.weight_hash == chunks.weight_hash,
       "the same weights");
    ok(whole.is_timed && chunks.is_timed && !alone.is_timed,
       "several are timed together");
    ok(chunks.is_chunked && !whole.is_chunked, "and in chunks");
    return tap_done();
}
