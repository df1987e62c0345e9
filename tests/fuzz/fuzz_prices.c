/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "io/prices.h"
#include "tests/fuzz/target.h"

/* Prices are either valid or refused with an error that names a line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct prices prices;
    struct arena arena = {0};
    struct err err = {0};

    if (prices_read(&prices, (const char *)data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5) && err.msg[5] >= '1' &&
             err.msg[5] <= '9');
    } else {
        MUST(prices.n > 0);
        for (size_t i = 0; i < prices.n; i++)
            MUST(*prices.list[i].gpu && prices.list[i].per_hour > 0 &&
                 prices.list[i].per_hour <= PRICES_MOST);
    }
    arena_release(&arena);
    return 0;
}
