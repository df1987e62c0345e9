/* SPDX-License-Identifier: MIT */
#include "core/profile.h"

#include "base/rng.h"
#include "core/rank_law.h"
#include "tests/tap.h"

#define MAX_IDS 700000
#define MAX_DRAWN_IDS 20000

/* Samples with their ids, concatenated. */
struct data {
    int64_t ids[MAX_IDS];
    /* offset of each sample's first id, [n_samples + 1] */
    uint64_t begin[MAX_IDS + 1];
    size_t n_samples;
};

struct expected {
    uint64_t rows[REUSE_BINS], n_ids, n_unique, n_local_unique, n_batches;
    uint64_t *counts; /* uses of each row */
};

static struct err err;

static int by_value(const void *a, const void *b)
{
    const int64_t *left = a, *right = b;

    return *left < *right ? -1 : *left > *right;
}

/* Returns the number of different ids among n. Adds the number of their
 * occurrences to the histogram `rows` unless it is NULL. */
static uint64_t runs(const int64_t *ids, uint64_t n, uint64_t *rows)
{
    int64_t *sorted = malloc((n + 1) * sizeof(*sorted));
    uint64_t n_unique = 0;

    memcpy(sorted, ids, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    for (uint64_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && sorted[end] == sorted[i];)
            end++;
        n_unique++;
        if (rows)
            rows[reuse_bin_of((double)(end - i))]++;
    }
    free(sorted);
    return n_unique;
}

/* Computes the result that the header promises, sample by sample. */
static void expect(struct expected *want, const struct data *data,
                   uint64_t batch, uint64_t local)
{
    const uint64_t n = data->n_samples;
    uint64_t n_told = n;

    while (want->n_batches < n / batch)
        n_told = ++want->n_batches * batch;
    for (uint64_t s = 0; s < n_told; s += batch) {
        uint64_t end = s + batch < n ? s + batch : n;
        const int64_t *ids = data->ids + data->begin[s];
        uint64_t n_ids = data->begin[end] - data->begin[s];

        want->n_ids += n_ids;
        want->n_unique += runs(ids, n_ids, want->rows);
    }
    for (uint64_t s = 0; s < n_told; s += local) {
        uint64_t end = s + local < n ? s + local : n;

        want->n_local_unique += runs(data->ids + data->begin[s],
                                     data->begin[end] - data->begin[s], NULL);
    }
    for (uint64_t i = 0; i < data->begin[n]; i++)
        want->counts[data->ids[i]]++;
}

/* Adds all samples to the profile; the ids of a local batch arrive in
 * pieces. */
static void feed(struct profile *profile, const struct data *data,
                 struct rng *rng)
{
    size_t s = 0;

    while (s < data->n_samples) {
        uint64_t room = profile_room(profile), n = 1 + rng_below(rng, room);
        uint64_t at = data->begin[s], end;

        if (n > data->n_samples - s)
            n = data->n_samples - s;
        end = data->begin[s + n];
        while (at < end) {
            uint64_t piece = 1 + rng_below(rng, end - at);

            if (profile_add(profile, data->ids + at, piece, &err))
                return;
            at += piece;
        }
        profile_end(profile, n);
        s += n;
    }
}

/* Draws ids so that rows are used from once to very often per batch: a few hot
 * rows occur again and again. */
static void draw(struct data *data, struct rng *rng, uint64_t n_rows)
{
    const uint64_t hot = 1 + rng_below(rng, 50), most = rng_below(rng, 7);
    uint64_t n_ids = 0;

    data->n_samples = 0;
    data->begin[0] = 0;
    while (data->n_samples < 2000 && n_ids + most < MAX_DRAWN_IDS) {
        uint64_t n = rng_below(rng, most + 1);

        for (uint64_t i = 0; i < n; i++) {
            uint64_t row = rng_below(rng, n_rows);

            if (rng_below(rng, 100) >= hot)
                row = row % (1 + n_rows / (1 + rng_below(rng, n_rows)));
            data->ids[n_ids++] = (int64_t)row;
        }
        data->begin[++data->n_samples] = n_ids;
        if (!rng_below(rng, 3000))
            break;
    }
}

static bool same_bins(const struct expected *want,
                      const struct profile_result *got)
{
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        double bin =
            want->n_unique ? (double)want->rows[k] / (double)want->n_unique : 0;

        if (memcmp(&bin, &got->bins[k], sizeof(bin)))
            return false;
    }
    return true;
}

/* Compares the hottest rows with those that a search through all rows finds. */
static bool same_hottest(struct expected *want, uint64_t n_rows,
                         size_t n_hottest, const struct profile_result *got)
{
    uint64_t n_used = 0;

    for (uint64_t r = 0; r < n_rows; r++)
        n_used += want->counts[r] > 0;
    if (got->n_used != n_used ||
        got->n_hottest != (n_used < n_hottest ? n_used : n_hottest))
        return false;
    for (size_t i = 0; i < got->n_hottest; i++) {
        uint64_t best = 0;

        for (uint64_t r = 0; r < n_rows; r++)
            if (want->counts[r] > want->counts[best])
                best = r;
        if (got->hottest[i].row != best ||
            got->hottest[i].count != want->counts[best])
            return false;
        want->counts[best] = 0;
    }
    return true;
}

/* Returns the mean number of rows of a batch that none of the `window` batches
 * before it uses, over the batches with so many before them. before[r] is
 * memory for 1 + the last batch that used row r. */
static double count_misses(const struct data *data, uint64_t batch,
                           uint64_t n_batches, uint64_t window, uint64_t n_rows,
                           uint64_t *before)
{
    uint64_t n = 0;

    memset(before, 0, n_rows * sizeof(*before));
    for (uint64_t b = 0; b < n_batches; b++)
        for (uint64_t i = data->begin[b * batch];
             i < data->begin[(b + 1) * batch]; i++) {
            uint64_t *last = &before[data->ids[i]];

            n += b >= window && *last != b + 1 && *last + window <= b;
            *last = b + 1;
        }
    return (double)n / (double)(n_batches - window);
}

static bool same_reach(const struct data *data, uint64_t batch, uint64_t n_rows,
                       const struct profile_result *got)
{
    uint64_t *before = calloc(n_rows + 1, sizeof(*before));
    double reach = 0, misses = INFINITY;
    bool same = true;
    uint32_t k = 0;

    for (uint64_t window = 0; window < got->n_batches; window++) {
        misses = fmin(misses, count_misses(data, batch, got->n_batches, window,
                                           n_rows, before));
        if (window == 1ull << k) {
            same = same && k < got->n_reach && got->misses[k] == misses &&
                   got->reach[k] == fmin(reach, (double)got->n_rows);
            k++;
        }
        reach += misses;
    }
    free(before);
    return same && k == got->n_reach;
}

/* Feeds a profile with these options and compares all of its results. */
static void check(const struct data *data,
                  const struct profile_options *options, struct rng *rng)
{
    struct arena arena = {0};
    struct profile_result got;
    struct expected want = {0};
    struct profile *profile = profile_open(options);
    const uint64_t n_rows = options->max_rows;
    uint64_t ids = data->begin[data->n_samples], local;

    want.counts = ARENA_NEW(&arena, uint64_t, n_rows);
    expect(&want, data, options->batch, options->local_batch);
    feed(profile, data, rng);
    local = want.n_local_unique;
    profile_finish(profile, &got, &arena);
    ok(got.n_samples == data->n_samples && got.n_ids == ids &&
           got.n_batches == want.n_batches && same_bins(&want, &got),
       "batches of %" PRIu64 ": %" PRIu64 " of %" PRIu64 " ids are unique",
       options->batch, want.n_unique, want.n_ids);
    ok(!want.n_ids ||
           (got.unique_frac == (double)want.n_unique / (double)want.n_ids &&
            got.local_unique_frac == (double)local / (double)want.n_ids),
       "%" PRIu64 " in its local batch", local);
    ok(same_hottest(&want, n_rows, options->n_hottest, &got),
       "%zu hottest of %" PRIu64, got.n_hottest, got.n_used);
    if (got.n_batches <= 40)
        ok(same_reach(data, options->batch, n_rows, &got),
           "reach and misses of %" PRIu32 " windows", got.n_reach);
    profile_close(profile);
    arena_release(&arena);
}

static void check_drawn(uint64_t seed, struct data *data)
{
    struct profile_options options = {0};
    struct rng rng;
    uint64_t n_rows;

    rng_init(&rng, seed, 0);
    n_rows = 1 + rng_below(&rng, 1 + rng_below(&rng, 100000));
    draw(data, &rng, n_rows);
    options.local_batch = 1 + rng_below(&rng, 200);
    options.batch = options.local_batch * (1 + rng_below(&rng, 8));
    options.n_hottest = rng_below(&rng, 20);
    options.n_rows = rng_below(&rng, 2) ? n_rows : 0;
    options.max_rows = n_rows;
    printf("# seed %" PRIu64 "\n", seed);
    check(data, &options, &rng);
}

/* A batch with more ids than the second-level cache holds. Its local batches
 * have numbers that fit above the 18 bits of a row, and numbers that do not. */
static void check_large(struct data *data)
{
    static const uint64_t n_locals[] = {1, 512, 1 << 14, 1 << 15, 1 << 17};
    const uint64_t n_samples = 1 << 17, n_rows = 1 << 17;
    struct profile_options options = {.batch = n_samples,
                                      .n_hottest = 5,
                                      .n_rows = n_rows,
                                      .max_rows = n_rows};
    struct rng rng;

    rng_init(&rng, 1, 0);
    data->n_samples = n_samples;
    for (uint64_t i = 0; i < 5 * n_samples; i++)
        data->ids[i] = (int64_t)(rng_below(&rng, 1 + rng_below(&rng, n_rows)));
    for (uint64_t s = 0; s <= n_samples; s++)
        data->begin[s] = 5 * s;
    for (size_t i = 0; i < sizeof(n_locals) / sizeof(*n_locals); i++) {
        options.local_batch = n_samples / n_locals[i];
        check(data, &options, &rng);
    }
}

/* A known histogram: row r is used uses[r] times per batch. */
static void check_known(void)
{
    static const uint32_t uses[] = {1, 1, 2, 3, 4, 5, 8, 9, 40000, 1, 2, 33000};
    static const double bins[REUSE_BINS] = {
        3. / 12, 2. / 12, 2. / 12, 2. / 12, 1. / 12, 0, 0, 0,      0,
        0,       0,       0,       0,       0,       0, 0, 2. / 12};
    const struct profile_options options = {.batch = 2,
                                            .local_batch = 1,
                                            .max_rows = 12,
                                            .max_batches = 3,
                                            .n_hottest = 3};
    struct profile *profile = profile_open(&options);
    struct profile_result got;
    struct arena arena = {0};
    int failed = 0;

    for (int batch = 0; batch < 4; batch++) {
        ok(profile_is_full(profile) == (batch == 3), "three batches are taken");
        for (int64_t r = 0; r < 12; r++)
            for (uint32_t i = 0; i < uses[r]; i++)
                failed |= profile_add(profile, &r, 1, &err);
        profile_end(profile, 1);
        profile_end(profile, 1); /* an empty sample */
    }
    profile_finish(profile, &got, &arena);
    is_i64((int64_t)got.n_batches, 3, "the fourth is dropped");
    ok(!failed && !memcmp(got.bins, bins, sizeof(bins)),
       "bins as they were made");
    is_i64((int64_t)got.hottest[0].row, 8, "the hottest row");
    is_i64((int64_t)got.hottest[0].count, 120000, "its uses in all batches");
    is_i64((int64_t)got.hottest[2].row, 7, "and the third");
    is_i64((int64_t)got.n_rows, 12, "rows up to the largest id");
    profile_close(profile);
    arena_release(&arena);
}

/* The Zipf exponent found in samples of a law with few rows, in which each row
 * occurs in its exact proportion. */
static void check_zipf(double alpha, uint32_t n_rows, double n_ids,
                       bool is_backwards)
{
    const struct profile_options options = {
        .batch = 1, .local_batch = 1, .n_rows = n_rows};
    struct profile *profile = profile_open(&options);
    struct profile_result got;
    struct arena arena = {0};
    double sum = 0;
    int failed = 0;

    for (uint32_t r = 0; r < n_rows; r++)
        sum += pow(r + 1, -alpha);
    for (uint32_t r = 0; r < n_rows; r++) {
        int64_t row = is_backwards ? n_rows - 1 - r : r;
        double n = n_ids * pow(r + 1, -alpha) / sum;

        for (double i = 0.5; i < n; i++)
            failed |= profile_add(profile, &row, 1, &err);
    }
    profile_end(profile, 1);
    profile_finish(profile, &got, &arena);
    ok(!failed, "%g ids of %" PRIu32 " rows", n_ids, n_rows);
    is_near(got.zipf_alpha, alpha, 0.005, "their exponent");
    profile_close(profile);
    arena_release(&arena);
}

/* Reach and misses of batches of one id each: batch b uses row b modulo
 * `period`. Between two uses of a row are period - 1 other batches. */
static void check_cycle(int64_t period, uint64_t n_batches, uint32_t n_reach)
{
    const struct profile_options options = {
        .batch = 1, .local_batch = 1, .n_rows = (uint64_t)period};
    struct profile *profile = profile_open(&options);
    struct profile_result got;
    struct arena arena = {0};
    int failed = 0, wrong = 0;

    for (uint64_t b = 0; b < n_batches; b++) {
        int64_t row = (int64_t)b % period;

        failed |= profile_add(profile, &row, 1, &err);
        profile_end(profile, 1);
    }
    profile_finish(profile, &got, &arena);
    ok(got.n_reach == n_reach, "%" PRIu32 " windows in %" PRIu64 " batches",
       got.n_reach, n_batches);
    for (uint32_t k = 0; k < got.n_reach; k++)
        wrong += got.reach[k] != fmin(ldexp(1, (int)k), (double)period) ||
                 got.misses[k] != (1 << k < period);
    ok(!failed && !wrong, "a row comes back after %" PRId64 " batches", period);
    profile_close(profile);
    arena_release(&arena);
}

static void check_none(void)
{
    struct profile_options options = {
        .batch = 4, .local_batch = 2, .max_rows = 1, .n_hottest = 2};
    struct profile *profile = profile_open(&options);
    struct profile_result got;
    struct arena arena = {0};
    const int64_t ids[3] = {0};

    profile_finish(profile, &got, &arena);
    ok(got.n_ids == 0 && got.bins[0] == 0 && !got.n_hottest &&
           isnan(got.zipf_alpha),
       "nothing is known");
    profile_close(profile);
    profile = profile_open(&options);
    ok(!profile_add(profile, ids, 3, &err), "less than a local batch");
    profile_end(profile, 1);
    profile_finish(profile, &got, &arena);
    ok(got.n_batches == 0 && got.unique_frac == 1. / 3 &&
           got.local_unique_frac == 1. / 3 && got.bins[2] == 1,
       "is told by what there is");
    ok(got.n_used == 1 && isnan(got.zipf_alpha), "one row has no skew");
    profile_close(profile);
    arena_release(&arena);
}

static void check_refused(void)
{
    static const struct {
        uint64_t n_rows, max_rows;
        int64_t id;
        const char *want;
    } cases[] = {
        {10, 99, 10, "id 10 is outside 0 to 9"},
        {0, 99, 99, "id 99 is outside 0 to 98"},
        {10, 0, -1, "id -1 is outside 0 to 9"},
        {0, PROFILE_MAX_ROWS, UINT32_MAX,
         "id 4294967295 is outside 0 to 4294967294"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct profile_options options = {.batch = 1,
                                                .local_batch = 1,
                                                .n_rows = cases[i].n_rows,
                                                .max_rows = cases[i].max_rows};
        struct profile *profile = profile_open(&options);
        const int64_t ids[] = {0, cases[i].id, 1};

        ok(!profile_add(profile, ids, 1, &err), "a row");
        ok(profile_add(profile, ids, 3, &err), "an id that is not a row");
        is_str(err.msg, cases[i].want, "is refused");
        profile_close(profile);
    }
}

/* Returns the memory of a profile of 5001 rows after batches of n_ids ids,
 * which use n_used rows. */
static uint64_t memory(size_t n_ids, int64_t n_used)
{
    const struct profile_options options = {
        .batch = 2, .local_batch = 2, .n_rows = 5001};
    struct profile *profile = profile_open(&options);
    struct profile_result got;
    struct arena arena = {0};
    uint64_t bytes;

    for (int64_t i = 0; i < 200; i++) {
        int64_t ids[10];

        for (int k = 0; k < 10; k++)
            ids[k] = (10 * i + k) % n_used * 2;
        ok(!profile_add(profile, ids, n_ids, &err), "ids of a sample");
        profile_end(profile, 1);
    }
    profile_finish(profile, &got, &arena);
    bytes = profile_bytes(profile);
    profile_close(profile);
    arena_release(&arena);
    return bytes;
}

static void check_memory(void)
{
    const uint64_t least = memory(1, 2000);

    ok(least > 5001 * 4 && least < 5001 * 9 / 2,
       "a little more than 4 bytes a row");
    is_i64((int64_t)(memory(10, 2000) - least), 8 * 27,
           "8 to 16 an id of a batch");
    is_i64((int64_t)(memory(10, 4) - memory(10, 2000)), 64 * 64 * 4,
           "4 a row near one of more than 255 uses, 64 times at least");
}

int main(void)
{
    struct data *data = calloc(1, sizeof(*data));

    for (uint64_t seed = 1; seed <= tap_size(100, 3000); seed++)
        check_drawn(seed, data);
    check_large(data);
    check_known();
    check_cycle(1, 2, 1);
    check_cycle(8, 1, 0);
    check_cycle(8, 64, 6);
    check_cycle(8, 65, 7);
    check_cycle(40000, 140000, 17);
    check_cycle(70000, 65536, 16);
    check_none();
    check_refused();
    check_memory();
    check_zipf(1.05, 1000, 1e6, false);
    check_zipf(1.05, 1000, 1e6, true);
    check_zipf(3, 20, 1e6, false);
    check_zipf(0.5, 2, 1e5, true);
    free(data);
    return tap_done();
}
