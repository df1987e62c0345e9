/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_VERIFY_SEQUENCES_H
#define NEUROSHARD_EXEC_VERIFY_SEQUENCES_H

#include "exec/exchange.h"
#include "exec/verify.h"

/* Comparison of the sequences of a step with the reference of
 * exec/verify.h. */

/* Compares the vectors that step_forward gave every receiver in this process.
 * Puts the vector of each lookup together from the pieces of its row, as a
 * receiver does, and compares it with the row of the unsharded table. A
 * difference is stored in verify->found and is no error. Fails with
 * ERR_DEVICE. */
int verify_sequences(struct verify *verify, const struct exchange_set *set,
                     struct err *err) MUST_CHECK;

#endif
