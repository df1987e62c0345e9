/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_H
#define NEUROSHARD_EXEC_VERIFY_H

#include "exec/exchange.h"
#include "exec/exec.h"

/*
 * Comparison of a step with an unsharded reference in double precision. The
 * reference stores no table. It goes through the tables one by one, one bag or
 * one touched row at a time, and computes weights and gradients from their
 * positions (exec/values.h). It shares no code with the lookups, the exchange
 * or the update. The device's results are downloaded chunk by chunk.
 *
 * The error of a number is |got - want| / (|want| + largest |want| of its row).
 * A row is one output vector of the whole table, or one row of the table.
 *
 * All compared numbers are also hashed bit by bit, per rank. The hashes depend
 * only on the plan and the seed. They are equal on every device, with weights
 * loaded in turns or at once, and with any distribution of the ranks over
 * processes.
 */

#define VERIFY_FP32_LIMIT 1e-5
/* Limit if weights are stored, or outputs are sent, in fp16. */
#define VERIFY_FP16_LIMIT 2e-3

/* Findings of the comparison, in a form that can be sent between processes. */
struct verify_findings {
    struct tally tallies[N_VERIFIED];
    /* Sentence about the first table that exceeded its limit; empty if no table
     * did. */
    char failure[400];
};

struct verify {
    struct verify_findings found;
    struct exec_rank *ranks; /* [n_ranks], not owned; gets the hashes */
};

/* Compares the outputs of step_forward at every receiver in this process. It
 * adds up the partial sums of row pieces in fp32, as a receiver does. */
int verify_outputs(struct verify *verify, const struct exchange_set *set,
                   struct err *err) MUST_CHECK;
/* Compares the weights of every touched row of the loaded pieces, after
 * step_update. With row-wise Adagrad each piece has a state of its own. So the
 * reference applies the update rule to each piece of a column split separately.
 */
int verify_weights(struct verify *verify, const struct placement *placement,
                   struct err *err) MUST_CHECK;

/* Returns the largest |value| of a row. */
double tally_scale(const double *row, uint32_t n);
/* Compares n numbers of a row; `scale` is the largest |want| of the whole row.
 */
void tally_row(struct tally *tally, const double *want, const float *got,
               uint32_t n, double scale);
void tally_add(struct tally *sum, const struct tally *tally);

/* Adds the tallies of n threads, all for one table, to the findings. Sets
 * `failure` if the table exceeds its limit. */
void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tallies, unsigned n);

#endif
