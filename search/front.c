/* SPDX-License-Identifier: MIT */
#include "search/front.h"

#include "base/ranked.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A total that is lower by so little is so by rounding: sums are added up in
 * another order, and what stands stays. */
#define ROUNDING_FRAC 1e-9

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

    return !within || total_ms < within->layout.total_ms * (1 - ROUNDING_FRAC);
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

/* --- towards the old plan --- */

/* Prices a unit's way home, in ms a byte saved; false where it saves nothing,
 * or exceeds the memory. */
static bool price_way(struct replan *replan, uint32_t unit, double *price)
{
    struct tryout *tryout = &replan->tryout;
    const struct layout *layout = &tryout->layout;
    double total_ms;

    trial_clear(&tryout->trial);
    homes_propose(&tryout->trial, layout, unit);
    if (!tryout->trial.n_changes)
        return false;
    total_ms = tryout_price(tryout);
    if (!isfinite(total_ms) || tryout->trial.excess > layout->excess ||
        tryout->trial.all_moved_bytes >= layout->all_moved_bytes)
        return false;
    *price = (total_ms - layout->total_ms) /
             (double)(layout->all_moved_bytes - tryout->trial.all_moved_bytes);
    return true;
}

/* The cheaper half of the units goes home. Returns whether any did. */
static bool send_home(struct replan *replan, struct ranked *moved, uint32_t n)
{
    bool any = false;
    double price;

    ranked_sort(moved, n);
    for (uint32_t i = 0; i < (n + 1) / 2; i++) {
        if (!price_way(replan, moved[i].idx, &price))
            continue;
        layout_commit(&replan->tryout.layout, &replan->tryout.trial);
        (void)replan_offer_layout(replan);
        any = true;
    }
    return any;
}

void replan_lessen(struct replan *replan)
{
    struct ranked *moved = mem_alloc(replan->parts.n_units, sizeof(*moved));
    uint32_t n;

    do {
        n = 0;
        for (uint32_t u = 0; u < replan->parts.n_units; u++)
            if (price_way(replan, u, &moved[n].key))
                moved[n++].idx = u;
    } while (send_home(replan, moved, n));
    mem_free(moved);
}

/* --- why nothing moves so little --- */

/* What a table moves because it stood on GPUs that are gone (0), or was cut by
 * rows over all GPUs (1). */
static void add_reasons(uint64_t reasons[2], const struct homes *homes,
                        const struct problem *problem, uint32_t table,
                        uint64_t moved_bytes)
{
    const struct table_pieces *before = &homes->before[table];
    struct table_pieces one = *before;
    uint64_t gone = 0;

    if (!before->table || !before->n)
        return;
    if (shard_cuts_rows(before->pieces[0].kind) &&
        (before->n_devices != problem->cluster.n_devices ||
         before->table->num_embeddings !=
             problem->tables[table].num_embeddings)) {
        reasons[1] += moved_bytes;
        return;
    }
    one.n = 1;
    for (size_t i = 0; i < before->n; i++) {
        struct moved_bytes bytes;

        one.pieces = &before->pieces[i];
        table_moves_count(&bytes, &one, &one);
        if (one.pieces->device >= problem->cluster.n_devices)
            gone += bytes.kept;
    }
    reasons[0] += gone < moved_bytes ? gone : moved_bytes;
}

int replan_refuse(struct replan *replan, uint64_t limit_bytes, struct err *err)
{
    struct layout *layout = &replan->tryout.layout;
    const struct parts *parts = &replan->parts;
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX], bytes[TEXT_BYTES_MAX];
    uint64_t reasons[2] = {0};
    struct buf why = {0};

    snapshot_load(&replan->front.points[0].layout, layout);
    for (uint32_t u = 0; u < parts->n_units; u++)
        if (layout->moved_bytes[u])
            add_reasons(reasons, &replan->homes, parts->problem,
                        parts->of[u].unit->tables[0], layout->moved_bytes[u]);
    text_from_bytes(limit, (double)limit_bytes);
    text_from_bytes(least, (double)layout->all_moved_bytes);
    if (reasons[0])
        buf_printf(&why, "; %s of it stand on GPUs that are gone",
                   text_from_bytes(bytes, (double)reasons[0]));
    if (reasons[1])
        buf_printf(&why,
                   "; %s of it are of tables cut by rows, whose blocks change "
                   "with the number of rows and of GPUs",
                   text_from_bytes(bytes, (double)reasons[1]));
    err_set(err, ERR_NO_PLAN,
            "no plan was found that moves at most %s; the least movement "
            "found that will do is %s, %" PRIu64 " B%s",
            limit, least, layout->all_moved_bytes, why.len ? why.data : "");
    buf_release(&why);
    return -1;
}
