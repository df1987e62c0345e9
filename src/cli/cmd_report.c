/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/planning.h"
#include "costmodel/oracles.h"
#include "emit/compare_table.h"
#include "emit/page.h"
#include "io/plan_json.h"
#include "search/search.h"

#include <string.h>

#define MAX_FILES 64
#define RIVAL_LIMIT_MS 2000 /* for TorchRec's planner, which may take long */

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_OUTPUT, "FILE", "-", 0, 0, NULL,
     "the page to write; '-' is standard output"},
    {0},
};

/* Plans the same with the rules of others. */
static void run_rivals(struct compare_entry *entries, size_t n,
                       const struct plan *plan, const struct oracle *oracle,
                       struct arena *arena)
{
    struct contender_inputs given = {.oracle = oracle,
                                     .limit_ms = RIVAL_LIMIT_MS};
    struct oracle *torchrec = NULL;
    struct err err = {0};

    if (oracle_open(&torchrec, "torchrec", &plan->problem, arena, &err))
        return;
    given.torchrec = torchrec;
    for (size_t i = 0; i < n; i++) {
        const struct contender *rival = &search_contenders[i];
        struct plan other = {.problem = plan->problem};
        double start_ms = clock_ms();

        entries[i].planner = rival->name;
        if (!contender_place(&other, rival, &given, arena, &err))
            compare_fill(&entries[i], &other);
        else
            entries[i].reason = arena_strdup(arena, err.msg);
        entries[i].search_ms = clock_ms() - start_ms;
    }
    oracle_close(torchrec);
}

/* As compare prints them, without searches; null where the cost model that
 * priced the plan is not at hand. */
static json_t *rivals_to_json(const struct plan *plan, struct arena *arena)
{
    struct plan again = *plan;
    struct oracle *oracle = NULL;
    struct err err = {0};
    struct compare_task task = {.n_tables = plan->problem.n_tables};
    struct comparison all = {.tasks = &task, .n_tasks = 1};
    struct compare_mean *means;
    json_t *root = NULL;
    size_t n = 0;

    while (!search_contenders[n].search)
        n++;
    if (oracle_open(&oracle, plan->cost.name, &plan->problem, arena, &err) ||
        plan_price(&again, oracle, arena, &err) || !plan->cost.hash ||
        strcmp(again.cost.hash, plan->cost.hash) != 0)
        goto out;
    all.n_planners = n + 1;
    all.cost_model = oracle->name;
    all.hash = oracle->hash;
    all.basis = cost_basis_names[oracle->basis];
    task.entries = ARENA_NEW(arena, struct compare_entry, n + 1);
    task.entries[n].planner = "neuroshard";
    compare_fill(&task.entries[n], &again);
    run_rivals(task.entries, n, plan, oracle, arena);
    means = ARENA_NEW(arena, struct compare_mean, n + 1);
    compare_means(means, &all);
    root = compare_to_json(&all, means, 1);
    json_array_remove(json_object_get(root, "planners"), n);
out:
    oracle_close(oracle);
    return root ? root : json_null();
}

/* In place of what the file has: the plan as it was read, and what follows from
 * it. */
static int add_plan(json_t *document, const char *text, size_t len,
                    const char *path, struct arena *arena, struct err *err)
{
    struct plan plan;
    json_t *content = NULL;

    if (plan_from_json(&plan, text, len, path, arena, err))
        return -1;
    if (!plan.devices)
        return err_set(err, ERR_INPUT,
                       "%s: the plan is not priced, which 'neuroshard cost' "
                       "does",
                       path);
    text = plan_to_json(&plan, arena);
    if (json_parse(&content, text, strlen(text), path, err))
        return -1;
    page_fold_shards(content, &plan);
    json_object_set_new(document, "content", content);
    json_object_set_new(document, "found",
                        json_pack("{s:f, s:o}", "error_frac",
                                  plan_error_frac(&plan), "rivals",
                                  rivals_to_json(&plan, arena)));
    return 0;
}

static int add_document(json_t *documents, const char *path,
                        struct arena *arena, struct err *err)
{
    json_t *content = NULL, *document;
    const char *text, *kind;
    size_t len;

    if (file_read(&text, &len, path, arena, err) ||
        json_parse(&content, text, len, path, err))
        return -1;
    kind = page_kind(content);
    if (!kind) {
        json_decref(content);
        return err_set(err, ERR_INPUT, "%s: is neither " PAGE_KINDS, path);
    }
    document =
        json_pack("{s:s, s:s, s:o}", "file", text_shown(file_name(path), arena),
                  "kind", kind, "content", content);
    json_array_append_new(documents, document);
    return strcmp(kind, "plan")
               ? 0
               : add_plan(document, text, len, path, arena, err);
}

/* What was written, and what is in it. */
static void print_json(const struct cli *cli, json_t *documents, size_t n_bytes)
{
    json_t *list = json_array(), *document;
    size_t i;

    json_array_foreach(documents, i, document) json_array_append_new(
        list, json_pack("{s:O, s:O}", "file", json_object_get(document, "file"),
                        "kind", json_object_get(document, "kind")));
    cli_print_json(json_pack("{s:s, s:I, s:o}", "output",
                             cli_shown(cli, "output"), "bytes",
                             (json_int_t)n_bytes, "documents", list));
}

static int run_report(struct cli *cli, struct err *err)
{
    json_t *documents;
    struct buf page = {0};
    int rc = 0;

    if (cli_check_output(cli, err))
        return -1;
    documents = json_array();
    for (size_t i = 0; !rc && i < cli->n_args; i++)
        rc = add_document(documents, cli->args[i], cli->arena, err);
    if (!rc) {
        page_print(documents, &page);
        rc = file_write(cli_string(cli, "output"), page.data, page.len, err);
    }
    if (!rc && cli_given(cli, "json"))
        print_json(cli, documents, page.len);
    buf_release(&page);
    json_decref(documents);
    return rc;
}

const struct command command_report = {
    .name = "report",
    .synopsis = "FILE... -o PAGE",
    .summary = "draw a plan, or what others print with --json, for a browser",
    .options = {own_options},
    .json = "say as JSON what was written",
    .n_args = {1, MAX_FILES},
    .run = run_report,
};
