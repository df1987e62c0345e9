/* SPDX-License-Identifier: MIT */
#include "exec/train_reference.h"

#include <sys/mman.h>

#include "device/world_fork.h"
#include "exec/placement_load.h"
#include "exec/placement_need.h"
#include "exec/rank_work.h"
#include "exec/reference_net.h"
#include "exec/reference_rule.h"
#include "exec/rows.h"
#include "exec/values.h"
#include "exec_fixture.h"
#include "tests/tap.h"

/*
 * The reference checks trainings that the test makes up: a second reference
 * takes the place of the execution. Its numbers are rounded to fp32 and written
 * into the tables' memory. Each fault changes some of them in the last step.
 */
#define N_RANKS 2
#define BATCH 65 /* the ranks have 32 and 33 samples */

enum fault {
    NO_FAULT,
    IDS,           /* ids of another batch */
    MISSING_PIECE, /* the outputs of one row piece are not added */
    RANK_MEAN,     /* gradients of the mean over a rank's samples */
    GRADIENT,      /* one gradient of a weight */
    POOLED,        /* one gradient of a pooled vector */
    PARAMETER,     /* one dense parameter after the update */
    WEIGHT,        /* one weight of a column piece */
    STATE,         /* one optimizer state */
    COPY           /* one weight of one replica */
};

struct training {
    struct fixture fixture;
    struct placement placement;
    const struct dense *dense;
    struct train_reference *reference;
    /* stand-in for the execution; `gradients`, `parameters` and `pooled` are
     * its numbers in fp32 */
    struct reference_rows rows;
    struct reference_net net;
    struct reference_rule rule;
    float *gradients, *parameters, *pooled;
    double *pooled_gradients;
    /* [n_products]: outputs [BATCH][out] of ReLUs, of which only those that are
     * close to 0 count */
    float *sides[DENSE_MAX_PRODUCTS];
    double loss;
};

struct setting {
    enum optimizer tables, dense;
    enum precision precision;      /* precision of the tables' weights */
    enum precision comm_precision; /* precision of the exchange */
    const char *text;              /* dense part */
};

static const unsigned numbers[] = {4, 9, 4};
#define N_STEPS 3

static void add_tables(struct fixture *fixture, const struct setting *setting)
{
    add_table(fixture, "cut", 20, 16, 4);
    add_columns(fixture, 0, 0, 12);
    add_columns(fixture, 1, 12, 16);
    add_table(fixture, "rows", 5000, 8, 4)->num_outputs = 2;
    add_rows(fixture, 0, 0, 2000);
    add_rows(fixture, 1, 2000, 5000);
    add_table(fixture, "copied", 20, 8, 4);
    add_replicas(fixture);
    for (unsigned t = 0; t < 3; t++) {
        fixture->tables[t].optimizer = setting->tables;
        fixture->tables[t].precision = setting->precision;
        fixture->tables[t].comm_precision = setting->comm_precision;
        fixture->tables[t].zipf_alpha = 0;
    }
    plan_derive_kinds(&fixture->plan);
}

static void training_open(struct training *training, struct world *world,
                          const struct setting *setting)
{
    struct fixture *fixture = &training->fixture;
    struct placement *placement = &training->placement;
    struct err err = {0};
    uint64_t n;

    memset(training, 0, sizeof(*training));
    fixture->plan = (struct plan){.problem = {.tables = fixture->tables,
                                              .cluster.n_devices = N_RANKS,
                                              .batch = BATCH},
                                  .shards = fixture->shards};
    add_tables(fixture, setting);
    fixture->world = world;
    if (device_open(&fixture->device, DEVICE_CPU, 0, 2, &err) ||
        comm_open(&fixture->comm, world, fixture->device, N_RANKS, &err) ||
        dense_read(&training->dense, setting->text, strlen(setting->text),
                   fixture->tables, 3, &fixture->arena, &err) ||
        placement_init(placement, &fixture->plan, fixture->comm, 1, 3,
                       &fixture->arena, &err) ||
        placement_cut_turns(placement, 1 << 30, &err) ||
        placement_open(placement, &err) || placement_load(placement, 0, &err) ||
        train_reference_open(&training->reference, placement, training->dense,
                             setting->dense, numbers, N_STEPS, &err))
        fixture_bail(&err);
    n = training->dense->n_parameters;
    reference_rows_open(&training->rows, placement, (const unsigned[]){4, 9, 5},
                        3);
    reference_net_init(&training->net, training->dense, NULL);
    reference_rule_init(&training->rule, setting->dense, n);
    training->gradients = ARENA_NEW(&fixture->arena, float, n);
    training->parameters = ARENA_NEW(&fixture->arena, float, n);
    values_parameters(training->parameters, placement->seed, training->dense);
    for (uint64_t i = 0; i < n; i++)
        training->net.parameters[i] = training->parameters[i];
    n = BATCH * training->dense->pooled;
    training->pooled = ARENA_NEW(&fixture->arena, float, n);
    training->pooled_gradients = ARENA_NEW(&fixture->arena, double, n);
    for (uint32_t p = 0; p < training->dense->n_products; p++)
        if (training->dense->products[p].has_relu)
            training->sides[p] =
                ARENA_NEW(&fixture->arena, float,
                          BATCH * training->dense->products[p].out);
}

static void training_close(struct training *training)
{
    train_reference_close(training->reference);
    reference_rows_close(&training->rows);
    reference_net_release(&training->net);
    reference_rule_release(&training->rule);
    placement_release(&training->placement);
    fixture_release(&training->fixture);
}

/* Computes the loss and the gradients of a batch, all samples at once. */
static void compute(struct training *training, unsigned number,
                    enum fault fault)
{
    const struct dense *dense = training->dense;
    uint32_t n_features = dense->bottom.width[0];
    double *features = mem_alloc((size_t)BATCH * n_features, sizeof(double));
    double *pooled = mem_alloc(BATCH * dense->pooled, sizeof(double));
    double labels[BATCH], scale = 1.0 / BATCH;
    float *values = mem_alloc(n_features, sizeof(float));
    struct reference_piece *piece = &training->rows.tables[1].pieces[1];
    size_t n_rows = piece->n;

    for (uint64_t i = 0; i < BATCH; i++) {
        uint64_t sample = (uint64_t)number * BATCH + i;

        values_features(values, training->placement.seed, sample, n_features);
        for (uint32_t j = 0; j < n_features; j++)
            features[i * n_features + j] = values[j];
        labels[i] = values_label(training->placement.seed, sample);
    }
    reference_rows_draw(&training->rows, fault == IDS ? 5 : number);
    piece->n = fault == MISSING_PIECE ? 0 : n_rows;
    reference_rows_pool(&training->rows, 0, BATCH, pooled);
    piece->n = n_rows;
    memset(training->net.gradients, 0, dense->n_parameters * sizeof(double));
    training->loss =
        scale *
        reference_net_train(
            &training->net,
            &(struct reference_samples){BATCH, features, pooled, labels,
                                        training->pooled_gradients,
                                        (const float *const *)training->sides},
            fault == RANK_MEAN ? N_RANKS * scale : scale);
    mem_free(features);
    mem_free(pooled);
    mem_free(values);
}

/* Rounds the gradients to fp32. */
static void round_gradients(struct training *training, enum fault fault)
{
    const struct dense *dense = training->dense;

    for (uint64_t i = 0; i < dense->n_parameters; i++)
        training->gradients[i] = (float)training->net.gradients[i];
    for (uint64_t i = 0; i < BATCH * dense->pooled; i++)
        training->pooled[i] = (float)training->pooled_gradients[i];
    if (fault == GRADIENT)
        training->gradients[reference_net_offset(dense, dense->top_begin)] +=
            1e-3F;
    for (uint64_t s = 0; fault == POOLED && s < BATCH; s++)
        training->pooled[s * dense->pooled + 17] *= 1.001F;
    for (uint64_t i = 0; i < dense->n_parameters; i++)
        training->net.gradients[i] = training->gradients[i];
    for (uint64_t i = 0; i < BATCH * dense->pooled; i++)
        training->pooled_gradients[i] = training->pooled[i];
}

/* Writes one touched row into the memory of a piece. */
static void write_row(const struct reference_table *table, size_t i,
                      const struct piece *piece, const double *states)
{
    enum precision precision = table->table->precision;
    size_t row_bytes = piece->width * precision_bytes(precision);
    double *weights = table->weights + i * table->table->dim + piece->col_begin;
    uint64_t row_idx = table->rows[i] - piece->row_begin;
    char *to = (char *)piece->d_weight + row_idx * row_bytes;
    float row[16];

    for (uint32_t j = 0; j < piece->width; j++)
        row[j] = (float)weights[j];
    values_store(to, row, piece->width, precision);
    values_load(row, to, piece->width, precision);
    /* The next step starts at the rounded weights. */
    for (uint32_t j = 0; j < piece->width; j++)
        weights[j] = row[j];
    if (states)
        piece->d_state[row_idx] = (float)*states;
}

/* Writes the touched rows of a table into the memory of its pieces. */
static void write_table(const struct training *training,
                        const struct reference_table *table)
{
    struct piece **pieces = training->placement.table_pieces + table->table_idx;

    for (const struct piece *piece = pieces[0]; piece < pieces[1]; piece++) {
        const struct reference_piece *own =
            &table->pieces[piece->replica ? 0 : piece - pieces[0]];

        for (size_t i = own->first; piece->d_weight && i < own->first + own->n;
             i++)
            write_row(table, i, piece,
                      own->states ? &own->states[i - own->first] : NULL);
    }
}

/* Changes a number of the first touched row of a table on its last rank. */
static void spoil(struct training *training, enum fault fault)
{
    size_t t = fault == COPY ? 2 : 0;
    struct piece *piece = training->placement.table_pieces[t + 1] - 1;
    float *number = fault == STATE ? piece->d_state : piece->d_weight;

    if (number && fault >= WEIGHT)
        number[0] += fault == STATE ? 1e-9F : 1e-5F;
}

static void update(struct training *training, enum fault fault)
{
    reference_rows_sum(&training->rows, training->pooled_gradients);
    reference_rule_step(&training->rule, training->net.parameters,
                        training->net.gradients, (double)STEP_RATE);
    reference_rows_update(&training->rows);
    for (uint64_t i = 0; i < training->dense->n_parameters; i++)
        training->parameters[i] = (float)training->net.parameters[i];
    if (fault == PARAMETER)
        training->parameters[training->dense->n_parameters - 1] += 1e-4F;
    for (size_t t = 0; t < training->rows.n_tables; t++)
        write_table(training, &training->rows.tables[t]);
    spoil(training, fault);
}

/* Checks a step against the reference. */
static void check(struct training *training, unsigned number)
{
    const struct placement *placement = &training->placement;
    const uint32_t first = placement_sample(placement, placement->here.begin);
    const float *sides[DENSE_MAX_PRODUCTS] = {0};
    struct err err = {0};
    struct executed_step step = {
        .number = number,
        .relu_outputs = sides,
        .loss = training->loss,
        .gradients = training->gradients,
        .parameters = training->parameters,
        .pooled_gradients = training->pooled + first * training->dense->pooled,
    };

    for (uint32_t p = 0; p < training->dense->n_products; p++)
        if (training->sides[p])
            sides[p] =
                training->sides[p] + first * training->dense->products[p].out;
    if (train_reference_step(training->reference, &step, &err))
        fixture_bail(&err);
}

/* Trains with a fault in the last step. Returns the findings of the
 * reference. */
static struct train_findings
train(struct world *world, const struct setting *setting, enum fault fault)
{
    struct training training;
    struct train_findings found;
    struct err err = {0};

    training_open(&training, world, setting);
    for (unsigned i = 0; i < N_STEPS; i++) {
        enum fault here = i + 1 == N_STEPS ? fault : NO_FAULT;

        compute(&training, numbers[i], here);
        round_gradients(&training, here);
        update(&training, here);
        check(&training, numbers[i]);
    }
    if (train_reference_finish(training.reference, training.parameters, &found,
                               &err))
        fixture_bail(&err);
    training_close(&training);
    return found;
}

static struct train_findings train_alone(const struct setting *setting,
                                         enum fault fault)
{
    struct world *world;
    struct err err = {0};

    if (world_open(&world, &err))
        fixture_bail(&err);
    return train(world, setting, fault);
}

/* Tests that a fault is found with this sentence up to the error. */
static void finds(const struct setting *setting, enum fault fault,
                  const char *sentence)
{
    struct train_findings found = train_alone(setting, fault);

    if (!ok(!strncmp(found.failure, sentence, strlen(sentence)), "%s",
            sentence))
        printf("# got '%s'\n", found.failure);
}

#define DCN "bottom:3-6-4;interaction:dcn:1x3;top:5-1"
static const struct setting sgd = {OPTIMIZER_SGD, OPTIMIZER_SGD, PRECISION_FP32,
                                   PRECISION_FP32, DCN};
static const struct setting adam = {OPTIMIZER_ROWWISE_ADAGRAD, OPTIMIZER_ADAM,
                                    PRECISION_FP32, PRECISION_FP32, DCN};

static void test_free(void)
{
    struct train_findings found = train_alone(&sgd, NO_FAULT);

    is_str(found.failure, "", "SGD runs freely and agrees");
    is_i64((int64_t)found.tallies[REFERENCE_LOSSES].n, N_STEPS, "3 losses");
    ok(found.tallies[REFERENCE_WEIGHTS].n > 2000 &&
           found.tallies[REFERENCE_WEIGHTS].error > 0 &&
           found.tallies[REFERENCE_WEIGHTS].error < 1e-6,
       "%d weights within %.2g", (int)found.tallies[REFERENCE_WEIGHTS].n,
       found.tallies[REFERENCE_WEIGHTS].error);
    is_i64((int64_t)found.tallies[REFERENCE_GRADIENTS].n, 0, "no gradients");
    finds(&sgd, IDS, "step 3: the loss differs from the unsharded reference");
    finds(&sgd, MISSING_PIECE, "step 3: the loss differs from");
    finds(&sgd, RANK_MEAN,
          "step 3: the final value of bottom layer 1's weights differs from "
          "the unsharded reference by");
    finds(&sgd, PARAMETER,
          "step 3: the final value of top layer 2's bias differs from");
    finds(&sgd, WEIGHT, "step 3: the final value of table 'cut' differs from");
    finds(&sgd, COPY, "step 3: the final value of table 'copied' differs from");
}

static void test_stepwise(void)
{
    struct train_findings found = train_alone(&adam, NO_FAULT);
    const struct tally *tallies = found.tallies;

    is_str(found.failure, "", "Adam and row-wise Adagrad agree step by step");
    /* 591 parameters, and 40 pooled values of a sample */
    is_i64((int64_t)tallies[REFERENCE_GRADIENTS].n,
           N_STEPS * (591 + BATCH * 40), "all gradients");
    ok(tallies[REFERENCE_GRADIENTS].error < 1e-6 &&
           tallies[REFERENCE_UPDATES].n > 10000 &&
           tallies[REFERENCE_UPDATES].error < 1e-6 &&
           !tallies[REFERENCE_WEIGHTS].n,
       "gradients within %.2g, updates within %.2g",
       tallies[REFERENCE_GRADIENTS].error, tallies[REFERENCE_UPDATES].error);
    finds(&adam, IDS, "step 3: the loss differs from the unsharded reference");
    finds(&adam, MISSING_PIECE, "step 3: the loss differs from");
    finds(&adam, RANK_MEAN,
          "step 3: the gradient of bottom layer 1's weights differs from the "
          "unsharded reference by");
    finds(&adam, GRADIENT,
          "step 3: the gradient of top layer 1's weights differs from");
    finds(&adam, POOLED,
          "step 3: the gradient of the outputs of table 'rows' differs from");
    finds(&adam, PARAMETER,
          "step 3: the update of top layer 2's bias differs from the rule of "
          "its optimizer by");
    finds(&adam, WEIGHT, "step 3: the update of table 'cut' differs from");
    finds(&adam, STATE,
          "step 3: the optimizer state of table 'cut' differs from");
    finds(&adam, COPY, "step 3: the update of table 'copied' differs from");
}

static void test_settings(void)
{
    static const struct setting settings[] = {
        {OPTIMIZER_SGD, OPTIMIZER_ADAGRAD, PRECISION_FP32, PRECISION_FP32,
         "bottom:3;interaction:cat;top:7-1"},
        {OPTIMIZER_ROWWISE_ADAGRAD, OPTIMIZER_SGD, PRECISION_FP32,
         PRECISION_FP32, "bottom:3-4;interaction:pool:7;top:1"},
        {OPTIMIZER_ROWWISE_ADAGRAD, OPTIMIZER_ADAM, PRECISION_FP16,
         PRECISION_FP16, DCN},
        {OPTIMIZER_SGD, OPTIMIZER_SGD, PRECISION_FP16, PRECISION_FP16, DCN},
    };

    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        struct train_findings found = train_alone(&settings[i], NO_FAULT);

        is_str(found.failure, "", settings[i].text);
    }
}

/* --- kinks --- */

#define KINK_SAMPLE 37 /* belongs to rank 1 */
#define KINK_UNIT 5

/* Moves a bias of the first top layer, so that its ReLU is at most a rounding
 * error away from 0 for one sample of the next batch. */
static void make_kink(struct training *training, unsigned number)
{
    const struct dense *dense = training->dense;
    size_t width = (size_t)dense->width;
    size_t bias = width * dense->products[0].out + KINK_UNIT;
    double in[64], sum = 0;
    float features[3];

    values_features(features, training->placement.seed,
                    (uint64_t)number * BATCH + KINK_SAMPLE, 3);
    for (unsigned i = 0; i < 3; i++)
        in[i] = features[i];
    reference_rows_draw(&training->rows, number);
    reference_rows_pool(&training->rows, KINK_SAMPLE, 1, in + 3);
    for (size_t i = 0; i < width; i++)
        sum += in[i] * training->net.parameters[KINK_UNIT * width + i];
    training->parameters[bias] = (float)-sum;
    training->net.parameters[bias] = training->parameters[bias];
}

/* Trains two steps. In the second step a ReLU that is close to 0 is on the
 * given side. Stores the gradient of its bias in *gradient, and returns the
 * largest error of a gradient. */
static double train_kink(struct world *world, float side, double *gradient)
{
    const struct setting setting = {OPTIMIZER_ROWWISE_ADAGRAD, OPTIMIZER_ADAM,
                                    PRECISION_FP32, PRECISION_FP32,
                                    "bottom:3;interaction:cat;top:7-1"};
    struct training training;
    struct train_findings found;
    struct err err = {0};

    training_open(&training, world, &setting);
    compute(&training, 4, NO_FAULT);
    round_gradients(&training, NO_FAULT);
    update(&training, NO_FAULT);
    make_kink(&training, 9);
    check(&training, 4);
    training.sides[0][KINK_SAMPLE * 7 + KINK_UNIT] = side;
    compute(&training, 9, NO_FAULT);
    *gradient = training.net.gradients[7 * training.dense->width + KINK_UNIT];
    round_gradients(&training, NO_FAULT);
    update(&training, NO_FAULT);
    check(&training, 9);
    if (train_reference_finish(training.reference, training.parameters, &found,
                               &err))
        fixture_bail(&err);
    training_close(&training);
    return found.tallies[REFERENCE_GRADIENTS].error;
}

/* --- several processes --- */

/* Results of the processes. */
struct results {
    struct train_findings found[N_RANKS];
    double kink_error[N_RANKS], gradient[N_RANKS];
};

static struct results run_processes(const struct setting *setting,
                                    enum fault fault)
{
    struct results *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct results results;
    struct world *world = NULL;
    struct err err = {0};

    fflush(stdout);
    if (world_fork(&world, N_RANKS, &err))
        fixture_bail(&err);
    if (world) {
        const uint32_t rank = world->rank;

        if (setting)
            shared->found[rank] = train(world, setting, fault);
        else
            shared->kink_error[rank] =
                train_kink(world, 1, &shared->gradient[rank]);
        exit(0);
    }
    results = *shared;
    munmap(shared, sizeof(*shared));
    return results;
}

static void test_processes(const struct setting *setting)
{
    struct results results = run_processes(setting, NO_FAULT);
    struct train_findings alone = train_alone(setting, NO_FAULT);
    struct tally sum = results.found[0].tallies[REFERENCE_WEIGHTS];

    ok(!results.found[0].failure[0] && !results.found[1].failure[0],
       "two processes agree");
    tally_add(&sum, &results.found[1].tallies[REFERENCE_WEIGHTS]);
    ok(sum.n >= alone.tallies[REFERENCE_WEIGHTS].n,
       "... and compare all weights");
    results = run_processes(setting, MISSING_PIECE);
    ok(strstr(results.found[0].failure, "step 3: the loss") &&
           strstr(results.found[1].failure, "step 3: the loss"),
       "both find a missing piece");
    results = run_processes(setting, WEIGHT);
    ok(!results.found[0].failure[0] &&
           strstr(results.found[1].failure, "table 'cut'"),
       "only the holder of a wrong weight finds it");
}

static void test_kinks(void)
{
    struct results results = run_processes(NULL, NO_FAULT);
    double errors[2], gradients[2];

    for (unsigned side = 0; side < 2; side++) {
        struct world *world;
        struct err err = {0};

        if (world_open(&world, &err))
            fixture_bail(&err);
        errors[side] = train_kink(world, (float)side, &gradients[side]);
    }
    ok(fabs(gradients[1] - gradients[0]) > 1e-5,
       "a ReLU at 0 has two gradients: %.3g and %.3g", gradients[0],
       gradients[1]);
    ok(errors[0] < 1e-6 && errors[1] < 1e-6,
       "... and the reference takes the executed one: %.2g, %.2g", errors[0],
       errors[1]);
    ok(results.kink_error[0] < 1e-6 && results.kink_error[1] < 1e-6,
       "... in two processes, too: %.2g, %.2g", results.kink_error[0],
       results.kink_error[1]);
}

int main(void)
{
    /* Processes are forked before this one starts threads. */
    test_kinks();
    test_processes(&sgd);
    test_processes(&adam);
    test_free();
    test_stepwise();
    test_settings();
    return tap_done();
}
