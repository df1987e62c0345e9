/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_FORMULAS_DENSE_COST_H
#define NEUROSHARD_COSTMODEL_FORMULAS_DENSE_COST_H

#include "core/dense.h"
#include "costmodel/formulas/gpu_spec.h"
#include "costmodel/formulas/product_times.h"

/*
 * Price of the dense part of a model on one GPU, which trains its copy on its
 * share of the batch.
 *
 * If the device has measured products, matrix products and operations on
 * elements have measured times, or times that are predicted from these
 * (costmodel/formulas/product_times.h). Otherwise a matrix product takes two
 * launches, and then the longer of
 *
 *     its operations / (rate of its type x efficiency by shape)
 *     its bytes / memory bandwidth
 *
 * Operations on elements take their bytes / memory bandwidth and a launch for
 * each kernel. The backward pass has two products for each product of the
 * forward pass: the gradients of its weights and of its input.
 *
 * DDP's all-reduce of a bucket begins when the backward pass has finished the
 * bucket's gradients and the bucket before is done. The part of it after the
 * backward pass is exposed. The part during the backward pass slows the
 * backward pass, since its kernels take SMs.
 */

/* Returns the share of the GPU's rate that a product reaches if it has m x n
 * outputs, each a sum of k terms. dense_cost.c has the law and its fit. */
double dense_efficiency(const struct gpu_spec *spec, double m, double n,
                        double k);
/* Returns the time of one product, with its launches. The GPU must have a rate
 * of this type (dense_rate). */
double dense_product_ms(const struct gpu_spec *spec, enum dense_type type,
                        double m, double n, double k);
/* Stores the GPU's rate of products of this type, in 10^12 operations a second.
 * A GPU without units for tf32 multiplies in fp32, as PyTorch does. Fails with
 * ERR_INPUT if the rate of another type is unknown. */
int dense_rate(double *tflops, const struct gpu_spec *spec,
               enum dense_type type, struct err *err) MUST_CHECK;

/* Prices the dense part of the oracle's problem, if it has one, and adds it to
 * the oracle's step. Times that the user gave (dense_ms of struct job) take the
 * place of the price. `times` are the measured products of the GPU; NULL or
 * products of other types only: none. Without them, fails like dense_rate. */
int dense_cost_add(struct comm_oracle *oracle, const struct gpu_spec *spec,
                   const struct product_times *times,
                   struct err *err) MUST_CHECK;

/* Error of the price of a dense part without measured products, as frac of
 * struct cost_error: nine in ten published products are within this error
 * (dense_cost.c). */
#define DENSE_ERROR_FRAC 0.33

#endif
