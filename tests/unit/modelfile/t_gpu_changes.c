/* SPDX-License-Identifier: MIT */
/* Figures of a GPU that its name changes, as in l40s:memory=24GiB. */
#include "costmodel/modelfile/gpu_changes.h"

#include "costmodel/modelfile/gpu_file.h"
#include "tests/tap.h"

#include <string.h>

static struct arena arena;
static struct err err;

static const struct gpu_spec *get(const char *name)
{
    const struct gpu_spec *spec = NULL;

    err = (struct err){0};
    return gpu_spec_get(&spec, name, &arena, &err) ? NULL : spec;
}

static void test_values(void)
{
    const struct gpu_spec *l40s = get("l40s");
    const struct gpu_spec *spec =
        get("L40S:memory=24GiB,dram=1.008TB/s,l2_gbps=2000GB/s,"
            "l2_bytes=4MiB,clock=2520MHz,n_sms=128,row_cycles=9,"
            "bag_row_us=0.3,launch=4us,intra=7,intra_alpha=11us,nic_gbps=2,"
            "gpus_per_host=4,fp32=82.6TFLOPS,host=20GB/s,"
            "host_memory_bytes=1TiB,host_memory_gbps=0.3TB/s,cache_id=4ns");

    ok(l40s && spec, "all keys are read%s", err.msg);
    if (!l40s || !spec)
        return;
    is_i64((int64_t)(spec->memory_bytes >> 30), 24, "memory");
    is_near(spec->dram_gbps, 1008, 1e-9, "DRAM");
    is_near(spec->l2_gbps, 2000, 0, "bandwidth of the L2");
    is_i64((int64_t)spec->l2_bytes, 4 << 20, "size of the L2");
    is_near(spec->clock_ghz, 2.52, 1e-12, "clock");
    is_i64(spec->n_sms, 128, "SMs");
    is_near(spec->row_cycles, 9, 0, "rows");
    is_near(spec->bag_row_us, 0.3, 0, "bags");
    is_near(spec->launch_us, 4, 0, "launches");
    is_near(spec->intra_gbps, 7, 0, "links");
    is_near(spec->intra_alpha_us, 11, 0, "their latency");
    is_near(spec->nic_gbps, 2, 0, "adapter");
    is_i64(spec->gpus_per_host, 4, "hosts");
    is_near(spec->host_gbps, 20, 0, "link to the host");
    is_i64((int64_t)(spec->host_memory_bytes >> 30), 1024, "its memory");
    is_near(spec->host_memory_gbps, 300, 1e-9, "and the bandwidth of it");
    is_near(spec->cache_id_ns, 4, 0, "ids of a cache");
    is_near(spec->tflops[DENSE_TYPE_FP32], 82.6, 0, "rate");
    is_near(spec->tflops[DENSE_TYPE_FP16], l40s->tflops[DENSE_TYPE_FP16], 0,
            "what is not named stays");
    is_str(spec->changed_from, "l40s", "the GPU that was changed");
    ok(!strncmp(spec->name, "l40s:memory=24GiB,dram=", 23),
       "the name has the changes: %s", spec->name);
    ok(!l40s->changed_from && l40s->memory_bytes >> 30 == 44,
       "the GPU itself stays");
}

/* Measured lookups apply as long as no figure of lookups is changed. */
static void test_lookups(void)
{
    static const struct {
        const char *changes;
        bool has_own;
    } cases[] = {
        {"memory=40GiB", false}, {"gpus_per_host=4", false},
        {"intra=100", false},    {"intra_alpha=1", false},
        {"nic=5", false},        {"sheet=5", false},
        {"host=20", false},      {"cache_id=5", false},
        {"fp32=5", false},       {"dram=1700", false},
        {"dram=1500", true},     {"l2_gbps=1000", true},
        {"l2_bytes=1MiB", true}, {"clock=1", true},
        {"n_sms=10", true},      {"row_cycles=1", true},
        {"bag_row=0.9", true},   {"launch=9", true},
        {"nic=5,clock=1", true},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu_spec *spec =
            get(arena_printf(&arena, "a100:%s", cases[i].changes));

        ok(spec != NULL, "%s%s", cases[i].changes, err.msg);
        if (!spec)
            continue;
        ok(spec->has_own_lookups == cases[i].has_own, "own lookups");
        is_near(spec->lookup_error.frac, cases[i].has_own ? 0.64 : 0.24, 0,
                "their error");
        is_str(spec->full_name,
               cases[i].has_own
                   ? arena_printf(&arena, "NVIDIA A100 SXM4 80GB with %s",
                                  cases[i].changes)
                   : "NVIDIA A100 SXM4 80GB",
               "full name");
    }
}

static void test_names(void)
{
    const struct gpu_spec *spec = get("a100-80gb:nic=5");

    is_str(spec ? spec->name : err.msg, "a100:nic=5", "an alias is resolved");
    spec = get("cuda:NVIDIA A100-SXM4-80GB:nic=5");
    is_str(spec ? spec->name : err.msg, "a100:nic=5", "and a device");
    ok(gpu_changes_find("a:b:c=d") &&
           !strcmp(gpu_changes_find("a:b:c=d"), ":c=d"),
       "the colon before the key");
    ok(!gpu_changes_find("cuda:NVIDIA H100") && !gpu_changes_find("a=b"),
       "no changes");
}

#define LIST_WANTED \
    "changes of a GPU are a list such as memory=24GiB,dram=1008, not "

static void test_refused(void)
{
    static const struct {
        const char *name, *want;
    } cases[] = {
        {"l40s:memory", LIST_WANTED "'memory'"},
        {"l40s:Dram=5", "a GPU has no figure 'Dram'; known are memory, "
                        "gpus_per_host, dram, l2_gbps, l2_bytes, clock, n_sms, "
                        "row_cycles, bag_row, launch, intra, intra_alpha, nic, "
                        "host, host_memory_bytes, host_memory_gbps, "
                        "cache_id, sheet, fp32, tf32, fp16, bf16"},
        {"l40s:dram=1,", LIST_WANTED "'dram=1,'"},
        {"l40s:dram=1,,nic=1", LIST_WANTED "'dram=1,,nic=1'"},
        {"l40s:dram=",
         "figure 'dram' of a GPU takes a number from 1 to 100000, not ''"},
        {"l40s:dram=1GHz",
         "figure 'dram' of a GPU takes a number from 1 to 100000, not '1GHz'"},
        {"l40s:dram=0.5",
         "figure 'dram' of a GPU takes a number from 1 to 100000, not '0.5'"},
        {"l40s:n_sms=1.5", "figure 'n_sms' of a GPU takes a whole number from "
                           "1 to 4096, not '1.5'"},
        {"l40s:memory=1MiB", "figure 'memory' of a GPU takes a size from 256 "
                             "MiB to 16.0 TiB, not '1MiB'"},
        {"l40s:l2=1", "a GPU has no figure 'l2'; known are ..."},
        {"l40s:lookup_error_frac=1",
         "a GPU has no figure 'lookup_error_frac'; known are ..."},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *dots = strstr(cases[i].want, "...");

        ok(!get(cases[i].name) && err.code == ERR_USAGE, "refused: %s",
           cases[i].name);
        if (dots)
            ok(!strncmp(err.msg, cases[i].want, (size_t)(dots - cases[i].want)),
               "%s", err.msg);
        else
            is_str(err.msg, cases[i].want, "one sentence");
    }
    ok(!get("h10:dram=5") &&
           !strncmp(err.msg, "no figures for a GPU 'h10'", 26),
       "an unknown GPU: %s", err.msg);
}

static void test_split(void)
{
    static const struct {
        const char *list, *want;
    } cases[] = {
        {"h100", "h100"},
        {"h100,a100", "h100|a100"},
        {"l40s:memory=24GiB,dram=1008,a100",
         "l40s:memory=24GiB,dram=1008|a100"},
        {"h100,l40s:dram=1,nic=2", "h100|l40s:dram=1,nic=2"},
        {"a:b=1,c:d=2", "a:b=1|c:d=2"},
        {"a,,b", "a||b"},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const *names = gpu_changes_split(cases[i].list, &arena);
        struct buf text = {0};

        for (size_t n = 0; names[n]; n++)
            buf_printf(&text, "%s%s", n ? "|" : "", names[n]);
        is_str(text.data ? text.data : "", cases[i].want, cases[i].list);
        buf_release(&text);
    }
}

int main(void)
{
    test_split();
    test_values();
    test_lookups();
    test_names();
    test_refused();
    arena_release(&arena);
    return tap_done();
}
