/* SPDX-License-Identifier: MIT */
/*
 * Trains a plan in one process, as `neuroshard run PLAN --steps STEPS --seed
 * SEED` does, and writes what another program needs to train the same model:
 *
 *     training_dump PLAN FOLDER STEPS SEED
 *
 * The plan has a dense part, and its tables have fp32 weights. All values are
 * those of unsharded tables and of the whole batch. FOLDER gets a NumPy file
 * for each array. The shapes below leave out the first dimension, which counts
 * the steps:
 *
 *     losses            mean loss of the batch
 *     features, labels  [batch x width of the features, of the last layer]
 *     gradients         [n_parameters] of the dense part
 *     parameters        [n_parameters] of the dense part
 *     offsets_T         [n_bags + 1] of table T, into all ids of the table
 *     weights_T         [rows x dim]
 *     states_T          [rows x dim] state of row-wise Adagrad. The columns of
 *                       a piece have the same state. Only if the table has it.
 *
 * The last four have the values before the first step, too, so they are longer
 * by one. ids_T has one dimension: the rows of all steps. The initial values
 * come from their definition (exec/values.h), not from the training. Prints the
 * two hashes of the training.
 */
#include "exec/exec_train.h"

#include "base/hash.h"
#include "exec/train_step.h"
#include "exec/values.h"
#include "io/plan_json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An array that grows by rows of the same length. */
struct array {
    const char *type; /* NumPy's name of the type, such as "<f4" */
    uint64_t n_rows, n_cols;
    struct buf data;
};

struct table_arrays {
    struct array ids, offsets, weights, states;
};

struct dump {
    struct array losses, features, labels, gradients, parameters;
    struct table_arrays *tables; /* [n_tables] */
};

static void die(const char *what)
{
    fprintf(stderr, "training_dump: %s\n", what);
    exit(1);
}

/* --- arrays --- */

/* Adds a row and returns it, zeroed. */
static void *add_row(struct array *array, const char *type, uint64_t n_cols)
{
    const size_t n_bytes = (size_t)(type[2] - '0') * (size_t)n_cols;
    char *row = buf_reserve(&array->data, n_bytes);

    array->type = type;
    array->n_cols = n_cols;
    array->n_rows++;
    array->data.len += n_bytes;
    memset(row, 0, n_bytes + 1);
    return row;
}

/* Writes a NumPy file of version 1.0: its header has a multiple of 64 bytes. */
static void write_array(struct array *array, const char *folder,
                        const char *name)
{
    char path[4096], head[128] = "\x93NUMPY\x01\x00\x76\x00";
    char *text = head + 10;
    FILE *file;
    int n;

    if (!array->n_rows)
        return;
    memset(text, ' ', sizeof(head) - 10);
    n = snprintf(text, sizeof(head) - 10,
                 "{'descr': '%s', 'fortran_order': False, 'shape': (%llu, "
                 "%llu)}",
                 array->type, (unsigned long long)array->n_rows,
                 (unsigned long long)array->n_cols);
    text[n] = ' ';
    head[sizeof(head) - 1] = '\n';
    snprintf(path, sizeof(path), "%s/%s.npy", folder, name);
    file = fopen(path, "wb");
    if (!file || fwrite(head, sizeof(head), 1, file) != 1 ||
        fwrite(array->data.data, 1, array->data.len, file) != array->data.len ||
        fclose(file))
        die(strerror(errno));
    buf_release(&array->data);
}

static void write_all(struct dump *dump, const char *folder, size_t n_tables)
{
    write_array(&dump->losses, folder, "losses");
    write_array(&dump->features, folder, "features");
    write_array(&dump->labels, folder, "labels");
    write_array(&dump->gradients, folder, "gradients");
    write_array(&dump->parameters, folder, "parameters");
    for (size_t t = 0; t < n_tables; t++) {
        struct table_arrays *table = &dump->tables[t];
        struct array *const arrays[] = {&table->ids, &table->offsets,
                                        &table->weights, &table->states};
        static const char *const names[] = {"ids", "offsets", "weights",
                                            "states"};

        for (size_t i = 0; i < 4; i++) {
            char name[64];

            snprintf(name, sizeof(name), "%s_%zu", names[i], t);
            write_array(arrays[i], folder, name);
        }
    }
}

/* --- batches --- */

static void add_ids(struct table_arrays *arrays,
                    const struct placement *placement, size_t table_idx,
                    unsigned number)
{
    const struct rank_range all = {0, placement->n_ranks};
    const uint64_t n_bags =
        (uint64_t)placement->batch *
        (uint64_t)placement->plan->problem.tables[table_idx].num_outputs;
    const uint64_t before = arrays->ids.n_rows;
    struct bags bags;
    uint64_t *offsets = add_row(&arrays->offsets, "<u8", n_bags + 1);

    batches_draw_table(&bags, placement, table_idx, all, number, false);
    for (uint64_t bag = 0; bag <= n_bags; bag++)
        offsets[bag] = before + bags.offsets[bag];
    for (uint64_t i = 0; i < bags.offsets[n_bags]; i++)
        *(uint64_t *)add_row(&arrays->ids, "<u8", 1) = bags.indices[i];
    bags_release(&bags);
}

/* Adds the features and labels of all samples of a batch. */
static void add_samples(struct dump *dump, const struct placement *placement,
                        const struct dense *dense, unsigned number)
{
    const uint64_t batch = placement->batch, first = number * batch;
    const uint32_t n_features = dense_n_features(dense);
    const uint32_t n_labels = dense_n_outputs(dense);
    float *labels = add_row(&dump->labels, "<f4", batch * n_labels);

    if (n_features) {
        float *features = add_row(&dump->features, "<f4", batch * n_features);

        for (uint64_t i = 0; i < batch; i++)
            values_features(features + i * n_features, placement->seed,
                            first + i, n_features);
    }
    for (uint64_t i = 0; i < batch * n_labels; i++)
        labels[i] = values_label(placement->seed, first * n_labels + i);
}

/* --- weights --- */

/* Downloads the weights and states of a piece, and writes them to its place in
 * the unsharded matrices. `states` is NULL if the piece has none. */
static int add_piece(float *weights, float *states,
                     const struct placement *placement,
                     const struct piece *piece, struct err *err)
{
    const size_t n_rows = (size_t)(piece->row_end - piece->row_begin);
    const uint32_t dim = piece->table->dim, width = piece->width;
    float *own = mem_alloc(n_rows * width, sizeof(*own));
    float *own_states = mem_alloc(n_rows, sizeof(*own_states));
    int rc = 0;

    if (n_rows)
        rc = device_download(placement->device, own, piece->d_weight,
                             n_rows * width * sizeof(*own), err) ||
             (states &&
              device_download(placement->device, own_states, piece->d_state,
                              n_rows * sizeof(*own_states), err));
    for (size_t row = 0; !rc && row < n_rows; row++) {
        const size_t at =
            (size_t)(piece->row_begin + row) * dim + piece->col_begin;

        memcpy(weights + at, own + row * width, width * sizeof(*own));
        for (uint32_t col = 0; states && col < width; col++)
            states[at + col] = own_states[row];
    }
    mem_free(own);
    mem_free(own_states);
    return rc ? -1 : 0;
}

/* Adds the weights and states that a table has after a step. */
static int add_table(struct table_arrays *arrays,
                     const struct placement *placement, size_t table_idx,
                     struct err *err)
{
    struct piece *const *pieces = &placement->table_pieces[table_idx];
    const uint64_t n_values =
        placement->table_rows[table_idx] * pieces[0]->table->dim;
    float *weights = add_row(&arrays->weights, "<f4", n_values);
    float *states =
        pieces[0]->d_state ? add_row(&arrays->states, "<f4", n_values) : NULL;

    for (const struct piece *piece = pieces[0]; piece < pieces[1]; piece++)
        if (!(piece->replica && piece->rank) &&
            add_piece(weights, states, placement, piece, err))
            return -1;
    return 0;
}

/* Adds the weights and states of a table before the first step. */
static void add_initial_table(struct table_arrays *arrays,
                              const struct placement *placement,
                              size_t table_idx)
{
    struct piece *const *pieces = &placement->table_pieces[table_idx];
    const uint64_t n_rows = placement->table_rows[table_idx];
    const uint32_t dim = pieces[0]->table->dim;
    float *weights = add_row(&arrays->weights, "<f4", n_rows * dim), *states;

    if (pieces[0]->table->precision != PRECISION_FP32)
        die("a table has weights of another precision than fp32");
    values_weights(weights, pieces[0]->table_seed, 0, (uint32_t)(n_rows * dim),
                   PRECISION_FP32);
    if (!pieces[0]->d_state)
        return;
    states = add_row(&arrays->states, "<f4", n_rows * dim);
    for (const struct piece *piece = pieces[0]; piece < pieces[1]; piece++)
        for (uint64_t row = piece->row_begin; row < piece->row_end; row++)
            for (uint32_t col = 0; col < piece->width; col++)
                states[row * dim + piece->col_begin + col] =
                    values_state(piece->table_seed, row, piece->col_begin);
}

/* --- steps --- */

static void add_initial(struct dump *dump, const struct train_state *run)
{
    const struct placement *placement = &run->placement;
    const struct dense *dense = run->options->dense;

    values_parameters(add_row(&dump->parameters, "<f4", dense->n_parameters),
                      placement->seed, dense);
    for (size_t t = 0; t < placement->plan->problem.n_tables; t++)
        add_initial_table(&dump->tables[t], placement, t);
}

static int add_step(void *ctx, const struct train_state *run, unsigned step,
                    struct err *err)
{
    struct dump *dump = ctx;
    const struct placement *placement = &run->placement;
    const struct dense *dense = run->options->dense;
    const size_t n_bytes = (size_t)dense->n_parameters * sizeof(float);
    const struct dense_net *net = &run->nets[0];
    const unsigned number = STEP_BATCH + step % run->feed.n_batches;

    if (!step)
        add_initial(dump, run);
    *(double *)add_row(&dump->losses, "<f8", 1) = run->result->losses[step];
    add_samples(dump, placement, dense, number);
    for (size_t t = 0; t < placement->plan->problem.n_tables; t++) {
        add_ids(&dump->tables[t], placement, t, number);
        if (add_table(&dump->tables[t], placement, t, err))
            return -1;
    }
    return device_download(
               net->device,
               add_row(&dump->gradients, "<f4", dense->n_parameters),
               net->d_gradients, n_bytes, err) ||
                   device_download(
                       net->device,
                       add_row(&dump->parameters, "<f4", dense->n_parameters),
                       net->d_parameters, n_bytes, err)
               ? -1
               : 0;
}

int main(int argc, char **argv)
{
    struct arena arena = {0};
    struct dump dump = {0};
    struct plan plan;
    struct train_result result;
    struct world *world;
    struct device *device;
    struct err err = {0};

    if (argc != 5)
        die("usage: training_dump PLAN FOLDER STEPS SEED");
    if (plan_load(&plan, argv[1], &arena, &err) || world_open(&world, &err) ||
        device_open(&device, DEVICE_CPU, 0, 2, &err))
        die(err.msg);
    dump.tables = ARENA_NEW(&arena, struct table_arrays, plan.problem.n_tables);
    const struct exec_train_options options = {
        .n_steps = (unsigned)strtoul(argv[3], NULL, 10),
        .pipeline = plan.problem.job.pipeline,
        .dense = plan.problem.job.dense,
        .dense_optimizer = problem_dense_optimizer(&plan.problem),
        .scale_rows = 1,
        .seed = strtoull(argv[4], NULL, 10),
        .observe = add_step,
        .observe_ctx = &dump};

    if (exec_train(&result, &plan, world, device, &options, &arena, &err))
        die(err.msg);
    if (result.failure)
        die(result.failure);
    write_all(&dump, argv[2], plan.problem.n_tables);
    printf("%s %s\n", HASH_TEXT(result.dense_hash),
           HASH_TEXT(result.weight_hash));
    device_close(device);
    world_close(world);
    arena_release(&arena);
    return 0;
}
