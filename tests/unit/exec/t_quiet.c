/* SPDX-License-Identifier: MIT */
/* How a run treats a disturbed machine. The test replaces the interference
 * probe, which gives the verdicts that the test prepared. */
#include "exec/exec.h"

#include "device/interference_probe.h"
#include "exec_fixture.h"
#include "sink.h"
#include "tests/tap.h"

static const enum interference_verdict *verdicts; /* one per measurement */

int interference_probe_open(struct interference_probe **out,
                            struct device *device, struct err *err)
{
    (void)device, (void)err;
    *out = mem_alloc(1, 1);
    return 0;
}

void interference_probe_close(struct interference_probe *interference)
{
    mem_free(interference);
}

static int keep(void *ctx, const struct sample_setting *setting,
                const struct sample *sample, struct err *err)
{
    unsigned *flags = ctx;

    (void)setting, (void)err;
    *flags = *flags * 2 + ((sample->flags & SAMPLE_THROTTLED) != 0);
    return 0;
}

/* Number of times that a run asked for earlier results of the probe. */
static int n_learned;

int interference_probe_learn(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *err)
{
    (void)interference, (void)err;
    n_learned += sink->put == keep && !strncmp(setting->device, "cpu:", 4);
    return 0;
}

int interference_probe_judge(struct interference_probe *interference,
                             double begin_ms,
                             enum interference_verdict *verdict,
                             struct err *err)
{
    (void)interference, (void)begin_ms, (void)err;
    *verdict = *verdicts++;
    return 0;
}

static void check(bool waits, const enum interference_verdict *said,
                  size_t n_said, unsigned want, const char *name)
{
    struct exec_options options;
    struct exec_result result;
    struct fixture fixture;
    struct err err = {0};
    unsigned flags = 0, n = 0;
    struct sample_sink sink = {
        .ctx = &flags, .put = keep, .put_comm = keep_comm, .has = has_none};

    verdicts = said;
    n_learned = 0;
    fixture_init(&fixture, 2, 64);
    add_table(&fixture, "a", 100, 8, 1);
    add_whole(&fixture, 0);
    add_table(&fixture, "b", 100, 8, 1);
    add_whole(&fixture, 1);
    exec_options_init(&options);
    options.n_iterations = 1;
    options.wait_for_quiet = waits;
    options.sink = &sink;
    plan_derive_kinds(&fixture.plan);
    ok(!exec_run(&result, &fixture.plan, fixture.world, fixture.device,
                 &options, &fixture.arena, &err),
       "%s: %s", name, err.msg);
    for (uint32_t r = 0; r < 2; r++)
        n = n * 2 + result.ranks[r].disturbed;
    is_i64(n, want, "the ranks that were disturbed");
    is_i64(flags, want, "the samples that are flagged");
    is_i64(result.n_disturbed, want % 2 + want / 2, "their number");
    is_i64(verdicts - said, (int64_t)n_said, "measurements");
    is_i64(n_learned, waits, "asked the sink for earlier times");
    fixture_release(&fixture);
}

int main(void)
{
    static const enum interference_verdict quiet[] = {PROBE_QUIET, PROBE_QUIET},
                                           first[] = {PROBE_AGAIN, PROBE_AGAIN,
                                                      PROBE_DISTURBED,
                                                      PROBE_QUIET},
                                           second[] = {PROBE_QUIET,
                                                       PROBE_DISTURBED},
                                           passed[] = {PROBE_QUIET, PROBE_AGAIN,
                                                       PROBE_QUIET};

    check(false, quiet, 0, 0, "nobody asks");
    check(true, quiet, 2, 0, "quiet");
    check(true, first, 4, 2, "the first rank is disturbed");
    check(true, second, 2, 1, "the second is");
    check(true, passed, 3, 0, "one that passes");
    return tap_done();
}
