/* SPDX-License-Identifier: MIT */
#include "emit/page.h"

#include "tests/unit/emit/fixture.h"

#include <stdlib.h>

#define N_GPUS 6

/* Returns, as text, the pieces into which the page folds the shards of a
 * plan. */
static const char *folded(struct plan *plan)
{
    json_t *content = json_pack("{s:i, s:[]}", "neuroshard_plan", 1, "shards");
    const char *text;
    char *dumped;

    fixture_finish(plan);
    plan->shard_ms = ARENA_NEW(&arena, double, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++)
        plan->shard_ms[i] = 0.5;
    page_fold_shards(content, plan);
    ok(!json_object_get(content, "shards"), "pieces in place of shards");
    dumped = json_dumps(json_object_get(content, "pieces"), JSON_COMPACT);
    text = arena_strdup(&arena, dumped);
    free(dumped);
    json_decref(content);
    return text;
}

/* Adds a table cut into `n` row blocks of ten rows each, on consecutive GPUs
 * from `first` on. */
static void add_rows(struct plan *plan, const char *name, uint32_t n,
                     uint32_t first)
{
    fixture_table(plan, name, 10 * n, 8, 1);
    for (uint32_t r = 0; r < n; r++)
        fixture_shard(plan, 10 * r, 10 * r + 10, 0, 8, first + r);
}

/* Adjacent row blocks, or replicas, are folded into one piece if there are more
 * than a few. Shards that are merely similar are not folded. */
static void test_fold(void)
{
    struct plan plan = fixture_plan(N_GPUS, N_GPUS, 64);

    add_rows(&plan, "rows", 5, 1);
    fixture_table(&plan, "copies", 7, 8, 1);
    for (uint32_t r = 0; r < N_GPUS; r++)
        fixture_shard(&plan, 0, 7, 0, 8, r);
    is_str(folded(&plan),
           "[{\"table\":0,\"kind\":\"row\",\"row_begin\":0,"
           "\"row_end\":50,\"col_begin\":0,\"col_end\":8,"
           "\"device\":1,\"n\":5,\"alone_ms\":2.5},"
           "{\"table\":1,\"kind\":\"replicate\",\"row_begin\":0,"
           "\"row_end\":7,\"col_begin\":0,\"col_end\":8,"
           "\"device\":0,\"n\":6,\"alone_ms\":3.0}]",
           "rows and replicas are a piece each");
    plan = fixture_plan(N_GPUS, N_GPUS, 64);
    add_rows(&plan, "few", 3, 0);
    is_str(folded(&plan),
           "[{\"table\":0,\"kind\":\"row\",\"row_begin\":0,"
           "\"row_end\":10,\"col_begin\":0,\"col_end\":8,"
           "\"device\":0,\"n\":1,\"alone_ms\":0.5},"
           "{\"table\":0,\"kind\":\"row\",\"row_begin\":10,"
           "\"row_end\":20,\"col_begin\":0,\"col_end\":8,"
           "\"device\":1,\"n\":1,\"alone_ms\":0.5},"
           "{\"table\":0,\"kind\":\"row\",\"row_begin\":20,"
           "\"row_end\":30,\"col_begin\":0,\"col_end\":8,"
           "\"device\":2,\"n\":1,\"alone_ms\":0.5}]",
           "a few are as they are");
}

/* Prints a page with one document and returns the documents read back from
 * it. */
static json_t *read_back(json_t *content)
{
    json_t *documents =
        json_pack("[{s:s, s:o}]", "file", "</script>.json", "content", content);
    struct buf out = {0};
    json_error_t error;
    const char *begin;
    json_t *root = NULL;

    page_print(documents, &out);
    begin = strstr(out.data, "{\"neuroshard_report\":");
    if (begin) /* the document's own text contains no '<' */
        root = json_loadb(begin, strcspn(begin, "<"), 0, &error);
    ok(root != NULL, "the page has its documents");
    buf_release(&out);
    json_decref(documents);
    return root;
}

/* The content of a document can be read back from the page unchanged. */
static void test_content(void)
{
    json_t *want = json_pack("{s:[{s:f, s:s}, {s:n}]}", "list", "third",
                             1 / 3.0, "name", "</script>", "third");
    json_t *root = read_back(json_incref(want));
    const json_t *document =
        json_array_get(json_object_get(root, "documents"), 0);

    is_str(json_string_value(json_object_get(document, "file")),
           "</script>.json", "a name as it is");
    ok(json_equal(json_object_get(document, "content"), want),
       "and all of the content");
    json_decref(root);
    json_decref(want);
}

static void test_kinds(void)
{
    json_t *plan = json_pack("{s:i, s:[]}", "neuroshard_plan", 1, "shards");
    json_t *trace = json_pack("{s:[]}", "trace");
    json_t *other = json_pack("{s:i}", "shards", 1);

    is_str(page_kind(plan), "plan", "a plan");
    is_str(page_kind(trace), "trace", "a trace");
    is_str(page_kind(other), NULL, "neither");
    json_decref(plan);
    json_decref(trace);
    json_decref(other);
}

int main(void)
{
    test_fold();
    test_content();
    test_kinds();
    arena_release(&arena);
    return tap_done();
}
