/* SPDX-License-Identifier: MIT */
#include "search/planners.h"

#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#define GIB (UINT64_C(1) << 30)

/* Additive oracle: a shard costs the work of its share of the table's rows and
 * columns, plus one. */
static void shard_embed(const struct oracle *oracle, const struct shard *shards,
                        size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct table *table = &oracle->problem->tables[shards[i].table];

        out[i] = 1 + table->pooling_factor *
                         (double)(shards[i].row_end - shards[i].row_begin) /
                         (double)table->num_embeddings *
                         (shards[i].col_end - shards[i].col_begin) / 128;
    }
}

static void shard_compute(const struct oracle *oracle, const double *sums,
                          size_t n, double *compute_ms)
{
    (void)oracle;
    memcpy(compute_ms, sums, n * sizeof(*sums));
}

static void shard_comm(const struct oracle *oracle, size_t n,
                       const double *sums, const double *compute_ms,
                       double *fwd_ms, double *bwd_ms)
{
    (void)sums;
    (void)compute_ms;
    memset(fwd_ms, 0, n * oracle->problem->cluster.n_devices * sizeof(*fwd_ms));
    memset(bwd_ms, 0, n * oracle->problem->cluster.n_devices * sizeof(*bwd_ms));
}

static void shard_terms(const struct oracle *oracle, const double *sums,
                        size_t n, double *compute_ms, double *terms_ms)
{
    shard_compute(oracle, sums, n, compute_ms);
    memcpy(terms_ms, compute_ms, n * sizeof(*terms_ms));
}

static struct oracle additive_oracle(const struct problem *problem)
{
    static const struct oracle_ops ops = {.embed = shard_embed,
                                          .compute = shard_compute,
                                          .comm = shard_comm,
                                          .terms = shard_terms};

    return (struct oracle){.ops = &ops,
                           .problem = problem,
                           .cost.name = "additive",
                           .cost.hash = "0123456789abcdef",
                           .cost.comm = "made up",
                           .width = 1,
                           .n_terms = 1,
                           .is_additive = true,
                           .kinds = SHARD_ALL_KINDS,
                           .row_cut = ROW_CUT_RANKS,
                           .floor_lane = -1};
}

static const struct contender *find(const char *name)
{
    for (const struct contender *rival = search_contenders; rival->name;
         rival++)
        if (!strcmp(rival->name, name))
            return rival;
    return NULL;
}

/* Uses only the limits of the inputs. */
static int place_within(struct plan *plan, const char *name,
                        struct contender_inputs inputs,
                        const struct problem *problem, struct arena *arena,
                        struct err *err)
{
    struct oracle oracle = additive_oracle(problem);
    const double begin_ms = clock_ms();

    inputs.oracle = inputs.torchrec = &oracle;
    *plan = (struct plan){.problem = *problem};
    *err = (struct err){0};
    if (contender_place(plan, find(name), &inputs, arena, err))
        return -1;
    judge_time(plan, begin_ms);
    return judge_plan(plan, &oracle, arena, err);
}

static int place(struct plan *plan, const char *name,
                 const struct problem *problem, struct arena *arena,
                 struct err *err)
{
    return place_within(plan, name, (struct contender_inputs){0}, problem,
                        arena, err);
}

/* Returns the sharding and devices of each table as text, such as "0 table 3; 1
 * column 64 0 1". For cut tables the text has the columns or rows of the first
 * piece. */
static const char *describe(const struct plan *plan, struct arena *arena)
{
    const char *text = "";

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        if (!i || shard[-1].table != shard->table) {
            text = arena_printf(arena, "%s%s%u %s", text, i ? "; " : "",
                                shard->table, shard_kind_name(shard->kind));
            if (shard->kind == SHARD_COLUMN)
                text = arena_printf(arena, "%s %u", text,
                                    shard->col_end - shard->col_begin);
            if (shard->kind == SHARD_ROW)
                text = arena_printf(
                    arena, "%s %llu", text,
                    (unsigned long long)(shard->row_end - shard->row_begin));
        }
        text = arena_printf(arena, "%s %u", text, shard->device);
    }
    return text;
}

struct rival_case {
    const char *name, *rival;
    uint32_t n_devices, n_local;
    unsigned kinds;
    uint64_t memory_bytes;
    size_t n_tables;
    uint64_t rows[4];
    uint32_t dims[4];
    double pooling[4];
    const char *want; /* the plan, or the reason for no plan */
};

static const struct rival_case cases[] = {
    {"whole tables by size, to the least loaded",
     "torchrec",
     2,
     2,
     SHARD_TABLE,
     GIB,
     4,
     {1000, 900, 800, 700},
     {128, 128, 128, 128},
     {1, 9, 4, 5},
     "0 table 0; 1 table 1; 2 table 0; 3 table 0"},
    {"the size is TorchRec's storage: 5 rows less, but more look-ups",
     "torchrec",
     2,
     2,
     SHARD_TABLE,
     GIB,
     2,
     {1000, 995},
     {128, 128},
     {1, 90},
     "0 table 1; 1 table 0"},
    {"equal columns of at least 128",
     "torchrec",
     2,
     2,
     SHARD_COLUMN,
     GIB,
     1,
     {1000},
     {320},
     {9},
     "0 column 160 0 1"},
    {"192 columns have no such parts",
     "torchrec",
     2,
     2,
     SHARD_TABLE | SHARD_COLUMN,
     GIB,
     1,
     {1000},
     {192},
     {9},
     "0 table 0"},
    {"rows over all: 31 + 4/3 on each, not 31 + 2 on one",
     "torchrec",
     3,
     3,
     SHARD_TABLE | SHARD_ROW,
     GIB,
     2,
     {1000, 10},
     {128, 128},
     {90, 1},
     "0 row 334 0 1 2; 1 row 4 0 1 2"},
    {"rows over a host: 46 on each, not 2 x 23.5",
     "torchrec",
     4,
     2,
     SHARD_ROW,
     600 * 512,
     2,
     {1000, 1000},
     {128, 128},
     {90, 90},
     "0 row 500 0 1; 1 row 500 2 3"},
    {"small tables everywhere",
     "torchrec",
     2,
     2,
     SHARD_REPLICATE,
     GIB,
     2,
     {10, 20},
     {128, 128},
     {1, 1},
     "0 replicate 0 1; 1 replicate 0 1"},
    {"one does not fit",
     "torchrec",
     2,
     2,
     SHARD_TABLE,
     512 * 999,
     1,
     {1000},
     {128},
     {1},
     "no plan was found: none of TorchRec's 9 proposals fits"},
    {"fewer rows than ranks",
     "torchrec",
     4,
     4,
     SHARD_ROW,
     GIB,
     1,
     {5},
     {128},
     {1},
     "0 row 2 0 1 2"},
    {"no type for one row",
     "torchrec",
     4,
     4,
     SHARD_ROW,
     GIB,
     1,
     {1},
     {128},
     {1},
     "no plan was found: TorchRec's planner has no sharding type for table "
     "'t0'"},

    {"the hottest table is halved, then the next",
     "hugectr",
     2,
     2,
     SHARD_TABLE | SHARD_COLUMN,
     GIB,
     2,
     {100000, 100000},
     {128, 128},
     {90, 9},
     "0 column 64 0 1; 1 column 64 0 1"},
    {"as little as possible is cut",
     "hugectr",
     2,
     2,
     SHARD_TABLE | SHARD_COLUMN,
     GIB,
     2,
     {100000, 100000},
     {128, 128},
     {9, 9},
     "0 table 1; 1 table 0"},
    {"below 8 MB of weights and state",
     "hugectr",
     2,
     2,
     SHARD_TABLE | SHARD_REPLICATE,
     GIB,
     2,
     {7812, 7813},
     {128, 128},
     {9, 9},
     "0 replicate 0 1; 1 table 0"},
    {"rows over all ranks are priced, over two of four are not",
     "hugectr",
     4,
     4,
     SHARD_TABLE | SHARD_ROW,
     GIB,
     1,
     {100000},
     {128},
     {90},
     "0 row 25000 0 1 2 3"},
    {"halved until it fits",
     "hugectr",
     4,
     4,
     SHARD_TABLE | SHARD_COLUMN,
     30000 * 512,
     1,
     {100000},
     {128},
     {1},
     "0 column 32 0 1 2 3"},
    {"no cut is allowed",
     "hugectr",
     4,
     4,
     SHARD_TABLE,
     30000 * 512,
     1,
     {100000},
     {128},
     {1},
     "no plan was found: HugeCTR's planner has none that fits"},
    {"nor whole",
     "hugectr",
     4,
     4,
     SHARD_COLUMN,
     GIB,
     1,
     {100000},
     {6},
     {1},
     "no plan was found: HugeCTR's planner has no way to cut table 't0'"},
};

static void check_cases(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct rival_case *test = &cases[i];
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;
        struct err err;
        int rc;

        fake_problem(&problem, test->rows, test->dims, test->n_tables,
                     test->n_devices, test->memory_bytes, &arena);
        problem.cluster.devices_per_host = test->n_local;
        problem.kinds = test->kinds;
        for (size_t t = 0; t < test->n_tables; t++)
            problem.tables[t].pooling_factor = test->pooling[t];
        rc = place(&plan, test->rival, &problem, &arena, &err);
        is_str(rc ? err.msg : describe(&plan, &arena), test->want, test->name);
        if (rc)
            is_i64(err.code, ERR_NO_PLAN, "no plan");
        arena_release(&arena);
    }
}

/* A hot table is on some rank of a host. Rows that fit on one host go to the
 * other host, for each rank of the hot table. */
static void check_hosts(void)
{
    for (unsigned i = 0; i < 4; i++) {
        const uint64_t rows[] = {2000, 1000};
        const uint32_t dims[] = {128, 128};
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;
        struct err err;

        fake_problem(&problem, rows, dims, 2, 4, GIB, &arena);
        problem.cluster.devices_per_host = 2;
        problem.tables[0].kinds = SHARD_TABLE;
        problem.tables[0].pooling_factor = 90;
        problem.tables[1].kinds = SHARD_ROW;
        for (uint32_t r = 0; r < 4; r++)
            /* only rank i has memory for the hot table; all have memory for
             * rows */
            if (r != i)
                problem.cluster.memory_bytes[r] = 1000 * 128 * 4;
        if (ok(!place(&plan, "torchrec", &problem, &arena, &err),
               "a hot table on rank %u %s", i, err.msg))
            is_str(describe(&plan, &arena),
                   arena_printf(&arena, "0 table %u; 1 row 500 %s", i,
                                i < 2 ? "2 3" : "0 1"),
                   "rows are on the other host");
        arena_release(&arena);
    }
}

/* If ranks are equally loaded, TorchRec takes those first that have the lowest
 * rank within their host, and among these the lowest rank. */
static void check_ties(void)
{
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;
    struct err err;

    fake_equal_problem(&problem, 6, 4, &arena);
    problem.cluster.devices_per_host = 2;
    if (ok(!place(&plan, "torchrec", &problem, &arena, &err), "ties %s",
           err.msg))
        is_str(describe(&plan, &arena),
               "0 table 0; 1 table 2; 2 table 1; 3 table 3; 4 table 0; "
               "5 table 2",
               "host by host");
    arena_release(&arena);
}

/* One rank has no other to share with: no replicas, no blocks of rows. */
static void check_one_rank(void)
{
    static const unsigned kinds[] = {SHARD_ROW, SHARD_REPLICATE,
                                     SHARD_ALL_KINDS};
    const uint64_t rows[] = {2000};
    const uint32_t dims[] = {128};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;
        struct err err;
        int rc;

        fake_problem(&problem, rows, dims, 1, 1, GIB, &arena);
        problem.kinds = kinds[i];
        rc = place(&plan, "torchrec", &problem, &arena, &err);
        is_str(rc ? err.msg : describe(&plan, &arena),
               kinds[i] & SHARD_TABLE
                   ? "0 table 0"
                   : "no plan was found: TorchRec's planner has no sharding "
                     "type for table 't0'",
               "on one rank");
        arena_release(&arena);
    }
}

/* Counts the pieces that are narrower than allowed. */
static unsigned count_narrow(const struct plan *plan)
{
    unsigned n = 0;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        uint32_t width = shard->col_end - shard->col_begin;

        n += width < problem_min_width(&plan->problem) &&
             width < plan->problem.tables[shard->table].dim;
    }
    return n;
}

static void check_random(void)
{
    for (const struct contender *rival = find("torchrec");
         rival->author && !rival->needs_tiers; rival++) {
        unsigned n_legal = 0, n_short = 0, n_same = 0, n_narrow = 0, n = 300;

        for (unsigned i = 0; i < n; i++) {
            struct plan plan, again;
            struct problem problem;
            struct arena arena = {0};
            struct err err;
            struct rng rng;

            rng_init(&rng, i, 11);
            fake_random(&problem, &rng, 1 + 0.2 * (i % 10), &arena);
            if (problem.cluster.n_devices % 2 == 0 && i % 2)
                problem.cluster.devices_per_host /= 2;
            problem.min_width = i % 3 * 32;
            if (place(&plan, rival->name, &problem, &arena, &err)) {
                n_short += err.code == ERR_NO_PLAN;
                if (err.code != ERR_NO_PLAN)
                    printf("# %u: %s\n", i, err.msg);
            } else {
                n_legal++;
                n_narrow += count_narrow(&plan);
                n_same +=
                    !place(&again, rival->name, &problem, &arena, &err) &&
                    !strcmp(describe(&again, &arena), describe(&plan, &arena));
            }
            arena_release(&arena);
        }
        is_i64(n_legal + n_short, n, "every plan is legal, or does not fit");
        is_i64(n_same, n_legal, "and the same each time");
        is_i64(n_narrow, 0, "no piece is narrower than it may be");
        ok(n_legal > n / 2, "%s: %u of %u fit", rival->name, n_legal, n);
    }
}

static void check_constraints(void)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {128, 128};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;
    struct err err;

    fake_problem(&problem, rows, dims, 2, 2, GIB, &arena);
    problem.tables[1].device = 0;
    ok(place(&plan, "torchrec", &problem, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "no pins");
    is_str(err.msg,
           "no plan was found: table 't1' is pinned to a GPU, which TorchRec's "
           "planner does not support",
           "and says so");
    problem.tables[0].group = "g";
    ok(place(&plan, "hugectr", &problem, &arena, &err) &&
           err.code == ERR_NO_PLAN,
       "no groups");
    is_str(err.msg,
           "no plan was found: table 't0' is in a group, which HugeCTR's "
           "planner does not support",
           "and says so");
    arena_release(&arena);
}

/* HugeCTR's planner cuts a table over all GPUs if each of them gets some rows,
 * even if each GPU holds no more than an even share. With one byte less it
 * finds no plan. This is tested for many numbers of rows. */
static void check_all_shares(void)
{
    const uint32_t dims[] = {128};
    unsigned n_wrong = 0, n_cut = 0;

    for (uint64_t i = 2 * 2; i < 2 * 40; i++)
        for (uint32_t n = 2; n < 9; n++) {
            const uint64_t rows = i / 2, less = i % 2;
            const uint64_t share = (rows - 1) / n + 1;
            struct problem problem;
            struct arena arena = {0};
            struct plan plan;
            struct err err;
            bool found;

            fake_problem(&problem, &rows, dims, 1, n, share * 128 * 4 - less,
                         &arena);
            problem.kinds = SHARD_TABLE | SHARD_ROW;
            found = !place(&plan, "hugectr", &problem, &arena, &err);
            n_cut += found;
            n_wrong += found != (!less && share * (n - 1) < rows) ||
                       (!found && err.code != ERR_NO_PLAN);
            arena_release(&arena);
        }
    ok(n_cut > 100 && !n_wrong, "%u row cuts, %u wrong", n_cut, n_wrong);
}

/* Replicas need memory on all GPUs. If any one GPU lacks it, there is no
 * plan. */
static void check_replicas(void)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {128, 128};

    for (uint32_t r = 0; r < 5; r++) {
        struct problem problem;
        struct arena arena = {0};
        struct plan plan;
        struct err err;

        fake_problem(&problem, rows, dims, 2, 4, 2 * 1000 * 128 * 4, &arena);
        problem.kinds = SHARD_REPLICATE;
        problem.cluster.memory_bytes[r % 4] -= r < 4;
        (void)place(&plan, "hugectr", &problem, &arena, &err);
        is_str(err.msg,
               r < 4 ? "no plan was found: HugeCTR's planner replicates table "
                       "'t1', for which there is no room"
                     : "",
               "replicas on GPUs of which one has room for a byte less");
        arena_release(&arena);
    }
}

/* The first proposal is placed under any limit. */
static void check_limit(void)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {128, 128};
    struct problem problem;
    struct arena arena = {0};
    struct plan plan;
    struct err err;

    fake_problem(&problem, rows, dims, 2, 2, GIB, &arena);
    if (ok(!place_within(&plan, "torchrec",
                         (struct contender_inputs){.limit_ms = 1e-9}, &problem,
                         &arena, &err),
           "a plan in no time %s", err.msg))
        is_str(plan.stopped, "time", "the plan says that it was stopped");
    if (ok(!place_within(&plan, "torchrec",
                         (struct contender_inputs){.limit_proposals = 1},
                         &problem, &arena, &err),
           "a plan of few proposals %s", err.msg))
        is_str(plan.stopped, "proposals", "the plan says so, too");
    if (ok(!place(&plan, "torchrec", &problem, &arena, &err), "a plan %s",
           err.msg))
        is_str(plan.stopped, "done", "no limit, none reached");
    arena_release(&arena);
}

/* After end_ms no planner begins, and each says why it has no plan. */
static void check_late(void)
{
    const uint64_t rows[] = {1000, 1000};
    const uint32_t dims[] = {128, 128};
    struct problem problem;
    struct arena arena = {0};
    struct rivals late = {.arena = &arena}, all = {.arena = &arena};
    struct err err = {0};

    fake_problem(&problem, rows, dims, 2, 2, GIB, &arena);
    const struct oracle oracle = additive_oracle(&problem);
    struct contender_inputs inputs = {.oracle = &oracle, .torchrec = &oracle};

    ok(!rivals_ask(&all, &problem, inputs, &err), "no limit");
    inputs.end_ms = 1e-9;
    ok(!rivals_ask(&late, &problem, inputs, &err), "the time is over");
    for (size_t i = 0; i < N_RIVALS && late.list[i].by; i++)
        ok(late.list[i].by == all.list[i].by &&
               isfinite(all.list[i].plan.total_ms) &&
               isinf(late.list[i].plan.total_ms) && late.list[i].why_not &&
               strstr(late.list[i].why_not, "time limit"),
           "%s: %s", late.list[i].by->name, late.list[i].why_not);
    arena_release(&arena);
}

/* TorchRec's planner is not run on more than 50,000 tables. No planner is run
 * here, because the time is over. */
static void check_long(void)
{
    struct arena arena = {0};
    uint64_t *rows = ARENA_NEW(&arena, uint64_t, 50001);
    uint32_t *dims = ARENA_NEW(&arena, uint32_t, 50001);
    struct problem problem;
    struct err err = {0};

    for (size_t t = 0; t < 50001; t++) {
        rows[t] = 10;
        dims[t] = 4;
    }
    fake_problem(&problem, rows, dims, 50001, 2, GIB, &arena);
    const struct oracle oracle = additive_oracle(&problem);
    const struct contender_inputs inputs = {
        .oracle = &oracle, .torchrec = &oracle, .end_ms = 1e-9};

    for (; problem.n_tables >= 50000; problem.n_tables--) {
        const bool is_long = problem.n_tables > 50000;
        struct rivals rivals = {.arena = &arena};
        size_t i = 0;

        ok(!rivals_ask(&rivals, &problem, inputs, &err), "%zu tables",
           problem.n_tables);
        while (strcmp(rivals.list[i].by->name, "torchrec") != 0)
            i++;
        is_str(rivals.list[i].why_not,
               is_long ? "the list is too long for it"
                       : "the time limit was reached",
               "whether TorchRec's planner would be run");
    }
    arena_release(&arena);
}

int main(void)
{
    check_long();
    check_cases();
    check_hosts();
    check_ties();
    check_one_rank();
    check_random();
    check_constraints();
    check_all_shares();
    check_replicas();
    check_limit();
    check_late();
    return tap_done();
}
