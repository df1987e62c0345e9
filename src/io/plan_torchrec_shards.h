/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_SHARDS_H
#define NEUROSHARD_IO_PLAN_TORCHREC_SHARDS_H

#include "base/json.h"
#include "core/plan.h"
#include "io/tables_reader.h"

/* Shards of a TorchRec plan, which its readers add table by table. */

/* State of the reader of one plan. */
struct torchrec_reader {
    struct plan *plan;
    const char *source;
    struct arena *arena;
    bool lists_tables; /* the plan's tables come from the text */
    /* false: tables may have any kernel */
    bool needs_kernels;
    bool has_blocks; /* true: a table without listed shards has equal blocks */
    const struct tables_options *options;
    json_t *places;     /* owned; maps a table's name to its index */
    bool *is_placed;    /* [n_tables] true: the plan has placed the table */
    size_t cap;         /* capacity of plan->shards */
    size_t n_room;      /* number of tables that the plan has room for */
    const char *cached; /* name of a cached table, or NULL */
    bool is_ahead;      /* true: cached tables are filled a batch ahead */
};

/* A table's entry in the plan: its sharding and its ranks. */
struct torchrec_entry {
    const char *fqn, *kernel;
    /* number of rows and columns of the table, and of columns of a piece; each
     * is 0 if the text does not give it */
    uint64_t n_rows, dim, width;
    uint32_t *ranks; /* [n_ranks] ranks of the pieces */
    size_t n_ranks;
    uint32_t table;
    enum tier tier;
    double load_factor; /* 0 if the text does not give it */
};

/* Finds the table of an entry, checks the entry's ranks and sets its tier from
 * its kernel. If the text gives rows and columns, compares them with the
 * table's. ERR_INPUT messages lack the line. */
int torchrec_check_entry(struct torchrec_entry *entry,
                         struct torchrec_reader *reader,
                         struct err *err) MUST_CHECK;
/* Adds a shard on the entry's i-th rank. The caller has set the shard's rows
 * and columns. A shard without rows is not added. */
void torchrec_add_shard(struct torchrec_reader *reader,
                        const struct torchrec_entry *entry, size_t i,
                        struct shard shard);
void torchrec_add_replicas(struct torchrec_reader *reader,
                           const struct torchrec_entry *entry);
/* Adds the shards of a table that is divided into equal blocks. Each column
 * block has entry->width columns. The ranks are divided evenly among the column
 * blocks: a column block has as many row blocks as it has ranks. */
void torchrec_add_pieces(struct torchrec_reader *reader,
                         const struct torchrec_entry *entry);

#endif
