/* SPDX-License-Identifier: MIT */
#include "costmodel/learning/wire_fit.h"

#include "costmodel/models/oracle_open.h"

#include <math.h>

/* Relative difference of times that ends the search for a bandwidth. */
#define CLOSE 1e-4
#define MAX_STEPS 8
/* Least relative change of the exchanges at half of a bandwidth that limits
 * them. */
#define LIMITS 0.1
/* Relative differences between measured and predicted times. Up to
 * AS_PREDICTED, the times count as equal. A bandwidth explains the measured
 * times if it leaves at most EXPLAINED. */
#define AS_PREDICTED 0.01
#define EXPLAINED 0.05

struct fitted {
    struct plan *plan;
    const double *measured_ms;
    struct arena *arena;
};

/* Returns the sum of the times of those exchanges that were measured and
 * predicted. */
static double exchanges_ms(const struct fitted *fitted, const double *ms)
{
    static const enum step_part parts[] = {STEP_INPUT, STEP_OUTPUT,
                                           STEP_GRADIENT};
    const double *predicted_ms = fitted->plan->devices[0].parts_ms;
    double sum = 0;

    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
        if (fitted->measured_ms[parts[i]] > 0 && predicted_ms[parts[i]] > 0)
            sum += ms[parts[i]];
    return sum;
}

/* Prices the plan with this bandwidth, and stores the time of its exchanges. */
static int price(const struct fitted *fitted, bool is_inter, double gbps,
                 double *ms, struct err *err)
{
    struct cluster *cluster = &fitted->plan->problem.cluster;

    *(is_inter ? &cluster->inter_gbps : &cluster->intra_gbps) = gbps;
    if (oracle_price_plan(fitted->plan, fitted->plan->cost.name, fitted->arena,
                          err))
        return -1;
    *ms = exchanges_ms(fitted, fitted->plan->devices[0].parts_ms);
    return 0;
}

/* Finds the bandwidth by secants over its inverse, in which the time of an
 * exchange is nearly linear. first_ms: the time at the predicted bandwidth,
 * first_gbps. Stores the time at the bandwidth found. */
static int solve(struct wire_fit *fit, const struct fitted *fitted,
                 double first_gbps, double first_ms, double *ms,
                 struct err *err)
{
    const double want_ms = exchanges_ms(fitted, fitted->measured_ms);
    const double most = 1 / fmax(first_gbps / WIRE_FIT_MOST, CLUSTER_MIN_GBPS);
    const double least = 1 / fmin(first_gbps * WIRE_FIT_MOST, CLUSTER_MAX_GBPS);
    double before = 1 / first_gbps, before_ms = first_ms, x = 2 * before;

    for (unsigned i = 0; i < MAX_STEPS; i++) {
        double next;

        if (price(fitted, fit->is_inter, 1 / x, ms, err))
            return -1;
        fit->gbps = 1 / x;
        if (fabs(*ms / want_ms - 1) < CLOSE || !(fabs(*ms - before_ms) > 0))
            break;
        next = x + (want_ms - *ms) * (x - before) / (*ms - before_ms);
        before = x;
        before_ms = *ms;
        x = fmin(fmax(next, least), most);
    }
    return 0;
}

/* Chooses the level whose bandwidth limits the exchanges, at which they are
 * slower at half of it, and solves for this bandwidth. *ms is the predicted
 * time before. */
static int find(struct wire_fit *fit, const struct fitted *fitted, double *ms,
                struct err *err)
{
    struct cluster *cluster = &fitted->plan->problem.cluster;
    const struct cluster given = *cluster;
    const struct wire wire = fitted->plan->cost.wire;
    const double predicted_ms = *ms;

    for (int i = 1; i >= 0; i--) {
        const double gbps = i ? wire.inter_gbps : wire.intra_gbps;

        fit->is_inter = i;
        if (!(gbps > 0))
            continue;
        if (price(fitted, i, gbps / 2, ms, err))
            return -1;
        if (*ms > (1 + LIMITS) * predicted_ms)
            return solve(fit, fitted, gbps, predicted_ms, ms, err);
        *cluster = given;
    }
    return 0;
}

int wire_fit(struct wire_fit *fit, struct plan *plan, const double *measured_ms,
             struct arena *arena, struct err *err)
{
    const struct fitted fitted = {plan, measured_ms, arena};
    const struct cluster given = plan->problem.cluster;
    double want_ms, ms;

    *fit = (struct wire_fit){.factor = NAN};
    if (oracle_price_plan(plan, plan->cost.name, arena, err))
        return -1;
    if (!plan_has_parts(plan))
        return 0;
    ms = exchanges_ms(&fitted, plan->devices[0].parts_ms);
    want_ms = exchanges_ms(&fitted, measured_ms);
    if (!(ms > 0))
        return 0;
    fit->factor = want_ms / ms;
    if (fabs(fit->factor - 1) < AS_PREDICTED)
        return 0;
    if (find(fit, &fitted, &ms, err))
        return -1;
    if (fit->gbps > 0 && fabs(ms / want_ms - 1) < EXPLAINED)
        return 0;
    fit->gbps = 0;
    plan->problem.cluster = given;
    return oracle_price_plan(plan, plan->cost.name, arena, err);
}
