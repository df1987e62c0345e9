/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_model.h"

#include "tests/tap.h"

#define MB 1e6

static const struct comm_model port = {
    COMM_PORT, 10, 100, 40, 10, "a switch and a slower network"};
static const struct comm_model total = {COMM_TOTAL, 10, 100,
                                        40,         10, "a shared memory"};

static struct problem make_problem(uint32_t n_devices, uint32_t per_host)
{
    return (struct problem){
        .batch = 1000,
        .cluster = {.n_devices = n_devices, .devices_per_host = per_host}};
}

static void check_embed(void)
{
    struct problem problem = make_problem(4, 4);
    double lanes[COMM_LANES];
    struct table table;
    struct shard shard;

    table_init(&table);
    table.num_embeddings = 50;
    table.dim = 16;
    table.pooling_factor = 3;
    table.num_outputs = 2;
    table.comm_precision = PRECISION_FP16;
    problem.tables = &table;
    problem.n_tables = 1;
    shard = shard_whole(&problem, 0, 0);

    comm_embed(&problem, &shard, lanes);
    is_near(lanes[COMM_LANE_FWD], 2 * 1000 * 16 * 2, 0, "pooled outputs");
    is_near(lanes[COMM_LANE_BWD], 2 * 1000 * 16 * 2, 0, "their gradients");
    is_near(lanes[COMM_LANE_INDEX], 3 * 1000 * 8, 0, "8 B a look-up");
    is_near(lanes[COMM_LANE_GRAD], 0, 0, "no all-reduce");

    shard.kind = SHARD_COLUMN;
    shard.col_end = 4;
    comm_embed(&problem, &shard, lanes);
    is_near(lanes[COMM_LANE_FWD], 2 * 1000 * 4 * 2, 0, "a quarter's outputs");
    is_near(lanes[COMM_LANE_INDEX], 3 * 1000 * 8, 0, "but every index");

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_ROW;
    shard.row_end = 10;
    comm_embed(&problem, &shard, lanes);
    is_near(lanes[COMM_LANE_FWD], 2 * 1000 * 16 * 2, 0,
            "a row piece sends full-width partial sums");
    is_near(lanes[COMM_LANE_INDEX], 3 * 1000 * 8 / 5.0, 1e-9,
            "for its share of the look-ups");

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_REPLICATE;
    comm_embed(&problem, &shard, lanes);
    is_near(lanes[COMM_LANE_FWD] + lanes[COMM_LANE_INDEX], 0, 0,
            "a replica exchanges nothing");
    is_near(lanes[COMM_LANE_GRAD], 50 * 16 * 4, 0, "its gradient is dense");

    shard = shard_whole(&problem, 0, 0);
    table.output = OUTPUT_SEQUENCE;
    comm_embed(&problem, &shard, lanes);
    is_near(lanes[COMM_LANE_FWD], 3 * 1000 * 16 * 2, 0,
            "a sequence sends a vector a look-up");
}

/* sums[R][1 + COMM_LANES]: one foreign lane first. */
struct load {
    double bytes[4], grad[4], compute_ms[4];
};

static void price(const struct comm_model *model, uint32_t n_devices,
                  uint32_t per_host, const struct load *load, double *fwd,
                  double *bwd)
{
    struct problem problem = make_problem(n_devices, per_host);
    double sums[4 * (1 + COMM_LANES)] = {0};

    for (uint32_t r = 0; r < n_devices; r++) {
        double *lanes = sums + r * (1 + COMM_LANES) + 1;

        sums[r * (1 + COMM_LANES)] = 1e30;
        lanes[COMM_LANE_FWD] = load->bytes[r];
        lanes[COMM_LANE_BWD] = load->bytes[r] / 2;
        lanes[COMM_LANE_GRAD] = load->grad[r];
    }
    comm_price(model, &problem, 1, sums, 1 + COMM_LANES, 1, load->compute_ms,
               fwd, bwd);
}

static void check_price(void)
{
    const struct load two = {.bytes = {100 * MB, 300 * MB},
                             .compute_ms = {5, 2}};
    const struct load four = {.bytes = {80 * MB, 0, 40 * MB, 120 * MB}};
    const struct load copies = {.grad = {64 * MB, 32 * MB, 0, 0}};
    double fwd[4], bwd[4];

    price(&port, 2, 2, &two, fwd, bwd);
    /* device 1 sends half of 300 MB at 100 GB/s */
    is_near(fwd[0], 1.51, 1e-12, "the busiest port decides");
    is_near(bwd[0], 0.76, 1e-12, "half the bytes backward");
    is_near(fwd[1], 1.51 + 3, 1e-12, "the early device waits");
    is_near(5 + bwd[0] + fwd[0], 2 + bwd[1] + fwd[1], 1e-12,
            "all are done together");

    price(&total, 2, 2, &two, fwd, bwd);
    is_near(fwd[0], 4.01, 1e-12, "all bytes through one memory");

    /* inside: device 3 sends a quarter of 120; 1 gets a quarter of 80.
     * across: 3 sends half of 120, hosts get 80 / 4 and 160 / 4: 60 MB. */
    price(&port, 4, 2, &four, fwd, bwd);
    is_near(fwd[0], 6.04, 1e-12, "two hosts: the network is slower");
    price(&port, 4, 4, &four, fwd, bwd);
    is_near(fwd[0], 0.91, 1e-12, "one host: 3/4 of 120 MB");

    price(&port, 4, 4, &copies, fwd, bwd);
    is_near(fwd[2], 0, 0, "nothing is exchanged forward");
    is_near(bwd[2], 0.97, 1e-12, "ring: 2 x 3/4 of 64 MB");
    price(&port, 4, 2, &copies, fwd, bwd);
    is_near(bwd[2], 9.64, 1e-12, "ring over the network");

    price(&port, 1, 1, &two, fwd, bwd);
    is_near(fwd[0] + bwd[0], 0, 0, "one device talks to nobody");
}

int main(void)
{
    check_embed();
    check_price();
    return tap_done();
}
