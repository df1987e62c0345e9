/* SPDX-License-Identifier: MIT */
#include "device/lookup_runs.cuh"

static struct backward_job job_of(const struct lookup_cuda *self,
                                  const struct lookup_batch *batch,
                                  const void *d_grad, float learning_rate)
{
    const struct lookup *base = &self->base;
    struct backward_job job;

    job.tables = self->d_tables;
    job.keys = (const uint32_t *)self->pairs.d_keys[self->pairs.current];
    job.bags = self->pairs.d_values[self->pairs.current];
    job.offsets = batch->d_offsets;
    job.grad = (const char *)d_grad;
    job.partials = self->d_partials;
    job.grad_stride = base->out_dim * precision_bytes(base->output);
    job.key_step = self->pairs.key_bytes / 4;
    job.n_tables = base->n_tables;
    job.batch = base->batch;
    job.max_dim = base->max_dim;
    job.max_group_lanes = self->max_group_lanes;
    job.learning_rate = learning_rate;
    job.is_adagrad = base->optimizer == OPTIMIZER_ROWWISE_ADAGRAD;
    return job;
}

static int sum_and_update(struct lookup_cuda *self,
                          const struct lookup_batch *batch, const void *d_grad,
                          float learning_rate, struct err *err)
{
    const struct backward_job job = job_of(self, batch, d_grad, learning_rate);
    const uint32_t n = (uint32_t)batch->n_lookups;

    if (lookup_cuda_pieces(self, &job, n, err) ||
        lookup_cuda_parts(self, &job, n, err))
        return -1;
    return lookup_cuda_update(self, &job, n, err);
}

int lookup_cuda_backward(struct lookup *lookup, unsigned phases,
                         const struct lookup_batch *batch, const void *d_grad,
                         float learning_rate, struct err *err)
{
    struct lookup_cuda *self = lookup_cuda_of(lookup);
    size_t temp_bytes = self->temp_bytes;

    if (!batch->n_lookups || !lookup->n_tables || !lookup->batch)
        return 0;
    if (phases & LOOKUP_LINEARISE && lookup_cuda_linearise(self, batch, err))
        return -1;
    if (phases & LOOKUP_SORT &&
        cuda_sort_pairs(self->cuda, &self->pairs, batch->n_lookups,
                        self->key_bits, self->d_temp, &temp_bytes, err))
        return -1;
    if (phases & LOOKUP_UPDATE &&
        sum_and_update(self, batch, d_grad, learning_rate, err))
        return -1;
    return 0;
}
