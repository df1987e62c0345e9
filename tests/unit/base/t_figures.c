/* SPDX-License-Identifier: MIT */
#include "base/figures.h"

#include <math.h>

#include "tests/tap.h"

struct row {
    const char *name, *why;
    uint32_t n;
    uint64_t n_bytes;
    double ms, share;
    bool is_new;
};

#define ROW(member) MEMBER_OF(struct row, member)
static const struct figure figures[] = {
    {"name", "name", -6, 5, FIGURE_CUT, ROW(name)},
    {"n", "n", 4, 0, FIGURE_PLAIN, ROW(n)},
    {"bytes", "size", 9, 0, FIGURE_BYTES, ROW(n_bytes)},
    {NULL, "count", 7, 0, FIGURE_COUNT, ROW(n_bytes)},
    {"ms", "ms", 7, 3, FIGURE_PLAIN, ROW(ms)},
    {NULL, "change", 7, 2, FIGURE_SIGNED, ROW(ms)},
    {NULL, "about", 6, 2, FIGURE_SIGNIFICANT, ROW(ms)},
    {"share", "%", 5, 1, FIGURE_PERCENT, ROW(share)},
    {"new", NULL, 0, 0, FIGURE_PLAIN, ROW(is_new)},
    {NULL, "new", 4, 0, FIGURE_PLAIN, ROW(is_new)},
    {NULL, "new", 0, 0, FIGURE_NOTE, ROW(is_new)},
    {"why", "no: ", 0, 0, FIGURE_NOTE, ROW(why)},
    {0},
};

int main(void)
{
    const struct row rows[] = {
        {"\xc3\xa4"
         "bcdefgh",
         NULL, 7, 2048, 1234.5678, 0.25, true},
        {NULL, "it is full", 0, UINT64_MAX, NAN, INFINITY, false},
    };
    json_t *list = figures_list(figures, rows, 2, sizeof(*rows));
    struct buf out = {0};
    char *text = json_dumps(list, JSON_COMPACT);

    figures_table(figures, rows, 0, sizeof(*rows), &out);
    figures_table(figures, rows, 1, sizeof(*rows), &out);
    is_str(out.data,
           "name      n      size   count      ms  change  about     %  new\n"
           "\xc3\xa4"
           "b~gh     7  2.00 KiB   2,048 1234.568 +1234.57 1.2e+03  "
           "25.0  yes  new\n",
           "a heading, and all that a row may hold");
    buf_release(&out);
    figures_row(figures, &rows[1], &out);
    is_str(strstr(out.data, "      -"),
           "      -       -      -     -   no  no: it is full\n",
           "dashes for unknown values, and a note");
    buf_release(&out);
    is_str(text,
           "[{\"name\":\"\xc3\xa4"
           "bcdefgh\",\"n\":7,\"bytes\":2048,"
           "\"ms\":1234.5678,\"share\":0.25,\"new\":true,\"why\":null},"
           "{\"name\":null,\"n\":0,\"bytes\":9223372036854775807,"
           "\"ms\":null,\"share\":null,\"new\":false,"
           "\"why\":\"it is full\"}]",
           "the same as JSON");
    free(text);
    json_decref(list);
    return tap_done();
}
