/* SPDX-License-Identifier: MIT */
#include "search/published.h"

#include "base/clock.h"
#include "base/interrupt.h"
#include "base/ranked.h"
#include "core/plan_check.h"
#include "search/caps.h"
#include "search/infeasible.h"
#include "search/settle.h"
#include "search/watch.h"

#include <math.h>
#include <string.h>

/* A total that is so little above another is as good. */
#define MATCHED_FRAC 1e-4

void search_options_init(struct search_options *options)
{
    *options = (struct search_options){.beam_width = 3,
                                       .beam_depth = 10,
                                       .n_candidates = 10,
                                       .effort = SEARCH_EFFORT_AUTO};
}

int search_finish(struct plan *plan, const struct oracle *oracle,
                  double start_ms, struct arena *arena, struct err *err)
{
    const double bound_ms = plan->bound_ms;

    plan->search_ms = clock_ms() - start_ms;
    plan->shard_ms = NULL; /* of other shards */
    plan_sort_shards(plan);
    plan_derive_kinds(plan);
    if (plan_price(plan, oracle, arena, err))
        return -1;
    if (bound_ms > 0)
        plan->bound_ms = bound_ms;
    return plan_check(plan, err);
}

/*
 * The published outer search: a beam over column halvings. From each kept set
 * of pieces, each of the largest and the dearest ones is halved in turn and
 * the caps price the result (search/caps.h); the K best sets go on, L times.
 *
 * The published beam has no point without a cap. Here such an assignment
 * competes for the best plan, but does not decide which sets go on while a
 * capped one exists: so the beam walks the published path, and its result is
 * never worse than the published one.
 */

/* A set of pieces. `pieces` are in the published order, where a halved piece
 * stays in its place and its twin comes last: candidates are tried in it. The
 * sorted list of the items that were halved names the set, since pieces of one
 * item are alike. */
struct node {
    uint32_t *pieces; /* [n_pieces] */
    size_t n_pieces;
    uint32_t *halved; /* [depth], ascending */
    double capped_ms, best_ms;
};

/* A node with one more piece halved. Two that halve the same items, in any
 * order, cost the same and are priced once; both take a place in the beam, as
 * published. */
struct child {
    const struct node *parent;
    uint32_t position; /* of the piece in parent->pieces */
    uint32_t *halved;  /* [n_halved], ascending */
    size_t n_halved;
    uint32_t idx;    /* in the order in which they were made */
    uint32_t priced; /* whose result stands for it */
    struct caps_result result;
};

struct beam {
    const struct halves *halves;
    const struct search_options *options;
    struct arena *arena;
    struct caps *caps;  /* [threads] */
    struct node *nodes; /* [beam_width] */
    size_t n_nodes;
    struct child *children;
    size_t n_children;
    uint32_t *to_price; /* indices of children, one for each different set */
    size_t n_to_price;
    struct node best; /* least best_ms so far */
    uint64_t n_priced;
};

/* All whole, or in halves where that may not be. */
static void root_node(struct node *node, const struct parts *parts,
                      struct arena *arena)
{
    size_t n = parts->n_units;

    node->pieces = ARENA_NEW(arena, uint32_t, 2 * n);
    for (uint32_t u = 0; u < parts->n_units; u++) {
        bool is_cut = !(parts->of[u].kinds & SHARD_TABLE);

        node->pieces[u] = parts->of[u].whole + is_cut;
        if (is_cut)
            node->pieces[n++] = node->pieces[u];
    }
    node->n_pieces = n;
}

/* The pieces in the order of their ranks go under the caps. */
static void price_pieces(struct beam *beam, unsigned thread, uint32_t *pieces,
                         size_t n, struct caps_result *result,
                         uint32_t *placement)
{
    struct ranked *order = mem_alloc(n, sizeof(*order));

    for (size_t i = 0; i < n; i++)
        order[i] = (struct ranked){beam->halves->rank[pieces[i]], pieces[i]};
    ranked_sort(order, n);
    for (size_t i = 0; i < n; i++)
        pieces[i] = order[i].idx;
    mem_free(order);
    caps_search(&beam->caps[thread], pieces, n, result, placement);
}

/* The parent's pieces, one of them halved; its twin comes last. */
static void halve(uint32_t *out, const struct child *child)
{
    const struct node *parent = child->parent;
    size_t n = parent->n_pieces;

    memcpy(out, parent->pieces, n * sizeof(*out));
    out[n] = ++out[child->position];
}

/* Marks the first n pieces, by their keys. */
static void mark_first(bool *marked, struct ranked *candidates, size_t n_pieces,
                       size_t n)
{
    ranked_sort(candidates, n_pieces);
    for (size_t i = 0; i < n && i < n_pieces; i++)
        marked[candidates[i].idx] = true;
}

static uint32_t *with_halved(const struct node *node, size_t depth,
                             uint32_t item, struct arena *arena)
{
    uint32_t *halved = ARENA_NEW(arena, uint32_t, depth + 1);
    size_t i = depth;

    for (; i > 0 && node->halved[i - 1] > item; i--)
        halved[i] = node->halved[i - 1];
    halved[i] = item;
    if (i)
        memcpy(halved, node->halved, i * sizeof(*halved));
    return halved;
}

/* Adds the children of one node, in the order of its pieces. */
static void add_children(struct beam *beam, const struct node *node,
                         size_t depth)
{
    const struct halves *halves = beam->halves;
    const struct parts *parts = &halves->parts;
    size_t n = node->n_pieces;
    struct ranked *candidates = mem_alloc(n, sizeof(*candidates));
    bool *marked = mem_alloc(n, sizeof(*marked));

    for (uint32_t i = 0; i < n; i++)
        candidates[i] =
            (struct ranked){-(double)parts->parts[node->pieces[i]].bytes, i};
    mark_first(marked, candidates, n, beam->options->n_candidates);
    for (uint32_t i = 0; i < n; i++)
        candidates[i] = (struct ranked){-halves->single_ms[node->pieces[i]], i};
    mark_first(marked, candidates, n, beam->options->n_candidates);
    for (uint32_t i = 0; i < n; i++) {
        struct child *child = &beam->children[beam->n_children];

        if (!marked[i] || !parts_can_halve(parts, node->pieces[i]))
            continue;
        *child = (struct child){
            .parent = node,
            .position = i,
            .halved = with_halved(node, depth, node->pieces[i], beam->arena),
            .n_halved = depth + 1,
            .idx = (uint32_t)beam->n_children++,
        };
    }
    mem_free(marked);
    mem_free(candidates);
}

/* Fills to_price: the first child of each different set. There are a few dozen
 * children, so each is held against all sets that were met before. */
static void find_different(struct beam *beam)
{
    beam->to_price = ARENA_NEW(beam->arena, uint32_t, beam->n_children);
    beam->n_to_price = 0;
    for (size_t i = 0; i < beam->n_children; i++) {
        struct child *child = &beam->children[i];

        child->priced = child->idx;
        for (size_t k = 0; k < beam->n_to_price && child->priced == child->idx;
             k++) {
            const struct child *before = &beam->children[beam->to_price[k]];

            if (!memcmp(child->halved, before->halved,
                        child->n_halved * sizeof(*child->halved)))
                child->priced = before->idx;
        }
        if (child->priced == child->idx)
            beam->to_price[beam->n_to_price++] = child->idx;
    }
}

static void price_child(void *ctx, size_t task, unsigned thread)
{
    struct beam *beam = ctx;
    struct child *child = &beam->children[beam->to_price[task]];
    size_t n = child->parent->n_pieces + 1;
    uint32_t *pieces = mem_alloc(n, sizeof(*pieces));

    halve(pieces, child);
    price_pieces(beam, thread, pieces, n, &child->result, NULL);
    mem_free(pieces);
}

static struct node adopt(const struct child *child, struct arena *arena)
{
    struct node node = {.n_pieces = child->parent->n_pieces + 1,
                        .halved = child->halved,
                        .capped_ms = child->result.capped_ms,
                        .best_ms = child->result.best_ms};

    node.pieces = ARENA_NEW(arena, uint32_t, node.n_pieces);
    halve(node.pieces, child);
    return node;
}

/* The best children become the nodes, those without a capped plan last, by the
 * uncapped one; the best of all time is kept. */
static void select_nodes(struct beam *beam)
{
    size_t n = beam->n_children, n_capped = 0, n_sorted;
    struct ranked *order = mem_alloc(n, sizeof(*order));

    for (uint32_t i = 0; i < n; i++) {
        const struct child *child = &beam->children[i];

        if (child->result.best_ms < beam->best.best_ms)
            beam->best = adopt(child, beam->arena);
        if (!isinf(child->result.capped_ms))
            order[n_capped++] = (struct ranked){child->result.capped_ms, i};
    }
    n_sorted = n_capped;
    for (uint32_t i = 0; i < n; i++)
        if (isinf(beam->children[i].result.capped_ms))
            order[n_sorted++] =
                (struct ranked){beam->children[i].result.best_ms, i};
    ranked_sort(order, n_capped);
    ranked_sort(order + n_capped, n - n_capped);
    if (n > beam->options->beam_width)
        n = beam->options->beam_width;
    beam->nodes = ARENA_NEW(beam->arena, struct node, n);
    beam->n_nodes = n;
    for (size_t i = 0; i < n; i++)
        beam->nodes[i] = adopt(&beam->children[order[i].idx], beam->arena);
    mem_free(order);
}

/* One halving more; false where nothing can be halved. */
static bool deepen(struct beam *beam, size_t depth)
{
    size_t max_children = 0;

    for (size_t i = 0; i < beam->n_nodes; i++)
        max_children += beam->nodes[i].n_pieces;
    beam->children = ARENA_NEW(beam->arena, struct child, max_children);
    beam->n_children = 0;
    for (size_t i = 0; i < beam->n_nodes; i++)
        add_children(beam, &beam->nodes[i], depth);
    if (!beam->n_children)
        return false;
    find_different(beam);
    pool_run(beam->options->pool, beam->n_to_price, price_child, beam);
    for (size_t i = 0; i < beam->n_children; i++) {
        struct child *child = &beam->children[i];

        child->result = beam->children[child->priced].result;
        if (child->priced == child->idx)
            beam->n_priced += child->result.n_priced;
    }
    select_nodes(beam);
    return true;
}

static void open_beam(struct beam *beam, const struct halves *halves,
                      const struct search_options *options, size_t max_pieces,
                      struct arena *arena)
{
    unsigned n_threads = options->pool ? pool_size(options->pool) : 1;

    *beam = (struct beam){.halves = halves, .options = options, .arena = arena};
    beam->caps = ARENA_NEW(arena, struct caps, n_threads);
    for (unsigned t = 0; t < n_threads; t++)
        caps_init(&beam->caps[t], halves, max_pieces, arena);
}

/* Pieces in the order of their ranks; the total is INFINITY where no plan was
 * found. The same at any thread count. */
static void beam_search(struct snapshot *found, struct plan *plan,
                        const struct halves *halves,
                        const struct search_options *options,
                        struct arena *arena)
{
    struct node root = {0};
    struct caps_result priced;
    struct beam beam;
    uint32_t *pieces, *placement;

    root_node(&root, &halves->parts, arena);
    open_beam(&beam, halves, options, root.n_pieces + options->beam_depth,
              arena);
    pieces = ARENA_NEW(arena, uint32_t, root.n_pieces);
    memcpy(pieces, root.pieces, root.n_pieces * sizeof(*pieces));
    price_pieces(&beam, 0, pieces, root.n_pieces, &priced, NULL);
    beam.n_priced = priced.n_priced;
    root.capped_ms = priced.capped_ms;
    root.best_ms = priced.best_ms;
    beam.best = root;
    beam.nodes = &root;
    beam.n_nodes = 1;
    plan->stopped = "done";
    for (size_t depth = 0; options->beam_width && depth < options->beam_depth;
         depth++) {
        if (interrupt_requested()) {
            plan->stopped = "interrupt";
            break;
        }
        if (!deepen(&beam, depth))
            break;
    }
    pieces = beam.best.pieces;
    placement = ARENA_NEW(arena, uint32_t, beam.best.n_pieces);
    price_pieces(&beam, 0, pieces, beam.best.n_pieces, &priced, placement);
    found->total_ms = priced.best_ms;
    plan->n_evaluations = beam.n_priced;
    for (uint32_t i = 0; i < beam.best.n_pieces; i++)
        snapshot_add(found, (struct change){.piece = NO_PIECE,
                                            .part = pieces[i],
                                            .device = placement[i]});
}

static uint32_t emptiest(const struct parts *parts, const uint64_t *used,
                         uint32_t part)
{
    uint32_t n_devices = parts->n_devices, best = n_devices;
    int64_t pin = parts->of[parts->parts[part].unit].unit->device;

    for (uint32_t r = 0; r < n_devices; r++)
        if ((pin < 0 || pin == r) &&
            parts->parts[part].bytes <= parts->room_bytes[r] - used[r] &&
            (best == n_devices || used[r] < used[best]))
            best = r;
    return best;
}

/* By memory alone, where the greedy is stuck under every cap: pieces, largest
 * first, each to the device with the least memory used, halved where it fits
 * nowhere; halves come behind what they are of. False where a piece fits
 * nowhere. */
static bool pack(struct snapshot *found, const struct parts *parts,
                 struct arena *arena)
{
    uint64_t *used = ARENA_NEW(arena, uint64_t, parts->n_devices);
    uint32_t *n_open = ARENA_NEW(arena, uint32_t, parts->n_parts);
    struct ranked *order = ARENA_NEW(arena, struct ranked, parts->n_parts);

    found->n = 0;
    for (uint32_t u = 0; u < parts->n_units; u++) {
        bool is_cut = !(parts->of[u].kinds & SHARD_TABLE);

        n_open[parts->of[u].whole + is_cut] = 1 + is_cut;
    }
    for (uint32_t p = 0; p < parts->n_parts; p++)
        order[p] = (struct ranked){-(double)parts->parts[p].bytes, p};
    ranked_sort(order, parts->n_parts);
    for (uint32_t i = 0; i < parts->n_parts; i++)
        for (uint32_t p = order[i].idx; n_open[p]; n_open[p]--) {
            uint32_t r = emptiest(parts, used, p);

            if (r < parts->n_devices) {
                used[r] += parts->parts[p].bytes;
                snapshot_add(
                    found,
                    (struct change){.piece = NO_PIECE, .part = p, .device = r});
            } else if (parts_can_halve(parts, p)) {
                n_open[p + 1] += 2;
            } else {
                return false;
            }
        }
    return true;
}

/* What comes of a priced plan when pieces change places until the total is
 * most_ms, where that is cheaper. */
static int settle_plan(struct plan *plan, const struct oracle *oracle,
                       double most_ms, struct arena *arena,
                       struct arena *scratch, struct err *err)
{
    struct problem problem = plan->problem;
    struct snapshot snapshot = {0};
    struct parts parts;

    problem.kinds &= SHARD_TABLE | SHARD_COLUMN;
    if (parts_init(&parts, &problem, oracle, NULL, NULL, scratch, err))
        return -1;
    if (snapshot_from_plan(&snapshot, &parts, plan)) {
        plan->n_evaluations += settle(&snapshot, &parts, false, most_ms);
        snapshot_price(&snapshot, &parts);
        if (snapshot.total_ms < plan->total_ms) {
            snapshot_to_plan(&snapshot, &parts, plan, arena);
            plan->total_ms = snapshot.total_ms;
        }
    }
    snapshot_release(&snapshot);
    return 0;
}

/* Pieces of other widths than the rest of their table's on a device are joined;
 * where that costs more than most_ms, as published, pieces change places. */
static int join_uneven(struct plan *plan, const struct oracle *oracle,
                       double most_ms, struct arena *arena,
                       struct arena *scratch, struct err *err)
{
    struct plan even = *plan;

    if (!plan_join_columns(&even, true, arena))
        return 0;
    if (plan_price(&even, oracle, scratch, err))
        return -1;
    if (even.total_ms > most_ms &&
        settle_plan(&even, oracle, most_ms, arena, scratch, err))
        return -1;
    if (even.total_ms > most_ms * (1 + MATCHED_FRAC))
        return 0;
    plan->shards = even.shards;
    plan->n_shards = even.n_shards;
    plan->n_evaluations = even.n_evaluations;
    return 0;
}

int search_published(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    struct snapshot found = {0};
    struct halves halves;
    struct arena scratch;
    struct watch watch;
    int rc = -1;

    arena_init(&scratch);
    watch_init(&watch, oracle);
    if (halves_init(&halves, &plan->problem, &watch.base, options->pool,
                    &scratch, err))
        goto out;
    beam_search(&found, plan, &halves, options, &scratch);
    if (watch_check(&watch, err))
        goto out;
    if (isinf(found.total_ms) && !pack(&found, &halves.parts, &scratch)) {
        err_set(err, ERR_NO_PLAN, "no plan was found by the published search");
        goto out;
    }
    snapshot_to_plan(&found, &halves.parts, plan, arena);
    if (join_uneven(plan, &watch.base, found.total_ms, arena, &scratch, err) ||
        watch_check(&watch, err))
        goto out;
    rc = 0;
out:
    snapshot_release(&found);
    arena_release(&scratch);
    return rc;
}

/* Whole tables and columns of any width, placed by memory alone. */
static int fit_instead(struct plan *plan, const struct oracle *oracle,
                       struct arena *arena, struct err *err)
{
    struct problem problem = plan->problem;
    struct snapshot fitting = {0};
    struct fit_failure failure;
    struct arena scratch;
    struct parts parts;
    int rc = -1;

    arena_init(&scratch);
    problem.kinds &= SEARCH_PUBLISHED_KINDS;
    if (parts_init_unpriced(&parts, &problem, oracle, &scratch, err))
        goto out;
    if (!fit_by_memory(&fitting, &parts, FIT_HARD, &failure)) {
        infeasible_report(&plan->problem, oracle, SEARCH_PUBLISHED_KINDS,
                          &failure, err);
        goto out;
    }
    snapshot_to_plan(&fitting, &parts, plan, arena);
    plan_join_columns(plan, false, arena);
    rc = 0;
out:
    snapshot_release(&fitting);
    arena_release(&scratch);
    return rc;
}

int search_reference(struct plan *plan, const struct oracle *oracle,
                     const struct search_options *options, struct arena *arena,
                     struct err *err)
{
    double start_ms = clock_ms();

    if (infeasible_check(&plan->problem, oracle, SEARCH_PUBLISHED_KINDS, err))
        return -1;
    if (search_published(plan, oracle, options, arena, err)) {
        if (err->code != ERR_NO_PLAN)
            return -1;
        *err = (struct err){0};
        if (fit_instead(plan, oracle, arena, err))
            return -1;
        plan->stopped = "done";
    }
    plan->search = options->beam_width ? "reference" : "grid";
    plan->seed = options->seed;
    return search_finish(plan, oracle, start_ms, arena, err);
}
