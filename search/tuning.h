/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TUNING_H
#define NEUROSHARD_SEARCH_TUNING_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * How a full search (search/full.c) goes about: what it proposes how often,
 * what it heeds. All in one place, so that each part can be switched off by
 * itself and what it buys be measured (tests/bench/bench_ablation.c).
 */

/*
 * The kinds of changes of a layout, a line each: KIND(ID, name, how often in
 * chains of either style, of the sum of its column); propose_NAME is in
 * search/moves.c. The two styles take turns: few dear tables are balanced by
 * trading columns, many small ones are only cut up by it.
 *
 *   move     a piece to another device
 *   swap     two pieces of two devices
 *   trade    as many columns of two tables, of two devices, change places
 *   split    columns of a piece become a piece of their own
 *   merge    two column pieces of one table become one
 *   resplit  columns go over from one piece of a table to another
 */
#define CHANGE_KINDS(KIND)     \
    KIND(MOVE, move, 30, 30)   \
    KIND(SWAP, swap, 12, 30)   \
    KIND(TRADE, trade, 18, 0)  \
    KIND(SPLIT, split, 10, 10) \
    KIND(MERGE, merge, 11, 11) \
    KIND(RESPLIT, resplit, 10, 10)

#define CHANGE_ENUMERATOR(id, name, few, many) CHANGE_##id,
enum change_kind { CHANGE_KINDS(CHANGE_ENUMERATOR) N_CHANGE_KINDS };
#define TUNING_STYLES 2
#define TUNING_MAX_REBUILT 4

/*
 * All else, a line each: FIELD(type, name, what it is by default). Shares are
 * of a thousand. And what plans cost more without it, in %, with 200,000
 * changes and 5 seeds: the largest mean of golden tasks (4 and 8 GPUs), four
 * real lists by roofline and by TorchRec's formulas, and tight memory. Seeds
 * differ by 0.06, 0.08, 0.28, 0.21 and 0.48 there.
 *
 *   rebuilds       share of proposals that is none of the changes above; 25:
 *                  tight; 2.5: roofline
 *   n_rebuilt      tables that a rebuild takes off, at most; 15: tight; 0.3:
 *                  TorchRec
 *   recuts         of those beside the first: are cut anew; 0.3: TorchRec
 *   pours          whole tables and columns: search/moves.h; 12: tight; 0.3:
 *                  TorchRec
 *   anywhere       of changes: begin on any device, not on one that sets the
 *                  total; 0.5: roofline
 *   near_frac      a term that is less by no more than so much of it than what
 *                  hides it counts, too
 *   heavy_weight   the total is that of the slowest device, so most changes
 *                  leave it as it is: what they do to the others counts this
 *                  much; 0.8: tight; 0.1: golden tasks
 *   excess_weight  a device that exceeds its memory by all of it costs so many
 *                  times the best total: what exceeds at the start gets out of
 *                  it, nothing stays; 118: one tight list, with a weight of 1
 *   n_prices       of memory and replicas that starts are built by, at most; 5:
 *                  tight; 0.7: TorchRec
 *   n_starts       the best of each family, at most; or of all
 *   start_stages   each is annealed by itself for so many first stages:
 *                  search/full.c
 *   best_stages    and the best of them again, for so many; 0.2: roofline, by
 *                  default; one list 1.1
 *   tempered       of a stage; the rest is annealed; 0.6: tight; 0.3: TorchRec
 */
#define TUNING_FIELDS(FIELD)                       \
    FIELD(uint32_t, rebuilds, 250)                 \
    FIELD(uint32_t, n_rebuilt, TUNING_MAX_REBUILT) \
    FIELD(uint32_t, recuts, 500)                   \
    FIELD(bool, pours, true)                       \
    FIELD(uint32_t, anywhere, 500)                 \
    FIELD(double, near_frac, 0.1)                  \
    FIELD(double, heavy_weight, 0.02)              \
    FIELD(double, excess_weight, 100)              \
    FIELD(uint32_t, n_prices, UINT32_MAX)          \
    FIELD(uint32_t, n_starts, STARTS_KEPT)         \
    FIELD(uint32_t, start_stages, 2)               \
    FIELD(uint32_t, best_stages, 16)               \
    FIELD(uint32_t, tempered, 750)

#define TUNING_MEMBER(type, name, value) type name;
struct tuning {
    uint32_t changes[TUNING_STYLES][N_CHANGE_KINDS]; /* how often each, of
                                                        their sum */
    TUNING_FIELDS(TUNING_MEMBER)
};

extern const struct tuning tuning_default;

/* True so many times of a thousand. */
static inline bool tuning_draw(struct rng *rng, uint32_t share)
{
    return rng_draw(rng, 1000) < share;
}

#endif
