/* SPDX-License-Identifier: MIT */
/* Tests which calls the interference probe makes on its device, and its verdict
 * on each pair of checks. The test moves the clock. */
#include "tests/unit/device/recorded_device.h"

#include "base/clock.h"
#include "device/interference_probe.h"
#include "tests/tap.h"

#include <math.h>
#include <time.h>

static double now_ms, slept_ms;

double clock_ms(void)
{
    return now_ms;
}

const char *clock_utc(char buf[CLOCK_TEXT_MAX])
{
    snprintf(buf, CLOCK_TEXT_MAX, "2026-11-22T09:00:00Z");
    return buf;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    slept_ms = (double)time->tv_sec * 1e3 + (double)time->tv_nsec * 1e-6;
    return 0;
}

/* Times of one check: four warm-up times, and seven whose median is 4. */
static const double check_ms[] = {90, 91, 92, 93, 4, 1, 2, 3, 9, 8, 7};
/* Times of the first checks, the quietest in the middle, and then of one check
 * by the test. */
static double first_ms[110 + 11];

static int put_interference_probe(void *ctx,
                                  const struct sample_setting *setting,
                                  double best_ms, struct err *err)
{
    (void)setting, (void)err;
    *(double *)ctx = best_ms;
    return 0;
}

static int find_interference_probe(void *ctx,
                                   const struct sample_setting *setting,
                                   double *best_ms, struct err *err)
{
    (void)setting, (void)err;
    *best_ms = *(double *)ctx;
    return 0;
}

static struct interference_probe *open_interference_probe(struct recorded *own,
                                                          enum device_kind kind)
{
    struct interference_probe *interference = NULL;
    struct err err = {0};

    for (unsigned c = 0; c < 11; c++)
        for (unsigned i = 0; i < 11; i++)
            first_ms[c * 11 + i] = check_ms[i] + (c == 6 ? 0 : 1);
    recorded_init(own, kind, first_ms, 121);
    now_ms = 5000;
    if (interference_probe_open(&interference, &own->device, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    return interference;
}

static void test_open(enum device_kind kind, uint32_t batch)
{
    const size_t n_floats = (200000 + 2 * (size_t)batch) * 64;
    struct recorded own;
    struct interference_probe *interference =
        open_interference_probe(&own, kind);
    const struct lookup *shape = &own.shape;
    const struct sample_sink sink = {
        .ctx = &now_ms, .put_interference_probe = put_interference_probe};
    struct err err = {0};
    bool is_right = true;

    ok(asked(&own, "aF(D)4l"
                   "(0fb1re0fb1re0fb1re0fb1re"
                   "h0fb1reh0fb1reh0fb1reh0fb1reh0fb1reh0fb1reh0fb1re)10"),
       "ten checks of four steps and seven that are held");
    ok(own.n_bytes == n_floats * 4 + (batch + 1) * 8 + 16 * (size_t)batch &&
           own.n_bytes <= INTERFERENCE_PROBE_BYTES,
       "of %zu bytes", own.n_bytes);
    ok(own.fill.n_rows == n_floats && own.fill.seed == 1 &&
           own.fill.precision == PRECISION_FP32,
       "all rows and gradients are filled");
    for (unsigned i = 0; i < 4; i++)
        is_right &=
            own.streams[i].n_rows == 200000 && own.streams[i].batch == batch &&
            own.streams[i].pooling_factor == 1 && own.batch_seeds[i] == i &&
            (char *)own.d_drawn[i] == own.block + n_floats * 4 +
                                          (batch + 1) * 8 +
                                          4 * (size_t)batch * i;
    ok(is_right && (char *)own.d_offsets == own.block + n_floats * 4,
       "four batches of a look-up a sample, one behind the other");
    for (unsigned i = 0; i < 110; i++)
        is_right &= own.d_sets[i] == own.d_drawn[i % 11 % 4];
    ok(is_right, "take turns");
    ok((const char *)own.d_grad == own.block + 200000 * 64 * 4 &&
           (const char *)own.d_out ==
               own.block + (200000 + (size_t)batch) * 64 * 4,
       "gradients and outputs behind the rows");
    ok(own.phases == LOOKUP_BACKWARD && own.rate > 0 && own.rate <= 1e-6F &&
           own.rate > 0.9e-6F,
       "a whole backward at a small rate");
    ok(shape->n_tables == 1 && shape->batch == batch && shape->out_dim == 64 &&
           shape->max_lookups == batch,
       "of one table");
    ok(!interference_probe_teach(interference, &sink, NULL, &err) &&
           now_ms == 4,
       "the best median of seven: %g", now_ms);
    interference_probe_close(interference);
    ok(asked(&own, "Lx"), "closed");
    recorded_release(&own);
}

/* Runs one more check whose median time is `ms`. */
static enum interference_verdict judge(struct interference_probe *interference,
                                       double ms, double begin_ms)
{
    enum interference_verdict verdict = PROBE_QUIET;
    struct err err = {0};

    for (unsigned i = 0; i < 121; i++)
        first_ms[i] = ms;
    slept_ms = 0;
    if (interference_probe_judge(interference, begin_ms, &verdict, &err))
        ok(0, "judged: %s", err.msg);
    return verdict;
}

/* A measurement counts if the checks before and after it both take less than
 * 1.25 times the best. The patience is 2 s plus a tenth of the time since the
 * probe was opened. */
static void test_verdicts(void)
{
    static const struct {
        double before, after;
        enum interference_verdict verdict;
    } CASES[] = {
        {4, 4, PROBE_QUIET},         {4, 4.999, PROBE_QUIET},
        {4.999, 4, PROBE_QUIET},     {4, 5, PROBE_AGAIN},
        {5, 4, PROBE_AGAIN},         {5, 5, PROBE_AGAIN},
        {4.999, 4.999, PROBE_QUIET},
    };
    struct recorded own;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct interference_probe *interference =
            open_interference_probe(&own, DEVICE_CPU);

        (void)judge(interference, CASES[i].before, now_ms);
        is_i64(judge(interference, CASES[i].after, now_ms), CASES[i].verdict,
               "a verdict on two checks");
        is_near(slept_ms, CASES[i].verdict == PROBE_AGAIN ? 100 : 0, 1e-9,
                "a pause before another try");
        interference_probe_close(interference);
        recorded_release(&own);
    }
}

static void test_patience(void)
{
    /* time waited so far, and time that passes afterwards, in ms */
    static const struct {
        double waited, passed;
        enum interference_verdict verdict;
    } CASES[] = {
        {1999, 0, PROBE_AGAIN},         {2000, 0, PROBE_DISTURBED},
        {2199, 2000, PROBE_AGAIN},      {2200, 2000, PROBE_DISTURBED},
        {4001, 20000, PROBE_DISTURBED}, {3999, 20000, PROBE_AGAIN},
    };
    struct recorded own;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct interference_probe *interference =
            open_interference_probe(&own, DEVICE_CPU);

        is_i64(judge(interference, 8, now_ms - CASES[i].waited), PROBE_AGAIN,
               "a disturbed measurement is repeated");
        now_ms += CASES[i].passed;
        is_i64(judge(interference, 8, now_ms), CASES[i].verdict,
               "again, while there is patience");
        interference_probe_close(interference);
        recorded_release(&own);
    }
}

/* From the time limit on, a disturbed measurement is kept at once. */
static void test_limit(void)
{
    struct recorded own;
    struct interference_probe *interference =
        open_interference_probe(&own, DEVICE_CPU);

    interference_probe_limit(interference, now_ms + 10);
    now_ms += 9;
    is_i64(judge(interference, 8, now_ms), PROBE_AGAIN, "before the limit");
    now_ms += 1;
    is_i64(judge(interference, 8, now_ms), PROBE_DISTURBED, "at the limit");
    is_near(slept_ms, 0, 1e-9, "without a pause");
    interference_probe_close(interference);
    recorded_release(&own);
}

/* A learned time becomes the best if it is better than the probe's own. The
 * best is stored if it is better than the stored one. */
static void test_learned(void)
{
    static const struct {
        double known, told; /* best time stored before and after; 0: none */
        double limit_ms;    /* from this time on a check counts as disturbed */
    } CASES[] = {{0, 4, 5}, {2, 2, 2.5}, {4, 4, 5}, {8, 4, 5}};
    struct recorded own;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct interference_probe *interference =
            open_interference_probe(&own, DEVICE_CPU);
        double known = CASES[i].known;
        const struct sample_sink sink = {
            .ctx = &known,
            .find_interference_probe = find_interference_probe,
            .put_interference_probe = put_interference_probe};
        struct err err = {0};

        ok(!interference_probe_learn(interference, &sink, NULL, &err) &&
               !interference_probe_teach(interference, &sink, NULL, &err) &&
               known == CASES[i].told,
           "stored before %g, after %g", CASES[i].known, known);
        known = -1;
        ok(!interference_probe_teach(interference, &sink, NULL, &err) &&
               known == -1,
           "it is stored once");
        (void)judge(interference, CASES[i].limit_ms * 0.999, now_ms);
        ok(judge(interference, CASES[i].limit_ms * 0.999, now_ms) ==
                   PROBE_QUIET &&
               judge(interference, CASES[i].limit_ms, now_ms) == PROBE_AGAIN,
           "disturbed from %g ms on", CASES[i].limit_ms);
        interference_probe_close(interference);
        recorded_release(&own);
    }
}

/* If a call fails, opening the probe fails and releases all memory. */
static void test_failures(void)
{
    static const struct {
        char failing;
        const char *calls;
    } CASES[] = {
        {'a', "a"},
        {'F', "aFx"},
        {'D', "aFDx"},
        {'0', "aFDDDDl0Lx"},
        {'f', "aFDDDDl0fLx"},
        {'b', "aFDDDDl0fbLx"},
        {'1', "aFDDDDl0fb1Lx"},
        {'r', "aFDDDDl0fb1rLx"},
        {'e', "aFDDDDl0fb1reLx"},
        {'h', "aFDDDDl(0fb1re)4hLx"},
    };
    struct recorded own;

    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct interference_probe *interference = NULL;
        struct err err = {0};

        recorded_init(&own, DEVICE_CPU, check_ms, 11);
        own.failing = CASES[i].failing;
        ok(interference_probe_open(&interference, &own.device, &err) == -1 &&
               !interference && err.code == ERR_DEVICE &&
               asked(&own, CASES[i].calls),
           "%c fails: %s", CASES[i].failing, err.msg);
        recorded_release(&own);
    }
}

int main(void)
{
    test_open(DEVICE_CPU, 8192);
    test_open(DEVICE_CUDA, 1024);
    test_verdicts();
    test_patience();
    test_limit();
    test_learned();
    test_failures();
    return tap_done();
}
