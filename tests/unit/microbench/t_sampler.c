/* SPDX-License-Identifier: MIT */
#include "core/rank_law.h"
#include "microbench/sampler.h"
#include "tests/tap.h"

#include "base/hash.h"
#include "microbench/bench_case.h"
#include "microbench/bench_options.h"
#include "microbench/draws.h"
#include "microbench/sampler_designed.h"

#define N_CASES 4000

static struct bench_options usual_list(void)
{
    return (struct bench_options){.seed = 5,
                                  .batch = 4096,
                                  .max_tables = 15,
                                  .precision = PRECISION_FP32,
                                  .memory_bytes = (uint64_t)15 << 28};
}

static int same_table(const struct case_table *a, const struct case_table *b)
{
    int same = a->dim == b->dim && a->stream.n_rows == b->stream.n_rows &&
               a->stream.batch == b->stream.batch &&
               a->stream.pooling_factor == b->stream.pooling_factor &&
               a->stream.use_bins == b->stream.use_bins &&
               a->stream.zipf_alpha == b->stream.zipf_alpha &&
               a->stream.table_seed == b->stream.table_seed;

    for (int k = 0; k < REUSE_BINS; k++)
        same &= a->stream.bins[k] == b->stream.bins[k];
    return same;
}

static int same_case(const struct bench_case *a, const struct bench_case *b)
{
    int same = a->n_tables == b->n_tables;

    for (uint32_t t = 0; same && t < a->n_tables; t++)
        same = same_table(&a->tables[t], &b->tables[t]);
    return same;
}

static uint64_t case_bytes(const struct bench_case *drawn,
                           enum precision precision)
{
    uint64_t n_bytes = 0;

    for (uint32_t t = 0; t < drawn->n_tables; t++)
        n_bytes += case_table_bytes(&drawn->tables[t], precision);
    return n_bytes;
}

static void test_pure(void)
{
    struct bench_options list = usual_list(), other;
    static struct bench_case first[50], again;
    int same = 1, differ = 0;

    for (uint64_t i = 0; i < 50; i++)
        case_draw(&first[i], &list, i);
    for (uint64_t i = 50; i-- > 0;) {
        case_draw(&again, &list, i);
        same &= same_case(&again, &first[i]);
    }
    ok(same, "a case depends on its list and number, not on the order");
    other = list;
    other.seed++;
    ok(case_list_id(&other) != case_list_id(&list), "a seed is another list");
    for (uint64_t i = 0; i < 50; i++) {
        case_draw(&again, &other, i);
        differ += !same_case(&again, &first[i]);
    }
    ok(differ >= 49, "another seed has other cases");
    other = list;
    other.max_tables++;
    ok(case_list_id(&other) != case_list_id(&list), "so is a size of cases");
    other = list;
    other.memory_bytes /= 2;
    ok(case_list_id(&other) != case_list_id(&list), "and a memory");
    ok(case_list_id(&list) >> 63 == 0, "a list's name fits a signed integer");
}

/* Returns true if every value of the case can be measured. */
static int is_valid(const struct bench_case *drawn,
                    const struct bench_options *list)
{
    double pooling = 0;

    if (drawn->n_tables < 1 || drawn->n_tables > list->max_tables)
        return 0;
    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct stream *stream = &drawn->tables[t].stream;
        double sum = 0;

        if (stream->n_rows < 3 || stream->n_rows > UINT32_MAX ||
            drawn->tables[t].dim < 4 || drawn->tables[t].dim > 256 ||
            drawn->tables[t].dim % 4 || stream->batch != list->batch ||
            !(stream->pooling_factor >= 0 && stream->pooling_factor <= 100) ||
            !(stream->zipf_alpha >= 0 && stream->zipf_alpha <= 1.5))
            return 0;
        for (unsigned k = 0; k < REUSE_BINS; k++) {
            if (!(stream->bins[k] >= 0))
                return 0;
            sum += stream->bins[k];
        }
        if (stream->use_bins ? fabs(sum - 1) > 1e-12 : sum != 0)
            return 0;
        pooling += stream->pooling_factor;
    }
    return pooling > 0 && pooling <= 256 + drawn->n_tables;
}

static void test_ranges(void)
{
    static const struct {
        uint32_t batch, max_tables;
        enum precision precision;
        uint64_t memory_bytes;
    } cases[] = {
        {4096, 15, PRECISION_FP32, (uint64_t)15 << 28},
        {65536, 64, PRECISION_FP16, (uint64_t)60 << 30},
        {1, 64, PRECISION_FP32, (uint64_t)15 << 20},
        {4096, 1, PRECISION_FP32, (uint64_t)5 << 38},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct bench_options list = {.seed = i,
                                     .batch = cases[i].batch,
                                     .max_tables = cases[i].max_tables,
                                     .precision = cases[i].precision,
                                     .memory_bytes = cases[i].memory_bytes};
        struct bench_case drawn;
        int n_bad = 0, n_over = 0;

        for (uint64_t j = 0; j < 1000; j++) {
            case_draw(&drawn, &list, j);
            n_bad += !is_valid(&drawn, &list);
            n_over +=
                case_bytes(&drawn, list.precision) > case_weight_bytes(&list);
        }
        is_i64(n_bad, 0, "all values can be measured");
        is_i64(n_over, 0, "no case exceeds the memory");
        list.max_tables = BENCH_MAX_TABLES;
        case_sentinel(&drawn, &list);
        ok(case_bytes(&drawn, list.precision) <= case_weight_bytes(&list) &&
               is_valid(&drawn, &list),
           "nor does the sentinel");
    }
}

/* Reuse histograms never need more rows than the table has. */
static void test_bins_fit(void)
{
    struct bench_options list = usual_list();
    struct bench_case drawn;
    int n_bins = 0, n_unfit = 0;

    for (uint64_t i = 0; i < N_CASES; i++) {
        case_draw(&drawn, &list, i);
        for (uint32_t t = 0; t < drawn.n_tables; t++) {
            const struct stream *stream = &drawn.tables[t].stream;
            double used = 0;

            for (unsigned k = 0; k < REUSE_BINS; k++)
                used += stream->bins[k] * reuse_bin_count(k);
            n_bins += stream->use_bins;
            n_unfit += stream->use_bins && (double)stream_n_lookups(stream) >
                                               used * (double)stream->n_rows;
        }
    }
    ok(n_bins > N_CASES, "histograms are drawn often");
    is_i64(n_unfit, 0, "and fit their tables");
}

static void is_share(double got, double lo, double hi, const char *name)
{
    if (!ok(got >= lo && got <= hi, "%s", name))
        printf("# got %g, want %g to %g\n", got, lo, hi);
}

static void test_distribution(void)
{
    struct bench_options list = usual_list();
    int n_tables[16] = {0}, n = 0, n_empty = 0, n_one = 0, n_small = 0,
        n_large = 0, n_criteo = 0, n_fractional = 0, n_usual_dim = 0;
    double pooling = 0;

    for (uint64_t i = 0; i < N_CASES; i++) {
        struct bench_case drawn;
        int like_criteo = 1;

        case_draw(&drawn, &list, i);
        n_tables[drawn.n_tables]++;
        for (uint32_t t = 0; t < drawn.n_tables; t++) {
            const struct stream *stream = &drawn.tables[t].stream;
            uint32_t dim = drawn.tables[t].dim;

            n++;
            n_empty += stream->pooling_factor == 0;
            n_one += stream->pooling_factor == 1;
            n_fractional +=
                stream->pooling_factor != floor(stream->pooling_factor);
            n_small += stream->n_rows <= 1000;
            n_large += stream->n_rows > 1000000;
            n_usual_dim += dim <= 128 && !(dim & (dim - 1));
            pooling += stream->pooling_factor;
            like_criteo &= stream->pooling_factor == 1 && dim <= 16;
        }
        n_criteo += like_criteo && drawn.n_tables >= 3;
    }
    for (int i = 1; i <= 15; i++)
        is_share(n_tables[i] * 15.0 / N_CASES, 0.75, 1.25, "table counts");
    is_share((double)n_empty / n, 0.005, 0.05, "tables without look-ups");
    is_share((double)n_one / n, 0.4, 0.7, "one-hot tables");
    is_share((double)n_fractional / n, 0.1, 0.4, "fractional poolings");
    is_share((double)n_small / n, 0.25, 0.5, "small tables");
    is_share((double)n_large / n, 0.08, 0.4, "tables of over 10^6 rows");
    is_share((double)n_usual_dim / n, 0.8, 0.95, "powers of two");
    is_share((double)n_criteo / N_CASES, 0.04, 0.15,
             "cases that are narrow and one-hot throughout");
    printf("# mean pooling %.2f a table\n", pooling / n);
}

static void test_log_uniform(void)
{
    int n_below[4] = {0};
    struct rng rng;

    rng_init(&rng, 1, 0);
    for (int i = 0; i < 40000; i++) {
        double x = draw_log_uniform(&rng, 1e3, 1e7);

        if (x < 1e3 || x >= 1e7)
            ok(0, "%g is out of range", x);
        for (int k = 0; k < 4; k++)
            n_below[k] += x < 1e4 * pow(10, k);
    }
    for (int k = 0; k < 4; k++)
        is_near(n_below[k] / 40000.0, 0.25 * (k + 1), 0.02,
                "each decade has its quarter");
}

static struct bench_options mixed_list(void)
{
    struct bench_options options;

    bench_options_init(&options);
    options.seed = 5;
    options.is_mixed = true;
    options.batch = 65536;
    options.max_tables = 60;
    options.memory_bytes = (uint64_t)128 << 30;
    options.work_bytes = BENCH_CUDA_WORK_BYTES;
    return options;
}

static struct bench_options designed_list(uint64_t memory_bytes, uint32_t batch)
{
    struct bench_options options;

    bench_options_init(&options);
    options.is_mixed = true;
    options.is_designed = true;
    options.batch = batch;
    options.max_tables = 60;
    options.memory_bytes = memory_bytes;
    return options;
}

static uint64_t state_bytes(const struct bench_case *drawn)
{
    uint64_t n_rows = 0;

    if (drawn->optimizer == OPTIMIZER_SGD)
        return 0;
    for (uint32_t t = 0; t < drawn->n_tables; t++)
        n_rows += drawn->tables[t].stream.n_rows;
    return n_rows * sizeof(float);
}

/* Returns the totals of a case's tables: lookups, bags, outputs and the largest
 * dim. */
static struct case_bounds extent_of(const struct bench_case *drawn)
{
    struct case_bounds extent = {0};

    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct case_table *table = &drawn->tables[t];

        extent.n_lookups += stream_n_lookups(&table->stream);
        extent.n_bags += table->stream.batch;
        extent.n_outputs += (uint64_t)table->stream.batch * table->dim;
        if (table->dim > extent.dim)
            extent.dim = table->dim;
    }
    return extent;
}

static int is_within(const struct case_bounds *extent,
                     const struct case_bounds *bounds)
{
    return extent->n_lookups <= bounds->n_lookups &&
           extent->n_bags <= bounds->n_bags &&
           extent->n_outputs <= bounds->n_outputs && extent->dim <= bounds->dim;
}

static int is_valid_mixed(const struct bench_case *drawn,
                          const struct bench_options *list)
{
    uint64_t min_rows = list->is_designed ? 1 : 3;
    struct case_bounds bounds = case_list_bounds(list);
    struct case_bounds extent = extent_of(drawn);

    if (drawn->n_tables < 1 || drawn->n_tables > list->max_tables ||
        !drawn->batch || drawn->batch > list->batch ||
        (drawn->precision != PRECISION_FP32 &&
         drawn->precision != PRECISION_FP16) ||
        (drawn->optimizer != OPTIMIZER_SGD &&
         drawn->optimizer != OPTIMIZER_ROWWISE_ADAGRAD))
        return 0;
    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct stream *stream = &drawn->tables[t].stream;

        if (stream->batch != drawn->batch || stream->n_rows < min_rows ||
            stream->n_rows > UINT32_MAX || drawn->tables[t].dim % 4 ||
            !(stream->pooling_factor >= 0 && stream->pooling_factor <= 200) ||
            !(stream->zipf_alpha >= 0 && stream->zipf_alpha <= 1.5))
            return 0;
    }
    return is_within(&extent, &bounds) &&
           case_bytes(drawn, drawn->precision) <= case_weight_bytes(list) &&
           state_bytes(drawn) <= case_state_bytes(list);
}

static void test_mixed_ranges(void)
{
    static const struct {
        uint32_t batch, max_tables;
        uint64_t memory_bytes;
        double work_bytes;
    } cases[] = {
        {65536, 60, (uint64_t)128 << 30, BENCH_CUDA_WORK_BYTES},
        {256, 64, BENCH_MIN_MEMORY_BYTES, 1e6},
        {1, 1, BENCH_MIN_MEMORY_BYTES, 1},
        {16777216, 64, (uint64_t)1 << 40, 1e9},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct bench_options options = {.is_mixed = true,
                                        .batch = cases[i].batch,
                                        .max_tables = cases[i].max_tables,
                                        .memory_bytes = cases[i].memory_bytes,
                                        .work_bytes = cases[i].work_bytes};
        struct bench_case drawn;
        int n_bad = 0;

        for (uint64_t j = 0; j < 2000; j++) {
            case_draw(&drawn, &options, j);
            n_bad += !is_valid_mixed(&drawn, &options);
        }
        is_i64(n_bad, 0, "every case can be measured in the list's bounds");
    }
}

struct mixed_counts {
    int n_published, n_one_hot, n_large_batch, n_between, n_fp16, n_adagrad,
        n_many_tables, n_wide, n_over, n_tables, n_empty, n_long_bags,
        n_uniform, n_binned, n_gigabytes, n_tiny;
};

static void count_tables(struct mixed_counts *counts,
                         const struct bench_case *drawn)
{
    for (uint32_t t = 0; t < drawn->n_tables; t++) {
        const struct stream *stream = &drawn->tables[t].stream;
        uint64_t n_bytes =
            case_table_bytes(&drawn->tables[t], drawn->precision);

        counts->n_tables++;
        counts->n_empty += stream->pooling_factor == 0;
        counts->n_long_bags += stream->pooling_factor > 50;
        counts->n_uniform += !stream->use_bins && stream->zipf_alpha < 0.1;
        counts->n_binned += stream->use_bins;
        counts->n_gigabytes += n_bytes > (uint64_t)4 << 30;
        counts->n_tiny += n_bytes < 100000;
        counts->n_wide += drawn->tables[t].dim > 128;
    }
}

static int is_published(const struct bench_case *drawn)
{
    if (drawn->batch != 65536 || drawn->precision != PRECISION_FP32 ||
        drawn->optimizer != OPTIMIZER_SGD || drawn->n_tables > 15)
        return 0;
    for (uint32_t t = 0; t < drawn->n_tables; t++)
        if (drawn->tables[t].dim > 128)
            return 0;
    return 1;
}

static void test_mixed_distribution(void)
{
    struct bench_options list = mixed_list();
    struct mixed_counts counts = {0};
    double work = 0, n = N_CASES, n_tables;

    for (uint64_t i = 0; i < N_CASES; i++) {
        struct bench_case drawn;
        uint32_t batch;

        case_draw(&drawn, &list, i);
        batch = drawn.batch;
        counts.n_published += is_published(&drawn);
        counts.n_large_batch += batch == 65536;
        counts.n_between += (batch & (batch - 1)) != 0;
        counts.n_fp16 += drawn.precision == PRECISION_FP16;
        counts.n_adagrad += drawn.optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
        counts.n_many_tables += drawn.n_tables > 30;
        counts.n_over += case_work(&drawn) > list.work_bytes;
        if (batch < 1024)
            ok(0, "case %d has batch %u", (int)i, batch);
        count_tables(&counts, &drawn);
        work += case_work(&drawn);
    }
    n_tables = counts.n_tables;
    is_share(counts.n_published / n, 0.40, 0.55, "published setting");
    is_share(counts.n_large_batch / n, 0.45, 0.65, "the largest batch");
    is_share(counts.n_between / n, 0.15, 0.35, "batches between powers of 2");
    is_share(counts.n_fp16 / n, 0.15, 0.3, "fp16");
    is_share(counts.n_adagrad / n, 0.2, 0.35, "row-wise Adagrad");
    is_share(counts.n_many_tables / n, 0.08, 0.3, "over 30 tables");
    is_share(counts.n_wide / n_tables, 0.1, 0.4, "over 128 columns");
    is_share(counts.n_empty / n_tables, 0.005, 0.05, "without look-ups");
    is_share(counts.n_long_bags / n_tables, 0.01, 0.2, "over 50 look-ups");
    is_share(counts.n_uniform / n_tables, 0.02, 0.3, "hardly any reuse");
    is_share(counts.n_binned / n_tables, 0.15, 0.6, "production-like reuse");
    is_share(counts.n_gigabytes / n_tables, 0.005, 0.2, "over 4 GiB");
    is_share(counts.n_tiny / n_tables, 0.1, 0.5, "under 0.1 MB");
    is_share(counts.n_over / n, 0.001, 0.1, "cases above the usual work");
    is_share(work / n / list.work_bytes, 0.05, 0.2, "mean work of a case");
}

/* A hash of the first cases. It must be the same everywhere and forever: if it
 * changes, stored samples change their meaning. */
static void test_mixed_bits(void)
{
    struct bench_options list = mixed_list(), other = list;
    struct bench_case drawn;
    char text[HASH_TEXT_MAX];
    uint64_t hash = case_list_id(&list);

    for (uint64_t i = 300; i-- > 0;) {
        case_draw(&drawn, &list, i);
        hash ^= mix64(i + hash_bytes(&drawn.n_tables, 4, drawn.batch) +
                      drawn.precision + 2 * (uint64_t)drawn.optimizer);
        for (uint32_t t = 0; t < drawn.n_tables; t++) {
            const struct stream *stream = &drawn.tables[t].stream;
            double values[REUSE_BINS + 4];

            memcpy(values, stream->bins, sizeof(stream->bins));
            values[REUSE_BINS] = (double)stream->n_rows;
            values[REUSE_BINS + 1] = stream->pooling_factor;
            values[REUSE_BINS + 2] = stream->zipf_alpha;
            values[REUSE_BINS + 3] = drawn.tables[t].dim;
            hash ^= hash_bytes(values, sizeof(values), stream->table_seed);
        }
    }
    is_str(hash_text(text, hash), "6f39c603b8df368d", "300 cases, bit for bit");
    other.batch /= 2;
    ok(case_list_id(&other) != case_list_id(&list), "a batch is another list");
    other = list;
    other.work_bytes *= 2;
    ok(case_list_id(&other) != case_list_id(&list), "so is another work");
    other = list;
    other.is_designed = true;
    ok(case_list_id(&other) != case_list_id(&list), "so is the designed one");
    other = list;
    other.is_mixed = false;
    ok(case_list_id(&other) != case_list_id(&list), "so is a plain list");
    case_sentinel(&drawn, &list);
    ok(is_published(&drawn) && is_valid_mixed(&drawn, &list),
       "the sentinel is at the published setting");
}

/* Tests each case of the designed list for a device of its full size. */
static void test_designed(void)
{
    struct bench_options list = designed_list((uint64_t)76 << 30, 65536);
    uint64_t n = designed_n_cases();
    int n_bad = 0, n_alike = 0, n_next_to_nothing = 0, n_published = 0;
    struct bench_case drawn, other;

    ok(n > 100 && n < 1000, "%" PRIu64 " cases", n);
    for (uint64_t i = 0; i < n; i++) {
        case_draw(&drawn, &list, i);
        n_bad += !is_valid_mixed(&drawn, &list);
        n_next_to_nothing += extent_of(&drawn).n_lookups <= drawn.n_tables;
        n_published += drawn.n_tables == 10 &&
                       drawn.tables[0].stream.n_rows == 1 << 20 &&
                       extent_of(&drawn).n_lookups == 1048580;
        for (uint64_t j = 0; j < i; j++) {
            case_draw(&other, &list, j);
            for (uint32_t t = 0; t < other.n_tables; t++)
                other.tables[t].stream.table_seed =
                    drawn.tables[t].stream.table_seed;
            n_alike += !memcmp(&other, &drawn, sizeof(drawn));
        }
    }
    is_i64(n_bad, 0, "each can be measured within the list's bounds");
    is_i64(n_alike, 0, "none is there twice");
    ok(n_next_to_nothing >= 10, "cases of one look-up a table");
    is_i64(n_published, 2, "the published case, Adagrad and SGD");
}

/* The cases are reduced for a small device or batch, but can still be
 * measured. */
static void test_designed_small(void)
{
    struct bench_options large = designed_list((uint64_t)76 << 30, 65536);

    for (uint32_t batch = 1; batch <= 65536; batch *= 16) {
        struct bench_options list =
            designed_list(BENCH_MIN_MEMORY_BYTES, batch);
        struct bench_case drawn;
        int n_bad = 0;

        for (uint64_t i = 0; i < designed_n_cases(); i++) {
            case_draw(&drawn, &list, i);
            n_bad += !is_valid_mixed(&drawn, &list);
        }
        ok(n_bad == 0, "all can be measured at batch %u", batch);
        ok(case_list_id(&list) != case_list_id(&large), "another list");
    }
}

int main(void)
{
    test_designed();
    test_designed_small();
    test_mixed_ranges();
    test_mixed_distribution();
    test_mixed_bits();
    test_pure();
    test_ranges();
    test_bins_fit();
    test_distribution();
    test_log_uniform();
    return tap_done();
}
