/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/comm_model.h"

#include "base/rng.h"
#include "tests/tap.h"

#define MB 1e6

static struct comm_model model_of(enum comm_form form)
{
    return (struct comm_model){.rules.form = form,
                               .intra = comm_line(10, 100),
                               .inter = comm_line(40, 10),
                               .source = "a host and a slower network"};
}

static struct problem make_problem(uint32_t n_devices, uint32_t per_host)
{
    return (struct problem){
        .batch = 1000,
        .cluster = {.n_devices = n_devices, .devices_per_host = per_host}};
}

static void check_embed(void)
{
    struct problem problem = make_problem(4, 4);
    const struct id_rates ids = {.permute = {20, 0.5, 0.25},
                                 .bucketize = {30, 2, 1}};
    double lanes[COMM_LANES], n_ids;
    struct arena arena = {0};
    struct table table;
    struct shard shard;

    table_init(&table);
    table.name = "t";
    table.num_embeddings = 50;
    table.dim = 16;
    table.pooling_factor = 3;
    table.num_outputs = 2;
    table.comm_precision = PRECISION_FP16;
    problem.tables = &table;
    problem.n_tables = 1;
    shard = shard_whole(&problem, 0, 0);

    comm_embed(&problem, &shard, &ids, lanes);
    is_near(lanes[COMM_LANE_OUTPUT], 2 * 1000 * 16 * 2, 0, "pooled outputs");
    is_near(lanes[COMM_LANE_GRAD], 0, 0, "no all-reduce");
    is_near(lanes[COMM_LANE_INPUT], 3 * 1000 * 8 + 2 * 1000 * 4, 0,
            "ids, and lengths of bags");
    is_near(lanes[COMM_LANE_PERMUTE], 2 * 1000 * 0.5 + 3 * 1000 * 0.25, 0,
            "which are put in order");
    is_near(lanes[COMM_LANE_BUCKETIZE], 0, 0, "none are of row blocks");

    shard.kind = SHARD_COLUMN;
    shard.col_end = 4;
    comm_embed(&problem, &shard, &ids, lanes);
    is_near(lanes[COMM_LANE_OUTPUT], 2 * 1000 * 4 * 2, 0,
            "a quarter's outputs");
    is_near(lanes[COMM_LANE_INPUT], 3 * 1000 * 8 + 2 * 1000 * 4, 0,
            "a column piece gets all ids again");

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_ROW;
    shard.row_end = 10;
    comm_embed(&problem, &shard, &ids, lanes);
    is_near(lanes[COMM_LANE_OUTPUT], 2 * 1000 * 16 * 2, 0,
            "a row piece sends full-width partial sums");
    n_ids = ceil(shard_lookups(&problem, &shard));
    is_near(lanes[COMM_LANE_INPUT], n_ids * 8 + 2 * 1000 * 4, 0,
            "it gets its ids, with chance on its side, and all lengths");
    problem_find_hot_rows(&problem, &arena);
    for (shard.row_end = 10; shard.row_end <= 50; shard.row_end += 10) {
        comm_embed(&problem, &shard, &ids, lanes);
        is_near(lanes[COMM_LANE_BUCKETIZE], (2 * 1000 * 2 + 3 * 1000) / 4.0, 0,
                "bucketizing the ids costs the same for each block");
        shard.row_begin = shard.row_end;
    }
    problem.hot = NULL;
    arena_release(&arena);

    shard = shard_whole(&problem, 0, 0);
    shard.kind = SHARD_REPLICATE;
    comm_embed(&problem, &shard, &ids, lanes);
    is_near(lanes[COMM_LANE_OUTPUT] + lanes[COMM_LANE_INPUT], 0, 0,
            "a replica exchanges nothing");
    is_near(lanes[COMM_LANE_GRAD], 50 * 16 * 4, 0, "its gradient is dense");

    shard = shard_whole(&problem, 0, 0);
    table.output = OUTPUT_SEQUENCE;
    comm_embed(&problem, &shard, &ids, lanes);
    is_near(lanes[COMM_LANE_OUTPUT], 3 * 1000 * 16 * 2, 0,
            "a sequence sends a vector a look-up");
}

/* sums[R][WIDTH] holds one row per device. N_FOREIGN lanes that the
 * communication model does not know come first. There are more of them than
 * exchange lanes, and the first one is compute time in units of 1 / FOREIGN ms,
 * which no other lane uses. */
#define FOREIGN 1e30
#define N_FOREIGN (COMM_LANES + 1)
#define WIDTH (N_FOREIGN + COMM_LANES)
struct load {
    double bytes[8], grad[8], compute_ms[8], ids[8], forward_ms[8],
        update_ms[8];
};

static void put_lanes(double *sums, uint32_t n_devices, const struct load *load)
{
    for (uint32_t r = 0; r < n_devices; r++) {
        double *lanes = sums + r * WIDTH + N_FOREIGN;

        sums[r * WIDTH] = load->compute_ms[r] * FOREIGN;
        lanes[COMM_LANE_OUTPUT] = load->bytes[r];
        lanes[COMM_LANE_GRAD] = load->grad[r];
        lanes[COMM_LANE_INPUT] = load->ids[r] * (PROBLEM_ID_BYTES + 2);
        lanes[COMM_LANE_PERMUTE] = load->ids[r] / 2;
        lanes[COMM_LANE_FORWARD] = load->forward_ms[r];
        lanes[COMM_LANE_BACKWARD] =
            load->compute_ms[r] - load->forward_ms[r] - load->update_ms[r];
        lanes[COMM_LANE_UPDATE] = load->update_ms[r];
    }
}

static void foreign_compute(const struct oracle *oracle, const double *sums,
                            size_t n, double *compute_ms)
{
    for (size_t i = 0; i < n; i++)
        compute_ms[i] = sums[i * oracle->width] / FOREIGN;
}

/* Makes an oracle over these rows that only communicates. */
static void make_oracle(struct comm_oracle *oracle,
                        const struct comm_model *model,
                        const struct problem *problem)
{
    *oracle = (struct comm_oracle){.base = {.problem = problem, .width = WIDTH},
                                   .comm = *model};
    comm_oracle_init(oracle, &(struct oracle_ops){.compute = foreign_compute});
}

/* Prices a cluster in which NVLink joins hosts_per_domain hosts to one
 * domain. */
static void price_domains(const struct comm_model *model, uint32_t n_devices,
                          uint32_t per_host, uint32_t hosts_per_domain,
                          const struct load *load, double *fwd, double *bwd)
{
    struct problem problem = make_problem(n_devices, per_host);
    double sums[8 * WIDTH] = {0};
    struct comm_oracle oracle;

    problem.cluster.hosts_per_domain = hosts_per_domain;
    make_oracle(&oracle, model, &problem);
    put_lanes(sums, n_devices, load);
    oracle.ops.comm(&oracle.base, 1, sums, load->compute_ms, fwd, bwd);
}

static void price(const struct comm_model *model, uint32_t n_devices,
                  uint32_t per_host, const struct load *load, double *fwd,
                  double *bwd)
{
    price_domains(model, n_devices, per_host, 0, load, fwd, bwd);
}

static void check_price(void)
{
    const struct load two = {.bytes = {100 * MB, 300 * MB},
                             .compute_ms = {5, 2}};
    const struct load four = {.bytes = {80 * MB, 0, 40 * MB, 120 * MB}};
    const struct load copies = {.grad = {64 * MB, 32 * MB, 0, 0}};
    const struct comm_model port = model_of(COMM_PORT);
    const struct comm_model total = model_of(COMM_TOTAL);
    double fwd[4], bwd[4];

    price(&port, 2, 2, &two, fwd, bwd);
    /* device 1 sends half of 300 MB at 100 GB/s */
    is_near(fwd[0], 1.51, 1e-12, "the busiest port decides");
    is_near(bwd[0], 1.51, 1e-12, "the same bytes backward");
    is_near(fwd[1], 1.51 + 3, 1e-12, "the early device waits");
    is_near(5 + bwd[0] + fwd[0], 2 + bwd[1] + fwd[1], 1e-12,
            "all are done together");

    price(&total, 2, 2, &two, fwd, bwd);
    is_near(fwd[0], 4.01, 1e-12, "all bytes through one memory");

    /* Inside a host: device 3 sends a quarter of 120 MB, and device 1 receives
     * a quarter of 80 MB. Across hosts: device 3 sends half of 120 MB, that is
     * 60 MB, and a device receives 80 / 4 or 160 / 4 MB. */
    price(&port, 4, 2, &four, fwd, bwd);
    is_near(fwd[0], 6.04, 1e-12, "two hosts: the network is slower");
    price(&port, 4, 4, &four, fwd, bwd);
    is_near(fwd[0], 0.91, 1e-12, "one host: 3/4 of 120 MB");

    price(&port, 4, 4, &copies, fwd, bwd);
    is_near(fwd[2], 0, 0, "nothing is exchanged forward");
    is_near(bwd[2], 0.97, 1e-12, "ring: 2 x 3/4 of 64 MB");
    price(&port, 4, 2, &copies, fwd, bwd);
    is_near(bwd[2], 4.84, 1e-12, "rings over two adapters of each host");

    price(&port, 1, 1, &two, fwd, bwd);
    is_near(fwd[0] + bwd[0], 0, 0, "one device talks to nobody");
}

/* 120 MB per device, 2 devices per host. Bytes that a device sends:
 *
 *   hosts   inside   across
 *     2      30 MB    60 MB
 *     4      15 MB    90 MB */
static void check_levels(void)
{
    struct load load = {.bytes = {0}};
    struct comm_model model = model_of(COMM_PORT);
    struct cluster cluster = {.inter_gbps = 300};
    struct arena arena = {0};
    double fwd[8], bwd[8];

    for (int r = 0; r < 8; r++)
        load.bytes[r] = 120 * MB;
    comm_model_ask(&model, &cluster, &arena);
    is_str(model.source,
           "a host and a slower network; but 300 GB/s across hosts, as asked "
           "for",
           "the source says so");
    price(&model, 4, 2, &load, fwd, bwd);
    is_near(fwd[0], 0.31, 1e-12, "two hosts: 30 MB inside are slower");
    is_near(bwd[0], 0.31, 1e-12, "backward as forward");
    price(&model, 8, 2, &load, fwd, bwd);
    is_near(fwd[0], 0.34, 1e-12, "four hosts: 90 MB across are slower");
    cluster.inter_gbps = 600;
    comm_model_ask(&model, &cluster, &arena);
    price(&model, 8, 2, &load, fwd, bwd);
    is_near(fwd[0], 0.19, 1e-12, "twice as fast, except for the latency");
    cluster = (struct cluster){.intra_gbps = 50};
    comm_model_ask(&model, &cluster, &arena);
    price(&model, 8, 2, &load, fwd, bwd);
    is_near(fwd[0], 0.31, 1e-12, "15 MB inside at half the rate");
    arena_release(&arena);
}

/* A domain of hosts uses the same fast links as the inside of one host. */
static void check_domains(void)
{
    const struct load four = {.bytes = {80 * MB, 0, 40 * MB, 120 * MB},
                              .grad = {64 * MB, 32 * MB, 0, 0}};
    const struct comm_model model = model_of(COMM_PORT);
    struct load eight = {.compute_ms = {3, 1, 4, 1, 5, 9, 2, 6}};
    double fwd[8], bwd[8], want_fwd[8], want_bwd[8];

    /* forward: the 120 MB of device 3, as with hosts of two devices, then as
     * with one host */
    price_domains(&model, 4, 1, 2, &four, fwd, bwd);
    is_near(fwd[0], 6.04, 1e-12, "two domains of two hosts: 60 MB across");
    is_near(bwd[0], 6.04 + 4.84, 1e-12, "and the rings as well");
    price_domains(&model, 4, 2, 2, &four, fwd, bwd);
    is_near(fwd[0], 0.91, 1e-12, "one domain: 90 MB inside");
    is_near(bwd[0], 0.91 + 0.97, 1e-12, "and the ring as well");
    for (uint32_t r = 0; r < 8; r++) {
        eight.bytes[r] = (1 + r * r % 5) * 10 * MB;
        eight.grad[r] = r * MB;
    }
    for (uint32_t per_domain = 1; per_domain <= 4; per_domain *= 2) {
        bool is_same = true;

        price_domains(&model, 8, 2, per_domain, &eight, fwd, bwd);
        price(&model, 8, 2 * per_domain, &eight, want_fwd, want_bwd);
        for (int r = 0; r < 8; r++)
            is_same &= fwd[r] == want_fwd[r] && bwd[r] == want_bwd[r];
        ok(is_same, "domains of %u hosts of 2 cost as hosts of %u", per_domain,
           2 * per_domain);
    }
}

static struct comm_curve random_line(struct rng *rng)
{
    return comm_line(60 * rng_uniform(rng), 1 + 100 * rng_uniform(rng));
}

static void random_load(struct load *load, struct rng *rng)
{
    for (int r = 0; r < 8; r++) {
        load->bytes[r] = rng_below(rng, 3) ? 150 * rng_uniform(rng) * MB : 0;
        load->grad[r] = rng_below(rng, 2) ? 90 * rng_uniform(rng) * MB : 0;
        load->compute_ms[r] = 5 * rng_uniform(rng);
        load->forward_ms[r] = rng_uniform(rng) * load->compute_ms[r];
        load->ids[r] = (double)rng_below(rng, 10000000);
        if (load->grad[r] > 0)
            load->update_ms[r] =
                rng_uniform(rng) * (load->compute_ms[r] - load->forward_ms[r]);
    }
}

enum level { SENT_INSIDE, RECEIVED_INSIDE, SENT_ACROSS, RECEIVED_ACROSS };

/* Counts the bytes of the busiest device at each level, from all pairs of
 * devices. A device keeps 1/R of its own bytes. */
static void count_bytes(const double *bytes, uint32_t n, uint32_t per_group,
                        double most[4])
{
    memset(most, 0, 4 * sizeof(*most));
    for (uint32_t r = 0; r < n; r++) {
        double moved[4] = {0};

        for (uint32_t q = 0; q < n; q++) {
            const bool is_inside = q / per_group == r / per_group;

            if (q == r)
                continue;
            moved[is_inside ? SENT_INSIDE : SENT_ACROSS] += bytes[r] / n;
            moved[is_inside ? RECEIVED_INSIDE : RECEIVED_ACROSS] +=
                bytes[q] / n;
        }
        for (int k = 0; k < 4; k++)
            most[k] = fmax(most[k], moved[k]);
    }
}

/* The time of an exchange is set by the bytes that the busiest device sends or
 * receives, counted over all pairs. Received bytes matter only across groups,
 * and only if the last group is smaller than the others. In all other cases the
 * sent bytes are at least as large. */
static void check_received(void)
{
    size_t n_inside = 0, n_even = 0, n_uneven = 0;
    double worst = 0;
    struct rng rng;

    rng_init(&rng, 14, 0);
    for (int i = 0; i < 5000; i++) {
        const uint32_t n = 2 + (uint32_t)rng_below(&rng, 7);
        const uint32_t per_host = 1 + (uint32_t)rng_below(&rng, n);
        struct comm_model model = {.rules.form = COMM_PORT,
                                   .intra = random_line(&rng),
                                   .inter = random_line(&rng)};
        double most[4], fwd[8], bwd[8], intra, inter;
        struct load load;

        random_load(&load, &rng);
        memset(load.grad, 0, sizeof(load.grad));
        load.bytes[rng_below(&rng, n)] = 170 * MB;
        price(&model, n, per_host, &load, fwd, bwd);
        count_bytes(load.bytes, n, per_host, most);
        intra = fmax(most[SENT_INSIDE], most[RECEIVED_INSIDE]);
        inter = fmax(most[SENT_ACROSS], most[RECEIVED_ACROSS]);
        intra = intra > 0 ? comm_curve_us(&model.intra, intra) / 1000 : 0;
        inter = inter > 0 ? comm_curve_us(&model.inter, inter) / 1000 : 0;
        worst = tap_worst(worst, fabs(bwd[0] - fmax(intra, inter)));
        n_inside += most[RECEIVED_INSIDE] > most[SENT_INSIDE] * (1 + 1e-12);
        if (most[RECEIVED_ACROSS] > most[SENT_ACROSS] * (1 + 1e-12))
            n % per_host ? n_uneven++ : n_even++;
    }
    is_near(worst, 0, 1e-9, "the busiest device decides");
    is_i64((int64_t)(n_inside + n_even), 0,
           "in equal groups no device receives more bytes than the busiest one "
           "sends");
    ok(n_uneven > 10, "a smaller last group receives more %zu times", n_uneven);
}

static void random_job(struct job *job, struct comm_model *model,
                       struct rng *rng)
{
    *job = (struct job){
        .pipeline = (enum pipeline)rng_below(rng, N_PIPELINES),
        .n_chunks = 1 + (uint32_t)rng_below(rng, 4),
        .dense_ms = {rng_uniform(rng), 3 * rng_uniform(rng)},
    };
    model->ids.permute.base_us = 20 * rng_uniform(rng);
    for (unsigned p = 0; p < N_PHASES; p++)
        model->overlap_cost[p] = rng_uniform(rng);
}

/* Returns the relative difference between the total step time and the total
 * computed from the largest value of each term. */
static double terms_error(const struct comm_model *model,
                          const struct problem *problem,
                          const struct load *load)
{
    const uint32_t n = problem->cluster.n_devices;
    double sums[8 * WIDTH] = {0}, terms[8 * ORACLE_MAX_TERMS];
    double fwd[8], bwd[8], largest[ORACLE_MAX_TERMS] = {0}, total = 0;
    double compute[8];
    struct comm_oracle oracle;

    make_oracle(&oracle, model, problem);
    put_lanes(sums, n, load);
    oracle.ops.comm(&oracle.base, 1, sums, load->compute_ms, fwd, bwd);
    oracle.ops.terms(&oracle.base, sums, n, compute, terms);
    for (uint32_t r = 0; r < n; r++)
        total = fmax(total, load->compute_ms[r] + fwd[r] + bwd[r]);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = 0; k < oracle.base.n_terms; k++)
            largest[k] = fmax(largest[k], terms[r * oracle.base.n_terms + k]);
    return fabs(oracle_terms_total_ms(&oracle.base, largest) - total) / total;
}

/* If all hosts have the same size, the terms determine the total: it equals the
 * total of the largest value of each term. Drawn with random sends, replicas,
 * links and jobs. */
static void check_terms(void)
{
    struct rng rng;
    double worst = 0;

    rng_init(&rng, 12, 0);
    for (int i = 0; i < 2000; i++) {
        uint32_t per_host = 1 + (uint32_t)rng_below(&rng, 4);
        uint32_t n_hosts = 1 + (uint32_t)rng_below(&rng, 8 / per_host);
        struct problem problem = make_problem(n_hosts * per_host, per_host);
        struct comm_model model = {.rules.form = COMM_PORT,
                                   .intra = random_line(&rng),
                                   .inter = random_line(&rng)};
        struct load load;

        random_load(&load, &rng);
        random_job(&problem.job, &model, &rng);
        problem.cluster.hosts_per_domain = rng_below(&rng, 2) ? n_hosts : 1;
        if (problem.cluster.n_devices > 1)
            worst = tap_worst(worst, terms_error(&model, &problem, &load));
    }
    is_near(worst, 0, 1e-12, "the largest terms give the total");
}

/* With sdd, no replicas, no dense part, free overlap, and an input exchange
 * shorter than compute, the step is the largest compute time plus two
 * exchanges. If there are few ids, the input exchange costs only its
 * latency. */
static void check_hidden(void)
{
    double worst = 0;
    struct rng rng;

    rng_init(&rng, 13, 0);
    for (int i = 0; i < 2000; i++) {
        enum comm_form form = rng_below(&rng, 2) ? COMM_PORT : COMM_TOTAL;
        struct problem problem =
            make_problem(1 + (uint32_t)rng_below(&rng, 8), 8);
        struct comm_model model = {.rules.form = form,
                                   .intra = random_line(&rng)};
        struct load load;
        double fwd[8], bwd[8], slowest = 0;

        random_load(&load, &rng);
        model.inter = model.intra;
        for (uint32_t r = 0; r < 8; r++) {
            load.ids[r] = (double)rng_below(&rng, 100);
            load.compute_ms[r] += 0.1;
            load.grad[r] = load.update_ms[r] = 0;
        }
        price(&model, problem.cluster.n_devices, 8, &load, fwd, bwd);
        for (uint32_t r = 0; r < problem.cluster.n_devices; r++)
            slowest = fmax(slowest, load.compute_ms[r]);
        worst = tap_worst(worst, fabs(load.compute_ms[0] + fwd[0] + bwd[0] -
                                      (slowest + 2 * bwd[0])));
    }
    is_near(worst, 0, 1e-12, "a hidden input leaves look-ups and exchanges");
}

/* Phases of four devices, computed by hand. The largest values of the phases
 * add up to the total step time. The phases of one device, including its
 * waiting, add up to no more than the total. */
static void check_phases(void)
{
    const struct load load = {.bytes = {80 * MB, 0, 40 * MB, 120 * MB},
                              .ids = {8e6, 4e6, 0, 2e6},
                              .grad = {64 * MB, 0, 0, 0},
                              .compute_ms = {5, 4, 3, 2},
                              .forward_ms = {2, 1, 1, 0.5},
                              .update_ms = {1, 0, 0, 0}};
    struct problem problem = make_problem(4, 4);
    double sums[8 * WIDTH] = {0}, phases[4][N_PHASES];
    struct comm_model model = model_of(COMM_PORT);
    struct comm_oracle oracle;
    double fwd[4], bwd[4];

    model.ids.permute.base_us = 20;
    problem.job.pipeline = PIPELINE_NONE;
    make_oracle(&oracle, &model, &problem);
    put_lanes(sums, 4, &load);
    oracle.ops.phases(&oracle.base, sums, load.compute_ms, phases);
    oracle.ops.comm(&oracle.base, 1, sums, load.compute_ms, fwd, bwd);
    is_near(phases[1][PHASE_INPUT], 0.01 + 8 * 10 * 0.75e-2, 1e-12,
            "device 0 receives 80 MB of ids and already has a quarter");
    is_near(phases[0][PHASE_PERMUTE], 0.02 + 4, 1e-12, "8 million ids");
    is_near(phases[2][PHASE_PERMUTE], 0, 0, "no ids, nothing to do");
    is_near(phases[0][PHASE_FORWARD], 2, 1e-12, "forward");
    is_near(phases[0][PHASE_BACKWARD], 2, 1e-12, "backward");
    is_near(phases[0][PHASE_UPDATE], 1, 1e-12, "replicas");
    is_near(phases[3][PHASE_OUTPUT], 0.91, 1e-12, "outputs");
    is_near(phases[3][PHASE_GRADIENT], 0.91, 1e-12, "gradients");
    is_near(phases[3][PHASE_REDUCE], 0.97, 1e-12, "all-reduce");
    is_near(5 + fwd[0] + bwd[0], 0.61 + (4.02 + 2) + 0.91 + 0.91 + 0.97 + 3,
            1e-12, "one after the other: the largest between two exchanges");
}

/* If a curve bends, a requested bandwidth keeps its latency and its bend. */
static void check_ask(void)
{
    const struct cluster both = {.intra_gbps = 9, .inter_gbps = 5};
    const struct cluster none = {0};
    struct comm_model model = model_of(COMM_PORT), same = model;
    struct arena arena = {0};

    model.intra = (struct comm_curve){
        .n_knots = 3, .bytes = {0, 1000, 10000}, .us = {2, 2.5, 4.5}};
    comm_model_ask(&model, &both, &arena);
    is_near(comm_curve_gbps(&model.intra), 9, 1e-12, "inside a host");
    is_near(model.intra.us[0], 2, 0, "after its latency");
    is_near(comm_curve_us(&model.intra, 2000), 2.5, 1e-12,
            "a knot at twice the bytes");
    is_near(comm_curve_gbps(&model.inter), 5, 1e-12, "across hosts");
    is_near(comm_curve_us(&model.inter, 5e6), 1040, 1e-9, "a line");
    comm_model_ask(&same, &none, &arena);
    is_str(same.source, "a host and a slower network", "nothing is asked for");
    is_near(comm_curve_gbps(&same.intra), 100, 1e-9, "nothing changes");
    arena_release(&arena);
}

static void check_curve(void)
{
    const struct comm_curve line = comm_line(10, 100);
    const struct comm_curve curve = {
        .n_knots = 4, .bytes = {0, 100, 1000, 10000}, .us = {1, 1, 2, 4}};
    const struct load load = {.bytes = {10000, 1000}};
    struct comm_model model = model_of(COMM_TOTAL);
    double fwd[4], bwd[4];

    is_near(comm_curve_us(&line, 0), 10, 0, "nothing takes the latency");
    is_near(comm_curve_us(&line, 5e6), 60, 1e-9, "5 MB at 100 GB/s");
    is_near(comm_curve_us(&line, 5e12), 50000010, 1e-4, "and far beyond");
    is_near(line.us[0], 10, 0, "latency");
    is_near(comm_curve_gbps(&line), 100, 1e-9, "bandwidth");
    is_near(comm_curve_us(&curve, 40), 1, 0, "level");
    is_near(comm_curve_us(&curve, 100), 1, 0, "a knot");
    is_near(comm_curve_us(&curve, 550), 1.5, 1e-12, "half-way");
    is_near(comm_curve_us(&curve, 10000), 4, 1e-12, "the last knot");
    is_near(comm_curve_us(&curve, 14500), 5, 1e-12, "the last line goes on");
    is_near(comm_curve_gbps(&curve), 4.5, 1e-12, "at its rate");
    model.intra = curve;
    price(&model, 2, 2, &load, fwd, bwd);
    is_near(fwd[0], (2 + 2 * 10.0 / 9) / 1000, 1e-12, "11,000 bytes by it");
}

int main(void)
{
    check_embed();
    check_price();
    check_levels();
    check_domains();
    check_received();
    check_terms();
    check_hidden();
    check_phases();
    check_ask();
    check_curve();
    return tap_done();
}
