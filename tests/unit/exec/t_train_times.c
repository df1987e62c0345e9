/* SPDX-License-Identifier: MIT */
/* Times of the phases of a step, from the times of each rank. */
#include "exec/train_times.h"

#include "tests/tap.h"

#include <string.h>

#define N_RANKS 2u

/* Rank 1 is ready 4 ms later for the exchange of gradients. The exchange ends 4
 * ms earlier on it: the data of rank 0 have arrived, and its own data are still
 * on their way. The all-reduce after the exchange waits for them. */
static const struct step_times late[N_RANKS] = {
    {.phases_ms = {[TRAIN_INPUT] = 7,
                   [TRAIN_FORWARD] = 1,
                   [TRAIN_OUTPUT] = 8,
                   [TRAIN_DENSE] = 10,
                   [TRAIN_GRADIENT] = 12,
                   [TRAIN_DENSE_REDUCE] = 5,
                   [TRAIN_BACKWARD] = 2,
                   [TRAIN_REPLICAS] = 6,
                   [TRAIN_DENSE_UPDATE] = 1}},
    {.phases_ms = {[TRAIN_INPUT] = 6,
                   [TRAIN_FORWARD] = 2,
                   [TRAIN_OUTPUT] = 8,
                   [TRAIN_DENSE] = 14,
                   [TRAIN_GRADIENT] = 4,
                   [TRAIN_DENSE_REDUCE] = 9,
                   [TRAIN_BACKWARD] = 5,
                   [TRAIN_REPLICAS] = 3,
                   [TRAIN_DENSE_UPDATE] = 1}},
};

static void test_phases(void)
{
    double phases_ms[N_TRAIN_PHASES];

    train_times_of_step(late, N_RANKS, false, phases_ms);
    is_near(phases_ms[TRAIN_INPUT], 7, 0, "the input of the slowest rank");
    is_near(phases_ms[TRAIN_FORWARD], 2, 0, "as are lookups");
    /* ready at 8 and 8, done at 16 and 16 */
    is_near(phases_ms[TRAIN_OUTPUT], 8, 0, "an exchange");
    is_near(phases_ms[TRAIN_DENSE], 14, 0, "the slowest dense part");
    /* ready at 26 and 30, done at 38 and 34 */
    is_near(phases_ms[TRAIN_GRADIENT], 8, 0, "from the last to the last");
    /* ready at 38 and 34, done at 43 and 43 */
    is_near(phases_ms[TRAIN_DENSE_REDUCE], 5, 0, "no wait for others");
    is_near(phases_ms[TRAIN_BACKWARD], 5, 0, "the slowest backward");
    /* ready at 45 and 48, done at 51 and 51 */
    is_near(phases_ms[TRAIN_REPLICAS], 3, 0, "replicas wait, too");
    is_near(phases_ms[TRAIN_DENSE_UPDATE], 1, 0, "and the update");
}

/* With a pipeline, the input runs during the dense part, and the gradients of
 * rank 0 wait 3 ms for it. */
static void test_pipelined(void)
{
    struct step_times times[N_RANKS];
    double phases_ms[N_TRAIN_PHASES];

    memcpy(times, late, sizeof(times));
    times[0].wait_ms = 3;
    times[0].phases_ms[TRAIN_GRADIENT] = 9;
    train_times_of_step(times, N_RANKS, true, phases_ms);
    is_near(phases_ms[TRAIN_INPUT], 7, 0, "the input of the next step");
    is_near(phases_ms[TRAIN_OUTPUT], 8, 0, "ran beside the dense part");
    /* ready at 19 + 3 and 24, done at 31 and 28 */
    is_near(phases_ms[TRAIN_GRADIENT], 7, 0, "a wait is not part of it");
    times[0].wait_ms = 9;
    train_times_of_step(times, N_RANKS, true, phases_ms);
    /* ready at 19 + 9 and 24, done at 37 and 28 */
    is_near(phases_ms[TRAIN_GRADIENT], 9, 0, "the rank that waits is the last");
}

int main(void)
{
    test_phases();
    test_pipelined();
    return tap_done();
}
