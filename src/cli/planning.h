/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLANNING_H
#define NEUROSHARD_CLI_PLANNING_H

#include "cli/command.h"
#include "core/oracle.h"
#include "core/plan.h"

/*
 * What plan, compare and cost share: the options that say what is planned for,
 * and how a problem and a cost model come of them.
 */

#define PLANNING_MAX_GPUS 65536

/* Entries of a command's option table. */
#define PLANNING_OPTIONS                                                       \
    {"gpus",          'g', OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,  \
     "number of GPUs"},                                                        \
        {"gpu",                                                                \
         0,                                                                    \
         OPTION_STRING,                                                        \
         "NAME",                                                               \
         "h100",                                                               \
         0,                                                                    \
         0,                                                                    \
         NULL,                                                                 \
         "GPU planned for: its memory, bandwidths and cost model"},            \
        {"gpus-per-host",                                                      \
         0,                                                                    \
         OPTION_U64,                                                           \
         "N",                                                                  \
         NULL,                                                                 \
         1,                                                                    \
         PLANNING_MAX_GPUS,                                                    \
         NULL,                                                                 \
         "GPUs of one host; without it one host holds all"},                   \
        {"memory", 'm',  OPTION_BYTES,                                         \
         "SIZE",   NULL, 0,                                                    \
         0,        NULL, "memory of a GPU; without it that of the named GPU"}, \
        {"reserve",                                                            \
         0,                                                                    \
         OPTION_STRING,                                                        \
         "SIZE|PERCENT",                                                       \
         "0",                                                                  \
         0,                                                                    \
         0,                                                                    \
         NULL,                                                                 \
         "memory of a GPU that must stay free, e.g. 4GiB or 15%"},             \
        {"batch", 'b',     OPTION_U64,                                         \
         "N",     "65536", 1,                                                  \
         1e12,    NULL,    "global batch: samples a step over all GPUs"},      \
        {"batch-per-gpu",                                                      \
         0,                                                                    \
         OPTION_U64,                                                           \
         "N",                                                                  \
         NULL,                                                                 \
         1,                                                                    \
         1e12,                                                                 \
         NULL,                                                                 \
         "the same for one GPU; wins over --batch"},                           \
        {"dim",   0,    OPTION_U64,                                            \
         "D",     NULL, 1,                                                     \
         1048576, NULL, "columns of the tables whose dim cell is empty"},      \
        {"cost",                                                               \
         0,                                                                    \
         OPTION_STRING,                                                        \
         "COST",                                                               \
         NULL,                                                                 \
         0,                                                                    \
         0,                                                                    \
         NULL,                                                                 \
         "cost model: model:FILE, roofline:NAME, reference:DIR or "            \
         "torchrec[:KEY=VALUE,...]"},                                          \
        {"shard", 0,    OPTION_STRING,                                         \
         "KINDS", NULL, 0,                                                     \
         0,       NULL, "shard kinds allowed, of table,column,row,replicate"}, \
        {"row-cut",                                                            \
         0,                                                                    \
         OPTION_CHOICE,                                                        \
         "HOW",                                                                \
         "ranks",                                                              \
         0,                                                                    \
         0,                                                                    \
         "ranks|any",                                                          \
         "cuts by rows: ranks: equal blocks over all GPUs or those of a "      \
         "host, as TorchRec has them; any: over any GPUs"},                    \
        {"memory-model",                                                       \
         0,                                                                    \
         OPTION_CHOICE,                                                        \
         "MODEL",                                                              \
         "full",                                                               \
         0,                                                                    \
         0,                                                                    \
         "full|weights",                                                       \
         "what counts as memory"},                                             \
        {"threads",                                                            \
         0,                                                                    \
         OPTION_U64,                                                           \
         "N",                                                                  \
         NULL,                                                                 \
         1,                                                                    \
         1024,                                                                 \
         NULL,                                                                 \
         "threads of the search; the plan does not depend on it"},             \
    {                                                                          \
        "seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,                        \
            "seed of what is drawn"                                            \
    }

/* Reads the table list and fills the problem from the options. */
int planning_problem(struct problem *problem, const char *path, struct cli *cli,
                     struct err *err) MUST_CHECK;

/* The cost model of --cost, else the one of --gpu. */
int planning_oracle(struct oracle **out, struct cli *cli,
                    const struct problem *problem, struct err *err) MUST_CHECK;
/* For a plan that is there already, by options "cost" and "gpu": the model
 * asked for, else the plan's own, else that of the GPU. It prices every cut. */
int planning_oracle_of_plan(struct oracle **out, struct cli *cli,
                            const struct plan *plan,
                            struct err *err) MUST_CHECK;

/* Sorts shards, derives kinds, prices, hashes the inputs and judges. */
int planning_finish(struct plan *plan, const struct oracle *oracle,
                    struct arena *arena, struct err *err) MUST_CHECK;

#endif
