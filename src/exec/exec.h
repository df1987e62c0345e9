/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_H
#define NEUROSHARD_EXEC_EXEC_H

#include "base/progress.h"
#include "core/plan.h"
#include "device/world.h"

/*
 * The executor: a plan, run and timed for real, on any device. Its ranks are
 * the processes of a world, or all live in this one process on one device;
 * the results are the same, bit for bit. One step is compared with an
 * unsharded double-precision reference; then each rank's work is timed alone
 * (ranks on CPUs of one host take turns), and the exchanges all together. So
 * phases are measured one behind the other, and what a pipeline makes of them
 * is computed (core/step.h). What it reports has the definitions of struct
 * device_cost.
 *
 * Executed are pooled tables of fp32 or fp16 weights with SGD or row-wise
 * Adagrad, outputs exchanged in fp32 or fp16, in pieces of every kind. A table
 * with num_outputs F has F bags a sample, with pooling_factor / F look-ups
 * each. Indices follow the table's skew over its scaled rows.
 */

struct exec_options {
    double scale_rows;     /* rows of each table times this, in (0, 1] */
    unsigned n_iterations; /* timed, after warm-up; >= 1 */
    uint64_t seed;
    uint64_t memory_bytes; /* of the device, to be used; 0: what is free */
    bool check;            /* compare with the reference */
    bool wait_for_quiet;   /* time a rank again while something else disturbs
                              the machine, see device/canary.h */
    struct step step;      /* that the phases come to; by default one behind the
                              other, without a dense part */
    struct sample_sink *sink;  /* of process 0; may be NULL. Gets a
                                  SAMPLE_EXECUTED for each rank that holds
                                  something, of one precision (SAMPLE_THROTTLED
                                  where it was disturbed), and a comm_sample
                                  where the exchange was measured. */
    struct progress *progress; /* of ranks that are timed here; or NULL */
};
void exec_options_init(struct exec_options *options);

enum verify_what { VERIFY_OUTPUTS, VERIFY_WEIGHTS, N_VERIFIED };

struct exec_rank {
    struct timing forward, backward, compute; /* measured, rank alone */
    /* Of exchanges all ranks' time; NAN where comm is absent. */
    double phases_ms[N_PHASES];
    struct sample_health health; /* of the device, after it was timed */
    bool disturbed; /* the machine was, and did not become quiet in time, or
                       its clocks were lowered */
    /* Of the step that is compared: of outputs at their receiver, and of
     * weights and states of touched rows. */
    uint64_t hashes[N_VERIFIED];
};

/* Numbers that were compared: the largest |got - want| / (|want| + largest
 * |want| of the row), INFINITY for what is no number. A row is one output
 * vector of a table, or one touched row of it. */
struct tally {
    double error;
    uint64_t n;
};

/* How the communication figures came about. */
enum exec_comm {
    EXEC_COMM_MEASURED,
    EXEC_COMM_MODELLED, /* exchange and input times predicted by the plan's cost
                           model */
    EXEC_COMM_ABSENT    /* nothing to measure, and the plan is not priced */
};

struct exec_result {
    struct exec_rank *ranks;   /* [R], in the arena */
    struct device_cost *costs; /* [R], likewise: what a plan predicts, but for
                                  memory; NAN where comm is absent */
    unsigned n_disturbed;      /* ranks; 0 without wait_for_quiet */
    double total_ms;           /* the step; NAN where comm is absent */
    uint32_t slowest; /* rank with the largest measured compute: as all end
                         together, the one that is ready last */
    struct timing exchanges[N_PHASES]; /* all ranks' together, by their phases;
                                          zeros if not measured */
    struct timing step; /* look-ups to update by all processes together; zeros
                           where there is one process */
    struct timing in_chunks[2]; /* look-ups and their exchange in one part, and
                                   in the step's chunks, likewise; zeros where
                                   there is one */
    enum exec_comm comm;
    const char *comm_kind;  /* "copy", "mpi", "shm", "nccl" */
    const char *comm_basis; /* one phrase on the communication figures */
    uint32_t n_processes, n_hosts;
    uint32_t n_turns; /* in which the weights came into memory: 1 where they
                         fit together; the most of any process */
    struct tally outputs, weights;
    /* XXH3 over the ranks': of all outputs at their receivers, and of all
     * weights and states of touched rows after the step. The same for any
     * number of processes, device and memory. 0 without the check. */
    uint64_t output_hash, weight_hash;
    /* NULL, or a sentence on the first table that differs from the reference
     * by more than its limit: 1e-5, with fp16 weights, or outputs exchanged in
     * fp16, 2e-3. */
    const char *failure;
    double scale_rows; /* as used */
    uint32_t n_stored; /* samples that the sink has taken now */
};

/* Collective over the world; every process gets the whole result (the samples
 * go to the sink of process 0). The plan must have passed plan_check.
 * ERR_USAGE where the world has more than one process, but not one a rank;
 * ERR_INPUT for what cannot be executed (a width that is no multiple of 4
 * ...), ERR_DEVICE where not even the ranks one after the other fit the
 * device's memory (the sentence says which --scale-rows would). Where one of
 * several processes fails, the others may wait for it and nothing is released:
 * world_abort is then all that can be done. A wrong result is no error here:
 * see failure. */
int exec_run(struct exec_result *result, const struct plan *plan,
             struct world *world, struct device *device,
             const struct exec_options *options, struct arena *arena,
             struct err *err) MUST_CHECK;

#endif
