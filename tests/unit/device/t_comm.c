/* SPDX-License-Identifier: MIT */
#include "device/comm.h"

#include "base/mem.h"
#include "base/rng.h"
#include "device/fp16.h"
#include "tests/processes.h"
#include "tests/tap.h"
#include "worlds.h"

/*
 * Tests moves and sums of pseudo-random buffers. Every process computes the
 * expected result of each rank by a plain loop, so that the ranks of one
 * process and the ranks of several processes must give the same bits.
 */

#define MAX_RANKS 7
#define MAX_FLOATS 2100

/* Value of a rank's element, computable in every process. Sums of the values
 * need rounding. */
static float value_of(uint32_t rank, uint64_t i)
{
    return (float)((double)(mix64(rank * 1000003 + i) >> 11) * 0x1p-53 *
                   (double)(1u << i % 20));
}

struct buffers {
    struct comm *comm;
    float *d_data[MAX_RANKS], *d_scratch[MAX_RANKS];
    uint64_t n;
};

static bool buffers_open(struct buffers *buffers, struct comm *comm, uint64_t n)
{
    struct device *device = comm->device;
    float *values = mem_alloc(n, sizeof *values);
    struct err err = {0};
    bool fine = true;

    *buffers = (struct buffers){.comm = comm, .n = n};
    for (uint32_t r = 0; r < comm->n_ranks; r++) {
        uint64_t n_scratch = comm_sum_scratch(comm, n);
        void *d_ptr;

        if (!comm_is_here(comm, r))
            continue;
        for (uint64_t i = 0; i < n; i++)
            values[i] = value_of(r, i);
        fine &= !device_alloc(device, &d_ptr, n * sizeof(float), &err);
        buffers->d_data[r] = d_ptr;
        fine &=
            !device_upload(device, d_ptr, values, n * sizeof(float), &err) &&
            !device_alloc(device, &d_ptr, n_scratch * sizeof(float), &err);
        buffers->d_scratch[r] = d_ptr;
    }
    mem_free(values);
    return fine;
}

static void buffers_close(struct buffers *buffers)
{
    for (uint32_t r = 0; r < buffers->comm->n_ranks; r++) {
        device_free(buffers->comm->device, buffers->d_data[r]);
        device_free(buffers->comm->device, buffers->d_scratch[r]);
    }
}

/* Returns true if the data of the ranks in this process is the sum taken in
 * rank order. */
static bool is_summed(const struct buffers *buffers)
{
    struct comm *comm = buffers->comm;
    float *got = mem_alloc(buffers->n, sizeof *got);
    struct err err = {0};
    bool same = true;

    for (uint32_t r = 0; r < comm->n_ranks; r++) {
        if (!comm_is_here(comm, r))
            continue;
        same &= !device_download(comm->device, got, buffers->d_data[r],
                                 buffers->n * sizeof(float), &err);
        for (uint64_t i = 0; i < buffers->n && same; i++) {
            float want = value_of(0, i);

            for (uint32_t q = 1; q < comm->n_ranks; q++)
                want += value_of(q, i);
            same &= got[i] == want;
        }
    }
    mem_free(got);
    return same;
}

static bool try_sum(struct comm *comm, uint64_t n)
{
    struct buffers buffers;
    struct err err = {0};
    bool fine = buffers_open(&buffers, comm, n) &&
                !comm_sum(comm, buffers.d_data, buffers.d_scratch, n, &err) &&
                !device_wait(comm->device, &err) && is_summed(&buffers);

    if (err.code)
        fprintf(stderr, "%s\n", err.msg);
    buffers_close(&buffers);
    return fine;
}

/* Rank r sends its floats [40 q, 40 q + r + q) to rank q, which receives them
 * at 40 r of its scratch. All lengths differ, and one is 0. */
#define STRIDE 40
static size_t n_given(uint32_t from, uint32_t to)
{
    return from + to;
}

static bool try_move(struct comm *comm, bool is_reversed)
{
    uint32_t n_ranks = comm->n_ranks;
    struct comm_block blocks[MAX_RANKS * MAX_RANKS];
    float got[STRIDE * MAX_RANKS] = {0};
    struct buffers buffers;
    struct err err = {0};
    size_t n = 0;
    bool fine = buffers_open(&buffers, comm, STRIDE * n_ranks);

    for (uint32_t pair = 0; pair < n_ranks * n_ranks; pair++) {
        uint32_t at = is_reversed ? n_ranks * n_ranks - 1 - pair : pair;
        uint32_t from = at / n_ranks, to = at % n_ranks;
        bool has_src = comm_is_here(comm, from),
             has_dst = comm_is_here(comm, to);

        if (has_src || has_dst)
            blocks[n++] = (struct comm_block){
                from, to, has_src ? buffers.d_data[from] + STRIDE * to : NULL,
                has_dst ? buffers.d_scratch[to] + STRIDE * from : NULL,
                n_given(from, to) * sizeof(float)};
    }
    fine &= !comm_start(comm, blocks, n, &err) && !comm_finish(comm, &err) &&
            !device_wait(comm->device, &err);
    for (uint32_t to = 0; to < n_ranks && fine; to++) {
        if (!comm_is_here(comm, to))
            continue;
        fine &= !device_download(comm->device, got, buffers.d_scratch[to],
                                 STRIDE * n_ranks * sizeof(float), &err);
        for (uint32_t from = 0; from < n_ranks; from++)
            for (size_t i = 0; i < n_given(from, to); i++)
                fine &=
                    got[STRIDE * from + i] == value_of(from, STRIDE * to + i);
    }
    if (err.code)
        fprintf(stderr, "%s\n", err.msg);
    buffers_close(&buffers);
    return fine;
}

/* Averages three vectors over the ranks of a part: two in fp32 and one in fp16,
 * in the data of a rank at 0, N_MEAN and 2 N_MEAN floats. Returns whether they
 * are the means, whether other ranks keep their data, and whether the ranks of
 * the part sent 2 (n - 1) times the bytes of the vectors together. */
#define N_MEAN 37
static bool is_averaged(const struct buffers *buffers,
                        const struct comm_part *part, uint32_t rank,
                        const uint16_t *halves)
{
    const bool is_member =
        rank >= part->first && !((rank - part->first) % part->step);
    float got[3 * N_MEAN];
    const uint16_t *got_halves = (const void *)(got + 2 * N_MEAN);
    struct err err = {0};

    if (device_download(buffers->comm->device, got, buffers->d_data[rank],
                        sizeof got, &err))
        return false;
    for (uint64_t i = 0; i < 3 * N_MEAN; i++) {
        float sum = 0, half = 0;

        for (uint32_t k = 0; k < part->n_ranks; k++) {
            const uint32_t r = part->first + k * part->step;

            sum += value_of(r, i);
            half += fp16_to_float(halves[r] + (uint16_t)(i % 8));
        }
        sum /= (float)part->n_ranks;
        half /= (float)part->n_ranks;
        if (!is_member ? i < 2 * N_MEAN && got[i] != value_of(rank, i)
            : i < 2 * N_MEAN
                ? got[i] != sum
                : got_halves[i - 2 * N_MEAN] != fp16_from_float(half))
            return false;
    }
    return true;
}

static bool try_mean(struct comm *comm, struct comm_part part)
{
    const size_t bytes[] = {2 * N_MEAN * sizeof(float), N_MEAN * 2};
    uint16_t halves[MAX_RANKS] = {0}, own[N_MEAN];
    void *d_data[3][MAX_RANKS] = {{0}}, *d_scratch[MAX_RANKS] = {0};
    const struct comm_vector vectors[] = {{d_data[0], N_MEAN, PRECISION_FP32},
                                          {d_data[1], N_MEAN, PRECISION_FP32},
                                          {d_data[2], N_MEAN, PRECISION_FP16}};
    struct buffers buffers;
    struct err err = {0};
    uint64_t sent = 0;
    bool fine = buffers_open(&buffers, comm, 3 * N_MEAN), is_here = false;

    for (uint32_t r = 0; r < comm->n_ranks; r++) {
        halves[r] = fp16_from_float((float)r + 1);
        for (unsigned i = 0; i < N_MEAN; i++)
            own[i] = (uint16_t)(halves[r] + (2 * N_MEAN + i) % 8);
        if (comm_is_here(comm, r))
            fine &= !device_upload(comm->device, buffers.d_data[r] + 2 * N_MEAN,
                                   own, sizeof own, &err);
        sent -= comm->sent_bytes[r];
    }
    for (uint32_t k = 0; k < part.n_ranks; k++) {
        const uint32_t r = part.first + k * part.step;

        if (!comm_is_here(comm, r))
            continue;
        is_here = true;
        for (unsigned v = 0; v < 3; v++)
            d_data[v][k] = buffers.d_data[r] + v * N_MEAN;
        fine &= !device_alloc(comm->device, &d_scratch[k],
                              comm_mean_scratch(&part, vectors, 3), &err);
    }
    if (is_here)
        fine &= !comm_mean(comm, &part, vectors, 3, d_scratch, &err) &&
                !device_wait(comm->device, &err);
    for (uint32_t r = 0; r < comm->n_ranks; r++) {
        sent += comm->sent_bytes[r];
        fine &=
            !comm_is_here(comm, r) || is_averaged(&buffers, &part, r, halves);
    }
    if (comm->world->size == 1)
        fine &= sent == 2 * (part.n_ranks - 1) * (bytes[0] + bytes[1]);
    else
        fine &= !sent == (!is_here || part.n_ranks == 1);
    for (uint32_t k = 0; k < part.n_ranks; k++)
        device_free(comm->device, d_scratch[k]);
    buffers_close(&buffers);
    return fine;
}

/* Averages over all ranks, over every second rank from rank 1, and over one
 * rank. */
static bool try_means(struct comm *comm)
{
    const uint32_t n = comm->n_ranks;

    return try_mean(comm, (struct comm_part){0, 1, n}) &&
           try_mean(comm, (struct comm_part){n > 1, 2, n > 1 ? n / 2 : 1}) &&
           try_mean(comm, (struct comm_part){n - 1, 1, 1});
}

static const uint64_t LENGTHS[] = {1, 2, 5, 6, 100, 1000, MAX_FLOATS};
#define N_LENGTHS (sizeof LENGTHS / sizeof *LENGTHS)

/* Main function of each of several processes, which has only its own rank. */
static int be_process(struct world *world, const char *kind)
{
    uint32_t n_ranks = world->size;
    struct device *device;
    struct comm *comm;
    struct err err = {0};
    bool fine = true;

    if (device_open(&device, DEVICE_CPU, 0, 1, &err))
        return 1;
    if (!comm_open(&comm, world, device, n_ranks + 1, &err) ||
        err.code != ERR_USAGE)
        fine = false;
    if (comm_open(&comm, world, device, n_ranks, &err)) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }
    fine &= !strcmp(comm->kind, kind) && comm->world == world;
    for (uint32_t r = 0; r < n_ranks; r++)
        fine &= comm_is_here(comm, r) == (r == world->rank);
    fine &= try_move(comm, false) && try_move(comm, true);
    for (size_t i = 0; i < N_LENGTHS; i++)
        fine &= try_sum(comm, LENGTHS[i]);
    fine &= try_means(comm);
    comm_close(comm);
    device_close(device);
    world_close(world);
    return !fine;
}

static void test_copies(struct device *device, uint32_t n_ranks)
{
    struct world *world = test_world_open();
    struct comm *comm;
    struct err err = {0};
    bool summed = true;

    ok(!comm_open(&comm, world, device, n_ranks, &err), "%u ranks here",
       n_ranks);
    is_str(comm->kind, "copy", "by copies");
    ok(comm_is_here(comm, n_ranks - 1) && comm->n_ranks == n_ranks,
       "all of them");
    ok(try_move(comm, false) && try_move(comm, true), "move blocks");
    for (size_t i = 0; i < N_LENGTHS; i++)
        summed &= try_sum(comm, LENGTHS[i]);
    ok(summed, "add up in the order of ranks");
    ok(try_means(comm), "average over some of the ranks");
    comm_close(comm);
    world_close(world);
}

int main(int argc, char **argv)
{
    const char *missing = processes_missing();
    struct device *device;
    struct err err = {0};

    if (argc > 1)
        return be_process(test_world_open(), "mpi");
    for (uint32_t n = 2; n <= MAX_RANKS; n += n)
        test_world_fork(be_process, n, "shm", ERR_NONE, "");
    if (device_open(&device, DEVICE_CPU, 0, 2, &err))
        return 1;
    for (uint32_t n = 1; n <= MAX_RANKS; n += 2)
        test_copies(device, n);
    test_copies(device, 2);
    comm_close(NULL);
    device_close(device);
    if (device_count(DEVICE_CUDA)) {
        if (device_open(&device, DEVICE_CUDA, 0, 0, &err))
            return 1;
        for (uint32_t n = 1; n <= 4; n++)
            test_copies(device, n);
        device_close(device);
    } else {
        tap_skip("a GPU", "no CUDA device");
    }
    if (missing) {
        tap_skip("processes", missing);
        return tap_done();
    }
    is_i64(processes_run(2, argv[0], "rank"), 0, "2 processes");
    is_i64(processes_run(4, argv[0], "rank"), 0, "4 processes");
    return tap_done();
}
