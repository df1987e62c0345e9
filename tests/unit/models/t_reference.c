/* SPDX-License-Identifier: MIT */
/* The reference oracle against recorded answers of the published nets. */
#include <unistd.h>

#include "base/file_write.h"
#include "base/hash.h"
#include "costmodel/models/oracles.h"
#include "tests/golden.h"
#include "tests/tap.h"

static double relative(double got, double want)
{
    return fabs(got - want) / fabs(want);
}

static void check_compute(const char *dir, const struct table *pool,
                          struct arena *arena)
{
    json_t *cases = golden_json("golden/predict_compute.json", arena), *item;
    double worst = 0;
    size_t n, i;

    json_array_foreach(cases, i, item)
    {
        struct arena_mark mark = arena_mark(arena);
        struct oracle *oracle = NULL;
        struct problem problem;
        struct err err = {0};
        double got, *vectors, *sums;
        struct shard *shards;

        golden_problem(&problem, pool, json_object_get(item, "table_ids"),
                       json_object_get(item, "dims"), 1, 4, arena);
        if (oracle_reference_open(&oracle, dir, &problem, arena, &err)) {
            ok(0, "opens: %s", err.msg);
            return;
        }
        n = problem.n_tables;
        shards = ARENA_NEW(arena, struct shard, n);
        vectors = ARENA_NEW(arena, double, n * oracle->width);
        sums = ARENA_NEW(arena, double, oracle->width);
        for (size_t k = 0; k < n; k++)
            shards[k] = shard_whole(&problem, (uint32_t)k, 0);
        oracle->ops->embed(oracle, shards, n, vectors);
        for (size_t k = 0; k < n * oracle->width; k++)
            sums[k % oracle->width] += vectors[k];
        oracle->ops->compute(oracle, sums, 1, &got);
        worst = tap_worst(
            worst,
            relative(got, json_number_value(json_object_get(item, "ms"))));
        arena_rewind(arena, mark);
    }
    ok(i == 300 && worst < 1e-4, "%zu compute predictions, worst %.2g", i,
       worst);
    json_decref(cases);
}

/* Compares one case of communication. The test chooses the compute times
 * itself, so that only the width lane of the sums counts. */
static double check_comm_case(const char *dir, const struct table *pool,
                              const json_t *item, struct arena *arena)
{
    uint32_t n = (uint32_t)json_integer_value(json_object_get(item, "gpus"));
    double compute[64], fwd[64], bwd[64], worst = 0;
    struct oracle *oracle = NULL;
    struct problem problem;
    struct err err = {0};
    json_t *empty = json_array();
    double *sums;

    (void)pool;
    golden_problem(&problem, NULL, empty, empty, n, 4, arena);
    json_decref(empty);
    if (oracle_reference_open(&oracle, dir, &problem, arena, &err)) {
        ok(0, "opens: %s", err.msg);
        return INFINITY;
    }
    sums = ARENA_NEW(arena, double, n * oracle->width);
    for (uint32_t r = 0; r < n; r++)
        sums[(r + 1) * oracle->width - 1] = json_number_value(
            json_array_get(json_object_get(item, "dim_sums"), r));
    /* start = compute + bwd, so first get bwd, then set compute. */
    memset(compute, 0, sizeof(compute));
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    for (uint32_t r = 0; r < n; r++)
        compute[r] = 100 - bwd[r] +
                     json_number_value(
                         json_array_get(json_object_get(item, "start_ms"), r));
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    for (uint32_t r = 0; r < n; r++) {
        double want_fwd = json_number_value(
            json_array_get(json_object_get(item, "fw_ms"), r));
        double want_bwd = json_number_value(
            json_array_get(json_object_get(item, "bw_ms"), r));

        worst = tap_worst(worst, tap_worst(relative(fwd[r], want_fwd),
                                           relative(bwd[r], want_bwd)));
    }
    return worst;
}

static void check_comm(const char *dir, const struct table *pool,
                       struct arena *arena)
{
    json_t *cases = golden_json("golden/predict_comm.json", arena), *item;
    double worst = 0;
    size_t i;

    json_array_foreach(cases, i, item)
    {
        struct arena_mark mark = arena_mark(arena);

        worst = tap_worst(worst, check_comm_case(dir, pool, item, arena));
        arena_rewind(arena, mark);
    }
    ok(i == 120 && worst < 1e-4, "%zu comm predictions, worst %.2g", i, worst);
    json_decref(cases);
}

/* A single device communicates with nobody. */
static void check_alone(const char *dir, struct arena *arena)
{
    double sums[256] = {0}, compute[2] = {1, 2};
    double fwd[2] = {NAN, NAN}, bwd[2] = {NAN, NAN};
    json_t *empty = json_array();
    struct oracle *oracle = NULL;
    struct problem problem;
    struct err err = {0};

    golden_problem(&problem, NULL, empty, empty, 1, 4, arena);
    json_decref(empty);
    if (!ok(!oracle_reference_open(&oracle, dir, &problem, arena, &err) &&
                2 * oracle->width <= sizeof(sums) / sizeof(*sums),
            "one device: %s", err.msg))
        return;
    oracle->ops->comm(oracle, 2, sums, compute, fwd, bwd);
    ok(fwd[0] == 0 && fwd[1] == 0 && bwd[0] == 0 && bwd[1] == 0,
       "communicates in no time");
}

/* Writes a folder whose net_compute.json has this text, opens it and returns
 * the error message. */
static const char *message_of(const char *text, struct arena *arena)
{
    char dir[] = "/tmp/neuroshard-reference-XXXXXX";
    uint64_t memory = 1, reserve = 0;
    struct problem problem = {.batch = 1,
                              .cluster = {.n_devices = 1,
                                          .devices_per_host = 1,
                                          .memory_bytes = &memory,
                                          .reserve_bytes = &reserve}};
    struct oracle *oracle = NULL;
    struct err err = {0};
    const char *path, *tail;

    if (!mkdtemp(dir))
        return "no folder";
    path = arena_printf(arena, "%s/net_compute.json", dir);
    if (text && file_write(path, text, strlen(text), &err))
        return "not written";
    if (!oracle_reference_open(&oracle, dir, &problem, arena, &err))
        return "accepted";
    unlink(path);
    rmdir(dir);
    tail = strstr(err.msg, "net_compute.json");
    return arena_strdup(arena, tail ? tail : err.msg);
}

#define FEATURES                                                         \
    "\"features\":[\"bin_0\",\"bin_1\",\"bin_2\",\"bin_3\",\"bin_4\","   \
    "\"bin_5\",\"bin_6\",\"bin_7\",\"bin_8\",\"bin_9\",\"bin_10\","      \
    "\"bin_11\",\"bin_12\",\"bin_13\",\"bin_14\",\"bin_15\",\"bin_16\"," \
    "\"dim\",\"pooling_factor\",\"row\"]"
#define TWENTY "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"

/* Returns a folder with nets for two devices whose last layers always predict
 * less than 0, or NULL if it cannot be written. */
static const char *negative_nets(struct arena *arena)
{
    static const char *const nets[][2] = {
        {"net_compute.json", "{" FEATURES ",\"feature_means\":[" TWENTY
                             "],\"feature_stds\":[" TWENTY "],\"layers\":["
                             "{\"name\":\"t_hidden.0\",\"inp\":20,\"out\":1,"
                             "\"weight\":[" TWENTY "],\"bias\":[0]},"
                             "{\"name\":\"c_hidden.0\",\"inp\":1,\"out\":1,"
                             "\"weight\":[1],\"bias\":[-7]}]}"},
        {"net_comm_2_bw.json",
         "{\"features\":[\"dim_sum_0\",\"dim_sum_1\"],"
         "\"feature_means\":[0,0],\"feature_stds\":[1,1],\"layers\":["
         "{\"name\":\"0\",\"inp\":2,\"out\":2,"
         "\"weight\":[0,0,0,0],\"bias\":[-1,-2]}]}"},
        {"net_comm_2_fw.json",
         "{\"features\":[\"dim_sum_0\",\"dim_sum_1\",\"start_ms_0\","
         "\"start_ms_1\"],\"feature_means\":[0,0,0,0],"
         "\"feature_stds\":[1,1,1,1],\"layers\":["
         "{\"name\":\"0\",\"inp\":4,\"out\":2,"
         "\"weight\":[0,0,0,0,0,0,0,0],\"bias\":[-3,-4]}]}"},
    };
    char *dir = arena_strdup(arena, "/tmp/neuroshard-reference-XXXXXX");
    struct err err;

    if (!mkdtemp(dir))
        return NULL;
    for (size_t i = 0; i < 3; i++)
        if (file_write(arena_printf(arena, "%s/%s", dir, nets[i][0]),
                       nets[i][1], strlen(nets[i][1]), &err))
            return NULL;
    return dir;
}

/* Inner layers of a net are cut off at 0; the last layer is not. */
static void check_negative(struct arena *arena)
{
    const char *dir = negative_nets(arena);
    struct problem problem = {
        .batch = 1, .cluster = {.n_devices = 2, .devices_per_host = 2}};
    double sums[4] = {0}, compute[2], fwd[2], bwd[2];
    struct oracle *oracle = NULL;
    struct err err = {0};

    if (!ok(dir && !oracle_reference_open(&oracle, dir, &problem, arena, &err),
            "nets for two: %s", err.msg) ||
        !oracle)
        return;
    is_i64(oracle->width, 2, "an output of the table net and the width");
    oracle->ops->compute(oracle, sums, 2, compute);
    ok(compute[0] == -7 && compute[1] == -7, "the compute net may say -7");
    oracle->ops->comm(oracle, 1, sums, compute, fwd, bwd);
    ok(bwd[0] == -1 && bwd[1] == -2 && fwd[0] == -3 && fwd[1] == -4,
       "and those of communication -1 to -4");
    ok(!system(arena_printf(arena, "rm -r '%s'", dir)), "cleaned up");
}

static void check_errors(struct arena *arena)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {NULL, "net_compute.json': No such file or directory"},
        {"{", "net_compute.json:1: not valid JSON: "},
        {"[]", "net_compute.json: the file must be an object, not a list"},
        {"{}", "net_compute.json: features is missing"},
        {"{\"features\":[\"dim\"]}",
         "net_compute.json: features has 1 entries, not 20"},
        {"{" FEATURES ",\"feature_means\":[1]}",
         "net_compute.json: feature_means has 1 entries, not 20"},
        {"{" FEATURES ",\"feature_means\":[" TWENTY "],\"feature_stds\":[0,1,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
         "net_compute.json: feature_stds[0] is 0, not in "},
        {"{" FEATURES ",\"feature_means\":[1e39,1,"
         "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}",
         "net_compute.json: feature_means[0] is 9.99"},
        {"{" FEATURES ",\"feature_means\":[" TWENTY
         "],\"feature_stds\":[" TWENTY "],\"layers\":[{\"name\":\"t_hidden.0\","
         "\"inp\":2,\"out\":1,\"weight\":[1,1],\"bias\":[0]}]}",
         "net_compute.json: layers[0].layer 't_hidden.0' takes 2 inputs, but "
         "gets 20"},
        {"{" FEATURES ",\"feature_means\":[" TWENTY
         "],\"feature_stds\":[" TWENTY "],\"layers\":[{\"name\":\"t_hidden.0\","
         "\"inp\":20,\"out\":1025}]}",
         "net_compute.json: layers[0].out is 1025, outside 1 to 1024"},
        {"{" FEATURES ",\"feature_means\":[" TWENTY
         "],\"feature_stds\":[" TWENTY "],\"layers\":[{\"name\":\"t_hidden.0\","
         "\"inp\":20,\"out\":1,\"weight\":[" TWENTY "],\"bias\":[\"0\"]}]}",
         "net_compute.json: layers[0].bias[0] must be a number, not a string"},
        {"{" FEATURES ",\"feature_means\":[" TWENTY
         "],\"feature_stds\":[" TWENTY "],\"layers\":[{\"name\":\"t_hidden.0\","
         "\"inp\":20,\"out\":1,\"weight\":[" TWENTY "],\"bias\":[0]}]}",
         "net_compute.json: a compute net has layers 't_hidden.*' of at most "
         "64 outputs, then 'c_hidden.*' that end in one"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = message_of(cases[i].text, arena);

        ok(!strncmp(got, cases[i].want, strlen(cases[i].want)), "%s", got);
    }
}

static void add_numbers(struct buf *text, const char *number, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        buf_printf(text, "%s%s", i ? "," : "", number);
}

/* An oracle's vector has space for 64 outputs of a table's net. */
static void check_width(struct arena *arena)
{
    static const char wide[] = "net_compute.json: a compute net has layers";

    for (unsigned n = 64; n <= 65; n++) {
        struct buf text = {0};
        const char *got;

        buf_printf(&text,
                   "{" FEATURES ",\"feature_means\":[" TWENTY
                   "],\"feature_stds\":[" TWENTY
                   "],\"layers\":[{\"name\":\"t_hidden.0\",\"inp\":20,"
                   "\"out\":%u,\"weight\":[",
                   n);
        add_numbers(&text, "1", 20 * n);
        buf_printf(&text, "],\"bias\":[");
        add_numbers(&text, "0", n);
        buf_printf(&text,
                   "]},{\"name\":\"c_hidden.0\",\"inp\":%u,\"out\":1,"
                   "\"weight\":[",
                   n);
        add_numbers(&text, "1", n);
        buf_printf(&text, "],\"bias\":[0]}]}");
        buf_add(&text, "", 1);
        got = message_of(text.data, arena);
        if (!ok(!strncmp(got, wide, strlen(wide)) == (n > 64), "%u outputs", n))
            printf("# %s\n", got);
        buf_release(&text);
    }
}

int main(void)
{
    struct arena arena = {0};
    const char *dir;
    struct table *pool;
    size_t n;

    check_errors(&arena);
    check_width(&arena);
    check_negative(&arena);
    dir = golden_path("golden", &arena);
    if (!file_exists(dir)) {
        tap_skip("predictions", "no ../shared");
        arena_release(&arena);
        return tap_done();
    }
    pool = golden_tables(&n, &arena);
    is_i64((int64_t)n, 856, "tables in the pool");
    check_compute(dir, pool, &arena);
    check_comm(dir, pool, &arena);
    check_alone(dir, &arena);
    arena_release(&arena);
    return tap_done();
}
