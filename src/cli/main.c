/* SPDX-License-Identifier: MIT */
#include "base/cli_answer.h"
#include "base/cpu.h"
#include "base/file.h"
#include "base/file_claims.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static const struct command *const commands[] = {
    &command_plan,          &command_compare,        &command_cost,
    &command_diff,          &command_explain,        &command_report,
    &command_run,           &command_emit,           &command_tables,
    &command_tables_import, &command_tables_profile, &command_bench,
    &command_record,        &command_train,          &command_eval,
    &command_retrain,       &command_model_info,     &command_model_import,
    &command_db_info,       &command_db_check,       &command_db_merge,
    &command_db_export,     &command_db_import,      &command_gpus,
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void print_usage(void)
{
    printf("usage: neuroshard COMMAND [options] [files]\n\n"
           "plans which GPU holds which piece of which embedding table\n\n"
           "commands:\n");
    for (size_t i = 0; i < N_COMMANDS; i++)
        printf("  %-15s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n'neuroshard help COMMAND' lists a command's options; 'man "
           "neuroshard' has the\nmanual.\n");
}

/* Prints the values of an option: "a|b:NAME" or "a, b:NAME" as "a" and "b:".
 * Words in capitals or brackets are placeholders and are left out. */
static void print_values(const char *key, const char *choices)
{
    printf("%s\t\n", key);
    while (choices && *choices) {
        const size_t len = strcspn(choices, "|,");
        const size_t n_said = strcspn(choices, "[ABCDEFGHIJKLMNOPQRSTUVWXYZ");

        if (isalnum((unsigned char)*choices) && n_said)
            printf("%s\t%.*s\t\n", key, (int)(n_said < len ? n_said : len),
                   choices);
        choices += len;
        choices += strspn(choices, "|, ");
    }
}

static void print_option(const char *command, const struct option_spec *spec,
                         struct arena *arena)
{
    const char *choices = spec->choices;

    printf("%s=\t--%s\t%s\n", command, spec->name, spec->help);
    if (spec->type == OPTION_FLAG)
        return;
    if (!choices && spec->type == OPTION_STRING)
        choices = spec->argument;
    if (!strcmp(spec->name, "gpu"))
        choices =
            text_list(file_list_data("gpus", ".json", arena), ", ", arena);
    print_values(arena_printf(arena, "%s=--%s", command, spec->name), choices);
    if (spec->letter)
        print_values(arena_printf(arena, "%s=-%c", command, spec->letter),
                     choices);
}

/* Prints the words that a shell can complete, one per line as
 * "KEY\tWORD\tHELP". The table lists the key of each kind of word. An option
 * that takes a value also has a line "KEY\t". `before` is the name of the
 * command that precedes this command in the list.
 *
 * first word of a command      empty second word                  the first
 * word option                       "COMMAND=" value of an option
 * "COMMAND=--OPTION" or "COMMAND=-O" */
static void print_words(const struct command *command, const char *before,
                        struct arena *arena)
{
    struct cli cli = {.command = command, .arena = arena};
    const char *name = command->name;
    const size_t len = strcspn(name, " ");

    if (strncmp(name, before, len) != 0)
        printf("\t%.*s\t%s\n", (int)len, name,
               name[len] ? "" : command->summary);
    if (name[len])
        printf("%.*s\t%s\t%s\n", (int)len, name, name + len + 1,
               command->summary);
    cli_list_options(&cli);
    for (size_t i = 0; i < cli.n_specs; i++)
        print_option(name, cli.specs[i], arena);
}

static int run_command(const struct command *command, int argc, char **argv,
                       struct arena *arena, struct err *err)
{
    struct cli *cli = NULL;
    int rc;

    file_claims_begin();
    rc = cpu_check_environment(err);
    if (!rc)
        rc = cli_parse(&cli, command, argc, argv, arena, err);
    if (!rc && cli) {
        cli_answer_as(cli_given(cli, "json"), cli_columns(cli));
        if (command->ends_at_once)
            cli_end_at_once();
        rc = command->run(cli, err);
        interrupt_keep(true);
    }
    file_claims_end();
    return rc;
}

/* Makes sure that all standard output was written. A full disk is reported as
 * an error. */
static int finish_stdout(struct err *err)
{
    errno = 0;
    if (fflush(stdout) || ferror(stdout) || fclose(stdout))
        return err_set(err, ERR_IO, "cannot write standard output: %s",
                       errno ? strerror(errno) : "an earlier write failed");
    return 0;
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i]->name, name))
            return commands[i];
    return NULL;
}

/* Lists how the commands that begin with `begin` continue: for "tables ", the
 * words "import" and so on. Returns the number of words. */
static size_t list_words(const char *names[N_COMMANDS + 1], const char *begin)
{
    const size_t len = strlen(begin);
    size_t n = 0;

    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strncmp(commands[i]->name, begin, len))
            names[n++] = commands[i]->name + len;
    names[n] = NULL;
    return n;
}

/* Returns true if the word after `begin` is probably a misspelt second word of
 * a two-word command: it resembles such a second word, and there is no file of
 * this name. */
static bool is_misspelt(const char *begin, const char *second)
{
    const char *names[N_COMMANDS + 1];

    list_words(names, begin);
    return !strpbrk(second, "./") && !file_exists(second) &&
           text_nearest(names, second);
}

/* Sets the error for an unknown command. `begin` is the first word of the
 * command followed by a blank. */
static int no_command(const char *first, const char *begin, const char *second,
                      struct arena *arena, struct err *err)
{
    const char *names[N_COMMANDS + 1], *nearest, *meant = "";
    const bool is_pair = list_words(names, begin) > 0;
    const char *word = is_pair ? second : first;

    if (!is_pair)
        list_words(names, begin = "");
    nearest = text_nearest(names, word);
    if (nearest)
        meant = arena_printf(arena, "did you mean '%s%s'? ", begin, nearest);
    else if (is_pair)
        meant = arena_printf(arena, "it is followed by %s; ",
                             text_list(names, " or ", arena));
    return err_usage(err, "no command '%s%s'; %s'neuroshard --help' lists them",
                     *word ? begin : "", *word ? word : first, meant);
}

/* Runs the command that argv names. "help COMMAND" is the same as "COMMAND
 * --help". */
static int dispatch(int argc, char **argv, struct arena *arena, struct err *err)
{
    char help[] = "--help", *helped[] = {NULL, help, NULL};
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct command *command;
    const bool is_help = name && !strcmp(name, "help");
    const char *begin, *second;
    int n_words;

    if (!name)
        return err_usage(err,
                         "no command given; 'neuroshard --help' lists them");
    if ((is_help && argc == 2) || !strcmp(name, "--help") ||
        !strcmp(name, "-h")) {
        print_usage();
        return 0;
    }
    if (!strcmp(name, "--version")) {
        printf("neuroshard " NEUROSHARD_VERSION " (build %s)\n", build_id);
        return 0;
    }
    if (!strcmp(name, "complete")) { /* used by the scripts in data/completion;
                                        not listed in --help */
        for (size_t i = 0; i < N_COMMANDS; i++)
            print_words(commands[i], i ? commands[i - 1]->name : "", arena);
        return 0;
    }
    name = argv[1 + is_help];
    second = argc > 2 + is_help ? argv[2 + is_help] : "";
    begin = arena_printf(arena, "%s ", name);
    command = find_command(arena_printf(arena, "%s%s", begin, second));
    n_words = command ? 2 : 1;
    if (!command && !is_misspelt(begin, second))
        command = find_command(name);
    if (!command)
        return no_command(name, begin, second, arena, err);
    if (is_help)
        return run_command(command, 2, helped, arena, err);
    return run_command(command, argc - n_words, argv + n_words, arena, err);
}

/* Looks for --json before the command's options are parsed, so that an error in
 * the options is also reported as JSON. */
static bool asks_for_json(char **argv)
{
    while (*argv && strcmp(*argv, "--") != 0 && strcmp(*argv, "--json") != 0)
        argv++;
    return *argv && !strcmp(*argv, "--json");
}

int main(int argc, char **argv)
{
    struct err err = {0}, unwritten = {0};
    struct arena arena = {0};
    int rc;

    interrupt_install();
    json_init();
    /* Ignoring the signal makes a write beyond the file-size limit fail with an
     * error, as on a full disk. */
    signal(SIGXFSZ, SIG_IGN);
    cli_answer_as(asks_for_json(argv), SIZE_MAX);
    rc = dispatch(argc, argv, &arena, &err);
    arena_release(&arena);
    /* After an interrupt a command that has a best result writes this result
     * and returns success. */
    if (rc >= 0 && interrupt_requested())
        rc = err_set(&err, ERR_INTERRUPTED,
                     "interrupted; the result is the best found until then");
    /* the message is empty if a process of --ranks has printed the error
     * already */
    if (rc >= 0 || *err.msg)
        cli_end_answer(rc < 0 ? &err : NULL);
    if (finish_stdout(&unwritten) && (rc >= 0 || err.code == ERR_INTERRUPTED)) {
        err = unwritten;
        rc = -1;
    }
    if (rc >= 0)
        return rc;
    if (*err.msg)
        cli_say(err.msg);
    return err_exit_status(err.code);
}
