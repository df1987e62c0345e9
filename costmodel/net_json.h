/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_NET_JSON_H
#define NEUROSHARD_COSTMODEL_NET_JSON_H

#include "costmodel/fast_mlp.h"
#include "costmodel/features.h"

/*
 * A net of the published code as JSON: an object with the lists `features`
 * (names), `feature_means`, `feature_stds` and `layers`, each layer an object
 * of `name`, `inp`, `out`, `weight` ([out][inp]) and `bias`.
 */

#define NET_MAX_INPUTS 256 /* that of 128 devices */

struct net_file {
    const char *path;
    uint32_t n_inputs;               /* that it must have, <= NET_MAX_INPUTS */
    uint32_t inputs[NET_MAX_INPUTS]; /* input i is features[inputs[i]] */
    float *mean, *std;               /* [n_inputs], in the arena */
    struct mlp_layer layers[FAST_MLP_MAX_LAYERS]; /* all with ReLU */
    uint32_t n_layers;
};

/* The text, which must have the features[n_inputs], each once, in any order.
 * All numbers are finite. ERR_INPUT with path and what is wrong; file->path
 * need not be there. */
int net_file_parse(struct net_file *file, const char *const *features,
                   const char *text, size_t len, struct arena *arena,
                   struct err *err) MUST_CHECK;

/* The same of the file at file->path. *hash takes in the file's bytes. ERR_IO
 * besides. */
int net_file_read(struct net_file *file, const char *const *features,
                  uint64_t *hash, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* The same of DIR/net_compute.json, which has the published features: they are
 * returned in the order of its inputs, with their scaling. Sets path and
 * n_inputs of the file. */
int net_file_read_compute(struct net_file *file, struct feature_set *features,
                          const char *dir, uint64_t *hash, struct arena *arena,
                          struct err *err) MUST_CHECK;

#endif
