/* SPDX-License-Identifier: MIT */
/*
 * A roofline of one training step of fused tables, as FBGEMM's kernels run it.
 * Of N look-ups of rows of rb bytes (whole 32-byte sectors, at least 64), U
 * unique rows, M look-ups that miss the L2 (U <= M <= N) and M1 that miss the
 * L1 of their SM, V bags of D columns:
 *
 *   forward  = base + norm( DRAM:  indices, offsets, outputs + M rb / e,
 *                           L2:    M1 rb,
 *                           issue: (N rows + V bags) w,
 *                           latency: rows of the longest bag )
 *   backward = base + sort + norm( DRAM:  keys, gradients + (2 U rb + state) /
 * e and gathers of gradients N D g, issue: (N gradients + U updates) w' ) + h H
 *
 * norm is the root of the sum of squares: what overlaps hides most of the
 * shorter. e is what random rows get of the bandwidth, rb / (rb + 85): each
 * costs as much as so many bytes more. Where little is looked up the longest
 * bag binds, row after row: about the fourth root of the sum of fourth powers,
 * which add up. The kernels are compiled for the widest table of an operation
 * (32, 64, 128, 256, 512 columns), by which w and w' go: a narrow table beside
 * a wide one pays for the wide one. A row that is looked up more than 32 times
 * is added up by a block of threads of its own; of H such look-ups a fitted GPU
 * (costmodel/roofline_fit.h) may take h besides. The sort takes a pass for each
 * byte of a key, of 8 bytes and a 4-byte value that are read and written.
 *
 * Constants without another source are fitted to 3,899 cases that FBGEMM 1.6
 * ran on an H100 (data/measurements/fbgemm-nvidia-h100.db; tests/bench/
 * bench_figures prints the errors); times of other GPUs go by their clock, SMs
 * and bandwidths. What hangs on sums is priced in the head, as the sort's
 * passes; the rest is additive over tables: kernels run table by table, so a
 * table's rows (and its gradients) compete for the cache with themselves.
 * Hot rows are priced as measured there, of Zipf exponents up to 1.5; no shape
 * is published of the backward of 4.9 forwards of TorchRec's pull request 4757.
 * Of replicas 2 U rb and state are U rb, and a dense step comes after.
 */
#include "costmodel/roofline.h"

#include "base/hash.h"
#include "costmodel/gpu_file.h"
#include "costmodel/oracles.h"

#include <math.h>
#include <string.h>

/* Share of the L2 that one table's rows find; sides of a split L2 keep lines
 * twice. */
#define CACHE_FRAC 0.6
/* The sort launches the more kernels the more there is to sort, up to 2^20
 * keys. */
#define SORT_MOST_LOG2 20
/* What sums of look-ups that were added and taken off again do not reach. */
#define LEAST_LOOKUPS 0.5
/* Bin from which on rows have runs longer than 32 look-ups. */
#define LONG_BIN 6
#define N_WIDTHS 5
/* Of an operation beside the first: look-ups that its base is taken of, and of
 * that what is left where one group of tables becomes two, as some of their
 * work had not overlapped. */
#define GROUP_LOOKUPS 65536
#define SPLIT_FRAC 0.65

/* What is issued counts in look-ups of the forward (spec->row_cycles). */
struct kernels {
    double overlap;  /* not 0: the norm; else times add up */
    double l1_bytes; /* of an SM, for rows */
    /* Launches of an operation: of its look-ups; of its update, without and
     * with most to sort. */
    double forward_launches, backward_launches, sort_launches;
    double sort_frac; /* of the bandwidth, by a radix sort of random keys */
    double gather_l2; /* rate of gathering gradients bag by bag, for the most
                         part from the L1, over that of the L2 */
    /* Rows of random order get so much of the bandwidth, and each costs as much
     * as so many bytes more. */
    double random_frac, random_bytes;
    double bag, gradient, update, long_run, long_gradient; /* issued */
    /* Widths that kernels are compiled for, and what they issue, of that at
     * 128 columns. */
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

/* Of this program, on a host: fitted to the 6,468 cases of
 * data/measurements/cpu-amd-epyc-2t.db. */
static const struct kernels host = {
    .l1_bytes = 1e6, /* a core's L2 */
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

enum lane {
    LANE_ROWS, /* of the tables: the range of sort keys */
    LANE_LOOKUPS,
    LANE_FWD_DRAM, /* ms, as all up to the widths but for bags */
    LANE_FWD_L2,
    LANE_FWD_ISSUE, /* at 128 columns */
    LANE_BWD_MEMORY,
    LANE_BWD_ISSUE,
    LANE_HOT,      /* issue of look-ups of rows with long runs */
    LANE_FWD_BAGS, /* look-ups of a bag, to the fourth power: whole numbers,
                      of which nothing stays when they are taken off */
    LANE_WIDTHS,   /* shards by their width */
    LANE_JOB = LANE_WIDTHS + N_WIDTHS,
    N_LANES = LANE_JOB + JOB_LANES
};
_Static_assert(LANE_FWD_DRAM == FUSED_PART &&
                   LANE_FWD_BAGS == FUSED_PART + ROOFLINE_PARTS,
               "the parts are together");
_Static_assert(FUSED_LANES == LANE_JOB, "those before the job's are of fused "
                                        "tables");

struct roofline {
    struct comm_oracle priced;
    const struct gpu_spec *spec;
    struct table_use *reuse; /* [n_tables], over the global batch */
};

/* What an update of one row reads and writes of state, in bytes (of a scalar
 * what DRAM moves at once) and rows, and what it and each look-up issue beside
 * row-wise Adagrad's; behind Adagrad fitted to 121 sets on an H100
 * (data/measurements/fbgemm-nvidia-h100-updates.csv), AdamA as Adam [E]. */
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

/* Gradient bytes that come from DRAM: all of them once, and again as often as
 * a look-up's gradient is no longer in cache. */
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

/* What backward issues of look-ups, in those of the forward, and how many of
 * these are of rows with long runs. */
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

/* Bytes over 10^9 a second, in ms. */
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
    const struct state *of = is_replica ? &none : &states[input->optimizer];
    double state_bytes = input->n_unique * (of->bytes + of->rows * row_bytes);
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
        row_ms * (of->update * input->n_unique + of->gradient * lookups);
    out[LANE_BWD_ISSUE] = row_ms * backward_issue(kernels, input, &hot);
    out[LANE_HOT] = row_ms * hot;
    out[LANE_WIDTHS + width] = 1;
}

/* Bytes that hold a row number of the fused tables: radix passes. */
static unsigned key_bytes_used(double n_rows)
{
    unsigned passes = 1;

    for (double reached = 256; reached < n_rows; reached *= 256)
        passes++;
    return passes;
}

/* The widest of a device's shards, as kernels know it; NULL for none. */
static const struct width *widest(const struct kernels *kernels,
                                  const double *sum)
{
    for (unsigned k = N_WIDTHS; k-- > 0;)
        if (sum[LANE_WIDTHS + k] > 0)
            return &kernels->widths[k];
    return NULL;
}

/* Of what overlaps, by their squares. */
static double together(const struct kernels *kernels, double a, double b,
                       double c, double d_squared)
{
    return kernels->overlap > 0 ? sqrt(a * a + b * b + c * c + d_squared)
                                : a + b + c;
}

/* Of fused tables, some, without what any operation takes. */
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

/* Within 0.09, by straight lines between powers of two. */
static double log2_about(double x)
{
    int exponent;
    double fraction = frexp(x, &exponent);

    return exponent - 2 + 2 * fraction;
}

/* What any operation takes that looks up so often. Where nothing is looked up
 * there is no backward. */
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

/* Bytes an fp32 element, kernels a table: measured on an H100 (torch 2.11, 313
 * sets, 3 to 5 % off), those from Adam's on counted. */
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

/* So many bytes of each of a replica's elements, and kernels over them. */
static double dense_ms(const struct gpu_spec *spec, const struct shard *replica,
                       struct update over)
{
    const double elements = (double)(replica->row_end - replica->row_begin) *
                            (replica->col_end - replica->col_begin);

    return bytes_ms(elements * over.bytes, spec->dram_gbps) +
           over.kernels * spec->launch_us / 1000;
}

/* They are looked up by kernels of their own; their gradient is cleared and
 * copied. */
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

/* All lanes of a shard, of a table that is used like this in a global batch. */
static void embed(const struct gpu_spec *spec, const struct problem *problem,
                  const struct shard *shard, const struct table_use *use,
                  double out[N_LANES])
{
    double *job = out + LANE_JOB;
    const struct id_rates ids = gpu_spec_ids(spec);
    struct feature_input input;

    memset(out, 0, N_LANES * sizeof(*out));
    comm_embed(problem, shard, &ids, job + JOB_COMM);
    if (shard_is_replica(shard->kind)) {
        embed_replica(spec, problem, shard, job);
        return;
    }
    job[JOB_SHARDS] = 1;
    job[JOB_ROW_BLOCKS] = shard_cuts_rows(shard->kind);
    job[JOB_CHECKS] = comm_id_work_ns(&ids.check, shard_bags(problem, shard),
                                      shard_lookups(problem, shard));
    feature_input_of_shard(&input, problem, shard, use, (double)problem->batch);
    fused_fill(spec, &input, false, out);
}

void job_embed(const struct gpu_spec *spec, const struct problem *problem,
               const struct shard *shard, const struct table_use *use,
               double out[JOB_LANES])
{
    double lanes[N_LANES];

    embed(spec, problem, shard, use, lanes);
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
    model.host_ms = spec->skips_checks ? 0 : spec->host_ms;
    return model;
}

static double device_ms(const struct comm_oracle *oracle, const double *sum,
                        double *forward_ms)
{
    const struct roofline *roofline = (const void *)oracle;
    const struct gpu_spec *spec = roofline->spec;
    const double *job = sum + LANE_JOB;
    double ms = job[JOB_REPLICAS];

    *forward_ms = job[JOB_COMM + COMM_LANE_FORWARD];
    if (job[JOB_SHARDS] > 0) {
        const struct fused fused = fused_of(spec, sum);

        ms += base_ms(spec, sum[LANE_LOOKUPS]) +
              (fused.forward_ms + fused.backward_ms);
        *forward_ms += oracle->comm.forward_base_ms + fused.forward_ms +
                       1e-6 * job[JOB_CHECKS];
    }
    return ms + job_added_ms(spec, job);
}

static void roofline_embed(const struct oracle *oracle,
                           const struct shard *shards, size_t n, double *out)
{
    const struct roofline *roofline = (const void *)oracle;

    for (size_t i = 0; i < n; i++)
        embed(roofline->spec, oracle->problem, &shards[i],
              &roofline->reuse[shards[i].table], out + i * N_LANES);
}

static void roofline_compute(const struct oracle *oracle, const double *sums,
                             size_t n, double *compute_ms)
{
    const struct comm_oracle *priced = (const void *)oracle;
    double forward_ms;

    for (size_t i = 0; i < n; i++)
        compute_ms[i] = device_ms(priced, sums + i * N_LANES, &forward_ms);
}

/* Hash of every constant that a price depends on. */
static const char *constants_hash(const struct gpu_spec *spec, enum dedup what,
                                  struct arena *arena)
{
    const double constants[] = {CACHE_FRAC, SORT_MOST_LOG2, LEAST_LOOKUPS,
                                LONG_BIN,   GROUP_LOOKUPS,  SPLIT_FRAC};
    const struct id_rates ids = gpu_spec_ids(spec);
    const struct dedup_rates dedup = gpu_spec_dedup(spec);
    uint64_t hash = hash_bytes(&ids, sizeof(ids), gpu_spec_hash(spec));

    hash = hash_bytes(constants, sizeof(constants), hash);
    hash = hash_bytes(kernels_of(spec), sizeof(struct kernels), hash);
    hash = hash_bytes(states, sizeof(states), hash);
    hash = hash_bytes(updates, sizeof(updates), hash);
    if (what == DEDUP_IDS)
        hash = hash_bytes(&dedup, sizeof(dedup), hash);
    return arena_strdup(arena, HASH_TEXT(hash));
}

struct oracle *roofline_oracle(const struct gpu_spec *spec,
                               const struct problem *problem,
                               struct arena *arena)
{
    static const struct oracle_ops ops = {.embed = roofline_embed,
                                          .compute = roofline_compute};
    struct roofline *roofline = ARENA_NEW(arena, struct roofline, 1);

    roofline->spec = spec;
    roofline->priced.comm = job_comm(spec, &problem->cluster);
    comm_model_ask(&roofline->priced.comm, &problem->cluster, arena);
    roofline->reuse = use_tables(problem, (double)problem->batch, arena);
    roofline->priced.device_ms = device_ms;
    roofline->priced.base = (struct oracle){
        .problem = problem,
        .cost.name = arena_printf(arena, "roofline:%s", spec->name),
        .cost.hash = constants_hash(spec, problem->job.dedup, arena),
        .cost.basis = BASIS_ANALYTIC,
        .cost.lookup_error = spec->lookup_error,
        .width = N_LANES,
        .kinds = SHARD_ALL_KINDS,
        .floor_lane = -1,
    };
    comm_oracle_init(&roofline->priced, &ops);
    return &roofline->priced.base;
}

int oracle_roofline_open(struct oracle **out, const char *gpu,
                         const struct problem *problem, struct arena *arena,
                         struct err *err)
{
    const struct gpu_spec *spec;

    if (gpu_spec_get(&spec, gpu, arena, err))
        return -1;
    *out = roofline_oracle(spec, problem, arena);
    return 0;
}
