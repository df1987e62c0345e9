/* SPDX-License-Identifier: MIT */
#define LANES 4
#define EVAL fast_mlp_eval_portable
#include "costmodel/fast_mlp_body.h"
