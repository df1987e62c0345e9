/* SPDX-License-Identifier: MIT */
/*
 * TorchRec's planner as a cost model: the time of a shard in ms as its
 * estimator computes it, from bytes over bandwidths.
 *
 *   B    global batch            N    lookups of a shard in a step
 *   W    ranks                   out  vectors that leave the shard in a step
 *   L    ranks of a host         d    columns of the shard
 *   G    hosts                   es   bytes of an element at rest
 *   P    ranks of a pod          c    bytes of an element on the wire
 *
 *   forward  = (8 N + N d es + out d c) penalty / HBM
 *   backward = F forward; F is 2 unless the setting "backward" changes it
 *   exchange = out d c / link                           in each direction
 *
 *   table, column  N = pooling B, of at least 32 columns; the penalty is 1.75
 *                  below 64 columns and 1.15 below 128. It is 1 for wider
 *                  shards and for all other kinds.
 *   row            N = pooling B / W; backward also copies 2.455 out d c / HBM.
 *                  Ranks after the last block have a block of no rows, which
 *                  costs as much as a full one.
 *   row in a pod,  N = pooling B / P, with the copy; out vectors are exchanged
 *   grid           inside the pod, then out / P vectors across pods. A pod is a
 *                  host, or an NVLink domain of hosts. Inside a domain of more
 *                  than one host, TorchRec's planner also uses `inter`.
 *   replicate      N = pooling B / W at half the HBM's bandwidth, no exchange;
 *                  backward all-reduces the table and touches it 9.22 times
 *
 * out = N for a sequence, else num_outputs B. Since April 2026 a feature
 * without an index no longer counts, so out is at most pooling B. The link is
 * `inter` if ranks are on several hosts. Nothing is fused: the times of a
 * rank's shards add up, so the head is the identity. As in TorchRec, the
 * distribution of the input is not part of the total.
 */
#include "costmodel/models/oracles.h"

#include "base/hash.h"
#include "base/text.h"

#include <string.h>

#define INDEX_BYTES 8
#define BACKWARD_FACTOR 2.0
#define MAX_BACKWARD_FACTOR 1e6
#define MIN_LOOKUP_COLUMNS 32
#define FULL_BLOCK_COLUMNS 128
#define HALF_BLOCK_COLUMNS 64
#define HALF_BLOCK_PENALTY 1.15
#define QUARTER_BLOCK_PENALTY 1.75
#define BATCHED_COPY_FACTOR 2.455
#define DENSE_KERNEL_FRAC 0.5
#define DENSE_UPDATE_FACTOR 9.22

enum torchrec_lane { LANE_COMPUTE, LANE_FWD_COMM, LANE_BWD_COMM, N_LANES };

struct torchrec {
    struct oracle base;
    double hbm_gibps, intra_gibps, inter_gibps; /* 2^30 bytes a second */
    double backward_factor;
    bool is_legacy; /* true: outputs are not capped by lookups */
};

static double bytes_ms(double bytes, double gibps)
{
    return bytes / (gibps * 0x1p30 / 1000);
}

/* Work of a shard in a step, with the bytes of one lookup and of one output. */
struct torchrec_work {
    double lookups, outputs;
    double columns;
    double row_bytes, output_bytes;
};

/* Returns the work of a shard that gets one of n_parts equal parts of the
 * lookups of `batch` samples. */
static struct torchrec_work work_of(const struct torchrec *torchrec,
                                    const struct shard *shard, double batch,
                                    double n_parts)
{
    const struct table *table = &torchrec->base.problem->tables[shard->table];
    struct torchrec_work work = {.columns = shard->col_end - shard->col_begin,
                                 .lookups =
                                     table->pooling_factor * batch / n_parts};
    double vectors = table->num_outputs;

    if (!torchrec->is_legacy)
        vectors = fmin(vectors, table->pooling_factor);
    work.outputs =
        table->output == OUTPUT_SEQUENCE ? work.lookups : vectors * batch;
    work.row_bytes = work.columns * precision_bytes(table->precision);
    work.output_bytes = work.columns * precision_bytes(table->comm_precision);
    return work;
}

/* Returns the bytes that a forward pass of the shard moves. */
static double forward_bytes(const struct torchrec_work *work)
{
    return ceil(work->lookups * INDEX_BYTES) + work->lookups * work->row_bytes +
           work->outputs * work->output_bytes;
}

static double block_penalty(double columns)
{
    if (columns >= FULL_BLOCK_COLUMNS)
        return 1;
    return columns >= HALF_BLOCK_COLUMNS ? HALF_BLOCK_PENALTY
                                         : QUARTER_BLOCK_PENALTY;
}

/* Returns the bandwidth of an exchange among the ranks of all hosts. */
static double link_gibps(const struct torchrec *torchrec)
{
    const struct cluster *cluster = &torchrec->base.problem->cluster;

    return cluster->n_devices > cluster->devices_per_host
               ? torchrec->inter_gibps
               : torchrec->intra_gibps;
}

static void embed_columns(const struct torchrec *torchrec,
                          const struct shard *shard, double *out)
{
    double batch = (double)torchrec->base.problem->batch;
    struct torchrec_work work = work_of(torchrec, shard, batch, 1);
    double exchanged = work.outputs * work.output_bytes;
    double penalty = block_penalty(work.columns);

    work.row_bytes *= fmax(work.columns, MIN_LOOKUP_COLUMNS) / work.columns;
    out[LANE_COMPUTE] =
        (1 + torchrec->backward_factor) *
        bytes_ms(forward_bytes(&work) * penalty, torchrec->hbm_gibps);
    out[LANE_FWD_COMM] = out[LANE_BWD_COMM] =
        bytes_ms(exchanged, link_gibps(torchrec));
}

/* Returns the number of parts that the rows of a table are cut into. TorchRec
 * itself cuts over all ranks, or over the ranks of a host. Numbers of parts
 * between these two are priced by the same formula. */
static double row_parts(const struct problem *problem,
                        const struct shard *shard)
{
    uint32_t n_ranks = shard_row_ranks(problem, shard);

    if (n_ranks)
        return n_ranks;
    return (double)problem->tables[shard->table].num_embeddings /
           (double)(shard->row_end - shard->row_begin);
}

static void embed_rows(const struct torchrec *torchrec,
                       const struct shard *shard, double *out)
{
    const struct cluster *cluster = &torchrec->base.problem->cluster;
    double batch = (double)torchrec->base.problem->batch;
    double n_parts = row_parts(torchrec->base.problem, shard);
    struct torchrec_work work = work_of(torchrec, shard, batch, n_parts);
    double exchanged = work.outputs * work.output_bytes;
    uint32_t n_pod = cluster_group(cluster);
    bool is_of_pod =
        shard_traits[shard_kind_idx(shard->kind)].is_within_group ||
        n_parts <= n_pod;
    double gibps = is_of_pod && n_pod <= cluster->devices_per_host
                       ? torchrec->intra_gibps
                       : link_gibps(torchrec);

    out[LANE_COMPUTE] = (1 + torchrec->backward_factor) *
                        bytes_ms(forward_bytes(&work), torchrec->hbm_gibps);
    out[LANE_FWD_COMM] = bytes_ms(exchanged, gibps);
    if (is_of_pod && cluster->n_devices > n_pod)
        out[LANE_FWD_COMM] +=
            bytes_ms(exchanged / n_pod, torchrec->inter_gibps);
    out[LANE_BWD_COMM] =
        out[LANE_FWD_COMM] +
        bytes_ms(exchanged * BATCHED_COPY_FACTOR, torchrec->hbm_gibps);
}

/* Fills the lanes of a replica. As in TorchRec, the time of an all-reduce
 * depends on the number of hosts (more than two count as two), and every rank
 * has a network card of its own. Outputs have the precision of the weights. */
static void embed_replica(const struct torchrec *torchrec,
                          const struct shard *shard, double *out)
{
    const struct problem *problem = torchrec->base.problem;
    double n_ranks = problem->cluster.n_devices;
    double n_local = problem->cluster.devices_per_host;
    double n_hosts = fmin(n_ranks / n_local, 2);
    double dense_gibps = DENSE_KERNEL_FRAC * torchrec->hbm_gibps;
    struct torchrec_work work =
        work_of(torchrec, shard, (double)problem->batch / n_ranks, 1);
    double table_bytes =
        (double)(shard->row_end - shard->row_begin) * work.row_bytes;
    double all_reduce_ms = bytes_ms(table_bytes * (2 * n_hosts - 1) / n_hosts,
                                    torchrec->inter_gibps * n_local);

    work.output_bytes = work.row_bytes;
    out[LANE_COMPUTE] = (1 + torchrec->backward_factor) *
                        bytes_ms(forward_bytes(&work), dense_gibps);
    out[LANE_FWD_COMM] = 0;
    out[LANE_BWD_COMM] =
        (n_ranks > 2 * n_local ? 2 : 1) * all_reduce_ms +
        bytes_ms(table_bytes * DENSE_UPDATE_FACTOR, dense_gibps);
}

static void torchrec_embed(const struct oracle *oracle,
                           const struct shard *shards, size_t n, double *out)
{
    const struct torchrec *torchrec = (const void *)oracle;

    for (size_t i = 0; i < n; i++, out += N_LANES)
        if (shard_is_replica(shards[i].kind))
            embed_replica(torchrec, &shards[i], out);
        else if (shard_cuts_rows(shards[i].kind))
            embed_rows(torchrec, &shards[i], out);
        else
            embed_columns(torchrec, &shards[i], out);
}

static void torchrec_compute(const struct oracle *oracle, const double *sums,
                             size_t n, double *compute_ms)
{
    (void)oracle;
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = sums[i * N_LANES + LANE_COMPUTE];
}

static void torchrec_comm(const struct oracle *oracle, size_t n,
                          const double *sums, const double *compute_ms,
                          double *fwd_ms, double *bwd_ms)
{
    (void)compute_ms;
    for (size_t i = 0; i < n * oracle->problem->cluster.n_devices; i++) {
        fwd_ms[i] = sums[i * N_LANES + LANE_FWD_COMM];
        bwd_ms[i] = sums[i * N_LANES + LANE_BWD_COMM];
    }
}

/* Fills the terms of the step. The only term is the time of the rank, since no
 * rank waits for another rank. */
static void torchrec_terms(const struct oracle *oracle, const double *sums,
                           size_t n, double *compute_ms, double *terms_ms)
{
    torchrec_compute(oracle, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++, sums += N_LANES)
        terms_ms[i] = compute_ms[i] + sums[LANE_BWD_COMM] + sums[LANE_FWD_COMM];
}

/* Parses one setting "KEY=VALUE". */
static int parse_setting(struct torchrec *torchrec, const char *key,
                         const char *value, struct err *err)
{
    static const char *const keys[] = {"hbm",     "intra",    "inter",
                                       "outputs", "backward", NULL};
    double *const bandwidths[] = {&torchrec->hbm_gibps, &torchrec->intra_gibps,
                                  &torchrec->inter_gibps};
    const int which = text_choice(keys, key);
    double number;

    if (which < 0)
        return err_usage(err,
                         "cost model 'torchrec' has no setting '%s'; known are "
                         "hbm, intra, inter, outputs, backward",
                         key);
    if (!strcmp(key, "outputs")) {
        torchrec->is_legacy = !strcmp(value, "legacy");
        if (torchrec->is_legacy || !strcmp(value, "new"))
            return 0;
        return err_usage(
            err,
            "cost model 'torchrec': outputs is 'new' or 'legacy', not '%s'",
            value);
    }
    if (!strcmp(key, "backward")) {
        if (!text_to_double(value, &number) || !(number >= 0) ||
            number > MAX_BACKWARD_FACTOR)
            return err_usage(
                err,
                "cost model 'torchrec': backward is the time of a backward "
                "pass over that of a forward pass, 0 to %g, not '%s'",
                MAX_BACKWARD_FACTOR, value);
        torchrec->backward_factor = number + 0.0; /* turns -0 into 0 */
        return 0;
    }
    if (!text_to_double(value, &number) || !(number > 0))
        return err_usage(err,
                         "cost model 'torchrec': %s is a bandwidth in GiB/s "
                         "above 0, not '%s'",
                         key, value);
    *bandwidths[which] = number;
    return 0;
}

static int parse_settings(struct torchrec *torchrec, const char *settings,
                          struct arena *arena, struct err *err)
{
    for (const char *next = settings; *settings && next;) {
        size_t len = strcspn(next, ",");
        char *key = arena_strndup(arena, next, len);
        char *value = strchr(key, '=');

        if (!value)
            return err_usage(
                err, "cost model 'torchrec' takes KEY=VALUE, not '%s'", key);
        *value++ = '\0';
        if (parse_setting(torchrec, key, value, err))
            return -1;
        next = next[len] ? next + len + 1 : NULL;
    }
    return 0;
}

/* Returns a bandwidth in GiB/s: the bandwidth that the cluster sets (in 10^9
 * bytes a second), or else the default. A setting in the text of the cost model
 * overrides both. */
static double asked_gibps(double gbps, double default_gibps)
{
    return gbps > 0 ? gbps * 1e9 / 0x1p30 : default_gibps;
}

static const char *describe_comm(const struct torchrec *torchrec,
                                 const struct cluster *cluster,
                                 struct arena *arena)
{
    const double intra = torchrec->intra_gibps, inter = torchrec->inter_gibps;
    const bool is_asked = intra == asked_gibps(cluster->intra_gbps, NAN) ||
                          inter == asked_gibps(cluster->inter_gbps, NAN);

    return arena_printf(
        arena, "TorchRec's formulas, %g GiB/s inside a host, %g GiB/s across%s",
        intra, inter, is_asked ? ", as asked for" : "");
}

/* Returns the hash of all constants that prices depend on. */
static const char *constants_hash(const struct torchrec *torchrec,
                                  struct arena *arena)
{
    const double constants[] = {
        torchrec->backward_factor, MIN_LOOKUP_COLUMNS,    FULL_BLOCK_COLUMNS,
        HALF_BLOCK_COLUMNS,        HALF_BLOCK_PENALTY,    QUARTER_BLOCK_PENALTY,
        BATCHED_COPY_FACTOR,       DENSE_KERNEL_FRAC,     DENSE_UPDATE_FACTOR,
        torchrec->hbm_gibps,       torchrec->intra_gibps, torchrec->inter_gibps,
        torchrec->is_legacy,
    };

    return arena_strdup(arena,
                        HASH_TEXT(hash_bytes(constants, sizeof(constants), 0)));
}

/* Returns the sums of devices that are busy with tables that the plan does not
 * place; NULL without such tables. TorchRec's total has no input exchange. */
static const double *busy_sums(const struct cluster *cluster,
                               struct arena *arena)
{
    double *sums, *lanes;

    if (!cluster->busy_ms)
        return NULL;
    lanes = sums =
        ARENA_NEW(arena, double, (size_t)cluster->n_devices *N_LANES);
    for (uint32_t r = 0; r < cluster->n_devices; r++, lanes += N_LANES) {
        const double *busy_ms = cluster->busy_ms[r];

        lanes[LANE_COMPUTE] = busy_ms[BUSY_CACHE] + busy_ms[BUSY_FORWARD] +
                              busy_ms[BUSY_BACKWARD];
        lanes[LANE_FWD_COMM] = busy_ms[BUSY_OUTPUT];
        lanes[LANE_BWD_COMM] = busy_ms[BUSY_GRADIENT];
    }
    return sums;
}

int oracle_torchrec_open(struct oracle **out, const char *settings,
                         const struct problem *problem, struct arena *arena,
                         struct err *err)
{
    static const struct oracle_ops ops = {.embed = torchrec_embed,
                                          .compute = torchrec_compute,
                                          .comm = torchrec_comm,
                                          .terms = torchrec_terms};
    struct torchrec *torchrec = ARENA_NEW(arena, struct torchrec, 1);

    torchrec->hbm_gibps = 897;
    torchrec->backward_factor = BACKWARD_FACTOR;
    torchrec->intra_gibps = asked_gibps(problem->cluster.intra_gbps, 600);
    torchrec->inter_gibps = asked_gibps(problem->cluster.inter_gbps, 12.5);
    if (parse_settings(torchrec, settings, arena, err))
        return -1;
    torchrec->base = (struct oracle){
        .ops = &ops,
        .problem = problem,
        .cost.name =
            arena_printf(arena, "torchrec%s%s", *settings ? ":" : "", settings),
        .cost.hash = constants_hash(torchrec, arena),
        .cost.basis = BASIS_ANALYTIC,
        .cost.comm = describe_comm(torchrec, &problem->cluster, arena),
        .width = N_LANES,
        .busy_sums = busy_sums(&problem->cluster, arena),
        .n_terms = 1,
        .is_additive = true,
        .kinds = SHARD_ALL_KINDS,
        .row_cut = ROW_CUT_RANKS,
        .prices_empty_blocks = true,
        .prices_even_rows = true,
        .floor_lane = -1,
    };
    *out = &torchrec->base;
    return 0;
}
