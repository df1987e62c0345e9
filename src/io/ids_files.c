/* SPDX-License-Identifier: MIT */
#include "io/ids_files.h"

#include "base/file_claims.h"
#include "base/interrupt.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* This file reads arrays of numbers from files, and lists the arrays that the
 * files of a command line contain. */

/* Adds bytes of an archive's member to the member's CRC-32. After the last byte
 * of the member, compares the CRC-32 with the one that the archive records. */
static int add_to_sum(struct id_array *array, const void *data, size_t len,
                      struct err *err)
{
    if (!array->has_crc)
        return 0;
    array->crc_sum =
        (uint32_t)crc32_z(array->crc_sum, (const Bytef *)data, len);
    array->n_left -= len;
    if (array->n_left || array->crc_sum == array->crc_said)
        return 0;
    return err_input(
        err, "%s: damaged: its CRC-32 is %08x, but the archive has %08x",
        array->source, (unsigned)array->crc_sum, (unsigned)array->crc_said);
}

/* Adds the .npy header of an array in an archive to the member's CRC-32, which
 * also covers the header. */
static int sum_header(struct id_array *array, struct err *err)
{
    char head[2 * NPY_HEAD_MAX];
    const uint64_t n = array->npy.begin - array->begin;
    const off_t pos = (off_t)array->begin;

    if (!array->has_crc)
        return 0;
    if (n > sizeof(head) || pread(array->fd, head, n, pos) != (ssize_t)n)
        return err_input(err, "%s: the header is truncated", array->source);
    array->crc_sum = 0;
    array->n_left =
        n + array->npy.n_rows * array->npy.n_columns * array->npy.width;
    return add_to_sum(array, head, n, err);
}

/* Opens the array's file and moves to its first number. If the file has no
 * header, the whole file consists of numbers. */
int ids_open(struct id_array *array, struct err *err)
{
    struct stat st;

    if (file_use(array->path, FILE_READ, err))
        return -1;
    /* O_NONBLOCK keeps open() from waiting for a pipe's writer. A pipe is
     * refused below. */
    array->fd = open(array->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (array->fd < 0 || fstat(array->fd, &st))
        return err_set(err, ERR_IO, "cannot open '%s': %s", array->path,
                       strerror(errno));
    if (!S_ISREG(st.st_mode) ||
        lseek(array->fd, (off_t)array->npy.begin, SEEK_SET) < 0)
        return err_input(err, "%s: not a regular file; give a pipe as '-'",
                         array->source);
    if (!array->npy.end)
        array->npy.end = (uint64_t)st.st_size;
    return sum_header(array, err);
}

void ids_close(struct id_array *array)
{
    if (array->path && array->fd >= 0)
        close(array->fd);
    array->fd = -1;
}

/* Reads n bytes of the array's file, or fewer if the file ends. Returns the
 * number of bytes read, or -1 on failure. */
ssize_t ids_read_bytes(const struct id_array *array, void *out, size_t n,
                       struct err *err)
{
    size_t len = 0;
    ssize_t got = 1;

    while (len < n && got) {
        if (interrupt_wait(array->fd, false))
            return err_set(err, ERR_INTERRUPTED,
                           "interrupted while reading %s; nothing was written",
                           array->source);
        got = read(array->fd, (char *)out + len, n - len);
        if (got < 0 && errno != EINTR && errno != EAGAIN)
            return err_set(err, ERR_IO, "cannot read %s: %s", array->source,
                           strerror(errno));
        len += got > 0 ? (size_t)got : 0;
    }
    return (ssize_t)len;
}

int ids_read_numbers(struct id_array *array, int64_t *out, size_t n,
                     struct err *err)
{
    /* Numbers of 32 bits are read into the second half of `out`. They are then
     * widened from the first to the last, so each number is read before it is
     * overwritten. */
    char *raw = (char *)out + n * (sizeof(*out) - array->npy.width);
    ssize_t len = ids_read_bytes(array, raw, n * array->npy.width, err);
    int32_t narrow;

    if (len < 0)
        return -1;
    if ((size_t)len < n * array->npy.width)
        return err_input(err, "%s: the numbers are truncated", array->source);
    if (add_to_sum(array, raw, (size_t)len, err))
        return -1;
    for (size_t i = 0; i < n && array->npy.width == sizeof(narrow); i++) {
        memcpy(&narrow, raw + i * sizeof(narrow), sizeof(narrow));
        out[i] = narrow;
    }
    return 0;
}

/* --- the contents of files --- */

/* If the name ends in `suffix`, cuts the suffix off and returns true. A suffix
 * that does not start with '.' must be the whole name, or follow one of the
 * characters "_./-". That character is cut off, too. */
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

/* Returns the part for a table in the current archive or folder. If there is no
 * such part yet, inserts a new one behind the other parts of the same table. */
static struct id_part *find_part(struct ids_listing *listing, const char *table)
{
    size_t pos = listing->n_parts;
    struct id_part *part;

    for (size_t i = 0; i < listing->n_parts; i++) {
        part = &listing->parts[i];
        if (strcmp(part->table, table) != 0)
            continue;
        if (!strcmp(part->place, listing->place))
            return part;
        pos = i + 1;
    }
    listing->parts = mem_room(listing->parts, listing->n_parts, &listing->cap,
                              sizeof(*part));
    part = &listing->parts[pos];
    memmove(part + 1, part, (listing->n_parts++ - pos) * sizeof(*part));
    *part = (struct id_part){.table = table, .place = listing->place};
    return part;
}

static bool is_listed(const struct ids_listing *listing, const char *table)
{
    const struct table_list *list = listing->list;

    for (size_t i = 0; i < list->n_tables; i++)
        if (!strcmp(list->tables[i].name, table))
            return true;
    return false;
}

/* True if an array holds labels, dense columns or row counts instead of ids.
 * These are known arrays of the public Criteo files. */
static bool has_no_ids(const struct ids_listing *listing, const char *name)
{
    static const char *const names[] = {"X_int",  "y",     "counts", "dense",
                                        "labels", "label", NULL};
    char *word = arena_strdup(listing->arena, name);

    return !is_listed(listing, name) &&
           (text_choice(names, name) >= 0 || cut_suffix(word, "dense") ||
            cut_suffix(word, "labels"));
}

/* Returns the meaning of a matrix's columns. The command-line option decides it
 * if it was given, else the array's name. */
static enum columns_are columns_of(const struct ids_listing *listing,
                                   const char *name)
{
    const enum columns_are said = listing->columns_are;
    char *word = arena_strdup(listing->arena, name);

    if (said)
        return said;
    if (!strcmp(name, "X_cat") || cut_suffix(word, "sparse"))
        return COLUMNS_TABLES;
    return cut_suffix(word, "indices") || cut_suffix(word, "values") ||
                   is_listed(listing, name) ||
                   strspn(name, "0123456789") == strlen(name)
               ? COLUMNS_SAMPLES
               : COLUMNS_ASK;
}

#define MAX_COLUMNS 4096

/* Adds a matrix with one table per column as one part. `table` is the common
 * prefix of the tables' names. `place` is the matrix's own source (file and
 * member), so that matrices of several files stay separate parts. */
static int add_matrix(struct ids_listing *listing, const char *name,
                      const struct id_array *array, struct err *err)
{
    char *table = arena_strdup(listing->arena, name);
    const char *place = listing->place;
    struct id_part *part;

    if (!strcmp(table, "X_cat") || cut_suffix(table, "sparse"))
        table = arena_strdup(listing->arena, "cat");
    if (!*table)
        table = arena_strdup(listing->arena, listing->table);
    if (array->npy.n_columns > MAX_COLUMNS)
        return err_input(
            err, "%s: %" PRIu64 " columns, but at most %d can be tables",
            array->source, array->npy.n_columns, MAX_COLUMNS);
    for (size_t i = 0; i < listing->n_parts; i++) {
        const struct id_part *other = &listing->parts[i];

        if (!strcmp(other->table, table) &&
            (!other->is_matrix ||
             other->ids.npy.n_columns != array->npy.n_columns))
            return err_input(err,
                             "%s: %" PRIu64 " columns, but %s has %" PRIu64,
                             array->source, array->npy.n_columns,
                             other->ids.source, other->ids.npy.n_columns);
    }
    listing->place = array->source;
    part = find_part(listing, table);
    listing->place = place;
    if (part->ids.path)
        return err_input(err, "%s: the array is given twice", array->source);
    if (!text_is_printable(table))
        return err_input(err, "%s: the name is not printable", array->source);
    part->ids = *array;
    part->ids.fd = -1;
    part->is_matrix = true;
    listing->n_ids += array->npy.n_rows * array->npy.n_columns;
    return 0;
}

/* Adds an array to the listing. The array's name shows whether the array holds
 * the ids, the lengths or the offsets of a table. */
static int add_array(struct ids_listing *listing, const char *name,
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
        return err_input(err, "%s: table '%s' already has %s from %s",
                         array->source, part->table,
                         is_bags ? "lengths or offsets" : "ids", place->source);
    if (!text_is_printable(part->table))
        return err_input(err, "%s: the name is not printable", array->source);
    if (part->is_matrix)
        return err_input(err, "%s: table '%s' already has ids from %s",
                         array->source, part->table, part->ids.source);
    *place = *array;
    place->fd = -1;
    part->is_offsets |= is_offsets;
    listing->n_ids += is_bags ? 0 : array->npy.n_rows * array->npy.n_columns;
    return 0;
}

/* Reads up to NPY_HEAD_MAX bytes at file offset `pos`. Returns the number of
 * bytes read, or -1. */
static ssize_t read_head(const struct id_array *file, uint64_t pos,
                         char head[NPY_HEAD_MAX], struct err *err)
{
    return lseek(file->fd, (off_t)pos, SEEK_SET) < 0
               ? 0
               : ids_read_bytes(file, head, NPY_HEAD_MAX, err);
}

static int list_array(struct ids_listing *listing,
                      const struct npz_member *member, struct err *err)
{
    const uint64_t bytes = member->end - member->begin;
    struct id_array array = listing->file;
    char head[NPY_HEAD_MAX];
    ssize_t len = read_head(&array, member->begin, head, err);

    if (len < 0)
        return -1;
    if (has_no_ids(listing, member->name)) {
        listing->left_out =
            text_say(listing->arena, "%s%s'%s'",
                     listing->left_out ? listing->left_out : "",
                     listing->left_out ? ", " : "", member->name);
        return 0;
    }
    if (npy_parse(&array.npy, head, (size_t)len, err))
        return err_prefix(err, "%s", array.source);
    if (!strcmp(member->name, "X_cat_t"))
        return err_input(
            err,
            "%s: its rows are tables; save np.ascontiguousarray(X_cat_t.T) "
            "instead, as array X_cat",
            array.source);
    if (array.npy.end != bytes)
        return err_input(err,
                         "%s: %" PRIu64
                         " bytes, but its array and header need %" PRIu64,
                         array.source, bytes, array.npy.end);
    array.npy.begin += member->begin;
    if (member->header) {
        array.has_crc = true;
        array.begin = member->begin;
        array.crc_said = member->crc;
    }
    if (array.npy.n_columns < 2)
        return add_array(listing, member->name, &array, err);
    switch (columns_of(listing, member->name)) {
    case COLUMNS_TABLES:
        return add_matrix(listing, member->name, &array, err);
    case COLUMNS_SAMPLES:
        return add_array(listing, member->name, &array, err);
    case COLUMNS_ASK:
    default:
        return err_input(err,
                         "%s: a matrix of %" PRIu64 " rows and %" PRIu64
                         " columns; '--columns-are tables' reads each column "
                         "as a table, '--columns-are samples' reads one table "
                         "with the ids of one sample per row",
                         array.source, array.npy.n_rows, array.npy.n_columns);
    }
}

#define MAX_DIRECTORY ((uint64_t)64 << 20)

/* Checks the archive's directory, which begins at file offset `pos`. */
static int check_directory(struct ids_listing *listing,
                           const struct id_array *file, uint64_t pos,
                           struct err *err)
{
    const uint64_t len = file->npy.end - pos;
    char *text;

    if (len > MAX_DIRECTORY)
        return err_input(err,
                         "%s: the archive's directory is larger than 64 MiB",
                         file->source);
    text = arena_alloc(listing->arena, len + 1, 1);
    if (pread(file->fd, text, len, (off_t)pos) != (ssize_t)len)
        return err_input(err, "%s: the archive's directory is truncated",
                         file->source);
    if (npz_check_directory(listing->members, listing->n_members, text, len,
                            pos, err))
        return err_prefix(err, "%s", file->source);
    return 0;
}

/* Lists the arrays of the current archive, or the only array of a .npy file. */
static int list_file(struct ids_listing *listing, struct err *err)
{
    const struct id_array file = listing->file;
    struct npz_member member = {.name = listing->table, .end = file.npy.end};

    listing->n_members = 0;
    for (uint64_t pos = 0;; pos = member.end) {
        char head[NPY_HEAD_MAX] = "";
        ssize_t len = read_head(&file, pos, head, err);

        if (len < 0)
            return -1;
        if (!pos && memcmp(head, "PK", 2) != 0) {
            listing->table = "table";
            listing->place = path_folder(file.path, listing->arena);
            return list_array(listing, &member, err);
        }
        if (npz_parse(&member, head, (size_t)len, listing->arena, err))
            return err_prefix(err, "%s: byte %" PRIu64, file.source, pos);
        if (!member.name)
            return check_directory(listing, &file, pos, err);
        listing->file.source =
            text_say(listing->arena, "%s: %s", file.source, member.name);
        if (member.end > file.npy.end - pos)
            return err_input(err, "%s: the file ends before the array does",
                             listing->file.source);
        member.begin += pos;
        member.end += pos;
        member.pos = pos;
        listing->members = mem_room(listing->members, listing->n_members,
                                    &listing->cap_members, sizeof(member));
        listing->members[listing->n_members++] = member;
        if (list_array(listing, &member, err))
            return -1;
    }
}

static int check_part(const struct id_part *part, struct err *err)
{
    if (!part->ids.path)
        return err_input(err, "%s: the indices of table '%s' are missing",
                         part->bags.source, part->table);
    if (part->bags.path &&
        (part->ids.npy.n_columns > 1 || part->bags.npy.n_columns > 1))
        return err_input(
            err, "%s: arrays with lengths or offsets must have one dimension",
            part->ids.source);
    return 0;
}

/* Lists the arrays of all files. */
int ids_list_files(struct ids_listing *listing, char *const *paths,
                   size_t n_paths, struct err *err)
{
    for (size_t i = 0; i < n_paths; i++) {
        char *name = arena_strdup(listing->arena, path_name(paths[i]));
        int rc;

        listing->place = paths[i];
        listing->table = name;
        listing->file =
            (struct id_array){.path = paths[i],
                              .source = text_shown(paths[i], listing->arena),
                              .fd = -1};
        if (!cut_suffix(name, ".npz"))
            cut_suffix(name, ".npy");
        rc = ids_open(&listing->file, err) || list_file(listing, err);
        ids_close(&listing->file);
        if (rc)
            return -1;
    }
    for (size_t i = 0; i < listing->n_parts; i++)
        if (check_part(&listing->parts[i], err))
            return -1;
    return 0;
}
