/* SPDX-License-Identifier: MIT */
#include "tests/unit/emit/fixture.h"

#include "emit/emit.h"
#include "emit/report_parts.h"

#define MAX_COLUMNS 100

static const char *report_of(const struct plan *plan)
{
    struct buf out = {0};
    const char *text;

    emit_report(plan, &out);
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* Made-up costs: a shard alone costs a millisecond a million look-up columns;
 * compute is 0.6 of their sum, and every GPU waits for the last one. */
static void price(struct plan *plan)
{
    uint32_t n_devices = plan->problem.cluster.n_devices;
    double last_ms = 0;

    plan->devices = ARENA_NEW(&arena, struct device_cost, n_devices);
    plan->shard_ms = ARENA_NEW(&arena, double, plan->n_shards);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        struct device_cost *device = &plan->devices[shard->device];

        plan->shard_ms[i] = shard_lookups(&plan->problem, shard) * 1e-6 *
                            (shard->col_end - shard->col_begin);
        device->compute_ms += 0.6 * plan->shard_ms[i];
    }
    plan_count_memory(plan);
    for (uint32_t r = 0; r < n_devices; r++) {
        plan->devices[r].bwd_comm_ms = 0.25;
        last_ms = fmax(last_ms, plan->devices[r].compute_ms + 0.25);
    }
    plan->total_ms = 0;
    for (uint32_t r = 0; r < n_devices; r++) {
        struct device_cost *device = &plan->devices[r];

        device->fwd_comm_ms =
            last_ms - device->compute_ms - device->bwd_comm_ms + 0.5 + 0.01 * r;
        device->total_ms =
            device->compute_ms + device->bwd_comm_ms + device->fwd_comm_ms;
        plan->total_ms = fmax(plan->total_ms, device->total_ms);
        for (unsigned p = 0; p < N_STEP_PARTS; p++)
            device->parts_ms[p] = r + 0.125 * p;
    }
    for (unsigned p = 0; p < N_STEP_PARTS; p++)
        plan->exposed_ms[p] = 10.125 * p;
    plan->cost = (struct cost_source){
        .name = "roofline:h100",
        .hash = "0123456789abcdef",
        .basis = BASIS_MODELLED,
        .comm = "alpha-beta figures of h100",
        .device = "cpu:x",
    };
    plan->search = "reference";
    plan->stopped = "done";
    plan->seed = 7;
    plan->n_evaluations = 1234;
    plan->search_ms = 56.7;
}

static struct plan mixed_plan(void)
{
    struct plan plan = fixture_plan(4, 2, 65536);

    fixture_whole(&plan, "users", 40000000, 128, 3, 0);
    fixture_table(&plan, "items", 20000000, 128, 20)->skew_assumed = false;
    fixture_shard(&plan, 0, 20000000, 0, 64, 1);
    fixture_shard(&plan, 0, 20000000, 64, 96, 2);
    fixture_shard(&plan, 0, 20000000, 96, 128, 2);
    fixture_table(&plan, "pages", 1000000, 64, 2);
    for (uint32_t r = 0; r < 4; r++)
        fixture_shard(&plan, r * 250000, (r + 1) * 250000, 0, 64, r);
    fixture_whole(&plan, "a name longer than the thirty-two columns it has", 9,
                  8, 1, 3);
    fixture_finish(&plan);
    price(&plan);
    return plan;
}

static void is_not_in(const char *text, const char *part)
{
    ok(!strstr(text, part), "does not say: %s", part + strspn(part, "\n"));
}

/* No line is wider than a page, and none ends in a blank; what is empty is one
 * line between others. */
static void fits(const char *text)
{
    size_t widest = 0, n_trailing = 0, n_empty = 0;

    if (!ok(*text && text[strlen(text) - 1] == '\n', "the last line ends"))
        return;
    for (const char *line = text; *line;) {
        size_t len = strcspn(line, "\n");

        widest = len > widest ? len : widest;
        n_trailing += len && line[len - 1] == ' ';
        n_empty += !len && (!line[1] || line[1] == '\n');
        line += len + 1;
    }
    ok(widest <= MAX_COLUMNS, "fits %d columns (%zu)", MAX_COLUMNS, widest);
    is_i64((int64_t)n_trailing, 0, "no line ends in a blank");
    is_i64((int64_t)n_empty, 0, "nothing is missing");
}

/* Compute is 0.6 of: users 3 x 128 x 65536 columns, 25.166 ms, on GPU 0; items
 * 20 x 64, 83.886 ms, on GPUs 1 and 2; pages 0.5 x 64, 2.097 ms, on each; the
 * last 1 x 8, 0.524 ms, on GPU 3. So 16.358, 51.590, 51.590 and 1.573 ms; ready
 * last is GPU 1 after 51.840 ms; GPU 3 ends 0.53 later. A sample has 26
 * look-ups in 4 bags, and each of two hosts half of them. */
static const char mixed_text[] =
    "plan    4 tables in 9 shards on 4 GPUs, 2 hosts of 2, global "
    "batch 65536\n"
    "search  reference, seed 7, 1234 evaluations\n"
    "cost    roofline:h100 0123456789abcdef, modelled on cpu:x\n"
    "        communication: alpha-beta figures of h100\n"
    "step    52.370 ms (GPU 1), max over mean of compute 1.704; "
    "lower bound 41.896 ms, gap 25.0 %\n"
    "        pipeline sdd, dense part not known\n"
    "        exposed: input 0.000, forward 10.125, output 20.250,\n"
    "                 gradient 30.375, backward 40.500, replicas 50.625 ms\n"
    "feed    1.63e+07 ids, 0.14 GB a second to each host, for the tables "
    "alone\n"
    "\n"
    "      compute bwd comm fwd comm    total          memory\n"
    "GPU        ms       ms       ms       ms     GiB     %  shards\n"
    "0      16.358    0.250   35.732   52.340   19.44  24.3  TW 1 RW 1\n"
    "1      51.590    0.250    0.510   52.350    5.06   6.3  CW 1 RW 1\n"
    "2      51.590    0.250    0.520   52.360    5.17   6.5  CW 2 RW 1\n"
    "3       1.573    0.250   50.547   52.370    0.15   0.2  TW 1 RW 1\n"
    "mean   30.278    0.250   21.827   52.355    7.45\n"
    "shards: TW whole tables, CW column pieces, RW row pieces; fwd "
    "comm holds the waiting\n"
    "\n"
    "GPU    weights optimizer     input   outputs      nccl   reserve  GiB\n"
    "0        19.13      0.15      0.02      0.13      0.00      0.00\n"
    "1         4.83      0.08      0.05      0.10      0.00      0.00\n"
    "2         4.83      0.15      0.09      0.10      0.00      0.00\n"
    "3         0.06      0.00      0.02      0.08      0.00      0.00\n"
    "\n"
    "GPU     input  forward   output gradient backward replicas  waiting  ms\n"
    "0       0.000    0.125    0.250    0.375    0.500    0.625   35.232\n"
    "1       1.000    1.125    1.250    1.375    1.500    1.625    0.000\n"
    "2       2.000    2.125    2.250    2.375    2.500    2.625    0.000\n"
    "3       3.000    3.125    3.250    3.375    3.500    3.625   50.017\n"
    "\n"
    "slowest GPU, ms                   GPU 1     mean\n"
    "  compute                        51.590   30.278\n"
    "  backward communication          0.250    0.250\n"
    "  waiting                         0.000   21.312\n"
    "  forward communication           0.510    0.515\n"
    "GPU 1: its compute is 21.312 ms above the mean\n"
    "  a piece of table 'items' costs most there, 83.886 ms alone\n"
    "\n"
    "dearest tables, each shard priced alone (fused they cost less)\n"
    "table                             alone ms    %         rows   "
    "dim  pooling  shards  GPUs\n"
    "items                              167.772 83.1     20000000   "
    "128    20.00  CW 3    1 2\n"
    "users                               25.166 12.5     40000000   "
    "128     3.00  TW 1    0\n"
    "pages                                8.389  4.2      1000000    "
    "64     2.00  RW 4    0 1 2 3\n"
    "a name longer than the thirty-t~     0.524  0.3            9     "
    "8     1.00  TW 1    3\n"
    "\n"
    "note: the access skew of 3 of 4 tables is not given; Zipf 1.05 is "
    "assumed\n"
    "note: 3 of 4 predictions were raised to the physical floor\n"
    "note: row-wise Adagrad keeps a mean for each column piece of a "
    "row: 1 table is so cut\n";

static void test_mixed(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.bound_ms = plan.total_ms / 1.25;
    plan.n_floored = 3;
    text = report_of(&plan);
    is_str(text, mixed_text, "all there is to say");
    is_not_in(text, "dense optimizer");
    is_not_in(text, "stopped early");
    fits(text);
    is_str(report_of(&plan), text, "the same plan, the same report");
}

/* The first of four blocks in the order of frequency has most of all, and is
 * named where all wait for it. */
static void test_hot_block(void)
{
    struct plan plan = mixed_plan();

    plan.problem.tables[2].row_order = ROW_ORDER_FREQUENCY;
    problem_find_hot_rows(&plan.problem, &arena);
    is_not_in(report_of(&plan), "hot row block");
    plan.devices[0].compute_ms = 60;
    is_in(report_of(&plan),
          "\nnote: GPU 0, ready last, has a hot row block of table 'pages', "
          "with 3.73 times the mean look-ups\n");
    plan.cost.name = "torchrec";
    is_not_in(report_of(&plan), "hot row block");
}

static void test_stopped_and_analytic(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.stopped = "time";
    plan.cost.basis = BASIS_ANALYTIC;
    plan.cost.device = NULL;
    text = report_of(&plan);
    is_in(text, "1234 evaluations, stopped early (time)\n");
    is_in(text, "0123456789abcdef, analytic\n");
    is_not_in(text, "lower bound");
    is_not_in(text, "physical floor");
    plan.bound_ms = 0;
    is_not_in(report_of(&plan), "lower bound");
}

/* Of 101.25 ms of look-ups and 50.625 of exchanges that are exposed. */
static void test_errors(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    is_not_in(report_of(&plan), "within");
    plan.cost.lookup_error =
        (struct cost_error){.frac = 0.2, .of = "12 samples"};
    text = report_of(&plan);
    is_in(text, "        look-ups within 20 %: nine in ten of 12 samples\n");
    is_not_in(text, "+-");
    plan.cost.exchange_error.frac = 0.5;
    text = report_of(&plan);
    is_in(text, "        exchanges within 50 %\n");
    is_in(text, "ms +-21 % (GPU ");
}

/* The three that are farthest, of all that there are. */
static void test_outside(void)
{
    static struct cost_outside outside[] = {{"t1", "rows", 4e9, 10, 2e8},
                                            {NULL, "batch", 64, 128, 65536},
                                            {"t2", "columns", 2, 4, 512},
                                            {"t3", "columns", 2, 4, 512}};
    struct plan plan = mixed_plan();
    const char *text;

    is_not_in(report_of(&plan), "outside");
    plan.cost.outside = outside;
    plan.cost.n_outside = 3;
    text = report_of(&plan);
    is_in(text,
          "        outside of what was measured: rows of table 't1' 4e+09 "
          "(10 to 2e+08)\n"
          "        outside of what was measured: batch 64 (128 to "
          "65536)\n");
    is_in(text, "columns of table 't2' 2 (4 to 512)\n");
    plan.cost.n_outside = 4;
    text = report_of(&plan);
    is_in(text, "columns of table 't2' 2 (4 to 512) and more\n");
    is_not_in(text, "'t3'");
}

static void test_made_by_hand(void)
{
    struct plan plan = mixed_plan();

    plan.search = NULL;
    is_in(report_of(&plan), "search  none: the plan was made by hand\n");
}

static void test_kinds(void)
{
    char text[REPORT_KINDS_MAX] = "before";

    is_str(report_kinds(text, (const size_t[N_SHARD_KINDS]){0}), "",
           "no shards are of no kind");
    is_str(report_kinds(text, (const size_t[N_SHARD_KINDS]){0, 2, 1}),
           "CW 2 RW 1", "some of some");
}

/* Where no parts are known, GPUs may well differ in what their step takes: the
 * one that takes most stands beside the one that the others wait for. */
static void test_unlike_totals(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    for (uint32_t r = 0; r < 4; r++)
        plan.devices[r].parts_ms[0] = NAN;
    text = report_of(&plan);
    is_in(text, "step    52.370 ms (GPU 3), max over mean 1.000, of compute "
                "1.704\n");
    is_in(text,
          "slowest GPU, ms                   GPU 3     mean      GPU 1, "
          "which is ready last\n"
          "  compute                         1.573   30.278     51.590\n"
          "  backward communication          0.250    0.250      0.250\n"
          "  waiting                        50.017   21.312      0.000\n"
          "  forward communication           0.530    0.515      0.510\n"
          "GPU 3: its waiting is 28.705 ms above the mean\n"
          "GPU 1: its compute is 21.312 ms above the mean\n"
          "  a piece of table 'items' costs most there, 83.886 ms alone\n");
}

/* However short a step is, its parts are as uneven. */
static void test_short(void)
{
    struct plan plan = mixed_plan();

    for (uint32_t r = 0; r < 4; r++) {
        plan.devices[r].compute_ms /= 1000;
        plan.devices[r].bwd_comm_ms /= 1000;
        plan.devices[r].fwd_comm_ms /= 1000;
        plan.devices[r].total_ms /= 1000;
    }
    plan.total_ms /= 1000;
    is_in(report_of(&plan), ", max over mean of compute 1.704");
}

/* GPUs that hold a table are named once each, in the order of its pieces. */
static void test_holders(void)
{
    struct plan plan = fixture_plan(2, 2, 65536);

    fixture_table(&plan, "to and fro", 4000, 48, 3);
    for (uint32_t i = 0; i < 3; i++)
        fixture_shard(&plan, 0, 4000, 16 * i, 16 * i + 16, i % 2);
    fixture_finish(&plan);
    price(&plan);
    is_in(report_of(&plan), "  CW 3    0 1\n");
}

/* Nothing stands out where all have as much to do. */
static void test_even(void)
{
    struct plan plan = fixture_plan(2, 2, 65536);

    fixture_whole(&plan, "left", 4000000, 128, 3, 0);
    fixture_whole(&plan, "right", 4000000, 128, 3, 1);
    fixture_finish(&plan);
    price(&plan);
    is_in(report_of(&plan), "\nGPU 0: as the mean in all its parts\n"
                            "  table 'left' costs most there, ");
}

static void test_one_gpu(void)
{
    struct plan plan = fixture_plan(1, 1, 128);
    const char *text;

    fixture_whole(&plan, "only", 1000, 16, 1, 0);
    fixture_finish(&plan);
    plan.problem.tables[0].skew_assumed = false;
    price(&plan);
    text = report_of(&plan);
    is_not_in(text, "note: ");
    is_in(text, "plan    1 table in 1 shard on 1 GPU, 1 host, global batch "
                "128\n");
    is_not_in(text, "memory  ");
    is_in(text, " KiB ");
    is_not_in(text, "slowest GPU");
    is_not_in(text, "mean ");
    fits(text);
}

static void test_many_gpus(void)
{
    struct plan plan = fixture_plan(64, 8, 65536);
    const char *text;
    int n_lines = 0;

    for (uint32_t i = 0; i < 64; i++)
        fixture_whole(&plan, arena_printf(&arena, "t%u", i), 1000 + i, 32,
                      1 + i, i);
    fixture_finish(&plan);
    price(&plan);
    text = report_of(&plan);
    is_in(text, "\n...  52 more between the 8 slowest and the 4 fastest\n");
    is_in(text, "\n63 ");
    is_in(text, "\n56 ");
    is_in(text, "\n0  ");
    is_in(text, "\n3  ");
    is_not_in(text, "\n55 ");
    is_not_in(text, "\n4  ");
    for (const char *at = text; (at = strstr(at, "\nt")); at++)
        n_lines++;
    is_i64(n_lines, 11, "ten tables under their heading");
    fits(text);
}

/* The first lines tell what stays free, and that hosts are assumed; amounts
 * keep to their columns beside a reserve that is much larger. */
static void test_reserve(void)
{
    struct plan plan = mixed_plan();
    const char *text;

    plan.problem.cluster.host_size = 8;
    for (uint32_t r = 0; r < 4; r++)
        plan.problem.cluster.reserve_bytes[r] = UINT64_C(12) << 30;
    price(&plan);
    text = report_of(&plan);
    is_in(text, "on 4 GPUs, 2 hosts of 2 (assumed), global");
    is_in(text, "\nmemory  80.0 GiB a GPU, 12.0 GiB of it reserved\n");
    is_in(text, "0.00     12.00\n");
    fits(text);
    plan.problem.cluster.host_size = 0;
    plan.problem.cluster.hosts_per_domain = 2;
    is_in(report_of(&plan), "on 4 GPUs, 2 hosts of 2 in 1 NVLink domain, ");
    plan.problem.cluster.reserve_bytes[3] = 0;
    plan.problem.cluster.memory_bytes[2] = UINT64_C(90) << 30;
    price(&plan);
    is_in(report_of(&plan), "\nmemory  80.0 GiB to 90.0 GiB a GPU, 0 B to 12.0 "
                            "GiB of it reserved\n");
    plan = fixture_plan(1, 1, 128);
    fixture_whole(&plan, "only", 1 << 20, 16, 1, 0);
    plan.problem.cluster.reserve_bytes[0] = UINT64_C(12) << 30;
    fixture_finish(&plan);
    price(&plan);
    text = report_of(&plan);
    is_in(text, "     MiB     %  shards\n");
    is_in(text, " 12356.0  15.1  TW 1\n");
    is_in(text,
          "      64.0       4.0       0.0       0.0       0.0   12288.0\n");
}

static void test_weights_only(void)
{
    struct plan plan = mixed_plan();

    plan.problem.memory_model = MEMORY_WEIGHTS;
    is_in(report_of(&plan), "note: memory counts weights alone\n");
}

static void test_replicas(void)
{
    struct plan plan = fixture_plan(2, 2, 128);

    for (int t = 0; t < 2; t++) {
        fixture_table(&plan, t ? "colours" : "sizes", 8, 16, 1);
        fixture_shard(&plan, 0, 8, 0, 16, 0);
        fixture_shard(&plan, 0, 8, 0, 16, 1);
    }
    fixture_table(&plan, "cut", 8, 16, 1);
    fixture_shard(&plan, 0, 8, 0, 8, 0);
    fixture_shard(&plan, 0, 8, 8, 16, 1);
    plan.problem.tables[2].optimizer = OPTIMIZER_SGD;
    fixture_finish(&plan);
    price(&plan);
    is_in(report_of(&plan), "note: the job's dense optimizer updates the 2 "
                            "replicated tables\n");
    plan.problem.dense_optimizer = DENSE_ADAM;
    is_in(report_of(&plan), "note: the job's dense optimizer, counted as adam, "
                            "updates the 2 replicated tables\n");
    is_not_in(report_of(&plan), "row-wise");
    plan.problem.memory_model = MEMORY_WEIGHTS;
    is_not_in(report_of(&plan), "counted");
}

int main(void)
{
    arena_init(&arena);
    test_mixed();
    test_hot_block();
    test_stopped_and_analytic();
    test_errors();
    test_outside();
    test_made_by_hand();
    test_kinds();
    test_unlike_totals();
    test_short();
    test_even();
    test_holders();
    test_one_gpu();
    test_many_gpus();
    test_weights_only();
    test_reserve();
    test_replicas();
    arena_release(&arena);
    return tap_done();
}
