/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/products_json.h"

#include <math.h>
#include <stdio.h>

#define MAX_MS 1e9
/* Most groups: one for each pair of a type and a form. */
#define MAX_GROUPS (N_DENSE_TYPES * N_PRODUCT_FORMS)

#define TIMES(member) MEMBER_OF(struct product_times, member)
static const struct place_field error_fields[] = {
    {"median_error_frac", TIMES(median_error_frac), true, 0,
     PRODUCT_TIMES_MAX_ERROR, NULL},
    {"error_frac", TIMES(error_frac), true, 0, PRODUCT_TIMES_MAX_ERROR, NULL},
};

#define PRODUCT(member) MEMBER_OF(struct product, member)
static const struct place_field group_fields[] = {
    {"type", PRODUCT(type), true, 0, 0, dense_type_names},
    {"form", PRODUCT(form), true, 0, 0, product_form_names},
};

static bool is_of_group(const struct product *product,
                        const struct product *like)
{
    return product->type == like->type && product->form == like->form;
}

/* Returns the times of the products of one group, from item `first` on. */
static json_t *group_times(const struct product_times *times, size_t first)
{
    json_t *list = json_array();

    for (size_t i = first; i < times->n; i++) {
        const struct product *product = &times->items[i].product;

        if (is_of_group(product, &times->items[first].product))
            json_array_append_new(
                list,
                json_pack("[I, I, I, I, f]", (json_int_t)product->m,
                          (json_int_t)product->n, (json_int_t)product->k,
                          (json_int_t)product->n_batch, times->items[i].ms));
    }
    return list;
}

json_t *products_to_json(const struct product_times *times)
{
    json_t *object = PLACE_ROW(times, error_fields), *groups = json_array();

    for (size_t i = 0; i < times->n; i++) {
        const struct product *product = &times->items[i].product;
        bool is_new = true;
        json_t *group;

        for (size_t j = 0; j < i; j++)
            is_new &= !is_of_group(&times->items[j].product, product);
        if (!is_new)
            continue;
        group = PLACE_ROW(product, group_fields);
        json_object_set_new(group, "times", group_times(times, i));
        json_array_append_new(groups, group);
    }
    json_object_set_new(object, "groups", groups);
    return object;
}

/* Reads element i of a list of numbers as a whole number from 1 on. */
static int read_side(uint32_t *out, const struct json_place *place,
                     const char *key, const json_t *list, size_t i,
                     struct err *err)
{
    double value;

    if (place_list_double(&value, place, key, list, i, 1, UINT32_MAX, err))
        return -1;
    *out = (uint32_t)value;
    if (value != floor(value))
        return place_error(place, err, "%s has %g, not a whole number", key,
                           value);
    return 0;
}

static int read_time(struct product_time *time, const struct json_place *place,
                     const char *key, const json_t *list, struct err *err)
{
    struct product *product = &time->product;

    if (json_array_size(list) != 5)
        return place_error(place, err, "%s is not a list [M, N, K, BATCH, MS]",
                           key);
    return read_side(&product->m, place, key, list, 0, err) ||
                   read_side(&product->n, place, key, list, 1, err) ||
                   read_side(&product->k, place, key, list, 2, err) ||
                   read_side(&product->n_batch, place, key, list, 3, err) ||
                   place_list_double(&time->ms, place, key, list, 4,
                                     PRODUCT_TIMES_MIN_MS, MAX_MS, err)
               ? -1
               : 0;
}

static int read_group(struct product_times *times,
                      const struct json_place *place, struct arena *arena,
                      struct err *err)
{
    struct product group = {0};
    const json_t *list;
    size_t n;

    if (PLACE_FIELDS(&group, place, group_fields, err) ||
        place_list(&list, place, "times", err))
        return -1;
    n = json_array_size(list);
    if (times->n + n > PRODUCT_TIMES_MAX)
        return place_error(place, err, "there are more than %d products",
                           PRODUCT_TIMES_MAX);
    for (size_t i = 0; i < n; i++) {
        const char *key = arena_printf(arena, "times[%zu]", i);
        struct product_time *time = &times->items[times->n++];

        time->product = group;
        if (read_time(time, place, key, json_array_get(list, i), err))
            return -1;
    }
    return 0;
}

int products_from_json(struct product_times *times,
                       const struct json_place *root, struct arena *arena,
                       struct err *err)
{
    struct json_place place;
    const json_t *groups;

    *times = (struct product_times){0};
    if (!place_has(root, "products"))
        return 0;
    times->items = ARENA_NEW(arena, struct product_time, PRODUCT_TIMES_MAX);
    if (place_object(&place, root, "products", err) ||
        PLACE_FIELDS(times, &place, error_fields, err) ||
        place_list(&groups, &place, "groups", err))
        return -1;
    if (json_array_size(groups) > MAX_GROUPS)
        return place_error(&place, err, "groups has more than %d entries",
                           MAX_GROUPS);
    for (size_t i = 0; i < json_array_size(groups); i++) {
        struct json_place item;

        if (place_element(&item, &place, "groups", groups, i, err) ||
            read_group(times, &item, arena, err))
            return -1;
    }
    return 0;
}
