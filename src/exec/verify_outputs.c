/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include "exec/batches.h"
#include "exec/step.h"
#include "exec/values.h"

#include <string.h>

#define BAGS_A_TASK 64

/* One table's outputs. */
struct output_job {
    const struct placement *placement;
    const struct table *table;
    const struct piece *pieces; /* [n_pieces] */
    size_t n_pieces;
    uint32_t n_outputs;
    uint64_t n_bags;
    uint64_t *offsets; /* [n_bags + 1] */
    uint32_t *indices;
    struct output_view *views; /* [n_ranks][n_pieces] */
    struct tally *tallies;     /* [n_threads] */
};

/* Sum over the bag's look-ups, in double. */
static void want_bag(const struct output_job *job, uint64_t bag, double *want,
                     float *row)
{
    uint32_t dim = job->table->dim;
    uint64_t seed = job->pieces[0].table_seed;

    memset(want, 0, dim * sizeof(*want));
    for (uint64_t i = job->offsets[bag]; i < job->offsets[bag + 1]; i++) {
        values_weights(row, seed, (uint64_t)job->indices[i] * dim, dim,
                       job->table->precision);
        for (uint32_t j = 0; j < dim; j++)
            want[j] += row[j];
    }
}

/* What the receiver of the bag has: the parts of all pieces. */
static void got_bag(const struct output_job *job, uint64_t bag,
                    uint32_t receiver, float *got)
{
    uint64_t first = placement_sample(job->placement, receiver);
    const struct output_view *views = job->views + receiver * job->n_pieces;

    memset(got, 0, job->table->dim * sizeof(*got));
    for (size_t i = 0; i < job->n_pieces; i++) {
        const struct piece *piece = &job->pieces[i];
        const float *part;

        if (!views[i].d_at)
            continue;
        part = views[i].d_at + (bag - first * job->n_outputs) * views[i].stride;
        for (uint32_t j = 0; j < piece->width; j++)
            got[piece->col_begin + j] += part[j];
    }
}

static void check_bags(void *ctx, size_t task, unsigned thread)
{
    const struct output_job *job = ctx;
    const struct placement *placement = job->placement;
    uint32_t dim = job->table->dim, receiver = 0;
    uint64_t bag = (uint64_t)task * BAGS_A_TASK, end = bag + BAGS_A_TASK;
    double *want = mem_alloc(dim, sizeof(*want));
    float *row = mem_alloc(dim, sizeof(*row));

    for (; bag < end && bag < job->n_bags; bag++) {
        while (placement_sample(placement, receiver + 1) <=
               bag / job->n_outputs)
            receiver++;
        want_bag(job, bag, want, row);
        got_bag(job, bag, receiver, row);
        tally_row(&job->tallies[thread], want, row, dim,
                  tally_scale(want, dim));
    }
    mem_free(want);
    mem_free(row);
}

static void open_job(struct output_job *job, const struct exchange_set *set,
                     size_t table_idx)
{
    const struct placement *placement = set->placement;
    size_t first = placement->table_pieces[table_idx];
    struct stream stream;

    *job = (struct output_job){
        .placement = placement,
        .table = &placement->plan->problem.tables[table_idx],
        .pieces = placement->pieces + first,
        .n_pieces = placement->table_pieces[table_idx + 1] - first,
        .tallies = mem_alloc(pool_size(placement->pool), sizeof(struct tally)),
    };
    job->n_outputs = (uint32_t)job->table->num_outputs;
    job->n_bags = (uint64_t)placement->batch * job->n_outputs;
    job->views = mem_alloc(placement->n_ranks * job->n_pieces,
                           sizeof(struct output_view));
    for (uint32_t r = 0; r < placement->n_ranks; r++)
        for (size_t i = 0; i < job->n_pieces; i++)
            job->views[r * job->n_pieces + i] =
                exchange_view(set, &job->pieces[i], r);
    batches_stream(&stream, placement, table_idx);
    job->offsets = mem_alloc(job->n_bags + 1, sizeof(uint64_t));
    job->indices = mem_alloc(stream_n_lookups(&stream), sizeof(uint32_t));
    stream_fill(&stream, batches_seed(placement, STEP_BATCH), 0, job->offsets,
                job->indices);
}

static void close_job(struct output_job *job)
{
    mem_free(job->offsets);
    mem_free(job->indices);
    mem_free(job->views);
    mem_free(job->tallies);
}

void verify_outputs(struct verify *verify, const struct exchange_set *set)
{
    const struct placement *placement = set->placement;
    const struct problem *problem = &placement->plan->problem;

    for (size_t t = 0; t < problem->n_tables; t++) {
        struct output_job job;
        struct tally tally;

        if (!(problem->tables[t].num_outputs > 0))
            continue;
        open_job(&job, set, t);
        pool_run(placement->pool, (job.n_bags + BAGS_A_TASK - 1) / BAGS_A_TASK,
                 check_bags, &job);
        tally = tally_sum(job.tallies, pool_size(placement->pool));
        verify_add(verify, job.table, VERIFY_OUTPUTS, &tally);
        close_job(&job);
    }
}
