/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "device/alltoall.h"
#include "device/device.h"
#include "device/fp16.h"

static struct device *open_cpu(unsigned n_threads)
{
    struct device *device = NULL;
    struct err err = {0};

    ok(!device_open(&device, DEVICE_CPU, 0, n_threads, &err),
       "open the CPU, %u threads", n_threads);
    return device;
}

static void test_names(void)
{
    struct device *device = open_cpu(3), *none = NULL;
    struct err err = {0};
    char model[100], want[128];

    snprintf(want, sizeof want, "cpu:%s", cpu_model_name(model, sizeof model));
    is_str(device_name(device), want, "name");
    is_str(device_isa(device), cpu_isa_name(cpu_isa_best()), "isa");
    is_i64(device_kind_of(device), DEVICE_CPU, "kind");
    is_i64(device_n_threads(device), 3, "threads");
    ok(device_free_bytes(device) > 1 << 20, "some memory is free");
    device_close(device);
    device_close(NULL);

    if (device_count_cuda())
        return;
    is_i64(device_open(&none, DEVICE_CUDA, 0, 0, &err), -1, "no GPU to open");
    is_i64(err.code, ERR_DEVICE, "a device error");
    ok(strstr(err.msg, "cannot open GPU 0: ") == err.msg, "says so: %s",
       err.msg);
}

static void test_memory(void)
{
    static const size_t SIZES[] = {0,       1,       4096,    4097,
                                   1 << 20, 2 << 20, 5000000, 33 << 20};
    struct device *device = open_cpu(2);
    struct err err = {0};
    void *ptr = NULL;
    char *in, *out;

    for (size_t i = 0; i < sizeof SIZES / sizeof SIZES[0]; i++) {
        size_t n = SIZES[i];

        in = mem_alloc(n, 1);
        out = mem_alloc(n, 1);
        for (size_t at = 0; at < n; at++)
            in[at] = (char)(at * 31 + at / 4096);
        ok(!device_alloc(device, &ptr, n, &err), "allocate %zu", n);
        ok((uintptr_t)ptr % 512 == 0, "aligned");
        ok(!device_upload(device, ptr, in, n, &err) &&
               !device_download(device, out, ptr, n, &err) &&
               !memcmp(in, out, n),
           "there and back");
        if (i % 2) /* the others are left to device_close */
            device_free(device, ptr);
        mem_free(in);
        mem_free(out);
    }
    device_free(device, NULL);
    is_i64(device_alloc(device, &ptr, (size_t)1 << 60, &err), -1,
           "too much memory");
    is_i64(err.code, ERR_DEVICE, "a device error");
    ok(strstr(err.msg, "cannot allocate ") == err.msg &&
           strstr(err.msg, " are free"),
       "says so: %s", err.msg);
    device_close(device);
}

static void test_fill(void)
{
    enum { N = 600001 };
    struct device *device = open_cpu(2);
    struct err err = {0};
    float *single = mem_alloc(N, sizeof *single);
    uint16_t *half = mem_alloc(N, sizeof *half);
    double sum = 0, squares = 0;
    int same = 1, in_range = 1;

    ok(!device_fill(device, single, N, PRECISION_FP32, 42, &err), "fill fp32");
    ok(!device_fill(device, half, N, PRECISION_FP16, 42, &err), "fill fp16");
    for (uint64_t i = 0; i < N; i++) {
        float value = device_fill_value(42, i);

        same &= single[i] == value && half[i] == fp16_from_float(value);
        in_range &= value > -0.05f && value < 0.05f;
        sum += (double)value;
        squares += (double)(value * value);
    }
    ok(same, "every element is device_fill_value");
    ok(in_range, "within (-0.05, 0.05)");
    is_near(sum / N, 0, 5 * 0.0289 / sqrt(N), "mean of a uniform law");
    is_near(squares / N, 0.01 / 12, 1e-5, "variance of a uniform law");
    ok(device_fill_value(43, 7) != device_fill_value(42, 7), "seeds differ");
    is_i64(device_fill(device, half, N, PRECISION_BF16, 42, &err), -1,
           "bf16 is refused");
    is_str(err.msg, "tables of precision 'bf16' are not executed",
           "the sentence");
    mem_free(single);
    mem_free(half);
    device_close(device);
}

static void test_marks(void)
{
    struct device *device = open_cpu(1);
    struct err err = {0};
    double ms = -1, back = 1, start_ms = clock_ms();

    ok(!device_mark(device, 0, &err), "first mark");
    while (clock_ms() < start_ms + 2)
        ;
    ok(!device_mark(device, DEVICE_N_MARKS - 1, &err), "second mark");
    ok(!device_elapsed(device, 0, DEVICE_N_MARKS - 1, &ms, &err) && ms > 1,
       "time passes");
    ok(!device_elapsed(device, DEVICE_N_MARKS - 1, 0, &back, &err) &&
           back == -ms,
       "and backwards it is negative");
    device_close(device);
}

/* All 65536 values of fp16, and the floats between and beside them. */
static void test_fp16(void)
{
    int back = 1, ordered = 1, ties = 1;

    for (uint32_t i = 0; i < 0x10000; i++) {
        uint16_t half = (uint16_t)i, next = (uint16_t)(i + 1);
        float value = fp16_to_float(half), middle;

        if ((i & 0x7fff) > 0x7c00) {
            back &= isnan(value) && fp16_from_float(value) == (half | 0x200);
            continue;
        }
        back &= fp16_from_float(value) == half;
        if ((i & 0x7fff) >= 0x7bff)
            continue;
        middle = (value + fp16_to_float(next)) / 2; /* exact in float */
        ties &= fp16_from_float(middle) == (half & 1 ? next : half);
        ordered &= fp16_from_float(nextafterf(middle, value)) == half &&
                   fp16_from_float(nextafterf(middle, 2 * middle)) == next;
    }
    ok(back, "every fp16 value survives a float");
    ok(ties, "the middle goes to the even one");
    ok(ordered, "what lies nearer goes to the nearer one");
    is_i64(fp16_from_float(65519.996f), 0x7bff, "the largest fp16");
    is_i64(fp16_from_float(65520), 0x7c00, "infinity from 65520 on");
    is_i64(fp16_from_float(-1e30f), 0xfc00, "minus infinity");
    is_i64(fp16_from_float(-1e-30f), 0x8000, "minus zero");
}

struct exchange {
    uint32_t n_ranks, batch;
    uint32_t dims[8];
};

static float sent_value(uint32_t rank, uint32_t sample, uint32_t column)
{
    return (float)(rank * 1000000 + sample * 1000 + column);
}

static void test_alltoall(const struct exchange *exchange, unsigned n_threads)
{
    struct alltoall alltoall = {exchange->n_ranks, exchange->batch,
                                exchange->dims};
    struct device *device = open_cpu(n_threads);
    float *send[8], *recv[8], *back[8];
    uint64_t n_forward = 0, n_backward = 0, want = 0;
    struct err err = {0};
    int right = 1, returned = 1;

    for (uint32_t r = 0; r < alltoall.n_ranks; r++) {
        size_t n = (size_t)alltoall.batch * exchange->dims[r];

        want += n * sizeof(float);
        send[r] = mem_alloc(n, sizeof(float));
        back[r] = mem_alloc(n, sizeof(float));
        recv[r] = mem_alloc(alltoall_recv_floats(&alltoall, r), sizeof(float));
        for (size_t i = 0; i < n; i++)
            send[r][i] = sent_value(r, (uint32_t)(i / exchange->dims[r]),
                                    (uint32_t)(i % exchange->dims[r]));
    }
    ok(!alltoall_forward(device, &alltoall, (const float *const *)send, recv,
                         &n_forward, &err) &&
           !alltoall_backward(device, &alltoall, (const float *const *)recv,
                              back, &n_backward, &err),
       "%u ranks, batch %u", alltoall.n_ranks, alltoall.batch);
    is_i64((int64_t)n_forward, (int64_t)want, "bytes forward");
    is_i64((int64_t)n_backward, (int64_t)want, "bytes backward");
    is_i64(alltoall_begin(&alltoall, alltoall.n_ranks), alltoall.batch,
           "ranks own all samples");
    for (uint32_t to = 0; to < alltoall.n_ranks; to++) {
        uint32_t begin = alltoall_begin(&alltoall, to);
        uint32_t end = alltoall_begin(&alltoall, to + 1);

        for (uint32_t from = 0; from < alltoall.n_ranks; from++) {
            const float *got = recv[to] + alltoall_block(&alltoall, from, to);

            for (uint32_t s = begin; s < end; s++)
                for (uint32_t c = 0; c < exchange->dims[from]; c++)
                    right &= *got++ == sent_value(from, s, c);
        }
    }
    ok(right, "every rank has all outputs of its samples");
    for (uint32_t r = 0; r < alltoall.n_ranks; r++) {
        returned &=
            !memcmp(send[r], back[r],
                    (size_t)alltoall.batch * exchange->dims[r] * sizeof(float));
        mem_free(send[r]);
        mem_free(back[r]);
        mem_free(recv[r]);
    }
    ok(returned, "backward is the reverse");
    device_close(device);
}

int main(void)
{
    static const struct exchange EXCHANGES[] = {
        {1, 10, {8}},
        {2, 64, {16, 16}},
        {3, 64, {4, 0, 300}},
        {4, 3, {4, 8, 12, 16}},
        {8, 1003, {64, 128, 4, 4, 32, 900, 36, 16}},
    };

    test_names();
    test_memory();
    test_fill();
    test_marks();
    test_fp16();
    for (size_t i = 0; i < sizeof EXCHANGES / sizeof EXCHANGES[0]; i++)
        for (unsigned n_threads = 1; n_threads <= 3; n_threads++)
            test_alltoall(&EXCHANGES[i], n_threads);
    return tap_done();
}
