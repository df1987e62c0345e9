/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_EXEC_STAGE_H
#define NEUROSHARD_TESTS_UNIT_EXEC_STAGE_H

#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec/rank_work.h"
#include "exec/sequences.h"
#include "exec/verify_outputs.h"
#include "exec/verify_sequences.h"
#include "exec/verify_weights.h"
#include "exec_fixture.h"

/* A plan whose step runs part by part, so that a test can change numbers in the
 * device's memory between two parts, and then compare with the reference as
 * exec_run does. */
struct stage {
    struct fixture fixture;
    struct placement placement;
    struct exchange_set set;
    struct exec_rank ranks[4];
    struct verify verify;
};

/* Places the plan of stage->fixture and loads its weights. The other members of
 * the struct must be zero. */
static inline void stage_open(struct stage *stage)
{
    struct fixture *fixture = &stage->fixture;
    struct placement *placement = &stage->placement;
    struct err err = {0};

    plan_derive_kinds(&fixture->plan);
    if (placement_init(placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err))
        fixture_bail(&err);
    sequences_count(placement, &fixture->arena);
    if (placement_cut_turns(placement, 4ull << 30, &err) ||
        placement_open(placement, &err) || placement_load(placement, 0, &err) ||
        exchange_open(&stage->set, placement, &fixture->arena, &err))
        fixture_bail(&err);
}

static inline void stage_close(struct stage *stage)
{
    exchange_close(&stage->set);
    placement_release(&stage->placement);
    fixture_release(&stage->fixture);
}

/* The parts of a step. */
static inline void stage_forward(struct stage *stage)
{
    struct err err = {0};

    if (step_forward(&stage->placement, &stage->set, &err))
        fixture_bail(&err);
}

static inline void stage_gradients(struct stage *stage)
{
    struct err err = {0};

    if (step_gradients(&stage->set, &err))
        fixture_bail(&err);
}

static inline void stage_update(struct stage *stage)
{
    struct err err = {0};

    if (step_update(&stage->placement, 0, &err))
        fixture_bail(&err);
}

/* Compares all outputs or all weights from scratch, and stores the findings in
 * stage->verify and the hashes in stage->ranks. */
static inline void stage_compare(struct stage *stage, enum verify_what what)
{
    struct verify *verify = &stage->verify;
    struct err err = {0};

    memset(stage->ranks, 0, sizeof(stage->ranks));
    *verify = (struct verify){.ranks = stage->ranks};
    if (what == VERIFY_OUTPUTS
            ? verify_outputs(verify, &stage->set, &err) ||
                  verify_sequences(verify, &stage->set, &err)
            : verify_weights(verify, what, &stage->placement, &err))
        fixture_bail(&err);
}

/* Compares. Returns the name of the table that fails, or NULL. The next call
 * overwrites the name. */
static inline const char *failed_table(struct stage *stage,
                                       enum verify_what what)
{
    static char name[80];

    stage_compare(stage, what);
    if (sscanf(stage->verify.found.failure, "table '%79[^']'", name) == 1)
        return name;
    return NULL;
}

#endif
