/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/figures.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "costmodel/modelfile/gpu_file.h"

#include <math.h>

/* One GPU of the list. */
struct gpu_row {
    const char *name, *full_name;
    uint64_t memory_bytes;
    /* number of GPUs of a host as sold; 0: no number is usual */
    uint64_t gpus_per_host;
    double dram_gbps, l2_gbps, intra_gbps, nic_gbps;
    /* cost model that --gpu uses: "model" if a measured model of the GPU is
     * shipped, else "roofline" */
    const char *cost;
    /* error of lookups by the roofline; NAN: unknown */
    double lookup_error_frac;
    const char *const *aliases;
};

#define GPU(member) MEMBER_OF(struct gpu_row, member)
static const struct figure gpu_figures[] = {
    {"gpu", "GPU", -10, 0, FIGURE_PLAIN, GPU(name)},
    {"memory_bytes", "memory", 8, 0, FIGURE_BYTES, GPU(memory_bytes)},
    {"gpus_per_host", "host", 4, 0, FIGURE_PLAIN, GPU(gpus_per_host)},
    {"dram_gbps", "DRAM", 6, 4, FIGURE_SIGNIFICANT, GPU(dram_gbps)},
    {"l2_gbps", "cache", 6, 4, FIGURE_SIGNIFICANT, GPU(l2_gbps)},
    {"intra_gbps", "in host", 7, 3, FIGURE_SIGNIFICANT, GPU(intra_gbps)},
    {"nic_gbps", "NIC", 6, 4, FIGURE_SIGNIFICANT, GPU(nic_gbps)},
    {"cost", "cost", -8, 0, FIGURE_PLAIN, GPU(cost)},
    {"lookup_error_frac", "+- %", 4, 0, FIGURE_PERCENT, GPU(lookup_error_frac)},
    {"name", NULL, 0, 0, FIGURE_PLAIN, GPU(full_name)},
    {0},
};

static int load(struct gpu_row *row, const char *name, struct arena *arena,
                struct err *err)
{
    const char *model = arena_printf(arena, "models/%s.nsm", name);
    const struct gpu_spec *spec;

    if (gpu_spec_get(&spec, name, arena, err))
        return -1;
    *row = (struct gpu_row){
        .name = spec->name,
        .full_name = spec->full_name,
        .memory_bytes = spec->memory_bytes,
        .gpus_per_host = spec->gpus_per_host,
        .dram_gbps = spec->dram_gbps,
        .l2_gbps = spec->l2_gbps,
        .intra_gbps = spec->intra_gbps,
        .nic_gbps = spec->nic_gbps,
        .cost = file_find_data(model, arena) ? "model" : "roofline",
        .lookup_error_frac =
            spec->lookup_error.frac > 0 ? spec->lookup_error.frac : NAN,
        .aliases = spec->aliases};
    return 0;
}

static json_t *rows_to_json(const struct gpu_row *rows, size_t n)
{
    json_t *list = FIGURES_LIST(gpu_figures, rows, n);

    for (size_t i = 0; i < n; i++) {
        json_t *aliases = json_array();

        for (const char *const *alias = rows[i].aliases; *alias; alias++)
            json_array_append_new(aliases, json_string(*alias));
        json_object_set_new(json_array_get(list, i), "aliases", aliases);
    }
    return list;
}

/* Prints the other names of all GPUs that have some. */
static void print_aliases(const struct gpu_row *rows, size_t n,
                          struct arena *arena)
{
    const char *separator = "\naliases ";

    for (size_t i = 0; i < n; i++) {
        if (!*rows[i].aliases)
            continue;
        cli_printf("%s%s: %s", separator, rows[i].name,
                   text_list(rows[i].aliases, ", ", arena));
        separator = "; ";
    }
    cli_printf("\n");
}

static int run_gpus(struct cli *cli, struct err *err)
{
    const char *const *names = gpu_names(cli->arena);
    struct gpu_row *rows;
    size_t n = 0;

    while (names[n])
        n++;
    if (!n)
        return err_input(err, "no data folder with 'gpus' was found");
    rows = ARENA_NEW(cli->arena, struct gpu_row, n);
    for (size_t i = 0; i < n; i++)
        if (load(&rows[i], names[i], cli->arena, err))
            return -1;
    cli_print_json(json_pack("{s:o}", "gpus", rows_to_json(rows, n)));
    FIGURES_TABLE(gpu_figures, rows, n, cli_text());
    print_aliases(rows, n, cli->arena);
    cli_printf("\nGB/s that benchmarks reach; host: GPUs of a host as sold; "
               "+-: of lookups by\nthe roofline; sources: %s\n",
               file_find_data("gpus", cli->arena));
    return 0;
}

const struct command command_gpus = {
    .name = "gpus",
    .synopsis = "[options]",
    .summary = "list the GPUs for which plans can be made",
    .has_wide = true,
    .run = run_gpus,
};
