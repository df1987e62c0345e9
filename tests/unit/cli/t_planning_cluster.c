/* SPDX-License-Identifier: MIT */
/* The cluster that results from options, a file and the current plan: hosts,
 * memory, reserve, bandwidths and batch, or the error. */
#include "cli/planning_cluster.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file_write.h"
#include "tests/unit/cli/plan_line.h"

static struct arena arena;
static struct err err;
static char folder[] = "/tmp/t_planning_cluster_XXXXXX";

/* Splits the command line into words and parses it; NULL if it is refused. */
static struct cli *parse(const char *line)
{
    return plan_line(arena_printf(&arena, "list.csv %s", line), &arena, &err);
}

static void describe(struct buf *out, const struct problem *problem)
{
    const struct cluster *cluster = &problem->cluster;

    buf_printf(out, "%s%s: %u/%u/%u", cluster->gpu,
               cluster->is_default_gpu ? "*" : "", cluster->n_devices,
               cluster->devices_per_host, cluster->hosts_per_domain);
    for (uint32_t r = 0; r < cluster->n_devices && r < 3; r++)
        buf_printf(out, " %.2f-%.3f",
                   (double)cluster->memory_bytes[r] / (1 << 30),
                   (double)cluster->reserve_bytes[r] / (1 << 30));
    buf_printf(out, " nccl %.3f", (double)cluster->nccl_bytes / (1 << 30));
    if (cluster->intra_gbps > 0 || cluster->inter_gbps > 0)
        buf_printf(out, " gbps %g %g", cluster->intra_gbps,
                   cluster->inter_gbps);
    buf_printf(out, " batch %llu", (unsigned long long)problem->batch);
}

/* Returns a text that describes the cluster of the command line; `like` is the
 * cluster of the current plan. */
static const char *cluster_of(const char *line, const struct cluster *like,
                              enum memory_model memory_model)
{
    struct problem problem = {.memory_model = memory_model};
    struct planning_grid grid;
    struct cli *cli = parse(line);
    struct buf out = {0};
    const char *text;

    if (!cli || planning_grid(&grid, like, cli, &err) ||
        planning_set_cluster(&problem, &grid.cells[0], like, cli, &err))
        return arena_printf(&arena, "%s", err.msg);
    for (size_t i = 0; i < grid.n && cli_value(cli, "gpus")->is_range; i++)
        buf_printf(&out, "%u ", grid.cells[i].n_gpus);
    describe(&out, &problem);
    text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

/* The clusters of the current plan, by the first letter of a line: none, four
 * GPUs of one host, eight GPUs of two hosts, eight GPUs of two hosts that
 * NVLink joins, and eight A100 of two hosts. */
static const struct cluster likes[] = {
    {0},
    {.n_devices = 4, .devices_per_host = 4, .hosts_per_domain = 1},
    {.n_devices = 8, .devices_per_host = 4, .hosts_per_domain = 1},
    {.n_devices = 8, .devices_per_host = 4, .hosts_per_domain = 2},
    {.n_devices = 8, .devices_per_host = 4, .gpu = "a100"},
};

static const char *const lines[] = {
    "0",
    "0--gpus 1",
    "0--gpus 7",
    "0--gpus 8",
    "0--gpus 9",
    "0--gpus 11",
    "0--gpus 16",
    "0--gpus 12",
    "0--gpus 17,18,19,20",
    "0--gpus 8 --gpus-per-host 4",
    "0--gpus 9 --gpus-per-host 4",
    "0--gpus 3 --gpus-per-host 4",
    "0--gpus 8..12 --gpus-per-host 4",
    "0--gpus 9..11 --gpus-per-host 4",
    "0--gpus 8..24 --gpus-per-host 4 --hosts-per-domain 2",
    "0--gpus 9..11 --gpus-per-host 4 --hosts-per-domain 2",
    "0--gpus 8 --hosts-per-domain 2",
    "1--gpus 4",
    "1--gpus 8",
    "1--gpus 12",
    "2--gpus 8",
    "2--gpus 12",
    "2--gpus 10",
    "3--gpus 16",
    "3--gpus 12",
    "2--gpus 8 --gpus-per-host 2",
    "4--gpus 2",
    "4--gpus 2 --gpu h100",
    "4--gpus 2 --cost roofline:h100",
    "0--gpus 2 --gpu a100",
    "0--gpus 2 --gpu cpu",
    "0--gpus 2 --gpu none",
    "0--gpus 2 --cost roofline:a100",
    "0--gpus 2 --cost roofline:a100 --gpu h100",
    "0--gpus 2 --cost torchrec",
    "0--gpus 2 --memory 10GiB",
    "0--gpus 2 --memory 10GiB --reserve 1GiB",
    "0--gpus 2 --reserve 0",
    "0--gpus 2 --reserve 100%",
    "0--gpus 2 --reserve 50%",
    "0--gpus 2 --reserve 101%",
    "0--gpus 2 --reserve 81GiB",
    "0--gpus 2 --memory 10GiB --reserve 100%",
    "0--gpus 2 --intra-gbps 100",
    "0--gpus 2 --inter-gbps 50",
    "0--gpus 2 --batch 100",
    "0--gpus 2 --batch-per-gpu 100",
    "0--gpus 4 --batch-per-gpu 1000000000",
    "w--gpus 2",
};
static const char *const files[] = {
    "{\"hosts\": [{\"gpus\": 2}, {\"gpus\": 2}]}",
    "{\"hosts\": [{\"gpus\": 2, \"memory\": \"20GiB\"}]}",
    "{\"hosts\": [{\"gpus\": 2, \"memory\": [\"20GiB\", null]}]}",
    "{\"gpu\": \"a100\", \"hosts\": [{\"gpus\": 2}]}",
    "{\"gpu\": \"none\", \"hosts\": [{\"gpus\": 2}]}",
    "{\"reserve\": \"2GiB\", \"hosts\": [{\"gpus\": 2}]}",
    "{\"reserve\": \"200GiB\", \"hosts\": [{\"gpus\": 2}]}",
    "{\"intra_gbps\": 10, \"hosts\": [{\"gpus\": 2}]}",
    "{\"hosts\": [{\"gpus\": 2, \"used\": \"5GiB\"}]}",
    "{\"hosts\": [{\"gpus\": 2, \"used\": \"500GiB\"}]}",
};
static const char *const options[] = {
    "",           "--gpus 2",       "--gpus-per-host 2", "--memory 8GiB",
    "--gpu h200", "--reserve 1GiB", "--intra-gbps 5",    "--inter-gbps 5",
    "--batch 7",
};

/* The expected text of each line, in order. */
static const char *const want[] = {
    "option '--gpus' is needed: how many GPUs to plan for",
    "h100*: 1/1/0 79.65-11.947 nccl 0.000 batch 65536",
    "h100*: 7/7/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 2.625 batc"
    "h 65536",
    "h100*: 8/8/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 3.000 batc"
    "h 65536",
    "h100*: 9/3/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.594 batc"
    "h 65536",
    "11 GPUs do not fill whole hosts of 2 to 8 GPUs each: option "
    "'--gpus-per-host' is needed",
    "h100*: 16/8/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.828 bat"
    "ch 65536",
    "h100*: 12/6/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.734 bat"
    "ch 65536",
    "17 18 19 20 h100*: 17/1/0 79.65-11.947 79.65-11.947 79.65-11.947 nc"
    "cl 0.500 batch 65536",
    "h100*: 8/4/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.641 batc"
    "h 65536",
    "9 GPUs do not fill whole hosts of 4 GPUs each",
    "h100*: 3/3/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 1.125 batc"
    "h 65536",
    "8 12 h100*: 8/4/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.641"
    " batch 65536",
    "no number of GPUs from 9 to 11 fills whole hosts of 4 GPUs each",
    "8 16 24 h100*: 8/4/2 79.65-11.947 79.65-11.947 79.65-11.947 nccl 3."
    "000 batch 65536",
    "no number of GPUs from 9 to 11 fills whole hosts of 4 GPUs each, in whole "
    "domains",
    "option '--hosts-per-domain' needs '--gpus-per-host'",
    "h100*: 4/4/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 1.500 batc"
    "h 65536",
    "h100*: 8/8/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 3.000 batc"
    "h 65536",
    "h100*: 12/6/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.734 bat"
    "ch 65536",
    "h100*: 8/4/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.641 batc"
    "h 65536",
    "h100*: 12/4/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.641 bat"
    "ch 65536",
    "h100*: 10/5/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.688 bat"
    "ch 65536",
    "h100*: 16/4/2 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.828 bat"
    "ch 65536",
    "h100*: 12/6/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.734 bat"
    "ch 65536",
    "h100*: 8/2/1 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.547 batc"
    "h 65536",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 batch 65536",
    "h100: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 65536",
    "h100: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 65536",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 batch 65536",
    "cpu: 2/2/0 16.00-2.400 16.00-2.400 nccl 0.000 batch 65536",
    "no figures for a GPU 'none'; known are ...",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 batch 65536",
    "h100: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 65536",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 65536",
    "h100*: 2/2/0 10.00-1.500 10.00-1.500 nccl 0.000 batch 65536",
    "h100*: 2/2/0 10.00-1.000 10.00-1.000 nccl 0.000 batch 65536",
    "h100*: 2/2/0 79.65-0.750 79.65-0.750 nccl 0.750 batch 65536",
    "h100*: 2/2/0 79.65-79.647 79.65-79.647 nccl 0.750 batch 65536",
    "h100*: 2/2/0 79.65-39.824 79.65-39.824 nccl 0.750 batch 65536",
    "option '--reserve' takes a size up to a GPU's memory or a percenta"
    "ge from 0% to 100%, not '101%'",
    "option '--reserve' takes a size up to a GPU's memory or a percenta"
    "ge from 0% to 100%, not '81GiB'",
    "h100*: 2/2/0 10.00-10.000 10.00-10.000 nccl 0.000 batch 65536",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 gbps 100 0 batch "
    "65536",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 gbps 0 50 batch 6"
    "5536",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 100",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 batch 200",
    "h100*: 4/4/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 1.500 batc"
    "h 4000000000",
    "h100*: 2/2/0 79.65-0.000 79.65-0.000 nccl 0.000 batch 65536",
    "h100*: 4/2/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.547 batc"
    "h 65536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h200: 4/2/0 140.40-21.060 140.40-21.060 140.40-21.060 nccl 0.547 b"
    "atch 65536",
    "h100*: 4/2/0 79.65-1.000 79.65-1.000 79.65-1.000 nccl 0.547 batch 6"
    "5536",
    "h100*: 4/2/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.547 gbps"
    " 5 0 batch 65536",
    "h100*: 4/2/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.547 gbps"
    " 0 5 batch 65536",
    "h100*: 4/2/0 79.65-11.947 79.65-11.947 79.65-11.947 nccl 0.547 batc"
    "h 7",
    "h100*: 2/2/0 20.00-3.000 20.00-3.000 nccl 0.000 batch 65536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h200: 2/2/0 20.00-3.000 20.00-3.000 nccl 0.000 batch 65536",
    "h100*: 2/2/0 20.00-1.000 20.00-1.000 nccl 0.000 batch 65536",
    "h100*: 2/2/0 20.00-3.000 20.00-3.000 nccl 0.000 gbps 5 0 batch 6553"
    "6",
    "h100*: 2/2/0 20.00-3.000 20.00-3.000 nccl 0.000 gbps 0 5 batch 6553"
    "6",
    "h100*: 2/2/0 20.00-3.000 20.00-3.000 nccl 0.000 batch 7",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "............................../cluster.json:1: hosts[0].memory[1] "
    "must be a size such as \"80GiB\" or a whole number of bytes",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 batch 65536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpu' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "a100: 2/2/0 79.35-1.000 79.35-1.000 nccl 0.750 batch 65536",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 gbps 5 0 batch 65"
    "536",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 gbps 0 5 batch 65"
    "536",
    "a100: 2/2/0 79.35-11.902 79.35-11.902 nccl 0.750 batch 7",
    "............................../cluster.json: gpu: no figures for a"
    " GPU 'none'; known are ...",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpu' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "............................../cluster.json: gpu: no figures for a"
    " GPU 'none'; known are ...",
    "............................../cluster.json: gpu: no figures for a"
    " GPU 'none'; known are ...",
    "............................../cluster.json: gpu: no figures for a"
    " GPU 'none'; known are ...",
    "............................../cluster.json: gpu: no figures for a"
    " GPU 'none'; known are ...",
    "h100*: 2/2/0 79.65-2.000 79.65-2.000 nccl 0.750 batch 65536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h200: 2/2/0 140.40-2.000 140.40-2.000 nccl 0.750 batch 65536",
    "option '--reserve' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h100*: 2/2/0 79.65-2.000 79.65-2.000 nccl 0.750 gbps 5 0 batch 6553"
    "6",
    "h100*: 2/2/0 79.65-2.000 79.65-2.000 nccl 0.750 gbps 0 5 batch 6553"
    "6",
    "h100*: 2/2/0 79.65-2.000 79.65-2.000 nccl 0.750 batch 7",
    "............................../cluster.json: reserve is 200GiB, bu"
    "t GPU 0 has 79.6 GiB",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "............................../cluster.json: reserve is 200GiB, bu"
    "t GPU 0 has 140 GiB",
    "option '--reserve' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "............................../cluster.json: reserve is 200GiB, bu"
    "t GPU 0 has 79.6 GiB",
    "............................../cluster.json: reserve is 200GiB, bu"
    "t GPU 0 has 79.6 GiB",
    "............................../cluster.json: reserve is 200GiB, bu"
    "t GPU 0 has 79.6 GiB",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 gbps 10 0 batch 6"
    "5536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h200: 2/2/0 140.40-21.060 140.40-21.060 nccl 0.750 gbps 10 0 batch"
    " 65536",
    "h100*: 2/2/0 79.65-1.000 79.65-1.000 nccl 0.750 gbps 10 0 batch 655"
    "36",
    "option '--intra-gbps' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 gbps 10 5 batch 6"
    "5536",
    "h100*: 2/2/0 79.65-11.947 79.65-11.947 nccl 0.750 gbps 10 0 batch 7",
    "h100*: 2/2/0 79.65-16.947 79.65-16.947 nccl 0.750 batch 65536",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "h200: 2/2/0 140.40-26.060 140.40-26.060 nccl 0.750 batch 65536",
    "h100*: 2/2/0 79.65-6.000 79.65-6.000 nccl 0.750 batch 65536",
    "h100*: 2/2/0 79.65-16.947 79.65-16.947 nccl 0.750 gbps 5 0 batch 65"
    "536",
    "h100*: 2/2/0 79.65-16.947 79.65-16.947 nccl 0.750 gbps 0 5 batch 65"
    "536",
    "h100*: 2/2/0 79.65-16.947 79.65-16.947 nccl 0.750 batch 7",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h100 has 79.6 GiB",
    "option '--gpus' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--gpus-per-host' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "option '--memory' cannot be given with '--cluster': "
    "'............................../cluster.json' already gives it",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h200 has 140 GiB",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h100 has 79.6 GiB",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h100 has 79.6 GiB",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h100 has 79.6 GiB",
    "............................../cluster.json: used is 500 GiB for GPU 0, "
    "but a GPU of kind h100 has 79.6 GiB",
};
static size_t n_got;

/* Compares the text with the next expected one. */
static void is_next(const char *got, const char *name)
{
    const size_t i = n_got++;
    char *at = strstr(got, folder);

    if (at)
        memset(at, '.', strlen(folder));
    at = strstr(got, "known are ");
    if (at && strstr(at, "h100-pcie, h100, ")) /* a list that grows */
        memcpy(at, "known are ...", sizeof("known are ..."));
    if (i < sizeof(want) / sizeof(*want))
        is_str(got, want[i], name);
    else
        ok(0, "%s: %s", name, got);
}

static void test_options(void)
{
    for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
        const bool is_weights = lines[i][0] == 'w';

        is_next(cluster_of(lines[i] + 1,
                           &likes[is_weights ? 0 : lines[i][0] - '0'],
                           is_weights ? MEMORY_WEIGHTS : MEMORY_FULL),
                lines[i]);
    }
}

static void test_files(void)
{
    const char *path = arena_printf(&arena, "%s/cluster.json", folder);

    for (size_t f = 0; f < sizeof(files) / sizeof(*files); f++) {
        if (file_write(path, files[f], strlen(files[f]), &err)) {
            printf("Bail out! %s\n", err.msg);
            exit(1);
        }
        for (size_t o = 0; o < sizeof(options) / sizeof(*options); o++)
            is_next(cluster_of(arena_printf(&arena, "--cluster %s %s", path,
                                            options[o]),
                               &likes[0], MEMORY_FULL),
                    options[o]);
    }
    unlink(path);
}

int main(void)
{
    if (!mkdtemp(folder)) {
        printf("Bail out! no folder to work in\n");
        return 1;
    }
    test_options();
    test_files();
    ok(!rmdir(folder), "nothing is left behind");
    arena_release(&arena);
    return tap_done();
}
