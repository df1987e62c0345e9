/* SPDX-License-Identifier: MIT */
#include "io/dlrm_dense.h"

#include "base/text.h"
#include "core/dense.h"
#include "io/shell_script.h"
#include "io/tables_reader.h"

#include <string.h>

/* Number of dense features of the data sets of dlrm_main.py. */
#define MAIN_FEATURES "13"

/* Options of the dense part of each script. */
static const struct {
    int bottom, top;
    int interaction; /* its kind; -1: always crosses */
    const char *kinds[3], *printed[3];
} parts[] = {
    [DLRM_MAIN] = {BOTTOM, TOP, INTERACTION, {"original", "dcn"}, {"dot"}},
    [DLRM_S] = {S_BOTTOM, S_TOP, S_INTERACTION, {"dot", "cat"}, {"dot", "cat"}},
    [DLRM_HUGECTR] = {H_BOTTOM, H_TOP, -1, {NULL}, {NULL}},
};

static const char *value_of(const struct dlrm_reader *reader, int option)
{
    const char *value = reader->job.values[option];

    return value ? value : dlrm_options[option].otherwise;
}

/* Returns the first option of the dense part that is given, or -1. */
static int given_option(const struct dlrm_job *job)
{
    const enum dlrm_script script = dlrm_script_of(job);

    for (int i = 0; i < N_OPTIONS; i++)
        if (dlrm_has(script, i, true) && job->values[i])
            return i;
    return -1;
}

/* Returns the number of the interaction of a script, or -1. */
static int find_kind(const struct dlrm_reader *reader, enum dlrm_script script)
{
    return text_choice(parts[script].kinds,
                       value_of(reader, parts[script].interaction));
}

/* Returns an option whose value cannot be described: a value that only a
 * running shell knows, or an interaction that --dense does not have. Returns -1
 * if all values can be described. */
static int unknown_option(const struct dlrm_reader *reader)
{
    const enum dlrm_script script = dlrm_script_of(&reader->job);

    for (int i = 0; i < N_OPTIONS; i++)
        if (dlrm_has(script, i, true) && reader->job.values[i] &&
            !shell_is_known(reader->job.values[i]))
            return i;
    if (parts[script].interaction >= 0 && find_kind(reader, script) < 0)
        return parts[script].interaction;
    return script == DLRM_S && reader->job.values[S_ITSELF] ? S_ITSELF : -1;
}

/* Prints a list of widths with '-' between them. */
static void print_widths(const char *widths, struct buf *out)
{
    for (; *widths; widths++)
        buf_printf(out, "%c", *widths == ',' ? '-' : *widths);
}

static void print_spec(const struct dlrm_reader *reader, struct buf *out)
{
    const char *const *values = reader->job.values;
    const enum dlrm_script script = dlrm_script_of(&reader->job);
    const int kind =
        parts[script].interaction < 0 ? -1 : find_kind(reader, script);
    const char *printed = kind < 0 ? NULL : parts[script].printed[kind];

    buf_printf(out, "bottom:");
    if (script != DLRM_S)
        buf_printf(out, "%s-",
                   script == DLRM_MAIN ? MAIN_FEATURES
                                       : value_of(reader, H_FEATURES));
    print_widths(value_of(reader, parts[script].bottom), out);
    if (printed)
        buf_printf(out, ";interaction:%s", printed);
    else
        buf_printf(out, ";interaction:dcn:%sx%s",
                   value_of(reader, CROSS_LAYERS),
                   value_of(reader, CROSS_RANK));
    buf_printf(out, ";top:");
    print_widths(value_of(reader, parts[script].top), out);
    if (script == DLRM_HUGECTR && values[H_MIXED])
        buf_printf(out, ";dtype:fp16");
    else if ((script == DLRM_MAIN && values[TF32]) ||
             (script == DLRM_HUGECTR && values[H_TF32]))
        buf_printf(out, ";dtype:tf32");
}

void dlrm_note_dense(const struct dlrm_reader *reader, struct buf *notes)
{
    const int given = given_option(&reader->job);
    const int unknown = unknown_option(reader);
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
    print_spec(reader, &spec);
    if (dense_parse(&dense, spec.data, spec.len, &err)) {
        buf_printf(notes, "# the dense part cannot be read: %s\n", err.msg);
    } else {
        buf_printf(notes, "# dense part: plan with --dense '");
        dense_print(&dense, notes);
        buf_printf(notes, "'\n");
    }
    buf_release(&spec);
}
