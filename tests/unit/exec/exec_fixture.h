/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_EXEC_FIXTURE_H
#define NEUROSHARD_TESTS_EXEC_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/plan.h"
#include "device/comm.h"

/* Shared fixture of the executor's tests. Plans are made by hand, piece by
 * piece. They run on a CPU with two threads, unless the test asks for a GPU.
 * One process has all ranks. */

struct fixture {
    struct arena arena;
    struct plan plan;
    struct table tables[16];
    struct shard shards[128];
    struct world *world;
    struct device *device;
    struct comm *comm;
};

static inline void fixture_bail(const struct err *err)
{
    printf("Bail out! %s\n", err->msg);
    exit(1);
}

static inline void fixture_init_on(struct fixture *fixture,
                                   enum device_kind kind, uint32_t n_ranks,
                                   uint64_t batch)
{
    struct err err = {0};

    memset(fixture, 0, sizeof(*fixture));
    fixture->plan.problem.tables = fixture->tables;
    fixture->plan.problem.cluster.n_devices = n_ranks;
    fixture->plan.problem.batch = batch;
    fixture->plan.shards = fixture->shards;
    if (world_open(&fixture->world, &err) ||
        device_open(&fixture->device, kind, 0, 2, &err) ||
        comm_open(&fixture->comm, fixture->world, fixture->device, n_ranks,
                  &err))
        fixture_bail(&err);
}

static inline void fixture_init(struct fixture *fixture, uint32_t n_ranks,
                                uint64_t batch)
{
    fixture_init_on(fixture, DEVICE_CPU, n_ranks, batch);
}

static inline void fixture_release(struct fixture *fixture)
{
    comm_close(fixture->comm);
    device_close(fixture->device);
    world_close(fixture->world);
    arena_release(&fixture->arena);
}

static inline struct table *add_table(struct fixture *fixture, const char *name,
                                      uint64_t n_rows, uint32_t dim,
                                      double pooling)
{
    struct table *table = &fixture->tables[fixture->plan.problem.n_tables++];

    table_init(table);
    table->name = name;
    table->num_embeddings = n_rows;
    table->dim = dim;
    table->pooling_factor = pooling;
    return table;
}

static inline uint32_t last_table(const struct fixture *fixture)
{
    return (uint32_t)fixture->plan.problem.n_tables - 1;
}

/* Add a piece to the table that was added last: whole, columns, rows, rows and
 * columns, or a replica on every device. */
static inline struct shard *add_whole(struct fixture *fixture, uint32_t device)
{
    struct shard *shard = &fixture->shards[fixture->plan.n_shards++];

    *shard = shard_whole(&fixture->plan.problem, last_table(fixture), device);
    return shard;
}

static inline struct shard *add_columns(struct fixture *fixture,
                                        uint32_t device, uint32_t begin,
                                        uint32_t end)
{
    struct shard *shard = add_whole(fixture, device);

    shard->col_begin = begin;
    shard->col_end = end;
    return shard;
}

static inline struct shard *add_rows(struct fixture *fixture, uint32_t device,
                                     uint64_t begin, uint64_t end)
{
    struct shard *shard = add_whole(fixture, device);

    shard->row_begin = begin;
    shard->row_end = end;
    return shard;
}

static inline void add_piece(struct fixture *fixture, uint32_t device,
                             uint64_t row_begin, uint64_t row_end,
                             uint32_t col_begin, uint32_t col_end)
{
    struct shard *shard = add_rows(fixture, device, row_begin, row_end);

    shard->col_begin = col_begin;
    shard->col_end = col_end;
}

static inline void add_replicas(struct fixture *fixture)
{
    for (uint32_t r = 0; r < fixture->plan.problem.cluster.n_devices; r++)
        add_whole(fixture, r);
}

#endif
