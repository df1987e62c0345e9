/* SPDX-License-Identifier: MIT */
#include "io/cluster_json.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file_write.h"
#include "base/printable.h"
#include "tests/hostile.h"
#include "tests/tap.h"

#define GIB ((uint64_t)1 << 30)

static struct arena arena;
static struct cluster cluster;
static struct err err;

static int read_text(const char *text)
{
    arena_release(&arena);
    err = (struct err){0};
    cluster = (struct cluster){0};
    return cluster_from_json(&cluster, text, strlen(text), "c.json", &arena,
                             &err);
}

static void test_two_gpus(void)
{
    ok(!read_text("{\"hosts\": [{\"gpus\": 2, \"memory\": [\"80GiB\", "
                  "42949672960], \"used\": [0, \"1.5GiB\"]}]}"),
       "two GPUs that differ");
    is_i64(cluster.n_devices, 2, "their number");
    is_i64(cluster.devices_per_host, 2, "on one host");
    is_i64((int64_t)cluster.memory_bytes[0], (int64_t)(80 * GIB), "a size");
    is_i64((int64_t)cluster.memory_bytes[1], (int64_t)(40 * GIB), "in bytes");
    is_i64((int64_t)cluster.reserve_bytes[0], 0, "nothing used");
    is_i64((int64_t)cluster.reserve_bytes[1], (int64_t)(3 * GIB / 2),
           "used memory is reserved");
    ok(!cluster.gpu && !cluster.reserve, "no kind of GPU, no reserve");
    is_near(cluster.intra_gbps + cluster.inter_gbps, 0, 0, "nor bandwidths");
}

/* Times of a list, of a single number, and of the host before. */
static void test_busy(void)
{
    ok(!read_text("{\"other_kinds\": 2, \"hosts\": [\n"
                  "{\"gpus\": 2, \"count\": 2, \"busy_ms\": "
                  "{\"forward\": [0.5, 0], \"gradient\": 2}},\n"
                  "{\"gpus\": 2}]}"),
       "busy GPUs");
    is_i64(cluster.n_other_kinds, 2, "kinds of sharding");
    is_near(cluster.busy_ms[2][BUSY_FORWARD], 0.5, 0, "of the second host");
    is_near(cluster.busy_ms[3][BUSY_FORWARD], 0, 0, "its second GPU");
    is_near(cluster.busy_ms[3][BUSY_GRADIENT], 2, 0, "one number for all");
    is_near(cluster_busy_ms(&cluster, 2), 2.5, 0, "the sum over phases");
    is_near(cluster_busy_ms(&cluster, 4), 0, 0, "a host without them");
    ok(!cluster_is_even(&cluster), "GPUs that differ in this are not alike");
}

/* Slowdowns of a list, of a single number, and of the host before; and the file
 * that is written. */
static void test_slowdown(void)
{
    char *text;
    json_t *root;

    ok(!read_text("{\"inter_gbps\": 20, \"gpu\": \"h100\", \"hosts\": [\n"
                  "{\"gpus\": 2, \"count\": 2, \"memory\": \"1GiB\", "
                  "\"slowdown\": [1, 1.5]},\n{\"gpus\": 2, \"slowdown\": 2},\n"
                  "{\"gpus\": 2}]}"),
       "slow GPUs");
    is_near(cluster_slowdown(&cluster, 2), 1, 0, "of the second host");
    is_near(cluster_slowdown(&cluster, 3), 1.5, 0, "its second GPU");
    is_near(cluster_slowdown(&cluster, 5), 2, 0, "one number for all");
    is_near(cluster_slowdown(&cluster, 6), 1, 0, "a host without them");
    ok(!cluster_is_even(&cluster), "GPUs that differ in this are not alike");
    cluster.n_devices = 4;
    root = cluster_to_json(&cluster);
    text = json_to_text(root);
    ok(!read_text(text), "a written file is read: %s", err.msg);
    is_i64(cluster.n_devices, 4, "its GPUs");
    is_i64(cluster.devices_per_host, 2, "its hosts");
    is_str(cluster.gpu, "h100", "their kind");
    is_i64((int64_t)cluster.memory_bytes[3], (int64_t)GIB, "their memory");
    is_near(cluster.inter_gbps, 20, 0, "a bandwidth");
    is_near(cluster.intra_gbps, 0, 0, "none");
    is_near(cluster_slowdown(&cluster, 3), 1.5, 0, "a slow GPU");
    free(text);
    json_decref(root);
}

/* Many equal hosts, and a last host in which one GPU differs. */
static void test_many_gpus(void)
{
    bool is_alike = true;

    ok(!read_text("{\"gpu\": \"h100\", \"intra_gbps\": 300, \"inter_gbps\": "
                  "4.5e1,\n"
                  " \"hosts\": [\n"
                  "  {\"count\": 255, \"gpus\": 4, \"used\": \"2GiB\"},\n"
                  "  {\"gpus\": 4, \"memory\": [\"80GiB\", \"80GiB\", "
                  "\"80GiB\", \"40GiB\"], \"used\": null}\n"
                  " ]}"),
       "1,024 GPUs");
    is_i64(cluster.n_devices, 1024, "their number");
    is_i64(cluster.devices_per_host, 4, "of a host");
    for (uint32_t r = 0; r < 1020; r++)
        is_alike &=
            cluster.memory_bytes[r] == 0 && cluster.reserve_bytes[r] == 2 * GIB;
    ok(is_alike, "memory is left to the kind of GPU, 2 GiB of it used");
    is_i64((int64_t)cluster.memory_bytes[1022], (int64_t)(80 * GIB),
           "the last host says its own");
    is_i64((int64_t)cluster.memory_bytes[1023], (int64_t)(40 * GIB),
           "GPU by GPU");
    is_i64((int64_t)cluster.reserve_bytes[1023], 0, "null is absent");
    is_str(cluster.gpu, "h100", "kind of GPU");
    is_near(cluster.intra_gbps, 300, 0, "inside a host");
    is_near(cluster.inter_gbps, 45, 0, "across hosts");
}

static void test_lists_repeat(void)
{
    ok(!read_text("{\"hosts\": [{\"count\": 2, \"gpus\": 2, \"memory\": [3, 5],"
                  " \"used\": [1, 2]}]}"),
       "a list is that of each host of a run");
    is_i64((int64_t)cluster.memory_bytes[2], 3, "third as the first");
    is_i64((int64_t)cluster.memory_bytes[3], 5, "fourth as the second");
    is_i64((int64_t)cluster.reserve_bytes[3], 2, "used, too");
}

static void test_reserve(void)
{
    ok(!read_text("{\"hosts\": [{\"gpus\": 2}], \"reserve\": \"7.5%\"}"),
       "a share is to stay free");
    is_str(cluster.reserve, "7.5%", "of what the memory will be");
    is_i64((int64_t)cluster.reserve_bytes[0], 0, "so it is not yet in bytes");
    ok(!read_text("{\"reserve\": 4096, \"hosts\": [{\"gpus\": 2}]}"),
       "or bytes");
    is_str(cluster.reserve, "4096", "of them so many");
}

static void test_domains(void)
{
    ok(!read_text("{\"pod_size\": 18, \"hosts\": [{\"gpus\": 4, "
                  "\"count\": 36}]}"),
       "two NVL72");
    is_i64(cluster_group(&cluster), 72, "of 72 GPUs each");
    ok(!read_text("{\"pod_size\": null, \"hosts\": [{\"gpus\": 4}]}"),
       "none is said");
    is_i64(cluster_group(&cluster), 4, "so a host is by itself");
}

#define HOST "{\"gpus\": 2}"

static void test_refused(void)
{
    static const struct {
        const char *name, *text, *want;
    } cases[] = {
        {"no JSON", "{\n\"hosts\": [}",
         "c.json:2: not valid JSON: unexpected token near '}'"},
        {"a list", "[" HOST "]",
         "c.json:1: the file must be an object with a member 'hosts', not a "
         "list"},
        {"nothing in it", "{}", "c.json:1: hosts is missing or empty"},
        {"no hosts", "{\"gpu\": \"h100\",\n \"hosts\": []}",
         "c.json:2: hosts is missing or empty"},
        {"hosts of another type", "{\"hosts\": 2}",
         "c.json:1: hosts must be a list, not a number"},
        {"a mistyped member", "{\"hosts\": [" HOST "],\n\n \"gpus\": 2}",
         "c.json:3: gpus is not a known member; known are gpu, pod_size, "
         "reserve, intra_gbps, inter_gbps, hosts, other_kinds"},
        {"a mistyped member of a host",
         "{\"hosts\": [\n" HOST ",\n{\"memroy\": 1, \"gpus\": 2}]}",
         "c.json:3: hosts[1].memroy is not a known member; known are count, "
         "gpus, memory, used, busy_ms, slowdown"},
        {"a GPU that is faster than itself",
         "{\"hosts\": [{\"gpus\": 2, \"slowdown\": [1, 0.5]}]}",
         "c.json:1: hosts[0].slowdown[1] is 0.5, not in 1 to 1000"},
        {"busy phases that are none",
         "{\"hosts\": [" HOST ",\n{\"gpus\": 2, \"busy_ms\": {\"lookup\": "
         "1}}]}",
         "c.json:2: hosts[1].busy_ms.lookup is not a known member; known are "
         "input, cache, forward, output, gradient, backward"},
        {"too few times",
         "{\"hosts\": [{\"gpus\": 2, \"busy_ms\": {\"forward\": [1]}}]}",
         "c.json:1: hosts[0].busy_ms.forward has 1 entries, but the host has 2 "
         "gpus"},
        {"a time below 0",
         "{\"hosts\": [{\"gpus\": 2, \"busy_ms\": {\"forward\": [1, -1]}}]}",
         "c.json:1: hosts[0].busy_ms.forward[1] is -1, not in 0 to 1000000000"},
        {"no time",
         "{\"hosts\": [{\"gpus\": 2, \"busy_ms\": {\"forward\": \"1\"}}]}",
         "c.json:1: hosts[0].busy_ms.forward must be a number, not a string"},
        {"a host that is none", "{\"hosts\": [" HOST ",\n8]}",
         "c.json:2: hosts[1] must be an object, not a number"},
        {"a host without GPUs", "{\"hosts\": [{\"count\": 8}]}",
         "c.json:1: hosts[0].gpus is missing"},
        {"no GPUs", "{\"hosts\": [{\"gpus\": 0}]}",
         "c.json:1: hosts[0].gpus is 0, outside 1 to 65536"},
        {"no such host", "{\"hosts\": [{\"gpus\": 1, \"count\": 0}]}",
         "c.json:1: hosts[0].count is 0, outside 1 to 65536"},
        {"hosts that differ in number",
         "{\"hosts\": [" HOST ",\n {\"gpus\": 3}]}",
         "c.json:2: hosts[1].gpus is 3, but was 2 before: all hosts must have "
         "the same number of GPUs"},
        {"too many",
         "{\"hosts\": [{\"gpus\": 2, \"count\": 32768},\n" HOST "]}",
         "c.json:2: hosts[1].gpus: the hosts up to here have more than 65536 "
         "GPUs"},
        {"too many of one kind",
         "{\"hosts\": [{\"gpus\": 65536, \"count\": 65536}]}",
         "c.json:1: hosts[0].gpus: the hosts up to here have more than 65536 "
         "GPUs"},
        {"no size", "{\"hosts\": [{\"gpus\": 2, \"memory\": \"lots\"}]}",
         "c.json:1: hosts[0].memory is 'lots', not a size such as 80GiB"},
        {"neither size nor bytes", "{\"hosts\": [{\"gpus\": 2, \"used\": -1}]}",
         "c.json:1: hosts[0].used must be a size such as \"80GiB\" or a whole "
         "number of bytes"},
        {"an entry that is no size",
         "{\"hosts\": [\n{\"gpus\": 2, \"memory\": [\"80GiB\", {}]}]}",
         "c.json:2: hosts[0].memory[1] must be a size such as \"80GiB\" or a "
         "whole number of bytes"},
        {"a list too short", "{\"hosts\": [{\"gpus\": 2, \"used\": [1]}]}",
         "c.json:1: hosts[0].used has 1 entries, but the host has 2 gpus"},
        {"no memory", "{\"hosts\": [{\"gpus\": 2, \"memory\": [1, 0]}]}",
         "c.json:1: hosts[0].memory is 0 for GPU 1"},
        {"more used than there is",
         "{\"hosts\": [{\"gpus\": 2, \"memory\": \"4GiB\", \"used\": "
         "[0, \"5GiB\"]}]}",
         "c.json:1: hosts[0].used is 5.00 GiB for GPU 1, which has 4.00 GiB"},
        {"half a domain",
         "{\n\"pod_size\": 2,\n \"hosts\": [{\"gpus\": 4, \"count\": 3}]}",
         "c.json:2: 3 hosts do not fill whole NVLink domains of 2 hosts each"},
        {"a domain of nothing", "{\"pod_size\": 0, \"hosts\": [" HOST "]}",
         "c.json:1: pod_size is 0, outside 1 to 65536"},
        {"a reserve that is none",
         "{\"reserve\": \"some\",\n \"hosts\": [" HOST "]}",
         "c.json:1: reserve is 'some', neither a size such as 4GiB nor a "
         "percentage from 0% to 100%"},
        {"more reserved than there is",
         "{\"hosts\": [" HOST "],\n \"reserve\": \"101%\"}",
         "c.json:2: reserve is '101%', neither a size such as 4GiB nor a "
         "percentage from 0% to 100%"},
        {"a reserve of another type",
         "{\"hosts\": [" HOST "], \"reserve\": [1]}",
         "c.json:1: reserve must be a size such as \"80GiB\" or a whole number "
         "of bytes"},
        {"no bandwidth", "{\"hosts\": [" HOST "],\n \"inter_gbps\": 0}",
         "c.json:2: inter_gbps is 0, not in 0.001 to 1000000"},
        {"a bandwidth in words",
         "{\"hosts\": [" HOST "], \"intra_gbps\": \"fast\"}",
         "c.json:1: intra_gbps must be a number, not a string"},
        {"a kind in numbers", "{\"gpu\": 100, \"hosts\": [" HOST "]}",
         "c.json:1: gpu must be a string, not a number"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(read_text(cases[i].text) && err.code == ERR_INPUT, "refused: %s",
           cases[i].name);
        is_str(err.msg, cases[i].want, cases[i].name);
    }
}

static void test_file(void)
{
    ok(cluster_load(&cluster, "/nonexistent.json", &arena, &err) &&
           err.code == ERR_IO,
       "a file that is not there");
}

/* A message about a file begins with the file's path. */
static void test_load(void)
{
    static const char text[] = "{\"hosts\": [{\"count\": 2, \"gpus\": 3}]}";
    char path[] = "/tmp/t_cluster_json.XXXXXX";
    int fd = mkstemp(path);

    if (!ok(fd >= 0 && !close(fd), "a temporary file"))
        return;
    ok(!file_write(path, text, sizeof(text) - 1, &err) &&
           !cluster_load(&cluster, path, &arena, &err) &&
           cluster.n_devices == 6,
       "six GPUs of a file");
    ok(!file_write(path, text, sizeof(text) - 3, &err) &&
           cluster_load(&cluster, path, &arena, &err) &&
           err.code == ERR_INPUT && !strncmp(err.msg, path, strlen(path)),
       "a part of it: %s", err.msg);
    unlink(path);
}

static void test_hostile_texts(void)
{
    static const char json[] =
        "{\"gpu\": \"h100\", \"intra_gbps\": 100, \"inter_gbps\": 10, "
        "\"hosts\": [{\"count\": 1, \"gpus\": 1, \"memory\": \"80GiB\", "
        "\"used\": \"1GiB\"}]}";
    struct arena texts = {0};
    const char *text;
    size_t n_texts, n_bad = 0;

    for (n_texts = 0; (text = hostile_json(json, n_texts, &texts)); n_texts++)
        n_bad += !read_text(text) || !text_is_printable(err.msg);
    ok(n_texts == 11 && !n_bad, "%zu hostile texts", n_texts);
    arena_release(&texts);
}

int main(void)
{
    test_two_gpus();
    test_busy();
    test_slowdown();
    test_many_gpus();
    test_lists_repeat();
    test_reserve();
    test_domains();
    test_refused();
    test_file();
    test_load();
    test_hostile_texts();
    arena_release(&arena);
    return tap_done();
}
