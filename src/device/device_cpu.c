/* SPDX-License-Identifier: MIT */
#include "device/device_cpu.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/text.h"
#include "device/fp16.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)4096)
/* Bytes that one task touches, fills or copies. */
#define PIECE_BYTES ((size_t)1 << 20)

static void cpu_close(struct device *device)
{
    struct device_cpu *cpu = device_cpu(device);

    pool_close(cpu->pool);
    mem_free(cpu);
}

/* Reads a number from a file of lines "key number". Returns the number after
 * `key`, or the first number of the file if `key` is empty. Returns `otherwise`
 * if the file or the number does not exist. */
static uint64_t read_number(const char *path, const char *key,
                            uint64_t otherwise)
{
    FILE *fp = fopen(path, "re");
    uint64_t value = otherwise;
    char line[256];

    while (fp && fgets(line, sizeof line, fp)) {
        unsigned long long number;
        const char *text = line + strlen(key);
        char *end;

        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        number = strtoull(text, &end, 10);
        if (end != text)
            value = number;
        break;
    }
    if (fp)
        fclose(fp);
    return value;
}

/* Returns the bytes of memory that are available on the machine, but at most as
 * many as the process's control group still allows. */
static uint64_t cpu_free_bytes(const struct device *device)
{
    uint64_t machine = read_number("/proc/meminfo", "MemAvailable:", 0) << 10;
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "", UINT64_MAX);
    uint64_t used = read_number("/sys/fs/cgroup/memory.stat", "anon ", 0);

    (void)device;
    if (limit == UINT64_MAX)
        return machine;
    return min_u64(limit > used ? limit - used : 0, machine);
}

static void touch_piece(void *ctx, uint64_t begin, uint64_t end,
                        unsigned thread)
{
    (void)thread;
    for (uint64_t pos = begin; pos < end; pos += SMALL_PAGE)
        *((volatile char *)ctx + pos) = 0;
}

/* Maps whole pages of memory. If n_bytes are at least one huge page, the memory
 * starts at the boundary of a huge page. */
static void *map_pages(size_t n_bytes)
{
    size_t slack = n_bytes >= HUGE_PAGE ? HUGE_PAGE : 0, before;
    char *ptr = mmap(NULL, n_bytes + slack, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (ptr == MAP_FAILED || !slack)
        return ptr;
    before = (HUGE_PAGE - (uintptr_t)ptr % HUGE_PAGE) % HUGE_PAGE;
    if (before)
        munmap(ptr, before);
    if (slack - before)
        munmap(ptr + before + n_bytes, slack - before);
    madvise(ptr + before, n_bytes, MADV_HUGEPAGE);
    return ptr + before;
}

static size_t whole_pages(size_t n_bytes)
{
    return n_bytes ? (n_bytes + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE
                   : SMALL_PAGE;
}

static int cpu_alloc(struct device *device, void **d_ptr, size_t n_bytes,
                     struct err *err)
{
    if (n_bytes > cpu_free_bytes(device))
        return device_is_full(device, n_bytes, err);
    *d_ptr = map_pages(whole_pages(n_bytes));
    if (*d_ptr == MAP_FAILED)
        return err_set(err, ERR_DEVICE, "cannot allocate %s on '%s': %s",
                       TEXT_BYTES(n_bytes), device->facts.name,
                       strerror(errno));
    pool_run_range(device_cpu(device)->pool, whole_pages(n_bytes), HUGE_PAGE,
                   touch_piece, *d_ptr);
    return 0;
}

static void cpu_free(struct device *device, void *d_ptr, size_t n_bytes)
{
    (void)device;
    munmap(d_ptr, whole_pages(n_bytes));
}

struct copy_job {
    const struct device_copy *copies;
    /* Number of pieces of the longest copy. Shorter copies have fewer pieces;
     * tasks beyond their end do nothing. */
    size_t n_pieces;
};

static void copy_piece(void *ctx, size_t task, unsigned thread)
{
    const struct copy_job *job = ctx;
    const struct device_copy *copy = &job->copies[task / job->n_pieces];
    size_t begin = task % job->n_pieces * PIECE_BYTES;

    (void)thread;
    if (begin < copy->n_bytes)
        memcpy((char *)copy->d_dst + begin, (const char *)copy->d_src + begin,
               min_u64(copy->n_bytes - begin, PIECE_BYTES));
}

static int cpu_copy(struct device *device, const struct device_copy *copies,
                    size_t n_copies, struct err *err)
{
    struct copy_job job = {copies, 0};

    (void)err;
    for (size_t i = 0; i < n_copies; i++)
        job.n_pieces = max_u64(
            job.n_pieces, (copies[i].n_bytes + PIECE_BYTES - 1) / PIECE_BYTES);
    pool_run(device_cpu(device)->pool, n_copies * job.n_pieces, copy_piece,
             &job);
    return 0;
}

static int cpu_transfer(struct device *device, void *dst, const void *src,
                        size_t n_bytes, struct err *err)
{
    struct device_copy copy = {dst, src, n_bytes};

    return cpu_copy(device, &copy, 1, err);
}

struct fill_job {
    void *dst;
    const struct fill_window *window;
};

#define FILL_ELEMENTS (PIECE_BYTES / sizeof(float))

/* Fills elements [at, at + n) of the matrix. They get the values that
 * device_fill gives to the indices from `first` on. */
static void fill_run(const struct fill_job *job, uint64_t pos, uint64_t first,
                     uint64_t n)
{
    uint64_t seed = job->window->seed;

    if (job->window->precision == PRECISION_FP32) {
        float *singles = (float *)job->dst + pos;

        for (uint64_t i = 0; i < n; i++)
            singles[i] = stream_fill_value(seed, first + i);
    } else {
        uint16_t *halves = (uint16_t *)job->dst + pos;

        for (uint64_t i = 0; i < n; i++)
            halves[i] = fp16_from_float(stream_fill_value(seed, first + i));
    }
}

static void fill_piece(void *ctx, uint64_t pos, uint64_t end, unsigned thread)
{
    const struct fill_job *job = ctx;
    const struct fill_window *window = job->window;

    (void)thread;
    while (pos < end) {
        uint64_t row = pos / window->width, column = pos % window->width;
        uint64_t n_run = end - pos;

        /* If stride and width are equal, all rows together form one long
         * row. */
        if (window->stride != window->width)
            n_run = min_u64(window->width - column, n_run);
        fill_run(job, pos, window->first + row * window->stride + column,
                 n_run);
        pos += n_run;
    }
}

static int cpu_fill(struct device *device, void *d_dst,
                    const struct fill_window *window, struct err *err)
{
    struct fill_job job = {d_dst, window};

    (void)err;
    pool_run_range(device_cpu(device)->pool, window->n_rows * window->width,
                   FILL_ELEMENTS, fill_piece, &job);
    return 0;
}

struct add_job {
    float *sum;
    const float *part;
};

static void add_piece(void *ctx, uint64_t begin, uint64_t end, unsigned thread)
{
    const struct add_job *job = ctx;

    (void)thread;
    for (uint64_t i = begin; i < end; i++)
        job->sum[i] += job->part[i];
}

static int cpu_add(struct device *device, float *d_sum, const float *d_part,
                   uint64_t n, struct err *err)
{
    struct add_job job = {d_sum, d_part};

    (void)err;
    pool_run_range(device_cpu(device)->pool, n, FILL_ELEMENTS, add_piece, &job);
    return 0;
}

static int cpu_mark(struct device *device, unsigned slot, struct err *err)
{
    (void)err;
    device_cpu(device)->marks_ms[slot] = clock_ms();
    return 0;
}

static int cpu_elapsed(struct device *device, unsigned from, unsigned to,
                       double *ms, struct err *err)
{
    const struct device_cpu *cpu = device_cpu(device);

    (void)err;
    *ms = cpu->marks_ms[to] - cpu->marks_ms[from];
    return 0;
}

/* Functions of the CPU body. There is no `wait`, because a CPU's work is done
 * when a function returns. There is no `flush`, because benchmarks rotate
 * between several index sets, which displace each other from the CPU's
 * caches. */
static const struct device_ops CPU_OPS = {
    .close = cpu_close,
    .free_bytes = cpu_free_bytes,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .transfer = cpu_transfer,
    .copy = cpu_copy,
    .fill = cpu_fill,
    .add = cpu_add,
    .elementwise = elementwise_cpu_run,
    .probe_scratch = probe_cpu_scratch,
    .probe = probe_cpu_run,
    .draw = stream_cpu_draw,
    .measure = stream_cpu_measure,
    .mark = cpu_mark,
    .elapsed = cpu_elapsed,
    .lookup_open = lookup_cpu_open,
    .lookup_close = lookup_cpu_close,
    .lookup_forward = lookup_cpu_forward,
    .lookup_backward = lookup_cpu_backward,
    .lookup_apply_dense = lookup_cpu_apply_dense,
};

unsigned device_count_cpu(void)
{
    return 1;
}

int device_open_cpu(struct device **out, unsigned ordinal, unsigned n_threads,
                    struct err *err)
{
    struct device_cpu *cpu = mem_alloc(1, sizeof *cpu);
    char model[100];

    (void)ordinal, (void)err;
    cpu->pool = pool_open(n_threads);
    cpu->kernels = cpu_kernels_best();
    cpu->base.ops = &CPU_OPS;
    cpu->base.kind = DEVICE_CPU;
    cpu->base.facts.n_threads = pool_size(cpu->pool);
    snprintf(cpu->base.facts.name, sizeof cpu->base.facts.name, "cpu:%s",
             cpu_model_name(model, sizeof model));
    snprintf(cpu->base.facts.isa, sizeof cpu->base.facts.isa, "%s",
             cpu_isa_name(cpu_isa_best()));
    *out = &cpu->base;
    return 0;
}
