/* SPDX-License-Identifier: MIT */
#include "core/memory.h"
#include "emit/placed_tables.h"

#include "base/text.h"
#include "tests/unit/emit/fixture.h"

/* Returns a plan of 2 hosts with 2 GPUs each and a table of each kind. */
static struct plan make_plan(void)
{
    struct plan plan = fixture_plan(4, 2, 1024);

    plan.problem.dense_optimizer = DENSE_ADAM;
    fixture_whole(&plan, "small", 100, 16, 1, 3);
    fixture_whole(&plan, "large", 5000000, 16, 1, 3);
    fixture_table(&plan, "rows", 4000, 16, 4);
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, 1000 * r, 1000 * (r + 1), 0, 16, r);
    fixture_table(&plan, "cols", 1000, 64, 2);
    fixture_shard(&plan, 0, 1000, 0, 16, 0);
    fixture_shard(&plan, 0, 1000, 16, 64, 2);
    fixture_table(&plan, "sgd", 1000, 64, 2)->optimizer = OPTIMIZER_SGD;
    fixture_shard(&plan, 0, 1000, 0, 32, 0);
    fixture_shard(&plan, 0, 1000, 32, 64, 3);
    fixture_table(&plan, "grid", 1000, 64, 2);
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, r % 2 * 500, r % 2 * 500 + 500, r / 2 * 32,
                      r / 2 * 32 + 32, r);
    fixture_table(&plan, "copies", 1000, 64, 2);
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, 0, 1000, 0, 64, r);
    fixture_table(&plan, "adam", 1000, 64, 2)->optimizer = OPTIMIZER_ADAM;
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, 0, 1000, 0, 64, r);
    fixture_finish(&plan);
    plan.shard_ms = ARENA_NEW(&arena, double, plan.n_shards);
    for (size_t i = 0; i < plan.n_shards; i++)
        plan.shard_ms[i] = plan.shards[i].kind == SHARD_TABLE ? 1
                           : plan.shards[i].table == 2        ? 0.5
                           : plan.shards[i].table == 3        ? 4
                                                              : 0.125;
    plan.total_ms = 1;
    plan.cost =
        (struct cost_source){.name = "roofline:h100", .basis = BASIS_MODELLED};
    return plan;
}

/* Returns the printed table, in the arena. */
static const char *printed(const struct plan *plan, uint32_t gpu,
                           size_t n_columns)
{
    struct buf out = {0};
    const char *text;

    placed_print(plan, gpu, n_columns, &out);
    text = arena_strdup(&arena, out.data ? out.data : "");
    buf_release(&out);
    return text;
}

/* Tables by the time of their pieces alone; "small" and "large" take the same,
 * so the larger one comes first. Copies and adam also have the same size. */
static void test_order(void)
{
    struct plan plan = make_plan();
    struct placed placed[64];
    const size_t n = placed_find(placed, &plan, ALL_GPUS);
    struct buf names = {0};

    for (size_t i = 0; i < n; i++) {
        placed_print_name(&plan, placed[i].begin, SIZE_MAX, &names);
        buf_printf(&names, " ");
    }
    is_str(names.data, "cols/2 rows/4 large small copies* adam* grid/4 sgd/2 ",
           "the dearest table first, then the largest");
    is_i64((int64_t)(placed[0].end - placed[0].begin), 2, "all pieces");
    is_near(placed[0].alone_ms, 8, 1e-12, "the sum of their times");
    is_i64(
        (int64_t)placed[0].bytes,
        (int64_t)(shard_memory(&plan.problem, &plan.shards[placed[0].begin])
                      .total +
                  shard_memory(&plan.problem, &plan.shards[placed[0].begin + 1])
                      .total),
        "the sum of their memory");
    buf_release(&names);
}

/* The mark follows the rule of kind_changes_training. */
static void test_marks(void)
{
    static const struct {
        const char *name;
        bool changes;
    } cases[] = {{"cols", true},   {"rows", false},  {"large", false},
                 {"small", false}, {"copies", true}, {"adam", false},
                 {"grid", true},   {"sgd", false}};
    struct plan plan = make_plan();
    struct placed placed[64];
    const size_t n = placed_find(placed, &plan, ALL_GPUS);

    is_i64((int64_t)n, 8, "8 tables");
    for (size_t i = 0; i < n; i++) {
        const struct shard *shard = &plan.shards[placed[i].begin];

        is_str(plan.problem.tables[shard->table].name, cases[i].name,
               "the order of tables");
        ok(placed[i].changes_training == cases[i].changes, "%s: %s",
           cases[i].name, cases[i].changes ? "marked" : "not marked");
    }
}

static void test_tables(void)
{
    struct plan plan = make_plan();

    is_str(printed(&plan, ALL_GPUS, 80),
           "\n"
           "table        rows dim  cut                  GPUs   GiB alone ms\n"
           "cols/2      1,000  64  by columns           0,2  0.001    8.000 "
           "!\n"
           "rows/4      4,000  16  by rows              0-3  0.001    2.000\n"
           "large   5,000,000  16  whole                3    0.317    1.000\n"
           "small         100  16  whole                3    0.000    1.000\n"
           "copies*     1,000  64  replicated           0-3  0.004    0.500 "
           "!\n"
           "adam*       1,000  64  replicated           0-3  0.004    0.500\n"
           "grid/4      1,000  64  by rows and columns  0-3  0.001    0.500 "
           "!\n"
           "sgd/2       1,000  64  by columns           0,3  0.001    0.250\n"
           "alone ms: look-ups and update of a piece alone on its GPU, by "
           "roofline:h100 (modelled)\n"
           "! training changes: each column piece has optimizer values of its "
           "own; the dense optimizer, adam, updates replicas\n",
           "all tables");
}

static void test_pieces(void)
{
    struct plan plan = make_plan();
    struct placed placed[64];

    is_i64((int64_t)placed_find(placed, &plan, 3), 7, "7 pieces on GPU 3");
    is_str(printed(&plan, 3, 80),
           "\n"
           "table on GPU 3      rows dim  cut                         GPUs   "
           "GiB alone ms\n"
           "large          5,000,000  16  whole                       3    "
           "0.317    1.000\n"
           "small                100  16  whole                       3    "
           "0.000    1.000\n"
           "rows/4             4,000  16  rows 4 of 4                 0-3  "
           "0.000    0.500\n"
           "copies*            1,000  64  replicated                  0-3  "
           "0.001    0.125 !\n"
           "adam*              1,000  64  replicated                  0-3  "
           "0.001    0.125\n"
           "sgd/2              1,000  64  columns 32-64               0,3  "
           "0.000    0.125\n"
           "grid/4             1,000  64  rows 2 of 2, columns 32-64  0-3  "
           "0.000    0.125 !\n"
           "alone ms: look-ups and update of a piece alone on its GPU, by "
           "roofline:h100 (modelled)\n"
           "! training changes: each column piece has optimizer values of its "
           "own; the dense optimizer, adam, updates replicas\n",
           "pieces of GPU 3");
}

/* Prints n GPUs in `room` characters, in the arena. */
static const char *gpus_in(size_t room, const uint32_t *gpus, size_t n)
{
    uint32_t list[16];
    struct buf out = {0};
    const char *text;

    memcpy(list, gpus, n * sizeof(*gpus));
    placed_print_gpus(list, n, room, &out);
    text = arena_strdup(&arena, out.data);
    buf_release(&out);
    return text;
}

static void test_gpus(void)
{
    static const uint32_t gpus[] = {9, 3, 1, 2, 9, 3, 12, 14};

    is_str(gpus_in(99, gpus, 1), "9", "one GPU");
    is_str(gpus_in(99, gpus, 5), "1-3,9", "ranges, each GPU once");
    is_str(gpus_in(11, gpus, 8), "1-3,9,12,14", "a list that just fits");
    is_str(gpus_in(9, gpus, 8), "1-3,9..", "a list that is cut short");
    is_str(gpus_in(2, gpus, 8), "..", "no room for a number");
}

/* Whatever the names and numbers, no line is longer than asked for, and the
 * number of pieces stays. */
static void test_width(void)
{
    struct plan plan = make_plan();
    size_t n_long = 0;
    const char *text;

    plan.problem.tables[2].name = "a_name_that_is_longer_than_a_line_of_a_"
                                  "terminal_has_room_for_in_80_columns";
    plan.problem.tables[5].name = "h\xc3\xa4ufig_angeklickte_artikel_der_"
                                  "letzten_sieben_tage_je_nutzer_und_tag";
    for (size_t n = 64; n <= 100; n++) {
        text = printed(&plan, 3, n);
        for (; *text && strncmp(text, "alone ms:", 9);
             text += strcspn(text, "\n") + 1) {
            const char *line = arena_strndup(&arena, text, strcspn(text, "\n"));

            n_long += text_length(line) > n;
        }
    }
    is_i64((int64_t)n_long, 0, "lines keep to their width");
    is_in(printed(&plan, 3, 80), "/4   ");
    is_in(printed(&plan, ALL_GPUS, 2000), "for_in_80_columns/4 ");
}

static void test_json(void)
{
    struct plan plan = make_plan();
    json_t *list = json_array(), *cols;

    for (size_t i = 0; i < plan.n_shards; i++)
        json_array_append_new(list, shard_to_json(&plan.shards[i]));
    placed_add_json(list, &plan);
    cols = json_array_get(list, 6);
    is_i64(json_integer_value(json_object_get(cols, "memory_bytes")),
           (int64_t)shard_memory(&plan.problem, &plan.shards[6]).total,
           "memory of a shard");
    ok(json_is_true(json_object_get(cols, "changes_training")),
       "a column piece changes training");
    ok(json_is_false(
           json_object_get(json_array_get(list, 0), "changes_training")),
       "a whole table does not");
    json_decref(list);
}

int main(void)
{
    test_order();
    test_marks();
    test_tables();
    test_pieces();
    test_gpus();
    test_width();
    test_json();
    arena_release(&arena);
    return tap_done();
}
