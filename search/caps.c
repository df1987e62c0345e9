/* SPDX-License-Identifier: MIT */
#include "search/caps.h"

#include "base/ranked.h"

#include <math.h>
#include <string.h>

#define CAP_STEP 0.05
#define NOWHERE UINT32_MAX

/* --- what is placed --- */

static double output_of(const struct parts *parts, const struct part *part)
{
    const struct unit *unit = parts->of[part->unit].unit;
    double output = 0;

    for (uint32_t k = 0; k < unit->n_tables; k++) {
        struct shard shard = shard_whole(parts->problem, unit->tables[k], 0);

        if (part->kind == SHARD_COLUMN) {
            shard.kind = SHARD_COLUMN;
            shard.col_end = part->width;
        }
        output += shard_output_vectors(parts->problem, &shard) * shard.col_end /
                  (double)parts->problem->batch;
    }
    return output;
}

/* Dearest first; of equal ones the later table, then the larger piece. */
static void rank_parts(struct halves *halves)
{
    const struct parts *parts = &halves->parts;
    struct ranked *order = mem_alloc(parts->n_parts, sizeof(*order));
    uint32_t *part_of = mem_alloc(parts->n_parts, sizeof(*part_of));
    uint32_t n = 0;

    for (uint32_t u = parts->n_units; u-- > 0;)
        for (uint32_t p = parts->of[u].whole;
             p < parts->n_parts && parts->parts[p].unit == u; p++) {
            order[n] = (struct ranked){-halves->single_ms[p], n};
            part_of[n++] = p;
        }
    ranked_sort(order, n);
    for (uint32_t i = 0; i < n; i++)
        halves->rank[part_of[order[i].idx]] = i;
    mem_free(part_of);
    mem_free(order);
}

int halves_init(struct halves *halves, const struct problem *problem,
                const struct oracle *oracle, struct pool *pool,
                struct arena *arena, struct err *err)
{
    const struct parts *parts = &halves->parts;
    double *nothing = ARENA_NEW(arena, double, oracle->width);

    *halves = (struct halves){0};
    if (parts_init_halves(&halves->parts, problem, oracle, pool, arena, err))
        return -1;
    halves->single_ms = ARENA_NEW(arena, double, parts->n_parts);
    halves->output = ARENA_NEW(arena, double, parts->n_parts);
    halves->rank = ARENA_NEW(arena, uint32_t, parts->n_parts);
    oracle->ops->compute(oracle, parts->vectors, parts->n_parts,
                         halves->single_ms);
    oracle->ops->compute(oracle, nothing, 1, &halves->empty_ms);
    for (uint32_t p = 0; p < parts->n_parts; p++) {
        halves->output[p] = output_of(parts, &parts->parts[p]);
        if (parts->parts[p].kind == SHARD_TABLE)
            halves->mean_output += halves->output[p];
    }
    halves->mean_output /= problem->cluster.n_devices;
    rank_parts(halves);
    return 0;
}

/* --- the greedy --- */

/* The branches' sums stand next to each other, so that one call prices the
 * communication of all. */
void caps_init(struct caps *caps, const struct halves *halves,
               size_t max_pieces, struct arena *arena)
{
    size_t n_devices = halves->parts.n_devices;
    size_t width = halves->parts.oracle->width, n = CAP_POINTS * n_devices;
    double *sums = ARENA_NEW(arena, double, n *width);

    *caps = (struct caps){.halves = halves,
                          .heads = ARENA_NEW(arena, double, CAP_POINTS *width),
                          .compute_ms = ARENA_NEW(arena, double, n),
                          .fwd_ms = ARENA_NEW(arena, double, n),
                          .bwd_ms = ARENA_NEW(arena, double, n)};
    for (unsigned i = 0; i < CAP_POINTS; i++) {
        struct branch *branch = &caps->branches[i];

        caps->caps[i] =
            i < N_CAPS ? (1 + CAP_STEP * i) * halves->mean_output : INFINITY;
        branch->sums = sums + i * n_devices * width;
        branch->devices = ARENA_NEW(arena, struct branch_device, n_devices);
        branch->placement = ARENA_NEW(arena, uint32_t, max_pieces);
    }
}

static void branch_copy(const struct caps *caps, struct branch *to,
                        const struct branch *from, size_t n_placed)
{
    const struct parts *parts = &caps->halves->parts;
    size_t n_devices = parts->n_devices;
    size_t n_sums = n_devices * parts->oracle->width;

    memcpy(to->sums, from->sums, n_sums * sizeof(*to->sums));
    memcpy(to->devices, from->devices, n_devices * sizeof(*to->devices));
    memcpy(to->placement, from->placement, n_placed * sizeof(*to->placement));
    to->cap_begin = from->cap_begin;
    to->cap_end = from->cap_end;
    to->chosen = from->chosen;
}

static bool is_before(const struct branch_device *a,
                      const struct branch_device *b)
{
    return a->compute_ms < b->compute_ms ||
           (a->compute_ms == b->compute_ms && a->bytes < b->bytes);
}

static uint32_t choose_device(const struct halves *halves,
                              const struct branch *branch, uint32_t piece,
                              double cap)
{
    const struct part *part = &halves->parts.parts[piece];
    const uint64_t *room_bytes = halves->parts.room_bytes;
    int64_t pin = halves->parts.of[part->unit].unit->device;
    uint32_t begin = pin < 0 ? 0 : (uint32_t)pin, chosen = NOWHERE;
    uint32_t end = pin < 0 ? halves->parts.n_devices : begin + 1;

    for (uint32_t r = begin; r < end; r++) {
        const struct branch_device *device = &branch->devices[r];

        if (part->bytes > room_bytes[r] - device->bytes ||
            device->output + halves->output[piece] > cap)
            continue;
        if (chosen == NOWHERE || is_before(device, &branch->devices[chosen]))
            chosen = r;
    }
    return chosen;
}

/* Where branch b puts the piece. Caps that cannot follow become a new branch
 * at the end of the list, which chooses for itself. */
static void choose(struct caps *caps, unsigned b, uint32_t piece,
                   size_t n_placed)
{
    struct branch *branch = &caps->branches[b], *tighter;
    unsigned cap = branch->cap_begin;
    uint32_t r = choose_device(caps->halves, branch, piece,
                               caps->caps[branch->cap_end - 1]);

    branch->chosen = r;
    if (r == NOWHERE)
        return;
    while (branch->devices[r].output + caps->halves->output[piece] >
           caps->caps[cap])
        cap++;
    if (cap == branch->cap_begin)
        return;
    tighter = &caps->branches[caps->n_branches++];
    branch_copy(caps, tighter, branch, n_placed);
    tighter->cap_end = cap;
    branch->cap_begin = cap;
}

/* Removes the branches that found no place. */
static void drop_stuck(struct caps *caps, size_t n_placed)
{
    for (unsigned b = 0; b < caps->n_branches;)
        if (caps->branches[b].chosen != NOWHERE)
            b++;
        else if (b != --caps->n_branches)
            branch_copy(caps, &caps->branches[b],
                        &caps->branches[caps->n_branches], n_placed);
}

static void place(struct branch *branch, const struct halves *halves,
                  uint32_t piece, size_t position, double *head)
{
    struct branch_device *device = &branch->devices[branch->chosen];
    size_t width = halves->parts.oracle->width;
    const double *vector = halves->parts.vectors + piece * width;
    double *sum = branch->sums + branch->chosen * width;

    for (size_t w = 0; w < width; w++)
        head[w] = sum[w] += vector[w];
    device->output += halves->output[piece];
    device->bytes += halves->parts.parts[piece].bytes;
    device->n_held++;
    branch->placement[position] = branch->chosen;
}

/* Afterwards the branches are those that placed everything. */
static void run_greedy(struct caps *caps, const uint32_t *pieces, size_t n)
{
    const struct parts *parts = &caps->halves->parts;
    const struct oracle *oracle = parts->oracle;
    size_t n_devices = parts->n_devices;
    struct branch *branches = caps->branches;
    double ms[CAP_POINTS];

    memset(branches->sums, 0,
           n_devices * oracle->width * sizeof(*branches->sums));
    memset(branches->devices, 0, n_devices * sizeof(*branches->devices));
    branches->cap_begin = 0;
    branches->cap_end = CAP_POINTS;
    caps->n_branches = 1;
    for (size_t i = 0; i < n && caps->n_branches; i++) {
        /* The list grows while it is walked: new branches choose as well. */
        for (unsigned b = 0; b < caps->n_branches; b++)
            choose(caps, b, pieces[i], i);
        drop_stuck(caps, i);
        for (unsigned b = 0; b < caps->n_branches; b++)
            place(&branches[b], caps->halves, pieces[i], i,
                  caps->heads + b * oracle->width);
        oracle->ops->compute(oracle, caps->heads, caps->n_branches, ms);
        for (unsigned b = 0; b < caps->n_branches; b++)
            branches[b].devices[branches[b].chosen].compute_ms = ms[b];
    }
}

/* --- the best of all caps --- */

/* The greedy counts an empty device as 0, the total as what the oracle says
 * of it, as published. */
static void price(struct caps *caps)
{
    const struct parts *parts = &caps->halves->parts;
    const struct oracle *oracle = parts->oracle;
    size_t n_devices = parts->n_devices;

    for (unsigned b = 0; b < caps->n_branches; b++)
        for (size_t r = 0; r < n_devices; r++) {
            const struct branch_device *device = &caps->branches[b].devices[r];

            caps->compute_ms[b * n_devices + r] =
                device->n_held ? device->compute_ms : caps->halves->empty_ms;
        }
    oracle->ops->comm(oracle, caps->n_branches, caps->branches[0].sums,
                      caps->compute_ms, caps->fwd_ms, caps->bwd_ms);
}

void caps_search(struct caps *caps, const uint32_t *pieces, size_t n,
                 struct caps_result *result, uint32_t *placement)
{
    size_t n_devices = caps->halves->parts.n_devices;
    const struct branch *best = NULL;

    *result = (struct caps_result){.capped_ms = INFINITY, .best_ms = INFINITY};
    run_greedy(caps, pieces, n);
    if (!caps->n_branches)
        return;
    price(caps);
    result->n_priced = caps->n_branches;
    for (unsigned b = 0; b < caps->n_branches; b++) {
        const struct branch *branch = &caps->branches[b];
        size_t at = b * n_devices;
        double total = oracle_total_ms(n_devices, caps->compute_ms + at,
                                       caps->bwd_ms + at, caps->fwd_ms + at);

        if (!isfinite(total))
            continue;
        if (branch->cap_begin < N_CAPS && total < result->capped_ms)
            result->capped_ms = total;
        if (!best || total < result->best_ms ||
            (total == result->best_ms && branch->cap_begin < best->cap_begin)) {
            best = branch;
            result->best_ms = total;
        }
    }
    if (placement && best)
        memcpy(placement, best->placement, n * sizeof(*placement));
}
