/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_DIFF_GAIN_H
#define NEUROSHARD_EMIT_DIFF_GAIN_H

#include "base/json.h"
#include "core/host.h"

/*
 * Gain of a plan over another: steps with the host, GPU work without it, tables
 * whose training changes, and a verdict.
 *
 * A plan pays if its steps are shorter by more than the error of their ratio,
 * and by more than DIFF_LEAST_GAIN.
 */
#define DIFF_LEAST_GAIN 0.01

struct diff_gain {
    /* true: one cost model has priced both plans; if not, all figures are
     * NAN */
    bool is_priced;
    struct time_range steps[2]; /* steps before and after, with the host */
    double host_ms[2], work_ms[2];
    /* ratios before / after; their errors are relative, NAN if unknown */
    double step_ratio, step_error_frac, work_ratio, work_error_frac;
    bool pays;
    /* tables that the new plan, but not the old one, trains otherwise than
     * whole; [n_changed] in the arena, which live as long as the plans */
    const char **changed;
    size_t n_changed;
    /* one sentence in the arena; NULL if not priced */
    const char *verdict;
};

/* True if one cost model has priced both plans. */
bool diff_is_priced(const struct plan plans[2]);
/* Compares plans[0], the plan before, with plans[1]. moved_bytes: bytes that
 * change their GPU. */
void diff_gain_find(struct diff_gain *gain, const struct plan plans[2],
                    uint64_t moved_bytes, struct arena *arena);
/* Appends the lines "step" and "work". */
void diff_gain_print(const struct diff_gain *gain, struct buf *out);
/* Returns the ratios, pays, the changed tables and the verdict as an object.
 * The caller decrefs it. */
json_t *diff_gain_to_json(const struct diff_gain *gain);

#endif
