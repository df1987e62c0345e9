/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_json.h"

#include <stdio.h>

/* Longer and larger than any exchange. */
#define MAX_US 1e18
#define MAX_BYTES 0x1p63

/* Each member that is a number or a text, with its range; knots are bounded
 * below. */

static const char *const form_names[] = {"port", "total", NULL};

static const struct place_field form_field[] = {
    {"form", MEMBER_OF(struct comm_fit, form), true, 0, 0, form_names}};
static const struct place_field source_field[] = {
    {"source", MEMBER_OF(struct comm_fit, source), true, 0, 0, NULL}};

#define CURVE(member) MEMBER_OF(struct comm_curve, member)
static const struct place_field curve_fields[] = {
    {"ranks", CURVE(n_ranks), true, 0, UINT32_MAX, NULL},
    {"hosts", CURVE(n_hosts), true, 0, UINT32_MAX, NULL},
};

struct line {
    double alpha_us, gbps;
};
#define LINE(member) MEMBER_OF(struct line, member)
static const struct place_field line_fields[] = {
    {"alpha_us", LINE(alpha_us), true, 0, MAX_US, NULL},
    {"gbps", LINE(gbps), true, CLUSTER_MIN_GBPS, CLUSTER_MAX_GBPS, NULL},
};

static json_t *curve_to_json(const struct comm_curve *curve)
{
    json_t *object = json_object(), *knots = json_array();

    PLACE_SET_FIELDS(object, curve, curve_fields);
    for (uint32_t k = 0; k < curve->n_knots; k++)
        json_array_append_new(knots,
                              json_pack("[ff]", curve->bytes[k], curve->us[k]));
    json_object_set_new(object, "knots", knots);
    return object;
}

json_t *comm_to_json(const struct comm_fit *fit)
{
    json_t *object = json_object(), *curves = json_array();

    PLACE_SET_FIELDS(object, fit, form_field);
    for (uint32_t i = 0; i < fit->n_curves; i++)
        json_array_append_new(curves, curve_to_json(&fit->curves[i]));
    json_object_set_new(object, "curves", curves);
    PLACE_SET_FIELDS(object, fit, source_field);
    return object;
}

static int read_line(struct comm_fit *fit, const struct json_place *place,
                     struct err *err)
{
    struct line line;

    if (PLACE_FIELDS(&line, place, line_fields, NULL, err))
        return -1;
    fit->curves[0] = comm_line(line.alpha_us, line.gbps);
    fit->n_curves = 1;
    return 0;
}

/* Bytes rise from 0, times do not fall, and the last line rises. */
static bool is_curve(const struct comm_curve *curve)
{
    uint32_t n = curve->n_knots;

    if (n < 2 || curve->bytes[0] != 0)
        return false;
    for (uint32_t k = 1; k < n; k++)
        if (!(curve->bytes[k] > curve->bytes[k - 1]) ||
            !(curve->us[k] >= curve->us[k - 1]))
            return false;
    return curve->us[n - 1] > curve->us[n - 2];
}

static int read_curve(struct comm_curve *curve, const struct json_place *place,
                      struct err *err)
{
    const json_t *knots;

    if (PLACE_FIELDS(curve, place, curve_fields, NULL, err) ||
        place_list(&knots, place, "knots", err))
        return -1;
    for (size_t k = 0; k < json_array_size(knots) && k < COMM_MAX_KNOTS; k++) {
        const json_t *knot = json_array_get(knots, k);
        char key[16];

        snprintf(key, sizeof(key), "knots[%zu]", k);
        if (place_list_double(&curve->bytes[k], place, key, knot, 0, 0,
                              MAX_BYTES, err) ||
            place_list_double(&curve->us[k], place, key, knot, 1, 0, MAX_US,
                              err))
            return -1;
        curve->n_knots++;
    }
    if (json_array_size(knots) > COMM_MAX_KNOTS || !is_curve(curve))
        return place_error(place, err,
                           "a curve needs 2 to %d knots [BYTES, US] that rise "
                           "from 0 bytes",
                           COMM_MAX_KNOTS);
    return 0;
}

static int read_curves(struct comm_fit *fit, const struct json_place *place,
                       struct err *err)
{
    const json_t *list;
    size_t n;

    if (place_list(&list, place, "curves", err))
        return -1;
    n = json_array_size(list);
    if (!n || n > COMM_MAX_CURVES)
        return place_error(place, err, "curves has 1 to %d of them, not %zu",
                           COMM_MAX_CURVES, n);
    for (; fit->n_curves < n; fit->n_curves++) {
        struct json_place curve;

        if (place_element(&curve, place, "curves", list, fit->n_curves, err) ||
            read_curve(&fit->curves[fit->n_curves], &curve, err))
            return -1;
    }
    return 0;
}

int comm_from_json(struct comm_fit *fit, const struct json_place *place,
                   struct arena *arena, struct err *err)
{
    *fit = (struct comm_fit){0};
    if (PLACE_FIELDS(fit, place, form_field, arena, err) ||
        PLACE_FIELDS(fit, place, source_field, arena, err))
        return -1;
    return place_has(place, "curves") ? read_curves(fit, place, err)
                                      : read_line(fit, place, err);
}
