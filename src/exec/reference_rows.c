/* SPDX-License-Identifier: MIT */
#include "exec/reference_rows.h"

#include "base/radix_sort.h"
#include "exec/rank_work.h"
#include "exec/rows.h"
#include "exec/values.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Number of samples, rows or columns of a task. */
#define SAMPLES_A_TASK 64
#define ROWS_A_TASK 256
#define COLUMNS_A_TASK 16

/* --- touched rows --- */

/* Sorts rows[n] and removes repeated rows. Returns the number that is left. */
static size_t sort_rows(uint32_t *rows, size_t n, uint64_t n_all)
{
    uint32_t *other = mem_grow(NULL, n, sizeof(*other)), *sorted;
    struct radix_sort sort = {.keys = {rows, other},
                              .n = n,
                              .key_bytes = sizeof(*rows),
                              .mask = radix_mask(n_all - 1)};
    size_t n_left = 0;

    sorted = sort.keys[radix_sort(&sort)];
    for (size_t i = 0; i < n; i++)
        if (!i || sorted[i] != sorted[i - 1])
            rows[n_left++] = sorted[i];
    mem_free(other);
    return n_left;
}

struct open_job {
    struct reference_rows *rows;
    const unsigned *numbers;
    size_t n_numbers;
};

/* Returns the rows that the batches touch, sorted; the caller frees them. */
static uint32_t *touched_rows(const struct open_job *job, size_t table_idx,
                              size_t *n_rows)
{
    const struct placement *placement = job->rows->placement;
    const struct rank_range all = {0, placement->n_ranks};
    const struct table *table = &placement->plan->problem.tables[table_idx];
    uint64_t n_bags = placement->batch * (uint64_t)table->num_outputs;
    uint32_t *touched = NULL;
    size_t n = 0;

    for (size_t k = 0; k < job->n_numbers; k++) {
        struct bags bags;
        size_t n_more;

        batches_draw_table(&bags, placement, table_idx, all, job->numbers[k],
                           false);
        n_more = (size_t)bags.offsets[n_bags];
        touched = mem_grow(touched, n + n_more, sizeof(*touched));
        if (n_more)
            memcpy(touched + n, bags.indices, n_more * sizeof(*touched));
        bags_release(&bags);
        n = sort_rows(touched, n + n_more, placement->table_rows[table_idx]);
    }
    *n_rows = n;
    return touched;
}

static void fill_table(void *ctx, size_t task, unsigned thread)
{
    const struct open_job *job = ctx;
    struct reference_table *table = &job->rows->tables[task];
    uint32_t dim = table->table->dim;
    uint64_t seed = table->pieces[0].piece->table_seed;
    float *row = mem_alloc(dim, sizeof(*row));

    (void)thread;
    for (size_t i = 0; i < table->n_rows; i++) {
        values_weights(row, seed, table->rows[i] * dim, dim,
                       table->table->precision);
        for (uint32_t j = 0; j < dim; j++)
            table->weights[i * dim + j] = row[j];
    }
    for (size_t k = 0; k < table->n_pieces; k++)
        for (size_t i = 0; table->pieces[k].states && i < table->pieces[k].n;
             i++)
            table->pieces[k].states[i] =
                values_state(seed, table->rows[table->pieces[k].first + i],
                             table->pieces[k].piece->col_begin);
    mem_free(row);
}

/* Lists the pieces of a table, and allocates their states. */
static void list_pieces(struct reference_table *table, struct arena *arena)
{
    const struct piece *first = table->held.begin;
    size_t n = (size_t)(table->held.end - first);
    bool has_states = table->table->optimizer == OPTIMIZER_ROWWISE_ADAGRAD;

    table->n_pieces = first->replica ? 1 : n;
    table->pieces = ARENA_NEW(arena, struct reference_piece, table->n_pieces);
    for (size_t k = 0; k < table->n_pieces; k++) {
        struct reference_piece *piece = &table->pieces[k];

        piece->piece = first + k;
        piece->n = rows_of_piece(piece->piece, table->rows, table->n_rows,
                                 &piece->first);
        if (has_states)
            piece->states = ARENA_NEW(arena, double, piece->n);
    }
}

/* Adds the copies of a table, with the rows that any of them touches: a sync
 * brings the changes of one copy to the others. */
static void open_copies(const struct open_job *job, size_t table_idx)
{
    struct reference_rows *rows = job->rows;
    const struct placement *placement = rows->placement;
    struct arena *arena = &rows->arena;
    const bool is_replica = placement->table_pieces[table_idx]->replica;
    size_t n_rows;
    uint32_t *touched = touched_rows(job, table_idx, &n_rows);
    uint64_t *wide = ARENA_NEW(arena, uint64_t, n_rows);

    for (size_t i = 0; i < n_rows; i++)
        wide[i] = touched[i];
    mem_free(touched);
    for (uint32_t c = 0; c < (is_replica ? 1 : placement->n_copies); c++) {
        struct reference_table *table = &rows->tables[rows->n_tables++];

        *table = (struct reference_table){
            .table = &placement->plan->problem.tables[table_idx],
            .table_idx = table_idx,
            .copy = c,
            .owners = placement_copy_ranks(placement, c),
            .held = placement_copy_pieces(placement, table_idx, c),
            .rows = wide,
            .n_rows = n_rows,
            .pooled_begin = rows->pooled,
        };
        if (is_replica) {
            table->owners = (struct rank_range){0, placement->n_ranks};
            table->held.end = placement->table_pieces[table_idx + 1];
        }
        table->first_sample = placement_sample(placement, table->owners.begin);
        table->n_samples = placement_sample(placement, table->owners.end) -
                           table->first_sample;
        table->weights = ARENA_NEW(arena, double, n_rows * table->table->dim);
        table->gradients = ARENA_NEW(arena, double, n_rows * table->table->dim);
        list_pieces(table, arena);
    }
}

void reference_rows_open(struct reference_rows *rows,
                         const struct placement *placement,
                         const unsigned *numbers, size_t n_numbers)
{
    const struct problem *problem = &placement->plan->problem;
    struct open_job job = {rows, numbers, n_numbers};

    *rows = (struct reference_rows){.placement = placement};
    rows->tables = ARENA_NEW(&rows->arena, struct reference_table,
                             problem->n_tables * placement->n_copies);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        if (!(table->num_outputs > 0))
            continue;
        open_copies(&job, t);
        rows->pooled += table->dim * (uint64_t)table->num_outputs;
    }
    pool_run(placement->pool, rows->n_tables, fill_table, &job);
}

void reference_rows_close(struct reference_rows *rows)
{
    for (size_t t = 0; t < rows->n_tables; t++)
        bags_release(&rows->tables[t].bags);
    arena_release(&rows->arena);
    *rows = (struct reference_rows){0};
}

/* --- a batch --- */

static uint32_t index_of_row(const struct reference_table *table, uint32_t row)
{
    size_t begin = 0, end = table->n_rows;

    while (begin + 1 < end) {
        size_t middle = begin + (end - begin) / 2;

        if (table->rows[middle] <= row)
            begin = middle;
        else
            end = middle;
    }
    assert(table->rows[begin] == row);
    return (uint32_t)begin;
}

struct row_draw_job {
    struct reference_rows *rows;
    unsigned number;
};

static void draw_table(void *ctx, size_t task, unsigned thread)
{
    const struct row_draw_job *job = ctx;
    const struct placement *placement = job->rows->placement;
    struct reference_table *table = &job->rows->tables[task];
    uint64_t n_bags = table->n_samples * (uint64_t)table->table->num_outputs;

    (void)thread;
    bags_release(&table->bags);
    batches_draw_table(&table->bags, placement, table->table_idx, table->owners,
                       job->number, false);
    for (uint64_t i = 0; i < table->bags.offsets[n_bags]; i++)
        table->bags.indices[i] = index_of_row(table, table->bags.indices[i]);
}

void reference_rows_draw(struct reference_rows *rows, unsigned number)
{
    struct row_draw_job job = {rows, number};

    pool_run(rows->placement->pool, rows->n_tables, draw_table, &job);
}

struct pool_job {
    const struct reference_rows *rows;
    uint64_t first;
    double *pooled;
};

/* Adds the rows of a bag that the piece holds to the piece's columns of
 * out[dim], and rounds the sum as the exchange does. */
static void pool_piece(const struct reference_table *table,
                       const struct reference_piece *piece, uint64_t bag,
                       double *out, double *sum)
{
    const struct bags *bags = &table->bags;
    uint32_t width = piece->piece->width, col_begin = piece->piece->col_begin;

    memset(sum, 0, width * sizeof(*sum));
    for (uint64_t i = bags->offsets[bag]; i < bags->offsets[bag + 1]; i++) {
        size_t row = bags->indices[i];
        const double *weights =
            table->weights + row * table->table->dim + col_begin;

        if (row >= piece->first && row < piece->first + piece->n)
            for (uint32_t j = 0; j < width; j++)
                sum[j] += weights[j];
    }
    for (uint32_t j = 0; j < width; j++) {
        float rounded = (float)sum[j];
        uint16_t half;

        if (piece->piece->group->precision == PRECISION_FP16) {
            values_store(&half, &rounded, 1, PRECISION_FP16);
            values_load(&rounded, &half, 1, PRECISION_FP16);
            sum[j] = rounded;
        }
        out[col_begin + j] += sum[j];
    }
}

static void pool_samples(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct pool_job *job = ctx;
    const struct reference_rows *rows = job->rows;

    (void)thread;
    for (size_t t = 0; t < rows->n_tables; t++) {
        const struct reference_table *table = &rows->tables[t];
        uint64_t n_outputs = (uint64_t)table->table->num_outputs;
        double *sum = mem_alloc(table->table->dim, sizeof(*sum));
        const uint64_t first = max_u64(job->first + begin, table->first_sample);
        const uint64_t last =
            min_u64(job->first + end, table->first_sample + table->n_samples);

        for (uint64_t bag = first * n_outputs; bag < last * n_outputs; bag++) {
            const uint64_t i = bag - job->first * n_outputs;
            double *out = job->pooled + i / n_outputs * rows->pooled +
                          table->pooled_begin +
                          i % n_outputs * table->table->dim;

            memset(out, 0, table->table->dim * sizeof(*out));
            for (size_t k = 0; k < table->n_pieces; k++)
                pool_piece(table, &table->pieces[k],
                           bag - table->first_sample * n_outputs, out, sum);
        }
        mem_free(sum);
    }
}

void reference_rows_pool(const struct reference_rows *rows, uint64_t first,
                         size_t n, double *pooled)
{
    struct pool_job job = {rows, first, pooled};

    pool_run_range(rows->placement->pool, n, SAMPLES_A_TASK, pool_samples,
                   &job);
}

/* --- gradients and updates --- */

/* Some columns of a table. */
struct sum_task {
    struct reference_table *table;
    uint32_t begin, end;
};
struct sum_job {
    const struct reference_rows *rows;
    const double *pooled_gradients;
    struct sum_task *tasks;
};

/* Sums up the gradients of some columns of all rows, in the order of bags. */
static void sum_columns(void *ctx, size_t number, unsigned thread)
{
    const struct sum_job *job = ctx;
    const struct sum_task *task = &job->tasks[number];
    struct reference_table *table = task->table;
    uint64_t n_outputs = (uint64_t)table->table->num_outputs;
    uint64_t n_bags = table->n_samples * n_outputs;
    uint32_t dim = table->table->dim;
    /* The gradients are those of the mean loss of a sharding group. A replica
     * learns from the mean over all groups. */
    const double scale =
        table->held.begin->replica ? 1.0 / job->rows->placement->n_copies : 1;

    (void)thread;
    for (size_t i = 0; i < table->n_rows; i++)
        memset(table->gradients + i * dim + task->begin, 0,
               (task->end - task->begin) * sizeof(double));
    for (uint64_t bag = 0; bag < n_bags; bag++) {
        const uint64_t sample = table->first_sample + bag / n_outputs;
        const double *gradient = job->pooled_gradients +
                                 sample * job->rows->pooled +
                                 table->pooled_begin + bag % n_outputs * dim;

        for (uint64_t i = table->bags.offsets[bag];
             i < table->bags.offsets[bag + 1]; i++) {
            double *sum =
                table->gradients + (size_t)table->bags.indices[i] * dim;

            for (uint32_t j = task->begin; j < task->end; j++)
                sum[j] += scale * gradient[j];
        }
    }
}

void reference_rows_sum(struct reference_rows *rows,
                        const double *pooled_gradients)
{
    struct sum_job job = {rows, pooled_gradients, NULL};
    size_t n = 0, cap = 0;

    for (size_t t = 0; t < rows->n_tables; t++) {
        struct reference_table *table = &rows->tables[t];
        uint32_t dim = table->table->dim;

        for (uint32_t begin = 0; begin < dim; begin += COLUMNS_A_TASK) {
            job.tasks = mem_room(job.tasks, n, &cap, sizeof(*job.tasks));
            job.tasks[n++] = (struct sum_task){
                table, begin, (uint32_t)min_u64(begin + COLUMNS_A_TASK, dim)};
        }
    }
    pool_run(rows->placement->pool, n, sum_columns, &job);
    mem_free(job.tasks);
}

void reference_rows_want(const struct reference_table *table, size_t i,
                         double *want, double *states)
{
    uint32_t dim = table->table->dim;

    for (size_t k = 0; k < table->n_pieces; k++) {
        const struct reference_piece *own = &table->pieces[k];
        uint32_t width = own->piece->width, begin = own->piece->col_begin;
        const double *weights = table->weights + i * dim + begin;
        const double *gradient = table->gradients + i * dim + begin;
        double rate = (double)STEP_RATE, squares = 0;

        if (i < own->first || i >= own->first + own->n)
            continue;
        if (own->states) {
            for (uint32_t j = 0; j < width; j++)
                squares += gradient[j] * gradient[j];
            states[k] = own->states[i - own->first] + squares / width;
            rate /= sqrt(states[k]) + (double)LOOKUP_ADAGRAD_EPS;
        }
        for (uint32_t j = 0; j < width; j++)
            want[begin + j] = weights[j] - rate * gradient[j];
    }
}

static void update_table(void *ctx, size_t task, unsigned thread)
{
    const struct reference_rows *rows = ctx;
    struct reference_table *table = &rows->tables[task];
    uint32_t dim = table->table->dim;
    double *want = mem_alloc(dim, sizeof(*want));
    double *states = mem_alloc(table->n_pieces, sizeof(*states));

    (void)thread;
    for (size_t i = 0; i < table->n_rows; i++) {
        reference_rows_want(table, i, want, states);
        memcpy(table->weights + i * dim, want, dim * sizeof(*want));
        for (size_t k = 0; k < table->n_pieces; k++) {
            struct reference_piece *piece = &table->pieces[k];

            if (piece->states && i >= piece->first &&
                i < piece->first + piece->n)
                piece->states[i - piece->first] = states[k];
        }
    }
    mem_free(want);
    mem_free(states);
}

void reference_rows_update(struct reference_rows *rows)
{
    pool_run(rows->placement->pool, rows->n_tables, update_table, rows);
}

/* Replaces n numbers of each of n_copies arrays by their means. */
static void average(double *const *numbers, uint32_t n_copies, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double sum = 0;

        for (uint32_t c = 0; c < n_copies; c++)
            sum += numbers[c][i];
        for (uint32_t c = 0; c < n_copies; c++)
            numbers[c][i] = sum / n_copies;
    }
}

static void average_copies(struct reference_table *copies, uint32_t n_copies)
{
    double **numbers = mem_alloc(n_copies, sizeof(*numbers));

    for (uint32_t c = 0; c < n_copies; c++)
        numbers[c] = copies[c].weights;
    average(numbers, n_copies, copies->n_rows * copies->table->dim);
    for (size_t k = 0; k < copies->n_pieces && copies->pieces[k].states; k++) {
        for (uint32_t c = 0; c < n_copies; c++)
            numbers[c] = copies[c].pieces[k].states;
        average(numbers, n_copies, copies->pieces[k].n);
    }
    mem_free(numbers);
}

void reference_rows_average(struct reference_rows *rows)
{
    const uint32_t n_copies = rows->placement->n_copies;

    for (size_t t = 0; t < rows->n_tables; t++)
        if (!rows->tables[t].copy && !rows->tables[t].held.begin->replica)
            average_copies(&rows->tables[t], n_copies);
}
