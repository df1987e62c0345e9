/* SPDX-License-Identifier: MIT */
#include "search/tuning.h"

const struct tuning *tuning_default(void)
{
    static const struct tuning tuning = {
        .changes = {{[CHANGE_MOVE] = 30,
                     [CHANGE_SWAP] = 12,
                     [CHANGE_TRADE] = 18,
                     [CHANGE_SPLIT] = 10,
                     [CHANGE_MERGE] = 11,
                     [CHANGE_RESPLIT] = 10,
                     [CHANGE_RECUT] = 4},
                    {[CHANGE_MOVE] = 30,
                     [CHANGE_SWAP] = 30,
                     [CHANGE_SPLIT] = 10,
                     [CHANGE_MERGE] = 11,
                     [CHANGE_RESPLIT] = 10,
                     [CHANGE_RECUT] = 4}},
        .rebuilds = 250,
        .n_rebuilt = TUNING_MAX_REBUILT,
        .recuts = 500,
        .strays = 125,
        .pours = true,
        .has_marginals = true,
        .anywhere = 500,
        .heavy_weight = 0.02,
        .excess_weight = 1,
        .n_starts = TUNING_MAX_STARTS,
        .n_prices = UINT32_MAX,
        .tempered = 750,
    };

    return &tuning;
}
