/* SPDX-License-Identifier: MIT */
#include "exec/job.h"

#include "base/rng.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_RANKS 16
#define N_STEPS 43
#define N_WARM_UP 3
#define MAX_TIMES (MAX_RANKS * N_STEPS * N_STEP_PARTS)

/* A plan with predictions, and times of a simulated job. */
struct planted {
    struct plan plan;
    struct device_cost devices[MAX_RANKS];
    /* True time of each part on each rank, without noise, in ms. */
    double ms[MAX_RANKS][N_STEP_PARTS];
    struct part_time times[MAX_TIMES];
    size_t n;
};

static bool is_compute(enum step_part part)
{
    return part == STEP_FORWARD || part == STEP_BACKWARD;
}

/* Returns the median time of a rank's compute part, or that of an exchange. */
static double measured_ms(const struct job_times *job, uint32_t r,
                          enum step_part part)
{
    const struct job_phase *phase = &job->phases[2 * r];

    if (!is_compute(part))
        phase = &job->phases[2 * job->n_ranks];
    while (phase->part != part)
        phase++;
    return phase->time.median_ms;
}

static void predict(struct planted *planted, uint32_t n_ranks, struct rng *rng)
{
    const double all[N_STEP_PARTS] = {
        [STEP_INPUT] = 0.4, [STEP_OUTPUT] = 0.7, [STEP_GRADIENT] = 0.7};

    planted->plan = (struct plan){.devices = planted->devices,
                                  .problem.cluster.n_devices = n_ranks};
    planted->n = 0;
    for (uint32_t r = 0; r < n_ranks; r++)
        for (unsigned p = 0; p < N_STEP_PARTS; p++) {
            planted->devices[r].parts_ms[p] =
                is_compute(p) ? 0.5 + 3 * rng_uniform(rng) : all[p];
            planted->ms[r][p] = planted->devices[r].parts_ms[p];
        }
}

/* Simulates the job. Each exchange ends on all ranks together; one rank arrives
 * last, the others are delayed by the dense part. Sometimes a phase is
 * disturbed, and the first steps are slow. */
static void run(struct planted *planted, double noise, struct rng *rng)
{
    const uint32_t n_ranks = planted->plan.problem.cluster.n_devices;

    for (uint64_t s = 0; s < N_STEPS; s++)
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            for (uint32_t r = 0; r < n_ranks; r++) {
                double ms = planted->ms[r][p];

                if (!(ms > 0))
                    continue;
                ms *= 1 + noise * rng_normal(rng);
                if (!is_compute(p) && r != s * 5 % n_ranks)
                    ms += 2 * rng_uniform(rng);
                if (!rng_below(rng, 8))
                    ms *= 1 + 3 * rng_uniform(rng);
                if (s < N_WARM_UP)
                    ms *= 10;
                planted->times[planted->n++] =
                    (struct part_time){100 + s, r, p, ms};
            }
}

static int learn(struct job_times *job, const struct planted *planted,
                 struct arena *arena, struct err *err)
{
    return job_times_init(job, &planted->plan, planted->times, planted->n,
                          N_WARM_UP, arena, err);
}

/* Tests that the ranks' times and a straggler are found from noisy steps. */
static void test_planted(void)
{
    static struct planted planted;
    double worst = 0, least = 1;
    unsigned n_missed = 0, n_false = 0;
    struct arena arena = {0};

    for (unsigned seed = 0; seed < tap_size(20, 400); seed++) {
        const uint32_t n_ranks = 5 + seed % (MAX_RANKS - 4);
        const uint32_t straggler = seed % n_ranks;
        const struct arena_mark mark = arena_mark(&arena);
        struct job_cause causes[JOB_CAUSES];
        double factor;
        struct job_times job;
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, 40, seed);
        predict(&planted, n_ranks, &rng);
        factor = 1.3 + rng_uniform(&rng);
        for (uint32_t r = 0; r < n_ranks; r++) {
            /* factor by which the rank's tables cost more than predicted, per
             * phase */
            const double forward = 1.2 + 0.12 * rng_uniform(&rng);
            const double slow = r == straggler ? factor : 1;

            planted.ms[r][STEP_FORWARD] *= slow * (slow > 1 ? 1.26 : forward);
            planted.ms[r][STEP_BACKWARD] *=
                slow * (slow > 1 ? 1.26 : 2.52 - forward);
        }
        run(&planted, 0.02, &rng);
        if (learn(&job, &planted, &arena, &err)) {
            ok(0, "seed %u: %s", seed, err.msg);
            continue;
        }
        for (uint32_t r = 0; r < n_ranks; r++)
            for (unsigned p = 0; p < N_STEP_PARTS; p++)
                if (planted.ms[r][p] > 0)
                    worst = tap_worst(
                        worst,
                        fabs(measured_ms(&job, r, p) / planted.ms[r][p] - 1));
        for (uint32_t r = 0; r < n_ranks; r++)
            n_false += r != straggler && job.phases[2 * r].straggles > 1;
        n_missed += !(job.phases[2 * straggler].straggles > 1);
        if (job_causes(causes, &job, &arena) < 4)
            ok(0, "seed %u: causes", seed);
        least = fmin(least, causes[1].explained_frac);
        arena_rewind(&arena, mark);
    }
    ok(worst < 0.03, "times of ranks and exchanges are found to %.2f %%",
       100 * worst);
    is_i64(n_missed, 0, "each straggler is found");
    is_i64(n_false, 0, "and no other rank is one");
    ok(least > 0.5, "factors of ranks explain at least %.0f %% of it",
       100 * least);
    arena_release(&arena);
}

/* If all ranks are equally slow, the straggler's factor is the simulated
 * one. */
static void test_factor(void)
{
    static struct planted planted;
    double worst = 0;
    struct arena arena = {0};

    for (unsigned seed = 0; seed < tap_size(20, 400); seed++) {
        struct job_cause causes[JOB_CAUSES];
        struct job_times job;
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, 41, seed);
        predict(&planted, 12, &rng);
        for (uint32_t r = 0; r < 12; r++)
            for (unsigned p = STEP_FORWARD; p < N_STEP_PARTS; p++)
                if (is_compute(p))
                    planted.ms[r][p] *= r == 5 ? 1.6 * 1.25 : 1.25;
        /* not stragglers: one slow phase, or two phases with different
         * factors */
        planted.ms[2][STEP_BACKWARD] *= 1.5;
        planted.ms[3][STEP_FORWARD] *= 1.3;
        planted.ms[3][STEP_BACKWARD] *= 2;
        planted.ms[4][STEP_FORWARD] *= 2;
        planted.ms[4][STEP_BACKWARD] *= 1.3;
        run(&planted, 0.02, &rng);
        if (learn(&job, &planted, &arena, &err))
            ok(0, "seed %u: %s", seed, err.msg);
        worst = tap_worst(worst, fabs(job.phases[10].straggles / 1.6 - 1));
        for (uint32_t r = 2; r < 5; r++)
            if (job.phases[2 * r].straggles > 1)
                ok(0, "seed %u: rank %u straggles", seed, r);
        if (job_causes(causes, &job, &arena) < 7 ||
            !(causes[1].explained_frac > causes[2].explained_frac &&
              causes[2].explained_frac > 0))
            ok(0, "seed %u: what explains it", seed);
    }
    ok(worst < 0.03, "a straggler's factor is found to %.2f %%", 100 * worst);
    arena_release(&arena);
}

/* If each rank has its own factor and there is no other error, ranks explain
 * the whole difference, whether the input is measured or not. */
static void test_ranks_alone(void)
{
    static struct planted planted;
    double worst = 0;
    struct arena arena = {0};

    for (unsigned seed = 0; seed < tap_size(20, 400); seed++) {
        struct job_cause causes[JOB_CAUSES];
        struct job_times job;
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, 42, seed);
        predict(&planted, 6, &rng);
        for (uint32_t r = 0; r < 6; r++) {
            const double factor = 1.1 + 0.3 * rng_uniform(&rng);

            for (unsigned p = STEP_FORWARD; p < N_STEP_PARTS; p++)
                if (is_compute(p))
                    planted.ms[r][p] *= factor;
            if (seed % 2)
                planted.ms[r][STEP_INPUT] = 0;
        }
        run(&planted, 0, &rng);
        if (learn(&job, &planted, &arena, &err) ||
            job_causes(causes, &job, &arena) < 2)
            ok(0, "seed %u: %s", seed, err.msg);
        worst = tap_worst(worst, fabs(causes[1].explained_frac - 1));
    }
    ok(worst < 1e-9, "factors explain all of it, within %g", worst);
    arena_release(&arena);
}

/* Rank 0 is slower by these factors; the others take the predicted times. */
static void test_thresholds(void)
{
    static const struct {
        const char *name;
        uint32_t n_ranks;
        double forward, backward;
        bool straggles;
    } cases[] = {
        {"one of two ranks", 2, 3, 3, false},
        {"one of three ranks", 3, 3, 3, true},
        {"14 % slower", 3, 1.14, 1.14, false},
        {"16 % slower", 3, 1.16, 1.16, true},
        {"a forward that is 14 % slower", 3, 1.14, 1.2, false},
        {"a backward that is 14 % slower", 3, 1.2, 1.14, false},
        {"phases that differ by 8 %", 5, 1.2, 1.296, true},
        {"by 8 % the other way round", 5, 1.296, 1.2, true},
        {"phases that differ by 12 %", 5, 1.2, 1.344, false},
        {"by 12 % the other way round", 5, 1.344, 1.2, false},
    };
    static struct planted planted;

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct arena arena = {0};
        struct job_times job;
        struct err err = {0};
        struct rng rng;

        rng_init(&rng, 43, c);
        predict(&planted, cases[c].n_ranks, &rng);
        planted.ms[0][STEP_FORWARD] *= cases[c].forward;
        planted.ms[0][STEP_BACKWARD] *= cases[c].backward;
        run(&planted, 0, &rng);
        if (!ok(!learn(&job, &planted, &arena, &err), "times%s", err.msg))
            continue;
        ok((job.phases[0].note != NULL) == cases[c].straggles &&
               (job.phases[1].straggles > 1) == cases[c].straggles,
           "%s: %s", cases[c].name,
           cases[c].straggles ? "straggles" : "no straggler");
        ok(!job.phases[2].note, "rank 1 does not straggle");
        arena_release(&arena);
    }
}

/* The sentence about a job in which all times have the factors of a case, and
 * rank 1 has another factor in addition. */
static void test_verdicts(void)
{
    static const struct {
        double lookups, exchanges, straggler;
        const char *want; /* beginning of the sentence */
    } CASES[] = {
        {1, 1, 1, "the times are as predicted: they differ by 0.0 %"},
        {1.09, 1.09, 1, "the times are as predicted: they differ by 9.0 %"},
        {1.11, 1.11, 1, "the times differ by 11 % from the prediction"},
        {1, 4, 1, "the times differ by "},
        {1.3, 1, 1.5, "rank 1 is 1.50x slower than the others in all of"},
        {1, 1, 1.2, "rank 1 is 1.20x slower than the others in all of"},
    };
    static struct planted planted;

    for (size_t c = 0; c < sizeof(CASES) / sizeof(*CASES); c++) {
        struct job_cause causes[JOB_CAUSES];
        struct arena arena = {0};
        struct job_times job;
        struct err err = {0};
        struct rng rng;
        const char *got;

        rng_init(&rng, 44, c);
        predict(&planted, 4, &rng);
        for (uint32_t r = 0; r < 4; r++)
            for (unsigned p = 0; p < N_STEP_PARTS; p++)
                planted.ms[r][p] *=
                    is_compute(p)
                        ? CASES[c].lookups * (r == 1 ? CASES[c].straggler : 1)
                        : CASES[c].exchanges;
        run(&planted, 0, &rng);
        if (!ok(!learn(&job, &planted, &arena, &err), "times%s", err.msg))
            continue;
        got =
            job_verdict(&job, causes, job_causes(causes, &job, &arena), &arena);
        ok(got && !strncmp(got, CASES[c].want, strlen(CASES[c].want)), "%s",
           got ? got : "no sentence");
        arena_release(&arena);
    }
}

/* A factor of one phase alone explains all of the difference; factors of two
 * phases do not explain half each. A plan without predictions has no
 * sentence. */
static void test_verdict_causes(void)
{
    static const double FACTORS[][2] = {{20, 1}, {20, 20}};
    static struct planted planted;

    for (size_t c = 0; c < 2; c++) {
        struct job_cause causes[JOB_CAUSES];
        struct arena arena = {0};
        struct job_times job;
        struct err err = {0};
        struct rng rng;
        const char *got;

        rng_init(&rng, 45, 0);
        predict(&planted, 4, &rng);
        for (uint32_t r = 0; r < 4; r++) {
            planted.ms[r][STEP_OUTPUT] *= FACTORS[c][0];
            planted.ms[r][STEP_GRADIENT] *= FACTORS[c][1];
            planted.ms[r][STEP_INPUT] *= FACTORS[c][1] > 1 ? 35 : 1;
        }
        run(&planted, 0, &rng);
        if (!ok(!learn(&job, &planted, &arena, &err), "times%s", err.msg))
            continue;
        got =
            job_verdict(&job, causes, job_causes(causes, &job, &arena), &arena);
        ok(!!strstr(got, c ? "no single cause explains half of this"
                           : "and output x 20.00 explains 100 % of this"),
           "%s", got);
        for (size_t i = 0; i < job.n_phases; i++)
            job.phases[i].predicted_ms = NAN;
        ok(!job_verdict(&job, causes, 0, &arena), "nothing was predicted");
        arena_release(&arena);
    }
}

/* Steps may be in any order. The first steps do not count, and times of 0 ms
 * do. */
static void test_steps(void)
{
    static struct planted planted;
    struct arena arena = {0};
    struct job_times job;
    struct err err = {0};

    planted.plan.problem.cluster.n_devices = 1;
    for (uint64_t s = 6; s-- > 0;)
        planted.times[planted.n++] =
            (struct part_time){s * s, 0, STEP_BACKWARD, s < 4 ? 0 : (double)s};
    ok(!learn(&job, &planted, &arena, &err), "six steps: %s", err.msg);
    is_i64((int64_t)job.n_steps, 3, "three are left");
    is_near(measured_ms(&job, 0, STEP_BACKWARD), 4, 0, "of 0, 4 and 5 ms");
    ok(isnan(measured_ms(&job, 0, STEP_FORWARD)) &&
           isnan(job.totals[0].median_ms),
       "a forward is not known, nor is both");
    ok(isnan(job.phases[1].differs_frac) && job.phases[1].straggles == 1,
       "and nothing was predicted");
    arena_release(&arena);
}

static void refuse(struct planted *planted, const char *want)
{
    struct arena arena = {0};
    struct job_times job;
    struct err err = {0};

    is_i64(learn(&job, planted, &arena, &err), -1, "is refused");
    is_str(err.msg, want, "in a sentence");
    arena_release(&arena);
}

static void test_refused(void)
{
    static struct planted planted;
    struct rng rng;

    rng_init(&rng, 42, 0);
    predict(&planted, 3, &rng);
    run(&planted, 0, &rng);
    planted.times[planted.n++] = planted.times[7];
    refuse(&planted, "step 100 of rank 1 has two times of its output");
    planted.n = 3 * 5 * 3;
    refuse(&planted, "3 steps, but none is left after 3 of warm-up");
    predict(&planted, 3, &rng);
    run(&planted, 0, &rng);
    for (size_t i = 0; i < planted.n; i++)
        if (planted.times[i].rank == 2)
            planted.times[i--] = planted.times[--planted.n];
    refuse(&planted, "rank 2 of the plan's 3 has no times after warm-up");
    planted.times[0].step = 1;
    planted.n = 1;
    planted.plan.problem.cluster.n_devices = 1000;
    refuse(&planted, "most ranks have no times in most of 1 steps");
}

/* Times or whole steps are missing on some ranks. */
static void test_missing(void)
{
    static struct planted planted;
    struct arena arena = {0};
    struct job_times job;
    struct err err = {0};
    struct rng rng;

    rng_init(&rng, 42, 0);
    predict(&planted, 3, &rng);
    run(&planted, 12, &rng);
    ok(!learn(&job, &planted, &arena, &err) && !job.doubt, "none is missing");
    for (size_t i = 0; i < planted.n; i++)
        if (planted.times[i].step == 107)
            planted.times[i--] = planted.times[--planted.n];
    ok(!learn(&job, &planted, &arena, &err), "a step less: %s", err.msg);
    is_str(job.doubt, "1 of 43 steps are missing, the first is step 107",
           "and it is said");
    for (size_t i = 0; i < planted.n; i++)
        if (planted.times[i].step == 103 && planted.times[i].rank == 1 &&
            planted.times[i].part == STEP_FORWARD)
            planted.times[i--] = planted.times[--planted.n];
    ok(!learn(&job, &planted, &arena, &err), "a time less: %s", err.msg);
    ok(!strncmp(job.doubt, "1 of ", 5) &&
           strstr(job.doubt, "the first is forward of rank 1 in step 103"),
       "and it is said: %s", job.doubt);
    arena_release(&arena);
}

int main(void)
{
    test_missing();
    test_planted();
    test_factor();
    test_thresholds();
    test_ranks_alone();
    test_verdicts();
    test_verdict_causes();
    test_steps();
    test_refused();
    return tap_done();
}
