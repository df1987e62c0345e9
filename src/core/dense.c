/* SPDX-License-Identifier: MIT */
#include "core/dense.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

const char *const dense_type_names[] = {"fp32", "tf32", "fp16", "bf16", NULL};
const char *const interaction_names[] = {"cat", "dot", "pool", "dcn", NULL};

/*
 * Models with their layers. data/SOURCES.md has the paths of the sources.
 *
 *   dcnv2   MLPerf's DLRM-DCNv2: the README of its TorchRec reference
 *           (mlcommons/training), lines 158-169. HugeCTR's sample has these
 *           layers, too.
 *   dlrm    layers of DLRM on Criteo's data: defaults of the TorchRec script of
 *           facebookresearch/dlrm, lines 171-181
 *   synthetic-*
 *           distributed-embeddings' synthetic models, version 3: tiny (lines
 *           42-44 of its configuration), small (58-60), medium (74-76), large
 *           (90-92), jumbo (106-108). TensorFlow multiplies in TF32 by default.
 */
static const struct {
    const char *name, *text;
} models[] = {
    {"dcnv2", "bottom:13-512-256-128;interaction:dcn:3x512;"
              "top:1024-1024-512-256-1"},
    {"dlrm", "bottom:13-512-256-128;interaction:dot;top:1024-1024-512-256-1"},
    {"synthetic-tiny", "bottom:10;interaction:cat;top:256-128-1;dtype:tf32"},
    {"synthetic-small",
     "bottom:10;interaction:cat;top:512-256-128-1;dtype:tf32"},
    {"synthetic-medium",
     "bottom:25;interaction:pool:7;top:1024-512-256-128-1;dtype:tf32"},
    {"synthetic-large",
     "bottom:100;interaction:pool:8;top:2048-1024-512-256-1;dtype:tf32"},
    {"synthetic-jumbo",
     "bottom:200;interaction:pool:20;top:2048-1024-512-256-1;dtype:tf32"},
};
#define N_MODELS (sizeof(models) / sizeof(*models))
const char *const dense_model_names[] = {"dcnv2",
                                         "dlrm",
                                         "synthetic-tiny",
                                         "synthetic-small",
                                         "synthetic-medium",
                                         "synthetic-large",
                                         "synthetic-jumbo",
                                         NULL};

/* Types in which gradients are exchanged. */
static const char *const gradient_names[] = {"fp32", "fp16", "bf16", NULL};
static const enum dense_type gradient_types[] = {
    DENSE_TYPE_FP32, DENSE_TYPE_FP16, DENSE_TYPE_BF16};
static const char *const kernel_names[] = {"eager", "fused", NULL};

/* --- reading --- */

/* A slice of the text. */
struct word {
    const char *text;
    size_t len;
};
/* Arguments of "%.*s" that print the begin of a word. */
#define SHOWN(word) (int)((word).len < 40 ? (word).len : 40), (word).text

/* Moves the text up to the separator from the front of *rest to *first. Returns
 * true if there is a separator. */
static bool cut(struct word *first, struct word *rest, char separator)
{
    const char *end =
        rest->len ? memchr(rest->text, separator, rest->len) : NULL;

    *first =
        (struct word){rest->text, end ? (size_t)(end - rest->text) : rest->len};
    rest->text += first->len + (end != NULL);
    rest->len -= first->len + (end != NULL);
    return end != NULL;
}

static bool is_word(struct word word, const char *text)
{
    return word.len == strlen(text) && !memcmp(word.text, text, word.len);
}

/* Returns the index of the word in a NULL-terminated list, or -1. */
static int find(struct word word, const char *const *names)
{
    for (int i = 0; names[i]; i++)
        if (is_word(word, names[i]))
            return i;
    return -1;
}

/* Reads a whole number from 1 to max. `part` names the part of the text. */
static int read_number(uint32_t *out, struct word word, uint32_t max,
                       const char *part, struct err *err)
{
    uint64_t value = 0;
    size_t i = 0;

    for (; i < word.len && word.text[i] >= '0' && word.text[i] <= '9' &&
           value <= max;
         i++)
        value = 10 * value + (uint64_t)(word.text[i] - '0');
    if (!word.len || i < word.len || value < 1 || value > max)
        return err_input(
            err, "%s takes whole numbers from 1 to %" PRIu32 ", not '%.*s'",
            part, max, SHOWN(word));
    *out = (uint32_t)value;
    return 0;
}

static int read_widths(struct dense_widths *widths, struct word text,
                       uint32_t n_max, const char *part, struct err *err)
{
    struct word number;
    bool goes_on;

    widths->n = 0;
    do {
        goes_on = cut(&number, &text, '-');
        if (widths->n == n_max)
            return err_input(err, "%s has more than %" PRIu32 " widths", part,
                             n_max);
        if (read_number(&widths->width[widths->n++], number, DENSE_MAX_WIDTH,
                        part, err))
            return -1;
    } while (goes_on);
    return 0;
}

/* Reads a choice from a list of names. */
static int read_choice(int *out, struct word word, const char *const *names,
                       const char *part, const char *choices, struct err *err)
{
    *out = find(word, names);
    if (*out >= 0)
        return 0;
    return err_input(err, "%s is one of %s, not '%.*s'", part, choices,
                     SHOWN(word));
}

static int read_interaction(struct dense *dense, struct word text,
                            struct err *err)
{
    struct word kind, layers;
    const bool has_number = cut(&kind, &text, ':');
    int choice;

    if (read_choice(&choice, kind, interaction_names, "interaction",
                    "cat, dot, pool:STRIDE, dcn:LAYERSxRANK", err))
        return -1;
    dense->interaction = (enum interaction)choice;
    dense->stride = dense->n_cross = dense->rank = 0;
    if (choice == INTERACTION_POOL)
        return read_number(&dense->stride, text, DENSE_MAX_WIDTH,
                           "interaction:pool", err);
    if (choice == INTERACTION_DCN) {
        cut(&layers, &text, 'x');
        return read_number(&dense->n_cross, layers, DENSE_MAX_LAYERS,
                           "the number of layers of interaction:dcn", err) ||
                       read_number(&dense->rank, text, DENSE_MAX_WIDTH,
                                   "the rank of interaction:dcn", err)
                   ? -1
                   : 0;
    }
    return has_number ? err_input(err, "interaction:%s takes no number",
                                  interaction_names[choice])
                      : 0;
}

enum dense_key { BOTTOM, INTERACTION, TOP, DTYPE, GRADS, KERNELS, N_PARTS };
static const char *const part_names[] = {
    "bottom", "interaction", "top", "dtype", "grads", "kernels", NULL};

static int read_part(struct dense *dense, enum dense_key part, struct word text,
                     struct err *err)
{
    int choice = 0;

    switch (part) {
    case BOTTOM:
        return read_widths(&dense->bottom, text, DENSE_MAX_LAYERS + 1, "bottom",
                           err);
    case TOP:
        return read_widths(&dense->top, text, DENSE_MAX_LAYERS, "top", err);
    case INTERACTION:
        return read_interaction(dense, text, err);
    case DTYPE:
        if (read_choice(&choice, text, dense_type_names, "dtype",
                        "fp32, tf32, fp16, bf16", err))
            return -1;
        dense->type = (enum dense_type)choice;
        return 0;
    case GRADS:
        if (read_choice(&choice, text, gradient_names, "grads",
                        "fp32, fp16, bf16", err))
            return -1;
        dense->gradients = gradient_types[choice];
        return 0;
    case KERNELS:
    case N_PARTS:
    default:
        if (read_choice(&choice, text, kernel_names, "kernels", "eager, fused",
                        err))
            return -1;
        dense->is_fused = choice;
        return 0;
    }
}

static int unknown_part(struct word part, struct err *err)
{
    struct buf names = {0};
    int rc;

    for (size_t i = 0; i < N_MODELS; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", models[i].name);
    rc = err_input(err,
                   "'%.*s' is neither a dense model (%s) nor a part such as "
                   "'bottom:13-512-128', 'interaction:dot', 'top:512-1' or "
                   "'dtype:fp32'",
                   SHOWN(part), names.data);
    buf_release(&names);
    return rc;
}

/* Reads the parts of a text. `seen` marks the parts that it has. */
static int read_parts(struct dense *dense, struct word text, bool seen[N_PARTS],
                      struct err *err)
{
    bool is_first = true, goes_on;

    do {
        struct word whole, key, value;
        int model, part;

        goes_on = cut(&whole, &text, ';');
        for (; whole.len && *whole.text == ' '; whole.text++)
            whole.len--;
        value = whole;
        cut(&key, &value, ':');
        model = is_first ? find(whole, dense_model_names) : -1;
        part = find(key, part_names);
        is_first = false;
        if (model >= 0) {
            const char *known = models[model].text;
            bool of_model[N_PARTS] = {0};

            if (read_parts(dense, (struct word){known, strlen(known)}, of_model,
                           err))
                return -1;
            continue;
        }
        if (part < 0)
            return unknown_part(whole, err);
        if (seen[part])
            return err_input(err, "'%s' is given twice", part_names[part]);
        seen[part] = true;
        if (read_part(dense, (enum dense_key)part, value, err))
            return -1;
    } while (goes_on);
    return 0;
}

int dense_parse(struct dense *dense, const char *text, size_t len,
                struct err *err)
{
    bool seen[N_PARTS] = {0};

    *dense = (struct dense){.interaction = N_INTERACTIONS};
    if (!len)
        return err_input(err, "the text is empty");
    if (read_parts(dense, (struct word){text, len}, seen, err))
        return -1;
    if (dense->interaction == N_INTERACTIONS)
        return err_input(err, "'interaction' is missing");
    if (!dense->top.n)
        return err_input(err, "'top' is missing");
    return 0;
}

/* --- printing --- */

static void print_widths(const char *part, const struct dense_widths *widths,
                         struct buf *out)
{
    for (uint32_t i = 0; i < widths->n; i++)
        buf_printf(out, "%s%" PRIu32, i ? "-" : part, widths->width[i]);
}

void dense_print(const struct dense *dense, struct buf *out)
{
    print_widths("bottom:", &dense->bottom, out);
    buf_printf(out, "%sinteraction:%s", dense->bottom.n ? ";" : "",
               interaction_names[dense->interaction]);
    if (dense->interaction == INTERACTION_POOL)
        buf_printf(out, ":%" PRIu32, dense->stride);
    if (dense->interaction == INTERACTION_DCN)
        buf_printf(out, ":%" PRIu32 "x%" PRIu32, dense->n_cross, dense->rank);
    print_widths(";top:", &dense->top, out);
    buf_printf(out, ";dtype:%s", dense_type_names[dense->type]);
    if (dense->gradients != DENSE_TYPE_FP32)
        buf_printf(out, ";grads:%s", dense_type_names[dense->gradients]);
    if (dense->is_fused)
        buf_printf(out, ";kernels:fused");
}

/* --- fitting it to tables --- */

/* Most values that an interaction may give for a sample. */
#define MAX_VALUES 1e9

static int check_dot(const struct dense *dense, const struct table *tables,
                     size_t n_tables, struct err *err)
{
    const struct dense_widths *bottom = &dense->bottom;

    for (size_t i = 0; i < n_tables; i++) {
        if (tables[i].dim != tables[0].dim)
            return err_input(err,
                             "interaction 'dot' needs tables of one width, but "
                             "'%s' has %" PRIu32 " columns and '%s' %" PRIu32,
                             tables[0].name, tables[0].dim, tables[i].name,
                             tables[i].dim);
        if (tables[i].num_outputs != floor(tables[i].num_outputs))
            return err_input(
                err,
                "interaction 'dot' needs whole numbers of vectors, "
                "but table '%s' gives %g a sample",
                tables[i].name, tables[i].num_outputs);
    }
    if (bottom->n && n_tables && bottom->width[bottom->n - 1] != tables[0].dim)
        return err_input(
            err,
            "interaction 'dot' needs bottom layers that end with the tables' "
            "%" PRIu32 " columns, not with %" PRIu32,
            tables[0].dim, bottom->width[bottom->n - 1]);
    return 0;
}

/* Returns the width of the interaction's output. */
static double joined_width(const struct dense *dense, double pooled,
                           double n_vectors)
{
    const uint32_t n = dense->bottom.n;
    const double bottom = n ? dense->bottom.width[n - 1] : 0;

    if (dense->interaction == INTERACTION_DOT)
        return bottom + n_vectors * (n_vectors - 1) / 2;
    if (dense->interaction == INTERACTION_POOL)
        return bottom + ceil(pooled / dense->stride);
    return bottom + pooled;
}

static void add_product(struct dense *dense, uint64_t in, uint64_t out,
                        bool has_bias, bool has_relu)
{
    assert(dense->n_products < DENSE_MAX_PRODUCTS);
    dense->products[dense->n_products] =
        (struct dense_product){.in = in,
                               .out = out,
                               .has_bias = has_bias,
                               .has_relu = has_relu,
                               .needs_input_gradient = dense->n_products > 0};
    dense->n_products++;
    dense->n_parameters += in * out + (has_bias ? out : 0);
}

static void add_products(struct dense *dense)
{
    uint64_t in = dense->width;

    dense->n_products = 0;
    dense->n_parameters = 0;
    for (uint32_t i = 1; i < dense->bottom.n; i++)
        add_product(dense, dense->bottom.width[i - 1], dense->bottom.width[i],
                    true, true);
    dense->cross_begin = dense->n_products;
    for (uint32_t i = 0; i < dense->n_cross; i++) {
        add_product(dense, in, dense->rank, false, false);
        add_product(dense, dense->rank, in, true, false);
    }
    dense->top_begin = dense->n_products;
    for (uint32_t i = 0; i < dense->top.n; i++) {
        add_product(dense, in, dense->top.width[i], true, i + 1 < dense->top.n);
        in = dense->top.width[i];
    }
    /* The gradient of the pooled vectors is always needed. */
    if (!dense->cross_begin)
        dense->products[0].needs_input_gradient = true;
}

int dense_fit(struct dense *dense, const struct table *tables, size_t n_tables,
              struct err *err)
{
    double pooled = 0, n_vectors = dense->bottom.n > 0, width;

    for (size_t i = 0; i < n_tables; i++) {
        if (tables[i].output == OUTPUT_SEQUENCE)
            return err_input(err,
                             "table '%s' gives a sequence, which the dense "
                             "part cannot join: only pooled tables have a "
                             "fixed number of vectors",
                             tables[i].name);
        pooled += tables[i].dim * tables[i].num_outputs;
        n_vectors += tables[i].num_outputs;
    }
    if (dense->interaction == INTERACTION_DOT &&
        check_dot(dense, tables, n_tables, err))
        return -1;
    width = ceil(joined_width(dense, pooled, n_vectors));
    if (!(width >= 1))
        return err_input(err, "the interaction has no input");
    if (width > MAX_VALUES || pooled > MAX_VALUES)
        return err_input(err,
                         "the dense part would join %.3g values of a sample, "
                         "more than %.0g",
                         fmax(width, pooled), MAX_VALUES);
    dense->pooled = (uint64_t)ceil(pooled);
    dense->n_vectors = (uint64_t)n_vectors;
    dense->dim = n_tables ? tables[0].dim : 0;
    dense->width = (uint64_t)width;
    add_products(dense);
    return 0;
}

int dense_read(const struct dense **out, const char *text, size_t len,
               const struct table *tables, size_t n_tables, struct arena *arena,
               struct err *err)
{
    struct dense *dense = ARENA_NEW(arena, struct dense, 1);

    if (dense_parse(dense, text, len, err) ||
        dense_fit(dense, tables, n_tables, err))
        return -1;
    *out = dense;
    return 0;
}

unsigned dense_type_bytes(enum dense_type type)
{
    return type == DENSE_TYPE_FP16 || type == DENSE_TYPE_BF16 ? 2 : 4;
}

/* --- buckets --- */

/* Adds one parameter tensor. Returns the index of the bucket of the next
 * tensor. */
static uint32_t add_tensor(struct dense_bucket *buckets, uint32_t n,
                           uint64_t n_parameters, uint32_t product)
{
    const uint64_t limit = n ? DENSE_BUCKET_BYTES : DENSE_FIRST_BUCKET_BYTES;

    buckets[n].n_parameters += n_parameters;
    buckets[n].product = product;
    return n + (buckets[n].n_parameters * sizeof(float) >= limit);
}

uint32_t dense_buckets(const struct dense *dense, struct dense_bucket *buckets)
{
    uint32_t n = 0;

    memset(buckets, 0, DENSE_MAX_BUCKETS * sizeof(*buckets));
    for (uint32_t i = dense->n_products; i-- > 0;) {
        const struct dense_product *product = &dense->products[i];

        if (product->has_bias)
            n = add_tensor(buckets, n, product->out, i);
        n = add_tensor(buckets, n, product->in * product->out, i);
    }
    return n + (n < DENSE_MAX_BUCKETS && buckets[n].n_parameters > 0);
}

/* --- memory --- */

const char *const dense_item_names[N_DENSE_ITEMS] = {
    "weights", "fp32 masters", "gradients and buckets", "optimizer",
    "activations"};

/*
 * Returns the bytes that the forward pass of a sample keeps:
 *
 *   - the input of each product; the output of a ReLU is the same tensor
 *   - the output of the bottom layers, which the interaction copies
 *   - dot: all vectors, of which mixed precision makes a copy for each side of
 *     the product; pool: the pooled vectors before the means
 *   - dcn: the output of each cross layer's second product. Its sum with the
 *     bias is fp32, and so is the input of the cross layers, of which mixed
 *     precision keeps a copy.
 *   - the logit and the label
 */
static double kept_bytes(const struct dense *dense)
{
    const uint32_t n = dense->bottom.n;
    double values = 0, fp32_values = 2;

    for (uint32_t i = 0; i < dense->n_products; i++)
        values += (double)dense->products[i].in;
    if (n > 1)
        values += dense->bottom.width[n - 1];
    if (dense->interaction == INTERACTION_DOT)
        values +=
            (1 + dense_is_mixed(dense)) * (double)dense->n_vectors * dense->dim;
    if (dense->interaction == INTERACTION_POOL)
        fp32_values += (double)dense->pooled;
    if (dense->interaction == INTERACTION_DCN)
        fp32_values +=
            (dense->n_cross + dense_is_mixed(dense)) * (double)dense->width;
    return values * dense_type_bytes(dense->type) + fp32_values * sizeof(float);
}

struct dense_memory dense_memory(const struct dense *dense, double n_samples,
                                 double n_states)
{
    const uint64_t n = dense->n_parameters;

    return (struct dense_memory){
        .weights = n * dense_type_bytes(dense->type),
        .masters = dense_is_mixed(dense) ? n * sizeof(float) : 0,
        .gradients = n * sizeof(float) +
                     (dense->gradients == DENSE_TYPE_FP32 ? 0 : 2 * n),
        .optimizer = (uint64_t)(n_states * (double)n) * sizeof(float),
        .activations = (uint64_t)ceil(n_samples * kept_bytes(dense)),
    };
}

uint64_t dense_memory_total(const struct dense_memory *memory)
{
    return memory->weights + memory->masters + memory->gradients +
           memory->optimizer + memory->activations;
}
