/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELS_ORACLES_H
#define NEUROSHARD_COSTMODEL_MODELS_ORACLES_H

#include "core/plan.h"

/*
 * Cost models as oracles. Each oracle is opened for one problem and lives in
 * the arena.
 */

/* Options that only some cost models depend on: HEED(NAME, "option"). An option
 * that a cost model does not heed changes none of its prices. */
#define HEEDS(HEED)                  \
    HEED(INTRA, "intra-gbps")        \
    HEED(INTER, "inter-gbps")        \
    HEED(HOST, "gpus-per-host")      \
    HEED(DOMAIN, "hosts-per-domain") \
    HEED(PIPELINE, "pipeline")       \
    HEED(CHUNKS, "chunks")           \
    HEED(DEDUP, "dedup")             \
    HEED(DENSE, "dense-ms")          \
    HEED(LAYERS, "dense")            \
    HEED(HOST_MS, "host-ms")
#define HEED_BIT(name, option) HEED_BIT_##name,
enum { HEEDS(HEED_BIT) N_HEEDS };
#define HEED_MASK(name, option) HEED_##name = 1 << HEED_BIT_##name,
enum heed { HEEDS(HEED_MASK) HEED_ALL = (1 << N_HEEDS) - 1 };
#define HEED_NETWORK (HEED_INTRA | HEED_INTER | HEED_HOST | HEED_DOMAIN)

/*
 * List of the cost models: ORACLE(ID, "NAME", argument, options). The argument
 * is the text that may follow the name. It is in brackets if it is optional,
 * and "" if the model takes no argument. The options are those that the model
 * heeds. Each model is opened by the function oracle_ID_open, which has a file
 * of its own. The function gets the text after the colon, or "".
 *
 *   learned    A model file trained by this program. A name without a '/' is
 *              first looked up among the shipped models: data/models/NAME or
 *              NAME.nsm. Anything else is a path, so "./NAME" is the file in
 *              the current folder. The oracle's name is "model:" and the file
 *              as given, so a shipped model is found from any folder.
 *   roofline   Formulas over published constants of a GPU, with the bandwidths
 *              that the cluster sets. Prices every kind of shard.
 *   reference  NeuroShard's published nets, as JSON in a folder:
 *              net_compute.json, net_comm_R_fw.json, net_comm_R_bw.json for R
 *              devices. Prices table and column shards.
 *   torchrec   Time of a plan as TorchRec's planner predicts it: its formulas
 *              (1.9.0a0) over its default bandwidths, additive over shards.
 *              Settings:
 *                hbm, intra, inter  GiB/s (2^30 bytes a second) of a rank's
 *                                   memory, inside a host and across hosts.
 *                                   Defaults are 897, 600 and 12.5. If the
 *                                   cluster sets bandwidths, they replace
 *                                   the defaults of intra and inter.
 *                outputs=new        caps a pooled table's outputs by its
 *                                   lookups
 *                outputs=legacy     as in TorchRec before April 2026
 *              Prices every kind of shard. Rows may be cut over all ranks or
 *              over the ranks of one host.
 */
#define ORACLES(ORACLE)                             \
    ORACLE(learned, "model", ":FILE", HEED_ALL)     \
    ORACLE(roofline, "roofline", ":NAME", HEED_ALL) \
    ORACLE(reference, "reference", ":DIR", 0)       \
    ORACLE(torchrec, "torchrec", "[:KEY=VALUE,...]", HEED_NETWORK)

#define ORACLE_DECLARE(id, name, argument, heeds)                              \
    int oracle_##id##_open(struct oracle **out, const char *text,              \
                           const struct problem *problem, struct arena *arena, \
                           struct err *err) MUST_CHECK;
ORACLES(ORACLE_DECLARE)

/* Text that lists the choices of cost models: "model:FILE, roofline:NAME,
 * ..." */
#define ORACLE_CHOICE(id, name, argument, heeds) ", " name argument
#define ORACLE_CHOICES (&(ORACLES(ORACLE_CHOICE))[2])

#endif
