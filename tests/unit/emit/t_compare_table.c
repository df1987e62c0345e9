/* SPDX-License-Identifier: MIT */
#include "emit/compare_table.h"

#include "tests/tap.h"

#define MAX_TASKS 4
#define MAX_PLANNERS 3

/* Totals in ms by task and planner, 0 for no plan; the last planner is ours. */
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
     {{NULL, 2, 2, 1.5, 3.5, 1}, {NULL, 2, 2, 1, 2.5, 1}}},
    {"ours fails where the other does not",
     3,
     2,
     {{4, 2}, {3, 0}, {0, 5}},
     1,
     {{NULL, 2, 1, 2, 4, 1}, {NULL, 2, 2, 1, 2, 1}}},
    {"who solves nothing does not count",
     2,
     3,
     {{0, 4, 2}, {0, 6, 2}},
     2,
     {{NULL, 0, 0, NAN, NAN, 1},
      {NULL, 2, 2, 2.5, 5, 1},
      {NULL, 2, 2, 1, 2, 1}}},
    {"nothing in common",
     2,
     2,
     {{4, 0}, {0, 5}},
     0,
     {{NULL, 1, 0, NAN, NAN, 1}, {NULL, 1, 1, 1, NAN, 1}}},
    {"nobody solves anything",
     1,
     2,
     {{0, 0}},
     0,
     {{NULL, 0, 0, NAN, NAN, 1}, {NULL, 0, 0, NAN, NAN, 1}}},
};

static int is_same(double got, double want)
{
    return isnan(want) ? isnan(got) : fabs(got - want) < 1e-12;
}

int main(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct means_case *test = &cases[i];
        struct compare_entry entries[MAX_TASKS][MAX_PLANNERS] = {{{0}}};
        struct compare_task tasks[MAX_TASKS] = {{0}};
        struct compare_mean means[MAX_PLANNERS];
        struct comparison comparison = {.tasks = tasks,
                                        .n_tasks = test->n_tasks,
                                        .n_planners = test->n_planners};

        for (size_t t = 0; t < test->n_tasks; t++) {
            tasks[t].entries = entries[t];
            for (size_t p = 0; p < test->n_planners; p++) {
                entries[t][p].valid = test->total_ms[t][p] > 0;
                entries[t][p].total_ms = test->total_ms[t][p];
                entries[t][p].search_ms = 1;
            }
        }
        is_i64((int64_t)compare_means(means, &comparison),
               (int64_t)test->n_common, test->name);
        for (size_t p = 0; p < test->n_planners; p++)
            ok(means[p].n_valid == test->want[p].n_valid &&
                   means[p].n_paired == test->want[p].n_paired &&
                   is_same(means[p].ratio, test->want[p].ratio) &&
                   is_same(means[p].common_ms, test->want[p].common_ms) &&
                   is_same(means[p].search_ms, test->want[p].search_ms),
               "planner %zu: %ju solved, %ju paired, ratio %g, common %g", p,
               (uintmax_t)means[p].n_valid, (uintmax_t)means[p].n_paired,
               means[p].ratio, means[p].common_ms);
    }
    return tap_done();
}
