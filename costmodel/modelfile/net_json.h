/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_NET_JSON_H
#define NEUROSHARD_COSTMODEL_MODELFILE_NET_JSON_H

#include "costmodel/formulas/fast_mlp.h"
#include "costmodel/formulas/features.h"

/*
 * Reader for nets of the published code, which are JSON files. A net is an
 * object with the lists `features` (names), `feature_means`, `feature_stds` and
 * `layers`. Each layer is an object with `name`, `inp`, `out`, `weight`
 * ([out][inp]) and `bias`.
 */

#define NET_MAX_INPUTS 256 /* inputs of the net for 128 devices */

struct net_file {
    const char *path;
    /* Number of inputs that the net must have, <= NET_MAX_INPUTS. */
    uint32_t n_inputs;
    /* Input i of the net is features[inputs[i]]. */
    uint32_t inputs[NET_MAX_INPUTS];
    /* [n_inputs], scaling of the inputs, in the arena. */
    float *mean, *std;
    struct mlp_layer layers[FAST_MLP_MAX_LAYERS]; /* all layers have a ReLU */
    uint32_t n_layers;
};

/* Parses the text of a net. It must have each of features[n_inputs] once, in
 * any order, and all numbers must be finite. The message of ERR_INPUT gives
 * file->path and the reason. No file needs to exist at file->path. */
int net_file_parse(struct net_file *file, const char *const *features,
                   const char *text, size_t len, struct arena *arena,
                   struct err *err) MUST_CHECK;

/* Reads and parses the file at file->path. Its bytes are added to *hash.
 * Returns the errors of net_file_parse, or ERR_IO if the file cannot be
 * read. */
int net_file_read(struct net_file *file, const char *const *features,
                  uint64_t *hash, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* Reads DIR/net_compute.json, which has the published features. The features
 * are returned in the order of the net's inputs, with their scaling. Sets path
 * and n_inputs of the file. Errors are those of net_file_read. */
int net_file_read_compute(struct net_file *file, struct feature_set *features,
                          const char *dir, uint64_t *hash, struct arena *arena,
                          struct err *err) MUST_CHECK;

#endif
