/* SPDX-License-Identifier: MIT */
#include "io/peaks.h"

#include "base/text.h"
#include "io/named_rows.h"

#include <inttypes.h>
#include <string.h>

enum { COLUMN_RANK, COLUMN_ALLOCATED, COLUMN_RESERVED, COLUMN_USED, N_COLUMNS };
static const char *const column_names[] = {
    "rank", "allocated_bytes", "reserved_bytes", "used_bytes", NULL};

struct peaks_reader {
    struct peaks *peaks;
    struct arena *arena;
};

static int check_rank(const struct peaks *peaks, uint64_t rank, struct err *err)
{
    if (rank < peaks->n_ranks)
        return 0;
    return err_input(err,
                     "rank is 0 to %" PRIu32 ", as the plan has %" PRIu32
                     " ranks, not '%" PRIu64 "'",
                     peaks->n_ranks - 1, peaks->n_ranks, rank);
}

/* --- counters --- */

static int read_counters(void *ctx, const char *const *cells, struct err *err)
{
    const struct peaks_reader *reader = ctx;
    struct peaks *peaks = reader->peaks;
    uint64_t rank, bytes[N_COLUMNS] = {0};
    struct peak *peak;

    if (!text_to_u64(cells[COLUMN_RANK], &rank))
        return err_input(err, "rank is a whole number, not '%s'",
                         cells[COLUMN_RANK]);
    if (check_rank(peaks, rank, err))
        return -1;
    for (unsigned c = COLUMN_ALLOCATED; c < N_COLUMNS; c++)
        if (*cells[c] && (!text_to_u64(cells[c], &bytes[c]) || !bytes[c] ||
                          bytes[c] > PEAK_MAX_BYTES))
            return err_input(err, "%s is 1 to 2^50 bytes, not '%s'",
                             column_names[c], cells[c]);
    if (!bytes[COLUMN_ALLOCATED] && !bytes[COLUMN_RESERVED] &&
        !bytes[COLUMN_USED])
        return err_input(err,
                         "rank %" PRIu64 " has none of allocated_bytes, "
                         "reserved_bytes and used_bytes",
                         rank);
    if ((bytes[COLUMN_RESERVED] &&
         bytes[COLUMN_ALLOCATED] > bytes[COLUMN_RESERVED]) ||
        (bytes[COLUMN_USED] && (bytes[COLUMN_ALLOCATED] > bytes[COLUMN_USED] ||
                                bytes[COLUMN_RESERVED] > bytes[COLUMN_USED])))
        return err_input(err, "allocated_bytes are part of reserved_bytes, and "
                              "these of used_bytes, so they cannot be more");
    peak = &peaks->ranks[rank];
    if (peak->allocated || peak->reserved || peak->used)
        return err_input(err, "rank %" PRIu64 " occurs twice", rank);
    *peak = (struct peak){.allocated = bytes[COLUMN_ALLOCATED],
                          .reserved = bytes[COLUMN_RESERVED],
                          .used = bytes[COLUMN_USED]};
    peaks->n++;
    return 0;
}

/* --- logs --- */

#define OUT_OF_MEMORY "out of memory. Tried to allocate "

/*
 * Reads the size before or after `mark` in a message: a number, a blank and a
 * unit, as "1.50 GiB" or "0 bytes". `is_before`: the size ends where the mark
 * begins. Returns false if the message has no such size.
 */
static bool size_at(const char *message, const char *mark, bool is_before,
                    uint64_t *bytes, struct arena *arena)
{
    static const char bytes_unit[] = " bytes";
    const char *begin = strstr(message, mark);
    size_t len;

    if (!begin)
        return false;
    if (is_before) {
        const char *end = begin;

        for (int blanks = 0; begin > message; begin--)
            if (begin[-1] == ' ' && ++blanks == 2)
                break;
        len = (size_t)(end - begin);
    } else {
        begin += strlen(mark);
        len = strcspn(begin, " ");
        len += begin[len] ? 1 + strcspn(begin + len + 1, " .;,)\n") : 0;
    }
    if (len > strlen(bytes_unit) && !strncmp(begin + len - strlen(bytes_unit),
                                             bytes_unit, strlen(bytes_unit)))
        len -= strlen(bytes_unit);
    return text_to_bytes(arena_strndup(arena, begin, len), bytes) &&
           *bytes <= PEAK_MAX_BYTES;
}

/* Reads the number after `mark`. Returns false if the line has no such
 * number. */
static bool number_after(const char *line, const char *mark, uint64_t *number,
                         struct arena *arena)
{
    const char *begin = strstr(line, mark);

    if (!begin)
        return false;
    begin += strlen(mark);
    return text_to_u64(arena_strndup(arena, begin, strspn(begin, "0123456789")),
                       number);
}

/*
 * Reads a message of PyTorch 2, "CUDA out of memory. Tried to allocate 2.00
 * GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.20 GiB is free. ...
 * Of the allocated memory 70.00 GiB is allocated by PyTorch, and 500.00 MiB is
 * reserved by PyTorch but unallocated.", or of PyTorch 1, "... Tried to
 * allocate 2.00 GiB (GPU 0; 79.10 GiB total capacity; 70.00 GiB already
 * allocated; 1.20 GiB free; 70.49 GiB reserved in total by PyTorch)". The rank
 * is that of torchrun's prefix "[rank3]:". A job on one host needs no prefix,
 * because its ranks are its GPUs.
 */
static int read_message(const struct peaks_reader *reader, const char *line,
                        struct err *err)
{
    struct peaks *peaks = reader->peaks;
    struct arena *arena = reader->arena;
    const char *message = strstr(line, OUT_OF_MEMORY);
    uint64_t tried, total, unused, allocated, spare = 0, rank;
    struct peak now, *peak;
    bool is_whole = size_at(message, OUT_OF_MEMORY, false, &tried, arena);

    if (strstr(message, "total capacity of "))
        is_whole &=
            size_at(message, "total capacity of ", false, &total, arena) &&
            size_at(message, " is free", true, &unused, arena) &&
            size_at(message, " is allocated by PyTorch", true, &allocated,
                    arena) &&
            size_at(message, " is reserved by PyTorch but", true, &spare,
                    arena);
    else
        is_whole &=
            size_at(message, " total capacity", true, &total, arena) &&
            size_at(message, " already allocated", true, &allocated, arena) &&
            size_at(message, " free;", true, &unused, arena);
    if (!is_whole || unused > total || allocated > total)
        return err_input(err, "the message of a GPU that ran out of memory is "
                              "incomplete");
    if (!number_after(line, "[rank", &rank, arena) &&
        (!peaks->is_one_host || !number_after(message, "GPU ", &rank, arena)))
        return err_input(err, "the message does not name its rank, as "
                              "'[rank3]:' before it does");
    if (check_rank(peaks, rank, err))
        return -1;
    peak = &peaks->ranks[rank];
    now = (struct peak){.allocated = allocated,
                        .reserved = allocated + spare,
                        .used = total - unused,
                        .failed = tried};
    peaks->n += !peak->used;
    if (now.used + now.failed > peak->used + peak->failed)
        *peak = now;
    return 0;
}

static int read_log(const struct peaks_reader *reader, const char *text,
                    size_t n_bytes, const char *source, struct err *err)
{
    size_t n = 1;

    for (const char *begin = text; *begin; n++) {
        const size_t len = strcspn(begin, "\n");
        const struct arena_mark mark = arena_mark(reader->arena);
        const char *line = arena_strndup(reader->arena, begin, len);

        if (strstr(line, OUT_OF_MEMORY) && read_message(reader, line, err))
            return err_prefix(err, "%s:%zu", source, n);
        arena_rewind(reader->arena, mark);
        begin += len + (begin[len] == '\n');
    }
    if (strlen(text) < n_bytes)
        return err_input(err, "%s:%zu: the log has a NUL byte", source, n - 1);
    return 0;
}

int peaks_read(struct peaks *peaks, const char *text, size_t len,
               const char *source, struct arena *arena, struct err *err)
{
    struct peaks_reader reader = {peaks, arena};
    struct named_rows rows = {.names = column_names,
                              .n_required = 1,
                              .read = read_counters,
                              .ctx = &reader};
    const char *copy;

    peaks->ranks = ARENA_NEW(arena, struct peak, peaks->n_ranks);
    peaks->n = 0;
    copy = arena_strndup(arena, text, len);
    if (strstr(copy, OUT_OF_MEMORY))
        return read_log(&reader, copy, len, source, err);
    if (named_rows_read(&rows, text, len, source, arena, err))
        return -1;
    if (peaks->n)
        return 0;
    return err_input(err, "%s:%zu: no peaks of memory", source, rows.line);
}
