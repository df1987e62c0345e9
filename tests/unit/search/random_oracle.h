/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_UNIT_SEARCH_RANDOM_ORACLE_H
#define NEUROSHARD_TESTS_UNIT_SEARCH_RANDOM_ORACLE_H

/* Cost models with random coefficients, which price every kind of shard:
 *
 *     work    = lookups x max(width, narrow) x a + vectors x width x b + c
 *     compute = work (additive), or work^power + launch
 *     bwd     = output x d + dense gradient x e
 *     fwd     = output x d
 *
 * bwd and fwd are those of the device itself if the model is additive.
 * Otherwise they are the largest of all devices, and fwd includes waiting.
 * Include in one file only.
 */

#include <math.h>

#include "base/rng.h"
#include "core/oracle.h"

enum { RANDOM_WORK, RANDOM_OUTPUT, RANDOM_GRAD, RANDOM_WIDTH };

struct random_oracle {
    struct oracle base;
    double lookup_ms, vector_ms, piece_ms, output_ms, grad_ms;
    double narrow, power, launch_ms;
};

static const struct random_oracle *random_oracle_of(const struct oracle *oracle)
{
    return (const struct random_oracle *)(const void *)oracle;
}

static void random_embed(const struct oracle *oracle,
                         const struct shard *shards, size_t n, double *out)
{
    const struct random_oracle *o = random_oracle_of(oracle);

    for (size_t i = 0; i < n; i++, out += RANDOM_WIDTH) {
        const struct shard *shard = &shards[i];
        double width = shard->col_end - shard->col_begin;
        double vectors = shard_output_vectors(oracle->problem, shard);
        double rows = (double)(shard->row_end - shard->row_begin);
        bool is_replica = shard->kind == SHARD_REPLICATE;

        out[RANDOM_WORK] = o->piece_ms + vectors * width * o->vector_ms +
                           shard_lookups(oracle->problem, shard) *
                               fmax(width, o->narrow) * o->lookup_ms;
        out[RANDOM_OUTPUT] = is_replica ? 0 : vectors * width * o->output_ms;
        out[RANDOM_GRAD] = is_replica ? rows * width * o->grad_ms : 0;
    }
}

static void random_compute(const struct oracle *oracle, const double *sums,
                           size_t n, double *compute_ms)
{
    const struct random_oracle *o = random_oracle_of(oracle);

    for (size_t i = 0; i < n; i++, sums += RANDOM_WIDTH)
        compute_ms[i] = oracle->is_additive ? sums[RANDOM_WORK]
                        : sums[RANDOM_WORK] > 0
                            ? o->launch_ms + pow(sums[RANDOM_WORK], o->power)
                            : 0;
}

static void random_comm(const struct oracle *oracle, size_t n,
                        const double *sums, const double *compute_ms,
                        double *fwd_ms, double *bwd_ms)
{
    uint32_t n_devices = oracle->problem->cluster.n_devices;

    for (size_t i = 0; i < n; i++, sums += n_devices * RANDOM_WIDTH,
                compute_ms += n_devices, fwd_ms += n_devices,
                bwd_ms += n_devices) {
        double output = 0, grad = 0, last = 0;

        for (uint32_t r = 0; r < n_devices; r++) {
            output = fmax(output, sums[r * RANDOM_WIDTH + RANDOM_OUTPUT]);
            grad = fmax(grad, sums[r * RANDOM_WIDTH + RANDOM_GRAD]);
            last = fmax(last, compute_ms[r]);
            fwd_ms[r] = sums[r * RANDOM_WIDTH + RANDOM_OUTPUT];
            bwd_ms[r] = fwd_ms[r] + sums[r * RANDOM_WIDTH + RANDOM_GRAD];
        }
        for (uint32_t r = 0; !oracle->is_additive && r < n_devices; r++) {
            bwd_ms[r] = output + grad;
            fwd_ms[r] = last - compute_ms[r] + output;
        }
    }
}

static void random_terms(const struct oracle *oracle, const double *sums,
                         size_t n, double *compute_ms, double *terms_ms)
{
    random_compute(oracle, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++, sums += RANDOM_WIDTH) {
        double output = 2 * sums[RANDOM_OUTPUT], grad = sums[RANDOM_GRAD];

        if (oracle->is_additive) {
            *terms_ms++ = compute_ms[i] + output + grad;
            continue;
        }
        *terms_ms++ = compute_ms[i];
        *terms_ms++ = output;
        *terms_ms++ = grad;
    }
}

/* Makes an oracle that is additive, or not additive with terms, or not additive
 * with comm alone. */
static void random_oracle_init(struct random_oracle *oracle,
                               const struct problem *problem, struct rng *rng)
{
    static const struct oracle_ops by_comm = {
        .embed = random_embed, .compute = random_compute, .comm = random_comm};
    static const struct oracle_ops by_terms = {.embed = random_embed,
                                               .compute = random_compute,
                                               .comm = random_comm,
                                               .terms = random_terms};
    bool is_additive = rng_below(rng, 2);
    bool has_terms = is_additive || rng_below(rng, 2);

    *oracle = (struct random_oracle){
        .lookup_ms = 1e-6 * (1 + rng_uniform(rng)),
        .vector_ms = 1e-6 * rng_uniform(rng),
        .piece_ms = 0.002 * rng_uniform(rng),
        .output_ms = 2e-5 * rng_uniform(rng),
        .grad_ms = 1e-5 * rng_uniform(rng),
        .narrow = 16 * rng_uniform(rng),
        .power = 0.6 + 0.4 * rng_uniform(rng),
        .launch_ms = 0.01 * rng_uniform(rng),
    };
    oracle->base = (struct oracle){.ops = has_terms ? &by_terms : &by_comm,
                                   .problem = problem,
                                   .cost.name = "random",
                                   .cost.hash = "0123456789abcdef",
                                   .cost.comm = "made up",
                                   .width = RANDOM_WIDTH,
                                   .n_terms = is_additive ? 1 : 3,
                                   .is_additive = is_additive,
                                   .kinds = SHARD_ALL_KINDS,
                                   .floor_lane = -1};
}

#endif
