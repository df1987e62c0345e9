/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/gpu_changes.h"

#include "base/text.h"
#include "costmodel/modelfile/gpu_fields.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* Error of the lookups of a GPU of which nothing was measured, as in the GPU
 * files of such GPUs. */
#define UNMEASURED_FRAC 0.64
#define UNMEASURED_GROUND                                                     \
    "39 published look-ups of A100, H100 and V100, by what was fitted to an " \
    "H100; none of this GPU"

/* Units of values, and their size in the unit at the end of the key. */
static const struct {
    const char *suffix, *unit;
    double size;
} units[] = {
    {"_gbps", "GB/s", 1},  {"_gbps", "TB/s", 1e3}, {"_ghz", "GHz", 1},
    {"_ghz", "MHz", 1e-3}, {"_us", "us", 1},       {"_tflops", "TFLOPS", 1},
    {"_ns", "ns", 1},      {"_bytes", "", 1},
};
#define N_UNITS (sizeof units / sizeof *units)

static bool ends_in(const char *text, const char *end)
{
    const size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && !strcasecmp(text + len - end_len, end);
}

/* Returns the length of a key without the unit at its end. */
static size_t length_without_unit(const char *key)
{
    for (size_t u = 0; u < N_UNITS; u++)
        if (ends_in(key, units[u].suffix))
            return strlen(key) - strlen(units[u].suffix);
    return strlen(key);
}

/* Returns the short form of figure f: its key, without the unit if no other key
 * has the same beginning. */
static const char *short_key(size_t f, struct arena *arena)
{
    const struct place_field *fields = gpu_fields + GPU_FIRST_FIGURE;
    const size_t len = length_without_unit(fields[f].key);

    for (size_t i = 0; i < N_GPU_FIGURES; i++)
        if (i != f && length_without_unit(fields[i].key) == len &&
            !strncmp(fields[i].key, fields[f].key, len))
            return fields[f].key;
    return arena_strndup(arena, fields[f].key, len);
}

/* Returns the figure that the key names, or NULL with the error. */
static const struct place_field *
find_figure(const char *key, struct arena *arena, struct err *err)
{
    const char *keys[N_GPU_FIGURES + 1] = {0};

    for (size_t f = 0; f < N_GPU_FIGURES; f++) {
        keys[f] = short_key(f, arena);
        if (!strcmp(keys[f], key) ||
            !strcmp(gpu_fields[GPU_FIRST_FIGURE + f].key, key))
            return &gpu_fields[GPU_FIRST_FIGURE + f];
    }
    err_set(err, ERR_USAGE, "a GPU has no figure '%.40s'; known are %s",
            text_shown(key, arena), text_list(keys, ", ", arena));
    return NULL;
}

/* Parses a value of the figure: a size, or a number with or without a unit. */
static bool read_value(double *value, const struct place_field *figure,
                       const char *text, struct arena *arena)
{
    uint64_t bytes;

    if (ends_in(figure->key, "_bytes")) {
        if (!text_to_bytes(text, &bytes))
            return false;
        *value = (double)bytes;
        return true;
    }
    for (size_t u = 0; u < N_UNITS; u++) {
        const size_t len = strlen(text), unit = strlen(units[u].unit);

        if (!ends_in(figure->key, units[u].suffix) ||
            !ends_in(text, units[u].unit))
            continue;
        if (!text_to_double(arena_strndup(arena, text, len - unit), value))
            return false;
        *value *= units[u].size;
        return true;
    }
    return text_to_double(text, value);
}

static int refuse_value(const struct place_field *figure, const char *key,
                        const char *text, struct arena *arena, struct err *err)
{
    const char *shown = text_shown(text, arena);

    if (figure->type == MEMBER_U64)
        return err_usage(err,
                         "figure '%s' of a GPU takes a size from %s to %s, "
                         "not '%.40s'",
                         key, TEXT_BYTES(figure->min), TEXT_BYTES(figure->max),
                         shown);
    return err_usage(err,
                     "figure '%s' of a GPU takes a %snumber from %g to %g, not "
                     "'%.40s'",
                     key, figure->type == MEMBER_U32 ? "whole " : "",
                     figure->min, figure->max, shown);
}

static int apply_one(struct gpu_spec *spec, const char *key, const char *text,
                     struct arena *arena, struct err *err)
{
    const struct place_field *figure = find_figure(key, arena, err);
    char *place = (char *)spec;
    double value;

    if (!figure)
        return -1;
    if (!read_value(&value, figure, text, arena) ||
        !(value >= figure->min && value <= figure->max) ||
        (figure->type == MEMBER_U32 && value != floor(value)))
        return refuse_value(figure, key, text, arena, err);
    place += figure->offset;
    if (figure->type == MEMBER_U32)
        *(uint32_t *)(void *)place = (uint32_t)value;
    else if (figure->type == MEMBER_U64)
        *(uint64_t *)(void *)place = (uint64_t)value;
    else
        *(double *)(void *)place = value;
    return 0;
}

static bool has_lookups_of(const struct gpu_spec *a, const struct gpu_spec *b)
{
    return a->dram_gbps == b->dram_gbps && a->l2_gbps == b->l2_gbps &&
           a->l2_bytes == b->l2_bytes && a->clock_ghz == b->clock_ghz &&
           a->n_sms == b->n_sms && a->row_cycles == b->row_cycles &&
           a->bag_row_us == b->bag_row_us && a->launch_us == b->launch_us;
}

const char *gpu_changes_find(const char *name)
{
    const char *colon = name;

    while ((colon = strchr(colon, ':')) != NULL) {
        const size_t len =
            strspn(colon + 1, "abcdefghijklmnopqrstuvwxyz0123456789_");

        if (len && colon[1 + len] == '=')
            return colon;
        colon++;
    }
    return NULL;
}

const char *const *gpu_changes_split(const char *list, struct arena *arena)
{
    const char **names = ARENA_NEW(arena, const char *, strlen(list) + 2);
    const char *start = list;
    size_t n = 0;

    for (const char *next = list;; next++) {
        next += strcspn(next, ",");
        if (*next && next[1 + strcspn(next + 1, ":=,")] == '=')
            continue;
        names[n++] = arena_strndup(arena, start, (size_t)(next - start));
        start = next + 1;
        if (!*next)
            return names;
    }
}

static int apply_all(struct gpu_spec *spec, const char *text,
                     struct arena *arena, struct err *err)
{
    const char *next = text;

    do {
        const size_t len = strcspn(next, ","), key = strcspn(next, "=");

        if (key >= len)
            return err_usage(err,
                             "changes of a GPU are a list such as "
                             "memory=24GiB,dram=1008, not '%.80s'",
                             text_shown(text, arena));
        if (apply_one(spec, arena_strndup(arena, next, key),
                      arena_strndup(arena, next + key + 1, len - key - 1),
                      arena, err))
            return -1;
        next += len;
    } while (*next++);
    return 0;
}

int gpu_changes_apply(struct gpu_spec *spec, const char *text, size_t len,
                      struct arena *arena, struct err *err)
{
    const char *all = arena_strndup(arena, text, len);
    const struct gpu_spec before = *spec;

    if (strlen(all) != len)
        return err_usage(err, "changes of a GPU contain a NUL");
    if (apply_all(spec, all, arena, err))
        return -1;
    if (has_lookups_of(&before, spec))
        return 0;
    spec->has_own_lookups = true;
    spec->full_name = arena_printf(arena, "%s with %s", spec->full_name, all);
    memset(spec->class_error_frac, 0, sizeof spec->class_error_frac);
    if (spec->lookup_error.frac < UNMEASURED_FRAC)
        spec->lookup_error = (struct cost_error){.frac = UNMEASURED_FRAC,
                                                 .ground = UNMEASURED_GROUND};
    return 0;
}
