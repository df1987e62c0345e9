/* SPDX-License-Identifier: MIT */
#include "search/front.h"

#include <math.h>
#include <string.h>

const struct snapshot *front_within(const struct front *front,
                                    uint64_t limit_bytes)
{
    uint32_t i = 0;

    while (i < front->n && front->points[i].moved_bytes <= limit_bytes)
        i++;
    return i ? &front->points[i - 1] : NULL;
}

/* Removes point i from the front. The assignment of the point is moved behind
 * the last point, so that its memory can be reused. */
static void drop(struct front *front, uint32_t i)
{
    struct snapshot point = front->points[i];

    front->n--;
    memmove(&front->points[i], &front->points[i + 1],
            (front->n - i) * sizeof(point));
    front->points[front->n] = point;
}

/* Drops the point that gains least compared with the point before it. The first
 * and the last point are never dropped. Returns the index of the dropped
 * point. */
static uint32_t drop_least_gain(struct front *front)
{
    const struct snapshot *points = front->points;
    double least = INFINITY;
    uint32_t worst = 1;

    for (uint32_t i = 1; i + 1 < front->n; i++) {
        double gain = points[i - 1].total_ms - points[i].total_ms;

        if (gain < least) {
            least = gain;
            worst = i;
        }
    }
    drop(front, worst);
    return worst;
}

struct snapshot *front_add(struct front *front, uint64_t moved_bytes,
                           double total_ms)
{
    const struct snapshot *within = front_within(front, moved_bytes);
    struct snapshot point;
    uint32_t pos = 0;

    if (within && total_ms >= within->total_ms * (1 - ROUNDING_FRAC))
        return NULL;
    while (pos < front->n && front->points[pos].moved_bytes < moved_bytes)
        pos++;
    while (pos < front->n && front->points[pos].total_ms >= total_ms)
        drop(front, pos);
    if (front->n == FRONT_MAX && drop_least_gain(front) < pos)
        pos--;
    point = front->points[front->n];
    memmove(&front->points[pos + 1], &front->points[pos],
            (front->n - pos) * sizeof(point));
    front->points[pos] = point;
    front->points[pos].moved_bytes = moved_bytes;
    front->n++;
    return &front->points[pos];
}

void front_thin(struct front *front, double gain_frac)
{
    for (uint32_t i = 1; i < front->n;)
        if (front->points[i].total_ms <
            front->points[i - 1].total_ms * (1 - gain_frac))
            i++;
        else
            drop(front, i);
}

void front_release(struct front *front)
{
    for (uint32_t i = 0; i < FRONT_MAX; i++)
        snapshot_release(&front->points[i]);
    *front = (struct front){0};
}
