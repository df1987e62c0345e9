/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_H
#define NEUROSHARD_EXEC_VERIFY_H

#include "exec/exchange.h"
#include "exec/exec.h"

/*
 * The step against an unsharded reference in double precision. The reference
 * holds no table: it goes over one table after the other, one bag or one
 * touched row at a time, and computes weights and gradients from where they
 * stand. It shares no code with the look-ups, the exchange or the update. What
 * the device has comes to the host chunk by chunk.
 *
 * The error of a number is |got - want| / (|want| + largest |want| of its
 * row); a row is one output vector of the whole table, or one row of it.
 *
 * What is compared is also hashed, bit by bit, by rank: the same plan and seed
 * give the same hashes on every device, in turns or at once, and however the
 * ranks are spread over processes.
 */

#define VERIFY_FP32_LIMIT 1e-5
#define VERIFY_FP16_LIMIT 2e-3 /* weights stored, or outputs sent, in fp16 */

/* What was found; it may travel between processes. */
struct verify_findings {
    struct tally tallies[N_VERIFIED];
    /* A sentence on the first table that exceeded its limit; empty: none. */
    char failure[400];
};

struct verify {
    struct verify_findings found;
    struct exec_rank *ranks; /* [n_ranks], not owned: whose hashes it makes */
};

/* Outputs of step_forward at every receiver that is here; the partial sums of
 * row pieces are added up here, in fp32, as a receiver does. */
int verify_outputs(struct verify *verify, const struct exchange_set *set,
                   struct err *err) MUST_CHECK;
/* Weights of every touched row of the pieces that are loaded, after
 * step_update. A piece with row-wise Adagrad has its own state, so a column
 * split is held to the rule applied to each of its pieces. */
int verify_weights(struct verify *verify, const struct placement *placement,
                   struct err *err) MUST_CHECK;

/* Largest |value| of a row. */
double tally_scale(const double *row, uint32_t n);
/* Compares n numbers of a row whose largest |want| is scale. */
void tally_row(struct tally *tally, const double *want, const float *got,
               uint32_t n, double scale);
void tally_add(struct tally *sum, const struct tally *tally);

/* Counts what n threads have compared of one table. */
void verify_add(struct verify *verify, const struct table *table,
                enum verify_what what, const struct tally *tallies, unsigned n);

#endif
