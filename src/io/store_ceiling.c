/* SPDX-License-Identifier: MIT */
#include "io/store_private.h"

#include "base/clock.h"
#include "base/text.h"

#include <inttypes.h>
#include <string.h>

static void bind_probe(struct query *query,
                       const struct sample_setting *setting,
                       const struct probe *probe)
{
    bind_device(query, setting);
    bind_text(query, probe_kind_names[probe->kind]);
    bind_u64(query, probe->n_bytes);
    bind_u64(query, probe->n);
    bind_i64(query, probe->row_bytes);
    bind_i64(query, probe->key_bits);
}

int store_put_ceiling(struct store *store, const struct sample_setting *setting,
                      const struct ceiling *ceiling, struct err *err)
{
    char now[CLOCK_TEXT_MAX];
    struct query query;

    if (query_begin(&query, store, STATEMENT_ADD_CEILING, err))
        return -1;
    bind_probe(&query, setting, &ceiling->probe);
    bind_timing(&query, &ceiling->timing);
    bind_i64(&query, ceiling->n_iterations);
    bind_i64(&query, ceiling->flags);
    bind_double(&query, probe_moved_bytes(&ceiling->probe));
    bind_text(&query, clock_utc(now));
    return query_run(&query, err);
}

bool store_has_ceiling(struct store *store,
                       const struct sample_setting *setting,
                       const struct probe *probe)
{
    struct query query;
    struct err ignored;

    if (query_begin(&query, store, STATEMENT_HAS_CEILING, &ignored))
        return false;
    bind_probe(&query, setting, probe);
    return query_found(&query);
}

static int take_ceiling(struct query *query, void *item, const void *before,
                        struct arena *arena, struct err *err)
{
    struct ceiling *ceiling = item;
    const char *name;
    int kind;

    (void)before;
    take_i64(query); /* its key */
    name = take_text(query, arena);
    kind = text_choice(probe_kind_names, name);
    if (kind < 0)
        return err_set(err, ERR_INPUT,
                       "cost database '%s': a ceiling is of an unknown kind "
                       "'%s'",
                       query->store->path, name);
    ceiling->probe.kind = (enum probe_kind)kind;
    ceiling->probe.n_bytes = take_u64(query);
    ceiling->probe.n = take_u64(query);
    ceiling->probe.row_bytes = (uint32_t)take_u64(query);
    ceiling->probe.key_bits = (uint32_t)take_u64(query);
    ceiling->timing = take_timing(query);
    ceiling->n_iterations = (uint32_t)take_u64(query);
    ceiling->flags = (unsigned)take_u64(query);
    return 0;
}

int store_ceilings(struct store *store, const struct sample_setting *setting,
                   struct ceiling **ceilings, size_t *n, struct arena *arena,
                   struct err *err)
{
    struct query query;
    void *items;

    if (query_begin(&query, store, STATEMENT_LIST_CEILINGS, err))
        return -1;
    bind_device(&query, setting);
    if (query_list(&query, take_ceiling, sizeof(**ceilings), &items, n, arena,
                   err))
        return -1;
    *ceilings = items;
    return 0;
}
