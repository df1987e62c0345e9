/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_CACHE_MODEL_H
#define NEUROSHARD_CORE_CACHE_MODEL_H

#include "core/table.h"

/*
 * Misses of a cache of rows that several pieces of tables share: a pool. The
 * cache has slots of one row each and replaces the row that was used in the
 * oldest batch. A miss is a row that a batch uses and the cache does not hold;
 * a row counts once per batch, whatever the number of its lookups. Batches are
 * global batches.
 *
 * Curve of a piece: rows that it keeps in the cache, and its misses per batch,
 * at CACHE_KNOTS knots. All pieces of a pool are at the same knot, so the
 * curves of pieces add up to the curve of the pool, and the number of slots
 * determines the knot. Between two knots, misses are linear in the rows. Knots:
 *
 *   CACHE_LEVELS levels
 *       The cache has slots for the share level / CACHE_LEVELS of the rows of a
 *       batch.
 *   REACH_WINDOWS windows
 *       The cache holds all rows of the last 2^k batches. The rows are the
 *       reach r(2^k), and the misses are r(2^k + 1) - r(2^k).
 *   1 end
 *       The cache holds all rows and misses none.
 *
 * A batch uses a row with probability q. With a mean of l uses, q is 1 -
 * exp(-l), and r(w) is the sum of 1 - exp(-l w) over the rows. Sources of a
 * curve:
 *
 *   measured reach
 *       The table's reach and misses (struct table). The levels follow from the
 *       probabilities q that fit them best. Windows after the last measured one
 *       continue the last two misses geometrically.
 *   Zipf exponent
 *       The Zipf law.
 *   reuse bins
 *       The Zipf law whose bins fit best (maximum likelihood). Bins describe
 *       one batch; tables with equal bins may differ in nearly half of their
 *       misses.
 *
 * Errors of the miss ratio, in percent of a batch's rows, against an exact
 * simulation of FBGEMM's cache (tests/bench/bench_cache.c):
 *
 *                                              at most   mean
 *     Zipf laws, the cache holds a batch          0.97   0.21
 *     Zipf laws, smaller caches                   0.66   0.18
 *     drifting traces, the cache holds a batch    0.85   0.18
 *     drifting traces, smaller caches             0.40   0.13
 *     2 to 5 tables, the cache holds a batch      0.33   0.13
 *     2 to 5 tables, their sum, smaller caches    1.83   0.89
 */

#define CACHE_LEVELS 16
#define CACHE_KNOTS (CACHE_LEVELS + REACH_WINDOWS + 1)

/* Basis of predicted misses, the best first. */
enum cache_basis {
    CACHE_MEASURED, /* reach and misses were measured */
    CACHE_MODELLED, /* the Zipf exponent was given */
    /* The Zipf exponent is assumed or fitted to bins, or the window is longer
     * than the measured ones. */
    CACHE_ASSUMED
};
#define N_CACHE_BASES 3
/* Names of the enum values; the array ends with NULL. */
extern const char *const cache_basis_names[];

struct cache_curve {
    /* [CACHE_KNOTS] rows in the cache, never falling, and misses per batch,
     * never growing */
    double rows[CACHE_KNOTS], misses[CACHE_KNOTS];
    /* Basis up to knot `n_known - 1`. Between later knots, misses are
     * assumed. */
    enum cache_basis basis;
    unsigned n_known;
};

/* Computes the curve of a whole table for batches of n_lookups lookups of the
 * table. Measured reach is used as it is, whatever n_lookups. Takes 0.05
 * ms for an exponent, 0.5 ms for measured reach and 4 ms for bins. */
void cache_curve_init(struct cache_curve *curve, const struct table *table,
                      double n_lookups);
/* Returns the Zipf exponent whose bins fit those of the table best. The table
 * has bins, and a batch has n_lookups lookups. */
double cache_fit_zipf(const struct table *table, double n_lookups);

/* --- widths of slots --- */

/* A slot is as wide as the widest piece of its pool. The widths of pieces form
 * at most CACHE_MAX_WIDTHS classes. */
#define CACHE_MAX_WIDTHS 16
struct cache_widths {
    uint32_t n;
    uint32_t widths[CACHE_MAX_WIDTHS]; /* ascending, in columns */
};

/* Adds the width of a piece. If there are too many widths, drops the one that
 * is closest to the next larger one, relatively; the class of its pieces is
 * then the larger width. */
void cache_widths_add(struct cache_widths *widths, uint32_t width);
/* Returns the class of a width that is at most the largest width added. */
unsigned cache_widths_class(const struct cache_widths *widths, uint32_t width);

/* --- pools --- */

/*
 * Lanes of a piece or of a pool. The lanes of a pool are the sums of the lanes
 * of its pieces, so a search keeps running sums:
 *
 *   CACHE_ROWS + knot      rows in the cache
 *   CACHE_MISSES + knot    misses per batch
 *   CACHE_BYTES + knot     bytes of the missed rows per batch
 *   CACHE_COUNTS + class   number of pieces of this class of widths
 */
enum {
    CACHE_ROWS,
    CACHE_MISSES = CACHE_ROWS + CACHE_KNOTS,
    CACHE_BYTES = CACHE_MISSES + CACHE_KNOTS,
    CACHE_COUNTS = CACHE_BYTES + CACHE_KNOTS,
    CACHE_LANES = CACHE_COUNTS + CACHE_MAX_WIDTHS
};

/* Fills the lanes of a piece: a share row_frac of the table's rows, spread
 * evenly over their heat, with rows of row_bytes bytes. width_class is the
 * class of its width. */
void cache_embed(double lanes[CACHE_LANES], const struct cache_curve *curve,
                 double row_frac, double row_bytes, unsigned width_class);
/* Returns the width of the pool's slots in columns, or 0 for a pool without
 * pieces. */
uint32_t cache_slot_width(const double pool[CACHE_LANES],
                          const struct cache_widths *widths);

/* Place between knot `knot` and the next one, 0 <= frac <= 1. */
struct cache_point {
    unsigned knot;
    double frac;
};
struct cache_use {
    double misses;     /* per batch */
    double miss_bytes; /* bytes of the missed rows per batch */
    struct cache_point point;
};

/* Returns the use of a pool with n_slots slots. */
struct cache_use cache_evaluate(const double pool[CACHE_LANES], double n_slots);
/* Returns the misses per batch of a piece whose pool is at the point. If the
 * pool does not hold the rows of a batch, only the sum over its pieces is
 * right: rows with small numbers are inserted first, so the first tables of the
 * pool miss fewer rows and the last ones more. */
double cache_misses(const struct cache_curve *curve, double row_frac,
                    struct cache_point point);
/* Returns the basis of these misses. */
enum cache_basis cache_basis_at(const struct cache_curve *curve,
                                struct cache_point point);

#endif
