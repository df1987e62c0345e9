/* SPDX-License-Identifier: MIT */
#include "costmodel/oracles.h"

#include "tests/tap.h"

int main(void)
{
    struct problem problem = {.batch = 1, .cluster = {.n_devices = 1}};
    struct oracle *oracle = NULL;
    struct err err = {0};
    struct arena arena;

    arena_init(&arena);
    setenv("NEUROSHARD_DATA", "/nonexistent", 1);
    ok(oracle_open(&oracle, "magic", &problem, &arena, &err), "refused");
    is_i64(err.code, ERR_USAGE, "a usage error");
    is_str(err.msg,
           "no cost model 'magic'; there are model:FILE, roofline:NAME, "
           "reference:DIR, torchrec[:KEY=VALUE,...]",
           "which lists what there is");
    ok(oracle_open(&oracle, "roofline:", &problem, &arena, &err) &&
           err.code == ERR_USAGE,
       "a name is needed");
    ok(oracle_open(&oracle, "model:/nonexistent", &problem, &arena, &err) &&
           err.code == ERR_IO,
       "a model that is not there: %s", err.msg);
    if (ok(!oracle_open(&oracle, "roofline:a100", &problem, &arena, &err),
           "opens a roofline")) {
        is_str(oracle->name, "roofline:a100", "named as asked");
        is_i64((int64_t)strlen(oracle->hash), 16, "has a hash");
        oracle_close(oracle);
    }
    if (ok(!oracle_open_for_gpu(&oracle, "v100-32gb", &problem, &arena, &err),
           "opens the default of a GPU")) {
        is_str(oracle->name, "roofline:v100-32gb",
               "its roofline where no model is shipped");
        is_i64(oracle->basis, BASIS_ANALYTIC, "which is analytic");
        oracle_close(oracle);
    }
    ok(oracle_open_for_gpu(&oracle, "h900", &problem, &arena, &err) &&
           err.code == ERR_USAGE,
       "an unknown GPU is a usage error");
    oracle_close(NULL);
    arena_release(&arena);
    return tap_done();
}
