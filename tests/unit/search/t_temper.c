/* SPDX-License-Identifier: MIT */
#include "search/temper.h"

#include "search/space_init.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/scene.h"

#define N_STEPS 3000

/* Record of the callback that the annealer calls. */
struct asking {
    /* calls so far, and the number of calls after which it stops the
     * annealer */
    uint64_t n_asked, n_most;
    uint64_t n_done; /* steps done, as last reported */
    bool is_falling; /* the reported steps decreased once */
};

static bool goes_on(void *ctx, uint64_t n_done)
{
    struct asking *asking = ctx;

    asking->is_falling |= asking->n_asked && n_done < asking->n_done;
    asking->n_done = n_done;
    return asking->n_asked++ < asking->n_most;
}

static void temper_begin(struct temper *temper, const struct scene *scene,
                         struct asking *asking, struct pool *pool)
{
    temper_open(temper, &scene->space, pool, 7, goes_on, asking);
    temper_start(temper, &scene->start, 1);
    asking->n_asked = 0;
}

/* Compares one thread with two, for annealing or parallel tempering. */
static void check_threads(enum scene_sort sort, bool tempers)
{
    bool (*walk)(struct temper *, uint64_t, double) =
        tempers ? temper_exchange : temper_anneal;
    const char *name = tempers ? "tempering" : "annealing";
    struct pool *pool = pool_open(2);
    struct temper one, two;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};
    double best_ms;

    scene_open(&scene, sort);
    temper_begin(&one, &scene, &asking, NULL);
    ok(walk(&one, N_STEPS, 0.05), "%s goes to its end", name);
    ok(!asking.is_falling && asking.n_asked > 1 && asking.n_done < N_STEPS,
       "and tells how far it is");
    best_ms = temper_best(&one)->total_ms;
    ok(best_ms < scene.start.total_ms, "it improves on %g ms: %g",
       scene.start.total_ms, best_ms);
    ok(temper_priced(&one) > 0 &&
           temper_priced(&one) <= (uint64_t)TEMPER_CHAINS * N_STEPS,
       "and prices at most a layout a step");
    temper_begin(&two, &scene, &asking, pool);
    ok(walk(&two, N_STEPS, 0.05) && temper_best(&two)->total_ms == best_ms &&
           temper_priced(&two) == temper_priced(&one),
       "two threads do the same");
    temper_close(&one);
    temper_close(&two);
    scene_close(&scene);
    pool_close(pool);
}

static const struct oracle_ops *asked_ops;
static uint64_t n_devices_asked;

static void count_terms(const struct oracle *oracle, const double *sums,
                        size_t n, double *compute_ms, double *terms_ms)
{
    n_devices_asked += n;
    asked_ops->terms(oracle, sums, n, compute_ms, terms_ms);
}

/* A candidate that is rejected before pricing would also have been rejected
 * after pricing. If such candidates are priced anyway, as when assignments are
 * checked, the chains take the same path. */
static void check_given_up(enum scene_sort sort)
{
    const uint32_t every = assignment_check_every;
    struct asking asking = {.n_most = UINT64_MAX};
    struct temper some, all;
    struct scene scene;
    struct oracle_ops counting;
    uint64_t n_some;
    unsigned n_alike = 0;

    scene_open(&scene, sort);
    n_devices_asked = 0;
    asked_ops = scene.oracle.base.ops;
    counting = *asked_ops;
    counting.terms = count_terms;
    scene.oracle.base.ops = &counting;
    assignment_check_every = 0;
    temper_begin(&some, &scene, &asking, NULL);
    ok(temper_anneal(&some, N_STEPS, 0.05), "it anneals");
    n_some = n_devices_asked;
    assignment_check_every = UINT32_MAX;
    temper_begin(&all, &scene, &asking, NULL);
    ok(temper_anneal(&all, N_STEPS, 0.05), "and does where nothing is");
    assignment_check_every = every;
    ok(n_some > 0 && (double)n_some < 0.95 * (double)(n_devices_asked - n_some),
       "which asks for more devices: %g, %g", (double)n_some,
       (double)(n_devices_asked - n_some));
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        const struct assignment *a = &some.all[c].evaluator.assignment;
        const struct assignment *b = &all.all[c].evaluator.assignment;

        n_alike += a->n_pieces == b->n_pieces && a->total_ms == b->total_ms;
    }
    is_i64(n_alike, TEMPER_CHAINS, "all chains end with the same assignment");
    temper_close(&some);
    temper_close(&all);
    scene_close(&scene);
}

/* --- invariants between rounds --- */

struct look {
    struct temper temper;
    bool tempers; /* tempering instead of annealing */
    double hot_frac;
    uint64_t n_asked;
    unsigned n_dearer; /* incumbents whose total increased */
    unsigned n_lost, n_uneven, n_hotter;
    /* chains that moved up by one rung */
    unsigned n_crossed[TEMPER_CHAINS - 1];
    const struct chain *were[TEMPER_CHAINS];
    double best_ms[TEMPER_CHAINS], set_ms[TEMPER_CHAINS];
    /* annealing: first temperature, and its logarithmic change per step */
    double first_ms, fall;
    double cold_ms; /* sum of the totals of the coldest chain */
};

static bool differs(double a, double b)
{
    return !(fabs(a - b) <= 1e-9 * fabs(b));
}

/* Checks the temperatures: the coldest first, then even (geometric) steps up to
 * the hottest. */
static void look_at_ladder(struct look *look)
{
    struct chain *const *chains = look->temper.chains;
    const double rise = chains[1]->temperature_ms / chains[0]->temperature_ms;

    look->n_uneven +=
        !(rise > 1) ||
        differs(chains[TEMPER_CHAINS - 1]->temperature_ms,
                look->hot_frac * temper_best(&look->temper)->total_ms);
    for (unsigned c = 0; c + 1 < TEMPER_CHAINS; c++) {
        look->n_uneven += differs(chains[c + 1]->temperature_ms,
                                  rise * chains[c]->temperature_ms);
        look->n_crossed[c] += chains[c + 1] == look->were[c];
    }
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        look->were[c] = chains[c];
    look->cold_ms += chains[0]->evaluator.assignment.total_ms;
}

/* Checks that all chains have the same temperature, and that it falls by the
 * same factor at each step. */
static void look_at_cooling(struct look *look, uint64_t n_done)
{
    const double now_ms = look->temper.all[0].temperature_ms;

    if (!n_done)
        look->first_ms = now_ms;
    else if (look->fall == 0)
        look->fall = log(now_ms / look->first_ms) / (double)n_done;
    look->n_uneven +=
        differs(now_ms, look->first_ms * exp(look->fall * (double)n_done));
    for (unsigned c = 1; c < TEMPER_CHAINS; c++)
        look->n_uneven += differs(look->temper.all[c].temperature_ms, now_ms);
}

static void look_at_chain(struct look *look, unsigned c)
{
    const struct chain *chain = &look->temper.all[c];
    const struct assignment *assignment = &chain->evaluator.assignment;
    unsigned n_seen = 0;

    for (unsigned i = 0; i < TEMPER_CHAINS; i++)
        n_seen += look->temper.chains[i] == chain;
    look->n_lost += n_seen != 1;
    look->n_dearer += look->n_asked && chain->best.total_ms > look->best_ms[c];
    look->n_dearer += assignment->total_ms < chain->best.total_ms * (1 - 1e-9);
    look->best_ms[c] = chain->best.total_ms;
    look->set_ms[c] = chain->temperature_ms;
}

static bool look_on(void *ctx, uint64_t n_done)
{
    struct look *look = ctx;

    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        look_at_chain(look, c);
    if (look->tempers)
        look_at_ladder(look);
    else
        look_at_cooling(look, n_done);
    look->n_asked++;
    return true;
}

static void look_begin(struct look *look, const struct scene *scene,
                       bool tempers)
{
    *look = (struct look){.tempers = tempers, .hot_frac = 0.05};
    temper_open(&look->temper, &scene->space, NULL, 7, look_on, look);
    temper_start(&look->temper, &scene->start, 1);
}

static void check_chains(const struct look *look)
{
    ok(look->n_asked > 10, "in %u rounds", (unsigned)look->n_asked);
    is_i64(look->n_lost, 0, "each chain has one place");
    is_i64(look->n_dearer, 0,
           "no incumbent becomes worse, and no total is below it");
    is_i64(look->n_uneven, 0, "temperatures are even");
}

/* Chains move between all rungs of the temperature ladder. The coldest chain
 * stays near the best total, and the hottest one does not. */
static void check_ladder(enum scene_sort sort)
{
    unsigned n_closed = 0, n_changed = 0;
    struct scene scene;
    struct look look;
    double cold_ms;

    scene_open(&scene, sort);
    look_begin(&look, &scene, true);
    ok(temper_exchange(&look.temper, N_STEPS, look.hot_frac), "tempered");
    check_chains(&look);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        n_closed += c && !look.n_crossed[c - 1];
        n_changed += look.temper.all[c].temperature_ms != look.set_ms[c];
    }
    is_i64(n_closed, 0, "chains cross from each place to the next");
    is_i64(n_changed, 0, "no temperature changes in a round");
    cold_ms = look.cold_ms / (double)look.n_asked;
    ok(cold_ms < 1.1 * temper_best(&look.temper)->total_ms,
       "the coldest chain averages %g ms, the best is %g", cold_ms,
       temper_best(&look.temper)->total_ms);
    temper_close(&look.temper);
    scene_close(&scene);
}

/* Returns the imbalance penalty of all devices, with the scales that were set
 * when the chain started. */
static double imbalance_ms(const struct chain *chain)
{
    const struct assignment *assignment = &chain->evaluator.assignment;
    double sum_ms = 0;

    for (uint32_t i = 0; i < assignment->n_devices * assignment->n_terms; i++)
        for (uint32_t h = 0; h < chain->n_imbalance; h++)
            if (chain->imbalance[h].term == i % assignment->n_terms)
                sum_ms +=
                    chain->imbalance[h].weight_ms *
                    pow(chain->imbalance[h].scale * assignment->terms_ms[i], 8);
    return sum_ms;
}

/* If the imbalance penalty dominates, annealing lowers it. */
static void check_cooling(enum scene_sort sort)
{
    struct tuning imbalance = tuning_default;
    double before_ms, after_ms, end_ms;
    struct scene scene;
    struct look look;

    scene_open(&scene, sort);
    imbalance.imbalance_weight = 1e3;
    scene.space.tuning = &imbalance;
    look_begin(&look, &scene, false);
    before_ms = imbalance_ms(&look.temper.all[0]);
    ok(temper_anneal(&look.temper, N_STEPS, look.hot_frac), "annealed");
    check_chains(&look);
    end_ms = look.first_ms * exp(look.fall * N_STEPS);
    ok(fabs(look.temper.all[0].temperature_ms - end_ms) < 1e-6 * end_ms &&
           end_ms < 0.01 * look.first_ms,
       "it cools from %g ms to %g", look.first_ms, end_ms);
    after_ms = imbalance_ms(&look.temper.all[0]);
    ok(after_ms < 0.9 * before_ms, "devices become lighter, %g ms from %g",
       after_ms, before_ms);
    temper_close(&look.temper);
    scene_close(&scene);
}

/* Chains take the starts in turn and then follow different paths. */
static void check_turns(void)
{
    unsigned n_astray = 0, n_alike = 0, n_of_mix[N_MOVE_MIXES] = {0};
    struct asking asking = {.n_most = UINT64_MAX};
    struct snapshot starts[2] = {{0}};
    struct temper temper;
    struct scene scene;

    scene_open(&scene, BY_TERMS);
    temper_begin(&temper, &scene, &asking, NULL);
    (void)temper_anneal(&temper, N_STEPS, 0.05);
    snapshot_copy(&starts[0], &scene.start);
    snapshot_copy(&starts[1], temper_best(&temper));
    temper_start(&temper, starts, 2);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        const double want_ms = starts[c % 2].total_ms;

        n_astray +=
            differs(temper.all[c].evaluator.assignment.total_ms, want_ms) ||
            differs(temper.all[c].best.total_ms, want_ms);
        n_of_mix[temper.all[c].evaluator.assignment.mix]++;
    }
    is_i64(n_astray, 0, "chains take starts in turn");
    for (unsigned i = 0; i < N_MOVE_MIXES; i++)
        is_i64(n_of_mix[i], TEMPER_CHAINS / N_MOVE_MIXES,
               "and move mixes, equally often");
    temper_start(&temper, starts, 1);
    (void)temper_anneal(&temper, N_STEPS, 0.05);
    for (unsigned c = N_MOVE_MIXES; c < TEMPER_CHAINS; c++)
        n_alike += temper.all[c].evaluator.n_priced ==
                   temper.all[c - N_MOVE_MIXES].evaluator.n_priced;
    ok(n_alike < 2, "%u chains of one mix draw like the one before", n_alike);
    for (unsigned i = 0; i < 2; i++)
        snapshot_release(&starts[i]);
    temper_close(&temper);
    scene_close(&scene);
}

/* A start that exceeds the memory ends without excess. */
static void check_excess(enum scene_sort sort)
{
    struct asking asking = {.n_most = UINT64_MAX};
    uint64_t room_bytes[SCENE_DEVICES];
    struct snapshot start = {0};
    struct temper temper;
    struct scene scene;
    unsigned n_out = 0;

    scene_open(&scene, sort);
    for (uint32_t u = 0; u < scene.space.n_units; u++)
        *snapshot_next(&start) = (struct change){
            .piece = NO_PIECE, .type = scene.space.units[u].whole[TIER_HBM]};
    for (uint32_t r = 0; r < SCENE_DEVICES; r++)
        room_bytes[r] = UINT64_C(2) << 20;
    scene.space.room_bytes = room_bytes;
    snapshot_price(&start, &scene.space);
    ok(start.excess > 0, "all on one device exceed it by %g", start.excess);
    temper_begin(&temper, &scene, &asking, NULL);
    temper_start(&temper, &start, 1);
    (void)temper_anneal(&temper, N_STEPS, 0.001);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        n_out += !(temper.all[c].evaluator.assignment.excess > 0);
    is_i64(n_out, TEMPER_CHAINS, "chains get out of that");
    snapshot_release(&start);
    temper_close(&temper);
    scene_close(&scene);
}

/* --- exchanges --- */

#define N_EXCHANGES 1500

static double energy_of(const struct chain *chain, const struct scene *scene)
{
    return chain->evaluator.assignment.total_ms +
           scene->space.tuning->excess_weight *
               chain->evaluator.assignment.excess * chain->best.total_ms;
}

/* Sets random energies of chains that do no steps. So one exchange can only
 * change the rungs of the chains. */
static void draw_energies(struct temper *temper, const struct scene *scene,
                          struct rng *rng)
{
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        struct assignment *assignment = &temper->all[c].evaluator.assignment;

        temper->chains[c] = &temper->all[c];
        assignment->total_ms =
            scene->start.total_ms * (1 + 0.02 * rng_uniform(rng));
        assignment->excess = rng_below(rng, 2) ? 2e-4 * rng_uniform(rng) : 0;
    }
}

/* Metropolis rule for exchanges of neighbours: always if the hotter chain has
 * the lower energy, otherwise with a probability that depends on the
 * differences of energy and temperature. */
static void check_exchanges(void)
{
    double want = 0, variance = 0;
    unsigned n_drawn = 0, n_sure = 0, n_refused = 0, n_astray = 0;
    struct asking asking = {.n_most = UINT64_MAX};
    struct temper temper;
    struct scene scene;
    struct rng rng;

    scene_open(&scene, BY_TERMS);
    temper_begin(&temper, &scene, &asking, NULL);
    rng_init(&rng, 3, 0);
    for (unsigned i = 0; i < N_EXCHANGES; i++) {
        draw_energies(&temper, &scene, &rng);
        (void)temper_exchange(&temper, 0, 0.05);
        for (unsigned c = 0; c < TEMPER_CHAINS; c += 2) {
            const struct chain *cold = &temper.all[c], *hot = cold + 1;
            const bool is_done = temper.chains[c] == hot;
            const double gain =
                (energy_of(cold, &scene) - energy_of(hot, &scene)) *
                (1 / cold->temperature_ms - 1 / hot->temperature_ms);

            n_astray += temper.chains[c + is_done] != cold ||
                        temper.chains[c + !is_done] != hot;
            if (gain >= 0) {
                n_sure++;
                n_refused += !is_done;
                continue;
            }
            n_drawn += is_done;
            want += exp(gain);
            variance += exp(gain) * (1 - exp(gain));
        }
    }
    is_i64(n_astray, 0, "neighbours stay, or exchange places");
    ok(n_sure > N_EXCHANGES && !n_refused,
       "of %u exchanges that lower the colder chain %u are refused", n_sure,
       n_refused);
    ok(fabs(n_drawn - want) < 4 * sqrt(variance),
       "of the others %u are accepted, %.0f +- %.0f are expected", n_drawn,
       want, sqrt(variance));
    temper_close(&temper);
    scene_close(&scene);
}

/* --- pause and continue --- */

/* Chains continue from the snapshots that temper_pause saved. */
static void check_pause(void)
{
    struct snapshot first[TEMPER_CHAINS] = {{0}}, second[TEMPER_CHAINS] = {{0}};
    unsigned n_other = 0, n_alike = 0;
    struct asking asking = {.n_most = UINT64_MAX};
    struct temper temper;
    struct scene scene;

    scene_open(&scene, BY_TERMS);
    temper_begin(&temper, &scene, &asking, NULL);
    (void)temper_exchange(&temper, N_STEPS, 0.2);
    temper_pause(&temper, first);
    temper_start(&temper, &scene.start, 1);
    temper_start(&temper, first, TEMPER_CHAINS);
    temper_pause(&temper, second);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        n_other += fabs(first[c].total_ms - second[c].total_ms) >
                   1e-9 * first[c].total_ms;
        n_alike += c && first[c].total_ms == first[0].total_ms;
    }
    is_i64(n_other, 0, "chains go on from where they were");
    ok(n_alike < TEMPER_CHAINS / 2, "each from its own place");
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        snapshot_release(&first[c]);
        snapshot_release(&second[c]);
    }
    temper_close(&temper);
    scene_close(&scene);
}

/* The best chain keeps the limits, or else has the least excess. */
static void check_best(void)
{
    static const struct {
        double excess, total_ms;
    } chains[TEMPER_CHAINS] = {{0.3, 1}, {0.1, 9}, {0, 7}, {0.2, 2},
                               {0, 5},   {0, 6},   {1, 0}, {0.1, 1}};
    struct asking asking = {.n_most = UINT64_MAX};
    struct temper temper;
    struct scene scene;

    scene_open(&scene, BY_TERMS);
    temper_begin(&temper, &scene, &asking, NULL);
    for (unsigned c = 0; c < TEMPER_CHAINS; c++) {
        temper.all[c].best.excess = chains[c].excess;
        temper.all[c].best.total_ms = chains[c].total_ms;
    }
    ok(temper_best(&temper) == &temper.all[4].best,
       "the cheapest that keeps the limits");
    for (unsigned c = 0; c < TEMPER_CHAINS; c++)
        if (!(chains[c].excess > 0))
            temper.all[c].best.excess = 2;
    ok(temper_best(&temper)->excess == 0.1, "else the least excess");
    temper_close(&temper);
    scene_close(&scene);
}

/* The effort is the same for any list and cost model, unless the user sets
 * it. */
static void check_effort(void)
{
    is_i64((int64_t)temper_effort(17), 17, "as asked");
    is_i64((int64_t)temper_effort(SEARCH_EFFORT_AUTO), 2400000,
           "the default is that of search.h");
}

static void check_stop(void)
{
    struct temper temper;
    struct scene scene;
    struct asking asking = {.n_most = UINT64_MAX};

    scene_open(&scene, BY_TERMS);
    asking.n_most = 3;
    temper_begin(&temper, &scene, &asking, NULL);
    ok(!temper_exchange(&temper, N_STEPS, 0.05), "tempering stops");
    ok(asking.n_asked == 4 && asking.n_done < N_STEPS / 2, "at once");
    temper_close(&temper);
    temper_begin(&temper, &scene, &asking, NULL);
    ok(!temper_anneal(&temper, N_STEPS, 0.05), "annealing stops");
    ok(temper_best(&temper)->total_ms <= scene.start.total_ms,
       "with the best so far");
    temper_close(&temper);
    scene_close(&scene);
}

/* --- repair --- */

#define N_REPAIRS 60
#define REPAIR_TABLES 12
#define REPAIR_DEVICES 3

/* Repairs an assignment with all tables on one device. All devices together
 * have the memory of some placement plus the relative slack. Returns the
 * lacking bytes that temper_repair reports. */
static uint64_t repair(double slack, unsigned seed, uint64_t *all_bytes,
                       uint64_t *all_room, struct snapshot *io)
{
    uint64_t rows[REPAIR_TABLES], room[REPAIR_DEVICES] = {0}, lacking;
    uint32_t dims[REPAIR_TABLES];
    struct problem problem;
    struct oracle oracle;
    struct search_space space;
    struct err err = {0};
    struct arena arena = {0};
    struct rng rng;

    rng_init(&rng, 12, seed);
    *all_bytes = *all_room = 0;
    for (unsigned t = 0; t < REPAIR_TABLES; t++) {
        rows[t] = 100 + rng_below(&rng, 900);
        dims[t] = 16;
        room[rng_below(&rng, REPAIR_DEVICES)] += rows[t] * 16 * 4;
        *all_bytes += rows[t] * 16 * 4;
    }
    fake_problem(&problem, rows, dims, REPAIR_TABLES, REPAIR_DEVICES, 0,
                 &arena);
    problem.kinds = SHARD_TABLE;
    for (uint32_t r = 0; r < REPAIR_DEVICES; r++) {
        problem.cluster.memory_bytes[r] =
            (uint64_t)((double)room[r] * (1 + slack));
        *all_room += problem.cluster.memory_bytes[r];
    }
    oracle = fake_oracle(&problem);
    if (space_init(&space, &problem, &oracle, NULL, NULL, &arena, &err))
        ok(0, "parts: %s", err.msg);
    io->n = 0;
    for (uint32_t u = 0; u < space.n_units; u++)
        *snapshot_next(io) = (struct change){
            .piece = NO_PIECE, .type = space.units[u].whole[TIER_HBM]};
    lacking = temper_repair(io, &space, 1);
    snapshot_price(io, &space);
    arena_release(&arena);
    return lacking;
}

/* Problems that fit to a thousandth are mostly repaired, and the assignment is
 * replaced. Otherwise the assignment stays, and the reported lack is not below
 * the true one. */
static void check_repair(void)
{
    unsigned n_repaired = 0, n_wrong = 0, n_moved = 0;
    struct snapshot io = {0};
    uint64_t bytes, room;

    for (unsigned seed = 0; seed < N_REPAIRS; seed++) {
        const uint64_t lacking = repair(0.001, seed, &bytes, &room, &io);

        n_repaired += !lacking;
        n_wrong += (io.excess > 0) != (lacking > 0);
    }
    ok(n_repaired > N_REPAIRS * 9 / 10 && !n_wrong,
       "of %u close fits %u are repaired", N_REPAIRS, n_repaired);
    for (unsigned seed = 0; seed < 3; seed++) {
        const uint64_t lacking = repair(-0.1, seed, &bytes, &room, &io);

        n_wrong += lacking < bytes - room || lacking > bytes / 2;
        for (uint32_t i = 0; i < io.n; i++)
            n_moved += io.pieces[i].device > 0;
    }
    ok(!n_wrong && !n_moved, "an assignment that cannot fit is unchanged");
    snapshot_release(&io);
}

int main(void)
{
    check_repair();
    check_given_up(ADDITIVE);
    check_given_up(BY_TERMS);
    for (unsigned i = 0; i < 4; i++)
        check_threads(i % 2 ? BY_TERMS : BY_COMM, i / 2);
    for (enum scene_sort sort = ADDITIVE; sort <= BY_COMM; sort++) {
        check_ladder(sort);
        check_cooling(sort);
    }
    check_turns();
    check_excess(BY_TERMS);
    check_excess(BY_COMM);
    check_exchanges();
    check_pause();
    check_best();
    check_effort();
    check_stop();
    return tap_done();
}
