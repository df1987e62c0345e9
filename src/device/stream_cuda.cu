/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/cuda_private.cuh"
#include "device/stream_math.h"

#define BLOCK_SIZE 256u

/* Where the parts of a stream lie in its batch. */
struct placed_stream {
    struct stream_batch batch;
    uint64_t first_lookup;
};

/* Row y of the grid draws stream y, one thread a look-up. */
static __global__ void __launch_bounds__(BLOCK_SIZE)
    rows_kernel(const struct placed_stream *streams, uint32_t *indices)
{
    const struct placed_stream *stream = &streams[blockIdx.y];
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i < stream->batch.n_lookups; i += step)
        indices[stream->first_lookup + i] =
            stream_row(&stream->batch, (uint32_t)i);
}

/* The sizes of all bags, and a last 0, whose sums are the offsets. */
static __global__ void __launch_bounds__(BLOCK_SIZE)
    sizes_kernel(const struct placed_stream *streams, uint32_t n_bags,
                 uint64_t n_all, uint64_t *sizes)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;

    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x;
         i <= n_all; i += step)
        sizes[i] = i == n_all ? 0
                              : stream_bag_size(&streams[i / n_bags].batch,
                                                (uint32_t)(i % n_bags));
}

static int make_offsets(struct device_cuda *cuda,
                        const struct placed_stream *d_streams,
                        uint32_t n_streams, uint32_t n_bags,
                        uint64_t *d_offsets, struct err *err)
{
    uint64_t n_all = (uint64_t)n_streams * n_bags;
    void *d_temp = NULL;
    size_t temp_bytes = 0;
    int rc = -1;

    if (CUDA(launch(sizes_kernel, cuda_n_blocks(cuda, BLOCK_SIZE, n_all + 1),
                    BLOCK_SIZE, 0, cuda->stream, d_streams, n_bags, n_all,
                    d_offsets),
             err))
        goto out;
    if (cuda_exclusive_sum(cuda, d_offsets, n_all + 1, NULL, &temp_bytes,
                           err) ||
        device_alloc(&cuda->base, &d_temp, temp_bytes, err) ||
        cuda_exclusive_sum(cuda, d_offsets, n_all + 1, d_temp, &temp_bytes,
                           err))
        goto out;
    rc = 0;
out:
    device_free(&cuda->base, d_temp);
    return rc;
}

int stream_cuda_draw(struct device *device, const struct stream *streams,
                     uint32_t n_streams, uint64_t batch_seed,
                     uint32_t *d_indices, uint64_t *d_offsets, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    size_t n_bytes = n_streams * sizeof(struct placed_stream);
    struct placed_stream *placed =
        (struct placed_stream *)mem_alloc(n_streams, sizeof *placed);
    void *d_placed = NULL;
    uint64_t n_lookups = 0, most_lookups = 0;
    int rc = -1;

    if (!n_streams) {
        rc =
            CUDA(cudaMemsetAsync(d_offsets, 0, sizeof *d_offsets, cuda->stream),
                 err);
        goto out;
    }
    for (uint32_t i = 0; i < n_streams; i++) {
        stream_batch_init(&placed[i].batch, &streams[i], batch_seed);
        placed[i].first_lookup = n_lookups;
        n_lookups += placed[i].batch.n_lookups;
        if (placed[i].batch.n_lookups > most_lookups)
            most_lookups = placed[i].batch.n_lookups;
    }
    if (device_alloc(device, &d_placed, n_bytes, err) ||
        device_upload(device, d_placed, placed, n_bytes, err))
        goto out;
    if (CUDA(launch(
                 rows_kernel,
                 dim3(cuda_n_blocks(cuda, BLOCK_SIZE, most_lookups), n_streams),
                 BLOCK_SIZE, 0, cuda->stream,
                 (const struct placed_stream *)d_placed, d_indices),
             err))
        goto out;
    if (make_offsets(cuda, (const struct placed_stream *)d_placed, n_streams,
                     streams[0].batch, d_offsets, err))
        goto out;
    rc = 0;
out:
    device_free(device, d_placed);
    mem_free(placed);
    return rc;
}

/* First place in sorted[from, n) that does not hold sorted[from]: steps that
 * double, then halving. */
static __device__ uint64_t run_end(const uint32_t *sorted, uint64_t from,
                                   uint64_t n)
{
    uint64_t low = from, step = 1, high;
    uint32_t row = sorted[from];

    while (low + step < n && sorted[low + step] == row) {
        low += step;
        step *= 2;
    }
    high = low + step < n ? low + step : n;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (sorted[middle] == row)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* Counts the runs of sorted[n] by the bin of their length. Whole numbers are
 * added, so the order does not matter. */
static __global__ void __launch_bounds__(BLOCK_SIZE)
    count_runs_kernel(const uint32_t *sorted, uint64_t n, unsigned *n_rows)
{
    __shared__ unsigned own[REUSE_BINS];
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;

    if (threadIdx.x < REUSE_BINS)
        own[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += step)
        if (!i || sorted[i] != sorted[i - 1])
            atomicAdd(&own[stream_reuse_bin(run_end(sorted, i, n) - i)], 1u);
    __syncthreads();
    if (threadIdx.x < REUSE_BINS && own[threadIdx.x])
        atomicAdd(&n_rows[threadIdx.x], own[threadIdx.x]);
}

static unsigned bits_below(uint64_t n)
{
    unsigned bits = 1;

    while (bits < 32 && 1ull << bits < n)
        bits++;
    return bits;
}

struct measuring {
    struct cuda_pairs pairs; /* values are only carried along */
    void *d_temp;
    size_t temp_bytes;
    void *d_counts; /* unsigned [n_streams][REUSE_BINS] */
};

static int measure_open(struct measuring *own, struct device_cuda *cuda,
                        const struct stream *streams, uint32_t n_streams,
                        struct err *err)
{
    size_t n_counts_bytes = n_streams * sizeof(unsigned[REUSE_BINS]);
    struct device *device = &cuda->base;
    uint64_t most_lookups = 0;

    for (uint32_t i = 0; i < n_streams; i++)
        if (stream_n_lookups(&streams[i]) > most_lookups)
            most_lookups = stream_n_lookups(&streams[i]);
    own->pairs.key_bytes = sizeof(uint32_t);
    for (unsigned i = 0; i < 2; i++)
        if (device_alloc(device, &own->pairs.d_keys[i],
                         most_lookups * sizeof(uint32_t), err) ||
            device_alloc(device, (void **)&own->pairs.d_values[i],
                         most_lookups * sizeof(uint32_t), err))
            return -1;
    if (device_alloc(device, &own->d_counts, n_counts_bytes, err) ||
        CUDA(cudaMemsetAsync(own->d_counts, 0, n_counts_bytes, cuda->stream),
             err))
        return -1;
    if (cuda_sort_pairs(cuda, &own->pairs, most_lookups, 32, NULL,
                        &own->temp_bytes, err))
        return -1;
    return device_alloc(device, &own->d_temp, own->temp_bytes, err);
}

static void measure_close(struct measuring *own, struct device *device)
{
    for (unsigned i = 0; i < 2; i++) {
        device_free(device, own->pairs.d_keys[i]);
        device_free(device, own->pairs.d_values[i]);
    }
    device_free(device, own->d_temp);
    device_free(device, own->d_counts);
}

static int count_stream(struct measuring *own, struct device_cuda *cuda,
                        const struct stream *stream, const uint32_t *d_indices,
                        unsigned *d_counts, struct err *err)
{
    uint64_t n = stream_n_lookups(stream);

    if (!n)
        return 0;
    own->pairs.current = 0;
    if (CUDA(cudaMemcpyAsync(own->pairs.d_keys[0], d_indices,
                             n * sizeof(uint32_t), cudaMemcpyDeviceToDevice,
                             cuda->stream),
             err) ||
        cuda_sort_pairs(cuda, &own->pairs, n, bits_below(stream->n_rows),
                        own->d_temp, &own->temp_bytes, err))
        return -1;
    return CUDA(launch(count_runs_kernel, cuda_n_blocks(cuda, BLOCK_SIZE, n),
                       BLOCK_SIZE, 0, cuda->stream,
                       (const uint32_t *)own->pairs.d_keys[own->pairs.current],
                       n, d_counts),
                err);
}

static double shares_of(const unsigned counts[REUSE_BINS],
                        double bins[REUSE_BINS])
{
    uint64_t n_unique = 0;

    for (int k = 0; k < REUSE_BINS; k++)
        n_unique += counts[k];
    for (int k = 0; k < REUSE_BINS; k++)
        bins[k] = n_unique ? (double)counts[k] / (double)n_unique : 0;
    return (double)n_unique;
}

int stream_cuda_measure(struct device *device, const struct stream *streams,
                        uint32_t n_streams, const uint32_t *d_indices,
                        double *n_unique, double (*bins)[REUSE_BINS],
                        struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    unsigned *counts =
        (unsigned *)mem_alloc(n_streams, sizeof(unsigned[REUSE_BINS]));
    struct measuring own = {};
    uint64_t first = 0;
    int rc = -1;

    if (measure_open(&own, cuda, streams, n_streams, err))
        goto out;
    for (uint32_t i = 0; i < n_streams; i++) {
        if (count_stream(&own, cuda, &streams[i], d_indices + first,
                         (unsigned *)own.d_counts + i * REUSE_BINS, err))
            goto out;
        first += stream_n_lookups(&streams[i]);
    }
    if (device_download(device, counts, own.d_counts,
                        n_streams * sizeof(unsigned[REUSE_BINS]), err))
        goto out;
    for (uint32_t i = 0; i < n_streams; i++)
        n_unique[i] = shares_of(counts + i * REUSE_BINS, bins[i]);
    rc = 0;
out:
    measure_close(&own, device);
    mem_free(counts);
    return rc;
}
