/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

#include "core/memory.h"

#include <inttypes.h>

#define EMIT_ENTRY(name, text) &emit_##name,
const struct emitter *const emit_formats[] = {EMIT_FORMATS(EMIT_ENTRY)};

int emit_check_json(const char *text, size_t len, const char *source,
                    struct arena *arena, struct err *err)
{
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, source, err);

    (void)arena;
    json_decref(root);
    return rc;
}

int emit_one_group(const struct problem *problem, const char *format,
                   struct err *err)
{
    return problem_n_groups(problem) == 1
               ? 0
               : err_input(err, "the plan has %u groups, which %s has not",
                           problem_n_groups(problem), format);
}

size_t emit_shards_end(const struct plan *plan, size_t begin)
{
    size_t end = begin + 1;

    while (end < plan->n_shards &&
           plan->shards[end].table == plan->shards[begin].table)
        end++;
    return end;
}

static int print_shards(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    const bool has_tiers = plan->problem.cluster.host_bytes > 0;

    (void)options;
    (void)err;
    buf_printf(out,
               "table\tkind\trow_begin\trow_end\tcol_begin\tcol_end\t"
               "device\tmemory_bytes\talone_ms%s\n",
               has_tiers ? "\ttier" : "");
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        struct memory_items memory = shard_memory(&plan->problem, shard);

        buf_printf(
            out, "%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u\t%" PRIu64 "\t",
            plan->problem.tables[shard->table].name,
            shard_kind_name(shard->kind), shard->row_begin, shard->row_end,
            shard->col_begin, shard->col_end, shard->device, memory.total);
        if (plan->shard_ms && !isnan(plan->shard_ms[i]))
            buf_printf(out, "%.6g", plan->shard_ms[i]);
        else
            buf_printf(out, "-");
        buf_printf(out, "%s%s\n", has_tiers ? "\t" : "",
                   has_tiers ? tier_names[shard->tier] : "");
    }
    return 0;
}

const struct emitter emit_text = {print_shards, NULL};
