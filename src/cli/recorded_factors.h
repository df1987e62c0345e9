/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_RECORDED_FACTORS_H
#define NEUROSHARD_CLI_RECORDED_FACTORS_H

#include "base/cli.h"
#include "costmodel/learning/table_factors.h"
#include "costmodel/learning/wire_fit.h"
#include "exec/job.h"

/* Figures that the times of a job give to its next plan: factors by class of
 * tables, slow devices, and the bandwidth of its exchanges. */
struct recorded_factors {
    struct table_factors tables; /* no classes: nothing was asked for */
    struct wire_fit wire;
    const double *slowdown; /* [n_devices] in the arena, >= 1 */
    uint32_t n_devices;
};

/* Finds the factors, sets them in the plan, and writes the files of --output
 * and --output-cluster; without --output does nothing. has_exchanges: the times
 * of exchanges are whole. ERR_INPUT if the plan is not priced. */
int recorded_factors_save(struct recorded_factors *factors, struct plan *plan,
                          const struct job_times *job, bool has_exchanges,
                          const struct cli *cli, struct err *err) MUST_CHECK;

/* Adds the members "factors", "slowdown" and "wire", if they are known. */
void recorded_factors_to_json(const struct recorded_factors *factors,
                              json_t *root);
/* Appends a table by class, and a line for each other factor. */
void recorded_factors_print(const struct recorded_factors *factors,
                            struct buf *out);

#endif
