/* SPDX-License-Identifier: MIT */
#include "io/plan_torchrec_tiers.h"

#include "base/text.h"
#include "core/cache_pools.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *names; /* names of the kernels, separated by '|' */
    enum tier tier;
} kernels[] = {
    {"fused|dense|batched_fused|batched_dense", TIER_HBM},
    {"fused_uvm_caching|batched_fused_uvm_caching", TIER_CACHED},
    {"fused_uvm|batched_fused_uvm", TIER_HOST},
};

int torchrec_read_kernel(struct torchrec_entry *entry,
                         const struct torchrec_reader *reader, struct err *err)
{
    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        if (text_which(kernels[i].names, entry->kernel) >= 0) {
            entry->tier = kernels[i].tier;
            return 0;
        }
    if (!reader->needs_kernels)
        return 0;
    return err_input(err,
                     "table '%s' has the kernel '%s', but only fused, dense, "
                     "fused_uvm and fused_uvm_caching kernels can be planned",
                     entry->fqn, entry->kernel);
}

static int set_load_factor(struct torchrec_entry *entry, double factor,
                           struct err *err)
{
    entry->load_factor = factor;
    if (factor >= CACHE_MIN_LOAD_FACTOR && factor <= 1)
        return 0;
    return err_input(err, "table '%s' has a load factor of %g, not in %g to 1",
                     entry->fqn, factor, CACHE_MIN_LOAD_FACTOR);
}

/* Compares a text with a name in either case. The text is a name, or an enum as
 * Python prints it, such as "<DataType.FP32: 'FP32'>". */
static bool is_named(const char *text, const char *name)
{
    const char *dot = *text == '<' ? strchr(text, '.') : NULL;
    const char *start = dot ? dot + 1 : text;
    const size_t len = strcspn(start, ":>");

    return len == strlen(name) && !strncasecmp(start, name, len);
}

/* Returns whether a member of cache_params leaves the cache as plans have it:
 * by the LRU rule, in the precision of the table, with FBGEMM's reserve. */
static bool is_usual(const struct torchrec_reader *reader,
                     const struct torchrec_entry *entry, const char *key,
                     const json_t *value)
{
    const struct table *table = &reader->plan->problem.tables[entry->table];
    const char *text = json_string_value(value);

    if (json_is_null(value) || !strcmp(key, "stats"))
        return true;
    if (!text)
        return false;
    return (!strcmp(key, "algorithm") && is_named(text, "LRU")) ||
           (!strcmp(key, "precision") &&
            is_named(text, precision_names[table->precision]));
}

/* Sets the pipeline of the job. All cached tables have the same. */
static int set_pipeline(struct torchrec_reader *reader,
                        const struct torchrec_entry *entry, bool is_ahead,
                        struct err *err)
{
    if (reader->cached && reader->is_ahead != is_ahead)
        return err_input(err,
                         "table '%s' %s a prefetch_pipeline, but table '%s' "
                         "%s; a job has one pipeline",
                         entry->fqn, is_ahead ? "has" : "has not",
                         reader->cached, is_ahead ? "has not" : "has");
    reader->cached = entry->fqn;
    reader->is_ahead = is_ahead;
    if (is_ahead)
        reader->plan->problem.job.pipeline = PIPELINE_PREFETCH;
    return 0;
}

int torchrec_read_cache(struct torchrec_entry *entry,
                        struct torchrec_reader *reader, json_t *params,
                        struct err *err)
{
    const json_t *factor = json_object_get(params, "load_factor");
    const json_t *ahead = json_object_get(params, "prefetch_pipeline");
    const char *key;
    json_t *value;

    if (entry->tier != TIER_CACHED)
        return 0;
    if (params && !json_is_object(params) && !json_is_null(params))
        return err_input(err, "cache_params of table '%s' are not an object",
                         entry->fqn);
    json_object_foreach(params, key, value)
    {
        const bool is_known =
            (value == factor &&
             (json_is_number(value) || json_is_null(value))) ||
            (value == ahead && (json_is_boolean(value) || json_is_null(value)));

        if (!is_known && !is_usual(reader, entry, key, value))
            return err_input(err,
                             "cache_params of table '%s' has the member '%s', "
                             "which cannot be planned",
                             entry->fqn, key);
    }
    if (json_is_number(factor) &&
        set_load_factor(entry, json_number_value(factor), err))
        return -1;
    return set_pipeline(reader, entry, json_is_true(ahead), err);
}

int torchrec_read_load_factor(struct torchrec_entry *entry, const char *cell,
                              struct err *err)
{
    double factor;

    if (entry->tier != TIER_CACHED || !cell || !strcmp(cell, "None"))
        return 0;
    return set_load_factor(entry, text_to_double(cell, &factor) ? factor : NAN,
                           err);
}

void torchrec_add_load_factor(struct torchrec_reader *reader,
                              const struct torchrec_entry *entry)
{
    struct plan *plan = reader->plan;
    const bool is_told = entry->load_factor > 0;

    if (entry->tier != TIER_CACHED)
        return;
    if (!plan->load_factors)
        plan->load_factors = ARENA_NEW(reader->arena, double, reader->n_room);
    plan->load_factors[entry->table] =
        is_told ? entry->load_factor : TORCHREC_LOAD_FACTOR;
    if (!is_told && reader->needs_kernels && reader->options->warn)
        reader->options->warn(
            reader->options->warn_ctx,
            arena_printf(reader->arena,
                         "table '%s' is cached, but the plan has no load "
                         "factor; FBGEMM's default of %g is assumed",
                         entry->fqn, TORCHREC_LOAD_FACTOR));
}
