/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/file.h"
#include "base/file_write.h"
#include "base/path.h"
#include "base/text.h"
#include "cli/plan_report.h"
#include "cli/planning.h"
#include "core/plan_error.h"
#include "core/plan_price.h"
#include "core/what_if.h"
#include "costmodel/models/oracle_open.h"
#include "emit/page.h"
#include "emit/plan_diff.h"
#include "emit/report_figures.h"
#include "io/csv.h"
#include "io/plan_json.h"
#include "io/plan_json_write.h"
#include "search/planners.h"

#include <string.h>

#define MAX_FILES 64
#define TRACE_HEAD "evaluations,"

static const struct option_spec own_options[] = {
    {"output", 'o', OPTION_RESULT, "FILE", "-", 0, 0, NULL,
     "HTML page to write; '-' is standard output"},
    {0},
};

/* Returns the results of other planners in the form that `compare` prints,
 * without the searches of this program. Returns null if TorchRec's costs are
 * not available. */
static json_t *rivals_to_json(const struct plan *plan,
                              const struct oracle *oracle, struct arena *arena)
{
    struct compare_entry entries[N_RIVALS], ours = {0};
    struct rivals *rivals = ARENA_NEW(arena, struct rivals, 1);
    struct oracle *torchrec = NULL;
    struct err err = {0};
    size_t n = 0;
    int rc;

    rivals->arena = arena;
    rc = planner_torchrec_costs(&torchrec, oracle, &plan->problem, arena,
                                &err) ||
         rivals_ask(
             rivals, &plan->problem,
             (struct contender_inputs){.oracle = oracle, .torchrec = torchrec},
             &err);
    compare_fill(&ours, plan);
    for (size_t i = 0; !rc && i < N_RIVALS; i++) {
        if (!rivals->list[i].by)
            continue;
        entries[n] = planner_entry(&rivals->list[i]);
        compare_pair(&entries[n++], &ours);
    }
    return rc ? json_null() : compare_entries_to_json(entries, n);
}

/* Adds the bottleneck of the plan and, for each table, how much shorter a step
 * would be without this table. */
static void add_binding(json_t *found, const struct plan *plan,
                        const struct oracle *oracle, struct arena *arena)
{
    const size_t n = plan->problem.n_tables;
    const double *without_ms = what_if_without(plan, oracle, arena);
    json_t *saves = json_array();
    struct bottleneck binds;

    bottleneck_find(&binds, plan, oracle_waits(oracle), without_ms);
    for (size_t t = 0; t < n; t++)
        json_array_append_new(
            saves, json_real_or_null(plan->total_ms - without_ms[t]));
    json_object_update_new(
        found,
        json_pack("{s:b, s:{s:I, s:s, s:f, s:s?, s:f}, s:o}", "waits",
                  oracle_waits(oracle), "binds", "gpu", (json_int_t)binds.gpu,
                  "phase", binds.phase, "phase_ms", binds.phase_ms, "table",
                  binds.table < n ? plan->problem.tables[binds.table].name
                                  : NULL,
                  "table_ms", binds.table_ms, "saves_ms", saves));
}

/* Returns figures derived from the plan. If the cost model that priced the plan
 * cannot be opened, the result contains only the error. */
static json_t *find(const struct plan *plan, struct arena *arena)
{
    json_t *found = json_pack("{s:f}", "error_frac", plan_error_frac(plan));
    struct plan again = *plan;
    struct oracle *oracle = NULL;
    struct err err = {0};

    again.problem.row_cut = plan_row_cut(plan);
    if (plan->cost.name &&
        !oracle_open(&oracle, plan->cost.name, &again.problem, arena, &err) &&
        !plan_price(&again, oracle, arena, &err) && plan->cost.hash &&
        !strcmp(again.cost.hash, plan->cost.hash)) {
        json_object_set_new(found, "rivals",
                            rivals_to_json(&again, oracle, arena));
        add_binding(found, &again, oracle, arena);
    }
    return found;
}

/* Contents of the page. */
struct page_request {
    json_t *documents;
    struct plan_diff diff; /* the first two plans, of n_plans */
    size_t n_plans;
};

/* In the document, replaces the content of the file by the plan that was read
 * from it, and adds figures derived from the plan. */
static int add_plan(struct page_request *request, json_t *document,
                    const char *text, size_t len, const char *path,
                    struct arena *arena, struct err *err)
{
    struct plan plan;
    json_t *content;

    if (plan_from_json(&plan, text, len, path, arena, err))
        return -1;
    if (!plan_is_priced(&plan))
        return err_input(
            err,
            "%s: the plan has no predicted costs; 'neuroshard cost' adds them",
            path);
    content = plan_document(&plan);
    page_fold_shards(content, &plan);
    json_object_set_new(document, "content", content);
    json_object_set_new(document, "found", find(&plan, arena));
    if (request->n_plans < 2) {
        request->diff.paths[request->n_plans] =
            text_shown(path_name(path), arena);
        request->diff.plans[request->n_plans] = plan;
    }
    request->n_plans++;
    return 0;
}

/* If the page has two plans, it begins with what moves between them. */
static void add_pair(struct page_request *request, struct arena *arena)
{
    struct plan_diff *diff = &request->diff;

    if (request->n_plans != 2)
        return;
    plan_diff_find(diff, arena);
    json_array_insert_new(
        request->documents, 0,
        json_pack(
            "{s:s, s:s, s:o, s:b}", "file",
            arena_printf(arena, "%s and %s", diff->paths[0], diff->paths[1]),
            "kind", "diff", "content", plan_diff_to_json(diff), "pair", 1));
}

static int add_document(struct page_request *request, const char *path,
                        struct arena *arena, struct err *err)
{
    json_t *content = NULL, *document;
    const char *text, *kind;
    size_t len;

    if (file_read(&text, &len, path, arena, err) ||
        (strncmp(text, TRACE_HEAD, strlen(TRACE_HEAD))
             ? json_parse(&content, text, len, path, err)
             : csv_check(text, len, path, arena, err)))
        return -1;
    if (!content) /* a file of `plan --trace`, parsed by the page */
        content = json_pack("{s:s}", "trace", text);
    kind = page_kind(content);
    if (!kind) {
        json_decref(content);
        return err_input(err, "%s: is neither " PAGE_KINDS, path);
    }
    document =
        json_pack("{s:s, s:s, s:o}", "file", text_shown(path_name(path), arena),
                  "kind", kind, "content", content);
    json_array_append_new(request->documents, document);
    return strcmp(kind, "plan")
               ? 0
               : add_plan(request, document, text, len, path, arena, err);
}

static int run_report(struct cli *cli, struct err *err)
{
    struct page_request request = {.documents = json_array()};
    json_t *documents = request.documents, *document;
    struct buf page = {0};
    int rc = 0;
    size_t i;

    for (i = 0; !rc && i < cli->n_args; i++)
        rc = add_document(&request, cli->args[i], cli->arena, err);
    if (!rc) {
        add_pair(&request, cli->arena);
        page_print(documents, &page);
        rc = file_write(cli_string(cli, "output"), page.data, page.len, err);
    }
    json_array_foreach(documents, i, document)
    {
        json_object_del(document, "content");
        json_object_del(document, "found");
        json_object_del(document, "pair");
    }
    if (!rc)
        cli_print_json(json_pack("{s:s, s:I, s:O}", "output",
                                 cli_shown(cli, "output"), "bytes",
                                 (json_int_t)page.len, "documents", documents));
    buf_release(&page);
    json_decref(documents);
    return rc;
}

const struct command command_report = {
    .name = "report",
    .synopsis = "FILE... -o PAGE",
    .summary = "write an HTML page of a plan or of --json output",
    .options = {own_options},
    .n_args = {1, MAX_FILES},
    .run = run_report,
};
