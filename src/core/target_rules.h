/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CORE_TARGET_RULES_H
#define NEUROSHARD_CORE_TARGET_RULES_H

#include "core/plan.h"

/*
 * Rules of the frameworks that run plans. The search makes no shard that breaks
 * a rule of the problem's target, plan_check refuses plans that do, and the
 * writers of plans check the rules of their format.
 *
 * All rules of a target are one row of target_traits. Code that depends on a
 * target reads its row.
 */

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

/* Returns the mask of the shard kinds that the target, the problem and the
 * table all allow. Takes O(1) time, or O(n_tables) if the target has
 * sequences_bar_replicas. */
unsigned problem_kinds(const struct problem *problem, size_t table);

/* Returns the mask (1 << enum tier) of the tiers that the cluster, the target
 * and the table all allow. It has no bit of TIER_CACHED if no cache holds the
 * table's precision. Takes O(1) time. */
unsigned problem_tiers(const struct problem *problem, size_t table);
/* Returns which of these kinds of the table the tier allows. Replicas are in
 * TIER_HBM, and row blocks are cached only if hot rows are spread evenly. */
unsigned tier_kinds(const struct table *table, enum tier tier, unsigned kinds);

/* Returns how the target deals the rows of this table. */
enum target_rows target_rows_of(const struct problem *problem,
                                const struct table *table);

/* Number of rows per device from which tables are cut by a target that deals
 * rows (TARGET_ROWS_DEALT). The devices with one row more then have 0.1 % more
 * rows at most, and the search may take all devices for equal. */
#define TARGET_LEAST_DEALT 1000

/* Gives the n shards of one table the rows and columns that a target with
 * TARGET_ROWS_DEALT gives them: the first columns, and of these the first rows,
 * are on the first devices. Does nothing if the table is whole or replicated,
 * or if the target deals no rows. All shards must be equally wide. The devices
 * stay. Sorts the shards by device. */
void target_deal(const struct problem *problem, struct shard *shards, size_t n);

/* Gives tables whose rows the target deals the row order `uniform`. */
void target_adopt(struct problem *problem);

/* Checks the rules about tables, which no plan can change. Fails with
 * ERR_INPUT; the message names the table. */
int target_check_tables(const struct problem *problem,
                        struct err *err) MUST_CHECK;

/* Checks all rules of the plan's target. The plan must obey the general rules
 * of plan_check, and its shards must be sorted. Fails with ERR_INPUT; the
 * message names the table. */
int target_check(const struct plan *plan, struct err *err) MUST_CHECK;

/* Checks all rules of `target`, whatever the plan's own. */
int target_check_as(const struct plan *plan, enum target target,
                    struct err *err) MUST_CHECK;

#endif
