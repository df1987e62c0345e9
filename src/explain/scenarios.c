/* SPDX-License-Identifier: MIT */
#include "explain/scenarios.h"

#include "base/figures.h"
#include "base/text.h"
#include "core/host.h"
#include "core/plan_error.h"

#include <string.h>

/* Smallest relative change of a step that counts if the error of a ratio is not
 * known. */
#define LEAST_FRAC 1e-3
#define NAME_WIDTH 24

const char *scenario_cut_short(const struct plan *plan)
{
    if (!plan || !plan->stopped)
        return NULL;
    if (!strcmp(plan->stopped, "time"))
        return "was cut short by the time limit";
    if (!strcmp(plan->stopped, "interrupt"))
        return "was cut short by an interrupt";
    return NULL;
}

/* --- settings --- */

/* A scenario in the figures of the table. */
struct scenario_row {
    const char *name, *origin, *fits, *stopped;
    const char *why_not, *command;
    bool is_fresh, has_room;
    double step_ms, total_ms, rate;
    uint32_t fullest;
    uint64_t used_bytes, memory_bytes;
    double used, used_frac;
};
#define ROW(member) MEMBER_OF(struct scenario_row, member)
static const struct figure scenario_figures[] = {
    {"what_if", "what if", -NAME_WIDTH, NAME_WIDTH, FIGURE_CUT, ROW(name)},
    {NULL, "plan", -5, 0, FIGURE_PLAIN, ROW(origin)},
    {"fresh", NULL, 0, 0, FIGURE_PLAIN, ROW(is_fresh)},
    {"fits", NULL, 0, 0, FIGURE_PLAIN, ROW(has_room)},
    {"step_ms", "step ms", 8, 3, FIGURE_PLAIN, ROW(step_ms)},
    {"total_ms", "GPU ms", 8, 3, FIGURE_PLAIN, ROW(total_ms)},
    {"samples_per_second", "samples/s", 10, 0, FIGURE_PLAIN, ROW(rate)},
    {"fullest_gpu", NULL, 0, 0, FIGURE_PLAIN, ROW(fullest)},
    {NULL, "fullest", 9, 0, FIGURE_BYTES, ROW(used)},
    {"used_bytes", NULL, 0, 0, FIGURE_PLAIN, ROW(used_bytes)},
    {"memory_bytes", NULL, 0, 0, FIGURE_PLAIN, ROW(memory_bytes)},
    {NULL, "%", 4, 0, FIGURE_PERCENT, ROW(used_frac)},
    {NULL, "fits", 4, 0, FIGURE_PLAIN, ROW(fits)},
    {"stopped", NULL, 0, 0, FIGURE_PLAIN, ROW(stopped)},
    {"why_not", NULL, 0, 0, FIGURE_PLAIN, ROW(why_not)},
    {"next", NULL, 0, 0, FIGURE_PLAIN, ROW(command)},
    {0},
};

static struct scenario_row row_of(const struct scenario *scenario)
{
    const struct plan *plan = scenario->plan;
    struct scenario_row row = {.name = scenario->name,
                               .origin = scenario->is_fresh ? "fresh" : "same",
                               .is_fresh = scenario->is_fresh,
                               .has_room = !scenario->why_not,
                               .fits = scenario->why_not ? "no" : "yes",
                               .why_not = scenario->why_not,
                               .command = scenario->command,
                               .step_ms = NAN,
                               .total_ms = NAN,
                               .rate = NAN,
                               .used = NAN,
                               .used_frac = NAN};

    if (!plan)
        return row;
    row.fullest = plan_fullest(plan);
    row.step_ms = plan_step(plan).ms;
    row.total_ms = plan->total_ms;
    row.rate = 1000 * (double)problem_all_samples(&plan->problem) / row.step_ms;
    row.used_bytes = plan->devices[row.fullest].memory.total;
    row.memory_bytes = plan->problem.cluster.memory_bytes[row.fullest];
    row.used = (double)row.used_bytes;
    row.used_frac = plan_used_frac(plan, row.fullest);
    row.stopped = scenario->is_fresh ? plan->stopped : NULL;
    return row;
}

/* Most columns of a line of a command, without its backslash. */
#define COMMAND_COLUMNS 76u

void scenario_print_command(const char *command, int indent, struct buf *out)
{
    size_t begin = out->len;

    buf_printf(out, "%*snext:", indent, "");
    while (*command) {
        const char *end = strstr(command + 1, " --");
        const size_t len = end ? (size_t)(end - command) : strlen(command);
        const bool is_first = *command != ' ';

        if (!is_first && out->len - begin + len > COMMAND_COLUMNS) {
            buf_printf(out, " \\\n");
            begin = out->len;
            buf_printf(out, "%*s   ", indent, "");
        }
        buf_printf(out, "%s%.*s", is_first ? " " : "", (int)len, command);
        command += len;
    }
    buf_printf(out, "\n");
}

void scenarios_print(const struct scenario *scenarios, size_t n,
                     struct buf *out)
{
    figures_heading(scenario_figures, out);
    for (size_t i = 0; i < n; i++) {
        const struct scenario_row row = row_of(&scenarios[i]);

        figures_row(scenario_figures, &row, out);
    }
    for (size_t i = 0; i < n; i++) {
        const struct scenario *one = &scenarios[i];
        const char *cut_short =
            one->is_fresh ? scenario_cut_short(one->plan) : NULL;

        if (one->why_not)
            buf_printf(out, "%s: %s\n", one->name, one->why_not);
        if (one->command)
            scenario_print_command(one->command, 0, out);
        if (cut_short)
            buf_printf(out, "%s: the search %s\n", one->name, cut_short);
    }
    if (n && !job_knows_dense(&scenarios[0].plan->problem.job))
        buf_printf(out, "samples/s: upper bounds, as the dense part is not "
                        "known\n");
}

json_t *scenarios_to_json(const struct scenario *scenarios, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        static const char *const of_plan[] = {"fullest_gpu", "used_bytes",
                                              "memory_bytes"};
        const struct scenario_row row = row_of(&scenarios[i]);
        json_t *object = figures_object(scenario_figures, &row);

        for (size_t k = 0; k < 3 && !scenarios[i].plan; k++)
            json_object_set_new(object, of_plan[k], json_null());
        json_array_append_new(list, object);
    }
    return list;
}

/* --- fresh plans --- */

struct plan_gain gain_of(const struct plan *fresh, const struct plan *now)
{
    const struct priced_parts one = plan_priced_parts(now);
    struct plan_gain gain = {.ratio = NAN, .error_frac = LEAST_FRAC};
    struct priced_parts ours;
    double error_frac;

    if (!fresh)
        return gain;
    ours = plan_priced_parts(fresh);
    error_frac = priced_ratio_error(&one, &ours);
    gain.ratio = one.total_ms / ours.total_ms;
    gain.is_error = error_frac > 0;
    if (gain.is_error)
        gain.error_frac = error_frac;
    gain.is_significant = gain.ratio > 1 + gain.error_frac;
    return gain;
}

/* A fresh plan in the figures of the table. */
struct fresh_row {
    const char *name, *verdict, *stopped, *why_not;
    double step_ms, total_ms, gain_ms, ratio, error_frac, known_error_frac;
    bool is_significant;
};
#define FRESH(member) MEMBER_OF(struct fresh_row, member)
static const struct figure fresh_figures[] = {
    {"what", "fresh plan", -NAME_WIDTH, 0, FIGURE_PLAIN, FRESH(name)},
    {"step_ms", "step ms", 9, 4, FIGURE_PLAIN, FRESH(step_ms)},
    {"total_ms", "GPU ms", 9, 4, FIGURE_PLAIN, FRESH(total_ms)},
    {"gain_ms", NULL, 0, 0, FIGURE_PLAIN, FRESH(gain_ms)},
    {"ratio", "faster", 8, 3, FIGURE_PLAIN, FRESH(ratio)},
    {"ratio_error_frac", "+- %", 6, 1, FIGURE_PERCENT, FRESH(known_error_frac)},
    {"significant", NULL, 0, 0, FIGURE_PLAIN, FRESH(is_significant)},
    {NULL, "gain", 0, 0, FIGURE_PLAIN, FRESH(verdict)},
    {"stopped", NULL, 0, 0, FIGURE_PLAIN, FRESH(stopped)},
    {"why_not", NULL, 0, 0, FIGURE_PLAIN, FRESH(why_not)},
    {0},
};

static const char *judge_gain(const struct scenario *scenario,
                              const struct plan_gain *gain)
{
    if (!scenario->plan)
        return "no plan found";
    if (gain->is_significant)
        return gain->is_error ? "beyond the error" : "more than 0.1 %";
    if (gain->ratio < 1 - gain->error_frac)
        return "slower";
    return gain->is_error ? "within the error" : "less than 0.1 %";
}

static struct fresh_row fresh_row_of(const struct scenario *scenario,
                                     const struct plan *now)
{
    const struct plan_gain gain = gain_of(scenario->plan, now);
    const struct plan *plan = scenario->plan;

    return (struct fresh_row){
        .name = scenario->name,
        .verdict = judge_gain(scenario, &gain),
        .stopped = plan ? plan->stopped : NULL,
        .why_not = scenario->why_not,
        .step_ms = plan ? plan_step(plan).ms : NAN,
        .total_ms = plan ? plan->total_ms : NAN,
        .gain_ms = plan ? now->total_ms - plan->total_ms : NAN,
        .ratio = gain.ratio,
        .known_error_frac = gain.is_error ? gain.error_frac : NAN,
        .is_significant = gain.is_significant};
}

/* Returns the plan over which scenario i gains. */
static const struct plan *baseline(const struct scenario *scenarios, size_t i,
                                   const struct plan *now)
{
    return i && gain_of(scenarios[0].plan, now).is_significant
               ? scenarios[0].plan
               : now;
}

/* Prints a sentence about the fresh plan for the same conditions, such as "a
 * fresh plan is 1.03x faster, within the error of +-6 %: keep this plan". */
static void print_judgement(const struct scenario *fresh,
                            const struct plan *now, struct buf *out)
{
    const struct plan_gain gain = gain_of(fresh->plan, now);
    const char *cut_short = scenario_cut_short(fresh->plan);

    if (!fresh->plan) {
        buf_printf(out, "no fresh plan was found: keep this plan\n");
        return;
    }
    if (gain.ratio >= 1)
        buf_printf(out, "a fresh plan is %.2fx faster", gain.ratio);
    else
        buf_printf(out, "a fresh plan is %.2fx slower", 1 / gain.ratio);
    if (gain.is_error)
        buf_printf(out, ", %s the error of +-%.0f %%",
                   gain.is_significant || gain.ratio < 1 - gain.error_frac
                       ? "beyond"
                       : "within",
                   100 * gain.error_frac);
    else
        buf_printf(out, " (the error of the ratio is not known)");
    buf_printf(out, ": %s\n",
               gain.is_significant ? "replan" : "keep this plan");
    if (cut_short)
        buf_printf(out, "the search for it %s: a longer one may find more\n",
                   cut_short);
}

void fresh_plans_print(const struct scenario *scenarios, size_t n,
                       const struct plan *now, struct buf *out)
{
    figures_heading(fresh_figures, out);
    for (size_t i = 0; i < n; i++) {
        const struct fresh_row row =
            fresh_row_of(&scenarios[i], baseline(scenarios, i, now));

        figures_row(fresh_figures, &row, out);
    }
    if (n)
        print_judgement(&scenarios[0], now, out);
    for (size_t i = 1; i < n; i++)
        if (scenario_cut_short(scenarios[i].plan))
            buf_printf(out, "%s: the search %s\n", scenarios[i].name,
                       scenario_cut_short(scenarios[i].plan));
}

json_t *fresh_plans_to_json(const struct scenario *scenarios, size_t n,
                            const struct plan *now)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++) {
        const struct fresh_row row =
            fresh_row_of(&scenarios[i], baseline(scenarios, i, now));

        json_array_append_new(list, figures_object(fresh_figures, &row));
    }
    return list;
}
