/* SPDX-License-Identifier: MIT */
/* An imported reference net gives the same answers as the reference net
 * itself. */
#include "costmodel/modelfile/model_file.h"

#include <unistd.h>

#include "base/file_write.h"
#include "costmodel/models/oracles.h"
#include "tests/tap.h"

#include "tests/golden.h"

/* Returns the largest relative difference from predict_compute.json. */
static double worst_answer(const char *path, struct arena *arena)
{
    json_t *list = golden_json("golden/predict_compute.json", arena), *one;
    size_t n_pool, i;
    const struct table *pool = golden_tables(&n_pool, arena);
    double worst = 0;

    json_array_foreach(list, i, one)
    {
        const double want = json_number_value(json_object_get(one, "ms"));
        double sum[80] = {0}, vector[80], ms;
        struct oracle *oracle = NULL;
        struct problem problem;
        struct err err = {0};

        golden_problem(&problem, pool, json_object_get(one, "table_ids"),
                       json_object_get(one, "dims"), 1, 4, arena);
        if (oracle_learned_open(&oracle, path, &problem, arena, &err)) {
            ok(0, "%s", err.msg);
            return INFINITY;
        }
        for (uint32_t t = 0; t < problem.n_tables; t++) {
            const struct shard shard = shard_whole(&problem, t, 0);

            oracle->ops->embed(oracle, &shard, 1, vector);
            for (uint32_t k = 0; k < oracle->width; k++)
                sum[k] += vector[k];
        }
        oracle->ops->compute(oracle, sum, 1, &ms);
        worst = tap_worst(worst, fabs(ms - want) / want);
    }
    json_decref(list);
    return worst;
}

/* A net whose layers have other names is refused as another kind of net. */
static void check_names(const char *golden, struct arena *arena)
{
    static const char *const names[] = {"t_hidden.0", "t_hidden.1",
                                        "c_hidden.0", "c_hidden.1"};
    char dir[] = "/tmp/t_model_import_XXXXXX";
    const char *text = "", *path;
    struct err err = {0};
    struct model model;
    size_t len = 0;

    ok(mkdtemp(dir) != NULL &&
           !file_read(&text, &len,
                      arena_printf(arena, "%s/net_compute.json", golden), arena,
                      &err),
       "a net to spoil");
    path = arena_printf(arena, "%s/net_compute.json", dir);
    for (size_t k = 0; k < 4; k++) {
        char *spoilt = arena_strndup(arena, text, len), *at;

        while ((at = strstr(spoilt, names[k])) != NULL)
            *at = 'x';
        ok(!file_write(path, spoilt, len, &err) &&
               model_import(&model, dir, arena, &err) &&
               err.code == ERR_INPUT &&
               strstr(err.msg, ": a model needs the layers t_hidden.0, "),
           "without %s: %s", names[k], err.msg);
    }
    unlink(path);
    rmdir(dir);
}

int main(void)
{
    char path[] = "/tmp/t_model_import_XXXXXX";
    struct arena arena = {0};
    struct model model;
    struct err err = {0};
    const char *dir;
    double worst;
    int fd;

    dir = golden_path("golden", &arena);
    if (!file_exists(golden_path("golden/net_compute.json", &arena)))
        tap_skip_all("no ../shared");
    fd = mkstemp(path);
    ok(fd >= 0 && !close(fd), "a file to write to");
    ok(!model_import(&model, dir, &arena, &err), "imported%s", err.msg);
    is_i64(model.basis, BASIS_MODELLED, "a modelled cost");
    is_i64(model.features.n, 20, "the published features");
    is_str(model.setting.device, "reference net", "no device");
    is_str(model.setting.isa, "unknown", "and no instruction set");
    is_str(model.source, "imported from a reference net", "its source");
    is_str(model.training.loss, "squared", "its loss");
    ok(model_covers(&model, PRECISION_FP32, OPTIMIZER_SGD, 65536) &&
           !model_covers(&model, PRECISION_FP32, OPTIMIZER_SGD, 65535) &&
           !model_covers(&model, PRECISION_FP32, OPTIMIZER_SGD, 65537) &&
           !model_covers(&model, PRECISION_FP16, OPTIMIZER_SGD, 65536),
       "it covers one setting only");
    ok(!model_save(&model, path, &err), "saved%s", err.msg);
    worst = worst_answer(path, &arena);
    ok(worst < 1e-4, "answers as the reference does: off by %.1e", worst);
    unlink(path);
    check_names(dir, &arena);
    ok(model_import(&model, "/nowhere", &arena, &err) && err.code == ERR_IO,
       "no such folder: %s", err.msg);
    arena_release(&arena);
    return tap_done();
}
