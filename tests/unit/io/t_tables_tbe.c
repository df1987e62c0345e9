/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"

#include "core/rank_law.h"
#include "tests/tap.h"

/* Results of the last report that was read. */
static struct arena arena;
static struct table_list list;
static struct err err;

#define SIZES "\"T\": 3,\n\"E\": 40,\n\"D\": 8,\n"
#define BATCH "\"batch_params\": {\"B\": 100},\n"
#define POOLING "\"pooling_params\": {\"L\": 2}"
#define SKEW(hitters, q, s)                                                  \
    ",\n\"indices_params\": {\"heavy_hitters\": " hitters ", \"zipf_q\": " q \
    ", \"zipf_s\": " s ", \"index_dtype\": \"torch.int64\"}"

#define LAW(s) "{\"heavy_hitters\": [], \"zipf_q\": 1, \"zipf_s\": " s "}"

static int import(const char *text)
{
    static const struct tables_options options = {.columns = ""};

    arena_release(&arena);
    memset(&err, 0, sizeof(err));
    return tables_from_text(&list, text, strlen(text), "tbe.json", &options,
                            &arena, &err);
}

static const struct table *table(size_t idx)
{
    return &list.tables[idx];
}

static void test_same(void)
{
    ok(!import("{" SIZES BATCH POOLING "}"), "three features alike %s",
       err.msg);
    is_i64((int64_t)list.n_tables, 3, "are three tables");
    ok(!strcmp(table(2)->name, "t2") && table(2)->num_embeddings == 40 &&
           table(2)->dim == 8 && table(2)->pooling_factor == 2 &&
           table(2)->num_outputs == 1 && table(2)->skew_assumed,
       "as all are");
    ok(!import("{" SIZES BATCH POOLING SKEW("[]", "1.0", "0.9") "}") &&
           !table(0)->skew_assumed && table(0)->zipf_alpha == 0.9 &&
           !table(0)->has_bins,
       "a plain Zipf law stays one");
}

/* A report must agree with the sums that it contains. */
static void test_agrees(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"T\": 2, \"E\": 9, \"D\": 4, \"Es\": [7, 50], \"Ds\": [4, "
         "4],\n" BATCH POOLING "}",
         "tbe.json:1: E is 9, but the mean of Es is 28.5"},
        {"{\"T\": 2, \"E\": 29.0, \"D\": 4, \"Es\": [7, 50], \"Ds\": [4, "
         "40],\n" BATCH POOLING "}",
         "tbe.json:1: D is 4, but the mean of Ds is 22"},
        {"{\"T\": 2, \"E\": 29.0, \"D\": 4, \"mixed_dim\": true, \"Es\": [7, "
         "50],\n" BATCH POOLING "}",
         "tbe.json:1: mixed_dim is true, but the features have one width"},
        {"{\"T\": 2, \"E\": 29.0, \"D\": 4, \"Ds\": [4, 4],\n" BATCH POOLING
         "}",
         "tbe.json:1: Ds is given, but not Es"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(import(cases[i].text) ? err.msg : "read", cases[i].want,
               "a report that contradicts itself");
    ok(!import("{\"T\": 2, \"E\": 29.0, \"D\": 22.0, \"mixed_dim\": true, "
               "\"Es\": [7, 50], \"Ds\": [4, 40],\n" BATCH POOLING "}"),
       "one that agrees %s", err.msg);
}

static void test_features(void)
{
    ok(!import("{\"T\": 3, \"E\": 22.0, \"D\": 6, \"mixed_dim\": true,\n"
               "\"Es\": [7, 50, 7], \"Ds\": [4, 8, 4],\n"
               "\"feature_table_map\": [0, 1, 0],\n"
               "\"batch_params\": {\"B\": 1, \"Bs\": [100, 100, 400]},\n"
               "\"pooling_params\": {\"L\": 1, \"Ls\": [2.5, 3, 1.5]},\n"
               "\"indices_params\": " LAW(
                   "9") ",\n"
                        "\"indices_params_list\": [" LAW("1") ", " LAW(
                            "2") ",\n" LAW("3") "]}"),
       "features that share a table %s", err.msg);
    is_i64((int64_t)list.n_tables, 2, "are one");
    ok(table(0)->num_embeddings == 7 && table(0)->dim == 4, "of their size");
    is_near(table(0)->pooling_factor, 850.0 / 200, 1e-15,
            "with the look-ups of both in a mean batch");
    is_near(table(0)->num_outputs, 2.5, 1e-15, "and the outputs of both");
    is_near(table(1)->pooling_factor, 1.5, 1e-15, "the other one too");
    ok(table(0)->zipf_alpha == 3 && table(1)->zipf_alpha == 2,
       "and the skew of the one that looks up most");
}

/* Computes the expected shares of rows by uses per batch, with Poisson counts
 * of each row. */
static void expect_bins(double want[REUSE_BINS], const double *share,
                        size_t n_rows, double n_lookups)
{
    double sum = 0;

    memset(want, 0, REUSE_BINS * sizeof(*want));
    for (size_t i = 0; i < n_rows; i++) {
        const double mean = share[i] * n_lookups;
        const double reach = 10 * sqrt(mean) + 20;

        for (double count = fmax(1, floor(mean - reach)); count < mean + reach;
             count++)
            want[reuse_bin_of(count)] +=
                exp(count * log(mean) - mean - lgamma(count + 1));
    }
    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += want[k];
    for (unsigned k = 0; k < REUSE_BINS; k++)
        want[k] /= sum;
}

/* Compares the bins with the law, row by row: p(k) is (k + q)^-s after the rows
 * that have their own share. */
static void test_skew(double q, double s)
{
    enum { N_ROWS = 5000 };
    static double share[N_ROWS];
    char text[256];
    double want[REUSE_BINS], sum = 0, off = 0;

    snprintf(text, sizeof(text),
             "{\"T\": 1, \"E\": 5000, \"D\": 8, \"batch_params\": {\"B\": "
             "1000}, \"pooling_params\": {\"L\": 4}" SKEW("[0.024, 0.012]",
                                                          "%g", "%g") "}",
             q, s);
    ok(!import(text) && table(0)->has_bins, "a shifted Zipf law %s", err.msg);
    for (int k = 2; k < N_ROWS; k++)
        sum += pow(k + q, -s);
    share[0] = 0.024;
    share[1] = 0.012;
    for (int k = 2; k < N_ROWS; k++)
        share[k] = 0.964 * pow(k + q, -s) / sum;
    expect_bins(want, share, N_ROWS, 4000);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        off = tap_worst(off, fabs(table(0)->bins[k] - want[k]));
    ok(off < 2e-3, "is the histogram that it draws, within %.1e", off);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"batch_params\": {}, \"T\": 0}",
         "tbe.json:1: T is 0, outside 1 to 1000000"},
        {"{\n\"T\": 2.5, \"batch_params\": {}}",
         "tbe.json:2: T is 2.5, not a whole number >= 0"},
        {"{" SIZES POOLING ",\n\"batch_params\": 4}",
         "tbe.json:5: batch_params must be an object, not a number"},
        {"{" SIZES "\"batch_params\": {}}",
         "tbe.json:4: batch_params.B is missing"},
        {"{" SIZES BATCH "\"x\": 1}", "tbe.json:1: pooling_params is missing"},
        {"{" SIZES POOLING ",\"batch_params\": {\"B\": 0}}",
         "tbe.json:1: no feature has a batch"},
        {"{" SIZES "\"Es\": [1, 2],\n" BATCH POOLING "}",
         "tbe.json:4: Es has 2 entries, but T is 3"},
        {"{" SIZES "\"Es\": [1, 2, 0],\n" BATCH POOLING "}",
         "tbe.json:4: Es[2] is 0, not in 1 to 4.6116860184273879e+18"},
        {"{" SIZES "\"Es\": [1, 2.5, 3],\n" BATCH POOLING "}",
         "tbe.json:4: Es has 2.5, not a whole number"},
        {"{" SIZES
         "\"Es\": [40, 40, 40], \"Ds\": [1, \"x\", 3],\n" BATCH POOLING "}",
         "tbe.json:4: Ds[1] must be a number, not a string"},
        {"{" SIZES BATCH "\"pooling_params\": {\"L\": 2, \"Ls\": [1, 2, -1]}}",
         "tbe.json:5: pooling_params.Ls[2] is -1, not in 0 to 1000000"},
        {"{" SIZES BATCH POOLING ",\n\"feature_table_map\": [0, 1, 3]}",
         "tbe.json:6: feature_table_map[2] is 3, not in 0 to 2"},
        {"{" SIZES BATCH POOLING ",\n\"feature_table_map\": [0, 2, 2]}",
         "tbe.json:1: no feature uses table 't1', but a later table is used"},
        {"{" SIZES
         "\"Es\": [40, 41, 40],\n\"feature_table_map\": [0, 0, 1],\n" BATCH
             POOLING "}",
         "tbe.json:1: feature 1 has other rows or columns than an earlier "
         "feature of the same table"},
        {"{" SIZES BATCH POOLING SKEW("[]", "0.5", "1") "}",
         "tbe.json:6: indices_params.zipf_q is 0.5, not in 1 to 1000000000"},
        {"{" SIZES BATCH POOLING SKEW("[2]", "1", "1") "}",
         "tbe.json:6: indices_params.heavy_hitters[0] is 2, not in 0 to 1"},
        {"{" SIZES BATCH POOLING ",\n\"indices_params_list\": [{}]}",
         "tbe.json:6: indices_params_list has 1 entries, but T is 3"},
        {"{" SIZES BATCH POOLING
         ",\n\"indices_params_list\": [{\"zipf_q\": 1}, {}, {}]}",
         "tbe.json:6: indices_params_list[0].zipf_s is missing"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(import(cases[i].text) ? err.msg : "read", cases[i].want,
               "refused");
}

int main(void)
{
    test_same();
    test_features();
    test_agrees();
    test_skew(7.5, 1.1);
    test_skew(1, 2);
    test_skew(2.5, 1.5);
    test_refused();
    arena_release(&arena);
    return tap_done();
}
