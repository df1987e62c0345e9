/* SPDX-License-Identifier: MIT */
#include "exec/reference_check.h"

#include "core/dense.h"
#include "exec_fixture.h"
#include "tests/tap.h"

/* bottom 2-3; two cross layers of rank 1 on 3 + 4 values; top 4-1 */
#define TEXT "bottom:2-3;interaction:dcn:2x1;top:4-1"

struct stage {
    struct arena arena;
    struct table table;
    const struct dense *dense;
    double *want;
    float *got;
    struct reference_check check;
};

static void stage_open(struct stage *stage)
{
    struct err err = {0};

    *stage = (struct stage){0};
    table_init(&stage->table);
    stage->table.name = "t";
    stage->table.dim = 4;
    if (dense_read(&stage->dense, TEXT, strlen(TEXT), &stage->table, 1,
                   &stage->arena, &err))
        fixture_bail(&err);
    stage->want = ARENA_NEW(&stage->arena, double, stage->dense->n_parameters);
    stage->got = ARENA_NEW(&stage->arena, float, stage->dense->n_parameters);
    for (unsigned i = 0; i < N_REFERENCE_WHAT; i++)
        stage->check.limits[i] = 1e-5;
    stage->check.step = 7;
}

/* Compares the parameters, one of which differs. Returns the sentence. */
static const char *sentence_of(struct stage *stage, uint64_t idx,
                               const double *scales)
{
    stage->check.found = (struct train_findings){0};
    stage->got[idx] += 0.5F;
    reference_check_dense(&stage->check, REFERENCE_GRADIENTS, stage->dense,
                          stage->want, stage->got, scales, "gradient");
    stage->got[idx] -= 0.5F;
    return stage->check.found.failure;
}

static void test_names(struct stage *stage)
{
    /* first parameter of each part, and its name */
    static const struct {
        uint64_t idx;
        const char *name;
    } parts[] = {
        {0, "bottom layer 1's weights"},
        {6, "bottom layer 1's bias"},
        {9, "cross layer 1's first weights"},
        {16, "cross layer 1's second weights"},
        {23, "cross layer 1's bias"},
        {30, "cross layer 2's first weights"},
        {37, "cross layer 2's second weights"},
        {44, "cross layer 2's bias"},
        {51, "top layer 1's weights"},
        {79, "top layer 1's bias"},
        {83, "top layer 2's weights"},
        {87, "top layer 2's bias"},
    };
    char begin[200];

    is_i64((int64_t)stage->dense->n_parameters, 88, "88 parameters");
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        const char *sentence = sentence_of(stage, parts[i].idx, NULL);

        snprintf(begin, sizeof(begin), "step 7: the gradient of %s differs ",
                 parts[i].name);
        ok(!strncmp(sentence, begin, strlen(begin)), "%s", sentence);
    }
    is_i64((int64_t)stage->check.found.tallies[REFERENCE_GRADIENTS].n, 88,
           "all parameters are compared");
}

/* Errors are relative to the largest of the row, the initial values and the
 * given scale. */
static void test_scales(struct stage *stage)
{
    const struct tally *tally =
        &stage->check.found.tallies[REFERENCE_GRADIENTS];
    double scales[2 * DENSE_MAX_PRODUCTS] = {0};

    sentence_of(stage, 87, NULL);
    is_near(tally->error, 1, 1e-12, "a bias of 4 inputs: 0.5 of 1 / sqrt(4)");
    stage->want[0] = stage->got[0] = 3;
    sentence_of(stage, 1, NULL);
    is_near(tally->error, 0.5 / 3, 1e-12, "a row with larger weights");
    stage->want[0] = stage->got[0] = 0;
    scales[2 * 6 + 1] = 50;
    sentence_of(stage, 87, scales);
    is_near(tally->error, 0.01, 1e-12, "the scale of a last bias");
    stage->check.found = (struct train_findings){0};
    stage->got[83] = NAN;
    reference_check_dense(&stage->check, REFERENCE_UPDATES, stage->dense,
                          stage->want, stage->got, NULL, "update");
    stage->got[83] = 0;
    is_str(stage->check.found.failure,
           "step 7: the update of top layer 2's weights differs from the rule "
           "of its optimizer by inf, more than 1e-05",
           "a NaN is an error");
}

/* The values of one vector may cancel; errors are relative to the sample's. */
static void test_pooled(struct stage *stage)
{
    static const double want[] = {1e-9, -1e-9, 0, 0, 1, 0, 0, 0,
                                  0,    0,     0, 0, 0, 0, 0, 0};
    struct table tables[2] = {stage->table, stage->table};
    struct reference_table held[] = {{.table = &tables[0]},
                                     {.table = &tables[1], .pooled_begin = 4}};
    const struct reference_rows rows = {
        .tables = held, .n_tables = 2, .pooled = 8};
    float got[16] = {0};

    tables[1].name = "u";
    for (unsigned i = 0; i < 16; i++)
        got[i] = (float)want[i];
    stage->check.found = (struct train_findings){0};
    got[0] = 2e-9F;
    reference_check_pooled(&stage->check, &rows, 2, want, got);
    is_str(stage->check.found.failure, "",
           "a small error beside a large gradient");
    got[1] = 1e-4F;
    reference_check_pooled(&stage->check, &rows, 2, want, got);
    is_str(stage->check.found.failure,
           "step 7: the gradient of the outputs of table 't' differs from the "
           "unsharded reference by 0.0001, more than 1e-05",
           "a larger one");
    stage->check.found = (struct train_findings){0};
    got[1] = 0;
    got[12] = 1e-9F;
    reference_check_pooled(&stage->check, &rows, 2, want, got);
    is_str(stage->check.found.failure,
           "step 7: the gradient of the outputs of table 'u' differs from the "
           "unsharded reference by inf, more than 1e-05",
           "an error beside gradients of 0");
}

static void test_loss(struct stage *stage)
{
    stage->check.found = (struct train_findings){0};
    reference_check_loss(&stage->check, 0.5, 0.5 * (1 + 9e-6));
    is_str(stage->check.found.failure, "", "a loss within its limit");
    reference_check_loss(&stage->check, 0.5, 0.5 * (1 + 2e-5));
    is_str(stage->check.found.failure,
           "step 7: the loss differs from the unsharded reference by 2e-05, "
           "more than 1e-05",
           "a loss beyond it");
    stage->check.step = 8;
    reference_check_loss(&stage->check, 0.5, NAN);
    ok(!strncmp(stage->check.found.failure, "step 7", 6),
       "the first sentence stays");
    ok(isinf(stage->check.found.tallies[REFERENCE_LOSSES].error),
       "... but the largest error is that of all steps");
    stage->check.step = 7;
}

int main(void)
{
    struct stage stage;

    stage_open(&stage);
    test_names(&stage);
    test_scales(&stage);
    test_pooled(&stage);
    test_loss(&stage);
    arena_release(&stage.arena);
    return tap_done();
}
