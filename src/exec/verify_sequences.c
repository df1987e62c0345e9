/* SPDX-License-Identifier: MIT */
#include "exec/verify_sequences.h"

#include "base/hash.h"
#include "exec/rank_work.h"
#include "exec/sequences.h"
#include "exec/values.h"

#include <string.h>

#define LOOKUPS_A_TASK 64

/* Comparison of one table at one receiver. */
struct sequence_job {
    const struct placement *placement;
    const struct table *table;
    size_t table_idx;
    const struct piece *pieces; /* those of `places` */
    struct places places;
    /* [n_pieces]: vectors that the pieces gave the receiver, in host memory;
     * owned. NULL for the replicas of other ranks. */
    char **vectors;
    struct tally *tallies; /* [n_threads] comparison results of each thread */
};

/* Puts the vector of lookup i together, in got[dim]. Columns that no piece
 * holds for this row remain 0. */
static void got_lookup(const struct sequence_job *job, uint64_t i, float *got)
{
    const uint32_t row = job->places.bags.indices[i];

    memset(got, 0, job->table->dim * sizeof(*got));
    for (size_t k = 0; k < job->places.n_pieces; k++) {
        const struct piece *piece = &job->pieces[k];
        const enum precision precision = piece->group->precision;

        if (job->vectors[k] && piece_has_row(piece, row))
            values_load(got + piece->col_begin,
                        job->vectors[k] + job->places.lists[k].slots[i] *
                                              group_bag_bytes(piece->group),
                        piece->width, precision);
    }
}

static void check_lookups(void *ctx, uint64_t begin, uint64_t end,
                          unsigned thread)
{
    const struct sequence_job *job = ctx;
    const uint32_t dim = job->table->dim;
    double *want = mem_alloc(dim, sizeof(*want));
    float *row = mem_alloc(dim, sizeof(*row));
    float *got = mem_alloc(dim, sizeof(*got));

    for (uint64_t i = begin; i < end; i++) {
        values_weights(row, job->pieces[0].table_seed,
                       (uint64_t)job->places.bags.indices[i] * dim, dim,
                       job->table->precision);
        for (uint32_t j = 0; j < dim; j++)
            want[j] = row[j];
        got_lookup(job, i, got);
        tally_row(&job->tallies[thread], want, got, dim,
                  tally_scale(want, dim));
    }
    mem_free(want);
    mem_free(row);
    mem_free(got);
}

/* Downloads the vectors of the pieces to the host and hashes them. */
static int download(struct sequence_job *job, const struct exchange_set *set,
                    uint32_t receiver, uint64_t *hash, struct err *err)
{
    for (size_t k = 0; k < job->places.n_pieces; k++) {
        const struct group *group = job->pieces[k].group;
        struct output_block block = exchange_block(set, group, receiver);
        size_t n_bytes = (size_t)block.n_bags * group_bag_bytes(group);

        if (!block.n_bags)
            continue;
        job->vectors[k] = mem_grow(NULL, n_bytes, 1);
        if (device_download(job->placement->device, job->vectors[k], block.d_at,
                            n_bytes, err))
            return -1;
        *hash = hash_bytes(job->vectors[k], n_bytes, *hash);
    }
    return 0;
}

static int check_receiver(struct sequence_job *job,
                          const struct exchange_set *set, uint32_t receiver,
                          uint64_t *hash, struct err *err)
{
    int rc;

    places_init(&job->places, job->placement, job->table_idx, receiver,
                STEP_BATCH);
    job->pieces = job->places.pieces;
    job->vectors = mem_alloc(job->places.n_pieces, sizeof(*job->vectors));
    rc = download(job, set, receiver, hash, err);
    if (!rc)
        pool_run_range(job->placement->pool, job->places.n, LOOKUPS_A_TASK,
                       check_lookups, job);
    for (size_t k = 0; k < job->places.n_pieces; k++)
        mem_free(job->vectors[k]);
    mem_free(job->vectors);
    places_release(&job->places);
    return rc;
}

static int check_table(struct verify *verify, const struct exchange_set *set,
                       size_t table_idx, struct err *err)
{
    const struct placement *placement = set->placement;
    const unsigned n_threads = pool_size(placement->pool);
    struct sequence_job job = {
        .placement = placement,
        .table = &placement->plan->problem.tables[table_idx],
        .table_idx = table_idx,
        .tallies = mem_alloc(n_threads, sizeof(*job.tallies))};
    int rc = 0;

    for (uint32_t r = placement->here.begin; !rc && r < placement->here.end;
         r++)
        rc = check_receiver(&job, set, r,
                            &verify->ranks[r].hashes[VERIFY_OUTPUTS], err);
    if (!rc)
        verify_add(verify, job.table, VERIFY_OUTPUTS, job.tallies, n_threads);
    mem_free(job.tallies);
    return rc;
}

int verify_sequences(struct verify *verify, const struct exchange_set *set,
                     struct err *err)
{
    const struct problem *problem = &set->placement->plan->problem;

    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].output == OUTPUT_SEQUENCE &&
            problem->tables[t].num_outputs > 0 &&
            check_table(verify, set, t, err))
            return -1;
    return 0;
}
