/* SPDX-License-Identifier: MIT */
#include "base/mem.h"
#include "device/cuda_private.cuh"
#include "device/stream_math.h"

/* A stream and the place of its lookups in the batch. */
struct placed_stream {
    struct stream_batch batch;
    uint64_t first_lookup;
};

/* Draws stream y in row y of the grid, with one thread per lookup. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    rows_kernel(const struct placed_stream *streams, uint32_t *indices)
{
    const struct placed_stream *stream = &streams[blockIdx.y];

    for (uint64_t i = grid_first(); i < stream->batch.n_lookups;
         i += grid_step())
        indices[stream->first_lookup + i] =
            stream_row(&stream->batch, (uint32_t)i);
}

/* Stores the sizes of all bags, and a 0 after the last one. The running sums of
 * these sizes are the offsets of the bags. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    sizes_kernel(const struct placed_stream *streams, uint32_t n_bags,
                 uint64_t n_all, uint64_t *sizes)
{

    for (uint64_t i = grid_first(); i <= n_all; i += grid_step())
        sizes[i] = i == n_all ? 0
                              : stream_bag_size(&streams[i / n_bags].batch,
                                                (uint32_t)(i % n_bags));
}

/* Draws a batch. The workspace (temporary device memory) holds the placed
 * streams, then the scratch of the running sum. */
int stream_cuda_draw(struct device *device, const struct stream *streams,
                     uint32_t n_streams, uint64_t batch_seed,
                     uint32_t *d_indices, uint64_t *d_offsets, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    const uint32_t n_bags = streams[0].batch;
    const uint64_t n_all = (uint64_t)n_streams * n_bags;
    const size_t placed_bytes = n_streams * sizeof(struct placed_stream);
    struct placed_stream *placed, *d_placed;
    struct device_parts parts = {};
    uint64_t n_lookups = 0, most_lookups = 0;
    size_t temp_bytes = 0;
    int rc = -1;

    placed = (struct placed_stream *)mem_alloc(n_streams, sizeof *placed);
    for (uint32_t i = 0; i < n_streams; i++) {
        stream_batch_init(&placed[i].batch, &streams[i], batch_seed);
        placed[i].first_lookup = n_lookups;
        n_lookups += placed[i].batch.n_lookups;
        most_lookups = max_u64(most_lookups, placed[i].batch.n_lookups);
    }
    device_part(&parts, placed_bytes);
    if (cuda_exclusive_sum(cuda, NULL, n_all + 1, NULL, &temp_bytes, err) ||
        device_reserve(device, &cuda->workspace, parts.n_bytes + temp_bytes,
                       err) ||
        device_upload(device, cuda->workspace.d_ptr, placed, placed_bytes, err))
        goto out;
    d_placed = (struct placed_stream *)cuda->workspace.d_ptr;
    if (CUDA(launch(rows_kernel,
                    dim3(cuda_n_blocks(cuda, most_lookups), n_streams),
                    CUDA_BLOCK, 0, cuda->stream, d_placed, d_indices),
             err) ||
        CUDA(launch_over(cuda, n_all + 1, sizes_kernel, d_placed, n_bags, n_all,
                         d_offsets),
             err) ||
        cuda_exclusive_sum(cuda, d_offsets, n_all + 1,
                           (char *)d_placed + parts.n_bytes, &temp_bytes, err))
        goto out;
    rc = 0;
out:
    mem_free(placed);
    return rc;
}

/* Returns the end of the run of equal values in sorted[n] that begins at
 * sorted[from]. Searches first by steps that double, then by halving. */
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

/* Counts the runs of equal values in sorted[n], by the reuse bin of their
 * length. The counts are added with atomics; they are integers, so the order of
 * additions does not matter. */
static __global__ void __launch_bounds__(CUDA_BLOCK)
    count_runs_kernel(const uint32_t *sorted, uint64_t n, unsigned *n_rows)
{
    __shared__ unsigned own[REUSE_BINS];

    if (threadIdx.x < REUSE_BINS)
        own[threadIdx.x] = 0;
    __syncthreads();
    for (uint64_t i = grid_first(); i < n; i += grid_step())
        if (!i || sorted[i] != sorted[i - 1])
            atomicAdd(&own[stream_reuse_bin(run_end(sorted, i, n) - i)], 1u);
    __syncthreads();
    if (threadIdx.x < REUSE_BINS && own[threadIdx.x])
        atomicAdd(&n_rows[threadIdx.x], own[threadIdx.x]);
}

struct measuring {
    struct device_pairs pairs; /* keys: the indices; the values are not used */
    unsigned *d_counts;        /* [n_streams][REUSE_BINS] */
};

/* Assigns places in the workspace to the pairs and the counts. Returns the size
 * that the workspace must have. */
static size_t lay_out(struct measuring *own, void *d_work, size_t n_lookups,
                      size_t counts_bytes)
{
    struct device_parts parts = {(char *)d_work, 0};

    device_part_pairs(&own->pairs, &parts, n_lookups);
    own->d_counts = (unsigned *)device_part(&parts, counts_bytes);
    return parts.n_bytes;
}

static int measure_open(struct measuring *own, struct device_cuda *cuda,
                        const struct stream *streams, uint32_t n_streams,
                        struct err *err)
{
    const size_t counts_bytes = n_streams * sizeof(unsigned[REUSE_BINS]);
    uint64_t most_lookups = 0;

    for (uint32_t i = 0; i < n_streams; i++)
        most_lookups = max_u64(most_lookups, stream_n_lookups(&streams[i]));
    own->pairs.key_bytes = sizeof(uint32_t);
    if (cuda_sort_pairs(cuda, &own->pairs, most_lookups, 32, err) ||
        device_reserve(&cuda->base, &cuda->workspace,
                       lay_out(own, NULL, most_lookups, counts_bytes), err))
        return -1;
    lay_out(own, cuda->workspace.d_ptr, most_lookups, counts_bytes);
    return CUDA(cudaMemsetAsync(own->d_counts, 0, counts_bytes, cuda->stream),
                err);
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
        cuda_sort_pairs(cuda, &own->pairs, n, cuda_key_bits(stream->n_rows),
                        err))
        return -1;
    return CUDA(
        launch_over(cuda, n, count_runs_kernel,
                    (const uint32_t *)own->pairs.d_keys[own->pairs.current], n,
                    d_counts),
        err);
}

int stream_cuda_measure(struct device *device, const struct stream *streams,
                        uint32_t n_streams, const uint32_t *d_indices,
                        struct sample_table *tables, struct err *err)
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
                         own.d_counts + i * REUSE_BINS, err))
            goto out;
        first += stream_n_lookups(&streams[i]);
    }
    if (device_download(device, counts, own.d_counts,
                        n_streams * sizeof(unsigned[REUSE_BINS]), err))
        goto out;
    for (uint32_t i = 0; i < n_streams; i++)
        tables[i].n_unique =
            stream_shares(counts + i * REUSE_BINS, tables[i].bins);
    rc = 0;
out:
    mem_free(counts);
    return rc;
}
