/* SPDX-License-Identifier: MIT */
/* Compares two greedy algorithms: one handles all caps at once, the other
 * handles cap by cap and scans all devices for each piece. Their totals,
 * placements and numbers of assignments must be equal, with ties, pins and
 * tight memory. */
#include "search/greedy.h"

#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define N_PROBLEMS 400
#define MAX_TABLES 24
#define MAX_DEVICES 9

struct tally {
    unsigned n_wrong, n_stuck, n_forked, n_uncapped, n_pinned;
};

struct naive {
    double sums[MAX_DEVICES * RANDOM_WIDTH];
    double compute_ms[MAX_DEVICES], output[MAX_DEVICES];
    uint64_t bytes[MAX_DEVICES];
    uint32_t placement[2 * MAX_TABLES];
};

static uint32_t naive_choose(const struct naive *naive,
                             const struct greedy_inputs *inputs,
                             const struct cuttable *piece, double cap)
{
    const struct search_space *space = inputs->space;
    const struct piece_type *type = &space->types[piece->type];
    const int64_t pin = space->units[type->unit].pin;
    uint32_t chosen = NO_PIECE;

    for (uint32_t r = 0; r < space->n_devices; r++)
        if ((pin < 0 || pin == r) &&
            type->bytes <= space->room_bytes[r] - naive->bytes[r] &&
            naive->output[r] + piece->output <= cap &&
            (chosen == NO_PIECE ||
             naive->compute_ms[r] < naive->compute_ms[chosen] ||
             (naive->compute_ms[r] == naive->compute_ms[chosen] &&
              naive->bytes[r] < naive->bytes[chosen])))
            chosen = r;
    return chosen;
}

/* Returns the total if all pieces are placed under one cap, or INFINITY if a
 * piece finds no device. */
static double naive_place(struct naive *naive,
                          const struct greedy_inputs *inputs,
                          const uint32_t *pieces, size_t n, double cap)
{
    const struct search_space *space = inputs->space;
    const struct oracle *oracle = space->oracle;

    *naive = (struct naive){0};
    for (size_t i = 0; i < n; i++) {
        const struct cuttable *piece = &inputs->pieces[pieces[i]];
        const uint32_t r = naive_choose(naive, inputs, piece, cap);
        double *sum = naive->sums + r * (size_t)RANDOM_WIDTH;

        if (r == NO_PIECE)
            return INFINITY;
        for (unsigned w = 0; w < RANDOM_WIDTH; w++)
            sum[w] += space->vectors[piece->type * (size_t)RANDOM_WIDTH + w];
        oracle->ops->compute(oracle, sum, 1, &naive->compute_ms[r]);
        naive->output[r] += piece->output;
        naive->bytes[r] += space->types[piece->type].bytes;
        naive->placement[i] = r;
    }
    oracle->ops->compute(oracle, naive->sums, space->n_devices,
                         naive->compute_ms);
    return oracle_comm_total_ms(oracle, naive->sums, naive->compute_ms);
}

/* Compares the results with the naive algorithm, which starts at the loosest
 * cap as the published search does. */
static bool is_as_naive(const struct greedy_inputs *inputs,
                        const uint32_t *pieces, size_t n,
                        const struct greedy_found *found, struct tally *tally)
{
    uint32_t last[2 * MAX_TABLES] = {NO_PIECE}, best[2 * MAX_TABLES] = {0};
    double capped_ms = INFINITY, best_ms = INFINITY;
    unsigned n_priced = 0, n_stuck = 0;
    struct naive naive;

    for (unsigned c = GREEDY_CAPS; c-- > 0;) {
        const double ms =
            naive_place(&naive, inputs, pieces, n, inputs->caps[c]);

        if (!isfinite(ms)) {
            n_stuck++;
            continue;
        }
        n_priced += memcmp(last, naive.placement, n * sizeof(*last)) != 0;
        memcpy(last, naive.placement, n * sizeof(*last));
        if (c < GREEDY_CAPS - 1)
            capped_ms = fmin(capped_ms, ms);
        if (ms > best_ms)
            continue;
        best_ms = ms;
        memcpy(best, naive.placement, n * sizeof(*best));
    }
    tally->n_stuck += n_stuck > 0;
    tally->n_forked += n_priced > 1;
    tally->n_uncapped += isinf(capped_ms) && isfinite(best_ms);
    return found->n_priced == n_priced && found->best_ms == best_ms &&
           found->capped_ms == capped_ms &&
           (isinf(best_ms) ||
            !memcmp(found->placement, best, n * sizeof(*best)));
}

/* Draws each table whole or in two halves that share one entry of `of`. */
static size_t draw_pieces(struct cuttable *of, uint32_t *pieces,
                          const struct search_space *space, struct rng *rng)
{
    uint32_t n_of = 0;
    size_t n = 0;

    for (uint32_t u = 0; u < space->n_units; u++) {
        const struct unit *unit = &space->units[u];
        const uint32_t half =
            space_type_of_width(space, u, unit->first->dim / 2, TIER_HBM);
        const bool is_cut = unit->whole[TIER_HBM] == NO_TYPE ||
                            (half != NO_TYPE && rng_below(rng, 3) == 0);

        of[n_of] =
            (struct cuttable){.type = is_cut ? half : unit->whole[TIER_HBM],
                              .half = NO_PIECE,
                              .output = (double)(1 + rng_below(rng, 4))};
        pieces[n++] = n_of;
        if (is_cut)
            pieces[n++] = n_of;
        n_of++;
    }
    return n;
}

static void draw_problem(struct problem *problem, struct rng *rng,
                         struct arena *arena)
{
    const uint32_t n_devices = 1 + rng_draw(rng, MAX_DEVICES);
    const size_t n_tables = 1 + rng_below(rng, MAX_TABLES);
    uint64_t rows[MAX_TABLES], all = 0;
    uint32_t dims[MAX_TABLES];

    for (size_t t = 0; t < n_tables; t++) {
        rows[t] =
            t && rng_below(rng, 2) ? rows[t - 1] : 10 + rng_below(rng, 5000);
        dims[t] =
            t && rng_below(rng, 2) ? dims[t - 1] : 8U << rng_below(rng, 4);
        all += rows[t] * dims[t] * 4;
    }
    fake_problem(problem, rows, dims, n_tables, n_devices, UINT64_C(1) << 40,
                 arena);
    if (rng_below(rng, 2))
        for (uint32_t r = 0; r < n_devices; r++)
            problem->cluster.memory_bytes[r] =
                (uint64_t)((double)all * 2 * (1 + rng_uniform(rng))) /
                n_devices;
    for (size_t t = 0; t < n_tables; t++)
        if (rng_below(rng, 12) == 0)
            problem->tables[t].device = rng_draw(rng, n_devices);
}

static void check_one(struct tally *tally, struct rng *rng)
{
    uint32_t pieces[2 * MAX_TABLES], room[2 * MAX_TABLES];
    struct cuttable of[MAX_TABLES];
    struct greedy_inputs inputs = {.pieces = of, .most_placed = 2 * MAX_TABLES};
    struct greedy_found found = {.placement = room};
    struct greedy greedy = {0};
    struct random_oracle oracle;
    struct problem problem;
    struct search_space space;
    struct arena arena = {0};
    struct err err = {0};
    double output = 0;
    size_t n;

    draw_problem(&problem, rng, &arena);
    random_oracle_init(&oracle, &problem, rng);
    if (space_init(&space, &problem, &oracle.base, NULL, NULL, &arena, &err)) {
        tally->n_wrong++;
        printf("# %s\n", err.msg);
        arena_release(&arena);
        return;
    }
    inputs.space = &space;
    n = draw_pieces(of, pieces, &space, rng);
    for (size_t i = 0; i < n; i++) {
        output += of[pieces[i]].output;
        tally->n_pinned +=
            space.units[space.types[of[pieces[i]].type].unit].pin >= 0;
    }
    for (unsigned c = 0; c < GREEDY_CAPS; c++)
        inputs.caps[c] = c == GREEDY_CAPS - 1
                             ? INFINITY
                             : (1 + 0.05 * c) * output / space.n_devices;
    greedy_init(&greedy, &inputs);
    /* the second run must not see leftovers of the first */
    for (unsigned again = 0; again < 2; again++) {
        greedy_place(&greedy, pieces, n, &found);
        tally->n_wrong += !is_as_naive(&inputs, pieces, n, &found, tally);
    }
    greedy_release(&greedy);
    arena_release(&arena);
}

int main(void)
{
    struct tally tally = {0};
    struct rng rng;

    rng_init(&rng, 12, 0);
    for (unsigned i = 0; i < N_PROBLEMS; i++)
        check_one(&tally, &rng);
    is_i64(tally.n_wrong, 0, "as cap by cap, scan by scan");
    ok(tally.n_stuck > 20 && tally.n_forked > 20 && tally.n_uncapped > 5 &&
           tally.n_pinned > 20,
       "some found no place, some differ by caps, some fit under none, some "
       "are pinned: %u, %u, %u, %u",
       tally.n_stuck, tally.n_forked, tally.n_uncapped, tally.n_pinned);
    return tap_done();
}
