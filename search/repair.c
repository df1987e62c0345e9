/* SPDX-License-Identifier: MIT */
#include "search/repair.h"

#include "search/join.h"
#include "search/propose.h"

#include <math.h>
#include <string.h>

/* Steps: so many, and so many more a piece; and steps times devices, which is
 * what a step takes, at most. */
#define MIN_STEPS 50000
#define STEPS_A_PIECE 500
#define MAX_WORK 20000000
#define SEED 4
/* It cools down so many times. Temperatures are excess: shares of a device's
 * memory. */
#define N_CYCLES 4
#define HOT_FRAC 0.02
#define COLD_FRAC 0.0002

/* --- a cost model to which all plans are one: memory alone counts --- */

static void free_embed(const struct oracle *oracle, const struct shard *shards,
                       size_t n, double *out)
{
    (void)oracle;
    (void)shards;
    for (size_t i = 0; i < n; i++)
        out[i] = 0;
}

static void free_compute(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms)
{
    (void)oracle;
    (void)sums;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = 0;
}

static void free_comm(const struct oracle *oracle, size_t n, const double *sums,
                      const double *compute_ms, double *fwd_ms, double *bwd_ms)
{
    (void)sums;
    (void)compute_ms;
    for (size_t i = 0; i < n * oracle->problem->cluster.n_devices; i++)
        fwd_ms[i] = bwd_ms[i] = 0;
}

static void free_terms(const struct oracle *oracle, const double *sums,
                       const double *compute_ms, size_t n, double *terms_ms)
{
    (void)oracle;
    (void)sums;
    (void)compute_ms;
    for (size_t i = 0; i < n; i++)
        terms_ms[i] = 1;
}

static struct oracle free_oracle(const struct parts *parts)
{
    static const struct oracle_ops ops = {.embed = free_embed,
                                          .compute = free_compute,
                                          .comm = free_comm,
                                          .terms = free_terms};

    return (struct oracle){.ops = &ops,
                           .problem = parts->problem,
                           .name = "none",
                           .width = 1,
                           .n_terms = 1,
                           .kinds = parts->oracle->kinds,
                           .row_cut = parts->oracle->row_cut,
                           .floor_lane = -1};
}

struct repairer {
    struct layout layout;
    struct trial trial;
    struct rng rng;
    uint32_t fullest, roomiest; /* by what exceeds memory, or is left of it */
};

static uint32_t draw(struct repairer *repairer, uint32_t n)
{
    return (uint32_t)rng_below(&repairer->rng, n);
}

/* Memory that is left, below 0 where it is exceeded. */
static double room_left(const struct layout *layout, uint32_t device)
{
    return (double)layout->parts->units->room_bytes[device] -
           (double)layout->bytes[device];
}

static void find_extremes(struct repairer *repairer)
{
    const struct layout *layout = &repairer->layout;

    repairer->fullest = repairer->roomiest = 0;
    for (uint32_t r = 1; r < layout->n_devices; r++) {
        if (room_left(layout, r) < room_left(layout, repairer->fullest))
            repairer->fullest = r;
        if (room_left(layout, r) > room_left(layout, repairer->roomiest))
            repairer->roomiest = r;
    }
}

static uint32_t piece_on(struct repairer *repairer, uint32_t device)
{
    const struct holding *holding = &repairer->layout.holdings[device];

    return holding->n ? holding->pieces[draw(repairer, holding->n)] : NO_PIECE;
}

/* Columns of the piece, as many as the other device has room for or as must
 * go, from one device to the other. */
static void propose_columns(struct repairer *repairer, uint32_t piece,
                            uint32_t to)
{
    const struct layout *layout = &repairer->layout;
    const struct parts *parts = layout->parts;
    uint32_t part = layout->pieces[piece].part, n, taken;
    double bytes = (double)parts->parts[part].bytes, least, left;

    if (!parts_is_columns(parts, part))
        return;
    n = parts_quanta(parts, part);
    least =
        fmax(0, -room_left(layout, layout->pieces[piece].device)) / bytes * n;
    left = fmax(0, room_left(layout, to)) / bytes * n;
    taken = (uint32_t)fmin(draw(repairer, 2) ? ceil(least) : floor(left), n);
    if (taken && taken < n)
        trial_split(&repairer->trial, layout, piece, taken, to);
}

/* A piece of the fullest device goes, against one of another or not. */
static void propose_relief(struct repairer *repairer)
{
    const struct layout *layout = &repairer->layout;
    uint32_t from = repairer->fullest, to = repairer->roomiest;
    uint32_t piece = piece_on(repairer, from), other;

    trial_clear(&repairer->trial);
    if (to == from || draw(repairer, 2))
        to = draw(repairer, layout->n_devices);
    if (piece == NO_PIECE || to == from ||
        !parts_can_move(layout->parts, layout->pieces[piece].part))
        return;
    other = piece_on(repairer, to);
    switch (draw(repairer, 3)) {
    case 0:
        propose_columns(repairer, piece, to);
        break;
    case 1:
        if (other == NO_PIECE ||
            !parts_can_move(layout->parts, layout->pieces[other].part))
            break;
        trial_move(&repairer->trial, layout, other, from);
        /* fall through */
    default:
        trial_move(&repairer->trial, layout, piece, to);
    }
}

static void step(struct repairer *repairer, double temperature)
{
    struct layout *layout = &repairer->layout;
    struct trial *trial = &repairer->trial;
    double rise;

    if (draw(repairer, 2))
        propose_relief(repairer);
    else
        propose(trial, layout, &repairer->rng);
    if (!trial->n_changes || !trial_join(trial, layout))
        return;
    trial_sum(trial, layout);
    rise = trial->excess - layout->excess;
    if (rise > 0 && !(rng_uniform(&repairer->rng) < exp(-rise / temperature)))
        return;
    memset(trial->compute_ms, 0, trial->n_devices * sizeof(double));
    trial_price_terms(trial, layout);
    layout_commit(layout, trial);
    find_extremes(repairer);
}

static uint64_t excess_bytes(const struct layout *layout)
{
    double sum = 0;

    for (uint32_t r = 0; r < layout->n_devices; r++)
        sum += fmax(0, -room_left(layout, r));
    return (uint64_t)fmin(sum, 0x1p63);
}

uint64_t repair(struct snapshot *io, const struct parts *parts,
                unsigned patience)
{
    struct oracle oracle = free_oracle(parts);
    struct parts unpriced = *parts;
    const uint32_t n_devices = parts->problem->cluster.n_devices;
    uint64_t n_steps = MIN_STEPS + (uint64_t)STEPS_A_PIECE * io->n;
    uint64_t max_steps = MAX_WORK / n_devices + N_CYCLES;
    struct repairer repairer;
    double cooling, temperature = 0;
    uint64_t excess;

    if (n_devices < 2)
        return UINT64_MAX;
    n_steps = patience * (n_steps < max_steps ? n_steps : max_steps);
    cooling = exp(log(COLD_FRAC / HOT_FRAC) * N_CYCLES / (double)n_steps);
    unpriced.oracle = &oracle;
    unpriced.homes = NULL;
    unpriced.vectors = mem_alloc(parts->n_parts, sizeof(double));
    unpriced.alone_ms = unpriced.marginal_ms = unpriced.vectors; /* all 0 */
    rng_init(&repairer.rng, SEED, 0);
    layout_init(&repairer.layout, &unpriced);
    trial_init(&repairer.trial, &repairer.layout);
    snapshot_load(io, &repairer.layout);
    find_extremes(&repairer);
    for (uint64_t i = 0; i < n_steps && repairer.layout.excess > 0; i++) {
        if (i % (n_steps / N_CYCLES) == 0)
            temperature = HOT_FRAC;
        step(&repairer, temperature);
        temperature *= cooling;
    }
    excess = excess_bytes(&repairer.layout);
    if (!excess)
        snapshot_save(io, &repairer.layout);
    trial_release(&repairer.trial);
    layout_release(&repairer.layout);
    mem_free(unpriced.vectors);
    return excess;
}
