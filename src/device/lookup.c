/* SPDX-License-Identifier: MIT */
#include "device/lookup.h"

#include "base/mem.h"
#include "device/device_ops.h"

#include <assert.h>

static bool is_optimizer(enum optimizer optimizer)
{
    return optimizer == OPTIMIZER_SGD || optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
}

static bool is_precision(enum precision precision)
{
    return precision == PRECISION_FP32 || precision == PRECISION_FP16;
}

/* Returns true if a table meets the conditions of lookup.h. out_dim: number of
 * columns of the output. */
static bool is_table(const struct lookup_table *table, uint64_t out_dim,
                     enum optimizer optimizer)
{
    return table->dim && table->dim % 4 == 0 && table->n_rows &&
           table->n_rows <= UINT32_MAX && is_precision(table->precision) &&
           table->out_begin % 4 == 0 &&
           (uint64_t)table->out_begin + table->dim <= out_dim &&
           (table->d_state || optimizer == OPTIMIZER_SGD);
}

/* Checks the description of the tables. Sets the members of `shape` that are
 * computed from the tables' columns. */
static int check_shape(struct lookup *shape, struct err *err)
{
    uint64_t out_dim = 0;

    assert(is_optimizer(shape->optimizer) && is_precision(shape->output));
    if (shape->max_lookups > UINT32_MAX)
        return err_input(
            err, "%llu lookups a batch are too many, at most %u can be run",
            (unsigned long long)shape->max_lookups, UINT32_MAX);
    for (uint32_t i = 0; i < shape->n_tables; i++) {
        out_dim += shape->tables[i].dim;
        shape->max_dim =
            (uint32_t)max_u64(shape->max_dim, shape->tables[i].dim);
    }
    if (out_dim > UINT32_MAX)
        return err_input(err, "%llu output columns are too many",
                         (unsigned long long)out_dim);
    if (shape->has_places && !device_is_host(shape->device))
        return err_input(err, "rows in a cache are looked up on CPUs only");
    shape->out_dim = (uint32_t)out_dim;
    for (uint32_t i = 0; i < shape->n_tables; i++)
        assert(is_table(&shape->tables[i], out_dim, shape->optimizer));
    return 0;
}

int lookup_open(struct lookup **out, struct device *device,
                const struct lookup_spec *spec, struct err *err)
{
    struct lookup shape = {
        .device = device,
        .tables = mem_alloc(spec->n_tables, sizeof *shape.tables),
        .n_tables = spec->n_tables,
        .batch = spec->batch,
        .max_lookups = spec->max_lookups,
        .optimizer = spec->optimizer,
        .output = spec->output,
    };

    for (uint32_t i = 0; i < spec->n_tables; i++) {
        shape.tables[i] = spec->tables[i];
        shape.has_places |= spec->tables[i].d_places != NULL;
    }
    if (check_shape(&shape, err) ||
        device->ops->lookup_open(out, &shape, err)) {
        mem_free(shape.tables);
        return -1;
    }
    return 0;
}

void lookup_close(struct lookup *lookup)
{
    if (!lookup)
        return;
    mem_free(lookup->tables);
    lookup->device->ops->lookup_close(lookup);
}

double lookup_scratch_bytes(const struct device *device, double n_lookups,
                            uint32_t max_dim)
{
    double row_bytes = (double)max_dim * sizeof(float);

    if (!device_is_host(device))
        return n_lookups * (24 + row_bytes / LOOKUP_RUN_PIECE);
    return n_lookups * (16 + row_bytes / LOOKUP_RUN_PART);
}

int lookup_forward(struct lookup *lookup, const struct lookup_batch *batch,
                   void *d_out, struct err *err)
{
    return lookup->device->ops->lookup_forward(lookup, batch, d_out, err);
}

int lookup_backward(struct lookup *lookup, unsigned phases,
                    const struct lookup_batch *batch, const void *d_grad,
                    float learning_rate, struct err *err)
{
    assert(batch->n_lookups <= lookup->max_lookups);
    return lookup->device->ops->lookup_backward(lookup, phases, batch, d_grad,
                                                learning_rate, err);
}

int lookup_apply_dense(struct device *device, const struct lookup_table *table,
                       float *d_dense, float learning_rate,
                       enum optimizer optimizer, struct err *err)
{
    assert(is_optimizer(optimizer) && is_table(table, UINT64_MAX, optimizer) &&
           !table->d_places);
    return device->ops->lookup_apply_dense(device, table, d_dense,
                                           learning_rate, optimizer, err);
}

unsigned lookup_n_cold_sets(const struct device *device, uint64_t touched_bytes)
{
    uint64_t n = LOOKUP_COLD_BYTES / (touched_bytes + 1);

    if (!device_is_host(device))
        return LOOKUP_MIN_COLD_SETS;
    return (unsigned)min_u64(max_u64(n, LOOKUP_MIN_COLD_SETS),
                             LOOKUP_MAX_COLD_SETS);
}

uint64_t lookup_touched_bytes(uint64_t n_lookups, uint64_t n_rows, uint32_t dim,
                              enum precision precision)
{
    uint64_t row_bytes = (uint64_t)dim * precision_bytes(precision);

    return min_u64(n_lookups, n_rows) * (row_bytes + CACHE_LINE);
}
