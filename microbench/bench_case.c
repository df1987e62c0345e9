/* SPDX-License-Identifier: MIT */
#include "microbench/bench_case.h"

/* Bytes that each lookup moves in the steps of a backward named linearise, sort
 * and runs. The bytes of the row are not included. */
#define LOOKUP_WORK_BYTES 100
/* One part in STATE_PARTS of the memory of a mixed list is reserved for
 * optimizer states. */
#define STATE_PARTS 16

uint64_t case_weight_bytes(const struct bench_options *options)
{
    /* Parts into which memory is divided, one of them for states. The narrowest
     * row has 4 elements and 4 bytes of state, so states take at most one part
     * in 1 + element size. */
    uint64_t parts = options->is_mixed ? STATE_PARTS - 1
                                       : precision_bytes(options->precision);

    return options->memory_bytes / (parts + 1) * parts;
}

uint64_t case_state_bytes(const struct bench_options *options)
{
    return options->memory_bytes - case_weight_bytes(options);
}

uint64_t case_row_bytes(const struct case_table *table,
                        enum precision precision)
{
    return (uint64_t)table->dim * precision_bytes(precision);
}

uint64_t case_table_bytes(const struct case_table *table,
                          enum precision precision)
{
    uint64_t n_bytes = table->stream.n_rows * case_row_bytes(table, precision);

    return (n_bytes + CASE_ALIGN - 1) / CASE_ALIGN * CASE_ALIGN;
}

/* Adds up the bytes that a step moves. The forward reads each row. The update
 * reads and writes each row, and reads a gradient. Outputs are written once,
 * and gradients of the outputs are read once. */
double case_work(const struct bench_case *drawn)
{
    double work = 0;

    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct case_table *table = &drawn->tables[t];
        double row = (double)case_row_bytes(table, drawn->precision);
        double gradient = (double)table->dim * sizeof(float);
        double lookup = 3 * row + gradient + LOOKUP_WORK_BYTES;

        work += table->stream.batch *
                (table->stream.pooling_factor * lookup + 2 * gradient);
    }
    return work;
}
