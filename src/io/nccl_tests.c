/* SPDX-License-Identifier: MIT */
#include "io/nccl_tests.h"

#include "base/text.h"

#include <math.h>
#include <string.h>

#define BLANKS " \t\r"
#define MAX_WORDS 40

/* Words of a row: size, count, type, redop, in newer ones root, and from the
 * one that the heading calls time: time, algbw, busbw, #wrong. */
enum { WORD_SIZE = 0, WORD_REDOP = 3 };
enum { TIME_ALGBW = 1, TIME_BUSBW, TIME_WRONG };

struct reader {
    struct nccl_tests *out;
    const char **hosts; /* [out->n_hosts], and NULL */
    size_t time;        /* word of a row; 0: not known yet */
};

static size_t split(char *line, char *words[MAX_WORDS])
{
    size_t n = 0;
    char *rest = line;

    for (char *word; n < MAX_WORDS && (word = strtok_r(rest, BLANKS, &rest));)
        words[n++] = word;
    return n;
}

/* "Rank 0 Group 0 Pid 1887 on worker-1 device 0 [0000:8d:00] NVIDIA H100" */
static int read_rank(struct reader *reader, char *line, struct err *err)
{
    struct nccl_tests *out = reader->out;
    char *name = strstr(line, "] "), *words[MAX_WORDS];
    size_t n, host = 0;
    uint64_t rank;

    if (name)
        *name = '\0';
    n = split(line, words);
    for (size_t i = 1; i + 1 < n && !host; i++)
        host = strcmp(words[i], "on") ? 0 : i + 1;
    if (!host || !name || n < 2 || !text_to_u64(words[1], &rank))
        return err_input(err, "a rank without its host and device");
    if (rank != out->n_ranks)
        return err_input(
            err,
            "rank %s stands where rank %u is next; programs that know nothing "
            "of each other, without MPI, measure no exchange",
            words[1], out->n_ranks);
    name += 2 + strspn(name + 2, BLANKS);
    for (char *end = name + strlen(name);
         end > name && strchr(BLANKS, end[-1]);)
        *--end = '\0';
    if (!text_is_printable(name) || !*name)
        return err_input(err, "no name of a device");
    if (!out->n_ranks++)
        out->device = name;
    if (text_choice(reader->hosts, words[host]) < 0)
        reader->hosts[out->n_hosts++] = words[host];
    return 0;
}

static void read_heading(struct reader *reader, char *line)
{
    char *words[MAX_WORDS];
    const size_t n = split(line, words);

    reader->time = 0;
    for (size_t i = WORD_REDOP + 1; i < n && !reader->time; i++)
        reader->time = strcmp(words[i], "time") ? 0 : i;
}

/* That of an exchange: of what is sent, R - 1 of R parts leave. */
static bool is_bandwidth(const struct nccl_tests *out,
                         const struct nccl_row *row, double algbw, double busbw)
{
    const double leaves = 1 - 1.0 / out->n_ranks;
    const double gbps = 1e-3 * (double)row->bytes / row->us;

    return fabs(algbw - gbps) <= 0.02 + 0.02 * gbps &&
           fabs(busbw - gbps * leaves) <= 0.02 + 0.02 * gbps;
}

static int read_row(struct reader *reader, char *line, struct err *err)
{
    struct nccl_tests *out = reader->out;
    char *words[MAX_WORDS], **time = words + reader->time;
    const size_t n = split(line, words);
    struct nccl_row row;
    double algbw, busbw;

    if (!reader->time || out->n_ranks < 2)
        return err_input(err, "a row before the list of two ranks or more and "
                              "the names of the columns");
    if (n <= reader->time + TIME_WRONG ||
        !text_to_u64(words[WORD_SIZE], &row.bytes) ||
        !text_to_double(time[0], &row.us) ||
        !text_to_double(time[TIME_ALGBW], &algbw) ||
        !text_to_double(time[TIME_BUSBW], &busbw))
        return err_input(
            err, "a row without size, time, algbw, busbw and what was wrong");
    if (!row.bytes) /* less than 16 bytes for each rank */
        return 0;
    if (row.bytes > (uint64_t)1 << 50 || !(row.us > 0) ||
        !is_bandwidth(out, &row, algbw, busbw) ||
        strcmp(words[WORD_REDOP], "none"))
        return err_input(err, "no all-to-all among %u ranks has such a row",
                         out->n_ranks);
    if (strcmp(time[TIME_WRONG], "0") && strcmp(time[TIME_WRONG], "N/A"))
        return err_input(err, "what came was wrong");
    out->rows[out->n_rows++] = row;
    return 0;
}

static int read_line(struct reader *reader, char *line, struct err *err)
{
    static const char program[] = "Collective test starting:";
    char *marked = strstr(line, "<stdout>:");

    line = marked ? marked + strlen("<stdout>:") : line;
    line += strspn(line, "#" BLANKS);
    if (!strncmp(line, program, strlen(program)) &&
        !strstr(line, "alltoall_perf"))
        return err_input(err, "this is of%s, not of alltoall_perf",
                         line + strlen(program));
    if (!strncmp(line, "Rank ", 5))
        return read_rank(reader, line, err);
    if (!strncmp(line, "size ", 5) && strstr(line, "algbw"))
        read_heading(reader, line);
    else if (*line >= '0' && *line <= '9')
        return read_row(reader, line, err);
    return 0;
}

int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena, struct err *err)
{
    struct reader reader = {.out = out};
    char *copy = arena_strndup(arena, text, len);
    size_t n_lines = 1, line_number = 0;

    *out = (struct nccl_tests){0};
    if (strlen(copy) != len)
        return err_input(err, "%s: a NUL byte, so not a text", source);
    for (const char *p = copy; (p = strchr(p, '\n')); p++)
        n_lines++;
    reader.hosts = ARENA_NEW(arena, const char *, n_lines + 1);
    out->rows = ARENA_NEW(arena, struct nccl_row, n_lines);
    for (char *line; (line = strsep(&copy, "\n"));) {
        line_number++;
        if (read_line(&reader, line, err))
            return err_prefix(err, "%s:%zu", source, line_number);
    }
    if (out->n_rows)
        return 0;
    return err_input(
        err, "%s: no row of an exchange; alltoall_perf prints them", source);
}
