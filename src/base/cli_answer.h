/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_CLI_ANSWER_H
#define NEUROSHARD_BASE_CLI_ANSWER_H

#include "base/json.h"

/*
 * The answer of a command: a report and a JSON document. Without --json the
 * document is dropped; with --json the report is dropped. The answer is printed
 * when the command ends.
 */

/* Sets the form of the answer. is_json: standard output is one JSON document,
 * even if the command fails. n_columns: width of the report in columns if the
 * answer is not JSON. */
void cli_answer_as(bool is_json, size_t n_columns);
/* Returns the report, to which a command appends. It is printed when the
 * command ends, wrapped to the columns of cli_answer_as. Labels are bold if
 * standard output is a terminal, unless mpirun started the program or NO_COLOR
 * is set. */
struct buf *cli_text(void);
#define cli_printf(...) buf_printf(cli_text(), __VA_ARGS__)
/* Prints the part of the report that was written so far, and empties the
 * report. */
void cli_print_report(void);
/* Stores the command's JSON document. It is printed when the command ends. */
void cli_print_json(json_t *root);
/* Prints a document, such as a plan, unchanged to standard output. */
void cli_print_text(const char *text);
void cli_print_document(json_t *root);
/* Lets an interrupt end the command immediately. The interrupt then prints a
 * sentence or, with --json, a document. */
void cli_end_at_once(void);
/* Prints the report and the JSON document that the command has stored. `err` is
 * the failure, or NULL on success. A failure is added to the document as member
 * "error"; if there is no document, a document with only this member is
 * printed. If another document was already printed, the failure is not printed
 * as JSON. */
void cli_end_answer(const struct err *err);
/* Prints a message on stderr. The message is wrapped to the terminal's width,
 * or is one line if stderr is no terminal. */
void cli_say(const char *sentence);
/* Prints a warning on stderr. A repeated sentence is printed only once. The
 * function can be passed to the readers of files as their warning callback; ctx
 * is unused. */
void cli_warn(void *ctx, const char *sentence);

#endif
