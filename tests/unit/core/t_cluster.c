/* SPDX-License-Identifier: MIT */
/* Hosts and NVLink domains of a cluster: their description, check and
 * resizing. */
#include "core/problem.h"

#include "base/mem.h"
#include "core/cluster.h"
#include "tests/tap.h"

static void test_words(void)
{
    static const struct {
        struct cluster cluster;
        const char *want, *group;
        uint32_t n_group;
    } cases[] = {
        {{.n_devices = 1, .devices_per_host = 1}, "1 GPU, 1 host", "host", 1},
        {{.n_devices = 2, .devices_per_host = 2}, "2 GPUs, 1 host", "host", 2},
        {{.n_devices = 4, .devices_per_host = 4, .host_size = 8},
         "4 GPUs, 1 host",
         "host",
         4},
        {{.n_devices = 16, .devices_per_host = 8},
         "16 GPUs, 2 hosts of 8",
         "host",
         8},
        {{.n_devices = 16, .devices_per_host = 8, .host_size = 8},
         "16 GPUs, 2 hosts of 8 (assumed)",
         "host",
         8},
        {{.n_devices = 16, .devices_per_host = 4, .hosts_per_domain = 1},
         "16 GPUs, 4 hosts of 4",
         "host",
         4},
        {{.n_devices = 16, .devices_per_host = 4, .hosts_per_domain = 2},
         "16 GPUs, 4 hosts of 4 in 2 NVLink domains",
         "NVLink domain",
         8},
        {{.n_devices = 16, .devices_per_host = 4, .hosts_per_domain = 4},
         "16 GPUs, 4 hosts of 4 in 1 NVLink domain",
         "NVLink domain",
         16},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct buf out = {0};

        cluster_describe(&cases[i].cluster, &out);
        buf_add(&out, "", 1);
        is_str(out.data, cases[i].want, "in words");
        is_str(cluster_group_name(&cases[i].cluster), cases[i].group,
               "its groups");
        is_i64(cluster_group(&cases[i].cluster), cases[i].n_group,
               "GPUs of a group");
        buf_release(&out);
    }
}

static void test_check(void)
{
    static const struct {
        uint32_t n_devices, per_host, per_domain;
        const char *want;
    } cases[] = {
        {16, 8, 0, ""},
        {16, 8, 1, ""},
        {16, 4, 2, ""},
        {16, 4, 4, ""},
        {12, 8, 0, "12 GPUs do not fill whole hosts of 8 GPUs each"},
        {16, 4, 3, "4 hosts do not fill whole NVLink domains of 3 hosts each"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const struct cluster cluster = {.n_devices = cases[i].n_devices,
                                        .devices_per_host = cases[i].per_host,
                                        .hosts_per_domain =
                                            cases[i].per_domain};
        struct err err = {0};

        is_i64(cluster_check_hosts(&cluster, &err), *cases[i].want ? -1 : 0,
               "whole hosts and domains");
        is_str(err.msg, cases[i].want, "or which are not");
    }
}

/* If the user gave no host size, hosts get the largest size that divides the
 * number of GPUs. */
static void test_assumed(void)
{
    static const struct {
        uint32_t n, size, want;
    } cases[] = {{1, 8, 1},  {4, 8, 4},  {8, 8, 8},   {12, 8, 6},
                 {16, 8, 8}, {13, 8, 1}, {20, 8, 5},  {72, 4, 4},
                 {9, 8, 3},  {14, 8, 7}, {1024, 8, 8}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_i64(cluster_assumed_host(cases[i].n, cases[i].size), cases[i].want,
               "GPUs of an assumed host");
}

static void test_resized(void)
{
    static const struct {
        struct cluster cluster;
        uint32_t n, per_host, per_domain, whole;
    } cases[] = {
        /* a cluster of one host stays a cluster of one host */
        {{.n_devices = 8, .devices_per_host = 8}, 12, 12, 0, 12},
        /* hosts keep their size */
        {{.n_devices = 16, .devices_per_host = 8}, 17, 8, 0, 24},
        {{.n_devices = 16, .devices_per_host = 8}, 4, 4, 0, 4},
        /* domains keep their size */
        {{.n_devices = 16, .devices_per_host = 4, .hosts_per_domain = 2},
         17,
         4,
         2,
         24},
        /* an assumed host size becomes the largest divisor, unless that is one
         * GPU */
        {{.n_devices = 16, .devices_per_host = 8, .host_size = 8},
         17,
         1,
         0,
         18},
        {{.n_devices = 4, .devices_per_host = 4, .host_size = 8}, 5, 5, 0, 5},
        /* the requested host size counts, though the cluster was smaller than a
         * host */
        {{.n_devices = 4, .devices_per_host = 4, .asked_host = 8}, 9, 8, 0, 16},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct cluster cluster = cases[i].cluster;

        is_i64(cluster_whole_hosts(&cluster, cases[i].n), cases[i].whole,
               "the least that makes whole hosts");
        cluster_resize(&cluster, cases[i].n);
        is_i64(cluster.devices_per_host, cases[i].per_host, "GPUs of a host");
        is_i64(cluster.hosts_per_domain, cases[i].per_domain,
               "hosts of a domain");
    }
}

/* Existing GPUs keep their memory. A reserve given as a fraction grows with the
 * cluster. */
static void test_memory(void)
{
    uint64_t memory[] = {100, 200}, reserve[] = {10, 20};
    struct cluster cluster = {.n_devices = 2,
                              .devices_per_host = 2,
                              .memory_bytes = memory,
                              .reserve_bytes = reserve,
                              .reserve = "10%"};
    struct arena arena = {0};

    ok(!cluster_is_even(&cluster), "uneven memory");
    cluster_raise_memory(&cluster, 0, 100);
    ok(memory[0] == 100 && reserve[0] == 10, "memory that is enough stays");
    cluster_raise_memory(&cluster, 0, 200);
    ok(memory[0] == 200 && reserve[0] == 20, "more memory, more reserve");
    ok(cluster_is_even(&cluster), "even memory");
    reserve[1] = 21;
    ok(!cluster_is_even(&cluster), "uneven reserve");
    memory[1] = 300;
    cluster_grow(&cluster, 4, 1, &arena);
    ok(cluster.memory_bytes[0] == 200 && cluster.memory_bytes[1] == 300 &&
           cluster.memory_bytes[3] == 300 && cluster.reserve_bytes[0] == 20 &&
           cluster.reserve_bytes[2] == 21,
       "those that come are like the one that is named");
    arena_release(&arena);
}

int main(void)
{
    test_words();
    test_check();
    test_assumed();
    test_resized();
    test_memory();
    return tap_done();
}
