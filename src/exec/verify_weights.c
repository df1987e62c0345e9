/* SPDX-License-Identifier: MIT */
#include "exec/verify_weights.h"

#include "base/hash.h"
#include "base/radix_sort.h"
#include "exec/rank_work.h"
#include "exec/rows.h"
#include "exec/values.h"

#include <string.h>

/* Bytes of weights that are in host memory at a time, and number of rows per
 * task. */
#define WINDOW_BYTES ((size_t)32 << 20)
#define ROWS_A_TASK 64

/* A loaded piece, with those of its touched rows that are in the current
 * window. */
struct held {
    const struct piece *piece;
    /* range of rows within the window that the piece holds */
    size_t first, n;
    /* [n][width] downloaded weights, in the table's precision */
    char *weights;
    float *states;      /* [n]; used only if the piece has optimizer states */
    uint64_t *row_hash; /* [n] hash of each row */
    uint64_t hash;      /* sum of row_hash over all rows compared so far */
};

/* Comparison of the touched rows of one table. All memory of the struct is in
 * one arena. */
struct weight_job {
    const struct placement *placement;
    const struct table *table;
    enum verify_what what;
    struct held *held; /* [n_held] loaded pieces of the table */
    size_t n_held;
    /* [n_copies + 1]: number of the first output of each copy of the tables */
    uint64_t *copy_first;
    /* lookups of the table, sorted, as row << 32 | number of the output. A
     * sequence has one output per lookup, other tables one per bag. */
    uint64_t *uses;
    uint64_t *rows; /* [n_rows] touched rows, ascending */
    /* [n_rows + 1]: index in `uses` of the first use of each touched row */
    uint64_t *first;
    uint64_t n_rows;
    uint64_t begin, end;   /* current window, as a range of touched rows */
    struct tally *tallies; /* [n_threads] comparison results of each thread */
};

/* Scratch memory of one thread, for one row of the whole table. */
struct row_scratch {
    /* [dim] gradient and updated weights of the row in one copy */
    double *gradient, *updated;
    double *want; /* [dim] wanted weights of the row */
    /* [dim] values computed for the reference, or downloaded values */
    float *values;
};

/* Adds up the gradients of a row over all outputs of a copy that use the row.
 * If a bag uses the row several times, its gradient counts each time. A
 * replicated table gets the gradients of all copies. */
static void sum_gradients(const struct weight_job *job, uint64_t i,
                          uint32_t copy, struct row_scratch *scratch)
{
    /* Any loaded piece of the table gives the same values, because all have the
     * same seed and precision. */
    const struct piece *piece = job->held[0].piece;
    const uint64_t *copy_first = job->copy_first + copy;
    enum precision precision = piece->group->precision;
    uint32_t dim = job->table->dim;

    memset(scratch->gradient, 0, dim * sizeof(double));
    for (uint64_t use = job->first[i]; use < job->first[i + 1]; use++) {
        const uint32_t output = (uint32_t)job->uses[use];

        if (!piece->replica &&
            (output < copy_first[0] || output >= copy_first[1]))
            continue;
        values_gradient(scratch->values, piece->table_seed, output, 0, dim,
                        precision);
        for (uint32_t j = 0; j < dim; j++)
            scratch->gradient[j] += scratch->values[j];
    }
}

/* Applies the update rule of the optimizer to the columns of a row that the
 * piece holds. */
static void update_piece(const struct weight_job *job,
                         const struct piece *piece, uint64_t row,
                         struct row_scratch *scratch)
{
    const double *gradient = scratch->gradient + piece->col_begin;
    double *updated = scratch->updated + piece->col_begin;
    double rate = (double)STEP_RATE, squares = 0, state;

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
        updated[j] = scratch->values[j] - rate * gradient[j];
}

static void got_piece(const struct weight_job *job, struct held *held,
                      uint64_t pos, uint64_t row, float *got)
{
    uint32_t width = held->piece->width;
    size_t row_bytes = width * precision_bytes(job->table->precision);
    const char *weights = held->weights + pos * row_bytes;
    uint64_t hash = hash_bytes(weights, row_bytes, row);

    if (held->piece->d_state)
        hash = hash_bytes(&held->states[pos], sizeof(float), hash);
    held->row_hash[pos] = hash;
    values_load(got, weights, width, job->table->precision);
}

/* Updates a row in one copy of the table. Pieces that are not loaded here are
 * updated, too, because they count for the scale of the row. */
static void update_row(const struct weight_job *job, uint64_t i, uint32_t copy,
                       struct row_scratch *scratch)
{
    const struct piece_range pieces = placement_copy_pieces(
        job->placement, job->held[0].piece->table_idx, copy);

    sum_gradients(job, i, copy, scratch);
    for (const struct piece *piece = pieces.begin; piece < pieces.end;
         piece++) {
        if (piece_has_row(piece, job->rows[i]))
            update_piece(job, piece, job->rows[i], scratch);
        if (piece->replica)
            break; /* all replicas are equal, so one is enough */
    }
}

/* Computes the wanted weights of a row in a copy of the table: after the
 * update, or after the sync, which averages all copies. */
static void want_row(const struct weight_job *job, uint64_t i, uint32_t copy,
                     struct row_scratch *scratch)
{
    const bool is_averaged = job->what == VERIFY_AVERAGES;
    const uint32_t first = is_averaged ? 0 : copy;
    const uint32_t end = is_averaged ? job->placement->n_copies : copy + 1;

    memset(scratch->want, 0, job->table->dim * sizeof(double));
    for (uint32_t c = first; c < end; c++) {
        update_row(job, i, c, scratch);
        for (uint32_t j = 0; j < job->table->dim; j++)
            scratch->want[j] += scratch->updated[j] / (end - first);
    }
}

/* Compares a row with the reference in the loaded pieces that hold it. */
static void check_row(const struct weight_job *job, uint64_t i,
                      struct row_scratch *scratch, struct tally *tally)
{
    uint64_t row = job->rows[i];
    const struct piece *last = NULL; /* the last compared piece */
    double scale = 0;

    for (size_t k = 0; k < job->n_held; k++) {
        struct held *held = &job->held[k];
        const struct piece *piece = held->piece;

        if (!piece_has_row(piece, row))
            continue;
        if (!last ||
            (last->copy != piece->copy && job->what != VERIFY_AVERAGES)) {
            want_row(job, i, piece->copy, scratch);
            scale = tally_scale(scratch->want, job->table->dim);
        }
        last = piece;
        got_piece(job, held, i - job->begin - held->first, row,
                  scratch->values);
        tally_row(tally, scratch->want + piece->col_begin, scratch->values,
                  piece->width, scale);
    }
}

static void check_rows(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct weight_job *job = ctx;
    uint32_t dim = job->table->dim;
    struct row_scratch scratch = {
        .gradient = mem_alloc(dim, sizeof(double)),
        .updated = mem_alloc(dim, sizeof(double)),
        .want = mem_alloc(dim, sizeof(double)),
        .values = mem_alloc(dim, sizeof(float)),
    };

    for (uint64_t i = job->begin + begin; i < job->begin + end; i++)
        check_row(job, i, &scratch, &job->tallies[thread]);
    mem_free(scratch.gradient);
    mem_free(scratch.updated);
    mem_free(scratch.want);
    mem_free(scratch.values);
}

/* Downloads the weights and optimizer states of a piece for the rows that are
 * in the window. */
static int download_piece(struct weight_job *job, struct held *held,
                          struct err *err)
{
    const uint64_t *rows = job->rows + job->begin;

    held->n = rows_of_piece(held->piece, rows, (size_t)(job->end - job->begin),
                            &held->first);
    return rows_download(job->placement, held->piece, rows + held->first,
                         held->n, held->weights, held->states, err);
}

/* Lists the lookups of the table in the step, as pairs (row, output) sorted by
 * row. */
static void list_uses(struct weight_job *job, size_t table_idx,
                      struct arena *arena)
{
    const struct placement *placement = job->placement;
    const struct rank_range all = {0, placement->n_ranks};
    uint64_t n_bags = placement->batch * (uint64_t)job->table->num_outputs;
    const bool is_sequence = job->table->output == OUTPUT_SEQUENCE;
    struct radix_sort sort = {
        .key_bytes = sizeof(uint64_t),
        .mask = radix_mask(placement->table_rows[table_idx] - 1) << 32};
    uint64_t n, *uses;
    struct bags bags;

    job->copy_first =
        ARENA_NEW(arena, uint64_t, placement->n_copies + (size_t)1);
    batches_draw_table(&bags, placement, table_idx, all, STEP_BATCH, false);
    n = bags.offsets[n_bags];
    sort.n = n;
    sort.keys[0] = uses = ARENA_NEW(arena, uint64_t, n);
    sort.keys[1] = ARENA_NEW(arena, uint64_t, n);
    for (uint64_t bag = 0; bag < n_bags; bag++)
        for (uint64_t i = bags.offsets[bag]; i < bags.offsets[bag + 1]; i++)
            uses[i] = (uint64_t)bags.indices[i] << 32 | (is_sequence ? i : bag);
    for (uint32_t c = 0; c <= placement->n_copies; c++) {
        const uint64_t bag = n_bags / placement->n_copies * c;

        job->copy_first[c] = is_sequence ? bags.offsets[bag] : bag;
    }
    bags_release(&bags);
    job->uses = sort.keys[radix_sort(&sort)];
    job->rows = ARENA_NEW(arena, uint64_t, n);
    job->first = ARENA_NEW(arena, uint64_t, n + 1);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t row = job->uses[i] >> 32;

        if (i && row == job->rows[job->n_rows - 1])
            continue;
        job->rows[job->n_rows] = row;
        job->first[job->n_rows++] = i;
    }
    job->first[job->n_rows] = n;
}

/* Compares all touched rows of the table, window by window. The hashes of the
 * rows are added up, so their sum does not depend on the order of the rows. */
static int check_windows(struct weight_job *job, struct arena *arena,
                         struct err *err)
{
    size_t row_bytes = 1, n;

    for (size_t k = 0; k < job->n_held; k++)
        row_bytes += job->held[k].piece->width * sizeof(float);
    n = min_u64(WINDOW_BYTES / row_bytes + 1, job->n_rows);
    for (size_t k = 0; k < job->n_held; k++) {
        struct held *held = &job->held[k];

        held->weights = arena_alloc(arena, n * held->piece->width,
                                    precision_bytes(job->table->precision));
        held->states = ARENA_NEW(arena, float, n);
        held->row_hash = ARENA_NEW(arena, uint64_t, n);
    }
    for (job->begin = 0; job->begin < job->n_rows; job->begin = job->end) {
        job->end = min_u64(job->begin + n, job->n_rows);
        for (size_t k = 0; k < job->n_held; k++)
            if (download_piece(job, &job->held[k], err))
                return -1;
        pool_run_range(job->placement->pool, job->end - job->begin, ROWS_A_TASK,
                       check_rows, job);
        for (size_t k = 0; k < job->n_held; k++)
            for (size_t i = 0; i < job->held[k].n; i++)
                job->held[k].hash += job->held[k].row_hash[i];
    }
    return 0;
}

static int check_table(struct verify *verify, enum verify_what what,
                       const struct placement *placement, size_t table_idx,
                       struct err *err)
{
    const struct table *table = &placement->plan->problem.tables[table_idx];
    struct piece **pieces = placement->table_pieces + table_idx;
    unsigned n_threads = pool_size(placement->pool);
    struct weight_job job = {
        .placement = placement, .table = table, .what = what};
    struct arena arena = {0};
    int rc = 0;

    job.held = ARENA_NEW(&arena, struct held, pieces[1] - pieces[0]);
    for (const struct piece *piece = pieces[0]; piece < pieces[1]; piece++)
        if (piece->d_weight)
            job.held[job.n_held++].piece = piece;
    if (!job.n_held)
        goto out;
    list_uses(&job, table_idx, &arena);
    job.tallies = ARENA_NEW(&arena, struct tally, n_threads);
    rc = check_windows(&job, &arena, err);
    if (rc)
        goto out;
    verify_add(verify, table, what, job.tallies, n_threads);
    for (size_t k = 0; k < job.n_held; k++) {
        uint64_t *hash = &verify->ranks[job.held[k].piece->rank].hashes[what];

        *hash = hash_bytes(&job.held[k].hash, sizeof(uint64_t), *hash);
    }
out:
    arena_release(&arena);
    return rc;
}

int verify_weights(struct verify *verify, enum verify_what what,
                   const struct placement *placement, struct err *err)
{
    const struct problem *problem = &placement->plan->problem;

    for (size_t t = 0; t < problem->n_tables; t++)
        if (problem->tables[t].num_outputs > 0 &&
            check_table(verify, what, placement, t, err))
            return -1;
    return 0;
}
