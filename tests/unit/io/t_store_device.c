/* SPDX-License-Identifier: MIT */
#include "io/csv.h"
#include "io/store_csv.h"
#include "io/store_rows.h"
#include "io/store_sql.h"
#include "tests/tap.h"

#include <unistd.h>

/* Reading all data of a device: samples of all its settings, and ceilings. Also
 * the export of samples as CSV. */

static char path[] = "/tmp/t_device.XXXXXX";

static struct sample_setting setting_of(const char *device, uint32_t batch,
                                        enum precision precision)
{
    return (struct sample_setting){.device = device,
                                   .precision = precision,
                                   .optimizer = OPTIMIZER_SGD,
                                   .batch = batch,
                                   .isa = "sm_90"};
}

static void put_ok(struct store *store, const struct sample_setting *setting,
                   uint64_t case_idx)
{
    struct sample_table table = {.n_rows = 1000 + case_idx,
                                 .dim = 16,
                                 .pooling_factor = 2.5,
                                 .zipf_alpha = 1,
                                 .n_unique = 99.7};
    struct sample sample = {.kind = SAMPLE_FUSED,
                            .seed = 0xfedcba9876543210,
                            .case_idx = case_idx,
                            .tables = &table,
                            .n_tables = 1,
                            .forward = {1.23456789, 1, 2},
                            .backward = {2, 1.5, 2.5},
                            .total = {3.25, 3, 4},
                            .sort = {0.5, 0.25, 0.75},
                            .health = {1980, 3201, 40.4, 500.06, 4},
                            .n_iterations = 12,
                            .version = "0.2.0",
                            .started_at = "2026-11-21T04:05:06Z"};
    struct err err = {0};

    if (store_sink(store).put(store, setting, &sample, &err)) {
        ok(0, "put: %s", err.msg);
        exit(1);
    }
}

static void test_samples(struct store *store, struct arena *arena)
{
    struct sample_setting settings[] = {
        setting_of("cuda:A", 4096, PRECISION_FP32),
        setting_of("cuda:B", 4096, PRECISION_FP32),
        setting_of("cuda:A", 1024, PRECISION_FP16),
        setting_of("cuda:A", 65536, PRECISION_FP32),
    };
    static const uint32_t batches[] = {4096, 4096, 1024, 1024, 65536};
    static const uint64_t cases[] = {0, 9, 1, 4, 2};
    struct sample *samples;
    struct err err = {0};
    int n_bad = 0;
    size_t n;

    put_ok(store, &settings[0], 9);
    put_ok(store, &settings[1], 3);
    put_ok(store, &settings[2], 4);
    put_ok(store, &settings[0], 0);
    put_ok(store, &settings[3], 2);
    put_ok(store, &settings[2], 1);
    ok(!store_samples(store, &settings[3], STORE_DEVICE, &samples, &n, arena,
                      &err),
       "reads");
    is_i64((int64_t)n, 5, "the samples of all settings of a device");
    for (size_t i = 0; i < n; i++)
        n_bad += samples[i].setting->batch != batches[i] ||
                 samples[i].case_idx != cases[i] ||
                 strcmp(samples[i].setting->device, "cuda:A") != 0 ||
                 samples[i].tables[0].n_rows != 1000 + cases[i];
    is_i64(n_bad, 0, "oldest setting first, then by case, with its setting");
    ok(!store_samples(store, &settings[2], STORE_SETTING, &samples, &n, arena,
                      &err) &&
           n == 2 && samples[1].setting->precision == PRECISION_FP16,
       "one setting alone");
    settings[0].isa = "sm_80";
    ok(!store_samples(store, &settings[0], STORE_DEVICE, &samples, &n, arena,
                      &err) &&
           n == 0,
       "another instruction set is another device");
}

static void test_csv(struct store *store, struct arena *arena)
{
    struct sample_setting quoted =
        setting_of("cuda:\"A\", big", 8, PRECISION_FP32);
    struct buf text = {0};
    struct err err = {0};
    size_t n = 0;

    put_ok(store, &quoted, 4);
    if (store_samples_to_csv(&text, store, &err)) {
        ok(0, "%s", err.msg);
        return;
    }
    ok(strstr(text.data,
              "\ncuda:A,0,sm_90,1024,fp16,sgd,fedcba9876543210,1,fused,0,1,16,"
              "1001,2560,100,1.23457,1,2,2,1.5,2.5,3.25,3,4,0,0.5,0,1980,3201,"
              "40,500.1,4,12,0,0.2.0,2026-11-21T04:05:06Z\n") != NULL,
       "a sample as a line");
    ok(strstr(text.data, "\n\"cuda:\"\"A\"\", big\",0,sm_90,8,") != NULL,
       "a quoted name");
    for (const char *c = text.data; *c != '\n'; c++)
        n += *c == ',';
    is_i64((int64_t)n, 35, "the heading has as many columns as a line");
    n = 0;
    for (const char *c = text.data; (c = strchr(c, '\n')); c++)
        n++;
    is_i64((int64_t)n, 8, "the heading and all samples");
    ok(!csv_check(text.data, text.len, "s.csv", arena, &err),
       "the written CSV passes the check: %s", err.msg);
    buf_add(&text, "1,2\n", 4);
    ok(csv_check(text.data, text.len, "s.csv", arena, &err) == -1,
       "a line of two fields does not");
    is_str(err.msg, "s.csv:9: 2 fields, but the header has 36",
           "with a message");
    buf_release(&text);
}

/* Seeds are sorted as unsigned numbers, kinds by their enum value. */
static void test_csv_order(void)
{
    struct sample_setting setting = setting_of("cuda:A", 1024, PRECISION_FP16);
    const struct sample samples[] = {
        {.seed = UINT64_MAX, .kind = SAMPLE_FUSED},
        {.seed = 1, .kind = SAMPLE_SENTINEL},
        {.seed = 1, .kind = SAMPLE_SINGLE, .part = 2},
        {.seed = 1, .kind = SAMPLE_SINGLE, .part = 1},
        {.seed = 1, .kind = SAMPLE_FUSED},
    };
    static const char *const keys[] = {
        "0000000000000001,0,fused,0,0,0,0,0,0,",
        "0000000000000001,0,single,1,0,0,0,0,0,",
        "0000000000000001,0,single,2,0,0,0,0,0,",
        "0000000000000001,0,sentinel,0,0,0,0,0,0,",
        "ffffffffffffffff,0,fused,0,0,0,0,0,0,"};
    struct store *store;
    struct buf text = {0};
    struct err err = {0};
    const char *at;

    ok(!store_open_memory(&store, "memory", &err), "opens");
    for (size_t i = 0; i < 5; i++)
        ok(!store_sink(store).put(store, &setting, &samples[i], &err), "put");
    ok(!store_samples_to_csv(&text, store, &err), "writes %s", err.msg);
    at = text.data;
    for (size_t i = 0; i < 5; i++)
        ok((at = strstr(at, keys[i])) != NULL, "then %s", keys[i]);
    sqlite3_exec(store->db, "UPDATE sample SET n_tables = 3", NULL, NULL, NULL);
    ok(store_samples_to_csv(&text, store, &err) == -1,
       "not where tables are missing");
    buf_release(&text);
    store_close(store);
}

static void test_ceilings(struct store *store, struct arena *arena)
{
    struct sample_setting setting = setting_of("cuda:A", 1024, PRECISION_FP16);
    struct sample_setting other = setting_of("cuda:B", 1024, PRECISION_FP16);
    struct ceiling in[] = {
        {{.kind = PROBE_COPY, .n_bytes = 1 << 20}, {1, 0.5, 2}, 12, 0},
        {{.kind = PROBE_GATHER, .n_bytes = 1ull << 36, .n = 7, .row_bytes = 64},
         {3, 2, 4},
         13,
         SAMPLE_THROTTLED},
        {{.kind = PROBE_COPY, .n_bytes = 1 << 20}, {5, 4, 6}, 14, 0},
    };
    struct ceiling *out;
    struct err err = {0};
    size_t n;

    ok(!store_has_ceiling(store, &setting, &in[0].probe), "not there yet");
    for (size_t i = 0; i < 3; i++)
        ok(!store_put_ceiling(store, &setting, &in[i], &err), "put");
    ok(store_has_ceiling(store, &setting, &in[0].probe) &&
           !store_has_ceiling(store, &other, &in[0].probe),
       "now it is, of this device");
    ok(!store_ceilings(store, &setting, &out, &n, arena, &err), "reads");
    is_i64((int64_t)n, 2, "a probe is kept once");
    ok(out[0].probe.kind == PROBE_GATHER && out[0].probe.n == 7 &&
           out[0].probe.n_bytes == 1ull << 36 && out[0].probe.row_bytes == 64 &&
           out[0].flags == SAMPLE_THROTTLED && out[0].timing.p90_ms == 4,
       "a gather, as it was put");
    ok(out[1].timing.median_ms == 5 && out[1].n_iterations == 14,
       "the newest copy wins");
    sqlite3_exec(store->db,
                 "PRAGMA ignore_check_constraints = 1;"
                 "UPDATE ceiling SET kind = 'odd'",
                 NULL, NULL, NULL);
    ok(store_ceilings(store, &setting, &out, &n, arena, &err) == -1,
       "an unknown kind is refused");
    is_str(err.msg,
           arena_printf(arena,
                        "cost database '%s': a ceiling is of an unknown kind "
                        "'odd'",
                        store->path),
           "which the message says");
}

/* Best times of the interference probe are kept per machine, whatever the
 * setting; each machine has its own. */
static void test_canaries(struct store *store)
{
    struct sample_setting setting = setting_of("cuda:A", 1024, PRECISION_FP16);
    struct sample_setting same = setting_of("cuda:A", 64, PRECISION_FP32);
    const struct sample_sink sink = store_sink(store);
    struct err err = {0};
    double best_ms = 7;

    ok(!sink.find_interference_probe(store, &setting, &best_ms, &err) &&
           best_ms == 0,
       "no canary yet %s", err.msg);
    ok(!sink.put_interference_probe(store, &setting, 0.5, &err) &&
           !sink.put_interference_probe(store, &same, 0.25, &err) &&
           !sink.put_interference_probe(store, &setting, 0.75, &err) &&
           !sink.find_interference_probe(store, &setting, &best_ms, &err) &&
           best_ms == 0.25,
       "the best of a machine is kept: %g %s", best_ms, err.msg);
    for (int i = 0; i < 6; i++) {
        struct sample_setting other = setting;

        other.device = i == 0 ? "cuda:B" : other.device;
        other.n_threads += i == 1;
        other.isa = i == 2 ? "sm_00" : other.isa;
        other.driver = i == 3 ? "999" : other.driver;
        other.cuda = i == 4 ? "99" : other.cuda;
        other.host = i == 5 ? "elsewhere" : other.host;
        ok(!sink.find_interference_probe(store, &other, &best_ms, &err) &&
               best_ms == 0,
           "another machine has none of it: %d %s", i, err.msg);
    }
    sqlite3_exec(store->db, "UPDATE canary SET version = 'older'", NULL, NULL,
                 NULL);
    ok(!sink.find_interference_probe(store, &setting, &best_ms, &err) &&
           best_ms == 0,
       "another version's canary is another one %s", err.msg);
}

int main(void)
{
    struct store *store;
    struct arena arena = {0};
    struct err err = {0};
    int fd = mkstemp(path);

    if (fd < 0)
        tap_skip_all("no temporary folder");
    close(fd);
    if (store_open(&store, path, STORE_WRITE, &err)) {
        ok(0, "%s", err.msg);
        return tap_done();
    }
    test_samples(store, &arena);
    test_csv(store, &arena);
    test_csv_order();
    test_ceilings(store, &arena);
    test_canaries(store);
    store_close(store);
    unlink(path);
    arena_release(&arena);
    return tap_done();
}
