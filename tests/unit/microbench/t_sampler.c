/* SPDX-License-Identifier: MIT */
#include "microbench/sampler.h"
#include "tests/tap.h"

#include "base/rng.h"

#define N_CASES 4000

static struct case_list usual_list(void)
{
    return (struct case_list){.seed = 5,
                              .batch = 4096,
                              .max_tables = 15,
                              .precision = PRECISION_FP32,
                              .weight_bytes = (uint64_t)3 << 30};
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
    struct case_list list = usual_list(), other;
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
    other.weight_bytes /= 2;
    ok(case_list_id(&other) != case_list_id(&list), "and a memory");
    ok(case_list_id(&list) >> 63 == 0, "a list's name fits a signed integer");
}

/* Every value of every case is one that can be measured. */
static int is_valid(const struct bench_case *drawn,
                    const struct case_list *list)
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
        uint64_t weight_bytes;
    } cases[] = {
        {4096, 15, PRECISION_FP32, (uint64_t)3 << 30},
        {65536, 64, PRECISION_FP16, (uint64_t)40 << 30},
        {1, 64, PRECISION_FP32, (uint64_t)12 << 20},
        {4096, 1, PRECISION_FP32, (uint64_t)1 << 40},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct case_list list = {.seed = i,
                                 .batch = cases[i].batch,
                                 .max_tables = cases[i].max_tables,
                                 .precision = cases[i].precision,
                                 .weight_bytes = cases[i].weight_bytes};
        struct bench_case drawn;
        int n_bad = 0, n_over = 0;

        for (uint64_t j = 0; j < 1000; j++) {
            case_draw(&drawn, &list, j);
            n_bad += !is_valid(&drawn, &list);
            n_over += case_bytes(&drawn, list.precision) > list.weight_bytes;
        }
        is_i64(n_bad, 0, "all values can be measured");
        is_i64(n_over, 0, "no case exceeds the memory");
        list.max_tables = BENCH_MAX_TABLES;
        case_sentinel(&drawn, &list);
        ok(case_bytes(&drawn, list.precision) <= list.weight_bytes &&
               is_valid(&drawn, &list),
           "nor does the sentinel");
    }
}

/* Reuse histograms need no more rows than the table has. */
static void test_bins_fit(void)
{
    struct case_list list = usual_list();
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
    struct case_list list = usual_list();
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

static void test_single(void)
{
    struct case_list list = usual_list();
    struct bench_case drawn, single;

    case_draw(&drawn, &list, 9);
    case_single(&single, &drawn, drawn.n_tables - 1);
    is_i64(single.n_tables, 1, "one table");
    ok(same_table(&single.tables[0], &drawn.tables[drawn.n_tables - 1]),
       "the very one");
}

int main(void)
{
    test_pure();
    test_ranges();
    test_bins_fit();
    test_distribution();
    test_log_uniform();
    test_single();
    return tap_done();
}
