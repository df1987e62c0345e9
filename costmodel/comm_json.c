/* SPDX-License-Identifier: MIT */
#include "costmodel/comm_json.h"

#include <math.h>
#include <string.h>

static json_t *curve_to_json(const struct comm_curve *curve)
{
    json_t *object = json_object(), *knots = json_array();

    json_object_set_new(object, "ranks", json_integer(curve->n_ranks));
    json_object_set_new(object, "hosts", json_integer(curve->n_hosts));
    for (uint32_t k = 0; k < curve->n_knots; k++) {
        json_t *knot = json_array();

        json_array_append_new(knot, json_real(curve->bytes[k]));
        json_array_append_new(knot, json_real(curve->us[k]));
        json_array_append_new(knots, knot);
    }
    json_object_set_new(object, "knots", knots);
    return object;
}

json_t *comm_to_json(const struct comm_fit *fit)
{
    json_t *object = json_object(), *curves = json_array();

    json_object_set_new(object, "form",
                        json_string(fit->form == COMM_PORT ? "port" : "total"));
    for (uint32_t i = 0; i < fit->n_curves; i++)
        json_array_append_new(curves, curve_to_json(&fit->curves[i]));
    json_object_set_new(object, "curves", curves);
    json_object_set_new(object, "source", json_string(fit->source));
    return object;
}

static int read_line(struct comm_fit *fit, const json_t *object,
                     const char *where, struct err *err)
{
    double alpha_us, gbps;

    if (json_member_double(&alpha_us, object, "alpha_us", where, err) ||
        json_member_double(&gbps, object, "gbps", where, err))
        return -1;
    if (!(alpha_us >= 0) || !(gbps > 0))
        return err_set(err, ERR_INPUT,
                       "%s: 'comm' needs an alpha_us of at least 0 and a "
                       "positive gbps",
                       where);
    fit->curves[0] = comm_line(alpha_us, gbps);
    fit->n_curves = 1;
    return 0;
}

/* Bytes rise from 0, times do not fall, and the last line rises. */
static bool is_curve(const struct comm_curve *curve)
{
    uint32_t n = curve->n_knots;

    if (n < 2 || curve->bytes[0] != 0 || !(curve->us[0] >= 0))
        return false;
    for (uint32_t k = 1; k < n; k++)
        if (!(curve->bytes[k] > curve->bytes[k - 1]) ||
            !(curve->us[k] >= curve->us[k - 1]))
            return false;
    return isfinite(curve->bytes[n - 1]) && isfinite(curve->us[n - 1]) &&
           curve->us[n - 1] > curve->us[n - 2];
}

static int read_curve(struct comm_curve *curve, const json_t *object,
                      const char *where, struct err *err)
{
    json_t *knots = NULL;
    uint64_t n_ranks, n_hosts;
    size_t n;

    *curve = (struct comm_curve){0};
    if (!json_is_object(object))
        return err_set(err, ERR_INPUT, "%s: a curve is an object", where);
    if (json_member_u64(&n_ranks, object, "ranks", UINT32_MAX, where, err) ||
        json_member_u64(&n_hosts, object, "hosts", UINT32_MAX, where, err) ||
        json_member(&knots, object, "knots", JSON_ARRAY, where, err))
        return -1;
    curve->n_ranks = (uint32_t)n_ranks;
    curve->n_hosts = (uint32_t)n_hosts;
    n = json_array_size(knots);
    for (size_t k = 0; k < n && n <= COMM_MAX_KNOTS; k++) {
        const json_t *knot = json_array_get(knots, k);

        curve->bytes[k] = json_number_value(json_array_get(knot, 0));
        curve->us[k] = json_number_value(json_array_get(knot, 1));
        curve->n_knots++;
    }
    if (!is_curve(curve))
        return err_set(err, ERR_INPUT,
                       "%s: a curve needs 2 to %d knots [BYTES, US] that rise "
                       "from 0 bytes",
                       where, COMM_MAX_KNOTS);
    return 0;
}

static int read_curves(struct comm_fit *fit, const json_t *curves,
                       const char *where, struct err *err)
{
    size_t n = json_array_size(curves);

    if (!n || n > COMM_MAX_CURVES)
        return err_set(err, ERR_INPUT,
                       "%s: 'curves' has 1 to %d of them, not "
                       "%zu",
                       where, COMM_MAX_CURVES, n);
    for (; fit->n_curves < n; fit->n_curves++)
        if (read_curve(&fit->curves[fit->n_curves],
                       json_array_get(curves, fit->n_curves), where, err))
            return -1;
    return 0;
}

int comm_from_json(struct comm_fit *fit, const json_t *object,
                   const char *where, struct arena *arena, struct err *err)
{
    const char *form, *source;
    json_t *curves = NULL;

    *fit = (struct comm_fit){0};
    if (json_member_string(&form, object, "form", where, err) ||
        json_member_string(&source, object, "source", where, err))
        return -1;
    if (strcmp(form, "port") && strcmp(form, "total"))
        return err_set(err, ERR_INPUT, "%s: 'form' cannot be '%s'", where,
                       form);
    fit->form = !strcmp(form, "port") ? COMM_PORT : COMM_TOTAL;
    fit->source = arena_strdup(arena, source);
    if (!json_object_get(object, "curves"))
        return read_line(fit, object, where, err);
    if (json_member(&curves, object, "curves", JSON_ARRAY, where, err))
        return -1;
    return read_curves(fit, curves, where, err);
}
