/* SPDX-License-Identifier: MIT */
/* clang-format off */
/*
 * A roofline of one training step of fused tables, as FBGEMM's kernels run it:
 *
 *   N   lookups       rb  bytes of a row (whole 32-byte sectors, at least 64)
 *   U   unique rows   D   columns of a bag's vector
 *   V   bags          g   bytes of one column of a gradient
 *   M   lookups that miss the L2 (U <= M <= N)
 *   M1  lookups that miss the L1 of their SM
 *   H   lookups of hot rows, which are looked up more than 32 times
 *   e   share of the DRAM bandwidth that random rows reach, rb / (rb + 85):
 *       each costs as much as 85 more bytes
 *
 *   forward  = base
 *            + norm( DRAM:    indices, offsets, outputs + M rb / e,
 *                    L2:      M1 rb,
 *                    issue:   (N rows + V bags) w,
 *                    latency: rows of the longest bag )
 *   backward = base + sort
 *            + norm( memory:  keys, gradients + (2 U rb + state) / e
 *                             and gathers of gradients N D g,
 *                    issue:   (N gradients + U updates) w' )
 *            + h H
 *
 * - base: the launches of an operation's kernels.
 * - norm: root of the sum of squares; overlap hides most of the shorter part.
 * - latency: with few lookups the longest bag is the bottleneck, as its rows
 *   are read one after the other. Its length is about the fourth root of the
 *   sum of fourth powers, which add up over tables.
 * - w and w' depend on the widest table of an operation. Kernels are compiled
 *   for 32, 64, 128, 256 or 512 columns, so a narrow table next to a wide one
 *   costs as much as the wide one.
 * - H: each hot row is added up by its own block of threads. A fitted GPU
 *   (costmodel/learning/roofline_fit.h) may add the time h for each of the H
 *   lookups.
 * - sort: one pass for each byte of a key reads and writes 8 bytes of key and 4
 *   bytes of value.
 * - replicas: U rb replaces 2 U rb + state; a dense optimizer step follows.
 *
 * Terms that depend on sums over tables, such as the passes of the sort, are
 * priced in the oracle's head. All others are additive over tables: the kernels
 * run table by table, so the rows (and gradients) of a table compete for the
 * cache only with each other.
 */
/* clang-format on */
#include "costmodel/formulas/roofline.h"

#include "base/hash.h"
#include "core/rank_law.h"

#include <math.h>
#include <string.h>

/* Share of the L2 that serves the rows of one table. It is below 1 because the
 * sides of a split L2 both keep a copy of a line. */
#define CACHE_FRAC 0.6
/* log2 of the number of keys (2^20) at which the sort reaches its full number
 * of kernels. Below it, the number grows with the logarithm of the keys. */
#define SORT_MOST_LOG2 20
/* Sums of lookups below this limit count as 0. A sum from which all shards have
 * been subtracted again may not be exactly 0. */
#define LEAST_LOOKUPS 0.5
/* First reuse bin whose rows are looked up more than 32 times (hot rows). */
#define LONG_BIN 6
#define N_WIDTHS 5
/* Price of a second operation of fused tables on a device: the base of an
 * operation with GROUP_LOOKUPS lookups. Splitting a group of tables in two
 * costs only SPLIT_FRAC of this base, as some work did not overlap before. */
#define GROUP_LOOKUPS 65536
#define SPLIT_FRAC 0.65

/* Constants of one implementation of the kernels. Issue costs are in units of
 * one lookup of the forward (spec->row_cycles). */
struct kernels {
    double overlap;  /* 1: times combine by the norm; 0: they add up */
    double l1_bytes; /* cache of one SM for rows */
    /* Kernel launches: a forward, a backward without its sort, a full sort. */
    double forward_launches, backward_launches, sort_launches;
    double sort_frac; /* share of DRAM bandwidth that a random sort has */
    /* Ratio of the rate of gathering gradients bag by bag to the rate of the
     * L2. It exceeds 1 because most gradients come from the L1. */
    double gather_l2;
    /* Random rows: share of bandwidth, and extra bytes that each row costs. */
    double random_frac, random_bytes;
    /* Issue costs: a bag (forward); a lookup, a unique row (backward); extra
     * for a hot row; a lookup of a hot row, in place of `gradient`. */
    double bag, gradient, update, long_run, long_gradient;
    /* Widths in columns that kernels are compiled for. The issue costs of their
     * forward and backward are relative to 128 columns. */
    struct width {
        double columns, forward, backward;
    } widths[N_WIDTHS];
};

static const struct kernels fbgemm = {
    .overlap = 1,
    .l1_bytes = 200e3,
    .forward_launches = 2.4,
    .backward_launches = 13,
    .sort_launches = 33,
    .sort_frac = 0.47,
    .gather_l2 = 1.5,
    .random_frac = 1,
    .random_bytes = 85,
    .bag = 7.1,
    .gradient = 2.15,
    .update = 15.7,
    .long_run = 1015,
    .long_gradient = 2.5,
    .widths = {{32, 0.34, 0.23},
               {64, 0.6, 0.47},
               {128, 1, 1},
               {256, 1.5, 1.2},
               {INFINITY, 2.4, 1.6}},
};

/* Kernels of this program on a CPU host. The constants are fitted to the 6,468
 * cases of data/measurements/cpu-amd-epyc-2t.db. */
static const struct kernels host = {
    .l1_bytes = 1e6, /* bytes of the L2 of a core */
    .backward_launches = 1,
    .sort_frac = 0.15,
    .gather_l2 = 7.25,
    .random_frac = 0.46,
    .bag = 0.65,
    .gradient = 1.14,
    .update = 18.7,
    .long_gradient = 1.14,
    .widths =
        {{32, 1, 1}, {64, 1, 1}, {128, 1, 1}, {256, 1, 1}, {INFINITY, 1, 1}},
};

static const struct kernels *kernels_of(const struct gpu_spec *spec)
{
    return spec->comm_form == COMM_TOTAL ? &host : &fbgemm;
}

enum roofline_lane {
    LANE_ROWS, /* rows of all tables: the range of sort keys */
    LANE_LOOKUPS,
    LANE_FWD_DRAM, /* in ms, like all lanes up to LANE_HOT */
    LANE_FWD_L2,
    LANE_FWD_ISSUE, /* at 128 columns, like LANE_BWD_ISSUE */
    LANE_BWD_MEMORY,
    LANE_BWD_ISSUE,
    LANE_HOT, /* time to issue the lookups of hot rows */
    /* Sum over bags of lookups^4. Whole numbers, so it returns to exact 0. */
    LANE_FWD_BAGS,
    LANE_WIDTHS, /* number of shards that need each kernel width */
    LANE_JOB = LANE_WIDTHS + N_WIDTHS
};
_Static_assert(LANE_FWD_DRAM == FUSED_PART &&
                   LANE_FWD_BAGS == FUSED_PART + ROOFLINE_PARTS,
               "the parts are together");
_Static_assert(FUSED_LANES == LANE_JOB, "those before the job's are of fused "
                                        "tables");

/*
 * Optimizer state of fused updates. `bytes` and `rows` are the traffic for one
 * updated row, in bytes and in rows (a scalar costs a whole DRAM access of 64
 * bytes). `update` and `gradient` are issue costs beyond those of row-wise
 * Adagrad, for each updated row and each lookup. The values of optimizers
 * listed after Adagrad are fitted to 121 sets on an H100
 * (data/measurements/fbgemm-nvidia-h100-updates.csv). AdamA is assumed to be
 * like Adam (estimated [E]).
 */
static const struct state {
    double bytes, rows, update, gradient;
} states[N_OPTIMIZERS] = {
    [OPTIMIZER_ROWWISE_ADAGRAD] = {.bytes = 2 * 64},
    [OPTIMIZER_ADAGRAD] = {.rows = 2},
    [OPTIMIZER_ADAM] = {.update = 46, .gradient = 3.5},
    [OPTIMIZER_ADAMA] = {.update = 46, .gradient = 3.5},
    [OPTIMIZER_LAMB] = {.update = 49, .gradient = 4.3},
    [OPTIMIZER_PARTIAL_ROWWISE_ADAM] = {.bytes = 2 * 64, .rows = 3},
    [OPTIMIZER_PARTIAL_ROWWISE_LAMB] = {.bytes = 2 * 64, .rows = 3.3},
};

/* Returns the bytes of gradients that come from DRAM. They are all `once`
 * bytes, and the share 1 - cache / once of the gathered bytes beyond `once`. */
static double gradient_dram(double once, double gathered, double cache)
{
    if (once <= cache || gathered <= once)
        return once;
    return once + (gathered - once) * (1 - cache / once);
}

static unsigned width_of(const struct kernels *kernels, double n_columns)
{
    unsigned k = 0;

    while (n_columns > kernels->widths[k].columns)
        k++;
    return k;
}

/* Returns the issue cost of the backward, in units of a forward lookup. Adds to
 * *hot the number of lookups of hot rows. */
static double backward_issue(const struct kernels *kernels,
                             const struct feature_input *input, double *hot)
{
    double runs = 0;

    for (unsigned k = LONG_BIN; k < REUSE_BINS; k++) {
        runs += input->n_unique * input->bins[k];
        *hot += input->n_unique * input->bins[k] * reuse_bin_count(k);
    }
    *hot = fmin(*hot, input->n_lookups);
    return kernels->gradient * (input->n_lookups - *hot) +
           kernels->update * input->n_unique + kernels->long_run * runs +
           kernels->long_gradient * *hot;
}

/* Returns the ms that moving `bytes` takes at `gbps` (10^9 bytes a second). */
static double bytes_ms(double bytes, double gbps)
{
    return bytes / (gbps * 1e6);
}

void fused_fill(const struct gpu_spec *spec, const struct feature_input *input,
                bool is_replica, double out[FUSED_LANES])
{
    const struct kernels *kernels = kernels_of(spec);
    const double lookups = input->n_lookups, vectors = input->n_outputs;
    const unsigned width = width_of(kernels, input->dim);
    double cache = CACHE_FRAC * (double)spec->l2_bytes;
    double row_bytes = fmax(64, 32 * ceil(input->row_bytes / 32));
    double random_gbps = spec->dram_gbps * kernels->random_frac * row_bytes /
                         (row_bytes + kernels->random_bytes);
    double row_ms = spec->row_cycles / (spec->n_sms * spec->clock_ghz * 1e6);
    double vector_bytes = input->dim * input->comm_bytes;
    double update = input->n_unique * (is_replica ? 1 : 2) * row_bytes;
    const struct state none = {0};
    const struct state *state = is_replica ? &none : &states[input->optimizer];
    double state_bytes =
        input->n_unique * (state->bytes + state->rows * row_bytes);
    double once = vectors * vector_bytes, gathered = lookups * vector_bytes;
    double hot = 0;

    memset(out, 0, FUSED_LANES * sizeof(*out));
    out[LANE_ROWS] = input->n_rows;
    out[LANE_LOOKUPS] = lookups;
    out[LANE_FWD_DRAM] =
        bytes_ms(lookups * 8 + vectors * (8 + vector_bytes), spec->dram_gbps);
    if (lookups > 0) {
        out[LANE_FWD_DRAM] += bytes_ms(
            feature_cache_misses(input, cache / row_bytes, 1) * row_bytes,
            random_gbps);
        out[LANE_FWD_L2] =
            bytes_ms(feature_cache_misses(input, kernels->l1_bytes / row_bytes,
                                          spec->n_sms) *
                         row_bytes,
                     spec->l2_gbps);
    }
    out[LANE_FWD_ISSUE] = row_ms * (lookups + kernels->bag * vectors);
    out[LANE_FWD_BAGS] = vectors > 0 ? pow(ceil(lookups / vectors), 4) : 0;
    out[LANE_BWD_MEMORY] =
        bytes_ms(12 * lookups + gradient_dram(once, gathered, cache),
                 spec->dram_gbps) +
        bytes_ms(update + state_bytes, random_gbps) +
        bytes_ms(gathered, kernels->gather_l2 * spec->l2_gbps) +
        row_ms * (state->update * input->n_unique + state->gradient * lookups);
    out[LANE_BWD_ISSUE] = row_ms * backward_issue(kernels, input, &hot);
    out[LANE_HOT] = row_ms * hot;
    out[LANE_WIDTHS + width] = 1;
}

/* Returns the passes of the sort: bytes of a row number in the fused tables. */
static unsigned key_bytes_used(double n_rows)
{
    unsigned passes = 1;

    for (double reached = 256; reached < n_rows; reached *= 256)
        passes++;
    return passes;
}

/* Returns the kernel width for a device's widest shard; NULL if it has none. */
static const struct width *widest(const struct kernels *kernels,
                                  const double *sum)
{
    for (unsigned k = N_WIDTHS; k-- > 0;)
        if (sum[LANE_WIDTHS + k] > 0)
            return &kernels->widths[k];
    return NULL;
}

/* Combines times: root of the sum of squares, or the sum without overlap. */
static double together(const struct kernels *kernels, double a, double b,
                       double c, double d_squared)
{
    return kernels->overlap > 0 ? sqrt(a * a + b * b + c * c + d_squared)
                                : a + b + c;
}

/* Times of one operation of fused tables, without the base of the operation. */
struct fused {
    double forward_ms, backward_ms;
};
static struct fused fused_of(const struct gpu_spec *spec, const double *sum)
{
    const struct kernels *kernels = kernels_of(spec);
    const struct width *width = widest(kernels, sum);
    const double row_ms = 1e-3 * spec->bag_row_us;
    const double row_squared = row_ms * row_ms;
    const double bags = sum[LANE_FWD_BAGS];
    const double key_bytes = 24 * key_bytes_used(sum[LANE_ROWS]);
    struct fused fused = {0};

    if (!width)
        return fused;
    fused.forward_ms = together(kernels, sum[LANE_FWD_DRAM], sum[LANE_FWD_L2],
                                width->forward * sum[LANE_FWD_ISSUE],
                                bags > 0 ? row_squared * sqrt(bags) : 0);
    if (sum[LANE_LOOKUPS] >= LEAST_LOOKUPS)
        fused.backward_ms =
            bytes_ms(key_bytes * sum[LANE_LOOKUPS],
                     kernels->sort_frac * spec->dram_gbps) +
            together(kernels, sum[LANE_BWD_MEMORY],
                     width->backward * sum[LANE_BWD_ISSUE], 0, 0) +
            spec->hot_rows * sum[LANE_HOT];
    return fused;
}

/* Approximates log2(x) within 0.09, by straight lines between powers of two. */
static double log2_about(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);

    return exponent - 2 + 2 * fraction;
}

/* Returns the base of an operation: its time without the work for its tables.
 * `lookups` is the number of keys to sort; if it is 0, there is no backward. */
static double base_ms(const struct gpu_spec *spec, double lookups)
{
    const struct kernels *kernels = kernels_of(spec);
    double launches = kernels->forward_launches, sort = 1;

    if (1 + lookups < ldexp(1, SORT_MOST_LOG2))
        sort = log2_about(1 + lookups) / SORT_MOST_LOG2;
    if (lookups >= LEAST_LOOKUPS)
        launches += kernels->backward_launches + kernels->sort_launches * sort;
    return launches * spec->launch_us / 1000;
}

double job_added_ms(const struct gpu_spec *spec, const double lanes[JOB_LANES])
{
    const bool is_split =
        lanes[JOB_ROW_BLOCKS] > 0 && lanes[JOB_ROW_BLOCKS] < lanes[JOB_SHARDS];
    const bool has_replicas = lanes[JOB_COMM + COMM_LANE_GRAD] > 0;
    double ms = 0;

    if (is_split || has_replicas)
        ms = (is_split * SPLIT_FRAC + has_replicas) *
             base_ms(spec, GROUP_LOOKUPS);
    if (lanes[JOB_CHECKS] > 0)
        ms += 1e-3 * GPU_SPEC_CHECK_US + 1e-6 * lanes[JOB_CHECKS];
    return ms;
}

/* Dense optimizer update of replicas: bytes moved for each fp32 element, and
 * kernels for each table. Measured on an H100 (torch 2.11, 313 sets, errors of
 * 3 to 5 %); the entries from Adam on are not measured but counted. */
static const struct update {
    double bytes, kernels;
} updates[N_OPTIMIZERS] = {
    [OPTIMIZER_SGD] = {12, 1},
    [OPTIMIZER_ROWWISE_ADAGRAD] = {30, 6},
    [OPTIMIZER_ADAGRAD] = {44, 4},
    [OPTIMIZER_ADAM] = {72, 7},
    [OPTIMIZER_ADAMA] = {72, 7},
    [OPTIMIZER_LAMB] = {88, 11},
    [OPTIMIZER_PARTIAL_ROWWISE_ADAM] = {56, 9},
    [OPTIMIZER_PARTIAL_ROWWISE_LAMB] = {72, 13},
};

/* Returns the time of kernels that pass over all elements of a replica. */
static double dense_ms(const struct gpu_spec *spec, const struct shard *replica,
                       struct update over)
{
    const double elements = (double)(replica->row_end - replica->row_begin) *
                            (replica->col_end - replica->col_begin);

    return bytes_ms(elements * over.bytes, spec->dram_gbps) +
           over.kernels * spec->launch_us / 1000;
}

double roofline_update_ms(const struct gpu_spec *spec, double elements,
                          enum optimizer optimizer)
{
    return bytes_ms(elements * updates[optimizer].bytes, spec->dram_gbps) +
           updates[optimizer].kernels * spec->launch_us / 1000;
}

/* Fills the lanes of a replica: its own lookups, and the passes that clear and
 * copy its gradient. */
static void embed_replica(const struct gpu_spec *spec,
                          const struct problem *problem,
                          const struct shard *replica, double out[JOB_LANES])
{
    static const struct update clear_and_copy = {4 + 8, 0};
    const struct table *table = &problem->tables[replica->table];
    const enum optimizer optimizer =
        optimizer_of_kind(table, replica->kind, problem->dense_optimizer);
    double *lanes = out + JOB_COMM, sums[FUSED_LANES];
    const double batch = (double)problem->batch / problem->cluster.n_devices;
    const struct table_use use = problem_use(problem, replica->table, batch);
    struct feature_input input;
    struct fused fused;

    feature_input_of_shard(&input, problem, replica, &use, batch);
    fused_fill(spec, &input, true, sums);
    fused = fused_of(spec, sums);
    lanes[COMM_LANE_FORWARD] = fused.forward_ms;
    lanes[COMM_LANE_BACKWARD] =
        fused.backward_ms + dense_ms(spec, replica, clear_and_copy);
    lanes[COMM_LANE_UPDATE] = dense_ms(spec, replica, updates[optimizer]);
    out[JOB_REPLICAS] = lanes[COMM_LANE_FORWARD] + lanes[COMM_LANE_BACKWARD] +
                        lanes[COMM_LANE_UPDATE];
}

void roofline_embed(const struct gpu_spec *spec, const struct problem *problem,
                    const struct shard *shard, const struct table_use *use,
                    double out[ROOFLINE_LANES])
{
    double *job = out + LANE_JOB;
    const struct id_rates ids = gpu_spec_ids(spec, problem->cluster.n_devices);
    const double lookups = shard_lookups(problem, shard);
    struct feature_input input;

    memset(out, 0, ROOFLINE_LANES * sizeof(*out));
    comm_embed(problem, shard, &ids, job + JOB_COMM);
    if (shard_is_replica(shard->kind)) {
        embed_replica(spec, problem, shard, job);
        return;
    }
    job[JOB_SHARDS] = 1;
    job[JOB_ROW_BLOCKS] = shard_cuts_rows(shard->kind);
    if (lookups > 0)
        job[JOB_CHECKS] =
            comm_id_work_ns(&ids.check, shard_bags(problem, shard), lookups);
    feature_input_of_shard(&input, problem, shard, use, (double)problem->batch);
    fused_fill(spec, &input, false, out);
}

void job_embed(const struct gpu_spec *spec, const struct problem *problem,
               const struct shard *shard, const struct table_use *use,
               double out[JOB_LANES])
{
    double lanes[ROOFLINE_LANES];

    roofline_embed(spec, problem, shard, use, lanes);
    memcpy(out, lanes + LANE_JOB, JOB_LANES * sizeof(*out));
    if (!shard_is_replica(shard->kind)) {
        const struct fused fused = fused_of(spec, lanes);

        out[JOB_COMM + COMM_LANE_FORWARD] =
            fused.forward_ms + 1e-6 * out[JOB_CHECKS];
        out[JOB_COMM + COMM_LANE_BACKWARD] = fused.backward_ms;
    }
}

double fused_added_ms(const struct gpu_spec *spec,
                      const double lanes[FUSED_LANES])
{
    const struct fused fused = fused_of(spec, lanes);

    return fused.forward_ms + fused.backward_ms;
}

double fused_ms(const struct gpu_spec *spec, const double sums[FUSED_LANES])
{
    return base_ms(spec, sums[LANE_LOOKUPS]) + fused_added_ms(spec, sums);
}

void fused_slow(double lanes[FUSED_LANES], const double factors[N_SLOWED])
{
    lanes[LANE_FWD_DRAM] *= factors[SLOWED_MEMORY];
    lanes[LANE_FWD_L2] *= factors[SLOWED_MEMORY];
    lanes[LANE_BWD_MEMORY] *= factors[SLOWED_MEMORY];
    lanes[LANE_FWD_ISSUE] *= factors[SLOWED_ISSUE];
    lanes[LANE_BWD_ISSUE] *= factors[SLOWED_ISSUE];
    lanes[LANE_HOT] *= factors[SLOWED_ISSUE];
}

struct comm_model job_comm(const struct gpu_spec *spec,
                           const struct cluster *cluster)
{
    const struct kernels *kernels = kernels_of(spec);
    struct comm_model model = gpu_spec_comm(spec, cluster);

    model.forward_base_ms =
        1e-3 *
        (kernels->forward_launches * spec->launch_us + model.ids.check.base_us);
    model.backward_base_ms =
        (kernels->backward_launches + kernels->sort_launches) *
        spec->launch_us / 1000;
    return model;
}

double roofline_device_ms(const struct gpu_spec *spec, double forward_base_ms,
                          const double sums[ROOFLINE_LANES], double *forward_ms)
{
    const double *job = sums + LANE_JOB;
    double ms = job[JOB_REPLICAS];

    *forward_ms = job[JOB_COMM + COMM_LANE_FORWARD];
    if (job[JOB_SHARDS] > 0) {
        const struct fused fused = fused_of(spec, sums);

        ms += base_ms(spec, sums[LANE_LOOKUPS]) +
              (fused.forward_ms + fused.backward_ms);
        *forward_ms +=
            forward_base_ms + fused.forward_ms + 1e-6 * job[JOB_CHECKS];
    }
    return ms + job_added_ms(spec, job);
}

uint64_t roofline_hash(const struct gpu_spec *spec, enum dedup dedup)
{
    const double constants[] = {CACHE_FRAC, SORT_MOST_LOG2, LEAST_LOOKUPS,
                                LONG_BIN,   GROUP_LOOKUPS,  SPLIT_FRAC};
    const struct id_rates ids = gpu_spec_ids(spec, 2);
    const struct dedup_rates rates = gpu_spec_dedup(spec);
    uint64_t hash = hash_bytes(&ids, sizeof(ids), gpu_spec_hash(spec));

    hash = hash_bytes(constants, sizeof(constants), hash);
    hash = hash_bytes(kernels_of(spec), sizeof(struct kernels), hash);
    hash = hash_bytes(states, sizeof(states), hash);
    hash = hash_bytes(updates, sizeof(updates), hash);
    if (dedup == DEDUP_IDS)
        hash = hash_bytes(&rates, sizeof(rates), hash);
    return hash;
}
