/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_TUNING_H
#define NEUROSHARD_SEARCH_TUNING_H

#include "base/rng.h"

#include <stdbool.h>
#include <stdint.h>

/* Largest number of starting points that are annealed (search/starts.h). */
#define STARTS_KEPT 4

/*
 * Tuning parameters of the full search (search/schedule.c): how often it
 * proposes each kind of move, and how it weighs the terms of its energy, the
 * function that annealing minimizes. All parameters are here, so that each part
 * of the search can be switched off alone and its benefit can be measured
 * (tests/bench/bench_ablation.c).
 */

/*
 * Kinds of moves, one per line: KIND(ID, name, few, many). `few` and `many` are
 * the weights of the kind in the two move mixes, one for lists of few expensive
 * tables and one for lists of many small tables. A weight counts relative to
 * the sum of the weights of its mix. propose_NAME in search/moves.c proposes a
 * move. The chains use the two mixes alternately. A list of few expensive
 * tables is balanced by trades of columns. In a list of many small tables
 * trades would only lead to more pieces, so the second mix has no trades.
 *
 *   move     moves a piece to another device
 *   swap     swaps two pieces of two devices
 *   trade    swaps equally many columns of two tables between two devices
 *   split    makes some columns of a piece a piece of their own
 *   merge    merges two column pieces of one table
 *   resplit  shifts columns from one piece of a table to another
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
#define N_MOVE_MIXES 2
#define TUNING_MAX_REBUILT 4

/*
 * All other parameters, one per line: FIELD(type, name, default). Shares are
 * per thousand.
 *
 * The benefit of a parameter is the rise of the cost of plans, in %, if
 * bench_ablation.c switches the parameter off. It was measured with 200,000
 * moves and 5 seeds on the five groups of problems below. The table gives the
 * largest of the means of the groups, and the group. The spread of a group is
 * the difference between seeds, in %.
 *
 *   group     problems                                      spread
 *   golden    golden tasks on 4 GPUs                          0.06
 *             golden tasks on 8 GPUs                          0.08
 *   roofline  four real table lists, priced by roofline       0.28
 *   TorchRec  the same lists, priced by TorchRec's formulas   0.21
 *   tight     lists that barely fit the memory                0.48
 *
 *   parameter      benefit         meaning
 *   rebuilds       25 tight        share of proposals that ruin and recreate
 *                  2.5 roofline    instead of one of the moves above
 *   n_rebuilt      15 tight        largest number of tables that one ruin and
 *                  0.3 TorchRec    recreate removes
 *   recuts         0.3 TorchRec    share of the removed tables, except the
 *                                  first, that get a newly drawn sharding
 *   pours          12 tight        whether whole and column-wise tables are
 *                  0.3 TorchRec    poured over the devices (search/moves.h)
 *   anywhere       0.5 roofline    share of moves that begin on any device; the
 *                                  others begin on a device that sets the total
 *   near_frac                      a term that another term hides still counts
 *                                  if it is smaller by at most this fraction
 *   imbalance_     0.8 tight       weight of the imbalance penalty; most moves
 *     weight       0.1 golden      do not touch the slowest device, which alone
 *                                  sets the total, so their effect on the other
 *                                  devices counts this much
 *   excess_weight  118 on one      penalty of a device that exceeds its memory
 *                  tight list,     by 100 %, in multiples of the best total; so
 *                  compared with   assignments that start above the memory come
 *                  a weight of 1   below it, and no plan stays above it
 *   n_prices       5 tight         largest number of prices of memory and of
 *                  0.7 TorchRec    replicas with which starts are built
 *   n_starts                       largest number of starting points: the best
 *                                  of each family, or the best of all families
 *   start_stages                   length of the annealing of each start, in
 *                                  multiples of the first stage
 *                                  (search/schedule.c)
 *   best_stages    0.2 roofline    length of the second annealing of the best
 *                  with default    start, in multiples of the first stage
 *                  effort; 1.1
 *                  on one list
 *   tempered       0.6 tight       share of a stage that runs parallel
 *                  0.3 TorchRec    tempering; the rest of it is annealing
 */
#define TUNING_FIELDS(FIELD)                       \
    FIELD(uint32_t, rebuilds, 250)                 \
    FIELD(uint32_t, n_rebuilt, TUNING_MAX_REBUILT) \
    FIELD(uint32_t, recuts, 500)                   \
    FIELD(bool, pours, true)                       \
    FIELD(uint32_t, anywhere, 500)                 \
    FIELD(double, near_frac, 0.1)                  \
    FIELD(double, imbalance_weight, 0.02)          \
    FIELD(double, excess_weight, 100)              \
    FIELD(uint32_t, n_prices, UINT32_MAX)          \
    FIELD(uint32_t, n_starts, STARTS_KEPT)         \
    FIELD(uint32_t, start_stages, 2)               \
    FIELD(uint32_t, best_stages, 16)               \
    FIELD(uint32_t, tempered, 750)

#define TUNING_MEMBER(type, name, value) type name;
struct tuning {
    /* Weight of each kind of move in each move mix. */
    uint32_t changes[N_MOVE_MIXES][N_CHANGE_KINDS];
    TUNING_FIELDS(TUNING_MEMBER)
};

extern const struct tuning tuning_default;

/* Returns true with a probability of share / 1000. */
static inline bool tuning_draw(struct rng *rng, uint32_t share)
{
    return rng_draw(rng, 1000) < share;
}

#endif
