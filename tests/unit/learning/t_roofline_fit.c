/* SPDX-License-Identifier: MIT */
/* A roofline corrected by samples: the figures it finds, the figures it leaves,
 * the file that stores it, and that it prices as the roofline does. */
#include "costmodel/learning/roofline_fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "costmodel/formulas/roofline.h"
#include "costmodel/learning/choose.h"
#include "costmodel/learning/dataset.h"
#include "costmodel/modelfile/gpu_file.h"
#include "costmodel/modelfile/model_file.h"
#include "costmodel/models/oracle_open.h"
#include "costmodel/models/roofline_oracle.h"
#include "tests/predict_samples.h"
#include "tests/tap.h"
#include "tests/unit/learning/estimated_samples.h"

#define N_SAMPLES 60

static struct arena arena;
static struct err err;

static double fit(struct estimate *estimate, const struct gpu_spec *gpu,
                  const struct sample *samples, size_t n)
{
    struct feature_set features;
    struct dataset dataset;

    *estimate = (struct estimate){.gpu = *gpu};
    feature_set_init(&features, FEATURES_STANDARD);
    feature_set_init(&estimate->totals, TOTALS_ALL);
    dataset_init(&dataset, &features, estimate, samples, n, sample_trains,
                 &arena);
    return roofline_fit(estimate, dataset.sums, dataset.ms, dataset.n_samples);
}

static void test_fit(const struct gpu_spec *h100)
{
    const double slower[N_SLOWED] = {[SLOWED_LAUNCH] = 3,
                                     [SLOWED_ISSUE] = 7,
                                     [SLOWED_MEMORY] = 1.5,
                                     [SLOWED_BAG] = 1,
                                     [SLOWED_HOT] = 6};
    const struct gpu_spec slow = gpu_spec_slowed(h100, slower);
    struct sample *samples = estimated_samples(&slow, N_SAMPLES, &arena);
    struct estimate found, robust, same;
    double most = 0;

    is_near(slow.row_cycles, 7 * h100->row_cycles, 1e-9, "a slower GPU");
    is_near(slow.l2_gbps, h100->l2_gbps / 1.5, 1e-9, "with slower memory");
    ok(fit(&found, h100, samples, N_SAMPLES) < 1e-2, "it is found");
    is_near(found.gpu.launch_us / slow.launch_us, 1, 0.15, "its launches");
    is_near(found.gpu.row_cycles / slow.row_cycles, 1, 0.15, "its rows");
    is_near(slow.dram_gbps / found.gpu.dram_gbps, 1, 0.15, "its memory");
    is_near(found.gpu.hot_rows / slow.hot_rows, 1, 0.15, "its hot rows");
    for (unsigned k = 0; k < found.totals.n; k++)
        most = fmax(most, fabs(found.totals.items[k].power));
    ok(most < 0.03, "without powers, at most %.4f", most);
    for (size_t i = 0; i < N_SAMPLES; i += 10)
        samples[i].total.median_ms *= 20;
    (void)fit(&robust, h100, samples, N_SAMPLES);
    is_near(robust.gpu.row_cycles / slow.row_cycles, 1, 0.3,
            "though every tenth sample is of a disturbed machine");
    samples = estimated_samples(h100, 1, &arena);
    ok(fit(&same, h100, samples, 1) < 1e-9, "one sample of an H100");
    is_near(same.gpu.launch_us / h100->launch_us, 1, 1e-3, "leaves it one");
    is_near(same.totals.items[0].power, 0, 1e-3, "as it is");
    is_near(same.gpu.hot_rows, 0, 1e-3, "also in hot rows");
}

/* A power has no effect outside the measured range of its total. */
static void test_powers(const struct gpu_spec *h100)
{
    struct estimate estimate = {.gpu = *h100};
    double sums[MAX_TOTALS + FUSED_LANES] = {0}, ms[3];
    const struct sample *sample = estimated_samples(h100, 1, &arena);
    struct feature_input input;

    total_set_add(&estimate.totals, "lookups");
    estimate.totals.items[0].mean = 10;
    estimate.totals.items[0].min = 8;
    estimate.totals.items[0].max = 12;
    feature_input_of_sample(&input, sample->setting, &sample->tables[0]);
    estimate_fill(&estimate, &input, sums);
    is_i64((int64_t)estimate_width(&estimate), 1 + FUSED_LANES, "width");
    is_near(sums[0], input.n_lookups, 0, "the total comes first");
    sums[0] = 4095;
    ms[0] = estimate_ms(&estimate, sums);
    estimate.totals.items[0].power = 0.5;
    ms[1] = estimate_ms(&estimate, sums);
    sums[0] = 1e9;
    ms[2] = estimate_ms(&estimate, sums);
    is_near(ms[1] / ms[0], 2, 1e-12, "twice the time for 2^2 of the mean");
    is_near(ms[2], ms[1], 0, "and no more for any more");
    memset(sums, 0, sizeof(sums));
    is_near(estimate_added_ms(&estimate, sums), 0, 0, "no table, no time");
}

/* The parts of a table are the shares of its time by cause, such as issuing
 * rows or hot rows. */
static void test_parts(const struct gpu_spec *h100)
{
    const double slower[N_SLOWED] = {1, 1e6, 1, 1, 1};
    const struct estimate as_is = {.gpu = *h100},
                          slow = {.gpu = gpu_spec_slowed(h100, slower)};
    struct feature_input input = {.batch = 512,
                                  .n_rows = 1e6,
                                  .dim = 128,
                                  .pooling_factor = 8,
                                  .n_lookups = 4096,
                                  .n_unique = 4096,
                                  .n_outputs = 512,
                                  .row_bytes = 512,
                                  .comm_bytes = 4,
                                  .bins = {1}};
    double lanes[FUSED_LANES];
    const struct feature_input empty = {.batch = 512, .dim = 128};
    struct feature_input none = empty;

    estimate_fill(&as_is, &input, lanes);
    ok(input.parts[0] > 0.01 && input.parts[1] > 0.01 &&
           input.parts[2] > 0.01 && input.parts[3] > 0.01 &&
           input.parts[4] > 0.01,
       "each part is a share of a table's time: %.3f %.3f %.3f %.3f %.3f",
       input.parts[0], input.parts[1], input.parts[2], input.parts[3],
       input.parts[4]);
    estimate_fill(&slow, &input, lanes);
    is_near(input.parts[2] + input.parts[4], 1, 1e-3,
            "a GPU that issues rows slowly does nothing else");
    is_near(input.parts[5], 0, 0, "without hot rows");
    input.n_unique = 1;
    input.bins[0] = 0;
    input.bins[12] = 1;
    estimate_fill(&as_is, &input, lanes);
    ok(input.parts[5] > 0.01, "one row that is hot: %.3f", input.parts[5]);
    estimate_fill(&as_is, &none, lanes);
    ok(!memcmp(none.parts, empty.parts, sizeof(none.parts)),
       "and no look-ups have no parts");
}

static int save(struct model *model, char path[], const char **bytes,
                size_t *len)
{
    model_to_bytes(model, bytes, len, &arena);
    return model_save(model, path, &err);
}

/* The fitted model prices like the roofline that made its samples. */
static void test_prices(const struct gpu_spec *h100)
{
    const uint64_t memory[2] = {(uint64_t)1 << 40, (uint64_t)1 << 40};
    const uint64_t reserve[2] = {0, 0};
    struct table tables[3];
    const struct problem problem = {
        .tables = tables,
        .n_tables = 3,
        .cluster = {.n_devices = 2,
                    .devices_per_host = 2,
                    .memory_bytes = (uint64_t *)(uintptr_t)memory,
                    .reserve_bytes = (uint64_t *)(uintptr_t)reserve},
        .batch = 12345, /* a batch that no sample has */
        .kinds = SHARD_ALL_KINDS};
    char path[] = "/tmp/t_roofline_fit_XXXXXX";
    /* Check of the ids alone, as in gpu_spec.c: a batch of 12,345 with 33
     * lookups per sample in all. */
    const double check_ms = 0.014 + 1e-6 * (ceil(12345 * (0.2304 + 0.00223)) +
                                            ceil(12345 * (0.2304 + 0.02453)) +
                                            ceil(12345 * (0.2304 + 0.04683)));
    struct oracle *oracles[3] = {NULL, NULL, NULL};
    struct train_options options;
    const char *bytes, *again;
    struct model model, read;
    size_t len, len_again;
    double ms[3][2];

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    options.totals.n = 1; /* a model needs at least one total */
    ok(!train_fit(&model, estimated_samples(h100, N_SAMPLES, &arena), N_SAMPLES,
                  &options, &arena, &err),
       "fitted%s", err.msg);
    model.estimate.gpu = *h100;
    model.estimate.totals.items[0].power = 0;
    model.floor_gbps = 0;
    model.setting.device = "fbgemm:NVIDIA H100 80GB HBM3";
    model.choice = (struct error_list){
        .items = {{"fitted roofline", 0, 0.1, 0.1, 0.1, 1, 18}}, .n = 1};
    model.training.n_folds = 10;
    close(mkstemp(path));
    ok(!save(&model, path, &bytes, &len) &&
           !model_parse(&read, bytes, len, "m", &arena, &err),
       "written and read%s", err.msg);
    is_i64((int64_t)model_kind(&read), MODEL_ROOFLINE,
           "it is read as a roofline");
    is_str(model_kind_text(&read, &arena), "fitted roofline of h100",
           "by name");
    is_str(choice_text(&read, &arena),
           ", judged by 10-fold cross-validation on 18 samples", "and judged");
    model_to_bytes(&read, &again, &len_again, &arena);
    ok(len == len_again && !memcmp(bytes, again, len), "to the last bit");
    for (uint32_t t = 0; t < 3; t++) {
        table_init(&tables[t]);
        tables[t].name = "a";
        tables[t].num_embeddings = 1000 + 100000 * t;
        tables[t].dim = 64;
        tables[t].pooling_factor = 1 + 10 * t;
    }
    ok(!oracle_open(&oracles[0], arena_printf(&arena, "model:%s", path),
                    &problem, &arena, &err) &&
           !oracle_open(&oracles[1], "roofline:h100", &problem, &arena, &err),
       "opened%s", err.msg);
    model.setting.device = "cuda:NVIDIA H100 80GB HBM3";
    ok(!save(&model, path, &bytes, &len) &&
           !oracle_open(&oracles[2], arena_printf(&arena, "model:%s", path),
                        &problem, &arena, &err),
       "and as one of this program%s", err.msg);
    for (int o = 0; o < 3; o++) {
        const uint32_t width = oracles[o]->width;
        double *sums = ARENA_NEW(&arena, double, 2 * width);
        double *vectors = ARENA_NEW(&arena, double, 3 * width);
        struct shard shards[3];

        for (uint32_t t = 0; t < 3; t++)
            shards[t] = shard_whole(&problem, t, 0);
        oracles[o]->ops->embed(oracles[o], shards, 3, vectors);
        oracle_add_shards(oracles[o], shards, vectors, 3, 1, sums);
        oracles[o]->ops->compute(oracles[o], sums, 2, ms[o]);
    }
    is_near(ms[0][0], ms[1][0], 1e-12 * ms[1][0],
            "it prices as the roofline does, at a batch of no sample");
    is_near(ms[2][0] + check_ms, ms[1][0], 1e-12 * ms[1][0],
            "without the check of ids, which this program's lookups leave out");
    is_near(ms[0][1], 0, 0, "and a device of nothing as nothing");
    unlink(path);
}

/* Returns a problem with the tables of a sample on one device. */
static struct problem problem_of(const struct sample *sample)
{
    struct problem problem = {
        .tables = ARENA_NEW(&arena, struct table, sample->n_tables),
        .n_tables = sample->n_tables,
        .cluster = {.n_devices = 1,
                    .devices_per_host = 1,
                    .memory_bytes = ARENA_NEW(&arena, uint64_t, 1),
                    .reserve_bytes = ARENA_NEW(&arena, uint64_t, 1)},
        .batch = sample->setting->batch,
        .kinds = SHARD_TABLE};

    for (uint32_t t = 0; t < sample->n_tables; t++) {
        struct table *table = &problem.tables[t];

        table_init(table);
        table->name = "t";
        table->num_embeddings = sample->tables[t].n_rows;
        table->dim = sample->tables[t].dim;
        table->pooling_factor = sample->tables[t].pooling_factor;
        table->zipf_alpha = sample->tables[t].zipf_alpha;
        table->precision = sample->setting->precision;
        table->optimizer = sample->setting->optimizer;
    }
    return problem;
}

/* A net on a roofline gets the parts of its tables as inputs: in training, from
 * a file and in a search. */
static void test_net(const struct gpu_spec *h100)
{
    struct sample *samples = estimated_samples(h100, N_SAMPLES, &arena);
    char path[] = "/tmp/t_roofline_fit_XXXXXX";
    struct train_options options;
    const char *bytes;
    struct model model, alone;
    double worst = 0, most = 0;
    size_t len;

    for (size_t i = 0; i < N_SAMPLES; i++)
        samples[i].total.median_ms *= 1 + 4.0 / samples[i].tables[0].dim;
    train_options_init(&options);
    options.kind = MODEL_ROOFLINE_NET;
    options.epochs = 20;
    close(mkstemp(path));
    if (!ok(!train_fit(&model, samples, N_SAMPLES, &options, &arena, &err),
            "a net on it%s", err.msg))
        return;
    is_str(model.features.items[model.features.n - 1].name, "hot_issue",
           "sees parts of the roofline");
    is_i64((int64_t)model.training.n_train, N_SAMPLES * 9 / 10,
           "learns from all that are not held out");
    is_i64((int64_t)model.training.n_validation, 0, "as none validates");
    is_i64((int64_t)model.training.best_epoch, options.epochs,
           "and ends with its last epoch");
    model.floor_gbps = 0;
    model.estimate.gpu.hot_rows += 0.5; /* also if none were found */
    alone = model;
    alone.mlp.n_params = 0;
    ok(!save(&model, path, &bytes, &len), "and is written%s", err.msg);
    for (size_t i = 0; i < 8; i++) { /* none of them is held out */
        const struct problem problem = problem_of(&samples[i]);
        struct oracle *oracle = NULL;
        double *sums, *vectors, ms, want;

        if (oracle_open(&oracle, arena_printf(&arena, "model:%s", path),
                        &problem, &arena, &err)) {
            ok(0, "opened: %s", err.msg);
            break;
        }
        sums = ARENA_NEW(&arena, double, oracle->width);
        vectors = ARENA_NEW(&arena, double, problem.n_tables * oracle->width);
        for (uint32_t t = 0; t < problem.n_tables; t++) {
            const struct shard shard = shard_whole(&problem, t, 0);

            oracle->ops->embed(oracle, &shard, 1, vectors + t * oracle->width);
            for (uint32_t k = 0; k < oracle->width; k++)
                sums[k] += vectors[t * oracle->width + k];
        }
        oracle->ops->compute(oracle, sums, 1, &ms);
        predict_samples(&model, &samples[i], 1, &want);
        worst = tap_worst(worst, fabs(ms / want - 1));
        predict_samples(&alone, &samples[i], 1, &ms);
        most = fmax(most, fabs(want / ms - 1));
    }
    ok(most > 0.01, "it corrects the roofline by up to %.3f", most);
    ok(worst < 1e-5, "it prices jobs as it prices samples: %.1e", worst);
    unlink(path);
}

static void change_figure(struct gpu_spec *gpu, int figure)
{
    switch (figure) {
    case 0:
        gpu->launch_us *= 2;
        break;
    case 1:
        gpu->row_cycles *= 2;
        break;
    case 2:
        gpu->bag_row_us *= 20;
        break;
    case 3:
        gpu->hot_rows += 0.5;
        break;
    case 4:
        gpu->dram_gbps *= 2;
        break;
    case 5:
        gpu->l2_gbps /= 2;
        break;
    case 6:
        gpu->l2_bytes /= 64;
        break;
    case 7:
        gpu->clock_ghz /= 2;
        break;
    default:
        gpu->n_sms /= 2;
    }
}

/* Phases of all tables on the only device. */
static void phases_of(const struct oracle *oracle, double ms[N_PHASES])
{
    const uint32_t n = (uint32_t)oracle->problem->n_tables;
    const uint32_t width = oracle->width;
    struct shard *shards = ARENA_NEW(&arena, struct shard, n);
    double *vectors = ARENA_NEW(&arena, double, n *width);
    double *sums = ARENA_NEW(&arena, double, width), compute_ms;

    for (uint32_t t = 0; t < n; t++)
        shards[t] = shard_whole(oracle->problem, t, 0);
    oracle->ops->embed(oracle, shards, n, vectors);
    oracle_add_shards(oracle, shards, vectors, n, 1, sums);
    oracle->ops->compute(oracle, sums, 1, &compute_ms);
    oracle->ops->phases(oracle, sums, &compute_ms, (double(*)[N_PHASES])ms);
}

/* A model's phases go by each figure that was fitted: they are those of the
 * roofline of a GPU with these figures. That is exact for a single table with
 * millions of look-ups, whose sort takes all of its launches. */
static void test_figures(const struct gpu_spec *h100)
{
    struct sample *samples = estimated_samples(h100, N_SAMPLES, &arena);
    const struct sample_setting setting = {.batch = 65536};
    struct sample_table table = {
        .n_rows = 1000000, .dim = 128, .pooling_factor = 50, .zipf_alpha = 1.1};
    const struct problem problem = problem_of(
        &(struct sample){.setting = &setting, .tables = &table, .n_tables = 1});
    char path[] = "/tmp/t_roofline_fit_XXXXXX";
    double usual[N_PHASES];
    struct train_options options;
    const char *bytes;
    struct model model;
    size_t len;

    train_options_init(&options);
    options.kind = MODEL_ROOFLINE;
    options.totals.n = 1;
    if (!ok(!train_fit(&model, samples, N_SAMPLES, &options, &arena, &err),
            "fitted%s", err.msg))
        return;
    model.estimate.totals.items[0].power = 0;
    model.floor_gbps = 0;
    model.setting.device = "fbgemm:NVIDIA H100 80GB HBM3";
    phases_of(roofline_oracle(h100, &problem, &arena), usual);
    close(mkstemp(path));
    for (int figure = 0; figure < 9; figure++) {
        struct oracle *oracle = NULL;
        double ms[N_PHASES], want[N_PHASES], worst = 0, changed = 0;

        model.estimate.gpu = *h100;
        change_figure(&model.estimate.gpu, figure);
        ok(!save(&model, path, &bytes, &len) &&
               !oracle_open(&oracle, arena_printf(&arena, "model:%s", path),
                            &problem, &arena, &err),
           "figure %d%s", figure, err.msg);
        if (!oracle)
            break;
        phases_of(oracle, ms);
        phases_of(roofline_oracle(&model.estimate.gpu, &problem, &arena), want);
        for (unsigned p = 0; p < N_PHASES; p++) {
            worst = tap_worst(worst, fabs(ms[p] - want[p]));
            changed = fmax(changed, fabs(want[p] - usual[p]));
        }
        ok(worst < 1e-9 && changed > 1e-6,
           "phases go by it: %.1e ms off, of %.1e", worst, changed);
    }
    unlink(path);
}

/* The GPU whose roofline explains the times is chosen, even if another GPU is
 * better known. */
static void test_gpu(const char *name)
{
    const struct gpu_spec *gpu, *found = NULL;
    struct train_options options;

    train_options_init(&options);
    ok(!gpu_spec_get(&gpu, name, &arena, &err) &&
           !train_gpu(&found, estimated_samples(gpu, N_SAMPLES, &arena),
                      N_SAMPLES, &options, &arena, &err),
       "a GPU is found%s", err.msg);
    is_str(found ? found->name : "none", name, "that whose times they are");
}

/* Two GPUs with the same figures explain times equally well. The first one by
 * name is chosen, whichever file was written first. */
static void test_alike(const struct gpu_spec *h100)
{
    static const char *const NAMES[] = {"second", "first"};
    char folder[] = "/tmp/neuroshard-alike-XXXXXX";
    const char *data = getenv("NEUROSHARD_DATA"), *gpus;
    const struct gpu_spec *found = NULL;
    struct train_options options;

    train_options_init(&options);
    if (!data || !mkdtemp(folder)) {
        ok(0, "a data folder");
        return;
    }
    data = arena_strdup(&arena, data);
    gpus = arena_printf(&arena, "%s/gpus", folder);
    mkdir(gpus, 0700);
    for (size_t i = 0; i < 2; i++)
        ok(!symlink(arena_printf(&arena, "%s/gpus/h100.json", data),
                    arena_printf(&arena, "%s/%s.json", gpus, NAMES[i])),
           "a GPU named '%s'", NAMES[i]);
    setenv("NEUROSHARD_DATA", folder, 1);
    ok(!train_gpu(&found, estimated_samples(h100, N_SAMPLES, &arena), N_SAMPLES,
                  &options, &arena, &err),
       "one is found%s", err.msg);
    is_str(found ? found->name : "none", "first", "the first by its name");
    setenv("NEUROSHARD_DATA", data, 1);
    for (size_t i = 0; i < 2; i++)
        unlink(arena_printf(&arena, "%s/%s.json", gpus, NAMES[i]));
    rmdir(gpus);
    rmdir(folder);
}

/* The GPU is chosen by the device name or, without one, by the times. Too few
 * samples are refused. */
static void test_choice(const struct gpu_spec *h100)
{
    struct sample *samples = estimated_samples(h100, N_SAMPLES, &arena);
    struct train_options options;
    struct model model;

    train_options_init(&options);
    ok(!train_choose(&model, samples, N_SAMPLES, &options, &arena, &err),
       "chosen%s", err.msg);
    is_i64((int64_t)model_kind(&model), MODEL_ROOFLINE,
           "few samples make a roofline");
    is_i64((int64_t)model.choice.n, 1, "and no net is tried");
    is_i64((int64_t)model.choice.items[0].n, N_SAMPLES * 9 / 10,
           "all cases except the held-out ones judge");
    ok(model.choice.items[0].mape < 0.03, "well: %.2f %%",
       100 * model.choice.items[0].mape);
    is_str(model.estimate.gpu.name, "h100",
           "the GPU that explains the samples");
    ok(train_choose(&model, samples, 7, &options, &arena, &err) != 0, "seven");
    is_str(err.msg,
           "too few samples to fit a roofline to: 7 are not held out, but at "
           "least 8 are needed; 0 of a disturbed machine were left out",
           "are too few");
}

int main(void)
{
    const struct gpu_spec *h100;

    if (gpu_spec_get(&h100, "h100", &arena, &err)) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }
    test_fit(h100);
    test_powers(h100);
    test_parts(h100);
    test_prices(h100);
    test_net(h100);
    test_figures(h100);
    test_gpu("t4");
    test_gpu("v100-32gb");
    test_gpu("mi300x");
    test_alike(h100);
    test_choice(h100);
    arena_release(&arena);
    return tap_done();
}
