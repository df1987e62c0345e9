/* SPDX-License-Identifier: MIT */
#include "io/nccl_tests.h"

#include "base/printable.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\r"
#define MAX_WORDS 48
#define MAX_BYTES ((uint64_t)1 << 50)

/* Words of a row, in this order: size, count, type, redop (in most versions),
 * root (in newer versions), time, algbw, busbw, #wrong. The heading gives the
 * index of the word time. The second enum counts from the word time. */
enum { WORD_SIZE, WORD_COUNT, WORD_TYPE, WORD_REDOP };
enum { TIME_ALGBW = 1, TIME_BUSBW, TIME_WRONG };

static const struct type {
    const char *name;
    unsigned n_bytes;
} types[] = {
    {"int8", 1},     {"uint8", 1},    {"int32", 4},   {"uint32", 4},
    {"int64", 8},    {"uint64", 8},   {"half", 2},    {"float", 4},
    {"double", 8},   {"bfloat16", 2}, {"f8e4m3", 1},  {"f8e5m2", 1},
    {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"fp8e4m3", 1}, {"fp8e5m2", 1},
    {"char", 1},     {"int", 4},
};
#define N_TYPES (sizeof(types) / sizeof(*types))

/* State of the parser for one test. */
struct test {
    struct nccl_tests found;
    const char **hosts; /* [found.n_hosts] host names, owned */
    size_t hosts_cap, rows_cap, first_line;
    /* from the heading; `time` is 0 until a heading is read */
    size_t n_words, time, time_in_place;
    /* Sizes that the test's first line announces. max_bytes is 0 if the line is
     * missing. */
    uint64_t min_bytes, max_bytes, step, next_bytes;
    bool multiplies;
    const struct type *type; /* type of the previous row */
    bool may_restart;        /* a line of the log allows the sweep to restart */
    /* Bus bandwidths of the rows: the sum out of place and the sum in place.
     * Then the average that the test prints (NAN if it prints none). */
    double sums[2], average;
    size_t counts[2], average_line;
    /* true: the test measures another collective, not all-to-all */
    bool is_other;
    struct err fault; /* first error of the test; code 0: no error */
};

struct nccl_reader {
    /* `best` is the last complete test; best.found.n_rows is 0 if none was
     * found */
    struct test now, best;
    const char *source;
    struct arena *arena;
    size_t line;
};

static size_t split(char *line, char *words[MAX_WORDS])
{
    size_t n = 0;
    char *rest = line;

    for (char *word; n < MAX_WORDS && (word = strtok_r(rest, BLANKS, &rest));)
        words[n++] = word;
    return n;
}

/* --- the list of ranks, the heading and the remarks --- */

static bool has_host(const struct test *test, const char *host)
{
    for (uint32_t i = 0; i < test->found.n_hosts; i++)
        if (!strcmp(test->hosts[i], host))
            return true;
    return false;
}

/* Reads a line that lists a rank, such as "Rank 0 Group 0 Pid 1887 on worker-1
 * device 0 [0000:8d:00] NVIDIA H100". */
static int read_rank(struct test *test, char *line, struct err *err)
{
    struct nccl_tests *out = &test->found;
    char *name = strstr(line, "] "), *words[MAX_WORDS];
    size_t n, host = 0;
    uint64_t rank, device;

    if (name)
        *name = '\0';
    n = split(line, words);
    for (size_t i = 1; i + 1 < n && !host; i++)
        host = strcmp(words[i], "on") ? 0 : i + 1;
    if (!host || !name || !text_to_u64(words[1], &rank) || host + 2 >= n ||
        strcmp(words[host + 1], "device") != 0 ||
        !text_to_u64(words[host + 2], &device))
        return err_input(err, "a rank has no host and device");
    if (rank != out->n_ranks)
        return err_input(
            err,
            "rank %s is listed instead of rank %u; processes that were started "
            "without MPI do not see each other and measure no all-to-all",
            words[1], out->n_ranks);
    name += 2 + strspn(name + 2, BLANKS);
    for (char *end = name + strlen(name);
         end > name && strchr(BLANKS, end[-1]);)
        *--end = '\0';
    if (!text_is_printable(name) || !*name)
        return err_input(err, "the device has no name");
    if (!out->n_ranks)
        out->device = name;
    if (strcmp(name, out->device) != 0)
        return err_input(err, "rank %s has a '%s', but rank 0 a '%s'", words[1],
                         name, out->device);
    out->n_ranks++;
    if (!has_host(test, words[host])) {
        test->hosts = mem_room(test->hosts, out->n_hosts, &test->hosts_cap,
                               sizeof(*test->hosts));
        test->hosts[out->n_hosts++] = words[host];
    }
    return 0;
}

static void read_heading(struct test *test, char *line)
{
    char *words[MAX_WORDS];

    test->n_words = split(line, words);
    test->time = test->time_in_place = 0;
    for (size_t i = WORD_REDOP; i < test->n_words; i++)
        if (!strcmp(words[i], "time")) {
            if (!test->time)
                test->time = i;
            else if (!test->time_in_place)
                test->time_in_place = i;
        }
}

/* Returns the number that follows a word in a line; 0 if the line lacks the
 * word. */
static uint64_t number_after(const char *line, const char *word)
{
    const char *pos = strstr(line, word);

    return pos ? strtoull(pos + strlen(word) +
                              strspn(pos + strlen(word), BLANKS),
                          NULL, 10)
               : 0;
}

/* Reads the line that announces the sizes, such as "nThread 1 nGpus 1 minBytes
 * 65536 maxBytes 1073741824 step: 16(factor)". */
static void read_sweep(struct test *test, const char *line)
{
    const char *step = strstr(line, "step:");

    test->min_bytes = number_after(line, "minBytes");
    test->max_bytes = number_after(line, "maxBytes");
    test->step = number_after(line, "step:");
    test->multiplies = step && strstr(step, "(factor)") && test->step > 1;
    test->next_bytes = test->min_bytes;
    if (!step || test->max_bytes > MAX_BYTES ||
        test->min_bytes > test->max_bytes)
        test->max_bytes = 0;
}

/* --- rows of a test --- */

/* Returns half a unit of a printed number's last digit, which is the largest
 * rounding error of the number. */
static double half_digit(const char *word)
{
    const char *dot = strchr(word, '.');

    return 0.5 * pow(10, dot ? -(double)strspn(dot + 1, "0123456789") : 0);
}

/* Checks a row's bandwidths. algbw must be bytes / time. busbw must be algbw *
 * (R - 1) / R, since each of the R ranks keeps one of its R parts. The argument
 * `time` points to the three words time, algbw and busbw. */
static bool is_bandwidth(const struct nccl_tests *out, uint64_t bytes,
                         char *const time[])
{
    const double leaves = 1 - 1.0 / out->n_ranks;
    double us, algbw, busbw, gbps;

    if (!text_to_double(time[0], &us) ||
        !text_to_double(time[TIME_ALGBW], &algbw) ||
        !text_to_double(time[TIME_BUSBW], &busbw) || !(us > 0))
        return false;
    gbps = 1e-3 * (double)bytes / us;
    return fabs(algbw - gbps) <= 0.02 + 0.02 * gbps &&
           fabs(busbw - algbw * leaves) <= 1e-6 * busbw +
                                               half_digit(time[TIME_BUSBW]) +
                                               half_digit(time[TIME_ALGBW]);
}

/* True if the words from index `time` on can be the numbers time, algbw, busbw
 * and #wrong. */
static bool are_times(char *const words[], size_t n, size_t time)
{
    double number;

    return n > time + TIME_WRONG && text_to_double(words[time], &number) &&
           text_to_double(words[time + TIME_ALGBW], &number) &&
           text_to_double(words[time + TIME_BUSBW], &number);
}

/* Returns the index of the word that holds the row's time; 0 if the row has no
 * time. If the redop and root columns are blank, the time stands to the left of
 * its column in the heading. *fits is true if the row's bandwidths are those of
 * an all-to-all. */
static size_t find_time(bool *fits, const struct test *test,
                        char *const words[], size_t n, uint64_t bytes)
{
    size_t found = 0;

    *fits = false;
    for (size_t time = test->time; time >= WORD_REDOP && !*fits; time--)
        if (are_times(words, n, time)) {
            *fits = !bytes || is_bandwidth(&test->found, bytes, words + time);
            if (*fits || time == test->time)
                found = time;
        }
    return found;
}

/* True if the size `printed` is `bytes` rounded down to a size that all ranks
 * can send. Each rank's part must be a multiple of 16 bytes or, in old
 * versions, of the size of an element. */
static bool is_size_of(const struct test *test, uint64_t printed,
                       uint64_t bytes)
{
    return printed <= bytes && bytes - printed < 32ull * test->found.n_ranks;
}

/* Compares a row's size with the size that the sweep has next, and then moves
 * the sweep to the following size. */
static int check_size(struct test *test, uint64_t bytes, struct err *err)
{
    if (!test->max_bytes)
        return 0;
    if (test->next_bytes > test->max_bytes && !test->may_restart)
        return err_input(err,
                         "a row of %" PRIu64
                         " bytes follows the last row, of at most %" PRIu64,
                         bytes, test->max_bytes);
    if (test->next_bytes > test->max_bytes)
        test->next_bytes = test->min_bytes;
    test->may_restart = false;
    if (!is_size_of(test, bytes, test->next_bytes))
        return err_input(err,
                         "a row of %" PRIu64
                         " bytes, but the next row should have %" PRIu64,
                         bytes, test->next_bytes);
    if (test->multiplies)
        test->next_bytes *= test->step;
    else
        test->next_bytes += max_u64(test->step, 1);
    if (!test->next_bytes || test->min_bytes == test->max_bytes)
        test->next_bytes = test->max_bytes + 1;
    return 0;
}

/* Checks a row's count of elements. It is the number of elements for one rank;
 * in some old versions it is the number for all ranks. */
static int check_count(const struct test *test, uint64_t bytes, uint64_t count,
                       unsigned n_bytes, struct err *err)
{
    const uint64_t n_ranks = test->found.n_ranks;

    if (count <= MAX_BYTES &&
        (count * n_bytes * n_ranks == bytes || count * n_bytes == bytes))
        return 0;
    return err_input(err,
                     "%" PRIu64 " elements of %u bytes for each of %u ranks "
                     "are not %" PRIu64 " bytes",
                     count, n_bytes, test->found.n_ranks, bytes);
}

static bool is_wrong(const char *word)
{
    double n;

    return strcmp(word, "N/A") && (!text_to_double(word, &n) || n != 0);
}

static void add_bandwidths(struct test *test, char *const words[], size_t n,
                           size_t time)
{
    const size_t in_place = time + test->time_in_place - test->time;
    double number;

    if (text_to_double(words[time + TIME_BUSBW], &number)) {
        test->sums[0] += number;
        test->counts[0]++;
    }
    if (test->time_in_place && are_times(words, n, in_place) &&
        text_to_double(words[in_place + TIME_BUSBW], &number)) {
        test->sums[1] += number;
        test->counts[1]++;
    }
}

static int read_row(struct test *test, char *const words[], size_t n,
                    const struct type *type, struct err *err)
{
    struct nccl_tests *out = &test->found;
    struct nccl_row row = {0};
    uint64_t count = 0;
    size_t time = 0;
    bool fits = false;

    if (!test->time || out->n_ranks < 2)
        return err_input(err, "a row comes before the list of at least two "
                              "ranks or before the column names");
    if (n > test->n_words)
        return err_input(err,
                         "a row has %zu words, but the heading has %zu: rows "
                         "have run into each other",
                         n, test->n_words);
    if (text_to_u64(words[WORD_SIZE], &row.bytes) &&
        text_to_u64(words[WORD_COUNT], &count))
        time = find_time(&fits, test, words, n, row.bytes);
    if (!time)
        return err_input(err,
                         "a row lacks size, time, algbw, busbw or '#wrong'");
    test->may_restart |= test->type && test->type != type;
    test->type = type;
    if (check_size(test, row.bytes, err))
        return -1;
    add_bandwidths(test, words, n, time);
    if (!row.bytes) /* the exchange has fewer than 16 bytes for each rank */
        return 0;
    for (size_t i = WORD_REDOP; i < time; i++)
        fits &= !strcmp(words[i], "none") || strchr("-0123456789", *words[i]);
    if (row.bytes > MAX_BYTES || !fits)
        return err_input(err, "no all-to-all among %u ranks has such a row",
                         out->n_ranks);
    if (check_count(test, row.bytes, count, type->n_bytes, err))
        return -1;
    if (is_wrong(words[time + TIME_WRONG]))
        return err_input(err, "wrong data were received");
    if (!text_to_double(words[time], &row.us))
        return err_input(err, "'%s' is not a time", words[time]);
    out->rows =
        mem_room(out->rows, out->n_rows, &test->rows_cap, sizeof(*out->rows));
    out->rows[out->n_rows++] = row;
    return 0;
}

/* Returns the index of the first word of a row (size, count, type). Words
 * before it are a prefix of a launcher or a log collector. Returns n if the
 * line is no row. */
static size_t find_row(const struct type **type, char *const words[], size_t n)
{
    uint64_t number;

    for (size_t i = 0; i + WORD_TYPE < n; i++)
        for (size_t t = 0; t < N_TYPES; t++)
            if (!strcmp(words[i + WORD_TYPE], types[t].name) &&
                text_to_u64(words[i], &number) &&
                text_to_u64(words[i + WORD_COUNT], &number)) {
                *type = &types[t];
                return i;
            }
    return n;
}

/* --- tests of a log --- */

static void release(struct test *test)
{
    mem_free(test->found.rows);
    mem_free(test->hosts);
    *test = (struct test){.average = NAN};
}

/* Compares a test's rows with the sizes of the sweep, and the rows' mean bus
 * bandwidth with the average that the test prints. On failure *line is the
 * faulty line, or 0 if the error has no line. */
static int check_test(const struct test *test, size_t *line, struct err *err)
{
    const double all = test->sums[0] + test->sums[1];
    const double n = (double)test->counts[0], m = (double)test->counts[1];
    const double slack = 0.006 + 1e-4 * test->average;

    if (!test->found.n_rows) {
        *line = 0;
        return err_input(
            err, "no rows of an all-to-all, which alltoall_perf prints");
    }
    if (test->max_bytes && test->next_bytes <= test->max_bytes)
        return err_input(err,
                         "sizes from %" PRIu64 " to %" PRIu64
                         " are announced, but %" PRIu64 " has no row",
                         test->min_bytes, test->max_bytes, test->next_bytes);
    if (test->max_bytes || isnan(test->average) ||
        fabs(all / (n + m) - test->average) <= slack ||
        fabs(test->sums[0] / n - test->average) <= slack ||
        fabs(all / (2 * n) - test->average) <= slack)
        return 0;
    *line = test->average_line;
    return err_input(err,
                     "the mean bus bandwidth of the rows is %.6g GB/s, but "
                     "'Avg bus bandwidth' is %.6g",
                     all / (n + m), test->average);
}

/* Ends the current test. If it is complete, it becomes the best test. */
static void end_test(struct nccl_reader *reader)
{
    struct test *now = &reader->now;
    size_t line = now->first_line;

    if (!now->fault.code && check_test(now, &line, &now->fault)) {
        if (line)
            (void)err_prefix(&now->fault, "%s:%zu", reader->source, line);
        else
            (void)err_prefix(&now->fault, "%s", reader->source);
    }
    if (!now->fault.code) {
        release(&reader->best);
        reader->best = *now;
        *now = (struct test){.average = NAN};
    }
}

static void begin_test(struct nccl_reader *reader)
{
    end_test(reader);
    release(&reader->now);
    reader->now.first_line = reader->line;
}

/* Reads the part of a line that follows its '#'. Returns an error if the line
 * starts a test of another collective. */
static int read_remark(struct nccl_reader *reader, char *line, struct err *err)
{
    static const char program[] = "Collective test starting:",
                      average[] = "Avg bus bandwidth";
    struct test *test = &reader->now;
    const char *pos;

    if (strstr(line, "nThread ") && strstr(line, "minBytes")) {
        if (test->found.n_ranks > 1 || test->counts[0])
            begin_test(reader);
        read_sweep(test, line);
    } else if (!strncmp(line, program, strlen(program))) {
        if (test->found.n_ranks > 1 || test->counts[0])
            begin_test(reader);
        test->is_other =
            strstr(line, "_perf") && !strstr(line, "alltoall_perf");
        if (test->is_other)
            return err_input(err, "this is output of%s, not of alltoall_perf",
                             line + strlen(program));
    } else if (!strncmp(line, "Rank ", 5)) {
        if (test->counts[0])
            begin_test(reader);
        return read_rank(test, line, err);
    } else if (!strncmp(line, "size ", 5) && strstr(line, "algbw")) {
        read_heading(test, line);
    } else if (!strncmp(line, "Testing ", 8) && strstr(line, "cycle")) {
        test->may_restart = true;
    } else if (strstr(line, "educing maxBytes to ")) {
        test->max_bytes = number_after(line, "maxBytes to ");
    } else if (!strncmp(line, "Out of bounds values", 20)) {
        pos = strchr(line, ':');
        if (pos && strtod(pos + 1, NULL) > 0)
            return err_input(err, "%.0f values were wrong",
                             strtod(pos + 1, NULL));
    } else if (!strncmp(line, average, strlen(average)) &&
               (pos = strchr(line, ':'))) {
        test->average = strtod(pos + 1, NULL);
        test->average_line = reader->line;
    }
    return 0;
}

static int read_line(struct nccl_reader *reader, char *line, struct err *err)
{
    char *marked = strstr(line, "<stdout>:"), *remark, *words[MAX_WORDS];
    const struct type *type = NULL;
    size_t n, first;

    line = marked ? marked + strlen("<stdout>:") : line;
    remark = strchr(line, '#');
    if (remark)
        return read_remark(reader, remark + strspn(remark, "#" BLANKS), err);
    n = split(line, words);
    first = find_row(&type, words, n);
    return first < n
               ? read_row(&reader->now, words + first, n - first, type, err)
               : 0;
}

static int take_best(struct nccl_tests *out, struct nccl_reader *reader,
                     struct err *err)
{
    const struct err *fault = &reader->now.fault;

    if (!reader->best.found.n_rows) {
        *err = *fault;
        return -1;
    }
    *out = reader->best.found;
    out->rows =
        arena_keep(reader->arena, out->rows, out->n_rows, sizeof(*out->rows));
    reader->best.found.rows = NULL;
    if (fault->code && !reader->now.is_other)
        out->doubt = arena_printf(reader->arena,
                                  "%s; the test of line %zu is incomplete, so "
                                  "the one of line %zu is read",
                                  fault->msg, reader->now.first_line,
                                  reader->best.first_line);
    return 0;
}

int nccl_tests_parse(struct nccl_tests *out, const char *text, size_t len,
                     const char *source, struct arena *arena, struct err *err)
{
    struct nccl_reader reader = {.source = source, .arena = arena};
    char *copy = arena_strndup(arena, text, len);
    int rc;

    *out = (struct nccl_tests){0};
    if (strlen(copy) != len)
        return err_input(err, "%s: a NUL byte, so not a text file", source);
    reader.now = (struct test){.average = NAN, .first_line = 1};
    for (char *line; (line = strsep(&copy, "\n"));) {
        struct err fault = {0};

        reader.line++;
        if (read_line(&reader, line, &fault) && !reader.now.fault.code) {
            reader.now.fault = fault;
            (void)err_prefix(&reader.now.fault, "%s:%zu", source, reader.line);
        }
    }
    end_test(&reader);
    rc = take_best(out, &reader, err);
    release(&reader.now);
    release(&reader.best);
    return rc;
}
