/* SPDX-License-Identifier: MIT */
#include "base/radix_sort.h"
#include "device/device_cpu.h"

#define PIECE_BYTES ((size_t)1 << 20)
#define PIECE_ROWS ((size_t)1 << 12)
/* Prefetch distance in rows. It is larger than the number of cache-miss buffers
 * of a core. */
#define AHEAD 16
#define DIGITS 256
/* Number of 32-bit words in a cache line. Each word of a line is summed in a
 * lane of its own. */
#define LANES 16

/* Sums that a thread has computed in its latest task. They are stored so that
 * the compiler does not remove the computation. */
struct sums {
    uint32_t lanes[LANES];
};

static void add_words(struct sums *sums, const uint32_t *words, size_t n)
{
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (unsigned lane = 0; lane < LANES; lane++)
            sums->lanes[lane] += words[i + lane];
    for (; i < n; i++)
        sums->lanes[0] += words[i];
}

static void read_piece(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct probe_job *job = ctx;
    struct sums sums = {0};

    add_words(&sums, (const uint32_t *)((const char *)job->d_src + begin),
              (end - begin) / sizeof(uint32_t));
    ((struct sums *)job->d_scratch)[thread] = sums;
}

static void gather_piece(void *ctx, uint64_t begin, uint64_t end,
                         unsigned thread)
{
    const struct probe_job *job = ctx;
    const uint32_t *indices = job->d_indices;
    const char *rows = job->d_src;
    size_t row_bytes = job->probe->row_bytes;
    struct sums sums = {0};

    for (size_t i = begin; i < end; i++) {
        const char *row = rows + indices[i] * row_bytes;

        if (i + AHEAD < end) {
            const char *later = rows + indices[i + AHEAD] * row_bytes;

            for (size_t pos = 0; pos < row_bytes; pos += CACHE_LINE)
                __builtin_prefetch(later + pos);
        }
        add_words(&sums, (const uint32_t *)row, row_bytes / sizeof(uint32_t));
    }
    ((struct sums *)job->d_scratch)[thread] = sums;
}

static void nothing(void *ctx, size_t task, unsigned thread)
{
    (void)ctx;
    (void)task;
    (void)thread;
}

/* Radix sort of pairs, from the least significant digit, 8 bits per pass. Each
 * thread counts and moves one chunk of the pairs. `counts` is indexed by
 * [chunk][digit]. The sort shares only radix_places with radix_sort, for two
 * reasons. radix_sort runs on one thread. The cost databases hold times of this
 * sort, so a change of its speed needs new measurements. */
struct sort_job {
    const struct probe_job *probe;
    unsigned from, shift, mask;
    size_t n_chunks;
    uint32_t (*counts)[DIGITS];
};

static unsigned digit_at(const struct sort_job *job, size_t i)
{
    const void *keys = job->probe->pairs.d_keys[job->from];

    if (job->probe->probe->key_bits > 32)
        return (unsigned)(((const uint64_t *)keys)[i] >> job->shift) &
               job->mask;
    return ((const uint32_t *)keys)[i] >> job->shift & job->mask;
}

static size_t chunk_begin(const struct sort_job *job, size_t chunk)
{
    return (size_t)(job->probe->probe->n * chunk / job->n_chunks);
}

static void count_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct sort_job *job = ctx;
    size_t end = chunk_begin(job, chunk + 1);

    (void)thread;
    memset(job->counts[chunk], 0, sizeof job->counts[chunk]);
    for (size_t i = chunk_begin(job, chunk); i < end; i++)
        job->counts[chunk][digit_at(job, i)]++;
}

static void place_chunk(void *ctx, size_t chunk, unsigned thread)
{
    const struct sort_job *job = ctx;
    size_t end = chunk_begin(job, chunk + 1);
    unsigned from = job->from, to = from ^ 1;
    const struct device_pairs *pairs = &job->probe->pairs;
    void *const *keys = pairs->d_keys;
    const uint32_t *values = pairs->d_values[from];
    uint32_t *placed = pairs->d_values[to];

    (void)thread;
    for (size_t i = chunk_begin(job, chunk); i < end; i++) {
        size_t pos = job->counts[chunk][digit_at(job, i)]++;

        if (job->probe->probe->key_bits > 32)
            ((uint64_t *)keys[to])[pos] = ((const uint64_t *)keys[from])[i];
        else
            ((uint32_t *)keys[to])[pos] = ((const uint32_t *)keys[from])[i];
        placed[pos] = values[i];
    }
}

static void sort_pairs(struct pool *pool, const struct probe_job *probe)
{
    struct sort_job job = {.probe = probe,
                           .n_chunks = pool_size(pool),
                           .counts = probe->d_scratch};

    for (; job.shift < probe->probe->key_bits; job.shift += 8) {
        unsigned n_bits = probe->probe->key_bits - job.shift;

        job.mask = n_bits < 8 ? (1u << n_bits) - 1 : DIGITS - 1;
        pool_run(pool, job.n_chunks, count_chunk, &job);
        radix_places(*job.counts, job.n_chunks, DIGITS, DIGITS);
        pool_run(pool, job.n_chunks, place_chunk, &job);
        job.from ^= 1;
    }
}

int probe_cpu_scratch(struct device *device, struct probe_job *job,
                      struct err *err)
{
    (void)err;
    job->scratch_bytes =
        device->facts.n_threads * (job->probe->kind == PROBE_SORT
                                       ? sizeof(uint32_t[DIGITS])
                                       : sizeof(struct sums));
    return 0;
}

int probe_cpu_run(struct device *device, const struct probe_job *job,
                  struct err *err)
{
    struct pool *pool = device_cpu(device)->pool;
    struct probe_job own = *job;
    const struct device_copy copy = {job->d_dst, job->d_src,
                                     job->probe->n_bytes};

    switch (job->probe->kind) {
    case PROBE_READ:
        pool_run_range(pool, job->probe->n_bytes, PIECE_BYTES, read_piece,
                       &own);
        break;
    case PROBE_COPY:
        return device->ops->copy(device, &copy, 1, err);
    case PROBE_GATHER:
        pool_run_range(pool, job->probe->n, PIECE_ROWS, gather_piece, &own);
        break;
    case PROBE_SORT:
        sort_pairs(pool, job);
        break;
    case PROBE_LAUNCH:
        pool_run(pool, device->facts.n_threads, nothing, &own);
        break;
    }
    return 0;
}
