/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_LEARNING_LEARNED_FIXTURE_H
#define NEUROSHARD_TESTS_UNIT_LEARNING_LEARNED_FIXTURE_H

/* Helpers shared by the tests of the learned oracle. Include in one file
 * only. */

#include <stdio.h>
#include <stdlib.h>

#include "costmodel/models/oracles.h"

__attribute__((unused)) static struct oracle *
open_model(const char *model_path, const struct problem *problem,
           struct arena *arena)
{
    struct oracle *oracle = NULL;
    struct err err = {0};

    if (oracle_learned_open(&oracle, model_path, problem, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return oracle;
}

/* Returns the compute time of one device that holds these n shards, in ms. */
__attribute__((unused)) static double
device_ms(const struct oracle *oracle, const struct shard *shards, size_t n)
{
    double sum[80] = {0}, one[80], ms;

    for (size_t i = 0; i < n; i++) {
        oracle->ops->embed(oracle, &shards[i], 1, one);
        for (uint32_t k = 0; k < oracle->width; k++)
            sum[k] += one[k];
    }
    oracle->ops->compute(oracle, sum, 1, &ms);
    return ms;
}

#endif
