/* SPDX-License-Identifier: MIT */
#include "search/published.h"

#include "base/interrupt.h"
#include "base/ranked.h"
#include "core/plan_price.h"
#include "core/target_rules.h"
#include "search/assignment.h"
#include "search/checked_oracle.h"
#include "search/greedy.h"
#include "search/infeasible.h"
#include "search/local_search.h"
#include "search/space_init.h"
#include "search/to_plan.h"

#include <math.h>
#include <string.h>

/* Two totals count as equal if their relative difference is below
 * MATCHED_FRAC. */
#define MATCHED_FRAC 1e-4
/* Step from one cap on the output width of a device to the next, as a share of
 * the mean output width. The value is the published one. */
#define CAP_STEP 0.05
/* Number of pieces that are halved: the N_CANDIDATES largest pieces, and the
 * N_CANDIDATES most expensive pieces. */
#define N_CANDIDATES 10
/* Kinds of shards that this search makes. */
#define MADE_KINDS (SHARD_TABLE | SHARD_COLUMN)

/*
 * The published search (NeuroShard, MLSys 2023).
 *
 * The outer loop is a beam search over column halvings. From each set of pieces
 * in the beam, it halves each of the largest and the most expensive pieces in
 * turn. Then it keeps the K best of the new sets. This is repeated L times.
 *
 * The inner loop is a greedy that places the pieces of a set, the most
 * expensive first. Each piece goes to the device with the least predicted
 * compute, among the devices whose memory and output width allow it. Ties go to
 * the device with less memory in use, then to the lower index. The greedy is
 * run once for each cap of a grid. A cap limits the output width of a device to
 * 1.0, 1.05 ... 1.5 times the mean. The assignment with the least total wins.
 *
 * The grid in this file has one more point, without a cap. It finds plans if
 * every cap is too tight. An assignment without a cap can become the best plan.
 * But if a set has an assignment with a cap, only that assignment decides
 * whether the set is kept. So the beam takes the published path, and its result
 * is never worse than the published one.
 */

/* A set of pieces and the cost of its best assignment. */
struct node {
    /* [n], in the published order. When a piece is halved, the first half takes
     * the place of the piece and the second half is appended. */
    uint32_t *pieces;
    /* [n]: `pieces` in the order in which the greedy places them */
    uint32_t *ranked;
    size_t n;
    /* index of the first child in the beam that has the same set */
    uint32_t like;
    struct greedy_found found; /* result of the greedy for `ranked` */
};

struct beam {
    const struct search_options *options;
    struct arena *arena;
    const struct search_space *space;
    struct cuttable *cuttables; /* All pieces. Their order breaks ties. */
    struct greedy_inputs inputs;
    /* [threads]: one per thread, zeroed until the thread needs it. */
    struct greedy *greedies;
    struct node *nodes;
    size_t n_nodes;
    struct node *children;
    size_t n_children;
    struct node best; /* node with the least found.best_ms so far */
    uint64_t n_priced;
};

/* Returns the piece type of half the width, or NO_TYPE if the piece is not to
 * be halved. Halving only helps if the halves may go to different devices. So a
 * pinned table is halved only if it may not be whole, and only once. */
static uint32_t half_of(const struct search_space *space, uint32_t unit,
                        uint32_t width)
{
    const struct unit *entry = &space->units[unit];

    if (entry->pin >= 0 &&
        (entry->whole[TIER_HBM] != NO_TYPE || width < entry->first->dim))
        return NO_TYPE;
    return width % 2 ? NO_TYPE
                     : space_type_of_width(space, unit, width / 2, TIER_HBM);
}

/* Returns the output of a piece in floats per sample. De-duplication is not
 * counted, because the paper has none. */
static double output_of(const struct search_space *space, uint32_t p)
{
    const struct piece_type *type = &space->types[p];
    const struct unit *unit = &space->units[type->unit];
    struct problem published = *space->problem;
    double output = 0;

    published.job.dedup = DEDUP_NONE;

    for (uint32_t k = 0; k < unit->n_tables; k++) {
        struct shard shard = space_shard(space, type, unit->tables[k]);

        output += shard_output_vectors(&published, &shard) * shard.col_end /
                  (double)space->problem->batch;
    }
    return output;
}

/* Sorts the pieces of a node, the most expensive first. */
static void rank_node(const struct beam *beam, struct node *node)
{
    struct ranked *order = mem_alloc(node->n, sizeof(*order));

    for (size_t i = 0; i < node->n; i++)
        order[i] = (struct ranked){-beam->cuttables[node->pieces[i]].single_ms,
                                   node->pieces[i]};
    ranked_sort(order, node->n);
    node->ranked = ARENA_NEW(beam->arena, uint32_t, node->n);
    node->found.placement = ARENA_NEW(beam->arena, uint32_t, node->n);
    for (size_t i = 0; i < node->n; i++)
        node->ranked[i] = order[i].idx;
    mem_free(order);
}

/* Lists all pieces and makes the root of the beam. The order of the list breaks
 * ties in the greedy. If pieces are equally expensive, the greedy takes the
 * piece of the later table first, then the larger piece. In the root every unit
 * is whole, or in halves if it may not be whole. The caps are 1.0, 1.05 ...
 * times the mean output of the root. If a unit can be neither whole nor halved,
 * no root is made. */
static void open_beam(struct beam *beam)
{
    struct node *root = ARENA_NEW(beam->arena, struct node, 1);
    const struct search_space *space = beam->space;
    const struct oracle *oracle = space->oracle;
    double output = 0;
    uint32_t n = 0;

    beam->best.found.best_ms = INFINITY;
    beam->cuttables = ARENA_NEW(beam->arena, struct cuttable, space->n_types);
    root->n = space->n_units;
    root->pieces = ARENA_NEW(beam->arena, uint32_t, 2 * root->n);
    for (uint32_t u = space->n_units; u-- > 0;) {
        uint32_t p = space->units[u].whole[TIER_HBM];

        if (p == NO_TYPE)
            p = half_of(space, u, space->units[u].first->dim);
        if (p == NO_TYPE)
            return;
        root->pieces[u] = n;
        while (p != NO_TYPE) {
            struct cuttable *cuttable = &beam->cuttables[n++];

            cuttable->type = p;
            cuttable->output = output_of(space, p);
            oracle->ops->compute(oracle, space->vectors + p * oracle->width, 1,
                                 &cuttable->single_ms);
            p = half_of(space, u, space->types[p].width);
            cuttable->half = p == NO_TYPE ? NO_PIECE : n;
        }
    }
    for (uint32_t u = 0; u < space->n_units; u++)
        if (space->units[u].whole[TIER_HBM] == NO_TYPE)
            root->pieces[root->n++] = root->pieces[u];
    rank_node(beam, root);
    for (size_t i = 0; i < root->n; i++)
        output += beam->cuttables[root->pieces[i]].output;
    beam->inputs.space = space;
    beam->inputs.pieces = beam->cuttables;
    beam->inputs.most_placed = root->n + beam->options->beam_depth;
    for (unsigned c = 0; c < GREEDY_CAPS - 1; c++)
        beam->inputs.caps[c] = (1 + CAP_STEP * c) * (output / space->n_devices);
    beam->inputs.caps[GREEDY_CAPS - 1] = INFINITY;
    beam->children = root;
    beam->n_children = 1;
}

/* Derives the order of a child's pieces from the order of its parent: removes
 * the piece that was halved and inserts its two halves. Sorting each child
 * instead took a quarter of the search time. */
static void rank_child(const struct beam *beam, struct node *child,
                       const struct node *parent, uint32_t halved)
{
    const uint32_t half = beam->cuttables[halved].half;
    const double half_ms = beam->cuttables[half].single_ms;
    uint32_t n_halves = 2;
    bool is_gone = false;
    size_t n = 0;

    child->ranked = ARENA_NEW(beam->arena, uint32_t, child->n);
    child->found.placement = ARENA_NEW(beam->arena, uint32_t, child->n);
    for (size_t i = 0; i < parent->n; i++) {
        const uint32_t piece = parent->ranked[i];
        const double ms = beam->cuttables[piece].single_ms;

        for (; n_halves && (half_ms > ms || (half_ms == ms && half < piece));
             n_halves--)
            child->ranked[n++] = half;
        if (piece == halved && !is_gone)
            is_gone = true;
        else
            child->ranked[n++] = piece;
    }
    for (; n_halves; n_halves--)
        child->ranked[n++] = half;
}

/* Adds the child of a node in which the piece at position `pos` is halved. Two
 * children may have the same set of pieces, reached by halving in a different
 * order. They cost the same and are priced once, but both take a place in the
 * beam, as in the published search. */
static void add_child(struct beam *beam, const struct node *node, uint32_t pos)
{
    struct node *child = &beam->children[beam->n_children];

    *child = (struct node){.n = node->n + 1};
    child->pieces = ARENA_NEW(beam->arena, uint32_t, child->n);
    memcpy(child->pieces, node->pieces, node->n * sizeof(*node->pieces));
    child->pieces[pos] = beam->cuttables[node->pieces[pos]].half;
    child->pieces[node->n] = child->pieces[pos];
    rank_child(beam, child, node, node->pieces[pos]);
    while (memcmp(beam->children[child->like].ranked, child->ranked,
                  child->n * sizeof(*child->ranked)) != 0)
        child->like++;
    beam->n_children++;
}

/* Adds the children of a node, in the order of the node's pieces. Each child
 * halves one of the largest pieces, or one of the pieces with the largest
 * standalone cost. */
static void add_children(struct beam *beam, const struct node *node)
{
    struct ranked *keys = ARENA_NEW(beam->arena, struct ranked, node->n);
    bool *marked = ARENA_NEW(beam->arena, bool, node->n);

    for (int by_cost = 0; by_cost <= 1; by_cost++) {
        for (uint32_t i = 0; i < node->n; i++) {
            const struct cuttable *cuttable = &beam->cuttables[node->pieces[i]];

            keys[i] = (struct ranked){
                by_cost ? -cuttable->single_ms
                        : -(double)beam->space->types[cuttable->type].bytes,
                i};
        }
        ranked_sort(keys, node->n);
        for (size_t i = 0; i < N_CANDIDATES && i < node->n; i++)
            marked[keys[i].idx] = true;
    }
    for (uint32_t i = 0; i < node->n; i++)
        if (marked[i] && beam->cuttables[node->pieces[i]].half != NO_PIECE)
            add_child(beam, node, i);
}

static void price_child(void *ctx, size_t i, unsigned thread)
{
    struct beam *beam = ctx;
    struct node *child = &beam->children[i];
    struct greedy *greedy = &beam->greedies[thread];

    if (child->like != i)
        return;
    if (!greedy->inputs)
        greedy_init(greedy, &beam->inputs);
    greedy_place(greedy, child->ranked, child->n, &child->found);
}

/* Returns whether result `a` comes before result `b`. The result with the lower
 * capped total comes first. Results without a capped plan come last, sorted by
 * their uncapped total. */
static bool goes_before(const struct greedy_found *a,
                        const struct greedy_found *b)
{
    if (isinf(a->capped_ms) && isinf(b->capped_ms))
        return a->best_ms < b->best_ms;
    return a->capped_ms < b->capped_ms;
}

/* Makes the best children the nodes of the next round, and keeps the best child
 * found so far. If children cost the same, the earlier child is preferred. */
static void select_nodes(struct beam *beam)
{
    beam->n_nodes = 0;
    for (size_t i = 0; i < beam->n_children; i++) {
        struct node child = beam->children[beam->children[i].like];
        size_t pos = beam->n_nodes;

        child.pieces = beam->children[i].pieces;
        beam->n_priced += beam->children[i].found.n_priced;
        if (child.found.best_ms < beam->best.found.best_ms)
            beam->best = child;
        for (;
             pos > 0 && goes_before(&child.found, &beam->nodes[pos - 1].found);
             pos--)
            beam->nodes[pos] = beam->nodes[pos - 1];
        beam->nodes[pos] = child;
        if (beam->n_nodes < beam->options->beam_width)
            beam->n_nodes++;
    }
}

bool published_find(struct snapshot *found, struct plan *plan,
                    const struct search_space *space,
                    const struct search_options *options)
{
    struct arena arena = {0};
    struct beam beam = {.options = options, .arena = &arena, .space = space};
    const struct node *best = &beam.best;
    const unsigned n_threads = pool_size(options->pool);
    unsigned depth = options->beam_width ? options->beam_depth : 0;

    plan->stopped = "done";
    beam.nodes = ARENA_NEW(&arena, struct node, options->beam_width + 1);
    beam.greedies = ARENA_NEW(&arena, struct greedy, n_threads);
    open_beam(&beam);
    while (beam.n_children) {
        pool_run(options->pool, beam.n_children, price_child, &beam);
        select_nodes(&beam);
        if (!depth--)
            break;
        if (interrupt_requested()) {
            plan->stopped = "interrupt";
            break;
        }
        beam.children =
            ARENA_NEW(&arena, struct node, beam.n_nodes * 2 * N_CANDIDATES);
        beam.n_children = 0;
        for (size_t i = 0; i < beam.n_nodes; i++)
            add_children(&beam, &beam.nodes[i]);
    }
    for (uint32_t i = 0; i < best->n; i++)
        *snapshot_next(found) =
            (struct change){.type = beam.cuttables[best->ranked[i]].type,
                            .device = best->found.placement[i],
                            .range = i};
    found->total_ms = best->found.best_ms;
    plan->n_evaluations = beam.n_priced;
    for (unsigned t = 0; t < n_threads; t++)
        greedy_release(&beam.greedies[t]);
    arena_release(&arena);
    return isfinite(found->total_ms);
}

uint64_t published_join(struct snapshot *found,
                        const struct search_space *space)
{
    const double most_ms = found->total_ms;
    uint64_t n_priced = 0;

    if (!snapshot_join(found, space)) {
        found->total_ms = INFINITY;
        return 0;
    }
    snapshot_price(found, space);
    if (found->total_ms > most_ms) {
        n_priced = settle(found, space, false, most_ms);
        snapshot_price(found, space);
    }
    return n_priced;
}

/* Joins pieces of a table on one device if their widths differ. If the plan
 * then costs more than the published plan, pieces are swapped until it costs no
 * more. If the cost does not come within MATCHED_FRAC of the published cost,
 * the plan is left unchanged, unless its target forbids such pieces. */
static int join_uneven(struct plan *plan, const struct oracle *oracle,
                       const struct search_space *space, struct snapshot *found,
                       struct arena *arena, struct err *err)
{
    const double most_ms = found->total_ms;
    struct plan even = *plan;

    if (!plan_join_columns(&even, true, arena))
        return 0;
    if (plan_price(&even, oracle, arena, err))
        return -1;
    if (even.total_ms > most_ms) {
        plan->n_evaluations += published_join(found, space);
        if (found->total_ms < even.total_ms) {
            snapshot_to_plan(found, space, &even, arena);
            even.total_ms = found->total_ms;
        }
    }
    if (even.total_ms > most_ms * (1 + MATCHED_FRAC) &&
        problem_target(&plan->problem)->widths == TARGET_WIDTHS_ANY)
        return 0;
    plan_take_shards(plan, &even);
    return 0;
}

static int check_kinds(const struct problem *problem, unsigned kinds,
                       struct err *err)
{
    for (size_t t = 0; t < problem->n_tables; t++)
        if (!(problem->tables[t].kinds & kinds))
            return err_set(
                err, ERR_USAGE,
                "table '%s' can be neither placed whole nor cut by columns, "
                "and this search makes table and column shards only",
                problem->tables[t].name);
    return 0;
}

int search_reference(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    struct problem problem = plan->problem;
    struct snapshot found = {0};
    struct fit_failure failure;
    struct arena scratch = {0};
    struct search_space space;
    struct checked_oracle checked;
    int rc = -1;

    checked_oracle_init(&checked, oracle);
    problem.kinds &= MADE_KINDS;
    if (infeasible_check(&plan->problem, oracle, MADE_KINDS, NULL, INFINITY,
                         err) ||
        check_kinds(&problem, problem.kinds & oracle->kinds, err) ||
        space_init(&space, &problem, &checked.base, NULL, options, &scratch,
                   err))
        goto out;
    if (!published_find(&found, plan, &space, options) &&
        !fit_by_memory(&found, &space, &failure) &&
        infeasible_check(&plan->problem, space.oracle, MADE_KINDS, &failure,
                         INFINITY, err))
        goto out;
    snapshot_to_plan(&found, &space, plan, arena);
    if (isinf(found.total_ms))
        plan_join_columns(plan, false, arena);
    else if (join_uneven(plan, oracle, &space, &found, arena, err))
        goto out;
    plan->search = options->beam_width ? "reference" : "grid";
    plan->seed = options->seed;
    rc = checked_oracle_finish(&checked, plan, arena, err);
out:
    snapshot_release(&found);
    arena_release(&scratch);
    return rc;
}
