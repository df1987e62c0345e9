/* SPDX-License-Identifier: MIT */
/* Comparison of tables by content, the seeds of their rows, and the canonical
 * order that follows. */
#include "core/canonical.h"

#include "base/hash.h"
#include "base/mem.h"
#include "tests/tap.h"

#include <string.h>

static struct table make_table(const char *name, uint64_t rows, uint32_t dim)
{
    struct table table;

    table_init(&table);
    table.name = name;
    table.num_embeddings = rows;
    table.dim = dim;
    table.pooling_factor = 1;
    return table;
}

static void is_contents(const struct table *table, const char *want)
{
    struct buf out = {0};

    table_print_contents(table, &out);
    is_str(out.data, want, "contents");
    buf_release(&out);
}

/* One table for each property that distinguishes tables; all its other
 * properties are those of the first table. */
enum { N_OTHERS = 19 };
static void make_others(struct table others[N_OTHERS + 1])
{
    for (size_t i = 0; i <= N_OTHERS; i++)
        others[i] = make_table("a", 10, 8);
    others[1].num_embeddings = 11;
    others[2].dim = 16;
    others[3].pooling_factor = 2;
    others[4].num_outputs = 2;
    others[5].output = OUTPUT_SEQUENCE;
    others[6].precision = PRECISION_FP16;
    others[7].comm_precision = PRECISION_FP16;
    others[8].optimizer = OPTIMIZER_ADAM;
    others[9].has_bins = true;
    others[10].has_bins = true;
    others[10].bins[3] = 1;
    others[11].zipf_alpha = 0.5;
    others[12].kinds = SHARD_TABLE;
    others[13].device = 0;
    others[14].device = 1;
    others[15].row_order = ROW_ORDER_UNIFORM;
    others[16].dedup = 0.5;
    others[17].rows_over = ROWS_OVER_HOST;
    others[18].group = "g";
    others[19].zipf_alpha = 1.5;
}

static void test_contents(void)
{
    struct table table = make_table("cat_20", 40000000, 128);

    table.pooling_factor = 100;
    is_contents(&table, "num_embeddings=40000000 dim=128 pooling_factor=100");
    table.pooling_factor = -0.0;
    is_contents(&table, "num_embeddings=40000000 dim=128 pooling_factor=0");
    table.pooling_factor = 2.7;
    table.output = OUTPUT_SEQUENCE;
    table.precision = PRECISION_BF16;
    table.zipf_alpha = 0.1;
    table.kinds = SHARD_TABLE | SHARD_ROW;
    table.rows_over = ROWS_OVER_ALL;
    table.device = 3;
    table.group = "users";
    is_contents(&table, "num_embeddings=40000000 dim=128 "
                        "pooling_factor=2.7000000000000002 output=sequence "
                        "precision=bf16 zipf_alpha=0.10000000000000001 "
                        "sharding=5 rows_over=all device=3 group");
    table = make_table("a", 1, 4);
    table.has_bins = true;
    table.zipf_alpha = 0.5; /* ignored: bins take precedence */
    table.bins[0] = 1;
    is_contents(&table, "num_embeddings=1 dim=4 pooling_factor=1 bin_0=1 "
                        "bin_1=0 bin_2=0 bin_3=0 bin_4=0 bin_5=0 bin_6=0 "
                        "bin_7=0 bin_8=0 bin_9=0 bin_10=0 bin_11=0 bin_12=0 "
                        "bin_13=0 bin_14=0 bin_15=0 bin_16=0");
}

static void test_seeds(void)
{
    static const char plain[] = "num_embeddings=10 dim=8 pooling_factor=1";
    struct table tables[N_OTHERS + 1], equal[4];
    size_t n_alike = 0;

    make_others(tables);
    tables_draw_row_seeds(tables, N_OTHERS + 1);
    for (size_t i = 0; i <= N_OTHERS; i++)
        for (size_t k = 0; k < i; k++)
            n_alike += tables[i].row_seed == tables[k].row_seed;
    is_i64((int64_t)n_alike, 0, "a seed for each content");
    is_i64((int64_t)tables[0].row_seed,
           (int64_t)hash_bytes(plain, strlen(plain), 0), "the XXH3 of it");
    for (size_t i = 0; i < 4; i++)
        equal[i] = make_table(i % 2 ? "x" : "y", 10, 8);
    equal[1].dim = 16;
    tables_draw_row_seeds(equal, 4);
    is_i64((int64_t)equal[0].row_seed, (int64_t)tables[0].row_seed,
           "whatever the name");
    is_i64((int64_t)equal[1].row_seed, (int64_t)tables[2].row_seed,
           "and whatever is beside it");
    is_i64((int64_t)equal[2].row_seed,
           (int64_t)hash_bytes(plain, strlen(plain), 1),
           "the second of a kind");
    is_i64((int64_t)equal[3].row_seed,
           (int64_t)hash_bytes(plain, strlen(plain), 2), "the third");
    tables_draw_row_seeds(equal, 0);
}

static void test_order(void)
{
    struct table tables[] = {make_table("b", 10, 8), make_table("a", 10, 8),
                             make_table("c", 20, 4), make_table("d", 10, 16)};
    uint32_t order[4];

    tables_canonical_order(tables, 4, order);
    is_i64(order[0], 2, "more rows first");
    is_i64(order[1], 3, "then the wider");
    is_i64(order[2], 0, "then by position");
    is_i64(order[3], 1, "not by name");
    tables[0].row_seed = 1;
    tables_canonical_order(tables, 4, order);
    is_i64(order[2], 1, "but by the seed before that");
}

/* Two tables sort the same way, whichever comes first in the list and whatever
 * their names are. */
static void test_contents_first(void)
{
    struct table others[N_OTHERS + 1];
    size_t n_wrong = 0;

    make_others(others);
    for (size_t i = 1; i <= N_OTHERS; i++)
        for (int way = 0; way < 4; way++) {
            struct table two[2];
            uint32_t order[2];
            static bool first;

            two[way % 2] = others[0];
            two[!(way % 2)] = others[i];
            two[0].name = way / 2 ? "x" : "y";
            tables_canonical_order(two, 2, order);
            if (!way)
                first = order[0] == 0;
            n_wrong += first != (order[0] == (uint32_t)(way % 2));
        }
    is_i64((int64_t)n_wrong, 0, "contents come first");
}

/* Tables of equal content sort by the content of their groups, whatever the
 * names of the groups are. */
static void test_groups(void)
{
    for (int way = 0; way < 4; way++) {
        struct table tables[] = {make_table("a", 10, 8), make_table("b", 10, 8),
                                 make_table("c", 5, 8), make_table("d", 4, 8)};
        static uint32_t first;
        uint32_t order[4];

        /* a and b are equal; c is grouped with a, or in every other way with
         * b */
        for (int t = 0; t < 4; t++) {
            const bool is_with_a = t < 2 ? t == 0 : (t == 2) == (way % 2 == 0);

            tables[t].group = is_with_a == (way < 2) ? "left" : "right";
        }
        tables_canonical_order(tables, 4, order);
        if (!way)
            first = order[0];
        is_i64(order[0] ^ (uint32_t)(way % 2), first,
               "groups by their contents");
    }
}

int main(void)
{
    test_contents();
    test_seeds();
    test_order();
    test_contents_first();
    test_groups();
    return tap_done();
}
