/* SPDX-License-Identifier: MIT */
#include "cli/compare_table.h"

#include "cli/command.h"

#include <math.h>
#include <stdio.h>

void compare_fill(struct compare_entry *entry, const struct plan *plan)
{
    uint32_t n = plan->problem.cluster.n_devices;
    double busy_sum = 0, busy_max = 0;

    entry->valid = true;
    entry->total_ms = plan->total_ms;
    for (uint32_t r = 0; r < n; r++) {
        const struct device_cost *device = &plan->devices[r];
        double busy = device->compute_ms + device->bwd_comm_ms;
        double full = (double)device->memory.total /
                      (double)plan->problem.cluster.memory_bytes[r];

        busy_sum += busy;
        busy_max = fmax(busy_max, busy);
        entry->compute_ms = fmax(entry->compute_ms, device->compute_ms);
        entry->bwd_comm_ms = fmax(entry->bwd_comm_ms, device->bwd_comm_ms);
        entry->fwd_comm_ms = fmax(entry->fwd_comm_ms, device->fwd_comm_ms);
        entry->memory_frac = fmax(entry->memory_frac, full);
    }
    entry->max_over_mean = busy_sum > 0 ? busy_max * n / busy_sum : 1;
}

/* Whether each planner that solved any task solved this one. */
static bool is_common(const struct comparison *comparison, size_t task,
                      const struct compare_mean *means)
{
    size_t n_any = 0;

    for (size_t p = 0; p < comparison->n_planners; p++) {
        n_any += means[p].n_valid > 0;
        if (means[p].n_valid && !comparison->tasks[task].entries[p].valid)
            return false;
    }
    return n_any > 0;
}

static void pair_with_ours(struct compare_mean *mean,
                           const struct comparison *comparison, size_t planner)
{
    for (size_t t = 0; t < comparison->n_tasks; t++) {
        const struct compare_entry *entries = comparison->tasks[t].entries;
        const struct compare_entry *ours = &entries[comparison->n_planners - 1];

        mean->n_valid += entries[planner].valid;
        mean->search_ms += entries[planner].search_ms;
        if (!entries[planner].valid || !ours->valid)
            continue;
        mean->n_paired++;
        mean->ratio += entries[planner].total_ms / ours->total_ms;
    }
    mean->search_ms /= (double)comparison->n_tasks;
    mean->ratio = mean->n_paired ? mean->ratio / (double)mean->n_paired : NAN;
}

size_t compare_means(struct compare_mean *means,
                     const struct comparison *comparison)
{
    size_t n_common = 0;

    for (size_t p = 0; p < comparison->n_planners; p++) {
        means[p] = (struct compare_mean){0};
        pair_with_ours(&means[p], comparison, p);
    }
    for (size_t t = 0; t < comparison->n_tasks; t++) {
        if (!is_common(comparison, t, means))
            continue;
        n_common++;
        for (size_t p = 0; p < comparison->n_planners; p++)
            if (means[p].n_valid)
                means[p].common_ms += comparison->tasks[t].entries[p].total_ms;
    }
    for (size_t p = 0; p < comparison->n_planners; p++)
        means[p].common_ms = n_common && means[p].n_valid
                                 ? means[p].common_ms / (double)n_common
                                 : NAN;
    return n_common;
}

/* A dash for what is unknown, or a multiple of nothing. */
static void print_number(double x, int width, int decimals)
{
    if (!isfinite(x))
        printf(" %*s", width, "-");
    else
        printf(" %*.*f", width, decimals, x);
}

static void print_head(const struct comparison *comparison, size_t n,
                       const char *what)
{
    struct buf cluster = {0};

    cluster_describe(&comparison->cluster, &cluster);
    printf("%zu %s%s on %s, batch %llu, cost model %s (%s)\n\n", n, what,
           n == 1 ? "" : "s", cluster.data,
           (unsigned long long)comparison->batch, comparison->cost_model,
           comparison->basis);
    buf_release(&cluster);
}

static void print_task(const struct comparison *comparison)
{
    const struct compare_entry *entries = comparison->tasks[0].entries;
    const struct compare_entry *ours = &entries[comparison->n_planners - 1];

    print_head(comparison, comparison->tasks[0].n_tables, "table");
    printf("%-12s %10s %8s %10s %11s %11s %9s %9s %10s\n", "planner",
           "total ms", "x ours", "compute ms", "bwd comm ms", "fwd comm ms",
           "max/mean", "memory %", "search ms");
    for (size_t p = 0; p < comparison->n_planners; p++) {
        const struct compare_entry *entry = &entries[p];

        if (!entry->valid) {
            printf("%-12s %s\n", entry->planner, entry->reason);
            continue;
        }
        printf("%-12s %10.3f", entry->planner, entry->total_ms);
        print_number(ours->valid ? entry->total_ms / ours->total_ms : NAN, 8,
                     3);
        printf(" %10.3f %11.3f %11.3f %9.3f %9.1f %10.2f\n", entry->compute_ms,
               entry->bwd_comm_ms, entry->fwd_comm_ms, entry->max_over_mean,
               100 * entry->memory_frac, entry->search_ms);
    }
    fputs("\nparts are those of the slowest GPU in each; fwd comm holds "
          "waiting; max/mean is of compute + bwd comm\n",
          stdout);
}

static void print_means(const struct comparison *comparison)
{
    struct compare_mean *means =
        mem_alloc(comparison->n_planners, sizeof(*means));
    size_t n_common = compare_means(means, comparison);

    print_head(comparison, comparison->n_tasks, "task");
    printf("%-12s %7s %7s %8s %10s %10s\n", "planner", "solved", "paired",
           "x ours", "common ms", "search ms");
    for (size_t p = 0; p < comparison->n_planners; p++) {
        printf("%-12s %7zu %7zu", comparison->tasks[0].entries[p].planner,
               means[p].n_valid, means[p].n_paired);
        print_number(means[p].ratio, 8, 3);
        print_number(means[p].common_ms, 10, 3);
        print_number(means[p].search_ms, 10, 2);
        putchar('\n');
    }
    printf("\nx ours: mean of total over ours, on the tasks that both solved; "
           "common ms: mean total\non the %zu tasks solved by all planners "
           "that solved any; search ms: mean of all tasks\n",
           n_common);
    mem_free(means);
}

void compare_print(const struct comparison *comparison)
{
    if (comparison->n_tasks == 1)
        print_task(comparison);
    else
        print_means(comparison);
}

static json_t *json_entries(const struct comparison *comparison,
                            const struct compare_task *task)
{
    json_t *rows = json_array();

    for (size_t p = 0; p < comparison->n_planners; p++) {
        const struct compare_entry *entry = &task->entries[p];
        json_t *row = json_pack("{s:s, s:b}", "planner", entry->planner,
                                "valid", entry->valid);

        if (entry->valid)
            json_object_update_new(
                row,
                json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f}", "total_ms",
                          entry->total_ms, "compute_ms", entry->compute_ms,
                          "bwd_comm_ms", entry->bwd_comm_ms, "fwd_comm_ms",
                          entry->fwd_comm_ms, "max_over_mean",
                          entry->max_over_mean, "memory_frac",
                          entry->memory_frac, "search_ms", entry->search_ms));
        else
            json_object_set_new(row, "reason", json_string(entry->reason));
        json_array_append_new(rows, row);
    }
    return rows;
}

static json_t *json_means(const struct comparison *comparison, size_t *n_common)
{
    struct compare_mean *means =
        mem_alloc(comparison->n_planners, sizeof(*means));
    json_t *rows = json_array();

    *n_common = compare_means(means, comparison);
    for (size_t p = 0; p < comparison->n_planners; p++)
        json_array_append_new(
            rows, json_pack("{s:s, s:I, s:I, s:o, s:o, s:f}", "planner",
                            comparison->tasks[0].entries[p].planner, "solved",
                            (json_int_t)means[p].n_valid, "paired",
                            (json_int_t)means[p].n_paired, "ratio",
                            json_real_or_null(means[p].ratio), "common_ms",
                            json_real_or_null(means[p].common_ms), "search_ms",
                            means[p].search_ms));
    mem_free(means);
    return rows;
}

void compare_print_json(const struct comparison *comparison)
{
    json_t *root =
        json_pack("{s:s, s:s, s:s}", "cost_model", comparison->cost_model,
                  "hash", comparison->hash, "basis", comparison->basis);
    json_t *tasks;
    size_t n_common;

    if (comparison->n_tasks == 1) {
        json_object_set_new(root, "planners",
                            json_entries(comparison, comparison->tasks));
    } else {
        json_object_set_new(root, "planners",
                            json_means(comparison, &n_common));
        json_object_set_new(root, "common_tasks",
                            json_integer((json_int_t)n_common));
        json_object_set_new(root, "tasks", tasks = json_array());
        for (size_t t = 0; t < comparison->n_tasks; t++)
            json_array_append_new(
                tasks,
                json_pack("{s:s, s:o}", "task", comparison->tasks[t].name,
                          "planners",
                          json_entries(comparison, &comparison->tasks[t])));
    }
    cli_print_json(root);
}
