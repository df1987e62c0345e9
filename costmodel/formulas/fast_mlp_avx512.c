/* SPDX-License-Identifier: MIT */
#include <immintrin.h>

#define LANES 16
#define FUSED(a, b, c) _mm512_fmadd_ps(a, b, c)
#define EVAL fast_mlp_eval_avx512
#include "costmodel/formulas/fast_mlp_body.h"
