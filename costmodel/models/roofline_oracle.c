/* SPDX-License-Identifier: MIT */
#include "costmodel/models/roofline_oracle.h"

#include "base/hash.h"
#include "costmodel/formulas/roofline.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/oracles.h"

struct roofline {
    struct comm_oracle priced;
    const struct gpu_spec *spec;
    struct table_use *reuse; /* [n_tables], over the global batch */
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
                       out + i * ROOFLINE_LANES);
}

static void compute(const struct oracle *oracle, const double *sums, size_t n,
                    double *compute_ms)
{
    const struct comm_oracle *priced = (const void *)oracle;
    double forward_ms;

    for (size_t i = 0; i < n; i++)
        compute_ms[i] =
            device_ms(priced, sums + i * ROOFLINE_LANES, &forward_ms);
}

struct oracle *roofline_oracle(const struct gpu_spec *spec,
                               const struct problem *problem,
                               struct arena *arena)
{
    static const struct oracle_ops ops = {.embed = embed, .compute = compute};
    struct roofline *roofline = ARENA_NEW(arena, struct roofline, 1);

    roofline->spec = spec;
    roofline->priced.comm = job_comm(spec, &problem->cluster);
    comm_model_ask(&roofline->priced.comm, &problem->cluster, arena);
    roofline->reuse = use_tables(problem, (double)problem->batch, arena);
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
