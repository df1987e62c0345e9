/* SPDX-License-Identifier: MIT */
/* Checks the rules of core/oracle.h for every cost model, with random shards
 * and assignments. For example, prices in a batch equal single prices. */
#include "costmodel/models/oracles.h"

#include "base/file.h"
#include "costmodel/models/oracle_open.h"
#include "tests/golden.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#include <assert.h>

#define N_TOGETHER 5u
#define MAX_SHARDS 40u

struct scene {
    struct arena arena;
    struct rng rng;
    struct problem problem;
    struct oracle *oracle;
    uint32_t n; /* devices */
    struct shard shards[MAX_SHARDS];
    double *vectors;    /* [MAX_SHARDS][width] */
    double *sums;       /* [N_TOGETHER][n][width] */
    double *compute_ms; /* [N_TOGETHER][n], also the members below */
    double *fwd_ms, *bwd_ms;
};

struct tally {
    size_t n_embed, n_compute, n_comm, n_halves, n_terms, n_negative;
    double worst_total;
};

static double *numbers(struct scene *scene, size_t n)
{
    return ARENA_NEW(&scene->arena, double, n);
}

static bool are_same(const double *a, const double *b, size_t n)
{
    return !memcmp(a, b, n * sizeof(*a));
}

/* Draws a shard of a kind that the cost model knows. Rows are cut as over all
 * ranks. */
static struct shard draw_shard(struct scene *scene)
{
    struct rng *rng = &scene->rng;
    uint32_t table = rng_draw(rng, (uint32_t)scene->problem.n_tables);
    uint32_t rank = rng_draw(rng, scene->n);
    struct shard shard = shard_whole(&scene->problem, table, rank);
    unsigned kind = 1u << rng_draw(rng, 5);
    uint64_t block;

    assert(scene->n > 0);
    block = (shard.row_end - 1) / scene->n + 1;
    if (!(kind & scene->oracle->kinds))
        return shard;
    if ((kind & (SHARD_COLUMN | SHARD_GRID)) && shard.col_end % 8 == 0)
        shard.col_end /= 2;
    else if (kind & (SHARD_COLUMN | SHARD_GRID))
        return shard;
    shard.kind = (enum shard_kind)kind;
    if (shard_cuts_rows(shard.kind) && rank * block < shard.row_end) {
        shard.row_begin = rank * block;
        if (shard.row_end > shard.row_begin + block)
            shard.row_end = shard.row_begin + block;
    }
    return shard;
}

/* Draws times that GPUs spend on tables that are not placed. */
static void draw_busy(struct cluster *cluster, struct scene *scene)
{
    cluster->busy_ms = arena_alloc(&scene->arena, cluster->n_devices,
                                   sizeof(*cluster->busy_ms));
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        for (unsigned p = 0; p < N_BUSY_PHASES; p++)
            cluster->busy_ms[r][p] = rng_uniform(&scene->rng);
}

/* Draws slow GPUs. */
static void draw_slowdown(struct cluster *cluster, struct scene *scene)
{
    cluster->slowdown = ARENA_NEW(&scene->arena, double, cluster->n_devices);
    for (uint32_t r = 0; r < cluster->n_devices; r++)
        cluster->slowdown[r] =
            rng_below(&scene->rng, 2) ? 1 : 1 + rng_uniform(&scene->rng);
}

static void open_scene(struct scene *scene, const char *cost, uint64_t seed)
{
    const size_t width_max = 256;
    struct err err = {0};

    *scene = (struct scene){0};
    rng_init(&scene->rng, seed, 14);
    fake_random(&scene->problem, &scene->rng, 2, &scene->arena);
    if (!strncmp(cost, "reference", 9)) /* it has nets for four GPUs */
        fake_cluster(&scene->problem, 4, 1, &scene->arena);
    else if (rng_below(&scene->rng, 2))
        draw_busy(&scene->problem.cluster, scene);
    if (strncmp(cost, "reference", 9) != 0 && rng_below(&scene->rng, 2))
        draw_slowdown(&scene->problem.cluster, scene);
    scene->n = scene->problem.cluster.n_devices;
    if (oracle_open(&scene->oracle, cost, &scene->problem, &scene->arena,
                    &err) ||
        scene->oracle->width > width_max) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    for (uint32_t i = 0; i < MAX_SHARDS; i++)
        scene->shards[i] = draw_shard(scene);
    scene->vectors = numbers(scene, MAX_SHARDS * width_max);
    scene->sums = numbers(scene, N_TOGETHER * scene->n * width_max);
    scene->compute_ms = numbers(scene, N_TOGETHER * scene->n);
    scene->fwd_ms = numbers(scene, N_TOGETHER * scene->n);
    scene->bwd_ms = numbers(scene, N_TOGETHER * scene->n);
}

/* The device of a shard does not change its vector, unless rows are cut. */
static void check_embed(struct scene *scene, struct tally *tally)
{
    const struct oracle *oracle = scene->oracle;
    double *one = numbers(scene, oracle->width);

    oracle->ops->embed(oracle, scene->shards, MAX_SHARDS, scene->vectors);
    for (uint32_t i = 0; i < MAX_SHARDS; i++) {
        struct shard shard = scene->shards[i];

        if (!shard_cuts_rows(shard.kind))
            shard.device = (shard.device + 1) % scene->n;
        oracle->ops->embed(oracle, &shard, 1, one);
        tally->n_embed +=
            !are_same(one, scene->vectors + i * oracle->width, oracle->width);
    }
}

/* Each assignment has the shards on other devices. */
static void check_compute(struct scene *scene, struct tally *tally)
{
    const struct oracle *oracle = scene->oracle;
    const size_t n = N_TOGETHER * scene->n, width = oracle->width;

    for (uint32_t k = 0; k < N_TOGETHER; k++)
        oracle_empty_sums(oracle, scene->sums + k * scene->n * width);
    for (uint32_t k = 0; k < N_TOGETHER; k++)
        for (uint32_t i = 0; i < MAX_SHARDS; i++) {
            double *sum =
                scene->sums +
                (k * scene->n + rng_draw(&scene->rng, scene->n)) * width;

            for (size_t w = 0; w < width; w++)
                sum[w] += scene->vectors[i * width + w];
        }
    oracle->ops->compute(oracle, scene->sums, n, scene->compute_ms);
    for (size_t i = 0; i < n; i++) {
        double ms;

        oracle->ops->compute(oracle, scene->sums + i * width, 1, &ms);
        tally->n_compute += ms != scene->compute_ms[i];
        tally->n_negative += !(ms >= 0);
    }
}

static void check_comm(struct scene *scene, struct tally *tally)
{
    const struct oracle *oracle = scene->oracle;
    const size_t n = scene->n, width = oracle->width;
    double *fwd_ms = numbers(scene, n), *bwd_ms = numbers(scene, n);

    oracle->ops->comm(oracle, N_TOGETHER, scene->sums, scene->compute_ms,
                      scene->fwd_ms, scene->bwd_ms);
    for (size_t k = 0; k < N_TOGETHER; k++) {
        oracle->ops->comm(oracle, 1, scene->sums + k * n * width,
                          scene->compute_ms + k * n, fwd_ms, bwd_ms);
        tally->n_comm += !are_same(fwd_ms, scene->fwd_ms + k * n, n) ||
                         !are_same(bwd_ms, scene->bwd_ms + k * n, n);
    }
}

/* The two halves of comm, called with the lane they depend on, as floats. */
static void check_halves(struct scene *scene, struct tally *tally)
{
    const struct oracle *oracle = scene->oracle;
    const size_t n = N_TOGETHER * scene->n;
    double *lanes = numbers(scene, n), *fwd_ms = numbers(scene, n);
    double *bwd_ms = numbers(scene, n);

    if (!oracle->ops->bwd)
        return;
    for (size_t i = 0; i < n; i++)
        lanes[i] =
            (double)(float)scene->sums[i * oracle->width + oracle->comm_lane];
    oracle->ops->bwd(oracle, N_TOGETHER, lanes, bwd_ms);
    for (size_t i = 0; i < n; i++)
        bwd_ms[i] = (double)(float)bwd_ms[i];
    oracle->ops->fwd(oracle, N_TOGETHER, lanes, scene->compute_ms, bwd_ms,
                     fwd_ms);
    tally->n_halves += !are_same(fwd_ms, scene->fwd_ms, n) ||
                       !are_same(bwd_ms, scene->bwd_ms, n);
}

/* For additive oracles, the total of the largest terms is the total cost. */
static void check_terms(struct scene *scene, struct tally *tally)
{
    const struct oracle *oracle = scene->oracle;
    const size_t n = scene->n, n_terms = oracle->n_terms;
    double *terms_ms = numbers(scene, N_TOGETHER * n * n_terms);
    double *compute_ms = numbers(scene, N_TOGETHER * n);
    double one_ms[ORACLE_MAX_TERMS];

    if (!oracle->ops->terms)
        return;
    oracle->ops->terms(oracle, scene->sums, N_TOGETHER * n, compute_ms,
                       terms_ms);
    tally->n_terms += !are_same(compute_ms, scene->compute_ms, N_TOGETHER * n);
    for (size_t k = 0; k < N_TOGETHER; k++) {
        double most_ms[ORACLE_MAX_TERMS] = {0}, total_ms;

        for (size_t i = k * n; i < (k + 1) * n; i++) {
            const double *ms = terms_ms + i * n_terms;

            oracle->ops->terms(oracle, scene->sums + i * oracle->width, 1,
                               &compute_ms[i], one_ms);
            tally->n_terms += !are_same(one_ms, ms, n_terms);
            for (size_t t = 0; t < n_terms; t++) {
                tally->n_negative += !(ms[t] >= 0);
                most_ms[t] = fmax(most_ms[t], ms[t]);
            }
        }
        total_ms =
            oracle_total_ms(n, scene->compute_ms + k * n, scene->bwd_ms + k * n,
                            scene->fwd_ms + k * n);
        if (oracle->is_additive)
            tally->worst_total = tap_worst(
                tally->worst_total,
                fabs(oracle_terms_total_ms(oracle, most_ms) / total_ms - 1));
    }
}

static void check(const char *cost, size_t n)
{
    struct tally tally = {0};

    for (uint64_t seed = 0; seed < n; seed++) {
        struct scene scene;

        open_scene(&scene, cost, seed);
        check_embed(&scene, &tally);
        check_compute(&scene, &tally);
        check_comm(&scene, &tally);
        check_halves(&scene, &tally);
        check_terms(&scene, &tally);
        arena_release(&scene.arena);
    }
    printf("# %s\n", cost);
    is_i64((int64_t)tally.n_embed, 0, "shards are embedded as each alone");
    is_i64((int64_t)tally.n_compute, 0, "devices compute as each alone");
    is_i64((int64_t)tally.n_comm, 0, "assignments exchange as each alone");
    is_i64((int64_t)tally.n_halves, 0, "comm equals its halves");
    is_i64((int64_t)tally.n_terms, 0, "terms are as of each device alone");
    is_i64((int64_t)tally.n_negative, 0, "no time is negative");
    is_near(tally.worst_total, 0, 1e-12,
            "additive oracles: the largest terms give the total");
}

/* Texts of each cost model of ORACLES(). A cost model without a text is not
 * tested, which fails the test. */
#define ORACLE_ID(id, name, argument, heeds) ORACLE_##id,
enum { ORACLES(ORACLE_ID) N_ORACLES };
#define ORACLE_NAME(id, name, argument, heeds) name,
static const char *const oracle_names[] = {ORACLES(ORACLE_NAME)};

static const char *const costs[N_ORACLES][4] = {
    [ORACLE_learned] = {"model:h100.nsm", "model:cpu-amd-epyc-2t.nsm"},
    [ORACLE_roofline] = {"roofline:h100", "roofline:cpu"},
    [ORACLE_reference] = {"reference:"}, /* the golden folder */
    [ORACLE_torchrec] = {"torchrec", "torchrec:outputs=legacy"},
};

int main(void)
{
    const size_t n = tap_size(30, 1000);
    struct arena arena = {0};

    for (size_t o = 0; o < N_ORACLES; o++) {
        ok(costs[o][0] &&
               !strncmp(costs[o][0], oracle_names[o], strlen(oracle_names[o])),
           "cost model '%s' has a text here", oracle_names[o]);
        for (size_t i = 0; costs[o][i]; i++)
            if (o != ORACLE_reference)
                check(costs[o][i], n);
            else if (file_exists(golden_path("golden", &arena)))
                check(arena_printf(&arena, "%s%s", costs[o][i],
                                   golden_path("golden", &arena)),
                      n);
    }
    arena_release(&arena);
    return tap_done();
}
