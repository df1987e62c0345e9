/* SPDX-License-Identifier: MIT */
#include "io/ids.h"

#include <unistd.h>

#include "base/file_write.h"
#include "base/rng.h"
#include "tests/npz.h"
#include "tests/tap.h"

#define MAX_SAMPLES 60
#define MAX_IDS (MAX_SAMPLES * 9)
#define N_ROWS 40

/* Samples of one table. */
struct data {
    int64_t ids[MAX_IDS], lengths[MAX_SAMPLES], offsets[MAX_SAMPLES + 1];
    size_t n_samples, n_ids;
};

static struct err err;
static struct profile_options options = {.max_rows = N_ROWS, .n_hottest = 5};

static void draw(struct data *data, struct rng *rng, size_t pooling)
{
    *data = (struct data){.n_samples = 1 + rng_below(rng, MAX_SAMPLES)};
    for (size_t s = 0; s < data->n_samples; s++) {
        size_t n = pooling ? pooling : rng_below(rng, 10);

        data->lengths[s] = (int64_t)n;
        for (; n; n--)
            data->ids[data->n_ids++] =
                (int64_t)rng_below(rng, 1 + rng_below(rng, N_ROWS));
        data->offsets[s + 1] = (int64_t)data->n_ids;
    }
}

/* Writes an array as a NumPy file; is_narrow selects 32-bit integers. */
static void add_array(struct buf *out, const int64_t *numbers, size_t n_rows,
                      size_t n_columns, bool is_narrow)
{
    char header[128], shape[48];

    snprintf(shape, sizeof(shape), n_columns > 1 ? "%zu, %zu" : "%zu,", n_rows,
             n_columns);
    snprintf(header, sizeof(header),
             "{'descr': '<i%d', 'fortran_order': False, 'shape': (%s), }",
             is_narrow ? 4 : 8, shape);
    buf_add(out, "\x93NUMPY\1\0", 8);
    buf_add(out, (char[]){(char)strlen(header), 0}, 2);
    buf_printf(out, "%s", header);
    for (size_t i = 0; i < n_rows * n_columns; i++) {
        int32_t narrow = (int32_t)numbers[i];

        buf_add(out, is_narrow ? (char *)&narrow : (const char *)&numbers[i],
                is_narrow ? 4 : 8);
    }
}

static struct npz npz;

static void add_numbers(struct buf *out, const char *name,
                        const int64_t *numbers, size_t n, bool is_narrow)
{
    struct buf array = {0};

    add_array(&array, numbers, n, 1, is_narrow);
    npz_add(&npz, out, name, &array);
    buf_release(&array);
}

static void add_frame(struct buf *out, const char *name, uint64_t n_samples,
                      const int64_t *ids, uint64_t n_ids)
{
    const uint64_t head[] = {n_samples, n_ids, strlen(name)};

    buf_add(out, (const char *)head, sizeof(head));
    buf_printf(out, "%s", name);
    buf_add(out, (const char *)ids, n_ids * sizeof(*ids));
}

static void save(const char *path, struct buf *text)
{
    ok(!file_write(path, text->data, text->len, &err), "write %s", path);
    buf_release(text);
}

/* Returns true if the result equals, to the last bit, that of the same data in
 * a plain profile. */
static bool is_same(const struct profile_result *got, const struct data *data,
                    struct arena *arena)
{
    struct profile *plain = profile_open(&options);
    struct profile_result want;
    size_t at = 0;

    for (size_t s = 0; s < data->n_samples; s++) {
        if (profile_add(plain, data->ids + at, (size_t)data->lengths[s], &err))
            return false;
        profile_end(plain, 1);
        at += (size_t)data->lengths[s];
    }
    profile_finish(plain, &want, arena);
    profile_close(plain);
    return got->n_samples == want.n_samples && got->n_ids == want.n_ids &&
           got->n_batches == want.n_batches && got->n_used == want.n_used &&
           got->n_hottest == want.n_hottest &&
           got->unique_frac == want.unique_frac &&
           got->local_unique_frac == want.local_unique_frac &&
           !memcmp(got->bins, want.bins, sizeof(got->bins)) &&
           !memcmp(got->hottest, want.hottest,
                   got->n_hottest * sizeof(*got->hottest));
}

static int measure(struct id_tables *tables, char *const *paths, size_t n,
                   struct arena *arena)
{
    *tables = (struct id_tables){.dim = 4, .arena = arena, .options = options};
    err = (struct err){0};
    return ids_measure(tables, paths, n, &err);
}

static void check_file(const char *name, const char *table,
                       const struct data *data, struct arena *arena)
{
    char *path = arena_strdup(arena, name);
    struct id_tables tables;

    if (ok(!measure(&tables, &path, 1, arena) && tables.n_tables == 1,
           "%s: %zu ids: %s", path, data->n_ids, err.msg)) {
        is_str(tables.tables[0].table.name, table, "its table");
        is_i64(tables.tables[0].table.dim, 4, "of the width that is given");
        ok(is_same(&tables.tables[0].result, data, arena), "as they are");
    }
    ids_release(&tables);
}

/* Sends frames of two tables alternately. Each frame has a random number of
 * samples, at most as many as fit the local batch; their ids come in two
 * frames. */
static void check_stream(const struct data data[2], struct rng *rng,
                         struct arena *arena)
{
    char *path = arena_strdup(arena, "-");
    struct id_tables tables;
    size_t at[2] = {0};
    struct buf frames = {0};
    int input = dup(STDIN_FILENO);

    for (int t = 0; at[0] < data[0].n_samples || at[1] < data[1].n_samples;
         t = !t) {
        const struct data *from = &data[t];
        uint64_t room = options.local_batch - at[t] % options.local_batch;
        uint64_t n = 1 + rng_below(rng, room);
        uint64_t begin = (uint64_t)from->offsets[at[t]], middle;

        n = n < from->n_samples - at[t] ? n : from->n_samples - at[t];
        at[t] += n;
        middle =
            begin + rng_below(rng, 1 + (uint64_t)from->offsets[at[t]] - begin);
        add_frame(&frames, t ? "b" : "a", 0, from->ids + begin, middle - begin);
        add_frame(&frames, t ? "b" : "a", n, from->ids + middle,
                  (uint64_t)from->offsets[at[t]] - middle);
    }
    save("frames", &frames);
    ok(freopen("frames", "r", stdin) != NULL, "standard input");
    ok(!measure(&tables, &path, 1, arena), "frames: %s", err.msg);
    for (size_t t = 0; t < tables.n_tables; t++)
        ok(is_same(&tables.tables[t].result, &data[t], arena),
           "table %s of them", tables.tables[t].table.name);
    is_i64((int64_t)tables.n_tables, 2, "both tables");
    ids_release(&tables);
    ok(dup2(input, STDIN_FILENO) == STDIN_FILENO && !close(input), "back");
}

/* A frame's name has 1 to 1024 bytes. */
static void check_names(struct arena *arena)
{
    static const struct {
        size_t n;
        bool is_fine;
    } cases[] = {{0, false}, {1, true}, {1024, true}, {1025, false}};
    const int64_t ids[] = {1, 2};
    int input = dup(STDIN_FILENO);
    char *path = arena_strdup(arena, "-");

    options.local_batch = options.batch = 1;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct id_tables tables;
        struct buf frames = {0};
        char name[1026] = "";

        memset(name, 'n', cases[i].n);
        add_frame(&frames, name, 1, ids, 2);
        save("frames", &frames);
        ok(freopen("frames", "r", stdin) != NULL, "standard input");
        ok(!measure(&tables, &path, 1, arena) == cases[i].is_fine,
           "a name of %zu bytes", cases[i].n);
        if (cases[i].is_fine) {
            is_str(tables.tables[0].table.name, name, "kept whole");
            ids_release(&tables);
        }
    }
    ok(dup2(input, STDIN_FILENO) == STDIN_FILENO && !close(input), "back");
}

/* All input formats give the same result for the same samples. */
static void check_drawn(uint64_t seed)
{
    struct arena arena = {0};
    struct buf out = {0};
    struct data data[2];
    struct rng rng;
    bool is_narrow;
    size_t pooling;

    printf("# seed %" PRIu64 "\n", seed);
    rng_init(&rng, seed, 0);
    is_narrow = rng_below(&rng, 2);
    pooling = 1 + rng_below(&rng, 8);
    options.local_batch = 1 + rng_below(&rng, 9);
    options.batch = options.local_batch * (1 + rng_below(&rng, 4));
    draw(&data[0], &rng, 0);
    draw(&data[1], &rng, pooling);
    add_numbers(&out, "a_values", data[0].ids, data[0].n_ids, is_narrow);
    add_numbers(&out, "a.lengths", data[0].lengths, data[0].n_samples,
                !is_narrow);
    npz_end(&npz, &out);
    save("lengths.npz", &out);
    check_file("lengths.npz", "a", &data[0], &arena);
    add_numbers(&out, "offsets", data[0].offsets, data[0].n_samples + 1,
                is_narrow);
    add_numbers(&out, "indices", data[0].ids, data[0].n_ids, !is_narrow);
    npz_end(&npz, &out);
    save("offsets.npz", &out);
    check_file("offsets.npz", "offsets", &data[0], &arena);
    add_array(&out, data[1].ids, data[1].n_samples, pooling, is_narrow);
    save("7.npy", &out);
    check_file("7.npy", "cat_7", &data[1], &arena);
    check_stream(data, &rng, &arena);
    arena_release(&arena);
}

/* The files of a table are parts that follow each other, each in its own
 * folder. Lengths belong to the ids in the same folder. */
static void check_parts(void)
{
    static const struct {
        const char *path;
        int64_t numbers[2];
    } files[] = {{"x.npy", {1, 2}},
                 {"f/y-indices.npy", {3, 3}},
                 {"g/x_values.npy", {5, 6}},
                 {"f/y-lengths.npy", {0, 2}},
                 {"g/x_lengths.npy", {1, 1}}};
    struct arena arena = {0};
    struct id_tables tables;
    char *paths[5], *lone;

    options.local_batch = options.batch = 1;
    ok(!system("mkdir f g"), "folders");
    for (size_t i = 0; i < 5; i++) {
        struct buf out = {0};

        paths[i] = arena_strdup(&arena, files[i].path);
        add_array(&out, files[i].numbers, 2, 1, false);
        save(paths[i], &out);
    }
    ok(!measure(&tables, paths, 5, &arena), "five files: %s", err.msg);
    is_i64((int64_t)tables.n_tables, 2, "are of two tables");
    is_str(tables.tables[0].table.name, "x", "in the order of the files");
    is_i64((int64_t)tables.tables[0].result.n_samples, 4, "two parts of one");
    is_i64((int64_t)tables.tables[0].result.n_rows, 7, "with all their ids");
    is_i64((int64_t)tables.tables[1].result.n_samples, 2, "lengths count");
    is_near(tables.tables[1].result.bins[1], 1, 0, "two ids in one sample");
    /* a local batch, 7 gaps, 7 rows, a batch of an id and its copy, a place */
    is_i64((int64_t)tables.memory_bytes, 8 + 7 * 8 + 4 * (7 + 2 + 1),
           "the larger table's memory");
    ids_release(&tables);
    lone = paths[3];
    ok(measure(&tables, &lone, 1, &arena), "lengths alone");
    is_str(err.msg, "f/y-lengths.npy: the indices of table 'y' are missing",
           "are refused");
    ids_release(&tables);
    arena_release(&arena);
}

static int measure_list(struct id_tables *tables, struct table *lines, size_t n,
                        struct arena *arena)
{
    static char b[] = "b.npy", c[] = "c.npy";

    *tables = (struct id_tables){
        .list = {lines, n, "list"}, .options = options, .arena = arena};
    err = (struct err){0};
    return ids_measure(tables, (char *[]){b, c}, 2, &err);
}

/* With a table list, each table gets the line of its own name, in any order. A
 * table without a line is refused. So is a table with more rows than can be
 * counted. */
static void check_list(void)
{
    const int64_t ids[] = {1, 2};
    struct table lines[3];
    struct arena arena = {0};
    struct id_tables tables;

    options.local_batch = options.batch = 1;
    for (size_t i = 0; i < 3; i++) {
        struct buf out = {0};

        table_init(&lines[i]);
        lines[i].name = (const char *[]){"a", "b", "c"}[i];
        lines[i].num_embeddings = 10 + i;
        add_array(&out, ids, 2, 1, false);
        save((const char *[]){"a.npy", "b.npy", "c.npy"}[i], &out);
    }
    ok(!measure_list(&tables, lines, 3, &arena), "a list: %s", err.msg);
    is_i64((int64_t)tables.n_tables, 2, "two of its tables");
    for (size_t t = 0; t < tables.n_tables; t++) {
        is_i64((int64_t)tables.tables[t].list_idx, (int64_t)t + 1, "the line");
        is_i64((int64_t)tables.tables[t].table.num_embeddings, (int64_t)t + 11,
               "the rows");
    }
    ids_release(&tables);
    ok(measure_list(&tables, lines, 2, &arena), "a table that is not in it");
    is_str(err.msg, "list: no table is called 'c'", "is refused");
    ids_release(&tables);
    lines[1].num_embeddings = PROFILE_MAX_ROWS + 1;
    ok(measure_list(&tables, lines, 3, &arena), "more rows than are counted");
    is_str(err.msg, "list: table 'b' has more than 4294967295 rows",
           "are refused");
    ids_release(&tables);
    arena_release(&arena);
}

/* An archive without arrays. */
static void check_none(void)
{
    static const char empty[22] = "PK\005\006";
    char *paths[] = {(char[]){"none.npz"}};
    struct arena arena = {0};
    struct id_tables tables;
    struct buf out = {0};

    buf_add(&out, empty, sizeof empty);
    save("none.npz", &out);
    ok(measure(&tables, paths, 1, &arena) != 0, "no ids");
    is_str(err.msg, "none.npz has no ids", "are refused");
    ids_release(&tables);
    arena_release(&arena);
}

int main(void)
{
    char folder[] = "/tmp/t_ids.XXXXXX";
    struct arena arena = {0};

    if (!mkdtemp(folder) || chdir(folder))
        return 1;
    for (uint64_t seed = 1; seed <= tap_size(60, 2000); seed++)
        check_drawn(seed);
    check_parts();
    check_list();
    check_none();
    check_names(&arena);
    arena_release(&arena);
    ok(!system("rm -r \"$PWD\""), "cleaned up");
    return tap_done();
}
