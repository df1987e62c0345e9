/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_PLACED_TABLES_H
#define NEUROSHARD_EMIT_PLACED_TABLES_H

#include "base/json.h"
#include "core/plan.h"

/*
 * Where the tables of a plan are: lists of GPUs, names of pieces, and the table
 * that `plan --tables` and `explain --device` print. The plan must have passed
 * plan_check and must be priced, and its shards must be sorted.
 */

/* A table with all its pieces, or one piece of a table. */
struct placed {
    size_t begin, end; /* its shards: plan->shards[begin] .. [end - 1] */
    double alone_ms;   /* sum of their shard_ms */
    uint64_t bytes;    /* sum of their memory (shard_memory) */
    /* training differs from that of the uncut table (kind_changes_training) */
    bool changes_training;
};
/* Instead of a GPU: all GPUs. */
#define ALL_GPUS UINT32_MAX

/* Fills placed[] with the tables of the plan, or with the pieces that are on
 * one GPU. The most expensive one comes first: ties of alone_ms break by bytes,
 * then by index. placed[] has room for plan->n_shards items. Returns the number
 * of items. */
size_t placed_find(struct placed *placed, const struct plan *plan,
                   uint32_t gpu);

/* Prints the name of the table of shard `idx`, its middle cut out if it is
 * longer than `most` characters, and then its pieces: "/8" for eight of them,
 * "*" for replicas. */
void placed_print_name(const struct plan *plan, size_t idx, size_t most,
                       struct buf *out);
/* Prints GPUs as ranges, "0,3-5", each once. A list of more than `room`
 * characters is cut short and ends with "..". Sorts gpus[n]. */
void placed_print_gpus(uint32_t *gpus, size_t n, size_t room, struct buf *out);
/* Prints the GPUs that hold plan->shards[begin] .. [end - 1] in this form. */
void placed_print_holders(const struct plan *plan, size_t begin, size_t end,
                          size_t room, struct buf *out);
/* Prints the GPUs that hold a table: " on GPU 3" or " on GPUs 0-7"; nothing if
 * the plan has one GPU. */
void placed_print_where(const struct plan *plan, uint32_t table,
                        struct buf *out);

/* Prints a line for each table, or for each piece on a GPU, in the order of
 * placed_find: rows, dim, cut, GPUs, memory, time alone, and a mark where
 * training changes. The lines have at most n_columns characters unless numbers
 * leave no room for a name. Two lines of text, which the caller has to wrap
 * (text_wrap_lines), name the cost model and explain the mark. Prints nothing
 * if the GPU holds nothing. */
void placed_print(const struct plan *plan, uint32_t gpu, size_t n_columns,
                  struct buf *out);
/* Adds the memory of each shard, and whether it changes training, to the
 * objects of a JSON list of plan->n_shards shards. */
void placed_add_json(json_t *shards, const struct plan *plan);

#endif
