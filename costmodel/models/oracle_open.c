/* SPDX-License-Identifier: MIT */
#include "costmodel/models/oracle_open.h"
#include "base/file.h"
#include "base/text.h"
#include "core/plan_price.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/models/learned.h"
#include "costmodel/models/oracles.h"

#include <string.h>

struct opener {
    const char *name;
    /* Argument after the name: ":..." if the argument is required; "[:...]" or
     * "" if it may be omitted. */
    const char *argument;
    int (*open)(struct oracle **out, const char *argument,
                const struct problem *problem, struct arena *arena,
                struct err *err);
    unsigned heeds; /* options that change the prices, as a mask of enum heed */
};

#define OPENER(id, name, argument, heeds) \
    {name, argument, oracle_##id##_open, heeds},
static const struct opener openers[] = {ORACLES(OPENER)};
#define N_OPENERS (sizeof openers / sizeof *openers)

/* Returns the text after the opener's name and a colon. Returns NULL if the
 * text begins with another name. */
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
    return err_usage(err, "no cost model '%s'; known are %s", spec,
                     ORACLE_CHOICES);
}

/* Returns the mask of options that the settings "KEY=VALUE,..." of TorchRec's
 * costs override. */
static unsigned overridden(const char *settings)
{
    static const struct {
        const char *start;
        enum heed heed;
    } keys[] = {{"intra=", HEED_INTRA}, {"inter=", HEED_INTER}};
    unsigned mask = 0;

    for (const char *next = settings; next; next = strchr(next, ',')) {
        next += *next == ',';
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (!strncmp(next, keys[k].start, strlen(keys[k].start)))
                mask |= keys[k].heed;
    }
    return mask;
}

unsigned oracle_heeds(const char *spec)
{
    for (size_t i = 0; i < N_OPENERS; i++) {
        const char *argument = argument_of(&openers[i], spec);

        if (argument)
            return openers[i].open == oracle_torchrec_open
                       ? openers[i].heeds & ~overridden(argument)
                       : openers[i].heeds;
    }
    return HEED_ALL;
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

    /* a match is "h100" or "h100-fp16"; no match is "h1000" or another GPU's
     * "h100-pcie" */
    return !strncmp(model, gpu, len) &&
           (!model[len] || (model[len] == '-' && text_choice(gpus, model) < 0));
}

/* Returns the file of a GPU's shipped model. If several models match the GPU,
 * the shortest name is chosen, and among equally short names the first one in
 * order. Returns NULL if no name matches. */
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
    file = shipped_model(spec->changed_from ? spec->changed_from : spec->name,
                         arena);
    if (file && !spec->has_own_lookups)
        return oracle_open(out, arena_printf(arena, "model:%s", file), problem,
                           arena, err);
    if (oracle_open(out, arena_printf(arena, "roofline:%s", spec->name),
                    problem, arena, err))
        return -1;
    if (file)
        (*out)->warning = text_say(
            arena,
            "'%s' changes figures of lookups, so '%s' prices the plan, not "
            "'model:%s'",
            spec->name, (*out)->cost.name, file);
    return 0;
}
