/* SPDX-License-Identifier: MIT */
/* Warnings for loads outside the measured range, and the sums that make a
 * step. */
#include "core/oracle.h"

#include "base/mem.h"
#include "tests/tap.h"

/* The warning names the three entries that are farthest outside and says if
 * there are more. */
static void test_outside(void)
{
    static const struct cost_outside outside[] = {
        {"a", "rows", 5e9, 1e3, 1e8},
        {NULL, "batch", 131072, 512, 65536},
        {"b", "columns", 2, 4, 512},
        {"c", "columns", 1, 4, 512},
    };
    static const char *const lines[] = {
        "        outside of what was measured: rows of table 'a' 5e+09 (1000 "
        "to 1e+08)\n",
        "        outside of what was measured: batch 131072 (512 to 65536)\n",
        "        outside of what was measured: columns of table 'b' 2 (4 to "
        "512)\n",
        "        outside of what was measured: columns of table 'b' 2 (4 to "
        "512) and more\n",
    };

    for (size_t n = 0; n <= 4; n++) {
        const struct cost_source cost = {
            .outside = (struct cost_outside *)(uintptr_t)outside,
            .n_outside = n};
        struct buf want = {0}, out = {0};

        for (size_t i = 0; i < n && i < 3; i++)
            buf_printf(&want, "%s", lines[i + (n == 4 && i == 2)]);
        buf_add(&want, "", 1);
        cost_print_outside(&cost, &out);
        buf_add(&out, "", 1);
        is_str(out.data, want.data, "the loads farthest outside");
        buf_release(&want);
        buf_release(&out);
    }
}

/* The slowest GPU determines the total. A cost that is not a number makes the
 * total not finite. */
static void test_total(void)
{
    const double compute_ms[] = {1, 3}, bwd_ms[] = {2, 1}, fwd_ms[] = {4, 2};
    const double bad_ms[] = {1, NAN};
    static const struct oracle_ops ops = {0};
    struct oracle oracle = {.ops = &ops, .n_terms = 2};

    is_near(oracle_total_ms(2, compute_ms, bwd_ms, fwd_ms), 7, 0,
            "the slowest");
    ok(!isfinite(oracle_total_ms(2, compute_ms, bwd_ms, bad_ms)), "no number");
    is_near(oracle_terms_total_ms(&oracle, compute_ms), 4, 0, "terms add up");
}

/* Grid shards are not used if hosts share an NVLink domain and a table has
 * row-wise Adagrad, unless the user asks for them. */
static void test_kinds(void)
{
    static const struct {
        enum row_cut row_cut;
        bool asks;
        uint32_t per_domain;
        enum optimizer optimizer;
        bool has_grids;
    } cases[] = {
        {ROW_CUT_RANKS, false, 2, OPTIMIZER_ROWWISE_ADAGRAD, false},
        {ROW_CUT_RANKS, false, 1, OPTIMIZER_ROWWISE_ADAGRAD, true},
        {ROW_CUT_RANKS, false, 2, OPTIMIZER_SGD, true},
        {ROW_CUT_RANKS, true, 2, OPTIMIZER_ROWWISE_ADAGRAD, true},
        {ROW_CUT_ANY, false, 2, OPTIMIZER_ROWWISE_ADAGRAD, true},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct table table;
        const struct problem problem = {.tables = &table,
                                        .n_tables = 1,
                                        .row_cut = cases[i].row_cut,
                                        .asks_for_grids = cases[i].asks,
                                        .cluster.hosts_per_domain =
                                            cases[i].per_domain};
        struct oracle oracle = {.kinds = SHARD_ALL_KINDS,
                                .row_cut = ROW_CUT_ANY};

        table_init(&table);
        table.optimizer = cases[i].optimizer;
        oracle_keep_to(&oracle, &problem);
        ok(!(oracle.kinds & SHARD_GRID) == !cases[i].has_grids &&
               oracle.row_cut == cases[i].row_cut,
           "grids and cuts by rows, %zu", i);
    }
}

int main(void)
{
    test_outside();
    test_total();
    test_kinds();
    return tap_done();
}
