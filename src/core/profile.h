/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_PROFILE_H
#define NEUROSHARD_CORE_PROFILE_H

#include "base/mem.h"
#include "core/table.h"

/*
 * Statistics of one table from the ids that a job looks up: pooling factor,
 * reuse of rows per batch and between batches, duplicate ids, the hottest rows
 * and the Zipf exponent.
 *
 * Input: samples in order. A batch has `batch` samples. It consists of local
 * batches of `local_batch` samples; each local batch is for one GPU.
 *
 * Method: the ids of a batch are sorted, so that the uses of a row form a run,
 * and the runs are added to the counts of all rows. A count has 8 bits, beside
 * 24 bits for the number of the last batch that used the row. If any row of a
 * group of 64 consecutive rows has more than 255 uses, each count of the group
 * gets 32 more bits for its carry. Most of the memory for a large table is
 * never touched, and untouched memory costs no time. Memory in bytes:
 *
 *     4 1/16        per row up to the largest id
 *     up to 1/16    of that more if the number of rows is not known in advance
 *     4 to 8        more per row in a group of 64 rows with a carry
 *     8 to 16       per id of a batch
 *     8 to 16       per batch, up to 2^16 batches
 *
 * All results are exact, except that the count of a row stops at 2^40 - 1.
 *
 * Reach and misses: the gap of a row in a batch is the number of batches since
 * the batch that used it last. A row that no batch used before has the gap to
 * an imagined batch before the first. So batch b of n (0, 1 ...) counts for
 * windows of w <= b batches only. m(w) is the number of gaps above w, divided
 * by n - w. Batches are alike in the mean, so the reach r(w) is m(0) + m(1) +
 * ... + m(w - 1). Noise may let m(w) grow with w; it is then m(w - 1). Only the
 * first 2^24 - 2 batches count.
 *
 * The ids after the last complete batch count for the statistics of rows. They
 * count for the statistics per batch only if there is no complete batch.
 *
 * The Zipf exponent is chosen so that the Zipf law (core/rank_law.h) has the
 * same entropy as the measured uses. It solves sum E[X ln X] = sum c ln c. Here
 * c is the measured count of a row. X is the count of the row under the law: a
 * Poisson number with mean n p(rank). If rows are used often, c ln c is close
 * to its value at the expected count, and the equation is the equation of
 * maximum likelihood. If rows are used rarely, both sides of the equation have
 * the same bias: the bias of the entropy of counts (G. A. Miller, Note on the
 * bias of information estimates, 1955). The equation does not use ranks, so
 * rows that are scattered by a hash and rows that are sorted by frequency get
 * the same exponent. Maximum likelihood over rows sorted by their counts gives
 * another exponent: among equally likely rows, some get more uses by chance,
 * and after sorting this looks like skew.
 */
struct profile; /* opaque */

#define PROFILE_MAX_ROWS ((uint64_t)UINT32_MAX)

struct profile_options {
    /* sizes of a batch and of a local batch in samples;
     * 1 <= local_batch <= batch, and local_batch divides batch */
    uint64_t batch, local_batch;
    /* number of rows of the table; 0: unknown. Then ids must be below
     * max_rows. */
    uint64_t n_rows;
    /* upper limit of ids if n_rows is 0: 1 .. PROFILE_MAX_ROWS */
    uint64_t max_rows;
    /* number of batches to read; further samples are dropped. 0: no limit */
    uint64_t max_batches;
    size_t n_hottest;
};

struct hottest_row {
    uint64_t row, count;
    double frac; /* share of all ids */
};

struct profile_result {
    uint64_t n_samples, n_ids, n_batches; /* n_batches: complete batches */
    /* number of rows from the options, or the largest id + 1 */
    uint64_t n_rows;
    uint64_t n_used;  /* number of different ids */
    double used_frac; /* share of the rows that are used at least once */
    /* unique ids / all ids: unique_frac within batches, local_unique_frac
     * within local batches */
    double unique_frac, local_unique_frac;
    /* reuse histogram, as `bins` of struct table */
    double bins[REUSE_BINS];
    /* reach and misses of windows of 2^k batches, as in struct table; there are
     * windows up to 2^k < n_batches */
    uint32_t n_reach;
    double reach[REACH_WINDOWS], misses[REACH_WINDOWS];
    /* Zipf exponent over n_rows rows; NAN if there is one row or no id */
    double zipf_alpha;
    /* [n_hottest] rows by falling count, then by rising row number */
    struct hottest_row *hottest;
    size_t n_hottest; /* number of hottest rows, at most n_used */
};

struct profile *profile_open(const struct profile_options *options);
void profile_close(struct profile *profile); /* NULL is allowed */

/* Returns the number of samples that are missing from the current local batch,
 * at least 1. */
uint64_t profile_room(const struct profile *profile);
/* Returns true if max_batches batches have been read. */
bool profile_is_full(const struct profile *profile);
/* Returns the bytes of memory that the profile uses. */
uint64_t profile_bytes(const struct profile *profile);
/* Adds n ids of one or more samples, all in the same local batch. profile_end
 * must be called after the last id of these samples. Returns ERR_INPUT if an id
 * is not a row of the table, or if the batch reaches 2^32 ids. */
int profile_add(struct profile *profile, const int64_t *ids, size_t n,
                struct err *err) MUST_CHECK;
/* Ends the n_samples samples whose ids were added since the last call of
 * profile_end; n_samples is at most profile_room(profile). */
void profile_end(struct profile *profile, uint64_t n_samples);
/* Computes the results. No ids may be added afterwards. result->hottest lives
 * in the arena. Takes O(n_rows) time. */
void profile_finish(struct profile *profile, struct profile_result *result,
                    struct arena *arena);

#endif
