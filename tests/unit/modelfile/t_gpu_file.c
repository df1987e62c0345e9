/* SPDX-License-Identifier: MIT */
#include "costmodel/modelfile/gpu_file.h"

#include "base/file.h"
#include "base/hash.h"
#include "tests/tap.h"

#include <stdlib.h>

static struct arena arena;
static struct err err;

static const struct gpu_spec *get(const char *name)
{
    const struct gpu_spec *spec = NULL;

    err = (struct err){0};
    return gpu_spec_get(&spec, name, &arena, &err) ? NULL : spec;
}

/* Shipped GPUs of the first release: memory as drivers report it, in MiB, and
 * the hash of the figures that prices depend on. Plans store this hash. */
static void test_first(void)
{
    static const struct {
        const char *name, *hash;
        uint64_t memory_mib;
        uint32_t gpus_per_host;
    } cases[] = {
        {"h100", "8d944ec3876e92a9", 81559, 8},
        {"h200", "625b9a9f76484da8", 143771, 8},
        {"b200", "1c21dc47aa87503e", 183359, 8},
        {"a100", "b7a27d08d492829e", 81251, 8},
        {"v100-32gb", "b62005e0ea25f1e7", 32510, 8},
        {"cpu", "fb01ead02d07b6d2", 16384, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu_spec *spec = get(cases[i].name);
        char hash[HASH_TEXT_MAX];

        if (!spec) {
            ok(0, "%s", err.msg);
            continue;
        }
        is_str(spec->name, cases[i].name, "found by its name");
        is_i64((int64_t)spec->memory_bytes,
               (int64_t)(cases[i].memory_mib << 20), "memory");
        is_i64(spec->gpus_per_host, cases[i].gpus_per_host, "on a host");
        is_str(hash_text(hash, gpu_spec_hash(spec)), cases[i].hash,
               cases[i].name);
    }
}

/* Returns 80 for "NVIDIA H100 SXM5 80GB", or 0 if the name does not end in
 * GB. */
static double gb_of_name(const char *full_name)
{
    const char *word = strrchr(full_name, ' ');
    char *end;
    double gb;

    if (!word)
        return 0;
    gb = strtod(word, &end);
    return strcmp(end, "GB") ? 0 : gb;
}

/* Checks, for each shipped GPU file, relations that a mistaken unit would
 * break. */
static void test_all(void)
{
    const char *const *names = gpu_names(&arena);
    size_t n = 0;

    for (; *names; names++, n++) {
        const struct gpu_spec *spec = get(*names);

        ok(spec != NULL, "%s is read%s", *names, err.msg);
        if (!spec)
            continue;
        ok(spec->tflops[DENSE_TYPE_FP32] > 0, "its rate of fp32");
        if (spec->comm_form == COMM_TOTAL)
            continue;
        ok(spec->tflops[DENSE_TYPE_FP32] >= 5 &&
               spec->tflops[DENSE_TYPE_FP32] <= 200 &&
               spec->tflops[DENSE_TYPE_FP16] >=
                   1.9 * spec->tflops[DENSE_TYPE_FP32] &&
               spec->tflops[DENSE_TYPE_FP16] <= 3000,
           "fp16 is faster than fp32");
        ok((spec->tflops[DENSE_TYPE_BF16] == 0 ||
            spec->tflops[DENSE_TYPE_BF16] == spec->tflops[DENSE_TYPE_FP16]) &&
               (spec->tflops[DENSE_TYPE_TF32] == 0 ||
                fabs(spec->tflops[DENSE_TYPE_FP16] /
                         spec->tflops[DENSE_TYPE_TF32] -
                     2) < 0.06),
           "bf16 is as fast as fp16, and tf32 half as fast");
        ok((double)spec->memory_bytes <=
                   gb_of_name(spec->full_name) * (1 << 30) &&
               (double)spec->memory_bytes >=
                   0.95e9 * gb_of_name(spec->full_name),
           "%s: no more memory than is on the box, and not much less: %.1f GiB",
           spec->full_name, (double)spec->memory_bytes / (1 << 30));
        ok(spec->dram_gbps >= 200 && spec->l2_gbps > spec->dram_gbps,
           "its L2 is faster than its memory");
        ok(spec->l2_bytes >= 4 << 20 && spec->l2_bytes < spec->memory_bytes / 8,
           "and smaller");
        ok(spec->clock_ghz >= 1 && spec->clock_ghz <= 3 && spec->n_sms >= 40 &&
               spec->n_sms <= 320,
           "clock and SMs: %.2f GHz, %u", spec->clock_ghz, spec->n_sms);
        ok(spec->row_cycles >= 2 && spec->row_cycles <= 40 &&
               spec->bag_row_us >= 0.1 && spec->bag_row_us <= 1 &&
               spec->launch_us >= 1 && spec->launch_us <= 10,
           "rows and launches");
        ok(spec->intra_gbps < spec->dram_gbps &&
               spec->intra_gbps >= spec->nic_gbps && spec->nic_gbps >= 1,
           "memory, links of a host and adapters: %.0f, %.0f, %.2f GB/s",
           spec->dram_gbps, spec->intra_gbps, spec->nic_gbps);
        ok(spec->host_gbps >= 12 && spec->host_gbps <= 200 &&
               spec->host_memory_gbps >= 2 * spec->host_gbps &&
               spec->host_memory_gbps <= 1000,
           "its host's link and memory: %.1f and %.0f GB/s", spec->host_gbps,
           spec->host_memory_gbps);
        ok(spec->host_memory_bytes >=
                   spec->memory_bytes * 11 / 10 * spec->gpus_per_host &&
               spec->host_memory_bytes <= 1ull << 42,
           "a host has more memory than its GPUs: %.0f GiB",
           (double)spec->host_memory_bytes / (1 << 30));
        is_near(spec->cache_id_ns * spec->dram_gbps, 2.9 * 2900, 430,
                "an id of a cache by the memory's bandwidth");
        ok(spec->intra_alpha_us >= 1 && spec->intra_alpha_us <= 100 &&
               spec->gpus_per_host >= 1 && spec->gpus_per_host <= 16,
           "latency and hosts");
    }
    ok(n >= 20, "%zu files", n);
}

static void test_names(void)
{
    static const struct {
        const char *name, *want; /* want: NULL to expect the message */
    } cases[] = {
        {"H100", "h100"},         {"V100-32GB", "v100-32gb"},
        {"MI300X", "mi300x"},     {"2080 Ti", "2080-ti"},
        {"RTX 4090", "rtx-4090"}, {"NVIDIA H100 PCIe", "h100-pcie"},
        {"2080_Ti", "2080-ti"},   {"2080ti", "2080-ti"},
        {"rtx4090", "rtx-4090"},  {"4090", "rtx-4090"},
        {"h100-sxm", "h100"},     {"H100-SXM5", "h100"},
        {"a100-80gb", "a100"},    {"a6000", "rtx-a6000"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu_spec *spec = get(cases[i].name);

        is_str(spec ? spec->name : err.msg, cases[i].want, cases[i].name);
    }
    ok(!get("h10") && err.code == ERR_USAGE &&
           strstr(err.msg, "no figures for a GPU 'h10'; did you mean h100 or "
                           "h100-pcie? known are 2080-ti, "),
       "a near miss: %s", err.msg);
    ok(!get("rtx4080") &&
           strstr(err.msg,
                  "; did you mean rtx-4090, rtx-3090 or rtx-a6000? known"),
       "the nearest three: %s", err.msg);
    ok(!get("a5000") && strstr(err.msg, "; known are "),
       "a common beginning of one character is none: %s", err.msg);
    ok(!get("frob") && err.code == ERR_USAGE &&
           !strncmp(err.msg, "no figures for a GPU 'frob'; known are ", 39) &&
           strstr(err.msg, ", h100, "),
       "none near: %s", err.msg);
    ok(!get("./nope.json") && err.code == ERR_IO, "a path: %s", err.msg);
    ok(!get("nope.json") && err.code == ERR_IO, "by its suffix: %s", err.msg);
}

/* Lower-case letters and digits of a name. */
static const char *letters_of(const char *name)
{
    char *text = arena_strdup(&arena, name);
    size_t n = 0;

    for (const char *c = name; *c; c++)
        if (*c != '-')
            text[n++] = *c;
    text[n] = '\0';
    return text;
}

/* No name or alias belongs to two GPUs. */
static void test_unique(void)
{
    const char *const *gpus = gpu_names(&arena);
    const char *names[256];
    size_t n = 0, n_equal = 0;

    for (; *gpus; gpus++) {
        const struct gpu_spec *spec = get(*gpus);

        names[n++] = letters_of(*gpus);
        for (size_t a = 0; spec && spec->aliases[a] && n < 255; a++)
            names[n++] = letters_of(spec->aliases[a]);
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            n_equal += !strcmp(names[i], names[j]);
    ok(n >= 40 && n < 255, "%zu names", n);
    is_i64((int64_t)n_equal, 0, "all differ");
}

static void test_devices(void)
{
    static const struct {
        const char *device, *want;
    } cases[] = {
        {"cuda:NVIDIA H100 80GB HBM3", "h100"},
        {"cuda:NVIDIA H100 PCIe", "h100-pcie"},
        {"cuda:NVIDIA H20", "h20"},
        {"cuda:NVIDIA H200", "h200"},
        {"cuda:NVIDIA B200", "b200"},
        {"cuda:NVIDIA A100-SXM4-80GB", "a100"},
        {"cuda:NVIDIA A100-SXM4-40GB", "a100-40gb"},
        {"cuda:Tesla V100-SXM2-32GB", "v100-32gb"},
        {"cuda:Tesla V100-SXM2-16GB", NULL},
        {"cuda:Tesla T4", "t4"},
        {"cuda:NVIDIA GeForce RTX 2080 Ti", "2080-ti"},
        {"cuda:NVIDIA GeForce RTX 2080", NULL},
        {"cuda:NVIDIA GB200", "gb200"},
        {"cuda:NVIDIA L40", NULL},
        {"cuda:NVIDIA L40S", "l40s"},
        {"cuda:NVIDIA L4", "l4"},
        {"cuda:NVIDIA A10", "a10"},
        {"cuda:NVIDIA A10G", NULL},
        {"cuda:NVIDIA RTX A6000", "rtx-a6000"},
        {"cuda:NVIDIA RTX 6000 Ada Generation", NULL},
        {"cuda:NVIDIA GeForce RTX 3090", "rtx-3090"},
        {"cuda:NVIDIA GeForce RTX 4090", "rtx-4090"},
        {"hip:AMD Instinct MI355X", "mi355x"},
        {"cpu:AMD EPYC 9575F", "cpu"},
        {"cpu:like an H100", "cpu"},
        {"cuda:Emulated GPU", NULL},
        {"cuda:NVIDIA XH100", NULL},
        {"cuda:NVIDIA H100X", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu_spec *spec = NULL;

        ok(!gpu_spec_of_device(&spec, cases[i].device, &arena, &err), "%s",
           cases[i].device);
        is_str(spec ? spec->name : "none",
               cases[i].want ? cases[i].want : "none", "is of");
        if (!*cases[i].device)
            continue;
        spec = get(cases[i].device);
        is_str(spec ? spec->name : "none",
               cases[i].want ? cases[i].want : "none", "and an option takes");
        err = (struct err){0};
    }
}

/* Returns a complete file in which one text is replaced within a member's line.
 * Each member has a line of its own, and the name is on the first. */
static const char *changed(const char *from, const char *to)
{
    static const char *const members[] = {
        "memory_bytes", "gpus_per_host", "dram_gbps",  "l2_gbps",
        "l2_bytes",     "clock_ghz",     "n_sms",      "row_cycles",
        "bag_row_us",   "launch_us",     "intra_gbps", "intra_alpha_us",
        "nic_gbps"};
    static const char *const values[] = {
        "85520809984", "8",   "2900", "6900", "52428800", "1.755", "132",
        "5.5",         "0.2", "3",    "320",  "10.6",     "50"};
    char *text = arena_printf(&arena, "{\"name\": \"A\",\n\"exchange\": "
                                      "\"port\"");
    const char *at;

    for (size_t m = 0; m < sizeof members / sizeof *members; m++)
        text = arena_printf(&arena,
                            "%s,\n\"%s\": {\"value\": %s, \"basis\": "
                            "\"measured\", \"source\": \"b\", \"date\": "
                            "\"2024\"}",
                            text, members[m], values[m]);
    text = arena_printf(&arena, "%s\n}\n", text);
    at = strstr(text, from);
    return at ? arena_printf(&arena, "%.*s%s%s", (int)(at - text), text, to,
                             at + strlen(from))
              : "";
}

static int read_text(struct gpu_spec *spec, const char *text)
{
    err = (struct err){0};
    return gpu_spec_from_json(spec, text, strlen(text), "g.json", &arena, &err);
}

static void test_read(void)
{
    struct gpu_spec spec;

    ok(!read_text(&spec, changed("", "")), "a whole file%s", err.msg);
    is_str(spec.name, "g.json", "called as its file");
    is_str(spec.full_name, "A", "and in full");
    is_i64((int64_t)spec.memory_bytes, 85520809984, "memory");
    is_i64(spec.n_sms, 132, "SMs");
    is_near(spec.nic_gbps, 50, 0, "adapter");
    is_near(spec.host_gbps, 0, 0, "a link to the host that is unknown");
    is_i64(spec.comm_form, COMM_PORT, "links");
    ok(!spec.aliases[0], "no alias");
    ok(!read_text(&spec, changed("\"A\"", "\"A\", \"aliases\": [\"b\", "
                                          "\"c-1\"]")),
       "aliases%s", err.msg);
    is_str(spec.aliases[1], "c-1", "are kept");
    ok(!spec.aliases[2], "and end");
    ok(!read_text(&spec, changed("\"port\"", "\"total\"")) &&
           spec.comm_form == COMM_TOTAL,
       "or one memory");
}

static void test_refused(void)
{
    static const struct {
        const char *from, *to, *want;
    } cases[] = {
        {"\"A\",", "\"A\"",
         "g.json:2: not valid JSON: '}' expected near "
         "'\"exchange\"'"},
        {"\"A\"", "\"A\", \"aliases\": \"a\"",
         "g.json:1: aliases must be a list, not a string"},
        {"\"A\"", "\"A\", \"aliases\": [\"a\", 1]",
         "g.json:1: aliases[1] must be a name of small letters, digits and "
         "'-'"},
        {"\"A\"", "\"A\", \"aliases\": [\"A1\"]",
         "g.json:1: aliases[0] must be a name of small letters, digits and "
         "'-'"},
        {"\"A\"", "\"A\", \"aliases\": [\"a-\"]",
         "g.json:1: aliases[0] must be a name of small letters, digits and "
         "'-'"},
        {"\"A\"", "1", "g.json:1: name must be a string, not a number"},
        {"port", "bus", "g.json:2: exchange must be one of port, total"},
        {"l2_gbps", "l2_gbs",
         "g.json:6: l2_gbs is not a known member; known are name, exchange, "
         "memory_bytes, gpus_per_host, dram_gbps, l2_gbps, l2_bytes, "
         "clock_ghz, n_sms, row_cycles, bag_row_us, launch_us, intra_gbps, "
         "intra_alpha_us, nic_gbps, host_gbps, host_memory_bytes, "
         "host_memory_gbps, cache_id_ns, sheet_gbps, fp32_tflops, "
         "tf32_tflops, fp16_tflops, bf16_tflops, lookup_error_frac, "
         "class_error_frac, aliases"},
        {",\n\"n_sms\": {\"value\": 132, \"basis\": \"measured\", "
         "\"source\": \"b\", \"date\": \"2024\"}",
         "", "g.json:1: n_sms is missing"},
        {"{\"value\": 2900, \"basis\": \"measured\", \"source\": \"b\", "
         "\"date\": \"2024\"}",
         "2900", "g.json:5: dram_gbps must be an object, not a number"},
        {"85520809984", "80",
         "g.json:3: memory_bytes.value is 80, outside 268435456 to "
         "17592186044416"},
        {"85520809984", "\"80GiB\"",
         "g.json:3: memory_bytes.value must be a whole number, not a string"},
        {"52428800", "50",
         "g.json:7: l2_bytes.value is 50, outside 65536 to "
         "8589934592"},
        {"1.755", "1755",
         "g.json:8: clock_ghz.value is 1755, not in 0.1 to "
         "10"},
        {"6900", "-1", "g.json:6: l2_gbps.value is -1, not in 1 to 1000000"},
        {"132", "1.5", "g.json:9: n_sms.value is 1.5, not a whole number >= 0"},
        {"5.5", "null",
         "g.json:10: row_cycles.value must be a number, not "
         "null"},
        {"\"value\": 2900, ", "", "g.json:5: dram_gbps.value is missing"},
        {"\"value\": 2900", "\"valeu\": 2900",
         "g.json:5: dram_gbps.valeu is not a known member; known are value, "
         "basis, source, date"},
        {"measured", "guessed",
         "g.json:3: memory_bytes.basis must be one of measured, fitted, "
         "data sheet, estimated"},
        {"\"basis\": \"measured\", ", "",
         "g.json:3: memory_bytes.basis is missing"},
        {"\"source\": \"b\", ", "", "g.json:3: memory_bytes.source is missing"},
        {"\"b\"", "\"\"", "g.json:3: memory_bytes.source is empty"},
        {"\"source\": \"b\", \"date\": \"2024\"", "\"source\": \"b\"",
         "g.json:3: memory_bytes.date is missing"},
        {"\"2024\"", "\"May 2024\"",
         "g.json:3: memory_bytes.date is 'May 2024', not a day, a month or a "
         "year such as 2024-09-24"},
        {"\"2024\"", "\"2024-9-24\"",
         "g.json:3: memory_bytes.date is '2024-9-24', not a day, a month or a "
         "year such as 2024-09-24"},
    };
    struct gpu_spec spec;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = changed(cases[i].from, cases[i].to);

        ok(*text && read_text(&spec, text) && err.code == ERR_INPUT,
           "refused: %s", cases[i].to);
        is_str(err.msg, cases[i].want, "one sentence");
    }
    ok(read_text(&spec, "[]"), "a list");
    is_str(err.msg, "g.json: the file must be an object, not a list",
           "is none");
    ok(read_text(&spec, ""), "nothing: %s", err.msg);
}

/* A domain is priced as one host with the same number of GPUs, for any number
 * of hosts in the domain. */
static void test_domains(void)
{
    const struct gpu_spec *spec = get("b200");
    unsigned n_wrong = 0;

    if (!ok(spec != NULL, "b200"))
        return;
    for (uint32_t group = 2; group <= 72; group++)
        for (uint32_t per_host = 1; per_host < group; per_host++) {
            const struct cluster host = {.n_devices = 4 * group,
                                         .devices_per_host = group,
                                         .hosts_per_domain = 1};
            struct cluster domain = host;
            struct comm_model apart, together;

            if (group % per_host)
                continue;
            domain.devices_per_host = per_host;
            domain.hosts_per_domain = group / per_host;
            apart = gpu_spec_comm(spec, &domain);
            together = gpu_spec_comm(spec, &host);
            n_wrong += comm_curve_us(&apart.inter, 1e8) !=
                       comm_curve_us(&together.inter, 1e8);
        }
    is_i64(n_wrong, 0, "a domain is priced as a host with as many GPUs");
}

/* TorchRec permutes the ids that other devices send. A CPU always copies its
 * ids. */
static void test_ids(void)
{
    const struct gpu_spec *h100 = get("h100"), *cpu = get("cpu");
    struct gpu_spec without_torchrec;
    struct id_rates one, two;

    ok(h100 && cpu, "h100 and cpu");
    if (!h100 || !cpu)
        return;
    one = gpu_spec_ids(h100, 1);
    two = gpu_spec_ids(h100, 2);
    ok(one.permute.base_us == 0 && one.permute.bag_ns == 0 &&
           one.permute.id_ns == 0,
       "one GPU permutes nothing");
    ok(two.permute.base_us > 19 && two.permute.bag_ns > 0.1,
       "two GPUs permute ids");
    ok(one.bucketize.base_us == two.bucketize.base_us &&
           one.check.bag_ns == two.check.bag_ns,
       "other operations are the same");
    without_torchrec = *h100;
    without_torchrec.skips_checks = true;
    ok(gpu_spec_ids(&without_torchrec, 1).permute.base_us ==
           two.permute.base_us,
       "other kernels permute ids of one GPU, too");
    ok(gpu_spec_ids(cpu, 1).permute.id_ns == gpu_spec_ids(cpu, 2).permute.id_ns,
       "so does a CPU");
}

/* Rates of fp32 for which other sources give other figures: the data sheet's
 * rate is that of all cores of the product at its clock. The full chip of the
 * L4 has 60 SMs (31.3), and NVIDIA's brief of 2024 gives 80 and 90 for the two
 * Blackwells. */
static void test_fp32(void)
{
    static const struct {
        const char *name;
        double tflops;
    } cases[] = {{"b200", 75}, {"gb200", 80}, {"l4", 30.3}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct gpu_spec *spec = get(cases[i].name);

        ok(spec != NULL, "%s", cases[i].name);
        if (!spec)
            continue;
        is_near(spec->tflops[DENSE_TYPE_FP32], cases[i].tflops, 0, "fp32");
        is_near(spec->n_sms * 128 * 2 * spec->clock_ghz / 1000, cases[i].tflops,
                0.05 * cases[i].tflops, "128 cores an SM at its clock");
    }
}

int main(void)
{
    test_first();
    test_all();
    test_fp32();
    test_names();
    test_unique();
    test_devices();
    test_domains();
    test_ids();
    test_read();
    test_refused();
    arena_release(&arena);
    return tap_done();
}
