/* SPDX-License-Identifier: MIT */
#include "costmodel/models/roofline_oracle.h"

#include "base/hash.h"
#include "core/sharding_groups.h"
#include "costmodel/formulas/comm_busy.h"
#include "costmodel/formulas/comm_tiers.h"
#include "costmodel/formulas/dense_cost.h"
#include "costmodel/formulas/roofline.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracles.h"

struct roofline {
    struct comm_oracle priced;
    const struct gpu_spec *spec;
    const struct table_use *reuse; /* [n_tables], over the global batch */
};

static double device_ms(const struct comm_oracle *oracle, const double *sums,
                        double *forward_ms)
{
    const struct roofline *roofline = (const void *)oracle;

    return roofline_device_ms(roofline->spec, oracle->comm.forward_base_ms,
                              sums, forward_ms);
}

static void embed(const struct oracle *oracle, const struct shard *shards,
                  size_t n, double *out)
{
    const struct roofline *roofline = (const void *)oracle;

    for (size_t i = 0; i < n; i++)
        roofline_embed(roofline->spec, oracle->problem, &shards[i],
                       &roofline->reuse[shards[i].table],
                       out + i * oracle->width);
}

static void compute(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms)
{
    const struct comm_oracle *priced = (const void *)oracle;
    double forward_ms;

    for (size_t i = 0; i < n; i++)
        compute_ms[i] =
            device_ms(priced, sums + i * oracle->width, &forward_ms);
}

/* Takes the error of the class of the slowest device. */
static size_t judge(const struct oracle *oracle, const struct shard *shards,
                    size_t n, const double *compute_ms,
                    struct cost_error *error, struct cost_outside **outside,
                    struct arena *arena)
{
    const struct roofline *roofline = (const void *)oracle;
    const struct problem *problem = oracle->problem;
    struct device_load load = {0};
    uint32_t slowest = 0;
    size_t class;

    *outside = NULL;
    for (uint32_t r = 1; r < problem->cluster.n_devices; r++)
        if (compute_ms[r] > compute_ms[slowest])
            slowest = r;
    for (size_t i = 0; i < n; i++) {
        struct feature_input input;

        if (shards[i].device != slowest || shard_is_replica(shards[i].kind))
            continue;
        feature_input_of_shard(&input, problem, &shards[i],
                               &roofline->reuse[shards[i].table],
                               (double)problem->batch);
        device_load_add(&load, &input);
    }
    class = interval_class_idx(interval_class(&load));
    if (error->frac > 0 && roofline->spec->class_error_frac[class] > 0) {
        error->frac = roofline->spec->class_error_frac[class];
        error->ground = arena_printf(arena, "%s (%s)", error->ground,
                                     interval_classes[class]);
    }
    return 0;
}

static struct comm_model comm_of(const struct gpu_spec *spec,
                                 const struct cluster *cluster,
                                 struct arena *arena)
{
    struct comm_model comm = job_comm(spec, cluster);

    comm_model_ask(&comm, cluster, arena);
    return comm;
}

struct oracle *roofline_oracle(const struct gpu_spec *spec,
                               const struct problem *problem,
                               struct arena *arena)
{
    static const struct oracle_ops ops = {
        .embed = embed, .compute = compute, .judge = judge};
    const struct cluster whole = sharding_groups_cluster(problem);
    struct roofline *roofline = ARENA_NEW(arena, struct roofline, 1);

    roofline->spec = spec;
    roofline->priced.comm = comm_of(spec, &problem->cluster, arena);
    roofline->priced.all = comm_of(spec, &whole, arena);
    roofline->reuse = problem_use_all(problem, (double)problem->batch, arena);
    roofline->priced.device_ms = device_ms;
    roofline->priced.base = (struct oracle){
        .problem = problem,
        .cost.name = arena_printf(arena, "roofline:%s", spec->name),
        .cost.hash = arena_strdup(
            arena, HASH_TEXT(roofline_hash(spec, problem->job.dedup))),
        .cost.basis = BASIS_ANALYTIC,
        .cost.lookup_error = spec->lookup_error,
        .width = ROOFLINE_LANES,
        .kinds = SHARD_ALL_KINDS,
        .floor_lane = -1,
    };
    comm_oracle_init(&roofline->priced, &ops);
    comm_oracle_add_busy(&roofline->priced, arena);
    comm_oracle_add_sync(&roofline->priced);
    return &roofline->priced.base;
}

int roofline_add_dense(struct oracle *oracle, struct err *err)
{
    struct roofline *roofline = (void *)oracle;

    return dense_cost_add(&roofline->priced, roofline->spec, NULL, err);
}

int oracle_roofline_open(struct oracle **out, const char *gpu,
                         const struct problem *problem, struct arena *arena,
                         struct err *err)
{
    const struct gpu_spec *spec;

    if (gpu_spec_get(&spec, gpu, arena, err))
        return -1;
    *out = roofline_oracle(spec, problem, arena);
    return comm_oracle_add_tiers((struct comm_oracle *)*out, spec, arena,
                                 err) ||
                   roofline_add_dense(*out, err)
               ? -1
               : 0;
}
