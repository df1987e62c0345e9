/* SPDX-License-Identifier: MIT */
#include "core/profile.h"

#include "core/rank_law.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Counts that are fetched while others are added to. */
#define AHEAD 24
/* Ids are sorted by digits of at most so many bits: their runs' ends stay in
 * the first cache. */
#define DIGIT_BITS 10

struct profile {
    struct profile_options options;
    uint32_t *ids, *spare; /* owned; [room]: of the batch, and for sorting */
    size_t n_ids, room;
    size_t local_begin;                 /* of the local batch in ids */
    uint64_t n_samples, n_local_unique; /* in the batch */
    uint64_t end_row;                   /* behind the largest id */
    uint32_t *counts; /* owned; [n_counts], of all batches but this one */
    uint64_t n_counts;
    /* Sums over the batches that tell. */
    uint64_t told_rows[REUSE_BINS], told_ids, told_unique, told_local_unique;
    struct profile_result result; /* its first three */
};

struct profile *profile_open(const struct profile_options *options)
{
    struct profile *profile = mem_alloc(1, sizeof(*profile));

    profile->options = *options;
    return profile;
}

void profile_close(struct profile *profile)
{
    if (!profile)
        return;
    mem_free(profile->ids);
    mem_free(profile->spare);
    mem_free(profile->counts);
    mem_free(profile);
}

uint64_t profile_room(const struct profile *profile)
{
    return profile->options.local_batch -
           profile->n_samples % profile->options.local_batch;
}

bool profile_is_full(const struct profile *profile)
{
    return profile->options.max_batches &&
           profile->result.n_batches >= profile->options.max_batches;
}

uint64_t profile_bytes(const struct profile *profile)
{
    return (2 * profile->room + profile->n_counts) * sizeof(uint32_t);
}

int profile_add(struct profile *profile, const int64_t *ids, size_t n,
                struct err *err)
{
    const struct profile_options *options = &profile->options;
    const uint64_t n_rows =
        options->n_rows ? options->n_rows : options->max_rows;
    uint64_t largest = 0;
    uint32_t *rows;

    if (!n || profile_is_full(profile))
        return 0;
    if (profile->n_ids + n > UINT32_MAX)
        return err_input(err, "a batch has more than %" PRIu32 " ids",
                         UINT32_MAX);
    if (profile->n_ids + n > profile->room) {
        profile->room = 2 * profile->n_ids + n;
        profile->ids = mem_grow(profile->ids, profile->room, sizeof(*rows));
        profile->spare = mem_grow(profile->spare, profile->room, sizeof(*rows));
    }
    rows = profile->ids + profile->n_ids;
    for (size_t i = 0; i < n; i++) {
        rows[i] = (uint32_t)ids[i];
        largest = max_u64(largest, (uint64_t)ids[i]);
    }
    for (size_t i = 0; i < n && largest >= n_rows; i++)
        if ((uint64_t)ids[i] >= n_rows)
            return err_input(err, "id %" PRId64 " is none of 0 to %" PRIu64,
                             ids[i], n_rows - 1);
    profile->n_ids += n;
    profile->end_row = max_u64(profile->end_row, largest + 1);
    return 0;
}

/* Radix sort from the lowest digit (Knuth, The Art of Computer Programming 3,
 * 5.2.5). Returns which of the two has the n ids in order; `ids` has them in
 * some order. */
static uint32_t *sort(uint32_t *ids, uint32_t *spare, size_t n,
                      uint64_t end_row)
{
    const unsigned bits = 64 - (unsigned)__builtin_clzll(end_row | 1);
    const unsigned n_passes = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
    const unsigned digit = (bits + n_passes - 1) / n_passes;
    const uint32_t mask = (1u << digit) - 1;

    for (unsigned shift = 0; shift < n_passes * digit; shift += digit) {
        size_t at[(1 << DIGIT_BITS) + 1] = {0};
        uint32_t *sorted = spare;

        for (size_t i = 0; i < n; i++)
            at[(ids[i] >> shift & mask) + 1]++;
        for (uint32_t k = 0; k < mask; k++)
            at[k + 1] += at[k];
        for (size_t i = 0; i < n; i++)
            sorted[at[ids[i] >> shift & mask]++] = ids[i];
        spare = ids;
        ids = sorted;
    }
    return ids;
}

/* Counts the ids that are unique in the local batch. */
static void end_local_batch(struct profile *profile)
{
    const size_t n = profile->n_ids - profile->local_begin;
    const uint32_t *sorted;
    uint64_t n_unique = 1;

    if (!n || profile->options.local_batch == profile->options.batch)
        return; /* end_batch has it */
    sorted = sort(profile->ids + profile->local_begin, profile->spare, n,
                  profile->end_row);
    for (size_t i = 1; i < n; i++)
        n_unique += sorted[i] != sorted[i - 1];
    profile->n_local_unique += n_unique;
    profile->local_begin = profile->n_ids;
}

/* Adds runs to the counts: of each its row, and the place of its last id. */
static void add_runs(uint64_t bins[REUSE_BINS], uint32_t *counts,
                     const uint32_t *rows, const uint32_t *last, size_t n)
{
    uint32_t before = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        uint32_t *all = &counts[rows[i]];
        const uint32_t count = last[i] - before;
        /* As reuse_bin_of. */
        const int k = count > 1 ? 32 - __builtin_clz(count - 1) : 0;

        __builtin_prefetch(&counts[rows[i + AHEAD < n ? i + AHEAD : i]], 1);
        before = last[i];
        bins[k < REUSE_BINS ? k : REUSE_BINS - 1]++;
        *all = *all > UINT32_MAX - count ? UINT32_MAX : *all + count;
    }
}

/* Adds the batch's ids to the counts, and to what is told by batch if this one
 * tells. */
static void end_batch(struct profile *profile, bool tells)
{
    uint64_t untold[REUSE_BINS] = {0};
    const uint64_t n_counts = profile->n_counts,
                   wanted = profile->options.n_rows;
    const size_t n = profile->n_ids;
    uint32_t *rows, *last;
    size_t n_unique = 0;

    if (profile->end_row > n_counts) {
        /* What is grown by a sixteenth is moved seldom and wastes little. */
        profile->n_counts =
            wanted ? wanted : profile->end_row + profile->end_row / 16;
        profile->counts =
            mem_grow(profile->counts, profile->n_counts, sizeof(uint32_t));
        mem_expect_random(profile->counts, profile->n_counts, sizeof(uint32_t));
        memset(profile->counts + n_counts, 0,
               (profile->n_counts - n_counts) * sizeof(uint32_t));
    }
    rows = sort(profile->ids, profile->spare, n, profile->end_row);
    last = rows == profile->ids ? profile->spare : profile->ids;
    /* In place and without a branch, which no processor could foresee. */
    for (size_t i = 0; i < n; i++) {
        rows[n_unique] = rows[i];
        last[n_unique] = (uint32_t)i;
        n_unique += i + 1 == n || rows[i + 1] != rows[i];
    }
    add_runs(tells ? profile->told_rows : untold, profile->counts, rows, last,
             n_unique);
    if (profile->options.local_batch == profile->options.batch)
        profile->n_local_unique = n_unique;
    if (tells) {
        profile->told_ids += n;
        profile->told_unique += n_unique;
        profile->told_local_unique += profile->n_local_unique;
    }
    profile->result.n_ids += n;
    profile->result.n_samples += profile->n_samples;
    profile->n_ids = profile->local_begin = 0;
    profile->n_samples = profile->n_local_unique = 0;
}

void profile_end(struct profile *profile, uint64_t n_samples)
{
    if (!n_samples || profile_is_full(profile))
        return;
    profile->n_samples += n_samples;
    if (profile->n_samples % profile->options.local_batch == 0)
        end_local_batch(profile);
    if (profile->n_samples == profile->options.batch) {
        end_batch(profile, true);
        profile->result.n_batches++;
    }
}

/* --- what follows from the counts of all rows --- */

/* A count, and where it belongs among the hottest. */
static void keep_hottest(struct profile_result *result, size_t most,
                         uint64_t row, uint32_t uses)
{
    size_t at = result->n_hottest;

    if (at < most)
        result->n_hottest++;
    else if (!most || uses <= result->hottest[--at].count)
        return;
    for (; at && result->hottest[at - 1].count < uses; at--)
        result->hottest[at] = result->hottest[at - 1];
    result->hottest[at] =
        (struct hottest_row){row, uses, (double)uses / (double)result->n_ids};
}

/* Counts below it have their c ln c in a table, and are summed one by one under
 * a Poisson law whose mean is not large. */
#define SMALL 64
#define LARGE_MEAN 16.0

/* E[X ln X] of a Poisson law: of a large mean the first terms of the expansion
 * around it, which there are good to 1e-4. */
static double expected_term(double mean, const double terms[SMALL])
{
    double p = exp(-mean), sum = 0;

    if (mean >= LARGE_MEAN)
        return mean * log(mean) + 0.5 + (1 + 1 / mean) / (12 * mean);
    for (int c = 1; c < SMALL; c++) {
        p *= mean / c;
        sum += p * terms[c];
    }
    return sum;
}

/* The sum of that over the rows under the law with this exponent. Beyond the
 * first ranks its probabilities change so slowly that runs of them are one. */
static double expected_sum(double alpha, uint64_t n_rows, uint64_t n_ids,
                           const double terms[SMALL])
{
    struct rank_law law;
    struct table table;
    double sum = 0;

    table_init(&table);
    table.num_embeddings = n_rows;
    table.zipf_alpha = alpha;
    law_init(&law, &table, (double)n_ids);
    for (double begin = 0, end; begin < (double)n_rows; begin = end) {
        double mass;

        end = begin < LAW_EXACT_RANKS
                  ? begin + 1
                  : fmin(floor(begin * (1 + 1.0 / 32)), (double)n_rows);
        mass = law_before(&law, end) - law_before(&law, begin);
        sum += (end - begin) *
               expected_term((double)n_ids * mass / (end - begin), terms);
    }
    return sum;
}

/* The expected sum grows with the exponent. */
static double solve_zipf(uint64_t n_rows, uint64_t n_ids, double want,
                         const double terms[SMALL])
{
    double low = 0, high = TABLE_MAX_ZIPF;

    while (high - low > 1e-5) {
        const double middle = (low + high) / 2;

        if (expected_sum(middle, n_rows, n_ids, terms) < want)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void profile_finish(struct profile *profile, struct profile_result *result,
                    struct arena *arena)
{
    const struct profile_options *options = &profile->options;
    double n_ids, n_unique, terms[SMALL] = {0}, sum = 0;

    end_local_batch(profile);
    end_batch(profile, !profile->result.n_batches);
    n_ids = fmax((double)profile->told_ids, 1);
    n_unique = fmax((double)profile->told_unique, 1);
    *result = profile->result;
    result->n_rows = options->n_rows ? options->n_rows : profile->end_row;
    result->unique_frac = (double)profile->told_unique / n_ids;
    result->local_unique_frac = (double)profile->told_local_unique / n_ids;
    result->hottest = ARENA_NEW(arena, struct hottest_row, options->n_hottest);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        result->bins[k] = (double)profile->told_rows[k] / n_unique;
    for (int c = 1; c < SMALL; c++)
        terms[c] = c * log(c);
    for (uint64_t row = 0; row < profile->n_counts; row++) {
        const uint32_t uses = profile->counts[row];

        if (!uses)
            continue;
        result->n_used++;
        sum += uses < SMALL ? terms[uses] : uses * log(uses);
        keep_hottest(result, options->n_hottest, row, uses);
    }
    result->used_frac =
        (double)result->n_used / (double)max_u64(result->n_rows, 1);
    result->zipf_alpha =
        result->n_rows > 1 && result->n_ids
            ? solve_zipf(result->n_rows, result->n_ids, sum, terms)
            : NAN;
}
