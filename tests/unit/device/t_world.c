/* SPDX-License-Identifier: MIT */
#include "device/world.h"

#include "base/mem.h"
#include "tests/processes.h"
#include "tests/tap.h"
#include "worlds.h"

#include <signal.h>

/* Makes a text whose length and content depend on the rank. */
static void text_of(struct buf *text, uint32_t rank)
{
    for (uint32_t i = 0; i < rank * 1000; i++)
        buf_printf(text, "%u,%u;", rank, i);
}

static void check_collect(struct world *world)
{
    uint32_t n = world->size;
    struct buf own = {0}, all = {0}, want = {0};
    struct err err = {0};

    text_of(&own, world->rank);
    CHECK(!world_collect(world, own.data, own.len, &all, &err));
    if (!world->rank) {
        for (uint32_t r = 0; r < n; r++)
            text_of(&want, r);
        CHECK(all.len == want.len);
        CHECK(!want.len || !memcmp(all.data, want.data, want.len));
    } else {
        CHECK(!all.len);
    }
    buf_release(&own);
    buf_release(&all);
    buf_release(&want);
}

static void check_world(struct world *world)
{
    uint32_t n = world->size, rank = world->rank;
    uint32_t *all = mem_alloc(n, sizeof *all), word = 77 + rank;
    struct err err = {0};

    CHECK(rank < n);
    CHECK(world->n_hosts == 1);
    CHECK(world->local_rank == rank && world->local_size == n);
    CHECK(world->host_of[0] == world->host_of[n - 1]);
    CHECK(!world_barrier(world, &err));
    CHECK(!world_all_gather(world, &word, sizeof word, all, &err));
    for (uint32_t r = 0; r < n; r++)
        CHECK(all[r] == 77 + r);
    CHECK(!world_broadcast(world, &word, sizeof word, &err));
    CHECK(word == 77);
    check_collect(world);
    mem_free(all);
}

/* Broadcasts more data than any buffer on the way holds. */
static void check_much(struct world *world)
{
    const size_t n = (size_t)3 << 20;
    uint32_t *words = mem_alloc(n, sizeof *words);
    struct err err = {0};

    for (uint32_t i = 0; i < n; i++)
        words[i] = world->rank ? 0 : i * 2654435761u;
    CHECK(!world_rest(world, &err));
    CHECK(!world_broadcast(world, words, n * sizeof *words, &err));
    for (uint32_t i = 0; i < n; i++)
        CHECK(words[i] == i * 2654435761u);
    mem_free(words);
}

/* Reverses the ranks above 0. The world then works as before. */
static void check_renumbered(struct world *world)
{
    const uint32_t rank = world->rank ? world->size - world->rank : 0;
    struct err err = {0};

    CHECK(!world_renumber(world, rank, &err));
    CHECK(world->rank == rank);
}

/* Main function of each of several processes. */
static int be_process(struct world *world, const char *argument)
{
    struct err err = {0};

    CHECK(world->size > 1);
    if (!strcmp(argument, "killed") && world->rank == 1)
        raise(SIGKILL);
    if (!strcmp(argument, "abort")) {
        if (world->rank == 1)
            world_abort(world, 3);
        /* rank 1 is gone, so without the abort this would wait forever */
        CHECK(world_barrier(world, &err));
    }
    if (!strcmp(argument, "killed"))
        CHECK(world_barrier(world, &err));
    if (!strcmp(argument, "renumbered"))
        check_renumbered(world);
    check_world(world);
    check_much(world);
    world_close(world);
    return 0;
}

static void test_alone(void)
{
    struct world *world;
    struct err err = {0};

    ok(!world_open(&world, &err), "a world of one");
    is_i64(world->size, 1, "process");
    check_world(world);
    world_abort(world, 1); /* ends nobody, as there are no other processes */
    check_world(world);
    world_close(world);
    world_close(NULL);
}

static void test_without_mpi(void)
{
    struct world *world;
    struct err err = {0};

    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    ok(world_open(&world, &err) && err.code == ERR_USAGE,
       "two processes without MPI");
    is_str(
        err.msg,
        "2 processes were started together, but this build has no MPI support: "
        "start a single one for all ranks, or build with 'make MPI=1'",
        "are refused");
    unsetenv("OMPI_COMM_WORLD_SIZE");
}

int main(int argc, char **argv)
{
    const char *missing = processes_missing();

    if (argc > 1)
        return be_process(test_world_open(), argv[1]);
    test_world_fork(be_process, 2, "agree", ERR_NONE, "");
    test_world_fork(be_process, 5, "agree", ERR_NONE, "");
    test_world_fork(be_process, 5, "renumbered", ERR_NONE, "");
    test_world_fork(be_process, 3, "abort", ERR_NO_PLAN, "");
    test_world_fork(be_process, 3, "killed", ERR_DEVICE,
                    "rank 1 was ended by signal 9 (Killed)");
    test_alone();
    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    test_world_fork(be_process, 2, "never", ERR_USAGE,
                    "a launcher already started 2 processes, one per rank");
    unsetenv("OMPI_COMM_WORLD_SIZE");
    if (!processes_know_mpi())
        test_without_mpi();
    if (missing) {
        tap_skip("processes", missing);
        return tap_done();
    }
    is_i64(processes_run(2, argv[0], "agree"), 0, "2 processes");
    is_i64(processes_run(4, argv[0], "agree"), 0, "4 processes");
    is_i64(processes_run(4, argv[0], "renumbered"), 0, "other ranks");
    is_i64(processes_run(2, argv[0], "abort 2>/dev/null"), 3,
           "one that gives up takes the other along");
    return tap_done();
}
