/* SPDX-License-Identifier: MIT */
#include "costmodel/gemm.h"

void gemm_ref(bool transpose_a, bool transpose_b, size_t m, size_t n, size_t k,
              const float *a, const float *b, float beta, float *c)
{
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            double sum = beta != 0 ? (double)(beta * c[i * n + j]) : 0;

            for (size_t l = 0; l < k; l++) {
                double x = (double)(transpose_a ? a[l * m + i] : a[i * k + l]);

                x *= (double)(transpose_b ? b[j * k + l] : b[l * n + j]);
                sum += x;
            }
            c[i * n + j] = (float)sum;
        }
}
