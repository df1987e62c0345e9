/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_ORACLES_H
#define NEUROSHARD_COSTMODEL_ORACLES_H

#include "core/plan.h"

/*
 * The cost models as oracles. Each opens for one problem and lives in the
 * arena.
 */

/* COST as a user writes it: "model:FILE", "roofline:NAME", "reference:DIR",
 * "torchrec", "torchrec:KEY=VALUE,...". An oracle's name is such a text, and
 * opens it again. */
int oracle_open(struct oracle **out, const char *spec,
                const struct problem *problem, struct arena *arena,
                struct err *err) MUST_CHECK;

/* Options of which a cost model heeds some: HEED(NAME, "option"). What one does
 * not heed changes none of its prices. */
#define HEEDS(HEED)                  \
    HEED(INTRA, "intra-gbps")        \
    HEED(INTER, "inter-gbps")        \
    HEED(HOST, "gpus-per-host")      \
    HEED(DOMAIN, "hosts-per-domain") \
    HEED(PIPELINE, "pipeline")       \
    HEED(CHUNKS, "chunks")           \
    HEED(DEDUP, "dedup")             \
    HEED(DENSE, "dense-ms")          \
    HEED(HOST_MS, "host-ms")
#define HEED_BIT(name, option) HEED_BIT_##name,
enum { HEEDS(HEED_BIT) N_HEEDS };
#define HEED_MASK(name, option) HEED_##name = 1 << HEED_BIT_##name,
enum heed { HEEDS(HEED_MASK) HEED_ALL = (1 << N_HEEDS) - 1 };
#define HEED_NETWORK (HEED_INTRA | HEED_INTER | HEED_HOST | HEED_DOMAIN)

/* The options that the cost model of this text heeds, a mask: without those
 * that a setting in the text overrides. */
unsigned oracle_heeds(const char *spec);

/* The GPU that the cost model of this text is of, for gpu_spec_get; NULL where
 * it is of none that is known. */
int oracle_gpu(const char **gpu, const char *spec, struct arena *arena,
               struct err *err) MUST_CHECK;
/* That of a model file, named as for oracle_learned_open. */
int oracle_learned_gpu(const char **gpu, const char *file, struct arena *arena,
                       struct err *err) MUST_CHECK;

/* Prices a plan by the cost model of this text: oracle_open and plan_price. */
int oracle_price_plan(struct plan *plan, const char *spec, struct arena *arena,
                      struct err *err) MUST_CHECK;

/* The default for a GPU name: its shipped model under data/models/, else its
 * roofline. */
int oracle_open_for_gpu(struct oracle **out, const char *gpu,
                        const struct problem *problem, struct arena *arena,
                        struct err *err) MUST_CHECK;

/*
 * The cost models, a line each: ORACLE(ID, "NAME", what follows the name, in
 * brackets if it may be left out and "" if nothing does, the options that it
 * heeds). oracle_ID_open, in a file of its own, gets what follows the colon, or
 * "".
 *
 *   learned    a model file trained by this program. A name without a '/' is
 *              that of a shipped model, data/models/NAME or NAME.nsm, where
 *              there is one of that name; anything else is a path, so "./NAME"
 *              is the one in the current folder. The oracle is named "model:"
 *              and the file as given: a shipped model is found by that name
 *              from any folder.
 *   roofline   formulas over published constants of a GPU, and what bandwidths
 *              the cluster asks for. Prices every kind.
 *   reference  NeuroShard's published nets, as JSON in a folder:
 *              net_compute.json, net_comm_R_fw.json, net_comm_R_bw.json for R
 *              devices. Prices table and column shards.
 *   torchrec   what TorchRec's planner says a plan takes: its formulas
 *              (1.9.0a0) over its default bandwidths, additive over shards. Of
 *              the settings hbm, intra and inter are GiB/s (2^30 bytes a
 *              second) of a rank's memory, inside a host and across (897, 600,
 *              12.5; of the last two, what the cluster asks for where no
 *              setting says otherwise); outputs=new caps a pooled table's
 *              outputs by its look-ups, outputs=legacy does as TorchRec did
 *              before April 2026. Prices every kind, rows as cut over all ranks
 *              or those of one host.
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

/* "model:FILE, roofline:NAME, ..." */
#define ORACLE_CHOICE(id, name, argument, heeds) ", " name argument
#define ORACLE_CHOICES (&(ORACLES(ORACLE_CHOICE))[2])

#endif
