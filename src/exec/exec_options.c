/* SPDX-License-Identifier: MIT */
#include "exec/exec_options.h"

void exec_options_init(struct exec_options *options)
{
    *options = (struct exec_options){
        .scale_rows = 1,
        .n_iterations = 20,
        .check = true,
        .wait_for_quiet = true,
        .step = {.pipeline = PIPELINE_NONE, .n_chunks = 1},
    };
}
