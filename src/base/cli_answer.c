/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"

#include "base/hash.h"
#include "base/interrupt.h"
#include "base/progress.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of warnings that are remembered, so that they are not printed again.
 */
#define N_WARNED 32
#define BOLD "\033[1m"
#define PLAIN "\033[0m"

/* The answer of the command on standard output. It is global because a process
 * has one standard output. */
static struct {
    bool is_json;     /* with --json: the answer is one JSON document */
    size_t n_columns; /* width of the report in columns */
    bool is_given;    /* a document has been printed */
    /* Owned. The JSON document that is printed when the command has ended and
     * its status is known. */
    json_t *report;
    struct buf text; /* the report; owned; printed when the command has ended */
    uint64_t warned[N_WARNED]; /* hashes of the last warnings */
    size_t n_warned;           /* number of all warnings so far */
    char said[256],
        last[512]; /* texts that are printed if an interrupt ends the command */
} answer;

void cli_answer_as(bool is_json, size_t n_columns)
{
    answer.is_json = is_json;
    answer.n_columns = n_columns;
}

struct buf *cli_text(void)
{
    return &answer.text;
}

void cli_print_text(const char *text)
{
    interrupt_keep(true); /* an interrupt must not cut the document off */
    fputs(text, stdout);
    answer.is_given = true;
}

void cli_print_document(json_t *root)
{
    char *text = json_to_text(root);

    cli_print_text(text);
    mem_free(text);
    json_decref(root);
}

void cli_say(const char *sentence)
{
    const char start[] = "neuroshard: ";
    const size_t n_columns = terminal_columns(STDERR_FILENO, SIZE_MAX);
    struct buf out = {0};

    if (n_columns == SIZE_MAX)
        buf_printf(&out, "%s", sentence);
    else
        text_wrap(&out, sentence, strlen(start), strlen(start), n_columns);
    fprintf(stderr, "%s%s\n", start, out.len ? out.data : "");
    buf_release(&out);
}

/* Prints a warning unless it was printed before. Commands open a cost model
 * anew for each number of GPUs or each task, and the cost model repeats its
 * warnings each time. */
void cli_warn(void *ctx, const char *sentence)
{
    const uint64_t hash = hash_bytes(sentence, strlen(sentence), 0);
    struct arena arena = {0};

    (void)ctx;
    for (size_t i = 0; i < min_u64(answer.n_warned, N_WARNED); i++)
        if (answer.warned[i] == hash)
            return;
    answer.warned[answer.n_warned++ % N_WARNED] = hash;
    cli_say(arena_printf(&arena, "warning: %s", text_shown(sentence, &arena)));
    arena_release(&arena);
}

/* Returns the length of the label at the beginning of a line, or 0 if the line
 * has no label. A label consists of letters and is followed by blanks up to the
 * column where the line's text begins. */
static size_t label_length(const char *line)
{
    const size_t len = strspn(line, "abcdefghijklmnopqrstuvwxyz");
    const size_t end = len + strspn(line + len, " ");

    return end == TEXT_LABEL_WIDTH || end == 2 * TEXT_LABEL_WIDTH ? len : 0;
}

static bool is_coloured(void)
{
    const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");

    /* Under mpirun standard output looks like a terminal even if mpirun writes
     * it to a file. */
    return isatty(STDOUT_FILENO) && !getenv("OMPI_COMM_WORLD_SIZE") &&
           !(no_colour && *no_colour) && !(term && !strcmp(term, "dumb"));
}

void cli_print_report(void)
{
    const bool in_colour = is_coloured();
    struct buf out = {0};

    if (answer.text.len && !answer.is_json)
        text_wrap_lines(&out, answer.text.data, answer.n_columns);
    for (const char *line = out.data; line && *line;) {
        const size_t len = strcspn(line, "\n") + 1;
        const size_t label = in_colour ? label_length(line) : 0;

        if (label)
            printf(BOLD "%.*s" PLAIN, (int)label, line);
        fwrite(line + label, 1, len - label, stdout);
        line += len;
    }
    buf_release(&out);
    buf_release(&answer.text);
}

void cli_print_json(json_t *root)
{
    json_decref(answer.is_json ? answer.report : root);
    if (answer.is_json)
        answer.report = root;
}

/* Returns an amount as a JSON number. Returns NULL for 0, which means that the
 * amount is unknown; the member is then left out of the JSON object. */
static json_t *known(uint64_t amount)
{
    return amount ? json_whole(amount) : NULL;
}

static json_t *shortage_to_json(const struct shortage *shortage)
{
    const char *name = shortage->name;
    const bool is_of_device = !*name && shortage->is_of_device;

    return json_pack(
        "{s:s, s:o, s:o, s:b, s:o*, s:o*}", "of", shortage->subject,
        "need_bytes", json_whole(shortage->need_bytes), "have_bytes",
        json_whole(shortage->have_bytes), "proven", shortage->is_proven, "name",
        *name ? json_member(MEMBER_TEXT, &name) : NULL, "device",
        is_of_device ? json_whole(shortage->device) : NULL);
}

/* Returns the remedies for a shortage of memory as a JSON object. Each remedy
 * is enough on its own. */
static json_t *suggestions_to_json(const struct shortage *shortage)
{
    return json_pack("{s:o*, s:o*, s:o*, s:s*}", "memory_bytes",
                     known(shortage->fits_memory_bytes), "gpus",
                     known(shortage->fits_n_gpus), "move_limit_bytes",
                     known(shortage->fits_move_bytes), "shard",
                     shortage->fits_cuts);
}

static json_t *error_to_json(const struct err *err)
{
    const char *message = err->msg;
    const struct shortage *shortage = &err->shortage;

    return json_pack("{s:s, s:o, s:i, s:o*, s:o*}", "kind", err_kind(err->code),
                     "message", json_member(MEMBER_TEXT, &message), "exit",
                     err_exit_status(err->code), "shortage",
                     shortage->subject ? shortage_to_json(shortage) : NULL,
                     "suggestions",
                     shortage->subject ? suggestions_to_json(shortage) : NULL);
}

void cli_end_at_once(void)
{
    json_t *root = json_object();
    struct err err;
    char *text;

    err_set(&err, ERR_INTERRUPTED, "interrupted before everything was printed");
    json_object_set_new(root, "error", error_to_json(&err));
    text = json_to_text(root);
    snprintf(answer.said, sizeof answer.said, "%sneuroshard: %.200s\n",
             isatty(STDERR_FILENO) ? "\r\033[K" : "", err.msg);
    snprintf(answer.last, sizeof answer.last, "%s", answer.is_json ? text : "");
    mem_free(text);
    json_decref(root);
    interrupt_end_at_once(answer.said, answer.last);
}

void cli_end_answer(const struct err *err)
{
    interrupt_keep(true);
    cli_print_report();
    if (err && answer.is_json && !answer.is_given && !answer.report)
        answer.report = json_object();
    if (!answer.report)
        return;
    if (err)
        json_object_set_new(answer.report, "error", error_to_json(err));
    cli_print_document(answer.report);
    answer.report = NULL;
}
