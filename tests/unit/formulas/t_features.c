/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/features.h"

#include "tests/tap.h"

static double value_of(const char *name, const struct feature_input *input)
{
    struct feature_set set = {0};
    double out = NAN;

    if (!feature_set_add(&set, name)) {
        ok(0, "there is a feature '%s'", name);
        return NAN;
    }
    feature_set_fill(&set, input, &out);
    return out;
}

/* 2^20 rows x 16 fp32; a batch of 512 with 4,096 lookups of 1,024 distinct
 * rows. */
static struct feature_input example(void)
{
    struct feature_input input = {.batch = 512,
                                  .precision = PRECISION_FP32,
                                  .optimizer = OPTIMIZER_SGD,
                                  .n_rows = 1 << 20,
                                  .dim = 16,
                                  .pooling_factor = 8,
                                  .n_lookups = 4096,
                                  .n_unique = 1024,
                                  .n_outputs = 512,
                                  .row_bytes = 64};

    input.bins[0] = 0.5; /* half of the rows are used once */
    input.bins[3] = 0.5; /* the other half six times */
    return input;
}

static void test_values(void)
{
    const struct feature_input input = example();
    const struct {
        const char *name;
        double want;
    } cases[] = {
        {"bin_0", 0.5},
        {"bin_3", 0.5},
        {"bin_16", 0},
        {"share_0", 1.0 / 7},
        {"share_3", 6.0 / 7},
        {"dim", 16},
        {"pooling_factor", 8},
        {"row", 1048576},
        {"log2_dim", 4},
        {"log1p_rows", log(1048577)},
        {"log1p_pooling", log(9)},
        {"log1p_lookups", log(4097)},
        {"log1p_unique", log(1025)},
        {"unique_share", 0.25},
        {"gather_mib", 0.25},
        {"unique_mib", 0.0625},
        {"output_mib", 0.03125},
        {"log1p_gather_mib", log(1.25)},
        {"log1p_unique_mib", log(1.0625)},
        {"log1p_table_mib", log(65)},
        {"log2_batch", 9},
        {"weight_bytes", 4},
        {"has_state", 0},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        is_near(value_of(cases[i].name, &input), cases[i].want, 1e-12,
                cases[i].name);
    is_near(feature_floor_bytes(&input),
            4 * 4096 + 2 * 1024 * 64 + 2 * 512 * 16 * 4, 0, "floor bytes");
}

static void test_sets(void)
{
    struct feature_input empty = {.n_rows = 1, .dim = 4, .row_bytes = 16};
    struct feature_set set, again = {0};
    double out[MAX_FEATURES];
    int finite = 1, is_same = 1;

    feature_set_init(&set, FEATURES_PUBLISHED);
    is_i64(set.n, 20, "the published set has 20 features");
    is_str(set.items[0].name, "bin_0", "bin_0 first");
    is_str(set.items[19].name, "row", "row last");
    feature_set_init(&set, FEATURES_ROOFLINE);
    is_i64(set.n, 20, "a net on a roofline has 20 features");
    is_str(set.items[0].name, "log2_dim", "log2_dim first");
    is_str(set.items[19].name, "hot_issue", "hot_issue last");
    feature_set_init(&set, FEATURES_STANDARD);
    is_str(set.items[set.n - 1].name, "has_state",
           "no parts without a roofline");
    for (unsigned i = 0; i < set.n; i++)
        if (!feature_set_add(&again, set.items[i].name))
            break;
    for (unsigned i = 0; i < set.n; i++)
        is_same = is_same && again.items[i].id == set.items[i].id;
    ok(again.n == set.n && is_same, "a set is its names");
    ok(!feature_set_add(&again, "share_3"), "no feature twice");
    ok(!feature_set_add(&again, "share_17"), "no unknown feature");
    ok(!feature_set_add(&again, ""), "no empty name");
    feature_set_fill(&set, &empty, out);
    for (unsigned i = 0; i < set.n; i++)
        finite = finite && isfinite(out[i]);
    ok(finite, "a table that is never looked up has finite features");
}

static void test_sample(void)
{
    const struct sample_setting setting = {.precision = PRECISION_FP16,
                                           .optimizer = OPTIMIZER_ADAGRAD,
                                           .batch = 1000};
    const struct sample_table table = {.n_rows = 50,
                                       .dim = 12,
                                       .pooling_factor = 2.5,
                                       .n_unique = 40,
                                       .bins = {1}};
    struct feature_input input;

    feature_input_of_sample(&input, &setting, &table);
    is_near(input.n_lookups, 2500, 0, "look-ups of a batch");
    is_near(input.row_bytes, 24, 0, "bytes of a row in fp16");
    is_near(input.n_outputs, 1000, 0, "one vector a sample");
    is_near(input.bins[0], 1, 0, "the bins");
    is_near(input.batch, 1000, 0, "the batch");
    is_near(value_of("weight_bytes", &input), 2, 0, "bytes of a weight");
    is_near(value_of("has_state", &input), 1, 0, "Adagrad has a state");
}

int main(void)
{
    test_values();
    test_sets();
    test_sample();
    return tap_done();
}
