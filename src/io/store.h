/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_H
#define NEUROSHARD_IO_STORE_H

#include "base/mem.h"
#include "core/sample.h"
#include "device/probe.h"

/*
 * The cost database: one SQLite file (WAL) that holds all measurements.
 * data/schema.sql is its schema.
 *
 * Each sample is stored in one transaction. A sample that the sink has
 * acknowledged survives a kill at any moment. The columns (setting, seed, case,
 * kind, part) are unique, so no sample is stored twice. Several processes may
 * have the same file open.
 *
 * The functions of this header return these errors:
 *   ERR_IO     the file cannot be opened, locked (after 10 s), read or written;
 *              also if the disk is full
 *   ERR_INPUT  the file is damaged, or a row that a list contains has a field
 * out of range. The message names the table, the row and the field.
 */
struct store; /* opaque */

/* Schema version, stored as SQLite's user_version. If an older file is opened
 * for writing, it is upgraded in one transaction. If it is opened for reading,
 * the reader gets an upgraded copy in memory, which shows the file at the
 * moment of opening. Files with a version outside of this range are refused. */
#define STORE_VERSION 4
#define STORE_OLDEST_VERSION 1

/* STORE_WRITE creates the file if it does not exist */
enum store_mode { STORE_READ, STORE_WRITE };
/* Opens a database. Reads and checks all of its pages once. If a killed writer
 * left a change half done, the change is rolled back first, even in STORE_READ
 * mode. The rollback fails with ERR_IO if the file or its folder is
 * read-only. */
/* Returns ERR_INPUT if the file is not a database, belongs to another program
 * or has an unsupported schema version. */
int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err) MUST_CHECK;
/* Creates an empty database in memory. `source` is its name in messages. */
int store_open_memory(struct store **out, const char *source,
                      struct err *err) MUST_CHECK;
/* Closes the database; `store` may be NULL. The last writer that closes a file
 * leaves it as a single plain file, without a WAL. */
void store_close(struct store *store);

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
/* Result of retraining a cost model: the comparison of the model in use with
 * its rival, the newly trained model. */
struct model_verdict {
    const char *model_path;
    /* hashes of the model in use and of its rival */
    const char *old_hash, *new_hash;
    bool replaced;
    /* reason why the rival was rejected regardless of its gain; or NULL */
    const char *reason;
    /* errors of the two models on the held-out samples, as fractions */
    double old_mape, new_mape;
    double gain_se; /* standard error of the difference of the two errors */
    /* gain that the rival needed to replace the model in use */
    double min_gain;
    uint64_t n_samples; /* number of samples that the rival was trained on */
    /* number of held-out samples on which both models were evaluated */
    uint64_t n_held_out;
    const char *setting; /* setting that the rival was trained on */
};
/* Adds the result of a retraining to the training log. */
int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err) MUST_CHECK;

#endif
