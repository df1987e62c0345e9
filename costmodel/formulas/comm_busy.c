/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_busy.h"

#include <math.h>
#include <string.h>

/* Fills the busy lanes of a shard. compute_ms: its compute alone. */
static void fill_excess(const struct comm_oracle *oracle,
                        const struct shard *shard, double compute_ms,
                        double *vector)
{
    const struct table *table = &oracle->base.problem->tables[shard->table];
    const double forward_ms = comm_forward_ms(oracle, vector, compute_ms);
    const double base_ms = oracle->comm.forward_base_ms;
    const double backward_ms = compute_ms - forward_ms -
                               vector[oracle->comm_at + COMM_LANE_UPDATE] -
                               oracle->comm.backward_base_ms;
    double *lanes = vector + oracle->busy_at;

    memset(lanes, 0, N_BUSY_LANES * sizeof(*lanes));
    lanes[LANE_BUSY_FORWARD] =
        (table->forward_factor - 1) * max_of(forward_ms - base_ms, 0);
    lanes[LANE_BUSY_BACKWARD] =
        (table->backward_factor - 1) * max_of(backward_ms, 0);
}

static void embed(const struct oracle *base, const struct shard *shards,
                  size_t n, double *out)
{
    const struct comm_oracle *oracle = (const void *)base;
    double *compute_ms = mem_alloc(n, sizeof(*compute_ms));

    oracle->unbusy.embed(base, shards, n, out);
    oracle->unbusy.compute(base, out, n, compute_ms);
    for (size_t i = 0; i < n; i++)
        fill_excess(oracle, &shards[i], compute_ms[i], out + i * base->width);
    mem_free(compute_ms);
}

static void compute(const struct oracle *base, const double *sums, size_t n,
                    double *compute_ms)
{
    const struct comm_oracle *oracle = (const void *)base;

    oracle->unbusy.compute(base, sums, n, compute_ms);
    for (size_t i = 0; i < n; i++)
        compute_ms[i] =
            comm_compute_ms(oracle, sums + i * base->width, compute_ms[i]);
}

/* Fills the busy lanes of devices that hold no shards. */
static void add_devices(struct comm_oracle *oracle, struct arena *arena)
{
    const struct cluster *cluster = &oracle->base.problem->cluster;
    const uint32_t n = cluster->n_devices;
    double most_ms[N_BUSY_PHASES] = {0}, *lanes;

    for (uint32_t r = 0; cluster->busy_ms && r < n; r++)
        for (unsigned p = 0; p < N_BUSY_PHASES; p++)
            most_ms[p] = max_of(most_ms[p], cluster->busy_ms[r][p]);
    oracle->step.gradient_more_ms =
        most_ms[BUSY_GRADIENT] - most_ms[BUSY_OUTPUT];
    lanes = ARENA_NEW(arena, double, (size_t)n * oracle->base.width);
    oracle->base.busy_sums = lanes;
    lanes += oracle->busy_at;
    for (uint32_t r = 0; r < n; r++, lanes += oracle->base.width) {
        static const double none[N_BUSY_PHASES];
        const double *busy_ms = cluster->busy_ms ? cluster->busy_ms[r] : none;

        lanes[LANE_BUSY_INPUT] = most_ms[BUSY_INPUT];
        lanes[LANE_BUSY_CACHE] = busy_ms[BUSY_CACHE];
        lanes[LANE_BUSY_FORWARD] = busy_ms[BUSY_FORWARD];
        lanes[LANE_BUSY_OUTPUT] = most_ms[BUSY_OUTPUT];
        lanes[LANE_BUSY_BACKWARD] = busy_ms[BUSY_BACKWARD];
        lanes[LANE_SLOWDOWN] = cluster_slowdown(cluster, r) - 1;
    }
}

void comm_oracle_add_busy(struct comm_oracle *oracle, struct arena *arena)
{
    const struct problem *problem = oracle->base.problem;
    const bool has_devices =
        problem->cluster.busy_ms || problem->cluster.slowdown;
    double least = 1, most = 1;

    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];

        least =
            fmin(least, fmin(table->forward_factor, table->backward_factor));
        most = fmax(most, fmax(table->forward_factor, table->backward_factor));
    }
    if (!has_devices && least == 1 && most == 1)
        return;
    oracle->busy_at = oracle->base.width;
    oracle->base.width += N_BUSY_LANES;
    oracle->ops.embed = embed;
    oracle->ops.compute = compute;
    if (least < 1)
        oracle->base.floor_lane = -1; /* measured times may be below it */
    if (has_devices)
        add_devices(oracle, arena);
}
