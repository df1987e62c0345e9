/* SPDX-License-Identifier: MIT */
#include "device/alltoall.h"

#include "base/mem.h"
#include "tests/processes.h"
#include "tests/tap.h"
#include "worlds.h"

/* Tests exchanges whose every element identifies its origin, against a plain
 * double loop over samples and columns. */

#define MAX_RANKS 8
#define MAX_PARTS 4

struct exchange {
    uint32_t n_ranks, batch;
    uint32_t dims[MAX_RANKS];
};

static const struct exchange EXCHANGES[] = {
    {1, 10, {8}},
    {2, 64, {16, 16}},
    {2, 7, {0, 12}},
    {2, 1, {3, 1}},
    {3, 64, {4, 0, 300}},
    {4, 3, {4, 8, 12, 16}},
    {4, 1001, {64, 1, 0, 300}},
    {8, 1003, {64, 128, 4, 4, 32, 900, 36, 16}},
};
#define N_EXCHANGES (sizeof EXCHANGES / sizeof EXCHANGES[0])

/* Value of an element of a rank's lookup output; buffers hold its low bytes. */
static uint32_t element_of(uint32_t rank, uint32_t sample, uint32_t column)
{
    return rank * 0x51ed2701u + sample * 0x9e3779b1u + column * 0x85ebca6bu;
}

static void put(void *at, size_t idx, uint32_t element, uint32_t n_bytes)
{
    if (n_bytes == 4)
        ((uint32_t *)at)[idx] = element;
    else
        ((uint16_t *)at)[idx] = (uint16_t)element;
}

struct buffers {
    void *send[MAX_RANKS], *recv[MAX_RANKS], *back[MAX_RANKS];
};

static void buffers_fill(struct buffers *buffers, const struct comm *comm,
                         const struct alltoall *alltoall)
{
    *buffers = (struct buffers){0};
    for (uint32_t r = 0; r < alltoall->n_ranks; r++) {
        size_t n = (size_t)alltoall->batch * alltoall->dims[r];

        if (!comm_is_here(comm, r))
            continue;
        buffers->send[r] = mem_alloc(n, alltoall->element_bytes);
        buffers->back[r] = mem_alloc(n, alltoall->element_bytes);
        buffers->recv[r] = mem_alloc(alltoall_recv_elements(alltoall, r),
                                     alltoall->element_bytes);
        for (size_t i = 0; i < n; i++)
            put(buffers->send[r], i,
                element_of(r, (uint32_t)(i / alltoall->dims[r]),
                           (uint32_t)(i % alltoall->dims[r])),
                alltoall->element_bytes);
    }
}

static void buffers_release(struct buffers *buffers)
{
    for (uint32_t r = 0; r < MAX_RANKS; r++) {
        mem_free(buffers->send[r]);
        mem_free(buffers->recv[r]);
        mem_free(buffers->back[r]);
    }
}

/* Returns true if rank `to` has all outputs of its samples. */
static bool is_received(const struct alltoall *alltoall, uint32_t to,
                        const void *recv)
{
    size_t n = alltoall_recv_elements(alltoall, to);
    char *want = mem_alloc(n, alltoall->element_bytes);
    bool same;

    for (uint32_t from = 0; from < alltoall->n_ranks; from++) {
        size_t at = alltoall_block(alltoall, from, to);

        for (uint32_t s = alltoall_begin(alltoall, to);
             s < alltoall_begin(alltoall, to + 1); s++)
            for (uint32_t c = 0; c < alltoall->dims[from]; c++)
                put(want, at++, element_of(from, s, c),
                    alltoall->element_bytes);
    }
    same = !memcmp(want, recv, n * alltoall->element_bytes);
    mem_free(want);
    return same;
}

/* Reorders the samples of `send` by part, and within a part by rank. */
static void order_parts(const struct alltoall *alltoall, uint32_t rank,
                        const char *send, char *parts)
{
    size_t bytes = (size_t)alltoall->dims[rank] * alltoall->element_bytes;

    for (uint32_t part = 0; part < alltoall->n_parts; part++)
        for (uint32_t p = 0; p < alltoall->n_ranks; p++) {
            uint64_t first = alltoall_begin(alltoall, p);
            uint64_t n = alltoall_begin(alltoall, p + 1) - first;
            uint64_t begin = n * part / alltoall->n_parts;
            uint64_t end = n * (part + 1) / alltoall->n_parts;

            memcpy(parts, send + (first + begin) * bytes,
                   (end - begin) * bytes);
            parts += (end - begin) * bytes;
        }
}

/* Exchanges in parts: all parts are started before the first is waited for.
 * Overwrites `back`, the buffer for sending back, with the reordered
 * samples. */
static bool is_received_in_parts(struct comm *comm, struct alltoall alltoall,
                                 struct buffers *buffers)
{
    struct err err;
    bool is_fine = true;

    for (uint32_t r = 0; r < alltoall.n_ranks; r++)
        if (comm_is_here(comm, r)) {
            order_parts(&alltoall, r, buffers->send[r], buffers->back[r]);
            memset(buffers->recv[r], 0,
                   alltoall_recv_elements(&alltoall, r) *
                       alltoall.element_bytes);
        }
    for (; alltoall.part < alltoall.n_parts; alltoall.part++)
        is_fine &= !alltoall_start(comm, &alltoall, false,
                                   (const void *const *)buffers->back,
                                   buffers->recv, &err);
    is_fine &= !comm_finish(comm, &err);
    is_fine &= !device_wait(comm->device, &err);
    for (uint32_t r = 0; r < alltoall.n_ranks; r++)
        if (comm_is_here(comm, r))
            is_fine &= is_received(&alltoall, r, buffers->recv[r]);
    return is_fine;
}

/* Returns NULL, or a description of the error. */
static const char *try_exchange(struct comm *comm,
                                const struct exchange *exchange,
                                uint32_t element_bytes)
{
    struct alltoall alltoall = {.n_ranks = exchange->n_ranks,
                                .batch = exchange->batch,
                                .dims = exchange->dims,
                                .element_bytes = element_bytes};
    const char *wrong = NULL;
    struct buffers buffers;
    struct err err = {0};

    buffers_fill(&buffers, comm, &alltoall);
    if (alltoall_start(comm, &alltoall, false,
                       (const void *const *)buffers.send, buffers.recv, &err) ||
        comm_finish(comm, &err) ||
        alltoall_start(comm, &alltoall, true, (const void *const *)buffers.recv,
                       buffers.back, &err) ||
        comm_finish(comm, &err) || device_wait(comm->device, &err))
        wrong = "it failed";
    for (uint32_t r = 0; r < alltoall.n_ranks; r++) {
        size_t n_bytes =
            (size_t)alltoall.batch * exchange->dims[r] * element_bytes;

        if (!comm_is_here(comm, r))
            continue;
        if (!is_received(&alltoall, r, buffers.recv[r]))
            wrong = "forward";
        else if (memcmp(buffers.send[r], buffers.back[r], n_bytes))
            wrong = "backward is not the reverse";
    }
    for (alltoall.n_parts = 1; alltoall.n_parts <= MAX_PARTS;
         alltoall.n_parts++)
        if (!wrong && !is_received_in_parts(comm, alltoall, &buffers))
            wrong = "in parts";
    buffers_release(&buffers);
    return wrong;
}

static void test_copies(struct world *world, unsigned n_threads)
{
    struct device *device;
    struct err err = {0};

    if (device_open(&device, DEVICE_CPU, 0, n_threads, &err))
        exit(1);
    for (size_t i = 0; i < N_EXCHANGES; i++) {
        const struct exchange *exchange = &EXCHANGES[i];
        struct comm *comm;

        if (comm_open(&comm, world, device, exchange->n_ranks, &err))
            exit(1);
        for (uint32_t element_bytes = 2; element_bytes <= 4;
             element_bytes += 2) {
            const char *wrong = try_exchange(comm, exchange, element_bytes);

            ok(!wrong, "%u threads, %u ranks, batch %u, elements of %u B%s%s",
               n_threads, exchange->n_ranks, exchange->batch, element_bytes,
               wrong ? ": " : "", wrong ? wrong : "");
        }
        comm_close(comm);
    }
    device_close(device);
}

/* Main function of each of several processes. */
static int be_process(void)
{
    struct world *world = test_world_open();
    struct device *device;
    struct comm *comm;
    struct err err = {0};
    int n_wrong = 0, n_tried = 0;

    if (device_open(&device, DEVICE_CPU, 0, 1, &err) ||
        comm_open(&comm, world, device, world->size, &err))
        return 1;
    for (size_t i = 0; i < N_EXCHANGES; i++)
        for (uint32_t element_bytes = 2; element_bytes <= 4;
             element_bytes += 2) {
            const char *wrong;

            if (EXCHANGES[i].n_ranks != world->size)
                continue;
            n_tried++;
            wrong = try_exchange(comm, &EXCHANGES[i], element_bytes);
            if (wrong)
                fprintf(stderr, "exchange %zu: %s\n", i, wrong);
            n_wrong += wrong != NULL;
        }
    comm_close(comm);
    device_close(device);
    world_close(world);
    return n_wrong || !n_tried;
}

/* Samples count the bytes between hosts, or between groups of hosts, over all
 * pairs of ranks. */
static void test_sample(void)
{
    uint32_t host_of[] = {0, 0, 1, 1, 1, 2, 2};
    const uint32_t dims[] = {1, 9, 2, 0, 30, 5, 6};
    struct world world = {.size = 7, .n_hosts = 3, .host_of = host_of};
    const struct comm comm = {.kind = "mpi", .world = &world, .n_ranks = 7};
    const struct alltoall alltoall = {
        .n_ranks = 7, .batch = 100, .dims = dims, .element_bytes = 4};

    for (uint32_t n = 1; n <= 3; n++) {
        const struct comm_sample sample = alltoall_sample(&comm, &alltoall, n);
        uint64_t sent[3] = {0}, received[3] = {0}, most = 0;

        for (uint32_t r = 0; r < 7; r++)
            for (uint32_t p = 0; p < 7; p++) {
                const uint64_t samples = alltoall_begin(&alltoall, p + 1) -
                                         alltoall_begin(&alltoall, p);

                if (host_of[r] / n == host_of[p] / n)
                    continue;
                sent[host_of[r] / n] += 4 * dims[r] * samples;
                received[host_of[p] / n] += 4 * dims[r] * samples;
            }
        for (int h = 0; h < 3; h++)
            most = max_u64(most, max_u64(sent[h], received[h]));
        ok(sample.n_hosts == (3 + n - 1) / n && sample.host_bytes == most &&
               sample.max_bytes == 4 * 30 * 100,
           "%u hosts in a group: %llu bytes leave one", n,
           (unsigned long long)sample.host_bytes);
    }
    world.size = 1;
    is_i64((int64_t)alltoall_sample(&comm, &alltoall, 1).host_bytes, 0,
           "one process knows no hosts");
}

int main(int argc, char **argv)
{
    const char *missing = processes_missing();
    const struct alltoall alltoall = {.n_ranks = 3,
                                      .batch = 10,
                                      .dims = (const uint32_t[]){4, 0, 2},
                                      .element_bytes = 4};
    struct world *world;

    if (argc > 1)
        return be_process();
    is_i64(alltoall_begin(&alltoall, 0), 0, "the first sample");
    is_i64(alltoall_begin(&alltoall, 1), 3, "10 samples of 3 ranks: 3");
    is_i64(alltoall_begin(&alltoall, 2), 6, "3");
    is_i64(alltoall_begin(&alltoall, 3), 10, "4");
    is_i64((int64_t)alltoall_recv_elements(&alltoall, 2), 24,
           "4 samples of 6 elements");
    is_i64((int64_t)alltoall_block(&alltoall, 2, 1), 12,
           "behind 3 samples of 4");
    test_sample();
    world = test_world_open();
    for (unsigned n_threads = 1; n_threads <= 3; n_threads++)
        test_copies(world, n_threads);
    world_close(world);
    if (missing) {
        tap_skip("processes", missing);
        return tap_done();
    }
    is_i64(processes_run(2, argv[0], "rank"), 0, "2 processes");
    is_i64(processes_run(4, argv[0], "rank"), 0, "4 processes");
    return tap_done();
}
