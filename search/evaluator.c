/* SPDX-License-Identifier: MIT */
#include "search/evaluator.h"

#include <assert.h>
#include <math.h>
#include <string.h>

/* Returns the maximum of term k over the devices that the candidate does not
 * touch, or 0 if it touches all devices. Blocks that contain a touched device
 * are scanned device by device. */
static double most_left_alone(const struct candidate *candidate,
                              const struct assignment *assignment, size_t k)
{
    const size_t n_terms = assignment->n_terms;
    const uint32_t n_blocks = assignment_n_blocks(assignment->n_devices);
    double most_ms = 0;

    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint32_t begin = b * ASSIGNMENT_BLOCK;
        const uint32_t end =
            (uint32_t)min_u64(begin + ASSIGNMENT_BLOCK, assignment->n_devices);

        if (!candidate->n_in_block[b])
            most_ms = max_of(assignment->block_ms[b * n_terms + k], most_ms);
        for (uint32_t r = begin; r < end && candidate->n_in_block[b]; r++)
            if (candidate->place[r] == NO_PIECE)
                most_ms =
                    max_of(assignment->terms_ms[r * n_terms + k], most_ms);
    }
    return most_ms;
}

/* Prices the candidate by terms. If the candidate touches the device that leads
 * a term, the untouched devices are scanned for the new maximum of this term.
 * Otherwise they are not scanned. */
static void price_terms(struct candidate *candidate,
                        const struct assignment *assignment)
{
    const struct oracle *oracle = assignment->space->oracle;
    const size_t n_terms = oracle->n_terms;
    double max_ms[ORACLE_MAX_TERMS];

    oracle->ops->terms(oracle, candidate->after.sums,
                       candidate->after.n_devices, candidate->after.compute_ms,
                       candidate->after.terms_ms);
    for (size_t k = 0; k < n_terms; k++) {
        max_ms[k] = candidate->place[assignment->leader[k]] == NO_PIECE
                        ? assignment->most_ms[k]
                        : most_left_alone(candidate, assignment, k);
        for (uint32_t i = 0; i < candidate->after.n_devices; i++)
            max_ms[k] =
                max_of(candidate->after.terms_ms[i * n_terms + k], max_ms[k]);
    }
    candidate->after.total_ms = oracle_terms_total_ms(oracle, max_ms);
}

/* --- several candidates at once --- */

void pricing_init(struct pricing *pricing, const struct search_space *space,
                  uint32_t n)
{
    const size_t n_rows = (size_t)n * space->n_devices;
    const size_t width = space->oracle->width;

    *pricing = (struct pricing){0};
    if (space->oracle->ops->terms)
        return;
    pricing->sums = mem_alloc(n_rows, (width + 4) * sizeof(double));
    pricing->rows_ms = pricing->sums + n_rows * width;
    pricing->compute_ms = pricing->rows_ms + n_rows;
    pricing->fwd_ms = pricing->compute_ms + n_rows;
    pricing->bwd_ms = pricing->fwd_ms + n_rows;
    if (n > 1 && space->oracle->ops->bwd)
        bwd_memo_init(&pricing->memo, space->oracle, n);
}

void pricing_release(struct pricing *pricing)
{
    mem_free(pricing->sums);
    bwd_memo_release(&pricing->memo);
    *pricing = (struct pricing){0};
}

/* Computes compute_ms of all devices that the candidates touch, in one call of
 * the oracle. */
static void price_heads(struct evaluator *const *evaluators, uint32_t n,
                        struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;
    size_t n_rows = 0;

    assert(pricing->sums); /* the oracle has no terms */
    for (uint32_t i = 0; i < n; i++) {
        struct candidate *candidate = &evaluators[i]->candidate;

        candidate->after.compute_ms = candidate->after.terms_ms =
            pricing->rows_ms + n_rows;
        memcpy(pricing->sums + n_rows * oracle->width, candidate->after.sums,
               candidate->after.n_devices * oracle->width * sizeof(double));
        n_rows += candidate->after.n_devices;
    }
    if (n_rows)
        oracle->ops->compute(oracle, pricing->sums, n_rows, pricing->rows_ms);
}

/* Copies the sums of a device. If width is 1, copies only the given lane. */
static inline void gather(double *to, const double *sums, size_t width,
                          size_t lane)
{
    if (width == 1)
        *to = sums[lane];
    else
        memcpy(to, sums, width * sizeof(*to));
}

/* Prices the exchange of all candidates. The nets take all devices of all
 * candidates in one call. Most of the search time is spent in this call. If
 * there is a memo, only the lane that comm needs is copied, and backward
 * exchanges that were priced before are not priced again. */
static void price_comm(struct evaluator *const *evaluators, uint32_t n,
                       struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;
    const size_t n_devices = evaluators[0]->assignment.n_devices;
    const bool has_memo = pricing->memo.oracle != NULL;
    const size_t width = oracle->width, stride = has_memo ? 1 : width;
    const size_t lane = oracle->comm_lane;

    for (uint32_t i = 0; i < n; i++) {
        const struct assignment *assignment = &evaluators[i]->assignment;
        const struct candidate *candidate = &evaluators[i]->candidate;
        double *sums = pricing->sums + i * n_devices * stride;
        double *compute_ms = pricing->compute_ms + i * n_devices;

        for (size_t r = 0; r < n_devices; r++)
            gather(sums + r * stride, assignment->sums + r * width, stride,
                   lane);
        memcpy(compute_ms, assignment->compute_ms,
               n_devices * sizeof(*compute_ms));
        for (uint32_t k = 0; k < candidate->after.n_devices; k++) {
            const size_t r = candidate->after.devices[k];

            gather(sums + r * stride, candidate->after.sums + k * width, stride,
                   lane);
            compute_ms[r] = candidate->after.compute_ms[k];
        }
    }
    if (has_memo) {
        bwd_memo_price(&pricing->memo, n, pricing->sums, pricing->bwd_ms);
        oracle->ops->fwd(oracle, n, pricing->sums, pricing->compute_ms,
                         pricing->bwd_ms, pricing->fwd_ms);
    } else {
        oracle->ops->comm(oracle, n, pricing->sums, pricing->compute_ms,
                          pricing->fwd_ms, pricing->bwd_ms);
    }
    for (uint32_t i = 0; i < n; i++)
        evaluators[i]->candidate.after.total_ms = oracle_total_ms(
            n_devices, pricing->compute_ms + i * n_devices,
            pricing->bwd_ms + i * n_devices, pricing->fwd_ms + i * n_devices);
}

/* Prices n candidates. Empty candidates are priced with the others, but they
 * are not counted as priced, because their chains do not change. */
void evaluators_price(struct evaluator *const *evaluators, uint32_t n,
                      struct pricing *pricing)
{
    const struct oracle *oracle = evaluators[0]->assignment.space->oracle;

    for (uint32_t i = 0; i < n; i++) {
        evaluators[i]->n_priced += evaluators[i]->candidate.changes.n > 0;
        if (oracle->ops->terms &&
            candidate_is_priced(&evaluators[i]->candidate))
            price_terms(&evaluators[i]->candidate, &evaluators[i]->assignment);
    }
    if (oracle->ops->terms)
        return;
    price_heads(evaluators, n, pricing);
    price_comm(evaluators, n, pricing);
}

/* Allocates all arrays of length [R] once, because candidates are many and
 * small. */
void evaluator_init(struct evaluator *evaluator,
                    const struct search_space *space)
{
    const uint32_t n = space->n_devices;
    struct candidate *candidate = &evaluator->candidate;
    struct arena *arena = &candidate->arena;

    *evaluator = (struct evaluator){.candidate.limit_ms = INFINITY};
    assignment_init(&evaluator->assignment, space);
    candidate->after.devices = ARENA_NEW(arena, uint32_t, n);
    candidate->place = ARENA_NEW(arena, uint32_t, n);
    candidate->n_in_block = ARENA_NEW(arena, uint32_t, assignment_n_blocks(n));
    candidate->first_on = ARENA_NEW(arena, uint32_t, n);
    candidate->n_held = ARENA_NEW(arena, int64_t, n);
    candidate->after.bytes = ARENA_NEW(arena, uint64_t, n);
    candidate->after.sums = ARENA_NEW(arena, double, n * space->oracle->width);
    candidate->after.compute_ms = ARENA_NEW(arena, double, n);
    candidate->after.terms_ms =
        ARENA_NEW(arena, double, n * evaluator->assignment.n_terms);
    candidate->estimates = ARENA_NEW(arena, struct device_estimate, n);
    if (space->has_tiers)
        candidate->host_bytes =
            ARENA_NEW(arena, uint64_t, space_n_hosts(space));
    if (space->current)
        candidate->after.moved =
            ARENA_NEW(arena, struct unit_moved, space->n_units);
    for (uint32_t r = 0; r < n; r++)
        candidate->place[r] = candidate->first_on[r] = NO_PIECE;
    pricing_init(&evaluator->alone, space, 1);
}

uint64_t evaluator_release(struct evaluator *evaluator)
{
    const uint64_t n_priced = evaluator->n_priced;

    assignment_release(&evaluator->assignment);
    snapshot_release(&evaluator->candidate.changes);
    snapshot_release(&evaluator->best);
    pricing_release(&evaluator->alone);
    arena_release(&evaluator->candidate.arena);
    *evaluator = (struct evaluator){0};
    return n_priced;
}

double evaluator_price(struct evaluator *evaluator)
{
    const bool is_fine =
        candidate_join(&evaluator->candidate, &evaluator->assignment);
    double total_ms;

    candidate_sum(&evaluator->candidate, &evaluator->assignment);
    evaluators_price(&evaluator, 1, &evaluator->alone);
    total_ms = evaluator->candidate.after.total_ms;
    return is_fine && isfinite(total_ms) ? total_ms : INFINITY;
}

void evaluator_seek(struct evaluator *evaluator, double excess, double value)
{
    evaluator->best.n = 0;
    evaluator->best.excess = excess;
    evaluator->best.total_ms = value;
}

void evaluator_note(struct evaluator *evaluator, double value)
{
    const double excess = evaluator->candidate.after.excess;

    if (!isfinite(value) || excess > evaluator->best.excess ||
        (excess == evaluator->best.excess && value >= evaluator->best.total_ms))
        return;
    snapshot_copy(&evaluator->best, &evaluator->candidate.changes);
    evaluator->best.excess = excess;
    evaluator->best.total_ms = value;
}

bool evaluator_make(struct evaluator *evaluator)
{
    if (!evaluator->best.n)
        return false;
    candidate_clear(&evaluator->candidate);
    snapshot_copy(&evaluator->candidate.changes, &evaluator->best);
    (void)evaluator_price(evaluator);
    candidate_commit(&evaluator->assignment, &evaluator->candidate);
    return true;
}
