/* SPDX-License-Identifier: MIT */
#include "core/settings.h"

#include "tests/tap.h"

#include <string.h>

#define GIB (1ull << 30)

static struct arena arena;

static const struct {
    const char *text, *message; /* NULL: the text is accepted */
    struct settings settings;
} cases[] = {
    {"batch=131072", NULL, {.batch = 131072}},
    {"gpus=16", NULL, {.n_devices = 16}},
    {"reserve=20%,batch=1,gpus=65536",
     NULL,
     {.batch = 1, .n_devices = 65536, .reserve = "20%"}},
    {"reserve=4GiB", NULL, {.reserve = "4GiB"}},
    {"reserve=0", NULL, {.reserve = "0"}},
    {"batches=1",
     "no setting 'batches'; the settings are batch=N, gpus=N and "
     "reserve=SIZE|PERCENT",
     {0}},
    {"",
     "no setting ''; the settings are batch=N, gpus=N and "
     "reserve=SIZE|PERCENT",
     {0}},
    {"batch=1,",
     "no setting ''; the settings are batch=N, gpus=N and "
     "reserve=SIZE|PERCENT",
     {0}},
    {"gpus", "'gpus' needs a value, as in 'batch=65536,gpus=8'", {0}},
    {"reserve", "'reserve' needs a value, as in 'reserve=20%'", {0}},
    {"gpus=8,gpus=8", "'gpus' is given twice", {0}},
    {"batch=0",
     "'batch' takes a whole number from 1 to 1000000000000, not '0'",
     {0}},
    {"gpus=65537",
     "'gpus' takes a whole number from 1 to 65536, not '65537'",
     {0}},
    {"reserve=101%",
     "'reserve' takes a size such as 4GiB or a percentage from 0% to 100%, "
     "not '101%'",
     {0}},
};

static void test_texts(void)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct settings *want = &cases[i].settings;
        struct settings got;
        struct err err = {0};
        const int rc = settings_parse(&got, cases[i].text,
                                      strlen(cases[i].text), &arena, &err);

        if (cases[i].message)
            ok(rc && err.code == ERR_USAGE &&
                   !strcmp(err.msg, cases[i].message),
               "'%s': %s", cases[i].text, err.msg);
        else
            ok(!rc && got.batch == want->batch &&
                   got.n_devices == want->n_devices &&
                   !strcmp(got.reserve ? got.reserve : "",
                           want->reserve ? want->reserve : ""),
               "'%s'", cases[i].text);
    }
}

/* Eight GPUs of 80 GiB in one host, 12 GiB of each reserved. */
static struct problem make_problem(void)
{
    struct problem problem = {
        .batch = 65536,
        .cluster = {.n_devices = 8,
                    .devices_per_host = 8,
                    .nccl_bytes = 3 * GIB,
                    .memory_bytes = ARENA_NEW(&arena, uint64_t, 8),
                    .reserve_bytes = ARENA_NEW(&arena, uint64_t, 8)}};

    for (int r = 0; r < 8; r++) {
        problem.cluster.memory_bytes[r] = 80 * GIB;
        problem.cluster.reserve_bytes[r] = 12 * GIB;
    }
    return problem;
}

static void test_reserve(void)
{
    struct problem before = make_problem(), problem = before;
    struct err err = {0};

    ok(!settings_apply(&(struct settings){.reserve = "25%"}, &problem, &arena,
                       &err),
       "a share is accepted");
    is_i64((int64_t)problem.cluster.reserve_bytes[7], 20LL << 30,
           "a new reserve replaces the old one");
    is_i64((int64_t)before.cluster.reserve_bytes[7], 12LL << 30,
           "the problem that was copied keeps its reserve");
    ok(!settings_apply(&(struct settings){.reserve = "0"}, &problem, &arena,
                       &err) &&
           problem.cluster.reserve_bytes[0] == 3 * GIB,
       "NCCL's buffers stay reserved");
    ok(settings_apply(&(struct settings){.reserve = "81GiB"}, &problem, &arena,
                      &err) &&
           err.code == ERR_USAGE,
       "no reserve exceeds the memory: %s", err.msg);
}

static void test_gpus(void)
{
    struct problem problem = make_problem();
    struct err err = {0};

    problem.cluster.host_size = 8;
    problem.device_batch = 8192;
    ok(!settings_apply(&(struct settings){.n_devices = 16}, &problem, &arena,
                       &err),
       "16 GPUs are accepted");
    ok(problem.cluster.devices_per_host == 8 && problem.cluster.n_devices == 16,
       "they are two hosts");
    is_i64((int64_t)problem.cluster.memory_bytes[15], 80LL << 30,
           "new GPUs have the memory of the first");
    is_i64((int64_t)problem.cluster.nccl_bytes,
           (int64_t)cluster_nccl_bytes(&problem.cluster),
           "NCCL's buffers are those of 16 GPUs");
    is_i64((int64_t)problem.batch, 131072, "each GPU keeps its batch");
    ok(!settings_apply(&(struct settings){.batch = 4096}, &problem, &arena,
                       &err) &&
           problem.batch == 4096 && !problem.device_batch,
       "a global batch replaces the batch of a GPU");
    ok(settings_apply(&(struct settings){.n_devices = 13}, &problem, &arena,
                      &err) &&
           !strcmp(err.msg,
                   "13 GPUs do not fill whole hosts of 2 to 8 GPUs each"),
       "%s", err.msg);
    problem = make_problem();
    problem.cluster.asked_host = 8;
    ok(settings_apply(&(struct settings){.n_devices = 12}, &problem, &arena,
                      &err) &&
           err.code == ERR_USAGE,
       "%s", err.msg);
}

int main(void)
{
    test_texts();
    test_reserve();
    test_gpus();
    arena_release(&arena);
    return tap_done();
}
