/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_H
#define NEUROSHARD_EXEC_VERIFY_H

#include "exec/exec_result.h"

/*
 * Comparison of a step with an unsharded reference in double precision.
 *
 * The reference does not store tables. It processes one table after the other,
 * one bag or one touched row at a time, and computes weights and gradients from
 * their positions (exec/values.h). It shares no code with the lookups, the
 * exchange or the update. Results of the device are downloaded in chunks.
 *
 * The error of a number is |got - want| / (|want| + largest |want| of its row).
 * A row is one output vector of the whole table, or one row of the table.
 *
 * All compared numbers are also hashed bit by bit, per rank. The hashes depend
 * only on the plan and the seed. They do not depend on the device, on whether
 * weights are loaded in turns or all at once, and on the distribution of ranks
 * over processes.
 */

#define VERIFY_FP32_LIMIT 1e-5
/* Limit of the error if weights are stored in fp16 or outputs are sent in fp16.
 * Gradients of pooled outputs are exact in fp16, so updated weights keep the
 * limit of fp32. Sums of gradients of a de-duplicated sequence are not. */
#define VERIFY_FP16_LIMIT 2e-3

/* Findings of the comparison in this process. The struct has no pointers, so it
 * can be sent to other processes. */
struct verify_findings {
    struct tally tallies[N_VERIFIED];
    /* Sentence about the first table whose error exceeds the limit; empty if no
     * table exceeds it. */
    char failure[400];
};

struct verify {
    struct verify_findings found;
    /* [n_ranks], not owned; the hashes are stored in them */
    struct exec_rank *ranks;
};

/* Returns the largest |value| in a row. */
double tally_scale(const double *row, uint32_t n);
/* Compares n numbers of a row; `scale` is the largest |want| of the whole row.
 */
void tally_row(struct tally *tally, const double *want, const float *got,
               uint32_t n, double scale);
void tally_add(struct tally *sum, const struct tally *tally);

/* Adds the tallies of n threads to the findings. All tallies belong to the same
 * table. If the error of the table exceeds its limit, sets `failure`. */
void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tallies, unsigned n);

#endif
