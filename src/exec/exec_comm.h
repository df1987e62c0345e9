/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_COMM_H
#define NEUROSHARD_EXEC_EXEC_COMM_H

#include "exec/exchange.h"
#include "exec/exec.h"

/*
 * Communication figures by the definitions of a plan. A rank is ready for the
 * forward exchange after its compute and backward exchange; it waits there for
 * the last one, and the exchange follows. Where the ranks share one GPU their
 * copies are no wire: the exchanges then take what the plan's cost model
 * predicts, and only the waiting follows from measured compute.
 */

/* Whether the exchanges of this placement are worth timing: anything but
 * copies within a GPU. */
bool exec_comm_is_real(const struct placement *placement);

/* Fills the ranks' communication and totals; from the timed exchanges where
 * they are real. */
void exec_comm_fill(struct exec_result *result,
                    const struct placement *placement, struct arena *arena);

/* Hands the timed forward exchange to the sink. */
int exec_comm_put(const struct exec_result *result,
                  const struct exchange_set *set,
                  const struct exec_options *options,
                  struct err *err) MUST_CHECK;

#endif
