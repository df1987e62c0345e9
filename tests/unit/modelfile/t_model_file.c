/* SPDX-License-Identifier: MIT */
/* Model files: a written file reads back the same, and a broken one gives a
 * message that explains the error. */
#include "costmodel/modelfile/model_file.h"

#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/printable.h"
#include "base/rng.h"
#include "costmodel/modelfile/model_json.h"
#include "costmodel/modelfile/model_report.h"
#include "tests/hostile.h"
#include "tests/tap.h"

static struct product_time product_list[] = {
    {{DENSE_TYPE_FP32, PRODUCT_NT, 64, 32, 13, 1}, 0.25},
    {{DENSE_TYPE_FP32, PRODUCT_TN, 32, 13, 64, 1}, 0.125},
    {{DENSE_TYPE_FP32, PRODUCT_NT, 27, 27, 128, 4294967295}, 1e9},
};

static void small_model(struct model *model, struct arena *arena)
{
    static const struct mlp_shape shape = {3, 4, 2, 3, 2, false};
    struct rng rng;

    *model = (struct model){
        .setting = {.device = "cpu:\xc3\x89preuve \"9\"",
                    .n_threads = 2,
                    .isa = "avx512"},
        .ranges = {{{PRECISION_FP16, OPTIMIZER_SGD, 4096, 4096, 80},
                    {PRECISION_FP32, OPTIMIZER_ADAM, 1024, 65536, 10}},
                   2},
        .environments = {{"570.86.15", "12.8", "gpu7", 60},
                         {"Linux 6.1.0", "", "", 30}},
        .n_environments = 2,
        .basis = BASIS_MEASURED,
        .source = "trained on measurements of the device",
        .training = {.version = "0.1.0",
                     .loss = "relative",
                     .seed = 9000000000000000,
                     .epochs = 100,
                     .best_epoch = 99,
                     .n_train = 80,
                     .n_validation = 10,
                     .n_held_out = 10,
                     .measured_from = "2026-11-20T10:00:00Z",
                     .measured_to = "2026-11-20T11:00:00Z"},
        .estimate = {.totals = {.items = {{.mean = 1.0 / 9,
                                           .std = 0.5,
                                           .max = 20,
                                           .rate_ms = 1e-300},
                                          {.mean = 3, .std = 5e-324}}},
                     .base_ms = 0.125,
                     .ratio_min = 0.5,
                     .ratio_max = 2},
        .errors = {{{"net", 0.25, 0.1, 0.05, 0.2, NAN, 1}}, 1},
        .intervals = {{{"all", "folds", 90, 1.0 / 7, 0.2, 0},
                       {"wide rows", "held-out samples", 15, 0.3, 0, 0}},
                      2},
        .has_comm = true,
        .comm = {.rules = {COMM_TOTAL, .shares_port = true},
                 .curves = {{.n_ranks = 2,
                             .n_hosts = 1,
                             .n_knots = 2,
                             .bytes = {0, 3e6},
                             .us = {12.5, 100.0 / 3}}},
                 .n_curves = 1,
                 .source = "measured"},
        .products = {product_list, 3, 0.0625, 0.125},
        .floor_gbps = 55.5,
    };
    feature_set_add(&model->features, "log2_dim");
    feature_set_add(&model->features, "share_3");
    feature_set_add(&model->features, "row");
    total_set_add(&model->estimate.totals, "gather_kib");
    total_set_add(&model->estimate.totals, "tables");
    for (unsigned f = 0; f < 3; f++) {
        model->features.items[f].mean = f / 7.0;
        model->features.items[f].std = 1 + f;
        model->features.items[f].min = -1e300;
        model->features.items[f].max = 5e-324;
    }
    rng_init(&rng, 3, 0);
    mlp_init(&model->mlp, &shape, arena);
    for (size_t i = 0; i < model->mlp.n_params; i++)
        model->mlp.params[i] = (float)(2 * rng_uniform(&rng) - 1);
}

static void test_round_trip(void)
{
    struct model model, again;
    struct arena arena = {0};
    struct err err = {0};
    const char *data, *second;
    size_t len, second_len;

    small_model(&model, &arena);
    model_to_bytes(&model, &data, &len, &arena);
    if (!ok(!model_parse(&again, data, len, "m", &arena, &err), "parsed%s",
            err.msg))
        return;
    is_str(again.setting.device, model.setting.device, "device");
    is_i64((int64_t)again.ranges.n, 2, "ranges");
    is_i64(again.ranges.items[0].precision, PRECISION_FP16, "precision");
    is_i64(again.ranges.items[1].optimizer, OPTIMIZER_ADAM, "optimizer");
    is_i64(again.ranges.items[1].batch_min, 1024, "smallest batch");
    is_i64((int64_t)again.ranges.items[0].n_samples, 80, "samples of a range");
    is_i64((int64_t)again.n_environments, 2, "environments");
    is_str(environment_text(&again.environments[0], &arena),
           "host gpu7, driver 570.86.15, CUDA 12.8", "one");
    is_str(environment_text(&again.environments[1], &arena), "Linux 6.1.0",
           "another");
    is_i64((int64_t)again.environments[1].n_samples, 30, "its samples");
    is_i64(again.format, MODEL_VERSION, "format");
    is_i64(again.estimate.totals.n, 2, "totals");
    is_str(again.estimate.totals.items[0].name, "gather_kib", "a total");
    is_near(again.estimate.totals.items[0].rate_ms, 1e-300, 0, "its rate");
    is_near(again.estimate.totals.items[0].mean, 1.0 / 9, 0,
            "the mean of its logarithm");
    is_near(again.estimate.ratio_max, 2, 0, "the largest ratio");
    is_i64((int64_t)again.training.seed, 9000000000000000, "seed");
    is_i64(again.features.n, 3, "features");
    is_str(again.features.items[1].name, "share_3", "a feature");
    is_near(again.features.items[2].mean, 2 / 7.0, 0,
            "its mean, to the last bit");
    is_near(again.features.items[1].max, 5e-324, 0,
            "the smallest number there is");
    is_near(again.comm.curves[0].us[1], 100.0 / 3, 0, "time of an exchange");
    ok(again.comm.rules.form == COMM_TOTAL && again.comm.rules.shares_port,
       "rules of exchanges");
    is_i64((int64_t)again.errors.n, 1, "errors");
    ok(isnan(again.errors.items[0].kendall_tau), "a tau that is not known");
    is_i64((int64_t)again.intervals.n, 2, "intervals");
    ok(again.intervals.items[0].n == 90 &&
           again.intervals.items[0].error_frac == 1.0 / 7 &&
           again.intervals.items[0].pair_error_frac == 0.2,
       "one");
    is_str(again.intervals.items[1].class, "wide rows",
           "the class of an interval");
    is_str(again.intervals.items[1].ground, "held-out samples", "and of what");
    is_near(again.estimate.totals.items[0].max, 20, 0, "the most of a total");
    ok(!memcmp(again.mlp.params, model.mlp.params,
               model.mlp.n_params * sizeof(float)),
       "weights");
    ok(again.hash == model.hash && again.hash, "hash");
    model_to_bytes(&again, &second, &second_len, &arena);
    ok(second_len == len && !memcmp(second, data, len),
       "written again it is the same file");
    ok(again.products.n == 3 && again.products.median_error_frac == 0.0625 &&
           again.products.error_frac == 0.125,
       "matrix products with their errors");
    /* products of one type and form are together */
    ok(product_is_same(&again.products.items[1].product,
                       &product_list[2].product) &&
           again.products.items[1].ms == 1e9 &&
           again.products.items[2].ms == 0.125,
       "and their times");
    model.products.n = 0;
    model_to_bytes(&model, &data, &len, &arena);
    ok(!model_parse(&again, data, len, "m", &arena, &err) &&
           !again.products.n && again.format == 4,
       "without them the file is one of version 4");
    model.has_comm = false;
    model_to_bytes(&model, &data, &len, &arena);
    ok(!model_parse(&again, data, len, "m", &arena, &err) && !again.has_comm,
       "a model without communication");
    is_str(model_setting_text(&again, &arena),
           "cpu:\xc3\x89preuve \"9\", 2 threads, avx512, fp32|fp16, sgd|adam, "
           "batch 1024 to 65536",
           "its settings in words");
    again.ranges.n = 1;
    is_str(model_setting_text(&again, &arena),
           "cpu:\xc3\x89preuve \"9\", 2 threads, avx512, fp16, sgd, batch "
           "4096",
           "one setting in words");
    arena_release(&arena);
}

static void test_files(void)
{
    char path[] = "/tmp/t_model_file_XXXXXX";
    struct model model, again;
    struct arena arena = {0};
    struct err err = {0};
    int fd = mkstemp(path);
    double std;

    ok(fd >= 0 && !close(fd), "a file to write to");
    small_model(&model, &arena);
    ok(!model_save(&model, path, &err), "saved%s", err.msg);
    ok(!model_load(&again, path, &arena, &err), "loaded%s", err.msg);
    ok(again.hash == model.hash, "the hash is that of the file");
    std = model.features.items[0].std;
    model.features.items[0].std = 0;
    ok(model_save(&model, path, &err) == -1 && err.code == ERR_INPUT,
       "a model that could not be loaded is not saved: %s", err.msg);
    ok(!model_load(&again, path, &arena, &err) &&
           again.features.items[0].std > 0,
       "the old file is unchanged");
    unlink(path);
    ok(model_load(&again, path, &arena, &err) && err.code == ERR_IO,
       "no file: %s", err.msg);
    model.features.items[0].std = std;
    ok(model_save(&model, "/nowhere/model.nsm", &err) && err.code == ERR_IO,
       "no folder: %s", err.msg);
    arena_release(&arena);
}

/* A second writer, made from the description of the format. It writes the given
 * header, the model's weights and the given n_params. */
static const char *write_by_hand(const char *header, const struct model *model,
                                 uint64_t n_params, size_t *len,
                                 struct arena *arena)
{
    const uint32_t version = 2, n_header = (uint32_t)strlen(header);
    char *out = arena_alloc(arena, 32 + n_header + 4 * n_params, 1);
    uint64_t hash;

    memcpy(out, "\x89NSHARD\n", 8);
    memcpy(out + 8, &version, 4);
    memcpy(out + 12, &n_header, 4);
    memcpy(out + 16, &n_params, 8);
    memcpy(out + 24, header, n_header);
    memcpy(
        out + 24 + n_header, model->mlp.params,
        4 * (n_params < model->mlp.n_params ? n_params : model->mlp.n_params));
    hash = hash_bytes(out, 24 + n_header + 4 * n_params, 0);
    memcpy(out + 24 + n_header + 4 * n_params, &hash, 8);
    *len = 32 + n_header + 4 * n_params;
    return out;
}

/* Returns the header with the first `from` replaced by `to`. */
static const char *edited(const char *header, const char *from, const char *to,
                          struct arena *arena)
{
    const char *at = strstr(header, from);

    if (!at) {
        ok(0, "the header has %s", from);
        return header;
    }
    return arena_printf(arena, "%.*s%s%s", (int)(at - header), header, to,
                        at + strlen(from));
}

static void refuses(const char *data, size_t len, const char *want,
                    struct arena *arena)
{
    struct model model;
    struct err err = {0};

    ok(model_parse(&model, data, len, "m.nsm", arena, &err) &&
           err.code == ERR_INPUT && !strncmp(err.msg, "m.nsm", 5) &&
           strstr(err.msg, want),
       "%s", want);
    if (!strstr(err.msg, want))
        printf("# got: %s\n", err.msg);
}

/* Replaces each text of the header in turn by one that must not reach a
 * terminal. */
static void test_hostile_texts(void)
{
    struct model model, ours;
    struct arena arena = {0};
    const char *broken;
    json_t *root;
    char *header;
    size_t n_texts, n_refused = 0, n_bad = 0;

    small_model(&ours, &arena);
    root = model_to_json(&ours);
    header = json_to_text(root);
    for (n_texts = 0; (broken = hostile_json(header, n_texts, &arena));
         n_texts++) {
        struct err err = {0};
        const char *data;
        size_t len;

        data = write_by_hand(broken, &ours, ours.mlp.n_params, &len, &arena);
        if (!model_parse(&model, data, len, "m.nsm", &arena, &err))
            continue;
        n_refused++;
        n_bad += !text_is_printable(err.msg) || strncmp(err.msg, "m.nsm: ", 7);
    }
    ok(n_texts > 80 && n_refused > n_texts / 2 && !n_bad,
       "%zu texts of a header, %zu refused", n_texts, n_refused);
    mem_free(header);
    json_decref(root);
    arena_release(&arena);
}

static void test_broken_headers(void)
{
    static const struct {
        const char *from, *to, *want;
    } cases[] = {
        {"{", "[", "not valid JSON"},
        {"\"nt\"", "\"tt\"",
         "products.groups[0].form must be one of nn, nt, tn, relu"},
        {"64,\n            32", "64,\n            0",
         "times[0][1] is 0, not in 1 to 4294967295"},
        {"64,\n            32", "64,\n            1.5",
         "times[0] has 1.5, not a whole number"},
        {"64,\n            32,", "64,",
         "times[0] is not a list [M, N, K, BATCH, MS]"},
        {"4294967295,", "0.5,", "times[1][3] is 0.5, not in 1"},
        {"\"median_error_frac\": 0.0625", "\"median_error_frac\": -1",
         "products.median_error_frac is -1, not in 0"},
        {"\"compute\"", "\"comm\"", "kind must be one of compute"},
        {"\"basis\"", "\"basic\"", "basis is missing"},
        {"\"measured\"", "\"guessed\"",
         "basis must be one of modelled, measured"},
        {"\"fp16\"", "\"fp12\"",
         "setting.ranges[0].precision must be one of fp32, fp16, bf16, int8"},
        {"\"sgd\"", "\"lion\"",
         "setting.ranges[0].optimizer must be one of sgd, rowwise_adagrad"},
        {"\"batch_min\": 1024", "\"batch_min\": 0",
         "setting.ranges[1].batch_min is 0, outside 1 to 4294967295"},
        {"\"batch_min\": 1024", "\"batch_min\": 65537",
         "a range of batches cannot go from 65537 to 65536"},
        {"\"batch_max\": 65536", "\"batch_max\": 4e9",
         "batch_max is 4000000000, not a whole number"},
        {"\"batch_min\": 1024", "\"batch_min\": -1",
         "batch_min is -1, not a whole number >= 0"},
        {"\"precision\": \"fp32\",\n        \"optimizer\": \"adam\"",
         "\"precision\": \"fp16\",\n        \"optimizer\": \"sgd\"",
         "fp16 with sgd is given twice"},
        {"\"ranges\"",
         "\"batch\": 0, \"precision\": \"fp32\", "
         "\"optimizer\": \"sgd\", \"ranges\"",
         "setting.batch is 0, outside 1 to 4294967295"},
        {"\"ranges\": [", "\"ranges\": [], \"were\": [",
         "setting.ranges has 0 entries, not 1 to 32"},
        {"\"name\": \"tables\"", "\"name\": \"chairs\"",
         "total 'chairs' is unknown to this program"},
        {"\"name\": \"tables\"", "\"name\": \"gather_kib\"",
         "total 'gather_kib' is unknown to this program, or given twice"},
        {"\"rate_ms\": 0.0", "\"rate_ms\": -1e-9",
         "estimate.totals[1].rate_ms is -1.0000000000000001e-09, not in"},
        {"\"base_ms\": 0.125", "\"base_ms\": 0.0",
         "estimate.base_ms is 0, not in "},
        {"\"ratio_max\": 2.0", "\"ratio_max\": 0.25",
         "estimate.ratio_max is below ratio_min"},
        {"\"estimate\"", "\"guess\"", "has 45 weights, but its shape needs 39"},
        {"\"threads\": 2", "\"threads\": 4294967296", "setting.threads is 429"},
        {"\"share_3\"", "\"share_x\"",
         "feature 'share_x' is unknown to this program"},
        {"\"share_3\"", "\"row\"",
         "feature 'row' is unknown to this program, or given twice"},
        {"\"std\": 2.0", "\"std\": 0.0", ".std is 0, not in "},
        {"\"std\": 2.0", "\"std\": 1e999", "not valid JSON"},
        {"\"std\": 2.0", "\"std\": null", ".std must be a number, not null"},
        {"\"hidden\": 4", "\"hidden\": 5",
         "has 45 weights, but its shape needs 51"},
        {"\"hidden\": 4", "\"hidden\": 0",
         "shape.hidden is 0, outside 1 to 1024"},
        {"\"hidden\": 4", "\"hidden\": 4000000000", "outside 1 to 1024"},
        {"\"embed\": 2", "\"embed\": 65", "shape.embed is 65, outside 1 to 64"},
        {"\"form\": \"total\"", "\"form\": \"ring\"",
         "comm.form must be one of port, total"},
        {"12.5", "-1", "comm.curves[0].knots[0][1] is -1, not in 0 to 1e+18"},
        {"12.5", "\"12\"", "knots[0][1] must be a number, not a string"},
        {"12.5", "1e17", "a curve needs 2 to"},
        {"\"ranks\": ", "\"ranks\": -", "curves[0].ranks is -"},
        {"\"floor_gbps\": 55.5", "\"floor_gbps\": -2",
         "floor_gbps is -2, not in 0 to 1000000000"},
        {"\"kendall_tau\": null", "\"kendall_tau\": 2",
         "errors[0].kendall_tau is 2, not in -1 to 1"},
        {"\"mape\": ", "\"mape\": -", "errors[0].mape is -"},
        {"\"training\"", "\"drill\"", "training is missing"},
        {"\"errors\": [", "\"errors\": [1, ",
         "errors[0] must be an object, not a number"},
    };
    struct model model;
    struct arena arena = {0};
    json_t *root;
    char *header;

    small_model(&model, &arena);
    root = model_to_json(&model);
    header = json_to_text(root);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const char *text = edited(header, cases[i].from, cases[i].to, &arena);
        size_t len;
        const char *data =
            write_by_hand(text, &model, model.mlp.n_params, &len, &arena);

        refuses(data, len, cases[i].want, &arena);
    }
    mem_free(header);
    json_decref(root);
    arena_release(&arena);
}

/* A file as version 0.1.0 wrote it: one setting, no estimate. */
static void test_version_1(void)
{
    struct model model, again;
    struct arena arena = {0};
    struct err err = {0};
    const char *data, *second;
    size_t len, second_len;

    if (!ok(!model_load(&model, "tests/fuzz/corpus/model/with_comm.nsm", &arena,
                        &err),
            "a file of version 1%s", err.msg))
        return;
    is_i64(model.format, 1, "says so");
    is_i64((int64_t)model.ranges.n, 1, "one setting is a range of one");
    ok(model.ranges.items[0].batch_min == model.ranges.items[0].batch_max &&
           model.ranges.items[0].batch_min > 0,
       "batch %u", model.ranges.items[0].batch_min);
    is_i64(model.estimate.totals.n, 0, "no estimate");
    model_to_bytes(&model, &data, &len, &arena);
    ok(!model_parse(&again, data, len, "m", &arena, &err),
       "written again, in this version's format%s", err.msg);
    is_i64(again.format, MODEL_VERSION_WITHOUT_PRODUCTS,
           "the file states this version");
    ok(!memcmp(again.mlp.params, model.mlp.params,
               model.mlp.n_params * sizeof(float)),
       "with the same weights");
    model_to_bytes(&again, &second, &second_len, &arena);
    ok(second_len == len && !memcmp(second, data, len), "and the same again");
    arena_release(&arena);
}

/* If there are more environments than a file can hold, the first ones are
 * kept. */
static void test_environments(void)
{
    struct sample_setting setting = {.driver = "570.86.15", .cuda = "12.8"};
    static char hosts[2 * MODEL_MAX_ENVIRONMENTS][16];
    struct model model = {.ranges = {.n = 0}};
    struct arena arena = {0};

    model_add_environment(&model, &(struct sample_setting){.host = ""}, &arena);
    is_i64((int64_t)model.n_environments, 0, "nothing is known");
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < 2 * MODEL_MAX_ENVIRONMENTS; i++) {
            snprintf(hosts[i], sizeof(hosts[i]), "gpu%d", i);
            setting.host = hosts[i];
            model_add_environment(&model, &setting, &arena);
        }
    is_i64((int64_t)model.n_environments, MODEL_MAX_ENVIRONMENTS, "as many");
    is_i64((int64_t)model.environments[3].n_samples, 2, "samples of one");
    is_str(model.environments[3].host, "gpu3", "its host");
    arena_release(&arena);
}

static void test_ranges(void)
{
    struct model model = {.ranges = {.n = 0}};
    struct sample_setting setting = {.precision = PRECISION_FP16,
                                     .optimizer = OPTIMIZER_SGD};

    for (uint32_t batch = 4096; batch >= 1024; batch /= 2) {
        setting.batch = batch;
        range_list_add(&model.ranges, &setting);
    }
    setting.optimizer = OPTIMIZER_ADAGRAD;
    range_list_add(&model.ranges, &setting);
    is_i64((int64_t)model.ranges.n, 2, "a range for each pair");
    is_i64((int64_t)model.ranges.items[0].n_samples, 3, "samples of the first");
    ok(model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 1024) &&
           model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 3000) &&
           model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 4096),
       "batches from the least to the most are covered");
    ok(!model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 1023) &&
           !model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 4097) &&
           !model_covers(&model, PRECISION_FP16, OPTIMIZER_ADAGRAD, 2048) &&
           !model_covers(&model, PRECISION_FP32, OPTIMIZER_SGD, 2048),
       "nothing else is");
}

static void test_broken_frames(void)
{
    struct model model;
    struct arena arena = {0};
    struct err err = {0};
    const char *data, *file;
    char *copy;
    size_t len, n_explained = 0;
    json_t *root;
    char *header;

    small_model(&model, &arena);
    model_to_bytes(&model, &data, &len, &arena);
    copy = arena_alloc(&arena, len + 1, 1);
    for (size_t cut = 0; cut < len; cut++)
        if (model_parse(&model, data, cut, "m", &arena, &err) &&
            err.code == ERR_INPUT && !strncmp(err.msg, "m: ", 3))
            n_explained++;
    is_i64((int64_t)n_explained, (int64_t)len, "cut after any byte: refused");
    n_explained = 0;
    for (size_t at = 0; at < len; at++) {
        memcpy(copy, data, len);
        copy[at] = (char)(copy[at] ^ 0x10);
        if (model_parse(&model, copy, len, "m", &arena, &err) &&
            err.code == ERR_INPUT)
            n_explained++;
    }
    is_i64((int64_t)n_explained, (int64_t)len, "any byte changed: refused");
    memcpy(copy, data, len);
    refuses("", 0, "not a model file", &arena);
    refuses("{\"a\": 1}", 8, "not a model file", &arena);
    refuses(copy, len + 1, "too long", &arena);
    refuses(copy, len - 1, "truncated", &arena);
    refuses(copy, 20, "truncated to 20 bytes", &arena);
    copy[8] = MODEL_VERSION + 1;
    refuses(copy, len,
            "was written in model format 6, this program reads 1 to 5", &arena);
    memcpy(copy, data, len);
    memset(copy + 16, 0xff, 8);
    refuses(copy, len, "impossible sizes", &arena);
    memcpy(copy, data, len);
    copy[15] = 0x7f;
    refuses(copy, len, "impossible sizes", &arena);
    memcpy(copy, data, len);
    copy[len - 20] ^= 1;
    refuses(copy, len, "damaged: the checksum does not match", &arena);

    small_model(&model, &arena);
    root = model_to_json(&model);
    header = json_to_text(root);
    model.mlp.layers[2].weight[1] = NAN;
    file = write_by_hand(header, &model, model.mlp.n_params, &len, &arena);
    refuses(file, len, "weight 27 is not a finite number", &arena);
    model.mlp.layers[2].weight[1] = -INFINITY;
    file = write_by_hand(header, &model, model.mlp.n_params, &len, &arena);
    refuses(file, len, "weight 27 is not a finite number", &arena);
    file = write_by_hand(header, &model, model.mlp.n_params - 1, &len, &arena);
    refuses(file, len, "has 44 weights, but its shape needs 45", &arena);
    mem_free(header);
    json_decref(root);
    arena_release(&arena);
}

/* The report of a model for people. */
static void test_print(void)
{
    static const char *const lines[] = {
        "basis           measured: trained on measurements of the device\n",
        "measured on     host gpu7, driver 570.86.15, CUDA 12.8, 60 samples\n",
        "                Linux 6.1.0, 30 samples\n",
        "                fp16, sgd, batch 4096 to 4096: 80 samples\n",
        "kind            net\n",
        "samples         80 for training, 10 for validation, 10 fused cases ",
        "training        100 epochs, the best was 99, relative loss, seed ",
        "measured        2026-11-20T10:00:00Z to 2026-11-20T11:00:00Z\n",
        "net             3 features, 4, 2 (sum) and 2 totals, 3, 1: 45 ",
        "communication   2 ranks 12.5 us, 144.00 GB/s (measured)\n",
        "floor           bytes of a step / 55.5 GB/s, the highest rate ",
        "\nnet                             1       0.25   10.00     5.00  "};
    struct model model;
    struct arena arena = {0};
    struct buf out = {0};

    small_model(&model, &arena);
    model_print(&model, "small.nsm", &arena, &out);
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        ok(strstr(out.data, lines[i]) != NULL, "line %zu is printed", i);
    buf_release(&out);
    arena_release(&arena);
}

/* A model may claim to be monotone only if its weights have the right signs. */
static void test_monotone(void)
{
    const char *folder = getenv("NEUROSHARD_DATA"), *data;
    struct arena arena = {0};
    struct model model;
    struct err err = {0};
    size_t len;

    if (!ok(!model_load(&model,
                        arena_printf(&arena, "%s/models/h100.nsm",
                                     folder ? folder : "data"),
                        &arena, &err),
            "a shipped model %s", err.msg))
        return;
    is_i64(model_kind(&model), MODEL_MONOTONE, "which is monotone");
    model.mlp.layers[2].weight[1] = -1e-3F;
    model_to_bytes(&model, &data, &len, &arena);
    refuses(data, len, "weights of its head are negative", &arena);
    model.mlp.layers[2].weight[1] = 0;
    model.mlp.layers[2].weight[model.mlp.layers[2].n_in - 1] = -1;
    model_to_bytes(&model, &data, &len, &arena);
    ok(!model_parse(&model, data, len, "m.nsm", &arena, &err),
       "but those of what all tables share may be negative %s", err.msg);
    arena_release(&arena);
}

int main(void)
{
    test_monotone();
    test_round_trip();
    test_version_1();
    test_ranges();
    test_environments();
    test_files();
    test_print();
    test_hostile_texts();
    test_broken_headers();
    test_broken_frames();
    return tap_done();
}
