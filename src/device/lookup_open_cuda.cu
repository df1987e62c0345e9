/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/lookup_cuda.cuh"

static int check_shape(const struct lookup *shape, struct err *err)
{
    for (uint32_t t = 0; t < shape->n_tables; t++)
        if (shape->tables[t].dim > LOOKUP_CUDA_MAX_DIM)
            return err_input(err,
                             "table %u: dim %u is too large for a GPU, at most "
                             "%u can be run",
                             t, shape->tables[t].dim, LOOKUP_CUDA_MAX_DIM);
    if (shape->out_dim > UINT32_MAX / sizeof(float))
        return err_input(err, "%u output columns are too many for a GPU",
                         shape->out_dim);
    if (shape->max_lookups > LOOKUP_SPAN_MAX)
        return err_input(err,
                         "%llu lookups a batch are too many for a GPU, at most "
                         "%u can be run",
                         (unsigned long long)shape->max_lookups,
                         LOOKUP_SPAN_MAX);
    if ((uint64_t)shape->n_tables * shape->batch > UINT32_MAX)
        return err_input(err,
                         "%u tables of %u bags each are too many for a GPU, at "
                         "most %u bags can be run",
                         shape->n_tables, shape->batch, UINT32_MAX);
    return 0;
}

void lookup_cuda_close(struct lookup *lookup)
{
    struct lookup_cuda *self = lookup_cuda_of(lookup);

    device_free(lookup->device, self->d_block);
    mem_free(self);
}

/* Assigns places in the device memory block to all arrays of a lookup. Returns
 * the size that the block must have. */
static size_t lay_out(struct lookup_cuda *self, uint32_t n_slices)
{
    const struct lookup *base = &self->base;
    const size_t n = base->max_lookups;
    struct device_parts parts = {(char *)self->d_block, 0};

    self->d_slices = (struct lookup_slice *)device_part(
        &parts, n_slices * sizeof(*self->d_slices));
    self->d_tables = (struct cuda_table *)device_part(
        &parts, base->n_tables * sizeof(*self->d_tables));
    if (!n || !base->n_tables)
        return parts.n_bytes;
    device_part_pairs(&self->pairs, &parts, n);
    self->d_partials = (float *)device_part(
        &parts,
        (size_t)lookup_n_spans((uint32_t)n, base->n_tables, LOOKUP_RUN_PIECE) *
            base->max_dim * sizeof(float));
    return parts.n_bytes;
}

/* Returns the descriptions of the tables for kernels. Also sets the members of
 * `self` that are computed from the sizes of the tables. */
static struct cuda_table *open_tables(struct lookup_cuda *self)
{
    uint32_t n = self->base.n_tables;
    struct cuda_table *tables =
        (struct cuda_table *)mem_alloc(n, sizeof(*tables));
    uint64_t n_rows = 0;

    self->max_group_lanes = 1;
    for (uint32_t t = 0; t < n; t++) {
        tables[t] = cuda_table_of(&self->base.tables[t], n_rows);
        n_rows += self->base.tables[t].n_rows;
        self->max_group_lanes =
            (uint32_t)max_u64(self->max_group_lanes, tables[t].group_lanes);
    }
    self->key_bits = cuda_key_bits(n_rows);
    self->pairs.key_bytes = self->key_bits > 32 ? 8 : 4;
    return tables;
}

static int open_memory(struct lookup_cuda *self, struct err *err)
{
    const struct lookup *base = &self->base;
    const uint32_t n_slices = lookup_count_slices(base->tables, base->n_tables);
    struct lookup_slice *slices =
        (struct lookup_slice *)mem_alloc(n_slices, sizeof(*slices));
    struct cuda_table *tables = open_tables(self);
    int rc = -1;

    lookup_classes_init(&self->classes, slices, base->tables, base->n_tables);
    if ((base->max_lookups &&
         cuda_sort_pairs(self->cuda, &self->pairs, base->max_lookups,
                         self->key_bits, err)) ||
        device_alloc(base->device, &self->d_block, lay_out(self, n_slices),
                     err))
        goto out;
    lay_out(self, n_slices);
    if (device_upload(base->device, self->d_slices, slices,
                      n_slices * sizeof(*slices), err) ||
        device_upload(base->device, self->d_tables, tables,
                      base->n_tables * sizeof(*tables), err))
        goto out;
    rc = 0;
out:
    mem_free(slices);
    mem_free(tables);
    return rc;
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
    if (open_memory(self, err)) {
        lookup_cuda_close(&self->base);
        return -1;
    }
    *out = &self->base;
    return 0;
}
