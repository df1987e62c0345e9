/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "io/peaks.h"
#include "tests/fuzz/target.h"

#define N_RANKS 4

/* Peaks of memory are either valid or refused with an error that names a line.
 * The last byte says whether the job has one host. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peaks peaks = {.n_ranks = N_RANKS};
    struct arena arena = {0};
    struct err err = {0};

    peaks.is_one_host = size && data[size - 1] % 2;
    if (peaks_read(&peaks, (const char *)data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5));
    } else {
        MUST(peaks.n > 0 && peaks.n <= N_RANKS);
        for (uint32_t r = 0; r < N_RANKS; r++) {
            const struct peak *peak = &peaks.ranks[r];

            MUST(peak->used <= PEAK_MAX_BYTES &&
                 peak->failed <= PEAK_MAX_BYTES);
            MUST(peak->allocated <= PEAK_MAX_BYTES &&
                 peak->reserved <= 2 * PEAK_MAX_BYTES);
        }
    }
    arena_release(&arena);
    return 0;
}
