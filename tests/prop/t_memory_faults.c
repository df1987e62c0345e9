/* SPDX-License-Identifier: MIT */
#include "tests/tap.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each allocation of a command fails in turn (tests/fault/fault.c). Then the
 * command either ends with status 1, one sentence and an unchanged output file,
 * or it does not need the allocation and prints and writes the same as always.
 * The next run removes temporary files and locks that a dead process left. */

#define MAX_FAULTS 3000 /* limit of faults for each command */

static const struct {
    const char *name;
    const char *arguments; /* arguments of the program, in shell syntax */
    const char *output;    /* file that the command writes, or NULL */
} commands[] = {
    {"plan", "plan list.csv --gpus 2 --effort 200 -o new.json --threads 1",
     "new.json"},
    {"tables", "tables list.csv --json", NULL},
    {"cost", "cost plan.json --json", NULL},
    {"explain", "explain plan.json a", NULL},
    {"emit", "emit plan.json --format torchrec -o new.json", "new.json"},
    {"train", "train --db costs.db --epochs 1 --force -o new.nsm", "new.nsm"},
    {"retrain", "retrain --db costs.db --epochs 1 --model new.nsm", "new.nsm"},
    {"eval", "eval --db costs.db --model model.nsm", NULL},
    {"model", "model info model.nsm --json", NULL},
    {"diff", "diff plan.json other.json --json", NULL},
};

#define N_COMMANDS (sizeof commands / sizeof *commands)

/* Prepares the folder in which the commands run. The model has a net, which
 * needs a few samples. The training commands then use even fewer samples,
 * because a run with 800 takes two seconds and is repeated many times. */
static const char setting_up[] =
    "printf '%s\\n' name,num_embeddings,dim,pooling_factor a,1000,16,2 "
    "b,2000,32,1 c,500,64,9 >list.csv && "
    "\"$NEUROSHARD\" plan list.csv --gpus 2 --effort 200 -o plan.json "
    ">/dev/null && "
    "\"$NEUROSHARD\" plan list.csv --gpus 2 --shard table --search reference "
    "-o other.json >/dev/null && "
    "cp \"$ROOT\"/data/measurements/cpu-amd-epyc-2t.db costs.db && "
    "chmod u+w costs.db && sqlite3 costs.db 'PRAGMA foreign_keys = ON; "
    "DELETE FROM sample WHERE id % 8; DELETE FROM comm_sample; VACUUM' && "
    "\"$NEUROSHARD\" train --db costs.db --epochs 1 --force -o model.nsm "
    ">/dev/null && "
    "sqlite3 costs.db 'PRAGMA foreign_keys = ON; "
    "DELETE FROM sample WHERE id % 48 AND case_idx % 10 < 9; VACUUM'";

static char *read_text(const char *path)
{
    FILE *fp = fopen(path, "r");
    size_t cap = 1 << 20, len;
    char *text = calloc(1, cap + 1);

    len = fp && text ? fread(text, 1, cap, fp) : 0;
    if (fp)
        fclose(fp);
    if (text)
        text[len] = '\0';
    return text;
}

/* Returns the status of a run with this environment. */
static int run(size_t c, const char *environment)
{
    char line[1024];
    int status;

    snprintf(line, sizeof line,
             "%s LD_PRELOAD=\"$FAULT_SO\" exec \"$NEUROSHARD\" %s "
             ">stdout 2>stderr",
             environment, commands[c].arguments);
    status = system(line);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

/* Restores the output file to its state before a run. */
static bool lay_old(size_t c)
{
    const char *output = commands[c].output;
    char line[256];

    if (!output)
        return true;
    snprintf(line, sizeof line, "cp %s %s",
             strcmp(commands[c].name, "retrain") ? "list.csv" : "model.nsm",
             output);
    return !system(line);
}

static size_t count_files(void)
{
    DIR *dir = opendir(".");
    size_t n = 0;

    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return n;
}

/* Counts the program's sentences on stderr, except warnings. Other output does
 * not count. */
static size_t count_sentences(const char *text)
{
    size_t n = 0;

    for (const char *at = text; (at = strstr(at, "neuroshard: ")); at++)
        n += (at == text || at[-1] == '\n') &&
             strncmp(at, "neuroshard: warning", 19) != 0;
    return n;
}

struct usual {
    char *printed, *written; /* output and file of a run without faults */
    char *old;               /* previous contents of the output file */
    size_t n_files;
};

/* Returns NULL, or the error that was seen after the n-th allocation failed. */
static const char *judge(size_t c, int status, const struct usual *usual)
{
    const char *output = commands[c].output;
    char *printed = read_text("stdout"), *said = read_text("stderr");
    char *written = output ? read_text(output) : NULL;
    const char *wrong = NULL;

    if (status > 1)
        printf("# status %d, said %s\n", status, said);
    if (status == 0) {
        if (strcmp(printed, usual->printed) != 0)
            wrong = "status 0, but it printed something else";
        else if (output && strcmp(written, usual->written) != 0)
            wrong = "status 0, but it wrote something else";
    } else if (status != 1) {
        wrong = "neither status 0 nor 1";
    } else if (count_sentences(said) != 1) {
        wrong = "not one sentence";
    } else if (output && strcmp(written, usual->old) != 0 &&
               strcmp(written, usual->written) != 0) {
        wrong = "the file is neither the old nor the new one";
    }
    free(printed);
    free(said);
    free(written);
    return wrong;
}

static void test_command(size_t c, size_t n_tries)
{
    const char *output = commands[c].output;
    struct usual usual = {0};
    size_t n_calls, n_bad = 0, n_failed = 0, first_bad = 0;
    const char *why = "";
    char *count;

    if (!lay_old(c) || run(c, "FAULT_COUNT=count")) {
        ok(0, "%s runs without faults", commands[c].name);
        return;
    }
    count = read_text("count");
    n_calls = strtoul(count, NULL, 10);
    free(count);
    usual.printed = read_text("stdout");
    usual.written = output ? read_text(output) : NULL;
    lay_old(c);
    usual.old = output ? read_text(output) : NULL;
    usual.n_files = count_files();
    if (n_tries > n_calls)
        n_tries = n_calls;
    for (size_t i = 0; i < n_tries; i++) {
        size_t nth = 1 + i * n_calls / n_tries;
        char environment[64];
        const char *wrong;
        int status;

        snprintf(environment, sizeof environment, "FAULT=memory:%zu", nth);
        lay_old(c);
        status = run(c, environment);
        n_failed += status != 0;
        wrong = judge(c, status, &usual);
        if (wrong && !n_bad++) {
            first_bad = nth;
            why = wrong;
        }
    }
    ok(n_bad == 0 && n_failed > 0,
       "%s: %zu of its %zu allocations failed, %zu were wrong",
       commands[c].name, n_tries, n_calls, n_bad);
    if (n_bad)
        printf("# the first, allocation %zu: %s\n", first_bad, why);
    lay_old(c);
    ok(!run(c, "") && count_files() == usual.n_files,
       "%s: then it runs, and leftover files are gone", commands[c].name);
    free(usual.printed);
    free(usual.written);
    free(usual.old);
}

int main(void)
{
    const char *fault = getenv("FAULT_SO");
    char folder[] = "/tmp/neuroshard-memory-XXXXXX", line[128];
    size_t n_tries = tap_size(25, MAX_FAULTS);

    if (!fault || access(fault, R_OK) || !getenv("NEUROSHARD"))
        tap_skip_all("the program is built with sanitizers");
    if (!mkdtemp(folder) || chdir(folder) || system(setting_up)) {
        printf("Bail out! cannot set up in %s\n", folder);
        return 1;
    }
    for (size_t c = 0; c < N_COMMANDS; c++)
        test_command(c, n_tries);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    if (chdir("/") || system(line))
        printf("# %s is left\n", folder);
    return tap_done();
}
