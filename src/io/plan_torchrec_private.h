/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_PRIVATE_H
#define NEUROSHARD_IO_PLAN_TORCHREC_PRIVATE_H

#include "io/plan_torchrec.h"
#include "io/tables_private.h"

/* Declarations that the readers of TorchRec's plans share. */

/* State of the reader of one plan. */
struct torchrec_reader {
    struct plan *plan;
    const char *source;
    struct arena *arena;
    bool lists_tables;  /* the plan's tables come from the text */
    bool needs_kernels; /* false: tables may be kept in any memory */
    bool has_blocks;    /* unlisted shards are equal blocks */
    const struct tables_options *options;
    json_t *places;  /* owned; maps a table's name to its index */
    bool *is_placed; /* [n_tables] true: the plan has placed the table */
    size_t cap;      /* capacity of plan->shards */
};

/* A table's entry in the plan: its sharding and its ranks. */
struct torchrec_entry {
    const char *fqn, *kernel;
    /* 0 if the text does not give them; width: columns of a piece */
    uint64_t n_rows, dim, width;
    uint32_t *ranks; /* [n_ranks] ranks of the pieces */
    size_t n_ranks;
    uint32_t table;
};

/* Finds the table of an entry and checks its kernel and ranks, and its rows and
 * columns if the text gives them. ERR_INPUT messages lack the line. */
int torchrec_check_entry(struct torchrec_entry *entry,
                         struct torchrec_reader *reader,
                         struct err *err) MUST_CHECK;
/* Adds a shard on the entry's i-th rank, unless the shard has no rows. */
void torchrec_add_shard(struct torchrec_reader *reader,
                        const struct torchrec_entry *entry, size_t i,
                        struct shard shard);
void torchrec_add_replicas(struct torchrec_reader *reader,
                           const struct torchrec_entry *entry);
/* Adds equal blocks. Each column block has entry->width columns. The ranks are
 * divided evenly among the column blocks, which gives the number of row
 * blocks. */
void torchrec_add_pieces(struct torchrec_reader *reader,
                         const struct torchrec_entry *entry);

/* Read a plan as JSON, or as Python prints it. ERR_INPUT messages have the form
 * "source:line: ...". */
int torchrec_read_json(struct torchrec_reader *reader, const char *text,
                       size_t len, struct err *err) MUST_CHECK;
int torchrec_read_printed(struct torchrec_reader *reader, const char *text,
                          size_t len, struct err *err) MUST_CHECK;

#endif
