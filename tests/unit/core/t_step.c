/* SPDX-License-Identifier: MIT */
/* Compares the closed forms of a step with a simulation of ranks and their
 * streams. */
#include "core/step.h"

#include "base/mem.h"
#include "base/rng.h"
#include "tests/tap.h"

#define MOST_RANKS 64u
#define MOST_CHUNKS 8u
#define MOST_BATCHES 2000u
/* Number of consecutive batches after which times count as periodic: each must
 * be later than the batch `period` before it by the same amount. */
#define STEADY 16u
#define MOST_PERIOD 3u
#define MOST_BUCKETS 3u
/* Number of batches whose times are kept, with the next batch. */
#define N_KEPT 5u

/* Events of a batch. The chunks of a lookup and of its exchange are separate
 * events. So is the dense part, which all ranks begin together. */
enum event {
    INPUT,
    PERMUTE,
    CACHE,
    LOOKUP,
    EXCHANGE = LOOKUP + MOST_CHUNKS,
    DENSE = EXCHANGE + MOST_CHUNKS,
    GRADIENT,
    REDUCE,
    UPDATE,
    BACKWARD,
    N_EVENTS
};

struct job {
    struct step step;
    uint32_t n_ranks;
    double phases[MOST_RANKS][N_PHASES];
    /* Computation of the dense part, and the buckets of its gradients: time
     * after its begin at which each bucket is ready, and time of its
     * exchange. */
    double dense_ms, ready_ms[MOST_BUCKETS], bucket_ms[MOST_BUCKETS];
    /* End times of the last batches' events. */
    double ends[N_KEPT][N_EVENTS][MOST_RANKS];
};

/* Returns the end times of an event, `ago` batches before this one. */
static double *ends_of(struct job *job, unsigned batch, unsigned ago,
                       enum event event)
{
    return job->ends[(batch - ago) % N_KEPT][event];
}

/* Delays each rank's begin to the end of another event of the same rank. */
static void after(struct job *job, double *begin, const double *end)
{
    for (uint32_t r = 0; r < job->n_ranks; r++)
        begin[r] = fmax(begin[r], end[r]);
}

/* Delays all ranks to the one that arrives last. */
static void meet(struct job *job, double *begin)
{
    double latest = 0;

    for (uint32_t r = 0; r < job->n_ranks; r++)
        latest = fmax(latest, begin[r]);
    for (uint32_t r = 0; r < job->n_ranks; r++)
        begin[r] = latest;
}

static double slowest(const struct job *job, enum phase phase)
{
    double ms = 0;

    for (uint32_t r = 0; r < job->n_ranks; r++)
        ms = fmax(ms, job->phases[r][phase]);
    return ms;
}

/* Turns begins into ends of an exchange: all ranks start together. */
static void exchange(struct job *job, double *begin, double ms)
{
    meet(job, begin);
    for (uint32_t r = 0; r < job->n_ranks; r++)
        begin[r] += ms;
}

/* Returns whether an exchange of ids has its turn between two others. */
static bool is_ordered(const struct job *job)
{
    return job->step.knows_dense && (job->step.pipeline == PIPELINE_SDD ||
                                     job->step.pipeline == PIPELINE_PREFETCH);
}

/* Returns the end of a dense part that begins at begin_ms, with the exchange of
 * its gradients. Another exchange runs until busy_ms. */
static double dense_end(const struct job *job, double begin_ms, double busy_ms)
{
    double end_ms = fmax(begin_ms, busy_ms);

    for (unsigned k = 0; k < MOST_BUCKETS; k++)
        end_ms = fmax(end_ms, begin_ms + job->ready_ms[k]) + job->bucket_ms[k];
    return fmax(end_ms, begin_ms + job->dense_ms);
}

static void work(struct job *job, double *begin, enum phase phase, double share)
{
    for (uint32_t r = 0; r < job->n_ranks; r++)
        begin[r] += share * job->phases[r][phase];
}

/* The input of a batch, which may run ahead of the backward of earlier
 * batches. */
static void simulate_input(struct job *job, unsigned batch)
{
    static const unsigned ahead[] = {[PIPELINE_NONE] = 1,
                                     [PIPELINE_SDD] = 2,
                                     [PIPELINE_PREFETCH] = 3,
                                     [PIPELINE_SEMISYNC] = 3};
    double *input = ends_of(job, batch, 0, INPUT);
    double *permute = ends_of(job, batch, 0, PERMUTE);
    double *cache = ends_of(job, batch, 0, CACHE);

    after(job, input, ends_of(job, batch, 1, PERMUTE));
    after(job, input, ends_of(job, batch, ahead[job->step.pipeline], BACKWARD));
    if (is_ordered(job) && job->step.pipeline == PIPELINE_SDD)
        after(job, input,
              ends_of(job, batch, 1, EXCHANGE + job->step.n_chunks - 1));
    else if (is_ordered(job))
        after(job, input, ends_of(job, batch, 2, REDUCE));
    exchange(job, input, slowest(job, PHASE_INPUT));
    after(job, permute, input);
    work(job, permute, PHASE_PERMUTE, 1);
    after(job, cache, permute);
    if (job->step.pipeline == PIPELINE_PREFETCH) {
        after(job, cache, ends_of(job, batch, 1, CACHE));
        work(job, cache, PHASE_CACHE, 1);
    }
}

/* Lookups run on one stream, their exchanges on another. */
static void simulate_lookup(struct job *job, unsigned batch)
{
    const int is_semisync = job->step.pipeline == PIPELINE_SEMISYNC;
    const unsigned n = job->step.n_chunks;

    for (unsigned k = 0; k < n; k++) {
        double *lookup = ends_of(job, batch, 0, LOOKUP + k);
        double *sent = ends_of(job, batch, 0, EXCHANGE + k);

        if (k)
            after(job, lookup, ends_of(job, batch, 0, LOOKUP + k - 1));
        else
            after(job, lookup, ends_of(job, batch, 0, CACHE));
        after(job, lookup, ends_of(job, batch, is_semisync ? 2 : 1, BACKWARD));
        if (is_semisync)
            after(job, lookup, ends_of(job, batch, 1, EXCHANGE + n - 1));
        work(job, lookup, PHASE_FORWARD, 1.0 / n);
        for (uint32_t r = 0; r < job->n_ranks; r++)
            if (job->phases[r][PHASE_FORWARD] > 0)
                lookup[r] += job->step.look_up_ms * (n - 1) / n;
        after(job, sent, lookup);
        if (k)
            after(job, sent, ends_of(job, batch, 0, EXCHANGE + k - 1));
        else if (is_ordered(job) && job->step.pipeline == PIPELINE_PREFETCH)
            after(job, sent, ends_of(job, batch + 1, 0, INPUT));
        exchange(job, sent,
                 slowest(job, PHASE_OUTPUT) / n +
                     (n > 1 ? job->step.chunk_ms : 0));
    }
}

static void simulate_rest(struct job *job, unsigned batch)
{
    double *dense = ends_of(job, batch, 0, DENSE);
    double *gradient = ends_of(job, batch, 0, GRADIENT);
    double *reduce = ends_of(job, batch, 0, REDUCE);
    double *update = ends_of(job, batch, 0, UPDATE);
    double *backward = ends_of(job, batch, 0, BACKWARD);

    after(job, dense,
          ends_of(job, batch, 0, EXCHANGE + job->step.n_chunks - 1));
    after(job, dense, ends_of(job, batch, 1, BACKWARD));
    for (uint32_t r = 0; r < job->n_ranks; r++) {
        const bool waits =
            is_ordered(job) && job->step.pipeline == PIPELINE_SDD;

        dense[r] = dense_end(job, dense[r],
                             waits ? ends_of(job, batch + 1, 0, INPUT)[r] : 0);
    }
    after(job, gradient, dense);
    exchange(job, gradient, slowest(job, PHASE_GRADIENT));
    after(job, reduce, gradient);
    exchange(job, reduce, slowest(job, PHASE_REDUCE));
    after(job, update, reduce);
    work(job, update, PHASE_UPDATE, 1);
    after(job, backward, update);
    work(job, backward, PHASE_BACKWARD, 1);
}

/* Returns the increase of all times over `period` batches, per batch; NAN if
 * times increase by different amounts. */
static double increment(struct job *job, unsigned batch, unsigned period)
{
    double least = INFINITY, most = 0;

    for (unsigned e = 0; e < N_EVENTS; e++)
        for (uint32_t r = 0; r < job->n_ranks; r++) {
            double later = ends_of(job, batch, 0, e)[r] -
                           ends_of(job, batch, period, e)[r];

            if (e >= LOOKUP && e < DENSE &&
                (e - LOOKUP) % MOST_CHUNKS >= job->step.n_chunks)
                continue;
            least = fmin(least, later);
            most = fmax(most, later);
        }
    return most - least <= 4e-9 * most ? most / period : NAN;
}

/* Runs batches until all times are periodic. Returns the time per batch, in ms;
 * NAN if times do not become periodic. */
static double simulate(struct job *job)
{
    unsigned steady[MOST_PERIOD + 1] = {0};

    memset(job->ends, 0, sizeof(job->ends));
    for (unsigned batch = N_KEPT; batch < MOST_BATCHES; batch++) {
        memset(ends_of(job, batch + 1, 0, 0), 0, sizeof(job->ends[0]));
        if (!is_ordered(job))
            simulate_input(job, batch);
        else if (job->step.pipeline == PIPELINE_PREFETCH)
            simulate_input(job, batch + 1);
        simulate_lookup(job, batch);
        if (is_ordered(job) && job->step.pipeline == PIPELINE_SDD)
            simulate_input(job, batch + 1);
        simulate_rest(job, batch);
        for (unsigned period = 1; period <= MOST_PERIOD; period++) {
            double ms = increment(job, batch, period);

            steady[period] = isnan(ms) ? 0 : steady[period] + 1;
            if (steady[period] == STEADY)
                return ms;
        }
    }
    return NAN;
}

static void draw_job(struct job *job, struct rng *rng)
{
    static const double scale[N_PHASES] = {
        [PHASE_INPUT] = 1,    [PHASE_PERMUTE] = 0.3, [PHASE_CACHE] = 0.5,
        [PHASE_FORWARD] = 1,  [PHASE_OUTPUT] = 1,    [PHASE_GRADIENT] = 1,
        [PHASE_BACKWARD] = 2, [PHASE_REDUCE] = 1,    [PHASE_UPDATE] = 0.2};
    static const uint32_t chunks[] = {1, 1, 2, 3, 8};
    double all = 0;

    *job = (struct job){
        .n_ranks = 2 + (uint32_t)rng_below(rng, MOST_RANKS - 1),
        .step.n_chunks = chunks[rng_below(rng, 5)],
        .step.chunk_ms = 0.02 * rng_uniform(rng),
        .step.look_up_ms = 0.02 * rng_uniform(rng),
    };
    for (unsigned p = 0; p < N_PHASES; p++) {
        double most = rng_below(rng, 5) ? scale[p] * 2 * rng_uniform(rng) : 0;
        double even = rng_uniform(rng);

        for (uint32_t r = 0; r < job->n_ranks; r++)
            job->phases[r][p] = most * (even + (1 - even) * rng_uniform(rng));
        all += most;
    }
    job->dense_ms = rng_below(rng, 3) ? 3 * all * rng_uniform(rng) : 0;
    job->step.knows_dense = rng_below(rng, 2);
    for (unsigned k = 0; job->step.knows_dense && k < MOST_BUCKETS; k++) {
        job->ready_ms[k] = job->dense_ms * rng_uniform(rng);
        job->bucket_ms[k] =
            rng_below(rng, 2) ? job->dense_ms * rng_uniform(rng) : 0;
        job->step.dense_reduce_ms += job->bucket_ms[k];
    }
    job->step.dense_ms = dense_end(job, 0, 0);
}

static double step_of(const struct job *job)
{
    return step_of_ranks(&job->step, job->n_ranks,
                         (const double(*)[N_PHASES])job->phases);
}

static void test_simulation(size_t n_problems)
{
    double worst[N_PIPELINES] = {0};
    struct job *job = mem_alloc(1, sizeof(*job));
    struct rng rng;

    rng_init(&rng, 9, 0);
    for (size_t i = 0; i < n_problems; i++) {
        draw_job(job, &rng);
        for (unsigned p = 0; p < N_PIPELINES; p++) {
            double links =
                slowest(job, PHASE_INPUT) + slowest(job, PHASE_OUTPUT) +
                slowest(job, PHASE_GRADIENT) + slowest(job, PHASE_REDUCE) +
                job->step.dense_reduce_ms;
            double ms, simulated;

            job->step.pipeline = p;
            simulated = simulate(job);
            if (p != PIPELINE_NONE && !is_ordered(job))
                simulated = fmax(simulated, links);
            ms = step_of(job);
            worst[p] = tap_worst(worst[p], fabs(ms / simulated - 1));
        }
    }
    for (unsigned p = 0; p < N_PIPELINES; p++)
        ok(worst[p] < 1e-9, "%s: %zu steps as simulated, within %.1g",
           pipeline_names[p], n_problems, worst[p]);
    mem_free(job);
}

/* Draws a pipeline, and the slow-down that each phase causes in others. */
static void draw_pipeline(struct job *job, struct rng *rng)
{
    draw_job(job, rng);
    job->step.pipeline = (enum pipeline)rng_below(rng, N_PIPELINES);
    for (unsigned p = 0; p < N_PHASES; p++)
        job->step.overlap_cost[p] = rng_uniform(rng);
}

/* More work never shortens the step, be it in a phase of a rank, in the dense
 * part or by a larger cost of overlap. Work that no other phase hides lengthens
 * the step by its full time. */
static void test_rises(size_t n_problems)
{
    size_t n_fallen = 0, n_hidden = 0;
    struct job *job = mem_alloc(1, sizeof(*job));
    struct rng rng;

    rng_init(&rng, 10, 0);
    for (size_t i = 0; i < n_problems; i++) {
        double before, *phase;

        draw_pipeline(job, &rng);
        before = step_of(job);
        phase = &job->phases[rng_below(&rng, job->n_ranks)]
                            [rng_below(&rng, N_PHASES)];
        *phase += rng_uniform(&rng);
        n_fallen += step_of(job) < before * (1 - 1e-12);
        before = step_of(job);
        job->step.overlap_cost[rng_below(&rng, N_PHASES)] = 1;
        n_fallen += step_of(job) < before * (1 - 1e-12);
        job->step.pipeline = PIPELINE_NONE;
        before = step_of(job);
        job->step.dense_ms += 1;
        n_hidden += fabs(step_of(job) - before - 1) > 1e-9;
    }
    ok(!n_fallen, "more of a phase is never a shorter step: %zu of %zu",
       n_fallen, 2 * n_problems);
    ok(!n_hidden, "one phase after the other hides no dense part");
    mem_free(job);
}

/* Without a pipeline, with one rank, every phase is exposed in full. With sdd
 * the input is hidden while it is the shorter one. */
static void test_exposed(void)
{
    struct step step = {
        .pipeline = PIPELINE_NONE, .n_chunks = 1, .dense_ms = 1};
    const double phases[1][N_PHASES] = {
        {[PHASE_INPUT] = 0.25, [PHASE_FORWARD] = 0.5, [PHASE_BACKWARD] = 2}};
    double exposed[N_STEP_PARTS];

    step_exposed(&step, 1, phases, exposed);
    is_near(step_of_ranks(&step, 1, phases), 3.75, 1e-12, "a step in turn");
    is_near(exposed[STEP_INPUT], 0.25, 1e-12, "its input is waited for");
    is_near(exposed[STEP_BACKWARD], 2, 1e-12, "as is its backward");
    step.pipeline = PIPELINE_SDD;
    step_exposed(&step, 1, phases, exposed);
    is_near(step_of_ranks(&step, 1, phases), 3.5, 1e-12,
            "the input overlaps with the rest");
    is_near(exposed[STEP_INPUT], 0, 1e-12, "and is not waited for");
    step.overlap_cost[PHASE_INPUT] = 0.4;
    step_exposed(&step, 1, phases, exposed);
    is_near(exposed[STEP_INPUT], 0.1, 1e-12, "except for the cost of overlap");
    step.pipeline = PIPELINE_SEMISYNC;
    is_near(step_of_ranks(&step, 1, phases), 3.1, 1e-12,
            "lookups overlap with dense part and backward");
    step.overlap_cost[PHASE_FORWARD] = 1;
    is_near(step_of_ranks(&step, 1, phases), 3.6, 1e-12,
            "no gain if they slow these by as much");
}

/* Ids hide only behind the work between two exchanges, if the dense part is
 * known: behind the dense part in sdd, behind backward and lookups in
 * prefetch. */
static void test_order(void)
{
    enum { D, T_D, I, WANT, COST, N_COLUMNS };
    static const struct {
        enum pipeline pipeline;
        bool knows_dense;
        double ms[N_COLUMNS];
        const char *what;
    } cases[] = {
        {PIPELINE_NONE, true, {5, 0, 3, 17, 1}, "none: hides no ids"},
        {PIPELINE_SDD, true, {5, 0, 3, 14, 0}, "sdd: the dense part hides ids"},
        {PIPELINE_SDD, true, {5, 0, 7, 16, 0}, "gradients wait for the others"},
        {PIPELINE_SDD, true, {0, 0, 3, 12, 0}, "the backward hides none"},
        {PIPELINE_SDD, true, {5, 3, 4, 16, 0}, "dense gradients take turns"},
        {PIPELINE_SDD, true, {5, 3, 1, 14, 0}, "behind a longer computation"},
        {PIPELINE_SDD, true, {5, 0, 3, 17, 1}, "hiding can cost as much"},
        {PIPELINE_SDD, true, {4, 0, 7, 20, 1}, "but only what is hidden"},
        {PIPELINE_SDD, true, {0, 0, 20, 29, 0}, "long ids are in the way"},
        {PIPELINE_SDD, false, {0, 0, 3, 9, 0}, "sdd: unknown part, hidden"},
        {PIPELINE_SDD, false, {0, 0, 7, 11, 0}, "but the links carry all"},
        {PIPELINE_PREFETCH, true, {5, 0, 5, 14, 0}, "prefetch: hidden"},
        {PIPELINE_PREFETCH, true, {5, 0, 7, 16, 0}, "outputs wait for the ids"},
        {PIPELINE_PREFETCH, true, {0, 0, 5, 9, 0}, "the dense part hides none"},
        {PIPELINE_PREFETCH, true, {5, 0, 7, 21, 1}, "cost of what is hidden"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const double *ms = cases[i].ms;
        const struct step step = {.pipeline = cases[i].pipeline,
                                  .n_chunks = 1,
                                  .knows_dense = cases[i].knows_dense,
                                  .dense_ms = ms[D],
                                  .dense_reduce_ms = ms[T_D],
                                  .overlap_cost[PHASE_INPUT] = ms[COST]};
        const double phases[1][N_PHASES] = {{[PHASE_INPUT] = ms[I],
                                             [PHASE_FORWARD] = 1,
                                             [PHASE_OUTPUT] = 2,
                                             [PHASE_GRADIENT] = 2,
                                             [PHASE_BACKWARD] = 4}};

        is_near(step_of_ranks(&step, 1, phases), ms[WANT], 1e-12,
                cases[i].what);
    }
}

/* With n chunks, the shorter one of lookup and exchange is hidden except for
 * 1/n of it. */
static void test_chunks(void)
{
    struct step step = {.n_chunks = 4, .chunk_ms = 0.125};
    const double phases[2][N_PHASES] = {
        {[PHASE_FORWARD] = 2, [PHASE_OUTPUT] = 1},
        {[PHASE_FORWARD] = 1, [PHASE_OUTPUT] = 0.5}};

    is_near(step_of_ranks(&step, 2, phases), 2 + 0.25 + 0.125, 1e-12,
            "four chunks: the last exchange is waited for");
    step.look_up_ms = 0.25;
    is_near(step_of_ranks(&step, 2, phases), 2 + 0.75 + 0.25 + 0.125, 1e-12,
            "each look-up is an operation of its own");
    step.overlap_cost[PHASE_OUTPUT] = 1;
    is_near(step_of_ranks(&step, 2, phases), 2 + 0.75 + 1 + 4 * 0.125, 1e-12,
            "without overlap all latencies and extra lookups count");
    step.n_chunks = 1;
    is_near(step_of_ranks(&step, 2, phases), 3, 1e-12, "one: all of it");
}

/* The all-reduce of the dense part is hidden behind its backward pass, but
 * takes its time on the links. */
static void test_links(void)
{
    const double phases[1][N_PHASES] = {{[PHASE_INPUT] = 1,
                                         [PHASE_OUTPUT] = 2,
                                         [PHASE_GRADIENT] = 2,
                                         [PHASE_REDUCE] = 0.5}};

    for (unsigned p = 0; p < N_PIPELINES; p++) {
        struct step step = {
            .pipeline = (enum pipeline)p, .n_chunks = 1, .dense_ms = 10};
        const double without = step_of_ranks(&step, 1, phases);

        step.dense_reduce_ms = 0.1;
        is_near(step_of_ranks(&step, 1, phases), without, 1e-12,
                "a short all-reduce is hidden");
        step.dense_reduce_ms = 40;
        if (step.pipeline != PIPELINE_NONE)
            is_near(step_of_ranks(&step, 1, phases), 45.5, 1e-12,
                    "a long one shares the links with the other exchanges");
    }
}

int main(void)
{
    test_links();
    test_simulation(tap_size(1000, 10000));
    test_rises(tap_size(10000, 100000));
    test_exposed();
    test_order();
    test_chunks();
    return tap_done();
}
