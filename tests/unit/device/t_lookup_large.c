/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "device/lookup.h"
#include "device/stream_math.h"
#include "devices.h"

/*
 * Tests a table of more than 2^31 elements and 2^33 bytes. It looks up and
 * updates the first and last rows, and the rows at which an element's or a
 * byte's index overflows 32 bits. Needs 12 GiB of a GPU.
 */

#define DIM 128
#define N_ROWS ((uint64_t)20 << 20)
#define SEED 7
#define N_PLACES 9
#define RATE 0.5f

/* Rows on both sides of 2^31 bytes, 2^32 bytes and 2^31 elements (2^33 bytes);
 * all different. */
static const uint32_t places[N_PLACES] = {
    0,
    ((uint64_t)1 << 31) / (DIM * 4) - 1,
    ((uint64_t)1 << 31) / (DIM * 4),
    ((uint64_t)1 << 32) / (DIM * 4) - 1,
    ((uint64_t)1 << 32) / (DIM * 4),
    ((uint64_t)1 << 31) / DIM - 1,
    ((uint64_t)1 << 31) / DIM,
    N_ROWS - 2,
    N_ROWS - 1,
};

static struct err err;

static void *uploaded(struct device *device, const void *data, size_t n_bytes)
{
    void *d_ptr = test_device_alloc(device, n_bytes);

    if (d_ptr && device_upload(device, d_ptr, data, n_bytes, &err))
        ok(0, "upload: %s", err.msg);
    return d_ptr;
}

static float filled(uint32_t bag, uint32_t column)
{
    return stream_fill_value(SEED, (uint64_t)places[bag] * DIM + column);
}

/* Looks up bags of one lookup each, so that an output is a row. Returns the
 * number of wrong elements, or -1. */
static int count_rows_off(struct device *device, struct lookup *lookup,
                          const struct lookup_batch *batch, float *d_out,
                          float gradient)
{
    float *out;
    int n_off = 0;

    if (lookup_forward(lookup, batch, d_out, &err))
        return -1;
    out = test_device_copy(device, d_out, N_PLACES * DIM * sizeof(float));
    for (uint32_t bag = 0; bag < N_PLACES; bag++)
        for (uint32_t c = 0; c < DIM; c++)
            n_off += out[bag * DIM + c] != filled(bag, c) - RATE * gradient;
    mem_free(out);
    return n_off;
}

static void test_rows(struct device *device, struct lookup_table *table)
{
    struct lookup_spec spec = {.tables = table,
                               .n_tables = 1,
                               .batch = N_PLACES,
                               .max_lookups = N_PLACES};
    uint64_t offsets[N_PLACES + 1];
    float *d_out = test_device_alloc(device, N_PLACES * DIM * sizeof(float));
    struct lookup_batch batch = {.n_lookups = N_PLACES};
    struct lookup *lookup = NULL;

    for (uint64_t i = 0; i <= N_PLACES; i++)
        offsets[i] = i;
    batch.d_indices = uploaded(device, places, sizeof(places));
    batch.d_offsets = uploaded(device, offsets, sizeof(offsets));
    ok(!device_fill(device, table->d_weight, N_ROWS * DIM, PRECISION_FP32, SEED,
                    &err) &&
           !lookup_open(&lookup, device, &spec, &err),
       "a table of %.1f GiB %s", (double)N_ROWS * DIM * 4 / (1 << 30), err.msg);
    is_i64(count_rows_off(device, lookup, &batch, d_out, 0), 0, "its rows");
    ok(!device_set(device, d_out, N_PLACES * DIM, 2, &err) &&
           !lookup_backward(lookup, LOOKUP_BACKWARD, &batch, d_out, RATE, &err),
       "an update %s", err.msg);
    is_i64(count_rows_off(device, lookup, &batch, d_out, 2), 0,
           "and what became of them");
    lookup_close(lookup);
    device_free(device, d_out);
}

int main(void)
{
    uint64_t n_bytes = N_ROWS * DIM * sizeof(float);
    struct lookup_table table = {
        .n_rows = N_ROWS, .dim = DIM, .precision = PRECISION_FP32};
    struct device *device = test_device_open(&TEST_DEVICES[3]);

    if (!device)
        return tap_done();
    if (device_free_bytes(device) < n_bytes + ((uint64_t)2 << 30)) {
        ok(1, "12 GiB # SKIP the GPU has less memory");
    } else {
        table.d_weight = test_device_alloc(device, n_bytes);
        test_rows(device, &table);
    }
    device_close(device);
    return tap_done();
}
