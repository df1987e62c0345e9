/* SPDX-License-Identifier: MIT */

/*
 * Implementation of the kernels in cpu_kernels.h. Each file cpu_kernels_ISA.c
 * includes this file once, after it has defined:
 *
 *     KERNELS       the name of its struct cpu_kernels
 *     LANES         floats in a vec: 4, 8 or 16
 *     MAX_VECS      number of vecs of sums that fit its registers, at most 16
 *     vec           a vector of LANES floats; operators work lane by lane
 *     vec_load(at, half), vec_store(at, value, half)
 *     vec_load_tail(..., n_lanes), vec_store_tail(..., n_lanes): load or store
 *                   only the first 1 .. LANES lanes, a multiple of 4; the other
 *                   lanes load as zero
 *
 * `half` means that memory holds fp16; registers always hold floats.
 */

#include "base/mem.h"
#include "device/cpu_kernels.h"
#include "device/stream_body.h"

#include <math.h>

/* Prefetch distance. AHEAD_BYTES: distance in bytes of rows. AHEAD_MIN,
 * AHEAD_MAX: limits of the distance in rows. */
#define AHEAD_BYTES 8192
#define AHEAD_MIN 4
#define AHEAD_MAX 64

/* Rows of an array that are selected by a list of ids. */
struct gather {
    const char *rows;
    size_t row_bytes;    /* bytes from one row to the next */
    const uint32_t *ids; /* the i-th row is ids[i * step] */
    size_t step;
    uint32_t dim;
    int half;
    size_t end; /* end of the list of ids; rows beyond it are not prefetched */
    size_t ahead; /* prefetch distance in rows */
};

static inline const char *gather_row(const struct gather *gather, size_t i)
{
    return gather->rows +
           (size_t)gather->ids[i * gather->step] * gather->row_bytes;
}

/* Functions that only prefetch must be inlined. gcc assumes that a call of such
 * a function has no effect, and drops the call. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Prefetches one row. Every row of a table gets the same number of prefetch
 * instructions, no matter where in a cache line it begins. A loop over the
 * cache lines that the row really touches would suffer from branch
 * mispredictions. Rows whose size is a multiple of a cache line are assumed to
 * be aligned to cache lines. */
ALWAYS_INLINE void prefetch_row(const char *row, size_t n_bytes)
{
    for (size_t pos = 0; pos < n_bytes; pos += CACHE_LINE)
        __builtin_prefetch(row + pos);
    if (n_bytes % CACHE_LINE)
        __builtin_prefetch(row + n_bytes - 1);
}

static size_t rows_ahead(size_t row_bytes)
{
    return min_u64(max_u64(AHEAD_BYTES / row_bytes, AHEAD_MIN), AHEAD_MAX);
}

/* Prefetches the first gather->ahead rows from `begin` on. The loops over rows
 * in this file expect that these rows are already on their way when they
 * start. */
ALWAYS_INLINE void prefetch_first(const struct gather *gather, size_t begin)
{
    size_t row_bytes = gather->dim * (gather->half ? 2u : 4u);

    for (size_t i = begin; i < begin + gather->ahead && i < gather->end; i++)
        prefetch_row(gather_row(gather, i), row_bytes);
}

/* Stores n_vecs vecs of sums. The last vec has only n_tail lanes. n_vecs is a
 * compile-time constant in every call. */
ALWAYS_INLINE void store_sums(char *out, const vec *sum, unsigned n_vecs,
                              unsigned n_tail, int half)
{
    size_t vec_bytes = LANES * (half ? 2 : 4);

    for (unsigned v = 0; v + 1 < n_vecs; v++)
        vec_store(out + v * vec_bytes, sum[v], half);
    vec_store_tail(out + (n_vecs - 1) * vec_bytes, sum[n_vecs - 1], half,
                   n_tail);
}

ALWAYS_INLINE void add_old_sums(const char *out, vec *sum, unsigned n_vecs,
                                unsigned n_tail)
{
    for (unsigned v = 0; v + 1 < n_vecs; v++)
        sum[v] = vec_load(out + v * LANES * 4, 0) + sum[v];
    sum[n_vecs - 1] = vec_load_tail(out + (n_vecs - 1) * LANES * 4, 0, n_tail) +
                      sum[n_vecs - 1];
}

/* Sums the rows of each bag, for n_vecs vecs of columns from column `column`
 * on, and stores the sums. n_vecs and half are compile-time constants in every
 * call, so that the sums stay in registers. */
ALWAYS_INLINE void sum_columns(const struct gather *gather,
                               const struct cpu_bags *bags, uint32_t column,
                               unsigned n_vecs, unsigned n_tail, int half)
{
    size_t column_bytes = half ? 2 : 4, vec_bytes = column_bytes * LANES;
    size_t row_bytes = gather->dim * column_bytes, ahead = gather->ahead;
    /* Only the pass over the first columns prefetches, and it prefetches whole
     * rows. */
    size_t fetch_end = column ? 0 : gather->end;
    char *out = bags->out + (size_t)column * (bags->out_half ? 2 : 4);
    vec sum[MAX_VECS];

    for (uint32_t b = 0; b < bags->n_bags; b++, out += bags->out_stride) {
        for (unsigned v = 0; v < n_vecs; v++)
            sum[v] = (vec){0};
        for (size_t i = bags->ends[b]; i < bags->ends[b + 1]; i++) {
            const char *pos = gather_row(gather, i) + column * column_bytes;

            if (i + ahead < fetch_end)
                prefetch_row(gather_row(gather, i + ahead), row_bytes);
            for (unsigned v = 0; v + 1 < n_vecs; v++)
                sum[v] += vec_load(pos + v * vec_bytes, half);
            pos += (n_vecs - 1) * vec_bytes;
            sum[n_vecs - 1] += vec_load_tail(pos, half, n_tail);
        }
        if (bags->is_added)
            add_old_sums(out, sum, n_vecs, n_tail);
        store_sums(out, sum, n_vecs, n_tail, bags->out_half);
    }
}

#define SUM_CASE(n)                                         \
    case n:                                                 \
        sum_columns(gather, bags, column, n, n_tail, half); \
        break;

ALWAYS_INLINE void sum_some_columns(const struct gather *gather,
                                    const struct cpu_bags *bags,
                                    uint32_t column, int half)
{
    unsigned n_vecs = (gather->dim - column + LANES - 1) / LANES;
    unsigned n_tail = gather->dim - column - (n_vecs - 1) * LANES;

    if (n_vecs > MAX_VECS) {
        n_vecs = MAX_VECS;
        n_tail = LANES;
    }
    switch (n_vecs) {
        SUM_CASE(1)
        SUM_CASE(2)
        SUM_CASE(3)
        SUM_CASE(4)
        SUM_CASE(5)
        SUM_CASE(6)
        SUM_CASE(7)
        SUM_CASE(8)
#if MAX_VECS > 8
        SUM_CASE(9)
        SUM_CASE(10)
        SUM_CASE(11)
        SUM_CASE(12)
        SUM_CASE(13)
        SUM_CASE(14)
        SUM_CASE(15)
        SUM_CASE(16)
#endif
    }
}

static void sum_all_columns(const struct gather *gather,
                            const struct cpu_bags *bags)
{
    if (gather->half)
        for (uint32_t c = 0; c < gather->dim; c += MAX_VECS * LANES)
            sum_some_columns(gather, bags, c, 1);
    else
        for (uint32_t c = 0; c < gather->dim; c += MAX_VECS * LANES)
            sum_some_columns(gather, bags, c, 0);
}

/* Sums the rows of each bag, for all columns, and stores the sums. Rows are
 * added to zero, in order. */
static void sum_bags(const struct gather *gather, const struct cpu_bags *bags)
{
    struct cpu_bags one;

    if (gather->dim <= MAX_VECS * LANES) {
        sum_all_columns(gather, bags);
        return;
    }
    /* Wide rows need several passes over the columns. Bags are summed one at a
     * time, so that the later passes find the rows of a bag in the cache. */
    one = *bags;
    for (one.n_bags = 1; one.ends < bags->ends + bags->n_bags; one.ends++) {
        sum_all_columns(gather, &one);
        one.out += one.out_stride;
    }
}

/* Stores the sum of the rows [begin, end) in out[dim]. The rows are added piece
 * by piece (LOOKUP_RUN_PIECE). The sum starts as zero, and the first piece is
 * added to it like the others. This changes no bits: the sum of a piece starts
 * with +0, too, and is therefore never -0. */
static __attribute__((noinline)) void
sum_pieces(const struct gather *gather, size_t begin, size_t end, float *out)
{
    uint64_t ends[LOOKUP_RUN_PART / LOOKUP_RUN_PIECE + 1] = {begin};
    struct cpu_bags bags = {
        .ends = ends, .n_bags = 1, .is_added = 1, .out = (char *)out};

    while ((begin += LOOKUP_RUN_PIECE) < end)
        ends[bags.n_bags++] = begin;
    ends[bags.n_bags] = end;
    memset(out, 0, gather->dim * sizeof *out);
    sum_bags(gather, &bags);
}

/* Does the same as sum_pieces for a single row. Most runs of uniformly drawn
 * ids have one row only. `dim` must be gather->dim. It is a parameter because
 * the callers for narrow rows pass a constant. */
ALWAYS_INLINE void take_row(const struct gather *gather, size_t i, float *out,
                            uint32_t dim, int half)
{
    const size_t vec_bytes = LANES * (half ? 2 : 4);
    const char *pos = gather_row(gather, i);
    const vec zero = {0};
    uint32_t c;

    if (i + gather->ahead < gather->end)
        prefetch_row(gather_row(gather, i + gather->ahead),
                     dim * (half ? 2u : 4u));
    for (c = 0; c + LANES <= dim; c += LANES, pos += vec_bytes)
        vec_store(out + c, zero + vec_load(pos, half), 0);
    if (c < dim)
        vec_store_tail(out + c, zero + vec_load_tail(pos, half, dim - c), 0,
                       dim - c);
}

/* Does the same as sum_pieces, but chooses a faster way if there is only one
 * row or only one piece, as in most parts of runs. */
ALWAYS_INLINE void sum_part(const struct gather *gather, size_t begin,
                            size_t end, float *out, uint32_t dim)
{
    const uint64_t ends[] = {begin, end};
    const struct cpu_bags bags = {
        .ends = ends, .n_bags = 1, .out = (char *)out};

    if (end == begin + 1 && gather->half)
        take_row(gather, begin, out, dim, 1);
    else if (end == begin + 1)
        take_row(gather, begin, out, dim, 0);
    else if (end - begin > LOOKUP_RUN_PIECE)
        sum_pieces(gather, begin, end, out);
    else
        sum_all_columns(gather, &bags);
}

static size_t weight_row_bytes(const struct lookup_table *table)
{
    return table->dim * (table->precision == PRECISION_FP16 ? 2u : 4u);
}

/* Returns the bytes of the unit of places. */
static size_t place_bytes(const struct lookup_table *table)
{
    return LOOKUP_PLACE_COLUMNS *
           (table->precision == PRECISION_FP16 ? 2u : 4u);
}

/* Returns the address of a row. is_placed: whether the table has places, a
 * compile-time constant in every call. */
ALWAYS_INLINE char *weight_row(const struct lookup_table *table, uint32_t row,
                               int is_placed)
{
    return (char *)table->d_weight +
           (is_placed ? table->d_places[row] * place_bytes(table)
                      : row * weight_row_bytes(table));
}

static void pool(const struct lookup_table *table, const uint32_t *indices,
                 size_t index_step, struct cpu_bags bags)
{
    const size_t row_bytes = weight_row_bytes(table);
    struct gather gather = {
        .rows = table->d_weight,
        .row_bytes = table->d_places ? place_bytes(table) : row_bytes,
        .ids = indices,
        .step = index_step,
        .dim = table->dim,
        .half = table->precision == PRECISION_FP16,
        .end = bags.ends[bags.n_bags],
    };

    gather.ahead = rows_ahead(row_bytes);
    prefetch_first(&gather, bags.ends[0]);
    sum_bags(&gather, &bags);
}

static struct gather gather_grads(const struct update_job *job)
{
    uint32_t dim = job->step.table->dim;

    return (struct gather){
        .rows = job->grad,
        .row_bytes = job->grad_stride,
        .ids = job->pairs + 1,
        .step = 2,
        .dim = dim,
        .half = job->is_half_grad,
        .end = job->n_pairs,
        .ahead = rows_ahead(dim * (job->is_half_grad ? 2u : 4u)),
    };
}

/* Returns the first pair of the run (pairs of the same row) that contains pair
 * i. Rows ascend, so a binary search finds it. */
static size_t run_begin(const uint32_t *pairs, size_t i)
{
    uint32_t row = PAIR_ROW(pairs, i);
    size_t begin = 0;

    while (begin < i) {
        size_t middle = begin + (i - begin) / 2;

        if (PAIR_ROW(pairs, middle) < row)
            begin = middle + 1;
        else
            i = middle;
    }
    return i;
}

/* Returns the end of the run (pairs of the same row) that contains pair i, but
 * at most `end`. */
static size_t run_end(const uint32_t *pairs, size_t i, size_t end)
{
    uint32_t row = PAIR_ROW(pairs, i);

    while (i < end && PAIR_ROW(pairs, i) == row)
        i++;
    return i;
}

static void sum_parts(const struct update_job *job, size_t begin, size_t end)
{
    const size_t part = LOOKUP_RUN_PART;
    const uint32_t *pairs = job->pairs;
    struct gather gather = gather_grads(job);

    for (size_t block = begin; block < end; block += part) {
        size_t start, stop;

        /* A second or later part of a run can start in this block only if the
         * run began before the block. */
        if (!block || PAIR_ROW(pairs, block) != PAIR_ROW(pairs, block - 1))
            continue;
        start = run_begin(pairs, block);
        start += (block - start + part - 1) / part * part;
        if (start >= job->n_pairs ||
            PAIR_ROW(pairs, start) != PAIR_ROW(pairs, block))
            continue;
        stop = run_end(pairs, start, min_u64(start + part, job->n_pairs));
        prefetch_first(&gather, start);
        sum_part(&gather, start, stop,
                 job->partials + start / part * gather.dim, gather.dim);
    }
}

ALWAYS_INLINE void fold(float *sums, unsigned half)
{
    for (unsigned j = 0; j < half; j++)
        sums[j] += sums[j + half];
}

/* Returns the mean of g^2 over the elements g of grad[dim]. The square of
 * column c goes into sum c mod 16. Then the sixteen sums are added pairwise, as
 * lookup.h describes. */
ALWAYS_INLINE float mean_square(const float *grad, uint32_t dim)
{
    float sums[16];
    vec part[16 / LANES] = {{0}};

    for (uint32_t c = 0; c < dim; c += 16)
        for (uint32_t j = 0; j < 16 / LANES && c + j * LANES < dim; j++) {
            const char *pos = (const char *)(grad + c + j * LANES);
            uint32_t n_lanes = dim - c - j * LANES;
            vec g = n_lanes >= LANES ? vec_load(pos, 0)
                                     : vec_load_tail(pos, 0, n_lanes);

            part[j] += g * g;
        }
    for (unsigned j = 0; j < 16 / LANES; j++)
        vec_store(sums + j * LANES, part[j], 0);
    fold(sums, 8);
    fold(sums, 4);
    fold(sums, 2);
    fold(sums, 1);
    return sums[0] / (float)dim;
}

ALWAYS_INLINE void step_row(char *row, const float *grad, uint32_t dim,
                            float scale, int half)
{
    size_t vec_bytes = LANES * (half ? 2 : 4);
    uint32_t column;
    vec w;

    for (column = 0; column + LANES <= dim; column += LANES) {
        w = vec_load(row, half) -
            vec_load((const char *)(grad + column), 0) * scale;
        vec_store(row, w, half);
        row += vec_bytes;
    }
    if (column < dim) {
        w = vec_load_tail(row, half, dim - column) -
            vec_load_tail((const char *)(grad + column), 0, dim - column) *
                scale;
        vec_store_tail(row, w, half, dim - column);
    }
}

ALWAYS_INLINE void update_row(const struct row_step *step, uint32_t row,
                              const float *grad, uint32_t dim, int is_placed)
{
    const struct lookup_table *table = step->table;
    char *weight = weight_row(table, row, is_placed);
    float scale = step->learning_rate;

    if (step->optimizer == OPTIMIZER_ROWWISE_ADAGRAD) {
        table->d_state[row] += mean_square(grad, dim);
        scale /= sqrtf(table->d_state[row]) + LOOKUP_ADAGRAD_EPS;
    }
    step_row(weight, grad, dim, scale, table->precision == PRECISION_FP16);
}

/* Prefetches the weights (and state) of the row of pair i, if pair i is the
 * first pair of its run. */
ALWAYS_INLINE void prefetch_weight(const struct update_job *job, size_t i,
                                   int is_placed)
{
    const struct lookup_table *table = job->step.table;
    uint32_t row = PAIR_ROW(job->pairs, i);

    if (row == PAIR_ROW(job->pairs, i - 1))
        return;
    prefetch_row(weight_row(table, row, is_placed), weight_row_bytes(table));
    if (table->d_state)
        __builtin_prefetch(&table->d_state[row]);
}

ALWAYS_INLINE void update_runs(const struct update_job *job, size_t begin,
                               size_t end, float *sum, uint32_t dim,
                               int is_placed)
{
    const size_t part = LOOKUP_RUN_PART, n_pairs = job->n_pairs;
    const uint32_t *pairs = job->pairs;
    struct gather gather = gather_grads(job);
    size_t i = begin, stop;

    /* A run that started before this block is updated by the task of an earlier
     * block. */
    if (begin && PAIR_ROW(pairs, begin) == PAIR_ROW(pairs, begin - 1))
        i = run_end(pairs, begin, end);
    if (i < end)
        prefetch_first(&gather, i);
    for (; i < end; i = stop) {
        uint32_t row = PAIR_ROW(pairs, i);

        stop = run_end(pairs, i, min_u64(i + part, n_pairs));
        for (size_t k = i; k < stop; k++)
            if (k + gather.ahead < n_pairs)
                prefetch_weight(job, k + gather.ahead, is_placed);
        sum_part(&gather, i, stop, sum, dim);
        for (size_t k = i + part; k < n_pairs && PAIR_ROW(pairs, k) == row;
             k += part)
            for (uint32_t c = 0; c < dim; c++)
                sum[c] += job->partials[k / part * dim + c];
        update_row(&job->step, row, sum, dim, is_placed);
        if (stop < end && PAIR_ROW(pairs, stop) == row)
            stop = run_end(pairs, stop, end);
    }
}

/* Updates the runs that start in [begin, end). dim is a compile-time constant
 * for narrow rows, because loops over a variable number of columns cost a fifth
 * of their time. */
static void update(const struct update_job *job, size_t begin, size_t end,
                   float *sum)
{
    const uint32_t dim = job->step.table->dim;

    if (job->step.table->d_places)
        update_runs(job, begin, end, sum, dim, 1);
    else if (dim == 4)
        update_runs(job, begin, end, sum, 4, 0);
    else if (dim == 8)
        update_runs(job, begin, end, sum, 8, 0);
    else if (dim == 12)
        update_runs(job, begin, end, sum, 12, 0);
    else if (dim == 16)
        update_runs(job, begin, end, sum, 16, 0);
    else
        update_runs(job, begin, end, sum, dim, 0);
}

/* Returns 1 if any element of grad[dim] is neither +0 nor -0. All elements are
 * read, because a loop with an early exit would not be vectorized. */
static int is_used(const float *grad, uint32_t dim)
{
    uint32_t bits = 0;

    for (uint32_t c = 0; c < dim; c++) {
        uint32_t word;

        memcpy(&word, grad + c, sizeof word);
        bits |= word << 1;
    }
    return bits != 0;
}

static void apply(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct dense_job *job = ctx;
    uint32_t dim = job->step.table->dim;

    (void)thread;
    for (uint64_t row = begin; row < end; row++) {
        float *grad = job->dense + row * dim;

        if (!is_used(grad, dim))
            continue;
        update_row(&job->step, (uint32_t)row, grad, dim, 0);
        memset(grad, 0, dim * sizeof *grad);
    }
}

const struct cpu_kernels KERNELS = {pool, sum_parts, update, apply,
                                    stream_rows};
