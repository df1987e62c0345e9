/* SPDX-License-Identifier: MIT */
#define LANES 8
#define EVAL fast_mlp_eval_avx2
#include "costmodel/fast_mlp_body.h"
