/* SPDX-License-Identifier: MIT */
/* The problem, the job and the search options that result from each command
 * line, or the error. Also for command lines that re-plan a current plan. */
#include "cli/planning.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file_write.h"
#include "base/parallel.h"
#include "tests/unit/cli/plan_line.h"

static struct arena arena;
static struct err err;
static char folder[] = "/tmp/t_planning_XXXXXX";
static const char *plain, *over;

static struct cli *parse(const char *list, const char *line)
{
    return plan_line(arena_printf(&arena, "%s --gpus 2 %s", list, line), &arena,
                     &err);
}

/* A current plan for re-planning. The rows of "a" have their own seed, "b" had
 * a different number of rows, and the job and the minimum width are not the
 * defaults. */
static struct table old_tables[2];
static struct shard old_shards[2];

static struct problem stands(void)
{
    for (unsigned t = 0; t < 2; t++) {
        table_init(&old_tables[t]);
        old_tables[t].name = t ? "b" : "a";
        old_tables[t].num_embeddings = 1000;
        old_tables[t].dim = 16;
        old_tables[t].row_seed = 77 + t;
        old_shards[t] = (struct shard){.table = t};
    }
    return (struct problem){.tables = old_tables,
                            .n_tables = 2,
                            .min_width = 12,
                            .cluster = {.n_devices = 2, .devices_per_host = 2},
                            .job = {.pipeline = PIPELINE_NONE,
                                    .n_chunks = 3,
                                    .dense_ms = {4, 5},
                                    .dedup = DEDUP_IDS,
                                    .asks_host = true,
                                    .host_ms = 6}};
}

static const char *problem_of(const char *list, const char *line,
                              const struct problem *like)
{
    struct cli *cli = parse(list, line);
    struct problem problem;
    const struct job *job = &problem.job;

    if (!cli || planning_problem(&problem, list, like, cli, &err))
        return err.msg;
    return arena_printf(
        &arena,
        "kinds %x%s cut %d width %u memory %d dense %d job %d/%u/%g,%g/%d/%d%g "
        "dim %u pooling %g seeds %d%d hot %d",
        problem.kinds, problem.asks_for_grids ? "+grid" : "", problem.row_cut,
        problem.min_width, problem.memory_model, problem.dense_optimizer,
        job->pipeline, job->n_chunks, job->dense_ms[0], job->dense_ms[1],
        job->dedup, job->asks_host, job->host_ms, problem.tables[0].dim,
        problem.tables[0].pooling_factor, problem.tables[0].row_seed == 77,
        problem.tables[1].row_seed == 78, problem.hot != NULL);
}

static const char *const lines[] = {
    "",
    "--shard table",
    "--shard table,row",
    "--shard column,row",
    "--shard grid",
    "--shard table,column,row,grid,replicate",
    "--shard x",
    "--shard ",
    "--min-width 8",
    "--min-width 6",
    "--min-width 0",
    "--row-cut any",
    "--memory-model weights",
    "--dense-optimizer sgd",
    "--dim 8",
    "--pooling 3",
    "--pipeline none",
    "--chunks 4",
    "--dedup ids",
    "--host-ms 0",
    "--host-ms 2.5",
    "--dense-ms 1.5,3",
    "--dense-ms 0,0",
    "--dense-ms 1.5",
    "--dense-ms -1,3",
    "--dense-ms 1,-3",
    "--dense-ms 1e9,1e9",
    "--dense-ms 1e9,1.1e9",
    "--dense-ms 1.1e9,0",
    "--dense-ms a,1",
    "--dense-ms 1,a",
};

static const char *const want[] = {
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1 cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 poo"
    "ling 2 seeds 00 hot 1",
    "kinds 5 cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 poo"
    "ling 2 seeds 00 hot 1",
    "kinds e cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 poo"
    "ling 2 seeds 00 hot 1",
    "kinds 8+grid cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 1"
    "6 pooling 2 seeds 00 hot 1",
    "kinds 1f+grid cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim "
    "16 pooling 2 seeds 00 hot 1",
    "option '--shard' takes a list of table,column,row,grid,replicate, not 'x'",
    "option '--shard' needs a value: KINDS",
    "kinds 1f cut 1 width 8 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "option '--min-width' takes a multiple of 4, not '6'",
    "option '--min-width' takes a whole number from 4 to 1048576, not '"
    "0'",
    "kinds 1f cut 0 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 1 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 1 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 1/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/4/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/1/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/10 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/12.5 dim 16 "
    "pooling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/1.5,3/0/00 dim 16 "
    "pooling 2 seeds 00 hot 1",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '1.5'",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '-1,3'",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '1,-3'",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/1e+09,1e+09/0/00 d"
    "im 16 pooling 2 seeds 00 hot 1",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '1e9,1.1e9'",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '1.1e9,0'",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot 'a,1'",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '1,a'",
    "kinds 1f cut 1 width 12 memory 0 dense 3 job 1/3/4,5/1/16 dim 16 p"
    "ooling 2 seeds 10 hot 1",
    "kinds 1f cut 1 width 8 memory 0 dense 3 job 1/3/4,5/1/16 dim 16 po"
    "oling 2 seeds 10 hot 1",
    "kinds 1f cut 1 width 12 memory 0 dense 3 job 1/3/4,5/1/16 dim 16 p"
    "ooling 2 seeds 10 hot 1",
    "option '--dense-ms' takes two times from 0 to 1e+09, as '1.5,3', n"
    "ot '-1,3'",
    "kinds 1f cut 1 width 0 memory 0 dense 3 job 0/0/0,0/0/00 dim 16 po"
    "oling 2 seeds 00 hot 1",
    "option '--row-cut any' contradicts table 'a', whose rows_over is 'all'",
    "model:h100.nsm",
    "torchrec",
    "roofline:a100",
    "roofline:a100",
    "roofline:v100-32gb",
    "no cost model 'none'; known are ...",
    "torchrec",
    "no cost model 'reference'; known are ...",
    "no cost model 'reference'; known are ...",
    "roofline:h100",
};

static size_t n_got;

static void is_next(const char *got, const char *name)
{
    const size_t i = n_got++;
    char *names = strstr(got, "known are ");

    if (names && strstr(names, "model:FILE, ")) /* a list that grows */
        memcpy(names, "known are ...", sizeof("known are ..."));
    if (!(i < sizeof(want) / sizeof(*want) ? is_str(got, want[i], name)
                                           : ok(0, "%s", name)))
        printf("---\n%s---\n", got);
}

static void test_lines(void)
{
    const struct problem none = {0}, old = stands();

    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
        is_next(problem_of(plain, lines[i], &none), lines[i]);
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i += 8)
        is_next(problem_of(plain, lines[i], &old), lines[i]);
    is_next(problem_of(over, "", &none), "rows over hosts");
    is_next(problem_of(over, "--row-cut any", &none), "and any cuts");
}

static void test_search(void)
{
    static const struct {
        const char *line;
        double limit_ms;
        uint64_t seed, effort;
        bool is_logged;
    } CASES[] = {
        {"", 0, 0, SEARCH_EFFORT_AUTO, false},
        {"--seed 7 --effort 9", 0, 7, 9, false},
        {"--effort 0 --time-limit 1.5", 1500, 0, 0, false},
        {"--verbose", 0, 0, SEARCH_EFFORT_AUTO, true},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct search_options options;
        struct cli *cli =
            parse(plain, arena_printf(&arena, "%s --threads 1", CASES[i].line));

        planning_set_search(&options, cli);
        ok(options.seed == CASES[i].seed && options.effort == CASES[i].effort &&
               options.time_limit_ms == CASES[i].limit_ms &&
               options.is_logged == CASES[i].is_logged &&
               pool_size(options.pool) == 1,
           "search: '%s'", CASES[i].line);
        planning_keep_found(&options, 50000);
        ok(options.on_found && !options.gives_up, "an interrupt keeps a plan");
        planning_keep_found(&options, 50001);
        ok(!options.on_found && options.gives_up, "of a list that is not long");
        pool_close(options.pool);
    }
}

/* Which cost model is opened, and which shard kinds it must price. */
static void test_oracle(void)
{
    static const char *const costs[] = {
        "",
        "--cost torchrec",
        "--cost roofline:a100",
        "--gpu a100",
        "--gpu v100-32gb",
        "--cost none",
        "--cost torchrec --shard grid",
        "--cost reference --shard table",
        "--cost reference --shard row",
        "--cost roofline:h100 --inter-gbps 50",
    };
    const struct problem none = {0};
    const int keep = dup(STDERR_FILENO);
    const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    dup2(null, STDERR_FILENO); /* discards warnings */
    for (size_t i = 0; i < sizeof(costs) / sizeof(*costs); i++) {
        struct cli *cli = parse(plain, costs[i]);
        struct oracle *oracle = NULL;
        struct problem problem;

        is_next(!cli || planning_problem(&problem, plain, &none, cli, &err) ||
                        planning_oracle(&oracle, cli, &problem, &err)
                    ? err.msg
                    : oracle->cost.name,
                costs[i]);
    }
    dup2(keep, STDERR_FILENO);
    close(keep);
    close(null);
}

/* The plan of a long list takes long to write, which the limit covers. */
static void test_search_limit(void)
{
    static const struct {
        double limit_ms, search_ms;
        size_t n_tables;
    } cases[] = {
        {20000, 10000, 200000}, /* 10 s are kept back */
        {20000, 19999, 20},     /* 0.05 ms a table */
        {10000, 5000, 200000},  /* at most half of the limit */
        {0, INFINITY, 100},     /* no limit */
        {0.001, 0.0005, 1000},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double ms =
            planning_search_limit_ms(cases[i].limit_ms, cases[i].n_tables);

        ok(ms == cases[i].search_ms ||
               fabs(ms - cases[i].search_ms) < 1e-9 * cases[i].search_ms,
           "%g ms, %zu tables: the search ends after %g ms, not %g",
           cases[i].limit_ms, cases[i].n_tables, cases[i].search_ms, ms);
    }
}

int main(void)
{
    static const char list[] = "name,num_embeddings,dim,pooling_factor\n"
                               "a,1000,16,2\nb,2000,32,4\n",
                      hosts[] = "name,num_embeddings,dim,pooling_factor,"
                                "rows_over\na,1000,16,2,all\nb,2000,32,4,\n";

    if (!mkdtemp(folder)) {
        printf("Bail out! no folder to work in\n");
        return 1;
    }
    plain = arena_printf(&arena, "%s/list.csv", folder);
    over = arena_printf(&arena, "%s/over.csv", folder);
    if (file_write(plain, list, strlen(list), &err) ||
        file_write(over, hosts, strlen(hosts), &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_lines();
    test_search();
    test_search_limit();
    test_oracle();
    unlink(plain);
    unlink(over);
    ok(!rmdir(folder), "nothing is left behind");
    arena_release(&arena);
    return tap_done();
}
