/* SPDX-License-Identifier: MIT */
#include "search/replan_lessen.h"

#include "base/text.h"
#include "search/tryout.h"

#include <math.h>
#include <stdlib.h>

#define SETTLE_PASSES 3
/* Tries with lower limits; the first asks for this share of the movement. */
#define N_DESCENTS 4
#define DESCENT_FRAC 0.5

static const struct change *home_of(const struct replan *replan, uint32_t unit,
                                    uint32_t *n)
{
    const struct homes *homes = &replan->homes;

    *n = homes->first_piece[unit + 1] - homes->first_piece[unit];
    return homes->pieces + homes->first_piece[unit];
}

/* --- each unit by itself --- */

static void gather_unit(struct snapshot *out, const struct layout *layout,
                        uint32_t unit)
{
    out->n = 0;
    for (uint32_t i = layout->first_of[unit]; i != NO_PIECE;
         i = layout->pieces[i].next) {
        const struct piece *piece = &layout->pieces[i];

        snapshot_add(out, (struct change){NO_PIECE, piece->part, piece->device,
                                          piece->range, piece->block});
    }
}

struct moved {
    uint64_t saved_bytes;
    uint32_t unit;
};

static int compare_moved(const void *left, const void *right)
{
    const struct moved *a = left, *b = right;

    if (a->saved_bytes != b->saved_bytes)
        return a->saved_bytes > b->saved_bytes ? -1 : 1;
    return (a->unit > b->unit) - (a->unit < b->unit);
}

/* Units that move more than at home, the ones that save most first. */
static uint32_t list_moved(const struct replan *replan,
                           const struct layout *layout, struct moved *moved)
{
    struct snapshot now = {0};
    uint32_t n = 0;

    for (uint32_t u = 0; u < replan->parts.n_units; u++) {
        uint32_t n_home;
        const struct change *home = home_of(replan, u, &n_home);
        uint64_t least, bytes;

        gather_unit(&now, layout, u);
        bytes =
            homes_unit_bytes(&replan->homes, &replan->parts, now.pieces, now.n);
        if (!bytes)
            continue;
        least = homes_unit_bytes(&replan->homes, &replan->parts, home, n_home);
        if (bytes > least)
            moved[n++] = (struct moved){bytes - least, u};
    }
    qsort(moved, n, sizeof(*moved), compare_moved);
    snapshot_release(&now);
    return n;
}

static bool send_home(const struct replan *replan, struct tryout *tryout,
                      uint32_t unit, double most_ms)
{
    uint32_t n;
    const struct change *home = home_of(replan, unit, &n);

    tryout_take_out(tryout, unit);
    for (uint32_t i = 0; i < n; i++)
        tryout_add(tryout, &home[i]);
    if (tryout_price(tryout) > most_ms ||
        tryout->trial.excess > tryout->layout.excess)
        return false;
    layout_commit(&tryout->layout, &tryout->trial);
    return true;
}

/* Units go home, the largest first, as long as the total stays within most_ms:
 * by the terms on the way, by the true total in the end. */
static void settle(struct replan *replan, double most_ms)
{
    struct moved *moved = mem_alloc(replan->parts.n_units, sizeof(*moved));
    struct snapshot settled = {0};
    struct tryout tryout;
    uint32_t n_back = 1;
    double most_terms_ms;

    tryout_init(&tryout, &replan->parts);
    tryout_load(&tryout, &replan->best);
    most_terms_ms = most_ms - replan->best.total_ms + tryout.layout.total_ms;
    for (unsigned pass = 0; pass < SETTLE_PASSES && n_back; pass++) {
        uint32_t n = list_moved(replan, &tryout.layout, moved);

        n_back = 0;
        for (uint32_t i = 0; i < n; i++)
            n_back += send_home(replan, &tryout, moved[i].unit, most_terms_ms);
    }
    snapshot_save(&settled, &tryout.layout);
    if (replan_price(replan, &settled) <= replan->best_excess &&
        settled.total_ms <= most_ms)
        snapshot_copy(&replan->best, &settled);
    replan->n_priced += tryout.n_priced;
    snapshot_release(&settled);
    tryout_release(&tryout);
    mem_free(moved);
}

/* --- lower limits --- */

uint64_t replan_bytes(const struct replan *replan,
                      const struct snapshot *snapshot)
{
    struct layout layout;
    uint64_t bytes;

    layout_init(&layout, &replan->parts);
    snapshot_load(snapshot, &layout);
    bytes = layout.all_moved_bytes;
    layout_release(&layout);
    return bytes;
}

/* Whether there is one that moves at most so much; then it is the best. */
static bool descend(struct replan *replan, uint64_t limit_bytes, double most_ms,
                    double effort_frac)
{
    struct snapshot kept = {0};
    uint64_t given_bytes = replan->homes.limit_bytes;
    double kept_excess = replan->best_excess;
    bool is_found;

    snapshot_copy(&kept, &replan->best);
    replan->homes.limit_bytes = limit_bytes;
    replan->best_excess = INFINITY;
    replan_offer(replan, &replan->best);
    replan_anneal(replan, &kept, 1, effort_frac);
    is_found = !(replan->best_excess > 0) && replan->best.total_ms <= most_ms;
    if (is_found)
        settle(replan, most_ms);
    else
        snapshot_copy(&replan->best, &kept);
    replan->homes.limit_bytes = given_bytes;
    replan->best_excess = is_found ? 0 : kept_excess;
    snapshot_release(&kept);
    return is_found;
}

void replan_lessen(struct replan *replan, double most_ms, double effort_frac)
{
    uint64_t least = replan_bytes(replan, &replan->nearest), moved;
    double frac = DESCENT_FRAC;

    settle(replan, most_ms);
    moved = replan_bytes(replan, &replan->best);
    for (unsigned i = 0; i < N_DESCENTS && moved > least; i++) {
        uint64_t limit_bytes =
            least + (uint64_t)(frac * (double)(moved - least));

        if (descend(replan, limit_bytes, most_ms, effort_frac))
            moved = replan_bytes(replan, &replan->best);
        else
            frac = (1 + frac) / 2;
    }
}

/* --- too little --- */

struct reasons {
    uint64_t all_bytes, gone_bytes, rank_bytes;
};

/* What a table moves because it stood on GPUs that are gone, or was cut by rows
 * over all GPUs. */
static void add_reasons(struct reasons *reasons, const struct homes *homes,
                        const struct problem *problem, uint32_t table,
                        uint64_t moved_bytes)
{
    const struct table_pieces *before = &homes->before[table];
    struct table_pieces one = *before;
    uint64_t gone = 0;

    if (!before->table || !before->n)
        return;
    if (before->pieces[0].kind & (SHARD_ROW | SHARD_GRID) &&
        before->n_devices != problem->cluster.n_devices) {
        reasons->rank_bytes += moved_bytes;
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
    reasons->gone_bytes += gone < moved_bytes ? gone : moved_bytes;
}

static struct reasons find_reasons(const struct replan *replan)
{
    struct reasons reasons = {0};
    struct layout layout;

    layout_init(&layout, &replan->parts);
    snapshot_load(&replan->best, &layout);
    for (uint32_t u = 0; u < replan->parts.n_units; u++)
        if (layout.moved_bytes[u])
            add_reasons(&reasons, &replan->homes, replan->parts.problem,
                        replan->parts.of[u].unit->tables[0],
                        layout.moved_bytes[u]);
    reasons.all_bytes = layout.all_moved_bytes;
    layout_release(&layout);
    return reasons;
}

int replan_too_little(const struct replan *replan, struct err *err)
{
    struct reasons reasons = find_reasons(replan);
    char limit[TEXT_BYTES_MAX], least[TEXT_BYTES_MAX], bytes[TEXT_BYTES_MAX];
    struct buf why = {0};

    text_from_bytes(limit, (double)replan->homes.limit_bytes);
    text_from_bytes(least, (double)reasons.all_bytes);
    if (reasons.gone_bytes)
        buf_printf(&why, "; %s of it stand on GPUs that are gone",
                   text_from_bytes(bytes, (double)reasons.gone_bytes));
    if (reasons.rank_bytes)
        buf_printf(&why,
                   "; %s of it are of tables cut by rows, whose blocks change "
                   "with the number of GPUs",
                   text_from_bytes(bytes, (double)reasons.rank_bytes));
    err_set(err, ERR_NO_PLAN,
            "no plan was found that moves at most %s; the least movement "
            "found that will do is %s%s",
            limit, least, why.len ? why.data : "");
    buf_release(&why);
    return -1;
}
