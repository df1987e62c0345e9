/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_H
#define NEUROSHARD_IO_STORE_H

#include "base/mem.h"
#include "core/sample.h"
#include "device/probe.h"

/*
 * The cost database: one SQLite file (WAL) with every measurement. The schema
 * is data/schema.sql. Each sample is one transaction: what the sink has
 * acknowledged survives a kill at any moment; (setting, seed, case, kind,
 * part) is unique, so nothing is stored twice. Several processes may have one
 * file open. All functions fail with ERR_IO where the file cannot be opened,
 * locked (after 10 s), read or written, a full disk included, and ERR_INPUT
 * where it is damaged. A row with a field that is out of its range is ERR_INPUT
 * for who reads its list: the sentence names table, row and field.
 */
struct store; /* opaque */

/* The file's user_version. A file of an older version is upgraded, in one
 * transaction, when it is opened for writing; who only reads it reads an
 * upgraded copy in memory, as the file was at that moment. Any other version
 * is refused. */
#define STORE_VERSION 4
#define STORE_OLDEST_VERSION 1

enum store_mode { STORE_READ, STORE_WRITE }; /* WRITE creates the file */
/* A reader, too, first rolls back what a killed writer left half done: ERR_IO
 * if file or folder is read-only. All pages are read once and checked. */
/* ERR_INPUT for a file that is no database, a database of something else or
 * of another schema version. */
int store_open(struct store **out, const char *path, enum store_mode mode,
               struct err *err) MUST_CHECK;
/* An empty one that is no file; messages call it by its source. */
int store_open_memory(struct store **out, const char *source,
                      struct err *err) MUST_CHECK;
/* The last writer to close leaves one plain file, without a WAL beside it.
 * NULL is fine. */
void store_close(struct store *store);

/* A sink whose ctx is the store. A sample that is there already stays as it is,
 * which is no failure; an exchange takes the place of an earlier one of the
 * same (setting, kind, ranks, hosts, bytes). */
struct sample_sink store_sink(struct store *store);
/* What a sink of ceilings does, whose ctx is the store: one replaces an earlier
 * one of the same probe on the same device; of the setting only device, threads
 * and isa count. */
int store_put_ceiling(void *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling,
                      struct err *err) MUST_CHECK;
bool store_has_ceiling(void *store, const struct sample_setting *setting,
                       const struct probe *probe);

/* The settings in the database, oldest first, in the arena. */
int store_settings(struct store *store, struct sample_setting **settings,
                   size_t *n, struct arena *arena, struct err *err) MUST_CHECK;
/* Of one setting alone, or of every one with this device, n_threads and isa. */
enum store_scope { STORE_SETTING, STORE_DEVICE };
/* All samples, by (setting, seed, case, kind, part), oldest setting first, in
 * the arena, their `setting` included; none where the setting is unknown. */
int store_samples(struct store *store, const struct sample_setting *setting,
                  enum store_scope scope, struct sample **samples, size_t *n,
                  struct arena *arena, struct err *err) MUST_CHECK;
/* By (setting, kind, ranks, hosts, total bytes, largest bytes). */
int store_comm_samples(struct store *store,
                       const struct sample_setting *setting,
                       enum store_scope scope, struct comm_sample **samples,
                       size_t *n, struct arena *arena,
                       struct err *err) MUST_CHECK;
/* Ceilings of one device, in the order they were measured. */
int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err) MUST_CHECK;
/* What a retraining came to. */
struct model_verdict {
    const char *model_path;
    const char *old_hash, *new_hash; /* the model in use, and its rival */
    bool replaced;
    const char *reason;        /* where the gain did not count, or NULL */
    double old_mape, new_mape; /* fractions on the held-out samples */
    double gain_se;            /* of their difference */
    double min_gain;           /* that was asked of it */
    uint64_t n_samples;        /* that the new one was trained on */
    uint64_t n_held_out;       /* that judged both */
    const char *setting;       /* that the new one was trained on */
};
/* Adds it to the log. */
int store_log_verdict(struct store *store, const struct model_verdict *verdict,
                      struct err *err) MUST_CHECK;

#endif
