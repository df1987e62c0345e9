/* SPDX-License-Identifier: MIT */
#include "io/shell.h"

#include "base/text.h"
#include "io/shell_commands.h"
#include "io/shell_expand.h"
#include "io/shell_private.h"

#include <string.h>

#define MAX_LOOPS 256

/* Names of compound commands in messages, indexed by enum frame_kind. */
static const char *const frame_names[] = {"if",       "a loop", "case",
                                          "function", "{",      "("};

/* --- branches --- */

/* Returns the innermost open compound command, or NULL outside of all compound
 * commands. */
static struct shell_frame *last_frame(struct shell_reader *reader)
{
    return reader->n_frames ? &reader->frames[reader->n_frames - 1] : NULL;
}

static struct shell_variables copy_of(const struct shell_variables *from)
{
    struct shell_variables copy = {.n = from->n, .is_open = from->is_open};

    for (size_t i = 0; i < from->n; i++) {
        copy.list = mem_room(copy.list, i, &copy.cap, sizeof(*copy.list));
        copy.list[i] = from->list[i];
    }
    return copy;
}

/* Merges the variables at the end of another branch into the shell's variables.
 * A variable that has different values in the two becomes unknown. */
static void merge(struct shell *shell, const struct shell_variables *other)
{
    struct shell_variables *mine = &shell->variables;
    const size_t n = mine->n;

    for (size_t i = 0; i < n; i++) {
        const struct shell_variable *found = NULL;

        for (size_t k = i; k < other->n + i && !found; k++)
            if (!strcmp(other->list[k % other->n].name, mine->list[i].name))
                found = &other->list[k % other->n];
        mine->list[i].is_shaky |= found && found->is_shaky;
        if (!shell_is_same(mine->list[i].value, found ? found->value : NULL))
            shell_set(shell, mine->list[i].name, NULL);
    }
    for (size_t k = 0; k < other->n; k++)
        if (!shell_find(shell, other->list[k].name)) {
            shell_set(shell, other->list[k].name, NULL);
            if (other->list[k].is_shaky && mine->n)
                mine->list[mine->n - 1].is_shaky = true;
        }
    mine->is_open |= other->is_open;
}

static int push(struct shell_reader *reader, enum frame_kind kind,
                struct err *err)
{
    struct shell *shell = &reader->shell;
    const bool runs_again = kind == FRAME_LOOP || kind == FRAME_FUNCTION;

    if (reader->n_frames == SHELL_MAX_FRAMES ||
        (runs_again && reader->n_loops++ == MAX_LOOPS))
        return shell_error(shell, shell->line, err,
                           "too many nested loops, functions or brackets");
    reader->frames[reader->n_frames++] =
        (struct shell_frame){.kind = kind,
                             .line = shell->line,
                             .before = copy_of(&shell->variables)};
    if (runs_again)
        shell_forget(shell, shell->pos, shell->pos + strlen(shell->pos));
    return 0;
}

/* Ends a branch of a compound command. The next branch begins with the
 * variables from before the command. */
static void end_branch(struct shell_reader *reader)
{
    struct shell_frame *frame = &reader->frames[reader->n_frames - 1];
    struct shell *shell = &reader->shell;

    if (frame->has_branch)
        merge(shell, &frame->merged);
    mem_free(frame->merged.list);
    frame->merged = shell->variables;
    frame->has_branch = true;
    shell->variables = copy_of(&frame->before);
}

/* Marks the variables that a function sets as shaky, because each call of the
 * function may change them. */
static void make_shaky(struct shell *shell,
                       const struct shell_variables *before)
{
    for (size_t i = 0; i < shell->variables.n; i++) {
        struct shell_variable *variable = &shell->variables.list[i];

        variable->is_shaky |=
            i >= before->n ||
            !shell_is_same(variable->value, before->list[i].value);
        if (variable->is_shaky)
            shell_set(shell, variable->name, NULL);
    }
}

static void release_frame(struct shell_reader *reader)
{
    struct shell_frame *frame = &reader->frames[--reader->n_frames];

    mem_free(frame->before.list);
    mem_free(frame->merged.list);
}

static int pop(struct shell_reader *reader, enum frame_kind kind,
               const char *word, struct err *err)
{
    struct shell *shell = &reader->shell;
    struct shell_frame *frame = last_frame(reader);

    if (!frame || frame->kind != kind)
        return err_input(err, "%s:%zu: '%s' without '%s' before it",
                         shell->script->source, shell->line, word,
                         frame_names[kind]);
    if (kind == FRAME_FUNCTION)
        make_shaky(shell, &frame->before);
    else if (kind != FRAME_GROUP) {
        /* A branch of `case` that has its own ";;" is already ended. */
        if (kind == FRAME_IF || kind == FRAME_LOOP || !frame->has_branch)
            end_branch(reader);
        mem_free(shell->variables.list);
        shell->variables =
            copy_of(kind != FRAME_SUBSHELL ? &frame->merged : &frame->before);
        if (!frame->is_exhaustive && kind != FRAME_SUBSHELL)
            merge(shell, &frame->before);
    }
    release_frame(reader);
    return 0;
}

/* --- keywords --- */

/* Reads "NAME in WORD...", which follows the word `for`. */
static int read_for(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    struct shell_words words = {0};
    const char *name;
    size_t len;
    int rc;

    shell_skip_blanks(shell);
    len = shell_name_length(shell->pos);
    name = arena_strndup(shell->script->arena, shell->pos, len);
    if (!len) {
        const char *end = shell->pos[0] == '(' ? shell_close(shell->pos) : NULL;

        if (!end)
            return shell_error(shell, shell->line, err,
                               "'for' without a variable");
        shell_forget(shell, shell->pos, end);
        shell_step(shell, (size_t)(end - shell->pos));
        return push(reader, FRAME_LOOP, err);
    }
    shell_step(shell, len);
    rc = shell_read_words(reader, &words, false, err) ||
         push(reader, FRAME_LOOP, err);
    if (!rc)
        shell_set(shell, name,
                  words.n == 2 && shell_is_known(words.list[1].text)
                      ? words.list[1].text
                      : NULL);
    mem_free(words.list);
    return rc;
}

/* Reads a pattern of `case` up to its closing bracket, or the word `esac`. */
static int read_pattern(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    struct shell_frame *frame = &reader->frames[reader->n_frames - 1];
    const char *start, *end;

    for (;;) {
        shell_step(shell, strspn(shell->pos, " \t\r\n"));
        if (*shell->pos != '#')
            break;
        shell_step(shell, strcspn(shell->pos, "\n"));
    }
    start = shell->pos;
    if (!strncmp(start, "esac", 4) &&
        (!start[4] || strchr(SHELL_OPERATORS, start[4]))) {
        shell_step(shell, 4);
        /* The current branch has no commands. It stands for the case in which
         * no pattern matches. */
        return pop(reader, FRAME_CASE, "esac", err);
    }
    end = start + (*start == '(');
    end += strcspn(end, ")\n");
    if (*end != ')')
        return shell_error(shell, shell->line, err,
                           "'case' without a pattern and its ')'");
    frame->is_exhaustive |= end - start <= 3 && memchr(start, '*', 2) &&
                            strspn(start, "(* ") == (size_t)(end - start);
    shell_step(shell, (size_t)(end - start) + 1);
    return 0;
}

static int read_case(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    struct buf word = {0};
    bool is_quoted;
    int rc;

    shell_skip_blanks(shell);
    rc = shell_expand(shell, &word, false, false, &is_quoted, err);
    buf_release(&word);
    shell_step(shell, rc ? 0 : strspn(shell->pos, " \t\r\n"));
    if (!rc && strncmp(shell->pos, "in", 2))
        rc = shell_error(shell, shell->line, err, "'case' without 'in'");
    if (rc)
        return -1;
    shell_step(shell, 2);
    return push(reader, FRAME_CASE, err) || read_pattern(reader, err);
}

/* Skips a test of the form "[[ ... ]]". */
static int skip_test(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    const char *end = strstr(shell->pos, "]]");

    if (!end)
        return shell_error(shell, shell->line, err, "'[[' without ']]'");
    shell_step(shell, (size_t)(end - shell->pos) + 2);
    return 0;
}

static int skip_function_name(struct shell_reader *reader)
{
    struct shell *shell = &reader->shell;

    shell_skip_blanks(shell);
    shell_step(shell, strcspn(shell->pos, SHELL_OPERATORS));
    shell_skip_blanks(shell);
    if (*shell->pos == '(' && shell_close(shell->pos))
        shell_step(shell, (size_t)(shell_close(shell->pos) - shell->pos));
    reader->is_function = true;
    return 0;
}

static int next_branch(struct shell_reader *reader, bool is_last,
                       struct err *err)
{
    struct shell_frame *frame = last_frame(reader);

    if (!frame || frame->kind != FRAME_IF)
        return shell_error(&reader->shell, reader->shell.line, err,
                           "'else' without 'if' before it");
    end_branch(reader);
    frame->is_exhaustive = is_last;
    return 0;
}

/* Words that open, divide or close compound commands. The array of their names
 * is indexed by enum keyword. */
enum keyword {
    IF,
    THEN,
    ELIF,
    ELSE,
    FI,
    WHILE,
    UNTIL,
    FOR,
    SELECT,
    DO,
    DONE,
    CASE,
    FUNCTION,
    OPEN,
    CLOSE,
    TEST,
    NOT,
    TIME
};
static const char *const keywords[] = {
    "if",  "then",   "elif", "else", "fi",   "while",    "until",
    "for", "select", "do",   "done", "case", "function", "{",
    "}",   "[[",     "!",    "time", NULL};

/* Reads a keyword at shell->pos. Returns 1 if it was read, 0 if there is no
 * keyword, -1 on failure. */
static int read_keyword(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    const size_t len = strcspn(shell->pos, SHELL_OPERATORS);
    const int word =
        text_choice(keywords, arena_strndup(shell->script->arena, shell->pos,
                                            len < 9 ? len : 9));
    int rc = 0;

    if (word < 0)
        return 0;
    shell_step(shell, len);
    if (word == IF)
        rc = push(reader, FRAME_IF, err);
    else if (word == ELIF || word == ELSE)
        rc = next_branch(reader, word == ELSE, err);
    else if (word == FI)
        rc = pop(reader, FRAME_IF, "fi", err);
    else if (word == WHILE || word == UNTIL)
        rc = push(reader, FRAME_LOOP, err);
    else if (word == FOR || word == SELECT)
        rc = read_for(reader, err);
    else if (word == DONE)
        rc = pop(reader, FRAME_LOOP, "done", err);
    else if (word == CASE)
        rc = read_case(reader, err);
    else if (word == FUNCTION)
        rc = skip_function_name(reader);
    else if (word == OPEN) {
        rc = push(reader, reader->is_function ? FRAME_FUNCTION : FRAME_GROUP,
                  err);
        reader->is_function = false;
    } else if (word == CLOSE)
        rc =
            pop(reader,
                reader->n_frames && reader->frames[reader->n_frames - 1].kind ==
                                        FRAME_FUNCTION
                    ? FRAME_FUNCTION
                    : FRAME_GROUP,
                "}", err);
    else if (word == TEST)
        rc = skip_test(reader, err);
    return rc ? -1 : 1;
}

/* --- scripts --- */

/* Reads an operator between two commands. */
static int read_operator(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    const char *pos = shell->pos;
    const struct shell_frame *frame = last_frame(reader);

    reader->is_maybe =
        (pos[0] == '&' && pos[1] == '&') || (pos[0] == '|' && pos[1] == '|');
    if (pos[0] == '\n') {
        shell_step(shell, 1);
        return shell_read_here(reader, err);
    }
    if (pos[0] == ';' && (pos[1] == ';' || pos[1] == '&')) {
        if (!frame || frame->kind != FRAME_CASE)
            return shell_error(shell, shell->line, err,
                               "';;' without 'case' before it");
        shell_step(shell, pos[1] == ';' && pos[2] == '&' ? 3 : 2);
        end_branch(reader);
        return read_pattern(reader, err);
    }
    if (pos[0] == '(' && pos[1] == '(') {
        const char *end = shell_close(pos);

        if (!end)
            return shell_error(shell, shell->line, err,
                               "a '(' that is not closed");
        shell_forget(shell, pos, end);
        shell_step(shell, (size_t)(end - pos));
        return 0;
    }
    shell_step(shell, pos[0] != '<' && pos[0] != '>');
    if (pos[0] == '(') {
        reader->is_function = false;
        return push(reader, FRAME_SUBSHELL, err);
    }
    return pos[0] == ')' ? pop(reader, FRAME_SUBSHELL, ")", err)
           : pos[0] == '<' || pos[0] == '>'
               ? shell_read_redirection(reader, err)
           : pos[0] == pos[1] && strchr("&|", pos[0])
               ? (shell_step(shell, 1), 0)
               : 0;
}

int shell_read_commands(struct shell_reader *reader, struct err *err)
{
    struct shell *shell = &reader->shell;
    int rc = 0;

    for (shell_skip_blanks(shell); !rc && *shell->pos;
         shell_skip_blanks(shell)) {
        if (*shell->pos == '#')
            shell_step(shell, strcspn(shell->pos, "\n"));
        else if (!strncmp(shell->pos, "esac", 4) && reader->n_frames &&
                 reader->frames[reader->n_frames - 1].kind == FRAME_CASE)
            rc = (end_branch(reader), read_pattern(reader, err));
        else if (strchr(SHELL_OPERATORS, *shell->pos))
            rc = read_operator(reader, err);
        else {
            rc = read_keyword(reader, err);
            rc = rc > 0 ? 0 : rc < 0 ? -1 : shell_read_command(reader, err);
        }
    }
    return rc;
}

/* Fails if a text ends inside a compound command. Closes all open compound
 * commands in any case. */
static int close_frames(struct shell_reader *reader, struct err *err)
{
    const struct shell_frame *frame = last_frame(reader);
    int rc = 0;

    if (frame)
        rc = err_input(err, "%s:%zu: '%s' is not closed",
                       reader->shell.script->source, frame->line,
                       frame_names[frame->kind]);
    while (reader->n_frames)
        release_frame(reader);
    reader->n_here = 0;
    reader->is_function = reader->is_maybe = false;
    return rc;
}

/* Returns the end of the line at `pos`. If the line ends in a backslash, the
 * next line counts as a part of it. */
static const char *whole_line(const char *pos)
{
    const char *end = pos + strcspn(pos, "\n");

    while (*end && end > pos &&
           (end[-1] == '\\' ||
            (end[-1] == '\r' && end - pos > 1 && end[-2] == '\\')))
        end += 1 + strcspn(end + 1, "\n");
    return *end ? end + 1 : end;
}

/* Reads a text in which commands stand among lines of other text. Reads it one
 * line at a time. */
static int read_lines(struct shell_reader *reader, struct err *err)
{
    static const char *const branches[] = {
        "if", "then", "elif", "else",     "fi",     "while", "until", "for",
        "do", "done", "case", "function", "select", "}",     "esac",  NULL};
    struct shell *shell = &reader->shell;
    const struct shell_script *script = shell->script;

    while (*shell->pos) {
        const char *next = whole_line(shell->pos);
        char *line = arena_strndup(script->arena, shell->pos,
                                   (size_t)(next - shell->pos));
        const char *text = line + strspn(line, " \t");
        const size_t number = shell->line;
        struct err why = {0};

        text += strncmp(text, "$ ", 2) ? 0 : 2;
        if ((shell_read_text(reader, text, number, &why) |
             close_frames(reader, &why)) != 0) {
            if (!script->is_foreign(text)) {
                *err = why;
                return -1;
            }
            reader->is_shaky |=
                text_choice(branches,
                            arena_strndup(script->arena, text,
                                          strcspn(text, SHELL_OPERATORS))) >= 0;
        }
        shell_step(shell, (size_t)(next - shell->pos));
    }
    return 0;
}

int shell_read(const struct shell_script *script, struct err *err)
{
    struct shell_reader reader = {
        .shell = {.script = script, .pos = script->text, .line = script->line}};
    const char marks[] = {SHELL_UNKNOWN, SHELL_KNOWN, SHELL_ELEMENT,
                          SHELL_FIELD, '\0'};
    int rc;

    if (strpbrk(script->text, marks))
        return shell_error(&reader.shell, script->line, err,
                           "control characters, so not a shell script");
    rc = script->is_foreign ? read_lines(&reader, err)
                            : shell_read_commands(&reader, err);
    if (!rc)
        rc = close_frames(&reader, err);
    while (reader.n_frames)
        release_frame(&reader);
    mem_free(reader.shell.variables.list);
    return rc;
}
