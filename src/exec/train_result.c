/* SPDX-License-Identifier: MIT */
#include "exec/train_result.h"

const char *const train_phase_names[N_TRAIN_PHASES] = {
    "input",        "forward",  "output",   "dense",       "gradient",
    "dense reduce", "backward", "replicas", "dense update"};

bool train_is_exchange(enum train_phase phase)
{
    return phase == TRAIN_OUTPUT || phase == TRAIN_GRADIENT ||
           phase == TRAIN_DENSE_REDUCE || phase == TRAIN_REPLICAS;
}
