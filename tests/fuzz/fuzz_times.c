/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "io/times.h"
#include "tests/fuzz/target.h"

/* Measured times are either valid or refused with an error that names a
 * line. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct times times = {.n_ranks = 4};
    struct arena arena = {0};
    struct err err = {0};

    if (times_add(&times, (const char *)data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5) && err.msg[5] >= '1' &&
             err.msg[5] <= '9');
    } else {
        MUST(times.n > 0);
    }
    for (size_t i = 0; i < times.n; i++) {
        const struct part_time *time = &times.times[i];

        MUST(time->rank < 4 && time->part < N_STEP_PARTS);
        MUST(isfinite(time->ms) && time->ms >= 0);
    }
    times_release(&times);
    arena_release(&arena);
    return 0;
}
