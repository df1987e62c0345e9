/* SPDX-License-Identifier: MIT */
#include "base/printable.h"
#include "io/times.h"
#include "tests/fuzz/target.h"

#include <math.h>
#include <string.h>

/* A trace of PyTorch's profiler, of a job of two ranks. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct times times = {.n_ranks = 2};
    struct arena arena = {0};
    struct err err = {0};

    if (times_add(&times, (const char *)data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT && *err.msg && text_is_printable(err.msg));
    } else {
        MUST(times.n > 0);
    }
    for (size_t i = 0; i < times.n; i++)
        MUST(times.times[i].rank < 2 && times.times[i].ms >= 0 &&
             times.times[i].ms <= 1e9 && times.times[i].part < N_STEP_PARTS);
    times_release(&times);
    arena_release(&arena);
    return 0;
}
