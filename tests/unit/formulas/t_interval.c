/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/interval.h"

#include "base/rng.h"
#include "tests/rng_normal.h"
#include "tests/tap.h"

#define MAX_SAMPLES 200
#define MAX_TABLES 8

/* Samples for each class, with the properties that decide the class. */
static const struct kind {
    const char *class;
    uint32_t n_tables, dim, batch;
    double pooling_factor;
} kinds[] = {
    {"few look-ups", 5, 32, 16384, 0.1}, {"few look-ups", 1, 256, 128, 1},
    {"few tables", 4, 32, 65536, 10},    {"few tables", 1, 256, 10000, 10},
    {"small batches", 5, 32, 16383, 2},  {"small batches", 8, 256, 4096, 4},
    {"wide rows", 5, 132, 16384, 2},     {"usual", 5, 128, 16384, 2},
    {"light loads", 5, 132, 16384, 1},   {"light loads", 1, 256, 1000, 10},
    {"sparse bags", 5, 132, 65536, 0.5}, {"sparse bags", 8, 16, 16000, 0.9},
};
#define N_KINDS (sizeof(kinds) / sizeof(*kinds))

/* Measured times of n samples and the model's predictions of them. */
struct said {
    struct sample samples[MAX_SAMPLES];
    struct sample_setting settings[MAX_SAMPLES];
    struct sample_table tables[MAX_SAMPLES][MAX_TABLES];
    const struct sample *list[MAX_SAMPLES];
    double ms[MAX_SAMPLES], predicted[MAX_SAMPLES];
    size_t n;
};

static void add(struct said *said, const struct kind *kind, double ms,
                double predicted)
{
    const size_t i = said->n++;

    said->settings[i] = (struct sample_setting){
        .device = "cuda:x", .isa = "sm_00", .batch = kind->batch};
    for (uint32_t t = 0; t < kind->n_tables; t++)
        said->tables[i][t] =
            (struct sample_table){.n_rows = 100,
                                  .dim = t ? 16 : kind->dim,
                                  .pooling_factor = kind->pooling_factor};
    said->samples[i] = (struct sample){.setting = &said->settings[i],
                                       .tables = said->tables[i],
                                       .n_tables = kind->n_tables};
    said->list[i] = &said->samples[i];
    said->ms[i] = ms;
    said->predicted[i] = predicted;
}

static struct interval_list make(const struct said *said)
{
    return intervals_make("samples", said->list, said->ms, said->predicted,
                          said->n, 1);
}

static void test_classes(void)
{
    static const struct interval_list intervals = {{{.class = INTERVAL_ALL},
                                                    {.class = "few look-ups"},
                                                    {.class = "light loads"},
                                                    {.class = "few tables"},
                                                    {.class = "sparse bags"},
                                                    {.class = "small batches"},
                                                    {.class = "wide rows"},
                                                    {.class = "usual"}},
                                                   8};
    const struct interval_list of_all = {{{.class = INTERVAL_ALL}}, 1};

    for (size_t k = 0; k < N_KINDS; k++) {
        static struct said said;

        said.n = 0;
        add(&said, &kinds[k], 1, 1);
        is_str(interval_class_of(said.list[0]), kinds[k].class,
               "the first class that fits");
        is_str(interval_find(&intervals, kinds[k].class)->class, kinds[k].class,
               "which has its interval");
        is_str(interval_find(&of_all, kinds[k].class)->class, "all",
               "or that of all");
    }
}

/* Errors by class:
 *
 *   few tables   20 samples   1 % to 20 %, half too high, half too low
 *   usual        29 samples   0 % to 0.28 %
 *   wide rows    14 samples   100 % */
static void test_by_class(void)
{
    static struct said said;
    struct interval_list intervals, halved;
    const struct interval *few, *usual;

    said.n = 0;
    for (int i = 20; i > 0; i--)
        add(&said, &kinds[2], i % 2 ? 1 + 0.01 * i : 1,
            i % 2 ? 1 : 1 + 0.01 * i);
    for (int i = 0; i < 29; i++)
        add(&said, &kinds[7], 100, 100 + 0.01 * i);
    for (int i = 0; i < 14; i++)
        add(&said, &kinds[6], 1, 2);
    intervals = make(&said);
    is_i64((int64_t)intervals.n, 3, "one interval for all and two for classes");
    few = interval_find(&intervals, "few tables");
    usual = interval_find(&intervals, "usual");
    is_i64((int64_t)few->n, 20, "the class counts its samples");
    is_near(few->error_frac, 0.19, 1e-12, "the 19th of 20, too high or low");
    halved = intervals_make("samples", said.list, said.ms, said.predicted,
                            said.n, 0.5);
    is_near(interval_find(&halved, "few tables")->error_frac, 0.095, 1e-12,
            "errors that count half");
    is_near(interval_find(&halved, "few tables")->pair_error_frac,
            few->pair_error_frac / 2, 1e-12, "and those of pairs");
    is_i64((int64_t)usual->n, 29, "the class counts its samples");
    is_near(usual->error_frac, 0.0026, 1e-12, "the 27th of 29");
    ok(interval_find(&intervals, "wide rows") == intervals.items &&
           intervals.items[0].n == 63,
       "14 have no interval of their own, but that of all");
    is_near(intervals.items[0].error_frac, 1, 1e-12,
            "the interval of all includes them");
    intervals.n = 0;
    ok(!interval_find(&intervals, INTERVAL_ALL), "none where there are none");
}

/* Samples of two classes alternate. The model predicts 1.5 times the measured
 * time for one class and 1 / 1.5 of it for the other. Every second sample of
 * each class is measured 2 % lower. */
static void test_pairs(void)
{
    static struct said said;
    struct interval_list intervals;

    said.n = 0;
    for (int i = 0; i < 15; i++) {
        const double less = i % 2 ? 1.02 : 1;

        add(&said, &kinds[2], 1 / 1.5 / less, 1);
        add(&said, &kinds[7], 1.5 / less, 1);
    }
    intervals = make(&said);
    is_i64((int64_t)intervals.n, 3, "three intervals");
    ok(intervals.items[1].error_frac >= 0.47 &&
           intervals.items[2].error_frac >= 0.47,
       "times are off by a half");
    is_near(intervals.items[1].pair_error_frac, 0.02, 1e-12,
            "pair error within one class");
    is_near(intervals.items[2].pair_error_frac, 0.02, 1e-12,
            "pair error within the other class");
    is_near(intervals.items[0].pair_error_frac, 1.5 * 1.5 * 1.02 - 1, 1e-12,
            "pair error of all classes");
    said.n = 14;
    intervals = make(&said);
    is_i64((int64_t)intervals.n, 0, "14 samples are too few");
}

/* A net may predict a negative time. */
static void test_below_zero(void)
{
    static struct said said;
    struct interval_list intervals;

    said.n = 0;
    for (int i = 0; i < 15; i++)
        add(&said, &kinds[7], 1, -1);
    intervals = make(&said);
    is_i64((int64_t)intervals.n, 2, "an interval all the same");
    is_near(intervals.items[0].error_frac, 1e6, 1e-3, "as wide as they get");
    ok(interval_error(1, NAN) <= 1e6, "NaN is accepted, too");
}

/* For any distribution of errors, the error of one more sample lies within the
 * interval in nine of ten cases, even if there are few samples. The tolerance
 * is 3.2 standard errors for this number of draws. */
static void test_conformal(void)
{
    static const char *const laws[] = {"normal", "Cauchy's", "two-valued"};
    const size_t n_draws = tap_size(4000, 40000);

    for (size_t law = 0; law < 3; law++)
        for (size_t n = 19; n <= 99; n += 40) {
            size_t n_within = 0;
            struct rng rng;

            rng_init(&rng, law, n);
            for (size_t draw = 0; draw < n_draws; draw++) {
                static struct said said;
                struct interval_list intervals;

                said.n = 0;
                for (size_t i = 0; i <= n; i++) {
                    const double x = rng_normal(&rng);
                    const double log_ratio = law == 0 ? 0.1 + 0.2 * x
                                             : law == 1
                                                 ? 0.1 * x / rng_normal(&rng)
                                             : x > 1.2 ? x
                                                       : 0.01 * x;

                    add(&said, &kinds[7], exp(fmin(fmax(log_ratio, -12), 12)),
                        1);
                }
                said.n = n;
                intervals = make(&said);
                n_within += interval_error(said.ms[n], 1) <=
                            intervals.items[0].error_frac;
            }
            ok(fabs((double)n_within / (double)n_draws - 0.9) <
                   3.2 * sqrt(0.9 * 0.1 / (double)n_draws),
               "%s law, %zu samples: %.4f within", laws[law], n,
               (double)n_within / (double)n_draws);
        }
}

int main(void)
{
    test_classes();
    test_by_class();
    test_pairs();
    test_below_zero();
    test_conformal();
    return tap_done();
}
