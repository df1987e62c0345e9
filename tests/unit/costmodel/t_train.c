/* SPDX-License-Identifier: MIT */
/* Training and judging on samples whose law is known. */
#include "costmodel/train.h"

#include "costmodel/dataset.h"
#include "costmodel/evaluate.h"
#include "tests/synthetic_samples.h"
#include "tests/tap.h"

static void test_split(struct arena *arena)
{
    struct dataset dataset;
    struct feature_set features;
    struct sample *samples;
    size_t n, n_tables = 0, n_train = 0;
    int together = 1;

    samples = synthetic_samples(&n, 50, 1, arena);
    samples[0].flags = SAMPLE_THROTTLED;
    samples[1].total.median_ms = NAN;
    feature_set_standard(&features);
    dataset_init(&dataset, &features, &synthetic_setting, samples, n,
                 sample_trains, arena);
    for (size_t i = 0; i < n; i++) {
        n_train += sample_trains(&samples[i]);
        n_tables += sample_trains(&samples[i]) ? samples[i].n_tables : 0;
        together =
            together && sample_split(&samples[i]) ==
                            (samples[i].case_idx % 10 == 9   ? SPLIT_HELD_OUT
                             : samples[i].case_idx % 10 == 8 ? SPLIT_VALIDATION
                                                             : SPLIT_TRAIN);
    }
    ok(together, "a case's samples are on one side");
    ok(!sample_trains(&samples[0]), "a throttled sample does not train");
    ok(!sample_trains(&samples[1]), "nor one without a time");
    is_i64((int64_t)dataset.n_samples, (int64_t)n_train,
           "fused and single samples, no repeats, no sentinels");
    ok(10 * dataset.n_rows < 7 * n_tables, "%zu tables are %zu distinct rows",
       n_tables, dataset.n_rows);
}

static void test_fit(struct arena *arena)
{
    struct train_options options;
    struct evaluation e;
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    double ms[3];
    size_t n;

    samples = synthetic_samples(&n, 600, 2, arena);
    train_options_init(&options);
    options.epochs = 100;
    if (!ok(!train_fit(&model, &synthetic_setting, samples, n, &options, arena,
                       &err),
            "training%s", err.msg))
        return;
    evaluate_model(&e, &model, samples, n);
    is_i64((int64_t)e.errors[PREDICTOR_NET].n, 60, "60 fused cases held out");
    ok(e.errors[PREDICTOR_NET].mape < 0.06, "error of the net %.2f %%",
       100 * e.errors[PREDICTOR_NET].mape);
    ok(e.errors[PREDICTOR_MEASURED_SINGLES].mape > 0.2 &&
           e.errors[PREDICTOR_PREDICTED_SINGLES].mape > 0.2,
       "singles add up to too much: %.1f %%, %.1f %%",
       100 * e.errors[PREDICTOR_MEASURED_SINGLES].mape,
       100 * e.errors[PREDICTOR_PREDICTED_SINGLES].mape);
    is_i64((int64_t)e.errors[PREDICTOR_MEASURED_SINGLES].n, 60,
           "each with its single tables");
    is_i64((int64_t)e.n_repeats, 150, "every fourth case repeated");
    is_near(e.repeat_median_ape, 0.02, 1e-12, "repeats are 2 % off");
    is_i64((int64_t)e.n_sentinels, 60, "sentinels");
    is_near(e.sentinel_spread_frac, 0, 0, "which do not drift");
    predict_samples(&model, samples, 3, ms);
    is_near(ms[0], samples[0].total.median_ms, 0.3 * samples[0].total.median_ms,
            "prediction of one sample");
    evaluation_store(&model, &e);
    is_i64((int64_t)model.n_errors, 5, "four predictors and the repeats");
    is_str(model.training.measured_to, "2026-11-20T10:00:00Z",
           "when it was measured");
    ok(model.floor_gbps > 1 && model.floor_gbps < 1000,
       "highest rate of a sample: %.1f GB/s", model.floor_gbps);
}

static int stop_at_three(void *ctx, unsigned epoch, unsigned epochs,
                         double train_loss, double validation_loss)
{
    unsigned *last = ctx;

    (void)epochs;
    *last = epoch;
    return epoch == 3 || !isfinite(train_loss) || !isfinite(validation_loss);
}

static void test_refusals(struct arena *arena)
{
    struct train_options options;
    struct model model;
    struct err err = {0};
    const struct sample *samples;
    unsigned last = 0;
    size_t n;

    train_options_init(&options);
    samples = synthetic_samples(&n, 3, 3, arena);
    ok(train_fit(&model, &synthetic_setting, samples, n, &options, arena,
                 &err) &&
           err.code == ERR_INPUT &&
           strstr(err.msg, "too few samples to train on: "),
       "too few samples: %s", err.msg);
    ok(train_fit(&model, &synthetic_setting, samples, 0, &options, arena,
                 &err) &&
           err.code == ERR_INPUT,
       "no samples: %s", err.msg);
    samples = synthetic_samples(&n, 60, 3, arena);
    options.on_epoch = stop_at_three;
    options.ctx = &last;
    ok(train_fit(&model, &synthetic_setting, samples, n, &options, arena,
                 &err) &&
           err.code == ERR_INTERRUPTED,
       "given up: %s", err.msg);
    is_i64(last, 3, "after three epochs");
    options.on_epoch = NULL;
    options.time_limit_s = 1e-9;
    ok(!train_fit(&model, &synthetic_setting, samples, n, &options, arena,
                  &err),
       "a time limit keeps the best so far");
    is_i64((int64_t)model.training.epochs, 1, "of one epoch");
    options.learning_rate = 1e30;
    options.time_limit_s = 0;
    options.decay = false;
    options.epochs = 5;
    if (train_fit(&model, &synthetic_setting, samples, n, &options, arena,
                  &err))
        ok(err.code == ERR_INPUT, "diverged: %s", err.msg);
    else
        ok(isfinite((double)model.mlp.params[0]), "weights are numbers");
}

static struct comm_sample exchange(const char *kind, uint64_t total_bytes,
                                   double ms)
{
    struct comm_sample sample = {.kind = kind,
                                 .n_ranks = 4,
                                 .total_bytes = total_bytes,
                                 .max_bytes = total_bytes / 4};

    sample.time.median_ms = ms;
    return sample;
}

static void test_comm(struct arena *arena)
{
    struct comm_sample samples[16] = {{0}};
    struct comm_model comm;
    size_t n = 0;

    ok(!train_comm(&comm, samples, 0, arena), "nothing to fit");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 4)
        samples[n++] = exchange("copy", bytes, 0.030 + (double)bytes / 8e6);
    ok(!train_comm(&comm, samples, 2, arena), "two sizes are not enough");
    ok(train_comm(&comm, samples, n, arena), "copies");
    is_near(comm.alpha_us, 30, 1e-6, "latency");
    is_near(comm.intra_gbps, 8, 1e-6, "bandwidth");
    ok(comm.form == COMM_TOTAL, "of one memory");
    for (uint64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 16)
        samples[n++] = exchange("nccl", bytes, 0.015 + (double)bytes / 400e6);
    ok(train_comm(&comm, samples, n, arena), "copies and NCCL");
    ok(comm.form == COMM_PORT, "NCCL is the better witness");
    is_near(comm.intra_gbps, 100, 1e-6, "by the busiest port");
    for (size_t i = 0; i < n; i++)
        samples[i] = exchange("mpi", (i + 1) << 20, 5 + 3 * (double)i);
    samples[0].time.median_ms = 1;
    ok(train_comm(&comm, samples, n, arena) && comm.alpha_us >= 0,
       "a latency is never negative: %.3f us", comm.alpha_us);
    for (size_t i = 0; i < n; i++)
        samples[i] = exchange("mpi", (i + 1) << 20, 9);
    ok(!train_comm(&comm, samples, n, arena) || comm.intra_gbps > 0,
       "times that do not grow give no negative bandwidth");
}

int main(void)
{
    struct arena arena;

    arena_init(&arena);
    test_split(&arena);
    test_fit(&arena);
    test_refusals(&arena);
    test_comm(&arena);
    arena_release(&arena);
    return tap_done();
}
