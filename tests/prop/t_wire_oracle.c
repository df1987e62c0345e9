/* SPDX-License-Identifier: MIT */
/* The cost model of the worst regret, against its definition: random plans,
 * priced at each bandwidth by itself. */
#include "search/wire_oracle.h"

#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define N_PLANS 200
#define N_DEVICES 4
#define NO_LIMIT INFINITY

struct scene {
    struct arena arena;
    struct problem problems[N_WIRES];
    struct oracle *models[N_WIRES];
};

static void open_scene(struct scene *scene, struct rng *rng)
{
    struct err err = {0};

    *scene = (struct scene){0};
    fake_random(&scene->problems[0], rng, 2, &scene->arena);
    fake_cluster(&scene->problems[0], N_DEVICES, UINT64_C(1) << 40,
                 &scene->arena);
    scene->problems[0].cluster.intra_gbps = 100;
    for (unsigned k = 0; k < N_WIRES; k++) {
        scene->problems[k] = scene->problems[0];
        scene->problems[k].cluster.intra_gbps *= wire_shares[k];
        if (oracle_open(&scene->models[k], "roofline:h100", &scene->problems[k],
                        &scene->arena, &err)) {
            printf("Bail out! %s\n", err.msg);
            exit(1);
        }
    }
}

/* Returns a plan with whole tables, halves and replicas on random devices. */
static struct plan draw_plan(struct scene *scene, struct rng *rng)
{
    struct plan plan = {.problem = scene->problems[0]};

    plan.shards = ARENA_NEW(&scene->arena, struct shard,
                            N_DEVICES * plan.problem.n_tables);
    for (uint32_t t = 0; t < plan.problem.n_tables; t++) {
        const bool is_replica = !rng_below(rng, 3);

        for (uint32_t r = 0; r < (is_replica ? N_DEVICES : 1); r++) {
            struct shard *shard = &plan.shards[plan.n_shards++];

            *shard = shard_whole(&plan.problem, t,
                                 is_replica ? r : rng_draw(rng, N_DEVICES));
            if (is_replica)
                shard->kind = SHARD_REPLICATE;
        }
    }
    return plan;
}

static double total_by(const struct plan *plan, const struct oracle *oracle,
                       struct arena *arena)
{
    struct plan priced = *plan;
    struct err err = {0};

    return plan_price(&priced, oracle, arena, &err) ? NAN : priced.total_ms;
}

/* Returns the total from the terms of the devices, as a search computes it. */
static double total_by_terms(const struct plan *plan,
                             const struct oracle *oracle, struct arena *arena)
{
    double *sums = ARENA_NEW(arena, double, N_DEVICES * oracle->width);
    double *vector = ARENA_NEW(arena, double, oracle->width);
    double max_ms[ORACLE_MAX_TERMS] = {0}, compute_ms[N_DEVICES];
    double terms_ms[N_DEVICES * ORACLE_MAX_TERMS];

    for (size_t i = 0; i < plan->n_shards; i++) {
        oracle->ops->embed(oracle, &plan->shards[i], 1, vector);
        for (size_t w = 0; w < oracle->width; w++)
            sums[plan->shards[i].device * oracle->width + w] += vector[w];
    }
    oracle->ops->terms(oracle, sums, N_DEVICES, compute_ms, terms_ms);
    for (size_t r = 0; r < N_DEVICES; r++)
        for (size_t k = 0; k < oracle->n_terms; k++)
            max_ms[k] = fmax(max_ms[k], terms_ms[r * oracle->n_terms + k]);
    return oracle_terms_total_ms(oracle, max_ms);
}

int main(void)
{
    unsigned n_wrong = 0, n_terms = 0, n_limit = 0, n_slower = 0;
    struct rng rng;

    rng_init(&rng, 45, 4);
    for (unsigned i = 0; i < N_PLANS; i++) {
        double best_ms[N_WIRES], totals_ms[N_WIRES], worst = 0, got;
        struct wire_oracle wires;
        struct scene scene;
        struct plan plan;

        open_scene(&scene, &rng);
        plan = draw_plan(&scene, &rng);
        for (unsigned k = 0; k < N_WIRES; k++) {
            totals_ms[k] = total_by(&plan, scene.models[k], &scene.arena);
            best_ms[k] = totals_ms[k] * (0.5 + 0.5 * rng_uniform(&rng));
            worst = fmax(worst, totals_ms[k] / best_ms[k] - 1);
        }
        n_slower += totals_ms[2] > totals_ms[0];
        wire_oracle_init(&wires, (const struct oracle *const *)scene.models,
                         best_ms, NO_LIMIT);
        got = total_by(&plan, &wires.base, &scene.arena);
        n_wrong += !(fabs(got - (1 + worst) * best_ms[0]) < 1e-9 * got);
        n_terms += !(fabs(total_by_terms(&plan, &wires.base, &scene.arena) -
                          got) < 1e-9 * got);
        wire_oracle_init(&wires, (const struct oracle *const *)scene.models,
                         best_ms, 0.9 * totals_ms[0]);
        n_limit += !(fabs(total_by(&plan, &wires.base, &scene.arena) - got -
                          totals_ms[0]) < 1e-9 * got);
        arena_release(&scene.arena);
    }
    is_i64(n_wrong, 0, "the total is (1 + worst regret) x the best total");
    is_i64(n_terms, 0, "the terms give the same total");
    is_i64(n_limit, 0, "each ms above the limit adds 10 ms");
    ok(n_slower > N_PLANS / 2, "%u of %u plans are slower on a slower wire",
       n_slower, N_PLANS);
    return tap_done();
}
