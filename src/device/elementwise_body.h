/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_ELEMENTWISE_BODY_H
#define NEUROSHARD_DEVICE_ELEMENTWISE_BODY_H

#include "device/elementwise.h"
#include "device/fp16.h"

#include <math.h>

/* The arithmetic of elementwise.h, for the bodies of all devices. */

/* Returns the address of element (r, c) of a matrix. */
HOST_DEVICE float *element(const struct device_matrix *matrix, uint64_t r,
                           uint64_t c)
{
    return (float *)matrix->d_at + r * matrix->stride + c;
}

HOST_DEVICE float value(const struct device_matrix *matrix, uint64_t r,
                        uint64_t c)
{
    return *element(matrix, r, c);
}

HOST_DEVICE uint16_t *half_element(const struct device_matrix *matrix,
                                   uint64_t r, uint64_t c)
{
    return (uint16_t *)matrix->d_at + r * matrix->stride + c;
}

/* Returns the column of the pair (i, j), i > j, in the list of all pairs. */
HOST_DEVICE uint64_t pair_column(uint64_t i, uint64_t j)
{
    return i * (i - 1) / 2 + j;
}

/* Copies element (i, j) of row r in the direction of the kind. */
HOST_DEVICE void copy_pair(const struct elementwise *job, bool is_gradient,
                           uint64_t r, uint64_t c)
{
    const uint64_t i = c / job->size, j = c % job->size;

    if (!is_gradient && i > j)
        *element(&job->out, r, pair_column(i, j)) = *element(&job->a, r, c);
    if (is_gradient)
        *element(&job->out, r, c) =
            i == j ? 0
                   : *element(&job->a, r,
                              pair_column(max_u64(i, j), min_u64(i, j)));
}

/* Returns the number of columns in mean number `mean`. */
HOST_DEVICE uint64_t columns_of_mean(const struct elementwise *job,
                                     uint64_t mean)
{
    return min_u64(job->size, job->n_in - mean * job->size);
}

HOST_DEVICE float mean_of(const struct elementwise *job, uint64_t r, uint64_t c)
{
    const uint64_t n = columns_of_mean(job, c);
    const float *a = element(&job->a, r, c * job->size);
    float sum = 0;

    for (uint64_t i = 0; i < n; i++)
        sum += a[i];
    return sum / (float)n;
}

/* Returns the binary cross entropy, in a form that never overflows. */
HOST_DEVICE float cross_entropy(float logit, float label)
{
    return fmaxf(logit, 0.0f) - logit * label + log1pf(expf(-fabsf(logit)));
}

HOST_DEVICE void adam_update(const struct elementwise *job, float *weight,
                             float gradient, uint64_t pos)
{
    float *first = job->d_state[0] + pos, *second = job->d_state[1] + pos;

    *first += (gradient - *first) * (1 - ELEMENTWISE_ADAM_BETA1);
    *second = *second * ELEMENTWISE_ADAM_BETA2 +
              gradient * gradient * (1 - ELEMENTWISE_ADAM_BETA2);
    *weight -= job->scale * *first /
               (sqrtf(*second) / job->root + ELEMENTWISE_ADAM_EPS);
}

HOST_DEVICE void update_weight(const struct elementwise *job,
                               enum elementwise_kind kind, uint64_t r,
                               uint64_t c)
{
    const float gradient = value(&job->a, r, c);
    const uint64_t pos = r * job->out.stride + c;
    float *weight = element(&job->out, r, c);

    if (kind == ELEMENTWISE_ADAM) {
        adam_update(job, weight, gradient, pos);
    } else if (kind == ELEMENTWISE_ADAGRAD) {
        float *state = job->d_state[0] + pos;

        *state += gradient * gradient;
        *weight -=
            job->scale * gradient / (sqrtf(*state) + ELEMENTWISE_ADAGRAD_EPS);
    } else {
        *weight -= job->scale * gradient;
    }
}

/* Copies between fp32 and fp16 matrices. */
HOST_DEVICE void copy_one(const struct elementwise *job,
                          enum elementwise_kind kind, uint64_t r, uint64_t c)
{
    float *out = element(&job->out, r, c);

    if (kind == ELEMENTWISE_COPY_FROM_HALF)
        *out = fp16_to_float(*half_element(&job->a, r, c));
    else if (kind == ELEMENTWISE_ADD_FROM_HALF)
        *out += fp16_to_float(*half_element(&job->a, r, c));
    else
        *half_element(&job->out, r, c) = fp16_from_float(value(&job->a, r, c));
}

/* Computes the means of columns, or their gradients. */
HOST_DEVICE void mean_one(const struct elementwise *job, bool is_gradient,
                          uint64_t r, uint64_t c)
{
    float *out = element(&job->out, r, c);

    if (is_gradient)
        *out = value(&job->a, r, c / job->size) /
               (float)columns_of_mean(job, c / job->size);
    else
        *out = mean_of(job, r, c);
}

HOST_DEVICE void loss_one(const struct elementwise *job, bool is_gradient,
                          uint64_t r, uint64_t c)
{
    const float logit = value(&job->a, r, c), label = value(&job->b, r, c);

    *element(&job->out, r, c) =
        is_gradient ? job->scale * (1 / (1 + expf(-logit)) - label)
                    : cross_entropy(logit, label);
}

/* Computes element c of the mean of rows. */
HOST_DEVICE void average_one(const struct elementwise *job, bool is_half,
                             uint64_t c)
{
    float sum = 0;

    for (uint64_t k = 0; k < job->size; k++)
        sum += is_half ? fp16_to_float(*half_element(&job->a, k, c))
                       : value(&job->a, k, c);
    sum /= (float)job->size;
    if (is_half)
        *half_element(&job->out, 0, c) = fp16_from_float(sum);
    else
        *element(&job->out, 0, c) = sum;
}

/* Computes element (r, c). `kind` is job->kind; it is a parameter so that a
 * compiler can make a loop for each kind. */
HOST_DEVICE void elementwise_one(const struct elementwise *job,
                                 enum elementwise_kind kind, uint64_t r,
                                 uint64_t c)
{
    const struct device_matrix *a = &job->a, *b = &job->b;
    float *out = element(&job->out, r, c);

    if (kind == ELEMENTWISE_COPY)
        *out = value(a, r, c);
    else if (kind == ELEMENTWISE_ADD)
        *out += value(a, r, c);
    else if (kind <= ELEMENTWISE_COPY_TO_HALF)
        copy_one(job, kind, r, c);
    else if (kind == ELEMENTWISE_BIAS_RELU)
        *out = fmaxf(*out + value(a, r, c), 0.0f);
    else if (kind == ELEMENTWISE_RELU_GRADIENT)
        *out = value(a, r, c) > 0 ? *out : 0;
    else if (kind == ELEMENTWISE_MULTIPLY)
        *out = value(a, r, c) * value(b, r, c);
    else if (kind == ELEMENTWISE_MULTIPLY_ADD)
        *out = value(a, r, c) * value(b, r, c) + value(&job->c, r, c);
    else if (kind == ELEMENTWISE_ADD_PRODUCT)
        *out += value(a, r, c) * value(b, r, c);
    else if (kind <= ELEMENTWISE_PAIRS_GRADIENT)
        copy_pair(job, kind == ELEMENTWISE_PAIRS_GRADIENT, r, c);
    else if (kind <= ELEMENTWISE_MEANS_GRADIENT)
        mean_one(job, kind == ELEMENTWISE_MEANS_GRADIENT, r, c);
    else if (kind <= ELEMENTWISE_LOSS_GRADIENT)
        loss_one(job, kind == ELEMENTWISE_LOSS_GRADIENT, r, c);
    else if (kind <= ELEMENTWISE_ADAM)
        update_weight(job, kind, r, c);
    else if (kind == ELEMENTWISE_SCALE)
        *out = job->scale * value(a, r, c);
    else
        average_one(job, kind == ELEMENTWISE_AVERAGE_HALF, c);
}

#endif
