/* SPDX-License-Identifier: MIT */
#include "base/figures.h"

#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t count_of(const struct figure *figure, const void *pos)
{
    return figure->type == MEMBER_U32 ? *(const uint32_t *)pos
                                      : *(const uint64_t *)pos;
}

#define CELL_MAX 64

static const char *real_text(char cell[CELL_MAX], const struct figure *figure,
                             double real)
{
    if (!isfinite(real))
        return "-";
    if (figure->style == FIGURE_BYTES)
        return text_from_bytes(cell, real);
    if (figure->style == FIGURE_SIGNIFICANT)
        snprintf(cell, CELL_MAX, "%.*g", figure->decimals, real);
    else if (figure->style == FIGURE_SIGNED)
        snprintf(cell, CELL_MAX, "%+.*f", figure->decimals, real);
    else
        snprintf(cell, CELL_MAX, "%.*f", figure->decimals,
                 figure->style == FIGURE_PERCENT ? 100 * real : real);
    return cell;
}

/* Returns the text of a table cell; NULL if the cell is empty. */
static const char *cell_text(char cell[CELL_MAX], const struct figure *figure,
                             const void *row)
{
    const void *pos = (const char *)row + figure->offset;
    const bool is_note = figure->style == FIGURE_NOTE;
    const char *text;

    if (figure->type == MEMBER_TEXT) {
        text = *(const char *const *)pos;
        return text || is_note ? text : "-";
    }
    if (figure->type == MEMBER_REAL)
        return real_text(cell, figure, *(const double *)pos);
    if (figure->type == MEMBER_BOOL && is_note)
        return *(const bool *)pos ? "" : NULL;
    if (figure->type == MEMBER_BOOL)
        return *(const bool *)pos ? "yes" : "no";
    if (figure->style == FIGURE_BYTES)
        return text_from_bytes(cell, (double)count_of(figure, pos));
    if (figure->style == FIGURE_COUNT)
        return text_from_count(cell, count_of(figure, pos));
    snprintf(cell, CELL_MAX, "%" PRIu64, count_of(figure, pos));
    return cell;
}

static bool is_last(const struct figure *figure)
{
    return !figure->key && !figure->heading;
}

void figures_heading(const struct figure *figures, struct buf *out)
{
    size_t n = 0;

    for (const struct figure *figure = figures; !is_last(figure); figure++)
        if (figure->heading && figure->style != FIGURE_NOTE)
            buf_printf(out, "%s%*s", n++ ? " " : "", figure->width,
                       figure->heading);
    buf_add(out, "\n", 1);
}

void figures_row(const struct figure *figures, const void *row, struct buf *out)
{
    size_t n = 0;

    for (const struct figure *figure = figures; !is_last(figure); figure++) {
        char cell[CELL_MAX];
        const char *text = cell_text(cell, figure, row);

        if (!figure->heading || !text)
            continue;
        if (figure->style == FIGURE_NOTE) {
            buf_printf(out, "  %s%s", figure->heading, text);
            continue;
        }
        buf_add(out, " ", n++ ? 1 : 0);
        if (figure->style != FIGURE_CUT) {
            buf_printf(out, "%*s", figure->width, text);
            continue;
        }
        text_column(out, text, (unsigned)figure->decimals);
        buf_printf(out, "%*s", abs(figure->width) - figure->decimals, "");
    }
    buf_add(out, "\n", 1);
}

void figures_table(const struct figure *figures, const void *rows, size_t n,
                   size_t row_bytes, struct buf *out)
{
    if (n)
        figures_heading(figures, out);
    for (size_t i = 0; i < n; i++)
        figures_row(figures, (const char *)rows + i * row_bytes, out);
}

json_t *figures_object(const struct figure *figures, const void *row)
{
    json_t *object = json_object();

    for (const struct figure *figure = figures; !is_last(figure); figure++) {
        const void *pos = (const char *)row + figure->offset;

        if (figure->key)
            json_object_set_new(
                object, figure->key,
                figure->type == MEMBER_U64
                    ? json_integer(json_count(count_of(figure, pos)))
                    : json_member(figure->type, pos));
    }
    return object;
}

json_t *figures_list(const struct figure *figures, const void *rows, size_t n,
                     size_t row_bytes)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            list, figures_object(figures, (const char *)rows + i * row_bytes));
    return list;
}

void figures_csv(json_t *object, bool keys, struct buf *out)
{
    const char *key, *comma = "";
    json_t *value;

    json_object_foreach(object, key, value)
    {
        buf_printf(out, "%s", comma);
        comma = ",";
        if (keys)
            buf_printf(out, "%s", key);
        else if (json_is_string(value))
            text_csv(out, json_string_value(value));
        else if (json_is_boolean(value))
            buf_printf(out, "%d", json_is_true(value));
        else if (json_is_integer(value))
            buf_printf(out, "%lld", json_integer_value(value));
        else if (json_is_real(value))
            buf_printf(out, "%.17g", json_real_value(value));
    }
    buf_printf(out, "\n");
}
