/* SPDX-License-Identifier: MIT */
#include "core/table.h"

#include <string.h>

static const char *const PRECISION_NAMES[N_PRECISIONS] = {
    [PRECISION_FP32] = "fp32",
    [PRECISION_FP16] = "fp16",
    [PRECISION_BF16] = "bf16",
    [PRECISION_INT8] = "int8",
};
static const unsigned PRECISION_BYTES[N_PRECISIONS] = {
    [PRECISION_FP32] = 4,
    [PRECISION_FP16] = 2,
    [PRECISION_BF16] = 2,
    [PRECISION_INT8] = 1,
};
static const char *const OPTIMIZER_NAMES[N_OPTIMIZERS] = {
    [OPTIMIZER_SGD] = "sgd",
    [OPTIMIZER_ROWWISE_ADAGRAD] = "rowwise_adagrad",
    [OPTIMIZER_ADAGRAD] = "adagrad",
    [OPTIMIZER_ADAM] = "adam",
};
/* Name k is that of the kind 1 << k. */
static const char *const KIND_NAMES[] = {"table", "column", "row", "grid",
                                         "replicate"};
#define N_KINDS (sizeof(KIND_NAMES) / sizeof(KIND_NAMES[0]))

static int name_idx(const char *const *names, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return (int)i;
    return -1;
}

void table_init(struct table *table)
{
    *table = (struct table){
        .num_outputs = 1,
        .optimizer = OPTIMIZER_ROWWISE_ADAGRAD,
        .skew_assumed = true,
        .zipf_alpha = DEFAULT_ZIPF_ALPHA,
        .kinds = SHARD_ALL_KINDS,
        .device = -1,
    };
}

unsigned precision_bytes(enum precision precision)
{
    return PRECISION_BYTES[precision];
}

const char *precision_name(enum precision precision)
{
    return PRECISION_NAMES[precision];
}

int precision_from_name(const char *name)
{
    return name_idx(PRECISION_NAMES, N_PRECISIONS, name);
}

const char *optimizer_name(enum optimizer optimizer)
{
    return OPTIMIZER_NAMES[optimizer];
}

int optimizer_from_name(const char *name)
{
    return name_idx(OPTIMIZER_NAMES, N_OPTIMIZERS, name);
}

const char *shard_kind_name(enum shard_kind kind)
{
    for (size_t k = 0; k < N_KINDS; k++)
        if ((unsigned)kind == 1u << k)
            return KIND_NAMES[k];
    return "none";
}

unsigned shard_kind_from_name(const char *name)
{
    int k = name_idx(KIND_NAMES, N_KINDS, name);

    return k < 0 ? 0 : 1u << k;
}
