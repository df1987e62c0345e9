/* SPDX-License-Identifier: MIT */
#include "costmodel/oracles.h"

#include "base/file.h"
#include "base/text.h"
#include "costmodel/gpu_file.h"

#include <string.h>

struct opener {
    const char *name;
    const char *argument; /* ":..."; "[:...]" or "" where it may be left out */
    int (*open)(struct oracle **out, const char *argument,
                const struct problem *problem, struct arena *arena,
                struct err *err);
    bool has_comm_nets; /* in the place of bandwidths */
};

#define OPENER(id, name, argument, has_comm_nets) \
    {name, argument, oracle_##id##_open, has_comm_nets},
static const struct opener openers[] = {ORACLES(OPENER)};
#define N_OPENERS (sizeof openers / sizeof *openers)

/* What stands behind the opener's name and a colon, or NULL where the text is
 * not for this opener. */
static const char *argument_of(const struct opener *opener, const char *spec)
{
    size_t len = strlen(opener->name);

    if (strncmp(spec, opener->name, len) != 0)
        return NULL;
    if (spec[len] == ':' && spec[len + 1])
        return spec + len + 1;
    return !spec[len] && *opener->argument != ':' ? "" : NULL;
}

int oracle_open(struct oracle **out, const char *spec,
                const struct problem *problem, struct arena *arena,
                struct err *err)
{
    for (size_t i = 0; i < N_OPENERS; i++) {
        const struct opener *opener = &openers[i];
        const char *argument = argument_of(opener, spec);

        if (!argument)
            continue;
        if (opener->open(out, argument, problem, arena, err))
            return -1;
        oracle_keep_to(*out, problem);
        return 0;
    }
    return err_usage(err, "no cost model '%s'; there are %s", spec,
                     ORACLE_CHOICES);
}

bool oracle_takes_bandwidths(const char *spec)
{
    for (size_t i = 0; i < N_OPENERS; i++)
        if (argument_of(&openers[i], spec))
            return !openers[i].has_comm_nets;
    return true;
}

int oracle_gpu(const char **gpu, const char *spec, struct arena *arena,
               struct err *err)
{
    *gpu = strncmp(spec, "roofline:", 9) || !spec[9] ? NULL : spec + 9;
    return strncmp(spec, "model:", 6) || !spec[6]
               ? 0
               : oracle_learned_gpu(gpu, spec + 6, arena, err);
}

int oracle_price_plan(struct plan *plan, const char *spec, struct arena *arena,
                      struct err *err)
{
    struct oracle *oracle;

    if (oracle_open(&oracle, spec, &plan->problem, arena, err))
        return -1;
    return plan_price(plan, oracle, arena, err);
}

static bool is_model_of(const char *model, const char *gpu,
                        const char *const *gpus)
{
    size_t len = strlen(gpu);

    /* "h100", "h100-fp16", but neither "h1000" nor another GPU's "h100-pcie" */
    return !strncmp(model, gpu, len) &&
           (!model[len] || (model[len] == '-' && text_choice(gpus, model) < 0));
}

/* The file of a GPU's shipped model: the first by name, the shortest name
 * first; or NULL. */
static const char *shipped_model(const char *gpu, struct arena *arena)
{
    const char *const *model = file_list_data("models", ".nsm", arena);
    const char *const *gpus = gpu_names(arena);
    const char *best = NULL;

    for (; *model; model++)
        if (is_model_of(*model, gpu, gpus) &&
            (!best || strlen(*model) < strlen(best)))
            best = *model;
    return best ? arena_printf(arena, "%s.nsm", best) : NULL;
}

int oracle_open_for_gpu(struct oracle **out, const char *gpu,
                        const struct problem *problem, struct arena *arena,
                        struct err *err)
{
    const struct gpu_spec *spec;
    const char *file;

    if (gpu_spec_get(&spec, gpu, arena, err))
        return -1;
    file = shipped_model(spec->name, arena);
    return oracle_open(out,
                       file ? arena_printf(arena, "model:%s", file)
                            : arena_printf(arena, "roofline:%s", spec->name),
                       problem, arena, err);
}
