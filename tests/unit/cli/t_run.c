/* SPDX-License-Identifier: MIT */
/* The run command: the plans that it accepts, its warnings, its output, the
 * samples that it stores, and its exit codes. */
#include <fcntl.h>
#include <unistd.h>

#include "base/cli_answer.h"
#include "base/file.h"
#include "base/file_write.h"
#include "cli/planning.h"
#include "device/interference_probe.h"
#include "io/store.h"
#include "io/store_rows.h"
#include "tests/tap.h"

#define MAX_ARGS 16

static char folder[] = "/tmp/t_run_XXXXXX";
static struct arena arena;
static struct err err;
/* The last command's standard output and standard error. */
static const char *printed, *said;

static const char *in_folder(const char *name)
{
    return arena_printf(&arena, "%s/%s", folder, name);
}

/* Replaces the interference probe: nothing disturbs this machine, and a probe
 * would take most of the test's time. */
int interference_probe_open(struct interference_probe **out,
                            struct device *device, struct err *e)
{
    (void)device, (void)e;
    *out = mem_alloc(1, 1);
    return 0;
}

void interference_probe_close(struct interference_probe *interference)
{
    mem_free(interference);
}

int interference_probe_learn(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *e)
{
    (void)interference, (void)sink, (void)setting, (void)e;
    return 0;
}

int interference_probe_teach(struct interference_probe *interference,
                             const struct sample_sink *sink,
                             const struct sample_setting *setting,
                             struct err *e)
{
    (void)interference, (void)sink, (void)setting, (void)e;
    return 0;
}

int interference_probe_judge(struct interference_probe *interference,
                             double begin_ms,
                             enum interference_verdict *verdict, struct err *e)
{
    (void)interference, (void)begin_ms, (void)e;
    *verdict = PROBE_QUIET;
    return 0;
}

static int redirect(int fd, const char *path)
{
    const int keep = dup(fd);
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    dup2(file, fd);
    close(file);
    return keep;
}

static const char *text_of(const char *path)
{
    const char *data = "";
    struct err ignored = {0};
    size_t len = 0;

    if (file_read(&data, &len, path, &arena, &ignored))
        return "";
    return arena_strndup(&arena, data, len);
}

static int run(const struct command *command, const char *const *words)
{
    const char *out = in_folder("out"), *messages = in_folder("messages");
    int argc = 0, rc, keep_out, keep_err;
    char *argv[MAX_ARGS + 1] = {NULL};
    struct cli *cli;

    for (; words[argc] && argc < MAX_ARGS; argc++)
        argv[argc] = arena_strdup(&arena, words[argc]);
    err = (struct err){0};
    fflush(stdout);
    keep_out = redirect(STDOUT_FILENO, out);
    keep_err = redirect(STDERR_FILENO, messages);
    rc = cli_parse(&cli, command, argc, argv, &arena, &err);
    if (!rc) {
        cli_answer_as(cli_given(cli, "json"), SIZE_MAX);
        rc = command->run(cli, &err);
        cli_end_answer(rc < 0 ? &err : NULL);
    }
    fflush(stdout);
    dup2(keep_out, STDOUT_FILENO);
    dup2(keep_err, STDERR_FILENO);
    close(keep_out);
    close(keep_err);
    printed = text_of(out);
    said = text_of(messages);
    return rc < 0 ? err_exit_status(err.code) : rc;
}
#define RUN(command, ...) \
    run(&(command), (const char *const[]){__VA_ARGS__, NULL})

/* Writes a copy of the plan in which text `is` replaces `was`; returns its
 * path. */
static const char *edited(const char *from, const char *was, const char *is)
{
    const char *text = text_of(in_folder(from)), *at = strstr(text, was);
    const char *path = in_folder("edited.json");

    if (!at || file_write(path,
                          arena_printf(&arena, "%.*s%s%s", (int)(at - text),
                                       text, is, at + strlen(was)),
                          strlen(text) - strlen(was) + strlen(is), &err)) {
        printf("Bail out! no '%s' in %s %s\n", was, from, err.msg);
        exit(1);
    }
    return path;
}

/* Makes "plan.json", a plan that waits for its host, and "free.json", one that
 * does not. */
static void make_plans(void)
{
    static const char list[] = "name,num_embeddings,dim,pooling_factor\n"
                               "a,1000,16,4\nb,500,8,2\n";
    static const char *const names[] = {"plan.json", "free.json"};

    if (file_write(in_folder("list.csv"), list, strlen(list), &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    for (int i = 0; i < 2; i++)
        if (RUN(command_plan, "plan", in_folder("list.csv"), "--gpus=2",
                "--cost=roofline:h100", "--batch=64", "--no-rivals",
                "--effort=0", i ? "--host-ms=0" : "--seed=0", "-o",
                in_folder(names[i]))) {
            printf("Bail out! no plan: %s%s\n", err.msg, said);
            exit(1);
        }
}

static int run_plan(const char *path, const char *option)
{
    return RUN(command_run, "run", path, "--iterations=12", "--threads=1",
               "--no-check", option);
}

/* Costs that were measured on another machine cause a warning. Both the whole
 * device name and the instruction set have to match. */
static void test_other_device(void)
{
    struct device *device;
    const char *name, *isa;

    if (device_open(&device, DEVICE_CPU, 0, 1, &err)) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
    name = arena_strdup(&arena, device->facts.name);
    isa = arena_strdup(&arena, device->facts.isa);
    device_close(device);
    {
        const struct {
            const char *measured;
            bool is_same;
        } CASES[] = {
            {"null", true},
            {arena_printf(&arena, "\"%s, %s\"", name, isa), true},
            {arena_printf(&arena, "\"%s, other\"", name), false},
            {arena_printf(&arena, "\"%s-2, %s\"", name, isa), false},
            {arena_printf(&arena, "\"x%s, %s\"", name, isa), false},
            {"\"cuda:NVIDIA H100, sm_90\"", false},
        };

        for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
            const char *plan = edited(
                "plan.json", "\"device\": null",
                arena_printf(&arena, "\"device\": %s", CASES[i].measured));

            is_i64(run_plan(plan, "--seed=1"), 0, "it runs");
            ok((strstr(said,
                       "warning: the plan's cost model was measured on") ==
                NULL) == CASES[i].is_same,
               "measured on %s: %s", CASES[i].measured, said);
        }
    }
}

/* Samples are stored in a database, and nowhere else. */
static void test_stored(void)
{
    const char *db = in_folder("costs.db");
    struct sample_setting *settings;
    struct store *store = NULL;
    size_t n = 0;

    is_i64(run_plan(in_folder("plan.json"), "--json"), 0, "without a database");
    ok(!strstr(said, "stored"), "nothing is stored: %s", said);
    is_i64(
        run_plan(in_folder("plan.json"), arena_printf(&arena, "--db=%s", db)),
        0, "with one");
    ok(strstr(said, "stored 2 samples\n") != NULL, "the work of two GPUs: %s",
       said);
    is_i64(
        run_plan(in_folder("plan.json"), arena_printf(&arena, "--db=%s", db)),
        0, "once more");
    ok(strstr(said, "stored 0 samples\n") != NULL,
       "work that is there stays: %s", said);
    ok(!store_open(&store, db, STORE_READ, &err) &&
           !store_settings(store, &settings, &n, &arena, &err) && n >= 1,
       "it is in the database %s", err.msg);
    store_close(store);
}

/* Running another job prices the plan anew, with the plan's own cost model. */
static void test_job(void)
{
    const char *line =
        strstr(text_of(in_folder("free.json")), "  \"cost_model\": ");
    const char *unknown = edited(
        "free.json", arena_strndup(&arena, line, strcspn(line, "\n") + 1), "");

    is_i64(run_plan(unknown, "--seed=1"), 0,
           "nobody asks for the cost model of the same job");
    is_i64(run_plan(unknown, "--pipeline=none"), 1, "of another one");
    ok(strstr(err.msg, "the plan names no cost model") != NULL, "%s", err.msg);
    is_i64(run_plan(in_folder("plan.json"), "--pipeline=none"), 0,
           "which is priced anew");
    ok(strstr(printed, "step: pipeline none") != NULL &&
           !strstr(printed, "the model's"),
       "%s", printed);
    is_i64(run_plan(in_folder("plan.json"), "--seed=1"), 0, "the plan's own");
    ok(strstr(printed, "step: pipeline sdd") && !strstr(printed, "2.060 ms"),
       "no host is waited for here");
}

static void test_output(void)
{
    const char *plan = in_folder("plan.json");

    is_i64(RUN(command_run, "run", plan, "--iterations=12", "--threads=1"), 0,
           "with a comparison");
    ok(strstr(printed, "against the unsharded reference") &&
           strstr(printed, "1,536 outputs") && printed[0] != '{',
       "as text");
    is_i64(run_plan(plan, "--json"), 0, "without one");
    ok(printed[0] == '{' && strstr(printed, "\"check\": null") &&
           strstr(printed, "\"iterations\": 12") &&
           strstr(printed, "\"seed\": 0"),
       "as JSON");
    is_i64(run_plan(plan, "--seed=9"), 0, "another seed");
    ok(strstr(printed, "rows x 1, seed 9") &&
           strstr(printed, "not compared with the unsharded reference"),
       "is said");
    is_i64(run_plan(plan, "--scale-rows=0.5"), 0, "fewer rows");
    ok(strstr(printed, "rows x 0.5") != NULL, "too");
    is_i64(run_plan(plan, "--memory=1MiB"), 1, "too little memory");
    ok(strstr(err.msg, "its batch alone does not fit") != NULL, "%s", err.msg);
    is_i64(run_plan(in_folder("list.csv"), "--seed=1"), 1, "no plan at all");
}

int main(void)
{
    if (!mkdtemp(folder)) {
        printf("Bail out! no folder to work in\n");
        return 1;
    }
    make_plans();
    test_other_device();
    test_stored();
    test_job();
    test_output();
    for (const char *const *name =
             (const char *const[]){"list.csv", "plan.json", "free.json",
                                   "edited.json", "out", "messages", "costs.db",
                                   NULL};
         *name; name++)
        unlink(in_folder(*name));
    ok(!rmdir(folder), "nothing else was left behind");
    arena_release(&arena);
    return tap_done();
}
