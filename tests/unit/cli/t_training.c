/* SPDX-License-Identifier: MIT */
/* train, eval and retrain on a database of samples with a known cost function:
 * their exit codes and the files that they write. */
#include "cli/training.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/interrupt.h"
#include "costmodel/modelfile/model_file.h"
#include "io/store_rows.h"
#include "tests/synthetic_samples.h"
#include "tests/tap.h"

#define MAX_ARGS 16

static char folder[] = "/tmp/t_training_XXXXXX";
static struct arena arena;
static struct err err;

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

/* An option for train and retrain: train only a net, which saves the time of
 * choosing between kinds of models. NULL lets them choose. */
static const char *kind = "--kind=net";

/* Runs a command line of words and paths; discards its output. */
static int run(const struct command *command, const char *const *words)
{
    int argc = 0, rc, keep = dup(STDOUT_FILENO);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    char *argv[MAX_ARGS + 1] = {NULL};
    struct cli *cli;

    while (words[argc] && argc < MAX_ARGS - 1) {
        argv[argc] = arena_strdup(&arena, words[argc]);
        argc++;
    }
    if (kind && (command->run == command_train.run ||
                 command->run == command_retrain.run))
        argv[argc++] = arena_strdup(&arena, kind);
    err = (struct err){0};
    fflush(stdout);
    dup2(null, STDOUT_FILENO);
    rc = cli_parse(&cli, command, argc, argv, &arena, &err);
    if (!rc)
        rc = command->run(cli, &err);
    fflush(stdout);
    dup2(keep, STDOUT_FILENO);
    close(keep);
    close(null);
    return rc < 0 ? err_exit_status(err.code) : rc;
}
#define RUN(command, ...) \
    run(&(command), (const char *const[]){__VA_ARGS__, NULL})

/* are_sums: each case costs the sum of its single tables, so no net can beat
 * adding them up. */
static void fill_store(const char *path, const struct sample_setting *setting,
                       size_t n_cases, bool are_sums)
{
    struct store *store = NULL;
    struct sample *samples;
    struct comm_sample comm = {.kind = "copy", .n_ranks = 2, .n_hosts = 1};
    size_t n;

    err = (struct err){0};
    samples = synthetic_samples(&n, n_cases, 11, &arena);
    if (store_open(&store, path, STORE_WRITE, &err))
        goto out;
    for (size_t i = 0; i < n; i++) {
        struct sample *sample = &samples[i];

        if (are_sums && sample->kind == SAMPLE_FUSED) {
            sample->total.median_ms = 0;
            for (uint32_t t = 0; t < sample->n_tables; t++)
                sample->total.median_ms += synthetic_ms(&sample->tables[t], 1);
        }
        if (store_sink(store).put(store, setting, sample, &err))
            goto out;
    }
    for (uint64_t bytes = 1 << 20; bytes <= 1 << 26; bytes *= 8) {
        comm.total_bytes = comm.max_bytes = bytes;
        comm.time.median_ms = 0.01 + (double)bytes / 10e6;
        if (store_sink(store).put_comm(store, setting, &comm, &err))
            goto out;
    }
out:
    if (err.code) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    store_close(store);
}

static int same_files(const char *a, const char *b)
{
    const char *x, *y;
    size_t n_x, n_y;

    return !file_read(&x, &n_x, a, &arena, &err) &&
           !file_read(&y, &n_y, b, &arena, &err) && n_x == n_y &&
           !memcmp(x, y, n_x);
}

static void test_train(const char *db)
{
    const char *first = in_folder("first.nsm"),
               *second = in_folder("second.nsm");
    struct model model;

    is_i64(RUN(command_train, "train", "--db", db, "-o", first, "--epochs=30"),
           0, "train");
    is_i64(RUN(command_train, "train", "--db", db, "-o", second, "--epochs=30",
               "--json"),
           0, "train again");
    ok(same_files(first, second), "the same samples give the same file");
    is_i64(model_load(&model, first, &arena, &err), 0, "it is a model");
    ok(model.errors.n == 5 && model.errors.items[0].mape < 0.2,
       "that knows its errors: %.1f %%", 100 * model.errors.items[0].mape);
    ok(model.has_comm &&
           fabs(comm_curve_gbps(&model.comm.curves[0]) - 10) < 0.1,
       "and the bandwidth of exchanges");
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", first), 0, "eval");
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", first, "--json"), 0,
           "eval as JSON");
    is_i64(RUN(command_model_info, "model info", first), 0, "model info");
    is_i64(RUN(command_model_info, "model info", first, "--json"), 0,
           "model info as JSON");
}

static void test_retrain(const char *db)
{
    const char *good = in_folder("first.nsm"), *poor = in_folder("poor.nsm");
    const char *copy = in_folder("second.nsm"), *old = in_folder("poor.nsm.1");
    struct model before, after;

    is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", good,
               "--epochs=30"),
           0, "retrain on the same samples");
    ok(same_files(good, copy), "keeps the model");
    is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", good,
               "--epochs=30", "--seed=1", "--min-gain=100%", "--exit-code"),
           4, "kept, says the exit status");
    ok(same_files(good, copy), "and it is");
    is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", good,
               "--epochs=3", "--force", "--since=2026-11-21"),
           0, "retrain by the last samples");
    is_i64(RUN(command_train, "train", "--db", db, "-o", poor, "--epochs=1"), 0,
           "a poor model");
    if (model_load(&before, poor, &arena, &err))
        ok(0, "%s", err.msg);
    is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", poor,
               "--epochs=30", "--json", "--exit-code"),
           0, "retrain it");
    if (!model_load(&after, poor, &arena, &err))
        ok(after.errors.items[0].mape < before.errors.items[0].mape,
           "it was replaced: %.1f %% before, %.1f %% after",
           100 * before.errors.items[0].mape, 100 * after.errors.items[0].mape);
    else
        ok(0, "%s", err.msg);
    ok(!model_load(&after, old, &arena, &err) && after.hash == before.hash,
       "and is still there as MODEL.1");
}

static void test_since(const char *db)
{
    static const char *const wrong[] = {"2026", "2026-13-01", "21.11.2026",
                                        "2026-11-21 04:05:06", "yesterday"};
    const char *some = in_folder("useless");
    struct model model;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        is_i64(RUN(command_train, "train", "--db", db, "-o", some, "--since",
                   wrong[i]),
               2, "no date");
        ok(strstr(err.msg, "'--since' takes a date") != NULL, "%s", err.msg);
    }
    is_i64(RUN(command_train, "train", "--db", db, "-o", some, "--epochs=9",
               "--force", "--since=2026-11-21"),
           0, "train on the last samples");
    ok(!model_load(&model, some, &arena, &err) &&
           model.training.n_held_out == 10 &&
           !strcmp(model.training.measured_from, "2026-11-21T10:00:00Z"),
       "on them alone");
    ok(model.n_environments == 1 &&
           !strcmp(environment_text(&model.environments[0], &arena),
                   "host box, Linux 6.1.0"),
       "it knows where they were measured");
    is_i64(RUN(command_train, "train", "--db", db, "-o", some, "--force",
               "--since=2026-11-21T10:00:01Z"),
           1, "none since then");
    unlink(some);
}

static void test_useless(void)
{
    const char *sums = in_folder("sums.db"), *useless = in_folder("useless");
    const char *copy = in_folder("second.nsm");

    fill_store(sums, &synthetic_setting, 300, true);
    is_i64(
        RUN(command_train, "train", "--db", sums, "-o", useless, "--epochs=1"),
        1, "a net worse than adding up is not written");
    ok(strstr(err.msg, "above the 0.00 % of the sum of their single tables as "
                       "measured") != NULL,
       "%s", err.msg);
    ok(!file_exists(useless), "there is none");
    is_i64(RUN(command_train, "train", "--db", sums, "-o", useless,
               "--epochs=1", "--force"),
           0, "unless it is asked for");
    ok(!rename(useless, copy) &&
           !RUN(command_train, "train", "--db", sums, "-o", useless,
                "--epochs=1", "--force") &&
           same_files(useless, copy),
       "it stands");
    is_i64(RUN(command_retrain, "retrain", "--db", sums, "--model", useless,
               "--epochs=30", "--exit-code"),
           4, "as a better one is still worse than adding up");
    ok(same_files(useless, copy), "it is kept");
    is_i64(RUN(command_retrain, "retrain", "--db", sums, "--model", useless,
               "--epochs=30", "--exit-code", "--force", "--min-gain=0%"),
           0, "the better one is put in by force");
    unlink(in_folder("useless.1"));
}

static void test_gains(const char *db)
{
    static const char *const wrong[] = {"2",     "se",   "%",    "-1%",
                                        "1e9se", "2 SE", "nan%", ""};
    const char *model = in_folder("first.nsm");

    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", model,
                   "--min-gain", wrong[i]),
               2, "no gain");
        ok(strstr(err.msg, "'--min-gain' ") != NULL, "%s", err.msg);
    }
}

static void test_refusals(const char *db)
{
    struct sample_setting other = synthetic_setting;
    struct model both = {.ranges = {.n = 0}};
    const char *few = in_folder("few.db"), *tens = in_folder("tens.db");
    const char *model = in_folder("first.nsm"), *copy = in_folder("second.nsm"),
               *none = in_folder("none");

    is_i64(RUN(command_train, "train", "--db", db), 2, "no --output");
    is_i64(RUN(command_train, "train", "--db", none, "-o", none), 1, "no file");
    ok(strstr(err.msg, "'neuroshard bench' makes one") != NULL, "%s", err.msg);
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", db), 1,
           "a database is no model");
    is_i64(RUN(command_model_import, "model import", folder), 2,
           "import to where");
    is_i64(RUN(command_model_import, "model import", folder, "-o", none), 1,
           "import of nothing");
    is_i64(RUN(command_train, "train", "--db", db, "-o", none, "--batch=7"), 1,
           "nothing of that batch");
    fill_store(few, &synthetic_setting, 3, false);
    fill_store(tens, &synthetic_setting, 100, false);
    is_i64(RUN(command_retrain, "retrain", "--db", few, "--model", model), 1,
           "too few samples to retrain");
    ok(strstr(err.msg, "too few samples") != NULL, "%s", err.msg);
    is_i64(RUN(command_retrain, "retrain", "--db", few, "--model", model,
               "--force"),
           1, "far too few");
    is_i64(RUN(command_retrain, "retrain", "--db", tens, "--model", model), 1,
           "too few to judge by");
    ok(strstr(err.msg, "10 held-out cases") != NULL, "%s", err.msg);
    kind = NULL;
    is_i64(RUN(command_train, "train", "--db", few, "-o", none), 0,
           "but enough for a roofline");
    is_i64(model_load(&both, none, &arena, &err), 0, "which loads");
    is_i64((int64_t)model_kind(&both), MODEL_ROOFLINE, "as one");
    ok(same_files(model, copy), "the model is untouched");
    kind = "--kind=net";
    other.batch = 1024;
    fill_store(db, &other, 10, false);
    is_i64(RUN(command_train, "train", "--db", db, "-o", none, "--epochs=1",
               "--force"),
           0, "two settings, one model");
    is_i64(model_load(&both, none, &arena, &err), 0, "which loads");
    is_i64((int64_t)both.ranges.n, 1, "of one precision and optimizer");
    is_i64(both.ranges.items[0].batch_min, 1024, "from the smaller batch");
    is_i64(both.ranges.items[0].batch_max, 4096, "to the larger");
    is_i64(RUN(command_train, "train", "--db", db, "-o", none, "--batch=4096",
               "--epochs=1", "--force"),
           0, "one setting chosen");
    is_i64(model_load(&both, none, &arena, &err), 0, "which loads, too");
    is_i64(both.ranges.items[0].batch_min, 4096, "without the other");
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", none), 0,
           "judged on both settings");
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", none,
               "--batch=4096", "--precision=fp32"),
           0, "or on one");
    is_i64(RUN(command_eval, "eval", "--db", db, "--model", none,
               "--optimizer=sgd"),
           1, "not on what was not measured");
    other.device = "cpu:other";
    fill_store(db, &other, 10, false);
    is_i64(RUN(command_train, "train", "--db", db, "-o", none), 2,
           "two devices, no choice");
    ok(strstr(err.msg, "a model is of one device") &&
           strstr(err.msg, "batch 1024; cpu:other"),
       "%s", err.msg);
    is_i64(RUN(command_train, "train", "--db", db, "-o", none,
               "--device=imaginary", "--epochs=1", "--force"),
           0, "two devices, one chosen");
    is_i64(RUN(command_eval, "eval", "--db", few, "--model", model), 1,
           "no held-out case");
}

/* Runs last, as the interrupt flag stays set. */
static void test_interrupt(const char *db)
{
    const char *model = in_folder("first.nsm");
    struct stat before, after;

    interrupt_install();
    raise(SIGINT);
    ok(!stat(model, &before), "a model");
    is_i64(RUN(command_retrain, "retrain", "--db", db, "--model", model), 130,
           "retraining is interrupted");
    ok(!stat(model, &after) && after.st_ino == before.st_ino,
       "the model is untouched");
    is_i64(RUN(command_train, "train", "--db", db, "-o", model, "--batch=4096",
               "--device=imaginary", "--force", "--kind=net"),
           130, "training is interrupted, after an epoch");
    ok(strstr(err.msg, "interrupted after epoch 1; ") != NULL, "%s", err.msg);
    ok(strstr(err.msg, "holds the best model so far, of epoch 1") != NULL,
       "which is the best until then");
}

int main(void)
{
    const char *db;

    if (!mkdtemp(folder)) {
        printf("Bail out! no folder to work in\n");
        return 1;
    }
    db = in_folder("costs.db");
    fill_store(db, &synthetic_setting, 300, false);
    test_train(db);
    test_retrain(db);
    test_gains(db);
    test_since(db);
    test_useless();
    is_i64(RUN(command_train, "train", "--db", db, "-o",
               in_folder("second.nsm"), "--epochs=30"),
           0, "the first model again");
    test_refusals(db);
    test_interrupt(db);
    for (const char *const *name =
             (const char *const[]){"costs.db", "few.db", "tens.db", "first.nsm",
                                   "second.nsm", "poor.nsm", "poor.nsm.1",
                                   "none", "sums.db", "useless", NULL};
         *name; name++)
        unlink(in_folder(*name));
    ok(!rmdir(folder), "nothing else was left behind");
    arena_release(&arena);
    return tap_done();
}
