/* SPDX-License-Identifier: MIT */
#include "io/tables_json.h"

#include "base/printable.h"
#include "io/tables_io.h"

#include <time.h>
#include <unistd.h>

#include "tests/hostile.h"
#include "tests/tap.h"

static struct arena arena;
static struct table_list list;
static struct err err;
static struct buf warnings;

static void collect(void *ctx, const char *sentence)
{
    buf_printf(ctx, "%s\n", sentence);
}

/* pooling factor for tables without one; 0: such tables are refused */
static double pooling = 1;

static int read_text(const char *text, uint32_t dim)
{
    struct tables_options options = {
        .dim = dim, .pooling = pooling, .warn = collect, .warn_ctx = &warnings};

    arena_release(&arena);
    buf_release(&warnings);
    memset(&err, 0, sizeof(err));
    memset(&list, 0, sizeof(list));
    return tables_from_json(&list, text, strlen(text), "t.json", &options,
                            &arena, &err);
}

#define TABLE_A "{\"a\": {\"num_embeddings\": 10, \"embedding_dim\": 4"

static void test_refused(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"no tables", " {}", "t.json:1: no tables"},
        {"a list", "[1]",
         "t.json:1: element 0 of the list is not a table, an object with 'row' "
         "or 'num_embeddings'"},
        {"two of a name",
         "[{\"name\": \"a\", \"row\": 1, \"dim\": 4},\n"
         "{\"name\": \"a\", \"row\": 2, \"dim\": 4}]",
         "t.json:2: two tables are called 'a'"},
        {"an index twice",
         "{\"tables\": [{\"index\": 7, \"row\": 1, \"dim\": 4},"
         "\n{\"index\": 7, \"row\": 2, \"dim\": 4}]}",
         "t.json:2: two tables are called 't7'"},
        {"three sizes", "{\"a\": [1, 2, 3]}",
         "t.json:1: table 'a': it must be an object with 'num_embeddings', "
         "'embedding_dim' and 'pooling_factor', or a number of rows, or [rows, "
         "dim]"},
        {"two words for rows", "[{\"row\": 1, \"rows\": 1, \"dim\": 4}]",
         "t.json:1: table 't0': row and rows mean the same"},
        {"a plan", "{\"neuroshard_plan\": 1, \"tables\": []}",
         "t.json:1: this is a plan, not a table list"},
        {"a member that is no object", "{\n\"note\": \"x\"}",
         "t.json:2: table 'note': it must be an object with 'num_embeddings', "
         "'embedding_dim' and 'pooling_factor', or a number of rows, or [rows, "
         "dim]"},
        {"empty name", "{\"\": {}}", "t.json:1: table '': the name is empty"},
        {"control in a name", "{\"a\\nb\": {}}",
         "t.json:1: table 'a\\u000ab': the name 'a\\u000ab' is not printable "
         "text"},
        {"no rows", "{\"a\":\n{\"embedding_dim\": 4}}",
         "t.json:1: table 'a': num_embeddings is missing"},
        {"rows 0", "{\"a\": {\"num_embeddings\": 0, \"embedding_dim\": 4}}",
         "t.json:1: table 'a': num_embeddings '0' is not a whole number from 1 "
         "to 9223372036854775807"},
        {"rows negative", "{\"a\": {\"num_embeddings\": -3}}",
         "t.json:1: table 'a': num_embeddings '-3' is not a whole number from "
         "1 to 9223372036854775807"},
        {"rows a fraction", "{\"a\": {\"num_embeddings\": 3.5}}",
         "t.json:1: table 'a': num_embeddings '3.5' is not a whole number from "
         "1 to 9223372036854775807"},
        {"rows a text", "{\"a\": {\"num_embeddings\": \"3\"}}",
         "t.json:1: table 'a': num_embeddings must be a number, not a text"},
        {"rows twice", "{\"a\": {\"num_embeddings\": 3, \"rows\": 3}}",
         "t.json:1: table 'a': num_embeddings and rows mean the same"},
        {"a bin", TABLE_A ", \"bin_0\": 1}}",
         "t.json:1: table 'a': bin_1 is empty, but other bins are given"},
        {"no dim", "{\"a\": {\"num_embeddings\": 3}}",
         "t.json:1: table 'a': embedding_dim is missing; option '--dim D' "
         "fills empty cells"},
        {"dim 0", "{\"a\": {\"num_embeddings\": 3, \"embedding_dim\": 0}}",
         "t.json:1: table 'a': embedding_dim '0' is not a whole number from 1 "
         "to 1048576"},
        {"dim too large",
         "{\"a\": {\"num_embeddings\": 3, \"embedding_dim\": 1048577}}",
         "t.json:1: table 'a': embedding_dim '1048577' is not a whole number "
         "from 1 to 1048576"},
        {"pooling negative", TABLE_A ", \"pooling_factor\": -1}}",
         "t.json:1: table 'a': pooling_factor '-1' is not a number from 0 to "
         "1000000"},
        {"order unknown", TABLE_A ", \"row_order\": \"random\"}}",
         "t.json:1: table 'a': row_order 'random' is not hashed, frequency or "
         "uniform"},
        {"order null", TABLE_A ", \"row_order\": null}}",
         "t.json:1: table 'a': row_order must be a text, not null"},
        {"pooling null", TABLE_A ", \"pooling_factor\": null}}",
         "t.json:1: table 'a': pooling_factor must be a number, not null"},
        {"pooling in the first only",
         TABLE_A ", \"pooling_factor\": 2},\n"
                 " \"b\": {\"num_embeddings\": 1, \"embedding_dim\": 4}}",
         "t.json:2: 'pooling_factor' is missing here, but given before: give "
         "it for all tables or for none"},
        {"pooling in the second only",
         TABLE_A "},\n\"b\": {\"num_embeddings\": 1, \"embedding_dim\": 4, "
                 "\"pooling_factor\": 2}}",
         "t.json:2: 'pooling_factor' is given here, but missing before: give "
         "it for all tables or for none"},
        {"lines are those of the tables",
         "{\n \"a{\\\"[,\": {\"num_embeddings\": 1, \"embedding_dim\": 4,\n"
         " \"x\": [{\"y\": \"}\\\\\"}, 2]},\n\n"
         " \"b\": {\"num_embeddings\": 0}}",
         "t.json:5: table 'b': num_embeddings '0' is not a whole number from 1 "
         "to 9223372036854775807"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = read_text(cases[i].text, 0);

        is_str(rc ? err.msg : "accepted", cases[i].want, cases[i].name);
        if (rc && err.code != ERR_INPUT)
            ok(0, "%s: the code is ERR_INPUT", cases[i].name);
    }
}

/* Texts that the JSON library refuses. The words after "not valid JSON: " come
 * from the library. */
static void test_not_json(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"cut off", "{\"a\": {\n\"num_embeddings\": 1", "t.json:2: not valid"},
        {"nothing", "", "t.json:1: not valid JSON"},
        {"text after the end", "{}\n x", "t.json:2: not valid JSON"},
        {"one name twice",
         "{\"a\": {\"num_embeddings\": 1},\n\"a\": {\"num_embeddings\": 1}}",
         "t.json:2: not valid JSON: duplicate object key"},
        {"a number out of range", "{\"a\": {\"num_embeddings\": 1e999}}",
         "t.json:1: not valid JSON: real number overflow"},
        {"a whole number out of range",
         "{\"a\": {\"num_embeddings\": 9223372036854775808}}",
         "t.json:1: not valid JSON: too big integer"},
        {"not UTF-8", "{\"\xff\": 1}", "t.json:1: not valid JSON"},
        {"NaN", TABLE_A ", \"pooling_factor\": NaN}}",
         "t.json:1: not valid JSON"},
        {"a NUL in a name", "{\"a\\u0000b\": {}}", "t.json:1: not valid JSON"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int rc = read_text(cases[i].text, 0);

        if (!ok(rc == -1 && err.code == ERR_INPUT &&
                    !strncmp(err.msg, cases[i].want, strlen(cases[i].want)),
                "%s", cases[i].name))
            printf("# got '%s', want '%s...'\n", err.msg, cases[i].want);
    }
}

static void test_read(void)
{
    const struct table *t;

    is_i64(read_text("\xef\xbb\xbf{\"t_0\": {\"num_embeddings\": 5000000000, "
                     "\"embedding_dim\": 128, \"pooling_factor\": 2.5},\n"
                     "\"t_1\": {\"pooling_factor\": 0, \"embedding_dim\": 36, "
                     "\"num_embeddings\": 1}}",
                     64),
           0, "TorchRec's form, after a byte order mark");
    t = list.tables;
    is_i64((int64_t)list.n_tables, 2, "two tables, in order");
    is_str(t[0].name, "t_0", "name");
    is_i64((int64_t)t[0].num_embeddings, 5000000000, "rows beyond 32 bits");
    is_i64(t[0].dim, 128, "embedding_dim wins over --dim");
    is_near(t[0].pooling_factor, 2.5, 0, "pooling factor");
    is_near(t[1].pooling_factor, 0, 0, "pooling factor 0");
    is_i64(t[1].dim, 36, "dim");
    ok(t[0].skew_assumed && t[0].kinds == SHARD_ALL_KINDS &&
           t[0].precision == PRECISION_FP32 && t[0].num_outputs == 1,
       "the rest are defaults");
    is_str(list.source, "t.json", "source");
    ok(!warnings.data, "nothing to warn of");
    is_i64(read_text("{\"a\": {\"rows\": 8, \"dim\": 4, \"hotness\": 1e1, "
                     "\"zipf_alpha\": 0.5, \"precision\": \"fp16\", "
                     "\"sharding\": \"row|table\", \"device\": 3, "
                     "\"group\": \"g\", \"dedup\": 0.25}}",
                     0),
           0, "members by all names that columns of CSV have");
    t = list.tables;
    ok(t->num_embeddings == 8 && t->dim == 4 && t->pooling_factor == 10 &&
           t->zipf_alpha == 0.5 && !t->skew_assumed &&
           t->precision == PRECISION_FP16 &&
           t->kinds == (SHARD_TABLE | SHARD_ROW) && t->device == 3 &&
           !strcmp(t->group, "g") && t->dedup == 0.25 && !warnings.data,
       "all are taken");
}

static void test_warnings(void)
{
    is_i64(read_text("{\"a\": {\"num_embeddings\": 3, \"mean\": 1},\n"
                     "\"b\": {\"num_embeddings\": 3, \"mean\": 1, \"x\": 2}}",
                     8),
           0, "no pooling factors, unknown members, --dim");
    is_i64(list.tables[1].dim, 8, "--dim fills");
    is_near(list.tables[1].pooling_factor, 1, 0, "one look-up a sample");
    is_str(warnings.data, "t.json: unknown members are ignored: 'mean', 'x'\n",
           "they are told once");
    pooling = 0;
    is_i64(read_text("{\"a\": [3, 8]}", 0), -1, "no pooling factors");
    is_str(err.msg,
           "t.json:1: table 'a': pooling_factor is missing; option '--pooling "
           "P' gives it",
           "are refused");
    pooling = 1;
}

static void test_long_list(void)
{
    struct buf text = {0};
    clock_t start;

    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "%c\n\"table_%d\": {\"num_embeddings\": %d}",
                   i ? ',' : '{', i, i + 1);
    buf_add(&text, "}", 1);
    start = clock();
    is_i64(read_text(text.data, 64), 0, "100,000 tables");
    printf("# 100,000 tables in %.0f ms\n",
           (double)(clock() - start) / CLOCKS_PER_SEC * 1e3);
    is_str(list.tables[99999].name, "table_99999", "the last one");
    buf_release(&text);
}

/* tables_load recognizes the format by the first character. */
static void test_load(void)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"JSON", "{\"a\": {\"num_embeddings\": 10}}"},
        {"JSON after blanks", "\xef\xbb\xbf \r\n\t{\"a\": {\"num_embeddings\""
                              ": 10}}"},
        {"CSV", "name,rows\na,10\n"},
    };
    struct tables_options options = {.dim = 4, .pooling = 1};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char path[] = "/tmp/t_tables_XXXXXX";
        int fd = mkstemp(path);
        FILE *file = fd < 0 ? NULL : fdopen(fd, "w");

        if (!file || fputs(cases[i].text, file) < 0 || fclose(file))
            tap_skip_all("no temporary file");
        ok(!tables_load(&list, path, &options, &arena, &err) &&
               list.n_tables == 1 && list.tables[0].num_embeddings == 10 &&
               !strcmp(list.source, path),
           "%s is recognized", cases[i].name);
        unlink(path);
    }
}

/* The warning lists unknown members. */
static void test_hostile_texts(void)
{
    struct arena texts = {0};
    const char *text;
    size_t n_texts, n_refused = 0, n_bad = 0;

    for (n_texts = 0;
         (text = hostile_json(TABLE_A ", \"x\": \"y\"}}", n_texts, &texts));
         n_texts++)
        if (read_text(text, 4)) {
            n_refused++;
            n_bad += !text_is_printable(err.msg);
        }
    ok(n_texts == 5 && n_refused > 0 && !n_bad,
       "%zu hostile texts, %zu refused", n_texts, n_refused);
    arena_release(&texts);
}

/* Table lists of NeuroShard and DreamShard, and sizes by name. */
static void test_forms(void)
{
    static const char bins[] =
        "[{\"row\": 10, \"pooling_factor\": 2.5, \"bin_0\": 0.5, \"bin_1\": "
        "0.5, \"bin_2\": 0, \"bin_3\": 0, \"bin_4\": 0, \"bin_5\": 0, "
        "\"bin_6\": 0, \"bin_7\": 0, \"bin_8\": 0, \"bin_9\": 0, \"bin_10\": "
        "0, \"bin_11\": 0, \"bin_12\": 0, \"bin_13\": 0, \"bin_14\": 0, "
        "\"bin_15\": 0, \"bin_16\": 0}]";

    ok(!read_text(bins, 16) && list.n_tables == 1 && !warnings.data &&
           !strcmp(list.tables[0].name, "t0") && list.tables[0].dim == 16 &&
           list.tables[0].num_embeddings == 10 && list.tables[0].has_bins &&
           list.tables[0].pooling_factor == 2.5,
       "a list with bins %s", err.msg);
    ok(!read_text("{\"tables\": [{\"index\": 3, \"row\": 5, \"dim\": 8, "
                  "\"pooling_factor\": 1}]}",
                  0) &&
           !strcmp(list.tables[0].name, "t3") && list.tables[0].dim == 8,
       "a list within an object %s", err.msg);
    ok(!read_text("{\"a\": 7, \"tables\": 8}", 4) && list.n_tables == 2 &&
           list.tables[1].num_embeddings == 8,
       "rows by name %s", err.msg);
    ok(!read_text("{\"C1\": [1460, 16], \"C2\": [3.0, 8]}", 0) &&
           list.tables[0].dim == 16 && list.tables[1].num_embeddings == 3,
       "rows and dim by name %s", err.msg);
}

int main(void)
{
    test_forms();
    test_refused();
    test_not_json();
    test_read();
    test_warnings();
    test_hostile_texts();
    test_long_list();
    test_load();
    buf_release(&warnings);
    arena_release(&arena);
    return tap_done();
}
