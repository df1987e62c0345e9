/* SPDX-License-Identifier: MIT */
/* Peak memory of a simulated job: the memory that a plan does not count, and
 * the reserve that avoids running out of memory. */
#include "exec/job_memory.h"

#include "base/rng.h"
#include "tests/tap.h"

#include <math.h>

#define MAX_RANKS 8
#define N_CASES 4000
#define GIB ((uint64_t)1 << 30)

/* A plan, and a job in which a GPU takes c + share x c + fixed bytes, if the
 * plan counts c. Either the share is 0, or `fixed` is the same for all GPUs. */
struct planted {
    struct plan plan;
    struct device_cost devices[MAX_RANKS];
    uint64_t memory_bytes[MAX_RANKS];
    double share, fixed[MAX_RANKS];
    struct peaks peaks;
    struct peak ranks[MAX_RANKS];
};

static uint64_t needed(const struct planted *planted, uint32_t r,
                       double counted)
{
    return (uint64_t)(counted * (1 + planted->share) + planted->fixed[r]);
}

static void draw(struct planted *planted, struct rng *rng)
{
    const uint32_t n_ranks = 1 + (uint32_t)rng_below(rng, MAX_RANKS);
    const bool is_tight = rng_below(rng, 2), has_share = rng_below(rng, 2);
    const double fixed = rng_uniform(rng) * (double)(16 * GIB);

    *planted = (struct planted){.share = has_share * 0.5 * rng_uniform(rng),
                                .peaks = {.n_ranks = n_ranks}};
    planted->peaks.ranks = planted->ranks;
    planted->plan.devices = planted->devices;
    planted->plan.problem.cluster = (struct cluster){
        .n_devices = n_ranks, .memory_bytes = planted->memory_bytes};
    for (uint32_t r = 0; r < n_ranks; r++) {
        const double counted =
            (double)(80 * GIB) *
            (is_tight ? 0.7 + 0.2 * rng_uniform(rng) : 0.6 * rng_uniform(rng));
        struct memory_items *memory = &planted->devices[r].memory;

        planted->memory_bytes[r] = 80 * GIB;
        planted->fixed[r] = fixed * (has_share ? 1 : rng_uniform(rng));
        memory->weights = (uint64_t)counted;
        memory->nccl = GIB / 2;
        memory->reserve = 7 * GIB;
        memory->total = memory->weights + memory->nccl + memory->reserve;
        planted->ranks[r].used = needed(planted, r, counted);
        planted->peaks.n++;
    }
}

/* No GPU runs out of memory in another plan with the suggested reserve, even if
 * it gets as much as today's fullest GPU. */
static void test_reserve(void)
{
    struct rng rng;
    size_t n_out = 0, n_short = 0;

    rng_init(&rng, 47, 0);
    for (int i = 0; i < N_CASES; i++) {
        struct planted planted;
        struct job_memory job;
        struct arena arena = {0};
        double fullest = 0, reserve;

        draw(&planted, &rng);
        job_memory_init(&job, &planted.plan, &planted.peaks, &arena);
        for (uint32_t r = 0; r < planted.peaks.n_ranks; r++)
            fullest = fmax(fullest, (double)planted.devices[r].memory.weights);
        reserve = (double)job.ranks[job.worst].rest;
        n_out += job.out < job.n;
        for (uint32_t r = 0; r < planted.peaks.n_ranks; r++)
            n_short += needed(&planted, r,
                              fmin((double)(80 * GIB) - reserve, fullest)) >
                       80 * GIB + 1;
        arena_release(&arena);
    }
    ok(n_out > N_CASES / 10 && n_out < N_CASES / 2,
       "%zu of %d jobs run out of memory", n_out, N_CASES);
    is_i64((int64_t)n_short, 0, "none does with the suggested reserve");
}

/* Makes a plan of one GPU of 80 GiB that counts 50 and has NCCL's 1. */
static struct job_memory one_gpu(struct peak peak, struct arena *arena)
{
    static struct planted planted;
    struct job_memory job;

    planted = (struct planted){.peaks = {.n_ranks = 1, .n = 1}};
    planted.peaks.ranks = planted.ranks;
    planted.ranks[0] = peak;
    planted.memory_bytes[0] = 80 * GIB;
    planted.devices[0].memory = (struct memory_items){.weights = 50 * GIB,
                                                      .nccl = GIB,
                                                      .reserve = 11 * GIB,
                                                      .total = 62 * GIB};
    planted.plan.devices = planted.devices;
    planted.plan.problem.cluster =
        (struct cluster){.n_devices = 1, .memory_bytes = planted.memory_bytes};
    job_memory_init(&job, &planted.plan, &planted.peaks, arena);
    return job;
}

/* Choice of the peak that counts, and the bytes that are added to it. */
static void test_peaks(void)
{
    static const struct {
        struct peak peak;
        uint64_t needed;
        bool is_completed, ran_out;
    } CASES[] = {
        {{40 * GIB, 45 * GIB, 60 * GIB, 0}, 60 * GIB, false, false},
        {{40 * GIB, 45 * GIB, 0, 0}, 47 * GIB, true, false},
        {{40 * GIB, 0, 0, 0}, 42 * GIB, true, false},
        {{40 * GIB, 45 * GIB, 79 * GIB, 3 * GIB}, 82 * GIB, false, true},
        {{40 * GIB, 45 * GIB, 70 * GIB, 3 * GIB}, 73 * GIB, false, true},
        {{0, 0, 81 * GIB, 0}, 81 * GIB, false, true},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct arena arena = {0};
        const struct job_memory job = one_gpu(CASES[i].peak, &arena);
        const uint64_t rest =
            CASES[i].needed > 50 * GIB ? CASES[i].needed - 50 * GIB : 0;

        ok(job.n == 1 && job.ranks[0].needed == CASES[i].needed &&
               job.ranks[0].rest == rest && job.worst == 0 &&
               job.is_completed == CASES[i].is_completed &&
               (job.out == 0) == CASES[i].ran_out &&
               !job.ranks[0].note == !CASES[i].ran_out,
           "case %zu", i);
        ok(job.ranks[0].counted == 50 * GIB && job.ranks[0].reserve == 12 * GIB,
           "and what the plan counts");
        arena_release(&arena);
    }
}

int main(void)
{
    test_reserve();
    test_peaks();
    return tap_done();
}
