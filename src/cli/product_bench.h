/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PRODUCT_BENCH_H
#define NEUROSHARD_CLI_PRODUCT_BENCH_H

#include "base/cli.h"
#include "microbench/bench_options.h"

/* Runs `bench --dense`: measures the matrix products of a dense part on a
 * device, stores them and prints them. The options hold the limits of time,
 * memory and products, and whether stored products are measured again. Fails
 * with ERR_USAGE or ERR_INPUT for a wrong dense part or table list, and with
 * the errors of the device, the library of products and the database. */
int product_bench(struct cli *cli, struct bench_options *options,
                  struct err *err) MUST_CHECK;

#endif
