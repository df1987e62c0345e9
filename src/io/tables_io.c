/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"

#include "base/file.h"
#include "base/file_write.h"
#include "base/text.h"
#include "core/canonical.h"
#include "io/plan_torchrec.h"
#include "io/tables_columns.h"
#include "io/tables_csv.h"
#include "io/tables_dlrm.h"
#include "io/tables_easyrec.h"
#include "io/tables_header.h"
#include "io/tables_json.h"
#include "io/tables_model.h"
#include "io/tables_python.h"
#include "io/tables_tbe.h"
#include "io/tables_yaml.h"

#include <string.h>

static bool is_json(const char *text)
{
    if (!strncmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    text += strspn(text, " \t\r\n");
    if (*text != '{' && *text != '[')
        return false;
    /* A dlrm script may also begin with '['. */
    return !tables_is_dlrm(text) ||
           text[1 + strspn(text + 1, " \t\r\n{[")] == '"';
}

/* --- recognition of the format --- */

/* The formats, in the order in which they are tried. CSV is the format of all
 * other texts whose header resembles one. The table of formats in
 * man/neuroshard-tables-import.1 has these names. */
static const struct {
    const char *name;
    bool (*is_one)(const char *text);
    tables_reader *read;
} formats[] = {
    {"report of a TBE", tables_is_tbe, tables_from_tbe},
    {"planner's statistics", tables_is_stats, tables_from_stats},
    {"Python", tables_is_python, tables_from_python},
    {"printed model", tables_is_model, tables_from_model},
    {"TorchEasyRec .config", tables_is_easyrec, tables_from_easyrec},
    {"JSON", is_json, tables_from_json},
    {"YAML", tables_is_yaml, tables_from_yaml},
    {"DLRM or HugeCTR job", tables_is_dlrm, tables_from_dlrm},
    {"CSV with a header", NULL, tables_from_csv},
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

/* Returns the names of all formats, separated by commas. */
static const char *list_formats(struct arena *arena)
{
    const char *names = formats[0].name;

    for (size_t i = 1; i < N_FORMATS; i++)
        names = arena_printf(arena, "%s, %s", names, formats[i].name);
    return names;
}

/* True if a field of a header names a column. The field may be the name of a
 * column, the name that the options give for a column, or a name that an import
 * takes for a column. */
static bool is_column(const char *field, const struct tables_options *options)
{
    const char *asked = options->columns ? options->columns : "", *pos = asked;
    const size_t len = strlen(field);

    if (table_column(field) < N_TABLE_COLUMNS ||
        (options->columns && tables_header_guess(field) < N_TABLE_COLUMNS))
        return true;
    for (; len && (pos = strstr(pos, field)); pos += len)
        if (pos > asked && pos[-1] == '=' && (!pos[len] || pos[len] == ','))
            return true;
    return false;
}

/* Counts the columns of a table list that a header has, if `separator`
 * separates its fields. *n is the number of all fields of the header. */
static size_t count_columns(const char *header, char separator, size_t *n,
                            const struct tables_options *options,
                            struct arena *arena)
{
    size_t n_columns = 0;

    for (*n = 0;; header++) {
        const size_t len =
            strcspn(header, (char[]){separator, '\r', '\n', '\0'});
        size_t skip = strspn(header, " \t\""), end = len;

        skip = skip < len ? skip : len;
        while (end > skip && strchr(" \t\"", header[end - 1]))
            end--;
        ++*n;
        n_columns +=
            is_column(arena_strndup(arena, header + skip, end - skip), options);
        header += len;
        if (*header != separator)
            return n_columns;
    }
}

/* Returns the next line that is neither empty nor a comment. */
static const char *next_record(const char *pos)
{
    for (;;) {
        const char *text = pos + strspn(pos, " \t\r");

        if (*text && *text != '\n' && *text != '#')
            return pos;
        pos += strcspn(pos, "\n");
        if (!*pos++)
            return pos - 1;
    }
}

/* Rejects a text that does not resemble CSV. A text resembles CSV if its header
 * has a known column. It also does if the header and the second line have the
 * same number of fields, at least two. */
static int check_format(const char *text, size_t len, const char *source,
                        const struct tables_options *options,
                        struct arena *arena, struct err *err)
{
    static const char separators[] = ";\t|";
    const char *header =
        next_record(strncmp(text, "\xef\xbb\xbf", 3) ? text : text + 3);
    const char *second = header + strcspn(header, "\n");
    size_t n_fields, n_second;
    struct arena_mark mark = arena_mark(arena);
    size_t n = count_columns(header, ',', &n_fields, options, arena);

    count_columns(next_record(second), ',', &n_second, options, arena);
    if (!strncmp(text, "\x93NUMPY", 6) || !strncmp(text, "PK\3\4", 4))
        return err_input(
            err, "%s: NumPy arrays are read by 'neuroshard tables profile'",
            source);
    if (!*header || strlen(text) < len || n ||
        (n_fields > 1 && n_second == n_fields &&
         strcspn(header, "(){}[]=:;") >= strcspn(header, "\n")))
        return arena_rewind(arena, mark), 0;
    for (const char *separator = separators; *separator; separator++)
        if (count_columns(header, *separator, &n_fields, options, arena))
            return err_input(err,
                             "%s:1: fields are separated by %s, but a table "
                             "list needs commas",
                             source,
                             *separator == ';'    ? "';'"
                             : *separator == '\t' ? "tabs"
                                                  : "'|'");
    if (options->columns)
        return err_input(err, "%s:1: unknown format, none of: %s", source,
                         list_formats(arena));
    return err_input(
        err,
        "%s:1: not a table list, neither CSV with a header that names its "
        "columns nor JSON; 'neuroshard tables import' reads other formats",
        source);
}

int tables_from_text(struct table_list *list, const char *text, size_t len,
                     const char *source, const struct tables_options *options,
                     struct arena *arena, struct err *err)
{
    size_t i = 0;

    while (formats[i].is_one &&
           !((options->columns || formats[i].is_one == is_json) &&
             formats[i].is_one(text)))
        i++;
    if (!formats[i].is_one &&
        check_format(text, len, source, options, arena, err))
        return -1;
    if (formats[i].read(list, text, len, source, options, arena, err))
        return -1;
    tables_draw_row_seeds(list->tables, list->n_tables);
    return 0;
}

int tables_load(struct table_list *list, const char *path,
                const struct tables_options *options, struct arena *arena,
                struct err *err)
{
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err))
        return -1;
    return tables_from_text(list, text, len,
                            strcmp(path, "-") ? text_shown(path, arena)
                                              : "<stdin>",
                            options, arena, err);
}

static int check_csv(const char *text, size_t len, const char *source,
                     struct arena *arena, struct err *err)
{
    static const struct tables_options options = {.keeps_unknown = true};
    struct table_list list;

    return tables_from_csv(&list, text, len, source, &options, arena, err);
}

int tables_save(const struct table_list *list, const char *comment,
                const char *path, struct err *err)
{
    struct buf text = {0};
    int rc;

    buf_printf(&text, "%s", comment);
    tables_to_csv(&text, list);
    rc = file_write_checked(path, text.data, text.len, check_csv, err);
    buf_release(&text);
    return rc;
}
