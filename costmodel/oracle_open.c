/* SPDX-License-Identifier: MIT */
#include "costmodel/oracles.h"

#include <dirent.h>
#include <string.h>

#include "base/file.h"

struct opener {
    const char *prefix;
    const char *argument;
    int (*open)(struct oracle **out, const char *argument,
                const struct problem *problem, struct arena *arena,
                struct err *err);
};

static const struct opener openers[] = {
    {"model:", "FILE", oracle_learned_open},
    {"roofline:", "NAME", oracle_roofline_open},
    {"reference:", "DIR", oracle_reference_open},
};

#define N_OPENERS (sizeof openers / sizeof *openers)

int oracle_open(struct oracle **out, const char *spec,
                const struct problem *problem, struct arena *arena,
                struct err *err)
{
    const char *known = "";

    for (size_t i = 0; i < N_OPENERS; i++) {
        const struct opener *opener = &openers[i];
        size_t len = strlen(opener->prefix);

        if (!strncmp(spec, opener->prefix, len) && spec[len])
            return opener->open(out, spec + len, problem, arena, err);
        known = arena_printf(arena, "%s%s%s%s", known, i ? ", " : "",
                             opener->prefix, opener->argument);
    }
    return err_set(err, ERR_USAGE, "no cost model '%s'; there are %s", spec,
                   known);
}

static bool is_model_of(const char *file, const char *gpu)
{
    size_t len = strlen(file), stem = strlen(gpu);

    /* "h100.nsm", "h100-fp16.nsm", but not "h1000.nsm" */
    return len >= stem + 4 && !strncmp(file, gpu, stem) &&
           (file[stem] == '.' || file[stem] == '-') &&
           !strcmp(file + len - 4, ".nsm");
}

/* The name of a GPU's shipped model: the first by name, the shortest name
 * first; or NULL. */
static const char *shipped_model(const char *gpu, struct arena *arena)
{
    const char *folder = file_find_data("models", arena);
    const char *best = NULL;
    struct dirent *entry;
    DIR *dir;

    if (!folder || !(dir = opendir(folder)))
        return NULL;
    while ((entry = readdir(dir))) {
        const char *name = entry->d_name;

        if (!is_model_of(name, gpu))
            continue;
        if (!best || strlen(name) < strlen(best) ||
            (strlen(name) == strlen(best) && strcmp(name, best) < 0))
            best = arena_strdup(arena, name);
    }
    closedir(dir);
    return best;
}

int oracle_open_for_gpu(struct oracle **out, const char *gpu,
                        const struct problem *problem, struct arena *arena,
                        struct err *err)
{
    const struct gpu_spec *spec;
    const char *file;

    if (gpu_spec_get(&spec, gpu, err))
        return -1;
    file = shipped_model(spec->name, arena);
    if (file)
        return oracle_learned_open(out, file, problem, arena, err);
    return oracle_roofline_open(out, spec->name, problem, arena, err);
}
