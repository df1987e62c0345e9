/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/table_factors.h"

#include "base/figures.h"
#include "costmodel/formulas/linear.h"
#include "costmodel/models/oracle_open.h"

#include <string.h>

/* Weight of the ridge, relative to the squares of the predicted times. A
 * difference between classes counts in full if it changes the times of the
 * ranks by much more than the root of this, 10 %. */
#define RIDGE 0.01
/* Equation that keeps the system solvable if no rank has any lookups. */
#define TINY 1e-12
/* Factors are rounded to multiples of 1 / PER_ROUND. */
#define PER_ROUND 1000
/* Least new factor of a class as a share of the old one. A lower one follows
 * from noise in the times of classes that the ranks hardly tell apart. */
#define LEAST 0.1

struct factor_fit {
    struct plan *plan;
    const struct rank_lookups *measured;
    struct table_factors *found;
    uint32_t *class_of; /* [n_tables] */
    /* Figures of one phase:
     * base_ms[R]              predicted times
     * added_ms[n_classes][R]  times that are added if the factor of the class
     *                         rises by 1
     * factors[n_classes]      factor of the last table of the class */
    double *base_ms, *added_ms, *factors;
};

/* Returns the power of two that is the least limit on the columns. */
static unsigned columns_limit(uint32_t dim)
{
    unsigned limit = TABLE_COLUMN_STEP;

    while (limit < dim)
        limit *= 2;
    return limit;
}

static bool is_same_class(const struct table *a, const struct table *b)
{
    return a->output == b->output && a->precision == b->precision &&
           a->optimizer == b->optimizer &&
           columns_limit(a->dim) == columns_limit(b->dim);
}

static const char *class_name(const struct table *table, struct arena *arena)
{
    const unsigned limit = columns_limit(table->dim);

    return arena_printf(
        arena, "%s %s %s, %u to %u columns", table_output_names[table->output],
        precision_names[table->precision], optimizer_names[table->optimizer],
        limit > TABLE_COLUMN_STEP ? limit / 2 + 1 : 1, limit);
}

static void find_classes(struct factor_fit *fit, struct arena *arena)
{
    const struct problem *problem = &fit->plan->problem;
    struct table_factors *found = fit->found;
    const struct table **first =
        ARENA_NEW(arena, const struct table *, problem->n_tables);

    found->classes = ARENA_NEW(arena, struct table_class, problem->n_tables);
    fit->class_of = ARENA_NEW(arena, uint32_t, problem->n_tables);
    for (size_t t = 0; t < problem->n_tables; t++) {
        const struct table *table = &problem->tables[t];
        size_t c = 0;

        while (c < found->n && !is_same_class(table, first[c]))
            c++;
        if (c == found->n) {
            first[found->n++] = table;
            found->classes[c].name = class_name(table, arena);
        }
        found->classes[c].n_tables++;
        fit->class_of[t] = (uint32_t)c;
    }
}

/* The factor of a phase, which is forward or backward. */
static double *factor_of(struct table *table, enum step_part phase)
{
    return phase == STEP_FORWARD ? &table->forward_factor
                                 : &table->backward_factor;
}

/* Prices the plan with `more` added to the factors of a class, or to none if
 * the class is n. Stores the times of the phase in ms[R]. */
static int price(const struct factor_fit *fit, enum step_part phase,
                 size_t class, double more, double *ms, struct arena *arena,
                 struct err *err)
{
    struct plan plan = *fit->plan;
    const size_t n = plan.problem.n_tables;

    plan.problem.tables = ARENA_NEW(arena, struct table, n);
    memcpy(plan.problem.tables, fit->plan->problem.tables,
           n * sizeof(*plan.problem.tables));
    for (size_t t = 0; t < n; t++)
        if (fit->class_of[t] == class)
            *factor_of(&plan.problem.tables[t], phase) += more;
    if (oracle_price_plan(&plan, fit->plan->cost.name, arena, err))
        return -1;
    if (!plan_has_parts(&plan))
        return err_input(err, "cost model '%s' predicts no phases",
                         plan.cost.name);
    for (uint32_t r = 0; r < plan.problem.cluster.n_devices; r++)
        ms[r] = plan.devices[r].parts_ms[phase];
    return 0;
}

static double measured_ms(const struct factor_fit *fit, enum step_part phase,
                          uint32_t rank)
{
    return phase == STEP_FORWARD ? fit->measured[rank].forward_ms
                                 : fit->measured[rank].backward_ms;
}

/* Adds the equation of each rank that measured the phase to the normal
 * equations a w = b, with n unknowns: the change of the common factor, then
 * those of the classes in addition. fixed[n_classes]: changes that are known,
 * or NAN. Returns the number of these ranks. */
static unsigned add_ranks(const struct factor_fit *fit, enum step_part phase,
                          const double *fixed, double *a, double *b, size_t n,
                          double *x)
{
    const uint32_t n_ranks = fit->plan->problem.cluster.n_devices;
    unsigned n_known = 0;

    for (uint32_t r = 0; r < n_ranks; r++) {
        const double base = fit->base_ms[r];
        double more = measured_ms(fit, phase, r) - base;

        if (isnan(more) || !(base > 0))
            continue;
        n_known++;
        x[0] = 0;
        for (size_t c = 1; c < n; c++) {
            const double added = fit->added_ms[(c - 1) * n_ranks + r];

            x[c] = isnan(fixed[c - 1]) ? added : 0;
            x[0] += x[c];
            more -= isnan(fixed[c - 1]) ? 0 : added * fixed[c - 1];
        }
        normal_add(a, b, n, x, n, more, 1 / (base * base));
    }
    return n_known;
}

/* Solves for changes[n_classes] of the factors. A class whose factor would fall
 * too far is fixed at the least factor, and the others are solved again.
 * Returns false if no rank has measured the phase. */
static bool solve(const struct factor_fit *fit, enum step_part phase,
                  double *changes, struct arena *arena)
{
    const size_t n = 1 + fit->found->n;
    double *fixed = ARENA_NEW(arena, double, n);
    double *a = ARENA_NEW(arena, double, n *n),
           *b = ARENA_NEW(arena, double, n);
    double *x = ARENA_NEW(arena, double, n);
    bool is_fixed = true;

    for (size_t c = 0; c < n; c++)
        fixed[c] = NAN;
    while (is_fixed) {
        memset(a, 0, n * n * sizeof(*a));
        memset(b, 0, n * sizeof(*b));
        if (!add_ranks(fit, phase, fixed, a, b, n, x))
            return false;
        for (size_t c = 0; c < n; c++)
            a[c * n + c] += TINY + (c ? RIDGE * a[0] : 0);
        solve_symmetric(a, b, n);
        is_fixed = false;
        for (size_t c = 0; c < fit->found->n; c++) {
            const double least = (LEAST - 1) * fit->factors[c];

            changes[c] = isnan(fixed[c]) ? b[0] + b[c + 1] : fixed[c];
            if (changes[c] < least) {
                fixed[c] = changes[c] = least;
                is_fixed = true;
            }
        }
    }
    return true;
}

static int fit_phase(struct factor_fit *fit, enum step_part phase,
                     struct arena *arena, struct err *err)
{
    struct problem *problem = &fit->plan->problem;
    const uint32_t n_ranks = problem->cluster.n_devices;
    const size_t n = fit->found->n;
    double *changes = ARENA_NEW(arena, double, n);

    fit->base_ms = ARENA_NEW(arena, double, n_ranks);
    fit->added_ms = ARENA_NEW(arena, double, n *n_ranks);
    fit->factors = ARENA_NEW(arena, double, n);
    if (price(fit, phase, n, 0, fit->base_ms, arena, err))
        return -1;
    for (size_t c = 0; c < n; c++) {
        double *added = &fit->added_ms[c * n_ranks];

        if (price(fit, phase, c, 1, added, arena, err))
            return -1;
        for (uint32_t r = 0; r < n_ranks; r++)
            added[r] -= fit->base_ms[r];
    }
    for (size_t t = 0; t < problem->n_tables; t++)
        fit->factors[fit->class_of[t]] = *factor_of(&problem->tables[t], phase);
    if (!solve(fit, phase, changes, arena))
        return 0;
    for (size_t t = 0; t < problem->n_tables; t++) {
        const double x =
            fit->factors[fit->class_of[t]] + changes[fit->class_of[t]];

        *factor_of(&problem->tables[t], phase) =
            round(fmin(fmax(x, TABLE_MIN_FACTOR), TABLE_MAX_FACTOR) *
                  PER_ROUND) /
            PER_ROUND;
    }
    return 0;
}

int table_factors_find(struct table_factors *found, struct plan *plan,
                       const struct rank_lookups *measured, struct arena *arena,
                       struct err *err)
{
    struct factor_fit fit = {
        .plan = plan, .measured = measured, .found = found};

    *found = (struct table_factors){.before_ms = plan->total_ms};
    if (!plan_is_priced(plan) || !plan->cost.name)
        return err_input(err, "the plan is not priced; 'neuroshard cost -o' "
                              "prices it");
    find_classes(&fit, arena);
    if (fit_phase(&fit, STEP_FORWARD, arena, err) ||
        fit_phase(&fit, STEP_BACKWARD, arena, err) ||
        oracle_price_plan(plan, plan->cost.name, arena, err))
        return -1;
    found->after_ms = plan->total_ms;
    for (size_t t = 0; t < plan->problem.n_tables; t++) {
        const struct table *table = &plan->problem.tables[t];
        struct table_class *class = &found->classes[fit.class_of[t]];

        class->forward_factor = table->forward_factor;
        class->backward_factor = table->backward_factor;
    }
    return 0;
}

#define CLASS(member) MEMBER_OF(struct table_class, member)
static const struct figure columns[] = {
    {"class", "tables of one class", -44, 0, FIGURE_PLAIN, CLASS(name)},
    {"tables", "tables", 6, 0, FIGURE_PLAIN, CLASS(n_tables)},
    {"forward_factor", "forward x", 9, 2, FIGURE_PLAIN, CLASS(forward_factor)},
    {"backward_factor", "backward x", 10, 2, FIGURE_PLAIN,
     CLASS(backward_factor)},
    {0},
};

json_t *table_factors_to_json(const struct table_factors *found)
{
    return FIGURES_LIST(columns, found->classes, found->n);
}

void table_factors_print(const struct table_factors *found, struct buf *out)
{
    FIGURES_TABLE(columns, found->classes, found->n, out);
    buf_printf(out,
               "the plan of these times takes %.3f ms of GPU work by these "
               "factors, %.3f ms without\n",
               found->after_ms, found->before_ms);
}
