/* SPDX-License-Identifier: MIT */
/* Tests which calls the timing of a rank makes on its device, and the times
 * that it derives. */
#include "exec/timing.h"

#include "base/interrupt.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec_fixture.h"
#include "tests/tap.h"
#include "tests/unit/device/recorded_device.h"

#include <signal.h>

static const double times[] = {1, 2, 3, 4};
static struct recorded device;

struct stage {
    struct fixture fixture;
    struct placement placement;
    struct rank_work work, others;
};

static void begin(struct stage *stage, uint32_t n_ranks, uint64_t batch)
{
    struct fixture *fixture = &stage->fixture;
    struct err err = {0};

    memset(stage, 0, sizeof(*stage));
    recorded_init(&device, DEVICE_CUDA, times, 4);
    fixture->plan.problem.tables = fixture->tables;
    fixture->plan.problem.cluster.n_devices = n_ranks;
    fixture->plan.problem.batch = batch;
    fixture->plan.shards = fixture->shards;
    if (world_open(&fixture->world, &err) ||
        comm_open(&fixture->comm, fixture->world, &device.device, n_ranks,
                  &err))
        fixture_bail(&err);
}

/* Adds tables of 1, 2 ... n outputs on rank 0, each a group of its own; and
 * replicas in n_replica_groups groups. */
static void add_groups(struct stage *stage, unsigned n, unsigned n_replicas,
                       unsigned n_replica_groups)
{
    char *name;

    for (unsigned i = 0; i < n + n_replicas; i++) {
        name = arena_printf(&stage->fixture.arena, "t%u", i);
        if (i < n) {
            add_table(&stage->fixture, name, 20, 8, i + 1)->num_outputs = i + 1;
            add_whole(&stage->fixture, 0);
        } else {
            const unsigned outputs = (i - n) % n_replica_groups + 1;

            add_table(&stage->fixture, name, 20, 8, outputs)->num_outputs =
                outputs;
            add_replicas(&stage->fixture);
        }
    }
}

static void place(struct stage *stage, uint32_t rank)
{
    struct fixture *fixture = &stage->fixture;
    struct err err = {0};

    plan_derive_kinds(&fixture->plan);
    if (placement_init(&stage->placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err) ||
        placement_cut_turns(&stage->placement, 1 << 30, &err) ||
        placement_open(&stage->placement, &err) ||
        placement_load(&stage->placement, 0, &err))
        fixture_bail(&err);
    stage->work = rank_work_timed(&stage->placement, rank, 0, 1);
    stage->others = rank_work_timed(&stage->placement, rank, 0, 1);
    if (rank_work_open(&stage->work, WORK_ALL, &err) ||
        rank_work_open(&stage->others, WORK_OTHERS, &err))
        fixture_bail(&err);
    device.calls[device.n_calls = 0] = '\0';
    device.marked_ms[0][1] = 2;
    device.marked_ms[2][3] = 5;
    device.marked_ms[4][5] = 11;
}

static int time_rank(struct stage *stage, struct exec_rank *rank)
{
    struct err err = {0};

    *rank = (struct exec_rank){0};
    return timing_rank(rank, &stage->work, &stage->others, NULL, 12, &err);
}

static void leave(struct stage *stage)
{
    rank_work_close(&stage->work);
    rank_work_close(&stage->others);
    placement_release(&stage->placement);
    comm_close(stage->fixture.comm);
    world_close(stage->fixture.world);
    arena_release(&stage->fixture.arena);
    recorded_release(&device);
}

static void test_shards(void)
{
    struct stage stage;
    struct exec_rank rank;

    begin(&stage, 1, 8);
    add_groups(&stage, 2, 0, 1);
    place(&stage, 0);
    device.health = (struct sample_health){.sm_mhz = 1000};
    device.later = (struct sample_health){.sm_mhz = 1980, .power_w = 400};
    device.device.top_sm_mhz = 2000;
    ok(!time_rank(&stage, &rank), "timed");
    ok(asked(&device, "(~0ff1~2bb3ee)4(h~0ff1~2bb3ree)12"),
       "four sets that warm up, twelve that are held");
    ok(device.rate > 0 && device.rate <= 1e-7F, "a tiny rate");
    ok(rank.forward.median_ms == 2 && rank.backward.median_ms == 5 &&
           rank.compute.median_ms == 7,
       "both together");
    ok(rank.phases_ms[PHASE_FORWARD] == 2 &&
           rank.phases_ms[PHASE_BACKWARD] == 5 &&
           rank.phases_ms[PHASE_UPDATE] == 0,
       "no replicas are updated");
    ok(rank.health.power_w == 400 && !rank.disturbed,
       "the device as it was afterwards");
    device.later.sm_mhz = 1000;
    ok(!time_rank(&stage, &rank) && rank.disturbed, "a clock that is low");
    leave(&stage);
}

static void test_replicas(void)
{
    struct stage stage;
    struct exec_rank rank;

    begin(&stage, 2, 8);
    add_groups(&stage, 1, 2, 1);
    place(&stage, 0);
    ok(!time_rank(&stage, &rank), "timed");
    ok(asked(&device, "(~0ff1~2bb3b4gg5eee)4(h~0ff1~2bb3b4gg5reee)12"),
       "a scatter of others' rows, and both replicas' update");
    ok(device.rate == -1 && device.dense_rate > 0 && device.dense_rate <= 1e-7F,
       "a scatter adds");
    ok(rank.forward.median_ms == 2 && rank.backward.median_ms == 16 &&
           rank.compute.median_ms == 18,
       "the update counts as backward");
    ok(rank.phases_ms[PHASE_FORWARD] == 2 &&
           rank.phases_ms[PHASE_BACKWARD] == 5 &&
           rank.phases_ms[PHASE_UPDATE] == 11,
       "and is a phase of its own");
    leave(&stage);
}

/* A repetition is held unless it is more than 256 pieces of work. It has 8,
 * plus 20 per group, plus 20 more per group of replicas and one per replica for
 * its update. */
static void test_held(void)
{
    static const struct {
        unsigned n, n_replicas, n_groups;
        bool is_held;
    } CASES[] = {
        {12, 0, 1, true}, {13, 0, 1, false}, {6, 8, 3, true},
        {6, 9, 3, false}, {11, 1, 1, false}, {1, 9, 1, true},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct stage stage;
        struct exec_rank rank;

        begin(&stage, 2, 8);
        add_groups(&stage, CASES[i].n, CASES[i].n_replicas, CASES[i].n_groups);
        place(&stage, 0);
        ok(!time_rank(&stage, &rank) &&
               (strchr(device.calls, 'h') != NULL) == CASES[i].is_held,
           "%u groups, %u replicas", CASES[i].n, CASES[i].n_replicas);
        leave(&stage);
    }
}

/* A rank without samples skips the forward of its replicas, but updates
 * them. */
static void test_no_samples(void)
{
    struct stage stage;
    struct exec_rank rank;

    begin(&stage, 2, 1);
    add_groups(&stage, 0, 1, 1);
    place(&stage, 0);
    ok(!time_rank(&stage, &rank) &&
           asked(&device, "(~01~23b4g5eee)4(h~01~23b4g5reee)12"),
       "rank 0 of one sample");
    leave(&stage);
    begin(&stage, 2, 1);
    add_groups(&stage, 0, 1, 1);
    place(&stage, 1);
    ok(!time_rank(&stage, &rank) &&
           asked(&device, "(~0f1~2b3b4g5eee)4(h~0f1~2b3b4g5reee)12"),
       "rank 1 has it");
    leave(&stage);
}

/* If a call fails, the timing ends and a hold is released. */
static void test_failures(void)
{
    static const struct {
        char failing;
        const char *calls;
    } CASES[] = {
        {'~', "~"},
        {'0', "~0"},
        {'f', "~0f"},
        {'1', "~0f1"},
        {'2', "~0f1~2"},
        {'b', "~0f1~2b"},
        {'3', "~0f1~2bb3"},
        {'4', "~0f1~2bb3b4"},
        {'g', "~0f1~2bb3b4g"},
        {'5', "~0f1~2bb3b4g5"},
        {'e', "~0f1~2bb3b4g5e"},
        {'h', "(~0f1~2bb3b4g5eee)4h"},
        {'r', "(~0f1~2bb3b4g5eee)4h~0f1~2bb3b4g5r"},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct stage stage;
        struct exec_rank rank;
        char want[200];
        size_t n = 0;

        /* two groups are looked up, so each 'f' stands for two calls */
        for (const char *at = CASES[i].calls; *at; at++) {
            want[n++] = *at;
            if (*at == 'f' && CASES[i].failing != 'f')
                want[n++] = 'f';
        }
        want[n] = '\0';
        begin(&stage, 2, 8);
        add_groups(&stage, 1, 1, 1);
        place(&stage, 0);
        device.failing = CASES[i].failing;
        ok(time_rank(&stage, &rank) == -1 && asked(&device, want), "%c fails",
           CASES[i].failing);
        device.failing = 0;
        leave(&stage);
    }
}

/* Each phase's exchange is timed on its own, in the order of a step. */
static void test_exchanges(void)
{
    struct timing exchanges[N_PHASES] = {{0}};
    struct exchange_set set = {0};
    struct input_link link = {0};
    struct input input = {0};
    struct stage stage;
    struct err err = {0};

    begin(&stage, 2, 8);
    add_groups(&stage, 1, 1, 1);
    place(&stage, 0);
    if (exchange_open(&set, &stage.placement, &stage.fixture.arena, &err) ||
        input_link_open(&link, &stage.placement, stage.fixture.world, &err) ||
        input_open(&input, &stage.placement, &link, 5, &err))
        fixture_bail(&err);
    ok(link.host && input.d_sent == input.sent,
       "one process sends ids from host to host");
    /* times are taken from ms[]: 1, 2, 3 and 4 in turn */
    device.marked_ms[0][1] = 0;
    ok(!timing_exchanges(exchanges, &set, &input, 5, &err), "timed %s",
       err.msg);
    ok(exchanges[PHASE_INPUT].median_ms == 1 &&
           exchanges[PHASE_OUTPUT].median_ms == 2 &&
           exchanges[PHASE_GRADIENT].median_ms == 3 &&
           exchanges[PHASE_REDUCE].median_ms == 4 &&
           exchanges[PHASE_FORWARD].median_ms == 0,
       "each for itself");
    is_i64(device.n_elapsed, 4 * (2 + 5), "two rounds that warm up, and five");
    input_close(&input);
    input_link_close(&link);
    exchange_close(&set);
    leave(&stage);
}

static void test_interrupted(void)
{
    struct stage stage;
    struct exec_rank rank;

    interrupt_install();
    begin(&stage, 1, 8);
    add_groups(&stage, 1, 0, 1);
    place(&stage, 0);
    raise(SIGTERM);
    ok(time_rank(&stage, &rank) == -1 && !device.n_calls,
       "nothing is timed for who wants to stop");
    leave(&stage);
}

int main(void)
{
    test_shards();
    test_replicas();
    test_held();
    test_no_samples();
    test_failures();
    test_exchanges();
    test_interrupted();
    return tap_done();
}
