/* SPDX-License-Identifier: MIT */
/*
 * Options whose choices are read by number (cli_choice) must list them in the
 * order of their enum, in every command that has the option.
 */
#include "base/text.h"
#include "cli/planning.h"
#include "cli/training.h"
#include "device/device.h"
#include "emit/formats.h"
#include "tests/tap.h"

static const struct command *const commands[] = {
    &command_bench, &command_compare, &command_cost, &command_emit,
    &command_eval,  &command_explain, &command_plan, &command_retrain,
    &command_run,   &command_train,   &command_diff, &command_report,
};
#define N_COMMANDS (sizeof(commands) / sizeof(*commands))

static const char *const row_cuts[] = {
    [ROW_CUT_ANY] = "any", [ROW_CUT_RANKS] = "ranks"};
static const char *const kinds[] = {"best", [MODEL_ROOFLINE + 1] = "roofline",
                                    [MODEL_NET + 1] = "net",
                                    [MODEL_ROOFLINE_NET + 1] = "roofline-net",
                                    [MODEL_MONOTONE + 1] = "monotone"};
static const char *const devices[] = {
    [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda"};

static void test_option(const char *option, const char *const *names,
                        size_t n_names, size_t least_commands)
{
    size_t n_seen = 0;

    for (size_t c = 0; c < N_COMMANDS; c++)
        for (size_t g = 0; commands[c]->options[g]; g++)
            for (const struct option_spec *spec = commands[c]->options[g];
                 spec->name; spec++) {
                size_t n_listed = 0;

                if (strcmp(spec->name, option) || spec->type != OPTION_CHOICE)
                    continue;
                for (size_t i = 0; i < n_names && names[i]; i++) {
                    const int which = text_which(spec->choices, names[i]);

                    n_listed += which >= 0;
                    if (which >= 0)
                        is_i64(which, (int64_t)i, names[i]);
                }
                n_seen += n_listed > 1;
            }
    ok(n_seen >= least_commands, "--%s in %zu commands", option, n_seen);
}

int main(void)
{
    test_option("precision", precision_names, SIZE_MAX, 4);
    test_option("optimizer", optimizer_names, SIZE_MAX, 4);
    test_option("pipeline", pipeline_names, SIZE_MAX, 5);
    test_option("dedup", dedup_names, SIZE_MAX, 5);
    test_option("memory-model", memory_model_names, SIZE_MAX, 2);
    test_option("dense-optimizer", dense_optimizer_names, SIZE_MAX, 2);
    test_option("row-cut", row_cuts, 2, 2);
    test_option("kind", kinds, 4, 2);
    test_option("device", devices, 2, 2);
    ok(emit_formats[text_which(EMIT_FORMAT_NAMES, "dlrm")] == &emit_dlrm &&
           emit_formats[text_which(EMIT_FORMAT_NAMES, "text")] == &emit_text,
       "formats by number");
    return tap_done();
}
