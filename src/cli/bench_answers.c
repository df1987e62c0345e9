/* SPDX-License-Identifier: MIT */
#include "cli/bench_answers.h"

#include "base/cli_answer.h"

const char *bench_stopped_by(const struct bench_result *result)
{
    if (result->interrupted)
        return "interrupt";
    return result->out_of_time ? "time" : "done";
}

void bench_print_device(const struct device *device)
{
    cli_printf("device          %s, %s", device->facts.name, device->facts.isa);
    if (device->facts.n_threads)
        cli_printf(", %u thread%s", device->facts.n_threads,
                   device->facts.n_threads == 1 ? "" : "s");
    cli_printf("\n");
}

int bench_tell_interrupt(const struct bench_result *result, struct err *err)
{
    if (!result->interrupted)
        return 0;
    return err_set(err, ERR_INTERRUPTED,
                   "interrupted; the measured samples are stored, and the same "
                   "command continues from there");
}
