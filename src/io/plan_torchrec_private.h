/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_PLAN_TORCHREC_PRIVATE_H
#define NEUROSHARD_IO_PLAN_TORCHREC_PRIVATE_H

#include "io/plan_torchrec.h"
#include "io/tables_private.h"

/* What the readers of TorchRec's plans share. */

/* A plan while it is read. */
struct torchrec_reader {
    struct plan *plan;
    const char *source;
    struct arena *arena;
    bool lists_tables;  /* those of the plan come from the text */
    bool needs_kernels; /* false: tables may be kept anywhere */
    bool has_blocks;    /* shards need not be listed */
    const struct tables_options *options;
    json_t *places;  /* owned; the table of each name */
    bool *is_placed; /* [n_tables] */
    size_t cap;      /* of the plan's shards, which are grown */
};

/* A table of the plan, what is cut of it and where it lies. */
struct torchrec_entry {
    const char *fqn, *kernel;
    uint64_t n_rows, dim, width; /* as far as the text says; else 0 */
    uint32_t *ranks;             /* [n_ranks] */
    size_t n_ranks;
    uint32_t table;
};

/* Finds the table of an entry and checks its kernel, ranks and, as far as the
 * text says them, rows and columns. ERR_INPUT is a sentence without its place.
 */
int torchrec_check_entry(struct torchrec_entry *entry,
                         struct torchrec_reader *reader,
                         struct err *err) MUST_CHECK;
/* Adds a piece on the entry's i-th rank; none, if it has no rows. */
void torchrec_add_shard(struct torchrec_reader *reader,
                        const struct torchrec_entry *entry, size_t i,
                        struct shard shard);
void torchrec_add_replicas(struct torchrec_reader *reader,
                           const struct torchrec_entry *entry);
/* Adds equal blocks: of columns as wide as the entry's, of rows as many as
 * ranks are left for each of them. */
void torchrec_add_pieces(struct torchrec_reader *reader,
                         const struct torchrec_entry *entry);

/* A plan as JSON, or as Python prints it. ERR_INPUT is "source:line: ...". */
int torchrec_read_json(struct torchrec_reader *reader, const char *text,
                       size_t len, struct err *err) MUST_CHECK;
int torchrec_read_printed(struct torchrec_reader *reader, const char *text,
                          size_t len, struct err *err) MUST_CHECK;

#endif
