/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_EXEC_RESULT_H
#define NEUROSHARD_EXEC_EXEC_RESULT_H

#include "core/plan.h"
#include "core/sample.h"
#include "exec/sync_result.h"

/* Results of an execution. */

/* Numbers that are compared with the reference (exec/verify.h). */
enum verify_what {
    VERIFY_OUTPUTS,
    VERIFY_WEIGHTS,
    VERIFY_AVERAGES, /* weights after a sync of the sharding groups */
    N_VERIFIED
};

struct exec_rank {
    /* measured while no other rank runs */
    struct timing forward, backward, compute;
    /* Time to move rows into caches, which is part of `forward`. */
    struct timing fill;
    unsigned n_fills; /* batches that warmed the caches; 0: no caches */
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

/* A cache of a rank, and its use in the timed iterations. */
struct exec_cache {
    uint32_t device;
    const char *pool;    /* pool_print */
    uint32_t slot_width; /* in columns */
    uint64_t n_slots;    /* of the scaled tables */
    /* bytes of a row; 0 if pieces have different widths */
    size_t row_bytes;
    /* share of the slots that hold rows at the end */
    double full_frac;
    /* per batch; see struct cache_counts */
    double rows, misses, conflicts, bytes;
    uint64_t n_batches;
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
    /* [n_caches], in the arena, sorted by device and pool */
    struct exec_cache *caches;
    size_t n_caches;
    struct tally outputs, weights;
    struct tally averages; /* empty if there is one sharding group */
    struct sync_result sync;
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

#endif
