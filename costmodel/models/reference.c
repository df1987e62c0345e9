/* SPDX-License-Identifier: MIT */
/*
 * The nets of the published code, exported as JSON. The compute net is a table
 * MLP, a sum over the tables of a device, and a head. There is one pair of
 * communication nets for each number of devices. Inputs of a communication net
 * are the output widths of the devices; the forward net also takes the delay of
 * each device. Arithmetic is float, as in training. A vector consists of the 32
 * outputs of the table MLP and the output width.
 */
#include "costmodel/models/oracles.h"

#include "base/hash.h"
#include "base/text.h"
#include "core/rank_law.h"
#include "costmodel/modelfile/net_json.h"

#include <string.h>

#define MAX_EMBED 64 /* most outputs of the table MLP; 32 as published */
#define CHUNK 16     /* rows converted and evaluated at a time */

struct net {
    struct net_file file;
    struct fast_mlp mlp;
};

struct reference {
    struct oracle base;
    /* The problem as the published nets see it: without deduplication of
     * ids. */
    struct problem published;
    struct feature_set features;
    struct fast_mlp table, head;
    struct net fwd, bwd;
    uint32_t n_embed;
};

static int open_compute(struct reference *reference, const char *dir,
                        uint64_t *hash, struct arena *arena, struct err *err)
{
    struct net_file file = {0};
    uint32_t n_table = 0;

    if (net_file_read_compute(&file, &reference->features, dir, hash, arena,
                              err))
        return -1;
    while (n_table < file.n_layers &&
           !strncmp(file.layers[n_table].name, "t_hidden.", 9))
        n_table++;
    if (!n_table || n_table == file.n_layers ||
        file.layers[n_table - 1].n_out > MAX_EMBED ||
        file.layers[file.n_layers - 1].n_out != 1)
        return err_input(err,
                         "%s: a compute net has layers 't_hidden.*' of at most "
                         "%d outputs, then 'c_hidden.*' that end in one",
                         file.path, MAX_EMBED);
    file.layers[file.n_layers - 1].relu = false;
    fast_mlp_init(&reference->table, file.layers, n_table, cpu_isa_best(),
                  arena);
    fast_mlp_init(&reference->head, file.layers + n_table,
                  file.n_layers - n_table, cpu_isa_best(), arena);
    reference->n_embed = reference->table.n_out;
    return 0;
}

/* Opens a communication net for R = n_devices devices. n_inputs is R for the
 * backward net and 2 R for the forward net. */
static int open_comm(struct net *net, const char *dir, uint32_t n_devices,
                     uint32_t n_inputs, uint64_t *hash, struct arena *arena,
                     struct err *err)
{
    struct net_file *file = &net->file;
    const char **features = ARENA_NEW(arena, const char *, n_inputs);

    for (uint32_t i = 0; i < n_inputs; i++)
        features[i] = i < n_devices
                          ? arena_printf(arena, "dim_sum_%u", i)
                          : arena_printf(arena, "start_ms_%u", i - n_devices);
    file->path = arena_printf(arena, "%s/net_comm_%u_%s.json", dir, n_devices,
                              n_inputs > n_devices ? "fw" : "bw");
    file->n_inputs = n_inputs;
    if (net_file_read(file, features, hash, arena, err))
        return err_prefix(err, "no reference net for %u GPUs", n_devices);
    if (file->layers[file->n_layers - 1].n_out != n_devices)
        return err_input(err, "%s: the net is for %u GPUs, not %u", file->path,
                         file->layers[file->n_layers - 1].n_out, n_devices);
    file->layers[file->n_layers - 1].relu = false;
    fast_mlp_init(&net->mlp, file->layers, file->n_layers, cpu_isa_best(),
                  arena);
    return 0;
}

static void reference_embed(const struct oracle *oracle,
                            const struct shard *shards, size_t n, double *out)
{
    const struct reference *reference = (const void *)oracle;
    const struct problem *problem = &reference->published;
    const struct feature *pos = reference->features.items;
    const uint32_t n_in = reference->features.n;
    float in[CHUNK * MAX_FEATURES], embedded[CHUNK * MAX_EMBED];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++) {
            const struct shard *shard = &shards[begin + i];
            const struct table *table = &problem->tables[shard->table];
            struct feature_input input = {
                .dim = shard->col_end - shard->col_begin,
                .pooling_factor = table->pooling_factor,
                .n_rows = (double)table->num_embeddings};
            double features[MAX_FEATURES];

            (void)table_reuse(table, shard_lookups(problem, shard), input.bins);
            feature_set_fill(&reference->features, &input, features);
            for (uint32_t k = 0; k < n_in; k++)
                in[i * n_in + k] = ((float)features[k] - (float)pos[k].mean) /
                                   (float)pos[k].std;
        }
        reference->table.eval(&reference->table, in, m, embedded);
        for (size_t i = 0; i < m; i++, out += oracle->width) {
            const struct shard *shard = &shards[begin + i];

            for (uint32_t k = 0; k < reference->n_embed; k++)
                out[k] = (double)embedded[i * reference->n_embed + k];
            out[reference->n_embed] = shard_output_vectors(problem, shard) *
                                      (shard->col_end - shard->col_begin) /
                                      (double)problem->batch;
        }
    }
}

static void reference_compute(const struct oracle *oracle, const double *sums,
                              size_t n, double *compute_ms)
{
    const struct reference *reference = (const void *)oracle;
    float in[CHUNK * MAX_EMBED], out[CHUNK];

    for (size_t begin = 0, m; begin < n; begin += m) {
        m = n - begin < CHUNK ? n - begin : CHUNK;
        for (size_t i = 0; i < m; i++, sums += oracle->width)
            for (uint32_t k = 0; k < reference->n_embed; k++)
                in[i * reference->n_embed + k] = (float)sums[k];
        reference->head.eval(&reference->head, in, m, out);
        for (size_t i = 0; i < m; i++)
            compute_ms[begin + i] = (double)out[i];
    }
}

/* Fills the inputs of a communication net for one assignment, whose first
 * device has the index `at`. Inputs are the output widths of the devices, which
 * are `stride` apart. The forward net also takes the delay of each device: the
 * time from which the first device is ready until this device is ready. */
static void fill_comm(float *in, const struct net_file *file,
                      uint32_t n_devices, size_t pos, const double *widths,
                      size_t stride, const double *compute_ms,
                      const double *bwd_ms)
{
    float known[NET_MAX_INPUTS];
    double first = INFINITY;

    for (uint32_t r = 0; r < n_devices; r++)
        known[r] = (float)widths[(pos + r) * stride];
    for (uint32_t r = 0; compute_ms && r < n_devices; r++)
        first = fmin(first, compute_ms[pos + r] + bwd_ms[pos + r]);
    for (uint32_t r = 0; compute_ms && r < n_devices; r++)
        known[n_devices + r] =
            (float)(compute_ms[pos + r] + bwd_ms[pos + r] - first);
    for (uint32_t k = 0; k < file->n_inputs; k++)
        in[k] = (known[file->inputs[k]] - file->mean[k]) / file->std[k];
}

/* Evaluates a communication net. compute_ms and bwd_ms are NULL for the
 * backward net. */
static void ask_comm(const struct oracle *oracle, const struct net *net,
                     size_t n, const double *widths, size_t stride,
                     const double *compute_ms, const double *bwd_ms,
                     double *out)
{
    const uint32_t n_devices = oracle->problem->cluster.n_devices;
    float in[FAST_MLP_ROWS * NET_MAX_INPUTS];
    float answer[FAST_MLP_ROWS * NET_MAX_INPUTS];

    if (n_devices == 1) {
        memset(out, 0, n * sizeof(*out));
        return;
    }
    for (size_t begin = 0, m; begin < n; begin += m) {
        m = min_u64(n - begin, FAST_MLP_ROWS);
        for (size_t i = 0; i < m; i++)
            fill_comm(in + i * net->mlp.n_in, &net->file, n_devices,
                      (begin + i) * n_devices, widths, stride, compute_ms,
                      bwd_ms);
        net->mlp.eval(&net->mlp, in, m, answer);
        for (size_t k = 0; k < m * n_devices; k++)
            *out++ = (double)answer[k];
    }
}

static void reference_bwd(const struct oracle *oracle, size_t n,
                          const double *widths, double *bwd_ms)
{
    const struct reference *reference = (const void *)oracle;

    ask_comm(oracle, &reference->bwd, n, widths, 1, NULL, NULL, bwd_ms);
}

static void reference_fwd(const struct oracle *oracle, size_t n,
                          const double *widths, const double *compute_ms,
                          const double *bwd_ms, double *fwd_ms)
{
    const struct reference *reference = (const void *)oracle;

    ask_comm(oracle, &reference->fwd, n, widths, 1, compute_ms, bwd_ms, fwd_ms);
}

static void reference_comm(const struct oracle *oracle, size_t n,
                           const double *sums, const double *compute_ms,
                           double *fwd_ms, double *bwd_ms)
{
    const struct reference *reference = (const void *)oracle;
    const double *widths = sums + oracle->comm_lane;

    ask_comm(oracle, &reference->bwd, n, widths, oracle->width, NULL, NULL,
             bwd_ms);
    ask_comm(oracle, &reference->fwd, n, widths, oracle->width, compute_ms,
             bwd_ms, fwd_ms);
}

int oracle_reference_open(struct oracle **out, const char *dir,
                          const struct problem *problem, struct arena *arena,
                          struct err *err)
{
    static const struct oracle_ops ops = {.embed = reference_embed,
                                          .compute = reference_compute,
                                          .comm = reference_comm,
                                          .bwd = reference_bwd,
                                          .fwd = reference_fwd};
    uint32_t n_devices = problem->cluster.n_devices;
    struct reference *reference = ARENA_NEW(arena, struct reference, 1);
    uint64_t hash = 0;

    if (problem->cluster.busy_ms)
        return err_input(err, "cost model 'reference' cannot price a cluster "
                              "with busy_ms");
    if (problem->cluster.slowdown)
        return err_input(err, "cost model 'reference' cannot price a cluster "
                              "with a slowdown");
    if (2 * (uint64_t)n_devices > NET_MAX_INPUTS)
        return err_input(err, "no reference net for %u GPUs", n_devices);
    if (open_compute(reference, dir, &hash, arena, err) ||
        (n_devices > 1 && (open_comm(&reference->fwd, dir, n_devices,
                                     2 * n_devices, &hash, arena, err) ||
                           open_comm(&reference->bwd, dir, n_devices, n_devices,
                                     &hash, arena, err))))
        return -1;
    reference->published = *problem;
    reference->published.job.dedup = DEDUP_NONE;
    reference->base = (struct oracle){
        .ops = &ops,
        .problem = problem,
        .cost.name =
            arena_printf(arena, "reference:%s", text_shown(dir, arena)),
        .cost.hash = arena_strdup(arena, HASH_TEXT(hash)),
        .cost.basis = BASIS_MODELLED,
        .cost.comm =
            problem->cluster.intra_gbps > 0 || problem->cluster.inter_gbps > 0
                ? "the published nets, of their own machine, whatever "
                  "bandwidth was asked for"
                : "the published nets, of their own machine",
        .warning = fast_mlp_warning(cpu_isa_best()),
        .width = reference->n_embed + 1,
        .comm_lane = reference->n_embed,
        .kinds = SHARD_TABLE | SHARD_COLUMN,
        .floor_lane = -1,
    };
    *out = &reference->base;
    return 0;
}
