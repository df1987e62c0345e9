/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/gpu_file.h"

#include "base/file.h"
#include "base/text.h"
#include "costmodel/modelfile/gpu_changes.h"
#include "costmodel/modelfile/gpu_fields.h"
#include "costmodel/modelfile/model_file.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char *const basis_names[] = {"measured", "fitted", "data sheet",
                                          "estimated", NULL};

/* Object with a figure for each class of devices. */
#define CLASS_ERRORS "class_error_frac"
/* List of other names of the GPU. */
#define ALIASES "aliases"

/* Source of a figure in a GPU file. Sources are for human readers. They are
 * checked but not kept, except for the source of the lookup error. */
struct ground {
    uint32_t basis;
    const char *source, *date;
};
#define GROUND(member) MEMBER_OF(struct ground, member)
static const struct place_field ground_fields[] = {
    {"basis", GROUND(basis), true, 0, 0, basis_names},
    {"source", GROUND(source), true, 0, 0, NULL},
    {"date", GROUND(date), true, 0, 0, NULL},
};
static const char *const figure_keys[] = {"value", "basis", "source", "date",
                                          NULL};

/* Returns true for a date of the form "2024", "2024-09" or "2024-09-24". */
static bool is_date(const char *text)
{
    const size_t len = strlen(text);

    return len == strspn(text, "0123456789-") &&
           (len == 4 || ((len == 7 || len == 10) && text[4] == '-'));
}

static int read_figure(struct gpu_spec *spec, const struct json_place *place,
                       const struct place_field *member, struct err *err)
{
    struct place_field value = *member;
    struct ground ground = {0};
    struct json_place figure;

    value.key = "value";
    if (place_object(&figure, place, member->key, err) ||
        place_check_keys(&figure, figure_keys, err) ||
        place_fields(spec, &figure, &value, 1, err) ||
        PLACE_FIELDS(&ground, &figure, ground_fields, err))
        return -1;
    if (!*ground.source)
        return place_error(&figure, err, "source is empty");
    if (!is_date(ground.date))
        return place_error(&figure, err,
                           "date is '%.40s', not a day, a month or a year "
                           "such as 2024-09-24",
                           ground.date);
    if (member->offset == offsetof(struct gpu_spec, lookup_error.frac))
        spec->lookup_error.ground = ground.source;
    return 0;
}

/* Reads the errors by class. A class that the object lacks keeps 0. */
static int read_class_errors(struct gpu_spec *spec,
                             const struct json_place *place, struct err *err)
{
    struct json_place object;

    if (!place_has(place, CLASS_ERRORS))
        return 0;
    if (place_object(&object, place, CLASS_ERRORS, err) ||
        place_check_keys(&object, interval_classes + 1, err))
        return -1;
    for (size_t c = 1; c < MAX_INTERVALS; c++) {
        const struct place_field member = {
            interval_classes[c],
            MEMBER_REAL,
            offsetof(struct gpu_spec, class_error_frac) + c * sizeof(double),
            false,
            1e-3,
            100,
            NULL};

        if (place_has(&object, member.key) &&
            read_figure(spec, &object, &member, err))
            return -1;
    }
    return 0;
}

/* Returns true if the text is a name of a GPU: words of small letters and
 * digits, joined by '-'. */
static bool is_gpu_name(const char *text)
{
    const size_t len = strlen(text);

    return len && isalnum((unsigned char)*text) && text[len - 1] != '-' &&
           len == strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-");
}

static int read_aliases(struct gpu_spec *spec, const struct json_place *place,
                        struct err *err)
{
    const char **aliases;
    const json_t *list;
    size_t n;

    if (!place_has(place, ALIASES))
        return 0;
    if (place_list(&list, place, ALIASES, err))
        return -1;
    n = json_array_size(list);
    aliases = ARENA_NEW(place->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *text = json_string_value(json_array_get(list, i));

        if (!text || !is_gpu_name(text))
            return place_error(place, err,
                               ALIASES "[%zu] must be a name of small letters, "
                                       "digits and '-'",
                               i);
        aliases[i] = arena_strdup(place->arena, text);
    }
    spec->aliases = aliases;
    return 0;
}

static int read_members(struct gpu_spec *spec, const struct json_place *place,
                        struct err *err)
{
    const char *known[N_GPU_FIELDS + 3] = {0};

    for (size_t m = 0; m < N_GPU_FIELDS; m++)
        known[m] = gpu_fields[m].key;
    known[N_GPU_FIELDS] = CLASS_ERRORS;
    known[N_GPU_FIELDS + 1] = ALIASES;
    if (place_check_keys(place, known, err))
        return -1;
    for (const struct place_field *m = gpu_fields;
         m < gpu_fields + N_GPU_FIELDS; m++)
        if ((m->is_needed || place_has(place, m->key)) &&
            (m->type == MEMBER_TEXT || m->names
                 ? place_fields(spec, place, m, 1, err)
                 : read_figure(spec, place, m, err)))
            return -1;
    return read_aliases(spec, place, err) ||
           read_class_errors(spec, place, err);
}

int gpu_spec_from_json(struct gpu_spec *spec, const char *text, size_t len,
                       const char *source, struct arena *arena, struct err *err)
{
    struct json_place place;
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, source, err) ||
             place_root(&place, root, source, arena, err);

    static const char *const none[] = {NULL};

    *spec = (struct gpu_spec){.name = source, .aliases = none};
    if (!rc) {
        place.line = 1;
        place.lines = place_child_lines(text, len, 1, arena);
        rc = read_members(spec, &place, err);
    }
    json_decref(root);
    return rc ? -1 : 0;
}

const char *const *gpu_names(struct arena *arena)
{
    return file_list_data("gpus", ".json", arena);
}

static int load(const struct gpu_spec **out, const char *name, const char *path,
                struct arena *arena, struct err *err)
{
    struct gpu_spec *spec = ARENA_NEW(arena, struct gpu_spec, 1);
    const char *text;
    size_t len;

    if (file_read(&text, &len, path, arena, err) ||
        gpu_spec_from_json(spec, text, len, path, arena, err))
        return -1;
    spec->name = text_shown(name, arena);
    *out = spec;
    return 0;
}

/* A name or an alias of a shipped GPU. */
struct gpu_name {
    const char *text, *gpu;
};

static const char *path_of(const char *gpu, struct arena *arena)
{
    return arena_printf(arena, "%s/%s.json", file_find_data("gpus", arena),
                        gpu);
}

/* Returns all names of the shipped GPUs, first those of files, then the
 * aliases. The last entry is zeroed. An unreadable file has no aliases. */
static const struct gpu_name *all_names(struct arena *arena)
{
    const char *const *gpus = gpu_names(arena);
    const struct gpu_spec **specs;
    struct gpu_name *names;
    size_t n_gpus = 0, n = 0;

    while (gpus[n_gpus])
        n_gpus++;
    specs = ARENA_NEW(arena, const struct gpu_spec *, n_gpus + 1);
    for (size_t g = 0; g < n_gpus; g++) {
        struct err ignored = {0};

        if (load(&specs[g], gpus[g], path_of(gpus[g], arena), arena, &ignored))
            specs[g] = NULL;
        for (size_t a = 0; specs[g] && specs[g]->aliases[a]; a++)
            n++;
    }
    names = ARENA_NEW(arena, struct gpu_name, n_gpus + n + 1);
    n = n_gpus;
    for (size_t g = 0; g < n_gpus; g++) {
        names[g] = (struct gpu_name){gpus[g], gpus[g]};
        for (size_t a = 0; specs[g] && specs[g]->aliases[a]; a++)
            names[n++] = (struct gpu_name){specs[g]->aliases[a], gpus[g]};
    }
    return names;
}

/* Returns true if the names differ only in case, blanks, '-' and '_'. */
static bool is_same_name(const char *a, const char *b)
{
    static const char joints[] = " -_";

    for (;; a++, b++) {
        a += strspn(a, joints);
        b += strspn(b, joints);
        if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
            return false;
        if (!*a)
            return true;
    }
}

/* Returns the name of the shipped GPU that has this name or alias, or NULL.
 * Reads the files only if no file has the name. */
static const char *find_name(const char *name, struct arena *arena)
{
    for (const char *const *gpu = gpu_names(arena); *gpu; gpu++)
        if (is_same_name(*gpu, name))
            return *gpu;
    for (const struct gpu_name *other = all_names(arena); other->text; other++)
        if (is_same_name(other->text, name))
            return other->gpu;
    return NULL;
}

/* Number of names that a message suggests. */
#define MOST_SUGGESTED 3

/* Returns "did you mean h100 or h100-pcie? ", or "" if no name is near.
 * Suggests at most one name for each GPU. */
static const char *suggest(const char *name, struct arena *arena)
{
    const struct gpu_name *names = all_names(arena);
    const char *suggested[MOST_SUGGESTED + 1] = {0};
    size_t n_names = 0, n = 0;
    const char **left;

    while (names[n_names].text)
        n_names++;
    left = ARENA_NEW(arena, const char *, n_names + 1);
    while (n < MOST_SUGGESTED) {
        const char *nearest;
        size_t n_left = 0, i = 0;

        for (size_t k = 0; k < n_names; k++) {
            size_t j = 0;

            while (j < n && strcmp(suggested[j], names[k].gpu) != 0)
                j++;
            if (j == n)
                left[n_left++] = names[k].text;
        }
        left[n_left] = NULL;
        nearest = text_nearest(left, name);
        if (!nearest)
            break;
        while (i + 1 < n_names && strcmp(names[i].text, nearest) != 0)
            i++;
        suggested[n++] = names[i].gpu;
    }
    return n ? arena_printf(arena, "did you mean %s? ",
                            text_list(suggested, " or ", arena))
             : "";
}

static int unknown_gpu(const char *name, struct arena *arena, struct err *err)
{
    const char *const *names = gpu_names(arena);

    return err_usage(err, "no figures for a GPU '%s'; %sknown are %s", name,
                     suggest(name, arena),
                     *names ? text_list(names, ", ", arena)
                            : "none, as no data folder with 'gpus' was found");
}

/* Finds the figures of the GPU that a shipped model was measured on. It is
 * called for a name that belongs to a model but to no GPU file. */
static int of_model(const struct gpu_spec **out, const char *name,
                    const char *path, struct arena *arena, struct err *err)
{
    struct gpu_spec *spec = ARENA_NEW(arena, struct gpu_spec, 1);
    struct model model;

    if (model_load(&model, path, arena, err) ||
        gpu_spec_of_device(out, model.setting.device, arena, err))
        return -1;
    if (!*out)
        return err_usage(err,
                         "no figures for a GPU '%s': its model was measured on "
                         "'%s', which has no figures either",
                         name, model.setting.device);
    *spec = **out;
    spec->name = text_shown(name, arena);
    *out = spec;
    return 0;
}

static int get(const struct gpu_spec **out, const char *name,
               struct arena *arena, struct err *err)
{
    const char *found, *path;

    if (strpbrk(name, "/."))
        return load(out, name, name, arena, err);
    found = find_name(name, arena);
    if (found)
        return load(out, found, path_of(found, arena), arena, err);
    path = file_find_data(arena_printf(arena, "models/%s.nsm", name), arena);
    if (path)
        return of_model(out, name, path, arena, err);
    *out = NULL;
    if (strpbrk(name, " :") && gpu_spec_of_device(out, name, arena, err))
        return -1;
    return *out ? 0 : unknown_gpu(name, arena, err);
}

int gpu_spec_get(const struct gpu_spec **out, const char *name,
                 struct arena *arena, struct err *err)
{
    const char *changes = gpu_changes_find(name), *colon = strchr(name, ':');
    struct gpu_spec *spec;

    /* A colon behind the name of a GPU can only begin changes. Behind "cpu" it
     * begins the name of a device. */
    if (!changes && colon && strncmp(name, "cpu:", 4) != 0 &&
        find_name(arena_strndup(arena, name, (size_t)(colon - name)), arena))
        changes = colon;
    if (!changes)
        return get(out, name, arena, err);
    if (get(out, arena_strndup(arena, name, (size_t)(changes - name)), arena,
            err))
        return -1;
    assert(*out);
    spec = ARENA_NEW(arena, struct gpu_spec, 1);
    *spec = **out;
    spec->changed_from = spec->name;
    spec->name =
        text_shown(arena_printf(arena, "%s%s", spec->name, changes), arena);
    *out = spec;
    return gpu_changes_apply(spec, changes + 1, strlen(changes + 1), arena,
                             err);
}

static bool has_word(const char *text, const char *word, size_t len)
{
    for (const char *pos = text; *pos; pos++)
        if (!strncasecmp(pos, word, len) && !isalnum((unsigned char)pos[len]) &&
            (pos == text || !isalnum((unsigned char)pos[-1])))
            return true;
    return false;
}

/* Returns the number of words in a GPU's name if all of these words occur in
 * the text. Returns 0 otherwise. */
static unsigned common_words(const char *name, const char *text)
{
    unsigned n_words = 0;

    for (; *name; n_words++) {
        size_t len = strcspn(name, "-");

        if (!has_word(text, name, len))
            return 0;
        name += len + (name[len] == '-');
    }
    return n_words;
}

int gpu_spec_of_device(const struct gpu_spec **out, const char *device,
                       struct arena *arena, struct err *err)
{
    const char *best = NULL;
    unsigned most = 0;

    if (!strncmp(device, "cpu:", 4))
        return gpu_spec_get(out, "cpu", arena, err);
    for (const struct gpu_name *name = all_names(arena); name->text; name++)
        if (common_words(name->text, device) > most) {
            most = common_words(name->text, device);
            best = name->gpu;
        }
    *out = NULL;
    return best ? gpu_spec_get(out, best, arena, err) : 0;
}
