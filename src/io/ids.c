/* SPDX-License-Identifier: MIT */
#include "io/ids.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "io/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 8192
#define NAME_MAX_BYTES 1024

/* Numbers that lie one after the other in a file, or come through a pipe. */
struct id_array {
    const char *path, *source; /* source: "file" or "file: member" */
    struct npy npy;            /* begin and end in the file */
    int fd;                    /* of the file while it is open, else -1 */
};

/* Samples of one table that stand together, in an archive or a folder. */
struct id_part {
    const char *table, *place;
    struct id_array ids;
    struct id_array bags; /* lengths, or offsets; no path: a row is a sample */
    bool is_offsets;
    int64_t end; /* of the ids of the last sample that was counted */
};

/* From the first number on; without a header the file is the array. */
static int array_open(struct id_array *array, struct err *err)
{
    struct stat st;

    if (file_use(array->path, FILE_READ, err))
        return -1;
    /* A pipe, which is refused then, is not waited for. */
    array->fd = open(array->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (array->fd < 0 || fstat(array->fd, &st))
        return err_set(err, ERR_IO, "cannot open '%s': %s", array->path,
                       strerror(errno));
    if (!S_ISREG(st.st_mode) ||
        lseek(array->fd, (off_t)array->npy.begin, SEEK_SET) < 0)
        return err_input(err, "%s: it is no file; a pipe is read as '-'",
                         array->source);
    if (!array->npy.end)
        array->npy.end = (uint64_t)st.st_size;
    return 0;
}

static void array_close(struct id_array *array)
{
    if (array->path && array->fd >= 0)
        close(array->fd);
    array->fd = -1;
}

/* So many bytes, or fewer where it ends; how many, or -1. */
static ssize_t read_bytes(const struct id_array *array, void *out, size_t n,
                          struct err *err)
{
    size_t len = 0;
    ssize_t got = 1;

    while (len < n && got) {
        if (interrupt_wait(array->fd, false))
            return err_set(err, ERR_INTERRUPTED,
                           "interrupted while %s is read; nothing is written",
                           array->source);
        got = read(array->fd, (char *)out + len, n - len);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return err_set(err, ERR_IO, "cannot read %s: %s", array->source,
                           strerror(errno));
        len += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)len;
}

static int read_numbers(const struct id_array *array, int64_t *out, size_t n,
                        struct err *err)
{
    /* Narrow ones come to lie where they are read before they are written. */
    char *raw = (char *)out + n * (sizeof(*out) - array->npy.width);
    ssize_t len = read_bytes(array, raw, n * array->npy.width, err);
    int32_t narrow;

    if (len < 0)
        return -1;
    if ((size_t)len < n * array->npy.width)
        return err_input(err, "%s: the numbers are cut", array->source);
    for (size_t i = 0; i < n && array->npy.width == sizeof(narrow); i++) {
        memcpy(&narrow, raw + i * sizeof(narrow), sizeof(narrow));
        out[i] = narrow;
    }
    return 0;
}

/* --- what files hold --- */

struct listing {
    struct id_part *parts; /* owned; in the order of the files, but those of a
                              table together */
    size_t n_parts, cap;
    uint64_t n_ids; /* of them all */
    struct arena *arena;
    /* Of the file that is read: */
    const char *place;
    const char *table;    /* of arrays whose names say none */
    struct id_array file; /* its source names the member, too */
};

/* Whether it ends so, behind the end of a word; cuts that off. */
static bool cut_suffix(char *name, const char *suffix)
{
    const size_t len = strlen(name), n = strlen(suffix);
    const bool is_behind = *suffix != '.' && len > n;

    if (len < n || strcmp(name + len - n, suffix) != 0 ||
        (is_behind && !strchr("_./-", name[len - n - 1])))
        return false;
    name[len - n - is_behind] = '\0';
    return true;
}

/* The part of that table, from the same archive or folder; a new one comes
 * behind those of its table. */
static struct id_part *find_part(struct listing *listing, const char *table)
{
    size_t at = listing->n_parts;
    struct id_part *part;

    for (size_t i = 0; i < listing->n_parts; i++) {
        part = &listing->parts[i];
        if (strcmp(part->table, table) != 0)
            continue;
        if (!strcmp(part->place, listing->place))
            return part;
        at = i + 1;
    }
    listing->parts = mem_room(listing->parts, listing->n_parts, &listing->cap,
                              sizeof(*part));
    part = &listing->parts[at];
    memmove(part + 1, part, (listing->n_parts++ - at) * sizeof(*part));
    *part = (struct id_part){.table = table, .place = listing->place};
    return part;
}

/* By its name an array is the ids, the lengths or the offsets of a table. */
static int add_array(struct listing *listing, const char *name,
                     const struct id_array *array, struct err *err)
{
    char *table = arena_strdup(listing->arena, name);
    const bool is_offsets = cut_suffix(table, "offsets");
    const bool is_bags = is_offsets || cut_suffix(table, "lengths");
    struct id_array *place;
    struct id_part *part;

    if (!is_bags && !cut_suffix(table, "indices"))
        cut_suffix(table, "values");
    if (*table && strspn(table, "0123456789") == strlen(table))
        table = arena_printf(listing->arena, "cat_%s", table);
    part = find_part(listing, *table ? table : listing->table);
    place = is_bags ? &part->bags : &part->ids;
    if (place->path)
        return err_input(err, "%s: table '%s' has %s from %s", array->source,
                         part->table, is_bags ? "lengths or offsets" : "ids",
                         place->source);
    if (!text_is_printable(part->table))
        return err_input(err, "%s: the name cannot be printed", array->source);
    *place = *array;
    place->fd = -1;
    part->is_offsets |= is_offsets;
    listing->n_ids += is_bags ? 0 : array->npy.n_rows * array->npy.n_columns;
    return 0;
}

/* The beginning of what lies there: how many bytes, or -1. */
static ssize_t read_head(const struct id_array *file, uint64_t at,
                         char head[NPY_HEAD_MAX], struct err *err)
{
    return lseek(file->fd, (off_t)at, SEEK_SET) < 0
               ? 0
               : read_bytes(file, head, NPY_HEAD_MAX, err);
}

static int list_array(struct listing *listing, const struct npz_member *member,
                      struct err *err)
{
    const uint64_t bytes = member->end - member->begin;
    struct id_array array = listing->file;
    char head[NPY_HEAD_MAX];
    ssize_t len = read_head(&array, member->begin, head, err);

    if (len < 0)
        return -1;
    if (npy_parse(&array.npy, head, (size_t)len, err))
        return err_prefix(err, "%s", array.source);
    if (array.npy.end != bytes)
        return err_input(err,
                         "%s: %" PRIu64 " bytes, where an array has %" PRIu64
                         " with its header",
                         array.source, bytes, array.npy.end);
    array.npy.begin += member->begin;
    return add_array(listing, member->name, &array, err);
}

/* The arrays of an archive, or the only one. */
static int list_file(struct listing *listing, struct err *err)
{
    const struct id_array file = listing->file;
    struct npz_member member = {listing->table, 0, file.npy.end};

    for (uint64_t at = 0;; at = member.end) {
        char head[NPY_HEAD_MAX] = "";
        ssize_t len = read_head(&file, at, head, err);

        if (len < 0)
            return -1;
        if (!at && memcmp(head, "PK", 2) != 0) {
            listing->table = "table";
            listing->place = file_folder(file.path, listing->arena);
            return list_array(listing, &member, err);
        }
        if (npz_parse(&member, head, (size_t)len, listing->arena, err))
            return err_prefix(err, "%s: byte %" PRIu64, file.source, at);
        if (!member.name)
            return 0;
        listing->file.source =
            text_say(listing->arena, "%s: %s", file.source, member.name);
        if (member.end > file.npy.end - at)
            return err_input(err, "%s: the file ends before it",
                             listing->file.source);
        member.begin += at;
        member.end += at;
        if (list_array(listing, &member, err))
            return -1;
    }
}

static int check_part(const struct id_part *part, struct err *err)
{
    if (!part->ids.path)
        return err_input(err,
                         "%s: there are no indices of table '%s' beside it",
                         part->bags.source, part->table);
    if (part->bags.path &&
        (part->ids.npy.n_columns > 1 || part->bags.npy.n_columns > 1))
        return err_input(err,
                         "%s: with lengths or offsets all have one dimension",
                         part->ids.source);
    return 0;
}

/* What the files hold. */
static int list_files(struct listing *listing, char *const *paths,
                      size_t n_paths, struct err *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        char *name = arena_strdup(listing->arena, file_name(paths[i]));
        int rc;

        listing->place = paths[i];
        listing->table = name;
        listing->file =
            (struct id_array){.path = paths[i],
                              .source = text_shown(paths[i], listing->arena),
                              .fd = -1};
        if (!cut_suffix(name, ".npz"))
            cut_suffix(name, ".npy");
        rc = array_open(&listing->file, err) || list_file(listing, err);
        array_close(&listing->file);
        if (rc)
            return -1;
    }
    for (size_t i = 0; i < listing->n_parts; i++)
        if (check_part(&listing->parts[i], err))
            return -1;
    return 0;
}

/* --- ids into a profile --- */

static int add_ids(struct profile *profile, const struct id_array *array,
                   uint64_t n, struct progress *progress, struct err *err)
{
    int64_t ids[BLOCK];

    for (size_t n_block; n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(array, ids, n_block, err))
            return -1;
        if (profile_add(profile, ids, n_block, err))
            return err_prefix(err, "%s", array->source);
        progress_update(progress, progress->done += n_block);
    }
    return 0;
}

/* Ids of the next n samples. */
static int count_ids(struct id_part *part, uint64_t n, uint64_t *n_ids,
                     struct err *err)
{
    const struct npy *ids = &part->ids.npy;
    const int64_t before = part->end;
    int64_t numbers[BLOCK];

    *n_ids = n * ids->n_columns;
    for (size_t n_block; part->bags.path && n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(&part->bags, numbers, n_block, err))
            return -1;
        for (size_t i = 0; i < n_block; i++) {
            int64_t end = numbers[i];

            if ((!part->is_offsets &&
                 __builtin_add_overflow(end, part->end, &end)) ||
                end < part->end || end > (int64_t)ids->n_rows)
                return err_input(
                    err,
                    "%s: %" PRId64 " follows samples that have %" PRId64
                    " of %" PRIu64 " ids",
                    part->bags.source, numbers[i], part->end, ids->n_rows);
            part->end = end;
        }
        *n_ids = (uint64_t)(part->end - before);
    }
    return 0;
}

static int read_part(struct profile *profile, struct id_part *part,
                     struct progress *progress, struct err *err)
{
    const bool has_bags = part->bags.path;
    uint64_t n_left = (has_bags ? &part->bags : &part->ids)->npy.n_rows;
    uint64_t n, n_ids = 0;
    int rc = (has_bags && array_open(&part->bags, err)) ||
             array_open(&part->ids, err) ||
             (part->is_offsets && n_left && count_ids(part, 1, &n_ids, err));

    if (!rc && part->is_offsets && (!n_left-- || n_ids))
        rc = err_input(err, "%s: offsets begin with 0", part->bags.source);
    while (!rc && n_left && !profile_is_full(profile)) {
        n = min_u64(profile_room(profile), n_left);
        rc = count_ids(part, n, &n_ids, err) ||
             add_ids(profile, &part->ids, n_ids, progress, err);
        if (!rc)
            profile_end(profile, n);
        n_left -= n;
    }
    if (!rc && !n_left && has_bags &&
        (uint64_t)part->end < part->ids.npy.n_rows)
        rc =
            err_input(err, "%s: %" PRId64 " ids in all, but there are %" PRIu64,
                      part->bags.source, part->end, part->ids.npy.n_rows);
    array_close(&part->ids);
    array_close(&part->bags);
    return rc ? -1 : 0;
}

/* --- tables --- */

/* Where the ids of that table go; a new one is the last, and what the list says
 * of it, where one is given. */
static struct profile *find_profile(struct id_tables *tables, const char *name,
                                    struct err *err)
{
    const struct table_list *list = &tables->list;
    struct profile_options options = tables->options;
    struct id_table new = {.list_idx = tables->n_tables};

    for (size_t i = 0; i < tables->n_tables; i++)
        if (!strcmp(tables->tables[i].table.name, name))
            return tables->tables[i].profile;
    table_init(&new.table);
    new.table.name = arena_strdup(tables->arena, name);
    new.table.dim = tables->dim;
    for (size_t i = 0; i < list->n_tables; i++)
        if (!strcmp(list->tables[i].name, name)) {
            new.table = list->tables[i];
            new.list_idx = i;
        }
    options.n_rows = new.table.num_embeddings;
    if (list->tables && !options.n_rows)
        err_input(err, "%s: no table is called '%s'", list->source, name);
    else if (options.n_rows > PROFILE_MAX_ROWS)
        err_input(err, "%s: table '%s' has more than %" PRIu64 " rows",
                  list->source, name, PROFILE_MAX_ROWS);
    else {
        new.profile = profile_open(&options);
        tables->tables = mem_room(tables->tables, tables->n_tables,
                                  &tables->cap, sizeof(new));
        tables->tables[tables->n_tables++] = new;
    }
    return new.profile;
}

/* Measures a table, which has no more ids. */
static void finish_table(struct id_table *measured, struct arena *arena)
{
    struct profile_result *result = &measured->result;
    struct table *table = &measured->table;

    profile_finish(measured->profile, result, arena);
    profile_close(measured->profile);
    measured->profile = NULL;
    table->num_embeddings = max_u64(result->n_rows, 1);
    table->pooling_factor =
        (double)result->n_ids / (double)max_u64(result->n_samples, 1);
    table->has_bins = result->unique_frac > 0;
    memcpy(table->bins, result->bins, sizeof(table->bins));
    if (!isnan(result->zipf_alpha))
        table->zipf_alpha = result->zipf_alpha;
    table->skew_assumed = isnan(result->zipf_alpha) && !table->has_bins;
}

/* Those from the first on that are not measured yet. */
static void finish_tables(struct id_tables *tables, size_t first)
{
    uint64_t bytes = 0;

    for (size_t i = first; i < tables->n_tables; i++) {
        bytes += profile_bytes(tables->tables[i].profile);
        finish_table(&tables->tables[i], tables->arena);
    }
    tables->memory_bytes = max_u64(tables->memory_bytes, bytes);
}

/* One table after the other, so that one at a time is in memory. */
static int read_files(struct id_tables *tables, char *const *paths,
                      size_t n_paths, struct err *err)
{
    struct listing listing = {.arena = tables->arena};
    int rc = list_files(&listing, paths, n_paths, err);

    tables->progress.total = listing.n_ids;
    for (size_t i = 0; !rc && i < listing.n_parts; i++) {
        struct id_part *part = &listing.parts[i];
        struct profile *profile = find_profile(tables, part->table, err);

        rc = !profile || read_part(profile, part, &tables->progress, err);
        if (!rc && (i + 1 == listing.n_parts ||
                    strcmp(part->table, part[1].table) != 0))
            finish_tables(tables, tables->n_tables - 1);
    }
    mem_free(listing.parts);
    return rc ? -1 : 0;
}

/* What stands in front of the name and the ids of a frame. */
struct frame {
    int64_t n_samples, n_ids, name_bytes;
};

static int read_frame(struct id_tables *tables, const struct id_array *array,
                      const struct frame *frame, struct err *err)
{
    const uint64_t n_samples = (uint64_t)frame->n_samples;
    struct id_array ids = *array;
    struct profile *profile;
    char name[NAME_MAX_BYTES + 1] = "";
    ssize_t len;

    if (frame->n_samples < 0 || frame->n_ids < 0 || frame->name_bytes < 1 ||
        frame->name_bytes > NAME_MAX_BYTES)
        return err_input(err,
                         "%" PRId64 " samples, %" PRId64 " ids, %" PRId64
                         " bytes of a name",
                         frame->n_samples, frame->n_ids, frame->name_bytes);
    len = read_bytes(array, name, (size_t)frame->name_bytes, err);
    if (len < 0)
        return -1;
    if (len < frame->name_bytes || !*name || !text_is_printable(name))
        return err_input(err, "the name is cut or cannot be printed");
    profile = find_profile(tables, name, err);
    if (!profile)
        return -1;
    if (n_samples > profile_room(profile))
        return err_input(err,
                         "%" PRIu64 " samples of table '%s', of which the "
                         "GPU's batch has room for %" PRIu64,
                         n_samples, name, profile_room(profile));
    ids.source = "its ids";
    if (add_ids(profile, &ids, (uint64_t)frame->n_ids, &tables->progress, err))
        return -1;
    profile_end(profile, n_samples);
    return 0;
}

static int read_stream(struct id_tables *tables, struct err *err)
{
    const struct id_array array = {
        .source = "standard input", .npy.width = 8, .fd = STDIN_FILENO};

    for (uint64_t n = 1;; n++) {
        struct frame frame = {0};
        ssize_t len = read_bytes(&array, &frame, sizeof(frame), err);

        if (!len)
            break;
        if (len < 0)
            return -1;
        if (len < (ssize_t)sizeof(frame)
                ? err_input(err, "it is cut")
                : read_frame(tables, &array, &frame, err))
            return err_prefix(err, "standard input: frame %" PRIu64, n);
    }
    finish_tables(tables, 0);
    return 0;
}

int ids_measure(struct id_tables *tables, char *const *paths, size_t n_paths,
                struct err *err)
{
    const bool is_stream = n_paths == 1 && !strcmp(paths[0], "-");
    int rc;

    progress_start(&tables->progress, "ids", 0, tables->is_logged);
    rc = is_stream ? read_stream(tables, err)
                   : read_files(tables, paths, n_paths, err);
    progress_finish(&tables->progress);
    return rc || tables->n_tables
               ? rc
               : err_input(err, "%s has no ids",
                           is_stream ? "standard input" : paths[0]);
}

void ids_release(struct id_tables *tables)
{
    for (size_t i = 0; i < tables->n_tables; i++)
        profile_close(tables->tables[i].profile);
    mem_free(tables->tables);
}
