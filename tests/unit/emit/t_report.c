/* SPDX-License-Identifier: MIT */
#include "tests/unit/emit/fixture.h"

#include "base/text.h"
#include "core/plan_memory.h"
#include "emit/report.h"

#define MAX_COLUMNS 80

/* Returns the report of a plan, with the given options. */
static const char *report_in(const struct plan *plan,
                             const struct report_options *options)
{
    struct buf out = {0};
    const char *text;

    emit_report(plan, options, &out);
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* Returns the step time without each table. It is shorter by a tenth of the
 * standalone cost of the table's shards. */
static const double *without(const struct plan *plan)
{
    double *without_ms = ARENA_NEW(&arena, double, plan->problem.n_tables);

    for (size_t t = 0; t < plan->problem.n_tables; t++)
        without_ms[t] = plan->total_ms;
    for (size_t i = 0; i < plan->n_shards; i++)
        without_ms[plan->shards[i].table] -= 0.1 * plan->shard_ms[i];
    return without_ms;
}

static const char *report_of(const struct plan *plan)
{
    const struct report_options options = {.waits = true,
                                           .without_ms = without(plan)};

    return report_in(plan, &options);
}

/* Gives a plan made-up costs. A shard alone costs 1 ms per million lookups
 * times columns. Compute is 0.6 of the sum of these, and every GPU waits for
 * the last one. */
static void price(struct plan *plan)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    double last_ms = 0;

    plan->devices = ARENA_NEW(&arena, struct device_cost, n_devices);
    plan->shard_ms = ARENA_NEW(&arena, double, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        struct device_cost *device = &plan->devices[shard->device];

        plan->shard_ms[i] = shard_lookups(&plan->problem, shard) * 1e-6 *
                            (shard->col_end - shard->col_begin);
        device->compute_ms += 0.6 * plan->shard_ms[i];
    }
    plan_count_memory(plan);
    for (uint32_t r = 0; r < n_devices; r++) {
        plan->devices[r].bwd_comm_ms = 0.25;
        last_ms = fmax(last_ms, plan->devices[r].compute_ms + 0.25);
    }
    plan->total_ms = 0;
    for (uint32_t r = 0; r < n_devices; r++) {
        struct device_cost *device = &plan->devices[r];

        device->fwd_comm_ms =
            last_ms - device->compute_ms - device->bwd_comm_ms + 0.5 + 0.01 * r;
        device->total_ms =
            device->compute_ms + device->bwd_comm_ms + device->fwd_comm_ms;
        plan->total_ms = fmax(plan->total_ms, device->total_ms);
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            device->parts_ms[p] = r + 0.125 * p;
    }
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        plan->exposed_ms[p] = 10.125 * p;
    plan->cost = (struct cost_source){
        .name = "roofline:h100",
        .hash = "0123456789abcdef",
        .basis = BASIS_MODELLED,
        .comm = "alpha-beta figures of h100",
        .device = "cpu:x",
    };
    plan->search = "reference";
    plan->stopped = "done";
    plan->seed = 7;
    plan->n_evaluations = 1234;
    plan->search_ms = 56.7;
}

static struct plan mixed_plan(void)
{
    struct plan plan = fixture_plan(4, 2, 65536);

    fixture_whole(&plan, "users", 40000000, 128, 3, 0);
    fixture_table(&plan, "items", 20000000, 128, 20)->skew_assumed = false;
    fixture_shard(&plan, 0, 20000000, 0, 64, 1);
    fixture_shard(&plan, 0, 20000000, 64, 96, 2);
    fixture_shard(&plan, 0, 20000000, 96, 128, 2);
    fixture_table(&plan, "pages", 1000000, 64, 2);
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, r * 250000, (r + 1) * 250000, 0, 64, r);
    fixture_whole(&plan, "a name longer than the thirty-two columns it has", 9,
                  8, 1, 3);
    fixture_finish(&plan);
    price(&plan);
    return plan;
}

static void is_not_in(const char *text, const char *part)
{
    ok(!strstr(text, part), "does not say: %s", part + strspn(part, "\n"));
}

/* Tests the wrapped report: no line is wider than a terminal, no line ends in a
 * blank, and there is no empty line at the end or next to another. */
static void fits(const char *report)
{
    size_t widest = 0, n_trailing = 0, n_empty = 0;
    struct buf wrapped = {0};
    const char *text;

    text_wrap_lines(&wrapped, report, MAX_COLUMNS);
    text = arena_strdup(&arena, wrapped.data);
    buf_release(&wrapped);

    if (!ok(*text && text[strlen(text) - 1] == '\n', "the last line ends"))
        return;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        widest = len > widest ? len : widest;
        n_trailing += len && line[len - 1] == ' ';
        n_empty += !len && (!line[1] || line[1] == '\n');
        line += len + 1;
    }
    ok(widest <= MAX_COLUMNS, "fits %d columns (%zu)", MAX_COLUMNS, widest);
    is_i64((int64_t)n_trailing, 0, "no line ends in a blank");
    is_i64((int64_t)n_empty, 0, "nothing is missing");
}

/*
 * Expected report. The standalone costs of the shards are:
 *
 *     table  lookups x columns   ms of a shard  on GPU
 *     users   3   x 128 x 65536  25.166         0
 *     items   20  x 64  x 65536  83.886         1 and 2
 *     pages   0.5 x 64  x 65536   2.097         each
 *     last    1   x 8   x 65536   0.524         3
 *
 * Compute is 0.6 of their sum: 16.358, 51.590, 51.590 and 1.573 ms. GPU 1 is
 * ready last, after 51.840 ms; GPU 3 ends 0.53 ms later. A sample has 26
 * lookups in 4 bags, and each of the two hosts serves half of them.
 */
static const char mixed_text[] =
    "step    52.370 ms\n"
    "        pipeline sdd, dense part not known\n"
    "bound   no plan has less GPU work than 41.896 ms: this one is within "
    "25.00 %\n"
    "memory  fits: GPU 0 is the fullest, 24.3 % of 80.0 GiB, 19.1 GiB of it "
    "weights\n"
    "binds   GPU 1, which is ready last; replicas, 50.625 ms of the GPU work; "
    "table 'items' on GPUs 1-2, without which it is 16.777 ms shorter\n"
    "plan    4 tables in 9 shards on 4 GPUs, 2 hosts of 2, global batch "
    "65536\n"
    "search  reference, seed 7, 1234 evaluations\n"
    "cost    roofline:h100 0123456789abcdef, modelled on cpu:x\n"
    "        communication: alpha-beta figures of h100\n"
    "feed    1.63e+07 ids, 0.14 GB a second to each host, for the tables "
    "alone\n"
    "assumed access skew: Zipf 1.05, as that of 3 of 4 tables is not given\n"
    "note    3 of 4 predictions were raised to the physical floor\n"
    "note    row-wise Adagrad keeps a mean for each column piece of a row: 1 "
    "table is so cut\n"
    "\n"
    "GPU, ms      input forward  output gradient backward replicas    busy "
    "waiting\n"
    "1            1.000   1.125   1.250    1.375    1.500    1.625   7.875   "
    "0.000\n"
    "2            2.000   2.125   2.250    2.375    2.500    2.625  13.875   "
    "0.000\n"
    "0            0.000   0.125   0.250    0.375    0.500    0.625   1.875  "
    "35.232\n"
    "3            3.000   3.125   3.250    3.375    3.500    3.625  19.875  "
    "50.017\n"
    "mean         1.500   1.625   1.750    1.875    2.000    2.125  10.875  "
    "21.312\n"
    "exposed      0.000  10.125  20.250   30.375   40.500   50.625\n"
    "\n"
    "GPU, GiB   weights optimizer   input outputs     all       %\n"
    "0            19.13      0.15    0.02    0.13   19.44   24.30\n"
    "2             4.83      0.15    0.09    0.10    5.17    6.47\n"
    "1             4.83      0.08    0.05    0.10    5.06    6.32\n"
    "3             0.06      0.00    0.02    0.08    0.15    0.19\n"
    "mean          7.21      0.09    0.05    0.10    7.45    9.32\n"
    "\n"
    "without this table        ms less        rows    dim  pooling  shards  "
    "GPUs\n"
    "items                      16.777    20000000    128    20.00  CW 3    "
    "1-2\n"
    "users                       2.517    40000000    128     3.00  TW 1    "
    "0\n"
    "pages                       0.839     1000000     64     2.00  RW 4    "
    "0-3\n"
    "shards: TW whole tables, CW column pieces, RW row pieces\n";

static void test_mixed(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.bound_ms = plan.total_ms / 1.25;
    plan.n_floored = 3;
    text = report_of(&plan);
    is_str(text, mixed_text, "all there is to say");
    is_not_in(text, "dense optimizer");
    is_not_in(text, "stopped early");
    fits(text);
    is_str(report_of(&plan), text, "the same plan, the same report");
}

/* In the order of frequency, the first of four row blocks has most lookups. The
 * report names it if all GPUs wait for its GPU. */
static void test_hot_block(void)
{
    struct plan plan = mixed_plan();

    plan.problem.tables[2].row_order = ROW_ORDER_FREQUENCY;
    problem_find_hot_rows(&plan.problem, &arena);
    is_not_in(report_of(&plan), "hot row block");
    plan.devices[0].compute_ms = 60;
    is_in(report_of(&plan),
          "\nnote    GPU 0, ready last, has a hot row block of table 'pages', "
          "with 3.73 times the mean look-ups\n");
    /* if two tables are hot, the report names the one with more lookups above
     * the mean (20 per sample, not 2) */
    plan.problem.tables[1].row_order = ROW_ORDER_FREQUENCY;
    plan.shards[1].row_end = plan.shards[2].row_end = 5000000;
    plan.shards[1].device = 0;
    problem_find_hot_rows(&plan.problem, &arena);
    is_in(report_of(&plan), " has a hot row block of table 'items', ");
    plan.cost.name = "torchrec";
    is_not_in(report_of(&plan), "hot row block");
}

static void test_stopped_and_analytic(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.stopped = "time";
    plan.cost.basis = BASIS_ANALYTIC;
    plan.cost.device = NULL;
    text = report_of(&plan);
    is_in(text, "1234 evaluations, stopped early (time)\n");
    is_in(text, "0123456789abcdef, analytic\n");
    is_in(text, "\nbound   none is proven for this cost model\n");
    is_not_in(text, "physical floor");
    plan.bound_ms = 0;
    is_in(report_of(&plan), "\nbound   none is");
}

/* Exposed times are 101.25 ms of lookups and 50.625 ms of exchanges. */
static void test_errors(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    is_not_in(report_of(&plan), "within");
    plan.cost.lookup_error =
        (struct cost_error){.frac = 0.2, .ground = "12 samples"};
    text = report_of(&plan);
    is_in(text, "        look-ups within 20 %: nine in ten of 12 samples\n");
    is_in(text, "% of look-ups alone\n");
    plan.cost.exchange_error.frac = 0.5;
    text = report_of(&plan);
    is_in(text, "        exchanges within 50 %\n");
    is_in(text, "step    52.370 ms +-21 %\n");
}

/* The report lists the three loads that are farthest outside the measured
 * range. */
static void test_outside(void)
{
    static struct cost_outside outside[] = {{"t1", "rows", 4e9, 10, 2e8},
                                            {NULL, "batch", 64, 128, 65536},
                                            {"t2", "columns", 2, 4, 512},
                                            {"t3", "columns", 2, 4, 512}};
    struct plan plan = mixed_plan();
    const char *text;

    is_not_in(report_of(&plan), "outside");
    plan.cost.outside = outside;
    plan.cost.n_outside = 3;
    text = report_of(&plan);
    is_in(text,
          "        outside of what was measured: rows of table 't1' 4e+09 "
          "(10 to 2e+08)\n"
          "        outside of what was measured: batch 64 (128 to "
          "65536)\n");
    is_in(text, "columns of table 't2' 2 (4 to 512)\n");
    plan.cost.n_outside = 4;
    text = report_of(&plan);
    is_in(text, "columns of table 't2' 2 (4 to 512) and more\n");
    is_not_in(text, "'t3'");
}

/* Tests that the rows of a printed table are as wide as its heading. The line
 * of exposed times has fewer columns and ends the test. */
static void keeps_columns(const char *report, const char *heading)
{
    const char *line = strstr(report, heading);
    const size_t width = line ? strcspn(line, "\n") : 0;
    size_t n_rows = 0, n_wrong = 0;

    for (; line && *line != '\n' && strncmp(line, "exposed", 7) != 0;
         line += strcspn(line, "\n") + 1, n_rows++)
        n_wrong += strcspn(line, "\n") != width;
    ok(n_rows > 1 && !n_wrong, "%zu of %zu rows leave their columns", n_wrong,
       n_rows);
}

static void test_large_times(void)
{
    for (double scale = 1; scale < 1e6; scale *= 10) {
        struct plan plan = mixed_plan();

        plan.total_ms *= scale;
        for (uint32_t r = 0; r < 4; r++)
            for (unsigned p = 0; p < N_STEP_PARTS; p++)
                plan.devices[r].parts_ms[p] *= scale / 4;
        keeps_columns(report_of(&plan), "GPU, ms");
        keeps_columns(report_of(&plan), "GPU, GiB");
    }
}

/* The first line has GPU work and host apart, if there is a host. */
static void test_host(void)
{
    struct plan plan = mixed_plan();

    is_not_in(report_of(&plan), ", host ");
    plan.total_ms = 1;
    plan.cost.host = HOST_MEASURED;
    is_in(report_of(&plan),
          "step    2.693 ms, 2.1 to 3.4: GPU work 1.000 ms, host 2.50 ms "
          "(2 kinds of sharding, assumed)\n");
}

/* The report warns if de-duplication costs more than it saves. */
static void test_dedup(void)
{
    static const char note[] = "note    de-duplication costs more than it "
                               "saves here: without it the step takes 40.000 "
                               "ms\n";
    struct report_options options = {.plain_ms = 60};
    struct plan plan = mixed_plan();

    is_not_in(report_in(&plan, &options), "note    de-duplication");
    options.plain_ms = 40;
    is_in(report_in(&plan, &options), note);
    options.plain_ms = NAN;
    is_not_in(report_in(&plan, &options), "note    de-duplication");
}

static void test_made_by_hand(void)
{
    struct plan plan = mixed_plan();

    plan.search = NULL;
    is_in(report_of(&plan), "search  none: the plan was made by hand\n");
}

/* One GPU holds shards of several kinds, the other holds nothing. */
static void test_kinds(void)
{
    struct plan plan = fixture_plan(2, 2, 65536);
    struct report_options options = {.n_columns = 132};
    const char *text;

    fixture_table(&plan, "cut", 4000, 48, 3);
    fixture_shard(&plan, 0, 4000, 0, 16, 0);
    fixture_shard(&plan, 0, 4000, 16, 48, 0);
    fixture_table(&plan, "rows", 4000, 48, 3);
    fixture_shard(&plan, 0, 2000, 0, 48, 0);
    fixture_shard(&plan, 2000, 4000, 0, 48, 0);
    fixture_finish(&plan);
    price(&plan);
    text = report_in(&plan, &options);
    is_in(text, "  CW 2 RW 2\n1 ");
    is_in(text, "  \nmean ");
}

/* If no phases are known, GPUs may differ in step time. The step then waits for
 * the GPU that is ready last, or for the slowest one. */
static void test_unlike_totals(void)
{
    struct plan plan = mixed_plan();
    const struct report_options alone = {0};
    const char *text;

    for (uint32_t r = 0; r < 4; r++)
        plan.devices[r].parts_ms[0] = NAN;
    text = report_of(&plan);
    is_in(text, "\nbinds   GPU 1, which is ready last; compute, 51.590 ms of "
                "the GPU work; table 'items' on GPUs 1-2, ");
    is_in(text, "\nGPU, ms    compute bwd comm fwd comm    busy waiting\n"
                "1           51.590    0.250    0.510  52.350   0.000\n");
    is_not_in(text, "exposed");
    text = report_in(&plan, &alone);
    is_in(text,
          "\nbinds   GPU 3, the slowest; forward communication, 50.547 ms "
          "of the GPU work; no one table\n");
    is_in(text, "\nGPU, ms    compute bwd comm fwd comm    busy\n"
                "3            1.573    0.250   50.547  52.370\n");
    is_not_in(text, "without this table");
}

static void test_rivals(void)
{
    struct compare_entry rivals[] = {
        {.planner = "A's planner",
         .step.priced.total_ms = 104.74,
         .gain_error_frac = 0.186},
        {.planner = "B's",
         .step.priced.total_ms = 47.133,
         .gain_error_frac = NAN},
        {.planner = "C's", .step.priced.total_ms = NAN}};
    const struct report_options options = {.rivals = rivals, .n_rivals = 3};
    struct plan plan = mixed_plan();

    for (size_t i = 0; i < 3; i++)
        rivals[i].ratio = rivals[i].step.priced.total_ms / plan.total_ms;
    is_in(report_in(&plan, &options),
          "\nrivals  A's planner: 104.740 ms, 100.0 % +-19 % more\n"
          "        B's: 47.133 ms, 10.0 % less\n"
          "        C's: no plan\n"
          "bound   ");
    plan.total_ms = 0;
    rivals[0].ratio = INFINITY;
    is_in(report_in(&plan, &options),
          "\nrivals  A's planner: no step to compare\n");
}

/* A wider terminal shows more columns and full names. */
static void test_wide(void)
{
    static const char name[] = "a name longer than the thirty-two columns it "
                               "has";
    struct plan plan = mixed_plan();
    struct report_options options = {.waits = true, .n_columns = 80};
    const char *text;

    plan.problem.tables[1].name = name;
    plan.problem.tables[3].name = "short";
    options.without_ms = without(&plan);
    text = report_in(&plan, &options);
    is_in(text, "\na name long~lumns it has   16.777    20000000 ");
    is_not_in(text, "alone ms");
    is_not_in(text, "TW 1 RW 1");
    options.n_columns = 132;
    text = report_in(&plan, &options);
    is_in(text, "\na name longer than the thirty-two columns it has   16.777  "
                "32.0   167.772    20000000 ");
    is_in(text, "  24.30  TW 1 RW 1\n");
}

/* Each GPU that holds a table is named once, in the order of its pieces. */
static void test_holders(void)
{
    struct plan plan = fixture_plan(2, 2, 65536);

    fixture_table(&plan, "to and fro", 4000, 48, 3);
    for (uint32_t i = 0; i < 3; i++)
        fixture_shard(&plan, 0, 4000, 16 * i, 16 * i + 16, i % 2);
    fixture_finish(&plan);
    price(&plan);
    is_in(report_of(&plan), "  CW 3    0-1\n");
}

/* GPU 1 may allow each of its tables the same saving. One row then names the
 * most expensive of these tables, and the bottleneck names it with its GPU. A
 * table on another GPU has a row of its own, and so has one of two tables that
 * are alike. */
static void test_alike(void)
{
    static const double less_ms[] = {0.01004, 0.0101, 0.00996, 0.0102, 0.009};
    struct plan plan = fixture_plan(2, 2, 65536);
    struct report_options options = {.waits = true};
    double without_ms[5];
    const char *text;

    fixture_whole(&plan, "cheap", 1000, 16, 1, 1);
    fixture_whole(&plan, "dear", 1000, 16, 9, 1);
    fixture_whole(&plan, "other", 1000, 16, 1, 0);
    fixture_whole(&plan, "third", 1000, 16, 1, 1);
    fixture_whole(&plan, "less", 1000, 16, 1, 1);
    fixture_finish(&plan);
    price(&plan);
    plan.total_ms = 1;
    for (size_t t = 0; t < 5; t++)
        without_ms[t] = 1 - less_ms[t];
    options.without_ms = without_ms;
    text = report_in(&plan, &options);
    is_in(text, "; table 'dear' on GPU 1, without which it is 0.010 ms");
    is_in(text, "dear                  0.010        1000     16     9.00  TW 1 "
                "   1\n"
                "... 2 others on GPU 1 save as much\n"
                "other                 0.010        1000     16     1.00  TW 1 "
                "   0\n"
                "less                  0.009        1000     16     1.00  TW 1 "
                "   1\n");
    options.n_columns = 2000;
    is_not_in(report_in(&plan, &options), "as much");
    options.n_columns = 80;
    without_ms[3] = 0.991;
    text = report_in(&plan, &options);
    is_not_in(text, "as much");
    is_in(text, "\ncheap ");
}

/* No single table stands out if all GPUs have equal work. */
static void test_even(void)
{
    struct plan plan = fixture_plan(2, 2, 65536);
    struct report_options options = {.waits = true};
    const char *text;

    fixture_whole(&plan, "left", 4000000, 128, 3, 0);
    fixture_whole(&plan, "right", 4000000, 128, 3, 1);
    fixture_finish(&plan);
    price(&plan);
    options.without_ms = (const double[]){plan.total_ms, 0.996 * plan.total_ms};
    text = report_in(&plan, &options);
    is_in(text, " of the GPU work; no one table\n");
    is_in(text, "\nwithout any one table the step is as long\n");
    plan.total_ms = 0;
    options.without_ms = (const double[]){0, 0};
    is_in(report_in(&plan, &options),
          "\nwithout any one table the step is as long\n");
}

static void test_one_gpu(void)
{
    struct plan plan = fixture_plan(1, 1, 128);
    const char *text;

    fixture_whole(&plan, "only", 1000, 16, 1, 0);
    fixture_finish(&plan);
    plan.problem.tables[0].skew_assumed = false;
    price(&plan);
    text = report_of(&plan);
    is_not_in(text, "note ");
    is_not_in(text, "assumed");
    is_in(text, "plan    1 table in 1 shard on 1 GPU, 1 host, global batch "
                "128\n");
    is_in(text, "\nmemory  fits: GPU 0 is the fullest, ");
    is_not_in(text, "a GPU, ");
    is_in(text, "\nGPU, KiB ");
    is_in(text, "\nbinds   replicas, 50.625 ms of the GPU work; ");
    fits(text);
}

static void test_many_gpus(void)
{
    struct plan plan = fixture_plan(64, 8, 65536);
    struct report_options options = {.n_columns = SIZE_MAX, .waits = true};
    const char *text;
    int n_lines = 0;

    for (uint32_t i = 0; i < 64; i++)
        fixture_whole(&plan, arena_printf(&arena, "t%u", i), 1000 + i, 32,
                      1 + i, i);
    fixture_finish(&plan);
    price(&plan);
    text = report_of(&plan);
    for (const char *at = text; (at = strstr(at, "\nt")); at++)
        n_lines++;
    is_i64(n_lines, 10, "ten tables");
    is_in(text, "\n... and 53 more\n");
    n_lines = 0;
    for (const char *at = strstr(text, "\nGPU, ms"); at[1] != '\n';
         at = strchr(at + 1, '\n'))
        n_lines++;
    ok(n_lines <= 16,
       "a heading, 12 rows, their mean, exposed times, a legend (%d)", n_lines);
    /* table i has 1 + i lookups: GPU 62 is later than the others by a 64th or
     * less */
    is_in(text, "\n63 +");
    is_not_in(text, "\n62");
    is_in(text, " about alike, in the mean\n");
    fits(text);
    options.without_ms = without(&plan);
    text = report_in(&plan, &options);
    is_in(text, "\n62   ");
    is_in(text, "\nt1 ");
    is_not_in(text, " about alike");
}

/* Returns the number of lines that begin with a digit, directly below the first
 * line that begins with `heading`. */
static size_t count_lines(const char *text, const char *heading)
{
    const char *at = strstr(text, heading);
    size_t n = 0;

    for (at = at ? strchr(at + 1, '\n') : NULL;
         at && at[1] >= '0' && at[1] <= '9'; at = strchr(at + 1, '\n'))
        n++;
    return n;
}

/* Up to 12 different GPUs have a row each. With more GPUs, some share a row,
 * unless the report has more than a thousand columns. */
static void test_rows(void)
{
    static const struct {
        uint32_t n_gpus;
        size_t n_columns, least, most;
    } cases[] = {{12, 80, 12, 12},  {13, 80, 2, 12},    {40, 80, 2, 12},
                 {13, 1000, 2, 12}, {13, 1001, 13, 13}, {12, 132, 12, 12}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint32_t n = cases[i].n_gpus;
        struct plan plan = fixture_plan(n, n, 65536);
        struct report_options options = {.waits = true,
                                         .n_columns = cases[i].n_columns};
        size_t n_lines;

        for (uint32_t t = 0; t < n; t++)
            fixture_whole(&plan, arena_printf(&arena, "t%u", t), 1000, 8,
                          1 + 5 * t, t);
        fixture_finish(&plan);
        price(&plan);
        n_lines = count_lines(report_in(&plan, &options), "\nGPU, ms");
        if (!ok(n_lines >= cases[i].least && n_lines <= cases[i].most,
                "%u GPUs in %zu columns", n, cases[i].n_columns))
            printf("# %zu lines\n", n_lines);
    }
}

/* A table's name gets the width that other columns leave; there are more other
 * columns from 100 columns on. Ten tables are shown; from 132 columns on the
 * kinds of shards are named. */
static void test_columns(void)
{
    static const struct {
        size_t n_columns, width;
        bool has_shards;
    } cases[] = {{80, 24, false},
                 {99, 43, false},
                 {100, 28, false},
                 {131, 59, false},
                 {132, 60, true}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct plan plan = fixture_plan(2, 2, 65536);
        struct report_options options = {.waits = true,
                                         .n_columns = cases[i].n_columns};
        const char *text, *row;
        char name[301];

        memset(name, 'x', 300);
        name[300] = 0;
        fixture_whole(&plan, name, 1000, 8, 3, 0);
        fixture_finish(&plan);
        price(&plan);
        options.without_ms = without(&plan);
        text = report_in(&plan, &options);
        row = strstr(text, "\nxx");
        is_i64(row ? (int64_t)strcspn(row + 1, " ") : -1,
               (int64_t)cases[i].width, "columns of a name");
        ok(!strstr(text, "%  shards\n") == !cases[i].has_shards,
           "and shards by kind in %zu", cases[i].n_columns);
    }
}

static void test_tables_shown(void)
{
    static const struct {
        uint32_t n_tables;
        size_t n_columns;
        const char *more;
    } cases[] = {{10, 80, NULL},
                 {11, 80, "... and 1 more\n"},
                 {30, 1000, "... and "},
                 {30, 1001, NULL}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct plan plan = fixture_plan(2, 2, 65536);
        struct report_options options = {.waits = true,
                                         .n_columns = cases[i].n_columns};
        const char *text;

        for (uint32_t t = 0; t < cases[i].n_tables; t++)
            fixture_whole(&plan, arena_printf(&arena, "t%u", t), 1000, 8, 3 + t,
                          t % 2);
        fixture_finish(&plan);
        price(&plan);
        options.without_ms = without(&plan);
        text = report_in(&plan, &options);
        ok(cases[i].more ? strstr(text, cases[i].more) != NULL
                         : !strstr(text, "... and "),
           "%u tables in %zu columns", cases[i].n_tables, cases[i].n_columns);
    }
}

/* The first lines show the memory that stays free and that hosts are assumed.
 * Amounts stay within their columns if the reserve is much larger. */
static void test_reserve(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.problem.cluster.host_size = 8;
    for (uint32_t r = 0; r < 4; r++)
        plan.problem.cluster.reserve_bytes[r] = UINT64_C(12) << 30;
    price(&plan);
    text = report_of(&plan);
    is_in(text, "on 4 GPUs, 2 hosts of 2 (assumed), global");
    is_in(text, "\n        80.0 GiB a GPU, 12.0 GiB of it reserved\n");
    is_in(text, "   12.00   31.44   39.30\n");
    fits(text);
    plan.problem.cluster.host_size = 0;
    plan.problem.cluster.hosts_per_domain = 2;
    is_in(report_of(&plan), "on 4 GPUs, 2 hosts of 2 in 1 NVLink domain, ");
    plan.problem.cluster.reserve_bytes[3] = 0;
    plan.problem.cluster.memory_bytes[2] = UINT64_C(90) << 30;
    price(&plan);
    is_in(report_of(&plan), "\n        80.0 GiB to 90.0 GiB a GPU, 0 B to 12.0 "
                            "GiB of it reserved\n");
    plan = fixture_plan(1, 1, 128);
    fixture_whole(&plan, "only", 1 << 20, 16, 1, 0);
    plan.problem.cluster.reserve_bytes[0] = UINT64_C(12) << 30;
    fixture_finish(&plan);
    price(&plan);
    text = report_of(&plan);
    is_in(text, "\nGPU, MiB   weights optimizer reserve     all       %\n"
                "0             64.0       4.0 12288.0 12356.0    15.1\n");
}

static void test_weights_only(void)
{
    struct plan plan = mixed_plan();

    plan.problem.memory_model = MEMORY_WEIGHTS;
    is_in(report_of(&plan), "note    memory counts weights alone\n");
}

static void test_replicas(void)
{
    struct plan plan = fixture_plan(2, 2, 128);

    for (int t = 0; t < 2; t++) {
        fixture_table(&plan, t ? "colours" : "sizes", 8, 16, 1);
        fixture_shard(&plan, 0, 8, 0, 16, 0);
        fixture_shard(&plan, 0, 8, 0, 16, 1);
    }
    fixture_table(&plan, "cut", 8, 16, 1);
    fixture_shard(&plan, 0, 8, 0, 8, 0);
    fixture_shard(&plan, 0, 8, 8, 16, 1);
    plan.problem.tables[2].optimizer = OPTIMIZER_SGD;
    fixture_finish(&plan);
    price(&plan);
    is_in(report_of(&plan), "note    the job's dense optimizer updates the 2 "
                            "replicated tables\n");
    plan.problem.dense_optimizer = DENSE_ADAM;
    is_in(report_of(&plan),
          "note    the job's dense optimizer, counted as adam, "
          "updates the 2 replicated tables\n");
    is_not_in(report_of(&plan), "row-wise");
    plan.problem.memory_model = MEMORY_WEIGHTS;
    is_not_in(report_of(&plan), "counted");
}

int main(void)
{
    test_mixed();
    test_hot_block();
    test_stopped_and_analytic();
    test_errors();
    test_outside();
    test_large_times();
    test_host();
    test_dedup();
    test_made_by_hand();
    test_kinds();
    test_unlike_totals();
    test_rivals();
    test_wide();
    test_alike();
    test_even();
    test_holders();
    test_one_gpu();
    test_many_gpus();
    test_weights_only();
    test_rows();
    test_columns();
    test_tables_shown();
    test_reserve();
    test_replicas();
    arena_release(&arena);
    return tap_done();
}
