/* SPDX-License-Identifier: MIT */
#include "emit/compare_table.h"

#include "base/figures.h"
#include "base/text.h"
#include "core/host.h"

#include <inttypes.h>

#define ENTRY(member) MEMBER_OF(struct compare_entry, member)
static const struct figure entry_figures[] = {
    {"planner", "planner", -12, 0, FIGURE_PLAIN, ENTRY(planner)},
    {"valid", NULL, 0, 0, FIGURE_PLAIN, ENTRY(valid)},
    {"total_ms", "GPU ms", 8, 3, FIGURE_PLAIN, ENTRY(step.priced.total_ms)},
    {NULL, "x ours", 6, 3, FIGURE_PLAIN, ENTRY(ratio)},
    {"gain_error_frac", "+- %", 5, 1, FIGURE_PERCENT, ENTRY(gain_error_frac)},
    {"step_ms", "step ms", 8, 3, FIGURE_PLAIN, ENTRY(step_ms)},
    {NULL, "x ours", 6, 3, FIGURE_PLAIN, ENTRY(step_ratio)},
    {"compute_ms", NULL, 0, 0, FIGURE_PLAIN, ENTRY(compute_ms)},
    {"bwd_comm_ms", NULL, 0, 0, FIGURE_PLAIN, ENTRY(bwd_comm_ms)},
    {"fwd_comm_ms", NULL, 0, 0, FIGURE_PLAIN, ENTRY(fwd_comm_ms)},
    {"max_over_mean", NULL, 0, 0, FIGURE_PLAIN, ENTRY(max_over_mean)},
    {"memory_frac", "mem %", 5, 1, FIGURE_PERCENT, ENTRY(memory_frac)},
    {"search_ms", "search ms", 9, 2, FIGURE_PLAIN, ENTRY(search_ms)},
    {"significant", "significant", 0, 0, FIGURE_NOTE, ENTRY(is_significant)},
    {"cut_short_by", "cut short by ", 0, 0, FIGURE_NOTE, ENTRY(cut_short_by)},
    {0},
};
/* Columns of the table: the parts of a planner's step. */
static const struct figure part_figures[] = {
    {NULL, "planner", -12, 0, FIGURE_PLAIN, ENTRY(planner)},
    {"input", "input ms", 10, 3, FIGURE_PLAIN, ENTRY(parts_ms[STEP_INPUT])},
    {"forward", "forward", 8, 3, FIGURE_PLAIN, ENTRY(parts_ms[STEP_FORWARD])},
    {"output", "output", 8, 3, FIGURE_PLAIN, ENTRY(parts_ms[STEP_OUTPUT])},
    {"gradient", "gradient", 9, 3, FIGURE_PLAIN,
     ENTRY(parts_ms[STEP_GRADIENT])},
    {"backward", "backward", 9, 3, FIGURE_PLAIN,
     ENTRY(parts_ms[STEP_BACKWARD])},
    {"replicas", "replicas", 9, 3, FIGURE_PLAIN,
     ENTRY(parts_ms[STEP_REPLICAS])},
    {NULL, "max/mean", 8, 3, FIGURE_PLAIN, ENTRY(max_over_mean)},
    {0},
};
/* Columns that are printed if no plan contains the times of the parts: lookup
 * and exchange. */
static const struct figure split_figures[] = {
    {NULL, "planner", -12, 0, FIGURE_PLAIN, ENTRY(planner)},
    {NULL, "compute ms", 10, 3, FIGURE_PLAIN, ENTRY(compute_ms)},
    {NULL, "bwd comm ms", 11, 3, FIGURE_PLAIN, ENTRY(bwd_comm_ms)},
    {NULL, "fwd comm ms", 11, 3, FIGURE_PLAIN, ENTRY(fwd_comm_ms)},
    {NULL, "max/mean", 8, 3, FIGURE_PLAIN, ENTRY(max_over_mean)},
    {0},
};
/* The only cell in the row of a planner that found no valid plan: the
 * reason. */
static const struct figure reason_figures[] = {
    {"planner", "planner", -12, 0, FIGURE_PLAIN, ENTRY(planner)},
    {"valid", NULL, 0, 0, FIGURE_PLAIN, ENTRY(valid)},
    {"reason", "reason", 0, 0, FIGURE_PLAIN, ENTRY(reason)},
    {0},
};

#define MEAN(member) MEMBER_OF(struct compare_mean, member)
static const struct figure mean_figures[] = {
    {"planner", "planner", -12, 0, FIGURE_PLAIN, MEAN(planner)},
    {"solved", "solved", 7, 0, FIGURE_PLAIN, MEAN(n_valid)},
    {"cut_short", "cut", 4, 0, FIGURE_PLAIN, MEAN(n_cut_short)},
    {"paired", "paired", 7, 0, FIGURE_PLAIN, MEAN(n_paired)},
    {"ratio", "x ours", 8, 3, FIGURE_PLAIN, MEAN(ratio)},
    {"significant", "signif.", 7, 0, FIGURE_PLAIN, MEAN(n_significant)},
    {"common_ms", "common ms", 10, 3, FIGURE_PLAIN, MEAN(common_ms)},
    {"search_ms", "search ms", 10, 2, FIGURE_PLAIN, MEAN(search_ms)},
    {0},
};

void compare_fill(struct compare_entry *entry, const struct plan *plan)
{
    uint32_t n = plan->problem.cluster.n_devices;
    double busy_sum = 0, busy_max = 0;

    entry->valid = true;
    entry->step = plan_step_parts(plan);
    entry->step_ms = plan_step(plan).ms;
    entry->cost = plan->cost;
    if (plan->stopped && text_which("done|budget", plan->stopped) < 0)
        entry->cut_short_by = plan->stopped;
    for (uint32_t r = 0; r < n; r++) {
        const struct device_cost *device = &plan->devices[r];
        double busy = device->compute_ms + device->bwd_comm_ms;

        busy_sum += busy;
        busy_max = fmax(busy_max, busy);
        entry->compute_ms = fmax(entry->compute_ms, device->compute_ms);
        entry->bwd_comm_ms = fmax(entry->bwd_comm_ms, device->bwd_comm_ms);
        entry->fwd_comm_ms = fmax(entry->fwd_comm_ms, device->fwd_comm_ms);
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            entry->parts_ms[p] =
                r ? fmax(entry->parts_ms[p], device->parts_ms[p])
                  : device->parts_ms[p];
    }
    entry->memory_frac = plan_used_frac(plan, plan_fullest(plan));
    entry->max_over_mean = busy_sum > 0 ? busy_max * n / busy_sum : 1;
}

void compare_pair(struct compare_entry *entry, const struct compare_entry *ours)
{
    entry->ratio = entry->step_ratio = NAN;
    entry->gain_error_frac = entry->step_error_frac = NAN;
    if (!entry->valid || !ours->valid)
        return;
    entry->ratio = entry->step.priced.total_ms / ours->step.priced.total_ms;
    entry->step_ratio = entry->step_ms / ours->step_ms;
    if (entry == ours)
        return;
    entry->gain_error_frac =
        priced_ratio_error(&entry->step.priced, &ours->step.priced);
    entry->step_error_frac = step_ratio_error(&entry->step, &ours->step);
    entry->is_significant = fabs(entry->ratio - 1) > entry->gain_error_frac;
}

static void pair_with_ours(struct compare_mean *mean,
                           const struct comparison *comparison, size_t planner)
{
    for (size_t t = 0; t < comparison->n_tasks; t++) {
        struct compare_entry *entry = &comparison->tasks[t].entries[planner];
        const struct compare_entry *ours =
            &comparison->tasks[t].entries[comparison->n_planners - 1];

        mean->planner = entry->planner;
        mean->n_valid += entry->valid;
        mean->n_cut_short += entry->cut_short_by != NULL;
        mean->search_ms += entry->search_ms;
        compare_pair(entry, ours);
        if (!entry->valid || !ours->valid)
            continue;
        mean->n_paired++;
        mean->ratio += entry->ratio;
        mean->n_significant += entry->is_significant && entry->ratio > 1;
    }
    mean->search_ms /= (double)comparison->n_tasks;
    mean->ratio = mean->n_paired ? mean->ratio / (double)mean->n_paired : NAN;
}

void compare_means(struct comparison *comparison)
{
    struct compare_mean *means = comparison->means;
    size_t n_any = 0; /* number of planners that solved at least one task */

    comparison->n_common = 0;
    for (size_t p = 0; p < comparison->n_planners; p++) {
        means[p] = (struct compare_mean){0};
        pair_with_ours(&means[p], comparison, p);
        n_any += means[p].n_valid > 0;
    }
    for (size_t t = 0; t < comparison->n_tasks; t++) {
        const struct compare_entry *entries = comparison->tasks[t].entries;
        size_t n_here = 0;

        for (size_t p = 0; p < comparison->n_planners; p++)
            n_here += entries[p].valid;
        if (!n_here || n_here < n_any)
            continue;
        comparison->n_common++;
        for (size_t p = 0; p < comparison->n_planners; p++)
            means[p].common_ms +=
                entries[p].valid ? entries[p].step.priced.total_ms : 0;
    }
    for (size_t p = 0; p < comparison->n_planners; p++)
        means[p].common_ms =
            comparison->n_common && means[p].n_valid
                ? means[p].common_ms / (double)comparison->n_common
                : NAN;
}

static const struct figure *figures_of(const struct compare_entry *entry)
{
    return entry->valid ? entry_figures : reason_figures;
}

static bool has_parts(const struct compare_entry *entry)
{
    return entry->valid && !isnan(entry->parts_ms[0]);
}

static void print_parts(const struct comparison *comparison, struct buf *out)
{
    const struct compare_entry *entries = comparison->tasks->entries;
    const struct figure *figures = NULL;

    for (size_t p = 0; p < comparison->n_planners; p++)
        if (has_parts(&entries[p]))
            figures = part_figures;
        else if (entries[p].valid && !figures)
            figures = split_figures;
    if (!figures)
        return;
    buf_printf(out, "\n");
    figures_heading(figures, out);
    for (size_t p = 0; p < comparison->n_planners; p++)
        if (entries[p].valid &&
            (figures == split_figures || has_parts(&entries[p])))
            figures_row(figures, &entries[p], out);
}

void compare_print(const struct comparison *comparison, struct buf *out)
{
    const struct compare_entry *ours =
        &comparison->tasks->entries[comparison->n_planners - 1];
    bool is_one = comparison->n_tasks == 1;
    size_t n = is_one ? comparison->problem->n_tables : comparison->n_tasks;

    buf_printf(out, "%zu %s%s on ", n, is_one ? "table" : "task",
               n == 1 ? "" : "s");
    cluster_describe(&comparison->problem->cluster, out);
    buf_printf(out, ", batch %" PRIu64 ", cost model %s (%s)",
               comparison->problem->batch, comparison->cost.name,
               cost_basis_names[comparison->cost.basis]);
    if (comparison->job) {
        buf_printf(out, ", ");
        job_describe(comparison->job, out);
    }
    buf_printf(out, "\n\n");
    if (is_one) {
        const struct compare_entry *entries = comparison->tasks->entries;

        figures_heading(entry_figures, out);
        for (size_t p = 0; p < comparison->n_planners; p++)
            figures_row(figures_of(&entries[p]), &entries[p], out);
        print_parts(comparison, out);
        buf_printf(
            out, "\n"
                 "GPU ms: GPU work of a step; step ms: with the host's time; "
                 "+- %%: error of the ratio of GPU work, not exceeded by nine "
                 "in ten; significant: the ratio differs from 1 by more\n"
                 "parts: each of the GPU that is slowest in it; fwd comm "
                 "includes waiting; max/mean: of compute + bwd comm\n");
        cost_print_outside(&ours->cost, out);
    } else {
        FIGURES_TABLE(mean_figures, comparison->means, comparison->n_planners,
                      out);
        buf_printf(out,
                   "\n"
                   "x ours: mean ratio of the total to ours, on the tasks that "
                   "both solved; common ms: mean total on the %zu tasks solved "
                   "by all planners that solved any; search ms: mean of all "
                   "tasks; signif.: tasks on which our gain exceeds its error; "
                   "cut: tasks cut short by time or an interrupt\n",
                   comparison->n_common);
    }
}

json_t *compare_entries_to_json(const struct compare_entry *entries, size_t n)
{
    json_t *rows = json_array();

    for (size_t p = 0; p < n; p++) {
        const struct compare_entry *entry = &entries[p];
        json_t *row = figures_object(figures_of(entry), entry);

        if (has_parts(entry))
            json_object_set_new(row, "phases_ms",
                                figures_object(part_figures, entry));
        if (entry->cost.n_outside)
            json_object_set_new(row, "outside",
                                cost_outside_to_json(&entry->cost));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *compare_to_json(const struct comparison *comparison)
{
    bool is_one = comparison->n_tasks == 1;
    json_t *root =
        json_pack("{s:s, s:s, s:s, s:o}", "cost_model", comparison->cost.name,
                  "hash", comparison->cost.hash, "basis",
                  cost_basis_names[comparison->cost.basis], "planners",
                  is_one ? compare_entries_to_json(comparison->tasks->entries,
                                                   comparison->n_planners)
                         : FIGURES_LIST(mean_figures, comparison->means,
                                        comparison->n_planners));
    json_t *tasks;

    if (is_one)
        return root;
    json_object_set_new(root, "common_tasks",
                        json_integer((json_int_t)comparison->n_common));
    json_object_set_new(root, "tasks", tasks = json_array());
    for (size_t t = 0; t < comparison->n_tasks; t++)
        json_array_append_new(
            tasks,
            json_pack("{s:s, s:o}", "task", comparison->tasks[t].name,
                      "planners",
                      compare_entries_to_json(comparison->tasks[t].entries,
                                              comparison->n_planners)));
    return root;
}

void compare_to_csv(const struct comparison *comparison, struct buf *out)
{
    for (size_t t = 0; t < comparison->n_tasks; t++) {
        const struct compare_task *task = &comparison->tasks[t];

        for (size_t p = 0; p < comparison->n_planners; p++) {
            const struct compare_entry *entry = &task->entries[p];
            json_t *row = json_object(), *value;
            const char *key;

            json_object_set_new(row, "task",
                                json_member(MEMBER_TEXT, &task->name));
            json_object_update_new(row, figures_object(entry_figures, entry));
            json_object_update_new(row, figures_object(part_figures, entry));
            json_object_foreach(row, key, value)
            {
                if (!entry->valid && json_is_real(value))
                    json_object_set_new(row, key, json_null());
            }
            json_object_set_new(row, "reason",
                                json_member(MEMBER_TEXT, &entry->reason));
            if (!t && !p)
                figures_csv(row, true, out);
            figures_csv(row, false, out);
            json_decref(row);
        }
    }
}
