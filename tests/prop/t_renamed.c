/* SPDX-License-Identifier: MIT */
/* Names do not matter. Shipped and random lists are searched three times:
 * unchanged, with other names of tables and groups, and also with their lines
 * in another order. Every plan costs the same to the last digit, and so does
 * the bound. */
#include "base/text.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/oracles.h"
#include "io/tables_csv.h"
#include "io/tables_io.h"
#include "search/search.h"
#include "tests/judge.h"
#include "tests/tap.h"
#include "tests/unit/search/fake.h"

#include <glob.h>

#define EFFORT 20000
#define MAX_TABLES 60
#define MAX_GROUPS 4

struct list {
    struct rng rng;
    struct arena arena;
    struct table_list tables;
    const char *source;
    uint32_t n_devices;
    uint64_t memory_bytes;
    const char *cost;
};

static const struct kinds {
    const char *name;
    unsigned kinds;
} allowed[] = {{"all kinds", SHARD_ALL_KINDS},
               {"row cuts", SHARD_TABLE | SHARD_ROW}};

/* --- lists --- */

static const char *draw_text(struct list *list)
{
    char *text = arena_alloc(&list->arena, 13, 1);

    for (int i = 0; i < 12; i++)
        text[i] = (char)('a' + rng_below(&list->rng, 26));
    return text;
}

static void draw_bins(struct table *table, struct rng *rng)
{
    double sum = 0;

    table->has_bins = true;
    table->skew_assumed = false;
    for (unsigned k = 0; k < REUSE_BINS; k++)
        sum += table->bins[k] = rng_uniform(rng) / (1 + k * k);
    for (unsigned k = 0; k < REUSE_BINS; k++)
        table->bins[k] /= sum;
}

static void draw_table(struct list *list, struct table *table)
{
    struct rng *rng = &list->rng;

    table_init(table);
    table->num_embeddings = (uint64_t)exp(log(100) + rng_uniform(rng) * 12);
    table->dim = 16u << rng_below(rng, 4);
    table->pooling_factor = floor(1 + rng_uniform(rng) * 50);
    if (!rng_below(rng, 3)) {
        table->zipf_alpha = 2 * rng_uniform(rng);
        table->skew_assumed = false;
    }
    if (!rng_below(rng, 6))
        draw_bins(table, rng);
    if (!rng_below(rng, 6))
        table->row_order = (enum row_order)rng_below(rng, N_ROW_ORDERS);
    if (!rng_below(rng, 10))
        table->output = OUTPUT_SEQUENCE;
    if (!rng_below(rng, 10))
        table->device = (int64_t)rng_below(rng, list->n_devices);
}

/* Draws a list in which many tables are copies of earlier ones, some of them in
 * other groups. */
static void draw_list(struct list *list)
{
    const size_t n = 5 + rng_below(&list->rng, MAX_TABLES - 5);

    list->source = "drawn";
    list->tables.n_tables = n;
    list->tables.tables = ARENA_NEW(&list->arena, struct table, n);
    for (size_t t = 0; t < n; t++) {
        struct table *table = &list->tables.tables[t];

        if (t && rng_below(&list->rng, 2))
            *table = list->tables.tables[rng_below(&list->rng, t)];
        else
            draw_table(list, table);
        table->name = draw_text(list);
        table->group =
            table->device < 0 && !rng_below(&list->rng, 5)
                ? arena_printf(&list->arena, "g%u",
                               (unsigned)rng_below(&list->rng, MAX_GROUPS))
                : NULL;
    }
}

/* Opens list `number`, which does not depend on how many lists are tested.
 * Every other list is a shipped one. */
static int open_list(struct list *list, uint64_t number, const glob_t *shipped)
{
    static const char *const costs[] = {"roofline:h100", "torchrec",
                                        "model:h100.nsm"};
    const struct tables_options options = {.dim = 64};
    struct err err = {0};
    double bytes = 0;
    int rc = 0;

    memset(list, 0, sizeof(*list));
    rng_init(&list->rng, 43, number);
    list->n_devices = 2 + (uint32_t)rng_below(&list->rng, 15);
    list->cost = costs[number / 2 % 3];
    if (number % 2 == 0 && number / 2 < shipped->gl_pathc) {
        list->source = shipped->gl_pathv[number / 2];
        rc = tables_load(&list->tables, list->source, &options, &list->arena,
                         &err);
    } else {
        draw_list(list);
    }
    if (rc)
        ok(0, "%s", err.msg);
    for (size_t t = 0; t < list->tables.n_tables; t++) {
        const struct table *table = &list->tables.tables[t];

        bytes += (double)table->num_embeddings * table->dim * 4;
    }
    list->memory_bytes = (uint64_t)(bytes * (2 + 2 * rng_uniform(&list->rng)) /
                                    list->n_devices) +
                         (UINT64_C(20) << 30);
    return rc;
}

/* Renames all tables and groups. If `mixed`, also changes the order of the
 * lines. */
static void rename_list(struct table_list *out, struct list *list, bool mixed)
{
    const size_t n = list->tables.n_tables;

    *out = list->tables;
    out->tables = ARENA_NEW(&list->arena, struct table, n);
    memcpy(out->tables, list->tables.tables, n * sizeof(*out->tables));
    for (size_t t = 0; t < n; t++) {
        const char *group = list->tables.tables[t].group;
        size_t first = 0;

        out->tables[t].name = draw_text(list);
        if (!group)
            continue;
        while (!list->tables.tables[first].group ||
               strcmp(list->tables.tables[first].group, group) != 0)
            first++;
        out->tables[t].group =
            first == t ? draw_text(list) : out->tables[first].group;
    }
    for (size_t t = n - 1; mixed && t > 0; t--) {
        const size_t other = rng_below(&list->rng, t + 1);
        const struct table swap = out->tables[t];

        out->tables[t] = out->tables[other];
        out->tables[other] = swap;
    }
}

/* --- plans --- */

static int search_list(struct plan *plan, struct list *list,
                       const struct table_list *tables, unsigned kinds)
{
    const struct tables_options options = {0};
    struct search_options search;
    struct table_list read;
    struct buf text = {0};
    struct oracle *oracle;
    struct err err = {0};
    int rc;

    tables_to_csv(&text, tables);
    rc = tables_from_text(&read, text.data, text.len, "list", &options,
                          &list->arena, &err);
    buf_release(&text);
    *plan = (struct plan){0};
    fake_cluster(&plan->problem, list->n_devices, list->memory_bytes,
                 &list->arena);
    plan->problem.batch = 65536;
    /* asks for no host time, which would hide the other costs */
    plan->problem.job.asks_host = true;
    plan->problem.kinds = kinds;
    plan->problem.row_cut = ROW_CUT_RANKS;
    search_options_init(&search);
    search.effort = EFFORT;
    if (!rc) {
        plan->problem.tables = read.tables;
        plan->problem.n_tables = read.n_tables;
        problem_find_hot_rows(&plan->problem, &list->arena);
        rc = oracle_open(&oracle, list->cost, &plan->problem, &list->arena,
                         &err) ||
             search_full(plan, oracle, &search, &list->arena, &err) ||
             judge_plan(plan, oracle, &list->arena, &err);
    }
    if (rc)
        ok(0, "%s: a plan: %s", list->source, err.msg);
    return rc;
}

static bool is_same(double a, double b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void try_list(struct list *list, const struct kinds *kinds)
{
    struct plan before, after;
    struct table_list renamed;

    if (search_list(&before, list, &list->tables, kinds->kinds))
        return;
    for (int mixed = 0; mixed < 2; mixed++) {
        rename_list(&renamed, list, mixed);
        if (search_list(&after, list, &renamed, kinds->kinds))
            continue;
        ok(before.total_ms == after.total_ms &&
               is_same(before.bound_ms, after.bound_ms),
           "%s, %zu tables x %u, %s, %s, other names%s: %.17g ms, %.17g, "
           "bound %.17g, %.17g",
           list->source, list->tables.n_tables, list->n_devices, list->cost,
           kinds->name, mixed ? " and lines" : "", before.total_ms,
           after.total_ms, before.bound_ms, after.bound_ms);
    }
}

int main(void)
{
    const size_t n = tap_size(8, 40);
    glob_t shipped;

    if (glob("data/tables/*.csv", 0, NULL, &shipped))
        shipped.gl_pathc = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(allowed) / sizeof(*allowed); k++) {
            struct list list;

            if (!open_list(&list, i, &shipped))
                try_list(&list, &allowed[k]);
            arena_release(&list.arena);
        }
    globfree(&shipped);
    return tap_done();
}
