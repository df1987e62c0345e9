/* SPDX-License-Identifier: MIT */
#include "core/host.h"

#include "tests/tap.h"

/* Exposed times are 4 ms of lookups and 3 ms of exchanges. */
static struct plan make_plan(void)
{
    return (struct plan){
        .total_ms = 8,
        .exposed_ms = {[STEP_INPUT] = 1,
                       [STEP_FORWARD] = 1,
                       [STEP_OUTPUT] = 2,
                       [STEP_BACKWARD] = 2.5,
                       [STEP_REPLICAS] = 0.5},
        .cost = {.lookup_error.frac = 0.3, .exchange_error.frac = 0.3}};
}

static void test_total(void)
{
    struct plan plan = make_plan();
    struct buf out = {0};

    is_near(plan_error_frac(&plan), 0.3 * 5 / 7, 1e-12,
            "errors are independent: the root of squares");
    plan.problem.job.dense_ms[1] = 1000;
    plan.total_ms += 1000;
    is_near(plan_error_frac(&plan), 0.3 * 5 / 7 * 8 / 1008, 1e-12,
            "the given dense time has no error");
    plan.problem.job.dense_ms[1] = 0;
    plan.total_ms = 8;
    plan.cost.exchange_error.frac = 0;
    ok(plan_error_frac(&plan) == 0, "an unknown error leaves nothing");
    plan_print_error(&plan, &out);
    is_str(out.data, " +-17 % of look-ups alone", "but that of lookups");
    buf_release(&out);
    plan.exposed_ms[STEP_INPUT] = plan.exposed_ms[STEP_OUTPUT] = 0;
    is_near(plan_error_frac(&plan), 0.3, 1e-12, "unless it is not needed");
    plan.exposed_ms[STEP_FORWARD] = NAN;
    ok(plan_error_frac(&plan) == 0, "unknown parts leave nothing, either");
}

static void test_parts(void)
{
    struct plan plan = make_plan();
    struct priced_parts parts = plan_priced_parts(&plan);

    is_near(parts.lookup_ms, 8.0 * 4 / 7, 1e-12, "lookups fill their share");
    is_near(parts.exchange_ms, 8.0 * 3 / 7, 1e-12, "exchanges the rest");
    plan.problem.job.dense_ms[0] = 2;
    plan.total_ms = 10;
    parts = plan_priced_parts(&plan);
    is_near(parts.lookup_ms + parts.exchange_ms, 8, 1e-12,
            "the dense part is neither");
}

static void test_ratio(void)
{
    const struct priced_parts ours = {.total_ms = 4,
                                      .lookup_ms = 3,
                                      .exchange_ms = 1,
                                      .lookup_error.frac = 0.1,
                                      .exchange_error.frac = 0.2};
    struct priced_parts one = ours;

    is_near(priced_ratio_error(&one, &ours), RATIO_ERROR_SHARE * 0.3 / 4, 1e-12,
            "a share of the error of one price");
    one.lookup_error.frac = 0.05 / RATIO_ERROR_SHARE;
    one.lookup_ms = 10;
    one.total_ms = 11;
    is_near(priced_ratio_error(&one, &ours), 0.5 / 4, 1e-12,
            "the larger error of the two");
    one.exchange_ms = 6;
    is_near(priced_ratio_error(&one, &ours), hypot(0.5, 1) / 4, 1e-12,
            "the difference of exchanges counts");
    one.total_ms = 2;
    is_near(priced_ratio_error(&one, &ours), hypot(0.5, 1) / 8, 1e-12,
            "as a share of the larger total");
}

/* Errors of the GPU work count by its share of the square of the step. */
static void test_step_ratio(void)
{
    const struct cost_error error = {.frac = 0.3};
    struct step_parts ours = {
        .cost = "model:a",
        .priced = {.total_ms = 4, .lookup_ms = 4, .lookup_error = error},
        .error_frac = 0.3};
    struct step_parts one = ours;

    one.cost = "roofline:b";
    one.error_frac = 0.4;
    is_near(step_ratio_error(&one, &ours), 0.5, 1e-12,
            "two models err independently");
    one.host_ms = ours.host_ms = 4;
    one.host_error_frac = ours.host_error_frac = 0.2;
    is_near(step_ratio_error(&one, &ours), 0.25, 1e-12,
            "half of the square is the host's, whose error is shared");
    one.priced.total_ms = 0;
    is_near(step_ratio_error(&one, &ours), hypot(0.15, 0.1), 1e-12,
            "but for the difference of the shares");
    one.error_frac = 0;
    ok(isnan(step_ratio_error(&one, &ours)), "an unknown error");
    one = ours;
    is_near(step_ratio_error(&one, &ours),
            0.5 * priced_ratio_error(&one.priced, &ours.priced), 1e-12,
            "one model: the error of a ratio");
    one.host_ms = ours.host_ms = 0;
    one.priced.total_ms = one.priced.lookup_ms = 8;
    is_near(step_ratio_error(&one, &ours),
            priced_ratio_error(&one.priced, &ours.priced) / 2, 1e-12,
            "without a host, steps have the error of the GPU work");
}

int main(void)
{
    test_step_ratio();
    test_total();
    test_parts();
    test_ratio();
    return tap_done();
}
