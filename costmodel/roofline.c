/* SPDX-License-Identifier: MIT */
/*
 * A roofline of one training step of fused tables: bytes that each phase must
 * move, over bandwidths that benchmarks reach. With N look-ups of rows of rb
 * bytes (whole 32-byte sectors, at least 64), U unique rows, M rows that miss
 * the cache (U <= M <= N), V output vectors of D elements:
 *
 *   forward  = launch + max(DRAM: indices, offsets, outputs + M rb / e,
 *                           L2:   indices, offsets, outputs + N rb; row issue)
 *   backward = launches
 *            + linearise and find heads: N (index + 2 key + 4) + 8 U
 *            + radix sort: N key + 2 P N (key + 4), P = key bytes in use
 *            + max(DRAM: gradients read + 4 N + (2 U rb + state) / e,
 *                  L2:   N D g + 4 N + 2 U rb; row issue)
 *
 * P steps with the summed rows of a device, which is why the sort is priced in
 * the head. The others are additive over tables: kernels run table by table,
 * so a table's rows (and its gradients) compete for the cache with themselves.
 */
#include "costmodel/oracles.h"

#include "base/hash.h"
#include "costmodel/gpu_spec.h"

#include <math.h>

/* What rows in random order get of the streaming bandwidth: FBGEMM's forward
 * on an H100 moves 2.1 of 2.9 TB/s (NVIDIA dynamicemb benchmark). */
#define RANDOM_ROW_FRAC 0.72
/* Share of the L2 that one table's rows find; sides of a split L2 keep lines
 * twice. */
#define CACHE_FRAC 0.6
/* Linearise, sort passes, heads, long runs, update ... as FBGEMM launches. */
#define BACKWARD_LAUNCHES 13

enum lane {
    LANE_SHARDS,
    LANE_ROWS, /* of the tables: the range of sort keys */
    LANE_LOOKUPS,
    LANE_UNIQUE,
    LANE_FWD_DRAM, /* bytes; random ones are weighted by 1 / e */
    LANE_FWD_L2,
    LANE_BWD_DRAM,
    LANE_BWD_L2,
    LANE_COMM,
    N_LANES = LANE_COMM + COMM_LANES
};

/* Reuse of a whole table over the global batch. */
struct reuse {
    double unique;
    double bins[REUSE_BINS];
};

struct roofline {
    struct oracle base;
    const struct gpu_spec *spec;
    struct comm_model comm;
    struct reuse *reuse; /* [n_tables] */
};

static const struct roofline *roofline_of(const struct oracle *oracle)
{
    return (const struct roofline *)(const void *)oracle;
}

/* The reuse that a shard sees; unique rows are its own. */
static struct reuse shard_reuse(const struct roofline *roofline,
                                const struct shard *shard)
{
    const struct problem *problem = roofline->base.problem;
    const struct table *table = &problem->tables[shard->table];
    struct reuse reuse = roofline->reuse[shard->table];

    if (shard_is_replica(shard->kind))
        reuse.unique =
            table_reuse(table, shard_lookups(problem, shard), reuse.bins);
    reuse.unique *= (double)(shard->row_end - shard->row_begin) /
                    (double)table->num_embeddings;
    return reuse;
}

/* Rows in cache after `window` further look-ups of the table: each row of bin
 * k comes back within them with probability 1 - exp(-count window / N). */
static double rows_seen(const struct reuse *reuse, double n_lookups,
                        double window)
{
    double rows = 0;

    for (unsigned k = 0; k < REUSE_BINS; k++)
        rows -=
            reuse->bins[k] * expm1(-reuse_bin_count(k) * window / n_lookups);
    return rows * reuse->unique;
}

/* Che's approximation (Che, Tung, Wang 2002): a least-recently-used cache of
 * `room` rows holds what came within a window in which `room` different rows
 * are seen. The first use of a row always misses. */
static double cache_misses(const struct reuse *reuse, double n_lookups,
                           double room)
{
    double low = 0, high = n_lookups, misses = reuse->unique;

    if (reuse->unique <= room || rows_seen(reuse, n_lookups, high) <= room)
        return reuse->unique;
    for (int step = 0; step < 40; step++) {
        double middle = (low + high) / 2;

        if (rows_seen(reuse, n_lookups, middle) < room)
            low = middle;
        else
            high = middle;
    }
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        double count = reuse_bin_count(k);

        misses += reuse->unique * reuse->bins[k] * (count - 1) *
                  exp(-count * low / n_lookups);
    }
    return fmin(fmax(misses, reuse->unique), n_lookups);
}

/* State that an update of one row reads and writes, in bytes. */
static double state_bytes(const struct table *table, double row_bytes)
{
    switch (table->optimizer) {
    case OPTIMIZER_SGD:
        return 0;
    case OPTIMIZER_ROWWISE_ADAGRAD:
        return 2 * 32; /* a scalar, but sectors move */
    case OPTIMIZER_ADAGRAD:
        return 2 * row_bytes;
    case OPTIMIZER_ADAM:
        return 4 * row_bytes;
    }
    return 0;
}

/* Gradient bytes that come from DRAM: all of them once, and again as often as
 * a look-up's gradient is no longer in cache. */
static double gradient_dram(double once, double gathered, double cache)
{
    if (once <= cache || gathered <= once)
        return once;
    return once + (gathered - once) * (1 - cache / once);
}

static void embed_one(const struct roofline *roofline,
                      const struct shard *shard, double *out)
{
    const struct problem *problem = roofline->base.problem;
    const struct table *table = &problem->tables[shard->table];
    double cache = CACHE_FRAC * (double)roofline->spec->l2_bytes;
    double width = shard->col_end - shard->col_begin;
    double row_bytes =
        fmax(64, 32 * ceil(width * precision_bytes(table->precision) / 32));
    double comm_bytes = precision_bytes(table->comm_precision);
    double lookups = shard_lookups(problem, shard);
    double vectors = shard_output_vectors(problem, shard);
    double index_bytes = table->num_embeddings > UINT32_MAX ? 8 : 4;
    double stream = lookups * index_bytes + vectors * (8 + width * comm_bytes);
    struct reuse reuse = shard_reuse(roofline, shard);
    double update = reuse.unique * 2 * row_bytes;
    double state = reuse.unique * state_bytes(table, row_bytes);
    double once = vectors * width * comm_bytes;
    double gathered = lookups * width * comm_bytes;
    double misses =
        lookups > 0 ? cache_misses(&reuse, lookups, cache / row_bytes) : 0;

    out[LANE_SHARDS] = 1;
    out[LANE_ROWS] = (double)(shard->row_end - shard->row_begin);
    out[LANE_LOOKUPS] = lookups;
    out[LANE_UNIQUE] = reuse.unique;
    out[LANE_FWD_DRAM] = stream + misses * row_bytes / RANDOM_ROW_FRAC;
    out[LANE_FWD_L2] = stream + lookups * row_bytes;
    out[LANE_BWD_DRAM] =
        4 * lookups + (gradient_dram(once, gathered, cache) + update + state) /
                          RANDOM_ROW_FRAC;
    out[LANE_BWD_L2] = 4 * lookups + gathered + update;
    comm_embed(problem, shard, out + LANE_COMM);
}

static void roofline_embed(const struct oracle *oracle,
                           const struct shard *shards, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++)
        embed_one(roofline_of(oracle), &shards[i], out + i * N_LANES);
}

/* Bytes that hold a row number of the fused tables: radix passes. */
static unsigned key_bytes_used(double n_rows)
{
    unsigned passes = 1;

    for (double reached = 256; reached < n_rows; reached *= 256)
        passes++;
    return passes;
}

static double max_of(double a, double b)
{
    return a > b ? a : b;
}

/* Bytes over 10^9 a second, in ms. */
static double bytes_ms(double bytes, double gbps)
{
    return bytes / (gbps * 1e6);
}

static double device_ms(const struct gpu_spec *spec, const double *sum)
{
    unsigned passes = key_bytes_used(sum[LANE_ROWS]);
    double key = passes > 4 ? 8 : 4;
    double lookups = sum[LANE_LOOKUPS];
    double issue =
        lookups * spec->row_cycles / (spec->n_sms * spec->clock_ghz * 1e6);
    double launch = spec->launch_us / 1000;
    double forward, backward;

    if (!(sum[LANE_SHARDS] > 0))
        return 0;
    forward =
        launch + max_of(bytes_ms(sum[LANE_FWD_DRAM], spec->dram_gbps),
                        bytes_ms(sum[LANE_FWD_L2], spec->l2_gbps) + issue);
    backward =
        BACKWARD_LAUNCHES * launch +
        bytes_ms(lookups * (4 + 2 * key + 4) + 8 * sum[LANE_UNIQUE],
                 spec->dram_gbps) +
        bytes_ms(lookups * (key + 2 * passes * (key + 4)), spec->sort_gbps) +
        max_of(bytes_ms(sum[LANE_BWD_DRAM], spec->dram_gbps),
               bytes_ms(sum[LANE_BWD_L2], spec->l2_gbps) + issue);
    return forward + backward;
}

static void roofline_compute(const struct oracle *oracle, const double *sums,
                             size_t n, double *compute_ms)
{
    const struct gpu_spec *spec = roofline_of(oracle)->spec;

    for (size_t i = 0; i < n; i++)
        compute_ms[i] = device_ms(spec, sums + i * N_LANES);
}

static void roofline_comm(const struct oracle *oracle, size_t n,
                          const double *sums, const double *compute_ms,
                          double *fwd_ms, double *bwd_ms)
{
    comm_price(&roofline_of(oracle)->comm, oracle->problem, n, sums, N_LANES,
               LANE_COMM, compute_ms, fwd_ms, bwd_ms);
}

static void roofline_terms(const struct oracle *oracle, const double *sums,
                           const double *compute_ms, size_t n, double *terms_ms)
{
    comm_terms(&roofline_of(oracle)->comm, oracle->problem, n, sums, N_LANES,
               LANE_COMM, compute_ms, terms_ms);
}

/* Hash of every constant that a price depends on. */
static const char *constants_hash(const struct gpu_spec *spec,
                                  struct arena *arena)
{
    const double constants[] = {
        RANDOM_ROW_FRAC,        CACHE_FRAC,       BACKWARD_LAUNCHES,
        spec->dram_gbps,        spec->l2_gbps,    spec->sort_gbps,
        (double)spec->l2_bytes, spec->clock_ghz,  spec->n_sms,
        spec->row_cycles,       spec->launch_us,  spec->comm_form,
        spec->intra_alpha_us,   spec->intra_gbps, spec->inter_alpha_us,
        spec->inter_gbps,
    };

    return hash_text(arena_alloc(arena, HASH_TEXT_MAX, 1),
                     hash_bytes(constants, sizeof(constants), 0));
}

int oracle_roofline_open(struct oracle **out, const char *gpu,
                         const struct problem *problem, struct arena *arena,
                         struct err *err)
{
    static const struct oracle_ops ops = {.embed = roofline_embed,
                                          .compute = roofline_compute,
                                          .comm = roofline_comm};
    static const struct oracle_ops ops_by_terms = {.embed = roofline_embed,
                                                   .compute = roofline_compute,
                                                   .comm = roofline_comm,
                                                   .terms = roofline_terms};
    const struct gpu_spec *spec;
    struct roofline *roofline;

    if (gpu_spec_get(&spec, gpu, err))
        return -1;
    roofline = ARENA_NEW(arena, struct roofline, 1);
    roofline->spec = spec;
    roofline->comm = gpu_spec_comm(spec);
    comm_model_ask(&roofline->comm, &problem->cluster, arena);
    roofline->reuse = ARENA_NEW(arena, struct reuse, problem->n_tables);
    for (size_t i = 0; i < problem->n_tables; i++) {
        const struct table *table = &problem->tables[i];

        roofline->reuse[i].unique =
            table_reuse(table, table->pooling_factor * (double)problem->batch,
                        roofline->reuse[i].bins);
    }
    roofline->base = (struct oracle){
        .ops = roofline->comm.form == COMM_PORT ? &ops_by_terms : &ops,
        .n_terms = COMM_TERMS,
        .problem = problem,
        .name = arena_printf(arena, "roofline:%s", gpu),
        .hash = constants_hash(spec, arena),
        .basis = BASIS_ANALYTIC,
        .comm = roofline->comm.source,
        .width = N_LANES,
        .kinds = SHARD_ALL_KINDS,
        .floor_lane = -1,
    };
    *out = &roofline->base;
    return 0;
}
