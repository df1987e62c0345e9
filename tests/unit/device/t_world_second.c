/* SPDX-License-Identifier: MIT */
#include "device/world.h"

#include "base/mem.h"
#include "base/rng.h"
#include "device/comm.h"
#include "tests/processes.h"
#include "tests/tap.h"
#include "worlds.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

/*
 * Tests a second world: two threads of each process exchange data at the same
 * time, each in a world of its own. The content of a block depends on the
 * world, the round and the pair of ranks, so a byte that arrives in the wrong
 * world or round is noticed.
 */

#define N_ROUNDS 200
#define MAX_RANKS 4
#define LARGE_BYTES 700000 /* more than a ring buffer of world_fork.c holds */
#define WAIT_MS 200

/* The exchanges of one thread. */
struct traffic {
    struct world *world;
    struct device *device;
    uint32_t n_ranks; /* one per process, or several in the only process */
    uint64_t seed;
    unsigned n_rounds;
};

static uint64_t key_of(const struct traffic *traffic, unsigned round,
                       uint32_t from, uint32_t to)
{
    return mix64(mix64(traffic->seed * 1000 + round) + from * 64 + to);
}

/* Most blocks have some hundred bytes, one in 32 is large, and some are
 * empty. */
static size_t size_of(uint64_t key)
{
    return key % 32 ? key / 32 % 8 * 100 + key % 7 : key / 32 % LARGE_BYTES;
}

static void fill(unsigned char *bytes, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (unsigned char)((key >> i % 8 * 8) + i / 8);
}

static bool is_filled(const unsigned char *bytes, size_t n, uint64_t key)
{
    for (size_t i = 0; i < n; i++)
        if (bytes[i] != (unsigned char)((key >> i % 8 * 8) + i / 8))
            return false;
    return true;
}

/* Moves a block between each pair of ranks and checks what arrives. */
static void exchange(const struct traffic *traffic, struct comm *comm,
                     unsigned round)
{
    struct comm_block blocks[MAX_RANKS * MAX_RANKS];
    const uint32_t n_blocks = traffic->n_ranks * traffic->n_ranks;
    struct err err = {0};

    for (uint32_t i = 0; i < n_blocks; i++) {
        const uint32_t from = i / traffic->n_ranks, to = i % traffic->n_ranks;
        const uint64_t key = key_of(traffic, round, from, to);
        const size_t n = size_of(key);
        void *src = NULL;

        blocks[i] = (struct comm_block){from, to, NULL, NULL, n};
        if (comm_is_here(comm, from)) {
            blocks[i].d_src = src = mem_alloc(n, 1);
            fill(src, n, key);
        }
        if (comm_is_here(comm, to))
            blocks[i].d_dst = mem_alloc(n, 1);
    }
    CHECK(!comm_start(comm, blocks, n_blocks, &err));
    CHECK(!comm_finish(comm, &err));
    for (uint32_t i = 0; i < n_blocks; i++) {
        CHECK(!blocks[i].d_dst ||
              is_filled(blocks[i].d_dst, blocks[i].n_bytes,
                        key_of(traffic, round, blocks[i].from, blocks[i].to)));
        mem_free(blocks[i].d_dst);
        mem_free((void *)(uintptr_t)blocks[i].d_src);
    }
}

/* Uses all functions of a world. */
static void confer(const struct traffic *traffic, unsigned round)
{
    struct world *world = traffic->world;
    uint64_t all[MAX_RANKS], own = key_of(traffic, round, world->rank, 0);
    double number = (double)(world->rank * round);
    struct buf texts = {0};
    struct err err = {0};

    CHECK(!world_all_gather(world, &own, sizeof own, all, &err));
    for (uint32_t r = 0; r < world->size; r++)
        CHECK(all[r] == key_of(traffic, round, r, 0));
    CHECK(!world_broadcast(world, &own, sizeof own, &err));
    CHECK(own == all[0]);
    CHECK(!world_largest(world, &number, 1, &err));
    CHECK(number == (double)((world->size - 1) * round));
    CHECK(!world_barrier(world, &err));
    CHECK(!world_collect(world, &all[world->rank], sizeof *all, &texts, &err));
    CHECK(texts.len == (world->rank ? 0 : world->size * sizeof *all));
    CHECK(!texts.len || !memcmp(texts.data, all, texts.len));
    buf_release(&texts);
}

/* Main function of a thread. */
static void *run_traffic(void *arg)
{
    const struct traffic *traffic = arg;
    struct err err = {0};
    struct comm *comm;

    CHECK(!comm_open(&comm, traffic->world, traffic->device, traffic->n_ranks,
                     &err));
    for (unsigned round = 0; round < traffic->n_rounds; round++) {
        exchange(traffic, comm, round);
        if (round % 8 == traffic->seed)
            confer(traffic, round);
    }
    CHECK(!world_rest(traffic->world, &err));
    comm_close(comm);
    return NULL;
}

static pthread_t start_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    CHECK(!pthread_create(&thread, NULL, fn, arg));
    return thread;
}

static struct device *cpu(void)
{
    struct device *device;
    struct err err = {0};

    CHECK(!device_open(&device, DEVICE_CPU, 0, 1, &err));
    return device;
}

static struct world *second_of(struct world *world)
{
    struct world *second;
    struct err err = {0};

    if (world_open_second(&second, world, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        exit(1);
    }
    CHECK(second != world);
    CHECK(second->rank == world->rank && second->size == world->size);
    CHECK(second->local_rank == world->local_rank);
    CHECK(second->local_size == world->local_size);
    CHECK(second->n_hosts == world->n_hosts);
    CHECK(second->host_of != world->host_of);
    CHECK(!memcmp(second->host_of, world->host_of,
                  world->size * sizeof *world->host_of));
    return second;
}

/* Both threads of each process work at the same time. Their numbers of rounds
 * differ. The second world is opened twice. */
static void check_traffic(struct world *world, uint32_t n_ranks)
{
    struct device *device = cpu(), *second_device = cpu();
    struct traffic own = {world, device, n_ranks, 1, N_ROUNDS};

    for (unsigned opening = 0; opening < 2; opening++) {
        struct traffic other = {second_of(world), second_device, n_ranks, 2,
                                N_ROUNDS / 2 + opening * N_ROUNDS};
        const pthread_t thread = start_thread(run_traffic, &other);

        run_traffic(&own);
        CHECK(!pthread_join(thread, NULL));
        world_close(other.world);
    }
    device_close(second_device);
    device_close(device);
}

/* Rank 1 uses the second world first and then the first world. The other ranks
 * use them in the opposite order: their second threads start after they have
 * begun to send in the first world. With one channel for both, this would wait
 * forever or mix the data. */
static void check_orders(struct world *world)
{
    struct device *device = cpu(), *second_device = cpu();
    struct traffic own = {world, device, world->size, 1, 20};
    struct traffic other = {second_of(world), second_device, world->size, 2,
                            20};

    if (world->rank == 1) {
        run_traffic(&other);
        run_traffic(&own);
    } else {
        const pthread_t thread = start_thread(run_traffic, &own);

        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
        run_traffic(&other);
        CHECK(!pthread_join(thread, NULL));
    }
    world_close(other.world);
    device_close(second_device);
    device_close(device);
}

static double cpu_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

/* A thread that waits in the second world leaves its processor to others. */
static void check_wait(struct world *world)
{
    struct device *device = cpu();
    struct traffic traffic = {second_of(world), device, world->size, 2, 1};
    struct comm *comm;
    struct err err = {0};
    double begin_ms;

    CHECK(!comm_open(&comm, traffic.world, device, world->size, &err));
    for (unsigned kind = 0; kind < 2; kind++) {
        CHECK(!world_barrier(world, &err));
        if (!world->rank)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000}, NULL);
        begin_ms = cpu_ms();
        if (kind)
            exchange(&traffic, comm, 0);
        else
            CHECK(!world_barrier(traffic.world, &err));
        CHECK(cpu_ms() - begin_ms < WAIT_MS / 2.0);
    }
    comm_close(comm);
    world_close(traffic.world);
    device_close(device);
}

static void *wait_in_barrier(void *arg)
{
    struct err err = {0};

    CHECK(world_barrier(arg, &err));
    return NULL;
}

/* Rank 1 ends while the others wait in both worlds. */
static void fail(struct world *world, bool is_aborted)
{
    struct world *second = second_of(world);

    if (world->rank != 1) {
        (void)start_thread(wait_in_barrier, second);
        wait_in_barrier(world);
    }
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (is_aborted)
        world_abort(second, 3);
    else
        raise(SIGKILL);
}

/* NULL unless the program was linked with MPI. */
extern int PMPI_Query_thread(int *provided) __attribute__((weak));
int MPI_Query_thread(int *provided);
static bool has_weak_mpi; /* MPI says that it provides MPI_THREAD_FUNNELED */

/* Replaces the function of MPI, which reports its own level of threads. */
int MPI_Query_thread(int *provided)
{
    if (!has_weak_mpi)
        return PMPI_Query_thread(provided);
    *provided = 1;
    return 0;
}

static void check_refused(struct world *world)
{
    struct world *second;
    struct err err = {0};

    has_weak_mpi = true;
    CHECK(world_open_second(&second, world, &err));
    CHECK(err.code == ERR_DEVICE);
    CHECK(!strcmp(err.msg,
                  "this MPI does not let two threads of a process exchange "
                  "data at the same time (MPI_THREAD_MULTIPLE)"));
    CHECK(!world_barrier(world, &err));
}

/* Main function of each of several processes. */
static int be_process(struct world *world, const char *argument)
{
    CHECK(world->size > 1 && world->size <= MAX_RANKS);
    if (!strcmp(argument, "refused")) {
        check_refused(world);
    } else if (!strcmp(argument, "agree")) {
        check_traffic(world, world->size);
        check_orders(world);
        check_wait(world);
    } else {
        fail(world, !strcmp(argument, "abort"));
    }
    world_close(world);
    return 0;
}

static void test_alone(void)
{
    struct world *world = test_world_open();

    is_i64(world->size, 1, "a world of one");
    check_traffic(world, 3);
    world_close(world);
}

int main(int argc, char **argv)
{
    const char *missing = processes_missing();

    if (argc > 1)
        return be_process(test_world_open(), argv[1]);
    for (uint32_t n = 2; n <= MAX_RANKS; n++)
        test_world_fork(be_process, n, "agree", ERR_NONE, "");
    test_world_fork(be_process, 3, "abort", ERR_NO_PLAN, "");
    test_world_fork(be_process, 3, "killed", ERR_DEVICE,
                    "rank 1 was ended by signal 9 (Killed)");
    test_alone();
    if (missing) {
        tap_skip("processes", missing);
        return tap_done();
    }
    is_i64(processes_run(2, argv[0], "agree"), 0, "2 processes");
    is_i64(processes_run(4, argv[0], "agree"), 0, "4 processes");
    is_i64(processes_run(3, argv[0], "abort 2>/dev/null"), 3,
           "one that gives up takes the others along");
    is_i64(processes_run(2, argv[0], "refused"), 0,
           "an MPI with fewer threads");
    return tap_done();
}
