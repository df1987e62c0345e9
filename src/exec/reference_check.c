/* SPDX-License-Identifier: MIT */
#include "exec/reference_check.h"

#include "core/dense.h"
#include "exec/reference_gather.h"
#include "exec/reference_net.h"
#include "exec/rows.h"
#include "exec/values.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define UPDATE_LIMIT 1e-6
/* Limit of the error of an average: it has a few roundings. */
#define AVERAGE_LIMIT 3e-7
/* Limit of the error of a loss in stepwise mode. */
#define STEP_LOSS_LIMIT 1e-4
#define ROWS_A_TASK 64

static bool has_fp16(const struct placement *placement)
{
    for (size_t i = 0; i < placement->n_pieces; i++) {
        const struct piece *piece = &placement->pieces[i];

        if (piece->table->precision == PRECISION_FP16 ||
            (piece->group && piece->group->precision == PRECISION_FP16))
            return true;
    }
    return false;
}

void reference_check_init(struct reference_check *check,
                          const struct placement *placement, bool is_free)
{
    *check = (struct reference_check){
        .limits = {[REFERENCE_LOSSES] =
                       is_free ? VERIFY_FP32_LIMIT : STEP_LOSS_LIMIT,
                   [REFERENCE_GRADIENTS] = VERIFY_FP32_LIMIT,
                   [REFERENCE_UPDATES] = UPDATE_LIMIT,
                   [REFERENCE_AVERAGES] = AVERAGE_LIMIT,
                   [REFERENCE_WEIGHTS] = VERIFY_FP32_LIMIT}};
    if (has_fp16(placement))
        for (unsigned i = 0; i < N_REFERENCE_WHAT; i++)
            check->limits[i] = VERIFY_FP16_LIMIT;
}

void reference_record(struct reference_check *check, enum reference_what what,
                      const struct tally *tally, const char *format, ...)
{
    struct train_findings *found = &check->found;
    char subject[200];
    va_list args;

    tally_add(&found->tallies[what], tally);
    if (tally->error <= check->limits[what] || found->failure[0])
        return;
    va_start(args, format);
    vsnprintf(subject, sizeof(subject), format, args);
    va_end(args);
    snprintf(found->failure, sizeof(found->failure),
             "step %u: %s differs from %s by %.2g, more than %g", check->step,
             subject,
             what == REFERENCE_UPDATES ? "the rule of its optimizer"
                                       : "the unsharded reference",
             tally->error, check->limits[what]);
}

void reference_check_loss(struct reference_check *check, double want,
                          double got)
{
    double error = fabs(got - want) / fabs(want);
    struct tally tally = {isnan(error) ? INFINITY : error, 1};

    reference_record(check, REFERENCE_LOSSES, &tally, "the loss");
}

/* --- dense part --- */

/* Prints the name of the weights or the bias of a product. */
static void name_part(char *name, size_t n, const struct dense *dense,
                      uint32_t p, bool is_bias)
{
    const char *part = is_bias ? "bias" : "weights";

    if (p < dense->cross_begin)
        snprintf(name, n, "bottom layer %" PRIu32 "'s %s", p + 1, part);
    else if (p >= dense->top_begin)
        snprintf(name, n, "top layer %" PRIu32 "'s %s",
                 p - dense->top_begin + 1, part);
    else
        snprintf(name, n, "cross layer %" PRIu32 "'s %s%s",
                 (p - dense->cross_begin) / 2 + 1,
                 is_bias                        ? ""
                 : (p - dense->cross_begin) % 2 ? "second "
                                                : "first ",
                 part);
}

/* Compares the rows of a matrix. `scale` is the least scale of a row. */
static void check_part(struct reference_check *check, enum reference_what what,
                       const double *want, const float *got, uint64_t n_rows,
                       uint32_t width, double scale, const char *noun,
                       const char *name)
{
    struct tally tally = {0};

    for (uint64_t i = 0; i < n_rows; i++)
        tally_row(&tally, want + i * width, got + i * width, width,
                  fmax(scale, tally_scale(want + i * width, width)));
    reference_record(check, what, &tally, "the %s of %s", noun, name);
}

void reference_check_dense(struct reference_check *check,
                           enum reference_what what, const struct dense *dense,
                           const double *want, const float *got,
                           const double *scales, const char *noun)
{
    char name[80];

    for (uint32_t p = 0; p < dense->n_products; p++) {
        const struct dense_product *product = &dense->products[p];
        uint64_t n = product->in * product->out;
        double initial = 1 / sqrt((double)product->in);

        name_part(name, sizeof(name), dense, p, false);
        check_part(check, what, want, got, product->out, (uint32_t)product->in,
                   scales ? scales[2 * p] : initial, noun, name);
        want += n;
        got += n;
        if (!product->has_bias)
            continue;
        name_part(name, sizeof(name), dense, p, true);
        check_part(check, what, want, got, 1, (uint32_t)product->out,
                   scales ? scales[2 * p + 1] : initial, noun, name);
        want += product->out;
        got += product->out;
    }
}

void reference_check_pooled(struct reference_check *check,
                            const struct reference_rows *rows, size_t n,
                            const double *want, const float *got)
{
    double *scales = mem_alloc(n, sizeof(*scales));

    for (size_t i = 0; i < n; i++)
        scales[i] =
            tally_scale(want + i * rows->pooled, (uint32_t)rows->pooled);
    for (size_t t = 0; t < rows->n_tables; t++) {
        const struct reference_table *table = &rows->tables[t];
        uint32_t width =
            (uint32_t)table->table->num_outputs * table->table->dim;
        struct tally tally = {0};

        if (table->copy)
            continue; /* the first copy stands for all samples */

        for (size_t i = 0; i < n; i++) {
            uint64_t pos = i * rows->pooled + table->pooled_begin;

            tally_row(&tally, want + pos, got + pos, width, scales[i]);
        }
        reference_record(check, REFERENCE_GRADIENTS, &tally,
                         "the gradient of the outputs of table '%s'",
                         table->table->name);
    }
    mem_free(scales);
}

/* --- rows of tables --- */

/* Executed weights and states of the touched rows of one piece. */
struct executed_rows {
    const struct reference_table *table;
    const struct piece *piece;
    enum reference_what what;
    size_t first, n; /* range of the table's touched rows */
    size_t k;        /* index of the piece in table->pieces */
    float *weights;  /* [n][width] */
    float *states;   /* [n]; not used with SGD */
    /* [n_threads] comparison results of each thread */
    struct tally *tallies, *state_tallies;
};

static void compare_rows(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct executed_rows *own = ctx;
    const struct reference_table *table = own->table;
    uint32_t dim = table->table->dim, width = own->piece->width;
    double *want = mem_alloc(dim, sizeof(*want));
    double *states = mem_alloc(table->n_pieces, sizeof(*states));

    for (uint64_t i = begin; i < end; i++) {
        if (own->what == REFERENCE_UPDATES) {
            reference_rows_want(table, own->first + i, want, states);
        } else {
            memcpy(want, table->weights + (own->first + i) * dim,
                   dim * sizeof(*want));
            if (own->piece->d_state)
                states[own->k] = table->pieces[own->k].states[i];
        }
        tally_row(&own->tallies[thread], want + own->piece->col_begin,
                  own->weights + i * width, width, tally_scale(want, dim));
        if (own->piece->d_state)
            tally_row(&own->state_tallies[thread], &states[own->k],
                      own->states + i, 1, fabs(states[own->k]));
    }
    mem_free(want);
    mem_free(states);
}

/* Downloads the touched rows of a loaded piece and compares them. */
static int check_piece(const struct placement *placement,
                       struct executed_rows *own, struct err *err)
{
    const struct piece *piece = own->piece;
    enum precision precision = piece->table->precision;
    size_t n = own->n * piece->width;
    char *stored = mem_grow(NULL, n, precision_bytes(precision));
    int rc = rows_download(placement, piece, own->table->rows + own->first,
                           own->n, stored, own->states, err);

    if (!rc) {
        values_load(own->weights, stored, n, precision);
        pool_run_range(placement->pool, own->n, ROWS_A_TASK, compare_rows, own);
    }
    mem_free(stored);
    return rc;
}

/* Executed rows of all pieces of the reference, as one block for each rank. */
struct executed_blocks {
    float **blocks;  /* [n_ranks]: weights, then states of each piece */
    size_t *n_bytes; /* [n_ranks] */
    struct arena arena;
};

static size_t piece_numbers(const struct reference_piece *piece)
{
    return piece->n * (piece->piece->width + (piece->states != NULL));
}

static void open_blocks(struct executed_blocks *blocks,
                        const struct reference_rows *rows)
{
    uint32_t n_ranks = rows->placement->n_ranks;

    blocks->blocks = ARENA_NEW(&blocks->arena, float *, n_ranks);
    blocks->n_bytes = ARENA_NEW(&blocks->arena, size_t, n_ranks);
    for (size_t t = 0; t < rows->n_tables; t++)
        for (size_t k = 0; k < rows->tables[t].n_pieces; k++) {
            const struct reference_piece *piece = &rows->tables[t].pieces[k];

            blocks->n_bytes[piece->piece->rank] +=
                piece_numbers(piece) * sizeof(float);
        }
    for (uint32_t r = 0; r < n_ranks; r++)
        blocks->blocks[r] = arena_alloc(&blocks->arena, blocks->n_bytes[r], 1);
}

/* Compares the loaded pieces of a table. next[n_ranks] points to the place of
 * the table's pieces in the blocks. Moves it behind them. */
static int check_table(struct reference_check *check, enum reference_what what,
                       const struct reference_rows *rows,
                       const struct reference_table *table, float **next,
                       struct err *err)
{
    const struct placement *placement = rows->placement;
    unsigned n_threads = pool_size(placement->pool);
    struct tally *tallies = mem_alloc(2 * (size_t)n_threads, sizeof(*tallies));
    struct tally sums[2] = {{0}};
    int rc = 0;

    for (struct piece *piece = table->held.begin;
         !rc && piece < table->held.end; piece++) {
        size_t k = (size_t)(piece - table->held.begin);
        struct executed_rows own = {.table = table,
                                    .piece = piece,
                                    .what = what,
                                    .k = piece->replica ? 0 : k,
                                    .tallies = tallies,
                                    .state_tallies = tallies + n_threads};
        /* Replicas after the first have no place in the blocks. */
        float *copy = NULL;

        own.n = rows_of_piece(piece, table->rows, table->n_rows, &own.first);
        if (k < table->n_pieces) {
            own.weights = next[piece->rank];
            next[piece->rank] += piece_numbers(&table->pieces[k]);
        } else {
            own.weights = copy = mem_grow(
                NULL, own.n * (piece->width + (size_t)1), sizeof(*copy));
        }
        own.states = own.weights + own.n * piece->width;
        if (piece->d_weight)
            rc = check_piece(placement, &own, err);
        mem_free(copy);
    }
    for (unsigned i = 0; i < 2 * n_threads; i++)
        tally_add(&sums[i / n_threads], &tallies[i]);
    mem_free(tallies);
    reference_record(check, what, &sums[0], "the %s of table '%s'",
                     what == REFERENCE_UPDATES    ? "update"
                     : what == REFERENCE_AVERAGES ? "average"
                                                  : "final value",
                     table->table->name);
    reference_record(check, what, &sums[1], "the optimizer state of table '%s'",
                     table->table->name);
    return rc;
}

/* Replaces the weights and states of the reference by the executed ones. */
static void take_blocks(const struct executed_blocks *blocks,
                        struct reference_rows *rows)
{
    for (size_t t = 0; t < rows->n_tables; t++)
        for (size_t k = 0; k < rows->tables[t].n_pieces; k++) {
            const struct reference_table *table = &rows->tables[t];
            const struct reference_piece *own = &table->pieces[k];
            uint32_t width = own->piece->width;
            float **from = &blocks->blocks[own->piece->rank];

            for (size_t i = 0; i < own->n; i++) {
                double *to = table->weights +
                             (own->first + i) * table->table->dim +
                             own->piece->col_begin;

                for (uint32_t j = 0; j < width; j++)
                    to[j] = *(*from)++;
            }
            for (size_t i = 0; own->states && i < own->n; i++)
                own->states[i] = *(*from)++;
        }
}

int reference_check_rows(struct reference_check *check,
                         enum reference_what what, struct reference_rows *rows,
                         struct err *err)
{
    const struct placement *placement = rows->placement;
    struct executed_blocks blocks = {0};
    float **next;
    int rc = -1;

    open_blocks(&blocks, rows);
    next = ARENA_NEW(&blocks.arena, float *, placement->n_ranks);
    memcpy(next, blocks.blocks, placement->n_ranks * sizeof(*next));
    for (size_t t = 0; t < rows->n_tables; t++)
        if (check_table(check, what, rows, &rows->tables[t], next, err))
            goto out;
    if (what != REFERENCE_WEIGHTS) {
        if (reference_gather(placement->comm->world,
                             (char *const *)(void *)blocks.blocks,
                             blocks.n_bytes, err))
            goto out;
        take_blocks(&blocks, rows);
    }
    rc = 0;
out:
    arena_release(&blocks.arena);
    return rc;
}
