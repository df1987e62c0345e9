/* SPDX-License-Identifier: MIT */
#include "exec/verify.h"

#include "device/lookup.h"
#include "exec/batches.h"
#include "exec/step.h"
#include "exec/values.h"

#include <math.h>
#include <string.h>

#define LOOKUPS_A_TASK 4096

/* One table's touched rows. */
struct weight_job {
    const struct piece *pieces; /* [n_pieces] */
    size_t n_pieces;
    const struct table *table;
    const uint64_t *uses; /* [n_uses]: row << 32 | bag, sorted */
    uint64_t n_uses;
    double learning_rate;
    struct tally *tallies; /* [n_threads] */
};

/* A thread's scratch for one row of the whole table. */
struct row_scratch {
    double *gradient, *want; /* [dim] */
    float *values;           /* [dim] */
};

/* Sum of the row's gradients over all bags that use it, a bag once for each
 * use; [begin, end) of the sorted uses. */
static void sum_gradients(const struct weight_job *job, uint64_t begin,
                          uint64_t end, struct row_scratch *scratch)
{
    uint32_t dim = job->table->dim;

    memset(scratch->gradient, 0, dim * sizeof(double));
    for (uint64_t i = begin; i < end; i++) {
        values_gradient(scratch->values, job->pieces[0].table_seed,
                        (uint32_t)job->uses[i], 0, dim);
        for (uint32_t j = 0; j < dim; j++)
            scratch->gradient[j] += scratch->values[j];
    }
}

static bool has_row(const struct piece *piece, uint64_t row)
{
    return row >= piece->row_begin && row < piece->row_end;
}

/* The optimizer's rule on the piece's columns of a row. */
static void want_piece(const struct weight_job *job, const struct piece *piece,
                       uint64_t row, struct row_scratch *scratch)
{
    const double *gradient = scratch->gradient + piece->col_begin;
    double *want = scratch->want + piece->col_begin;
    double rate = job->learning_rate, squares = 0, state;

    values_weights(scratch->values, piece->table_seed,
                   row * job->table->dim + piece->col_begin, piece->width,
                   job->table->precision);
    if (job->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD) {
        for (uint32_t j = 0; j < piece->width; j++)
            squares += gradient[j] * gradient[j];
        state = values_state(piece->table_seed, row, piece->col_begin) +
                squares / piece->width;
        rate /= sqrt(state) + (double)LOOKUP_ADAGRAD_EPS;
    }
    for (uint32_t j = 0; j < piece->width; j++)
        want[j] = scratch->values[j] - rate * gradient[j];
}

static void check_row(const struct weight_job *job, uint64_t begin,
                      uint64_t end, struct row_scratch *scratch,
                      struct tally *tally)
{
    uint64_t row = job->uses[begin] >> 32;
    double scale;

    sum_gradients(job, begin, end, scratch);
    for (size_t i = 0; i < job->n_pieces; i++)
        if (has_row(&job->pieces[i], row))
            want_piece(job, &job->pieces[i], row, scratch);
    scale = tally_scale(scratch->want, job->table->dim);
    for (size_t i = 0; i < job->n_pieces; i++) {
        const struct piece *piece = &job->pieces[i];

        if (!has_row(piece, row))
            continue;
        values_load_weights(scratch->values, piece->d_weight,
                            (row - piece->row_begin) * piece->width,
                            piece->width, job->table->precision);
        tally_row(tally, scratch->want + piece->col_begin, scratch->values,
                  piece->width, scale);
    }
}

/* A task checks the rows whose first use lies in its range. */
static void check_uses(void *ctx, size_t task, unsigned thread)
{
    const struct weight_job *job = ctx;
    uint32_t dim = job->table->dim;
    uint64_t begin = (uint64_t)task * LOOKUPS_A_TASK, end;
    uint64_t limit = begin + LOOKUPS_A_TASK;
    struct row_scratch scratch = {
        .gradient = mem_alloc(dim, sizeof(double)),
        .want = mem_alloc(dim, sizeof(double)),
        .values = mem_alloc(dim, sizeof(float)),
    };

    if (limit > job->n_uses)
        limit = job->n_uses;
    while (begin && begin < limit &&
           job->uses[begin] >> 32 == job->uses[begin - 1] >> 32)
        begin++;
    for (; begin < limit; begin = end) {
        for (end = begin + 1; end < job->n_uses &&
                              job->uses[end] >> 32 == job->uses[begin] >> 32;)
            end++;
        check_row(job, begin, end, &scratch, &job->tallies[thread]);
    }
    mem_free(scratch.gradient);
    mem_free(scratch.want);
    mem_free(scratch.values);
}

/* Stable radix sort by row, 8 bits a pass; what is sorted ends in *uses. */
static void sort_uses(uint64_t **uses, uint64_t **scratch, uint64_t n,
                      uint64_t n_rows)
{
    for (unsigned shift = 32; shift < 64 && (n_rows - 1) >> (shift - 32);
         shift += 8) {
        uint64_t first[257] = {0}, *swap = *uses;

        for (uint64_t i = 0; i < n; i++)
            first[((*uses)[i] >> shift & 255) + 1]++;
        for (unsigned digit = 0; digit < 256; digit++)
            first[digit + 1] += first[digit];
        for (uint64_t i = 0; i < n; i++)
            (*scratch)[first[(*uses)[i] >> shift & 255]++] = (*uses)[i];
        *uses = *scratch;
        *scratch = swap;
    }
}

/* The table's look-ups of the step as (row, bag), sorted by row; free with
 * mem_free. */
static uint64_t *list_uses(const struct placement *placement, size_t table_idx,
                           uint64_t *n_uses)
{
    struct stream stream;
    uint64_t n, *offsets, *uses, *scratch;
    uint32_t *indices;

    batches_stream(&stream, placement, table_idx);
    n = stream_n_lookups(&stream);
    offsets = mem_alloc((size_t)stream.batch + 1, sizeof(*offsets));
    indices = mem_alloc((size_t)n, sizeof(*indices));
    uses = mem_alloc((size_t)n, sizeof(*uses));
    scratch = mem_alloc((size_t)n, sizeof(*scratch));
    stream_fill(&stream, batches_seed(placement, STEP_BATCH), 0, offsets,
                indices);
    for (uint64_t bag = 0; bag < stream.batch; bag++)
        for (uint64_t i = offsets[bag]; i < offsets[bag + 1]; i++)
            uses[i] = (uint64_t)indices[i] << 32 | bag;
    sort_uses(&uses, &scratch, n, stream.n_rows);
    mem_free(offsets);
    mem_free(indices);
    mem_free(scratch);
    *n_uses = n;
    return uses;
}

void verify_weights(struct verify *verify, const struct placement *placement,
                    float learning_rate)
{
    const struct problem *problem = &placement->plan->problem;
    unsigned n_threads = pool_size(placement->pool);

    for (size_t t = 0; t < problem->n_tables; t++) {
        size_t first = placement->table_pieces[t];
        struct weight_job job = {
            .pieces = placement->pieces + first,
            .n_pieces = placement->table_pieces[t + 1] - first,
            .table = &problem->tables[t],
            .learning_rate = learning_rate,
        };
        uint64_t n_uses, *uses;
        struct tally tally;

        if (!(job.table->num_outputs > 0))
            continue;
        job.uses = uses = list_uses(placement, t, &n_uses);
        job.n_uses = n_uses;
        job.tallies = mem_alloc(n_threads, sizeof(struct tally));
        pool_run(placement->pool,
                 (size_t)((n_uses + LOOKUPS_A_TASK - 1) / LOOKUPS_A_TASK),
                 check_uses, &job);
        tally = tally_sum(job.tallies, n_threads);
        verify_add(verify, job.table, VERIFY_WEIGHTS, &tally);
        mem_free(job.tallies);
        mem_free(uses);
    }
}
