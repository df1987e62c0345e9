/* SPDX-License-Identifier: MIT */
#include "search/replan_front.h"

#include <math.h>
#include <string.h>

/* The first point that moves more. */
static uint32_t find_above(const struct front *front, uint64_t moved_bytes)
{
    uint32_t i = 0;

    while (i < front->n && front->points[i].moved_bytes <= moved_bytes)
        i++;
    return i;
}

const struct front_point *front_within(const struct front *front,
                                       uint64_t limit_bytes)
{
    uint32_t i = find_above(front, limit_bytes);

    return i ? &front->points[i - 1] : NULL;
}

bool front_wants(const struct front *front, uint64_t moved_bytes,
                 double total_ms)
{
    const struct front_point *within = front_within(front, moved_bytes);

    return !within || total_ms < within->layout.total_ms;
}

/* The point's layout goes behind the others: its room is used again. */
static void drop(struct front *front, uint32_t i)
{
    struct front_point point = front->points[i];

    front->n--;
    memmove(&front->points[i], &front->points[i + 1],
            (front->n - i) * sizeof(point));
    front->points[front->n] = point;
}

static void drop_least_gain(struct front *front)
{
    const struct front_point *points = front->points;
    double least = INFINITY;
    uint32_t worst = 1;

    for (uint32_t i = 1; i + 1 < front->n; i++) {
        double gain = points[i - 1].layout.total_ms - points[i].layout.total_ms;

        if (gain < least) {
            least = gain;
            worst = i;
        }
    }
    drop(front, worst);
}

void front_add(struct front *front, uint64_t moved_bytes,
               const struct snapshot *layout)
{
    struct front_point point = front->points[front->n];
    uint32_t at = 0;

    snapshot_copy(&point.layout, layout);
    point.moved_bytes = moved_bytes;
    while (at < front->n && front->points[at].moved_bytes < moved_bytes)
        at++;
    memmove(&front->points[at + 1], &front->points[at],
            (front->n - at) * sizeof(point));
    front->points[at] = point;
    front->n++;
    while (at + 1 < front->n &&
           front->points[at + 1].layout.total_ms >= layout->total_ms)
        drop(front, at + 1);
    if (front->n > FRONT_MAX)
        drop_least_gain(front);
}

void front_thin(struct front *front, double gain_frac)
{
    for (uint32_t i = 1; i < front->n;)
        if (front->points[i].layout.total_ms <
            front->points[i - 1].layout.total_ms * (1 - gain_frac))
            i++;
        else
            drop(front, i);
}

void front_release(struct front *front)
{
    for (uint32_t i = 0; i <= FRONT_MAX; i++)
        snapshot_release(&front->points[i].layout);
    *front = (struct front){0};
}
