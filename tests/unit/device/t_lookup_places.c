/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "base/rng.h"
#include "device/fp16.h"
#include "device/lookup.h"
#include "tests/tap.h"

/* Tables whose rows lie anywhere (places) are looked up and updated with the
 * bits of tables whose rows are contiguous. */

#define N_TABLES 4
#define BATCH 300
#define UNIT 4 /* columns */

static const struct {
    uint64_t n_rows;
    uint32_t dim, pooling;
    enum precision precision;
    bool is_placed;
} cases[N_TABLES] = {{200, 4, 3, PRECISION_FP32, true},
                     {5000, 20, 9, PRECISION_FP16, true},
                     {300, 16, 2, PRECISION_FP32, false},
                     {7, 300, 40, PRECISION_FP32, true}};

struct placed {
    struct lookup_table plain[N_TABLES], placed[N_TABLES];
    uint32_t *places[N_TABLES];
    uint64_t offsets[N_TABLES * BATCH + 1];
    uint32_t *indices;
    uint64_t *wide;
    uint32_t out_dim;
};

static size_t row_bytes(const struct lookup_table *table)
{
    return table->dim * precision_bytes(table->precision);
}

static char *row_at(const struct placed *all, unsigned t, uint64_t row)
{
    return (char *)all->placed[t].d_weight +
           all->places[t][row] * UNIT *
               precision_bytes(all->placed[t].precision);
}

/* Fills a table, and a copy of it whose rows are in a random order, with gaps
 * in between. */
static void draw_table(struct placed *all, unsigned t, struct rng *rng)
{
    struct lookup_table *plain = &all->plain[t];
    const uint32_t n = (uint32_t)cases[t].n_rows;
    uint32_t *order = mem_alloc(n, sizeof(*order));

    *plain = (struct lookup_table){.n_rows = n,
                                   .dim = cases[t].dim,
                                   .out_begin = all->out_dim,
                                   .precision = cases[t].precision};
    all->out_dim += plain->dim;
    plain->d_weight = mem_alloc(n, row_bytes(plain));
    plain->d_state = mem_alloc(n, sizeof(float));
    for (uint64_t i = 0; i < (uint64_t)n * plain->dim; i++)
        if (plain->precision == PRECISION_FP16)
            ((uint16_t *)plain->d_weight)[i] =
                fp16_from_float((float)rng_uniform(rng));
        else
            ((float *)plain->d_weight)[i] = (float)rng_uniform(rng);
    all->placed[t] = *plain;
    all->placed[t].d_state = mem_alloc(n, sizeof(float));
    all->placed[t].d_weight = mem_alloc(n, 2 * row_bytes(plain));
    all->places[t] = mem_alloc(n, sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    if (cases[t].is_placed) {
        rng_shuffle(rng, order, n);
        all->placed[t].d_places = all->places[t];
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t step = cases[t].is_placed ? 2 : 1;

        all->places[t][i] = order[i] * step * plain->dim / UNIT;
        memcpy(row_at(all, t, i),
               (char *)plain->d_weight + i * row_bytes(plain),
               row_bytes(plain));
    }
    mem_free(order);
}

static void draw_lookups(struct placed *all, struct rng *rng)
{
    uint64_t n = 0;

    all->indices = mem_alloc(N_TABLES * BATCH * 100, sizeof(*all->indices));
    all->wide = mem_alloc(N_TABLES * BATCH * 100, sizeof(*all->wide));
    for (unsigned bag = 0; bag < N_TABLES * BATCH; bag++) {
        const unsigned t = bag / BATCH;

        all->offsets[bag] = n;
        for (uint32_t k = rng_draw(rng, 2 * cases[t].pooling + 1); k; k--) {
            all->indices[n] = rng_draw(rng, (uint32_t)cases[t].n_rows);
            all->wide[n] = all->indices[n];
            n++;
        }
    }
    all->offsets[N_TABLES * BATCH] = n;
}

/* Looks up and updates the tables twice. Returns the outputs. */
static void *look_up(const struct placed *all,
                     const struct lookup_table *tables, bool wide,
                     enum optimizer optimizer, enum precision output,
                     unsigned n_threads)
{
    const struct lookup_spec spec = {.tables = tables,
                                     .n_tables = N_TABLES,
                                     .batch = BATCH,
                                     .max_lookups =
                                         all->offsets[N_TABLES * BATCH],
                                     .optimizer = optimizer,
                                     .output = output};
    const struct lookup_batch batch = {
        wide ? (const void *)all->wide : all->indices, all->offsets,
        all->offsets[N_TABLES * BATCH], wide};
    const size_t n_bytes = BATCH * all->out_dim * precision_bytes(output);
    struct device *device = NULL;
    struct lookup *lookup = NULL;
    char *out = mem_alloc(2 * BATCH * all->out_dim, sizeof(float));
    struct err err = {0};
    int rc = device_open(&device, DEVICE_CPU, 0, n_threads, &err) ||
             lookup_open(&lookup, device, &spec, &err);

    for (unsigned i = 0; !rc && i < 2; i++)
        rc = lookup_forward(lookup, &batch, out + i * n_bytes, &err) ||
             lookup_backward(lookup, LOOKUP_BACKWARD, &batch, out, 0.01F, &err);
    if (rc)
        ok(0, "%s", err.msg);
    lookup_close(lookup);
    device_close(device);
    return out;
}

static void compare(struct placed *all, bool wide, enum optimizer optimizer,
                    enum precision output, unsigned n_threads)
{
    void *want = look_up(all, all->plain, wide, optimizer, output, n_threads);
    void *got = look_up(all, all->placed, wide, optimizer, output, n_threads);
    bool same = true;

    ok(!memcmp(want, got, 2 * BATCH * all->out_dim * precision_bytes(output)),
       "outputs with %s, %s, %s ids, %u threads", optimizer_names[optimizer],
       precision_names[output], wide ? "wide" : "narrow", n_threads);
    for (unsigned t = 0; t < N_TABLES; t++) {
        const struct lookup_table *plain = &all->plain[t];

        for (uint64_t i = 0; i < plain->n_rows; i++)
            same &= !memcmp(row_at(all, t, i),
                            (char *)plain->d_weight + i * row_bytes(plain),
                            row_bytes(plain));
        same &= !memcmp(all->placed[t].d_state, plain->d_state,
                        plain->n_rows * sizeof(float));
    }
    ok(same, "... weights and states");
    mem_free(want);
    mem_free(got);
}

int main(void)
{
    static struct placed all;
    struct rng rng;

    rng_init(&rng, 1, 0);
    for (unsigned t = 0; t < N_TABLES; t++)
        draw_table(&all, t, &rng);
    draw_lookups(&all, &rng);
    compare(&all, false, OPTIMIZER_SGD, PRECISION_FP32, 1);
    compare(&all, true, OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP32, 3);
    compare(&all, false, OPTIMIZER_ROWWISE_ADAGRAD, PRECISION_FP16, 2);
    for (unsigned t = 0; t < N_TABLES; t++) {
        mem_free(all.plain[t].d_weight);
        mem_free(all.plain[t].d_state);
        mem_free(all.placed[t].d_weight);
        mem_free(all.placed[t].d_state);
        mem_free(all.places[t]);
    }
    mem_free(all.indices);
    mem_free(all.wide);
    return tap_done();
}
