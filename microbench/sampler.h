/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_H
#define NEUROSHARD_MICROBENCH_SAMPLER_H

#include "microbench/bench_case.h"

/*
 * Case lists: the sets of tables that are fused and measured. The (checked)
 * options of a benchmark identify a list. Case i is a pure function of the list
 * and i. It has the same bits on every machine, because libm is not used.
 *
 * Plain list: all cases have the same batch, precision and optimizer.
 *
 * Mixed list: each case has its own setting. A fraction PUBLISHED_SHARE of the
 * cases has the published setting: the list's batch, fp32, SGD, up to 15 tables
 * of up to 128 columns. The other cases have batches from 1/64 of the list's to
 * all of it, fp32 or fp16, SGD or row-wise Adagrad, up to max_tables tables of
 * up to 512 columns, and up to 200 lookups per bag.
 *
 * Designed list: a fixed number of cases; all tables of a case are alike. Each
 * case measures one property of a device: the time of an operation that does
 * almost nothing, the time of each lookup by width, the effect of hot rows, of
 * footprints, or of pieces of a table. Some cases repeat published cases. The
 * list is measured like a mixed list; memory and max_tables may shrink its
 * cases.
 */

/* Returns a hash of all options on which the cases depend. The hash is below
 * 2^63. For a plain list the hash leaves out batch, precision and optimizer,
 * because they are part of a sample's setting. */
uint64_t case_list_id(const struct bench_options *options);

void case_draw(struct bench_case *out, const struct bench_options *options,
               uint64_t case_idx);
/* Makes the reference case of a list, which is measured again and again to
 * detect drift. In a mixed list the reference case has the published
 * setting. */
void case_sentinel(struct bench_case *out, const struct bench_options *options);

/* Returns the setting under which the samples of a case on this device are
 * stored. The strings in the setting belong to the device. */
struct sample_setting case_setting(const struct device *device,
                                   const struct bench_case *what);
/* Returns the setting under which the samples of these options and this device
 * are stored. For a mixed list it is the setting of the published cases and of
 * the reference case. The strings in the setting belong to the device. */
struct sample_setting bench_setting(const struct device *device,
                                    const struct bench_options *options);

#endif
