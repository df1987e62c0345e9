/* SPDX-License-Identifier: MIT */
#include "core/product.h"

const char *const product_form_names[] = {
    "nn", "nt", "tn", "relu", "relu_gradient", NULL};

bool product_is_same(const struct product *x, const struct product *y)
{
    return x->type == y->type && x->form == y->form && x->m == y->m &&
           x->n == y->n && x->k == y->k && x->n_batch == y->n_batch;
}

double product_operations(const struct product *product)
{
    return 2.0 * product->m * product->n * product->k * product->n_batch;
}

double product_bytes(const struct product *product)
{
    const double m = product->m, n = product->n, k = product->k;

    return product->n_batch *
           ((m * k + k * n) * dense_type_bytes(product->type) +
            m * n * sizeof(float));
}

struct product dense_layer_product(const struct dense *dense,
                                   const struct dense_product *layer,
                                   enum dense_pass pass, uint32_t n_samples)
{
    const uint32_t in = (uint32_t)layer->in, out = (uint32_t)layer->out;

    switch (pass) {
    case DENSE_FORWARD:
        return (struct product){dense->type, PRODUCT_NT, n_samples, out, in, 1};
    case DENSE_INPUT_GRADIENT:
        return (struct product){dense->type, PRODUCT_NN, n_samples, in, out, 1};
    case DENSE_WEIGHT_GRADIENT:
    case N_DENSE_PASSES:
    default:
        return (struct product){dense->type, PRODUCT_TN, out, in, n_samples, 1};
    }
}

struct product dense_relu(enum product_form form, uint32_t n_samples,
                          uint32_t n_out)
{
    return (struct product){DENSE_TYPE_FP32, form, n_samples, n_out, 1, 1};
}

struct product dense_dot_product(const struct dense *dense,
                                 enum dense_pass pass, uint32_t n_samples)
{
    const uint32_t n = (uint32_t)dense->n_vectors, dim = dense->dim;

    if (pass == DENSE_FORWARD)
        return (struct product){dense->type, PRODUCT_NT, n, n, dim, n_samples};
    return (struct product){dense->type, PRODUCT_NN, n, dim, n, n_samples};
}

/* Appends a product unless the list has its shape. Returns the new length. */
static size_t add_shape(struct product *products, size_t n,
                        struct product product)
{
    for (size_t i = 0; i < n; i++)
        if (product_is_same(&products[i], &product))
            return n;
    products[n] = product;
    return n + 1;
}

size_t dense_products(struct product *products, const struct dense *dense,
                      uint32_t n_samples)
{
    size_t n = 0;

    for (uint32_t i = 0; i < dense->n_products; i++) {
        const struct dense_product *layer = &dense->products[i];

        for (int pass = 0; pass < N_DENSE_PASSES; pass++)
            if (pass != DENSE_INPUT_GRADIENT || layer->needs_input_gradient)
                n = add_shape(products, n,
                              dense_layer_product(dense, layer,
                                                  (enum dense_pass)pass,
                                                  n_samples));
    }
    for (uint32_t i = 0; i < dense->n_products; i++)
        for (int form = PRODUCT_RELU;
             dense->products[i].has_relu && form <= PRODUCT_RELU_GRADIENT;
             form++)
            n = add_shape(products, n,
                          dense_relu((enum product_form)form, n_samples,
                                     (uint32_t)dense->products[i].out));
    if (dense->interaction != INTERACTION_DOT)
        return n;
    n = add_shape(products, n,
                  dense_dot_product(dense, DENSE_FORWARD, n_samples));
    return add_shape(products, n,
                     dense_dot_product(dense, DENSE_INPUT_GRADIENT, n_samples));
}
