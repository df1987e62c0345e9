/* SPDX-License-Identifier: MIT */
#include "core/profile.h"

#include "base/radix_sort.h"
#include "core/rank_law.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Prefetch distance: number of counts between the count that is prefetched and
 * the count that is updated. */
#define AHEAD 48
/* Number of consecutive rows whose carries are allocated together. */
#define CARRY_ROWS 64u
/* A mark of a row: the number of its uses modulo 256, and 256 times 1 + the
 * number of the last batch that used it, or 0 if no complete batch did. */
#define MARK_USES 0xffu
#define MARK_BATCH_BITS 8
#define MOST_TIMED ((UINT32_MAX >> MARK_BATCH_BITS) - 1)
/* Largest gap between two uses that matters: longer gaps count like it. */
#define LONGEST_GAP ((1u << (REACH_WINDOWS - 1)) + 1)

struct profile {
    struct profile_options options;
    /* owned; [room]: `ids` of the batch, and `spare` memory for sorting them */
    uint32_t *ids, *spare;
    size_t n_ids, room;
    /* owned; [most_locals]: ends of the local batches, as indices into ids */
    size_t *local_ends;
    size_t n_locals, most_locals;
    uint64_t n_samples; /* number of samples of the batch so far */
    uint64_t end_row;   /* largest id + 1 */
    /* owned; [n_counts]: mark of each row, of all batches before the current
     * one */
    uint32_t *marks;
    uint64_t n_counts;
    /* owned; [gaps_cap]: number of gaps of each length; all gaps of complete
     * batches are shorter than gaps_cap */
    uint64_t *gaps;
    size_t gaps_cap;
    /* owned; [n_places]: for each group of CARRY_ROWS rows, 1 + the index of
     * the group in `carries`, or 0 if the group has no carries. A carry stands
     * for 256 uses. */
    uint32_t *carry_places;
    uint32_t (*carries)[CARRY_ROWS]; /* owned; [n_carries] */
    size_t n_carries, carries_cap;
    /* Sums over the batches that belong to the statistics per batch. */
    uint64_t told_rows[REUSE_BINS], told_ids, told_unique, told_local_unique;
    /* only n_samples, n_ids and n_batches are used */
    struct profile_result result;
};

struct profile *profile_open(const struct profile_options *options)
{
    struct profile *profile = mem_alloc(1, sizeof(*profile));

    profile->options = *options;
    profile->most_locals = options->batch / options->local_batch;
    profile->local_ends =
        mem_alloc(profile->most_locals, sizeof(*profile->local_ends));
    return profile;
}

void profile_close(struct profile *profile)
{
    if (!profile)
        return;
    mem_free(profile->ids);
    mem_free(profile->spare);
    mem_free(profile->local_ends);
    mem_free(profile->marks);
    mem_free(profile->gaps);
    mem_free(profile->carry_places);
    mem_free(profile->carries);
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

/* Returns the number of groups of CARRY_ROWS rows. */
static uint64_t n_places(uint64_t n_counts)
{
    return (n_counts + CARRY_ROWS - 1) / CARRY_ROWS;
}

uint64_t profile_bytes(const struct profile *profile)
{
    return profile->most_locals * sizeof(size_t) +
           profile->gaps_cap * sizeof(uint64_t) +
           sizeof(uint32_t) * (profile->n_counts + 2 * profile->room +
                               n_places(profile->n_counts) +
                               profile->carries_cap * CARRY_ROWS);
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
            return err_input(err, "id %" PRId64 " is outside 0 to %" PRIu64,
                             ids[i], n_rows - 1);
    profile->n_ids += n;
    profile->end_row = max_u64(profile->end_row, largest + 1);
    return 0;
}

static unsigned bits_of(uint64_t n)
{
    return 64 - (unsigned)__builtin_clzll(n | 1);
}

/* Sorts n ids, from number `begin` on, by their lower `bits` bits. Returns the
 * list with the sorted ids: `ids` or `spare`. The other list then holds the
 * same ids in some order. */
static uint32_t *sort(const struct profile *profile, size_t begin, size_t n,
                      unsigned bits)
{
    const struct radix_sort sort = {
        .keys = {profile->ids + begin, profile->spare + begin},
        .n = n,
        .key_bytes = sizeof(*profile->ids),
        .mask = UINT32_MAX >> (32 - bits),
    };

    return sort.keys[radix_sort(&sort)];
}

/* Returns the number of unique ids of each local batch, summed over the local
 * batches. Sorts each local batch. */
static uint64_t count_local_unique(struct profile *profile, unsigned bits)
{
    uint64_t n_unique = 0;
    size_t begin = 0;

    for (size_t l = 0; l < profile->n_locals;
         begin = profile->local_ends[l++]) {
        const size_t n = profile->local_ends[l] - begin;
        const uint32_t *sorted = sort(profile, begin, n, bits);

        for (size_t i = 0; i < n; i++)
            n_unique += !i || sorted[i] != sorted[i - 1];
    }
    return n_unique;
}

/* Stores the number of the local batch in each id, in the bits above the `bits`
 * bits of the row. The caller checks that the number fits. */
static void mark_local(struct profile *profile, unsigned bits)
{
    /* ids of local batch 0 need no number, because it is 0 */
    size_t i = profile->local_ends[0];

    for (size_t l = 1; l < profile->n_locals; l++)
        for (; i < profile->local_ends[l]; i++)
            profile->ids[i] |= (uint32_t)((uint64_t)l << bits);
}

static void end_local_batch(struct profile *profile)
{
    profile->local_ends[profile->n_locals++] = profile->n_ids;
}

/* Returns the carries of the row's group, or NULL if the group has none. */
static uint32_t *carries_of(const struct profile *profile, uint64_t row)
{
    const uint32_t place = profile->carry_places[row / CARRY_ROWS];

    return place ? profile->carries[place - 1] : NULL;
}

static void carry(struct profile *profile, uint32_t row, uint64_t n)
{
    uint32_t *carries = carries_of(profile, row);

    if (!carries) {
        profile->carries =
            mem_room(profile->carries, profile->n_carries,
                     &profile->carries_cap, sizeof(*profile->carries));
        carries = profile->carries[profile->n_carries++];
        memset(carries, 0, sizeof(*profile->carries));
        profile->carry_places[row / CARRY_ROWS] = (uint32_t)profile->n_carries;
    }
    carries += row % CARRY_ROWS;
    *carries = (uint32_t)min_u64(*carries + n, UINT32_MAX);
}

/* Adds runs of equal ids to the counts of their rows. rows[i] is the row of run
 * i, and last[i] is the index of its last id. If `batch` is not 0, it is 1 +
 * the number of the batch; then also counts the gaps of the rows and marks them
 * with the batch. */
static void add_runs(struct profile *profile, uint64_t bins[REUSE_BINS],
                     const uint32_t *rows, const uint32_t *last, size_t n,
                     uint32_t batch)
{
    uint32_t *marks = profile->marks;
    uint64_t *gaps = profile->gaps;
    uint32_t before = UINT32_MAX;

    for (size_t i = 0; i < n; i++) {
        const uint32_t count = last[i] - before, mark = marks[rows[i]];
        const uint64_t all = (uint64_t)(mark & MARK_USES) + count;
        /* k is the bin that reuse_bin_of(count) returns */
        const int k = count > 1 ? 32 - __builtin_clz(count - 1) : 0;

        __builtin_prefetch(&marks[rows[i + AHEAD < n ? i + AHEAD : i]], 1);
        before = last[i];
        bins[k < REUSE_BINS ? k : REUSE_BINS - 1]++;
        if (batch) {
            const uint32_t gap = batch - (mark >> MARK_BATCH_BITS);

            gaps[gap < LONGEST_GAP ? gap : LONGEST_GAP]++;
        }
        marks[rows[i]] =
            (batch ? batch << MARK_BATCH_BITS : mark & ~MARK_USES) |
            (uint32_t)(all & MARK_USES);
        if (all > MARK_USES)
            carry(profile, rows[i], all >> 8);
    }
}

/* Grows a list from n to n_new items. The new items are set to 0. */
static void *grow(void *list, uint64_t n, uint64_t n_new, size_t size)
{
    list = mem_grow(list, n_new, size);
    mem_expect_random(list, n_new, size);
    memset((char *)list + n * size, 0, (n_new - n) * size);
    return list;
}

static void grow_counts(struct profile *profile)
{
    const uint64_t n = profile->n_counts, end = profile->end_row;

    /* Growth by a sixteenth makes copies rare and wastes little memory. */
    profile->n_counts =
        profile->options.n_rows ? profile->options.n_rows : end + end / 16;
    profile->marks =
        grow(profile->marks, n, profile->n_counts, sizeof(*profile->marks));
    profile->carry_places =
        grow(profile->carry_places, n_places(n), n_places(profile->n_counts),
             sizeof(*profile->carry_places));
}

/* Returns 1 + the number of the batch, and makes room for its gaps. Returns 0
 * if its gaps are not counted: the batch is incomplete, or too many came
 * before. */
static uint32_t time_batch(struct profile *profile)
{
    const uint64_t batch = profile->result.n_batches + 1;
    const size_t longest = (size_t)min_u64(batch, LONGEST_GAP);

    if (profile->n_samples < profile->options.batch || batch > MOST_TIMED)
        return 0;
    if (longest >= profile->gaps_cap) {
        const size_t cap = 2 * longest + 1;

        profile->gaps =
            grow(profile->gaps, profile->gaps_cap, cap, sizeof(*profile->gaps));
        profile->gaps_cap = cap;
    }
    return (uint32_t)batch;
}

/* Adds the ids of the batch to the counts of rows. If `tells` is true, also
 * adds them to the statistics per batch. */
static void end_batch(struct profile *profile, bool tells)
{
    uint64_t untold[REUSE_BINS] = {0};
    const unsigned bits = bits_of(profile->end_row);
    const uint32_t row_mask = UINT32_MAX >> (32 - bits);
    const bool is_marked = !((uint64_t)(profile->n_locals - 1) >> (32 - bits));
    const size_t n = profile->n_ids;
    uint32_t *rows, *last;
    size_t n_unique = 0, n_local_unique = 0;

    if (profile->end_row > profile->n_counts)
        grow_counts(profile);
    if (is_marked)
        mark_local(profile, bits);
    else
        n_local_unique = count_local_unique(profile, bits);
    rows = sort(profile, 0, n, bits);
    last = rows == profile->ids ? profile->spare : profile->ids;
    /* Compacts the runs in place. The loop has no branch inside, because a
     * processor could not predict it. */
    for (size_t i = 0; i < n; i++) {
        const uint32_t differ = i + 1 < n ? rows[i + 1] ^ rows[i] : UINT32_MAX;

        rows[n_unique] = rows[i] & row_mask;
        last[n_unique] = (uint32_t)i;
        n_unique += (differ & row_mask) != 0;
        n_local_unique += is_marked && differ;
    }
    add_runs(profile, tells ? profile->told_rows : untold, rows, last, n_unique,
             time_batch(profile));
    if (tells) {
        profile->told_ids += n;
        profile->told_unique += n_unique;
        profile->told_local_unique += n_local_unique;
    }
    profile->result.n_ids += n;
    profile->result.n_samples += profile->n_samples;
    profile->n_ids = profile->n_samples = profile->n_locals = 0;
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

/* --- computing the results from the counts of all rows --- */

/* Inserts a row into the list of the hottest rows if the row is hot enough. */
static void keep_hottest(struct profile_result *result, size_t most,
                         uint64_t row, uint64_t uses)
{
    size_t pos = result->n_hottest;

    if (pos < most)
        result->n_hottest++;
    else if (!most || uses <= result->hottest[--pos].count)
        return;
    for (; pos && result->hottest[pos - 1].count < uses; pos--)
        result->hottest[pos] = result->hottest[pos - 1];
    result->hottest[pos] =
        (struct hottest_row){row, uses, (double)uses / (double)result->n_ids};
}

/* SMALL: for counts c below SMALL, c ln c is stored in an array, and the
 * expectation under a Poisson law is summed count by count. LARGE_MEAN: if the
 * mean of the Poisson law is at least LARGE_MEAN, an expansion around the mean
 * is used instead of the sum. */
#define SMALL 64
#define LARGE_MEAN 16.0

/* Returns E[X ln X] of a Poisson law. terms[c] is c ln c. For a large mean,
 * uses the first terms of the expansion around the mean. They are accurate to
 * 1e-4 for a large mean. */
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

/* Returns the sum of E[X ln X] over the rows, under the Zipf law with exponent
 * alpha. After the first ranks, the probabilities change so slowly that all
 * ranks of a run are treated as equal. */
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

/* Finds the Zipf exponent by bisection, since expected_sum grows with the
 * exponent. */
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

/* Computes reach and misses from the gaps between the uses of rows. */
static void finish_reach(const struct profile *profile,
                         struct profile_result *result)
{
    const uint64_t n_batches = min_u64(profile->result.n_batches, MOST_TIMED);
    uint64_t n_longer = 0; /* number of gaps above the window */
    double reach = 0, misses = INFINITY;

    for (size_t gap = 0; gap < profile->gaps_cap; gap++)
        n_longer += profile->gaps[gap];
    for (uint64_t window = 0; window < min_u64(n_batches, LONGEST_GAP);
         window++) {
        const unsigned k = result->n_reach;

        n_longer -= profile->gaps[window];
        misses = fmin(misses, (double)n_longer / (double)(n_batches - window));
        if (window == 1ull << k) {
            result->reach[k] = fmin(reach, (double)result->n_rows);
            result->misses[k] = misses;
            result->n_reach++;
        }
        reach += misses;
    }
}

void profile_finish(struct profile *profile, struct profile_result *result,
                    struct arena *arena)
{
    const struct profile_options *options = &profile->options;
    double n_ids, n_unique, terms[SMALL] = {0}, sum = 0;
    const uint32_t *carries = NULL;

    end_local_batch(profile);
    end_batch(profile, !profile->result.n_batches);
    n_ids = fmax((double)profile->told_ids, 1);
    n_unique = fmax((double)profile->told_unique, 1);
    *result = profile->result;
    result->n_rows = options->n_rows ? options->n_rows : profile->end_row;
    finish_reach(profile, result);
    result->unique_frac = (double)profile->told_unique / n_ids;
    result->local_unique_frac = (double)profile->told_local_unique / n_ids;
    result->hottest = ARENA_NEW(arena, struct hottest_row, options->n_hottest);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        result->bins[k] = (double)profile->told_rows[k] / n_unique;
    for (int c = 1; c < SMALL; c++)
        terms[c] = c * log(c);
    for (uint64_t row = 0; row < profile->n_counts; row++) {
        uint64_t uses = profile->marks[row] & MARK_USES;

        if (row % CARRY_ROWS == 0)
            carries = carries_of(profile, row);
        if (carries)
            uses += (uint64_t)carries[row % CARRY_ROWS] << 8;
        if (!uses)
            continue;
        result->n_used++;
        sum += uses < SMALL ? terms[uses] : (double)uses * log((double)uses);
        keep_hottest(result, options->n_hottest, row, uses);
    }
    result->used_frac =
        (double)result->n_used / (double)max_u64(result->n_rows, 1);
    result->zipf_alpha =
        result->n_rows > 1 && result->n_ids
            ? solve_zipf(result->n_rows, result->n_ids, sum, terms)
            : NAN;
}
