/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_H
#define NEUROSHARD_EXEC_EXEC_H

#include "base/progress.h"
#include "core/plan.h"
#include "device/world.h"

/*
 * The executor: runs a plan and times it, on any device. Either each rank is a
 * process of a world, or all ranks are in this one process and share one
 * device. The results are the same in both cases, bit for bit.
 *
 * An execution first compares one step with an unsharded double-precision
 * reference. Then it times the work of each rank alone (ranks on CPUs of one
 * host take turns), and the exchanges of all ranks together. So the phases are
 * measured one after the other. The effect of a pipeline is computed from their
 * times (core/step.h). Reported costs are defined as in struct device_cost.
 *
 * The executor supports pooled tables with fp32 or fp16 weights, SGD or
 * row-wise Adagrad, outputs exchanged in fp32 or fp16, and pieces of every
 * kind. A table with num_outputs F has F bags per sample, and pooling_factor /
 * F lookups per bag. Indices follow the table's skew over its scaled number of
 * rows.
 */

struct exec_options {
    /* Factor by which the number of rows of each table is scaled, in (0, 1]. */
    double scale_rows;
    /* Number of timed iterations after the warm-up; >= 1. */
    unsigned n_iterations;
    uint64_t seed;
    /* Bytes of device memory to use; 0: all free memory. */
    uint64_t memory_bytes;
    /* True to compare one step with the reference. */
    bool check;
    /* True to repeat the timing of a rank while other load disturbs the machine
     * (see device/interference_probe.h). */
    bool wait_for_quiet;
    /* Rule by which the phases combine into a step. Default: one phase after
     * the other, without a dense part. */
    struct step step;
    /* Sink for samples, used only in process 0; may be NULL. It gets a
     * SAMPLE_EXECUTED for each rank whose lookups all have one precision. The
     * sample is flagged SAMPLE_THROTTLED if the rank was disturbed. The sink
     * also gets a comm_sample if the exchange was measured. */
    struct sample_sink *sink;
    /* Counter for the ranks that this process has timed; may be NULL. */
    struct progress *progress;
};
void exec_options_init(struct exec_options *options);

enum verify_what { VERIFY_OUTPUTS, VERIFY_WEIGHTS, N_VERIFIED };

struct exec_rank {
    /* measured while no other rank runs */
    struct timing forward, backward, compute;
    /* Time of each phase. For an exchange it is the time of all ranks together.
     * It is NAN if comm is EXEC_COMM_ABSENT. */
    double phases_ms[N_PHASES];
    struct sample_health health; /* state of the device after the timing */
    /* True if other load disturbed the machine and did not end in time, or if
     * the device's clocks were lowered. */
    bool disturbed;
    /* Hashes of the compared step, indexed by enum verify_what. The first
     * covers the outputs that the rank receives; the second covers the weights
     * and optimizer states of the rank's touched rows. */
    uint64_t hashes[N_VERIFIED];
};

/* Tally of the numbers that were compared with the reference. `error` is the
 * largest |got - want| / (|want| + largest |want| of the row), or INFINITY if a
 * number is NaN. A row is one output vector of a table, or one touched row of
 * the table. */
struct tally {
    double error;
    uint64_t n;
};

/* Origin of the communication figures. */
enum exec_comm {
    EXEC_COMM_MEASURED,
    /* The plan's cost model predicts the times of exchanges and input. */
    EXEC_COMM_MODELLED,
    /* No communication can be measured, and the plan has no predicted costs. */
    EXEC_COMM_ABSENT
};

struct exec_result {
    struct exec_rank *ranks; /* [R] results of each rank, in the arena */
    /* [R], in the arena: measured costs, in the same fields as a plan's
     * predicted costs. Memory is not filled in. Costs are NAN if comm is
     * EXEC_COMM_ABSENT. */
    struct device_cost *costs;
    /* Number of ranks whose timing was disturbed; 0 without wait_for_quiet. */
    unsigned n_disturbed;
    /* Time of the step; NAN if comm is EXEC_COMM_ABSENT. */
    double total_ms;
    /* Rank with the largest measured compute. This rank is ready last, because
     * all ranks end the step together. */
    uint32_t slowest;
    /* Times of the exchanges of all ranks together, indexed by phase. Zeros for
     * exchanges that were not measured. */
    struct timing exchanges[N_PHASES];
    /* Time of whole steps of all processes together, from lookup to update.
     * Zeros if there is only one process. */
    struct timing step;
    /* Time of the lookups and their exchange, of all processes together: [0]
     * the batch in one part, [1] in the chunks of the step. Zeros if there is
     * only one chunk or only one process. */
    struct timing in_chunks[2];
    enum exec_comm comm;
    /* kind of communication: "copy", "mpi", "shm" or "nccl" */
    const char *comm_kind;
    /* one phrase that names the origin of the figures */
    const char *comm_basis;
    uint32_t n_processes, n_hosts;
    /* Number of turns in which weights were loaded into memory. It is 1 if all
     * weights fit together. Maximum over all processes. */
    uint32_t n_turns;
    struct tally outputs, weights;
    /* XXH3 hashes over the hashes of all ranks. output_hash covers all outputs
     * at their receivers. weight_hash covers the weights and optimizer states
     * of all touched rows after the step. They do not depend on the number of
     * processes, the device or its memory. 0 if the check was off. */
    uint64_t output_hash, weight_hash;
    /* Sentence about the first table whose difference from the reference
     * exceeds its limit; NULL if no table exceeds it. The limit is 1e-5, or
     * 2e-3 if weights are fp16 or outputs are exchanged in fp16. */
    const char *failure;
    double scale_rows; /* scaling factor of rows that was used */
    uint32_t n_stored; /* number of samples that this run added to the sink */
};

/*
 * Executes a plan, which must have passed plan_check. Collective over the
 * world. Every process gets the whole result. Only process 0 adds samples to
 * its sink.
 *
 * Errors:
 *   ERR_USAGE   the world has several processes, but not one for each rank
 *   ERR_INPUT   the plan cannot be executed, for example because a width is not
 *               a multiple of 4
 *   ERR_DEVICE  the device's memory is too small even for one rank at a time;
 *               the message names a --scale-rows that fits
 *
 * If one of several processes fails, other processes may still wait for it, so
 * nothing is released. The caller can then only call world_abort. A result that
 * differs from the reference is not an error. `failure` describes the
 * difference.
 */
int exec_run(struct exec_result *result, const struct plan *plan,
             struct world *world, struct device *device,
             const struct exec_options *options, struct arena *arena,
             struct err *err) MUST_CHECK;

#endif
