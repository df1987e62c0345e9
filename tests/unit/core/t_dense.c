/* SPDX-License-Identifier: MIT */
#include "core/dense.h"

#include "tests/tap.h"

#define MOST_TABLES 64

static struct table tables[MOST_TABLES];
static struct err err;

/* Makes n tables of this width and returns them. */
static const struct table *equal_tables(size_t n, uint32_t dim)
{
    static const char *const names[] = {"a", "b", "c"};

    for (size_t i = 0; i < n; i++) {
        table_init(&tables[i]);
        tables[i].name = names[i < 3 ? i : 2];
        tables[i].dim = dim;
    }
    return tables;
}

static void parse(struct dense *dense, const char *text)
{
    err = (struct err){0};
    if (dense_parse(dense, text, strlen(text), &err))
        ok(0, "'%s' is read: %s", text, err.msg);
}

/* Widths and millions of parameters, as the sources of the models give them or
 * as their layers add up (core/dense.c). The synthetic models have tables with
 * this many columns in all. */
static void test_models(void)
{
    static const struct {
        const char *name;
        uint32_t n_tables, dim;
        uint64_t width;
        double millions;
    } cases[] = {
        {"dcnv2", 26, 128, 3456, 16.03},
        {"dlrm", 26, 128, 479, 2.37},
        {"synthetic-tiny", 42, 16, 682, 0.21},
        {"synthetic-small", 1, 2512, 2522, 1.46},
        {"synthetic-medium", 1, 17280, 2494, 3.24},
        {"synthetic-large", 1, 36608, 4676, 12.3},
        {"synthetic-jumbo", 1, 36960, 2048, 6.95},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct table *list =
            equal_tables(cases[i].n_tables, cases[i].dim);
        struct dense dense;

        parse(&dense, cases[i].name);
        if (dense_fit(&dense, list, cases[i].n_tables, &err))
            ok(0, "%s", err.msg);
        is_i64((int64_t)dense.width, (int64_t)cases[i].width, cases[i].name);
        is_near((double)dense.n_parameters / 1e6, cases[i].millions,
                0.011 * cases[i].millions, "its parameters");
        is_str(dense_model_names[i], cases[i].name, "its place in the list");
    }
    ok(!dense_model_names[sizeof cases / sizeof *cases], "all models");
}

static void test_text(void)
{
    static const struct {
        const char *text, *printed;
    } cases[] = {
        {"dcnv2", "bottom:13-512-256-128;interaction:dcn:3x512;"
                  "top:1024-1024-512-256-1;dtype:fp32"},
        {"dlrm;dtype:bf16;kernels:fused",
         "bottom:13-512-256-128;interaction:dot;top:1024-1024-512-256-1;"
         "dtype:bf16;kernels:fused"},
        {"top:1; interaction:pool:7", "interaction:pool:7;top:1;dtype:fp32"},
        {"dcnv2;interaction:cat;grads:fp16;bottom:5",
         "bottom:5;interaction:cat;top:1024-1024-512-256-1;dtype:fp32;"
         "grads:fp16"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        struct dense dense;

        parse(&dense, cases[i].text);
        dense_print(&dense, &out);
        is_str(out.data, cases[i].printed, cases[i].text);
        buf_release(&out);
    }
}

static void test_bad_text(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "the text is empty"},
        {"dcnv3",
         "'dcnv3' is neither a dense model (dcnv2, dlrm, synthetic-tiny, "
         "synthetic-small, synthetic-medium, synthetic-large, "
         "synthetic-jumbo) nor a part such as 'bottom:13-512-128', "
         "'interaction:dot', 'top:512-1' or 'dtype:fp32'"},
        {"interaction:cat", "'top' is missing"},
        {"top:1", "'interaction' is missing"},
        {"top:1;top:1;interaction:cat", "'top' is given twice"},
        {"interaction:mul;top:1", "interaction is one of cat, dot, "
                                  "pool:STRIDE, dcn:LAYERSxRANK, not 'mul'"},
        {"interaction:dot:2;top:1", "interaction:dot takes no number"},
        {"interaction:pool;top:1", "interaction:pool takes whole numbers from "
                                   "1 to 1000000, not ''"},
        {"interaction:dcn:3x;top:1", "the rank of interaction:dcn takes whole "
                                     "numbers from 1 to 1000000, not ''"},
        {"interaction:dcn:99x1;top:1",
         "the number of layers of interaction:dcn takes whole numbers from 1 "
         "to 32, not '99'"},
        {"interaction:cat;top:8-0",
         "top takes whole numbers from 1 to 1000000, not '0'"},
        {"interaction:cat;top:8-",
         "top takes whole numbers from 1 to 1000000, not ''"},
        {"dcnv2;dtype:fp8",
         "dtype is one of fp32, tf32, fp16, bf16, not 'fp8'"},
        {"dcnv2;grads:tf32", "grads is one of fp32, fp16, bf16, not 'tf32'"},
        {"dcnv2;kernels:slow", "kernels is one of eager, fused, not 'slow'"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dense dense;

        err = (struct err){0};
        ok(dense_parse(&dense, cases[i].text, strlen(cases[i].text), &err) &&
               err.code == ERR_INPUT,
           "'%s' is refused", cases[i].text);
        is_str(err.msg, cases[i].message, "its message");
    }
}

static void refuse(const char *text, size_t n_tables, const char *message)
{
    struct dense dense;

    parse(&dense, text);
    ok(dense_fit(&dense, tables, n_tables, &err), "refused");
    is_str(err.msg, message, "its message");
}

static void test_misfits(void)
{
    equal_tables(3, 64);
    refuse("dlrm", 3,
           "interaction 'dot' needs bottom layers that end with the tables' "
           "64 columns, not with 128");
    tables[1].dim = 32;
    refuse("dlrm", 3,
           "interaction 'dot' needs tables of one width, but 'a' has 64 "
           "columns and 'b' 32");
    equal_tables(3, 128);
    tables[2].num_outputs = 1.5;
    refuse("dlrm", 3,
           "interaction 'dot' needs whole numbers of vectors, but "
           "table 'c' gives 1.5 a sample");
    tables[1].output = OUTPUT_SEQUENCE;
    refuse("dcnv2", 3,
           "table 'b' gives a sequence, which the dense part cannot join: "
           "only pooled tables have a fixed number of vectors");
    refuse("interaction:cat;top:1", 0, "the interaction has no input");
}

/* The first bucket closes at 1 MiB, the others at 25 MiB, after whole
 * tensors. */
static void test_buckets(void)
{
    struct dense_bucket buckets[DENSE_MAX_BUCKETS];
    struct dense dense;
    uint64_t n_parameters = 0;
    uint32_t n;

    equal_tables(26, 128);
    parse(&dense, "dcnv2");
    if (dense_fit(&dense, tables, 26, &err))
        ok(0, "%s", err.msg);
    n = dense_buckets(&dense, buckets);
    is_i64(n, 4, "buckets");
    /* layers 256-1, 512-256 and 1024-512 */
    is_i64((int64_t)buckets[0].n_parameters,
           256 + 1 + 512 * 256 + 256 + 1024 * 512 + 512, "first bucket");
    is_i64(buckets[0].product, dense.top_begin + 2, "its last product");
    for (uint32_t i = 0; i < n; i++) {
        n_parameters += buckets[i].n_parameters;
        ok(!i || i == n - 1 ||
               buckets[i].n_parameters * sizeof(float) >= DENSE_BUCKET_BYTES,
           "bucket %u is full", i);
    }
    is_i64((int64_t)n_parameters, (int64_t)dense.n_parameters,
           "all parameters are in buckets");
    is_i64(buckets[n - 1].product, 0, "the first layer comes last");
}

static void test_memory(void)
{
    struct dense_memory memory;
    struct dense dense;
    uint64_t n;

    equal_tables(26, 128);
    parse(&dense, "dlrm");
    if (dense_fit(&dense, tables, 26, &err))
        ok(0, "%s", err.msg);
    n = dense.n_parameters;
    memory = dense_memory(&dense, 100, 2);
    is_i64((int64_t)memory.weights, (int64_t)(4 * n), "fp32 weights");
    is_i64((int64_t)memory.masters, 0, "no masters");
    is_i64((int64_t)memory.gradients, (int64_t)(4 * n), "gradients");
    is_i64((int64_t)memory.optimizer, (int64_t)(8 * n), "Adam");
    /* inputs of bottom and top layers, output of the bottom layers, vectors,
     * logit and label */
    is_i64((int64_t)memory.activations,
           400 * (13 + 512 + 256 + 479 + 1024 + 1024 + 512 + 256 + 128 +
                  27 * 128 + 2),
           "activations");
    is_i64((int64_t)dense_memory_total(&memory),
           (int64_t)(16 * n + memory.activations), "all");
    dense.type = DENSE_TYPE_BF16;
    dense.gradients = DENSE_TYPE_BF16;
    memory = dense_memory(&dense, 100, 1);
    is_i64((int64_t)memory.activations,
           200 * (13 + 512 + 256 + 479 + 1024 + 1024 + 512 + 256 + 128 +
                  2 * 27 * 128) +
               800,
           "bf16 activations have the vectors twice");
    is_i64((int64_t)memory.weights, (int64_t)(2 * n), "bf16 weights");
    is_i64((int64_t)memory.masters, (int64_t)(4 * n), "and their masters");
    is_i64((int64_t)memory.gradients, (int64_t)(6 * n),
           "gradients and their compressed copy");
    is_i64((int64_t)memory.optimizer, (int64_t)(4 * n), "Adagrad");
}

int main(void)
{
    test_models();
    test_text();
    test_bad_text();
    test_misfits();
    test_buckets();
    test_memory();
    return tap_done();
}
