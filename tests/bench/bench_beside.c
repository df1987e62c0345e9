/* SPDX-License-Identifier: MIT */
#include "device/alltoall.h"

#include "base/mem.h"
#include "base/stats.h"
#include "device/lookup.h"
#include "device/stream.h"
#include "device/world_fork.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * Measures exchanges alone and concurrent with lookups, between the GPUs of
 * this machine:
 *
 *     bench_beside GPUS [BATCH [LARGEST_MIB]]
 *
 * Starts one process per GPU, with two queues on it. One queue looks up and
 * updates rows of a table with 128 columns, 20 rows per bag. The other
 * exchanges blocks of equal size, 64 KiB to 1 GiB in total. Prints one line per
 * size: the time of the exchange alone and concurrent with lookups, and the
 * slowdown of the lookups. All times are those of the slowest GPU, medians of
 * 12 repetitions. Without GPUS it prints the number of GPUs and the name of the
 * first.
 */
#define DIM 128
#define POOLING 20
#define ROWS_A_BAG 64
#define RATE 1e-6F
#define N_REPETITIONS 12
#define N_WARM_UP 3
#define SMALLEST_BYTES 65536.0
#define N_RANKS_MAX 256

enum {
    LOOKUPS_ALONE,
    EXCHANGE_ALONE,
    LOOKUPS_BESIDE,
    EXCHANGE_BESIDE,
    N_TIMES
};

struct bench {
    struct world *world;
    struct device *lookups, *wire; /* two queues of one GPU */
    struct comm *comm;
    struct lookup_table table;
    struct lookup *lookup;
    struct lookup_batch batch;
    void *d_out, *d_send, *d_recv;
    uint32_t n_bags;
    struct alltoall alltoall;
    uint32_t dims[N_RANKS_MAX];
};

static int open_lookups(struct bench *bench, struct err *err)
{
    const struct stream stream = {.n_rows =
                                      (uint64_t)bench->n_bags * ROWS_A_BAG,
                                  .batch = bench->n_bags,
                                  .pooling_factor = POOLING};
    const uint64_t n = stream_n_lookups(&stream);
    struct device *device = bench->lookups;
    const struct lookup_spec spec = {.tables = &bench->table,
                                     .n_tables = 1,
                                     .batch = bench->n_bags,
                                     .max_lookups = n,
                                     .optimizer = OPTIMIZER_ROWWISE_ADAGRAD};
    void *d_weight, *d_state, *d_indices, *d_offsets;

    if (device_alloc(device, &d_weight, stream.n_rows * DIM * sizeof(float),
                     err) ||
        device_alloc(device, &d_state, stream.n_rows * sizeof(float), err) ||
        device_alloc(device, &d_indices, n * sizeof(uint32_t), err) ||
        device_alloc(device, &d_offsets,
                     (bench->n_bags + (uint64_t)1) * sizeof(uint64_t), err) ||
        device_alloc(device, &bench->d_out,
                     (uint64_t)bench->n_bags * DIM * sizeof(float), err) ||
        device_fill(device, d_weight, stream.n_rows * DIM, PRECISION_FP32, 1,
                    err) ||
        device_set(device, d_state, stream.n_rows, 1, err) ||
        stream_draw(device, &stream, 1, bench->world->rank, d_indices,
                    d_offsets, err))
        return -1;
    bench->table = (struct lookup_table){.d_weight = d_weight,
                                         .d_state = d_state,
                                         .n_rows = stream.n_rows,
                                         .dim = DIM,
                                         .precision = PRECISION_FP32};
    bench->batch = (struct lookup_batch){
        .d_indices = d_indices, .d_offsets = d_offsets, .n_lookups = n};
    return lookup_open(&bench->lookup, device, &spec, err);
}

static int open_all(struct bench *bench, double largest_bytes, struct err *err)
{
    const uint32_t n = bench->world->size, rank = bench->world->rank;
    const size_t n_bytes = (size_t)(largest_bytes / n) + n * sizeof(float);

    bench->alltoall = (struct alltoall){.n_ranks = n,
                                        .batch = n,
                                        .dims = bench->dims,
                                        .element_bytes = sizeof(float)};
    return device_open(&bench->lookups, DEVICE_CUDA, rank, 0, err) ||
           device_open(&bench->wire, DEVICE_CUDA, rank, 0, err) ||
           comm_open(&bench->comm, bench->world, bench->wire, n, err) ||
           device_alloc(bench->wire, &bench->d_send, n_bytes, err) ||
           device_alloc(bench->wire, &bench->d_recv, n_bytes, err) ||
           open_lookups(bench, err);
}

/* Runs n_lookups lookups with their updates and, if has_exchange, an exchange
 * at the same time. */
static int run_once(struct bench *bench, unsigned n_lookups, bool has_exchange,
                    double *lookups_ms, double *exchange_ms, struct err *err)
{
    const void *d_send[N_RANKS_MAX] = {NULL};
    void *d_recv[N_RANKS_MAX] = {NULL};

    d_send[bench->world->rank] = bench->d_send;
    d_recv[bench->world->rank] = bench->d_recv;
    if (device_wait(bench->lookups, err) || device_wait(bench->wire, err) ||
        world_barrier(bench->world, err) || device_delay(bench->lookups, err) ||
        device_delay(bench->wire, err) || device_mark(bench->lookups, 0, err))
        return -1;
    for (unsigned i = 0; i < n_lookups; i++)
        if (lookup_forward(bench->lookup, &bench->batch, bench->d_out, err) ||
            lookup_backward(bench->lookup, LOOKUP_BACKWARD, &bench->batch,
                            bench->d_out, RATE, err))
            return -1;
    if (device_mark(bench->lookups, 1, err) ||
        device_mark(bench->wire, 0, err) ||
        (has_exchange && (alltoall_start(bench->comm, &bench->alltoall, false,
                                         d_send, d_recv, err) ||
                          comm_finish(bench->comm, err))) ||
        device_mark(bench->wire, 1, err) ||
        device_elapsed(bench->lookups, 0, 1, lookups_ms, err))
        return -1;
    return device_elapsed(bench->wire, 0, 1, exchange_ms, err);
}

static int run_repetitions(struct bench *bench, unsigned n_lookups,
                           bool has_exchange, double *lookups_ms,
                           double *exchange_ms, struct err *err)
{
    double ms[2 * N_REPETITIONS], ignored[2];

    for (int i = -N_WARM_UP; i < N_REPETITIONS; i++)
        if (run_once(bench, n_lookups, has_exchange,
                     i < 0 ? &ignored[0] : &ms[i],
                     i < 0 ? &ignored[1] : &ms[N_REPETITIONS + i], err))
            return -1;
    if (world_largest(bench->world, ms, 2 * (size_t)N_REPETITIONS, err))
        return -1;
    *lookups_ms = stats_median(ms, N_REPETITIONS);
    *exchange_ms = stats_median(ms + N_REPETITIONS, N_REPETITIONS);
    return 0;
}

/* Measures one size, with enough lookups to outlast the exchange. */
static int run_size(struct bench *bench, double total_bytes, struct err *err)
{
    const uint32_t n = bench->world->size;
    double ms[N_TIMES], none, one_ms;
    unsigned n_lookups;

    for (uint32_t r = 0; r < n; r++)
        bench->dims[r] = (uint32_t)(total_bytes / n / n / sizeof(float));
    if (run_repetitions(bench, 0, true, &none, &ms[EXCHANGE_ALONE], err) ||
        run_repetitions(bench, 1, false, &one_ms, &none, err))
        return -1;
    n_lookups = 2 + (unsigned)fmin(1.5 * ms[EXCHANGE_ALONE] / one_ms, 16);
    if (run_repetitions(bench, n_lookups, false, &ms[LOOKUPS_ALONE], &none,
                        err) ||
        run_repetitions(bench, n_lookups, true, &ms[LOOKUPS_BESIDE],
                        &ms[EXCHANGE_BESIDE], err))
        return -1;
    if (bench->world->rank)
        return 0;
    printf("%10.3f %10.4f %10.4f %6.2f %10u %10.4f %10.4f %6.2f\n",
           total_bytes / (1 << 20), ms[EXCHANGE_ALONE], ms[EXCHANGE_BESIDE],
           ms[EXCHANGE_BESIDE] / ms[EXCHANGE_ALONE], n_lookups,
           ms[LOOKUPS_ALONE], ms[LOOKUPS_BESIDE],
           ms[LOOKUPS_BESIDE] / ms[LOOKUPS_ALONE]);
    fflush(stdout);
    return 0;
}

static int run_all(struct bench *bench, double largest_bytes, struct err *err)
{
    if (open_all(bench, largest_bytes, err))
        return -1;
    if (!bench->world->rank)
        printf("%u GPUs, %s; exchanges beside look-ups of %u bags, ms\n"
               "%10s %10s %10s %6s %10s %10s %10s %6s\n",
               bench->world->size, bench->wire->facts.name, bench->n_bags,
               "MiB in all", "alone", "beside", "times", "look-ups", "alone",
               "beside", "times");
    for (double bytes = SMALLEST_BYTES; bytes <= largest_bytes; bytes *= 4)
        if (run_size(bench, bytes, err))
            return -1;
    return 0;
}

/* Prints the GPUs. Runs alone, since processes forked after the GPUs were
 * counted could not use them. */
static int print_gpus(struct err *err)
{
    const unsigned n = device_count(DEVICE_CUDA);
    struct device *device = NULL;

    if (n && device_open(&device, DEVICE_CUDA, 0, 0, err))
        return -1;
    printf("%u GPUs like %s\n", n, device ? device->facts.name : "none");
    device_close(device);
    return 0;
}

int main(int argc, char **argv)
{
    const unsigned long n = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    const double mib = argc > 3 ? strtod(argv[3], NULL) : 1024;
    struct bench *bench;
    struct err err = {0};
    int rc;

    if (argc == 1) {
        rc = print_gpus(&err);
        if (rc)
            fprintf(stderr, "bench_beside: %s\n", err.msg);
        return rc ? 1 : 0;
    }
    if (n < 2 || n > N_RANKS_MAX) {
        fputs("usage: bench_beside GPUS [BATCH [LARGEST_MIB]]\n", stderr);
        return 2;
    }
    bench = mem_alloc(1, sizeof *bench);
    bench->n_bags = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 65536;
    rc = world_fork(&bench->world, (uint32_t)n, &err);
    if (!rc && bench->world)
        rc = run_all(bench, mib * (1 << 20), &err);
    if (rc && *err.msg)
        fprintf(stderr, "bench_beside: %s\n", err.msg);
    if (bench->world) {
        if (rc)
            world_abort(bench->world, 1);
        lookup_close(bench->lookup);
        comm_close(bench->comm);
        device_close(bench->wire);
        device_close(bench->lookups);
        world_close(bench->world);
    }
    mem_free(bench);
    return rc ? 1 : 0;
}
