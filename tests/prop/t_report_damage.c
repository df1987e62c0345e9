/* SPDX-License-Identifier: MIT */
/* Damaged reports, plans and logs that state counts. No reader may return a
 * result that differs from the source without a warning. Plans in JSON state
 * little, so they are made to contradict themselves instead. Undamaged texts,
 * with the prefixes and lines of other programs as in logs, are read right and
 * without a warning.
 *
 * The test draws 60 texts for each format and damage together (full: 300), and
 * 100 undamaged ones.
 */
#include "core/plan_check.h"
#include "exec/job.h"
#include "io/nccl_tests.h"
#include "io/plan_torchrec.h"
#include "io/times.h"
#include "tests/tap.h"
#include "tests/torn_text.h"

#include <assert.h>

/* Defines the arena and the random generator of everything drawn. */
#include "tests/drawn_plans.h"

#define N_UNDAMAGED 100

/* Text, and the result that a reader should return. */
struct sample_text {
    const char *text, *truth;
    const char *earlier; /* result of an earlier text in the log, or NULL */
};

static size_t n_warnings;

static void heed(void *ctx, const char *sentence)
{
    (void)ctx;
    (void)sentence;
    n_warnings++;
}
static const struct tables_options options = {.warn = heed};

static const char *shown_plan(const struct plan *plan, bool has_list)
{
    struct buf out = {0};
    uint32_t last = UINT32_MAX;

    buf_printf(&out, "%u ranks\n", plan->problem.cluster.n_devices);
    if (!has_list)
        buf_printf(&out, "batch %llu\n",
                   (unsigned long long)plan->problem.batch);
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct shard *shard = &plan->shards[i];
        const struct table *table = &plan->problem.tables[shard->table];
        const char *name = strchr(table->name, 't');

        if (!has_list && shard->table != last)
            add_table(&out, name, table->num_embeddings, table->dim,
                      table->pooling_factor, table->num_outputs);
        last = shard->table;
        add_piece(&out, name, *shard, shard->device);
    }
    return keep(&out);
}

/* --- texts --- */

/* Returns a prefix that a launcher puts before each line. Most are empty. */
static const char *draw_prefix(void)
{
    static const char *const prefixes[] = {"",
                                           "",
                                           "",
                                           "0: ",
                                           "[default0]:",
                                           "[1,0]<stdout>:",
                                           "2026-03-01T12:00:01.123456789Z ",
                                           "INFO:torchrec.planner.stats:"};

    return prefixes[rng_draw(&rng, 8)];
}

/* Returns the text as a log: with prefixes, lines of other programs, and
 * perhaps an earlier text before it. */
static const char *logged(const char *text, const char *earlier, bool is_lines)
{
    const char *prefix = is_lines ? draw_prefix() : "";
    const bool has_foreign = is_lines && rng_draw(&rng, 2);
    struct buf out = {0};

    for (int round = rng_draw(&rng, 3) ? 1 : 0; round < 2; round++) {
        const char *at = round ? text : earlier;

        while (*at) {
            const size_t len = strcspn(at, "\n");

            if (has_foreign && !rng_draw(&rng, 12))
                buf_printf(&out, "%s\n", draw_foreign(&rng));
            buf_printf(&out, "%s%.*s\n", prefix, (int)len, at);
            at += len + (at[len] == '\n');
        }
        if (!round)
            buf_printf(&out, "%s\n", draw_foreign(&rng));
    }
    return keep(&out);
}

/* Replaces the first `what`, which must occur in the text, by `with`. */
static const char *replaced(const char *text, const char *what,
                            const char *with)
{
    const char *at = strstr(text, what);

    return arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, with,
                        at + strlen(what));
}

enum contradiction {
    RANK_OUTSIDE,
    OTHER_ROWS,
    OTHER_COLUMNS,
    OTHER_KIND,
    UNKNOWN_TABLE,
    LOST_TABLE,
    SHARD_MOVED,
    RANK_ADDED,
    TABLE_TWICE,
    SMALL_WORLD,
    N_CONTRADICTIONS
};

/* Returns the job's plan as JSON, with one contradiction in itself or with the
 * table list. */
static const char *contradicting(struct drawn job, enum contradiction what)
{
    const uint32_t t = rng_draw(&rng, job.n_tables);
    struct drawn_table *table = &job.tables[t];
    const char *row;

    switch (what) {
    case RANK_OUTSIDE:
        table->ranks[rng_draw(&rng, table->n_pieces)] =
            job.n_ranks + rng_draw(&rng, 3);
        break;
    case OTHER_ROWS: /* replicas do not state their rows */
        table->kind = "TW";
        table->kind_name = "table_wise";
        table->n_pieces = 1;
        table->n_rows += rng_draw(&rng, 2) ? 7 : (uint64_t)-7;
        break;
    case OTHER_COLUMNS:
        table->kind = "TW";
        table->kind_name = "table_wise";
        table->n_pieces = 1;
        table->dim = rng_draw(&rng, 2) ? table->dim * 2 : table->dim / 2;
        break;
    case OTHER_KIND:
        if (table->n_pieces == 1 && strcmp(table->kind, "DP") != 0)
            table->kind_name = "data_parallel";
        else
            table->kind_name = "table_wise";
        if (table->n_pieces == 1 && !strcmp(table->kind, "DP"))
            table->kind_name = "columns_wise";
        break;
    case UNKNOWN_TABLE:
        snprintf(table->name, sizeof(table->name), "t_unknown");
        break;
    case LOST_TABLE:
        job.tables[t] = job.tables[--job.n_tables];
        break;
    case SHARD_MOVED:
    case RANK_ADDED:
    case TABLE_TWICE:
    case SMALL_WORLD:
    case N_CONTRADICTIONS:
        break;
    }
    row = json_of(&job);
    if (what == SHARD_MOVED && strstr(row, "\"rank:"))
        return replaced(row, "\"rank:", "\"rank:1");
    if (what == RANK_ADDED || what == SHARD_MOVED)
        return replaced(row, "\"ranks\": [", "\"ranks\": [0, ");
    if (what == TABLE_TWICE)
        return replaced(row, arena_printf(&arena, "\"%s\"", job.tables[0].name),
                        arena_printf(&arena, "\"%s\"", job.tables[1].name));
    if (what == SMALL_WORLD)
        return replaced(row, arena_printf(&arena, "_size\": %u", job.n_ranks),
                        "_size\": 0");
    return row;
}

/* The job of the plan, for formats that need a table list in addition. */
static struct drawn job_drawn;

static struct sample_text draw_plan(const char *(*print)(const struct drawn *),
                                    bool has_list, bool is_lines)
{
    struct drawn earlier;
    const char *before, *text;

    draw_job(&earlier);
    before = print(&earlier);
    draw_job(&job_drawn);
    text = print(&job_drawn);
    return (struct sample_text){
        print == json_of ? text : logged(text, before, is_lines),
        truth_of(&job_drawn, has_list), truth_of(&earlier, has_list)};
}

static struct sample_text draw_report(void)
{
    return draw_plan(report_of, false, true);
}

static struct sample_text draw_printed(void)
{
    return draw_plan(printed_of, true, true);
}

static struct sample_text draw_repr(void)
{
    return draw_plan(repr_of, true, false);
}

/* Reads a plan as `cost` does. Returns NULL if it is refused. */
static const char *read_plan(const char *text, bool has_list)
{
    struct plan plan = {.total_ms = NAN, .bound_ms = NAN};
    struct problem *problem = &plan.problem;
    struct err err = {0};

    problem->kinds = SHARD_ALL_KINDS;
    if (!plan_is_torchrec(text))
        return NULL;
    if (has_list) {
        problem->n_tables = job_drawn.n_tables;
        problem->tables = ARENA_NEW(&arena, struct table, problem->n_tables);
        if (!plan_says_ranks(text))
            problem->cluster.n_devices = job_drawn.n_ranks;
    }
    for (size_t t = 0; t < problem->n_tables; t++) {
        table_init(&problem->tables[t]);
        problem->tables[t].name = job_drawn.tables[t].name;
        problem->tables[t].num_embeddings = job_drawn.tables[t].n_rows;
        problem->tables[t].dim = job_drawn.tables[t].dim;
    }
    if (plan_from_torchrec(&plan, text, strlen(text), "log", &options, &arena,
                           &err) ||
        (has_list && problem->n_tables < job_drawn.n_tables))
        return NULL;
    problem->cluster.memory_bytes =
        ARENA_NEW(&arena, uint64_t, problem->cluster.n_devices);
    problem->cluster.reserve_bytes =
        ARENA_NEW(&arena, uint64_t, problem->cluster.n_devices);
    cluster_take_hosts(&problem->cluster, job_drawn.n_local, 1);
    for (uint32_t r = 0; r < problem->cluster.n_devices; r++)
        problem->cluster.memory_bytes[r] = INT64_MAX;
    if (!problem->batch) /* `cost` asks the user for it */
        problem->batch = job_drawn.batch * job_drawn.n_ranks;
    plan_fill_kinds(&plan);
    return plan_check(&plan, &err) ? NULL : shown_plan(&plan, has_list);
}

static const char *read_report(const char *text)
{
    return read_plan(text, false);
}

static const char *read_listed(const char *text)
{
    return read_plan(text, true);
}

/* --- nccl-tests --- */

static void add_exchange(struct buf *out, uint64_t bytes, uint32_t n_ranks,
                         int version, double sums[2])
{
    static const char *const ends[] = {"0e+00", "0", "0"};
    const double leaves = 1 - 1.0 / n_ranks;

    assert(version >= 0 && version < 3);
    buf_printf(out, "  %llu  %llu  float", (unsigned long long)bytes,
               (unsigned long long)(bytes / 4 / n_ranks));
    buf_printf(out, version == 0   ? "       "
                    : version == 1 ? "  none"
                                   : "  none  -1");
    for (int place = 0; place < 2; place++) {
        const double us = 20 + (double)bytes / (1000 + rng_draw(&rng, 300000));
        const double shown =
            us < 100 ? round(us * 100) / 100 : round(us * 10) / 10;
        const double gbps = 1e-3 * (double)bytes / shown;
        char busbw[32];

        snprintf(busbw, sizeof(busbw), "%.2f", gbps * leaves);
        sums[0] += strtod(busbw, NULL);
        sums[1]++;
        buf_printf(out, "  %.*f  %.2f  %s  %s", us < 100 ? 2 : 1, shown, gbps,
                   busbw, place ? "N/A" : ends[version]);
    }
    buf_printf(out, "\n");
}

/* Writes a log of version 2.0 (blank redop), 2.8 (no root) or newer. */
static const char *nccl_of(uint32_t n_ranks, uint32_t n_local,
                           struct buf *truth)
{
    static const char *const headings[] = {
        "size count type redop time algbw busbw error time algbw busbw error",
        "size count type redop time algbw busbw error time algbw busbw error",
        ("size count type redop root time algbw busbw #wrong time algbw busbw "
         "#wrong")};
    const int version = (int)rng_draw(&rng, 3);
    const uint64_t least = 4096ull * n_ranks, step = 2 + rng_draw(&rng, 3);
    uint64_t most = least;
    double sums[2] = {0};
    struct buf out = {0};

    for (uint32_t i = rng_draw(&rng, 8); i; i--)
        most *= step;
    if (version == 2)
        buf_printf(&out, "# Collective test starting: alltoall_perf\n");
    buf_printf(&out,
               "# nThread 1 nGpus 1 minBytes %llu maxBytes %llu step: "
               "%llu(factor) warmup iters: 5 iters: 20 validation: 1 \n#\n"
               "# Using devices\n",
               (unsigned long long)least, (unsigned long long)most,
               (unsigned long long)step);
    for (uint32_t r = 0; r < n_ranks; r++)
        buf_printf(
            &out,
            "#  Rank %2u %sPid  %u on  node-%u device %2u [0x0%u] NVIDIA "
            "H100\n",
            r, version == 2 ? "Group  0 " : "", 1000 + r, r / n_local,
            r % n_local, r % n_local);
    buf_printf(&out, "#\n#   %s\n#   (B) (elements) (us) (GB/s) (GB/s)\n",
               headings[version]);
    for (uint64_t bytes = least; bytes <= most; bytes *= step) {
        const size_t at = out.len;
        char *words;

        add_exchange(&out, bytes, n_ranks, version, sums);
        words = out.data + at;
        /* skips the columns before the time */
        for (int w = version + 3; w; w--)
            words = words + strspn(words, " "), words += strcspn(words, " ");
        buf_printf(truth, "%llu: %g\n", (unsigned long long)bytes,
                   strtod(words, NULL));
    }
    buf_printf(
        &out,
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : %g \n#\n",
        sums[0] / sums[1]);
    return keep(&out);
}

static struct sample_text draw_nccl(void)
{
    const uint32_t n_local = 1u << rng_draw(&rng, 3);
    const uint32_t n_ranks = n_local * (2 + rng_draw(&rng, 3));
    struct buf truth = {0}, before = {0};
    struct sample_text out;
    const char *earlier;

    buf_printf(&before, "2 ranks on 2 hosts, NVIDIA H100\n");
    earlier = nccl_of(2, 1, &before);
    out.earlier = keep(&before);
    buf_printf(&truth, "%u ranks on %u hosts, NVIDIA H100\n", n_ranks,
               n_ranks / n_local);
    out.text = logged(nccl_of(n_ranks, n_local, &truth), earlier, true);
    out.truth = keep(&truth);
    return out;
}

static const char *read_nccl(const char *text)
{
    struct nccl_tests tests;
    struct err err = {0};
    struct buf out = {0};

    if (nccl_tests_parse(&tests, text, strlen(text), "log", &arena, &err))
        return NULL;
    n_warnings += tests.doubt != NULL;
    buf_printf(&out, "%u ranks on %u hosts, %s\n", tests.n_ranks, tests.n_hosts,
               tests.device);
    for (size_t i = 0; i < tests.n_rows; i++)
        buf_printf(&out, "%llu: %g\n", (unsigned long long)tests.rows[i].bytes,
                   tests.rows[i].us);
    return keep(&out);
}

/* --- times --- */

static struct sample_text draw_times(void)
{
    const uint32_t n_steps = 5 + rng_draw(&rng, 8);
    struct buf out = {0};

    job_drawn.n_ranks = 1 + rng_draw(&rng, 4);
    buf_printf(&out, "step,rank,phase,ms\n");
    for (uint32_t s = 0; s < n_steps; s++)
        for (uint32_t r = 0; r < job_drawn.n_ranks; r++)
            for (uint32_t p = 0; p < 3; p++)
                buf_printf(&out, "%u,%u,%s,%.4f\n", 100 + s, r,
                           step_part_names[p], rng_draw(&rng, 100000) / 1e4);
    return (struct sample_text){keep(&out), "as they were", NULL};
}

/* Original text. read_times returns "as they were" if the times follow each
 * other as in this text. Times may be missing at both ends, because the text
 * does not state their number. */
static const char *original_times;

static const char *read_times(const char *text)
{
    struct times times = {.n_ranks = job_drawn.n_ranks};
    struct plan plan = {.problem.cluster.n_devices = job_drawn.n_ranks};
    struct job_times job;
    struct err err = {0};
    const char *at = original_times;

    if (times_add(&times, text, strlen(text), "log", &arena, &err) ||
        job_times_init(&job, &plan, times.times, times.n, 0, &arena, &err)) {
        times_release(&times);
        return NULL;
    }
    n_warnings += times.is_cut || job.doubt;
    for (size_t i = 0; i < times.n; i++) {
        const struct part_time *time = &times.times[i];
        const char *line = arena_printf(
            &arena, "\n%llu,%u,%s,%.4f\n", (unsigned long long)time->step,
            time->rank, step_part_names[time->part], time->ms);

        at = i ? strchr(at, '\n') : strstr(at, line);
        if (!at || strncmp(at++, line, strlen(line)) != 0)
            return times_release(&times), "other times";
    }
    times_release(&times);
    return "as they were";
}

/* --- the formats --- */

static const struct format {
    const char *name;
    struct sample_text (*draw)(void);
    const char *(*read)(const char *text);
} formats[] = {
    {"planner report", draw_report, read_report},
    {"print(plan)", draw_printed, read_listed},
    {"repr(plan)", draw_repr, read_listed},
    {"nccl-tests", draw_nccl, read_nccl},
    {"times", draw_times, read_times},
};
#define N_FORMATS (sizeof(formats) / sizeof(*formats))

enum verdict { REFUSED, WARNED, RIGHT, WRONG, N_VERDICTS };

static enum verdict judge(const struct format *format,
                          const struct sample_text *sample, const char *text,
                          bool may_end_early)
{
    const char *got;

    original_times = sample->text;
    n_warnings = 0;
    got = format->read(text);
    if (!got)
        return REFUSED;
    if (n_warnings)
        return WARNED;
    if (may_end_early && sample->earlier && !strcmp(got, sample->earlier))
        return RIGHT;
    return strcmp(got, sample->truth) ? WRONG : RIGHT;
}

static void test_undamaged(const struct format *format)
{
    size_t n[N_VERDICTS] = {0};

    for (uint64_t seed = 0; seed < N_UNDAMAGED; seed++) {
        struct sample_text sample;
        enum verdict verdict;

        rng_init(&rng, seed, 1);
        sample = format->draw();
        verdict = judge(format, &sample, sample.text, false);
        n[verdict]++;
        if (verdict != RIGHT)
            printf("# seed %llu: %d\n%s\n", (unsigned long long)seed, verdict,
                   getenv("SHOW") ? sample.text : "");
        arena_release(&arena);
    }
    ok(n[RIGHT] == N_UNDAMAGED,
       "%s: %d undamaged: %zu right, %zu refused, %zu warned, %zu wrong",
       format->name, N_UNDAMAGED, n[RIGHT], n[REFUSED], n[WARNED], n[WRONG]);
}

static void test_damaged(const struct format *format, size_t n_all)
{
    size_t n[N_VERDICTS] = {0};

    for (uint64_t seed = 0; seed < n_all; seed++) {
        const enum damage damage = (enum damage)(seed % N_DAMAGES);
        struct sample_text sample;
        const char *text;
        enum verdict verdict;

        rng_init(&rng, seed, 2);
        sample = format->draw();
        text = tear(sample.text, damage, &rng, &arena);
        verdict = judge(format, &sample, text, damage == CUT);
        n[verdict]++;
        if (verdict == WRONG)
            printf("# seed %llu, %s\n%s\n", (unsigned long long)seed,
                   damage_names[damage], getenv("SHOW") ? text : "");
        arena_release(&arena);
    }
    printf("# %-16s %8zu %8zu %8zu %8zu %8zu\n", format->name, n_all,
           n[REFUSED], n[WARNED], n[RIGHT], n[WRONG]);
    ok(!n[WRONG], "%s: no wrong result without a warning", format->name);
}

static struct sample_text draw_json(void)
{
    return draw_plan(json_of, true, false);
}

static void test_contradictions(size_t n_all)
{
    size_t n[N_VERDICTS] = {0};

    for (uint64_t seed = 0; seed < n_all; seed++) {
        const enum contradiction what =
            (enum contradiction)(seed % N_CONTRADICTIONS);
        struct sample_text sample;
        const char *text;
        enum verdict verdict;

        rng_init(&rng, seed, 3);
        sample = draw_json();
        text = contradicting(job_drawn, what);
        verdict =
            judge(&(struct format){.read = read_listed}, &sample, text, false);
        n[verdict]++;
        if (verdict == WRONG || verdict == RIGHT)
            printf("# seed %llu: contradiction %d\n%s\n",
                   (unsigned long long)seed, what, getenv("SHOW") ? text : "");
        arena_release(&arena);
    }
    printf("# %-16s %8zu %8zu %8zu %8zu %8zu\n", "plan JSON", n_all, n[REFUSED],
           n[WARNED], n[RIGHT], n[WRONG]);
    ok(n[REFUSED] == n_all, "plan JSON: all that contradict themselves are "
                            "refused");
}

int main(void)
{
    static const struct format json = {"plan JSON", draw_json, read_listed};

    const size_t n = tap_size(60, 300);

    for (size_t f = 0; f < N_FORMATS; f++)
        test_undamaged(&formats[f]);
    printf("# %-16s %8s %8s %8s %8s %8s\n", "damaged", "files", "refused",
           "warned", "right", "wrong");
    for (size_t f = 0; f < N_FORMATS; f++)
        test_damaged(&formats[f], n);
    test_undamaged(&json);
    test_contradictions(n);
    return tap_done();
}
