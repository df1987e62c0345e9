/* SPDX-License-Identifier: MIT */
#include "exec/executable.h"

#include <inttypes.h>
#include <math.h>

static int check_outputs(const struct table *table, uint64_t batch,
                         struct err *err)
{
    double n = table->num_outputs;

    if (table->output == OUTPUT_SEQUENCE)
        return err_set(err, ERR_INPUT,
                       "table '%s': sequence output is not executed yet",
                       table->name);
    if (n != floor(n))
        return err_set(err, ERR_INPUT,
                       "table '%s': num_outputs %g, no whole number, is not "
                       "executed yet",
                       table->name, n);
    if (!(n > 0) && table->pooling_factor > 0)
        return err_set(err, ERR_INPUT,
                       "table '%s': num_outputs 0 with pooling_factor %g is "
                       "not executed yet",
                       table->name, table->pooling_factor);
    if (n * (double)batch > UINT32_MAX)
        return err_set(err, ERR_INPUT,
                       "table '%s': num_outputs %g at batch %" PRIu64
                       " is more than 2^32 - 1 outputs a step, which is not "
                       "executed yet",
                       table->name, n, batch);
    if (table->pooling_factor * (double)batch > UINT32_MAX)
        return err_set(err, ERR_INPUT,
                       "table '%s': pooling_factor %g at batch %" PRIu64
                       " is more than 2^32 - 1 look-ups a step, which is not "
                       "executed yet",
                       table->name, table->pooling_factor, batch);
    return 0;
}

static int check_formats(const struct table *table, struct err *err)
{
    if (table->precision != PRECISION_FP32 &&
        table->precision != PRECISION_FP16)
        return err_set(err, ERR_INPUT,
                       "table '%s': precision %s is not executed yet",
                       table->name, precision_name(table->precision));
    if (table->comm_precision != PRECISION_FP32 &&
        table->comm_precision != PRECISION_FP16)
        return err_set(err, ERR_INPUT,
                       "table '%s': comm_precision %s is not executed yet",
                       table->name, precision_name(table->comm_precision));
    if (table->optimizer != OPTIMIZER_SGD &&
        table->optimizer != OPTIMIZER_ROWWISE_ADAGRAD)
        return err_set(err, ERR_INPUT,
                       "table '%s': optimizer %s is not executed yet",
                       table->name, optimizer_name(table->optimizer));
    return 0;
}

/* Every piece: widths, and one optimizer a device. */
static int check_shards(const struct plan *plan, struct err *err)
{
    const struct table *tables = plan->problem.tables;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        uint32_t width = shard->col_end - shard->col_begin;

        if (width % 4)
            return err_set(err, ERR_INPUT,
                           "table '%s': a piece %" PRIu32
                           " columns wide, no multiple of 4, is not executed "
                           "yet",
                           tables[shard->table].name, width);
    }
    return 0;
}

static int check_optimizers(const struct plan *plan, struct err *err)
{
    for (uint32_t r = 0; r < plan->problem.cluster.n_devices; r++) {
        const struct table *first = NULL;

        for (size_t i = 0; i < plan->n_shards; i++) {
            const struct table *table =
                &plan->problem.tables[plan->shards[i].table];

            if (plan->shards[i].device != r)
                continue;
            if (first && table->optimizer != first->optimizer)
                return err_set(err, ERR_INPUT,
                               "device %" PRIu32 " holds '%s' with %s and '%s' "
                               "with %s: two optimizers on a device are not "
                               "executed yet",
                               r, first->name, optimizer_name(first->optimizer),
                               table->name, optimizer_name(table->optimizer));
            first = table;
        }
    }
    return 0;
}

int executable_check(const struct plan *plan, struct err *err)
{
    uint64_t batch = plan->problem.batch;

    if (!batch || batch > UINT32_MAX)
        return err_set(err, ERR_INPUT,
                       "batch %" PRIu64 " is not executed yet, only 1 to "
                       "2^32 - 1 samples are",
                       batch);
    for (size_t t = 0; t < plan->problem.n_tables; t++)
        if (check_outputs(&plan->problem.tables[t], batch, err) ||
            check_formats(&plan->problem.tables[t], err))
            return -1;
    if (check_shards(plan, err))
        return -1;
    return check_optimizers(plan, err);
}
