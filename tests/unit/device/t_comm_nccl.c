/* SPDX-License-Identifier: MIT */
#include "device/comm_nccl.h"

#include <unistd.h>

#include "base/mem.h"
#include "device/device_ops.h"
#include "device/nccl.h"
#include "tests/processes.h"
#include "tests/tap.h"
#include "worlds.h"

/*
 * Tests our side of NCCL between processes on CPUs. Stand-ins replace the
 * library (tests/fake/fake_nccl.c) and the GPU functions that it needs.
 */

/* Value that rank `from` sends to rank `to`. */
static float value_of(uint32_t from, uint32_t to, size_t i)
{
    return (float)(from * 10000 + to * 100) + (float)i;
}

#define N_FLOATS 50

/* Every rank sends N_FLOATS to every rank; then all ranks sum them. */
static bool try_exchange(struct comm *comm)
{
    uint32_t n = comm->n_ranks, own = comm->world->rank;
    float *data = mem_alloc(n, N_FLOATS * sizeof *data);
    float *got = mem_alloc(n, N_FLOATS * sizeof *got);
    float *scratch =
        mem_alloc(comm_sum_scratch(comm, N_FLOATS), sizeof *scratch);
    struct comm_block *blocks = mem_alloc(2 * n, sizeof *blocks);
    float *d_data[8] = {NULL}, *d_scratch[8] = {NULL};
    struct err err = {0};
    size_t n_blocks = 0;
    bool fine;

    for (uint32_t r = 0; r < n; r++) {
        for (size_t i = 0; i < N_FLOATS; i++)
            data[r * N_FLOATS + i] = value_of(own, r, i);
        blocks[n_blocks++] = (struct comm_block){
            own, r, data + r * N_FLOATS, r == own ? got + r * N_FLOATS : NULL,
            N_FLOATS * sizeof(float)};
        if (r != own)
            blocks[n_blocks++] = (struct comm_block){
                r, own, NULL, got + r * N_FLOATS, N_FLOATS * sizeof(float)};
    }
    fine =
        !comm_start(comm, blocks, n_blocks, &err) && !comm_finish(comm, &err);
    for (uint32_t r = 0; r < n; r++)
        for (size_t i = 0; i < N_FLOATS; i++)
            fine &= got[r * N_FLOATS + i] == value_of(r, own, i);
    d_data[own] = got;
    d_scratch[own] = scratch;
    fine &= !comm_sum(comm, d_data, d_scratch, N_FLOATS, &err);
    for (size_t i = 0; i < N_FLOATS; i++) {
        float want = 0;

        for (uint32_t r = 0; r < n; r++)
            want += value_of(0, r, i);
        fine &= got[i] == want;
    }
    if (err.code)
        fprintf(stderr, "%s\n", err.msg);
    mem_free(data);
    mem_free(got);
    mem_free(scratch);
    mem_free(blocks);
    return fine;
}

/* The ranks with the parity of the own rank average a vector. Returns whether
 * it is the mean, and whether the bytes were counted. */
static bool try_mean(struct comm *comm)
{
    const uint32_t n = comm->n_ranks, own = comm->world->rank;
    const struct comm_part part = {own % 2, 2, (n - own % 2 + 1) / 2};
    const uint64_t before = comm->sent_bytes[own];
    void *d_data[8] = {NULL}, *d_scratch[8] = {NULL};
    const struct comm_vector vector = {d_data, N_FLOATS, PRECISION_FP32};
    float *data = mem_alloc(N_FLOATS, sizeof *data);
    struct err err = {0};
    bool fine;

    d_data[own / 2] = data;
    d_scratch[own / 2] = mem_alloc(comm_mean_scratch(&part, &vector, 1), 1);
    for (size_t i = 0; i < N_FLOATS; i++)
        data[i] = value_of(own, 0, i);
    fine = !comm_mean(comm, &part, &vector, 1, d_scratch, &err);
    for (size_t i = 0; i < N_FLOATS; i++) {
        float want = 0;

        for (uint32_t r = own % 2; r < n; r += 2)
            want += value_of(r, 0, i);
        fine &= data[i] == want / (float)part.n_ranks;
    }
    if (part.n_ranks == 2)
        fine &= comm->sent_bytes[own] - before == N_FLOATS * sizeof(float);
    mem_free(d_scratch[own / 2]);
    mem_free(data);
    return fine;
}

/* Compares the kind of communicator that each process gets with the expected
 * one. */
static int be_process(const char *expected)
{
    struct comm shape = {0};
    struct comm *comm;
    struct err err = {0};
    bool fine;

    shape.world = test_world_open();
    if (device_open(&shape.device, DEVICE_CPU, 0, 1, &err))
        return 1;
    shape.n_ranks = shape.world->size;
    snprintf(shape.device->identity, sizeof shape.device->identity, "%d",
             strstr(expected, "share one GPU") ? 0 : (int)getpid());
    if (comm_open_nccl(&comm, &shape, &err)) {
        fine = strstr(err.msg, expected) != NULL && err.code == ERR_DEVICE;
        if (!fine)
            fprintf(stderr, "%s\n", err.msg);
    } else {
        fine = !strcmp(comm->kind, expected) && try_exchange(comm) &&
               try_mean(comm);
        comm_close(comm);
    }
    device_close(shape.device);
    world_close(shape.world);
    return !fine;
}

int main(int argc, char **argv)
{
    const char *missing = processes_missing();
    char folder[1024];

    if (argc > 1)
        return be_process(argv[1]);
    if (missing)
        tap_skip_all(missing);
    snprintf(folder, sizeof folder, "%.*s/../../../fake",
             (int)(strrchr(argv[0], '/') - argv[0]), argv[0]);
    setenv("LD_LIBRARY_PATH", folder, 1);
    is_i64(processes_run(2, argv[0], "nccl"), 0, "2 processes");
    is_i64(processes_run(4, argv[0], "nccl"), 0, "4 processes");
    is_i64(processes_run(2, argv[0], "'ranks 0 and 1 would share one GPU'"), 0,
           "two processes on one GPU");
    setenv("FAKE_NCCL_REFUSES", "1", 1);
    is_i64(processes_run(2, argv[0],
                         "'ncclCommInitRank failed: invalid argument'"),
           0, "what NCCL refuses");
    return tap_done();
}
