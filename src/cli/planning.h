/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "core/oracle.h"
#include "core/plan.h"
#include "io/tables_io.h"

/*
 * What plan, compare and cost share: the options that say what is planned for,
 * and how a problem and a cost model come of them.
 */

#define PLANNING_MAX_GPUS 65536

/* Entries of a command's option table. */
#define PLANNING_BANDWIDTHS                                               \
    OPTION_ENTRY(                                                         \
        "intra-gbps", 0, OPTION_DOUBLE, "X", NULL, CLUSTER_MIN_GBPS,      \
        CLUSTER_MAX_GBPS, NULL,                                           \
        "bandwidth of a GPU in its host or domain, 10^9 bytes a second"), \
        OPTION_ENTRY("inter-gbps", 0, OPTION_DOUBLE, "X", NULL,           \
                     CLUSTER_MIN_GBPS, CLUSTER_MAX_GBPS, NULL,            \
                     "bandwidth of a GPU across them, 10^9 bytes a second")

/* Of commands that price a plan: planning_oracle_of_plan reads them. */
#define PRICING_OPTIONS                                                        \
    OPTION_ENTRY("cost", 0, OPTION_STRING, "COST", NULL, 0, 0, NULL,           \
                 "cost model; without it the plan's own, else that of --gpu"), \
        OPTION_ENTRY("gpu", 0, OPTION_STRING, "NAME", "h100", 0, 0, NULL,      \
                     "GPU whose cost model prices a plan that names none"),    \
        PLANNING_BANDWIDTHS

/* GPUS is how --gpus is given: OPTION_U64, "N", or OPTION_RANGE, "N|N..M". */
#define PLANNING_OPTIONS(GPUS, ARGUMENT)                                       \
    OPTION_ENTRY("gpus", 'g', GPUS, ARGUMENT, NULL, 1, PLANNING_MAX_GPUS,      \
                 NULL, "number of GPUs"),                                      \
        OPTION_ENTRY("cluster", 0, OPTION_STRING, "FILE", NULL, 0, 0, NULL,    \
                     "the GPUs, where they are not all alike, as JSON"),       \
        OPTION_ENTRY(                                                          \
            "gpu", 0, OPTION_STRING, "NAME", "h100", 0, 0, NULL,               \
            "GPU planned for: its memory, bandwidths and cost model"),         \
        OPTION_ENTRY(                                                          \
            "gpus-per-host", 0, OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS,   \
            NULL,                                                              \
            "GPUs of one host; without it up to as many as it is sold with"),  \
        OPTION_ENTRY(                                                          \
            "hosts-per-domain", 0, OPTION_U64, "N", NULL, 1,                   \
            PLANNING_MAX_GPUS, NULL,                                           \
            "hosts of one NVLink domain; without it each is by itself"),       \
        OPTION_ENTRY("memory", 'm', OPTION_BYTES, "SIZE", NULL, 0, 0, NULL,    \
                     "memory of a GPU; without it that of the named GPU"),     \
        OPTION_ENTRY("reserve", 0, OPTION_STRING, "SIZE|PERCENT", "15%", 0, 0, \
                     NULL,                                                     \
                     "memory of a GPU that must stay free; 0 where weights "   \
                     "alone count"),                                           \
        PLANNING_BANDWIDTHS,                                                   \
        OPTION_ENTRY("batch", 'b', OPTION_U64, "N", "65536", 1,                \
                     PROBLEM_MAX_BATCH, NULL,                                  \
                     "global batch: samples a step over all GPUs"),            \
        OPTION_ENTRY("batch-per-gpu", 0, OPTION_U64, "N", NULL, 1,             \
                     PROBLEM_MAX_BATCH, NULL,                                  \
                     "the same for one GPU; wins over --batch"),               \
        OPTION_ENTRY("dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL, \
                     "columns of the tables whose dim cell is empty"),         \
        OPTION_ENTRY("cost", 0, OPTION_STRING, "COST", NULL, 0, 0, NULL,       \
                     "cost model: model:FILE, roofline:NAME, reference:DIR "   \
                     "or torchrec[:KEY=VALUE,...]"),                           \
        OPTION_ENTRY(                                                          \
            "shard", 0, OPTION_STRING, "KINDS", NULL, 0, 0, NULL,              \
            "shard kinds allowed, of table,column,row,grid,replicate"),        \
        OPTION_ENTRY(                                                          \
            "min-width", 0, OPTION_U64, "N", "4", 4, TABLES_MAX_DIM, NULL,     \
            "columns of the narrowest piece of a table, a multiple of 4"),     \
        OPTION_ENTRY(                                                          \
            "row-cut", 0, OPTION_CHOICE, "HOW", "ranks", 0, 0, "ranks|any",    \
            "cuts by rows: ranks: equal blocks over all GPUs or those of a "   \
            "host, as TorchRec has them; any: over any GPUs"),                 \
        OPTION_ENTRY("memory-model", 0, OPTION_CHOICE, "MODEL", "full", 0, 0,  \
                     "full|weights", "what counts as memory"),                 \
        OPTION_ENTRY("dense-optimizer", 0, OPTION_CHOICE, "NAME", "adam", 0,   \
                     0, "sgd|adagrad|adam|table",                              \
                     "what updates replicas, whose state counts so: the "      \
                     "optimizer of the dense part, or each table's own"),      \
        OPTION_ENTRY("threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,       \
                     "threads of the search; the plan does not depend on it"), \
        OPTION_ENTRY("seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,           \
                     "seed of what is drawn")

/* Reads the table list and fills the problem from the options; of a range of
 * GPUs for the first number. `like` is that of the plan that stands, or all 0:
 * it says how many GPUs a host has, and which pieces are too narrow, where no
 * option does. */
int planning_problem(struct problem *problem, const char *path,
                     const struct problem *like, struct cli *cli,
                     struct err *err) MUST_CHECK;

/* The numbers of GPUs that --gpus asks about, rising. Of a range with
 * --gpus-per-host: whole hosts, and below one host any number. */
struct planning_counts {
    bool is_range;
    uint32_t *n_gpus; /* [n], in the arena */
    size_t n;         /* >= 1 */
};
int planning_counts(struct planning_counts *counts, struct cli *cli,
                    struct err *err) MUST_CHECK;
/* Cluster and batch of the options for one of these numbers; the problem's
 * memory model is set. */
int planning_set_gpus(struct problem *problem, uint32_t n_gpus,
                      const struct cluster *like, struct cli *cli,
                      struct err *err) MUST_CHECK;
/* The same of --cluster, which says how many there are. */
int planning_set_cluster(struct problem *problem, struct cli *cli,
                         struct err *err) MUST_CHECK;

/* The cost model of --cost, else the one of --gpu. */
int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err) MUST_CHECK;
/* For a plan that is there already, by PRICING_OPTIONS: the model asked for,
 * else the plan's own, else that of the GPU. It prices every cut.
 * Bandwidths that are asked for stay with the plan. */
int planning_oracle_of_plan(struct oracle **out, struct cli *cli,
                            struct plan *plan, struct err *err) MUST_CHECK;
/* Puts those of the options in the cluster. */
void planning_set_bandwidths(struct cluster *cluster, const struct cli *cli);

/* Sorts shards, derives kinds, prices, hashes the inputs and judges. */
int planning_finish(struct plan *plan, const struct oracle *oracle,
                    struct arena *arena, struct err *err) MUST_CHECK;

#endif
