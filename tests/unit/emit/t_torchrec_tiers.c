/* SPDX-License-Identifier: MIT */
#include "emit/torchrec_tiers.h"

#include "core/plan_check.h"
#include "emit/formats.h"
#include "tests/tap.h"
#include "tests/tiered_plan.h"

static struct tiered_plan tiered;

/* Starts from a fresh plan. Returns it. */
static struct plan *fresh(void)
{
    tiered_plan_init(&tiered);
    return &tiered.plan;
}

/* Returns the output of a format, parsed, which the caller owns; NULL and an
 * error if it is refused. */
static json_t *emitted(const struct emitter *format, const struct plan *plan,
                       struct err *err)
{
    const struct emit_options options = {.module = "ebc",
                                         .sequence_module = "ec"};
    struct buf out = {0};
    json_t *root = NULL;

    if (!format->emit(plan, &options, &out, err))
        root = json_loadb(out.data, out.len, 0, NULL);
    buf_release(&out);
    return root;
}

/* Compares the kernel and the cache_params of an entry, as in
 * "fused_uvm {...}". */
static void has_cache(const json_t *entry, const char *kernel,
                      const char *params)
{
    json_t *value = json_object_get(entry, "cache_params");
    char *text = value ? json_dumps(value, JSON_SORT_KEYS) : NULL;

    is_str(json_string_value(json_object_get(entry, "compute_kernel")), kernel,
           "its kernel");
    is_str(text ? text : "none", params, "its cache_params");
    free(text);
}

static void test_kernels(void)
{
    struct err err = {0};
    json_t *root = emitted(&emit_torchrec, fresh(), &err);
    const json_t *plan = json_object_get(root, "plan");
    const json_t *ebc = json_object_get(plan, "ebc");

    ok(root != NULL, "a plan with all tiers is written");
    has_cache(json_object_get(ebc, "hot"), "fused", "none");
    has_cache(json_object_get(ebc, "small"), "dense", "none");
    has_cache(json_object_get(ebc, "wide"), "fused_uvm_caching",
              "{\"load_factor\": 0.10000000000000001}");
    has_cache(json_object_get(ebc, "tall"), "fused_uvm_caching",
              "{\"load_factor\": 0.25}");
    has_cache(json_object_get(ebc, "cold"), "fused_uvm", "none");
    has_cache(json_object_get(json_object_get(plan, "ec"), "words"),
              "fused_uvm_caching", "{\"load_factor\": 0.02}");
    json_decref(root);
    fresh()->problem.job.pipeline = PIPELINE_PREFETCH;
    root = emitted(&emit_torchrec, &tiered.plan, &err);
    ebc = json_object_get(json_object_get(root, "plan"), "ebc");
    has_cache(json_object_get(ebc, "tall"), "fused_uvm_caching",
              "{\"load_factor\": 0.25, \"prefetch_pipeline\": true}");
    has_cache(json_object_get(ebc, "cold"), "fused_uvm", "none");
    json_decref(root);
}

static void refuses(const struct emitter *format, const char *want)
{
    struct err err = {0};

    ok(!emitted(format, &tiered.plan, &err) && err.code == ERR_INPUT,
       "a plan is refused");
    is_str(err.msg, want, "with this message");
}

static void test_refused(void)
{
    struct plan *plan = fresh();
    json_t *root;

    tiered.tables[WHOLE].name = "ebc.whole";
    refuses(&emit_torchrec,
            "tables 'wide' and 'ebc.whole' have caches of their own on GPU 0, "
            "but TorchRec has one cache for the module that both are in: name "
            "another with --module or --sequence-module");
    tiered.tables[WHOLE].name = "other.whole";
    root = emitted(&emit_torchrec, plan, &(struct err){0});
    ok(root != NULL, "two modules have caches of their own");
    json_decref(root);

    /* blocks of 2 rows: the last rank has none */
    plan = fresh();
    tiered.tables[TALL].num_embeddings = 6;
    for (uint64_t r = 0; r < 3; r++) {
        tiered.shards[AT_TALL + r].row_begin = 2 * r;
        tiered.shards[AT_TALL + r].row_end = 2 * r + 2;
    }
    memmove(&tiered.shards[AT_TALL + 3], &tiered.shards[AT_TALL + 4],
            (TIERED_SHARDS - AT_TALL - 4) * sizeof(struct shard));
    plan->n_shards--;
    ok(!plan_check(plan, &(struct err){0}), "a plan with an empty row block");
    refuses(&emit_torchrec,
            "table 'tall' is cached, but some of its 4 ranks have no rows of "
            "it; TorchRec counts its load factor there, too");

    fresh()->problem.tables[WORDS].output = OUTPUT_POOLED;
    refuses(&emit_dlrm, "table 'wide' is in tier 'cached', but DLRM keeps all "
                        "tables in the memory of GPUs");
    refuses(&emit_hugectr, "table 'wide' is in tier 'cached', but HugeCTR "
                           "keeps all tables in the memory of GPUs");
}

/* --- constraints --- */

/* Sum of the hits of the first n bins. */
static double hits_of(const json_t *stats, size_t n)
{
    const json_t *hits = json_object_get(stats, "mrc_hist_counts");
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += json_real_value(json_array_get(hits, i));
    return sum;
}

/* A batch uses 320 of 1280 rows, 2 batches 480 and 4 batches 640. So a bin has
 * 10 rows, and the knots of the misses are at bins 32, 48 and 64. */
static void test_stats(void)
{
    struct table table;
    json_t *stats;
    double area;

    table_init(&table);
    table.num_embeddings = 1280;
    ok(!torchrec_cache_stats(&table), "no statistics without reach");
    table.n_reach = 3;
    memcpy(table.reach, (double[]){320, 480, 640}, 3 * sizeof(double));
    memcpy(table.misses, (double[]){160, 80, 40}, 3 * sizeof(double));
    ok(table_wrong_reach(&table) == REACH_WINDOWS, "the figures are possible");
    stats = torchrec_cache_stats(&table);
    is_i64((int64_t)json_array_size(json_object_get(stats, "mrc_hist_counts")),
           128, "bins");
    is_i64(json_integer_value(json_object_get(stats, "expected_lookups")), 320,
           "different rows of a batch");
    is_i64(json_integer_value(json_object_get(stats, "height")), 1280, "rows");
    ok(fabs(hits_of(stats, 16) - 80) < 1e-9, "half of a batch's rows");
    ok(fabs(hits_of(stats, 32) - 160) < 1e-9, "a batch's rows");
    ok(fabs(hits_of(stats, 40) - 200) < 1e-9, "between 1 and 2 batches");
    ok(fabs(hits_of(stats, 48) - 240) < 1e-9, "2 batches");
    ok(fabs(hits_of(stats, 64) - 280) < 1e-9, "4 batches");
    ok(fabs(hits_of(stats, 127) - 280) < 1e-9, "no more hits after that");
    ok(fabs(hits_of(stats, 128) - 320) < 1e-9, "all if the table is cached");
    /* trapezoids over 32, 16 and 16 bins, then 40 rows, and the last bin */
    area = (32 * 240 + 16 * 120 + 16 * 60 + 63 * 40 + 20) / 128.0 / 320;
    ok(fabs(json_real_value(json_object_get(stats, "cacheability")) - area) <
           1e-12,
       "area under the misses");
    json_decref(stats);
}

static void test_constraints(void)
{
    struct plan *plan = fresh();
    struct err err = {0};
    json_t *root, *cache;

    tiered.tables[WIDE].n_reach = 1;
    tiered.tables[WIDE].reach[0] = 300;
    tiered.tables[WIDE].misses[0] = 100;
    root = emitted(&emit_torchrec_constraints, plan, &err);
    cache = json_object_get(json_object_get(root, "wide"), "cache_params");
    is_i64(json_integer_value(json_object_get(json_object_get(cache, "stats"),
                                              "expected_lookups")),
           300, "constraints have the statistics of a cached table");
    ok(!json_object_get(
           json_object_get(json_object_get(root, "tall"), "cache_params"),
           "stats"),
       "none without reach");
    is_str(
        json_string_value(json_array_get(
            json_object_get(json_object_get(root, "cold"), "compute_kernels"),
            0)),
        "fused_uvm", "the kernel of a table in host memory");
    json_decref(root);
}

static void test_text(void)
{
    struct buf out = {0};
    struct err err = {0};

    ok(!emit_text.emit(fresh(), &(struct emit_options){0}, &out, &err) &&
           strstr(out.data, "\talone_ms\ttier\nhot\t") &&
           strstr(out.data, "\t-\thbm\nsmall\t") &&
           strstr(out.data, "\t-\tcached\nwhole\t") &&
           strstr(out.data, "\t-\thost\n"),
       "the text format has a column of tiers");
    buf_release(&out);
}

int main(void)
{
    test_kernels();
    test_refused();
    test_stats();
    test_constraints();
    test_text();
    return tap_done();
}
