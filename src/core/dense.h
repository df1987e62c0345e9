/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_DENSE_H
#define NEUROSHARD_CORE_DENSE_H

#include "base/err.h"
#include "base/mem.h"
#include "core/table.h"

/*
 * The dense part of a model: the layers between the pooled vectors of the
 * tables and the prediction. Every GPU has a copy of it and trains the copy on
 * its own share of the batch (DDP).
 *
 *     dense features -> bottom layers -+
 *                                      +-> interaction -> top layers
 *     pooled vectors of the tables ----+
 *
 * A text describes it. Its parts are separated by ';' and may have any order.
 * Blanks may follow a separator.
 *
 *     bottom:13-512-256-128    13 dense features of a sample, and three layers
 *                              with a ReLU each. "bottom:13" has no layers: the
 *                              features go into the interaction unchanged.
 *                              Without this part there are no dense features.
 *     interaction:cat          all vectors, one after the other
 *     interaction:dot          products of all pairs of vectors, and the output
 *                              of the bottom layers
 *     interaction:pool:STRIDE  means of STRIDE consecutive values of the pooled
 *                              vectors, and the output of the bottom layers
 *     interaction:dcn:NxRANK   like cat, and then N cross layers of this rank
 *     top:1024-512-1           output widths of the top layers. Every layer
 *                              before the last has a ReLU.
 *     dtype:fp32|tf32|fp16|bf16
 *                              type of the matrix products; default: fp32.
 *                              fp16 and bf16 are mixed precision, as by
 *                              PyTorch's autocast: fp32 weights, of which each
 *                              step makes copies in this type.
 *     grads:fp32|fp16|bf16     type in which gradients are exchanged; default:
 *                              fp32. Others are DDP's compression hooks.
 *     kernels:eager|fused      eager: each operation is a kernel of its own, as
 *                              in PyTorch. fused: a compiler joins each product
 *                              with the operations on its elements, and the
 *                              optimizer is one kernel.
 *
 * A name may stand in the place of the first part: dcnv2, dlrm, synthetic-tiny,
 * synthetic-small, synthetic-medium, synthetic-large, synthetic-jumbo. Parts
 * after the name replace parts of the named model.
 */

/* Type of the matrix products. DENSE_TYPE_TF32 has fp32 inputs and outputs. */
enum dense_type {
    DENSE_TYPE_FP32,
    DENSE_TYPE_TF32,
    DENSE_TYPE_FP16,
    DENSE_TYPE_BF16,
    N_DENSE_TYPES
};
extern const char *const dense_type_names[]; /* NULL-terminated */

enum interaction {
    INTERACTION_CAT,
    INTERACTION_DOT,
    INTERACTION_POOL,
    INTERACTION_DCN,
    N_INTERACTIONS
};
extern const char *const interaction_names[]; /* NULL-terminated */

#define DENSE_MAX_LAYERS 32u
#define DENSE_MAX_WIDTH 1000000u
/* Bottom and top layers, and two products for each cross layer. */
#define DENSE_MAX_PRODUCTS (4 * DENSE_MAX_LAYERS)

/* Widths of layers that follow each other. */
struct dense_widths {
    uint32_t n; /* 0: there are none */
    uint32_t width[DENSE_MAX_LAYERS + 1];
};

/* A layer that multiplies its input by a matrix. Widths are values of a
 * sample. */
struct dense_product {
    uint64_t in, out;
    /* The bias of a cross layer belongs to its second product. */
    bool has_bias;
    bool has_relu;
    /* false: the input is data, so the backward pass computes no gradient of
     * it */
    bool needs_input_gradient;
};

struct dense {
    /* bottom.width[0] is the number of dense features */
    struct dense_widths bottom, top;
    enum interaction interaction;
    uint32_t stride;        /* of INTERACTION_POOL */
    uint32_t n_cross, rank; /* of INTERACTION_DCN */
    enum dense_type type;
    enum dense_type gradients; /* not DENSE_TYPE_TF32 */
    bool is_fused;
    /* The members below depend on the tables; dense_fit sets them. */
    uint32_t n_products; /* 0 before dense_fit */
    /* in the order of the forward pass; the cross layers' first product has the
     * index cross_begin, and the first top layer has the index top_begin */
    struct dense_product products[DENSE_MAX_PRODUCTS];
    uint32_t cross_begin, top_begin;
    /* vectors that INTERACTION_DOT multiplies, with the output of the bottom
     * layers, and their width */
    uint64_t n_vectors;
    uint32_t dim;
    uint64_t pooled; /* values that the tables give for a sample */
    uint64_t width;  /* values that the interaction gives to the top layers */
    uint64_t n_parameters;
};

/* Reads the text of a dense part. Errors are ERR_INPUT; the sentence names the
 * part that is wrong. */
int dense_parse(struct dense *dense, const char *text, size_t len,
                struct err *err) MUST_CHECK;
/* Sets the members that depend on the tables. Fails with ERR_INPUT if the
 * interaction cannot join these tables: a table gives sequences, or `dot` gets
 * vectors of different widths. */
int dense_fit(struct dense *dense, const struct table *tables, size_t n_tables,
              struct err *err) MUST_CHECK;
/* Reads the text and fits it to the tables. *out lives in the arena. */
int dense_read(const struct dense **out, const char *text, size_t len,
               const struct table *tables, size_t n_tables, struct arena *arena,
               struct err *err) MUST_CHECK;
/* Prints a text that dense_parse reads as the same dense part: all parts in the
 * order above, without those that are at their defaults. Equal dense parts have
 * equal texts. */
void dense_print(const struct dense *dense, struct buf *out);
/* Names of the models that dense_parse knows; NULL-terminated. */
extern const char *const dense_model_names[];

/* Returns the number of dense features of a sample; 0 without bottom layers. */
static inline uint32_t dense_n_features(const struct dense *dense)
{
    return dense->bottom.n ? dense->bottom.width[0] : 0;
}
/* Returns the number of values that the bottom layers give for a sample; 0
 * without bottom layers. */
static inline uint32_t dense_bottom_width(const struct dense *dense)
{
    return dense->bottom.n ? dense->bottom.width[dense->bottom.n - 1] : 0;
}
/* Returns the number of outputs of the model for a sample. */
static inline uint32_t dense_n_outputs(const struct dense *dense)
{
    return dense->top.width[dense->top.n - 1];
}

/* Returns the bytes of a value of this type: 4 or 2. */
unsigned dense_type_bytes(enum dense_type type);
/* Returns true for the types of mixed precision, fp16 and bf16. */
static inline bool dense_is_mixed(const struct dense *dense)
{
    return dense->type == DENSE_TYPE_FP16 || dense->type == DENSE_TYPE_BF16;
}

/*
 * DDP's buckets of gradients. Each bucket takes whole parameter tensors, in the
 * order in which the backward pass finishes them, until it has at least as many
 * bytes as the limit: 1 MiB for the first bucket, 25 MiB for the others.
 */
#define DENSE_FIRST_BUCKET_BYTES ((uint64_t)1 << 20)
#define DENSE_BUCKET_BYTES ((uint64_t)25 << 20)
#define DENSE_MAX_BUCKETS (2 * DENSE_MAX_PRODUCTS)
struct dense_bucket {
    uint64_t n_parameters;
    /* Index of the product whose backward pass completes the bucket. */
    uint32_t product;
};
/* Fills buckets[DENSE_MAX_BUCKETS] and returns their number, at least 1. */
uint32_t dense_buckets(const struct dense *dense, struct dense_bucket *buckets);

/*
 * Predicted time of the dense part in a step, in ms. The all-reduce of the
 * gradients runs during the backward pass as far as it can.
 */
struct dense_cost {
    double forward_ms, backward_ms;
    double update_ms; /* optimizer update of the weights */
    double reduce_ms; /* all-reduce of the gradients: time on the links */
    /* Delay by the all-reduce: its part after the backward pass, and the time
     * by which its other part slows the backward pass. */
    double exposed_ms;
    /* error of the whole, like frac of struct cost_error; 0: unknown */
    double error_frac;
    /* true: times of matrix products come from products measured on the device;
     * false: from the figures of the GPU */
    bool is_measured;
};
/* Returns the time that the dense part adds to a step. */
static inline double dense_cost_ms(const struct dense_cost *cost)
{
    return cost->forward_ms + cost->backward_ms + cost->update_ms +
           cost->exposed_ms;
}

/*
 * Memory in bytes that the dense part takes on each GPU. Counted as PyTorch
 * with DDP takes it, whose gradients are views of the buckets:
 *
 *     weights      weights of the matrix products: 4 B, or 2 B in mixed
 *                  precision, where they are the copies that a step makes
 *     masters      in mixed precision the fp32 weights, else 0
 *     gradients    4 B in DDP's buckets, and 2 B if they are compressed
 *     optimizer    4 B for each value of the optimizer's state
 *     activations  tensors that the forward pass keeps for the backward pass
 */
struct dense_memory {
    uint64_t weights, masters, gradients, optimizer, activations;
};
/* Names of the items, in the order of the struct: "dense weights" ... */
#define N_DENSE_ITEMS 5
extern const char *const dense_item_names[N_DENSE_ITEMS];
/* Returns the memory for this number of samples on a GPU and of state values
 * for each weight. */
struct dense_memory dense_memory(const struct dense *dense, double n_samples,
                                 double n_states);
uint64_t dense_memory_total(const struct dense_memory *memory);

#endif
