/* SPDX-License-Identifier: MIT */
#include "emit/compare_table.h"

#include "tests/unit/emit/fixture.h"

#define MAX_TASKS 4
#define MAX_PLANNERS 3

/* Total times in ms by task and planner; 0 means no plan. The last planner is
 * ours. */
struct means_case {
    const char *name;
    size_t n_tasks, n_planners;
    double total_ms[MAX_TASKS][MAX_PLANNERS];
    size_t n_common;
    struct compare_mean want[MAX_PLANNERS];
};

static const struct means_case cases[] = {
    {"all solve all",
     2,
     2,
     {{4, 2}, {3, 3}},
     2,
     {{NULL, 2, 2, 1.5, 3.5, 1, 0, 0}, {NULL, 2, 2, 1, 2.5, 1, 0, 0}}},
    {"ours fails where the other does not",
     3,
     2,
     {{4, 2}, {3, 0}, {0, 5}},
     1,
     {{NULL, 2, 1, 2, 4, 1, 0, 0}, {NULL, 2, 2, 1, 2, 1, 0, 0}}},
    {"who solves nothing does not count",
     2,
     3,
     {{0, 4, 2}, {0, 6, 2}},
     2,
     {{NULL, 0, 0, NAN, NAN, 1, 0, 0},
      {NULL, 2, 2, 2.5, 5, 1, 0, 0},
      {NULL, 2, 2, 1, 2, 1, 0, 0}}},
    {"nothing in common",
     2,
     2,
     {{4, 0}, {0, 5}},
     0,
     {{NULL, 1, 0, NAN, NAN, 1, 0, 0}, {NULL, 1, 1, 1, NAN, 1, 0, 0}}},
    {"nobody solves anything",
     1,
     2,
     {{0, 0}},
     0,
     {{NULL, 0, 0, NAN, NAN, 1, 0, 0}, {NULL, 0, 0, NAN, NAN, 1, 0, 0}}},
};

static int is_same(double got, double want)
{
    return isnan(want) ? isnan(got) : fabs(got - want) < 1e-12;
}

static void test_means(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct means_case *test = &cases[i];
        struct compare_entry entries[MAX_TASKS][MAX_PLANNERS] = {{{0}}};
        struct compare_task tasks[MAX_TASKS] = {{0}};
        struct compare_mean means[MAX_PLANNERS];
        struct comparison comparison = {.tasks = tasks,
                                        .n_tasks = test->n_tasks,
                                        .n_planners = test->n_planners,
                                        .means = means};

        for (size_t t = 0; t < test->n_tasks; t++) {
            tasks[t].entries = entries[t];
            for (size_t p = 0; p < test->n_planners; p++) {
                entries[t][p].valid = test->total_ms[t][p] > 0;
                entries[t][p].step.cost = "model:a";
                entries[t][p].step.priced.total_ms = test->total_ms[t][p];
                entries[t][p].search_ms = 1;
            }
        }
        compare_means(&comparison);
        is_i64((int64_t)comparison.n_common, (int64_t)test->n_common,
               test->name);
        for (size_t p = 0; p < test->n_planners; p++)
            ok(means[p].n_valid == test->want[p].n_valid &&
                   means[p].n_paired == test->want[p].n_paired &&
                   means[p].n_significant == test->want[p].n_significant &&
                   is_same(means[p].ratio, test->want[p].ratio) &&
                   is_same(means[p].common_ms, test->want[p].common_ms) &&
                   is_same(means[p].search_ms, test->want[p].search_ms),
               "planner %zu: %ju solved, %ju paired, ratio %g, common %g", p,
               (uintmax_t)means[p].n_valid, (uintmax_t)means[p].n_paired,
               means[p].ratio, means[p].common_ms);
    }
}

static void says(struct comparison *comparison, const char *text,
                 const char *json)
{
    struct buf out = {0};
    json_t *root;
    char *dumped;

    compare_means(comparison);
    root = compare_to_json(comparison);
    dumped = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
    compare_print(comparison, &out);
    is_str(out.data, text, "as a table");
    is_str(dumped, json, "as JSON");
    buf_release(&out);
    free(dumped);
    json_decref(root);
}

static const char many_text[] =
    "2 tasks on 2 GPUs, 1 host, batch 64, cost model plain (analytic)\n\n"
    "planner       solved  cut  paired   x ours signif.  common ms  search ms\n"
    "other              1    1       1    1.500       0      6.000       6.00\n"
    "ours               2    0       2    1.000       0      4.000       "
    "0.00\n\n"
    "x ours: mean ratio of the total to ours, on the tasks that both solved; "
    "common ms: mean total on the 1 tasks solved by all planners that solved "
    "any; search ms: mean of all tasks; signif.: tasks on which our gain "
    "exceeds its error; cut: tasks cut short by time or an interrupt\n";

static const char many_json[] =
    "{\"cost_model\":\"plain\",\"hash\":\"00\","
    "\"basis\":\"analytic\",\"planners\":[{\"planner\":\"other\","
    "\"solved\":1,\"cut_short\":1,\"paired\":1,\"ratio\":1.5,\"significant\":0,"
    "\"common_ms\":6."
    "0,"
    "\"search_ms\":6.0},{\"planner\":\"ours\",\"solved\":2,\"cut_short\":0,"
    "\"paired\":2,\"ratio\":1.0,\"significant\":0,\"common_ms\":4.0,"
    "\"search_ms\":0.0}],\"common_tasks\":1,"
    "\"tasks\":[{\"task\":\"first\","
    "\"planners\":[{\"planner\":\"other\",\"valid\":true,"
    "\"total_ms\":6.0,\"gain_error_frac\":null,"
    "\"step_ms\":6.0,\"compute_ms\":3.0,\"bwd_comm_"
    "ms\":1.5,"
    "\"fwd_comm_ms\":2.0,\"max_over_mean\":1.23077,"
    "\"memory_frac\":0.75,\"search_ms\":12.0,\"significant\":false,\"cut_short_"
    "by\":\"time\"},{"
    "\"planner\":\"ours\","
    "\"valid\":true,\"total_ms\":4.0,\"gain_error_frac\":null,"
    "\"step_ms\":4.0,\"compute_ms\":1."
    "0,"
    "\"bwd_comm_ms\":1.5,\"fwd_comm_ms\":2.0,"
    "\"max_over_mean\":1.11111,\"memory_frac\":0.75,"
    "\"search_ms\":0.0,\"significant\":false,\"cut_short_by\":null}]},{"
    "\"task\":\"second\","
    "\"planners\":[{\"planner\":\"other\",\"valid\":false,"
    "\"reason\":\"no memory\"},{\"planner\":\"ours\",\"valid\":true,"
    "\"total_ms\":4.0,\"gain_error_frac\":null,"
    "\"step_ms\":4.0,\"compute_ms\":1.0,\"bwd_comm_"
    "ms\":1.5,"
    "\"fwd_comm_ms\":2.0,\"max_over_mean\":1.11111,"
    "\"memory_frac\":0.75,\"search_ms\":0.0,\"significant\":false,\"cut_short_"
    "by\":null}]}]}";

static const char failed_text[] =
    "3 tables on 2 GPUs, 1 host, batch 64, cost model plain (analytic)\n\n"
    "planner        GPU ms x ours  +- %  step ms x ours mem % search ms\n"
    "other        no memory\n"
    "ours            4.000  1.000     -    4.000  1.000  75.0      0.00\n\n"
    "planner      compute ms bwd comm ms fwd comm ms max/mean\n"
    "ours              1.000       1.500       2.000    1.111\n\n"
    "GPU ms: GPU work of a step; step ms: with the host's time; +- %: error of "
    "the ratio of GPU work, not exceeded by nine in ten; significant: the "
    "ratio "
    "differs from 1 by more\n"
    "parts: each of the GPU that is slowest in it; fwd comm includes waiting; "
    "max/mean: of compute + bwd comm\n";

static const char failed_json[] =
    "{\"cost_model\":\"plain\",\"hash\":\"00\","
    "\"basis\":\"analytic\",\"planners\":[{\"planner\":\"other\","
    "\"valid\":false,\"reason\":\"no memory\"},{\"planner\":\"ours\","
    "\"valid\":true,\"total_ms\":4.0,\"gain_error_frac\":null,"
    "\"step_ms\":4.0,\"compute_ms\":1."
    "0,"
    "\"bwd_comm_ms\":1.5,\"fwd_comm_ms\":2.0,"
    "\"max_over_mean\":1.11111,\"memory_frac\":0.75,"
    "\"search_ms\":0.0,\"significant\":false,\"cut_short_by\":null}]}";

/* Each part is that of the GPU that takes longest in it. A planner without
 * parts has no line. */
static const char parts_text[] =
    "1 table on 2 GPUs, 1 host, batch 64, cost model plain (analytic)\n\n"
    "planner        GPU ms x ours  +- %  step ms x ours mem % search ms\n"
    "other           6.000  1.500     -    6.000  1.500  75.0     12.00  cut "
    "short by time\n"
    "ours            4.000  1.000     -    4.000  1.000  75.0      0.00\n\n"
    "planner        input ms  forward   output  gradient  backward  replicas "
    "max/mean\n"
    "ours              0.250    0.500    0.300     0.300     0.700     0.125   "
    " "
    "1.111\n\n"
    "GPU ms: GPU work of a step; step ms: with the host's time; +- %: error of "
    "the ratio of GPU work, not exceeded by nine in ten; significant: the "
    "ratio "
    "differs from 1 by more\n"
    "parts: each of the GPU that is slowest in it; fwd comm includes waiting; "
    "max/mean: of compute + bwd comm\n";

static const char parts_json[] =
    "{\"cost_model\":\"plain\",\"hash\":\"00\","
    "\"basis\":\"analytic\",\"planners\":[{\"planner\":\"other\","
    "\"valid\":true,\"total_ms\":6.0,\"gain_error_frac\":null,"
    "\"step_ms\":6.0,\"compute_ms\":3."
    "0,"
    "\"bwd_comm_ms\":1.5,\"fwd_comm_ms\":2.0,"
    "\"max_over_mean\":1.23077,\"memory_frac\":0.75,"
    "\"search_ms\":12.0,\"significant\":false,\"cut_short_by\":\"time\"},{"
    "\"planner\":\"ours\",\"valid\":"
    "true,"
    "\"total_ms\":4.0,\"gain_error_frac\":null,"
    "\"step_ms\":4.0,\"compute_ms\":1.0,\"bwd_comm_"
    "ms\":1.5,"
    "\"fwd_comm_ms\":2.0,\"max_over_mean\":1.11111,"
    "\"memory_frac\":0.75,\"search_ms\":0.0,\"significant\":false,\"cut_short_"
    "by\":null,\"phases_"
    "ms\":{"
    "\"input\":0.25,\"forward\":0.5,\"output\":0.3,\"gradient\":0.3,"
    "\"backward\":0.7,\"replicas\":0.125}}]}";

/* One heading, then one line per task and planner. A planner without a plan has
 * a reason instead of figures. */
static const char csv[] =
    "task,planner,valid,total_ms,gain_error_frac,step_ms,compute_ms,bwd_comm_"
    "ms,"
    "fwd_comm_ms,max_over_mean,memory_frac,search_ms,significant,cut_short_by,"
    "input,forward,output,gradient,backward,replicas,reason\n"
    "first,other,1,6,,6,3,1.5,2,1.25,0.75,12,0,time,,0,0,0,0,0,\n"
    "first,ours,1,4,,4,1,1.5,2,1.25,0.75,0,0,,0.25,0.5,0.375,0.375,"
    "0.75,0.125,\n"
    "second,other,0,,,,,,,,,,0,,,,,,,,no memory\n"
    "second,ours,1,4,,4,1,1.5,2,1.25,0.75,0,0,,,0,0,0,0,0,\n";

/* The first line describes the job that the totals belong to. */
static void test_job(struct comparison *comparison)
{
    static const struct job job = {.dense_ms = {1, 2}};
    struct buf out = {0};

    compare_means(comparison);
    comparison->job = &job;
    compare_print(comparison, &out);
    comparison->job = NULL;
    ok(strstr(out.data, "cost model plain (analytic), pipeline ") != NULL &&
           strstr(out.data, ", dense part 1 + 2 ms\n") != NULL,
       "the job is described");
    buf_release(&out);
}

/* The warning of loads outside the measured range: in the table for our plan,
 * in JSON for each plan. */
static void test_outside(void)
{
    static struct cost_outside outside[] = {{"t", "rows", 4e9, 10, 2e8}};
    struct compare_entry entries[] = {
        {.planner = "other",
         .valid = true,
         .step.cost = "plain",
         .parts_ms = {NAN}},
        {.planner = "ours",
         .valid = true,
         .step = {.cost = "plain", .priced.total_ms = 2},
         .parts_ms = {NAN},
         .cost = {.outside = outside, .n_outside = 1}}};
    struct compare_task task = {"first", entries};
    struct compare_mean means[2];
    struct comparison comparison = {
        .tasks = &task,
        .n_tasks = 1,
        .n_planners = 2,
        .problem = &(
            struct problem){.cluster = {.n_devices = 1, .devices_per_host = 1}},
        .cost = {.name = "plain", .hash = "00", .basis = BASIS_MEASURED},
        .means = means};
    json_t *root, *planners;
    struct buf out = {0};

    compare_means(&comparison);
    root = compare_to_json(&comparison);
    compare_print(&comparison, &out);
    ok(strstr(out.data, "\n        outside of what was measured: rows of table "
                        "'t' 4e+09 (10 to 2e+08)\n") != NULL,
       "loads outside are named: %s", out.data);
    planners = json_object_get(root, "planners");
    ok(!json_object_get(json_array_get(planners, 0), "outside"),
       "no list for a plan without such loads");
    is_str(json_string_value(json_object_get(
               json_array_get(
                   json_object_get(json_array_get(planners, 1), "outside"), 0),
               "table")),
           "t", "in JSON");
    json_decref(root);
    buf_release(&out);
}

/* Two planners on two tasks; the first planner fails on the second task. */
static void test_print(void)
{
    uint64_t memory[] = {1000, 4000};
    struct device_cost devices[] = {{.compute_ms = 3,
                                     .bwd_comm_ms = 1,
                                     .fwd_comm_ms = 2,
                                     .parts_ms = {NAN},
                                     .memory.total = 500},
                                    {.compute_ms = 1,
                                     .bwd_comm_ms = 1.5,
                                     .fwd_comm_ms = 0.5,
                                     .parts_ms = {NAN},
                                     .memory.total = 3000}};
    struct plan plan = {.problem = {.cluster = {.n_devices = 2,
                                                .devices_per_host = 2,
                                                .memory_bytes = memory},
                                    .batch = 64},
                        .devices = devices,
                        .cost.name = "plain",
                        .total_ms = 6};
    struct compare_entry entries[2][2] = {
        {{.planner = "other"}, {.planner = "ours"}},
        {{.planner = "other", .reason = "no memory"}, {.planner = "ours"}}};
    struct buf out = {0};
    struct compare_task tasks[] = {{"first", entries[0]},
                                   {"second", entries[1]}};
    struct comparison comparison = {.tasks = tasks,
                                    .n_tasks = 2,
                                    .n_planners = 2,
                                    .problem = &plan.problem,
                                    .cost = {.name = "plain", .hash = "00"},
                                    .means = (struct compare_mean[2]){{0}}};

    plan.stopped = "time";
    compare_fill(&entries[0][0], &plan);
    for (int i = 0; i < 2; i++) {
        struct compare_entry entry = {0};

        plan.stopped = i ? "done" : NULL;
        compare_fill(&entry, &plan);
        ok(!entry.cut_short_by, "what is done is not cut short");
    }
    plan.stopped = "budget";
    plan.total_ms = 4;
    devices[0].compute_ms = 1;
    compare_fill(&entries[0][1], &plan);
    compare_fill(&entries[1][1], &plan);
    entries[0][0].search_ms = 12;
    says(&comparison, many_text, many_json);
    test_job(&comparison);
    plan.problem.n_tables = 3;
    comparison.tasks = &tasks[1];
    comparison.n_tasks = 1;
    says(&comparison, failed_text, failed_json);
    plan.problem.n_tables = 1;
    comparison.tasks = &tasks[0];
    memcpy(devices[0].parts_ms, (double[]){0.25, 0.5, 0.3, 0.3, 0.6, 0},
           sizeof(devices[0].parts_ms));
    memcpy(devices[1].parts_ms, (double[]){0.2, 0.4, 0.1, 0.1, 0.7, 0.125},
           sizeof(devices[1].parts_ms));
    compare_fill(&entries[0][1], &plan);
    says(&comparison, parts_text, parts_json);
    comparison.tasks = tasks;
    comparison.n_tasks = 2;
    for (size_t p = 0; p < 4; p++) /* a value that few digits represent */
        entries[p / 2][p % 2].max_over_mean = 1.25;
    memcpy(entries[0][1].parts_ms,
           (double[]){0.25, 0.5, 0.375, 0.375, 0.75, 0.125},
           sizeof(entries[0][1].parts_ms));
    compare_to_csv(&comparison, &out);
    is_str(out.data, csv, "as CSV");
    buf_release(&out);
}

/* Gains over our plan, which has 3 ms of lookups and 1 ms of exchanges. */
static void test_gains(void)
{
    static const struct {
        const char *name;
        double lookup_ms, exchange_ms, ratio_frac, exchange_frac;
        double error_frac;
        int is_significant, is_gain;
    } gains[] = {
        {"beyond the error", 3.5, 1.5, 0.1, 0.2, 0.36400549446402593 / 4, 1, 1},
        {"within it", 3.5, 1.5, 0.3, 0.2, 1.0547511554864494 / 4, 0, 0},
        {"slower by more", 1, 1, 0.1, 0.2, 0.3 / 4 / 2, 1, 0},
        {"the same exchanges need no error", 5, 1, 0.1, 0, 0.5 / 4, 1, 1},
        {"other ones do", 5, 2, 0.1, 0, NAN, 0, 0},
        {"look-ups always do", 50, 1, 0, 0.2, NAN, 0, 0},
    };

    for (size_t i = 0; i < sizeof gains / sizeof *gains; i++) {
        struct compare_entry entries[] = {
            {.valid = true,
             .step.priced = {.lookup_ms = gains[i].lookup_ms,
                             .exchange_ms = gains[i].exchange_ms,
                             .total_ms =
                                 gains[i].lookup_ms + gains[i].exchange_ms}},
            {.valid = true,
             .step.priced = {.lookup_ms = 3, .exchange_ms = 1, .total_ms = 4}}};
        struct compare_task task = {.entries = entries};
        struct compare_mean means[2];
        struct comparison comparison = {
            .tasks = &task, .n_tasks = 1, .n_planners = 2, .means = means};

        for (int p = 0; p < 2; p++) {
            entries[p].step.priced.lookup_error.frac =
                gains[i].ratio_frac / RATIO_ERROR_SHARE;
            entries[p].step.cost = "model:a";
            entries[p].step.priced.exchange_error.frac = gains[i].exchange_frac;
        }
        compare_means(&comparison);
        ok(is_same(entries[0].gain_error_frac, gains[i].error_frac) &&
               entries[0].is_significant == gains[i].is_significant &&
               (int)means[0].n_significant == gains[i].is_gain,
           "%s: %.17g", gains[i].name, entries[0].gain_error_frac);
        ok(isnan(entries[1].gain_error_frac) && !entries[1].is_significant,
           "ours has no gain over itself");
    }
}

/* Two plans are compared only if both are valid. */
static void test_valid(void)
{
    for (int i = 0; i < 4; i++) {
        struct compare_entry ours = {.valid = i / 2, .step.priced.total_ms = 4},
                             entry = {
                                 .valid = i % 2,
                                 .step.priced = {.total_ms = 5,
                                                 .lookup_ms = 5,
                                                 .lookup_error.frac = 0.01}};

        ours.step.cost = entry.step.cost = "model:a";
        compare_pair(&entry, &ours);
        ok(i == 3 ? entry.ratio == 1.25 && entry.is_significant
                  : isnan(entry.ratio) && isnan(entry.gain_error_frac) &&
                        !entry.is_significant,
           "valid: %d of two", i / 2 + i % 2);
    }
}

/* The figures that are compared come from the plan. */
static void test_fill(void)
{
    struct plan plan = fixture_plan(2, 2, 64);
    struct device_cost devices[2] = {
        {.compute_ms = 4, .bwd_comm_ms = 1, .fwd_comm_ms = 3, .total_ms = 8},
        {.compute_ms = 5, .bwd_comm_ms = 1, .fwd_comm_ms = 2, .total_ms = 8}};
    struct compare_entry entry = {0};

    fixture_whole(&plan, "a", 300, 16, 1, 0);
    fixture_whole(&plan, "b", 700, 16, 1, 1);
    plan.devices = devices;
    plan.total_ms = 8;
    plan.exposed_ms[STEP_FORWARD] = 5;
    plan.exposed_ms[STEP_OUTPUT] = 3;
    compare_fill(&entry, &plan);
    is_near(entry.step.priced.lookup_ms, 5, 1e-12, "look-ups");
    is_near(entry.step.priced.exchange_ms, 3, 1e-12,
            "and exchanges, as the step has them");
    is_near(entry.max_over_mean, 6 / 5.5, 1e-12, "the busiest over the mean");
    ok(entry.compute_ms == 5 && entry.bwd_comm_ms == 1 &&
           entry.fwd_comm_ms == 3,
       "the largest of each");
}

int main(void)
{
    test_fill();
    test_means();
    test_gains();
    test_valid();
    test_outside();
    test_print();
    return tap_done();
}
