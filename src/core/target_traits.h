/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TARGET_TRAITS_H
#define NEUROSHARD_CORE_TARGET_TRAITS_H

#include "core/problem.h"

/* All rules of a target are one row of target_traits. Code that depends on a
 * target reads its row. */

/* Ways in which a target deals the rows of a table to devices. */
enum target_rows {
    TARGET_ROWS_ANY, /* blocks of any rows on any devices */
    /* Blocks of ceil(rows / k) rows with a shorter last block. Block i is on
     * device i of the cluster, or of one host or NVLink domain. k is the number
     * of these devices. */
    TARGET_ROWS_HOST,
    TARGET_ROWS_ALL, /* blocks as with TARGET_ROWS_HOST, but always over all
                        devices */
    /* Row r is on the (r modulo k)-th of k devices, in their order. In a plan,
     * block i stands for the rows of device i. The first blocks have one row
     * more than the last if k does not divide the number of rows. */
    TARGET_ROWS_DEALT
};

/* Widths that the column pieces of a table may have. */
enum target_widths {
    TARGET_WIDTHS_ANY,
    TARGET_WIDTHS_ALIKE_ON_GPU, /* pieces on one device are equally wide */
    TARGET_WIDTHS_ALIKE         /* all pieces are equally wide */
};

struct target_traits {
    enum target target;
    const char *name;      /* name in options and files, such as "hugectr" */
    const char *framework; /* name in messages, such as "HugeCTR" */
    /* Masks of the shard kinds of tables with pooled and with sequence output,
     * indexed by enum table_output. 0: the target has no such tables. */
    unsigned kinds[2];
    enum target_rows rows[2]; /* indexed by enum table_output */
    enum target_widths widths;
    /* widths of all pieces, replicas and whole tables are multiples of this; 0:
     * no limit */
    uint32_t column_step;
    uint32_t most_width; /* most columns of a piece; 0: no limit */
    /* true: a device holds at most one piece of a table */
    bool keeps_apart;
    /* true: all sequence tables of a module have one dim, and their column
     * pieces have one width */
    bool sequences_alike;
    /* true: no table may be replicated if any sequence table has more than one
     * lookup per sample */
    bool sequences_bar_replicas;
    /* true: each table gives one vector per sample, and all tables have one
     * optimizer */
    bool is_plain;
    bool has_groups;     /* the framework has sharding groups */
    bool has_tiers;      /* the framework has tables in host memory */
    bool has_reshard;    /* the framework moves tables of a running job */
    unsigned precisions; /* mask of 1 << enum precision */
    unsigned optimizers; /* mask of 1 << enum optimizer, for all tables */
    unsigned replica_optimizers; /* mask for tables with replicas */
};
/* Traits of the targets, indexed by enum target. */
extern const struct target_traits target_traits[N_TARGETS];
/* Names of the targets, indexed by enum target; NULL-terminated. */
extern const char *const target_names[];

static inline const struct target_traits *
problem_target(const struct problem *problem)
{
    return &target_traits[problem->target];
}

#endif
