/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/lookup_ref.h"

#include "base/mem.h"
#include "device/fp16.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reference implementation of lookup.h: plain, slow and obviously correct. */

static double load(const struct lookup_table *table, uint64_t at)
{
    if (table->precision == PRECISION_FP16)
        return (double)fp16_to_float(((const uint16_t *)table->d_weight)[at]);
    return (double)((const float *)table->d_weight)[at];
}

static void store(const struct lookup_table *table, uint64_t at, double value)
{
    if (table->precision == PRECISION_FP16)
        ((uint16_t *)table->d_weight)[at] = fp16_from_float((float)value);
    else
        ((float *)table->d_weight)[at] = (float)value;
}

static uint64_t row_of(const struct lookup_batch *lookups, uint64_t i)
{
    if (lookups->wide)
        return ((const uint64_t *)lookups->d_indices)[i];
    return ((const uint32_t *)lookups->d_indices)[i];
}

static uint64_t out_columns(const struct lookup_table *tables,
                            uint32_t n_tables)
{
    uint64_t n_columns = 0;

    for (uint32_t t = 0; t < n_tables; t++)
        n_columns += tables[t].dim;
    return n_columns;
}

void lookup_forward_ref(const struct lookup_table *tables, uint32_t n_tables,
                        uint32_t batch, const struct lookup_batch *lookups,
                        double *out)
{
    uint64_t n_columns = out_columns(tables, n_tables);

    memset(out, 0, batch * n_columns * sizeof *out);
    for (uint32_t t = 0; t < n_tables; t++)
        for (uint32_t b = 0; b < batch; b++) {
            const uint64_t *bag = lookups->d_offsets + (uint64_t)t * batch + b;
            double *sum = out + b * n_columns + tables[t].out_begin;

            for (uint64_t i = bag[0]; i < bag[1]; i++)
                for (uint32_t c = 0; c < tables[t].dim; c++)
                    sum[c] += load(&tables[t],
                                   row_of(lookups, i) * tables[t].dim + c);
        }
}

static void update_row(const struct lookup_table *table, uint64_t row,
                       const double *grad, double learning_rate,
                       enum optimizer optimizer)
{
    double scale = learning_rate;

    if (optimizer == OPTIMIZER_ROWWISE_ADAGRAD) {
        double squares = 0, state;

        for (uint32_t c = 0; c < table->dim; c++)
            squares += grad[c] * grad[c];
        state = (double)table->d_state[row] + squares / table->dim;
        table->d_state[row] = (float)state;
        scale /= sqrt(state) + (double)LOOKUP_ADAGRAD_EPS;
    }
    for (uint32_t c = 0; c < table->dim; c++) {
        uint64_t at = row * table->dim + c;

        store(table, at, load(table, at) - scale * grad[c]);
    }
}

struct use {
    uint32_t row, bag;
};

static int compare_uses(const void *a, const void *b)
{
    const struct use *x = a, *y = b;

    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->bag > y->bag) - (x->bag < y->bag);
}

static void backward_table(const struct lookup_table *table,
                           const uint64_t *offsets, uint32_t batch,
                           const struct lookup_batch *lookups,
                           const float *grad, uint64_t n_columns,
                           double learning_rate, enum optimizer optimizer)
{
    size_t n = offsets[batch] - offsets[0], n_uses = 0;
    struct use *uses = mem_alloc(n, sizeof *uses);
    double *sum = mem_alloc(table->dim, sizeof *sum);

    for (uint32_t b = 0; b < batch; b++)
        for (uint64_t i = offsets[b]; i < offsets[b + 1]; i++)
            uses[n_uses++] = (struct use){(uint32_t)row_of(lookups, i), b};
    qsort(uses, n, sizeof *uses, compare_uses);
    for (size_t i = 0; i < n; i++) {
        const float *g = grad + uses[i].bag * n_columns + table->out_begin;

        for (uint32_t c = 0; c < table->dim; c++)
            sum[c] += (double)g[c];
        if (i + 1 < n && uses[i + 1].row == uses[i].row)
            continue;
        update_row(table, uses[i].row, sum, learning_rate, optimizer);
        memset(sum, 0, table->dim * sizeof *sum);
    }
    mem_free(sum);
    mem_free(uses);
}

void lookup_backward_ref(const struct lookup_table *tables, uint32_t n_tables,
                         uint32_t batch, const struct lookup_batch *lookups,
                         const float *grad, float learning_rate,
                         enum optimizer optimizer)
{
    uint64_t n_columns = out_columns(tables, n_tables);

    for (uint32_t t = 0; t < n_tables; t++)
        backward_table(&tables[t], lookups->d_offsets + (uint64_t)t * batch,
                       batch, lookups, grad, n_columns, (double)learning_rate,
                       optimizer);
}
