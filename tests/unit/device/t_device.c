/* SPDX-License-Identifier: MIT */
#include "tests/unit/device/devices.h"

#include "base/cpu.h"
#include "base/text.h"
#include "device/device_ops.h"
#include "device/fp16.h"
#include "device/stream_math.h"

#include <sys/utsname.h>

static void test_cpu_names(void)
{
    struct device *device = test_device_open(&TEST_DEVICES[2]);
    struct sample_setting setting =
        device_setting(&device->facts, PRECISION_FP16, OPTIMIZER_SGD, 7);
    char model[100], want[128];
    struct utsname system;

    ok(!uname(&system), "uname");
    is_str(setting.host, system.nodename, "host");
    ok(strstr(setting.driver, system.sysname) == setting.driver &&
           strstr(setting.driver, system.release),
       "its driver is the system: %s", setting.driver);
    is_str(setting.cuda, "", "no CUDA");
    is_str(setting.device, device->facts.name, "the device of a setting");
    is_i64(setting.n_threads, 3, "its threads");
    ok(setting.precision == PRECISION_FP16 &&
           setting.optimizer == OPTIMIZER_SGD && setting.batch == 7,
       "and device to measure on there");
    snprintf(want, sizeof want, "cpu:%s", cpu_model_name(model, sizeof model));
    is_str(device->facts.name, want, "name");
    is_str(device->facts.isa, cpu_isa_name(cpu_isa_best()), "isa");
    is_i64(device->kind, DEVICE_CPU, "kind");
    ok(device_is_host(device), "its memory is the host's");
    ok(strstr(DEVICE_KIND_NAMES, "cpu|cuda") == DEVICE_KIND_NAMES,
       "the kinds there are: %s", DEVICE_KIND_NAMES);
    is_i64(text_which(DEVICE_KIND_NAMES, "cuda"), DEVICE_CUDA, "by name");
    is_i64(device_count(DEVICE_CPU), 1, "one CPU");
    is_i64(device->facts.n_threads, 3, "threads");
    ok(device_free_bytes(device) > 1 << 20, "some memory is free");
    device_close(device);
    device_close(NULL);
}

static void refuse_gpu(unsigned ordinal, const char *why)
{
    struct device *device = NULL;
    struct err err = {0};
    char want[200];

    snprintf(want, sizeof want, "cannot open GPU %u: %s", ordinal, why);
    is_i64(device_open(&device, DEVICE_CUDA, ordinal, 0, &err), -1,
           "no such GPU");
    is_i64(err.code, ERR_DEVICE, "a device error");
    if (*why)
        is_str(err.msg, want, "the sentence");
    else
        ok(strstr(err.msg, want) == err.msg, "says so: %s", err.msg);
}

static void test_gpu_names(void)
{
    struct device *device;
    uint64_t n_free;
    void *d_ptr;

    if (!device_count(DEVICE_CUDA)) {
        refuse_gpu(0, "");
        return;
    }
    device = test_device_open(&TEST_DEVICES[3]);
    if (!device)
        return;
    ok(strstr(device->facts.name, "cuda:") == device->facts.name, "name: %s",
       device->facts.name);
    ok(strchr(device->facts.cuda, '.') != NULL, "CUDA %s", device->facts.cuda);
    ok(strstr(device->facts.isa, "sm_") == device->facts.isa, "isa: %s",
       device->facts.isa);
    is_i64(device->kind, DEVICE_CUDA, "kind");
    is_i64(device->facts.n_threads, 0, "no threads of ours");
    n_free = device_free_bytes(device);
    d_ptr = test_device_alloc(device, 64 << 20);
    ok(device_free_bytes(device) + (60 << 20) < n_free, "memory is counted");
    if (strcmp(device->facts.name, "cuda:Emulated GPU") == 0) {
        setenv("EMULATOR_DEVICES", "1", 1);
        refuse_gpu(1, "this machine has only 1");
        setenv("EMULATOR_DEVICES", "0", 1);
        is_i64(device_count(DEVICE_CUDA), 0, "a driver without a GPU");
        refuse_gpu(0, "no CUDA-capable device is detected");
        unsetenv("EMULATOR_DEVICES");
        setenv("EMULATOR_DRIVER", "12040", 1);
        is_i64(device_count(DEVICE_CUDA), 0, "an old driver");
        refuse_gpu(
            0,
            "its driver supports CUDA up to 12.4, but this program needs 13.0: "
            "install a newer driver, or build with an older CUDA toolkit");
        setenv("EMULATOR_DRIVER", "0", 1);
        refuse_gpu(0, "this machine has no working NVIDIA driver");
        unsetenv("EMULATOR_DRIVER");
        setenv("EMULATOR_MEMORY", "0x6000000", 1);
        is_i64(device_alloc(device, &d_ptr, 64 << 20, &(struct err){0}), -1,
               "memory is full");
        unsetenv("EMULATOR_MEMORY");
    }
    device_close(device);
}

static void test_memory(struct device *device)
{
    static const size_t SIZES[] = {0,       1,       4096,    4097,
                                   1 << 20, 2 << 20, 5000000, 33 << 20};
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
        if (i % 2) /* device_close must release the others */
            device_free(device, ptr);
        mem_free(in);
        mem_free(out);
    }
    device_free(device, NULL);
    is_i64(device_alloc(device, &ptr, (size_t)1 << 60, &err), -1,
           "too much memory");
    is_i64(err.code, ERR_DEVICE, "a device error");
    ok(strstr(err.msg, "cannot allocate ") == err.msg &&
           strstr(err.msg, device->facts.name) && strstr(err.msg, " are free"),
       "says so: %s", err.msg);
}

/* Copies more blocks than one launch takes, of all alignments, with an empty
 * one. */
static void test_copy(struct device *device)
{
    enum { N = 300, STRIDE = 6000 };
    struct device_copy copies[N];
    struct err err = {0};
    uint8_t *in = mem_alloc(N, STRIDE), *out;
    uint8_t *d_src = test_device_alloc(device, N * STRIDE);
    uint8_t *d_dst = test_device_alloc(device, N * STRIDE);
    int right = 1;

    for (size_t i = 0; i < N * STRIDE; i++)
        in[i] = (uint8_t)(1 + i % 251);
    ok(!device_upload(device, d_src, in, N * STRIDE, &err), "upload");
    memset(in, 0, N * STRIDE);
    ok(!device_upload(device, d_dst, in, N * STRIDE, &err), "clear");
    for (size_t i = 0; i < N; i++)
        copies[i] = (struct device_copy){
            d_dst + i * STRIDE + i % 3 * 4, d_src + i * STRIDE + i % 7 * 4,
            i % 5 * 1024 + i % 17 * (i % 2 ? 1 : 4)};
    ok(!device->ops->copy(device, copies, N, &err), "%d copies", N);
    out = test_device_copy(device, d_dst, N * STRIDE);
    for (size_t i = 0; i < N; i++) {
        size_t src = i * STRIDE + i % 7 * 4, dst = i * STRIDE + i % 3 * 4;

        for (size_t at = 0; at < copies[i].n_bytes; at++)
            right &= out[dst + at] == 1 + (src + at) % 251;
        right &= !out[dst + copies[i].n_bytes];
    }
    ok(right, "each byte at its place, and none behind");
    device_free(device, d_src);
    device_free(device, d_dst);
    mem_free(in);
    mem_free(out);
}

static void test_fill(struct device *device)
{
    enum { N = 600001 };
    struct err err = {0};
    void *d_single = test_device_alloc(device, N * sizeof(float));
    void *d_half = test_device_alloc(device, N * sizeof(uint16_t));
    float *single;
    uint16_t *half;
    double sum = 0, squares = 0;
    int same = 1, in_range = 1;

    ok(!device_fill(device, d_single, N, PRECISION_FP32, 42, &err),
       "fill fp32");
    ok(!device_fill(device, d_half, N, PRECISION_FP16, 42, &err), "fill fp16");
    single = test_device_copy(device, d_single, N * sizeof *single);
    half = test_device_copy(device, d_half, N * sizeof *half);
    for (uint64_t i = 0; i < N; i++) {
        float value = stream_fill_value(42, i);

        same &= single[i] == value && half[i] == fp16_from_float(value);
        in_range &= value > -0.05f && value < 0.05f;
        sum += (double)value;
        squares += (double)(value * value);
    }
    ok(same, "every element is stream_fill_value");
    ok(in_range, "within (-0.05, 0.05)");
    is_near(sum / N, 0, 5 * 0.0289 / sqrt(N), "mean of a uniform law");
    is_near(squares / N, 0.01 / 12, 1e-5, "variance of a uniform law");
    ok(stream_fill_value(43, 7) != stream_fill_value(42, 7), "seeds differ");
    mem_free(single);
    mem_free(half);
    device_free(device, d_single);
    device_free(device, d_half);
}

/* Fills windows of all shapes; in one, a row is split between two tasks. */
static void test_window(struct device *device)
{
    static const struct fill_window WINDOWS[] = {
        {7, 0, 1, 1, 1, PRECISION_FP32},
        {7, 1000, 64, 100, 64, PRECISION_FP32},
        {8, 17, 100, 999, 12, PRECISION_FP32},
        {8, 17, 101, 999, 33, PRECISION_FP16},
        {9, UINT64_C(1) << 33, 5, 70001, 4, PRECISION_FP16},
        {9, 3, 1000000, 3, 300001, PRECISION_FP32},
        {9, 3, 10, 0, 4, PRECISION_FP32},
    };
    struct err err = {0};

    for (size_t w = 0; w < sizeof WINDOWS / sizeof WINDOWS[0]; w++) {
        const struct fill_window *window = &WINDOWS[w];
        size_t n = window->n_rows * window->width;
        size_t n_bytes = n * precision_bytes(window->precision);
        void *d_dst = test_device_alloc(device, n_bytes), *out;
        int right = 1;

        ok(!device_fill_window(device, d_dst, window, &err), "window %zu", w);
        out = test_device_copy(device, d_dst, n_bytes);
        for (size_t i = 0; i < n; i++) {
            float want = stream_fill_value(
                window->seed, window->first +
                                  i / window->width * window->stride +
                                  i % window->width);

            right &= window->precision == PRECISION_FP32
                         ? ((float *)out)[i] == want
                         : ((uint16_t *)out)[i] == fp16_from_float(want);
        }
        ok(right, "%zu rows of %u", (size_t)window->n_rows, window->width);
        mem_free(out);
        device_free(device, d_dst);
    }
}

static void test_sums(struct device *device)
{
    enum { N = 300007 };
    struct err err = {0};
    float *d_sum = test_device_alloc(device, N * sizeof(float));
    float *d_part = test_device_alloc(device, N * sizeof(float));
    float *out;
    int right = 1;

    ok(!device_set(device, d_sum, N, 0.25f, &err) &&
           !device_fill(device, d_part, N, PRECISION_FP32, 5, &err) &&
           !device_add(device, d_sum, d_part, N, &err) &&
           !device_add(device, d_sum, d_part, N - 1, &err) &&
           !device_set(device, d_sum, 0, 9, &err) &&
           !device_add(device, d_sum, d_part, 0, &err),
       "set and add");
    out = test_device_copy(device, d_sum, N * sizeof(float));
    for (uint64_t i = 0; i < N; i++) {
        float value = stream_fill_value(5, i), want = 0.25f + value;

        want += i < N - 1 ? value : 0;
        right &= out[i] == want;
    }
    ok(right, "every sum");
    mem_free(out);
    device_free(device, d_sum);
    device_free(device, d_part);
}

static void test_marks(struct device *device)
{
    enum { N = 1 << 20 };
    struct err err = {0};
    float *d_data = test_device_alloc(device, N * sizeof(float));
    double ms = -1, back = 1;

    ok(!device_mark(device, 0, &err), "first mark");
    ok(!device_set(device, d_data, N, 1, &err), "work");
    ok(!device_mark(device, DEVICE_N_MARKS - 1, &err), "second mark");
    ok(!device_elapsed(device, 0, DEVICE_N_MARKS - 1, &ms, &err) && ms > 0,
       "time passes");
    ok(!device_elapsed(device, DEVICE_N_MARKS - 1, 0, &back, &err) &&
           back == -ms,
       "and backwards it is negative");
    device_free(device, d_data);
}

/* Work that is queued behind a hold, and the calls that release it. */
static void test_hold(struct device *device)
{
    enum { N = 1000 };
    struct err err = {0};
    float *d_data = test_device_alloc(device, N * sizeof(float)), *out;
    float *d_one = test_device_alloc(device, N * sizeof(float));
    double ms = -1;

    ok(!device_set(device, d_data, N, 0, &err) &&
           !device_set(device, d_one, N, 1, &err),
       "nothing and ones");
    for (int round = 0; round < 3; round++)
        ok(!device_hold(device, &err) && !device_flush(device, &err) &&
               !device_mark(device, 0, &err) &&
               !device_add(device, d_data, d_one, N, &err) &&
               !device_mark(device, 1, &err) && !device_release(device, &err) &&
               !device_elapsed(device, 0, 1, &ms, &err) && ms >= 0,
           "a timed section %s", err.msg);
    out = test_device_copy(device, d_data, N * sizeof(float));
    ok(out[0] == 3 && out[N - 1] == 3, "its work is done");
    mem_free(out);
    /* calls that wait release a hold that the caller forgot to release */
    ok(!device_hold(device, &err) && !device_hold(device, &err) &&
           !device_add(device, d_data, d_one, N, &err) &&
           !device_mark(device, 1, &err) &&
           !device_elapsed(device, 0, 1, &ms, &err),
       "elapsed releases");
    ok(!device_hold(device, &err) &&
           !device_add(device, d_data, d_one, N, &err),
       "held again");
    out = test_device_copy(device, d_data, N * sizeof(float));
    ok(out[0] == 5, "a download releases");
    ok(!device_release(device, &err), "nothing to release");
    ok(!device_mark(device, 0, &err) && !device_delay(device, &err) &&
           !device_mark(device, 1, &err) &&
           !device_elapsed(device, 0, 1, &ms, &err) &&
           (device_is_host(device) || ms > 0.1),
       "a delay ends by itself");
    ok(!device_hold(device, &err) && !device_wait(device, &err),
       "waiting releases");
    ok(!device_hold(device, &err), "so does freeing, and closing");
    device_free(device, d_data);
    device_free(device, d_one);
    ok(!device_hold(device, &err), "left to device_close");
    mem_free(out);
}

static void test_health(void)
{
    struct device device = {0};
    struct sample_health cool = {1400, 2600, 40, 300, 0}, other = cool;
    struct device *cpu = test_device_open(&TEST_DEVICES[0]);

    device_health(cpu, &other);
    ok(!memcmp(&other, &(struct sample_health){0}, sizeof other),
       "a CPU says nothing");
    ok(!device_was_throttled(cpu, &other, &other), "and is not throttled");
    device_close(cpu);

    ok(!device_was_throttled(&device, &cool, &cool), "all is well");
    for (int bit = 0; bit < 10; bit++) {
        int slowed = bit == 3 || (bit >= 5 && bit <= 7);

        other = cool;
        other.throttle_reasons = 1u << bit;
        ok(device_was_throttled(&device, &cool, &other) == slowed &&
               device_was_throttled(&device, &other, &cool) == slowed,
           "throttle reason %d", bit);
    }
    other = cool;
    other.sm_mhz = 2000;
    ok(!device_was_throttled(&device, &cool, &other), "it woke up");
    ok(device_was_throttled(&device, &other, &cool), "and fell asleep");
    other.sm_mhz = 1499;
    ok(device_was_throttled(&device, &cool, &other), "a low clock");
    cool.sm_mhz = 1900;
    ok(!device_was_throttled(&device, &other, &cool), "before it woke up");
    other.sm_mhz = 1501;
    ok(!device_was_throttled(&device, &cool, &other), "three quarters");
}

/* All 65536 values of fp16, and the floats midway between two and next to
 * those. */
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
        middle = (value + fp16_to_float(next)) / 2; /* representable in float */
        ties &= fp16_from_float(middle) == (half & 1 ? next : half);
        ordered &= fp16_from_float(nextafterf(middle, value)) == half &&
                   fp16_from_float(nextafterf(middle, 2 * middle)) == next;
    }
    ok(back, "every fp16 value survives a float");
    ok(ties, "the middle goes to the even one");
    ok(ordered, "other values round to the nearest one");
    is_i64(fp16_from_float(65519.996f), 0x7bff, "the largest fp16");
    is_i64(fp16_from_float(65520), 0x7c00, "infinity from 65520 on");
    is_i64(fp16_from_float(-1e30f), 0xfc00, "minus infinity");
    is_i64(fp16_from_float(-1e-30f), 0x8000, "minus zero");
}

int main(void)
{
    test_cpu_names();
    test_gpu_names();
    for (size_t i = 0; i < N_TEST_DEVICES; i++) {
        struct device *device = test_device_open(&TEST_DEVICES[i]);

        if (!device)
            continue;
        test_memory(device);
        test_copy(device);
        test_fill(device);
        test_window(device);
        test_sums(device);
        test_marks(device);
        test_hold(device);
        device_close(device);
    }
    test_health();
    test_fp16();
    return tap_done();
}
