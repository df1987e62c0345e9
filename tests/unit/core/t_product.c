/* SPDX-License-Identifier: MIT */
#include "core/product.h"

#include "tests/tap.h"

/* Fits a dense part to 26 tables of this width. */
static struct dense read_fitted(const char *text, uint32_t dim)
{
    struct table tables[26];
    struct err err = {0};
    struct dense dense;

    for (size_t i = 0; i < 26; i++) {
        table_init(&tables[i]);
        tables[i].name = "t";
        tables[i].dim = dim;
    }
    if (dense_parse(&dense, text, strlen(text), &err) ||
        dense_fit(&dense, tables, 26, &err))
        ok(0, "%s: %s", text, err.msg);
    return dense;
}

static void is_product(const struct product *product, enum product_form form,
                       uint32_t m, uint32_t n, uint32_t k, uint32_t n_batch)
{
    const struct product want = {DENSE_TYPE_TF32, form, m, n, k, n_batch};

    ok(product_is_same(product, &want), "%s %u x %u x %u, %u times",
       product_form_names[product->form], product->m, product->n, product->k,
       product->n_batch);
}

/* Operations on elements are fp32. */
static void is_relu(const struct product *product, enum product_form form,
                    uint32_t m, uint32_t n)
{
    const struct product want = {DENSE_TYPE_FP32, form, m, n, 1, 1};

    ok(product_is_same(product, &want), "%s of %u x %u",
       product_form_names[product->form], product->m, product->n);
}

/* The step of a small model with products of all pairs of 27 vectors, which
 * give 27 * 26 / 2 + 64 = 415 values. */
static void test_step(void)
{
    const struct dense dense =
        read_fitted("bottom:13-64;interaction:dot;top:32-32-1;dtype:tf32", 64);
    struct product products[DENSE_MAX_SHAPES];
    const size_t n = dense_products(products, &dense, 100);

    is_i64((int64_t)n, 17, "products of different shapes");
    /* the dense features need no gradient */
    is_product(&products[0], PRODUCT_NT, 100, 64, 13, 1);
    is_product(&products[1], PRODUCT_TN, 64, 13, 100, 1);
    is_product(&products[2], PRODUCT_NT, 100, 32, 415, 1);
    is_product(&products[3], PRODUCT_NN, 100, 415, 32, 1);
    is_product(&products[4], PRODUCT_TN, 32, 415, 100, 1);
    is_product(&products[5], PRODUCT_NT, 100, 32, 32, 1);
    /* the last layer has no ReLU */
    is_relu(&products[11], PRODUCT_RELU, 100, 64);
    is_relu(&products[12], PRODUCT_RELU_GRADIENT, 100, 64);
    is_relu(&products[13], PRODUCT_RELU, 100, 32);
    is_relu(&products[14], PRODUCT_RELU_GRADIENT, 100, 32);
    is_product(&products[15], PRODUCT_NT, 27, 27, 64, 100);
    is_product(&products[16], PRODUCT_NN, 27, 64, 27, 100);
}

/* Two cross layers have equal shapes, which are listed once. */
static void test_repeated(void)
{
    const struct dense dense =
        read_fitted("interaction:dcn:2x8;top:1;dtype:tf32", 4);
    struct product products[DENSE_MAX_SHAPES];

    is_i64((int64_t)dense.n_products, 5, "two cross layers and a top layer");
    is_i64((int64_t)dense_products(products, &dense, 10), 9,
           "shapes of three layers in three passes");
}

static void test_figures(void)
{
    struct product product = {DENSE_TYPE_BF16, PRODUCT_NN, 2, 3, 5, 7};

    is_near(product_operations(&product), 2 * 2 * 3 * 5 * 7, 0, "operations");
    is_near(product_bytes(&product), 7 * (2 * (2 * 5 + 5 * 3) + 4 * 2 * 3), 0,
            "bytes in bf16, with an fp32 result");
    product.type = DENSE_TYPE_TF32;
    is_near(product_bytes(&product), 7 * 4 * (2 * 5 + 5 * 3 + 2 * 3), 0,
            "bytes in tf32");
}

int main(void)
{
    test_step();
    test_repeated();
    test_figures();
    return tap_done();
}
