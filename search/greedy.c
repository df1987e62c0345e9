/* SPDX-License-Identifier: MIT */
#include "search/greedy.h"

#include "search/assignment.h"

#include <math.h>
#include <string.h>

void greedy_init(struct greedy *greedy, const struct greedy_inputs *inputs)
{
    const struct oracle *oracle = inputs->space->oracle;
    const size_t n_devices = inputs->space->n_devices, width = oracle->width;
    struct arena *arena = &greedy->arena;

    *greedy = (struct greedy){.inputs = inputs};
    for (unsigned b = 0; b < GREEDY_CAPS; b++) {
        struct branch *branch = greedy->live[b] = &greedy->branches[b];

        branch->sums = ARENA_NEW(arena, double, n_devices *width);
        branch->devices = ARENA_NEW(arena, struct filled, n_devices);
        branch->order = ARENA_NEW(arena, struct load_rank, n_devices);
        branch->placement = ARENA_NEW(arena, uint32_t, inputs->most_placed);
    }
    greedy->sums = ARENA_NEW(arena, double, GREEDY_CAPS *n_devices *width);
    greedy->compute_ms = ARENA_NEW(arena, double, GREEDY_CAPS *n_devices);
    greedy->fwd_ms = ARENA_NEW(arena, double, GREEDY_CAPS *n_devices);
    greedy->bwd_ms = ARENA_NEW(arena, double, GREEDY_CAPS *n_devices);
    greedy->empty_ms = ARENA_NEW(arena, double, n_devices);
    oracle_empty_sums(oracle, greedy->sums);
    oracle->ops->compute(oracle, greedy->sums, n_devices, greedy->empty_ms);
}

void greedy_release(struct greedy *greedy)
{
    arena_release(&greedy->arena);
}

/* --- branches --- */

/* Begins with one branch, which has all caps and only empty devices. */
static void start(struct greedy *greedy)
{
    const struct search_space *space = greedy->inputs->space;
    struct branch *root = greedy->live[0];

    greedy->n_live = 1;
    root->cap_begin = 0;
    root->cap_end = GREEDY_CAPS;
    oracle_empty_sums(space->oracle, root->sums);
    memset(root->devices, 0, space->n_devices * sizeof(*root->devices));
    for (uint32_t r = 0; r < space->n_devices; r++)
        root->order[r] = (struct load_rank){.device = r};
}

/* Moves the caps below `cap` from branch `from` to a new branch. The new branch
 * is a copy of `from`, which has placed n pieces. */
static void fork_off(struct greedy *greedy, struct branch *from, unsigned cap,
                     size_t n)
{
    const size_t n_devices = greedy->inputs->space->n_devices;
    const size_t width = greedy->inputs->space->oracle->width;
    struct branch *to = greedy->live[greedy->n_live++];

    memcpy(to->sums, from->sums, n_devices * width * sizeof(*to->sums));
    memcpy(to->devices, from->devices, n_devices * sizeof(*to->devices));
    memcpy(to->order, from->order, n_devices * sizeof(*to->order));
    memcpy(to->placement, from->placement, n * sizeof(*to->placement));
    to->cap_begin = from->cap_begin;
    to->cap_end = from->cap_begin = cap;
}

/* Finds the first device in the order that may take the piece under the loosest
 * cap of the branch. Returns false if no device may take the piece. */
static bool choose(const struct search_space *space, struct branch *branch,
                   const struct cuttable *piece, double cap)
{
    const struct piece_type *type = &space->types[piece->type];
    const int64_t pin = space->units[type->unit].pin;

    for (uint32_t pos = 0; pos < space->n_devices; pos++) {
        const uint32_t r = branch->order[pos].device;
        const struct filled *device = &branch->devices[r];

        branch->chosen = pos;
        if (device->output + piece->output <= cap &&
            type->bytes <= space->room_bytes[r] - device->bytes &&
            (pin < 0 || pin == r))
            return true;
    }
    return false;
}

/* Chooses a device for piece i in each branch. A branch in which no device may
 * take the piece ends. New branches are appended to the list during the loop,
 * and the loop visits them, too. */
static void choose_all(struct greedy *greedy, const struct cuttable *piece,
                       size_t i)
{
    const double *caps = greedy->inputs->caps;

    for (unsigned b = 0; b < greedy->n_live;) {
        struct branch *branch = greedy->live[b];
        unsigned cap = branch->cap_begin;
        double output;

        if (!choose(greedy->inputs->space, branch, piece,
                    caps[branch->cap_end - 1])) {
            greedy->live[b] = greedy->live[--greedy->n_live];
            greedy->live[greedy->n_live] = branch;
            continue;
        }
        branch->placement[i] = branch->order[branch->chosen].device;
        output = branch->devices[branch->placement[i]].output + piece->output;
        while (output > caps[cap])
            cap++;
        if (cap > branch->cap_begin)
            fork_off(greedy, branch, cap, i);
        b++;
    }
}

/* In each branch, adds the piece to the device that was chosen for it. */
static void add_to_all(struct greedy *greedy, const struct cuttable *piece)
{
    const struct search_space *space = greedy->inputs->space;
    const struct oracle *oracle = space->oracle;
    const size_t width = oracle->width;
    const double *vector = space->vectors + piece->type * width;

    for (unsigned b = 0; b < greedy->n_live; b++) {
        const struct branch *branch = greedy->live[b];
        double *sum =
            branch->sums + branch->order[branch->chosen].device * width;

        add_lanes(sum, sum, vector, 1, width);
        memcpy(greedy->sums + b * width, sum, width * sizeof(*sum));
    }
    oracle->ops->compute(oracle, greedy->sums, greedy->n_live,
                         greedy->compute_ms);
    for (unsigned b = 0; b < greedy->n_live; b++) {
        struct branch *branch = greedy->live[b];
        struct load_rank *rank = &branch->order[branch->chosen];
        struct filled *device = &branch->devices[rank->device];

        device->compute_ms = greedy->compute_ms[b];
        device->output += piece->output;
        device->bytes += space->types[piece->type].bytes;
        device->n_pieces++;
        rank->load = device->compute_ms;
        rank->bytes = device->bytes;
        load_order_restore(branch->order, space->n_devices, branch->chosen);
    }
}

/* Prices the exchanges of all branches. As in the published search, an empty
 * device costs 0 in the greedy, but the oracle's price of an empty device in
 * the total. */
static void ask_comm(struct greedy *greedy)
{
    const struct oracle *oracle = greedy->inputs->space->oracle;
    const size_t n_devices = greedy->inputs->space->n_devices;
    const size_t n_sums = n_devices * oracle->width;

    for (unsigned b = 0; b < greedy->n_live; b++) {
        const struct branch *branch = greedy->live[b];

        memcpy(greedy->sums + b * n_sums, branch->sums,
               n_sums * sizeof(*branch->sums));
        for (size_t r = 0; r < n_devices; r++)
            greedy->compute_ms[b * n_devices + r] =
                branch->devices[r].n_pieces ? branch->devices[r].compute_ms
                                            : greedy->empty_ms[r];
    }
    oracle->ops->comm(oracle, greedy->n_live, greedy->sums, greedy->compute_ms,
                      greedy->fwd_ms, greedy->bwd_ms);
}

void greedy_place(struct greedy *greedy, const uint32_t *pieces, size_t n,
                  struct greedy_found *found)
{
    const size_t n_devices = greedy->inputs->space->n_devices;
    unsigned tightest = GREEDY_CAPS;

    start(greedy);
    for (size_t i = 0; i < n && greedy->n_live; i++) {
        const struct cuttable *piece = &greedy->inputs->pieces[pieces[i]];

        choose_all(greedy, piece, i);
        if (greedy->n_live)
            add_to_all(greedy, piece);
    }
    found->capped_ms = found->best_ms = INFINITY;
    found->n_priced = greedy->n_live;
    if (greedy->n_live)
        ask_comm(greedy);
    for (unsigned b = 0; b < greedy->n_live; b++) {
        const struct branch *branch = greedy->live[b];
        const size_t pos = b * n_devices;
        const double total_ms =
            oracle_total_ms(n_devices, greedy->compute_ms + pos,
                            greedy->bwd_ms + pos, greedy->fwd_ms + pos);

        if (branch->cap_begin < GREEDY_CAPS - 1)
            found->capped_ms = fmin(found->capped_ms, total_ms);
        if (total_ms < found->best_ms ||
            (total_ms == found->best_ms && branch->cap_begin < tightest)) {
            found->best_ms = total_ms;
            tightest = branch->cap_begin;
            memcpy(found->placement, branch->placement,
                   n * sizeof(*found->placement));
        }
    }
}
