/* SPDX-License-Identifier: MIT */
#include "search/beam.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/interrupt.h"
#include "base/ranked.h"

/* A set of pieces. `pieces` are in the published order, where a halved piece
 * stays in its place and its twin comes last: candidates are tried in it. The
 * sorted list of the items that were halved names the set, since pieces of one
 * item are alike. */
struct node {
    uint32_t *pieces; /* [n_pieces] */
    uint32_t *ranked; /* the same in the order of their ranks */
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
    uint32_t priced; /* whose grid result stands for it */
    struct grid_result result;
};

/* What is sorted, so that children stay where they are. */
struct child_ref {
    struct child *child;
};

struct beam {
    const struct units *units;
    const struct search_options *options;
    struct arena *arena;
    struct grid *grids; /* [threads] */
    uint32_t **scratch; /* [threads][max_pieces] */
    struct node *nodes; /* [beam_width] */
    size_t n_nodes;
    struct child *children;
    size_t n_children;
    uint32_t *to_price; /* indices of children, one for each different set */
    size_t n_to_price;
    struct node best; /* least best_ms so far */
};

static void root_node(struct node *node, const struct units *units,
                      struct arena *arena)
{
    size_t n = 0;

    node->pieces = ARENA_NEW(arena, uint32_t, 2 * (size_t)units->n_units);
    for (uint32_t u = 0; u < units->n_units; u++)
        node->pieces[n++] =
            units->units[u].first_item + units->units[u].start_level;
    for (uint32_t u = 0; u < units->n_units; u++)
        if (units->units[u].start_level)
            node->pieces[n++] = node->pieces[u];
    node->n_pieces = n;
}

static void rank_pieces(struct node *node, const struct units *units,
                        struct arena *arena)
{
    struct ranked *order = mem_alloc(node->n_pieces, sizeof(*order));

    node->ranked = ARENA_NEW(arena, uint32_t, node->n_pieces);
    for (size_t i = 0; i < node->n_pieces; i++)
        order[i] = (struct ranked){units->items[node->pieces[i]].rank,
                                   node->pieces[i]};
    ranked_sort(order, node->n_pieces);
    for (size_t i = 0; i < node->n_pieces; i++)
        node->ranked[i] = order[i].idx;
    mem_free(order);
}

/* node->ranked with one `item` less and two of its halves more. */
static void halve_ranked(uint32_t *out, const struct units *units,
                         const struct node *node, uint32_t item)
{
    const uint32_t half = item + 1, half_rank = units->items[half].rank;
    bool taken = false, given = false;
    size_t n = 0;

    for (size_t i = 0; i < node->n_pieces; i++) {
        uint32_t piece = node->ranked[i];

        if (!given && units->items[piece].rank > half_rank) {
            out[n++] = half;
            out[n++] = half;
            given = true;
        }
        if (!taken && piece == item)
            taken = true;
        else
            out[n++] = piece;
    }
    if (!given) {
        out[n++] = half;
        out[n++] = half;
    }
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
    const struct item *items = beam->units->items;
    size_t n = node->n_pieces;
    struct ranked *candidates = mem_alloc(n, sizeof(*candidates));
    bool *marked = mem_alloc(n, sizeof(*marked));

    for (uint32_t i = 0; i < n; i++)
        candidates[i] =
            (struct ranked){-(double)items[node->pieces[i]].bytes, i};
    mark_first(marked, candidates, n, beam->options->n_candidates);
    for (uint32_t i = 0; i < n; i++)
        candidates[i] = (struct ranked){-items[node->pieces[i]].single_ms, i};
    mark_first(marked, candidates, n, beam->options->n_candidates);
    for (uint32_t i = 0; i < n; i++) {
        struct child *child = &beam->children[beam->n_children];

        if (!marked[i] || !units_can_halve(beam->units, node->pieces[i]))
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

static int compare_children(const void *left, const void *right)
{
    const struct child *a = ((const struct child_ref *)left)->child;
    const struct child *b = ((const struct child_ref *)right)->child;

    for (size_t i = 0; i < a->n_halved; i++)
        if (a->halved[i] != b->halved[i])
            return a->halved[i] > b->halved[i] ? 1 : -1;
    return (a->idx > b->idx) - (a->idx < b->idx);
}

/* Fills to_price: the first child of each different set. */
static void find_different(struct beam *beam)
{
    size_t n = beam->n_children;
    struct child_ref *sorted = mem_alloc(n, sizeof(*sorted));

    for (size_t i = 0; i < n; i++)
        sorted[i].child = &beam->children[i];
    qsort(sorted, n, sizeof(*sorted), compare_children);
    beam->to_price = ARENA_NEW(beam->arena, uint32_t, n);
    beam->n_to_price = 0;
    for (size_t i = 0; i < n; i++) {
        struct child *child = sorted[i].child;
        const struct child *before = i ? sorted[i - 1].child : NULL;
        bool same = before && !memcmp(child->halved, before->halved,
                                      child->n_halved * sizeof(uint32_t));

        child->priced = same ? before->priced : child->idx;
        if (!same)
            beam->to_price[beam->n_to_price++] = child->idx;
    }
    mem_free(sorted);
}

static void price_child(void *ctx, size_t task, unsigned thread)
{
    struct beam *beam = ctx;
    struct child *child = &beam->children[beam->to_price[task]];
    const struct node *parent = child->parent;
    uint32_t *ranked = beam->scratch[thread];

    halve_ranked(ranked, beam->units, parent, parent->pieces[child->position]);
    grid_search(&beam->grids[thread], ranked, parent->n_pieces + 1,
                &child->result, NULL);
}

/* Makes the child a node of its own. */
static void adopt(struct node *node, const struct child *child,
                  const struct units *units, struct arena *arena)
{
    const struct node *parent = child->parent;
    uint32_t item = parent->pieces[child->position];

    node->n_pieces = parent->n_pieces + 1;
    node->pieces = ARENA_NEW(arena, uint32_t, node->n_pieces);
    memcpy(node->pieces, parent->pieces,
           parent->n_pieces * sizeof(*node->pieces));
    node->pieces[child->position] = item + 1;
    node->pieces[parent->n_pieces] = item + 1;
    node->ranked = ARENA_NEW(arena, uint32_t, node->n_pieces);
    halve_ranked(node->ranked, units, parent, item);
    node->halved = child->halved;
    node->capped_ms = child->result.capped_ms;
    node->best_ms = child->result.best_ms;
}

/* Sets without a capped plan go by the uncapped one. */
static int compare_survivors(const void *left, const void *right)
{
    const struct child *a = ((const struct child_ref *)left)->child;
    const struct child *b = ((const struct child_ref *)right)->child;

    if (a->result.capped_ms != b->result.capped_ms)
        return a->result.capped_ms > b->result.capped_ms ? 1 : -1;
    if (isinf(a->result.capped_ms) && a->result.best_ms != b->result.best_ms)
        return a->result.best_ms > b->result.best_ms ? 1 : -1;
    return (a->idx > b->idx) - (a->idx < b->idx);
}

/* The best children become the nodes; the best of all time is kept. */
static void select_nodes(struct beam *beam)
{
    size_t n = beam->n_children;
    struct child_ref *sorted = mem_alloc(n, sizeof(*sorted));
    struct node *nodes =
        ARENA_NEW(beam->arena, struct node, beam->options->beam_width);

    for (size_t i = 0; i < n; i++) {
        struct child *child = &beam->children[i];

        sorted[i].child = child;
        if (child->result.best_ms < beam->best.best_ms)
            adopt(&beam->best, child, beam->units, beam->arena);
    }
    qsort(sorted, n, sizeof(*sorted), compare_survivors);
    if (n > beam->options->beam_width)
        n = beam->options->beam_width;
    for (size_t i = 0; i < n; i++)
        adopt(&nodes[i], sorted[i].child, beam->units, beam->arena);
    beam->nodes = nodes;
    beam->n_nodes = n;
    mem_free(sorted);
}

/* One halving more; false where nothing can be halved. */
static bool deepen(struct beam *beam, size_t depth, struct beam_result *result)
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
            result->n_priced += child->result.n_priced;
    }
    select_nodes(beam);
    return true;
}

static void open_beam(struct beam *beam, const struct units *units,
                      const struct search_options *options, size_t max_pieces,
                      struct arena *arena)
{
    unsigned n_threads = options->pool ? pool_size(options->pool) : 1;

    *beam = (struct beam){.units = units, .options = options, .arena = arena};
    beam->grids = ARENA_NEW(arena, struct grid, n_threads);
    beam->scratch = ARENA_NEW(arena, uint32_t *, n_threads);
    for (unsigned t = 0; t < n_threads; t++) {
        grid_init(&beam->grids[t], units, max_pieces, arena);
        beam->scratch[t] = ARENA_NEW(arena, uint32_t, max_pieces);
    }
}

void beam_search(struct beam_result *result, const struct units *units,
                 const struct search_options *options, struct arena *arena)
{
    struct node root = {0};
    struct grid_result priced;
    struct beam beam;

    *result = (struct beam_result){0};
    root_node(&root, units, arena);
    rank_pieces(&root, units, arena);
    open_beam(&beam, units, options, root.n_pieces + options->beam_depth,
              arena);
    grid_search(&beam.grids[0], root.ranked, root.n_pieces, &priced, NULL);
    result->n_priced = priced.n_priced;
    root.capped_ms = priced.capped_ms;
    root.best_ms = priced.best_ms;
    beam.best = root;
    beam.nodes = &root;
    beam.n_nodes = 1;
    for (size_t depth = 0; options->beam_width && depth < options->beam_depth;
         depth++) {
        result->is_interrupted = interrupt_requested();
        if (result->is_interrupted || !deepen(&beam, depth, result))
            break;
    }
    result->pieces = beam.best.ranked;
    result->n_pieces = beam.best.n_pieces;
    result->placement = ARENA_NEW(arena, uint32_t, result->n_pieces);
    grid_search(&beam.grids[0], result->pieces, result->n_pieces, &priced,
                result->placement);
    result->total_ms = priced.best_ms;
}
