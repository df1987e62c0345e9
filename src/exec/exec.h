/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_H
#define NEUROSHARD_EXEC_EXEC_H

#include "base/progress.h"
#include "core/plan.h"
#include "device/world.h"

/*
 * The executor: runs a plan and times it, on any device. The ranks are the
 * processes of a world, or all of them live in this one process on one device.
 * Both ways give the same results, bit for bit.
 *
 * An execution first compares one step with an unsharded double-precision
 * reference. Then it times each rank's work alone (ranks on CPUs of one host
 * take turns) and the exchanges of all ranks together. So phases are measured
 * one after the other, and the effect of a pipeline is computed from them
 * (core/step.h). Reported costs are defined as in struct device_cost.
 *
 * Supported are pooled tables with fp32 or fp16 weights, SGD or row-wise
 * Adagrad, outputs exchanged in fp32 or fp16, and pieces of every kind. A table
 * with num_outputs F has F bags per sample, with pooling_factor / F lookups
 * each. Indices follow the table's skew over its scaled rows.
 */

struct exec_options {
    /* Factor on the rows of each table, in (0, 1]. */
    double scale_rows;
    /* Timed iterations after the warm-up; >= 1. */
    unsigned n_iterations;
    uint64_t seed;
    /* Device memory to use; 0: all free memory. */
    uint64_t memory_bytes;
    /* Compare one step with the reference. */
    bool check;
    /* Repeat the timing of a rank while something else disturbs the machine,
     * see device/interference_probe.h. */
    bool wait_for_quiet;
    /* How the phases combine into a step. Default: one after the other, without
     * a dense part. */
    struct step step;
    /* Sink of process 0; may be NULL. It gets a SAMPLE_EXECUTED for each rank
     * that holds lookups of a single precision, flagged SAMPLE_THROTTLED if the
     * rank was disturbed, and a comm_sample if the exchange was measured. */
    struct sample_sink *sink;
    /* Counts the ranks that this process has timed; or NULL. */
    struct progress *progress;
};
void exec_options_init(struct exec_options *options);

enum verify_what { VERIFY_OUTPUTS, VERIFY_WEIGHTS, N_VERIFIED };

struct exec_rank {
    /* measured while the rank runs alone */
    struct timing forward, backward, compute;
    /* Time of each phase. For an exchange it is the time of all ranks together,
     * and NAN if comm is EXEC_COMM_ABSENT. */
    double phases_ms[N_PHASES];
    struct sample_health health; /* device state after the timing */
    /* The machine was disturbed and did not become quiet in time, or the
     * device's clocks were lowered. */
    bool disturbed;
    /* Hashes of the compared step, indexed by enum verify_what: hash of the
     * outputs at their receiver; hash of the weights and optimizer states of
     * touched rows. */
    uint64_t hashes[N_VERIFIED];
};

/* Tally of compared numbers. `error` is the largest |got - want| / (|want| +
 * largest |want| of the row), or INFINITY if a number is NaN. A row is one
 * output vector of a table, or one touched row of the table. */
struct tally {
    double error;
    uint64_t n;
};

/* Origin of the communication figures. */
enum exec_comm {
    EXEC_COMM_MEASURED,
    /* Times of exchanges and input are predicted by the plan's cost model. */
    EXEC_COMM_MODELLED,
    /* Nothing can be measured, and the plan has no predicted costs. */
    EXEC_COMM_ABSENT
};

struct exec_result {
    struct exec_rank *ranks; /* [R], in the arena */
    /* [R], in the arena: measured costs with the fields of a plan's predicted
     * costs, except memory. NAN if comm is EXEC_COMM_ABSENT. */
    struct device_cost *costs;
    /* Number of disturbed ranks; 0 without wait_for_quiet. */
    unsigned n_disturbed;
    /* Time of the step; NAN if comm is EXEC_COMM_ABSENT. */
    double total_ms;
    /* Rank with the largest measured compute. All ranks end the step together,
     * so this is the rank that is ready last. */
    uint32_t slowest;
    /* Exchanges of all ranks together, indexed by phase; zeros if not measured.
     */
    struct timing exchanges[N_PHASES];
    /* Whole steps, from lookup to update, of all processes together; zeros if
     * there is only one process. */
    struct timing step;
    /* Lookups and their exchange, of all processes together: [0] in one part,
     * [1] in the step's chunks. Zeros if there is only one chunk or one
     * process. */
    struct timing in_chunks[2];
    enum exec_comm comm;
    const char *comm_kind;  /* "copy", "mpi", "shm" or "nccl" */
    const char *comm_basis; /* one phrase on the origin of the figures */
    uint32_t n_processes, n_hosts;
    /* Number of turns in which the weights came into memory: 1 if they fit
     * together. The maximum over all processes. */
    uint32_t n_turns;
    struct tally outputs, weights;
    /* XXH3 hashes over the hashes of all ranks, for all outputs at their
     * receivers and for all weights and optimizer states of touched rows after
     * the step. They do not depend on the number of processes, the device or
     * its memory. 0 without the check. */
    uint64_t output_hash, weight_hash;
    /* NULL, or a sentence about the first table that differs from the reference
     * by more than its limit. The limit is 1e-5, or 2e-3 if weights are fp16 or
     * outputs are exchanged in fp16. */
    const char *failure;
    double scale_rows; /* factor that was used */
    uint32_t n_stored; /* samples that this run added to the sink */
};

/* Executes a plan, which must have passed plan_check. Collective over the
 * world. Every process gets the whole result. Only process 0 adds samples to
 * its sink.
 *
 * Errors:
 *   ERR_USAGE   the world has more than one process, but not one per rank
 *   ERR_INPUT   the plan cannot be executed, for example because a width is not
 *               a multiple of 4
 *   ERR_DEVICE  the device's memory is too small even for one rank at a time;
 *               the message names a --scale-rows that fits
 *
 * If one of several processes fails, the others may wait for it and nothing is
 * released. The caller can then only call world_abort. A result that differs
 * from the reference is not an error: see `failure`. */
int exec_run(struct exec_result *result, const struct plan *plan,
             struct world *world, struct device *device,
             const struct exec_options *options, struct arena *arena,
             struct err *err) MUST_CHECK;

#endif
