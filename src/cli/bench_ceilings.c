/* SPDX-License-Identifier: MIT */
#include "cli/bench_ceilings.h"

#include "base/text.h"
#include "cli/command.h"

#include <inttypes.h>
#include <stdio.h>

static int put_ceiling(void *ctx, const struct sample_setting *setting,
                       const struct ceiling *ceiling, struct err *err)
{
    return store_put_ceiling(ctx, setting, ceiling, err);
}

static bool has_ceiling(void *ctx, const struct sample_setting *setting,
                        const struct probe *probe)
{
    return store_has_ceiling(ctx, setting, probe);
}

int bench_ceilings_measure(struct bench_result *result, struct device *device,
                           const struct bench_options *options,
                           struct store *store, struct err *err)
{
    struct ceiling_sink sink = {store, put_ceiling, has_ceiling};

    return bench_ceilings(result, device, options, &sink, err);
}

static double gbps(const struct ceiling *ceiling)
{
    return probe_moved_bytes(&ceiling->probe) / ceiling->timing.median_ms / 1e6;
}

static void print_row(const struct ceiling *ceiling)
{
    const struct probe *probe = &ceiling->probe;
    char bytes[TEXT_BYTES_MAX] = "-", n[TEXT_BYTES_MAX] = "-", each[16] = "-",
         speed[32] = "-";

    if (probe->n_bytes)
        text_from_bytes(bytes, (double)probe->n_bytes);
    if (probe->n)
        text_from_count(n, probe->n);
    if (probe->row_bytes)
        snprintf(each, sizeof(each), "%" PRIu32 " B", probe->row_bytes);
    if (probe->key_bits)
        snprintf(each, sizeof(each), "%" PRIu32 " bits", probe->key_bits);
    if (probe->kind != PROBE_LAUNCH)
        snprintf(speed, sizeof(speed), "%.4g", gbps(ceiling));
    printf("%-7s %10s %11s %10s %10.4g %10.4g %10.4g %9s%s\n",
           probe_kind_name(probe->kind), bytes, n, each,
           ceiling->timing.median_ms, ceiling->timing.p10_ms,
           ceiling->timing.p90_ms, speed,
           ceiling->flags & SAMPLE_THROTTLED ? "  throttled" : "");
}

static json_t *to_json(const struct ceiling *ceiling)
{
    const struct probe *probe = &ceiling->probe;
    json_t *row = json_pack(
        "{s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:b}", "kind",
        probe_kind_name(probe->kind), "bytes", (json_int_t)probe->n_bytes, "n",
        (json_int_t)probe->n, "row_bytes", (json_int_t)probe->row_bytes,
        "key_bits", (json_int_t)probe->key_bits, "median_ms",
        ceiling->timing.median_ms, "p10_ms", ceiling->timing.p10_ms, "p90_ms",
        ceiling->timing.p90_ms, "throttled",
        (ceiling->flags & SAMPLE_THROTTLED) != 0);

    if (probe->kind != PROBE_LAUNCH)
        json_object_set_new(row, "gbps", json_real(gbps(ceiling)));
    return row;
}

int bench_ceilings_print(struct store *store, const struct device *device,
                         const struct bench_options *options, bool as_json,
                         struct arena *arena, struct err *err)
{
    struct sample_setting setting = bench_setting(device, options);
    struct ceiling *ceilings;
    json_t *root;
    size_t n;

    if (store_ceilings(store, &setting, &ceilings, &n, arena, err))
        return -1;
    if (!as_json) {
        printf("%-7s %10s %11s %10s %10s %10s %10s %9s\n", "probe", "bytes",
               "n", "row, key", "median ms", "p10 ms", "p90 ms", "GB/s");
        for (size_t i = 0; i < n; i++)
            print_row(&ceilings[i]);
        return 0;
    }
    root = json_pack("{s:s, s:[]}", "device", device_name(device), "ceilings");
    for (size_t i = 0; i < n; i++)
        json_array_append_new(json_object_get(root, "ceilings"),
                              to_json(&ceilings[i]));
    cli_print_json(root);
    return 0;
}
