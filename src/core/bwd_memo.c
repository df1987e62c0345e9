/* SPDX-License-Identifier: MIT */
#include "core/bwd_memo.h"

#include <string.h>

void bwd_memo_init(struct bwd_memo *memo, const struct oracle *oracle, size_t n)
{
    const size_t n_devices = oracle->problem->cluster.n_devices;
    const size_t size = 2 * n_devices * sizeof(float), n_lanes = n * n_devices;
    struct arena *arena = &memo->arena;

    *memo = (struct bwd_memo){.oracle = oracle, .n_devices = n_devices};
    memo->entries = memset(arena_alloc(arena, BWD_MEMO_ENTRIES, size), 0xff,
                           BWD_MEMO_ENTRIES * size);
    memo->lanes = ARENA_NEW(arena, float, n_lanes);
    memo->asked = ARENA_NEW(arena, double, 2 * n_lanes);
    memo->answered = memo->asked + n_lanes;
    memo->missing = ARENA_NEW(arena, size_t, n);
    memo->found = ARENA_NEW(arena, float *, n);
}

void bwd_memo_release(struct bwd_memo *memo)
{
    arena_release(&memo->arena);
    *memo = (struct bwd_memo){0};
}

/* Returns the cache entry for a key of lane values, found by a hash of the bits
 * of the key. */
static float *entry_of(const struct bwd_memo *memo, const float *lanes)
{
    uint64_t hash = 0;
    uint32_t bits;

    for (size_t r = 0; r < memo->n_devices; r++) {
        memcpy(&bits, &lanes[r], sizeof(bits));
        hash = (hash ^ bits) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return memo->entries + (hash >> 8) % BWD_MEMO_ENTRIES * 2 * memo->n_devices;
}

void bwd_memo_price(struct bwd_memo *memo, size_t n, const double *lanes,
                    double *bwd_ms)
{
    const size_t n_devices = memo->n_devices, size = n_devices * sizeof(float);
    size_t n_missing = 0;

    for (size_t k = 0; k < n * n_devices; k++)
        memo->lanes[k] = (float)lanes[k];
    /* prefetch all cache entries, because they are at random addresses */
    for (size_t i = 0; i < n; i++) {
        memo->found[i] = entry_of(memo, memo->lanes + i * n_devices);
        __builtin_prefetch(memo->found[i]);
    }
    for (size_t i = 0; i < n; i++) {
        const float *entry = memo->found[i];

        if (!memcmp(entry, memo->lanes + i * n_devices, size)) {
            for (size_t r = 0; r < n_devices; r++)
                bwd_ms[i * n_devices + r] = (double)entry[n_devices + r];
            continue;
        }
        memcpy(memo->asked + n_missing * n_devices, lanes + i * n_devices,
               n_devices * sizeof(*lanes));
        memo->missing[n_missing++] = i;
    }
    if (n_missing)
        memo->oracle->ops->bwd(memo->oracle, n_missing, memo->asked,
                               memo->answered);
    for (size_t k = 0; k < n_missing; k++) {
        const size_t i = memo->missing[k];
        const double *answer = memo->answered + k * n_devices;
        float *entry = memo->found[i];

        memcpy(entry, memo->lanes + i * n_devices, size);
        for (size_t r = 0; r < n_devices; r++)
            entry[n_devices + r] = (float)answer[r];
        memcpy(bwd_ms + i * n_devices, answer, n_devices * sizeof(*bwd_ms));
    }
}
