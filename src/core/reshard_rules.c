/* SPDX-License-Identifier: MIT */
#include "core/reshard_rules.h"

const char *reshard_bars_job(const struct problem *from,
                             const struct problem *now,
                             const struct table_pieces *before)
{
    bool is_same = from->n_tables == now->n_tables;

    if (from->cluster.n_devices != now->cluster.n_devices)
        return "another number of ranks";
    for (size_t t = 0; t < now->n_tables && is_same; t++)
        is_same = before[t].table;
    return is_same ? NULL : "another set of tables";
}

const char *reshard_bars_table(const struct table *before,
                               const struct table *after)
{
    if (before->num_embeddings != after->num_embeddings ||
        before->dim != after->dim || before->precision != after->precision ||
        before->optimizer != after->optimizer)
        return "another size, precision or optimizer";
    return NULL;
}

/* Returns whether a rank holds two pieces of the table. */
static bool shares_rank(const struct table_pieces *pieces)
{
    for (size_t i = 0; i < pieces->n; i++)
        for (size_t k = 0; k < i; k++)
            if (pieces->pieces[i].device == pieces->pieces[k].device)
                return true;
    return false;
}

const char *reshard_bars_pieces(const struct table_pieces *pieces)
{
    if (pieces->table->output != OUTPUT_POOLED)
        return "a sequence: only EmbeddingBagCollections are moved";
    if (!pieces->n || !(pieces->pieces->kind & (SHARD_TABLE | SHARD_COLUMN)))
        return "rows, grids and replicas are not moved";
    return shares_rank(pieces) ? "two pieces on one rank" : NULL;
}
