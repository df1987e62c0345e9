/* SPDX-License-Identifier: MIT */
#include <immintrin.h>

#define LANES 8
#define FUSED(a, b, c) _mm256_fmadd_ps(a, b, c)
#define EVAL fast_mlp_eval_avx2
#include "costmodel/formulas/fast_mlp_body.h"
