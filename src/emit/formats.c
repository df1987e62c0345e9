/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

#include "base/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_json(const char *text, size_t len, const char *source,
                      struct arena *arena, struct err *err)
{
    json_t *root = NULL;
    int rc = json_parse(&root, text, len, source, err);

    (void)arena;
    json_decref(root);
    return rc;
}

static const struct emitter formats[] = {
    {"torchrec", "TorchRec sharding plan as JSON", emit_torchrec, check_json},
    {"torchrec-loader", "Python module that loads that JSON",
     emit_torchrec_loader, NULL},
    {"dlrm", "shell script that trains torchrec_dlrm with the plan", emit_dlrm,
     NULL},
    {"text", "one line a shard, separated by tabs", emit_text, NULL},
    {NULL, NULL, NULL, NULL},
};

const struct emitter *emit_formats(void)
{
    return formats;
}

const struct emitter *emit_format_find(const char *name)
{
    for (const struct emitter *format = formats; format->name; format++)
        if (!strcmp(format->name, name))
            return format;
    return NULL;
}

static int add_to_buf(const char *data, size_t len, void *buf)
{
    buf_add(buf, data, len);
    return 0;
}

void emit_json_string(struct buf *out, const char *text)
{
    json_t *value = json_string(text);

    /* A text that is not UTF-8 breaks the contract. */
    if (json_dump_callback(value, add_to_buf, out, JSON_ENCODE_ANY))
        abort();
    json_decref(value);
}

void emit_lines(struct buf *out, const char *const *lines, size_t n_lines)
{
    for (size_t i = 0; i < n_lines; i++)
        buf_printf(out, "%s\n", lines[i]);
}

size_t emit_shards_end(const struct plan *plan, size_t begin)
{
    size_t end = begin + 1;

    while (end < plan->n_shards &&
           plan->shards[end].table == plan->shards[begin].table)
        end++;
    return end;
}

int emit_text(const struct plan *plan, const struct emit_options *options,
              struct buf *out, struct err *err)
{
    (void)options;
    (void)err;
    buf_printf(out, "table\tkind\trow_begin\trow_end\tcol_begin\tcol_end\t"
                    "device\tmemory_bytes\talone_ms\n");
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        struct memory_items memory = shard_memory(&plan->problem, shard);

        buf_printf(
            out, "%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%u\t%u\t%u\t%" PRIu64 "\t",
            plan->problem.tables[shard->table].name,
            shard_kind_name(shard->kind), shard->row_begin, shard->row_end,
            shard->col_begin, shard->col_end, shard->device, memory.total);
        if (plan->shard_ms && !isnan(plan->shard_ms[i]))
            buf_printf(out, "%.6g\n", plan->shard_ms[i]);
        else
            buf_printf(out, "-\n");
    }
    return 0;
}
