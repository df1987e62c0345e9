/* SPDX-License-Identifier: MIT */
#include "cli/planning.h"
#include "cli/planning_cluster.h"
#include "costmodel/models/oracles.h"
#include "io/tables_reader.h"

const struct option_spec batch_options[] = {
    OPTIONS_HEADED(PROBLEM_HEADING),
    {"batch", 'b', OPTION_U64, "N", "65536", 1, PROBLEM_MAX_BATCH, NULL,
     "global batch: samples per step over all GPUs"},
    {0},
};

const struct option_spec placed_options[] = {
    OPTIONS_HEADED(PROBLEM_HEADING),
    {"tables", 0, OPTION_STRING, "TABLES", NULL, 0, 0, NULL,
     "table list of a TorchRec plan, which lacks some of its columns"},
    {"batch", 'b', OPTION_U64, "N", NULL, 1, PROBLEM_MAX_BATCH, NULL,
     "global batch of a TorchRec plan, if it gives none"},
    OPTIONS_HEADED(CLUSTER_HEADING),
    {"gpus", 'g', OPTION_U64, "N", NULL, 1, PLANNING_MAX_GPUS, NULL,
     "number of GPUs of a TorchRec plan, if it lacks it or to check it"},
    {0},
};

const struct option_spec problem_options[] = {
    OPTIONS_HEADED(PROBLEM_HEADING),
    {"batch-per-gpu", 0, OPTION_U64, "N", NULL, 1, PROBLEM_MAX_BATCH, NULL,
     "samples per step of one GPU; overrides --batch"},
    {"dim", 0, OPTION_U64, "D", NULL, 1, TABLES_MAX_DIM, NULL,
     "dim of the tables whose dim cell is empty"},
    {"pooling", 0, OPTION_DOUBLE, "P", NULL, 1e-6, TABLES_MAX_FACTOR, NULL,
     "pooling factor of the tables whose pooling_factor cell is empty"},
    OPTIONS_HEADED(JOB_HEADING),
    {"dense-optimizer", 0, OPTION_CHOICE, "NAME", "adam", 0, 0,
     "table|sgd|adagrad|adam",
     "optimizer of replicated tables, which sets the memory of their state: "
     "that of the dense part, or each table's own"},
    {0},
};

const struct option_spec job_options[] = {
    OPTIONS_HEADED(JOB_HEADING),
    {"pipeline", 0, OPTION_CHOICE, "NAME", NULL, 0, 0,
     "sdd|none|prefetch|semisync",
     "training pipeline of the job, named after TorchRec's; default: the "
     "plan's, or sdd"},
    {"chunks", 0, OPTION_U64, "N", NULL, 1, JOB_MAX_CHUNKS, NULL,
     "chunks into which the job splits lookups and their exchange; default: "
     "the plan's, or 1"},
    {"dedup", 0, OPTION_CHOICE, "WHAT", NULL, 0, 0, "none|ids|sessions",
     "duplicates that the job neither sends nor looks up; default: the plan's, "
     "or none"},
    {"dense", 0, OPTION_STRING, "SPEC", NULL, 0, 0, NULL,
     "layers of the rest of the model, or its name, as 'dlrm;dtype:tf32'; "
     "default: the plan's, or unknown"},
    {"dense-ms", 0, OPTION_STRING, "F,B", NULL, 0, 0, NULL,
     "forward and backward time of the rest of the model, in ms; default: "
     "that of --dense, or unknown"},
    {"host-ms", 0, OPTION_DOUBLE, "X", NULL, 0, JOB_MAX_DENSE_MS, NULL,
     "time that the host takes to queue a step, in ms; 0: none; default: the "
     "plan's, or as measured"},
    {0},
};

const struct option_spec planning_options[] = {
    OPTIONS_HEADED(COST_HEADING),
    {"cost", 0, OPTION_STRING, "COST", NULL, 0, 0, ORACLE_CHOICES,
     "cost model"},
    OPTIONS_HEADED(CONSTRAINTS_HEADING),
    {"shard", 0, OPTION_STRING, "KINDS", NULL, 0, 0, NULL,
     "allowed shard kinds, a list of table,column,row,grid,replicate"},
    {"min-width", 0, OPTION_U64, "N", "4", 4, TABLES_MAX_DIM, NULL,
     "fewest columns of a piece of a table, a multiple of 4"},
    {"target", 0, OPTION_STRING, "NAME", "torchrec", 0, 0,
     "any|torchrec|torchrec-ec|dlrm|hugectr",
     "framework that runs the plan: the search makes only cuts that it has"},
    {"row-cut", 0, OPTION_CHOICE, "HOW", NULL, 0, 0, "any|ranks",
     "ranks: cut rows into equal blocks over all GPUs or those of a host, as "
     "TorchRec does; any: over any GPUs; default: as the target does"},
    {"memory-model", 0, OPTION_CHOICE, "MODEL", "full", 0, 0, "full|weights",
     "full: count all memory of a training step; weights: count the weights "
     "alone"},
    {"tiers", 0, OPTION_STRING, "host=SIZE|auto", NULL, 0, 0, NULL,
     "memory of each host for tables, cached on the GPUs or not; auto: four "
     "fifths of the memory of a host of this GPU"},
    {0},
};

const struct option_spec seed_options[] = {
    OPTIONS_HEADED(SEARCH_HEADING),
    {"threads", 0, OPTION_U64, "N", NULL, 1, 1024, NULL,
     "threads of the search; the plan is the same for any number"},
    {"seed", 0, OPTION_U64, "K", "0", 0, 9e15, NULL,
     "seed of the random numbers"},
    {0},
};

const struct option_spec pricing_options[] = {
    OPTIONS_HEADED(COST_HEADING),
    {"cost", 0, OPTION_STRING, "COST", NULL, 0, 0, NULL,
     "cost model; default: the plan's own, or that of --gpu"},
    {0},
};
