/* SPDX-License-Identifier: MIT */
#include "device/device_cpu.h"

#include "base/mem.h"

/* Number of lookups that one task draws. */
#define PIECE_LOOKUPS ((uint32_t)1 << 16)

struct drawn_stream {
    struct stream_batch batch;
    uint32_t n_bags;
    uint64_t offset; /* position of the stream's first lookup in the batch */
    uint64_t *offsets;
    uint32_t *indices;
};

struct draw_job {
    const struct drawn_stream *streams;
    /* Number of tasks for the stream with the most lookups, including one task
     * for the offsets. */
    size_t n_pieces;
};

static void draw_piece(void *ctx, size_t task, unsigned thread)
{
    const struct draw_job *job = ctx;
    const struct drawn_stream *stream = &job->streams[task / job->n_pieces];
    uint64_t piece = task % job->n_pieces, begin;

    (void)thread;
    if (piece == 0) {
        stream_offsets(&stream->batch, stream->n_bags, stream->offset,
                       stream->offsets);
        return;
    }
    begin = (piece - 1) * PIECE_LOOKUPS;
    if (begin < stream->batch.n_lookups)
        cpu_kernels_best()->stream_rows(
            &stream->batch, (uint32_t)begin,
            (uint32_t)min_u64(stream->batch.n_lookups - begin, PIECE_LOOKUPS),
            stream->indices + begin);
}

int stream_cpu_draw(struct device *device, const struct stream *streams,
                    uint32_t n_streams, uint64_t batch_seed, uint32_t *indices,
                    uint64_t *offsets, struct err *err)
{
    struct drawn_stream *drawn = mem_alloc(n_streams, sizeof *drawn);
    struct draw_job job = {drawn, 1};
    uint64_t offset = 0;
    size_t bag = 0;

    (void)err;
    for (uint32_t i = 0; i < n_streams; i++) {
        struct drawn_stream *stream = &drawn[i];

        stream_batch_init(&stream->batch, &streams[i], batch_seed);
        stream->n_bags = streams[i].batch;
        stream->offset = offset;
        stream->offsets = offsets + bag;
        stream->indices = indices + offset;
        offset += stream->batch.n_lookups;
        bag += stream->n_bags;
        job.n_pieces =
            max_u64(job.n_pieces, 2 + stream->batch.n_lookups / PIECE_LOOKUPS);
    }
    offsets[bag] = offset;
    pool_run(device_cpu(device)->pool, n_streams * job.n_pieces, draw_piece,
             &job);
    mem_free(drawn);
    return 0;
}

struct measure_job {
    const struct stream *streams;
    const uint32_t *indices;
    struct sample_table *tables;
};

static void measure_stream(void *ctx, size_t task, unsigned thread)
{
    const struct measure_job *job = ctx;
    const struct stream *stream = &job->streams[task];
    const uint32_t *indices = job->indices;

    (void)thread;
    for (size_t i = 0; i < task; i++)
        indices += stream_n_lookups(&job->streams[i]);
    job->tables[task].n_unique =
        stream_histogram(indices, stream_n_lookups(stream), stream->n_rows,
                         job->tables[task].bins);
}

int stream_cpu_measure(struct device *device, const struct stream *streams,
                       uint32_t n_streams, const uint32_t *indices,
                       struct sample_table *tables, struct err *err)
{
    struct measure_job job = {streams, indices, tables};

    (void)err;
    pool_run(device_cpu(device)->pool, n_streams, measure_stream, &job);
    return 0;
}
