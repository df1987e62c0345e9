/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_MODEL_FILE_H
#define NEUROSHARD_COSTMODEL_MODELFILE_MODEL_FILE_H

#include "costmodel/modelfile/model.h"

/*
 * The file of a trained cost model (neuroshard-model(5)). All numbers are
 * little-endian:
 *
 *     offset    bytes
 *          0        8   89 4E 53 48 41 52 44 0A ("\x89NSHARD\n")
 *          8        4   format version, 5; 4 without matrix products
 *         12        4   H, length of the header
 *         16        8   N, number of weights
 *         24        H   header: one JSON object, padded with blanks so that
 *                       24 + H is a multiple of 64
 *     24 + H       4N   weights, float32: w1 b1 w2 b2 w3 b3 w4 b4 of
 *                       costmodel/formulas/mlp.h, matrices row by row
 *  24 + H + 4N      8   XXH3 (64 bits, seed 0) of everything before
 *
 * The header contains
 * - the setting and environments of the measurements,
 * - the features with their scaling,
 * - the estimate that the net corrects,
 * - the shape of the net, if there is one,
 * - how the model was trained, and its errors on held-out samples,
 * - its prediction intervals for each class of device,
 * - the communication curves, the measured matrix products, and the physical
 *   floor.
 *
 * A file of version 1 has one setting and no estimate. A file of version 2 has
 * a net and no roofline. A file of version 3 has no monotone net. A file of
 * version 4 has no matrix products. Models without products are still written
 * in version 4, which older programs read.
 */

#define MODEL_VERSION 5
#define MODEL_VERSION_WITHOUT_PRODUCTS 4
#define MODEL_OLDEST_VERSION 1
#define MODEL_MAX_HEADER (1u << 20)
/* Writes the bytes of the whole file, in the arena, and sets model->hash. Equal
 * models give equal bytes. */
void model_to_bytes(struct model *model, const char **data, size_t *len,
                    struct arena *arena);
/* Reads a model from the bytes data[len] of its file. `where` is the name of
 * the file for error messages. The model lives in the arena. The message of
 * ERR_INPUT states the reason: not a model file, another version, truncated,
 * damaged, a weight that is not finite, or a shape or a feature that this
 * program cannot use. */
int model_parse(struct model *model, const char *data, size_t len,
                const char *where, struct arena *arena,
                struct err *err) MUST_CHECK;

int model_load(struct model *model, const char *path, struct arena *arena,
               struct err *err) MUST_CHECK;
/* Writes the model file atomically: `path` is always either the old file or the
 * complete new one. The new file is first parsed as in model_load. If it cannot
 * be parsed, returns ERR_INPUT. Sets model->hash. */
int model_save(struct model *model, const char *path,
               struct err *err) MUST_CHECK;

/* Reads the compute net of a folder of reference nets (DIR/net_compute.json) as
 * a model of the published features. Its basis is BASIS_MODELLED, and its
 * setting is the published setting: a batch of 65,536 samples, fp32, exact SGD.
 * The model lives in the arena. Returns ERR_IO if the file cannot be read, or
 * ERR_INPUT if the file is not a compute net. */
int model_import(struct model *model, const char *dir, struct arena *arena,
                 struct err *err) MUST_CHECK;

#endif
