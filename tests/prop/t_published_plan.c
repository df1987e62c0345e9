/* SPDX-License-Identifier: MIT */
/* The published placement of 1,935 tables on 96 ranks, priced by the torchrec
 * oracle. Every table and every rank must cost as much as in TorchRec's own
 * report. The report prints three decimals of the costs and of the lookups and
 * outputs per sample they depend on. A cost must lie in the range that this
 * rounding allows. */
#include "core/plan_price.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "io/tables_io.h"
#include "tests/golden.h"
#include "tests/tap.h"

#define N_RANKS 96
#define LIST "tables/meta_torchrec_1935.csv"
#define PLACEMENT "tables/meta_torchrec_1935_published_plan.csv"
/* Half of the last printed digit, in ms and in lookups or outputs per sample,
 * plus a margin for our own rounding. */
#define PRINTED 0.000501

/* Rank totals in ms: meta-pytorch/torchrec 376cac6a (BSD-3),
 * docs/wiki/sharding_stats_example.txt, column "Perf (ms)". */
static const double published_ms[N_RANKS] = {
    1026.650, 1163.757, 984.574,  1085.603, 1069.510, 990.262,  945.195,
    949.281,  954.056,  1011.722, 983.517,  949.833,  956.489,  980.959,
    977.338,  1040.214, 1066.852, 1124.857, 995.374,  957.487,  982.892,
    960.995,  1032.067, 972.567,  965.293,  1067.696, 941.809,  960.571,
    1300.325, 1008.436, 1035.888, 993.052,  1001.380, 952.189,  999.822,
    943.653,  949.437,  943.957,  949.205,  972.404,  941.983,  1034.254,
    943.957,  1184.477, 1018.081, 1042.706, 952.997,  950.512,  946.740,
    1149.849, 1003.172, 959.573,  1269.403, 942.698,  955.706,  942.023,
    1037.113, 965.529,  1179.145, 960.775,  965.022,  1023.090, 940.798,
    948.384,  951.528,  1286.698, 947.366,  1049.165, 993.138,  950.491,
    1082.202, 951.744,  949.016,  981.398,  1021.579, 960.252,  985.223,
    951.261,  1097.078, 975.000,  955.307,  967.181,  962.300,  993.387,
    944.243,  1058.908, 942.662,  989.581,  1114.212, 976.811,  951.328,
    978.282,  1126.357, 942.726,  949.312,  951.534,
};

/* One table of the placement. */
struct placed {
    double ms;          /* sum over its shards */
    size_t first_shard; /* index in the plan */
    uint32_t n_shards;
};

static void read_problem(struct problem *problem, struct arena *arena)
{
    static const struct tables_options options = {0};
    struct table_list list;
    struct err err = {0};

    if (tables_load(&list, golden_path(LIST, arena), &options, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    *problem = (struct problem){
        .tables = list.tables,
        .n_tables = list.n_tables,
        .source = list.source,
        .batch = N_RANKS * 2560,
        .memory_model = MEMORY_FULL,
        .buffers = BUFFERS_TRACED,
        .kinds = SHARD_ALL_KINDS,
        .cluster = {.n_devices = N_RANKS,
                    .devices_per_host = 8,
                    .memory_bytes = ARENA_NEW(arena, uint64_t, N_RANKS),
                    .reserve_bytes = ARENA_NEW(arena, uint64_t, N_RANKS)}};
    for (int r = 0; r < N_RANKS; r++)
        problem->cluster.memory_bytes[r] = UINT64_C(192) << 30;
    problem_find_hot_rows(problem, arena);
}

static uint32_t find_table(const struct problem *problem, const char *name)
{
    for (uint32_t i = 0; i < problem->n_tables; i++)
        if (!strcmp(problem->tables[i].name, name))
            return i;
    printf("Bail out! no table '%s'\n", name);
    exit(1);
}

/* Adds the shards of a table. The ranks "0-95" mean blocks of rows; "3/14/14"
 * means equal parts of the columns. */
static uint32_t add_shards(struct shard *shards, const struct problem *problem,
                           uint32_t t, char *ranks)
{
    struct shard whole = shard_whole(problem, t, 0);
    uint64_t block = (whole.row_end - 1) / N_RANKS + 1;
    uint32_t n = 1, width;

    if (strchr(ranks, '-')) {
        for (n = 0; n < N_RANKS; n++) {
            shards[n] = whole;
            shards[n].kind = SHARD_ROW;
            shards[n].device = n;
            shards[n].row_begin = n * block;
            if (n + 1 < N_RANKS)
                shards[n].row_end = (n + 1) * block;
        }
        return n;
    }
    for (const char *p = ranks; (p = strchr(p, '/')); p++)
        n++;
    width = whole.col_end / n;
    for (uint32_t i = 0; i < n; i++) {
        shards[i] = whole;
        shards[i].device = (uint32_t)strtoul(ranks, &ranks, 10);
        shards[i].col_begin = i * width;
        shards[i].col_end = (i + 1) * width;
        ranks++;
    }
    return n;
}

static void read_placement(struct plan *plan, struct placed *placed,
                           struct arena *arena)
{
    const char *path = golden_path(PLACEMENT, arena), *text;
    struct err err = {0};
    size_t len;

    if (file_read(&text, &len, path, arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    plan->shards = ARENA_NEW(arena, struct shard, 4096);
    for (char *line = arena_strndup(arena, text, len), *next; *line;
         line = next) {
        char *fields[4];
        uint32_t t;

        next = line + strcspn(line, "\n");
        if (*next)
            *next++ = '\0';
        if (*line == '#' || !strncmp(line, "name,", 5) ||
            golden_split(line, fields, 4) != 4)
            continue;
        t = find_table(&plan->problem, fields[0]);
        placed[t].ms = strtod(fields[3], NULL);
        placed[t].first_shard = plan->n_shards;
        placed[t].n_shards = add_shards(plan->shards + plan->n_shards,
                                        &plan->problem, t, fields[2]);
        plan->n_shards += placed[t].n_shards;
    }
}

/* Sets lookups and outputs per sample to the given values plus `by`, the
 * largest difference that prints the same. */
static void shift_figures(struct problem *problem, const struct table *given,
                          double by)
{
    for (size_t t = 0; t < problem->n_tables; t++) {
        struct table *table = &problem->tables[t];

        table->pooling_factor = fmax(0, given[t].pooling_factor + by);
        table->num_outputs = fmax(0, given[t].num_outputs + by);
    }
}

/* Returns the sum of the standalone costs of a table's shards, in ms. */
static double table_ms(const struct plan *plan, const struct placed *placed,
                       const struct oracle *oracle)
{
    double ms = 0;

    for (uint32_t i = 0; i < placed->n_shards; i++) {
        double sums[3], compute, term;

        oracle->ops->embed(oracle, &plan->shards[placed->first_shard + i], 1,
                           sums);
        oracle->ops->terms(oracle, sums, 1, &compute, &term);
        ms += term;
    }
    return ms;
}

static void check_tables(struct plan *plan, const struct placed *placed,
                         const struct oracle *oracle, struct arena *arena)
{
    size_t n_tables = plan->problem.n_tables;
    struct table *given = ARENA_NEW(arena, struct table, n_tables);
    unsigned n_between = 0, n_as_printed = 0;
    double worst = 0;

    memcpy(given, plan->problem.tables, n_tables * sizeof(*given));
    for (size_t t = 0; t < n_tables; t++) {
        double off = fabs(table_ms(plan, &placed[t], oracle) - placed[t].ms);

        worst = tap_worst(worst, off);
        n_as_printed += off <= PRINTED;
    }
    shift_figures(&plan->problem, given, -PRINTED);
    for (size_t t = 0; t < n_tables; t++)
        n_between +=
            table_ms(plan, &placed[t], oracle) <= placed[t].ms + PRINTED;
    shift_figures(&plan->problem, given, PRINTED);
    for (size_t t = 0; t < n_tables; t++)
        n_between +=
            table_ms(plan, &placed[t], oracle) >= placed[t].ms - PRINTED;
    shift_figures(&plan->problem, given, 0);
    is_i64(n_between, 2 * (int64_t)n_tables, "each table as published");
    printf("# %u tables to the last digit, the others off by up to %.6f ms\n",
           n_as_printed, worst);
}

static void check_ranks(const struct plan *plan, const char *what)
{
    double worst = 0, sum = 0;
    uint32_t slowest = 0;

    for (uint32_t r = 0; r < N_RANKS; r++) {
        sum += plan->devices[r].total_ms;
        worst =
            tap_worst(worst, fabs(plan->devices[r].total_ms - published_ms[r]));
        if (plan->devices[r].total_ms > plan->devices[slowest].total_ms)
            slowest = r;
    }
    ok(worst <= 0.005, "%s: each rank as published, off by up to %.6f ms", what,
       worst);
    is_i64(slowest, 28, "rank 28 is the slowest");
    is_near(plan->total_ms, 1300.325, PRINTED, "its total");
    is_near(sum / N_RANKS, 1003.567, PRINTED, "the mean");
}

/* Checks the plan after writing it to a file and reading it, as if a user had
 * written the file by hand. */
static void check_file(const struct plan *plan, struct arena *arena)
{
    const char *text = plan_to_json(plan, arena);
    struct oracle *oracle = NULL;
    struct plan read;
    struct err err = {0};

    if (!ok(!plan_from_json(&read, text, strlen(text), "plan.json", arena,
                            &err) &&
                !oracle_open(&oracle, read.cost.name, &read.problem, arena,
                             &err) &&
                !plan_price(&read, oracle, arena, &err),
            "plan.json is read and priced again %s", err.msg))
        return;
    check_ranks(&read, "plan.json");
}

/* Counts the tables that the cap on pooled outputs makes cheaper. */
static void check_new_outputs(const struct problem *problem,
                              const struct oracle *legacy, struct arena *arena)
{
    struct oracle *capped = NULL;
    struct err err = {0};
    unsigned n = 0, n_dearer = 0;

    if (!ok(!oracle_open(&capped, "torchrec", problem, arena, &err), "opens %s",
            err.msg))
        return;
    for (uint32_t t = 0; t < problem->n_tables; t++) {
        struct shard shard = shard_whole(problem, t, 0);
        double before[3], after[3];

        legacy->ops->embed(legacy, &shard, 1, before);
        capped->ops->embed(capped, &shard, 1, after);
        n += memcmp(before, after, sizeof(before)) != 0;
        n_dearer += after[0] > before[0] || after[1] > before[1];
    }
    is_i64(n, 190, "190 tables differ between new and legacy outputs");
    is_i64(n_dearer, 0, "no table costs more");
}

int main(void)
{
    struct plan plan = {0};
    struct placed *placed;
    struct oracle *oracle = NULL;
    struct err err = {0};
    struct arena arena = {0};

    if (!file_exists(golden_path(PLACEMENT, &arena)))
        tap_skip_all("no ../shared");
    read_problem(&plan.problem, &arena);
    placed = ARENA_NEW(&arena, struct placed, plan.problem.n_tables);
    read_placement(&plan, placed, &arena);
    is_i64((int64_t)plan.n_shards, 2421, "shards");
    if (ok(!oracle_open(&oracle, "torchrec:outputs=legacy", &plan.problem,
                        &arena, &err),
           "opens %s", err.msg)) {
        plan.version = "test";
        plan.search = "published";
        plan.stopped = "done";
        check_tables(&plan, placed, oracle, &arena);
        plan_derive_kinds(&plan);
        if (ok(!plan_price(&plan, oracle, &arena, &err), "priced %s", err.msg))
            check_ranks(&plan, "priced");
        plan.inputs_hash = plan_inputs_hash(&plan, &arena);
        check_file(&plan, &arena);
        check_new_outputs(&plan.problem, oracle, &arena);
    }
    arena_release(&arena);
    return tap_done();
}
