/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"

#include "base/file.h"
#include "base/text.h"
#include "io/tables_private.h"

#include <stdio.h>
#include <string.h>

/* Unknown names that a warning lists; the others are counted. */
#define MAX_LISTED 8

static bool is_continuation(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

const char *tables_shown(char buf[TABLES_SHOWN_MAX], const char *text)
{
    size_t len = strlen(text), shown = len;

    if (len >= TABLES_SHOWN_MAX) {
        shown = TABLES_SHOWN_MAX - sizeof("...");
        while (shown && is_continuation(text[shown]))
            shown--;
    }
    snprintf(buf, TABLES_SHOWN_MAX, "%.*s%s", (int)shown, text,
             shown < len ? "..." : "");
    return buf;
}

void tables_warn(const struct tables_options *options, const char *sentence)
{
    if (options->warn)
        options->warn(options->warn_ctx, sentence);
}

void tables_warn_unknown(const struct tables_options *options,
                         const char *source, const char *what,
                         const char *const *names, size_t n,
                         struct arena *arena)
{
    const char *list = "", *more = "";
    char shown[TABLES_SHOWN_MAX];

    if (n == 0)
        return;
    for (size_t i = 0; i < n && i < MAX_LISTED; i++)
        list = text_say(arena, "%s%s'%s'", list, i ? ", " : "",
                        tables_shown(shown, names[i]));
    if (n > MAX_LISTED)
        more = text_say(arena, " and %zu more", n - MAX_LISTED);
    tables_warn(options, text_say(arena, "%s: unknown %s are left out: %s%s",
                                  source, what, list, more));
}

static bool is_json(const char *text)
{
    if (!strncmp(text, "\xef\xbb\xbf", 3))
        text += 3;
    text += strspn(text, " \t\r\n");
    return *text == '{' || *text == '[';
}

int tables_load(struct table_list *list, const char *path,
                const struct tables_options *options, struct arena *arena,
                struct err *err)
{
    const char *source, *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err))
        return -1;
    source = strcmp(path, "-") ? text_shown(path, arena) : "<stdin>";
    if (is_json(text))
        return tables_from_json(list, text, len, source, options, arena, err);
    return tables_from_csv(list, text, len, source, options, arena, err);
}
