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

/* In the order of the files, but those of a table together. */
struct id_parts {
    struct id_part *parts; /* owned */
    size_t n_parts, cap;
    uint64_t n_ids; /* of them all */
};

/* Numbers that are read one after the other. */
struct reader {
    const char *source;
    int fd;
    unsigned width;
    uint64_t file_bytes;
};

/* From the first number of the array on. */
static int reader_open(struct reader *reader, const struct id_array *array,
                       struct err *err)
{
    struct stat st;

    *reader = (struct reader){array->source, -1, array->npy.width, 0};
    if (file_use(array->path, FILE_READ, err))
        return -1;
    /* A pipe, which is refused then, is not waited for. */
    reader->fd = open(array->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (reader->fd < 0 || fstat(reader->fd, &st))
        return err_set(err, ERR_IO, "cannot open '%s': %s", array->path,
                       strerror(errno));
    if (!S_ISREG(st.st_mode) ||
        lseek(reader->fd, (off_t)array->npy.begin, SEEK_SET) < 0)
        return err_set(err, ERR_INPUT,
                       "%s: it is no file; a pipe is read as '-'",
                       array->source);
    reader->file_bytes = (uint64_t)st.st_size;
    return 0;
}

static void reader_close(const struct reader *reader)
{
    if (reader->fd >= 0)
        close(reader->fd);
}

/* So many bytes, or fewer where it ends; how many, or -1. */
static ssize_t read_bytes(const struct reader *reader, void *out, size_t n,
                          struct err *err)
{
    size_t len = 0;
    ssize_t got = 1;

    while (len < n && got) {
        if (interrupt_wait(reader->fd, false))
            return err_set(err, ERR_INTERRUPTED,
                           "interrupted while %s is read; nothing is written",
                           reader->source);
        got = read(reader->fd, (char *)out + len, n - len);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return err_set(err, ERR_IO, "cannot read %s: %s", reader->source,
                           strerror(errno));
        len += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)len;
}

static int read_numbers(const struct reader *reader, int64_t *out, size_t n,
                        struct err *err)
{
    /* Narrow ones come to lie where they are read before they are written. */
    char *raw = (char *)out + n * (sizeof(*out) - reader->width);
    ssize_t len = read_bytes(reader, raw, n * reader->width, err);
    int32_t narrow;

    if (len < 0)
        return -1;
    if ((size_t)len < n * reader->width)
        return err_set(err, ERR_INPUT, "%s: the numbers are cut",
                       reader->source);
    for (size_t i = 0; i < n && reader->width == sizeof(narrow); i++) {
        memcpy(&narrow, raw + i * sizeof(narrow), sizeof(narrow));
        out[i] = narrow;
    }
    return 0;
}

/* --- what files hold --- */

struct listing {
    struct id_parts *parts;
    const char *path, *place;
    const char *table;  /* of arrays whose names say none */
    struct reader file; /* its source names the member, too */
    struct arena *arena;
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
static struct id_part *find_part(const struct listing *listing,
                                 const char *table)
{
    struct id_parts *parts = listing->parts;
    size_t at = parts->n_parts;
    struct id_part *part;

    for (size_t i = 0; i < parts->n_parts; i++) {
        part = &parts->parts[i];
        if (strcmp(part->table, table) != 0)
            continue;
        if (!strcmp(part->place, listing->place))
            return part;
        at = i + 1;
    }
    parts->parts = mem_room(parts->parts, parts->n_parts, &parts->cap,
                            sizeof(*parts->parts));
    part = &parts->parts[at];
    memmove(part + 1, part, (parts->n_parts++ - at) * sizeof(*part));
    *part = (struct id_part){.table = table, .place = listing->place};
    return part;
}

/* By its name an array is the ids, the lengths or the offsets of a table. */
static int add_array(const struct listing *listing, const char *name,
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
        return err_set(err, ERR_INPUT, "%s: table '%s' has %s from %s",
                       array->source, part->table,
                       is_bags ? "lengths or offsets" : "ids", place->source);
    if (!text_is_printable(part->table))
        return err_set(err, ERR_INPUT, "%s: the name cannot be printed",
                       array->source);
    *place = *array;
    part->is_offsets |= is_offsets;
    listing->parts->n_ids +=
        is_bags ? 0 : array->npy.n_rows * array->npy.n_columns;
    return 0;
}

/* The beginning of what lies there: how many bytes, or -1. */
static ssize_t read_head(const struct listing *listing, uint64_t at,
                         char head[NPY_HEAD_MAX], struct err *err)
{
    return lseek(listing->file.fd, (off_t)at, SEEK_SET) < 0
               ? 0
               : read_bytes(&listing->file, head, NPY_HEAD_MAX, err);
}

static int list_array(const struct listing *listing,
                      const struct npz_member *member, struct err *err)
{
    const uint64_t bytes = member->end - member->begin;
    struct id_array array = {.path = listing->path,
                             .source = listing->file.source};
    char head[NPY_HEAD_MAX];
    ssize_t len = read_head(listing, member->begin, head, err);

    if (len < 0)
        return -1;
    if (npy_parse(&array.npy, head, (size_t)len, err))
        return err_prefix(err, "%s", array.source);
    if (array.npy.end != bytes)
        return err_set(err, ERR_INPUT,
                       "%s: %" PRIu64 " bytes, where an array has %" PRIu64
                       " with its header",
                       array.source, bytes, array.npy.end);
    array.npy.begin += member->begin;
    return add_array(listing, member->name, &array, err);
}

static int list_archive(struct listing *listing, struct err *err)
{
    const char *source = listing->file.source;
    struct npz_member member = {0};

    for (uint64_t at = 0;; at = member.end) {
        char head[NPY_HEAD_MAX];
        ssize_t len = read_head(listing, at, head, err);

        if (len < 0)
            return -1;
        if (npz_parse(&member, head, (size_t)len, listing->arena, err))
            return err_prefix(err, "%s: byte %" PRIu64, source, at);
        if (!member.name)
            return 0;
        listing->file.source =
            text_say(listing->arena, "%s: %s", source, member.name);
        if (member.end > listing->file.file_bytes - at)
            return err_set(err, ERR_INPUT, "%s: the file ends before it",
                           listing->file.source);
        member.begin += at;
        member.end += at;
        if (list_array(listing, &member, err))
            return -1;
    }
}

static int list_file(struct listing *listing, struct err *err)
{
    char *name = arena_strdup(listing->arena, file_name(listing->path));
    char head[NPY_HEAD_MAX] = "";
    int rc = reader_open(
        &listing->file,
        &(struct id_array){listing->path, listing->file.source, {0}}, err);
    const struct npz_member whole = {name, 0, listing->file.file_bytes};

    rc = rc || read_head(listing, 0, head, err) < 0;
    if (!rc && !memcmp(head, "PK", 2)) {
        cut_suffix(name, ".npz");
        listing->table = name;
        listing->place = listing->path;
        rc = list_archive(listing, err);
    } else if (!rc) {
        cut_suffix(name, ".npy");
        listing->table = "table";
        listing->place = file_folder(listing->path, listing->arena);
        rc = list_array(listing, &whole, err);
    }
    reader_close(&listing->file);
    return rc;
}

static int check_part(const struct id_part *part, struct err *err)
{
    if (!part->ids.path)
        return err_set(err, ERR_INPUT,
                       "%s: there are no indices of table '%s' beside it",
                       part->bags.source, part->table);
    if (part->bags.path &&
        (part->ids.npy.n_columns > 1 || part->bags.npy.n_columns > 1))
        return err_set(err, ERR_INPUT,
                       "%s: with lengths or offsets all have one dimension",
                       part->ids.source);
    return 0;
}

/* What the files hold. */
static int list_files(struct id_parts *parts, char *const *paths,
                      size_t n_paths, struct arena *arena, struct err *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        struct listing listing = {.parts = parts,
                                  .path = paths[i],
                                  .file.source = text_shown(paths[i], arena),
                                  .arena = arena};

        if (list_file(&listing, err))
            return -1;
    }
    for (size_t i = 0; i < parts->n_parts; i++)
        if (check_part(&parts->parts[i], err))
            return -1;
    return 0;
}

/* --- ids into a profile --- */

static int add_ids(struct profile *profile, const struct reader *reader,
                   uint64_t n, struct progress *progress, struct err *err)
{
    int64_t ids[BLOCK];

    for (size_t n_block; n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(reader, ids, n_block, err))
            return -1;
        if (profile_add(profile, ids, n_block, err))
            return err_prefix(err, "%s", reader->source);
        progress_update(progress, progress->done += n_block);
    }
    return 0;
}

/* How the ids of a part fall to samples. */
struct bags {
    const struct id_part *part;
    struct reader reader;
    uint64_t n_left; /* samples */
    int64_t end;     /* of the last one's ids */
};

static int bags_open(struct bags *bags, const struct id_part *part,
                     struct err *err)
{
    int64_t first = 0;

    *bags = (struct bags){
        .part = part, .reader.fd = -1, .n_left = part->ids.npy.n_rows};
    if (!part->bags.path)
        return 0;
    bags->n_left = part->bags.npy.n_rows;
    if (reader_open(&bags->reader, &part->bags, err))
        return -1;
    if (!part->is_offsets)
        return 0;
    if (bags->n_left && read_numbers(&bags->reader, &first, 1, err))
        return -1;
    return bags->n_left-- && !first
               ? 0
               : err_set(err, ERR_INPUT, "%s: offsets begin with 0",
                         part->bags.source);
}

/* Ids of the next n samples. */
static int count_ids(struct bags *bags, uint64_t n, uint64_t *n_ids,
                     struct err *err)
{
    const struct npy *ids = &bags->part->ids.npy;
    const int64_t before = bags->end;
    int64_t numbers[BLOCK];

    bags->n_left -= n;
    *n_ids = n * ids->n_columns;
    for (size_t n_block; bags->part->bags.path && n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(&bags->reader, numbers, n_block, err))
            return -1;
        for (size_t i = 0; i < n_block; i++) {
            int64_t end = numbers[i];

            if ((!bags->part->is_offsets &&
                 __builtin_add_overflow(end, bags->end, &end)) ||
                end < bags->end || end > (int64_t)ids->n_rows)
                return err_set(err, ERR_INPUT,
                               "%s: %" PRId64 " follows samples that have "
                               "%" PRId64 " of %" PRIu64 " ids",
                               bags->reader.source, numbers[i], bags->end,
                               ids->n_rows);
            bags->end = end;
        }
        *n_ids = (uint64_t)(bags->end - before);
    }
    return 0;
}

static int read_part(struct profile *profile, const struct id_part *part,
                     struct progress *progress, struct err *err)
{
    struct reader ids = {.fd = -1};
    struct bags bags;
    uint64_t n, n_ids;
    int rc = bags_open(&bags, part, err) || reader_open(&ids, &part->ids, err);

    while (!rc && bags.n_left && !profile_is_full(profile)) {
        n = min_u64(profile_room(profile), bags.n_left);
        rc = count_ids(&bags, n, &n_ids, err) ||
             add_ids(profile, &ids, n_ids, progress, err);
        if (!rc)
            profile_end(profile, n);
    }
    if (!rc && !bags.n_left && part->bags.path &&
        (uint64_t)bags.end < part->ids.npy.n_rows)
        rc = err_set(err, ERR_INPUT,
                     "%s: %" PRId64 " ids in all, but there are %" PRIu64,
                     part->bags.source, bags.end, part->ids.npy.n_rows);
    reader_close(&ids);
    reader_close(&bags.reader);
    return rc ? -1 : 0;
}

/* --- tables --- */

/* The table's line of the list, or a new one where no list is given. */
static int init_table(struct id_table *table, const struct id_tables *tables,
                      const char *name, struct err *err)
{
    const struct table_list *list = &tables->list;

    table->list_idx = tables->n_tables;
    table_init(&table->table);
    table->table.name = arena_strdup(tables->arena, name);
    table->table.dim = tables->dim;
    if (!list->tables)
        return 0;
    for (size_t i = 0; i < list->n_tables; i++)
        if (!strcmp(list->tables[i].name, name)) {
            table->table = list->tables[i];
            table->list_idx = i;
        }
    if (!table->table.num_embeddings)
        return err_set(err, ERR_INPUT, "%s: no table is called '%s'",
                       list->source, name);
    if (table->table.num_embeddings > PROFILE_MAX_ROWS)
        return err_set(err, ERR_INPUT,
                       "%s: table '%s' has more than %" PRIu64 " rows",
                       list->source, name, PROFILE_MAX_ROWS);
    return 0;
}

/* Where the ids of that table go; a new one is the last. */
static struct profile *find_profile(struct id_tables *tables, const char *name,
                                    struct err *err)
{
    struct profile_options options = tables->options;
    struct id_table table = {0};

    for (size_t i = 0; i < tables->n_tables; i++)
        if (!strcmp(tables->tables[i].table.name, name))
            return tables->tables[i].profile;
    if (init_table(&table, tables, name, err))
        return NULL;
    options.n_rows = table.table.num_embeddings;
    table.profile = profile_open(&options);
    tables->tables =
        mem_room(tables->tables, tables->n_tables, &tables->cap, sizeof(table));
    tables->tables[tables->n_tables++] = table;
    return table.profile;
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
    struct id_parts parts = {0};
    int rc = list_files(&parts, paths, n_paths, tables->arena, err);

    tables->progress.total = parts.n_ids;
    for (size_t i = 0; !rc && i < parts.n_parts; i++) {
        const struct id_part *part = &parts.parts[i];
        struct profile *profile = find_profile(tables, part->table, err);

        rc = !profile || read_part(profile, part, &tables->progress, err);
        if (!rc &&
            (i + 1 == parts.n_parts || strcmp(part->table, part[1].table) != 0))
            finish_tables(tables, tables->n_tables - 1);
    }
    mem_free(parts.parts);
    return rc ? -1 : 0;
}

/* What stands in front of the name and the ids of a frame. */
struct frame {
    int64_t n_samples, n_ids, name_bytes;
};

static int read_frame(struct id_tables *tables, const struct reader *reader,
                      const struct frame *frame, struct err *err)
{
    const struct reader unnamed = {"its ids", reader->fd, reader->width, 0};
    const uint64_t n_samples = (uint64_t)frame->n_samples;
    struct profile *profile;
    char name[NAME_MAX_BYTES + 1] = "";
    ssize_t len;

    if (frame->n_samples < 0 || frame->n_ids < 0 || frame->name_bytes < 1 ||
        frame->name_bytes > NAME_MAX_BYTES)
        return err_set(err, ERR_INPUT,
                       "%" PRId64 " samples, %" PRId64 " ids, %" PRId64
                       " bytes of a name",
                       frame->n_samples, frame->n_ids, frame->name_bytes);
    len = read_bytes(reader, name, (size_t)frame->name_bytes, err);
    if (len < 0)
        return -1;
    if (len < frame->name_bytes || !*name || !text_is_printable(name))
        return err_set(err, ERR_INPUT, "the name is cut or cannot be printed");
    profile = find_profile(tables, name, err);
    if (!profile)
        return -1;
    if (n_samples > profile_room(profile))
        return err_set(err, ERR_INPUT,
                       "%" PRIu64 " samples of table '%s', of which the GPU's "
                       "batch has room for %" PRIu64,
                       n_samples, name, profile_room(profile));
    if (add_ids(profile, &unnamed, (uint64_t)frame->n_ids, &tables->progress,
                err))
        return -1;
    profile_end(profile, n_samples);
    return 0;
}

static int read_stream(struct id_tables *tables, struct err *err)
{
    const struct reader reader = {"standard input", STDIN_FILENO, 8, 0};

    for (uint64_t n = 1;; n++) {
        struct frame frame = {0};
        ssize_t len = read_bytes(&reader, &frame, sizeof(frame), err);

        if (!len)
            break;
        if (len < 0)
            return -1;
        if (len < (ssize_t)sizeof(frame)
                ? err_set(err, ERR_INPUT, "it is cut")
                : read_frame(tables, &reader, &frame, err))
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
               : err_set(err, ERR_INPUT, "%s has no ids",
                         is_stream ? "standard input" : paths[0]);
}

void ids_release(struct id_tables *tables)
{
    for (size_t i = 0; i < tables->n_tables; i++)
        profile_close(tables->tables[i].profile);
    mem_free(tables->tables);
}
