/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_LEARNING_ESTIMATED_SAMPLES_H
#define NEUROSHARD_TESTS_UNIT_LEARNING_ESTIMATED_SAMPLES_H

/* Returns n simulated samples, allocated in the arena. Their times are not
 * measured: the roofline of the given GPU estimates them. Include in one file
 * only. */

#include "costmodel/formulas/estimate.h"
#include "costmodel/formulas/roofline.h"
#include "tests/simulated_gpu.h"

static struct sample *estimated_samples(const struct gpu_spec *gpu, size_t n,
                                        struct arena *arena)
{
    struct sample *samples = simulated_samples(n, 0, 5, arena);
    const struct estimate estimate = {.gpu = *gpu};

    for (size_t i = 0; i < n; i++) {
        double sums[FUSED_LANES] = {0}, lanes[FUSED_LANES];
        struct feature_input input;

        for (uint32_t t = 0; t < samples[i].n_tables; t++) {
            feature_input_of_sample(&input, samples[i].setting,
                                    &samples[i].tables[t]);
            estimate_fill(&estimate, &input, lanes);
            for (int k = 0; k < FUSED_LANES; k++)
                sums[k] += lanes[k];
        }
        samples[i].total.median_ms = estimate_ms(&estimate, sums);
    }
    return samples;
}

#endif
