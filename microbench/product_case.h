/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_PRODUCT_CASE_H
#define NEUROSHARD_MICROBENCH_PRODUCT_CASE_H

#include "core/product.h"
#include "device/device.h"
#include "microbench/bench_options.h"

/*
 * Times matrix products of dense layers. They are computed by the library that
 * executes dense parts on the device (device/gemm.h), on all of its threads.
 */

/* Storage of measured products, such as a cost database. */
struct product_sink {
    void *ctx;
    int (*put)(void *ctx, const struct sample_setting *setting,
               const struct product_sample *sample, struct err *err);
    bool (*has)(void *ctx, const struct sample_setting *setting,
                const struct product *product);
};

#define PRODUCT_GRID_MAX 4096
/* Fills products[PRODUCT_GRID_MAX] with a grid of shapes from which the times
 * of other products can be predicted: layers of 1 to 4,096 outputs and 13 to
 * 4,096 inputs for 64 to 65,536 samples in all passes, their operations on
 * elements, and products of all pairs of vectors. For a CPU the products are in
 * fp32 and have up to 2.2e9 operations and 256 MiB. For a GPU they are in fp32,
 * tf32 and bf16 and have up to 1e12 operations and 4 GiB. Leaves out products
 * that need more than max_bytes. The order is shuffled, so that a part of the
 * list covers the grid, too. Returns the number of products. */
size_t product_grid(struct product *products, bool is_host, uint64_t max_bytes);

/* Measures products that the sink does not have yet, in their order, or all
 * products if options->repeat is set. Ends early at the time limit, after
 * options->n_cases products unless that is 0, and after an interrupt.
 * options->progress counts the products. Fails with ERR_DEVICE if memory is
 * short, or if the device does not compute products of this type. */
int bench_products(struct bench_result *result, struct device *device,
                   const struct bench_options *options,
                   const struct product *products, size_t n,
                   struct product_sink *sink, struct err *err) MUST_CHECK;

#endif
