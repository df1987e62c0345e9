/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_H
#define NEUROSHARD_EXEC_EXEC_H

#include <stdbool.h>

#include "core/plan.h"
#include "core/sample.h"
#include "device/device.h"

/*
 * The executor: a plan, run and timed for real. Its R ranks live in one
 * process; each rank's look-ups are timed alone on the whole device, the
 * all-to-all is done as real copies between rank buffers, and everything is
 * compared with an unsharded double-precision reference. What it reports has
 * the definitions of struct device_cost.
 *
 * Executed are pooled tables of fp32 or fp16 weights with SGD or row-wise
 * Adagrad, in pieces of every kind. A table with num_outputs F has F bags a
 * sample, with pooling_factor / F look-ups each. Indices follow the table's
 * skew over its scaled rows.
 */

struct exec_options {
    double scale_rows;     /* rows of each table times this, in (0, 1] */
    unsigned n_iterations; /* timed, after warm-up; >= 1 */
    float learning_rate;   /* of the step that is compared */
    uint64_t seed;
    int check;                /* compare with the reference */
    int wait_for_quiet;       /* time a rank again while something else
                                 disturbs the machine, see device/canary.h */
    struct sample_sink *sink; /* may be NULL: gets a SAMPLE_EXECUTED for each
                                 rank that holds something, of one precision;
                                 SAMPLE_THROTTLED where it was disturbed */
    void (*progress)(void *ctx, uint64_t done, uint64_t total); /* or NULL */
    void *progress_ctx;
};
void exec_options_init(struct exec_options *options);

struct exec_rank {
    struct timing forward, backward, compute;  /* measured, rank alone */
    double fwd_comm_ms, bwd_comm_ms, total_ms; /* by the definitions of a plan;
                                                  see comm_basis */
    bool disturbed; /* the machine was, and did not become quiet in time */
};

struct exec_result {
    struct exec_rank *ranks; /* [R], in the arena */
    unsigned n_disturbed;    /* ranks; 0 without wait_for_quiet */
    double total_ms;
    struct timing fwd_exchange; /* all ranks' copies, measured */
    struct timing bwd_exchange; /* the all-reduce of replicas included */
    const char *comm_basis;     /* how communication figures came about */
    /* Largest |got - want| / (|want| + largest |want| of the row). A row is
     * one output vector of a table, or one touched row of it. */
    double output_error, weight_error;
    uint64_t n_outputs_checked, n_weights_checked;
    /* NULL, or a sentence on the first table that differs from the reference
     * by more than its limit: 1e-5, with fp16 weights 2e-3. */
    const char *failure;
    double scale_rows; /* as used */
    uint32_t n_stored; /* samples that the sink has taken now */
};

/* The plan must have passed plan_check. ERR_INPUT for what cannot be executed
 * (a width that is no multiple of 4 ...), ERR_DEVICE where it does not fit the
 * device's memory (the sentence says which --scale-rows would fit) or the
 * device is no CPU. A wrong result is no error here: see failure. */
int exec_run(struct exec_result *result, const struct plan *plan,
             struct device *device, const struct exec_options *options,
             struct arena *arena, struct err *err) MUST_CHECK;

#endif
