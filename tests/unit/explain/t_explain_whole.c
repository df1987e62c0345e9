/* SPDX-License-Identifier: MIT */
/* Complete texts of explanations: errors, pieces that cost little, memory, and
 * plans that a new search would find. */
#include "core/plan_error.h"
#include "tests/unit/explain/explain_fixture.h"

static void same(const char *got, const char *want, const char *name)
{
    if (!ok(!strcmp(got, want), "%s", name))
        printf("---\n%s---\n", got);
}

/* A step whose error is known, and the gains of three new plans. One gain is
 * below the error, and one plan was not found. */
static void test_anew(void)
{
    struct plan plan = make_plan();
    struct oracle oracle = make_oracle(&plan.problem, false);
    struct explained explained;
    struct plan fresh = make_plan(), larger = make_plan();
    const struct scenario anew[] = {
        {.name = "as it is", .is_fresh = true, .plan = &fresh},
        {.name = "on 4 GPUs", .is_fresh = true, .plan = &larger},
        {.name = "with fp16 weights", .is_fresh = true, .why_not = "no room"}};

    open_explained(&explained, &plan, &oracle);
    explained.anew = anew;
    explained.n_anew = 3;
    memset(plan.exposed_ms, 0, sizeof(plan.exposed_ms));
    plan.exposed_ms[STEP_FORWARD] = plan.total_ms;
    plan.cost.lookup_error.frac = 0.1 / RATIO_ERROR_SHARE;
    fresh = larger = plan;
    fresh.total_ms = fresh.exposed_ms[STEP_FORWARD] = 60;
    fresh.stopped = "time";
    larger.total_ms = larger.exposed_ms[STEP_FORWARD] = 40;
    same(
        plan_text(&explained),
        "step    61.6000 ms +-12 %\n"
        "        by plain (analytic)\n"
        "        as the cost model's authors published it, whatever the pip"
        "eline\n"
        "binds   GPU 1, the slowest; compute, 52.000 ms of the GPU work; table "
        "'hot' on GPU 1, without which it is 44.000 ms shorter\n"
        "        GPU 1 takes 61.6000 ms: compute 52.0000, backward communic"
        "ation 3.2000,\n"
        "        forward communication 6.4000\n"
        "bound   none is proven for this cost model\n"
        "memory  fits: GPU 2 is fullest, 62.5 KiB of 97.7 KiB (64 %); "
        "a reserve of 0 % is kept, up to 36 % fits\n"
        "        does not bind: each piece of GPU 1 has room on another GPU"
        "\n"
        "\n"
        "         total    sooner   compute  bwd comm  fwd comm memory     "
        "         fits\n"
        "GPU         ms     by ms        ms        ms        ms      %     "
        "  free  of 1\n"
        "1      61.6000    0.0000   52.0000    3.2000    6.4000   40.0    2"
        "34 KiB      -\n"
        "2      17.6000   44.0000    8.0000    3.2000    6.4000   64.0   35"
        ".2 KiB      1\n"
        "0      10.4000   51.2000    8.0000    0.8000    1.6000   10.7    2"
        "62 KiB      2\n"
        "\n"
        "                                                      without   be"
        "st elsewhere\n"
        "piece on GPU 1         kind      columns       rows  saves ms   GP"
        "U  change ms\n"
        "hot                    table          16       2000   44.0000     "
        "0    +1.6000\n"
        "wide                   column         16        500    8.8000     "
        "0    -8.8000\n"
        "\n"
        "4 moves and 3 swaps of pieces of GPU 1 tried; these gain more than\n"
        "the error of such a gain, 6.1600 ms:\n"
        "  gain ms to GPU a piece of             swapped with one there of\n"
        "   8.8000      0 hot                    small\n"
        "   8.8000      0 wide                   -\n"
        "   8.8000      2 wide                   -\n"
        "\n"
        "fresh plan                 step ms    GPU ms   faster   +- % gain\n"
        "as it is                   60.0000   60.0000    1.027   10.3 within "
        "the error\n"
        "on 4 GPUs                  40.0000   40.0000    1.540   15.4 beyond "
        "the error\n"
        "with fp16 weights                -         -        -      - no plan "
        "found\n"
        "a fresh plan is 1.03x faster, within the error of +-10 %: keep this "
        "plan\n"
        "the search for it was cut short by the time limit: a longer one may "
        "find more\n",
        "an error, and plans anew");
    same(table_text(&explained, 2),
         "table   'wide': 500 rows x 48, pooling 0.25\n"
         "now     2 column shards on GPUs 1-2\n"
         "work    61.6000 ms +-12 % by plain (analytic), 52.8000 ms without "
         "it\n"
         "why     not the best: whole on GPU 0 saves 8.8000 ms\n"
         "\n"
         "all else as it is                                GPU ms     change"
         "\n"
         "now                                             61.6000\n"
         "whole on GPU 0                                  52.8000    -8.8000"
         "\n"
         "whole on GPU 2                                  52.8000    -8.8000"
         "\n"
         "whole on GPU 1                                  79.2000   +17.6000"
         "\n"
         "columns 0-16 to GPU 0                           52.8000    -8.8000"
         "\n"
         "columns 0-16 to GPU 2                           52.8000    -8.8000"
         "\n"
         "columns 16-48 to GPU 0                          61.6000    +0.0000"
         "\n"
         "2 column pieces on GPUs 2 0                     52.8000    -8.8000"
         "\n"
         "3 column pieces on GPUs 2 0 1                   61.6000    +0.0000"
         "\n"
         "replicated                                      64.8000    +3.2000"
         "\n"
         "not in rows                                           -          -"
         "  no: the cost model has no price for it\n"
         "not in a grid                                         -          -"
         "  no: the cost model has no price for it\n",
         "a table with an error");
    what_if_release(&explained.what_if);
}

/* The pieces of a GPU that does not limit the step cost nothing. No other GPU
 * has free memory. */
static void test_other_gpu(void)
{
    struct plan plan = make_plan();
    struct oracle oracle = make_oracle(&plan.problem, true);
    struct explained explained;

    for (int r = 0; r < 3; r++)
        plan.problem.cluster.memory_bytes[r] = 160000;
    open_explained(&explained, &plan, &oracle);
    explained.gpu = 2;
    same(
        plan_text(&explained),
        "step    61.6000 ms\n"
        "        by plain (analytic)\n"
        "        as the cost model's authors published it, whatever the pip"
        "eline\n"
        "binds   GPU 1, which is ready last; compute, 52.000 ms of the GPU work"
        "; table 'hot' on GPU 1, without which it is 44.000 ms shorter\n"
        "        GPU 1 takes 55.2000 ms: compute 52.0000, backward communic"
        "ation 3.2000\n"
        "        the forward communication then takes 6.4000 ms, longest on"
        " GPU 1\n"
        "bound   none is proven for this cost model\n"
        "memory  fits: GPU 1 is fullest, 156 KiB of 156 KiB (100 %); "
        "a reserve of 0 % is kept, up to 0 % fits\n"
        "        does not bind: each piece of GPU 2 has room on another GPU"
        "\n"
        "\n"
        "         ready    sooner   compute  bwd comm  fwd comm memory     "
        "         fits\n"
        "GPU         ms     by ms        ms        ms        ms      %     "
        "  free  of 2\n"
        "1      55.2000    0.0000   52.0000    3.2000    6.4000  100.0     "
        "   0 B      0\n"
        "0      11.2000   44.0000    8.0000    3.2000    6.4000   20.0    1"
        "25 KiB      1\n"
        "2      11.2000   44.0000    8.0000    3.2000    6.4000   40.0   93"
        ".8 KiB      -\n"
        "\n"
        "table on GPU 2 rows dim  cut            GPUs   GiB alone ms\n"
        "wide/2          500  48  columns 16-48  1-2  0.000    8.000 !\n"
        "alone ms: look-ups and update of a piece alone on its GPU, by plain "
        "(analytic)\n"
        "! training changes: each column piece has optimizer values of its "
        "own\n"
        "\n"
        "none of the 1 pieces on GPU 2 costs more than\n"
        "a thousandth of the step, 0.0616 ms\n"
        "\n"
        "2 moves and 2 swaps of pieces of GPU 2 tried; none gain more than\n"
        "a thousandth of the step, 0.0616 ms\n",
        "GPU 2, which does not bind");
    explained.gpu = 0;
    same(
        plan_text(&explained),
        "step    61.6000 ms\n"
        "        by plain (analytic)\n"
        "        as the cost model's authors published it, whatever the pip"
        "eline\n"
        "binds   GPU 1, which is ready last; compute, 52.000 ms of the GPU work"
        "; table 'hot' on GPU 1, without which it is 44.000 ms shorter\n"
        "        GPU 1 takes 55.2000 ms: compute 52.0000, backward communic"
        "ation 3.2000\n"
        "        the forward communication then takes 6.4000 ms, longest on"
        " GPU 1\n"
        "bound   none is proven for this cost model\n"
        "memory  fits: GPU 1 is fullest, 156 KiB of 156 KiB (100 %); "
        "a reserve of 0 % is kept, up to 0 % fits\n"
        "        does not bind: each piece of GPU 0 has room on another GPU"
        "\n"
        "\n"
        "         ready    sooner   compute  bwd comm  fwd comm memory     "
        "         fits\n"
        "GPU         ms     by ms        ms        ms        ms      %     "
        "  free  of 0\n"
        "1      55.2000    0.0000   52.0000    3.2000    6.4000  100.0     "
        "   0 B      0\n"
        "0      11.2000   44.0000    8.0000    3.2000    6.4000   20.0    1"
        "25 KiB      -\n"
        "2      11.2000   44.0000    8.0000    3.2000    6.4000   40.0   93"
        ".8 KiB      1\n"
        "\n"
        "table on GPU 0  rows dim  cut    GPUs   GiB alone ms\n"
        "small          1,000   8  whole  0    0.000    8.000\n"
        "alone ms: look-ups and update of a piece alone on its GPU, by plain "
        "(analytic)\n"
        "\n"
        "none of the 1 pieces on GPU 0 costs more than\n"
        "a thousandth of the step, 0.0616 ms\n"
        "\n"
        "2 moves and 3 swaps of pieces of GPU 0 tried; these gain more than\n"
        "a thousandth of the step, 0.0616 ms:\n"
        "  gain ms to GPU a piece of             swapped with one there of\n"
        "   4.0000      1 small                  hot\n",
        "GPU 0, whose piece costs nothing");
    what_if_release(&explained.what_if);
}

/* A plan on two GPUs, one of which holds nothing. */
static void test_nothing(void)
{
    struct plan plan = fixture_plan(2, 2, 64);
    struct oracle oracle = make_oracle(&plan.problem, true);
    struct explained explained;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_whole(&plan, "only", 10, 4, 1, 0);
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    explained.gpu = 1;
    same(
        plan_text(&explained),
        "step    5.2000 ms\n"
        "        by plain (analytic)\n"
        "        as the cost model's authors published it, whatever the pip"
        "eline\n"
        "binds   GPU 0, which is ready last; compute, 4.000 ms of the GPU work;"
        " table 'only' on GPU 0, without which it is 5.200 ms shorter\n"
        "        GPU 0 takes 4.4000 ms: compute 4.0000, backward communicat"
        "ion 0.4000\n"
        "        the forward communication then takes 0.8000 ms, longest on"
        " GPU 0\n"
        "bound   none is proven for this cost model\n"
        "memory  fits: GPU 0 is fullest, 160 B of 80.0 GiB (0 %); "
        "a reserve of 0 % is kept, up to 99.9 % fits\n"
        "        GPU 1 holds nothing\n"
        "\n"
        "         ready    sooner   compute  bwd comm  fwd comm memory     "
        "         fits\n"
        "GPU         ms     by ms        ms        ms        ms      %     "
        "  free  of 1\n"
        "0       4.4000    0.0000    4.0000    0.4000    0.8000    0.0   80"
        ".0 GiB      0\n"
        "1       0.4000    4.0000    0.0000    0.4000    0.8000    0.0   80"
        ".0 GiB      -\n",
        "a GPU that holds nothing");
    what_if_release(&explained.what_if);
}

/* At most 20,000 moves are tried; 700 pieces on 32 other GPUs would be
 * 22,400. */
static void test_most(void)
{
    struct plan plan = fixture_plan(33, 33, 64);
    struct oracle oracle = make_oracle(&plan.problem, false);
    struct explained explained;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_table(&plan, "wide", 10, 2800, 1);
    for (uint32_t i = 0; i < 700; i++)
        fixture_shard(&plan, 0, 10, 4 * i, 4 * i + 4, 0);
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    is_in(plan_text(&explained),
          "\n20000 moves and 0 swaps of pieces of GPU 0 tried; these");
    what_if_release(&explained.what_if);
}

int main(void)
{
    test_most();
    test_anew();
    test_other_gpu();
    test_nothing();
    arena_release(&arena);
    return tap_done();
}
