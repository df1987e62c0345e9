/* SPDX-License-Identifier: MIT */
#include "io/plan_tiers_json.h"

#include "base/text.h"
#include "io/plan_fields.h"

/* Cache of a device. The last three members are predictions. */
enum { OF_CACHE_USE = 4 };
#define CACHE(member) MEMBER_OF(struct device_cache, member)
static const struct place_field cache_fields[] = {
    {"pool", CACHE(pool), true, 0, 0, NULL},
    {"slots", CACHE(n_slots), true, 1, 0x1p64, NULL},
    {"slot_width", CACHE(slot_width), true, 1, TABLES_MAX_DIM, NULL},
    {"load_factor", CACHE(load_factor), true, 0, 1, NULL},
    {"rows_per_batch", CACHE(rows_per_batch), false, 0, 1e18, NULL},
    {"fills", CACHE(fills), false, 0, 1e18, NULL},
    {"miss", CACHE(miss), false, 0, 1, NULL},
};

/* Reads member "tiers" of a table, a list of names of tiers, as a mask. */
static int read_tiers(struct table *table, const struct json_place *place,
                      struct err *err)
{
    const json_t *list;

    if (!place_has(place, "tiers"))
        return 0;
    if (place_list(&list, place, "tiers", err))
        return -1;
    table->tiers = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        const int tier = name ? text_choice(tier_names, name) : -1;

        if (tier < 0)
            return place_error(
                place, err, "tiers[%zu] must be one of hbm, cached, host", i);
        table->tiers |= 1u << tier;
    }
    return 0;
}

/* Reads member `key`, a list of n figures of windows. */
static int read_windows(double *out, const struct json_place *place,
                        const char *key, size_t n, struct err *err)
{
    const json_t *list;

    if (place_list_of(&list, place, key, n, "but reach has", err))
        return -1;
    for (size_t i = 0; i < n; i++)
        if (place_list_double(&out[i], place, key, list, i, 0, 1e18, err))
            return -1;
    return 0;
}

/* Reads the measured reach and misses of a table. */
static int read_reach(struct table *table, const struct json_place *place,
                      struct err *err)
{
    const json_t *list;
    unsigned wrong;
    size_t n;

    if (!place_has(place, "reach"))
        return 0;
    if (place_list(&list, place, "reach", err))
        return -1;
    n = json_array_size(list);
    if (n > REACH_WINDOWS)
        return place_error(place, err, "reach has %zu entries, more than %d", n,
                           REACH_WINDOWS);
    if (read_windows(table->reach, place, "reach", n, err) ||
        read_windows(table->misses, place, "misses", n, err))
        return -1;
    table->n_reach = (uint32_t)n;
    wrong = table_wrong_reach(table);
    return wrong == REACH_WINDOWS
               ? 0
               : place_error(place, err,
                             "reach[%u] %g and misses[%u] %g are impossible",
                             wrong, table->reach[wrong], wrong,
                             table->misses[wrong]);
}

int plan_read_table_tiers(struct table *table, const struct json_place *place,
                          struct err *err)
{
    return read_tiers(table, place, err) || read_reach(table, place, err) ? -1
                                                                          : 0;
}

void plan_set_table_tiers(json_t *value, const struct table *table)
{
    json_t *tiers = json_array(), *reach = json_array(), *misses = json_array();

    for (unsigned k = 0; k < N_TIERS; k++)
        if (table->tiers & 1u << k)
            json_array_append_new(tiers, json_string(tier_names[k]));
    for (unsigned k = 0; k < table->n_reach; k++) {
        json_array_append_new(reach, json_real(table->reach[k]));
        json_array_append_new(misses, json_real(table->misses[k]));
    }
    if (table->tiers != ALL_TIERS)
        json_object_set_new(value, "tiers", json_incref(tiers));
    if (table->n_reach) {
        json_object_set_new(value, "reach", json_incref(reach));
        json_object_set_new(value, "misses", json_incref(misses));
    }
    json_decref(tiers);
    json_decref(reach);
    json_decref(misses);
}

int plan_read_tier(struct plan *plan, struct shard *shard,
                   const struct json_place *place, struct err *err)
{
    const char *name =
        json_string_value(json_object_get(place->object, "tier"));
    const int tier = name ? text_choice(tier_names, name) : -1;
    double factor = NAN, *known;

    if (!place_has(place, "tier"))
        return 0;
    if (tier < 0)
        return place_error(place, err, "tier must be one of hbm, cached, host");
    shard->tier = (enum tier)tier;
    if (PLACE_FIELDS(&factor, place, load_factor_field, err))
        return -1;
    if (shard->tier != TIER_CACHED)
        return 0;
    if (isnan(factor))
        return place_error(place, err,
                           "load_factor is missing, but the tier is cached");
    if (!plan->load_factors)
        plan->load_factors =
            ARENA_NEW(place->arena, double, plan->problem.n_tables);
    known = &plan->load_factors[shard->table];
    if (*known > 0 && *known != factor)
        return place_error(place, err,
                           "load_factor is %.17g, but another shard of table "
                           "'%.80s' has %.17g",
                           factor, plan->problem.tables[shard->table].name,
                           *known);
    *known = factor;
    return 0;
}

int plan_read_caches(struct device_cost *device, const struct json_place *place,
                     struct err *err)
{
    const json_t *list = NULL;
    size_t *i = &device->n_caches, n;

    if (place_has(place, "caches") && place_list(&list, place, "caches", err))
        return -1;
    n = json_array_size(list);
    device->caches = ARENA_NEW(place->arena, struct device_cache, n);
    for (; *i < n; ++*i) {
        struct device_cache *cache = &device->caches[*i];
        struct json_place item;

        cache->rows_per_batch = cache->fills = cache->miss = NAN;
        if (place_element(&item, place, "caches", list, *i, err) ||
            PLACE_FIELDS(cache, &item, cache_fields, err))
            return -1;
    }
    return 0;
}

static json_t *from_cache(const struct device_cache *cache)
{
    json_t *value = place_row(cache, cache_fields, OF_CACHE_USE);

    if (!isnan(cache->fills))
        place_set_fields(value, cache, &cache_fields[OF_CACHE_USE], 3);
    return value;
}

void plan_set_caches(json_t *value, const struct device_cost *device)
{
    json_t *caches;

    if (!device->n_caches)
        return;
    caches = json_array();
    for (size_t i = 0; i < device->n_caches; i++)
        json_array_append_new(caches, from_cache(&device->caches[i]));
    json_object_set_new(value, "caches", caches);
}
