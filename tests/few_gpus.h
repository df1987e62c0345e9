/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_FEW_GPUS_H
#define NEUROSHARD_TESTS_FEW_GPUS_H

/*
 * Two simulated GPUs, used to test learning from few samples. The second one is
 * also available as an oracle. Include in one file only.
 *
 * GPU A follows the formulas for FBGEMM on an H100 in the first comment of
 * costmodel/formulas/roofline.c, implemented again. It differs in two
 * constants: 137 us for each operation of a million lookups, and 41 cycles to
 * issue a row.
 *
 * GPU B is A with effects that no roofline knows:
 *     - N lookups take 1 + e^(-N / 3e6) times as long.
 *     - Rows occupy whole 128-byte lines, and narrow rows cost
 *       1 + 0.8 e^(-columns / 32) times as much.
 *     - T tables, the largest with a share b of the lookups, take
 *       (1 - 0.25 (1 - 1 / sqrt T)) (1 + 0.2 (b - 1/2)) times as long.
 *     - Each lookup of a row that is looked up more than 32 times takes
 *       60 further cycles of an SM.
 */

#include <math.h>
#include <string.h>

#include "base/rng.h"
#include "core/rank_law.h"
#include "core/sample.h"
#include "costmodel/formulas/roofline.h"

#define FEW_DRAM 2.9e6 /* bytes per us */
#define FEW_L2 6.9e6
#define FEW_CACHE (0.6 * 50 * 1048576)
#define FEW_CYCLES_US (132 * 1.755e3) /* cycles per us of all SMs together */
#define FEW_ROW_US (41 / FEW_CYCLES_US)
#define FEW_LAUNCH_US (137 / 48.4)
/* first bin of rows that are looked up more than 32 times */
#define FEW_HOT_BIN 6

/* Sums over a device's tables; in us unless a comment gives another meaning. */
enum {
    FEW_TABLES,
    FEW_ROWS,
    FEW_LOOKUPS,
    /* sum of sixth powers of pooling factors; approximates the largest */
    FEW_MOST,
    FEW_DRAM_US,
    FEW_L2_US,
    FEW_ISSUE_US,
    FEW_BAGS, /* sum of fourth powers of pooling factors */
    FEW_MEMORY_US,
    FEW_GRADIENTS_US,
    FEW_HOT,   /* lookups of hot rows */
    FEW_WIDTH, /* number of tables per width class */
    FEW_COMM = FEW_WIDTH + 5,
    FEW_LANES = FEW_COMM + COMM_LANES
};

/* A table or a piece of a table on GPU A or B. */
struct few_piece {
    double n_rows, dim, n_lookups, n_vectors, n_unique;
    const double *bins;
};

static double few_seen(const struct few_piece *piece, double window)
{
    double rows = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        rows += piece->bins[k] *
                (1 - exp(-reuse_bin_count(k) * window / piece->n_lookups));
    return rows * piece->n_unique;
}

/* Returns the number of lookups that miss `n_caches` equal caches. The lookups
 * are shared among the caches, and each cache holds `room` rows. */
static double few_misses(const struct few_piece *piece, double room,
                         double n_caches)
{
    double low = 0, high = piece->n_lookups / n_caches, misses = 0;
    const double first = n_caches * few_seen(piece, high);

    if (first <= n_caches * room)
        return fmin(first, piece->n_lookups);
    while (high - low > 1e-9 * high)
        *(few_seen(piece, (low + high) / 2) < room ? &low : &high) =
            (low + high) / 2;
    for (unsigned k = 0; k < REUSE_BINS; k++)
        misses += piece->n_unique * piece->bins[k] * reuse_bin_count(k) *
                  exp(-reuse_bin_count(k) * low / piece->n_lookups);
    return fmin(fmax(misses, first), piece->n_lookups);
}

static void few_add(char gpu, const struct few_piece *piece, double *sums)
{
    const double n = piece->n_lookups, u = piece->n_unique;
    const double v = piece->n_vectors, vector = 4 * piece->dim;
    const double row = gpu == 'B' ? 128 * ceil(vector / 128)
                                  : fmax(64, 32 * ceil(vector / 32));
    const double more = gpu == 'B' ? 1 + 0.8 * exp(-piece->dim / 32) : 1;
    const double random = FEW_DRAM * row / (row + 85), once = v * vector;
    double runs = 0, hot = 0, from_dram = once;
    unsigned width = 0;

    for (unsigned k = FEW_HOT_BIN; k < REUSE_BINS; k++) {
        runs += u * piece->bins[k];
        hot += u * piece->bins[k] * reuse_bin_count(k);
    }
    hot = fmin(hot, n);
    if (once > FEW_CACHE && n > v)
        from_dram += (n - v) * vector * (1 - FEW_CACHE / once);
    while (width < 4 && piece->dim > 32 << width)
        width++;
    sums[FEW_TABLES]++;
    sums[FEW_ROWS] += piece->n_rows;
    sums[FEW_LOOKUPS] += n;
    sums[FEW_MOST] += pow(ceil(n / v), 6);
    sums[FEW_DRAM_US] +=
        more * ((8 * n + v * (8 + vector)) / FEW_DRAM +
                few_misses(piece, FEW_CACHE / row, 1) * row / random);
    sums[FEW_L2_US] +=
        more * few_misses(piece, 200e3 / row, 132) * row / FEW_L2;
    sums[FEW_ISSUE_US] += more * FEW_ROW_US * (n + 7.1 * v);
    sums[FEW_BAGS] += pow(ceil(n / v), 4);
    sums[FEW_MEMORY_US] +=
        more * ((12 * n + from_dram) / FEW_DRAM + 2 * u * row / random +
                n * vector / (1.5 * FEW_L2));
    sums[FEW_GRADIENTS_US] +=
        more * FEW_ROW_US *
        (2.15 * (n - hot) + 15.7 * u + 1015 * runs + 2.5 * hot);
    sums[FEW_HOT] += hot;
    sums[FEW_WIDTH + width]++;
}

/* Returns the time of a device in ms. If `share`, the largest table's share of
 * the lookups, is NAN, it is estimated from the sums. */
static double few_ms(char gpu, const double *sums, double share)
{
    static const double forward[] = {0.34, 0.6, 1, 1.5, 2.4};
    static const double backward[] = {0.23, 0.47, 1, 1.2, 1.6};
    const double n = sums[FEW_LOOKUPS];
    double us, passes = ceil(log2(fmax(sums[FEW_ROWS], 2)) / 8);
    unsigned w = 4;

    if (!(sums[FEW_TABLES] > 0.5))
        return 0;
    while (w > 0 && !(sums[FEW_WIDTH + w] > 0.5))
        w--;
    us = FEW_LAUNCH_US * (15.4 + 33 * fmin(1, log2(1 + n) / 20)) +
         sqrt(pow(sums[FEW_DRAM_US], 2) + pow(sums[FEW_L2_US], 2) +
              pow(forward[w] * sums[FEW_ISSUE_US], 2) +
              0.22 * 0.22 * sqrt(fmax(sums[FEW_BAGS], 0))) +
         24 * passes * n / (0.47 * FEW_DRAM) +
         hypot(sums[FEW_MEMORY_US], backward[w] * sums[FEW_GRADIENTS_US]);
    if (gpu == 'A')
        return us / 1000;
    if (isnan(share))
        share = fmin(1, 65536 * pow(sums[FEW_MOST], 1.0 / 6) / n);
    us *= (1 + exp(-n / 3e6)) * (1 - 0.25 * (1 - 1 / sqrt(sums[FEW_TABLES]))) *
          (1 + 0.2 * (share - 0.5));
    return (us + 60 * sums[FEW_HOT] / FEW_CYCLES_US) / 1000;
}

static double few_log_uniform(struct rng *rng, double lo, double hi)
{
    return lo * pow(hi / lo, rng_uniform(rng));
}

/* The setting of the published benchmark. */
static const struct sample_setting few_setting = {
    .device = "cuda:NVIDIA H100, imagined",
    .isa = "sm_00",
    .precision = PRECISION_FP32,
    .optimizer = OPTIMIZER_SGD,
    .batch = 65536,
};

static void few_table(struct table *table, struct rng *rng)
{
    table_init(table);
    table->num_embeddings = (uint64_t)few_log_uniform(rng, 10, 2e7);
    table->zipf_alpha =
        rng_uniform(rng) < 0.2 ? 0 : 0.6 + 0.8 * rng_uniform(rng);
    table->dim = 4u << rng_below(rng, 6);
    table->pooling_factor =
        rng_uniform(rng) < 0.3 ? 1 : few_log_uniform(rng, 1, 200);
    table->precision = few_setting.precision;
    table->optimizer = few_setting.optimizer;
}

/* Draws the n_tables tables of a sample and adds their costs on the GPU to
 * `sums`. Returns the largest table's share of the lookups. */
__attribute__((unused)) static double
few_draw_tables(char gpu, struct sample *sample, struct rng *rng, double *sums,
                struct arena *arena)
{
    double most = 0;

    sample->tables = ARENA_NEW(arena, struct sample_table, sample->n_tables);
    for (uint32_t t = 0; t < sample->n_tables; t++) {
        struct sample_table *to = &sample->tables[t];
        struct table table;
        double n_lookups;

        few_table(&table, rng);
        n_lookups = table.pooling_factor * few_setting.batch;
        to->n_rows = table.num_embeddings;
        to->dim = table.dim;
        to->pooling_factor = table.pooling_factor;
        to->zipf_alpha = table.zipf_alpha;
        to->n_unique = table_reuse(&table, n_lookups, to->bins);
        few_add(gpu,
                &(struct few_piece){(double)to->n_rows, to->dim, n_lookups,
                                    few_setting.batch, to->n_unique, to->bins},
                sums);
        most = fmax(most, n_lookups);
    }
    return most / sums[FEW_LOOKUPS];
}

/* Draws n cases of 1 to 15 tables. Times have relative noise `noise` (1
 * sigma). */
__attribute__((unused)) static struct sample *few_samples(char gpu, size_t n,
                                                          double noise,
                                                          uint64_t seed,
                                                          struct arena *arena)
{
    struct sample *samples = ARENA_NEW(arena, struct sample, n);
    struct rng rng;

    rng_init(&rng, seed, (uint64_t)gpu);
    for (size_t i = 0; i < n; i++) {
        struct sample *sample = &samples[i];
        double sums[FEW_LANES] = {0}, share, normal = -6;

        *sample = (struct sample){.setting = &few_setting,
                                  .kind = SAMPLE_FUSED,
                                  .case_idx = i,
                                  .n_tables = 1 + (uint32_t)rng_below(&rng, 15),
                                  .version = "",
                                  .started_at = ""};
        share = few_draw_tables(gpu, sample, &rng, sums, arena);
        for (int k = 0; k < 12; k++)
            normal += rng_uniform(&rng);
        sample->total.median_ms =
            (1 + noise * normal) * few_ms(gpu, sums, share);
    }
    return samples;
}

/* Lane values of GPU B as an oracle of whole tables and column pieces. Its
 * exchanges are those of an H100. */
static void few_embed(const struct oracle *oracle, const struct shard *shards,
                      size_t n, double *out)
{
    const struct problem *problem = oracle->problem;
    const double batch = (double)problem->batch;
    const struct comm_oracle *few =
        (const struct comm_oracle *)(const void *)oracle;

    for (size_t i = 0; i < n; i++, out += FEW_LANES) {
        const struct table_use whole =
            problem_use(problem, shards[i].table, batch);

        memset(out, 0, FEW_LANES * sizeof(*out));
        few_add('B',
                &(struct few_piece){
                    (double)(shards[i].row_end - shards[i].row_begin),
                    shards[i].col_end - shards[i].col_begin,
                    shard_lookups(problem, &shards[i]),
                    shard_output_vectors(problem, &shards[i]), whole.n_unique,
                    whole.bins},
                out);
        comm_embed(problem, &shards[i], &few->comm.ids, out + FEW_COMM);
        out[FEW_COMM + COMM_LANE_FORWARD] = out[FEW_DRAM_US];
        out[FEW_COMM + COMM_LANE_BACKWARD] = out[FEW_MEMORY_US];
    }
}

static void few_compute(const struct oracle *oracle, const double *sums,
                        size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = few_ms('B', sums + i * FEW_LANES, NAN);
}

__attribute__((unused)) static struct oracle *
few_oracle(const struct gpu_spec *h100, const struct problem *problem,
           struct arena *arena)
{
    static const struct oracle_ops ops = {.embed = few_embed,
                                          .compute = few_compute};
    struct comm_oracle *oracle = ARENA_NEW(arena, struct comm_oracle, 1);

    oracle->comm = job_comm(h100, &problem->cluster);
    comm_model_ask(&oracle->comm, &problem->cluster, arena);
    oracle->base = (struct oracle){.problem = problem,
                                   .cost.name = "B",
                                   .cost.hash = "0000000000000000",
                                   .cost.basis = BASIS_MODELLED,
                                   .width = FEW_LANES,
                                   .kinds = SHARD_TABLE | SHARD_COLUMN,
                                   .floor_lane = -1};
    comm_oracle_init(oracle, &ops);
    return &oracle->base;
}

#endif
