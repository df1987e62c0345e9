/* SPDX-License-Identifier: MIT */
#include "core/target_traits.h"

#define EC_KINDS (SHARD_TABLE | SHARD_COLUMN | SHARD_ROW | SHARD_REPLICATE)
#define ALL_BITS (~0u)

/*
 * Sources of the rules: TorchRec 376cac6a and HugeCTR 2f2016fa.
 *
 * torchrec     The rank of a row is the row divided by the block size, and the
 *              column pieces of a table on a rank share one width. FBGEMM reads
 *              four columns at once.
 * torchrec-ec  An EmbeddingCollection has the sharding types data_parallel,
 *              table_wise, column_wise and row_wise.
 * dlrm         DLRM makes pooled tables with one optimizer.
 * hugectr      The constructor of EmbeddingCollectionParam checks lookups and
 *              compression. The pieces of columns are placed before that.
 *              Kernels take 256 columns. The static tables are fp32.
 */
const struct target_traits target_traits[N_TARGETS] = {
    {TARGET_ANY, "any", "any framework",
     .kinds = {SHARD_ALL_KINDS, SHARD_ALL_KINDS}, .has_groups = true,
     .has_reshard = true, .has_tiers = true, .precisions = ALL_BITS,
     .optimizers = ALL_BITS, .replica_optimizers = ALL_BITS},
    {TARGET_TORCHREC, "torchrec", "TorchRec",
     .kinds = {SHARD_ALL_KINDS, EC_KINDS},
     .rows = {TARGET_ROWS_HOST, TARGET_ROWS_ALL},
     .widths = TARGET_WIDTHS_ALIKE_ON_GPU, .column_step = TABLE_COLUMN_STEP,
     .sequences_alike = true, .has_groups = true, .has_reshard = true,
     .has_tiers = true, .precisions = ALL_BITS, .optimizers = ALL_BITS,
     .replica_optimizers = ALL_BITS},
    {TARGET_TORCHREC_EC, "torchrec-ec", "TorchRec",
     .kinds = {EC_KINDS, EC_KINDS}, .rows = {TARGET_ROWS_ALL, TARGET_ROWS_ALL},
     .widths = TARGET_WIDTHS_ALIKE_ON_GPU, .column_step = TABLE_COLUMN_STEP,
     .sequences_alike = true, .has_groups = true, .has_reshard = true,
     .has_tiers = true, .precisions = ALL_BITS, .optimizers = ALL_BITS,
     .replica_optimizers = ALL_BITS},
    {TARGET_DLRM, "dlrm", "DLRM", .kinds = {SHARD_ALL_KINDS, 0},
     .rows = {TARGET_ROWS_HOST, TARGET_ROWS_HOST},
     .widths = TARGET_WIDTHS_ALIKE_ON_GPU, .column_step = TABLE_COLUMN_STEP,
     .is_plain = true,
     .precisions = 1u << PRECISION_FP32 | 1u << PRECISION_FP16,
     .optimizers = ~(1u << OPTIMIZER_ADAMA),
     .replica_optimizers = (1u << OPTIMIZER_LAMB) - 1},
    {TARGET_HUGECTR, "hugectr", "HugeCTR",
     .kinds = {SHARD_ALL_KINDS, SHARD_ALL_KINDS},
     .rows = {TARGET_ROWS_DEALT, TARGET_ROWS_DEALT},
     .widths = TARGET_WIDTHS_ALIKE, .most_width = 256, .keeps_apart = true,
     .sequences_bar_replicas = true, .precisions = 1u << PRECISION_FP32,
     .optimizers = ALL_BITS, .replica_optimizers = ALL_BITS},
};

const char *const target_names[] = {"any",  "torchrec", "torchrec-ec",
                                    "dlrm", "hugectr",  NULL};
