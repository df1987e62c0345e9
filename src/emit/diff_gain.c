/* SPDX-License-Identifier: MIT */
#include "emit/diff_gain.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

#define N_NAMES_SHOWN 3

static bool is_same_text(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

bool diff_is_priced(const struct plan plans[2])
{
    return plan_is_priced(&plans[0]) && plan_is_priced(&plans[1]) &&
           is_same_text(plans[0].cost.name, plans[1].cost.name) &&
           is_same_text(plans[0].cost.hash, plans[1].cost.hash);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Fills names[n_tables] with the tables that a plan does not train as whole
 * ones, in alphabetical order. Returns their number. */
static size_t find_changed(const char **names, const struct plan *plan)
{
    size_t n = 0;

    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];

        if ((i && plan->shards[i - 1].table == shard->table) ||
            !shard_changes_training(&plan->problem, shard))
            continue;
        names[n++] = plan->problem.tables[shard->table].name;
    }
    if (n)
        qsort(names, n, sizeof(*names), compare_names);
    return n;
}

static void compare_training(struct diff_gain *gain, const struct plan plans[2],
                             struct arena *arena)
{
    const char **before =
        ARENA_NEW(arena, const char *, plans[0].problem.n_tables);
    const char **after =
        ARENA_NEW(arena, const char *, plans[1].problem.n_tables);
    const size_t n_before = find_changed(before, &plans[0]);
    const size_t n_after = find_changed(after, &plans[1]);

    gain->changed = after;
    for (size_t i = 0; i < n_after; i++)
        if (!n_before || !bsearch(&after[i], before, n_before, sizeof(*before),
                                  compare_names))
            gain->changed[gain->n_changed++] = after[i];
}

/* Returns the gain that a plan must exceed to pay. */
static double least_gain(const struct diff_gain *gain)
{
    return isnan(gain->step_error_frac)
               ? DIFF_LEAST_GAIN
               : fmax(DIFF_LEAST_GAIN, gain->step_error_frac);
}

static void compare_times(struct diff_gain *gain, const struct plan plans[2])
{
    struct step_parts parts[2];

    for (int i = 0; i < 2; i++) {
        parts[i] = plan_step_parts(&plans[i]);
        gain->steps[i] = plan_step(&plans[i]);
        gain->host_ms[i] = parts[i].host_ms;
        gain->work_ms[i] = plans[i].total_ms;
    }
    gain->step_ratio = gain->steps[0].ms / gain->steps[1].ms;
    gain->step_error_frac = step_ratio_error(&parts[0], &parts[1]);
    gain->work_ratio = gain->work_ms[0] / gain->work_ms[1];
    gain->work_error_frac =
        priced_ratio_error(&parts[0].priced, &parts[1].priced) /
        gain->work_ratio;
    gain->pays =
        gain->step_ratio - 1 >
        fmax(DIFF_LEAST_GAIN, isnan(gain->step_error_frac)
                                  ? 0
                                  : gain->step_ratio * gain->step_error_frac);
}

/* Returns "2 tables (a, b)", or "1 table (a)". */
static const char *say_tables(const struct diff_gain *gain, struct arena *arena)
{
    struct buf names = {0};
    const char *text;

    for (size_t i = 0; i < gain->n_changed && i < N_NAMES_SHOWN; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", gain->changed[i]);
    text = arena_printf(arena, "%zu table%s (%s%s)", gain->n_changed,
                        gain->n_changed == 1 ? "" : "s", names.data,
                        gain->n_changed > N_NAMES_SHOWN ? ", ..." : "");
    buf_release(&names);
    return text;
}

/* Returns true if the host takes longer than the GPU work of both plans. */
static bool host_binds(const struct diff_gain *gain)
{
    return gain->host_ms[0] > gain->work_ms[0] &&
           gain->host_ms[1] > gain->work_ms[1];
}

static const char *say_verdict(const struct diff_gain *gain,
                               uint64_t moved_bytes, struct arena *arena)
{
    const char *error =
        isnan(gain->step_error_frac)
            ? " (error unknown)"
            : arena_printf(arena, " +-%.1f %%", 100 * gain->step_error_frac);
    const double percent = 100 * (gain->step_ratio - 1);
    const double least = least_gain(gain);

    if (gain->pays)
        return arena_printf(
            arena,
            "the new plan pays: its steps are %.1f %% faster%s, it moves %s, "
            "and %s",
            percent, error, TEXT_BYTES(moved_bytes),
            gain->n_changed ? arena_printf(arena, "changes training in %s",
                                           say_tables(gain, arena))
                            : "training does not change");
    if (fabs(gain->work_ratio - 1) > DIFF_LEAST_GAIN && host_binds(gain))
        return arena_printf(
            arena,
            "keep the old plan: the host takes %.2f ms, which hides that the "
            "GPU work is %.2f instead of %.2f ms; the steps differ by %.1f %%",
            gain->host_ms[1], gain->work_ms[1], gain->work_ms[0],
            fabs(percent));
    if (1 / gain->step_ratio - 1 > least)
        return arena_printf(arena,
                            "keep the old plan: its steps are %.1f %% faster%s",
                            100 * (1 / gain->step_ratio - 1), error);
    return arena_printf(arena,
                        "keep the old plan: the steps differ by %.1f %%, and "
                        "less than %.1f %% does not count",
                        fabs(percent), 100 * least);
}

void diff_gain_find(struct diff_gain *gain, const struct plan plans[2],
                    uint64_t moved_bytes, struct arena *arena)
{
    const struct time_range unknown = {NAN, NAN, NAN};

    *gain = (struct diff_gain){
        .is_priced = diff_is_priced(plans),
        .steps = {unknown, unknown},
        .host_ms = {NAN, NAN},
        .work_ms = {NAN, NAN},
        .step_ratio = NAN,
        .step_error_frac = NAN,
        .work_ratio = NAN,
        .work_error_frac = NAN,
    };
    compare_training(gain, plans, arena);
    if (!gain->is_priced)
        return;
    compare_times(gain, plans);
    if (isfinite(gain->step_ratio))
        gain->verdict = say_verdict(gain, moved_bytes, arena);
}

/* --- text and JSON --- */

void diff_gain_print(const struct diff_gain *gain, struct buf *out)
{
    const double before_ms = gain->work_ms[0], after_ms = gain->work_ms[1];

    if (!gain->is_priced) {
        buf_printf(out, "work    not compared: no cost model has priced both "
                        "plans; use --cost\n");
        return;
    }
    buf_printf(out, "step    %.4g ms, was %.4g ms", gain->steps[1].ms,
               gain->steps[0].ms);
    if (isfinite(gain->step_ratio))
        buf_printf(out, ", %.3fx", gain->step_ratio);
    if (!isnan(gain->step_error_frac) && isfinite(gain->step_ratio))
        buf_printf(out, " +-%.1f %%", 100 * gain->step_error_frac);
    if (gain->host_ms[0] > 0 || gain->host_ms[1] > 0)
        buf_printf(out, "; the host takes %.2f ms, was %.2f", gain->host_ms[1],
                   gain->host_ms[0]);
    if (host_binds(gain))
        buf_printf(out, ", and both wait for it");
    buf_printf(out, "\nwork    %+.4f ms of GPU work", after_ms - before_ms);
    if (before_ms > 0)
        buf_printf(out, ", %+.2f %%", 100 * (after_ms / before_ms - 1));
    if (before_ms > 0 && !isnan(gain->work_error_frac))
        buf_printf(out, " +-%.2f %%",
                   100 * gain->work_error_frac * after_ms / before_ms);
    buf_printf(out, "\n");
}

json_t *diff_gain_to_json(const struct diff_gain *gain)
{
    json_t *changed = json_array();

    for (size_t i = 0; i < gain->n_changed; i++)
        json_array_append_new(changed, json_string(gain->changed[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:b, s:o, s:s?}", "step_ratio",
                     json_real_or_null(gain->step_ratio), "step_error_frac",
                     json_real_or_null(gain->step_error_frac), "work_ratio",
                     json_real_or_null(gain->work_ratio), "work_error_frac",
                     json_real_or_null(gain->work_error_frac), "pays",
                     gain->pays, "training_changes", changed, "verdict",
                     gain->verdict);
}
