/* SPDX-License-Identifier: MIT */
#include "io/dlrm_dense.h"

#include "base/text.h"
#include "core/dense.h"
#include "io/shell_script.h"
#include "io/tables_reader.h"

#include <string.h>

/* Number of dense features of the data sets of dlrm_main.py. */
#define MAIN_FEATURES "13"

static const char *value_of(const struct dlrm_reader *reader, int option)
{
    const char *value = reader->job.values[option];

    return value ? value : dlrm_options[option].otherwise;
}

/* Returns the first option of the dense part that is given, or -1. */
static int given_option(const struct dlrm_job *job, bool is_main)
{
    for (int i = is_main ? 0 : FIRST_S; i < (is_main ? FIRST_S : N_OPTIONS);
         i++)
        if (dlrm_is_of_dense(i) && job->values[i])
            return i;
    return -1;
}

/* Returns an option whose value cannot be described: a value that only a
 * running shell knows, or an interaction that --dense does not have. Returns -1
 * if all values can be described. */
static int unknown_option(const struct dlrm_reader *reader, bool is_main)
{
    static const char *const of_main[] = {"original", "dcn", NULL};
    static const char *const of_s[] = {"dot", "cat", NULL};
    const int interaction = is_main ? INTERACTION : S_INTERACTION;

    for (int i = is_main ? 0 : FIRST_S; i < (is_main ? FIRST_S : N_OPTIONS);
         i++)
        if (dlrm_is_of_dense(i) && reader->job.values[i] &&
            !shell_is_known(reader->job.values[i]))
            return i;
    if (text_choice(is_main ? of_main : of_s, value_of(reader, interaction)) <
        0)
        return interaction;
    return !is_main && reader->job.values[S_ITSELF] ? S_ITSELF : -1;
}

/* Prints a list of widths with '-' between them. */
static void print_widths(const char *widths, struct buf *out)
{
    for (; *widths; widths++)
        buf_printf(out, "%c", *widths == ',' ? '-' : *widths);
}

static void print_spec(const struct dlrm_reader *reader, bool is_main,
                       struct buf *out)
{
    const char *interaction =
        value_of(reader, is_main ? INTERACTION : S_INTERACTION);

    buf_printf(out, "bottom:%s", is_main ? MAIN_FEATURES "-" : "");
    print_widths(value_of(reader, is_main ? BOTTOM : S_BOTTOM), out);
    buf_printf(out, ";interaction:");
    if (!is_main)
        buf_printf(out, "%s", interaction);
    else if (!strcmp(interaction, "dcn"))
        buf_printf(out, "dcn:%sx%s", value_of(reader, CROSS_LAYERS),
                   value_of(reader, CROSS_RANK));
    else
        buf_printf(out, "dot");
    buf_printf(out, ";top:");
    print_widths(value_of(reader, is_main ? TOP : S_TOP), out);
    if (is_main && reader->job.values[TF32])
        buf_printf(out, ";dtype:tf32");
}

void dlrm_note_dense(const struct dlrm_reader *reader, bool is_main,
                     struct buf *notes)
{
    const int given = given_option(&reader->job, is_main);
    const int unknown = unknown_option(reader, is_main);
    struct buf spec = {0};
    struct err err = {0};
    struct dense dense;

    if (given < 0)
        return;
    if (reader->differs_in_dense) {
        buf_printf(notes, "# the dense part is unknown: the command lines give "
                          "different ones\n");
        return;
    }
    if (unknown >= 0) {
        buf_printf(
            notes, "# the dense part is unknown, by %s %s\n",
            dlrm_options[unknown].name,
            dlrm_say_value(reader, unknown, reader->job.values[unknown]));
        return;
    }
    print_spec(reader, is_main, &spec);
    if (dense_parse(&dense, spec.data, spec.len, &err)) {
        buf_printf(notes, "# the dense part cannot be read: %s\n", err.msg);
    } else {
        buf_printf(notes, "# dense part: plan with --dense '");
        dense_print(&dense, notes);
        buf_printf(notes, "'\n");
    }
    buf_release(&spec);
}
