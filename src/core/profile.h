/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PROFILE_H
#define NEUROSHARD_CORE_PROFILE_H

#include "base/mem.h"
#include "core/table.h"

/*
 * What the ids that a job looks up in one table say of it: pooling, reuse of
 * rows by batch, ids that repeat, the hottest rows and the Zipf exponent.
 *
 * Samples come one after the other. So many are a batch, and so many of these
 * a local batch, that of one GPU. The ids of a batch are sorted, so that each
 * row is a run, and the runs are added to the counts of all rows. A count has 8
 * bits, and 32 more for what it carries where 64 rows that follow each other
 * have one of more than 255 uses: memory that is not touched costs no time, and
 * of large tables it is most of it. So memory is 1 1/16 bytes for each row up
 * to the largest id, 4 to 8 more around those rows, up to a sixteenth more
 * where their number is not known before, and 8 to 16 for each id of a batch.
 * All is exact; but a row's count ends at 2^40 - 1.
 *
 * What is left behind the last whole batch counts for rows, but not for what is
 * told by batch, unless there is no whole one.
 *
 * The Zipf exponent is that whose law (core/rank_law.h) has as much entropy as
 * the uses: it solves sum E[X ln X] = sum c ln c for the counts c of the rows
 * and X their counts under the law, Poisson with mean n p(rank). With expected
 * counts on the right, which is what c ln c comes to where rows are used often,
 * that is the equation of maximum likelihood; with counts of few uses it is the
 * entropy of counts with its bias (G. A. Miller, Note on the bias of
 * information estimates, 1955) on both sides. No rank is asked for, so rows
 * that a hash has scattered, or that follow each other by frequency, have the
 * same exponent. Likelihood over rows sorted by their counts has another one:
 * of equal rows chance makes some hot, and sorting takes that for skew.
 */
struct profile; /* opaque */

#define PROFILE_MAX_ROWS ((uint64_t)UINT32_MAX)

struct profile_options {
    uint64_t batch, local_batch; /* samples, 1 <= local_batch <= batch, which it
                                    divides */
    uint64_t n_rows;      /* that the table has; 0: not known, then ids are */
    uint64_t max_rows;    /* below this, 1 .. PROFILE_MAX_ROWS */
    uint64_t max_batches; /* what comes behind them is dropped; 0: nothing */
    size_t n_hottest;
};

struct hottest_row {
    uint64_t row, count;
    double frac; /* of the ids */
};

struct profile_result {
    uint64_t n_samples, n_ids, n_batches; /* batches: whole ones */
    uint64_t n_rows;  /* as given, else up to the largest id */
    uint64_t n_used;  /* different ones */
    double used_frac; /* of the rows */
    double unique_frac, local_unique_frac; /* of the ids of a batch */
    double bins[REUSE_BINS];               /* as a struct table has them */
    double zipf_alpha; /* over n_rows rows; NAN for one row, or no ids */
    struct hottest_row *hottest; /* the hottest first, then the lower row */
    size_t n_hottest;            /* no more than are used */
};

struct profile *profile_open(const struct profile_options *options);
void profile_close(struct profile *profile); /* NULL is fine */

/* Samples until the local batch ends, 1 at least. */
uint64_t profile_room(const struct profile *profile);
bool profile_is_full(const struct profile *profile);   /* has max_batches */
uint64_t profile_bytes(const struct profile *profile); /* of memory, now */
/* Ids of samples that profile_end will end, all of one local batch. ERR_INPUT
 * for one that is no row, and where the batch has 2^32 ids. */
int profile_add(struct profile *profile, const int64_t *ids, size_t n,
                struct err *err) MUST_CHECK;
/* So many samples end, no more than there is room for. */
void profile_end(struct profile *profile, uint64_t n_samples);
/* No more is added then. The list of rows is the arena's. O(n_rows). */
void profile_finish(struct profile *profile, struct profile_result *result,
                    struct arena *arena);

#endif
