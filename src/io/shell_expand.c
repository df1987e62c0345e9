/* SPDX-License-Identifier: MIT */
#include "io/shell_expand.h"

#include "base/printable.h"
#include "io/shell_arith.h"

#include <inttypes.h>
#include <string.h>

#define MAX_VALUE ((size_t)1 << 20)
#define MAX_BYTES ((uint64_t)64 << 20)
#define MAX_DEPTH 16

/* --- brackets --- */

static const char *close_quote(const char *pos)
{
    const char quote = *pos++;

    for (; *pos && *pos != quote; pos++)
        if (*pos == '\\' && quote != '\'' && pos[1])
            pos++;
    return *pos ? pos + 1 : NULL;
}

const char *shell_close(const char *pos)
{
    char open[64];
    size_t depth = 0;

    do {
        if (*pos == '\\' && pos[1]) {
            pos += 2;
        } else if (*pos && strchr("'\"`", *pos)) {
            pos = close_quote(pos);
        } else {
            if (*pos && strchr("({", *pos)) {
                if (depth >= sizeof(open))
                    return NULL;
                open[depth++] = *pos == '(' ? ')' : '}';
            } else if (depth && *pos == open[depth - 1]) {
                depth--;
            }
            pos = *pos ? pos + 1 : NULL;
        }
    } while (pos && depth);
    return pos;
}

/* --- expansion of '$' --- */

static void add_unknown(struct buf *out, const char *pos, const char *end)
{
    const char marks[] = {SHELL_UNKNOWN, SHELL_KNOWN};

    buf_add(out, &marks[0], 1);
    buf_add(out, pos, (size_t)(end - pos));
    buf_add(out, &marks[1], 1);
}

/* Appends a variable's value to a word. */
static void add_value(struct buf *out, const char *value, bool splits,
                      bool is_quoted, bool is_all)
{
    const char field = is_all && splits ? SHELL_FIELD : ' ';
    bool is_unknown = false;

    if (*value == SHELL_ELEMENT)
        value++;
    for (; *value; value++) {
        const bool is_blank = strchr(" \t\r\n", *value);
        const char break_at = *value == SHELL_ELEMENT ? field : SHELL_FIELD;

        if (*value == SHELL_ELEMENT && !is_all)
            return;
        is_unknown =
            *value == SHELL_UNKNOWN || (is_unknown && *value != SHELL_KNOWN);
        if (!is_unknown &&
            (*value == SHELL_ELEMENT || (is_blank && splits && !is_quoted)))
            buf_add(out, &break_at, 1);
        else
            buf_add(out, value, 1);
    }
}

static void add_default(struct shell *shell, struct buf *out, const char *name,
                        const struct buf *value)
{
    struct buf *notes = shell->script->notes;
    const char *text = value->data ? value->data : "";

    add_value(out, text, false, true, true);
    if (notes && shell_is_known(text) && text_is_printable(text))
        buf_printf(notes, "# $%s is not set in the file: %s, its default\n",
                   name, *text ? text : "''");
}

/* Expands the text in the braces of a "${...}": "NAME", "NAME[@]", "NAME:-word"
 * and similar forms. *is_known is false if the value is unknown. */
static int expand_braces(struct shell *shell, struct buf *out, const char *text,
                         bool splits, bool is_quoted, bool *is_known,
                         struct err *err)
{
    const size_t len = shell_name_length(text);
    const char *name = arena_strndup(shell->script->arena, text, len);
    const struct shell_variable *variable =
        len ? shell_find(shell, name) : NULL;
    const char *value = variable ? variable->value : NULL;
    const char *rest = text + len;
    const bool is_array = !strcmp(rest, "[@]") || !strcmp(rest, "[*]");
    const bool takes_empty = *rest == ':';
    struct buf word = {0};
    int rc = 0;

    *is_known = false;
    if (len && (!*rest || is_array)) {
        *is_known = value;
        if (value)
            add_value(out, value, splits, is_quoted, is_array);
        return 0;
    }
    rest += takes_empty;
    if (!len || !*rest || !strchr("-=+", *rest))
        return 0;
    if (value ? !shell_is_known(value)
              : (shell->variables.is_open || *rest == '+'))
        return 0;
    *is_known = true;
    if (value && (*value || !takes_empty) ? *rest == '+' : *rest != '+') {
        rc = shell_expand_text(shell, &word, rest + 1, err);
        if (!rc && value)
            add_value(out, word.data ? word.data : "", false, true, true);
        else if (!rc)
            add_default(shell, out, name, &word);
        if (!rc && *rest == '=')
            shell_set(
                shell, name,
                arena_strdup(shell->script->arena, word.data ? word.data : ""));
        buf_release(&word);
    } else if (value && *rest != '+') {
        add_value(out, value, splits, is_quoted, false);
    }
    return rc;
}

/* Expands an arithmetic expansion "$((...))". `pos` must be behind the first
 * "((", and `end` on the last "))". */
static int expand_sum(struct shell *shell, struct buf *out, const char *pos,
                      const char *end, bool *is_known, struct err *err)
{
    struct buf sum = {0};
    int64_t value;
    int rc = shell_expand_text(
        shell, &sum,
        arena_strndup(shell->script->arena, pos, (size_t)(end - pos)), err);

    *is_known = !rc && sum.data && shell_is_known(sum.data) &&
                shell_calculate(shell, sum.data, &value);
    if (*is_known)
        buf_printf(out, "%" PRId64, value);
    buf_release(&sum);
    return rc;
}

/* Moves shell->pos to `end`, and counts the line ends between. */
static void step_to(struct shell *shell, const char *end)
{
    for (; shell->pos < end; shell->pos++)
        shell->line += *shell->pos == '\n';
}

/* Expands the '$' at shell->pos, with the name or brackets that follow it. */
static int expand_dollar(struct shell *shell, struct buf *out, bool splits,
                         bool is_quoted, struct err *err)
{
    struct arena *arena = shell->script->arena;
    const char *start = shell->pos, *end, *pos = start + 1;
    const size_t len = shell_name_length(pos);
    bool is_known = false;
    int rc = 0;

    if (*pos == '(' || *pos == '{') {
        end = shell_close(pos);
        if (!end)
            return shell_error(shell, shell->line, err,
                               "a '$' with a bracket that is not closed");
    } else if (len || (*pos && strchr("0123456789@*#?$!-", *pos))) {
        end = pos + (len ? len : 1);
    } else {
        shell->pos++;
        if (*pos != '"' || is_quoted)
            buf_add(out, "$", 1);
        return 0;
    }
    if (shell->depth < MAX_DEPTH) {
        shell->depth++;
        if (pos[0] == '(' && pos[1] == '(' && end - pos >= 4 && end[-2] == ')')
            rc = expand_sum(shell, out, pos + 2, end - 2, &is_known, err);
        else if (pos[0] == '{')
            rc = expand_braces(
                shell, out,
                arena_strndup(arena, pos + 1, (size_t)(end - pos) - 2), splits,
                is_quoted, &is_known, err);
        else if (len)
            rc = expand_braces(shell, out, arena_strndup(arena, pos, len),
                               splits, is_quoted, &is_known, err);
        shell->depth--;
    }
    if (!rc && !is_known)
        add_unknown(out, start, end);
    step_to(shell, end);
    return rc;
}

/* --- words --- */

static int expand_backquotes(struct shell *shell, struct buf *out,
                             struct err *err)
{
    const char *end = close_quote(shell->pos);

    if (!end)
        return shell_error(shell, shell->line, err,
                           "a quote that is not closed");
    add_unknown(out, shell->pos, end);
    step_to(shell, end);
    return 0;
}

static int expand_single(struct shell *shell, struct buf *out, struct err *err)
{
    const char *end = close_quote(shell->pos);

    if (!end)
        return shell_error(shell, shell->line, err,
                           "a quote that is not closed");
    buf_add(out, shell->pos + 1, (size_t)(end - shell->pos) - 2);
    step_to(shell, end);
    return 0;
}

static int expand_escape(struct shell *shell, struct buf *out, bool is_quoted)
{
    const char next = shell->pos[1];

    if (next == '\n' || (next == '\r' && shell->pos[2] == '\n')) {
        step_to(shell, shell->pos + 2 + (next == '\r'));
        return 0;
    }
    if (!next || (is_quoted && !strchr("$`\"\\", next)))
        buf_add(out, "\\", 1);
    if (next)
        buf_add(out, &next, 1);
    step_to(shell, shell->pos + 1 + !!next);
    return 0;
}

static int expand_double(struct shell *shell, struct buf *out, bool splits,
                         struct err *err)
{
    const size_t line = shell->line;
    int rc = 0;

    for (shell->pos++; !rc && *shell->pos != '"';) {
        if (!*shell->pos)
            return shell_error(shell, line, err, "a quote that is not closed");
        if (*shell->pos == '\\')
            rc = expand_escape(shell, out, true);
        else if (*shell->pos == '$')
            rc = expand_dollar(shell, out, splits, true, err);
        else if (*shell->pos == '`')
            rc = expand_backquotes(shell, out, err);
        else {
            buf_add(out, shell->pos, 1);
            step_to(shell, shell->pos + 1);
        }
    }
    shell->pos += !rc;
    return rc;
}

/* Returns the end of a brace expansion, such as "{1..4}" or "{a,b}", or NULL if
 * the text begins with none. A brace expansion makes several words, which stay
 * unknown. */
static const char *braces_end(const char *pos)
{
    const size_t len = strcspn(pos, "} \t\r\n;&|<>()");
    const char *range = strstr(pos, "..");

    if (pos[len] != '}' ||
        !(memchr(pos, ',', len) || (range && range < pos + len)))
        return NULL;
    return pos + len + 1;
}

static int expand_plain(struct shell *shell, struct buf *out)
{
    const char *end = *shell->pos == '{' ? braces_end(shell->pos) : NULL;

    if (end) {
        add_unknown(out, shell->pos, end);
        step_to(shell, end);
    } else {
        buf_add(out, shell->pos, 1);
        step_to(shell, shell->pos + 1);
    }
    return 0;
}

int shell_expand(struct shell *shell, struct buf *out, bool splits, bool is_all,
                 bool *is_quoted, struct err *err)
{
    const char *ends = is_all ? "" : " \t\r\n;&|<>()";
    const size_t line = shell->line, before = out->len;
    int rc = 0;

    *is_quoted = false;
    while (!rc && *shell->pos && !strchr(ends, *shell->pos)) {
        const char c = *shell->pos;

        *is_quoted |= c == '\'' || c == '"';
        rc = c == '\\'   ? expand_escape(shell, out, false)
             : c == '\'' ? expand_single(shell, out, err)
             : c == '"'  ? expand_double(shell, out, splits, err)
             : c == '`'  ? expand_backquotes(shell, out, err)
             : c == '$'  ? expand_dollar(shell, out, splits, false, err)
                         : expand_plain(shell, out);
        if (!rc && out->len - before > MAX_VALUE)
            rc = shell_error(shell, line, err, "a word of more than 1 MiB");
    }
    shell->n_bytes += out->len - before;
    if (!rc && shell->n_bytes > MAX_BYTES)
        rc = shell_error(shell, line, err,
                         "variables that make more than 64 MiB of text");
    return rc;
}

int shell_expand_text(struct shell *shell, struct buf *out, const char *text,
                      struct err *err)
{
    const char *pos = shell->pos;
    const size_t line = shell->line;
    bool is_quoted;
    int rc;

    shell->pos = text;
    rc = shell_expand(shell, out, false, true, &is_quoted, err);
    shell->pos = pos;
    shell->line = line;
    return rc;
}
