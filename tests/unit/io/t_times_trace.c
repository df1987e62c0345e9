/* SPDX-License-Identifier: MIT */
/* Traces of PyTorch's profiler: which times they give, and that a damaged trace
 * gives the same times or an error. */
#include "io/times_trace.h"

#include "base/rng.h"
#include "tests/tap.h"

#define N_STEPS 3

static struct arena arena;
static struct err err;

static void add_event(struct buf *out, const char *name, const char *category,
                      int op, double at, double length)
{
    buf_printf(out,
               "{\"ph\": \"X\", \"name\": \"%s\", \"cat\": \"%s\", \"args\": "
               "{\"External id\": %d}, \"ts\": %g, \"dur\": %g},\n",
               name, category, op, at, length);
}

/* Makes the trace of a rank with a GPU. */
static void make_trace(struct buf *out, int rank)
{
    buf_printf(out, "{\"schemaVersion\": 1,\n\"traceEvents\": [\n");
    for (int step = 0; step < N_STEPS; step++) {
        const double at = 1000.0 * step;
        char name[32];

        snprintf(name, sizeof(name), "ProfilerStep#%d", step + 5);
        add_event(out, name, "user_annotation", 0, at, 1);
        add_event(out, name, "gpu_user_annotation", 0, at, 999);
        add_event(out, "fbgemm::split_embedding_codegen_forward_x", "cpu_op", 1,
                  at, 9);
        add_event(out, "fbgemm::split_embedding_backward_x", "cpu_op", 2, at,
                  9);
        add_event(out, "split_embedding_codegen_forward_kernel", "kernel", 1,
                  at + 50, 99 + step);
        add_event(out, "## All2All_Pooled_fwd ##", "gpu_user_annotation", 3,
                  at + 200, 100);
        add_event(out, "ncclDevKernel_SendRecv", "kernel", 4, at + 210, 80);
        add_event(out, "DeviceRadixSortOnesweepKernel", "kernel", 2, at + 500,
                  30);
        add_event(out, "split_embedding_backward_kernel", "kernel", 2, at + 540,
                  160);
        add_event(out, "## Variable_Batch_All2All_bwd ##",
                  "gpu_user_annotation", 6, at + 400, 50);
    }
    buf_printf(out,
               "{}],\n\"distributedInfo\": {\"rank\": %d, \"world_size\": 2}}"
               "\n",
               rank);
}

/* True if the times are those of make_trace(1). */
static bool is_right(const struct times *times)
{
    static const struct {
        enum step_part part;
        double ms;
    } want[] = {{STEP_FORWARD, 0.099},
                {STEP_BACKWARD, 0.19},
                {STEP_OUTPUT, 0.1},
                {STEP_GRADIENT, 0.05}};

    if (times->n != 4 * N_STEPS)
        return false;
    for (size_t i = 0; i < times->n; i++) {
        const struct part_time *time = &times->times[i];
        const double more =
            want[i % 4].part == STEP_FORWARD ? 0.001 * (double)(i / 4) : 0;

        if (time->part != want[i % 4].part || time->rank != 1 ||
            time->step != 5 + i / 4 ||
            !(fabs(time->ms - want[i % 4].ms - more) < 1e-9))
            return false;
    }
    return true;
}

static int read_trace(struct times *times, const char *text, size_t len)
{
    *times = (struct times){.n_ranks = 2};
    err = (struct err){0};
    arena_release(&arena);
    return times_add(times, text, len, "trace", &arena, &err);
}

static void test_times(void)
{
    struct buf text = {0};
    struct times times;

    make_trace(&text, 1);
    ok(!read_trace(&times, text.data, text.len) && is_right(&times),
       "the times of each phase and step %s", err.msg);
    times_release(&times);
    buf_release(&text);
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"{\"traceEvents\": []}",
         "trace:1: the trace has no rank in distributedInfo"},
        {"{\"traceEvents\": [], \"distributedInfo\": {\"rank\": 0}}",
         "trace:1: the profiler did not mark steps: give it a schedule, and "
         "call "
         "its step()"},
        {"{\"traceEvents\": [{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": "
         "\"ProfilerStep#1\", \"ts\": 1, \"dur\": 1}], \"distributedInfo\": "
         "{\"rank\": 0}}",
         "trace:1: no lookups or exchanges of TorchRec in a step"},
        {"{\"distributedInfo\": {\"rank\": 0, \"world_size\": 8},\n"
         "\"traceEvents\": []}",
         "trace:1: the trace is of a job of 8 ranks, but the plan has 2"},
        {"{\n\"traceEvents\": [\n{\"ph\": 1},\n3]}",
         "trace:4: not a whole trace: an event is missing"},
        {"{\n\"traceEvents\": [\n{\"ph\": 1}\n",
         "trace:4: not a whole trace: no ',' or ']' after an event"},
        {"{\n\"traceEvents\": [\n{\"ph\":\n1",
         "trace:4: not a whole trace: '}' expected near end of file"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct times times;

        is_i64(read_trace(&times, cases[i].text, strlen(cases[i].text)), -1,
               "refused");
        is_str(err.msg, cases[i].want, "with the reason");
        times_release(&times);
    }
}

/* Cuts a trace, doubles a line or inserts a foreign one. */
static void damage(struct buf *out, const struct buf *text, struct rng *rng)
{
    const size_t kind = rng_below(rng, 3);
    size_t at = rng_below(rng, text->len - 2), len;

    if (!kind) {
        buf_add(out, text->data, at);
        return;
    }
    while (at && text->data[at - 1] != '\n')
        at--;
    len = strcspn(text->data + at, "\n") + 1;
    buf_add(out, text->data, at);
    if (kind == 1)
        buf_add(out, text->data + at, len);
    else
        buf_printf(out, "I0301 12:00 it's slow\n");
    buf_add(out, text->data + at, text->len - at);
}

static void test_damaged(void)
{
    const size_t n = tap_size(60, 300);
    size_t n_wrong = 0, n_refused = 0;
    struct buf text = {0};

    make_trace(&text, 1);
    for (size_t i = 0; i < n; i++) {
        struct buf bad = {0};
        struct times times;
        struct rng rng;
        int rc;

        rng_init(&rng, i, 0);
        damage(&bad, &text, &rng);
        buf_add(&bad, "", 0);
        rc = read_trace(&times, bad.data, bad.len);
        n_refused += rc != 0;
        n_wrong += !rc && !is_right(&times);
        times_release(&times);
        buf_release(&bad);
    }
    ok(!n_wrong, "of %zu damaged traces, %zu are refused, the others right", n,
       n_refused);
    ok(n_refused > n / 2, "most are refused");
    buf_release(&text);
}

int main(void)
{
    test_times();
    test_refused();
    test_damaged();
    arena_release(&arena);
    return tap_done();
}
