/* SPDX-License-Identifier: MIT */
#define LANES 16
#define EVAL fast_mlp_eval_avx512
#include "costmodel/fast_mlp_body.h"
