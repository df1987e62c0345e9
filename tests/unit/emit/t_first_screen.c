/* SPDX-License-Identifier: MIT */
#include "emit/first_screen.h"

#include "core/plan_memory.h"
#include "tests/unit/emit/fixture.h"

/* Returns the text of a first screen, in the arena. */
static const char *screen_of(const struct plan *plan,
                             const struct report_options *options)
{
    struct buf out = {0};
    const char *text;

    emit_first_screen(plan, options, &out);
    text = arena_strdup(&arena, out.data);
    buf_release(&out);
    return text;
}

/* Returns a plan of n_gpus GPUs with a whole table on each, one table that is
 * cut by rows over all of them, and one that is cut by columns over two. */
static struct plan make_plan(uint32_t n_gpus)
{
    struct plan plan = fixture_plan(n_gpus, n_gpus, 65536);

    for (uint32_t r = 0; r < n_gpus; r++)
        fixture_whole(&plan, arena_printf(&arena, "own%u", r), 1000000, 16, 1,
                      r);
    fixture_table(&plan, "rows", 64 * n_gpus, 16, 4);
    for (uint32_t r = 0; r < n_gpus; r++)
        fixture_shard(&plan, 64 * r, 64 * (r + 1), 0, 16, r);
    fixture_table(&plan, "wide", 1000, 64, 2);
    fixture_shard(&plan, 0, 1000, 0, 32, 0);
    fixture_shard(&plan, 0, 1000, 32, 64, 1);
    fixture_finish(&plan);
    plan.devices = ARENA_NEW(&arena, struct device_cost, n_gpus);
    plan.shard_ms = ARENA_NEW(&arena, double, plan.n_shards);
    for (size_t i = 0; i < plan.n_shards; i++)
        plan.shard_ms[i] = (double)i;
    for (uint32_t r = 0; r < n_gpus; r++) {
        struct device_cost *device = &plan.devices[r];

        device->compute_ms = device->total_ms = 1 + 0.1 * r;
        device->alone_ms = device->compute_ms;
        device->parts_ms[STEP_FORWARD] = device->compute_ms;
    }
    plan.total_ms = 1 + 0.1 * (n_gpus - 1);
    plan.exposed_ms[STEP_FORWARD] = plan.total_ms;
    plan.cost = (struct cost_source){.name = "roofline:h100",
                                     .host = HOST_ASSUMED,
                                     .lookup_error.frac = 0.1};
    plan_count_memory(&plan);
    return plan;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

static void test_whole(void)
{
    const struct report_alternative alternatives[] = {
        {"changes of training", 1.022, 0.02, 1.01, true, false},
        {"row cuts", 1.5, NAN, NAN, false, false},
        {"replicas", 1.1, 0.05, 1.1, false, true}};
    const struct compare_entry rivals[] = {{.planner = "A's planner",
                                            .ratio = 1.3,
                                            .step_ratio = 1.1,
                                            .gain_error_frac = 0.07,
                                            .step_error_frac = 0.03,
                                            .step.host_ms = 3.09,
                                            .is_significant = true},
                                           {.planner = "B's",
                                            .ratio = 1.01,
                                            .step_ratio = 1.02,
                                            .gain_error_frac = NAN,
                                            .step.host_ms = 2.5}};
    const struct report_options options = {.is_default_batch = true,
                                           .path = "p.json",
                                           .alternatives = alternatives,
                                           .n_alternatives = 3,
                                           .rivals = rivals,
                                           .n_rivals = 2};
    struct plan plan = make_plan(3);

    plan.problem.cluster.gpu = "h100";
    plan.problem.cluster.is_default_gpu = true;
    is_str(
        screen_of(&plan, &options),
        "5 tables on 3 x H100: step 2.77 ms, 2.16 to 3.47; <= 23.6M samples/s\n"
        "tables only: GPU work 1.20 ms +-10 % partly beside host 2.50 ms; "
        "waits for host\n"
        "1.10x +-3 % faster than A's planner (1.30x +-5 % GPU work, host 3.09 "
        "ms)\n"
        "ties B's in GPU work (1.01x; 1.02x step)\n"
        "fits: fullest GPU 0, 0.13 of 80 GiB\n"
        "training changes: 1 by columns (wide), a state per piece; without: "
        "1.01x as long\n"
        "    (1.022x +-2.0 % GPU work); --shard table,row,replicate keeps "
        "training\n"
        "cut: 1 by rows (rows); without row cuts: 1.50x GPU work\n"
        "GPU 0 #############     1.00 ms    0 GiB  wide/2 rows/3 own0\n"
        "GPU 1 ##############    1.10 ms    0 GiB  wide/2 rows/3 own1\n"
        "GPU 2 ###############   1.20 ms    0 GiB  rows/3 own2\n"
        "assumed: GPU h100, skew Zipf 1.05, global batch 65536, host 2.5 ms, "
        "no dense\n"
        "wrote p.json; next: neuroshard emit p.json --format torchrec, or "
        "--details\n",
        "all lines");
}

/* Whatever the number of GPUs, the screen keeps its lines and columns. */
static void test_sizes(void)
{
    size_t n_long = 0, n_wide = 0, n_lost = 0;

    for (uint32_t n = 2; n <= 40; n++) {
        struct plan plan = make_plan(n);
        const char *text = screen_of(&plan, &(struct report_options){0});

        n_long += count_lines(text) > FIRST_SCREEN_LINES;
        n_lost += !strstr(text, "GPU 0");
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            n_wide += strcspn(line, "\n") > 80;
    }
    is_i64((int64_t)n_long, 0, "at most 14 lines");
    is_i64((int64_t)n_wide, 0, "at most 80 columns");
    is_i64((int64_t)n_lost, 0, "a row has the first GPU");
}

/* A group of GPUs has its largest memory, and names the GPU of its tables. */
static void test_groups(void)
{
    struct plan plan = make_plan(16);
    const char *text;

    for (uint32_t r = 0; r < 16; r++)
        plan.devices[r].alone_ms = r < 8 ? 1 : 2;
    plan.devices[11].memory.total = 7ull << 30;
    text = screen_of(&plan, &(struct report_options){0});
    is_in(text, "\nGPU 8-15 ###############   2.00 ms    7 GiB  GPU 8: ");
    is_in(text, "\nfits: fullest GPU 11, 7 of 80 GiB\n");
}

/* Without a change of training the screen says so. If no table is cut either,
 * it says that, too. */
static void test_unchanged(void)
{
    struct plan plan = make_plan(2);

    for (size_t t = 0; t < plan.problem.n_tables; t++)
        plan.problem.tables[t].optimizer = OPTIMIZER_ADAM;
    is_in(screen_of(&plan, &(struct report_options){0}),
          " of 80 GiB; training unchanged\n"
          "cut: 1 by rows (rows), 1 by columns (wide)\n");
    plan.n_shards = 2;
    is_in(screen_of(&plan, &(struct report_options){0}),
          " of 80 GiB; no cut, training unchanged\nGPU 0");
}

/* With a dense part, samples a second are no bound. A cut short search and GPUs
 * that take longer than the host are named. */
static void test_cases(void)
{
    struct plan plan = make_plan(2);
    const char *text;

    plan.problem.job.dense_ms[0] = 1;
    plan.stopped = "time";
    plan.cost.host = HOST_NONE;
    text = screen_of(&plan, &(struct report_options){0});
    is_in(text, "; 59.6M samples/s\nwith the dense part: GPU work 1.10 ms "
                "+-10 % (dense 1.00); waits for lookups on\n    GPU 1\n");
    is_in(text, "\nthe search was cut short (time)");
    is_in(text, "\nnext: add -o plan.json (emit");
}

int main(void)
{
    test_whole();
    test_sizes();
    test_groups();
    test_unchanged();
    test_cases();
    arena_release(&arena);
    return tap_done();
}
