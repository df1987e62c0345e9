/* SPDX-License-Identifier: MIT */
#include "io/plan_json.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/rng.h"
#include "core/cluster.h"
#include "core/plan_check.h"
#include "io/plan_json_write.h"
#include "tests/hostile.h"
#include "tests/tap.h"

#include <unistd.h>

/* A plan as the program writes it, with every key: two GPUs, three tables. */
static const char full[] =
    "{\n"
    "  \"neuroshard_plan\": 1,\n"
    "  \"version\": \"0.1.0\",\n"
    "  \"build\": \"g8f85c146\",\n"
    "  \"inputs_hash\": \"0123456789abcdef\",\n"
    "  \"source\": \"tables.csv\",\n"
    "  \"batch\": 1024,\n"
    "  \"memory_model\": \"full\",\n"
    "  \"dense_optimizer\": \"sgd\",\n"
    "  \"kinds\": [\"table\", \"column\", \"row\"],\n"
    "  \"min_width\": 8,\n"
    "  \"cluster\": {\"gpus\": 2, \"gpus_per_host\": 1, "
    "\"memory_bytes\": [4000000, 3000000], \"reserve_bytes\": [0, 1000], "
    "\"busy_ms\": {\"input\": [0.0, 0.0], \"cache\": [0.0, 0.0], "
    "\"forward\": [0.25, 0.0], \"output\": [0.0, 0.0], "
    "\"gradient\": [0.0, 0.0], \"backward\": [0.0, 0.5]}, "
    "\"other_kinds\": 2, "
    "\"nccl_bytes\": 400, \"inter_gbps\": 12.5},\n"
    "  \"cost_model\": {\"name\": \"model:a.nsm\", "
    "\"hash\": \"fedcba9876543210\", \"measured\": false, "
    "\"basis\": \"modelled\", \"comm\": \"alpha-beta figures\", "
    "\"device\": \"cpu:x\", \"lookup_error_frac\": 0.25, "
    "\"lookup_error_of\": \"8 samples\", \"exchange_error_frac\": 0.5, "
    "\"exchange_error_of\": null, \"outside\": [{\"table\": \"b\", "
    "\"feature\": \"rows\", \"value\": 2000.0, \"least\": 10.0, "
    "\"most\": 1000.0}, {\"table\": null, \"feature\": \"batch\", "
    "\"value\": 64.0, \"least\": 128.0, \"most\": 256.0}]},\n"
    "  \"step\": {\"pipeline\": \"semisync\", \"chunks\": 4, "
    "\"dedup\": \"ids\", "
    "\"dense_ms\": [1.5, 3.0], \"exposed_ms\": {\"input\": 0.0, "
    "\"forward\": 0.25, \"output\": 0.5, \"gradient\": 0.75, "
    "\"backward\": 1.0, \"replicas\": 0.125}},\n"
    "  \"search\": \"reference\",\n"
    "  \"stopped\": \"time\",\n"
    "  \"seed\": 7,\n"
    "  \"n_evaluations\": 99,\n"
    "  \"n_floored\": 1,\n"
    "  \"tables\": [\n"
    "    {\"name\": \"a\", \"num_embeddings\": 1000, \"dim\": 64, "
    "\"pooling_factor\": 2.5, \"num_outputs\": 2.0, \"output\": \"pooled\", "
    "\"precision\": \"fp16\", \"comm_precision\": \"int8\", "
    "\"optimizer\": \"adam\", \"zipf_alpha\": 1.2, \"skew_assumed\": false, "
    "\"row_order\": \"frequency\", \"dedup\": 0.25, "
    "\"device\": 1, \"group\": \"g\"},\n"
    "    {\"name\": \"b\", \"num_embeddings\": 2000, \"dim\": 128, "
    "\"pooling_factor\": 1.0, \"num_outputs\": 1.0, "
    "\"output\": \"sequence\", \"precision\": \"fp32\", "
    "\"comm_precision\": \"fp32\", \"optimizer\": \"rowwise_adagrad\", "
    "\"zipf_alpha\": 1.05, \"skew_assumed\": false, "
    "\"row_seed\": \"fedcba9876543211\", \"bins\": [0.5, 0.25, "
    "0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, "
    "0.0], \"kinds\": [\"column\"]},\n"
    "    {\"name\": \"\xc3\xa7 \\\"\\\\\", \"num_embeddings\": 10, "
    "\"dim\": 8, \"pooling_factor\": 0.0, \"num_outputs\": 1.0, "
    "\"output\": \"pooled\", \"precision\": \"fp32\", "
    "\"comm_precision\": \"fp32\", \"optimizer\": \"sgd\", "
    "\"zipf_alpha\": 1.05, \"skew_assumed\": true, "
    "\"row_seed\": \"0000000000000001\"}\n"
    "  ],\n"
    "  \"shards\": [\n"
    "    {\"table\": 0, \"kind\": \"table\", \"row_begin\": 0, "
    "\"row_end\": 1000, \"col_begin\": 0, \"col_end\": 64, \"device\": 1, "
    "\"alone_ms\": 0.5},\n"
    "    {\"table\": 1, \"kind\": \"column\", \"row_begin\": 0, "
    "\"row_end\": 2000, \"col_begin\": 0, \"col_end\": 96, \"device\": 0, "
    "\"alone_ms\": 0.625},\n"
    "    {\"table\": 1, \"kind\": \"column\", \"row_begin\": 0, "
    "\"row_end\": 2000, \"col_begin\": 96, \"col_end\": 128, \"device\": 1, "
    "\"alone_ms\": null},\n"
    "    {\"table\": 2, \"kind\": \"table\", \"row_begin\": 0, "
    "\"row_end\": 10, \"col_begin\": 0, \"col_end\": 8, \"device\": 0, "
    "\"alone_ms\": 0.25}\n"
    "  ],\n"
    "  \"devices\": [\n"
    "    {\"compute_ms\": 1.5, \"fwd_comm_ms\": 0.25, \"bwd_comm_ms\": 0.125, "
    "\"total_ms\": 1.875, \"phases_ms\": {\"input\": 0.375, "
    "\"forward\": 0.5, \"output\": 0.125, \"gradient\": 0.125, "
    "\"backward\": 0.75, \"replicas\": 0.0}, "
    "\"memory_bytes\": {\"weights\": 768320, "
    "\"optimizer\": 8000, \"input\": 188416, \"outputs\": 1540096, "
    "\"nccl\": 0, \"reserve\": 0, \"total\": 2504832}},\n"
    "    {\"compute_ms\": 1.25, \"fwd_comm_ms\": 0.5, \"bwd_comm_ms\": 0.25, "
    "\"total_ms\": 2.0, \"phases_ms\": {\"input\": 0.25, "
    "\"forward\": 0.5, \"output\": 0.125, \"gradient\": 0.125, "
    "\"backward\": 0.75, \"replicas\": 0.0}, "
    "\"memory_bytes\": {\"weights\": 384000, "
    "\"optimizer\": 264000, \"input\": 335872, \"outputs\": 1212416, "
    "\"nccl\": 400, \"reserve\": 600, \"total\": 2197288}}\n"
    "  ],\n"
    "  \"total_ms\": 2.0,\n"
    "  \"bound_ms\": 1.75,\n"
    "  \"step_ms\": 2.0,\n"
    "  \"step_range_ms\": [1.5726593262842421, 2.5434624862149202],\n"
    "  \"samples_per_second\": 512000.0\n"
    "}\n";

/* The smallest plan that can be made by hand. */
static const char small[] =
    "{\"neuroshard_plan\": 1, \"batch\": 64,\n"
    " \"cluster\": {\"gpus\": 2, \"memory_bytes\": [1000000, 1000000]},\n"
    " \"tables\": [{\"name\": \"a\", \"num_embeddings\": 100, \"dim\": 16,\n"
    "              \"pooling_factor\": 1}],\n"
    " \"shards\": [{\"table\": 0, \"row_begin\": 50, \"row_end\": 100,\n"
    "              \"col_begin\": 0, \"col_end\": 16, \"device\": 1},\n"
    "             {\"table\": 0, \"row_begin\": 0, \"row_end\": 50,\n"
    "              \"col_begin\": 0, \"col_end\": 16, \"device\": 0}]}\n";

static struct arena arena;

static int read_text(struct plan *plan, const char *text, struct err *err)
{
    return plan_from_json(plan, text, strlen(text), "plan.json", &arena, err);
}

static bool same_double(double a, double b)
{
    return (isnan(a) && isnan(b)) || !memcmp(&a, &b, sizeof(a));
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static bool same_table(const struct table *a, const struct table *b)
{
    for (int k = 0; k < REUSE_BINS; k++)
        if (!same_double(a->bins[k], b->bins[k]))
            return false;
    return same_text(a->name, b->name) &&
           a->num_embeddings == b->num_embeddings && a->dim == b->dim &&
           same_double(a->pooling_factor, b->pooling_factor) &&
           same_double(a->num_outputs, b->num_outputs) &&
           a->output == b->output && a->precision == b->precision &&
           a->comm_precision == b->comm_precision &&
           a->optimizer == b->optimizer && a->has_bins == b->has_bins &&
           a->skew_assumed == b->skew_assumed &&
           same_double(a->zipf_alpha, b->zipf_alpha) && a->kinds == b->kinds &&
           a->row_order == b->row_order &&
           (a->row_order == ROW_ORDER_FREQUENCY ||
            a->row_seed == b->row_seed) &&
           same_double(a->dedup, b->dedup) && a->device == b->device &&
           same_text(a->group, b->group);
}

static bool same_problem(const struct problem *a, const struct problem *b)
{
    uint32_t n = a->cluster.n_devices;
    bool same = a->n_tables == b->n_tables && same_text(a->source, b->source) &&
                n == b->cluster.n_devices &&
                a->cluster.devices_per_host == b->cluster.devices_per_host &&
                cluster_group(&a->cluster) == cluster_group(&b->cluster) &&
                a->cluster.intra_gbps == b->cluster.intra_gbps &&
                a->cluster.inter_gbps == b->cluster.inter_gbps &&
                a->batch == b->batch && a->memory_model == b->memory_model &&
                a->dense_optimizer == b->dense_optimizer &&
                a->layout == b->layout && a->buffers == b->buffers &&
                problem_min_width(a) == problem_min_width(b) &&
                a->kinds == b->kinds;

    for (size_t i = 0; same && i < a->n_tables; i++)
        same = same_table(&a->tables[i], &b->tables[i]);
    for (size_t r = 0; same && r < n; r++)
        same = cluster_busy_ms(&a->cluster, (uint32_t)r) ==
                   cluster_busy_ms(&b->cluster, (uint32_t)r) &&
               a->cluster.memory_bytes[r] == b->cluster.memory_bytes[r] &&
               a->cluster.reserve_bytes[r] == b->cluster.reserve_bytes[r];
    return same;
}

static bool same_shard(const struct shard *a, const struct shard *b)
{
    return a->table == b->table && a->kind == b->kind &&
           a->row_begin == b->row_begin && a->row_end == b->row_end &&
           a->col_begin == b->col_begin && a->col_end == b->col_end &&
           a->device == b->device;
}

static bool same_device(const struct device_cost *a,
                        const struct device_cost *b)
{
    return same_double(a->compute_ms, b->compute_ms) &&
           same_double(a->fwd_comm_ms, b->fwd_comm_ms) &&
           same_double(a->bwd_comm_ms, b->bwd_comm_ms) &&
           same_double(a->total_ms, b->total_ms) &&
           !memcmp(&a->memory, &b->memory, sizeof(a->memory));
}

static bool same_error(const struct cost_error *a, const struct cost_error *b)
{
    return same_double(a->frac, b->frac) && same_text(a->ground, b->ground);
}

static bool same_plan(const struct plan *a, const struct plan *b)
{
    bool same =
        same_problem(&a->problem, &b->problem) && a->n_shards == b->n_shards &&
        !a->devices == !b->devices && !a->shard_ms == !b->shard_ms &&
        same_double(a->total_ms, b->total_ms) &&
        same_double(a->bound_ms, b->bound_ms) && a->n_floored == b->n_floored &&
        same_text(a->cost.name, b->cost.name) &&
        same_text(a->cost.hash, b->cost.hash) &&
        a->cost.basis == b->cost.basis &&
        same_text(a->cost.comm, b->cost.comm) &&
        same_text(a->cost.device, b->cost.device) &&
        same_error(&a->cost.lookup_error, &b->cost.lookup_error) &&
        same_error(&a->cost.exchange_error, &b->cost.exchange_error) &&
        a->cost.n_outside == b->cost.n_outside &&
        same_text(a->search, b->search) && same_text(a->stopped, b->stopped) &&
        a->seed == b->seed && a->n_evaluations == b->n_evaluations &&
        same_text(a->inputs_hash, b->inputs_hash) &&
        same_text(a->version, b->version) && same_text(a->build, b->build);

    for (size_t i = 0; same && i < a->cost.n_outside; i++)
        same =
            same_text(a->cost.outside[i].table, b->cost.outside[i].table) &&
            same_text(a->cost.outside[i].feature, b->cost.outside[i].feature) &&
            same_double(a->cost.outside[i].most, b->cost.outside[i].most);
    for (size_t i = 0; same && i < a->n_shards; i++)
        same = same_shard(&a->shards[i], &b->shards[i]) &&
               (!a->shard_ms || same_double(a->shard_ms[i], b->shard_ms[i]));
    for (size_t r = 0; same && a->devices && r < a->problem.cluster.n_devices;
         r++)
        same = same_device(&a->devices[r], &b->devices[r]);
    return same;
}

static void test_full(void)
{
    struct plan plan, again;
    struct err err = {0};
    const struct table *b;

    if (!ok(!read_text(&plan, full, &err), "a plan with every key"))
        printf("# %s\n", err.msg);
    is_str(plan_to_json(&plan, &arena), full, "is written as it was read");
    ok(!read_text(&again, plan_to_json(&plan, &arena), &err) &&
           same_plan(&plan, &again),
       "and read as it was written");

    b = &plan.problem.tables[1];
    is_str(plan.problem.tables[2].name, "\xc3\xa7 \"\\", "escaped name");
    is_i64((int64_t)b->num_embeddings, 2000, "rows");
    ok(b->has_bins && !b->skew_assumed && b->bins[1] == 0.25, "bins");
    ok(b->output == OUTPUT_SEQUENCE && b->kinds == SHARD_COLUMN, "formats");
    is_i64(plan.problem.tables[0].device, 1, "pin");
    is_str(plan.problem.tables[0].group, "g", "group");
    is_i64(plan.problem.tables[0].row_order, ROW_ORDER_FREQUENCY, "order");
    ok(b->row_seed == UINT64_C(0xfedcba9876543211), "seed of rows");
    ok(plan.problem.tables[0].row_seed == hash_bytes("a", 1, 0),
       "without one that of the name");
    ok(plan.cost.basis == BASIS_MODELLED, "basis");
    is_near(plan.cost.lookup_error.frac, 0.25, 0, "error of look-ups");
    is_str(plan.cost.lookup_error.ground, "8 samples", "and of what");
    is_near(plan.cost.exchange_error.frac, 0.5, 0, "error of exchanges");
    ok(plan.cost.n_outside == 2 && !plan.cost.outside[1].table &&
           plan.cost.outside[1].least == 128 &&
           plan.cost.outside[0].value == 2000,
       "loads outside the measured range");
    ok(plan.shards[2].col_begin == 96 && plan.shards[2].device == 1, "shard");
    ok(plan.shard_ms[1] == 0.625 && isnan(plan.shard_ms[2]), "alone_ms");
    ok(plan.devices[1].bwd_comm_ms == 0.25 &&
           plan.devices[1].memory.outputs == 1212416,
       "device");
    is_i64((int64_t)plan.problem.cluster.reserve_bytes[1], 1000, "reserve");
    is_near(plan.problem.cluster.busy_ms[1][BUSY_BACKWARD], 0.5, 0, "busy");
    is_i64(plan.problem.cluster.n_other_kinds, 2, "other kinds");
    is_near(plan.problem.cluster.inter_gbps, 12.5, 0, "asked for");
    is_near(plan.problem.cluster.intra_gbps, 0, 0, "not asked for");
    is_str(plan.stopped, "time", "stopped");
    ok(plan.problem.job.pipeline == PIPELINE_SEMISYNC &&
           plan.problem.job.n_chunks == 4 &&
           plan.problem.job.dense_ms[1] == 3 &&
           plan.problem.job.dedup == DEDUP_IDS &&
           plan.problem.tables[0].dedup == 0.25,
       "job");
    is_near(plan.devices[0].parts_ms[STEP_INPUT], 0.375, 0, "a phase");
    is_near(plan.exposed_ms[STEP_REPLICAS], 0.125, 0, "exposed time");
}

/* Bandwidths of any allowed size survive writing and reading. */
static void test_bandwidths(void)
{
    struct plan plan, again;
    struct err err = {0};
    unsigned n_wrong = 0;

    if (!ok(!read_text(&plan, full, &err), "a plan"))
        return;
    for (double gbps = 0.001; gbps <= 1e6; gbps *= 7) {
        plan.problem.cluster.intra_gbps = gbps;
        plan.problem.cluster.inter_gbps = 1000 / gbps;
        n_wrong += read_text(&again, plan_to_json(&plan, &arena), &err) ||
                   !same_plan(&plan, &again);
    }
    is_i64(n_wrong, 0, "any bandwidth comes back");
}

/* Unknown keys are ignored. Older files have the search time, which newer files
 * leave out. */
static void test_unknown_keys(void)
{
    struct plan plan = {0}, again = {0};
    struct err err = {0};
    const char *old = arena_printf(
        &arena, "{\"search_ms\": 12.5, \"colour\": [],%s", full + 1);

    if (!ok(!read_text(&plan, full, &err) && !read_text(&again, old, &err),
            "keys that are not known are passed over"))
        return;
    ok(same_plan(&plan, &again) && again.search_ms == 0, "without effect");
    plan.search_ms = 12.5;
    is_str(plan_to_json(&plan, &arena), full, "the time is not written");
}

/* Shards that were edited by hand and are out of order keep their costs. */
static void test_moved(void)
{
    static const char text[] =
        "{\"neuroshard_plan\": 1, \"batch\": 64,\n"
        " \"cluster\": {\"gpus\": 2, \"memory_bytes\": [1000000, 1000000]},\n"
        " \"tables\": [{\"name\": \"a\", \"num_embeddings\": 9, \"dim\": 16,\n"
        "              \"pooling_factor\": 1}],\n"
        " \"shards\": [{\"table\": 0, \"row_begin\": 5, \"row_end\": 9,\n"
        "              \"col_begin\": 0, \"col_end\": 16, \"device\": 1,\n"
        "              \"alone_ms\": 0.5},\n"
        "             {\"table\": 0, \"row_begin\": 0, \"row_end\": 5,\n"
        "              \"col_begin\": 0, \"col_end\": 16, \"device\": 0,\n"
        "              \"alone_ms\": 0.25}]}\n";
    struct plan plan;
    struct err err = {0};

    if (!ok(!read_text(&plan, text, &err) && plan.shard_ms,
            "shards out of order, with costs"))
        return;
    ok(plan.shards[0].row_begin == 0 && plan.shard_ms[0] == 0.25 &&
           plan.shards[1].row_begin == 5 && plan.shard_ms[1] == 0.5,
       "costs move with their shards");
    is_i64(plan.shards[0].kind, SHARD_ROW, "which get their kinds");
}

static void test_small(void)
{
    struct plan plan, again;
    struct err err = {0};

    if (!ok(!read_text(&plan, small, &err), "a hand-made plan"))
        printf("# %s\n", err.msg);
    ok(plan.shards[0].row_begin == 0 && plan.shards[1].row_begin == 50,
       "its shards are put in order");
    ok(plan.shards[0].kind == SHARD_ROW && plan.shards[1].kind == SHARD_ROW,
       "its kinds come from the geometry");
    ok(!plan.devices && !plan.shard_ms && isnan(plan.total_ms) &&
           isnan(plan.bound_ms),
       "it is not priced");
    ok(!plan.cost.name && !plan.version && plan.seed == 0, "no model, no seed");
    is_str(plan.problem.source, "plan.json", "its source is itself");
    is_i64(plan.problem.cluster.devices_per_host, 2, "one host");
    ok(plan.problem.tables[0].skew_assumed &&
           plan.problem.tables[0].zipf_alpha == DEFAULT_ZIPF_ALPHA &&
           plan.problem.tables[0].optimizer == OPTIMIZER_ROWWISE_ADAGRAD,
       "defaults of a table");
    ok(!read_text(&again, plan_to_json(&plan, &arena), &err) &&
           same_plan(&plan, &again),
       "and survives writing");
    plan.total_ms = 3;
    ok(strstr(plan_to_json(&plan, &arena), "\"total_ms\": null") != NULL,
       "without devices there is no total");
}

/* Replaces `from` in the text by `to`; `want` is the error. */
struct edit {
    const char *from, *to, *want;
};

static const char *edited(const char *text, const struct edit *edit)
{
    const char *at = strstr(text, edit->from);

    if (!at)
        return NULL;
    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, edit->to,
                        at + strlen(edit->from));
}

/* Plans that are older than the items `input` and `outputs` keep their total
 * `io`. */
static void test_io(void)
{
    static const struct edit edits[] = {
        {"\"input\": 188416, \"outputs\": 1540096, \"nccl\": 0, ",
         "\"io\": 860160, ", NULL},
        {"\"total\": 2504832", "\"total\": 1636480", NULL},
        {"\"input\": 335872, \"outputs\": 1212416, \"nccl\": 400, ",
         "\"io\": 552960, ", NULL},
        {"\"reserve\": 600, \"total\": 2197288",
         "\"reserve\": 1000, \"total\": 1201960", NULL},
        {"\"nccl_bytes\": 400, ", "", NULL},
        {"[4000000, 3000000]", "[4000000, 1201960]", NULL},
    };
    struct plan plan, again;
    struct err err = {0};
    const char *text = full;

    for (size_t i = 0; i < sizeof edits / sizeof *edits; i++)
        text = edited(text, &edits[i]);
    if (!ok(!read_text(&plan, text, &err), "a plan with io"))
        printf("# %s\n", err.msg);
    is_i64(plan.problem.memory_model, MEMORY_BATCH, "is counted so");
    is_i64((int64_t)plan.devices[1].memory.total, 1201960, "and holds it");
    ok(!read_text(&again, plan_to_json(&plan, &arena), &err) &&
           same_plan(&plan, &again),
       "also once it is written");
    text = edited(text, &(struct edit){"860160", "860161", NULL});
    text = edited(text, &(struct edit){"1636480", "1636499", NULL});
    ok(read_text(&plan, text, &err) && strstr(err.msg, "outputs 860160"),
       "which is checked");
}

/* Edits after which the plan is still valid. */
static const struct edit tolerated[] = {
    {"\"batch\": 1024", "\"batch\": 1024.0", NULL},
    {"\"batch\": 1024", "\"batch\": \"1024\"", NULL},
    {"\"batch\": 1024", "\"a key of tomorrow\": [{}], \"batch\": 1024", NULL},
    {"\"seed\": 7", "\"seed\": \"18446744073709551615\"", NULL},
    {"\"seed\": 7,", "", NULL},
    {"\"version\": \"0.1.0\"", "\"version\": null", NULL},
    {"\"build\": \"g8f85c146\",", "", NULL},
    {"\"memory_model\": \"full\",", "", NULL},
    {"\"dense_optimizer\": \"sgd\",", "", NULL},
    {"\"dense_optimizer\": \"sgd\"", "\"dense_optimizer\": \"table\"", NULL},
    {"  \"kinds\": [\"table\", \"column\", \"row\"],", "", NULL},
    {"\"min_width\": 8,", "", NULL},
    {"\"min_width\": 8", "\"min_width\": 4", NULL},
    {"\"gpus_per_host\": 1, ", "", NULL},
    {"\"gpus_per_host\": 1, ", "\"gpus_per_host\": 1, \"pod_size\": 2, ", NULL},
    {"\"basis\": \"modelled\", ", "", NULL},
    {", \"bins\"", ", \"device\": null, \"group\": null, \"bins\"", NULL},
    {"\"kind\": \"column\", ", "", NULL},
    {"\"bound_ms\": 1.75", "\"bound_ms\": null", NULL},
};

static void test_tolerated(void)
{
    for (size_t i = 0; i < sizeof(tolerated) / sizeof(*tolerated); i++) {
        const char *text = edited(full, &tolerated[i]);
        struct plan plan, again;
        struct err err = {0};

        if (!ok(text && !read_text(&plan, text, &err) &&
                    !read_text(&again, plan_to_json(&plan, &arena), &err) &&
                    same_plan(&plan, &again),
                "tolerated: %s", tolerated[i].to))
            printf("# %s\n", err.msg);
    }
}

/* Every key is removed, changed to another type and to a value out of range.
 * `want` is the whole message after "plan.json: ". */
static const struct edit refused[] = {
    {"\"neuroshard_plan\": 1,", "", "neuroshard_plan is missing"},
    {"_plan\": 1", "_plan\": \"one\"",
     "neuroshard_plan must be a whole number, not a string"},
    {"_plan\": 1", "_plan\": 2",
     "neuroshard_plan is 2, but this program reads version 1"},
    {"\"0.1.0\"", "1", "version must be a string, not a number"},
    {"\"0123456789abcdef\"", "[]", "inputs_hash must be a string, not a list"},
    {"\"0123456789abcdef\"", "\"x\\ntouch PWNED\\n#\"",
     "inputs_hash is 'x\\u000atouch PWNED\\u000a#', not printable text"},
    {"\"0123456789abcdef\"", "\"$(touch PWNED)  \"",
     "inputs_hash is '$(touch PWNED)  ', not 16 hexadecimal digits"},
    {"\"0123456789abcdef\"", "\"0123456789abcdef0\"",
     "inputs_hash is '0123456789abcdef0', not 16 hexadecimal digits"},
    {"\"fedcba9876543210\"", "\"fedcba987654321\"",
     "cost_model.hash is 'fedcba987654321', not 16 hexadecimal digits"},
    {"\"0000000000000001\"", "\"1\"",
     "tables[2].row_seed is '1', not 16 hexadecimal digits"},
    {"\"0000000000000001\"", "1",
     "tables[2].row_seed must be a string, not a number"},
    {"\"tables.csv\"", "true", "source must be a string, not true or false"},
    {"\"batch\": 1024,", "", "batch is missing"},
    {"\"batch\": 1024", "\"batch\": null",
     "batch must be a whole number, not null"},
    {"\"batch\": 1024", "\"batch\": 0",
     "batch is 0, outside 1 to 1000000000000"},
    {"\"batch\": 1024", "\"batch\": -3",
     "batch is -3, not a whole number >= 0"},
    {"\"batch\": 1024", "\"batch\": 10.5",
     "batch is 10.5, not a whole number >= 0"},
    {"\"batch\": 1024", "\"batch\": 1e300",
     "batch is 1.0000000000000001e+300, not a whole number >= 0"},
    {"\"full\"", "\"half\"",
     "memory_model must be one of full, weights, batch"},
    {"\"full\"", "3", "memory_model must be one of full, weights, batch"},
    {"\"dense_optimizer\": \"sgd\"", "\"dense_optimizer\": \"lamb\"",
     "dense_optimizer must be one of table, sgd, adagrad, adam"},
    {"[\"table\", \"column\", \"row\"]", "7",
     "kinds must be a list, not a number"},
    {"\"column\", \"row\"", "\"col\"",
     "kinds[1] must be one of table, column, row, grid, replicate"},
    {"\"column\", \"row\"", "\"column\", {}",
     "kinds[2] must be one of table, column, row, grid, replicate"},
    {"\"min_width\": 8", "\"min_width\": 10",
     "min_width is 10, not a multiple of 4"},
    {"\"min_width\": 8", "\"min_width\": 0",
     "min_width is 0, outside 4 to 1048576"},
    {"\"min_width\": 8", "\"min_width\": 1048580",
     "min_width is 1048580, outside 4 to 1048576"},
    {"  \"cluster\"", "  \"clusters\"", "cluster is missing"},
    {"\"cluster\": {", "\"cluster\": 5, \"x\": {",
     "cluster must be an object, not a number"},
    {"\"gpus\": 2, ", "", "cluster.gpus is missing"},
    {"\"gpus\": 2", "\"gpus\": []",
     "cluster.gpus must be a whole number, not a list"},
    {"\"gpus\": 2", "\"gpus\": 0", "cluster.gpus is 0, outside 1 to 65536"},
    {"\"gpus\": 2", "\"gpus\": 4000000000",
     "cluster.gpus is 4000000000, outside 1 to 65536"},
    {"\"gpus\": 2", "\"gpus\": 65536",
     "cluster.memory_bytes has 2 entries, but the cluster's gpus are 65536"},
    {"\"alone_ms\": 0.5", "\"alone_ms\": -1",
     "shards[0].alone_ms is -1, not in 0 to 1000000000000000"},
    {"\"n_floored\": 1", "\"n_floored\": 3", "n_floored is 3, outside 0 to 2"},
    {"\"zipf_alpha\": 1.2", "\"zipf_alpha\": 101",
     "tables[0].zipf_alpha is 101, not in 0 to 100"},
    {"\"bound_ms\": 1.75", "\"bound_ms\": -1e-9",
     "bound_ms is -1.0000000000000001e-09, not in 0 to 1000000000000000"},
    {"\"gpus\": 2", "\"gpus\": 4294967296",
     "cluster.gpus is 4294967296, outside 1 to 65536"},
    {"\"gpus_per_host\": 1", "\"gpus_per_host\": 3",
     "2 GPUs do not fill whole hosts of 3 GPUs each"},
    {"\"gpus_per_host\": 1", "\"gpus_per_host\": 2, \"pod_size\": 2",
     "1 hosts do not fill whole NVLink domains of 2 hosts each"},
    {"\"gpus_per_host\": 1", "\"gpus_per_host\": 1, \"pod_size\": 3",
     "cluster.pod_size is 3, outside 1 to 2"},
    {"\"gpus_per_host\": 1", "\"gpus_per_host\": 0",
     "cluster.gpus_per_host is 0, outside 1 to 65536"},
    {"\"memory_bytes\": [4000000, 3000000], ", "",
     "cluster.memory_bytes is missing"},
    {"[4000000, 3000000]", "4000000",
     "cluster.memory_bytes must be a list, not a number"},
    {"[4000000, 3000000]", "[4000000]",
     "cluster.memory_bytes has 1 entries, but the cluster's gpus are 2"},
    {"[4000000, 3000000]", "[4000000, \"80GiB\"]",
     "cluster.memory_bytes[1] must be a whole number, not a string"},
    {"[0, 1000]", "[0, 1000, 0]",
     "cluster.reserve_bytes has 3 entries, but the cluster's gpus are 2"},
    {"[0, 1000]", "[-1, 1000]",
     "cluster.reserve_bytes[0] is -1, not a whole number >= 0"},
    {"\"inter_gbps\": 12.5", "\"inter_gbps\": 0",
     "cluster.inter_gbps is 0, not in 0.001 to 1000000"},
    {"\"inter_gbps\": 12.5", "\"intra_gbps\": \"fast\"",
     "cluster.intra_gbps must be a number, not a string"},
    {"\"cost_model\": {", "\"cost_model\": [], \"x\": {",
     "cost_model must be an object, not a list"},
    {"\"name\": \"model:a.nsm\", ", "", "cost_model.name is missing"},
    {"\"model:a.nsm\"", "null", "cost_model.name must be a string, not null"},
    {"\"fedcba9876543210\"", "5",
     "cost_model.hash must be a string, not a number"},
    {"\"measured\": false", "\"measured\": 0",
     "cost_model.measured must be true or false, not a number"},
    {"\"modelled\"", "\"guessed\"",
     "cost_model.basis must be one of analytic, modelled, measured"},
    {"\"alpha-beta figures\"", "{}",
     "cost_model.comm must be a string, not an object"},
    {"\"cpu:x\"", "0", "cost_model.device must be a string, not a number"},
    {"\"search\": \"reference\"", "\"search\": 1",
     "search must be a string, not a number"},
    {"\"stopped\": \"time\"", "\"stopped\": 1",
     "stopped must be a string, not a number"},
    {"\"seed\": 7", "\"seed\": \"seven\"",
     "seed must be a whole number, not a string"},
    {"\"seed\": 7", "\"seed\": \"18446744073709551616\"",
     "seed must be a whole number, not a string"},
    {"\"n_evaluations\": 99", "\"n_evaluations\": 0.5",
     "n_evaluations is 0.5, not a whole number >= 0"},
    {"\"n_floored\": 1", "\"n_floored\": 3", "n_floored is 3, outside 0 to 2"},
    {"  \"tables\"", "  \"table\"", "tables is missing"},
    {"\"tables\": [", "\"tables\": {}, \"x\": [",
     "tables must be a list, not an object"},
    {"\"tables\": [", "\"tables\": [], \"x\": [",
     "shards[0].table is 0, but the plan has 0 tables"},
    {"\"tables\": [", "\"tables\": [5, ",
     "tables[0] must be an object, not a number"},
    {"\"name\": \"b\", ", "", "tables[1].name is missing"},
    {"\"name\": \"b\"", "\"name\": 3",
     "tables[1].name must be a string, not a number"},
    {"\"name\": \"b\"", "\"name\": \"a\"",
     "tables[0] and tables[1] are both named 'a'"},
    {"\"name\": \"b\"", "\"name\": \"\"", "tables[1] has an empty name"},
    {"\"num_embeddings\": 2000, ", "", "tables[1].num_embeddings is missing"},
    {"\"num_embeddings\": 2000", "\"num_embeddings\": 0",
     "tables[1].num_embeddings is 0, outside 1 to 18446744073709551615"},
    {"\"num_embeddings\": 2000", "\"num_embeddings\": 2e18",
     "tables[1].num_embeddings is 2e+18, not a whole number >= 0"},
    {"\"dim\": 128, ", "", "tables[1].dim is missing"},
    {"\"dim\": 128", "\"dim\": 4294967296",
     "tables[1].dim is 4294967296, outside 1 to 1048576"},
    {"\"pooling_factor\": 2.5, ", "", "tables[0].pooling_factor is missing"},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": \"2.5\"",
     "tables[0].pooling_factor must be a number, not a string"},
    {"\"pooling_factor\": 2.5", "\"pooling_factor\": -2.5",
     "tables[0].pooling_factor is -2.5, not in 0 to 1000000"},
    {"\"num_outputs\": 2.0", "\"num_outputs\": []",
     "tables[0].num_outputs must be a number, not a list"},
    {"\"output\": \"pooled\"", "\"output\": \"mean\"",
     "tables[0].output must be one of pooled, sequence"},
    {"\"precision\": \"fp16\"", "\"precision\": \"fp8\"",
     "tables[0].precision must be one of fp32, fp16, bf16, int8"},
    {"\"comm_precision\": \"int8\"", "\"comm_precision\": 8",
     "tables[0].comm_precision must be one of fp32, fp16, bf16, int8"},
    {"\"adam\"", "\"adamw\"",
     "tables[0].optimizer must be one of sgd, rowwise_adagrad, adagrad, adam, "
     "adama, lamb, partial_rowwise_adam, partial_rowwise_lamb"},
    {"\"zipf_alpha\": 1.2", "\"zipf_alpha\": false",
     "tables[0].zipf_alpha must be a number, not true or false"},
    {"\"skew_assumed\": false", "\"skew_assumed\": 0",
     "tables[0].skew_assumed must be true or false, not a number"},
    {"\"bins\": [", "\"bins\": 1, \"x\": [",
     "tables[1].bins must be a list, not a number"},
    {"\"bins\": [0.5, ", "\"bins\": [",
     "tables[1].bins has 16 entries, not 17"},
    {"\"bins\": [0.5, 0.25", "\"bins\": [0.5, null",
     "tables[1].bins[1] must be a number, not null"},
    {"\"bins\": [0.5, 0.25", "\"bins\": [0.5, -0.25",
     "tables[1].bins[1] is -0.25, not in 0 to 1"},
    {"\"kinds\": [\"column\"]", "\"kinds\": [\"table\"]",
     "table 'b' may not have shards of kind 'column'"},
    {"\"kinds\": [\"column\"]", "\"kinds\": \"column\"",
     "tables[1].kinds must be a list, not a string"},
    {"\"device\": 1, \"group\"", "\"device\": 2, \"group\"",
     "tables[0].device is 2, but the cluster has 2 gpus"},
    {"\"device\": 1, \"group\"", "\"device\": -1, \"group\"",
     "tables[0].device is -1, not a whole number >= 0"},
    {"\"group\": \"g\"", "\"group\": 4",
     "tables[0].group must be a string, not a number"},
    {"  \"shards\"", "  \"shard\"", "shards is missing"},
    {"\"shards\": [", "\"shards\": 0, \"x\": [",
     "shards must be a list, not a number"},
    {"\"shards\": [", "\"shards\": [], \"x\": [", "table 'a' has no shards"},
    {"\"shards\": [", "\"shards\": [[], ",
     "shards[0] must be an object, not a list"},
    {"{\"table\": 0, ", "{", "shards[0].table is missing"},
    {"{\"table\": 0", "{\"table\": \"a\"",
     "shards[0].table must be a whole number, not a string"},
    {"{\"table\": 2", "{\"table\": 3",
     "shards[3].table is 3, but the plan has 3 tables"},
    {"\"kind\": \"table\"", "\"kind\": \"whole\"",
     "shards[0].kind must be one of table, column, row, grid, replicate"},
    {"\"kind\": \"table\"", "\"kind\": 1",
     "shards[0].kind must be one of table, column, row, grid, replicate"},
    {"\"kind\": \"table\"", "\"kind\": \"column\"",
     "shards[0].kind is 'column', but the shards of table 'a' are of kind "
     "'table'"},
    {"\"row_begin\": 0, ", "", "shards[0].row_begin is missing"},
    {"\"row_begin\": 0", "\"row_begin\": 1000",
     "shards[0].row_begin is 1000, outside 0 to 999"},
    {"\"row_end\": 1000, ", "", "shards[0].row_end is missing"},
    {"\"row_end\": 1000", "\"row_end\": 1001",
     "shards[0].row_end is 1001, outside 1 to 1000"},
    {"\"row_end\": 1000", "\"row_end\": 0",
     "shards[0].row_end is 0, outside 1 to 1000"},
    {"\"row_end\": 1000", "\"row_end\": 999",
     "table 'a': row 999, column 0 is in no shard"},
    {"\"col_begin\": 96", "\"col_begin\": \"x\"",
     "shards[2].col_begin must be a whole number, not a string"},
    {"\"col_begin\": 96", "\"col_begin\": 128",
     "shards[2].col_begin is 128, outside 0 to 127"},
    {"\"col_begin\": 96", "\"col_begin\": 92",
     "table 'b': row 0, column 92 is in two shards, on GPU 0 and on GPU 1"},
    {"\"col_end\": 128, ", "", "shards[2].col_end is missing"},
    {"\"col_end\": 128", "\"col_end\": 4294967296",
     "shards[2].col_end is 4294967296, outside 97 to 128"},
    {"\"col_end\": 8, \"device\": 0", "\"col_end\": 8",
     "shards[3].device is missing"},
    {"\"col_end\": 8, \"device\": 0", "\"col_end\": 8, \"device\": 9",
     "shards[3].device is 9, but the cluster has 2 gpus"},
    {"\"alone_ms\": 0.5", "\"alone_ms\": \"?\"",
     "shards[0].alone_ms must be a number, not a string"},
    {"  \"devices\"", "  \"device\"",
     "total_ms is given, but devices is missing"},
    {"\"devices\": [", "\"devices\": 2, \"x\": [",
     "devices must be a list, not a number"},
    {"\"devices\": [", "\"devices\": [{}, ",
     "devices has 3 entries, but the cluster's gpus are 2"},
    {"\"compute_ms\": 1.5", "\"compute_ms\": {}",
     "devices[0].compute_ms must be a number, not an object"},
    {"\"compute_ms\": 1.5", "\"compute_ms\": null",
     "GPU 0 has no cost, but the plan has a total"},
    {"\"fwd_comm_ms\": 0.5, ", "",
     "GPU 1 has no cost, but the plan has a total"},
    {"\"bwd_comm_ms\": 0.25", "\"bwd_comm_ms\": 0.75",
     "GPU 1: its total is 2 ms, but its parts add up to 2.5 ms"},
    {"\"total_ms\": 1.875", "\"total_ms\": []",
     "devices[0].total_ms must be a number, not a list"},
    {"\"memory_bytes\": {\"weights\": 768320",
     "\"memory\": {\"weights\": 768320", "devices[0].memory_bytes is missing"},
    {"\"pipeline\": \"semisync\", ", "", "step.pipeline is missing"},
    {"semisync", "async",
     "step.pipeline must be one of sdd, none, prefetch, semisync"},
    {"\"chunks\": 4", "\"chunks\": 65", "step.chunks is 65, outside 1 to 64"},
    {"\"dedup\": \"ids\"", "\"dedup\": \"all\"",
     "step.dedup must be one of none, ids, sessions"},
    {"\"dedup\": 0.25", "\"dedup\": 0",
     "tables[0].dedup is 0, not in 1e-06 to 1"},
    {"[1.5, 3.0]", "[1.5]", "step.dense_ms has 1 entries, not 2"},
    {"[1.5, 3.0]", "[1.5, -3]",
     "step.dense_ms[1] is -3, not in 0 to 1000000000"},
    {"\"exposed_ms\": {", "\"exposed_ms\": 1, \"x\": {",
     "step.exposed_ms must be an object, not a number"},
    {"\"phases_ms\": {\"input\": 0.375, ", "\"phases_ms\": {",
     "devices[0].phases_ms.input is missing"},
    {"\"input\": 0.375", "\"input\": -1",
     "devices[0].phases_ms.input is -1, not in 0 to 1000000000000000"},
    {"{\"weights\": 768320, ", "{",
     "devices[0].memory_bytes.weights is missing"},
    {"\"optimizer\": 8000, ", "",
     "devices[0].memory_bytes.optimizer is missing"},
    {"\"input\": 188416, ", "", "devices[0].memory_bytes.input is missing"},
    {"\"outputs\": 1540096, ", "",
     "devices[0].memory_bytes.outputs is missing"},
    {"\"nccl\": 0, ", "", "devices[0].memory_bytes.nccl is missing"},
    {"\"reserve\": 0, ", "", "devices[0].memory_bytes.reserve is missing"},
    {", \"total\": 2504832", "", "devices[0].memory_bytes.total is missing"},
    {"\"total\": 2504832", "\"total\": 1",
     "devices[0].memory_bytes does not agree with its shards: weights 768320, "
     "optimizer 8000, input 188416, outputs 1540096, nccl 0, reserve 0, total "
     "2504832"},
    {"  \"total_ms\": 2.0,", "", "GPU 0 has a cost, but the plan has no total"},
    {"  \"total_ms\": 2.0", "  \"total_ms\": \"2\"",
     "total_ms must be a number, not a string"},
    {"  \"total_ms\": 2.0", "  \"total_ms\": 1.875",
     "the plan's total is 1.875 ms, but its slowest GPU takes 2 ms"},
    {"\"bound_ms\": 1.75", "\"bound_ms\": {}",
     "bound_ms must be a number, not an object"},
    {"\"bound_ms\": 1.75", "\"bound_ms\": 2.5",
     "the lower bound of 2.5 ms is above the plan's total of 2 ms"},
    {"[4000000, 3000000]", "[4000000, 2197000]",
     "GPU 1 needs 2.10 MiB, 288 B more than it has: weights 375 KiB, optimizer "
     "258 KiB, input 328 KiB, outputs 1.16 MiB, nccl 400 B, reserve 600 B; the "
     "largest item is outputs"},
};

static void test_refused(void)
{
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
        const char *text = edited(full, &refused[i]);
        const char *want =
            arena_printf(&arena, "plan.json: %s", refused[i].want);
        bool is_memory = strstr(want, "more than it has");
        struct plan plan;
        struct err err = {0};

        ok(text && read_text(&plan, text, &err) == -1 &&
               err.code == (is_memory ? ERR_NO_PLAN : ERR_INPUT),
           "refused: %s", want);
        is_str(err.msg, want, "its sentence");
    }
}

static void test_not_json(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "plan.json:1: not valid JSON: '[' or '{' expected near end of "
             "file"},
        {"[]", "plan.json: the file must be an object, not a list"},
        {"{}", "plan.json: neuroshard_plan is missing"},
        {"{\n\"neuroshard_plan\": 1,\n\"batch\": }",
         "plan.json:3: not valid JSON: unexpected token near '}'"},
        {"{\"batch\": 1,\n \"batch\": 2}",
         "plan.json:2: not valid JSON: duplicate object key near '\"batch\"'"},
        {"{\"batch\": 9223372036854775808}",
         "plan.json:1: not valid JSON: too big integer near "
         "'9223372036854775808'"},
        {"{\"batch\": 1e999}",
         "plan.json:1: not valid JSON: real number overflow near '1e999'"},
        {"{\"version\": \"\xff\"}",
         "plan.json:1: not valid JSON: unable to decode byte 0xff near '\"'"},
        {"{\"version\": \"a\\u0000b\"}",
         "plan.json:1: not valid JSON: \\u0000 is not allowed without "
         "JSON_ALLOW_NUL near '\"a\\u0000b\"'"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct plan plan;
        struct err err = {0};

        ok(read_text(&plan, cases[i].text, &err) == -1 && err.code == ERR_INPUT,
           "refused: %s", cases[i].want);
        is_str(err.msg, cases[i].want, "its sentence");
    }
}

/* Returns a positive finite number; exponents cover the whole range. */
static double random_double(struct rng *rng)
{
    uint64_t bits = rng_u64(rng) >> 1;
    double x;

    memcpy(&x, &bits, sizeof(x));
    return isfinite(x) ? x : 0.1;
}

/* Returns a number from 0 to max, with random bits. */
static double random_within(double max, struct rng *rng)
{
    double x = random_double(rng);

    return x <= max ? x : fmod(x, max);
}

/* Draws shares that add up to 1. */
static void random_bins(double bins[REUSE_BINS], struct rng *rng)
{
    double sum = 0;

    for (int k = 0; k < REUSE_BINS; k++)
        sum += bins[k] = rng_uniform(rng);
    for (int k = 0; k < REUSE_BINS; k++)
        bins[k] /= sum;
}

static void random_plan(struct plan *plan, struct rng *rng)
{
    uint32_t per_host = 1 + (uint32_t)rng_below(rng, 3);
    uint32_t per_domain = 1 + (uint32_t)rng_below(rng, 2);
    uint32_t n_devices =
        per_host * per_domain * (1 + (uint32_t)rng_below(rng, 2));
    size_t n = 1 + rng_below(rng, 8);

    *plan = (struct plan){
        .problem = {.tables = ARENA_NEW(&arena, struct table, n),
                    .n_tables = n,
                    .source = "t",
                    .batch = 1 + rng_below(rng, 1000000000000),
                    .memory_model = MEMORY_WEIGHTS,
                    .dense_optimizer = (enum dense_optimizer)rng_below(rng, 4),
                    .layout = (enum table_layout)rng_below(rng, 2),
                    .buffers = (enum buffer_rule)rng_below(rng, 2),
                    .kinds = SHARD_ALL_KINDS,
                    .min_width = 4 * (uint32_t)rng_below(rng, 3),
                    .cluster = {.n_devices = n_devices,
                                .devices_per_host = per_host,
                                .hosts_per_domain = per_domain,
                                .memory_bytes =
                                    ARENA_NEW(&arena, uint64_t, n_devices),
                                .reserve_bytes =
                                    ARENA_NEW(&arena, uint64_t, n_devices)}},
        .shards = ARENA_NEW(&arena, struct shard, n),
        .shard_ms = ARENA_NEW(&arena, double, n),
        .n_shards = n,
        .total_ms = NAN,
        .bound_ms = random_within(1e15, rng),
        .seed = rng_u64(rng),
        .n_evaluations = rng_u64(rng),
    };
    if (rng_below(rng, 2))
        plan->problem.job =
            (struct job){(enum pipeline)rng_below(rng, N_PIPELINES),
                         1 + (uint32_t)rng_below(rng, JOB_MAX_CHUNKS),
                         {random_within(1e9, rng), random_within(1e9, rng)},
                         (enum dedup)rng_below(rng, 3),
                         true,
                         random_within(1e9, rng),
                         NULL};
    for (uint32_t r = 0; r < n_devices; r++)
        plan->problem.cluster.memory_bytes[r] = UINT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        struct table *table = &plan->problem.tables[i];

        table_init(table);
        table->name = arena_printf(&arena, "t%u", i);
        table->num_embeddings = rng_u64(rng) >> rng_below(rng, 63) | 1;
        table->dim = 1 + (uint32_t)rng_below(rng, 1048576);
        table->pooling_factor = random_within(1e6, rng);
        table->num_outputs = random_within(1e6, rng);
        table->zipf_alpha = random_within(TABLE_MAX_ZIPF, rng);
        table->row_order = (enum row_order)rng_below(rng, N_ROW_ORDERS);
        table->row_seed = rng_u64(rng);
        table->dedup = rng_below(rng, 2) ? 1 : 1e-3 + 0.9 * rng_uniform(rng);
        table->has_bins = rng_below(rng, 2);
        table->skew_assumed = rng_below(rng, 2);
        if (table->has_bins)
            random_bins(table->bins, rng);
        plan->shards[i] =
            shard_whole(&plan->problem, i, (uint32_t)rng_below(rng, n_devices));
        plan->shard_ms[i] = rng_below(rng, 4) ? random_within(1e15, rng) : NAN;
    }
    plan->shard_ms[0] = 0x1.5555555555555p-3;
}

static void test_round_trip(void)
{
    struct rng rng;
    int n_wrong = 0;

    rng_init(&rng, 11, 0);
    for (int i = 0; i < 500; i++) {
        struct plan plan, again;
        struct err err = {0};
        const char *text;

        random_plan(&plan, &rng);
        text = plan_to_json(&plan, &arena);
        if (plan_check(&plan, &err) || read_text(&again, text, &err)) {
            /* saturated sizes do not fit even the largest memory */
            n_wrong += err.code != ERR_NO_PLAN;
            continue;
        }
        n_wrong += !same_plan(&plan, &again) ||
                   strcmp(plan_to_json(&again, &arena), text);
    }
    is_i64(n_wrong, 0, "500 random plans, seed 11: the same to the last bit");
}

/* Replaces each text of the file, in turn, by one that a terminal must not
 * receive. The plan is refused, unless the text is the name of an unknown
 * member. That name is not written back. */
static void test_hostile_texts(void)
{
    const char *text;
    size_t n_texts, n_taken = 0, n_bad = 0;

    for (n_texts = 0; (text = hostile_json(full, n_texts, &arena)); n_texts++) {
        struct plan plan;
        struct err err = {0};

        if (!read_text(&plan, text, &err)) {
            n_taken++;
            n_bad += !is_clean(plan_to_json(&plan, &arena));
        } else {
            n_bad += !text_is_printable(err.msg);
        }
    }
    ok(n_texts > 150 && n_taken > 20 && !n_bad, "%zu hostile texts", n_texts);
    text = arena_printf(&arena, "{\"search\": \"%s\", %s", HOSTILE_JSON,
                        small + 1);
    ok(read_text(&(struct plan){0}, text, &(struct err){0}),
       "a text that only people read is refused too");
}

static void test_foreign_bytes(void)
{
    struct plan plan;
    struct err err = {0};

    ok(!read_text(&plan, small, &err), "a plan");
    plan.problem.source = "caf\xe9.csv";
    ok(!read_text(&plan, plan_to_json(&plan, &arena), &err), "is read back");
    is_str(plan.problem.source, "caf\\xe9.csv",
           "with a source that is no UTF-8 made so");
}

/* A plan that was read has its hot rows. The basis of the host's time is
 * written and read back. */
static void test_kept(void)
{
    struct plan plan, again;
    struct err err = {0};

    ok(!read_text(&plan, full, &err) && plan.problem.hot, "hot rows %s",
       err.msg);
    plan.cost.host = HOST_MEASURED;
    ok(!read_text(&again, plan_to_json(&plan, &arena), &err) &&
           again.cost.host == HOST_MEASURED,
       "the host: %s", err.msg);
    plan.cost.host = HOST_NONE;
    ok(!strstr(plan_to_json(&plan, &arena), "\"host\""), "if there is one");
}

/* In plans before version 0.3 the total and the bound are at least the time of
 * the host. The total becomes that of the slowest GPU. */
static void test_old_host(void)
{
    static const struct {
        const char *host, *total, *bound;
        double total_ms, bound_ms;
    } cases[] = {{"9", "9", "9", 8.75, NAN},
                 {"9", "9", "8", 8.75, 8},
                 {"5", "8.75", "8", 8.75, 8}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err err = {0};
        struct plan plan;
        const char *text = arena_printf(
            &arena,
            "{\"neuroshard_plan\": 1, \"batch\": 64, \"cluster\": "
            "{\"gpus\": 1, \"memory_bytes\": [1000000]}, \"tables\": "
            "[{\"name\": \"a\", \"num_embeddings\": 9, \"dim\": 16, "
            "\"pooling_factor\": 1}], \"shards\": [{\"table\": 0, "
            "\"row_begin\": 0, \"row_end\": 9, \"col_begin\": 0, "
            "\"col_end\": 16, \"device\": 0}], \"devices\": "
            "[{\"compute_ms\": 8.75, \"bwd_comm_ms\": 0, "
            "\"fwd_comm_ms\": 0, \"total_ms\": 8.75, \"memory_bytes\": "
            "{\"weights\": 576, \"optimizer\": 36, \"io\": 8704, "
            "\"reserve\": 0, \"total\": 9316}}], \"cost_model\": "
            "{\"name\": \"x\", \"host_ms\": %s}, \"total_ms\": %s, "
            "\"bound_ms\": %s}",
            cases[i].host, cases[i].total, cases[i].bound);

        ok(!read_text(&plan, text, &err), "case %zu: %s", i, err.msg);
        ok(plan.total_ms == cases[i].total_ms &&
               (plan.bound_ms == cases[i].bound_ms ||
                (isnan(plan.bound_ms) && isnan(cases[i].bound_ms))) &&
               plan.cost.host == HOST_ASSUMED,
           "GPU work %g, bound %g", plan.total_ms, plan.bound_ms);
    }
}

/* Reads `full` with a text of the dense part in the place of that of table b,
 * which gives sequences. */
static int read_dense(struct plan *plan, const char *dense, struct err *err)
{
    const char *text = strstr(full, "\"dense_ms\"");
    const char *made = arena_printf(&arena, "%.*s%s, %s", (int)(text - full),
                                    full, dense, text);
    char *sequence = strstr(made, "\"sequence\"");

    *err = (struct err){0};
    memcpy(sequence, "\"pooled\"  ", 10);
    return read_text(plan, made, err);
}

static void test_dense(void)
{
    static const char *const wrong[][2] = {
        {"\"dense\": \"top:1\"", "step.dense: 'interaction' is missing"},
        {"\"dense\": \"dlrm\"",
         "step.dense: interaction 'dot' needs tables of one width, but 'a' has "
         "64 columns and 'b' 128"},
        {"\"dense_cost\": {\"forward_ms\": 1}",
         "step.dense_cost.backward_ms is missing"},
    };
    struct plan plan, again;
    struct err err;

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ok(read_dense(&plan, wrong[i][0], &err), "refused: %s", wrong[i][0]);
        ok(strstr(err.msg, wrong[i][1]) != NULL, "%s", err.msg);
    }
    ok(!read_text(&plan, small, &err), "a plan without a dense part");
    ok(!plan.problem.job.dense && !strstr(plan_to_json(&plan, &arena), "dense"),
       "writes none");
    for (uint32_t r = 0; r < plan.problem.cluster.n_devices; r++)
        plan.problem.cluster.memory_bytes[r] = (uint64_t)1 << 40;
    if (dense_read(&plan.problem.job.dense, "dcnv2;dtype:bf16", 16,
                   plan.problem.tables, plan.problem.n_tables, &arena, &err))
        ok(0, "%s", err.msg);
    plan.dense = (struct dense_cost){1.5, 3, 0.25, 2, 0x1.1p-3, 0.5, true};
    if (!ok(!read_text(&again, plan_to_json(&plan, &arena), &err), "with one"))
        printf("# %s\n", err.msg);
    ok(again.dense.forward_ms == 1.5 && again.dense.backward_ms == 3 &&
           again.dense.update_ms == 0.25 && again.dense.reduce_ms == 2 &&
           again.dense.exposed_ms == 0x1.1p-3 &&
           again.dense.error_frac == 0.5 && again.dense.is_measured,
       "its predicted times come back");
    ok(again.problem.job.dense &&
           again.problem.job.dense->type == DENSE_TYPE_BF16 &&
           again.problem.job.dense->n_parameters ==
               plan.problem.job.dense->n_parameters,
       "and its layers");
    ok(strcmp(plan_inputs_hash(&plan, &arena),
              plan_inputs_hash(&again, &arena)) == 0,
       "the same inputs");
    again.dense.forward_ms = 2;
    ok(strcmp(plan_inputs_hash(&plan, &arena),
              plan_inputs_hash(&again, &arena)) != 0,
       "another rate of the GPU is another input");
}

static void test_files(void)
{
    char dir[] = "/tmp/t_plan_json.XXXXXX";
    struct plan plan, again;
    struct err err = {0};
    const char *path, *text;
    size_t len;

    if (!ok(mkdtemp(dir) != NULL, "a temporary folder"))
        return;
    path = arena_printf(&arena, "%s/plan.json", dir);
    ok(!read_text(&plan, full, &err) && !plan_save(&plan, path, &err), "saved");
    ok(!plan_load(&again, path, &arena, &err) && same_plan(&plan, &again),
       "and loaded");

    plan.shards[0].row_end--;
    ok(plan_save(&plan, path, &err) == -1 && err.code == ERR_INPUT,
       "a broken plan is not saved");
    is_str(err.msg, "table 'a': row 999, column 0 is in no shard",
           "its sentence");
    ok(!file_read(&text, &len, path, &arena, &err) && !strcmp(text, full),
       "and the old file stands");
    unlink(path);
    ok(plan_load(&again, path, &arena, &err) == -1 && err.code == ERR_IO,
       "a missing file is ERR_IO");
    rmdir(dir);
}

int main(void)
{
    test_full();
    test_bandwidths();
    test_unknown_keys();
    test_moved();
    test_small();
    test_io();
    test_tolerated();
    test_refused();
    test_not_json();
    test_round_trip();
    test_hostile_texts();
    test_foreign_bytes();
    test_kept();
    test_old_host();
    test_dense();
    test_files();
    arena_release(&arena);
    return tap_done();
}
