/* SPDX-License-Identifier: MIT */
#include "exec/reference_interaction.h"

#include "base/host_device.h"

#include <string.h>

/* Returns vector i of the vectors that INTERACTION_DOT multiplies. */
static const double *vector_at(const struct dense *dense, const double *bottom,
                               const double *pooled, uint64_t i)
{
    if (!dense->bottom.n)
        return pooled + i * dense->dim;
    return i ? pooled + (i - 1) * dense->dim : bottom;
}

static double *gradient_at(const struct dense *dense, double *bottom,
                           double *pooled, uint64_t i)
{
    if (!dense->bottom.n)
        return pooled + i * dense->dim;
    return i ? pooled + (i - 1) * dense->dim : bottom;
}

static void multiply_pairs(const struct dense *dense, const double *bottom,
                           const double *pooled, double *out)
{
    for (uint64_t i = 1; i < dense->n_vectors; i++)
        for (uint64_t j = 0; j < i; j++, out++) {
            const double *left = vector_at(dense, bottom, pooled, i);
            const double *right = vector_at(dense, bottom, pooled, j);

            *out = 0;
            for (uint32_t k = 0; k < dense->dim; k++)
                *out += left[k] * right[k];
        }
}

static void multiply_pairs_back(const struct dense *dense, const double *bottom,
                                const double *pooled,
                                const double *out_gradient,
                                double *bottom_gradient,
                                double *pooled_gradient)
{
    for (uint64_t i = 1; i < dense->n_vectors; i++)
        for (uint64_t j = 0; j < i; j++, out_gradient++) {
            const double *left = vector_at(dense, bottom, pooled, i);
            const double *right = vector_at(dense, bottom, pooled, j);
            double *to_left =
                gradient_at(dense, bottom_gradient, pooled_gradient, i);
            double *to_right =
                gradient_at(dense, bottom_gradient, pooled_gradient, j);

            for (uint32_t k = 0; k < dense->dim; k++) {
                to_left[k] += *out_gradient * right[k];
                to_right[k] += *out_gradient * left[k];
            }
        }
}

void reference_interact(const struct dense *dense, const double *bottom,
                        const double *pooled, double *out)
{
    const uint64_t n_bottom = dense_bottom_width(dense);

    if (n_bottom)
        memcpy(out, bottom, n_bottom * sizeof(double));
    out += n_bottom;
    if (dense->interaction == INTERACTION_DOT) {
        multiply_pairs(dense, bottom, pooled, out);
    } else if (dense->interaction == INTERACTION_POOL) {
        for (uint64_t i = 0; i < dense->pooled; i += dense->stride, out++) {
            uint64_t end = min_u64(i + dense->stride, dense->pooled);

            *out = 0;
            for (uint64_t j = i; j < end; j++)
                *out += pooled[j];
            *out /= (double)(end - i);
        }
    } else if (dense->pooled) {
        memcpy(out, pooled, dense->pooled * sizeof(double));
    }
}

void reference_interact_back(const struct dense *dense, const double *bottom,
                             const double *pooled, const double *out_gradient,
                             double *bottom_gradient, double *pooled_gradient)
{
    const uint64_t n_bottom = dense_bottom_width(dense);

    for (uint64_t i = 0; i < n_bottom; i++)
        bottom_gradient[i] = out_gradient[i];
    out_gradient += n_bottom;
    for (uint64_t i = 0; i < dense->pooled; i++)
        pooled_gradient[i] = 0;
    if (dense->interaction == INTERACTION_DOT) {
        multiply_pairs_back(dense, bottom, pooled, out_gradient,
                            bottom_gradient, pooled_gradient);
    } else if (dense->interaction == INTERACTION_POOL) {
        for (uint64_t i = 0; i < dense->pooled; i++) {
            uint64_t begin = i / dense->stride * dense->stride;
            uint64_t end = min_u64(begin + dense->stride, dense->pooled);

            pooled_gradient[i] =
                out_gradient[i / dense->stride] / (double)(end - begin);
        }
    } else {
        for (uint64_t i = 0; i < dense->pooled; i++)
            pooled_gradient[i] = out_gradient[i];
    }
}
