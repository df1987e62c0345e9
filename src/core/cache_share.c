/* SPDX-License-Identifier: MIT */
#include "core/cache_share.h"

#include "base/mem.h"

#include <assert.h>

/* Lower convex hull of a cache's use. */
struct hull {
    unsigned char corners[CACHE_SHARE_KNOTS]; /* knots, ascending */
    unsigned n;
    unsigned next; /* corner up to which memory is given next */
};

/* Returns the missed bytes that a slot saves between two knots. */
static double saves(const struct cache_demand *demand, unsigned from,
                    unsigned to)
{
    return (demand->bytes[from] - demand->bytes[to]) /
           (demand->rows[to] - demand->rows[from]);
}

/* Method: Andrew's monotone chain. The last knot counts if several have equal
 * rows. */
static void find_hull(struct hull *hull, const struct cache_demand *demand,
                      unsigned n_knots)
{
    hull->n = 0;
    hull->next = 1;
    for (unsigned k = 0; k < n_knots; k++) {
        if (hull->n &&
            !(demand->rows[k] > demand->rows[hull->corners[hull->n - 1]]))
            hull->n--;
        while (hull->n > 1 && saves(demand, hull->corners[hull->n - 2],
                                    hull->corners[hull->n - 1]) <=
                                  saves(demand, hull->corners[hull->n - 1], k))
            hull->n--;
        hull->corners[hull->n++] = (unsigned char)k;
    }
}

/* Returns the index of the cache whose next piece of hull saves most per byte,
 * or n if all caches have all their rows. */
static size_t find_steepest(const struct cache_demand *demands,
                            const struct hull *hulls, size_t n)
{
    size_t best = n;
    double most = -1;

    for (size_t i = 0; i < n; i++) {
        const struct hull *hull = &hulls[i];
        double per_byte;

        if (hull->next >= hull->n)
            continue;
        per_byte = saves(&demands[i], hull->corners[hull->next - 1],
                         hull->corners[hull->next]) /
                   demands[i].slot_bytes;
        if (per_byte > most) {
            most = per_byte;
            best = i;
        }
    }
    return best;
}

/* Number of caches up to which no memory is allocated. */
#define FEW 8

void cache_share(const struct cache_demand *demands, size_t n, unsigned n_knots,
                 double bytes, double *slots)
{
    struct hull few[FEW];
    struct hull *hulls = n > FEW ? mem_alloc(n, sizeof(*hulls)) : few;

    assert(n_knots <= CACHE_SHARE_KNOTS);
    for (size_t i = 0; i < n; i++) {
        find_hull(&hulls[i], &demands[i], n_knots);
        slots[i] = 0;
    }
    while (bytes > 0) {
        const size_t i = find_steepest(demands, hulls, n);
        double rows, part;

        if (i == n)
            break;
        rows = demands[i].rows[hulls[i].corners[hulls[i].next]] - slots[i];
        part = rows * demands[i].slot_bytes;
        if (part > bytes) {
            slots[i] += bytes / demands[i].slot_bytes;
            break;
        }
        slots[i] += rows;
        bytes -= part;
        hulls[i].next++;
    }
    if (hulls != few)
        mem_free(hulls);
}

double cache_missed_bytes(const struct cache_demand *demand, unsigned n_knots,
                          double slots)
{
    const double *rows = demand->rows, *bytes = demand->bytes;
    unsigned begin = 0, end = n_knots - 1;

    while (end - begin > 1) {
        const unsigned middle = (begin + end) / 2;

        if (rows[middle] <= slots)
            begin = middle;
        else
            end = middle;
    }
    if (slots >= rows[end])
        return bytes[end];
    return bytes[begin] + (bytes[end] - bytes[begin]) * (slots - rows[begin]) /
                              (rows[end] - rows[begin]);
}
