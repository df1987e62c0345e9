/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "costmodel/modelfile/model_file.h"
#include "tests/fuzz/target.h"

/* A model is either valid or refused with an error. A valid model has finite
 * weights and is unchanged after writing and reading. */
static void judge(const char *data, size_t size)
{
    struct model model, again;
    struct arena arena = {0};
    struct err err = {0};
    const char *text, *second;
    size_t len, second_len;

    if (model_parse(&model, data, size, "fuzz", &arena, &err)) {
        MUST(err.code == ERR_INPUT);
        MUST(!strncmp(err.msg, "fuzz:", 5));
    } else {
        for (size_t i = 0; i < model.mlp.n_params; i++)
            MUST(isfinite(model.mlp.params[i]));
        model_to_bytes(&model, &text, &len, &arena);
        MUST(!model_parse(&again, text, len, "fuzz", &arena, &err));
        model_to_bytes(&again, &second, &second_len, &arena);
        MUST(len == second_len && !memcmp(text, second, len));
    }
    arena_release(&arena);
}

/* Reads the input as it is, and once more with a correct checksum, which no
 * fuzzer guesses. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const size_t n_hashed = size - 8;
    char *copy;

    judge((const char *)data, size);
    if (size < 8)
        return 0;
    copy = malloc(size);
    memcpy(copy, data, n_hashed);
    for (unsigned i = 0; i < 8; i++)
        copy[n_hashed + i] = (char)(hash_bytes(data, n_hashed, 0) >> (8 * i));
    judge(copy, size);
    free(copy);
    return 0;
}
