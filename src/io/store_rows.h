/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_ROWS_H
#define NEUROSHARD_IO_STORE_ROWS_H

#include "core/product.h"
#include "device/probe.h"
#include "io/model_verdict.h"
#include "io/store.h"

/*
 * Rows of the cost database: the sink that adds samples, and the readers of the
 * samples. The errors are those of io/store.h.
 */

/* Returns a sink whose ctx is the store. If a sample is already stored, putting
 * it again succeeds and the stored sample is kept. A new exchange replaces a
 * stored exchange with the same (setting, kind, ranks, hosts, bytes). */
struct sample_sink store_sink(struct store *store);
/* store_put_ceiling and store_has_ceiling are the callbacks of a sink of
 * ceilings, whose ctx is the store. A new ceiling replaces a stored ceiling of
 * the same probe on the same device. Only `device`, `n_threads` and `isa` of
 * the setting are used. */
int store_put_ceiling(void *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling,
                      struct err *err) MUST_CHECK;
bool store_has_ceiling(void *store, const struct sample_setting *setting,
                       const struct probe *probe);

/* Reads all settings into the arena, the oldest first. */
int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err) MUST_CHECK;
/* Samples that a reading function selects. STORE_SETTING: samples of exactly
 * one setting. STORE_DEVICE: samples of all settings with the same device,
 * n_threads and isa. */
enum store_scope { STORE_SETTING, STORE_DEVICE };
/* Reads all samples of a setting or a device into the arena, and sets the
 * member `setting` of each sample. Order: oldest setting first, then seed,
 * case, kind, part. *n is 0 if the setting is unknown. */
int store_samples(struct store *store, const struct sample_setting *setting,
                  enum store_scope scope, struct sample **samples, size_t *n,
                  struct arena *arena, struct err *err) MUST_CHECK;
/* Reads all exchanges of a setting or a device, in the order of (setting, kind,
 * ranks, hosts, total bytes, largest bytes). */
int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, struct comm_sample **samples,
                       size_t *n, struct arena *arena,
                       struct err *err) MUST_CHECK;
/* Reads the ceilings of a device in the order of their measurement. */
int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* store_put_product and store_has_product are the callbacks of a sink of matrix
 * products, as store_put_ceiling and store_has_ceiling are for ceilings. */
int store_put_product(void *store, const struct sample_setting *setting,
                      const struct product_sample *sample,
                      struct err *err) MUST_CHECK;
bool store_has_product(void *store, const struct sample_setting *setting,
                       const struct product *product);
/* Reads the matrix products of a device in the order of type, form and
 * shape. */
int store_products(struct store *store, const struct sample_setting *setting,
                   struct product_sample **samples, size_t *n,
                   struct arena *arena, struct err *err) MUST_CHECK;
/* Adds the result of a retraining to the training log. */
int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err) MUST_CHECK;

#endif
