/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/devices.h"

#include "base/rng.h"
#include "core/rank_law.h"
#include "device/stream.h"
#include "device/stream_math.h"

/* Shares of unique rows per bin, from production tables and for corner
 * cases. */
static const struct {
    const char *name;
    double bins[REUSE_BINS];
    uint64_t n_lookups, n_rows;
    int is_exact; /* every bin can be met exactly */
} HISTOGRAMS[] = {
    {"mild skew",
     {.473, .152, .139, .112, .072, .032, .011, .005, .002, .001, .0005, .0003},
     4030000,
     10000000,
     1},
    {"strong skew, more digits",
     {.3391, .1604, .1799, .1446, .0938, .0452, .0195, .0087, .0042, .0021,
      .0012, .00065, .00036, .00018, .00008, .00003, .00001},
     5000001,
     3000000,
     1},
    {"every row once", {1}, 12345, 20000, 1},
    {"every row once, all rows", {1}, 12345, 12345, 1},
    {"two bins", {.5, 0, 0, 0, .5}, 70001, 100000, 1},
    {"a hole at both ends", {0, 0, 0, .25, .75}, 9999, 5000, 1},
    {"one very hot row",
     {.99, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, .01},
     60000,
     1000,
     1},
    {"shares that do not add up to 1", {4, 2, 2}, 32000, 1000000, 1},
    {"fewer rows than wanted", {.5, .25, .25}, 100000, 500, 0},
    {"one row", {.5, .25, .25}, 1000, 1, 0},
    {"one look-up", {.1, .1, .8}, 1, 10, 0},
    {"seven look-ups", {.1, .1, .1, .1, .1, .5}, 7, 10, 0},
    {"all zero", {0}, 100, 1000, 0},
};
#define N_HISTOGRAMS (sizeof HISTOGRAMS / sizeof HISTOGRAMS[0])

static struct stream binned(const double bins[REUSE_BINS], uint64_t n_lookups,
                            uint64_t n_rows)
{
    struct stream stream = {.n_rows = n_rows, .batch = 1, .use_bins = 1};

    stream.pooling_factor = (double)n_lookups;
    memcpy(stream.bins, bins, sizeof stream.bins);
    stream.table_seed = 77;
    return stream;
}

/* Compares the histogram that stream_fill makes with law_apportion, and both
 * with the requested shares. */
static void test_histogram(const char *name, const double bins[REUSE_BINS],
                           uint64_t n, uint64_t n_rows, int is_exact)
{
    struct stream stream = binned(bins, n, n_rows);
    uint32_t *indices = mem_alloc(n, sizeof *indices);
    uint64_t unique[REUSE_BINS], lookups[REUSE_BINS], offsets[2];
    uint64_t n_unique = 0, n_lookups = 0, in_range = 1;
    double got[REUSE_BINS], n_got, share = 0, used = 0, wanted;
    int same = 1, near = 1;

    law_apportion(bins, n, n_rows, unique, lookups);
    for (unsigned k = 0; k < REUSE_BINS; k++) {
        n_unique += unique[k];
        n_lookups += lookups[k];
        share += bins[k];
        used += bins[k] * reuse_bin_count(k);
    }
    wanted =
        share > 0 ? fmax(1, floor((double)n * share / used + 0.5)) : (double)n;
    wanted = fmin(wanted, (double)n_rows);
    is_i64((int64_t)n_unique, (int64_t)wanted, "unique rows as wanted");
    is_i64((int64_t)n_lookups, (int64_t)n, "all look-ups shared out");
    for (int k = 0; k < REUSE_BINS && share > 0; k++)
        near &= fabs((double)unique[k] - wanted * bins[k] / share) < 1;
    ok(near, "%s: each bin within one row of its share", name);

    stream_fill(&stream, 5, 10, offsets, indices);
    is_i64((int64_t)offsets[0], 10, "first offset");
    is_i64((int64_t)offsets[1], (int64_t)(10 + n), "last offset");
    for (uint64_t i = 0; i < n; i++)
        in_range &= indices[i] < n_rows;
    ok((int)in_range, "%s: rows exist", name);
    n_got = stream_histogram(indices, n, n_rows, got);
    is_i64((int64_t)n_got, (int64_t)n_unique, "unique rows as counted");
    for (int k = 0; k < REUSE_BINS; k++)
        same &= (uint64_t)(got[k] * n_got + 0.5) == unique[k];
    if (is_exact)
        ok(same, "%s: all 17 bins exact, %" PRIu64 " rows", name, n_unique);
    mem_free(indices);
}

/* Every fourth file of the published locality table. */
static void test_published(void)
{
    const char *folder = getenv("NEUROSHARD_SHARED");
    char path[512], line[2048];
    FILE *fp;
    int n = 0;

    snprintf(path, sizeof path, "%s/data/tables/dlrm_datasets_locality.csv",
             folder ? folder : "../shared");
    fp = fopen(path, "r");
    if (!fp) {
        tap_skip("published histograms", "no ../shared");
        return;
    }
    while (fgets(line, sizeof line, fp)) {
        double bins[REUSE_BINS], n_indices = 0, n_unique = 0;
        char *at = strtok(line, ","), *name = NULL;

        for (int column = 0; at; column++, at = strtok(NULL, ",")) {
            if (column == 1)
                name = at;
            else if (column == 2)
                n_indices = strtod(at, NULL);
            else if (column == 3)
                n_unique = strtod(at, NULL);
            else if (column >= 5 && column < 5 + REUSE_BINS)
                bins[column - 5] = strtod(at, NULL);
        }
        /* skips the header and comments; to save time, it tests only every
         * fourth file */
        if (!name || n_indices <= 0 || n_unique <= 0 || n++ % 4)
            continue;
        test_histogram(name, bins, 1036017, 4000000, 1);
    }
    ok(n > 0, "%d published histograms", n);
    fclose(fp);
}

static void test_apportion_random(void)
{
    struct rng rng;
    int bad = 0;

    rng_init(&rng, 11, 0);
    for (int round = 0; round < 20000; round++) {
        double bins[REUSE_BINS];
        uint64_t unique[REUSE_BINS], lookups[REUSE_BINS];
        uint64_t n = 1 + rng_below(&rng, round % 2 ? 100 : 3000000000u);
        uint64_t n_rows = 1 + rng_below(&rng, round % 3 ? 4000000000u : 1000);
        uint64_t n_unique = 0, n_lookups = 0;

        for (int k = 0; k < REUSE_BINS; k++)
            bins[k] = rng_below(&rng, 2)
                          ? 0
                          : rng_uniform(&rng) * pow(2, -rng_uniform(&rng) * k);
        law_apportion(bins, n, n_rows, unique, lookups);
        for (int k = 0; k < REUSE_BINS; k++) {
            n_unique += unique[k];
            n_lookups += lookups[k];
            bad += lookups[k] < unique[k] || (lookups[k] && !unique[k]);
        }
        bad += n_lookups != n || !n_unique || n_unique > n_rows;
    }
    is_i64(bad, 0, "random histograms: totals hold, no row without look-up");
}

static void test_permutation(void)
{
    static const uint32_t SIZES[] = {1,   2,    3,    4,     5,      7,
                                     8,   9,    100,  255,   256,    257,
                                     999, 4096, 4097, 65535, 1000003};

    for (size_t s = 0; s < sizeof SIZES / sizeof SIZES[0]; s++) {
        uint32_t n = SIZES[s], fixed = 0, again = 0;
        char *seen = mem_alloc(n, 1);
        struct permutation perm;

        permutation_init(&perm, n, 1000 + s);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t to = permute(&perm, i);

            again += to >= n || seen[to];
            if (to < n)
                seen[to] = 1;
            fixed += to == i;
        }
        ok(!again, "a permutation of %u", n);
        if (n >= 100)
            ok(fixed < 20, "%u: %u fixed points", n, fixed);
        mem_free(seen);
    }
}

/* Pearson's chi-square of Zipf draws against r^-alpha. Ranks with few expected
 * draws share a cell. More than five deviations above the mean is a failure. */
static void test_zipf(double alpha, uint32_t n_rows)
{
    enum { N = 1000000 };
    struct stream stream = {.n_rows = n_rows, .batch = 1000};
    struct stream_batch state;
    uint32_t *indices = mem_alloc(N, sizeof *indices);
    uint32_t *count = mem_alloc(n_rows, sizeof *count);
    uint64_t *offsets = mem_alloc(1001, sizeof *offsets);
    double total = 0, chi = 0, expect = 0, limit;
    uint32_t observed = 0, cells = 0;

    stream.pooling_factor = N / 1000.0;
    stream.zipf_alpha = alpha;
    stream.table_seed = 3;
    stream_fill(&stream, 9, 0, offsets, indices);
    stream_batch_init(&state, &stream, 9);
    for (int i = 0; i < N; i++)
        count[indices[i]]++;
    for (uint32_t rank = 1; rank <= n_rows; rank++)
        total += pow(rank, -alpha);
    for (uint32_t rank = 1; rank <= n_rows; rank++) {
        expect += N * pow(rank, -alpha) / total;
        observed += count[row_of_rank(&state.rows, rank - 1)];
        if (expect < 10 && rank < n_rows)
            continue;
        if (expect > 0)
            chi += (observed - expect) * (observed - expect) / expect;
        cells++;
        expect = observed = 0;
    }
    limit = cells - 1 + 5 * sqrt(2.0 * cells) + 1;
    ok(chi < limit, "alpha %g, %u rows: chi-square %.1f in %u cells", alpha,
       n_rows, chi, cells);
    mem_free(indices);
    mem_free(count);
    mem_free(offsets);
}

/* Tests the share of the first thousand ranks of nearly 2^32 rows. */
static void test_zipf_large(double alpha)
{
    enum { N = 400000, HEAD = 1000 };
    const double n_rows = UINT32_MAX, p = 1 - alpha;
    struct stream_zipf zipf;
    double head = 0, tail, share, deviation;
    int n_head = 0;

    stream_zipf_init(&zipf, alpha, UINT32_MAX);
    for (int rank = 1; rank <= HEAD; rank++)
        head += pow(rank, -alpha);
    tail = fabs(p) < 1e-9 ? log((n_rows + 0.5) / (HEAD + 0.5))
                          : (pow(n_rows + 0.5, p) - pow(HEAD + 0.5, p)) / p;
    share = head / (head + tail);
    for (uint32_t i = 0; i < N; i++)
        n_head += stream_zipf_draw(&zipf, 21, i) < HEAD;
    deviation = (n_head - N * share) / sqrt(N * share * (1 - share));
    ok(fabs(deviation) < 5,
       "alpha %g, 2^32 rows: first ranks %.4f, %.1f deviations off", alpha,
       share, deviation);
}

static void test_functions(void)
{
    double log_error = 0, exp_error = 0, ratio_error = 0;
    struct rng rng;

    rng_init(&rng, 1, 0);
    for (int i = 0; i < 200000; i++) {
        double x = exp((rng_uniform(&rng) - 0.5) * 60);
        double y = (rng_uniform(&rng) - 0.5) * 1200;
        double z = (rng_uniform(&rng) - 0.5) * (i % 2 ? 0.1 : 10);

        log_error = tap_worst(log_error, fabs(stream_log(x) - log(x)) /
                                             (fabs(log(x)) + 1e-3));
        exp_error = tap_worst(exp_error, fabs(stream_exp(y) / exp(y) - 1));
        ratio_error = tap_worst(ratio_error,
                                fabs(stream_expm1_ratio(z) * z / expm1(z) - 1));
        if (z > -1)
            ratio_error = tap_worst(
                ratio_error, fabs(stream_log1p_ratio(z) * z / log1p(z) - 1));
    }
    ok(log_error < 1e-14, "logarithm: %.1e", log_error);
    ok(exp_error < 1e-13, "exponential: %.1e", exp_error);
    ok(ratio_error < 1e-12, "ratios: %.1e", ratio_error);
    is_near(stream_expm1_ratio(0), 1, 0, "(e^0 - 1) / 0");
    is_near(stream_log1p_ratio(0), 1, 0, "log(1 + 0) / 0");
}

static void test_bags(double pooling, uint32_t batch)
{
    struct stream stream = {.n_rows = 1000, .batch = batch};
    uint64_t *offsets = mem_alloc(batch + 1, sizeof *offsets), n;
    uint32_t *indices, longer_first_half = 0, longer = 0;
    int fits = 1;

    stream.pooling_factor = pooling;
    n = stream_n_lookups(&stream);
    is_i64((int64_t)n, (int64_t)llround(pooling * batch), "total");
    indices = mem_alloc(n, sizeof *indices);
    stream_fill(&stream, 1, 500, offsets, indices);
    is_i64((int64_t)(offsets[batch] - 500), (int64_t)n, "last offset");
    for (uint32_t b = 0; b < batch; b++) {
        double size = (double)(offsets[b + 1] - offsets[b]);

        fits &= size >= floor(pooling) && size <= ceil(pooling);
        longer += size > floor(pooling);
        longer_first_half += size > floor(pooling) && b < batch / 2;
    }
    ok(fits, "pooling %g x %u: floor or ceil", pooling, batch);
    if (longer > 100)
        ok(fabs(longer_first_half - longer / 2.0) < 5 * sqrt(longer / 4.0),
           "longer bags are spread: %u of %u", longer_first_half, longer);
    mem_free(indices);
    mem_free(offsets);
}

static void fill(struct stream stream, uint64_t table_seed, uint64_t batch_seed,
                 uint32_t *indices)
{
    uint64_t offsets[1001];

    stream.table_seed = table_seed;
    stream_fill(&stream, batch_seed, 0, offsets, indices);
}

static uint32_t hottest(const uint32_t *indices, uint32_t n)
{
    uint32_t count[5000] = {0}, best = 0;

    for (uint32_t i = 0; i < n; i++)
        count[indices[i]]++;
    for (uint32_t row = 1; row < 5000; row++)
        if (count[row] > count[best])
            best = row;
    return best;
}

static void test_seeds(int use_bins)
{
    enum { N = 20000 };
    static uint32_t a[N], b[N], c[N], d[N];
    struct stream stream = {
        .n_rows = 5000,
        .batch = 1000,
        .pooling_factor = 20,
        .use_bins = use_bins,
        .zipf_alpha = 1.2,
        .bins = {.5, .2, .2, .05, .03, .01, .005, .004, .0005, .0005}};

    fill(stream, 1, 1, a);
    fill(stream, 1, 1, b);
    fill(stream, 1, 2, c);
    fill(stream, 2, 1, d);
    ok(!memcmp(a, b, sizeof a), "same seeds, same bits");
    ok(memcmp(a, c, sizeof a) != 0, "another batch differs");
    ok(hottest(a, N) == hottest(c, N), "and has the same hot row");
    ok(hottest(a, N) != hottest(d, N), "another table has another");
}

/* stream_fill computes many lookups at a time, with different code for each
 * instruction set; stream_row computes one. They must agree. */
static void test_bodies(struct stream stream, const char *name)
{
    static const char *const ISAS[] = {"avx512", "avx2", "portable"};
    uint64_t n = stream_n_lookups(&stream);
    uint64_t *offsets = mem_alloc(stream.batch + 1, sizeof *offsets);
    uint32_t *indices = mem_alloc(n, sizeof *indices);
    struct stream_batch state;

    stream_batch_init(&state, &stream, 4);
    for (size_t isa = 0; isa < 3; isa++) {
        int same = 1;

        setenv("NEUROSHARD_ISA", ISAS[isa], 1);
        stream_fill(&stream, 4, 0, offsets, indices);
        for (uint32_t i = 0; i < n; i++)
            same &= indices[i] == stream_row(&state, i);
        ok(same, "%s, %s: %" PRIu64 " look-ups as one by one", name, ISAS[isa],
           n);
    }
    unsetenv("NEUROSHARD_ISA");
    mem_free(offsets);
    mem_free(indices);
}

static void test_all_bodies(void)
{
    struct stream stream = {.n_rows = 100003,
                            .batch = 1001,
                            .pooling_factor = 37.5,
                            .table_seed = 6};

    test_bodies(stream, "uniform");
    for (int i = 1; i < 12; i++) {
        stream.zipf_alpha = i / 4.0;
        stream.row_order = (enum row_order)(i % N_ROW_ORDERS);
        test_bodies(stream, "Zipf");
    }
    stream.row_order = ROW_ORDER_HASHED;
    stream.n_rows = 1;
    test_bodies(stream, "one row");
    stream.n_rows = UINT32_MAX;
    test_bodies(stream, "most rows");
    stream.use_bins = 1;
    for (size_t i = 0; i < N_HISTOGRAMS; i++) {
        memcpy(stream.bins, HISTOGRAMS[i].bins, sizeof stream.bins);
        stream.n_rows = HISTOGRAMS[i].n_rows;
        test_bodies(stream, HISTOGRAMS[i].name);
    }
    stream.pooling_factor = 0.001;
    test_bodies(stream, "one look-up");
}

/* A batch of streams of all kinds is drawn on a device. It must have the bits
 * of stream_fill and the counts of stream_histogram. */
enum { N_DRAWN = 9, DRAWN_BATCH = 257 };

static void make_streams(struct stream streams[N_DRAWN])
{
    static const struct stream KINDS[N_DRAWN] = {
        {.n_rows = 100003, .pooling_factor = 37.5, .zipf_alpha = 1.05},
        {.n_rows = 1, .pooling_factor = 3},
        {.n_rows = UINT32_MAX, .pooling_factor = 300.25},
        {.n_rows = 20, .pooling_factor = 0},
        {.n_rows = 4000,
         .pooling_factor = 0.3,
         .zipf_alpha = 0.5,
         .row_order = ROW_ORDER_UNIFORM},
        {.n_rows = 5000,
         .pooling_factor = 100,
         .use_bins = 1,
         .row_order = ROW_ORDER_FREQUENCY},
        {.n_rows = 100000, .pooling_factor = 41.7, .use_bins = 1},
        {.n_rows = 3, .pooling_factor = 200, .use_bins = 1},
        {.n_rows = 1000000, .pooling_factor = 1, .zipf_alpha = 2.5},
    };

    for (uint64_t i = 0; i < N_DRAWN; i++) {
        streams[i] = KINDS[i];
        streams[i].batch = DRAWN_BATCH;
        streams[i].table_seed = 100 + i;
        memcpy(streams[i].bins, HISTOGRAMS[i % 2].bins, sizeof streams[i].bins);
    }
}

static void test_drawn(struct device *device, const struct stream *streams,
                       uint32_t n_streams)
{
    uint64_t n = 0, offset = 0, own[DRAWN_BATCH + 1];
    size_t n_bags = (size_t)n_streams * DRAWN_BATCH, n_offsets_bytes;
    struct sample_table tables[N_DRAWN];
    uint32_t *d_indices, *indices, *want;
    uint64_t *d_offsets, *offsets;
    struct err err = {0};

    for (uint32_t i = 0; i < n_streams; i++)
        n += stream_n_lookups(&streams[i]);
    want = mem_alloc(n, sizeof *want);
    n_offsets_bytes = (n_bags + 1) * sizeof *d_offsets;
    d_indices = test_device_alloc(device, n * sizeof *d_indices);
    d_offsets = test_device_alloc(device, n_offsets_bytes);
    ok(!stream_draw(device, streams, n_streams, 9, d_indices, d_offsets, &err),
       "draw %u streams %s", n_streams, err.msg);
    ok(!stream_measure(device, streams, n_streams, d_indices, tables, &err),
       "measure them %s", err.msg);
    indices = test_device_copy(device, d_indices, n * sizeof *indices);
    offsets = test_device_copy(device, d_offsets, n_offsets_bytes);
    is_i64((int64_t)offsets[n_bags], (int64_t)n, "last offset");
    for (uint32_t i = 0; i < n_streams; i++) {
        uint64_t n_own = stream_n_lookups(&streams[i]);
        double want_bins[REUSE_BINS], want_unique;

        stream_fill(&streams[i], 9, offset, own, want + offset);
        ok(!memcmp(indices + offset, want + offset, n_own * sizeof *want),
           "stream %u: indices", i);
        ok(!memcmp(offsets + (size_t)i * DRAWN_BATCH, own, sizeof own),
           "stream %u: offsets", i);
        want_unique = stream_histogram(want + offset, n_own, streams[i].n_rows,
                                       want_bins);
        is_near(tables[i].n_unique, want_unique, 0, "unique rows");
        ok(!memcmp(tables[i].bins, want_bins, sizeof want_bins),
           "stream %u: reuse", i);
        offset += n_own;
    }
    device_free(device, d_indices);
    device_free(device, d_offsets);
    mem_free(indices);
    mem_free(offsets);
    mem_free(want);
}

static void test_devices(void)
{
    struct stream streams[N_DRAWN];

    make_streams(streams);
    for (size_t i = 0; i < N_TEST_DEVICES; i++) {
        struct device *device = test_device_open(&TEST_DEVICES[i]);

        if (!device)
            continue;
        test_drawn(device, streams, N_DRAWN);
        test_drawn(device, streams + 1, 1);
        test_drawn(device, streams + 3, 1);
        device_close(device);
    }
}

int main(void)
{
    double none[REUSE_BINS];

    test_functions();
    test_permutation();
    for (size_t i = 0; i < N_HISTOGRAMS; i++)
        test_histogram(HISTOGRAMS[i].name, HISTOGRAMS[i].bins,
                       HISTOGRAMS[i].n_lookups, HISTOGRAMS[i].n_rows,
                       HISTOGRAMS[i].is_exact);
    test_published();
    test_apportion_random();
    for (uint32_t n_rows = 1; n_rows < 200000; n_rows = n_rows * 7 + 3) {
        test_zipf(0, n_rows);
        test_zipf(0.5, n_rows);
        test_zipf(0.999999, n_rows);
        test_zipf(1, n_rows);
        test_zipf(1.05, n_rows);
        test_zipf(2, n_rows);
        test_zipf(7, n_rows);
    }
    test_zipf_large(0.5);
    test_zipf_large(1);
    test_zipf_large(1.05);
    test_bags(0, 100);
    test_bags(0.001, 100);
    test_bags(0.3, 1000);
    test_bags(3, 77);
    test_bags(17.25, 4096);
    test_bags(2.999999, 10);
    test_seeds(0);
    test_seeds(1);
    test_all_bodies();
    is_near(stream_histogram(NULL, 0, 5, none), 0, 0, "no look-ups, no rows");
    test_devices();
    return tap_done();
}
