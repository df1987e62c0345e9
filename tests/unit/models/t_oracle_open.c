/* SPDX-License-Identifier: MIT */
#include "costmodel/models/oracle_open.h"

#include "costmodel/models/oracles.h"
#include "tests/tap.h"

/* An opened oracle does not offer shard kinds and row cuts that the problem
 * bars. */
static void check_kept(const struct problem *problem, unsigned barred,
                       enum row_cut row_cut, const char *what,
                       struct arena *arena)
{
    struct oracle *opened[2] = {NULL, NULL};
    struct err err = {0};

    ok(!oracle_open(&opened[0], "roofline:a100", problem, arena, &err) &&
           !oracle_open_for_gpu(&opened[1], "a100", problem, arena, &err),
       "opens %s", err.msg);
    for (int i = 0; i < 2; i++) {
        is_i64(opened[i]->kinds, SHARD_ALL_KINDS & ~barred, what);
        is_i64(opened[i]->row_cut, row_cut, what);
    }
}

static void test_kept(struct arena *arena)
{
    struct table table = {.name = "a",
                          .num_embeddings = 100,
                          .dim = 16,
                          .kinds = SHARD_ALL_KINDS,
                          .optimizer = OPTIMIZER_ROWWISE_ADAGRAD};
    struct problem problem = {.tables = &table,
                              .n_tables = 1,
                              .batch = 1,
                              .cluster = {.n_devices = 4,
                                          .devices_per_host = 1,
                                          .hosts_per_domain = 2}};

    check_kept(&problem, 0, ROW_CUT_ANY, "any cut", arena);
    problem.row_cut = ROW_CUT_RANKS;
    check_kept(&problem, SHARD_GRID, ROW_CUT_RANKS, "as TorchRec trains",
               arena);
    problem.asks_for_grids = true;
    check_kept(&problem, 0, ROW_CUT_RANKS, "grids by name", arena);
    problem.asks_for_grids = false;
    table.optimizer = OPTIMIZER_SGD;
    check_kept(&problem, 0, ROW_CUT_RANKS, "SGD has no state", arena);
    table.optimizer = OPTIMIZER_ROWWISE_ADAGRAD;
    problem.cluster.hosts_per_domain = 1;
    check_kept(&problem, 0, ROW_CUT_RANKS, "hosts by themselves", arena);
}

static void test_gpu(struct arena *arena)
{
    static const struct {
        const char *spec, *want;
    } cases[] = {
        {"roofline:b200", "b200"},
        {"roofline:./mine.json", "./mine.json"},
        {"model:h200", "h200"},
        {"model:h200.nsm", "h200"},
        {"model:cpu-amd-epyc-2t", "cpu"},
        {"torchrec", NULL},
        {"reference:nets", NULL},
        {"roofline:", NULL}, /* no GPU given: oracle_open reports it */
        {"model:", NULL},
    };
    struct err err = {0};
    const char *gpu;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gpu = "?";
        ok(!oracle_gpu(&gpu, cases[i].spec, arena, &err), "%s%s", cases[i].spec,
           err.msg);
        is_str(gpu ? gpu : "none", cases[i].want ? cases[i].want : "none",
               "is of");
    }
    ok(oracle_gpu(&gpu, "model:h2000", arena, &err) && err.code == ERR_IO,
       "a model that is not there: %s", err.msg);
}

int main(void)
{
    static const char *const unknown[] = {"magic",     "model2", "roofline",
                                          "roofline:", "model:", "torchrec:"};
    struct problem problem = {.batch = 1, .cluster = {.n_devices = 1}};
    struct oracle *oracle = NULL;
    struct err err = {0};
    struct arena arena = {0};

    test_gpu(&arena);
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        ok(oracle_open(&oracle, unknown[i], &problem, &arena, &err) &&
               err.code == ERR_USAGE,
           "refused as a usage error");
        is_str(err.msg,
               arena_printf(&arena, "no cost model '%s'; known are %s",
                            unknown[i], ORACLE_CHOICES),
               "the message lists the cost models");
    }
    ok(strstr(ORACLE_CHOICES, "model:FILE, roofline:NAME, ") == ORACLE_CHOICES,
       "%s, each as it is asked for", ORACLE_CHOICES);
    ok(oracle_open(&oracle, "model:/nonexistent", &problem, &arena, &err) &&
           err.code == ERR_IO,
       "a model that is not there: %s", err.msg);
    if (ok(!oracle_open(&oracle, "roofline:a100", &problem, &arena, &err),
           "opens a roofline")) {
        is_str(oracle->cost.name, "roofline:a100", "named as asked");
        is_i64((int64_t)strlen(oracle->cost.hash), 16, "has a hash");
    }
    if (ok(!oracle_open_for_gpu(&oracle, "v100-32gb", &problem, &arena, &err),
           "opens the default of a GPU")) {
        is_str(oracle->cost.name, "roofline:v100-32gb",
               "its roofline where no model is shipped");
        is_i64(oracle->cost.basis, BASIS_ANALYTIC, "which is analytic");
    }
    ok(oracle_open_for_gpu(&oracle, "h900", &problem, &arena, &err) &&
           err.code == ERR_USAGE,
       "an unknown GPU is a usage error");
    test_kept(&arena);
    arena_release(&arena);
    return tap_done();
}
