/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/lookup_cuda.cuh"
#include "device/lookup_span.h"

static int check_shape(const struct lookup *shape, struct err *err)
{
    for (uint32_t t = 0; t < shape->n_tables; t++)
        if (shape->tables[t].dim > LOOKUP_CUDA_MAX_DIM)
            return err_set(err, ERR_INPUT,
                           "table %u: dim %u cannot be executed on a GPU, up "
                           "to %u can",
                           t, shape->tables[t].dim, LOOKUP_CUDA_MAX_DIM);
    if (shape->out_dim > UINT32_MAX / sizeof(float))
        return err_set(err, ERR_INPUT,
                       "%u output columns cannot be executed on a GPU",
                       shape->out_dim);
    if (shape->max_lookups > LOOKUP_SPAN_MAX)
        return err_set(err, ERR_INPUT,
                       "%llu look-ups a batch cannot be executed on a GPU, %u "
                       "can",
                       (unsigned long long)shape->max_lookups, LOOKUP_SPAN_MAX);
    if ((uint64_t)shape->n_tables * shape->batch > UINT32_MAX)
        return err_set(err, ERR_INPUT,
                       "%u tables of %u bags each cannot be executed on a "
                       "GPU, %u bags can",
                       shape->n_tables, shape->batch, UINT32_MAX);
    return 0;
}

void lookup_cuda_close(struct lookup *lookup)
{
    struct lookup_cuda *self = lookup_cuda_of(lookup);

    device_free(lookup->device, self->d_slices);
    device_free(lookup->device, self->d_tables);
    for (int i = 0; i < 2; i++) {
        device_free(lookup->device, self->pairs.d_keys[i]);
        device_free(lookup->device, self->pairs.d_values[i]);
    }
    device_free(lookup->device, self->d_partials);
    device_free(lookup->device, self->d_temp);
    mem_free(self->tables);
    mem_free(self);
}

template <typename T>
static int take(struct lookup_cuda *self, T **d_ptr, size_t n_bytes,
                struct err *err)
{
    void *ptr = NULL;
    int rc = device_alloc(self->base.device, &ptr, n_bytes, err);

    *d_ptr = (T *)ptr;
    return rc;
}

static int open_slices(struct lookup_cuda *self, struct err *err)
{
    uint32_t n = lookup_count_slices(self->tables, self->base.n_tables);
    size_t n_bytes = n * sizeof(struct lookup_slice);
    struct lookup_slice *slices =
        (struct lookup_slice *)mem_alloc(n, sizeof(*slices));
    int rc = -1;

    lookup_classes_init(&self->classes, slices, self->tables,
                        self->base.n_tables);
    if (take(self, &self->d_slices, n_bytes, err))
        goto out;
    if (device_upload(self->base.device, self->d_slices, slices, n_bytes, err))
        goto out;
    rc = 0;
out:
    mem_free(slices);
    return rc;
}

static int open_tables(struct lookup_cuda *self, struct err *err)
{
    uint32_t n = self->base.n_tables;
    size_t n_bytes = n * sizeof(struct cuda_table);
    struct cuda_table *tables =
        (struct cuda_table *)mem_alloc(n, sizeof(*tables));
    uint64_t n_rows = 0;
    int rc = -1;

    for (uint32_t t = 0; t < n; t++) {
        tables[t] = cuda_table_of(&self->tables[t], n_rows);
        n_rows += self->tables[t].n_rows;
        if (tables[t].group_lanes > self->max_group_lanes)
            self->max_group_lanes = tables[t].group_lanes;
    }
    self->key_bits = 1;
    while (n_rows > 1 && (n_rows - 1) >> self->key_bits)
        self->key_bits++;
    self->pairs.key_bytes = self->key_bits > 32 ? 8 : 4;
    if (take(self, &self->d_tables, n_bytes, err))
        goto out;
    if (device_upload(self->base.device, self->d_tables, tables, n_bytes, err))
        goto out;
    rc = 0;
out:
    mem_free(tables);
    return rc;
}

static int open_scratch(struct lookup_cuda *self, struct err *err)
{
    const struct lookup *base = &self->base;
    size_t n = base->max_lookups;
    size_t n_partials = lookup_n_spans(n, base->n_tables, LOOKUP_RUN_PIECE);

    if (!n || !base->n_tables)
        return 0;
    for (int i = 0; i < 2; i++)
        if (take(self, &self->pairs.d_keys[i], n * self->pairs.key_bytes,
                 err) ||
            take(self, &self->pairs.d_values[i], n * sizeof(uint32_t), err))
            return -1;
    if (take(self, &self->d_partials,
             n_partials * base->max_dim * sizeof(float), err))
        return -1;
    if (cuda_sort_pairs(self->cuda, &self->pairs, n, self->key_bits, NULL,
                        &self->temp_bytes, err))
        return -1;
    return take(self, &self->d_temp, self->temp_bytes, err);
}

int lookup_cuda_open(struct lookup **out, const struct lookup *shape,
                     struct err *err)
{
    struct lookup_cuda *self;

    if (check_shape(shape, err))
        return -1;
    self = (struct lookup_cuda *)mem_alloc(1, sizeof(*self));
    self->base = *shape;
    self->cuda = device_cuda_of(shape->device);
    self->tables = (struct lookup_table *)mem_alloc(shape->n_tables,
                                                    sizeof(*self->tables));
    for (uint32_t t = 0; t < shape->n_tables; t++)
        self->tables[t] = shape->tables[t];
    self->base.tables = self->tables;
    self->max_group_lanes = 1;
    if (open_slices(self, err) || open_tables(self, err) ||
        open_scratch(self, err)) {
        lookup_cuda_close(&self->base);
        return -1;
    }
    *out = &self->base;
    return 0;
}
