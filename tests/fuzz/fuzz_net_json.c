/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "costmodel/modelfile/net_json.h"
#include "tests/fuzz/target.h"

#define N_INPUTS 3

/* A valid net can be evaluated: each feature occurs once, layers fit together,
 * and outputs are finite unless sums overflow. */
static void judge(const struct net_file *file, struct arena *arena)
{
    const float in[N_INPUTS] = {0, 1, 2};
    unsigned seen = 0;
    struct fast_mlp mlp;
    float *out;

    for (uint32_t i = 0; i < N_INPUTS; i++) {
        MUST(file->inputs[i] < N_INPUTS && file->std[i] > 0);
        MUST(isfinite(file->mean[i]) && isfinite(file->std[i]));
        seen |= 1u << file->inputs[i];
    }
    MUST(seen == (1u << N_INPUTS) - 1 && file->n_layers > 0);
    for (uint32_t k = 0; k < file->n_layers; k++) {
        const struct mlp_layer *layer = &file->layers[k];

        MUST(layer->n_in == (k ? layer[-1].n_out : N_INPUTS));
        for (size_t i = 0; i < (size_t)layer->n_in * layer->n_out; i++)
            MUST(isfinite(layer->weight[i]));
        for (size_t o = 0; o < layer->n_out; o++)
            MUST(isfinite(layer->bias[o]));
    }
    fast_mlp_init(&mlp, file->layers, file->n_layers, CPU_PORTABLE, arena);
    out = ARENA_NEW(arena, float, mlp.n_out);
    mlp.eval(&mlp, in, 1, out);
    for (uint32_t o = 0; o < mlp.n_out; o++)
        MUST(!(out[o] < 0)); /* every layer ends in a ReLU */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const features[N_INPUTS] = {"dim", "rows", "pooling"};
    struct net_file file = {.path = "fuzz", .n_inputs = N_INPUTS};
    struct arena arena = {0};
    struct err err = {0};

    if (net_file_parse(&file, features, (const char *)data, size, &arena,
                       &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz", 4));
    } else {
        judge(&file, &arena);
    }
    arena_release(&arena);
    return 0;
}
