/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "search/infeasible.h"

#include "base/text.h"
#include "core/cluster.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#define MIB (UINT64_C(1) << 20)

/* Two tables of 244.1 MiB that must stay whole, on devices with different
 * memory. If the error message names a remedy, a plan must exist with that
 * remedy. */
struct uneven {
    const char *name;
    uint64_t memory_mib[2], reserve_mib[2];
    /* ends of the messages of search_full and search_reference; NULL: any */
    const char *full, *reference;
};

static const struct uneven cases[] = {
    {"a small device",
     {300, 100},
     {0, 0},
     "; it would fit with at least 245 MiB per GPU, or 3 GPUs, new ones like "
     "the roomiest",
     "; it would fit with at least 245 MiB per GPU, or 3 GPUs, new ones like "
     "the roomiest"},
    {"one that is used already",
     {300, 300},
     {0, 200},
     "; it would fit with at least 445 MiB per GPU, or 3 GPUs, new ones like "
     "the roomiest",
     "; it would fit with at least 445 MiB per GPU, or 3 GPUs, new ones like "
     "the roomiest"},
    {"the larger one is the fuller",
     {250, 600},
     {0, 400},
     "; it would fit with at least 489 MiB per GPU, or 3 GPUs, new ones like "
     "the roomiest",
     NULL},
};

static void set_memory(struct problem *problem, const struct uneven *test)
{
    for (uint32_t r = 0; r < 2; r++) {
        problem->cluster.memory_bytes[r] = test->memory_mib[r] * MIB;
        problem->cluster.reserve_bytes[r] = test->reserve_mib[r] * MIB;
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), n = strlen(end);

    return len >= n && !strcmp(text + len - n, end);
}

static void check_case(const struct uneven *test)
{
    const uint64_t rows[] = {1000000, 1000000};
    const uint32_t dims[] = {64, 64};
    struct search_options options;
    struct problem problem;
    struct oracle oracle;
    struct err err = {0};
    struct arena arena = {0};
    struct plan plan;

    fake_problem(&problem, rows, dims, 2, 2, 0, &arena);
    problem.kinds = SHARD_TABLE;
    set_memory(&problem, test);
    plan = (struct plan){.problem = problem};
    oracle = fake_oracle(&plan.problem);
    search_options_init(&options);
    options.effort = 100;
    ok(search_full(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN && ends_with(err.msg, test->full),
       "%s: %s", test->name, err.msg);
    ok(search_reference(&plan, &oracle, &options, &arena, &err) &&
           err.code == ERR_NO_PLAN &&
           (!test->reference || ends_with(err.msg, test->reference)),
       "%s: %s", test->name, err.msg);
    arena_release(&arena);
}

/* All tables of a group go to one device, which needs memory for all of them.
 * One MiB decides whether they fit. */
static void check_group(void)
{
    const uint64_t rows[] = {1000000, 1000000, 1000};
    const uint32_t dims[] = {64, 64, 64};
    struct search_options options;
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};

    search_options_init(&options);
    options.effort = 100;
    for (uint64_t mib = 487; mib < 491; mib++) {
        struct plan plan;
        struct err err = {0};
        bool is_found;

        fake_problem(&problem, rows, dims, 3, 3, mib * MIB, &arena);
        problem.kinds = SHARD_TABLE;
        problem.tables[0].group = problem.tables[1].group = "pair";
        plan = (struct plan){.problem = problem};
        oracle = fake_oracle(&plan.problem);
        is_found = !search_full(&plan, &oracle, &options, &arena, &err);
        ok(is_found == (mib >= 489), "a group of 488.3 MiB, on %u MiB",
           (unsigned)mib);
        ok(is_found ||
               (strstr(err.msg, "group 'pair'") && strstr(err.msg, "488 MiB")),
           "%s", err.msg);
    }
    arena_release(&arena);
}

/* The message names the largest memory item of a table (weights, optimizer or
 * outputs), with its bytes. */
static void check_items(void)
{
    static const struct {
        const char *name;
        uint64_t rows, batch;
        enum optimizer optimizer;
    } tests[] = {{"weights", 1000000, 64, OPTIMIZER_SGD},
                 {"optimizer", 1000000, 64, OPTIMIZER_ADAM},
                 {"outputs", 1000, 1000000, OPTIMIZER_ADAM}};

    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        const uint32_t dims[] = {64};
        char all[TEXT_BYTES_MAX], most[TEXT_BYTES_MAX], want[128];
        struct memory_items items;
        struct problem problem;
        struct oracle oracle;
        struct err err = {0};
        struct arena arena = {0};
        struct shard whole;

        fake_problem(&problem, &tests[i].rows, dims, 1, 2, MIB, &arena);
        problem.kinds = SHARD_TABLE;
        problem.memory_model = MEMORY_FULL;
        problem.batch = tests[i].batch;
        problem.tables[0].optimizer = tests[i].optimizer;
        for (uint32_t r = 0; r < 2; r++)
            problem.cluster.memory_bytes[r] += sample_memory(&problem).total;
        whole = shard_whole(&problem, 0, 0);
        items = shard_memory(&problem, &whole);
        oracle = fake_oracle(&problem);
        text_from_bytes(all, (double)items.total);
        text_from_bytes(
            most, fmax(fmax((double)items.weights, (double)items.optimizer),
                       (double)items.outputs));
        snprintf(want, sizeof want, "'t0' needs %s (%s %s)", all, most,
                 tests[i].name);
        ok(infeasible_check(&problem, &oracle, SHARD_ALL_KINDS, NULL, INFINITY,
                            &err) &&
               strstr(err.msg, want),
           "%s: %s", want, err.msg);
        arena_release(&arena);
    }
}

/* --- remedies that an error message names --- */

enum remedy {
    MEMORY,
    DEVICES,
    COLUMN_CUTS,
    ROW_CUTS,
    COLUMN_CUTS_TO_ALL,
    ROW_CUTS_TO_ALL,
    N_REMEDIES
};

/* A problem without a plan, and how often each remedy was named. */
struct sickness {
    struct problem problem;
    struct random_oracle oracle;
    struct arena arena;
    unsigned n_none; /* problems without a remedy */
    unsigned n_said[N_REMEDIES], n_helped[N_REMEDIES];
    /* remedies that still help with a little less */
    unsigned n_scant[N_REMEDIES];
};

/* Returns true if the problem packs into memory; otherwise err says why not. */
static bool has_plan(const struct problem *problem, struct sickness *sick,
                     struct err *err)
{
    struct random_oracle oracle = sick->oracle;
    const struct fit_failure failure = {.lacking_bytes = UINT64_MAX};
    struct snapshot packed = {0};
    struct search_space space;
    bool yes;

    oracle.base.problem = problem;
    if (infeasible_check(problem, &oracle.base, SHARD_ALL_KINDS, NULL, INFINITY,
                         err) ||
        space_init(&space, problem, &oracle.base, NULL, NULL, &sick->arena,
                   err))
        return false;
    yes = fit_by_memory(&packed, &space, NULL);
    snapshot_release(&packed);
    return yes || !infeasible_check(problem, &oracle.base, SHARD_ALL_KINDS,
                                    &failure, INFINITY, err);
}

static unsigned draw_kinds(struct rng *rng)
{
    static const unsigned kinds[] = {SHARD_TABLE,  SHARD_TABLE | SHARD_COLUMN,
                                     SHARD_COLUMN, SHARD_ROW,
                                     SHARD_ROW,    SHARD_TABLE | SHARD_ROW};

    return kinds[rng_below(rng, sizeof kinds / sizeof *kinds)];
}

/* Draws one host, hosts of two devices, or host and domain sizes that the user
 * asked for. The last of these hosts or domains may be incomplete. */
static void draw_hosts(struct cluster *cluster, struct rng *rng)
{
    struct err ignored = {0};

    if (cluster->n_devices % 2 == 0 && rng_below(rng, 2))
        cluster->devices_per_host = 2;
    if (rng_below(rng, 3))
        return;
    do {
        cluster->asked_host = 1 + (uint32_t)rng_below(rng, 4);
        cluster->asked_domain = 1 + (uint32_t)rng_below(rng, 4);
        cluster_take_hosts(cluster, cluster->asked_host, cluster->asked_domain);
    } while (cluster_check_hosts(cluster, &ignored));
}

/* Draws tables with few allowed kinds that need more memory than there is. The
 * devices have uneven memory, some of it reserved. If row blocks must be those
 * of the ranks, rows are cut over all devices or over one host. */
static void fall_ill(struct sickness *sick, struct rng *rng)
{
    const uint32_t n = 1 + (uint32_t)rng_below(rng, 5);
    const uint32_t n_devices = 1 + (uint32_t)rng_below(rng, 4);
    struct problem *problem = &sick->problem;
    uint64_t rows[5];
    uint32_t dims[5];
    double need = 0;

    for (uint32_t i = 0; i < n; i++) {
        rows[i] = 1 + (uint64_t)exp(rng_uniform(rng) * log(1e4));
        dims[i] = 4u << rng_below(rng, 4);
        need += (double)rows[i] * dims[i] * 4;
    }
    fake_problem(problem, rows, dims, n, n_devices, 0, &sick->arena);
    problem->kinds = draw_kinds(rng);
    for (uint32_t i = 0; i < n && rng_below(rng, 2); i++) {
        problem->tables[i].kinds = draw_kinds(rng);
        /* it needs an allowed kind */
        if (!(problem->tables[i].kinds & problem->kinds))
            problem->tables[i].kinds |= problem->kinds;
    }
    for (uint32_t r = 0; r < n_devices; r++) {
        double share = rng_uniform(rng),
               room = 3 * need * share * share / n_devices;

        problem->cluster.reserve_bytes[r] = rng_below(rng, 3) * 1000;
        problem->cluster.memory_bytes[r] =
            (uint64_t)room + problem->cluster.reserve_bytes[r];
    }
    draw_hosts(&problem->cluster, rng);
    random_oracle_init(&sick->oracle, problem, rng);
    if (rng_below(rng, 2))
        sick->oracle.base.row_cut = ROW_CUT_RANKS;
}

static uint64_t room_of(const struct problem *problem, uint32_t r)
{
    return problem->cluster.memory_bytes[r] - problem->cluster.reserve_bytes[r];
}

/* Allows more kinds in the problem, as --shard does, or in its tables, too. */
static void allow(struct problem *problem, unsigned kinds, bool to_all,
                  struct arena *arena)
{
    struct table *tables = ARENA_NEW(arena, struct table, problem->n_tables);

    problem->kinds |= kinds;
    for (size_t t = 0; t < problem->n_tables; t++) {
        tables[t] = problem->tables[t];
        tables[t].kinds |= to_all ? kinds : 0;
    }
    problem->tables = tables;
}

/* Applies a remedy as a user would who reads the message: at least the given
 * memory on each device, or the given number of devices. Further devices are
 * like the roomiest one. Hosts keep their size, or the size the user asked
 * for. */
static struct problem heal(const struct sickness *sick, enum remedy remedy,
                           uint64_t amount, struct arena *arena)
{
    const struct cluster *given = &sick->problem.cluster;
    struct problem problem = sick->problem;
    uint32_t n = remedy == DEVICES ? (uint32_t)amount : given->n_devices;
    uint32_t roomiest = 0;

    fake_cluster(&problem, n, 0, arena);
    if (given->devices_per_host < given->n_devices)
        problem.cluster.devices_per_host = given->devices_per_host;
    if (given->asked_host)
        cluster_take_hosts(&problem.cluster, given->asked_host,
                           given->asked_domain);
    for (uint32_t r = 0; r < given->n_devices; r++)
        if (room_of(&sick->problem, r) > room_of(&sick->problem, roomiest))
            roomiest = r;
    for (uint32_t r = 0; r < n; r++) {
        uint32_t like = r < given->n_devices ? r : roomiest;

        problem.cluster.reserve_bytes[r] = given->reserve_bytes[like];
        problem.cluster.memory_bytes[r] = given->memory_bytes[like];
        if (remedy == MEMORY && problem.cluster.memory_bytes[r] < amount)
            problem.cluster.memory_bytes[r] = amount;
    }
    if (remedy > DEVICES)
        allow(&problem,
              remedy == COLUMN_CUTS || remedy == COLUMN_CUTS_TO_ALL
                  ? SHARD_COLUMN
                  : SHARD_ROW,
              remedy >= COLUMN_CUTS_TO_ALL, arena);
    return problem;
}

/* Tries the remedy with the printed amount and with a little less: the next
 * printed digit or two, or one host. */
static void take(struct sickness *sick, enum remedy remedy, uint64_t amount,
                 const char *said)
{
    const struct cluster *given = &sick->problem.cluster;
    struct problem problem = heal(sick, remedy, amount, &sick->arena);
    struct err err = {0};
    uint64_t less = amount - (remedy == MEMORY ? amount / 50 : 1);

    sick->n_said[remedy]++;
    if (!cluster_check_hosts(&problem.cluster, &err) &&
        has_plan(&problem, sick, &err))
        sick->n_helped[remedy]++;
    else
        printf("# %s\n# not with that: %s\n", said, err.msg);
    while (remedy == DEVICES &&
           cluster_whole_hosts(given, (uint32_t)less) != less)
        less--;
    if (remedy > DEVICES || !less)
        return;
    problem = heal(sick, remedy, less, &sick->arena);
    sick->n_scant[remedy] += has_plan(&problem, sick, &err);
}

/* Tries all remedies of a message such as "with [at least ]445 MiB per GPU, or
 * 3 GPUs..., or row cuts allowed" */
static void take_all(struct sickness *sick, const char *said)
{
    const char *text = strstr(said, "it would fit with ");
    const char *devices;
    char number[24], unit[8], size[32];
    unsigned long n;
    uint64_t bytes;

    if (!text) {
        sick->n_none++;
        return;
    }
    text += strlen("it would fit with ");
    devices = strstr(text, "per GPU");
    if (devices) {
        text += strncmp(text, "at least ", 9) ? 0 : 9;
        if (sscanf(text, "%20s %7s", number, unit) == 2) {
            snprintf(size, sizeof(size), "%s%s", number, unit);
            if (text_to_bytes(size, &bytes))
                take(sick, MEMORY, bytes, said);
        }
        text = devices + strlen("per GPU");
    }
    text += strncmp(text, ", or ", 5) ? 0 : 5;
    if (sscanf(text, "%lu %*[A-Za-z ]", &n) == 1)
        take(sick, DEVICES, n, said);
    if (strstr(text, "column cuts allowed"))
        take(sick, strstr(text, "to all") ? COLUMN_CUTS_TO_ALL : COLUMN_CUTS, 0,
             said);
    if (strstr(text, "row cuts allowed"))
        take(sick, strstr(text, "to all") ? ROW_CUTS_TO_ALL : ROW_CUTS, 0,
             said);
}

/* With fewer problems, some remedies are never named. */
#define ILL_ENOUGH 1500

static void check_remedies(void)
{
    static const char *const names[N_REMEDIES] = {"memory",
                                                  "devices",
                                                  "column cuts",
                                                  "row cuts",
                                                  "column cuts of all",
                                                  "row cuts of all"};
    const unsigned n = (unsigned)tap_size(ILL_ENOUGH, 6000);
    struct sickness sick = {0};
    unsigned n_sick = 0;

    for (unsigned i = 0; i < n; i++) {
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, 31, i);
        fall_ill(&sick, &rng);
        if (!has_plan(&sick.problem, &sick, &err) && err.code == ERR_NO_PLAN) {
            n_sick++;
            take_all(&sick, err.msg);
        }
        arena_release(&sick.arena);
    }
    ok(n_sick > n / 3 && sick.n_none < n_sick / 10,
       "%u of %u have no plan, for %u nothing would help", n_sick, n,
       sick.n_none);
    for (unsigned i = 0; i < N_REMEDIES; i++)
        ok((sick.n_said[i] > 0 || n < ILL_ENOUGH) &&
               sick.n_helped[i] == sick.n_said[i] &&
               sick.n_scant[i] <= sick.n_said[i] / 20,
           "%s: named %u times, helps %u times; a little less helps %u times",
           names[i], sick.n_said[i], sick.n_helped[i], sick.n_scant[i]);
}

/* A cluster of one host stays one host when devices are added. Rows are cut
 * over all of its devices, including the smallest, and not over a host made of
 * the roomy ones. */
static void check_one_host(void)
{
    const uint64_t rows[] = {1000000};
    const uint32_t dims[] = {64};
    struct sickness sick = {0};
    struct err err = {0};
    struct rng rng;

    fake_problem(&sick.problem, rows, dims, 1, 2, 300 * MIB, &sick.arena);
    sick.problem.kinds = SHARD_ROW;
    /* so that more blocks take more memory in all */
    sick.problem.memory_model = MEMORY_FULL;
    sick.problem.cluster.memory_bytes[0] = 50 * MIB;
    rng_init(&rng, 0, 0);
    random_oracle_init(&sick.oracle, &sick.problem, &rng);
    sick.oracle.base.row_cut = ROW_CUT_RANKS;
    ok(!has_plan(&sick.problem, &sick, &err) &&
           strstr(err.msg, " 5 GPUs, new ones like the roomiest"),
       "244 MiB in blocks of 50 at most: %s", err.msg);
    arena_release(&sick.arena);
}

/* If a table fits nowhere for any amount of memory, the message names that
 * table. */
static void check_nowhere(void)
{
    const uint64_t rows[] = {10000000, 10};
    const uint32_t dims[] = {64, 4};
    struct sickness sick = {0};
    struct err err = {0};
    struct rng rng;

    fake_problem(&sick.problem, rows, dims, 2, 1, 300 * MIB, &sick.arena);
    sick.problem.tables[1].kinds = SHARD_COLUMN;
    rng_init(&rng, 0, 0);
    random_oracle_init(&sick.oracle, &sick.problem, &rng);
    ok(!has_plan(&sick.problem, &sick, &err) && err.code == ERR_USAGE &&
           ends_with(err.msg, " per piece, for 1 GPU"),
       "four columns that are to be cut: %s", err.msg);
    arena_release(&sick.arena);
}

/* No device of more than 8 PiB is tried, because doubles round such bytes:
 * halving between 4.69 and 9.38 PiB did not end. */
static void check_immense(void)
{
    static const char *const said[] = {
        "; it would fit with 4.00 PiB per GPU",
        "; no remedy was found, neither memory, GPUs nor cuts"};
    const uint32_t dims[] = {64};

    for (unsigned i = 0; i < 2; i++) {
        const uint64_t rows[] = {(i ? UINT64_C(166) : 128) << 37};
        struct sickness sick = {0};
        struct err err = {0};
        struct rng rng;

        fake_problem(&sick.problem, rows, dims, 1, 2, 300 * MIB, &sick.arena);
        sick.problem.kinds = SHARD_TABLE;
        rng_init(&rng, 0, 0);
        random_oracle_init(&sick.oracle, &sick.problem, &rng);
        ok(!has_plan(&sick.problem, &sick, &err) && ends_with(err.msg, said[i]),
           "%s PiB: %s", i ? "5.19" : "4", err.msg);
        arena_release(&sick.arena);
    }
}

/* A table of one row cannot be halved by rows. If it could, a half would need
 * memory only for its outputs. The memory that the message names must exceed
 * the available memory. */
static void check_one_row(void)
{
    const uint64_t rows[] = {1000, 1};
    const uint32_t dims[] = {64, 128};
    const unsigned kinds[] = {SHARD_TABLE, SHARD_ALL_KINDS,
                              SHARD_TABLE | SHARD_ROW};

    for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct problem problem;
        struct random_oracle oracle;
        struct rng rng;
        struct arena arena = {0};
        struct err err = {0};

        fake_problem(&problem, rows, dims, 2, 2, 300 * MIB, &arena);
        problem.kinds = kinds[i];
        problem.memory_model = MEMORY_FULL;
        problem.batch = 1000;
        problem.tables[1].pooling_factor = 200000;
        for (uint32_t r = 0; r < 2; r++)
            problem.cluster.memory_bytes[r] += sample_memory(&problem).total;
        rng_init(&rng, 0, 0);
        random_oracle_init(&oracle, &problem, &rng);
        ok(infeasible_check(&problem, &oracle.base, SHARD_ALL_KINDS, NULL,
                            INFINITY, &err) &&
               !strcmp(err.shortage.subject, "table") &&
               err.shortage.need_bytes > err.shortage.have_bytes &&
               strstr(err.msg, "input)"),
           "one row, kinds %x: %s", kinds[i], err.msg);
        arena_release(&arena);
    }
}

/* A search that rules out all placements of whole tables proves that there is
 * no plan only if no table may be cut. The test allows cuts for each subset of
 * tables. */
static void check_proof(void)
{
    const uint64_t rows[] = {1000000, 1000000, 1000000};
    const uint32_t dims[] = {64, 64, 64};
    const struct fit_failure failure = {.is_proven = true};

    for (unsigned cut = 0; cut < 8; cut++) {
        struct problem problem;
        struct oracle oracle;
        struct arena arena = {0};
        struct err err = {0};

        fake_problem(&problem, rows, dims, 3, 2, 400 * MIB, &arena);
        for (unsigned t = 0; t < 3; t++)
            problem.tables[t].kinds =
                cut >> t & 1 ? SHARD_TABLE | SHARD_COLUMN : SHARD_TABLE;
        oracle = fake_oracle(&problem);
        ok(infeasible_check(&problem, &oracle, SHARD_TABLE, &failure, INFINITY,
                            &err) &&
               !strncmp(err.msg, cut ? "no plan was found" : "no plan fits",
                        12),
           "%s may be cut: %s", cut ? "some" : "none", err.msg);
        arena_release(&arena);
    }
}

/* A refusal does not look for remedies after the time limit. */
static void check_late(void)
{
    const uint64_t rows[] = {1000};
    const uint32_t dims[] = {64};
    struct problem problem;
    struct oracle oracle;
    struct arena arena = {0};
    struct err err = {0};

    fake_problem(&problem, rows, dims, 1, 2, 1000, &arena);
    oracle = fake_oracle(&problem);
    ok(infeasible_check(&problem, &oracle, SHARD_TABLE, NULL, 1e-9, &err) &&
           strstr(err.msg, "the time limit ended the search for a remedy"),
       "late: %s", err.msg);
    ok(infeasible_check(&problem, &oracle, SHARD_TABLE, NULL, INFINITY, &err) &&
           strstr(err.msg, "it would fit with"),
       "in time: %s", err.msg);
    arena_release(&arena);
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
    check_group();
    check_items();
    check_one_host();
    check_nowhere();
    check_immense();
    check_one_row();
    check_proof();
    check_remedies();
    check_late();
    return tap_done();
}
