/* SPDX-License-Identifier: MIT */
#include "emit/page.h"

#include "base/file.h"

#include <assert.h>
#include <string.h>

#define FORMAT_VERSION 1
/* text in the page that is replaced by the documents */
#define PLACE "@DOCUMENTS@"
/* Smallest number of similar shards that are folded into one piece. */
#define N_FOLDED 4u

FILE_TEXT(report_page_html, "data/report/page.html");

const char *page_kind(const json_t *content)
{
    static const struct {
        const char *kind, *members[2];
    } kinds[] = {
        {"plan", {"neuroshard_plan", "shards"}},
        {"compare", {"planners", "cost_model"}},
        {"range", {"counts", "smallest_gpus"}},
        {"diff", {"moves", "before"}},
        {"run", {"world", "machine"}},
        {"record", {"phases", "causes"}},
        {"eval", {"held_out", "intervals"}},
        {"trace", {"trace", "trace"}},
    };

    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (json_object_get(content, kinds[i].members[0]) &&
            json_object_get(content, kinds[i].members[1]))
            return kinds[i].kind;
    return NULL;
}

/* Returns true if `next` continues the run of `shard`: it is on the next device
 * and has the same columns and the next rows. Replicas have the same rows
 * instead. */
static bool goes_on(const struct shard *shard, const struct shard *next)
{
    return next->table == shard->table && next->device == shard->device + 1 &&
           next->col_begin == shard->col_begin &&
           next->col_end == shard->col_end &&
           next->row_begin == (shard_is_replica(shard->kind) ? shard->row_begin
                                                             : shard->row_end);
}

void page_fold_shards(json_t *content, const struct plan *plan)
{
    json_t *list = json_array(), *piece;
    size_t n;

    for (size_t i = 0; i < plan->n_shards; i += n) {
        const struct shard *first = &plan->shards[i];
        double standalone_ms = 0;

        for (n = 1; i + n < plan->n_shards && goes_on(&first[n - 1], &first[n]);
             n++)
            ;
        if (n < N_FOLDED)
            n = 1;
        for (size_t k = i; k < i + n; k++)
            standalone_ms += plan->shard_ms ? plan->shard_ms[k] : 0;
        json_array_append_new(list, piece = shard_to_json(first));
        json_object_set_new(piece, "row_end", json_whole(first[n - 1].row_end));
        json_object_set_new(piece, "n", json_integer((json_int_t)n));
        json_object_set_new(piece, "alone_ms", json_real(standalone_ms));
    }
    json_object_set_new(content, "pieces", list);
    json_object_del(content, "shards");
}

/* Appends JSON text with every '<' written as an escape. In JSON '<' occurs
 * only in strings. So text from a file can never close an HTML element of the
 * page. */
static int add_escaped(const char *text, size_t len, void *buf)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] == '<')
            buf_add(buf, "\\u003c", 6);
        else
            buf_add(buf, text + i, 1);
    return 0;
}

void page_print(json_t *documents, struct buf *out)
{
    const char *place = strstr(report_page_html, PLACE);
    json_t *root =
        json_pack("{s:i, s:s, s:O}", "neuroshard_report", FORMAT_VERSION,
                  "version", NEUROSHARD_VERSION, "documents", documents);

    /* the page is compiled into the program, so it has the placeholder */
    assert(place);
    buf_add(out, report_page_html, (size_t)(place - report_page_html));
    json_dump_callback(root, add_escaped, out,
                       JSON_COMPACT | JSON_REAL_PRECISION(17));
    place += strlen(PLACE);
    buf_add(out, place, strlen(place));
    json_decref(root);
}
