/* SPDX-License-Identifier: MIT */
#include "io/tables_csv.h"

#include "base/file.h"
#include "io/tables_io.h"

#include <dirent.h>
#include <time.h>

#include "tests/tap.h"

#define BINS_HEADER                                                       \
    "bin_0,bin_1,bin_2,bin_3,bin_4,bin_5,bin_6,bin_7,bin_8,bin_9,bin_10," \
    "bin_11,bin_12,bin_13,bin_14,bin_15,bin_16"
#define BINS_HEAD "name,rows,dim,pooling_factor," BINS_HEADER "\n"
#define ZEROS_14 ",0,0,0,0,0,0,0,0,0,0,0,0,0,0"

/* Results of the last list that was read: tables or error, and warnings. */
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

static int read_bytes(const char *text, size_t len, uint32_t dim)
{
    struct tables_options options = {
        .dim = dim, .pooling = pooling, .warn = collect, .warn_ctx = &warnings};

    arena_release(&arena);
    buf_release(&warnings);
    memset(&err, 0, sizeof(err));
    memset(&list, 0, sizeof(list));
    return tables_from_csv(&list, text, len, "t.csv", &options, &arena, &err);
}

static int read_text(const char *text, uint32_t dim)
{
    return read_bytes(text, strlen(text), dim);
}

static const struct table *table(size_t idx)
{
    return &list.tables[idx];
}

struct refusal {
    const char *name, *text, *want;
};

static void are_refused(const struct refusal *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int rc = read_text(cases[i].text, 0);

        is_str(rc ? err.msg : "accepted", cases[i].want, cases[i].name);
        if (rc && err.code != ERR_INPUT)
            ok(0, "%s: the code is ERR_INPUT", cases[i].name);
    }
}

static void test_refused_reach(void)
{
    static const struct refusal cases[] = {
        {"reach without misses", "name,rows,dim,reach_0,miss_0\na,9,4,2,\n",
         "t.csv:2: miss_0 is empty, but reach_0 is given"},
        {"misses without reach", "name,rows,dim,miss_0\na,9,4,1\n",
         "t.csv:2: reach_0 is empty, but miss_0 is given"},
        {"a window left out",
         "name,rows,dim,reach_0,miss_0,reach_2,miss_2\na,9,4,2,1,3,1\n",
         "t.csv:2: reach_1 is empty, but reach_2 is given"},
        {"negative misses", "name,rows,dim,reach_0,miss_0\na,9,4,2,-1\n",
         "t.csv:2: miss_0 '-1' is not a number from 0 to 1000000000000000000"},
        {"reach of more than all rows",
         "name,rows,dim,reach_0,miss_0\na,9,4,10,1\n",
         "t.csv:2: reach_0 10 and miss_0 1 are impossible: reach is at most "
         "the "
         "rows, misses never grow, and reach grows by 2^k times a number "
         "between two successive misses"},
        {"misses that grow",
         "name,rows,dim,reach_0,miss_0,reach_1,miss_1\na,9,4,2,1,3,2\n",
         "t.csv:2: reach_1 3 and miss_1 2 are impossible after reach_0 2 and "
         "miss_0 1: reach is at most the rows, misses never grow, and reach "
         "grows by 2^k times a number between two successive misses"},
    };

    are_refused(cases, sizeof(cases) / sizeof(cases[0]));
}

static void test_refused(void)
{
    static const struct refusal cases[] = {
        {"an empty file", "", "t.csv:1: no header line and no tables"},
        {"comments only", "# a\n\n# b",
         "t.csv:3: no header line and no tables"},
        {"no tables", "name,rows,dim\n", "t.csv:2: no tables after the header"},
        {"no name", "rows,dim\n1,4\n",
         "t.csv:1: the header has no column "
         "'name'"},
        {"another case", "Name,rows,dim\na,4,4\n",
         "t.csv:1: the header has no column 'name'; 'tables import' with "
         "'--columns name=Name' takes it"},
        {"one column", "name;rows;dim\na;1;4\n",
         "t.csv:1: the header has no column 'name', only one column; fields "
         "are separated by commas"},
        {"no rows", "# list\nname,dim\na,4\n",
         "t.csv:2: the header has no column 'num_embeddings' (nor 'rows' nor "
         "'hash_size')"},
        {"no dim", "name,rows\na,4\n",
         "t.csv:1: the header has no column 'dim' (nor 'embedding_dim'), and "
         "no option '--dim D' sets the width"},
        {"column twice", "name,rows,dim,rows\na,1,4,1\n",
         "t.csv:1: the header has column 'rows' twice"},
        {"two aliases", "name,rows,dim,hash_size\na,1,4,1\n",
         "t.csv:1: the header's columns 'rows' and 'hash_size' mean the same"},
        {"some bin columns", "name,rows,dim,bin_0,bin_2\na,1,4,1,0\n",
         "t.csv:1: the header has no column 'bin_16', but has other bins"},
        {"too few fields", "name,rows,dim\na,1\n",
         "t.csv:2: 2 fields, but the header has 3"},
        {"too many fields", "name,rows,dim\na,1,4,\n",
         "t.csv:2: 4 fields, but the header has 3"},
        {"empty name", "name,rows,dim\n,1,4\n", "t.csv:2: the name is empty"},
        {"control in a name", "name,rows,dim\n\"a\nb\",1,4\n",
         "t.csv:2: name 'a\\u000ab' is not printable text"},
        {"empty rows", "name,rows,dim\na,,4\n", "t.csv:2: rows is empty"},
        {"rows 0", "name,rows,dim\na,0,4\n",
         "t.csv:2: rows '0' is not a whole number from 1 to "
         "9223372036854775807"},
        {"rows negative", "name,hash_size,dim\na,-1,4\n",
         "t.csv:2: hash_size '-1' is not a whole number from 1 to "
         "9223372036854775807"},
        {"rows too large", "name,rows,dim\na,9223372036854775808,4\n",
         "t.csv:2: rows '9223372036854775808' is not a whole number from 1 to "
         "9223372036854775807"},
        {"rows fractional", "name,rows,dim\na,1.5,4\n",
         "t.csv:2: rows '1.5' is not a whole number from 1 to "
         "9223372036854775807"},
        {"dim 0", "name,rows,dim\na,1,0\n",
         "t.csv:2: dim '0' is not a whole number from 1 to 1048576"},
        {"dim too large", "name,rows,embedding_dim\na,1,1048577\n",
         "t.csv:2: embedding_dim '1048577' is not a whole number from 1 to "
         "1048576"},
        {"dim empty", "name,rows,dim\na,1,\n",
         "t.csv:2: dim is empty; option '--dim D' fills empty cells"},
        {"pooling nan", "name,rows,dim,hotness\na,1,4,nan\n",
         "t.csv:2: hotness 'nan' is not a number from 0 to 1000000"},
        {"pooling inf", "name,rows,dim,pooling_factor\na,1,4,inf\n",
         "t.csv:2: pooling_factor 'inf' is not a number from 0 to 1000000"},
        {"pooling overflow", "name,rows,dim,pooling_factor\na,1,4,1e999\n",
         "t.csv:2: pooling_factor '1e999' is not a number from 0 to 1000000"},
        {"pooling negative", "name,rows,dim,pooling_factor\na,1,4,-0.5\n",
         "t.csv:2: pooling_factor '-0.5' is not a number from 0 to 1000000"},
        {"pooling hexadecimal", "name,rows,dim,multi_hot\na,1,4,0x10\n",
         "t.csv:2: multi_hot '0x10' is not a number from 0 to 1000000"},
        {"pooling too large", "name,rows,dim,pooling_factor\na,1,4,1000001\n",
         "t.csv:2: pooling_factor '1000001' is not a number from 0 to "
         "1000000"},
        {"outputs negative", "name,rows,dim,num_features\na,1,4,-1\n",
         "t.csv:2: num_features '-1' is not a number from 0 to 1000000"},
        {"zipf negative", "name,rows,dim,zipf_alpha\na,1,4,-1\n",
         "t.csv:2: zipf_alpha '-1' is not a number from 0 to 100"},
        {"bad dedup", "name,rows,dim,dedup\na,1,4,0\n",
         "t.csv:2: dedup '0' is not a number from 1e-06 to 1"},
        {"bad order", "name,rows,dim,row_order\na,1,4,random\n",
         "t.csv:2: row_order 'random' is not hashed, frequency or uniform"},
        {"bad output", "name,rows,dim,output\na,1,4,mean\n",
         "t.csv:2: output 'mean' is not pooled or sequence"},
        {"bad precision", "name,rows,dim,precision\na,1,4,FP8\n",
         "t.csv:2: precision 'FP8' is not fp32, fp16, bf16 or int8"},
        {"bad comm precision", "name,rows,dim,comm_precision\na,1,4,fp8\n",
         "t.csv:2: comm_precision 'fp8' is not fp32, fp16, bf16 or int8"},
        {"bad optimizer", "name,rows,dim,optimizer\na,1,4,magic\n",
         "t.csv:2: optimizer 'magic' is not sgd, rowwise_adagrad, adagrad, "
         "adam, adama, lamb, partial_rowwise_adam or partial_rowwise_lamb"},
        {"bad sharding", "name,rows,dim,sharding\na,1,4,table|diagonal\n",
         "t.csv:2: sharding 'table|diagonal' is not a list of table, column, "
         "row, grid and replicate, separated by '|'"},
        {"sharding ends in |", "name,rows,dim,sharding\na,1,4,table|\n",
         "t.csv:2: sharding 'table|' is not a list of table, column, row, grid "
         "and replicate, separated by '|'"},
        {"bad device", "name,rows,dim,device\na,1,4,-1\n",
         "t.csv:2: device '-1' is not a whole number from 0 to 1048575"},
        {"control in a group", "name,rows,dim,group\na,1,4,\"\x1b[2J\"\n",
         "t.csv:2: group '\\u001b[2J' is not printable text"},
        {"bin above 1", BINS_HEAD "a,1,4,1,1.5,0,0" ZEROS_14 "\n",
         "t.csv:2: bin_0 '1.5' is not a number from 0 to 1"},
        {"bin empty", BINS_HEAD "a,1,4,1,1,,0" ZEROS_14 "\n",
         "t.csv:2: bin_1 is empty, but other bins are given"},
        {"bins do not add up", BINS_HEAD "a,1,4,1,0.5,0.25,0" ZEROS_14 "\n",
         "t.csv:2: the bins add up to 0.75, not to 1"},
        {"bins zero with look-ups", BINS_HEAD "a,1,4,2,0,0,0" ZEROS_14 "\n",
         "t.csv:2: all bins are 0, but the pooling factor is 2"},
        {"one name twice", "name,rows,dim\n\na,1,4\nb,1,4\n# c\n\"a\",2,8\n",
         "t.csv:6: the name 'a' is already in line 3"},
        {"quote not closed", "name,rows,dim\na,1,4\n\"b,1,4\nc,1,4\n",
         "t.csv:3: a quoted field is not closed"},
        {"text after a quote", "name,rows,dim\n\"a\"b,1,4\n",
         "t.csv:2: text after the closing quote of a field"},
        {"quote inside", "name,rows,dim\na\"b\",1,4\n",
         "t.csv:2: a quote inside a field that does not begin with one"},
        {"lone carriage return", "name,rows,dim\ra,1,4\r",
         "t.csv:1: a carriage return inside a line"},
        {"not UTF-8", "name,rows,dim\na,1,4\n\xff,1,4\n", "t.csv:3: not UTF-8"},
        {"UTF-16", "\xff\xfen,r\n", "t.csv:1: not UTF-8"},
        {"a long cell",
         "name,rows,dim\na,0123456789012345678901234567890123456789"
         "0123456789012345678901234567890123456789,4\n",
         "t.csv:2: rows '01234567890123456789012345678901234567890123456789"
         "0123456789...' is not a whole number from 1 to "
         "9223372036854775807"},
    };

    are_refused(cases, sizeof(cases) / sizeof(cases[0]));
    is_i64(read_bytes("name,rows,dim\na,1,4\nb\0,1,4\n", 28, 0), -1, "NUL");
    is_str(err.msg, "t.csv:3: a NUL byte, so not a text file", "NUL");
}

static void test_every_column(void)
{
    const struct table *t;

    is_i64(read_text("group,device,dedup,row_order,rows_over,sharding,zipf_"
                     "alpha,optimizer,comm_"
                     "precision"
                     ",precision,output,num_outputs,pooling_factor,dim,"
                     "num_embeddings,name\n"
                     "g,3,0.3,uniform,host,table|row,0.5,adam,int8,bf16,"
                     "sequence,2.5,80.25,"
                     "12,"
                     "5000000000,user/id\n",
                     0),
           0, "every column, in another order");
    t = table(0);
    is_str(t->name, "user/id", "name");
    is_i64((int64_t)t->num_embeddings, 5000000000, "rows beyond 32 bits");
    is_i64(t->dim, 12, "dim");
    is_near(t->pooling_factor, 80.25, 0, "pooling factor");
    is_near(t->num_outputs, 2.5, 0, "outputs");
    is_i64(t->output, OUTPUT_SEQUENCE, "output");
    is_i64(t->precision, PRECISION_BF16, "precision");
    is_i64(t->comm_precision, PRECISION_INT8, "comm precision");
    is_i64(t->optimizer, OPTIMIZER_ADAM, "optimizer");
    is_near(t->zipf_alpha, 0.5, 0, "zipf alpha");
    ok(!t->has_bins && !t->skew_assumed, "the skew is given, not by bins");
    is_i64(t->kinds, SHARD_TABLE | SHARD_ROW, "kinds");
    is_near(t->dedup, 0.3, 0, "dedup");
    is_i64(t->row_order, ROW_ORDER_UNIFORM, "order of rows");
    is_i64(t->rows_over, ROWS_OVER_HOST, "what rows are cut over");
    is_i64(t->device, 3, "pin");
    is_str(t->group, "g", "group");
    is_str(list.source, "t.csv", "source");
    ok(!warnings.data, "nothing to warn of");
}

static void test_defaults(void)
{
    struct table plain;

    is_i64(read_text("name,rows,dim,pooling_factor,num_outputs,output,"
                     "precision,comm_precision,optimizer,zipf_alpha,sharding,"
                     "device,group," BINS_HEADER "\n"
                     "a,7,8,1,,,,,,,,,,,,,,,,,,,,,,,,,,\n",
                     0),
           0, "empty cells");
    table_init(&plain);
    plain.name = table(0)->name;
    plain.num_embeddings = 7;
    plain.dim = 8;
    plain.pooling_factor = 1;
    ok(!memcmp(&plain, table(0), sizeof(plain)), "empty cells mean defaults");
    ok(!warnings.data, "nothing to warn of");

    is_i64(read_text("name,rows\na,7\n", 16), 0, "absent columns");
    plain.name = table(0)->name;
    plain.dim = 16;
    ok(!memcmp(&plain, table(0), sizeof(plain)), "so do absent columns");
    pooling = 0;
    is_i64(read_text("name,rows\na,7\n", 16), -1, "lookups are needed");
    is_str(err.msg,
           "t.csv:1: the header has no column 'pooling_factor' (nor 'hotness' "
           "nor 'multi_hot'), and no option '--pooling P' sets the lookups per "
           "sample",
           "an option can give them");
    is_i64(read_text("name,rows,dim,pooling_factor\na,1,4,\n", 0), -1,
           "in each table");
    is_str(err.msg,
           "t.csv:2: pooling_factor is empty; option '--pooling P' fills empty "
           "cells",
           "an option fills empty cells");
    pooling = 1;

    is_i64(read_text("name,rows,dim,optimizer,precision\n"
                     "a,1141730.0,16.00,EXACT_row_wise_adagrad,FP16\n"
                     "b,3,4,EmbOptimType.PARTIAL_ROWWISE_ADAM,\n"
                     "c,3,4,exact_sgd,\nd,3,4,Adam,\n",
                     0),
           0, "names as other programs write them");
    ok(table(0)->num_embeddings == 1141730 && table(0)->dim == 16 &&
           table(0)->optimizer == OPTIMIZER_ROWWISE_ADAGRAD &&
           table(0)->precision == PRECISION_FP16 &&
           table(1)->optimizer == OPTIMIZER_PARTIAL_ROWWISE_ADAM &&
           table(2)->optimizer == OPTIMIZER_SGD &&
           table(3)->optimizer == OPTIMIZER_ADAM,
       "are what they mean");

    is_i64(read_text("name,rows,dim,hotness\na,7,,1\nb,7,4,1\n", 32), 0,
           "--dim fills empty cells");
    ok(table(0)->dim == 32 && table(1)->dim == 4, "and only those");
}

static void test_bins(void)
{
    is_i64(read_text(BINS_HEAD "a,9,4,2,0.5,0.25,0.2493" ZEROS_14 "\n"
                               "b,9,4,0,0,0,0" ZEROS_14 "\n"
                               "c,9,4,2,,,,,,,,,,,,,,,,,\n",
                     0),
           0, "bins");
    ok(table(0)->has_bins && !table(0)->skew_assumed, "bins are given");
    is_near(table(0)->bins[2], 0.2493, 0, "bins stay as they are");
    ok(table(1)->has_bins, "bins of zeros go with pooling 0");
    ok(!table(2)->has_bins && table(2)->skew_assumed, "a row without bins");
    is_near(table(2)->zipf_alpha, DEFAULT_ZIPF_ALPHA, 0, "has the default");
}

static void test_unknown_columns(void)
{
    is_i64(read_text("#\n,name,rows,dim,hotness,Dim,cost\n1,a,2,4,1,x,y\n", 0),
           0, "unknown columns are left out");
    is_str(warnings.data,
           "t.csv:2: unknown columns are ignored: '', 'Dim', 'cost'\n",
           "and named in one sentence");
    is_i64(read_text("name,rows,dim,hotness,a,b,c,d,e,f,g,h,i,j\n"
                     "a,2,4,1,,,,,,,,,,\n",
                     0),
           0, "many unknown columns");
    is_str(warnings.data,
           "t.csv:1: unknown columns are ignored: 'a', 'b', 'c', 'd', 'e', "
           "'f', 'g', 'h' and 2 more\n",
           "are counted");
}

static void test_dialects(void)
{
    static const struct {
        const char *name, *text;
    } cases[] = {
        {"LF", "name,rows,dim\na,1,4\nb,2,8\n"},
        {"CRLF", "name,rows,dim\r\na,1,4\r\nb,2,8\r\n"},
        {"no line end at the end", "name,rows,dim\na,1,4\nb,2,8"},
        {"CR at the end", "name,rows,dim\r\na,1,4\r\nb,2,8\r"},
        {"byte order mark", "\xef\xbb\xbfname,rows,dim\na,1,4\nb,2,8\n"},
        {"mark, then a comment",
         "\xef\xbb\xbf# x\nname,rows,dim\na,1,4\nb,2,8"},
        {"comments and blank lines",
         "\n# \"x\n\nname,rows,dim\n \t\r\na,1,4\n  # y,1,4\nb,2,8\n\n#"},
        {"quotes", "\"name\",\"rows\",dim\n\"a\",\"1\",4\n\"b\",2,\"8\"\n"},
        {"blanks around fields",
         " name , rows\t,dim \n  a, 1,4\t\n \"b\" , 2 ,\"8\" \r\n"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (!ok(!read_text(cases[i].text, 0), "%s is read", cases[i].name)) {
            printf("# %s\n", err.msg);
            continue;
        }
        ok(list.n_tables == 2 && !strcmp(table(0)->name, "a") &&
               !strcmp(table(1)->name, "b") && table(0)->num_embeddings == 1 &&
               table(1)->num_embeddings == 2 && table(0)->dim == 4 &&
               table(1)->dim == 8,
           "%s is understood", cases[i].name);
    }
    is_i64(read_text("name,rows,dim\n\" a, \"\"b\"\" #\",1,4\n#x,1,4\n"
                     "\"#x\",1,4\n\xc3\xa4,1,4\n",
                     0),
           0, "names of any kind");
    is_i64((int64_t)list.n_tables, 3, "a line that starts with # is no table");
    is_str(table(0)->name, " a, \"b\" #", "commas, quotes, blanks");
    is_str(table(1)->name, "#x", "a quoted #");
    is_str(table(2)->name, "\xc3\xa4", "UTF-8");
}

/* A list of 100,000 tables; the time is printed, not checked. */
static void test_long_list(void)
{
    struct buf text = {0};
    clock_t start;

    buf_printf(&text, "name,rows,dim,pooling_factor\n");
    for (int i = 0; i < 100000; i++)
        buf_printf(&text, "model.sparse.table_%d,%d,64,1.5\n", i, i + 1);
    start = clock();
    is_i64(read_bytes(text.data, text.len, 0), 0, "100,000 tables");
    printf("# 100,000 tables in %.0f ms\n",
           (double)(clock() - start) / CLOCKS_PER_SEC * 1e3);
    is_i64((int64_t)list.n_tables, 100000, "all of them");
    is_str(table(99999)->name, "model.sparse.table_99999", "the last one");
    buf_printf(&text, "model.sparse.table_0,1,64,1.5\n");
    is_i64(read_bytes(text.data, text.len, 0), -1, "and one twice");
    is_str(err.msg,
           "t.csv:100002: the name 'model.sparse.table_0' is already in line 2",
           "both lines are named");
    buf_release(&text);
}

/* Returns the list as CSV text. */
static const char *written(void)
{
    static struct buf text;

    buf_release(&text);
    tables_to_csv(&text, &list);
    return text.data;
}

/* Only columns with information are written, and cells with default values are
 * empty. */
static void test_written(void)
{
    is_i64(read_text("dim,rows,name,hotness,num_outputs\n4,1,a,1.5,1\n"
                     "8,2,\" b,\"\"\",1e-7,1\n",
                     0),
           0, "a plain list");
    is_str(written(),
           "name,num_embeddings,dim,pooling_factor\na,1,4,1.5\n"
           "\" b,\"\"\",2,8,1e-07\n",
           "is written with four columns");
    is_i64(read_text("name,rows,dim,hotness,zipf_alpha,sharding,device,"
                     "num_outputs,output,precision,comm_precision,optimizer,"
                     "row_order,dedup,rows_over,group\n"
                     "a,9223372036854775807,4,0.1,0,row|table,3,2,sequence,"
                     "fp16,int8,sgd,frequency,0.3333333333333333,all,\"#g\"\n"
                     "b,1,4,1,,,,,,,,,,,,\n",
                     0),
           0, "one with every column");
    is_str(written(),
           "name,num_embeddings,dim,pooling_factor,zipf_alpha,sharding,device,"
           "num_outputs,output,precision,comm_precision,optimizer,row_order,"
           "dedup,rows_over,group\n"
           "a,9223372036854775807,4,0.1,0,table|row,3,2,sequence,fp16,int8,"
           "sgd,frequency,0.3333333333333333,all,\"#g\"\n"
           "b,1,4,1,,,,,,,,,,,,\n",
           "is written with all, defaults empty");
    is_i64(read_text(BINS_HEAD "a,1,4,1,0.5,0.25,0.25" ZEROS_14 "\n"
                               "b,1,4,1,,,,,,,,,,,,,,,,,\n",
                     0),
           0, "and one with bins");
    is_str(written(),
           "name,num_embeddings,dim,pooling_factor," BINS_HEADER "\n"
           "a,1,4,1,0.5,0.25,0.25" ZEROS_14 "\n"
           "b,1,4,1,,,,,,,,,,,,,,,,,\n",
           "is written with them");
}

/* Imports a list from another program; `columns` gives its column names. */
static int import_text(const char *text, const char *columns)
{
    const struct tables_options options = {.pooling = 1,
                                           .warn = collect,
                                           .warn_ctx = &warnings,
                                           .columns = columns};

    arena_release(&arena);
    buf_release(&warnings);
    memset(&err, 0, sizeof(err));
    return tables_from_csv(&list, text, strlen(text), "t.csv", &options, &arena,
                           &err);
}

static void test_asked_columns(void)
{
    static const struct {
        const char *name, *text, *columns, *want;
    } cases[] = {
        {"a name that ends so", "my_name,rows,dim\n", "",
         "t.csv:1: the header has no column for name; its columns are "
         "'my_name', 'rows', 'dim'; add --columns 'name=my_name'"},
        {"a name that begins so", "name,number,dim\n", "",
         "t.csv:1: the header has no column for num_embeddings; its columns "
         "are 'name', 'number', 'dim'; add --columns 'num_embeddings=number'"},
        {"nothing like it", "name,rows,wide\n", "",
         "t.csv:1: the header has no column for dim; its columns are 'name', "
         "'rows', 'wide'; add --columns 'dim=NAME'"},
        {"two of one meaning", "name,vocab,cardinality,dim\n", "",
         "t.csv:1: the header's columns 'vocab' and 'cardinality' mean the "
         "same; choose one with '--columns num_embeddings=NAME'"},
        {"a mistyped one", "name,rows,width\n", "dim=widht",
         "t.csv:1: the header has no column 'widht', which '--columns' asks "
         "for; its columns are 'name', 'rows', 'width'; did you mean "
         "'--columns dim=width'"},
        {"a bin that is not there", "name,rows,dim\n", "bin_3=b3",
         "t.csv:1: the header has no column 'b3', which '--columns' asks for"},
        {"no column of a list", "name,rows,dim\n", "rowz=rows",
         "option '--columns' takes COLUMN=NAME,... with each COLUMN of "
         "neuroshard-tables(5) once, as in name=table_name,rows=num_rows; "
         "'rowz' is no such column"},
        {"no pair", "name,rows,dim\n", "rows",
         "option '--columns' takes COLUMN=NAME,... with each COLUMN of "
         "neuroshard-tables(5) once, as in name=table_name,rows=num_rows; "
         "'rows' is no such column"},
        {"one without a name", "name,rows,dim\n", "rows=",
         "option '--columns' takes COLUMN=NAME,... with each COLUMN of "
         "neuroshard-tables(5) once, as in name=table_name,rows=num_rows; "
         "'rows' is without a name"},
        {"one by two names", "name,rows,dim\n", "rows=a,hash_size=b",
         "option '--columns' takes COLUMN=NAME,... with each COLUMN of "
         "neuroshard-tables(5) once, as in name=table_name,rows=num_rows; "
         "'hash_size' is given twice"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(import_text(cases[i].text, cases[i].columns) ? err.msg : "read",
               cases[i].want, cases[i].name);
    ok(!import_text("id,rows,n,dim,avg\na,7,8,4,2\n",
                    "name=id,rows=n,hotness=avg"),
       "other names are read %s", err.msg);
    ok(!strcmp(table(0)->name, "a") && table(0)->num_embeddings == 8 &&
           table(0)->pooling_factor == 2,
       "also where the column's own name is there");
    is_str(warnings.data, "t.csv:1: unknown columns are ignored: 'rows'\n",
           "which is left out");
}

/* Every shipped table list can be read. */
static void test_shipped_lists(void)
{
    DIR *dir = opendir("data/tables");
    struct tables_options options = {0};
    struct dirent *entry;
    int n_lists = 0;

    while (dir && (entry = readdir(dir))) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[512];

        if (!dot || strcmp(dot, ".csv"))
            continue;
        snprintf(path, sizeof(path), "data/tables/%s", entry->d_name);
        if (!ok(!tables_load(&list, path, &options, &arena, &err), "%s", path))
            printf("# %s\n", err.msg);
        n_lists++;
    }
    if (dir)
        closedir(dir);
    ok(n_lists > 0, "there are lists in data/tables");
}

/* Files outside the repository: lists with other columns, and files that are
 * not lists. */
static void test_shared_files(void)
{
    static const struct {
        const char *file, *want;
        uint32_t dim;
        size_t n_tables;
    } cases[] = {
        {"dlrm_t856_calibrated.csv", NULL, 64, 856},
        {"dlrm_t856_calibrated.csv",
         ":5: dim is empty; option '--dim D' fills empty cells", 0, 0},
        {"meta_torchrec_1935.csv", NULL, 0, 1935},
        {"nvidia_synthetic_large_v3.csv", NULL, 0, 612},
        {"dlrm_t856_moments.json",
         ":2: table 'source': it must be an object with 'num_embeddings', "
         "'embedding_dim' and 'pooling_factor', or a number of rows, or [rows, "
         "dim]",
         64, 0},
        {"dlrm_datasets_locality.csv", ":1: the header has no column 'name'",
         64, 0},
        {"meta_torchrec_1935_published_plan.csv",
         ":3: the header has no column 'num_embeddings' (nor 'rows' nor "
         "'hash_size')",
         64, 0},
    };
    const char *shared = getenv("NEUROSHARD_SHARED");

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct tables_options options = {.dim = cases[i].dim};
        char path[512], want[1024];
        int rc;

        snprintf(path, sizeof(path), "%s/data/tables/%s",
                 shared ? shared : "../shared", cases[i].file);
        if (!file_exists(path)) {
            tap_skip(cases[i].file, "no ../shared");
            continue;
        }
        rc = tables_load(&list, path, &options, &arena, &err);
        snprintf(want, sizeof(want), "%s%s", path,
                 cases[i].want ? cases[i].want : "");
        if (cases[i].want)
            is_str(rc ? err.msg : "accepted", want, cases[i].file);
        else
            ok(!rc && list.n_tables == cases[i].n_tables, "%s is read",
               cases[i].file);
    }
}

static void test_load(void)
{
    struct tables_options options = {0};

    is_i64(tables_load(&list, "no/such.csv", &options, &arena, &err), -1,
           "no such file");
    is_i64(err.code, ERR_IO, "is ERR_IO");
}

/* A pin must name an existing device. */
static void test_pins(void)
{
    unsigned n_wrong = 0;

    for (uint32_t n = 1; n < 5; n++)
        for (uint32_t device = 0; device < 6; device++) {
            struct tables_options options = {
                .n_devices = n, .pooling = 1, .warn = collect};
            char text[64];
            int len = snprintf(text, sizeof text,
                               "name,rows,dim,device\na,1,4,%u\n", device);

            memset(&err, 0, sizeof(err));
            memset(&list, 0, sizeof(list));
            n_wrong +=
                tables_from_csv(&list, text, (size_t)len, "t.csv", &options,
                                &arena, &err) != (device < n ? 0 : -1);
        }
    is_i64(n_wrong, 0, "pins are to devices that there are");
    is_str(err.msg, "t.csv:2: device '5' is not a whole number from 0 to 3",
           "the error lists the existing devices");
}

int main(void)
{
    test_pins();
    test_refused();
    test_refused_reach();
    test_every_column();
    test_defaults();
    test_bins();
    test_unknown_columns();
    test_dialects();
    test_long_list();
    test_written();
    test_asked_columns();
    test_shipped_lists();
    test_shared_files();
    test_load();
    buf_release(&warnings);
    arena_release(&arena);
    return tap_done();
}
