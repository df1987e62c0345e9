/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/clock.h"

int store_put_ceiling(struct store *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling, struct err *err)
{
    char now[CLOCK_TEXT_MAX];
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_CEILING, err))
        return -1;
    bind_row(&query, LIST_DEVICE, setting);
    bind_row(&query, LIST_CEILING, ceiling);
    bind_double(&query, probe_moved_bytes(&ceiling->probe));
    bind_text(&query, clock_utc(now));
    return query_run(&query, err);
}

bool store_has_ceiling(struct store *store,
                       const struct sample_setting *setting,
                       const struct probe *probe)
{
    const struct ceiling ceiling = {.probe = *probe};
    struct query query;
    struct err ignored;

    if (query_begin(&query, store, STATEMENT_HAS_CEILING, &ignored))
        return false;
    bind_row(&query, LIST_DEVICE, setting);
    bind_row(&query, LIST_PROBE, &ceiling);
    return query_found(&query);
}

static int take_ceiling(struct query *query, void *item, const void *before,
                        struct arena *arena, struct err *err)
{
    struct ceiling *ceiling = item;

    take_i64(query); /* its key */
    take_row(query, LIST_CEILING, ceiling, before, arena);
    if (ceiling->probe.kind <= PROBE_LAUNCH)
        return 0;
    return err_set(err, ERR_INPUT,
                   "cost database '%s': a ceiling is of an unknown kind '%s'",
                   query->store->path, sqlite3_column_text(query->stmt, 1));
}

int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err)
{
    struct query query;

    if (query_begin(&query, store, STATEMENT_LIST_CEILINGS, err))
        return -1;
    bind_row(&query, LIST_DEVICE, setting);
    *ceilings =
        query_list(&query, take_ceiling, sizeof(**ceilings), n, arena, err);
    return *ceilings ? 0 : -1;
}
