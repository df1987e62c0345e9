/* SPDX-License-Identifier: MIT */
#include "costmodel/formulas/product_times.h"

#include <math.h>

/* Work of an element of the result c, and of an element of a factor a or b, as
 * a number of multiplications. */
#define WORK_OF_RESULT 32.
#define WORK_OF_FACTOR 16.
/* Rows and columns that are computed together. */
#define TILE 8

/* Width of the weights, in binary logarithms, and the least weight. With widths
 * of 0.7 to 2 the errors differ by a tenth. */
#define WIDTH 1.
#define LEAST_WEIGHT 1e-9
/* Penalty on slopes, as a share of the sum of weights. */
#define RIDGE 0.1

#define N_SIDES 4
#define N_TERMS (N_SIDES + 1)

static double rounded_up(uint32_t n)
{
    return TILE * ceil((double)n / TILE);
}

static double work_of(const struct product *product)
{
    const double m = product->m, n = product->n, k = product->k;

    return product->n_batch *
           (rounded_up(product->m) * rounded_up(product->n) * k +
            WORK_OF_RESULT * m * n + WORK_OF_FACTOR * (m * k + k * n));
}

static bool is_batch(const struct product *product)
{
    return product->n_batch > 1;
}

/* fp16 and bf16 have the same rate on all GPUs that have both. */
static enum dense_type measured_type(const struct product *product)
{
    return product->type == DENSE_TYPE_FP16 ? DENSE_TYPE_BF16 : product->type;
}

static bool is_of_class(const struct product *product,
                        const struct product *like)
{
    return product->type == measured_type(like) &&
           product->form == like->form && is_batch(product) == is_batch(like);
}

/* The measured products of the class of `like`, except `skipped`. */
struct product_class {
    const struct product_times *times;
    const struct product *like;
    const struct product_time *skipped; /* NULL: none */
    /* the law, and the range of log2(time / law) */
    double latency_ms, rate, min, max;
};

static bool is_member(const struct product_class *class,
                      const struct product_time *item)
{
    return item != class->skipped && is_of_class(&item->product, class->like);
}

static double law_ms(const struct product_class *class,
                     const struct product *product)
{
    return class->latency_ms + work_of(product) / class->rate;
}

static double ratio_of(const struct product_class *class,
                       const struct product_time *item)
{
    return log2(item->ms / law_ms(class, &item->product));
}

/* Finds the law of a class. Returns the number of its products. */
static size_t find_law(struct product_class *class)
{
    const struct product_times *times = class->times;
    size_t n = 0;

    class->latency_ms = class->min = INFINITY;
    class->max = -INFINITY;
    class->rate = 0;
    for (size_t i = 0; i < times->n; i++) {
        const struct product_time *item = &times->items[i];

        if (!is_member(class, item))
            continue;
        class->latency_ms = fmin(class->latency_ms, item->ms);
        class->rate = fmax(class->rate, work_of(&item->product) / item->ms);
        n++;
    }
    for (size_t i = 0; i < times->n; i++)
        if (is_member(class, &times->items[i])) {
            const double ratio = ratio_of(class, &times->items[i]);

            class->min = fmin(class->min, ratio);
            class->max = fmax(class->max, ratio);
        }
    return n;
}

/* Normal equations of the weighted least squares: a x = b. */
struct local_fit {
    double a[N_TERMS][N_TERMS], b[N_TERMS];
};

static void fill_sides(const struct product *product, double sides[N_SIDES])
{
    sides[0] = log2(product->m);
    sides[1] = log2(product->n);
    sides[2] = log2(product->k);
    sides[3] = log2(product->n_batch);
}

static void add_item(struct local_fit *fit, const struct product_class *class,
                     const struct product_time *item,
                     const double origin[N_SIDES])
{
    double sides[N_SIDES], x[N_TERMS] = {1}, square = 0, weight;

    fill_sides(&item->product, sides);
    for (int i = 0; i < N_SIDES; i++) {
        x[1 + i] = sides[i] - origin[i];
        square += x[1 + i] * x[1 + i];
    }
    weight = exp(-square / (2 * WIDTH * WIDTH)) + LEAST_WEIGHT;
    for (int i = 0; i < N_TERMS; i++) {
        for (int j = 0; j < N_TERMS; j++)
            fit->a[i][j] += weight * x[i] * x[j];
        fit->b[i] += weight * x[i] * ratio_of(class, item);
    }
}

/* Returns the first unknown of the positive definite equations, by Gaussian
 * elimination from the last one. */
static double solve_first(struct local_fit *fit)
{
    for (int p = N_TERMS - 1; p > 0; p--)
        for (int i = 0; i < p; i++) {
            const double factor = fit->a[i][p] / fit->a[p][p];

            for (int j = 0; j < p; j++)
                fit->a[i][j] -= factor * fit->a[p][j];
            fit->b[i] -= factor * fit->b[p];
        }
    return fit->b[0] / fit->a[0][0];
}

static double predict(struct product_class *class)
{
    const struct product_times *times = class->times;
    struct local_fit fit = {0};
    double origin[N_SIDES], ratio;

    if (!find_law(class))
        return NAN;
    fill_sides(class->like, origin);
    for (size_t i = 0; i < times->n; i++)
        if (is_member(class, &times->items[i]))
            add_item(&fit, class, &times->items[i], origin);
    for (int i = 1; i < N_TERMS; i++)
        fit.a[i][i] += RIDGE * fit.a[0][0];
    ratio = fmin(fmax(solve_first(&fit), class->min), class->max);
    return law_ms(class, class->like) * exp2(ratio);
}

double product_times_ms(const struct product_times *times,
                        const struct product *product)
{
    struct product like = *product;
    struct product_class class = {.times = times, .like = &like};

    like.type = measured_type(product);
    for (size_t i = 0; i < times->n; i++)
        if (product_is_same(&times->items[i].product, &like))
            return times->items[i].ms;
    return predict(&class);
}

double product_times_without(const struct product_times *times, size_t idx)
{
    struct product_class class = {.times = times,
                                  .like = &times->items[idx].product,
                                  .skipped = &times->items[idx]};

    return predict(&class);
}

/* Returns true if each of the forms has enough products. */
static bool have_forms(const struct product_times *times, enum dense_type type,
                       bool are_batches, const enum product_form *forms,
                       size_t n_forms)
{
    for (size_t f = 0; f < n_forms; f++) {
        const struct product like = {
            .type = type, .form = forms[f], .n_batch = are_batches ? 2 : 1};
        size_t n = 0;

        for (size_t i = 0; i < times->n; i++)
            n += is_of_class(&times->items[i].product, &like);
        if (n < PRODUCT_TIMES_LEAST)
            return false;
    }
    return true;
}

bool product_times_have(const struct product_times *times, enum dense_type type)
{
    static const enum product_form forms[] = {PRODUCT_NN, PRODUCT_NT,
                                              PRODUCT_TN};

    return have_forms(times, type, false, forms, 3);
}

bool product_times_have_batches(const struct product_times *times,
                                enum dense_type type)
{
    static const enum product_form forms[] = {PRODUCT_NT, PRODUCT_NN};

    return have_forms(times, type, true, forms, 2);
}

bool product_times_have_elements(const struct product_times *times)
{
    static const enum product_form forms[] = {PRODUCT_RELU,
                                              PRODUCT_RELU_GRADIENT};

    return have_forms(times, DENSE_TYPE_FP32, false, forms, 2);
}
