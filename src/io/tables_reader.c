/* SPDX-License-Identifier: MIT */
#include "io/tables_reader.h"

#include "base/json.h"
#include "base/printable.h"
#include "base/text.h"

#include <string.h>

/* Maximum length of a name in a message, in bytes. */
#define MAX_SHOWN 63

const char *tables_shown(const char *text, struct arena *arena)
{
    int len = MAX_SHOWN - 3;

    if (strlen(text) <= MAX_SHOWN)
        return text;
    while (len && text_goes_on(text[len]))
        len--;
    return arena_printf(arena, "%.*s...", len, text);
}

const char *tables_listed(const char *const *names, size_t n, size_t most,
                          struct arena *arena)
{
    const char *list = "";

    for (size_t i = 0; i < n && i < most; i++)
        list = text_say(arena, "%s%s'%s'", list, i ? ", " : "",
                        tables_shown(names[i], arena));
    return n > most ? text_say(arena, "%s and %zu more", list, n - most) : list;
}

int tables_name(struct table_list *list, const char *prefix,
                const struct tables_options *options, struct arena *arena,
                struct err *err)
{
    char *rest = options->names ? arena_strdup(arena, options->names) : NULL;
    json_t *seen = json_object();
    const char *name = "";
    size_t n = 0;
    int rc = 0;

    list->tables = ARENA_NEW(arena, struct table, list->n_tables);
    for (; !rc && n < list->n_tables; n++) {
        name = rest ? strtok_r(rest, ",\r\n", &rest)
                    : arena_printf(arena, "%s%zu", prefix, n);
        if (!name)
            break;
        if (!text_is_printable(name) || json_object_get(seen, name))
            rc = err_input(
                err, "option '--names': '%s' is %s", tables_shown(name, arena),
                text_is_printable(name) ? "given twice" : "not printable");
        json_object_set_new(seen, name, json_true());
        table_init(&list->tables[n]);
        list->tables[n].name = name;
    }
    if (!rc && (!name || (rest && strtok_r(rest, ",\r\n", &rest))))
        rc = err_input(
            err, "option '--names' has %s names than the %zu tables of '%s'",
            name ? "more" : "fewer", list->n_tables, list->source);
    json_decref(seen);
    return rc;
}
