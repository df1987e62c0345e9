/* SPDX-License-Identifier: MIT */
#include "tests/unit/emit/fixture.h"

#include <jansson.h>

#include "base/rng.h"
#include "emit/formats.h"

/* Returns the emitted text, which lives in the arena, or NULL and an error. */
static const char *emitted(const struct plan *plan,
                           const struct emit_options *options, struct err *err)
{
    const struct emitter *format = &emit_torchrec;
    struct buf out = {0};
    const char *text = NULL;

    if (!format->emit(plan, options, &out, err))
        text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* The entry of a table of 8 rows that is whole on one rank. */
#define WHOLE(type, rank, width)                                        \
    "{\"sharding_type\": \"" type "\", \"compute_kernel\": \"fused\", " \
    "\"ranks\": [" #rank "], \"shards\": [{\"shard_offsets\": [0, 0], " \
    "\"shard_sizes\": [8, " #width "], \"placement\": \"rank:" #rank    \
    "/cuda:" #rank "\"}]}"

/* Returns a plan on 2 hosts of 4 GPUs: one table of each sharding type. */
static struct plan mixed_plan(void)
{
    struct plan plan = fixture_plan(8, 4, 65536);

    fixture_whole(&plan, "t_a", 40000000, 128, 3, 6);
    fixture_table(&plan, "t_b", 39060, 128, 2);
    fixture_shard(&plan, 0, 39060, 0, 64, 0);
    fixture_shard(&plan, 0, 39060, 64, 96, 5);
    fixture_shard(&plan, 0, 39060, 96, 128, 5);
    /* blocks of 3 rows, the last of 2 */
    fixture_table(&plan, "t_rows", 20, 16, 2);
    for (uint32_t r = 0; r < 7; r++)
        fixture_shard(&plan, 3 * r, r == 6 ? 20 : 3 * r + 3, 0, 16, r);
    /* blocks of 2, 2, 1 and 0 rows on host 1 */
    fixture_table(&plan, "t_host", 5, 8, 1);
    fixture_shard(&plan, 0, 2, 0, 8, 4);
    fixture_shard(&plan, 2, 4, 0, 8, 5);
    fixture_shard(&plan, 4, 5, 0, 8, 6);
    fixture_table(&plan, "t_grid", 8, 12, 1);
    for (uint32_t r = 0; r < 4; r++) {
        fixture_shard(&plan, 2 * r, 2 * r + 2, 0, 8, 4 + r);
        fixture_shard(&plan, 2 * r, 2 * r + 2, 8, 12, r);
    }
    fixture_table(&plan, "t_copy", 10, 8, 1);
    for (uint32_t r = 0; r < 8; r++)
        fixture_shard(&plan, 0, 10, 0, 8, r);
    fixture_finish(&plan);
    return plan;
}

static const char mixed_text[] =
    "{\"world_size\": 8, \"local_world_size\": 4, \"plan\": {\n"
    "  \"model.sparse_arch.embedding_bag_collection\": {\n"
    "    \"t_a\": {\"sharding_type\": \"column_wise\", \"compute_kernel\": "
    "\"fused\", \"ranks\": [6], \"shards\": [{\"shard_offsets\": [0, 0], "
    "\"shard_sizes\": [40000000, 128], \"placement\": \"rank:6/cuda:2\"}]},\n"
    "    \"t_b\": {\"sharding_type\": \"column_wise\", \"compute_kernel\": "
    "\"fused\", \"ranks\": [0, 5, 5], \"shards\": [{\"shard_offsets\": [0, "
    "0], \"shard_sizes\": [39060, 64], \"placement\": \"rank:0/cuda:0\"}, "
    "{\"shard_offsets\": [0, 64], \"shard_sizes\": [39060, 32], "
    "\"placement\": \"rank:5/cuda:1\"}, {\"shard_offsets\": [0, 96], "
    "\"shard_sizes\": [39060, 32], \"placement\": \"rank:5/cuda:1\"}]},\n"
    "    \"t_rows\": {\"sharding_type\": \"row_wise\", \"compute_kernel\": "
    "\"fused\", \"ranks\": [0, 1, 2, 3, 4, 5, 6, 7], \"shards\": ["
    "{\"shard_offsets\": [0, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:0/cuda:0\"}, "
    "{\"shard_offsets\": [3, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:1/cuda:1\"}, "
    "{\"shard_offsets\": [6, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:2/cuda:2\"}, "
    "{\"shard_offsets\": [9, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:3/cuda:3\"}, "
    "{\"shard_offsets\": [12, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:4/cuda:0\"}, "
    "{\"shard_offsets\": [15, 0], \"shard_sizes\": [3, 16], \"placement\": "
    "\"rank:5/cuda:1\"}, "
    "{\"shard_offsets\": [18, 0], \"shard_sizes\": [2, 16], \"placement\": "
    "\"rank:6/cuda:2\"}, "
    "{\"shard_offsets\": [20, 0], \"shard_sizes\": [0, 16], \"placement\": "
    "\"rank:7/cuda:3\"}]},\n"
    "    \"t_host\": {\"sharding_type\": \"table_row_wise\", "
    "\"compute_kernel\": \"fused\", \"ranks\": [4, 5, 6, 7], \"shards\": ["
    "{\"shard_offsets\": [0, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:4/cuda:0\"}, "
    "{\"shard_offsets\": [2, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:5/cuda:1\"}, "
    "{\"shard_offsets\": [4, 0], \"shard_sizes\": [1, 8], \"placement\": "
    "\"rank:6/cuda:2\"}, "
    "{\"shard_offsets\": [5, 0], \"shard_sizes\": [0, 8], \"placement\": "
    "\"rank:7/cuda:3\"}]},\n"
    "    \"t_grid\": {\"sharding_type\": \"grid_shard\", \"compute_kernel\": "
    "\"fused\", \"ranks\": [4, 5, 6, 7, 0, 1, 2, 3], \"shards\": ["
    "{\"shard_offsets\": [0, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:4/cuda:0\"}, "
    "{\"shard_offsets\": [2, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:5/cuda:1\"}, "
    "{\"shard_offsets\": [4, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:6/cuda:2\"}, "
    "{\"shard_offsets\": [6, 0], \"shard_sizes\": [2, 8], \"placement\": "
    "\"rank:7/cuda:3\"}, "
    "{\"shard_offsets\": [0, 8], \"shard_sizes\": [2, 4], \"placement\": "
    "\"rank:0/cuda:0\"}, "
    "{\"shard_offsets\": [2, 8], \"shard_sizes\": [2, 4], \"placement\": "
    "\"rank:1/cuda:1\"}, "
    "{\"shard_offsets\": [4, 8], \"shard_sizes\": [2, 4], \"placement\": "
    "\"rank:2/cuda:2\"}, "
    "{\"shard_offsets\": [6, 8], \"shard_sizes\": [2, 4], \"placement\": "
    "\"rank:3/cuda:3\"}]},\n"
    "    \"t_copy\": {\"sharding_type\": \"data_parallel\", "
    "\"compute_kernel\": \"dense\", \"ranks\": [0, 1, 2, 3, 4, 5, 6, 7]}\n"
    "  }\n"
    "}}\n";

static void test_each_type(void)
{
    struct plan plan = mixed_plan();
    struct emit_options options = {0};
    struct err err = {0};

    is_str(emitted(&plan, &options, &err), mixed_text,
           "each sharding type once");
}

static void test_options(void)
{
    struct plan plan = fixture_plan(1, 1, 8);
    struct emit_options options = {.module = "a.\"b\"",
                                   .prefix = "p_\xc3\xa9_"};
    struct err err = {0};

    fixture_whole(&plan, "x", 4, 4, 1, 0);
    fixture_finish(&plan);
    is_str(emitted(&plan, &options, &err),
           "{\"world_size\": 1, \"local_world_size\": 1, \"plan\": {\n  "
           "\"a.\\\"b\\\"\": {\n    \"p_\xc3\xa9_x\": "
           "{\"sharding_type\": \"table_wise\", \"compute_kernel\": \"fused\", "
           "\"ranks\": [0], \"shards\": [{\"shard_offsets\": [0, 0], "
           "\"shard_sizes\": [4, 4], \"placement\": \"rank:0/cuda:0\"}]}\n"
           "  }\n}}\n",
           "module and prefix are escaped");
}

static void test_names(void)
{
    struct plan plan = fixture_plan(1, 1, 8);
    const struct emit_options options[] = {
        {.module = "a\n"}, {.sequence_module = "a\x7f"}, {.prefix = "\xff"}};

    fixture_whole(&plan, "x", 4, 4, 1, 0);
    fixture_finish(&plan);
    for (size_t i = 0; i < 3; i++) {
        struct err err = {0};

        ok(!emitted(&plan, &options[i], &err) && err.code == ERR_INPUT,
           "a name that nobody can print");
        is_str(err.msg, "the names of modules and the prefix must be printable",
               "is refused");
    }
}

static json_t *parsed(const char *text)
{
    json_error_t error;
    json_t *root = text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : 0;

    if (!ok(root != NULL, "the text is JSON"))
        printf("# %s\n", text ? error.text : "nothing was emitted");
    return root;
}

static void test_two_modules(void)
{
    struct plan plan = fixture_plan(2, 2, 8);
    struct emit_options options = {.module = "ebc", .sequence_module = "ec"};
    struct err err = {0};
    const json_t *modules;
    json_t *root;

    fixture_whole(&plan, "pooled", 8, 8, 1, 0);
    fixture_whole(&plan, "history", 8, 16, 20, 1);
    plan.problem.tables[1].output = OUTPUT_SEQUENCE;
    fixture_whole(&plan, "more", 8, 16, 20, 0);
    plan.problem.tables[2].output = OUTPUT_SEQUENCE;
    fixture_finish(&plan);
    root = parsed(emitted(&plan, &options, &err));
    modules = json_object_get(root, "plan");
    ok(json_object_size(modules) == 2 &&
           json_object_get(json_object_get(modules, "ebc"), "pooled") &&
           json_object_size(json_object_get(modules, "ec")) == 2,
       "sequences have a module of their own");
    json_decref(root);
}

/* Reads a table's entry as TorchRec does. Returns true if the shards tile the
 * table, are in the order of the ranks, and each is placed on its rank's
 * device. */
static bool entry_is_sound(const struct plan *plan, const struct table *table,
                           const json_t *entry)
{
    uint32_t per_host = plan->problem.cluster.devices_per_host;
    const json_t *ranks = json_object_get(entry, "ranks");
    const json_t *shards = json_object_get(entry, "shards");
    size_t n = json_array_size(shards);
    json_int_t area = 0;

    if (n != json_array_size(ranks))
        return false;
    for (size_t i = 0; i < n; i++) {
        json_int_t rank = json_integer_value(json_array_get(ranks, i));
        const char *placement;
        char want[64];
        json_int_t at[2], size[2];
        json_t *shard = json_array_get(shards, i);

        if (json_unpack(shard, "{s:[I,I], s:[I,I], s:s !}", "shard_offsets",
                        &at[0], &at[1], "shard_sizes", &size[0], &size[1],
                        "placement", &placement))
            return false;
        snprintf(want, sizeof(want), "rank:%d/cuda:%d", (int)rank,
                 (int)(rank % per_host));
        if (strcmp(placement, want) || at[0] < 0 || at[1] < 0 ||
            at[0] + size[0] > (json_int_t)table->num_embeddings ||
            at[1] + size[1] > (json_int_t)table->dim || size[1] % 4)
            return false;
        area += size[0] * size[1];
        for (size_t k = 0; k < i; k++) {
            json_int_t a[2], b[2];

            json_unpack(json_array_get(shards, k), "{s:[I,I], s:[I,I]}",
                        "shard_offsets", &a[0], &a[1], "shard_sizes", &b[0],
                        &b[1]);
            if (at[0] < a[0] + b[0] && a[0] < at[0] + size[0] &&
                at[1] < a[1] + b[1] && a[1] < at[1] + size[1])
                return false;
        }
    }
    return area == (json_int_t)table->num_embeddings * table->dim;
}

/* Adds a random table on a random cluster, cut in a way that TorchRec supports.
 * All pieces of the table on one rank have one width; different ranks may have
 * different widths. */
static void add_random_table(struct plan *plan, struct rng *rng)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    uint32_t n_local = plan->problem.cluster.devices_per_host;
    uint32_t n_blocks = 1 + (uint32_t)rng_below(rng, 4);
    uint32_t widths[4], places[4], dim = 0, col = 0;
    uint64_t rows = 1 + rng_below(rng, 1000);
    uint64_t way = rng_below(rng, 4);
    uint32_t n = way == 3 ? n_local : way == 2 ? n_devices : 1;
    const char *name = arena_printf(&arena, "t%zu", plan->problem.n_tables);
    uint64_t block = (rows + n - 1) / n;

    if (way == 0 || way == 2)
        n_blocks = 1;
    for (uint32_t c = 0; c < n_blocks; c++) {
        places[c] = (uint32_t)rng_below(rng, n_devices / n);
        dim += widths[c] = 4 + 4 * (places[c] * 5 % 8);
    }
    fixture_table(plan, name, rows, dim, 1);
    for (uint32_t c = 0; c < n_blocks; col += widths[c++]) {
        uint32_t rank = places[c] * n;

        for (uint64_t row = 0; row < rows; row += block, rank++)
            fixture_shard(plan, row, row + block < rows ? row + block : rows,
                          col, col + widths[c], rank);
    }
}

static void test_random(void)
{
    struct rng rng;
    int n_wrong = 0;

    rng_init(&rng, 3, 0);
    for (int round = 0; round < 200; round++) {
        uint32_t n_local = 1 + (uint32_t)rng_below(&rng, 5);
        struct plan plan = fixture_plan(
            n_local * (1 + (uint32_t)rng_below(&rng, 4)), n_local, 64);
        struct emit_options options = {0};
        struct err err = {0};
        json_error_t error;
        json_t *root, *module;

        for (int t = 0; t < 5; t++)
            add_random_table(&plan, &rng);
        plan_sort_shards(&plan);
        plan_derive_kinds(&plan);
        n_wrong += plan_check(&plan, &err) != 0;
        root = json_loads(emitted(&plan, &options, &err), 0, &error);
        module =
            json_object_get(json_object_get(root, "plan"), EMIT_DEFAULT_MODULE);
        for (size_t t = 0; t < plan.problem.n_tables; t++) {
            const struct table *table = &plan.problem.tables[t];

            n_wrong += !entry_is_sound(&plan, table,
                                       json_object_get(module, table->name));
        }
        json_decref(root);
    }
    is_i64(n_wrong, 0, "200 random plans, seed 3, tile when read back");
}

static void refuses(const struct plan *plan, const char *want)
{
    struct emit_options options = {0};
    struct err err = {0};

    ok(!emitted(plan, &options, &err) && err.code == ERR_INPUT, "refused");
    is_str(err.msg, want, "its sentence");
}

struct refused_piece {
    uint64_t row_begin, row_end;
    uint32_t col_begin, col_end, rank;
};
static const struct refused_piece odd[] = {{0, 10, 0, 10, 0}};
static const struct refused_piece copies[] = {{0, 10, 0, 6, 0},
                                              {0, 10, 0, 6, 1}};
static const struct refused_piece rows[] = {{0, 60, 0, 8, 0},
                                            {60, 100, 0, 8, 1}};
static const struct refused_piece far_rows[] = {{0, 60, 0, 8, 7},
                                                {60, 100, 0, 8, 1}};
static const struct refused_piece host[] = {
    {0, 4, 0, 8, 0}, {4, 8, 0, 8, 1}, {8, 12, 0, 8, 2}, {12, 16, 0, 8, 3}};
static const struct refused_piece uneven[] = {
    {0, 97, 0, 12, 2}, {0, 97, 12, 20, 1}, {0, 97, 20, 24, 2}};
static const struct refused_piece uneven_grid[] = {
    {0, 4, 0, 8, 0}, {0, 4, 8, 12, 0}, {4, 8, 0, 8, 1}, {4, 8, 8, 12, 1}};
static const struct refused_piece half_grid[] = {
    {0, 4, 0, 4, 0}, {4, 8, 0, 4, 1}, {0, 8, 4, 8, 2}};

#define PIECES(pieces) pieces, sizeof(pieces) / sizeof(*(pieces))
#define ONLY_BLOCKS                                                         \
    "table 'rows': TorchRec cuts rows only into equal blocks in the order " \
    "of the ranks, over all "

/* A table of these pieces, and the message with which it is refused. */
static const struct refused_cut {
    uint32_t n_ranks, n_local;
    const char *name;
    uint64_t rows;
    uint32_t dim;
    const struct refused_piece *pieces;
    size_t n_pieces;
    enum table_output output;
    const char *want;
} refused_cuts[] = {
    {8, 4, "odd", 10, 10, PIECES(odd), OUTPUT_POOLED,
     "table 'odd' has 10 columns, but TorchRec's kernels take multiples of 4"},
    {2, 2, "copies", 10, 6, PIECES(copies), OUTPUT_POOLED,
     "table 'copies' has 6 columns, but TorchRec's kernels take multiples of "
     "4"},
    {8, 4, "rows", 100, 8, PIECES(rows), OUTPUT_POOLED,
     ONLY_BLOCKS "8 ranks or over the 4 of one host"},
    {8, 4, "rows", 100, 8, PIECES(far_rows), OUTPUT_POOLED,
     ONLY_BLOCKS "8 ranks or over the 4 of one host"},
    {2, 2, "rows", 100, 8, PIECES(rows), OUTPUT_POOLED, ONLY_BLOCKS "2 ranks"},
    {8, 4, "host", 16, 8, PIECES(host), OUTPUT_SEQUENCE,
     "table 'host': TorchRec cuts the rows of a sequence only into equal "
     "blocks in the order of the ranks, over all 8 ranks"},
    {4, 4, "cut", 97, 24, PIECES(uneven), OUTPUT_POOLED,
     "table 'cut' has pieces of 12 and of 4 columns on rank 2, but TorchRec "
     "needs equal widths on a rank"},
    {2, 2, "grid", 8, 12, PIECES(uneven_grid), OUTPUT_POOLED,
     "table 'grid' has pieces of 8 and of 4 columns on rank 0, but TorchRec "
     "needs equal widths on a rank"},
    {4, 4, "grid", 8, 8, PIECES(half_grid), OUTPUT_POOLED,
     "table 'grid': TorchRec cuts a grid only into column blocks, each in "
     "equal row blocks over the 4 ranks of one host"},
};

static void test_refused_cuts(void)
{
    for (size_t i = 0; i < sizeof refused_cuts / sizeof *refused_cuts; i++) {
        const struct refused_cut *cut = &refused_cuts[i];
        struct plan plan = fixture_plan(cut->n_ranks, cut->n_local, 64);
        struct table *table =
            fixture_table(&plan, cut->name, cut->rows, cut->dim, 1);

        table->output = cut->output;
        for (size_t k = 0; k < cut->n_pieces; k++) {
            const struct refused_piece *piece = &cut->pieces[k];

            fixture_shard(&plan, piece->row_begin, piece->row_end,
                          piece->col_begin, piece->col_end, piece->rank);
        }
        fixture_finish(&plan);
        refuses(&plan, cut->want);
    }
}

static void test_refused_modules(void)
{
    struct plan plan = fixture_plan(2, 2, 64);

    fixture_whole(&plan, "pooled", 8, 8, 1, 0);
    fixture_whole(&plan, "history", 8, 16, 20, 1);
    plan.problem.tables[1].output = OUTPUT_SEQUENCE;
    fixture_finish(&plan);
    refuses(&plan, "table 'pooled' is pooled and 'history' is a sequence, "
                   "which TorchRec keeps in two modules: name the second with "
                   "--sequence-module");
    plan.problem.tables[0].output = OUTPUT_SEQUENCE;
    refuses(&plan, "tables 'pooled' and 'history' have 8 and 16 columns, but "
                   "the sequence tables of a TorchRec module must have one "
                   "width");
}

/* Dots in a table's name give its module. Whether a whole table gets the type
 * of column pieces depends only on the tables in its own module. Widths must
 * agree only within a module. */
static void test_named_modules(void)
{
    struct plan plan = fixture_plan(2, 2, 64);
    struct emit_options options = {.module = "m.ebc", .prefix = "t_"};
    struct err err = {0};

    fixture_whole(&plan, "a.ec.clicks", 8, 16, 20, 1);
    fixture_whole(&plan, "user", 8, 8, 1, 0);
    fixture_table(&plan, "a.ebc.user", 8, 16, 1);
    fixture_shard(&plan, 0, 8, 0, 8, 0);
    fixture_shard(&plan, 0, 8, 8, 16, 1);
    fixture_whole(&plan, "a.ebc.ad", 8, 8, 1, 1);
    fixture_whole(&plan, "b.ec.views", 8, 8, 20, 1);
    fixture_whole(&plan, "m.ebc.ad", 8, 8, 1, 0);
    plan.problem.tables[0].output = plan.problem.tables[4].output =
        OUTPUT_SEQUENCE;
    fixture_finish(&plan);
    is_str(
        emitted(&plan, &options, &err),
        "{\"world_size\": 2, \"local_world_size\": 2, \"plan\": {\n"
        "  \"m.ebc\": {\n"
        "    \"t_user\": " WHOLE(
            "table_wise", 0,
            8) ",\n"
               "    \"t_ad\": " WHOLE(
                   "table_wise", 0,
                   8) "\n  },\n"
                      "  \"a.ebc\": {\n"
                      "    \"t_user\": {\"sharding_type\": \"column_wise\", "
                      "\"compute_kernel\": \"fused\", \"ranks\": [0, 1], "
                      "\"shards\": "
                      "[{\"shard_offsets\": [0, 0], \"shard_sizes\": [8, 8], "
                      "\"placement\": \"rank:0/cuda:0\"}, {\"shard_offsets\": "
                      "[0, 8], "
                      "\"shard_sizes\": [8, 8], \"placement\": "
                      "\"rank:1/cuda:1\"}]},\n"
                      "    \"t_ad\": " WHOLE(
                          "column_wise", 1,
                          8) "\n  },\n"
                             "  \"a.ec\": {\n"
                             "    \"t_clicks\": " WHOLE(
                                 "table_wise", 1,
                                 16) "\n  },\n"
                                     "  \"b.ec\": {\n"
                                     "    \"t_views\": " WHOLE("table_wise", 1,
                                                               8) "\n  }\n}}\n",
        "each table in the module that its name says");
    options.module = "a.ebc";
    ok(!emitted(&plan, &options, &err), "no two of one name in a module");
    is_str(err.msg, "table 'a.ebc.user' is the second 't_user' of its module",
           "of which one is named");
    options.module = "a.ec";
    ok(!emitted(&plan, &options, &err), "nor both outputs");
    is_str(err.msg,
           "table 'user' is pooled and 'a.ec.clicks' is a sequence, which "
           "TorchRec keeps in two modules: name the second with "
           "--sequence-module",
           "in one");
}

/* A torch ModuleDict does not accept these names. */
static void test_refused_names(void)
{
    struct plan plan = fixture_plan(1, 1, 64);
    struct emit_options options = {.prefix = "ebc."};
    struct err err = {0};

    fixture_whole(&plan, "user.", 8, 8, 1, 0);
    fixture_finish(&plan);
    refuses(&plan, "table 'user.': TorchRec needs a table name without a dot, "
                   "after a module's name if there is one, not ''");
    plan.problem.tables[0].name = ".user";
    refuses(&plan, "table '.user': TorchRec needs a table name without a dot, "
                   "after a module's name if there is one, not 'user'");
    plan.problem.tables[0].name = "user";
    ok(!emitted(&plan, &options, &err), "nor a prefix with a dot");
    is_str(err.msg,
           "table 'user': TorchRec needs a table name without a dot, after a "
           "module's name if there is one, not 'ebc.user'",
           "with the whole name");
    plan.problem.tables[0].num_embeddings = (uint64_t)1 << 63;
    plan.shards[0].row_end = (uint64_t)1 << 63;
    refuses(&plan, "table 'user' has more rows than TorchRec can count");
}

/* Two sequence tables are cut by columns; a third is whole. */
static void test_sequence_pieces(void)
{
    struct plan plan = fixture_plan(4, 4, 64);
    struct emit_options options = {0};
    struct err err = {0};

    fixture_table(&plan, "clicks", 8, 24, 1);
    for (uint32_t i = 0; i < 3; i++)
        fixture_shard(&plan, 0, 8, 8 * i, 8 * i + 8, i % 2);
    fixture_table(&plan, "views", 8, 24, 1);
    for (uint32_t i = 0; i < 3; i++)
        fixture_shard(&plan, 0, 8, 8 * i, 8 * i + 8, 3);
    fixture_whole(&plan, "buys", 8, 24, 1, 0);
    fixture_finish(&plan);
    for (size_t t = 0; t < 3; t++)
        plan.problem.tables[t].output = OUTPUT_SEQUENCE;
    ok(emitted(&plan, &options, &err) != NULL, "pieces of one width");
    plan.shards[3].col_end = plan.shards[4].col_begin = 4;
    refuses(&plan, "table 'clicks' has a piece of 8 columns and 'views' one of "
                   "4, but the column pieces of a TorchRec module's sequence "
                   "tables must have one width");
}

/* The emitter accepts exactly the cuts that TorchRec accepts: all pieces on one
 * rank have the same width. */
static void test_random_widths(void)
{
    struct rng rng;
    int n_wrong = 0, n_refused = 0;

    rng_init(&rng, 4, 0);
    for (int round = 0; round < 300; round++) {
        struct plan plan = fixture_plan(4, 4, 64);
        uint32_t first[4] = {0}, n = 2 + (uint32_t)rng_below(&rng, 4);
        struct table *table = fixture_table(&plan, "cut", 9, 0, 1);
        bool are_equal = true;
        struct emit_options options = {0};
        struct err err = {0};

        for (uint32_t i = 0; i < n; i++) {
            uint32_t width = 4 + 4 * (uint32_t)rng_below(&rng, 2);
            uint32_t rank = (uint32_t)rng_below(&rng, 4);

            are_equal &= !first[rank] || first[rank] == width;
            first[rank] = width;
            fixture_shard(&plan, 0, 9, table->dim, table->dim + width, rank);
            table->dim += width;
        }
        plan_sort_shards(&plan);
        plan_derive_kinds(&plan);
        n_wrong += plan_check(&plan, &err) != 0;
        n_wrong += are_equal != (emitted(&plan, &options, &err) != NULL);
        n_refused += !are_equal;
    }
    is_i64(n_wrong, 0, "300 random column cuts, seed 4");
    ok(n_refused > 50 && n_refused < 250, "%d of them refused", n_refused);
}

/* Row blocks on the right ranks, but in the wrong order: any two of them are
 * swapped. */
static void test_order_of_ranks(void)
{
    struct emit_options options = {0};
    int n_wrong = 0;

    for (uint32_t a = 0; a < 4; a++)
        for (uint32_t b = 0; b <= a; b++)
            for (uint32_t cols = 8; cols <= 16; cols += 8) {
                struct plan plan = fixture_plan(8, 4, 64);
                struct err err = {0};

                fixture_table(&plan, "rows", 16, cols, 1);
                for (uint32_t r = 0; r < 4; r++) {
                    uint32_t rank = r == a ? b : r == b ? a : r;

                    fixture_shard(&plan, 4 * r, 4 * r + 4, 0, 8, rank);
                    /* a grid, of which only one column block is wrong */
                    if (cols == 16)
                        fixture_shard(&plan, 4 * r, 4 * r + 4, 8, 16, 4 + r);
                }
                plan_sort_shards(&plan);
                plan_derive_kinds(&plan);
                n_wrong += plan_check(&plan, &err) != 0;
                n_wrong += (a == b) != !!emitted(&plan, &options, &err);
            }
    is_i64(n_wrong, 0, "row blocks stand in the order of the ranks");
}

/* A sequence table can be cut in only some of the ways of a pooled table. */
static void test_outputs(void)
{
    struct emit_options options = {0};
    static const char *const names[] = {"t_a",    "t_b",    "t_rows",
                                        "t_host", "t_grid", "t_copy"};
    static const bool may_be_sequence[] = {true,  false, true,
                                           false, false, true};

    for (uint32_t t = 0; t < 6; t++) {
        struct plan plan = mixed_plan();
        struct err err = {0};
        size_t n = 0;

        for (size_t i = 0; i < plan.n_shards; i++)
            if (plan.shards[i].table == t) {
                plan.shards[n] = plan.shards[i];
                plan.shards[n++].table = 0;
            }
        plan.problem.tables[0] = plan.problem.tables[t];
        plan.problem.n_tables = 1;
        plan.n_shards = n;
        ok(emitted(&plan, &options, &err) != NULL, "%s, pooled", names[t]);
        plan.problem.tables[0].output = OUTPUT_SEQUENCE;
        ok(!!emitted(&plan, &options, &err) == may_be_sequence[t],
           "%s, as a sequence", names[t]);
    }
}

/* An NVL72 of 18 hosts. A rank's device is its number within its host. Row
 * blocks are over the whole NVLink domain. The job gets the domain's size. */
static void test_domains(void)
{
    struct plan plan = fixture_plan(144, 4, 65536);
    struct emit_options options = {0};
    struct err err = {0};
    const char *text;

    plan.problem.cluster.hosts_per_domain = 18;
    fixture_whole(&plan, "whole", 1000, 16, 3, 71);
    fixture_table(&plan, "rows", 720, 16, 2);
    for (uint32_t r = 0; r < 72; r++)
        fixture_shard(&plan, 10 * r, 10 * r + 10, 0, 16, 72 + r);
    fixture_finish(&plan);
    text = emitted(&plan, &options, &err);
    is_in(text, "{\"world_size\": 144, \"local_world_size\": 4, \"pod_size\": "
                "18, \"plan\": {");
    is_in(text, "\"placement\": \"rank:71/cuda:3\"");
    is_in(text, "\"rows\": {\"sharding_type\": \"table_row_wise\"");
    is_in(text, "\"placement\": \"rank:143/cuda:3\"");
    plan.problem.cluster.hosts_per_domain = 1;
    refuses(
        &plan,
        "table 'rows': TorchRec cuts rows only into equal blocks in the order "
        "of the ranks, over all 144 ranks or over the 4 of one host");

    plan = fixture_plan(8, 2, 64);
    plan.problem.cluster.hosts_per_domain = 2;
    fixture_table(&plan, "grid", 8, 16, 1);
    for (uint32_t r = 0; r < 8; r++)
        fixture_shard(&plan, r % 4 * 2, r % 4 * 2 + 2, r / 4 * 8, r / 4 * 8 + 8,
                      r);
    fixture_finish(&plan);
    refuses(&plan, "table 'grid' is a grid over NVLink domains of several "
                   "hosts, for which TorchRec has no row-wise Adagrad");
    plan.problem.tables[0].optimizer = OPTIMIZER_ADAM;
    is_in(emitted(&plan, &options, &err), "\"sharding_type\": \"grid_shard\"");
}

static void test_text_format(void)
{
    struct plan plan = mixed_plan();
    struct emit_options options = {0};
    struct buf out = {0};
    struct err err = {0};
    size_t n_lines = 0;

    ok(!emit_text.emit(&plan, &options, &out, &err), "text");
    for (size_t i = 0; i < out.len; i++)
        n_lines += out.data[i] == '\n';
    is_i64((int64_t)n_lines, (int64_t)plan.n_shards + 1, "a line a shard");
    /*
     * bytes of weights, state, input, and outputs with gradients:
     *     39060 x 64 x 4 + 39060 x 4 + 4 x (8 x 131072 + 4 x 65536) +
     *     2 x 65536 x 64 x 4
     */
    ok(strstr(out.data, "\nt_b\tcolumn\t0\t39060\t0\t64\t0\t48952912\t-\n") !=
           NULL,
       "a shard with its memory");
    buf_release(&out);
}

int main(void)
{
    test_each_type();
    test_options();
    test_names();
    test_two_modules();
    test_random();
    test_random_widths();
    test_order_of_ranks();
    test_outputs();
    test_refused_cuts();
    test_refused_modules();
    test_named_modules();
    test_refused_names();
    test_sequence_pieces();
    test_domains();
    test_text_format();
    arena_release(&arena);
    return tap_done();
}
