/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_IDS_H
#define NEUROSHARD_IO_IDS_H

#include "base/progress.h"
#include "core/profile.h"
#include "io/npy.h"

/*
 * The ids that a job looks up, out of arrays of NumPy or from a pipe, into a
 * profile; neuroshard-tables-profile(1) says how arrays are named. They are
 * read in blocks, so that memory does not grow with them. ERR_INPUT names the
 * file, and the member of an archive, ERR_IO the file, ERR_INTERRUPTED where
 * an interrupt came.
 */

struct id_array {
    const char *path, *source; /* source: "file" or "file: member" */
    struct npy npy;            /* begin and end in the file */
};

/* Samples of one table that stand together, in an archive or a folder. */
struct id_part {
    const char *table, *place;
    struct id_array ids;
    struct id_array bags; /* lengths, or offsets; no path: a row is a sample */
    bool is_offsets;
};

struct id_parts {
    struct id_part *parts; /* owned; in the order of the files,
                              but those of a table together */
    size_t n_parts, cap;
    uint64_t n_ids; /* of them all */
};

/* What the files hold; mem_free ends the parts, also after an error. */
int ids_list(struct id_parts *parts, char *const *paths, size_t n_paths,
             struct arena *arena, struct err *err) MUST_CHECK;

/* Adds the ids of a part; the progress, which may be NULL, counts them. */
int ids_read(struct profile *profile, const struct id_part *part,
             struct progress *progress, struct err *err) MUST_CHECK;

/* Standard input: frames of three numbers of 64 bits, little-endian, how many
 * samples, how many ids, and how many bytes its name has, then the name of the
 * table and the ids, 64 bits each. The samples of a frame are of one local
 * batch. `find` gives each frame its profile; NULL and an err where the table
 * has none. */
typedef struct profile *ids_find(void *ctx, const char *table, struct err *err);
int ids_stream(ids_find *find, void *ctx, struct progress *progress,
               struct err *err) MUST_CHECK;

#endif
