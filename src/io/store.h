/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_H
#define NEUROSHARD_IO_STORE_H

#include "base/mem.h"
#include "core/sample.h"
#include "device/probe.h"

/*
 * The cost database: one SQLite file (WAL) with all measurements.
 * data/schema.sql is the schema.
 *
 * Each sample is one transaction. A sample that the sink has acknowledged
 * survives a kill at any moment. (setting, seed, case, kind, part) is unique,
 * so no sample is stored twice. Several processes may have one file open.
 *
 * Errors of all functions:
 *   ERR_IO     the file cannot be opened, locked (after 10 s), read or written;
 *              also if the disk is full
 *   ERR_INPUT  the file is damaged, or a row of a list that is read has a field
 *              out of range; the message names the table, the row and the field
 */
struct store; /* opaque */

/* The file's user_version. Opening an older file for writing upgrades it in one
 * transaction. A reader of an older file gets an upgraded copy in memory, which
 * shows the file at the moment of opening. All other versions are refused. */
#define STORE_VERSION 4
#define STORE_OLDEST_VERSION 1

enum store_mode { STORE_READ, STORE_WRITE }; /* WRITE creates the file */
/* Opens a database. Reads and checks all pages once. A killed writer's
 * half-done change is rolled back first, also for a reader; ERR_IO if the file
 * or its folder is read-only. */
/* ERR_INPUT if the file is not a database, belongs to another program or has an
 * unsupported schema version. */
int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err) MUST_CHECK;
/* Creates an empty database in memory. Messages call it `source`. */
int store_open_memory(struct store **out, const char *source,
                      struct err *err) MUST_CHECK;
/* Closes the database; NULL is allowed. The last writer to close leaves a
 * single plain file, without a WAL. */
void store_close(struct store *store);

/* Returns a sink whose ctx is the store. Putting a sample that is already
 * stored succeeds and keeps the stored one. An exchange replaces an earlier one
 * with the same (setting, kind, ranks, hosts, bytes). */
struct sample_sink store_sink(struct store *store);
/* Callbacks for a sink of ceilings, whose ctx is the store. A ceiling replaces
 * an earlier one of the same probe on the same device. Only device, threads and
 * isa of the setting are used. */
int store_put_ceiling(void *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling,
                      struct err *err) MUST_CHECK;
bool store_has_ceiling(void *store, const struct sample_setting *setting,
                       const struct probe *probe);

/* Reads all settings, oldest first, into the arena. */
int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err) MUST_CHECK;
/* Selects samples of exactly one setting, or of all settings with the same
 * device, n_threads and isa. */
enum store_scope { STORE_SETTING, STORE_DEVICE };
/* Reads all samples of a setting or a device into the arena, including their
 * `setting`. Order: oldest setting first, then seed, case, kind, part. *n is 0
 * if the setting is unknown. */
int store_samples(struct store *store, const struct sample_setting *setting,
                  enum store_scope scope, struct sample **samples, size_t *n,
                  struct arena *arena, struct err *err) MUST_CHECK;
/* Reads all exchanges in the order of (setting, kind, ranks, hosts, total
 * bytes, largest bytes). */
int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, struct comm_sample **samples,
                       size_t *n, struct arena *arena,
                       struct err *err) MUST_CHECK;
/* Reads the ceilings of a device in the order of their measurement. */
int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* Result of a retraining. */
struct model_verdict {
    const char *model_path;
    const char *old_hash, *new_hash; /* model in use, and its rival */
    bool replaced;
    const char *reason; /* why the rival lost regardless of its gain; or NULL */
    /* errors on the held-out samples, as fractions */
    double old_mape, new_mape;
    double gain_se;     /* standard error of the difference of the two errors */
    double min_gain;    /* gain that was required for a replacement */
    uint64_t n_samples; /* samples that the rival was trained on */
    uint64_t n_held_out; /* samples on which both were evaluated */
    const char *setting; /* setting that the rival was trained on */
};
/* Adds a verdict to the training log. */
int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err) MUST_CHECK;

#endif
