/* SPDX-License-Identifier: MIT */
#include "io/ids.h"

#include "base/file.h"
#include "base/interrupt.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK 8192
#define NAME_MAX_BYTES 1024

/* Numbers that are read one after the other. */
struct reader {
    const char *source;
    int fd;
    unsigned width;
};

/* From the first number of the array on. */
static int reader_open(struct reader *reader, const struct id_array *array,
                       struct err *err)
{
    *reader = (struct reader){array->source, -1, array->npy.width};
    if (file_use(array->path, FILE_READ, err))
        return -1;
    reader->fd = open(array->path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0 ||
        lseek(reader->fd, (off_t)array->npy.begin, SEEK_SET) < 0)
        return err_set(err, ERR_IO, "cannot open '%s': %s", array->path,
                       strerror(errno));
    return 0;
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
    const char *path, *source, *place;
    const char *table; /* of arrays whose names say none */
    int fd;
    struct arena *arena;
};

/* Whether it ends so, behind the end of a word; cuts that off. */
static bool cut_suffix(char *name, const char *suffix)
{
    const size_t len = strlen(name), n = strlen(suffix);

    if (len < n || strcmp(name + len - n, suffix) != 0 ||
        (len > n && *suffix != '.' && !strchr("_./-", name[len - n - 1])))
        return false;
    name[len > n && *suffix != '.' ? len - n - 1 : len - n] = '\0';
    return true;
}

/* The part of that table, from the same archive or folder. */
static struct id_part *find_part(const struct listing *listing,
                                 const char *table)
{
    struct id_parts *parts = listing->parts;
    struct id_part *part = parts->parts, *end = part + parts->n_parts;

    for (; part < end; part++)
        if (!strcmp(part->table, table) && !strcmp(part->place, listing->place))
            return part;
    parts->parts = mem_room(parts->parts, parts->n_parts, &parts->cap,
                            sizeof(*parts->parts));
    part = &parts->parts[parts->n_parts++];
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
    return 0;
}

/* Of a file, or of a member of an archive, that lies there. */
static int list_array(const struct listing *listing, const char *name,
                      uint64_t begin, uint64_t bytes, struct err *err)
{
    const struct reader reader = {listing->source, listing->fd, 1};
    struct id_array array = {.path = listing->path, .source = listing->source};
    char head[NPY_HEAD_MAX];
    ssize_t len;

    if (lseek(listing->fd, (off_t)begin, SEEK_SET) < 0 ||
        (len = read_bytes(&reader, head, sizeof(head), err)) < 0)
        return -1;
    if (npy_parse(&array.npy, head, (size_t)len, err))
        return err_prefix(err, "%s", listing->source);
    if (array.npy.end != bytes)
        return err_set(err, ERR_INPUT,
                       "%s: %" PRIu64 " bytes, where an array has %" PRIu64
                       " with its header",
                       listing->source, bytes, array.npy.end);
    array.npy.begin += begin;
    return add_array(listing, name, &array, err);
}

static int list_archive(struct listing *listing, uint64_t bytes,
                        struct err *err)
{
    const struct reader reader = {listing->source, listing->fd, 1};
    struct npz_member member;
    char head[NPY_HEAD_MAX];

    for (uint64_t at = 0;; at += member.end) {
        ssize_t len;

        if (lseek(listing->fd, (off_t)at, SEEK_SET) < 0 ||
            (len = read_bytes(&reader, head, sizeof(head), err)) < 0)
            return -1;
        if (npz_parse(&member, head, (size_t)len, listing->arena, err))
            return err_prefix(err, "%s: byte %" PRIu64, reader.source, at);
        if (!member.name)
            return 0;
        listing->source =
            text_say(listing->arena, "%s: %s", reader.source, member.name);
        if (member.end > bytes - at)
            return err_set(err, ERR_INPUT, "%s: the file ends before it",
                           listing->source);
        if (list_array(listing, member.name, at + member.begin,
                       member.end - member.begin, err))
            return -1;
    }
}

static int list_file(struct listing *listing, struct err *err)
{
    char *name = arena_strdup(listing->arena, file_name(listing->path));
    const struct id_array whole = {.path = listing->path,
                                   .source = listing->source};
    struct reader reader;
    struct stat st;
    char magic[2] = "";
    int rc = -1;

    if (reader_open(&reader, &whole, err))
        return -1;
    listing->fd = reader.fd;
    if (fstat(reader.fd, &st) || !S_ISREG(st.st_mode)) {
        err_set(err, ERR_INPUT, "%s: it is no file; a pipe is read as '-'",
                listing->source);
    } else if (read_bytes(&reader, magic, sizeof(magic), err) < 0) {
        /* said */
    } else if (!memcmp(magic, "PK", sizeof(magic))) {
        cut_suffix(name, ".npz");
        listing->table = name;
        listing->place = listing->path;
        rc = list_archive(listing, (uint64_t)st.st_size, err);
    } else {
        cut_suffix(name, ".npy");
        listing->table = "table";
        listing->place = file_folder(listing->path, listing->arena);
        rc = list_array(listing, name, 0, (uint64_t)st.st_size, err);
    }
    close(reader.fd);
    return rc;
}

int ids_list(struct id_parts *parts, char *const *paths, size_t n_paths,
             struct arena *arena, struct err *err)
{
    *parts = (struct id_parts){0};
    for (size_t i = 0; i < n_paths; i++) {
        struct listing listing = {.parts = parts,
                                  .path = paths[i],
                                  .source = text_shown(paths[i], arena),
                                  .arena = arena};

        if (list_file(&listing, err))
            return -1;
    }
    for (size_t i = 0; i < parts->n_parts; i++) {
        const struct id_part *part = &parts->parts[i];
        const struct npy *ids = &part->ids.npy, *bags = &part->bags.npy;

        if (!part->ids.path)
            return err_set(err, ERR_INPUT,
                           "%s: there are no indices of table '%s' beside it",
                           part->bags.source, part->table);
        if (part->bags.path && (ids->n_columns > 1 || bags->n_columns > 1))
            return err_set(err, ERR_INPUT,
                           "%s: with lengths or offsets all have one dimension",
                           part->ids.source);
        if (part->is_offsets && !bags->n_rows)
            return err_set(err, ERR_INPUT, "%s: offsets begin with 0",
                           part->bags.source);
        parts->n_ids += ids->n_rows * ids->n_columns;
    }
    return 0;
}

/* --- ids into a profile --- */

static int add_ids(struct ids_target *target, const struct reader *reader,
                   uint64_t n, struct err *err)
{
    int64_t ids[BLOCK] = {0};
    uint32_t rows[BLOCK];

    for (size_t n_block; n; n -= n_block) {
        uint64_t n_bad = 0;

        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(reader, ids, n_block, err))
            return -1;
        for (size_t i = 0; i < n_block; i++) {
            n_bad += (uint64_t)ids[i] >= target->n_rows;
            rows[i] = (uint32_t)ids[i];
        }
        for (size_t i = 0; n_bad && i < n_block; i++)
            if ((uint64_t)ids[i] >= target->n_rows)
                return err_set(err, ERR_INPUT,
                               "%s: id %" PRId64 " is none of 0 to %" PRIu64,
                               reader->source, ids[i], target->n_rows - 1);
        if (profile_add(target->profile, rows, n_block, err))
            return err_prefix(err, "%s", reader->source);
        *target->n_done += n_block;
        progress_update(target->progress, *target->n_done);
    }
    return 0;
}

/* How the ids of a part fall to samples. */
struct bags {
    const struct id_part *part;
    struct reader reader;
    uint64_t n_left; /* samples */
    int64_t n_ids;   /* of the samples before */
};

static int bags_open(struct bags *bags, const struct id_part *part,
                     struct err *err)
{
    int64_t first = 0;

    *bags = (struct bags){
        .part = part, .reader.fd = -1, .n_left = part->ids.npy.n_rows};
    if (!part->bags.path)
        return 0;
    bags->n_left = part->bags.npy.n_rows - part->is_offsets;
    if (reader_open(&bags->reader, &part->bags, err) ||
        (part->is_offsets && read_numbers(&bags->reader, &first, 1, err)))
        return -1;
    if (first)
        return err_set(err, ERR_INPUT, "%s: offsets begin with 0, not %" PRId64,
                       part->bags.source, first);
    return 0;
}

/* Ids of the next n samples. */
static int count_ids(struct bags *bags, uint64_t n, uint64_t *n_ids,
                     struct err *err)
{
    const struct npy *ids = &bags->part->ids.npy;
    const int64_t before = bags->n_ids, all = (int64_t)ids->n_rows;
    int64_t numbers[BLOCK] = {0};

    bags->n_left -= n;
    *n_ids = n * ids->n_columns;
    for (size_t n_block; bags->part->bags.path && n; n -= n_block) {
        n_block = n < BLOCK ? (size_t)n : BLOCK;
        if (read_numbers(&bags->reader, numbers, n_block, err))
            return -1;
        for (size_t i = 0; i < n_block; i++) {
            const int64_t from = bags->part->is_offsets ? bags->n_ids : 0;

            if (numbers[i] < from || numbers[i] - from > all - bags->n_ids)
                return err_set(
                    err, ERR_INPUT,
                    "%s: %" PRId64 " follows samples that have %" PRId64
                    " of %" PRId64 " ids",
                    bags->reader.source, numbers[i], bags->n_ids, all);
            bags->n_ids += numbers[i] - from;
        }
        *n_ids = (uint64_t)(bags->n_ids - before);
    }
    if (bags->part->bags.path && !bags->n_left && bags->n_ids < all)
        return err_set(err, ERR_INPUT,
                       "%s: %" PRId64 " ids in all, but there are %" PRId64,
                       bags->reader.source, bags->n_ids, all);
    return 0;
}

int ids_read(struct ids_target *target, const struct id_part *part,
             struct err *err)
{
    struct reader ids = {.fd = -1};
    struct bags bags;
    uint64_t n_ids;
    int rc = -1;

    if (bags_open(&bags, part, err) || reader_open(&ids, &part->ids, err))
        goto out;
    while (bags.n_left &&
           profile_n_batches(target->profile) < target->n_batches) {
        uint64_t n = profile_room(target->profile);

        n = n < bags.n_left ? n : bags.n_left;
        if (count_ids(&bags, n, &n_ids, err) ||
            add_ids(target, &ids, n_ids, err))
            goto out;
        profile_end(target->profile, n);
    }
    rc = 0;
out:
    if (ids.fd >= 0)
        close(ids.fd);
    if (bags.reader.fd >= 0)
        close(bags.reader.fd);
    return rc;
}

/* What stands in front of the name and the ids of a frame. */
struct frame {
    int64_t n_samples, n_ids, name_bytes;
};

static int read_frame(const struct reader *reader, const struct frame *frame,
                      ids_find *find, void *ctx, struct err *err)
{
    const struct reader unnamed = {"its ids", reader->fd, reader->width};
    struct ids_target *target;
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
    target = find(ctx, name, err);
    if (!target)
        return -1;
    if ((uint64_t)frame->n_samples > profile_room(target->profile))
        return err_set(err, ERR_INPUT,
                       "%" PRId64 " samples of table '%s', of which the GPU's "
                       "batch has room for %" PRIu64,
                       frame->n_samples, name, profile_room(target->profile));
    if (add_ids(target, &unnamed, (uint64_t)frame->n_ids, err))
        return -1;
    if (frame->n_samples)
        profile_end(target->profile, (uint64_t)frame->n_samples);
    return 0;
}

int ids_stream(ids_find *find, void *ctx, struct err *err)
{
    const struct reader reader = {"standard input", STDIN_FILENO,
                                  sizeof(int64_t)};

    for (uint64_t n = 1;; n++) {
        struct frame frame = {0};
        ssize_t len = read_bytes(&reader, &frame, sizeof(frame), err);

        if (len <= 0)
            return (int)len;
        if (len < (ssize_t)sizeof(frame))
            err_set(err, ERR_INPUT, "it is cut");
        else if (!read_frame(&reader, &frame, find, ctx, err))
            continue;
        return err_prefix(err, "standard input: frame %" PRIu64, n);
    }
}
