/* SPDX-License-Identifier: MIT */
#include "io/csv.h"

#include "base/printable.h"

#include <string.h>

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

static char *skip_blanks(char *p)
{
    while (*p == ' ' || *p == '\t')
        p++;
    return p;
}

/* True if a line ends at `p`: with LF, CRLF, or the end of the text. A CR
 * before the end of the text is allowed. */
static bool is_line_end(const char *p)
{
    return !*p || *p == '\n' || (*p == '\r' && (p[1] == '\n' || !p[1]));
}

/* Checks that the text has no NUL byte and is valid UTF-8. The error message
 * names the first line that has a NUL byte or invalid UTF-8. */
static int check_text(const char *text, size_t len, const char *source,
                      struct err *err)
{
    const char *end = text + len;
    size_t line = 1;

    for (const char *p = text, *next; p < end; p = next, line++) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));

        next = newline ? newline + 1 : end;
        if (memchr(p, '\0', (size_t)(next - p)))
            return err_input(err, "%s:%zu: a NUL byte, so not a text file",
                             source, line);
        if (!text_is_utf8(p, (size_t)(next - p)))
            return err_input(err, "%s:%zu: not UTF-8", source, line);
    }
    return 0;
}

/* Reads a quoted field. csv->pos must point to the opening quote and is moved
 * behind the closing quote. *end is set to the byte that the caller overwrites
 * with the terminating NUL. Error messages lack the file and the line; the
 * caller adds both, the line from csv->line. */
static int read_quoted(struct csv *csv, char **end, struct err *err)
{
    size_t line = csv->line;
    char *in = csv->pos + 1, *out = in;

    for (; *in && (*in != '"' || in[1] == '"'); in++) {
        if (*in == '"')
            in++;
        if (*in == '\n')
            csv->line++;
        *out++ = *in;
    }
    if (!*in) {
        csv->line = line;
        return err_input(err, "a quoted field is not closed");
    }
    *end = out;
    csv->pos = skip_blanks(in + 1);
    if (*csv->pos != ',' && !is_line_end(csv->pos))
        return err_input(err, "text after the closing quote of a field");
    return 0;
}

static int read_plain(struct csv *csv, char **end, struct err *err)
{
    char *start = csv->pos, *p = start;

    while (*p != ',' && *p != '"' && !is_line_end(p) && *p != '\r')
        p++;
    if (*p == '"')
        return err_input(err,
                         "a quote inside a field that does not begin with one");
    if (*p == '\r' && !is_line_end(p))
        return err_input(err, "a carriage return inside a line");
    csv->pos = p;
    while (p > start && (p[-1] == ' ' || p[-1] == '\t'))
        p--;
    *end = p;
    return 0;
}

/* Moves csv->pos behind one line end. */
static void next_line(struct csv *csv)
{
    if (*csv->pos == '\r')
        csv->pos++;
    if (*csv->pos == '\n') {
        csv->pos++;
        csv->line++;
    }
}

/* Skips blank lines and comments. */
static void skip_lines(struct csv *csv)
{
    for (; *csv->pos; next_line(csv)) {
        char *p = skip_blanks(csv->pos);

        if (*p == '#')
            p += strcspn(p, "\n");
        if (!is_line_end(p))
            return;
        csv->pos = p;
    }
}

/* Reads the next record into csv->fields. csv->n_fields is 0 at the end of the
 * text. */
static int next_record(struct csv *csv, struct err *err)
{
    bool more;

    skip_lines(csv);
    csv->n_fields = 0;
    csv->record_line = csv->line;
    for (more = *csv->pos; more;) {
        char *field = skip_blanks(csv->pos), *end = field;

        csv->pos = field;
        if (*field == '"' ? read_quoted(csv, &end, err)
                          : read_plain(csv, &end, err))
            return err_prefix(err, "%s:%zu", csv->source, csv->line);
        field += *field == '"';
        more = *csv->pos == ',';
        if (more)
            csv->pos++;
        else
            next_line(csv);
        /* The NUL is written last, because it may overwrite the comma or line
         * end that was just read. */
        *end = '\0';
        csv->fields[csv->n_fields++] = field;
        csv->fields = mem_room(csv->fields, csv->n_fields, &csv->cap,
                               sizeof(*csv->fields));
    }
    csv->fields[csv->n_fields] = NULL;
    if (!csv->n_columns)
        csv->n_columns = csv->n_fields;
    if (csv->n_fields && csv->n_fields != csv->n_columns)
        return err_input(err, "%s:%zu: %zu fields, but the header has %zu",
                         csv->source, csv->record_line, csv->n_fields,
                         csv->n_columns);
    return 0;
}

int csv_read(const char *text, size_t len, const char *source,
             csv_record *record, void *ctx, struct arena *arena,
             struct err *err)
{
    struct csv csv = {
        .source = source, .pos = arena_strndup(arena, text, len), .line = 1};
    int rc = check_text(text, len, source, err);

    csv.fields = mem_room(NULL, 0, &csv.cap, sizeof(*csv.fields));
    if (!strncmp(csv.pos, BYTE_ORDER_MARK, 3))
        csv.pos += 3;
    do {
        rc = rc || next_record(&csv, err);
        if (!rc && record && record(ctx, &csv, err))
            rc = err_prefix(err, "%s:%zu", source, csv.record_line);
        csv.n_records++;
    } while (!rc && csv.n_fields);
    mem_free(csv.fields);
    return rc ? -1 : 0;
}

int csv_check(const char *text, size_t len, const char *source,
              struct arena *arena, struct err *err)
{
    return csv_read(text, len, source, NULL, NULL, arena, err);
}
