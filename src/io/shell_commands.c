/* SPDX-License-Identifier: MIT */
#include "io/shell_commands.h"

#include "base/path.h"
#include "base/text.h"
#include "io/shell_expand.h"
#include "io/shell_private.h"

#include <string.h>

#define MAX_TEXTS 8

/* --- assignments --- */

struct shell_assignment {
    const char *name, *value;
    bool appends;
};

static void assign(struct shell_reader *reader,
                   const struct shell_assignment *set)
{
    struct shell *shell = &reader->shell;
    struct arena *arena = shell->script->arena;
    const struct shell_variable *old = shell_find(shell, set->name);
    const char *value = set->value, *before = old ? old->value : NULL;

    if (set->appends) {
        if (!before)
            before = arena_printf(arena, "%c$%s%c", SHELL_UNKNOWN, set->name,
                                  SHELL_KNOWN);
        value = (*before == SHELL_ELEMENT) == (*value == SHELL_ELEMENT) ||
                        (!*before && *value != SHELL_ELEMENT)
                    ? arena_printf(arena, "%s%s", before, value)
                    : NULL;
        shell->n_bytes += value ? strlen(value) : 0;
    }
    if (reader->is_shaky ||
        (reader->is_maybe && !shell_is_same(value, old ? old->value : NULL)))
        value = NULL;
    shell_set(shell, set->name, value);
}

/* Reads the elements of an array, "(word word)". shell->pos must point to the
 * opening bracket. */
static int read_elements(struct shell_reader *reader, struct buf *out,
                         struct err *err)
{
    struct shell *shell = &reader->shell;
    const char element = SHELL_ELEMENT;
    const size_t line = shell->line;
    bool is_quoted;

    for (shell_step(shell, 1);;) {
        size_t before = out->len + 1;

        shell_step(shell, strspn(shell->pos, " \t\r\n"));
        shell_skip_blanks(shell);
        if (*shell->pos == '#')
            shell_step(shell, strcspn(shell->pos, "\n"));
        else if (*shell->pos == ')' || !*shell->pos)
            break;
        else if (!strchr(SHELL_OPERATORS, *shell->pos)) {
            buf_add(out, &element, 1);
            if (shell_expand(shell, out, true, false, &is_quoted, err))
                return -1;
            for (; before < out->len; before++)
                if (out->data[before] == SHELL_FIELD)
                    out->data[before] = SHELL_ELEMENT;
        } else
            shell_step(shell, 1);
    }
    if (!*shell->pos)
        return shell_error(shell, line, err, "a '(' that is not closed");
    shell_step(shell, 1);
    if (!out->len)
        buf_add(out, &element, 1);
    return 0;
}

/* Returns the length of the name if the text at `pos` assigns to a variable, as
 * in "NAME=value"; 0 otherwise. */
static size_t assigned_name(const char *pos)
{
    const size_t len = shell_name_length(pos);
    const char *next = pos + len;

    if (len && *next == '[') {
        next = strpbrk(next, "] \t\n");
        if (!next || *next++ != ']')
            return 0;
    }
    next += *next == '+';
    return len && *next == '=' ? len : 0;
}

static int read_assignment(struct shell_reader *reader,
                           struct shell_assignment *set, struct err *err)
{
    struct shell *shell = &reader->shell;
    const size_t len = assigned_name(shell->pos);
    const bool is_element = shell->pos[len] == '[';
    struct buf value = {0};
    bool is_quoted;
    int rc;

    set->name = arena_strndup(shell->script->arena, shell->pos, len);
    shell_step(shell, len);
    shell_step(shell, strcspn(shell->pos, "+="));
    set->appends = *shell->pos == '+';
    shell_step(shell, 1 + set->appends);
    rc = *shell->pos == '('
             ? read_elements(reader, &value, err)
             : shell_expand(shell, &value, false, false, &is_quoted, err);
    if (is_element) {
        shell_set(shell, set->name, NULL);
        set->appends = false;
    }
    set->value = is_element ? NULL
                            : arena_strdup(shell->script->arena,
                                           value.data ? value.data : "");
    buf_release(&value);
    return rc;
}

/* --- simple commands --- */

/* Appends the fields of an expanded word to a list of words. */
static void add_fields(struct shell_words *words, const struct buf *word,
                       size_t line, bool is_quoted, struct arena *arena)
{
    const char *pos = word->data ? word->data : "";
    const char field[] = {SHELL_FIELD, '\0'};

    if (!*pos && !is_quoted)
        return;
    do {
        const size_t len = strcspn(pos, field);

        if (len || !word->len) {
            words->list = mem_room(words->list, words->n, &words->cap,
                                   sizeof(*words->list));
            words->list[words->n++] =
                (struct shell_word){arena_strndup(arena, pos, len), line};
        }
        pos += len + (pos[len] != '\0');
    } while (*pos);
}

/* Reads the commands in another text, in the way in which `eval` runs them. */
int shell_read_text(struct shell_reader *reader, const char *text, size_t line,
                    struct err *err)
{
    struct shell *shell = &reader->shell;
    const struct shell before = *shell;
    const size_t n_frames = reader->n_frames;
    int rc;

    if (reader->depth == MAX_TEXTS)
        return shell_error(shell, line, err, "commands are nested too deeply");
    shell->pos = text;
    shell->line = line;
    reader->depth++;
    rc = shell_read_commands(reader, err);
    if (!rc && reader->n_frames != n_frames)
        rc = shell_error(shell, line, err, "commands have no end");
    reader->depth--;
    shell->pos = before.pos;
    shell->line = before.line;
    return rc;
}

static int run_eval(struct shell_reader *reader,
                    const struct shell_words *words, struct err *err)
{
    struct arena *arena = reader->shell.script->arena;
    struct buf text = {0};
    const char *copy;

    for (size_t i = 1; i < words->n; i++)
        buf_printf(&text, "%s ", shell_shown(words->list[i].text, arena));
    copy = arena_strdup(arena, text.data ? text.data : "");
    buf_release(&text);
    return shell_read_text(reader, copy, words->list[0].line, err);
}

/* Reads the commands in TEXT for each "bash -c TEXT" among the words. */
static int run_shell(struct shell_reader *reader,
                     const struct shell_words *words, struct err *err)
{
    struct arena *arena = reader->shell.script->arena;

    for (size_t i = 0; i + 2 < words->n; i++) {
        const char *name = path_name(words->list[i].text);
        const char *option = words->list[i + 1].text;

        if (strcmp(name, "bash") && strcmp(name, "sh"))
            continue;
        if (option[0] == '-' && option[strlen(option) - 1] == 'c' &&
            shell_read_text(reader, shell_shown(words->list[i + 2].text, arena),
                            words->list[i + 2].line, err))
            return -1;
    }
    return 0;
}

/* Follows the effects that built-in commands have on variables. */
static int run_builtin(struct shell_reader *reader,
                       const struct shell_words *words, struct err *err)
{
    static const char *const setting[] = {"read",    "mapfile", "readarray",
                                          "getopts", "let",     "printf",
                                          "unset",   NULL};
    const char *name = words->list[0].text;
    struct shell *shell = &reader->shell;

    if (!strcmp(name, "eval"))
        return run_eval(reader, words, err);
    if (!strcmp(name, "source") || !strcmp(name, ".")) {
        shell->variables.is_open = true;
        for (size_t i = 0; i < shell->variables.n; i++)
            shell_set(shell, shell->variables.list[i].name, NULL);
    }
    if (text_choice(setting, name) < 0)
        return run_shell(reader, words, err);
    for (size_t i = 1; i < words->n; i++) {
        const char *word = words->list[i].text;
        const size_t len = shell_name_length(word);

        if (!len || (!strcmp(name, "printf") &&
                     strcmp(words->list[i - 1].text, "-v") != 0))
            continue;
        word = arena_strndup(shell->script->arena, word, len);
        shell_set(shell, word, NULL);
        if (!strcmp(name, "unset") && !reader->is_maybe &&
            shell_find(shell, word))
            shell_find(shell, word)->value = NULL;
    }
    return 0;
}

/* Reads a redirection. shell->pos must point to its '<' or '>'. */
int shell_read_redirection(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    const char *pos = shell->pos, *end;
    struct buf word = {0};
    bool is_quoted;
    int rc;

    if (pos[1] == '(') {
        end = shell_close(pos + 1);
        if (!end)
            return shell_error(shell, shell->line, err,
                               "a '(' that is not closed");
        shell_step(shell, (size_t)(end - pos));
        return 0;
    }
    shell_step(shell, strspn(pos, "<>&|"));
    shell_step(shell, pos[0] == '<' && pos[1] == '<' && *shell->pos == '-');
    shell_skip_blanks(shell);
    rc = shell_expand(shell, &word, false, false, &is_quoted, err);
    if (!rc && pos[0] == '<' && pos[1] == '<' && pos[2] != '<') {
        if (reader->n_here == SHELL_MAX_HERE || !word.len)
            rc = shell_error(
                shell, shell->line, err,
                "'<<' without a word after it, or too many of them");
        else
            reader->here[reader->n_here++] =
                arena_strdup(shell->script->arena, word.data);
    }
    buf_release(&word);
    return rc;
}

/* Reads the bodies of the here-documents that began on the previous line.
 * shell->pos must be behind the end of that line. */
int shell_read_here(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;

    for (size_t i = 0; i < reader->n_here; i++) {
        const char *body = shell->pos, *end = body;
        const size_t line = shell->line, len = strlen(reader->here[i]);
        char *text;

        for (; *end; end += strcspn(end, "\n"), end += *end == '\n') {
            const char *word = end + strspn(end, "\t");

            if (!strncmp(word, reader->here[i], len) &&
                (!word[len] || strchr("\r\n", word[len])))
                break;
        }
        text = arena_strndup(shell->script->arena, body, (size_t)(end - body));
        shell_step(shell, (size_t)(end - body));
        shell_step(shell, strcspn(shell->pos, "\n"));
        if (strstr(text, "--")) {
            const size_t n_here = reader->n_here;
            int rc =
                (reader->n_here = 0, shell_read_text(reader, text, line, err));

            reader->n_here = n_here;
            if (rc)
                return -1;
        }
    }
    reader->n_here = 0;
    return 0;
}

/* Reads the words of a command up to its end. */
int shell_read_words(struct shell_reader *reader, struct shell_words *words,
                     bool is_declared, struct err *err)
{
    struct shell *shell = &reader->shell;
    struct buf word = {0};
    int rc = 0;

    while (!rc) {
        struct shell_assignment set;
        bool is_quoted;
        size_t line;

        shell_skip_blanks(shell);
        line = shell->line;
        if (!*shell->pos || strchr("\n;|()#", *shell->pos) ||
            (*shell->pos == '&' && shell->pos[1] != '>'))
            break;
        shell_step(shell, *shell->pos == '&');
        word.len = 0;
        if (*shell->pos == '<' || *shell->pos == '>') {
            rc = shell_read_redirection(reader, err);
        } else if (is_declared && assigned_name(shell->pos)) {
            rc = read_assignment(reader, &set, err);
            if (!rc && set.value)
                assign(reader, &set);
        } else {
            buf_add(&word, "", 0);
            rc = shell_expand(shell, &word, true, false, &is_quoted, err);
            if (!rc && !(*shell->pos && strchr("<>", *shell->pos) && word.len &&
                         strspn(word.data, "0123456789") == word.len))
                add_fields(words, &word, line, is_quoted, shell->script->arena);
        }
    }
    buf_release(&word);
    return rc;
}

static int run_command(struct shell_reader *reader,
                       const struct shell_words *words, struct err *err)
{
    const struct shell_script *script = reader->shell.script;
    const struct shell_command command = {words->list, words->n};

    return script->take(script->ctx, &command, err) ||
           run_builtin(reader, words, err);
}

int shell_read_command(struct shell_reader *reader, struct err *err)
{
    static const char *const declaring[] = {"export",   "declare", "local",
                                            "readonly", "typeset", NULL};
    struct shell *shell = &reader->shell;
    struct shell_words words = {0};
    struct {
        struct shell_assignment *list;
        size_t n, cap;
    } sets = {0};
    const char *first;
    int rc = 0;

    while (!rc && assigned_name(shell->pos)) {
        sets.list = mem_room(sets.list, sets.n, &sets.cap, sizeof(*sets.list));
        rc = read_assignment(reader, &sets.list[sets.n++], err);
        shell_skip_blanks(shell);
    }
    first = arena_strndup(shell->script->arena, shell->pos,
                          strcspn(shell->pos, SHELL_OPERATORS));
    if (!rc)
        rc = shell_read_words(reader, &words,
                              text_choice(declaring, first) >= 0, err);
    for (size_t i = 0; !rc && !words.n && i < sets.n; i++)
        if (sets.list[i].value)
            assign(reader, &sets.list[i]);
    if (!rc && words.n == 1 && *shell->pos == '(' && shell_close(shell->pos) &&
        shell->pos[1 + strspn(shell->pos + 1, " \t")] == ')') {
        shell_step(shell, (size_t)(shell_close(shell->pos) - shell->pos));
        reader->is_function = true;
    } else if (!rc && *shell->pos == '(') {
        rc = shell_error(shell, shell->line, err,
                         "a '(' that belongs to no command");
    } else if (!rc && words.n) {
        rc = run_command(reader, &words, err);
    }
    mem_free(words.list);
    mem_free(sets.list);
    return rc;
}
