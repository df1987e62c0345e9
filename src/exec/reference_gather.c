/* SPDX-License-Identifier: MIT */
#include "exec/reference_gather.h"

#include "base/mem.h"
#include "device/world.h"

#include <string.h>

/* Bytes that each process sends at a time. */
#define CHUNK_BYTES ((size_t)4 << 20)

int reference_gather(struct world *world, char *const *parts,
                     const size_t *n_bytes, struct err *err)
{
    size_t most = 0, chunk;
    char *own, *all;
    int rc = 0;

    for (uint32_t r = 0; r < world->size; r++)
        most = max_u64(most, n_bytes[r]);
    if (world->size == 1 || !most)
        return 0;
    chunk = min_u64(most, CHUNK_BYTES);
    own = mem_alloc(chunk, 1);
    all = mem_alloc(world->size, chunk);
    for (size_t begin = 0; !rc && begin < most; begin += chunk) {
        size_t n = n_bytes[world->rank];

        if (begin < n)
            memcpy(own, parts[world->rank] + begin, min_u64(chunk, n - begin));
        rc = world_all_gather(world, own, chunk, all, err);
        for (uint32_t r = 0; !rc && r < world->size; r++)
            if (r != world->rank && begin < n_bytes[r])
                memcpy(parts[r] + begin, all + r * chunk,
                       min_u64(chunk, n_bytes[r] - begin));
    }
    mem_free(own);
    mem_free(all);
    return rc;
}

int reference_add_up(struct world *world, double *numbers, size_t n,
                     struct err *err)
{
    size_t chunk = min_u64(CHUNK_BYTES / sizeof(double), n);
    double *all;
    int rc = 0;

    if (world->size == 1 || !n)
        return 0;
    all = mem_alloc(world->size * chunk, sizeof(double));
    for (size_t begin = 0; !rc && begin < n; begin += chunk) {
        size_t n_here = min_u64(chunk, n - begin);
        double *sums = numbers + begin;

        rc = world_all_gather(world, sums, n_here * sizeof(double), all, err);
        if (rc)
            break;
        for (size_t i = 0; i < n_here; i++)
            sums[i] = 0;
        for (uint32_t r = 0; r < world->size; r++)
            for (size_t i = 0; i < n_here; i++)
                sums[i] += all[r * n_here + i];
    }
    mem_free(all);
    return rc;
}
