/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_MICROBENCH_SAMPLER_DESIGNED_H
#define NEUROSHARD_MICROBENCH_SAMPLER_DESIGNED_H

#include "microbench/bench_case.h"

/*
 * Cases of designed lists (microbench/sampler.h), which come one by one from a
 * fixed sequence.
 */

/* Makes case number case_idx of a designed list; case_idx <
 * designed_n_cases(). */
void designed_draw(struct bench_case *out, const struct bench_options *options,
                   uint64_t case_idx);
uint64_t designed_n_cases(void);

#endif
