/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "search/fit.h"

#include "base/rng.h"
#include "search/assignment.h"
#include "search/space_init.h"
#include "tests/tap.h"
#include "tests/unit/search/assignment_check.h"
#include "tests/unit/search/fake.h"
#include "tests/unit/search/random_oracle.h"

#include <stdbool.h>

#define MAX_ITEMS 600
#define MAX_BINS 16
#define N_SMALL 4000
#define WORK 20000000

struct packing {
    uint64_t sizes[MAX_ITEMS], rooms[MAX_BINS];
    uint32_t bin_of[MAX_ITEMS], n, n_bins;
};

static bool is_packed(const struct packing *packing)
{
    uint64_t used[MAX_BINS] = {0};

    for (uint32_t i = 0; i < packing->n; i++)
        used[packing->bin_of[i]] += packing->sizes[i];
    for (uint32_t b = 0; b < packing->n_bins; b++)
        if (used[b] > packing->rooms[b])
            return false;
    return true;
}

/* Returns true if the items from index i on fit into the bins, by trying all
 * ways. */
static bool has_packing(struct packing *packing, uint32_t i)
{
    if (i == packing->n)
        return true;
    for (uint32_t b = 0; b < packing->n_bins; b++) {
        bool yes;

        if (packing->sizes[i] > packing->rooms[b])
            continue;
        packing->rooms[b] -= packing->sizes[i];
        yes = has_packing(packing, i + 1);
        packing->rooms[b] += packing->sizes[i];
        if (yes)
            return true;
    }
    return false;
}

static enum bins_answer ask(struct packing *packing)
{
    return bins_pack(packing->bin_of, packing->sizes, packing->n,
                     packing->rooms, packing->n_bins, WORK);
}

/* Draws sizes up to `most`, and bins that hold them exactly. Then changes each
 * bin's space by up to `less` bytes. */
static void draw(struct packing *packing, struct rng *rng, uint32_t max_items,
                 uint32_t max_bins, uint64_t most, uint64_t less)
{
    packing->n = 1 + rng_draw(rng, max_items);
    packing->n_bins = 1 + rng_draw(rng, max_bins);
    memset(packing->rooms, 0, sizeof(packing->rooms));
    for (uint32_t i = 0; i < packing->n; i++) {
        packing->sizes[i] = 1 + rng_below(rng, most);
        packing->rooms[rng_draw(rng, packing->n_bins)] += packing->sizes[i];
    }
    for (uint32_t b = 0; b < packing->n_bins; b++) {
        uint64_t taken = rng_below(rng, less + 1);

        packing->rooms[b] += rng_below(rng, less + 1);
        packing->rooms[b] -= taken < packing->rooms[b] ? taken : 0;
    }
}

/* The answer equals that of exhaustive search. */
static void check_small(void)
{
    unsigned n_packed = 0, n_none = 0, n_wrong = 0;
    struct packing packing;
    struct rng rng;

    rng_init(&rng, 1, 0);
    for (unsigned i = 0; i < N_SMALL; i++) {
        bool has;

        draw(&packing, &rng, 9, 4, i % 2 ? 20 : 1000, i % 2 ? 3 : 60);
        has = has_packing(&packing, 0);
        switch (ask(&packing)) {
        case BINS_PACKED:
            n_packed++;
            n_wrong += !has || !is_packed(&packing);
            break;
        case BINS_NONE:
            n_none++;
            n_wrong += has;
            break;
        case BINS_GAVE_UP:
            n_wrong++;
            break;
        }
    }
    ok(!n_wrong && n_packed > N_SMALL / 10 && n_none > N_SMALL / 10,
       "small ones: %u packed, %u not, %u wrong", n_packed, n_none, n_wrong);
}

/* No space is left over, so there is one packing or hardly more. */
static void check_full(void)
{
    struct packing packing;
    unsigned n_packed = 0;
    struct rng rng;

    rng_init(&rng, 2, 0);
    for (unsigned i = 0; i < 50; i++) {
        draw(&packing, &rng, 20, MAX_BINS, UINT64_C(1) << 40, 0);
        n_packed += ask(&packing) == BINS_PACKED && is_packed(&packing);
    }
    ok(n_packed == 50, "%u of 50 packed with nothing left over", n_packed);
}

/* The problem is too large to be ruled out, and a packing exists. The search
 * may fail to find it, but must not answer that no packing exists. */
static void check_large(void)
{
    struct packing packing;
    unsigned n_packed = 0, n_wrong = 0;
    struct rng rng;

    rng_init(&rng, 3, 0);
    for (unsigned i = 0; i < 40; i++) {
        enum bins_answer answer;

        do
            draw(&packing, &rng, 60, MAX_BINS, UINT64_C(1) << 30, 0);
        while (packing.n < 20);
        for (uint32_t b = 0; i % 2 && b < packing.n_bins; b++)
            packing.rooms[b] += packing.rooms[b] / 1000;
        answer = bins_pack(packing.bin_of, packing.sizes, packing.n,
                           packing.rooms, packing.n_bins, WORK / 10);
        n_packed += answer == BINS_PACKED;
        n_wrong += answer == BINS_NONE ||
                   (answer == BINS_PACKED && !is_packed(&packing));
    }
    ok(!n_wrong && n_packed > 31, "large ones: %u of 40 packed, %u wrong",
       n_packed, n_wrong);
}

/* Four bins of 1000, and one large item more than they can hold: the items are
 * just over half, a third, a fifth and a ninth of a bin. Little work proves
 * that they do not fit, with any small items among them. They fit if two of the
 * bins are larger and one of the items is smaller. */
static void check_beside_small(void)
{
    static const uint32_t large[] = {501, 334, 201, 112};

    for (unsigned i = 0; i < 4; i++) {
        const uint32_t n_large = 4 * (1000 / large[i]) + 1;
        struct packing packing = {.n = n_large + 40, .n_bins = 4};
        enum bins_answer answer;

        for (uint32_t k = 0; k < packing.n; k++)
            packing.sizes[k] = k < 40 ? 1 + k % 9 : large[i] + k % 3;
        for (uint32_t b = 0; b < packing.n_bins; b++)
            packing.rooms[b] = 1000;
        answer = bins_pack(packing.bin_of, packing.sizes, packing.n,
                           packing.rooms, packing.n_bins, 100);
        ok(answer == BINS_NONE, "%u items of %u beside small ones: %d", n_large,
           large[i], (int)answer);
        packing.sizes[40] = 5;
        packing.rooms[0] = packing.rooms[1] = 1300;
        ok(ask(&packing) == BINS_PACKED && is_packed(&packing),
           "they fit into larger bins");
    }
}

/* Items of which four fill each bin to the last byte. Short searches give up
 * on them, which proves nothing. */
static void check_even(void)
{
    struct packing packing = {.n = 48, .n_bins = 12};
    unsigned n_none = 0, n_gave_up = 0;
    struct rng rng;

    rng_init(&rng, 4, 0);
    for (unsigned i = 0; i < 10; i++) {
        enum bins_answer answer;

        memset(packing.rooms, 0, sizeof(packing.rooms));
        for (uint32_t k = 0; k < packing.n; k++) {
            packing.sizes[k] = (1 << 29) + rng_below(&rng, 1 << 29);
            packing.rooms[k % packing.n_bins] += packing.sizes[k];
        }
        answer = bins_pack(packing.bin_of, packing.sizes, packing.n,
                           packing.rooms, packing.n_bins, 1000);
        n_none += answer == BINS_NONE;
        n_gave_up += answer == BINS_GAVE_UP;
    }
    ok(!n_none && n_gave_up, "even ones: %u of 10 given up, %u none", n_gave_up,
       n_none);
}

static void check_odd(void)
{
    struct packing packing = {.n = 3, .n_bins = 2};

    packing.sizes[0] = packing.sizes[1] = packing.sizes[2] = 5;
    packing.rooms[0] = packing.rooms[1] = 9;
    ok(ask(&packing) == BINS_NONE, "three halves and two bins");
    packing.rooms[0] = UINT64_MAX;
    packing.rooms[1] = 0;
    ok(ask(&packing) == BINS_PACKED && is_packed(&packing), "a huge bin");
    packing.sizes[1] = UINT64_MAX;
    ok(ask(&packing) == BINS_NONE || ask(&packing) == BINS_GAVE_UP,
       "sizes beyond 2^64 in all are in no bin");
    packing.n = 0;
    ok(ask(&packing) == BINS_PACKED, "nothing");
    packing.n = MAX_ITEMS;
    for (uint32_t i = 0; i < MAX_ITEMS; i++)
        packing.sizes[i] = 2;
    packing.rooms[0] = packing.rooms[1] = 601;
    ok(ask(&packing) != BINS_PACKED, "very many give no wrong answer");
}

/* --- assignments --- */

/* First seed; from here on some problems need annealing. */
#define FIRST_TIGHT 8
#define N_TIGHT 6

/* Each assignment found is valid and fits in memory, whichever method found
 * it. */
static void check_assignments(double slack, unsigned kinds)
{
    unsigned n_found = 0, n_wrong = 0, n_untold = 0, n = 0;

    for (uint64_t seed = FIRST_TIGHT; n < N_TIGHT; seed++) {
        struct fit_failure failure = {0};
        struct snapshot found = {0};
        struct random_oracle oracle;
        struct problem problem;
        struct assignment assignment;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};
        struct rng rng;

        rng_init(&rng, seed, 4);
        fake_random(&problem, &rng, slack, &arena);
        problem.kinds = kinds;
        random_oracle_init(&oracle, &problem, &rng);
        if (problem.cluster.n_devices > 1 &&
            !space_init(&space, &problem, &oracle.base, NULL, NULL, &arena,
                        &err)) {
            n++;
            if (fit_by_memory(&found, &space, &failure)) {
                assignment_init(&assignment, &space);
                snapshot_load(&found, &assignment);
                n_found++;
                n_wrong += assignment.excess > 0 ||
                           assignment_check(&assignment, &err);
                assignment_release(&assignment);
            } else {
                n_untold += !failure.is_proven && !failure.lacking_bytes;
            }
        }
        snapshot_release(&found);
        arena_release(&arena);
    }
    ok(n_found > 0, "with a slack of %g %u of %u fit", slack, n_found, n);
    is_i64(n_wrong, 0, "assignments are valid and fit in memory");
    is_i64(n_untold, 0, "otherwise the lack is reported");
}

/* Whole tables of these sizes on devices of this usable memory: either an
 * assignment is found, or it is proven that none exists. */
static void check_proof(void)
{
    unsigned n_found = 0, n_wrong = 0, n = (unsigned)tap_size(100, 1000);
    const uint32_t dims[9] = {16, 16, 16, 16, 16, 16, 16, 16, 16};
    struct packing packing;
    struct rng rng;

    rng_init(&rng, 6, 0);
    for (unsigned i = 0; i < n; i++) {
        struct fit_failure failure = {0};
        struct snapshot found = {0};
        struct problem problem;
        struct oracle oracle;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};
        bool has, is_found;

        draw(&packing, &rng, 9, 4, 20, 3);
        has = has_packing(&packing, 0);
        fake_problem(&problem, packing.sizes, dims, packing.n, packing.n_bins,
                     0, &arena);
        problem.kinds = SHARD_TABLE;
        for (uint32_t r = 0; r < packing.n_bins; r++)
            problem.cluster.memory_bytes[r] = packing.rooms[r] * 16 * 4;
        oracle = fake_oracle(&problem);
        if (space_init(&space, &problem, &oracle, NULL, NULL, &arena, &err))
            ok(0, "parts: %s", err.msg);
        is_found = fit_by_memory(&found, &space, &failure);
        n_found += is_found;
        n_wrong += is_found != has || failure.is_proven == has;
        snapshot_release(&found);
        arena_release(&arena);
    }
    ok(n_found && n_found < n && !n_wrong,
       "%u lists of whole tables: %u fit, %u wrong answers", n, n_found,
       n_wrong);
}

/* Whole tables fill the devices to the byte, and cut tables need more. The
 * assignment is found and never proven impossible. */
static void check_whole(void)
{
    unsigned n_found = 0, n_wrong = 0, n = (unsigned)tap_size(60, 600);
    uint64_t rows[12];
    uint32_t dims[12];
    struct rng rng;

    rng_init(&rng, 7, 0);
    for (unsigned i = 0; i < n; i++) {
        const uint32_t n_devices = 2 + rng_draw(&rng, 2);
        struct fit_failure failure = {0};
        struct snapshot found = {0};
        struct problem problem;
        struct oracle oracle;
        struct search_space space;
        struct err err = {0};
        struct arena arena = {0};

        for (int t = 0; t < 12; t++) {
            rows[t] = 100 + rng_below(&rng, 1000);
            dims[t] = 64;
        }
        fake_problem(&problem, rows, dims, 12, n_devices, 0, &arena);
        problem.memory_model = MEMORY_FULL;
        problem.kinds = SHARD_TABLE | SHARD_COLUMN;
        memset(problem.cluster.memory_bytes, 0,
               n_devices * sizeof(*problem.cluster.memory_bytes));
        for (uint32_t t = 0; t < 12; t++) {
            const uint32_t device = rng_draw(&rng, n_devices);
            struct shard whole = shard_whole(&problem, t, device);

            problem.cluster.memory_bytes[device] +=
                shard_memory(&problem, &whole).total;
        }
        for (uint32_t r = 0; r < n_devices; r++)
            problem.cluster.memory_bytes[r] += sample_memory(&problem).total;
        oracle = fake_oracle(&problem);
        if (space_init(&space, &problem, &oracle, NULL, NULL, &arena, &err))
            ok(0, "parts: %s", err.msg);
        n_found += fit_by_memory(&found, &space, &failure);
        n_wrong += failure.is_proven;
        snapshot_release(&found);
        arena_release(&arena);
    }
    ok(n_found == n && !n_wrong, "%u lists: %u fit, %u are reported not to fit",
       n, n_found, n_wrong);
}

int main(void)
{
    check_proof();
    check_whole();
    check_assignments(1.3, SHARD_TABLE | SHARD_COLUMN);
    check_assignments(1.5, SHARD_ALL_KINDS);
    check_small();
    check_full();
    check_large();
    check_beside_small();
    check_even();
    check_odd();
    return tap_done();
}
