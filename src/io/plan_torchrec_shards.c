/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec_shards.h"

#include "io/plan_torchrec_tiers.h"

#include <inttypes.h>
#include <string.h>

void torchrec_add_shard(struct torchrec_reader *reader,
                        const struct torchrec_entry *entry, size_t rank,
                        struct shard shard)
{
    struct plan *plan = reader->plan;

    shard.table = entry->table;
    shard.tier = entry->tier;
    shard.device = entry->ranks[rank];
    if (shard.row_begin == shard.row_end)
        return;
    plan->shards =
        mem_room(plan->shards, plan->n_shards, &reader->cap, sizeof(shard));
    plan->shards[plan->n_shards++] = shard;
}

void torchrec_add_replicas(struct torchrec_reader *reader,
                           const struct torchrec_entry *entry)
{
    struct shard shard = shard_whole(&reader->plan->problem, entry->table, 0);

    shard.kind = SHARD_REPLICATE;
    for (size_t i = 0; i < entry->n_ranks; i++)
        torchrec_add_shard(reader, entry, i, shard);
}

/* Returns the table that an entry of the plan names, marks the table as placed
 * and sets entry->table. Tries the name entry->fqn, then the part of it behind
 * each dot. If the table of that name is already placed, tries the name with
 * the suffix "#2", as in NAME#2. Returns NULL if no unplaced table has any of
 * these names. */
static const struct table *find_table(struct torchrec_entry *entry,
                                      struct torchrec_reader *reader)
{
    const char *name = entry->fqn, *dot;
    const json_t *idx = NULL;

    for (; !idx && name; name = (dot = strchr(name, '.')) ? dot + 1 : NULL)
        for (int k = 0; k < 2 && !idx; k++) {
            idx = json_object_get(
                reader->places,
                arena_printf(reader->arena, "%s%s", name, k ? "#2" : ""));
            if (idx && reader->is_placed[json_integer_value(idx)])
                idx = NULL;
        }
    if (!idx)
        return NULL;
    entry->table = (uint32_t)json_integer_value(idx);
    reader->is_placed[entry->table] = true;
    return &reader->plan->problem.tables[entry->table];
}

int torchrec_check_entry(struct torchrec_entry *entry,
                         struct torchrec_reader *reader, struct err *err)
{
    const uint32_t n_ranks = reader->plan->problem.cluster.n_devices;
    const struct table *table = find_table(entry, reader);

    if (!table)
        return err_input(err,
                         "table '%s' is not in the table list, or placed twice",
                         entry->fqn);
    if (torchrec_read_kernel(entry, reader, err))
        return -1;
    for (size_t i = 0; i < entry->n_ranks; i++)
        if (entry->ranks[i] >= n_ranks)
            return err_input(err,
                             "table '%s' is on rank %u, but there are %u ranks",
                             entry->fqn, entry->ranks[i], n_ranks);
    if (!entry->dim ||
        (entry->n_rows == table->num_embeddings && entry->dim == table->dim))
        return 0;
    return err_input(err,
                     "table '%s' has %" PRIu64 " rows and %" PRIu64
                     " columns, but %" PRIu64 " and %u in the table list",
                     entry->fqn, entry->n_rows, entry->dim,
                     table->num_embeddings, table->dim);
}

/* Adds the pieces of an entry. In a plan of a grid, the pieces are in the order
 * of their ranks. All ranks of a host hold the same column blocks. A rank with
 * several column blocks is listed several times in succession, once for each
 * block. */
void torchrec_add_pieces(struct torchrec_reader *reader,
                         const struct torchrec_entry *entry)
{
    const uint64_t n_blocks = (entry->dim - 1) / entry->width + 1;
    /* Number of row blocks. The caller has made sure that it is at least 1. */
    const uint64_t n_local = max_u64(entry->n_ranks / n_blocks, 1);
    const uint64_t step = (entry->n_rows - 1) / n_local + 1;
    uint64_t host = UINT64_MAX, first = 0, next = 0, same = 0;

    for (size_t i = 0; i < entry->n_ranks; i++) {
        uint64_t block = i, row = 0;

        if (n_local > 1) {
            first = entry->ranks[i] / n_local == host ? first : next;
            host = entry->ranks[i] / n_local;
            same = i && entry->ranks[i] == entry->ranks[i - 1] ? same + 1 : 0;
            block = min_u64(first + same, n_blocks - 1);
            next = first + same + 1;
            row = entry->ranks[i] % n_local;
        }
        torchrec_add_shard(
            reader, entry, i,
            (struct shard){
                .row_begin = min_u64(row * step, entry->n_rows),
                .row_end = min_u64((row + 1) * step, entry->n_rows),
                .col_begin = (uint32_t)(block * entry->width),
                .col_end =
                    (uint32_t)min_u64((block + 1) * entry->width, entry->dim),
            });
    }
}
