/* SPDX-License-Identifier: MIT */
#include "core/plan_error.h"
#include "tests/unit/explain/explain_fixture.h"

#include <stdlib.h>

static char *json_text(json_t *root)
{
    char *dumped = json_dumps(root, JSON_COMPACT | JSON_REAL_PRECISION(6));
    char *text = arena_strdup(&arena, dumped);

    free(dumped);
    json_decref(root);
    return text;
}

static const char own_plan[] =
    "step    61.6000 ms\n"
    "        by plain (analytic)\n"
    "        as the cost model's authors published it, whatever the "
    "pipeline\n"
    "binds   GPU 1, the slowest; compute, 52.000 ms of the GPU work; table "
    "'hot' on GPU 1, without which it is 44.000 ms shorter\n"
    "        GPU 1 takes 61.6000 ms: compute 52.0000, backward "
    "communication 3.2000,\n"
    "        forward communication 6.4000\n"
    "bound   no plan has less GPU work than 44.0000 ms, by the largest piece "
    "(table 'hot' on GPU 1): this one is within 40.00 %\n"
    "memory  fits: GPU 2 is fullest, 62.5 KiB of 97.7 KiB (64 %); "
    "a reserve of 0 % is kept, up to 36 % fits\n"
    "        does not bind: each piece of GPU 1 has room on another GPU\n"
    "\n"
    "         total    sooner   compute  bwd comm  fwd comm memory     "
    "         fits\n"
    "GPU         ms     by ms        ms        ms        ms      %     "
    "  free  of 1\n"
    "1      61.6000    0.0000   52.0000    3.2000    6.4000   40.0    "
    "234 KiB      -\n"
    "2      17.6000   44.0000    8.0000    3.2000    6.4000   64.0   "
    "35.2 KiB      1\n"
    "0      10.4000   51.2000    8.0000    0.8000    1.6000   10.7    "
    "262 KiB      2\n"
    "\n"
    "                                                      without   "
    "best elsewhere\n"
    "piece on GPU 1         kind      columns       rows  saves ms   "
    "GPU  change ms\n"
    "hot                    table          16       2000   44.0000     "
    "0    +1.6000\n"
    "wide                   column         16        500    8.8000     "
    "0    -8.8000\n"
    "\n"
    "4 moves and 3 swaps of pieces of GPU 1 tried; these gain more than\n"
    "a thousandth of the step, 0.0616 ms:\n"
    "  gain ms to GPU a piece of             swapped with one there of\n"
    "   8.8000      0 hot                    small\n"
    "   8.8000      0 wide                   -\n"
    "   8.8000      2 wide                   -\n";

static const char own_table[] =
    "table   'wide': 500 rows x 48, pooling 0.25\n"
    "now     2 column shards on GPUs 1-2\n"
    "work    61.6000 ms by plain (analytic), 52.8000 ms without it\n"
    "why     not the best: whole on GPU 0 saves 8.8000 ms\n"
    "\n"
    "all else as it is                                GPU ms     change\n"
    "now                                             61.6000\n"
    "whole on GPU 0                                  52.8000    -8.8000\n"
    "whole on GPU 2                                  52.8000    -8.8000\n"
    "whole on GPU 1                                  79.2000   +17.6000\n"
    "columns 0-16 to GPU 0                           52.8000    -8.8000\n"
    "columns 0-16 to GPU 2                           52.8000    -8.8000\n"
    "columns 16-48 to GPU 0                          61.6000    +0.0000\n"
    "2 column pieces on GPUs 2 0                     52.8000    -8.8000\n"
    "3 column pieces on GPUs 2 0 1                   61.6000    +0.0000\n"
    "replicated                                      64.8000    +3.2000\n"
    "not in rows                                           -          "
    "-  no: the cost model has no price for it\n"
    "not in a grid                                         -          "
    "-  no: the cost model has no price for it\n";

static const char own_json[] =
    "{\"cost_model\":\"plain\",\"outside\":[],\"total_ms\":61.6,"
    "\"last_gpu\":1,\"longest_fwd_comm_gpu\":1,"
    "\"largest_part\":\"compute\",\"largest_part_ms\":52.0,\"gpus\":["
    "{\"own_ms\":10.4,\"sooner_by_ms\":51.2,\"compute_ms\":8.0,"
    "\"bwd_comm_ms\":0.8,\"fwd_comm_ms\":1.6,\"used_bytes\":32000,"
    "\"memory_bytes\":300000,\"has_room_for\":2},{\"own_ms\":61.6,"
    "\"sooner_by_ms\":0.0,\"compute_ms\":52.0,\"bwd_comm_ms\":3.2,"
    "\"fwd_comm_ms\":6.4,\"used_bytes\":160000,"
    "\"memory_bytes\":400000,\"has_room_for\":0},{\"own_ms\":17.6,"
    "\"sooner_by_ms\":44.0,\"compute_ms\":8.0,\"bwd_comm_ms\":3.2,"
    "\"fwd_comm_ms\":6.4,\"used_bytes\":64000,"
    "\"memory_bytes\":100000,\"has_room_for\":1}],\"gpu\":1,"
    "\"pieces\":[{\"shard\":1,\"table\":\"hot\",\"kind\":\"table\","
    "\"total_ms_without\":17.6,\"own_ms_without\":8.8,"
    "\"alone_ms\":48.0,\"memory_bytes\":128000,\"changes_training\":false,"
    "\"has_room_elsewhere\":true},{\"shard\":2,\"table\":\"wide\","
    "\"kind\":\"column\",\"total_ms_without\":52.8,"
    "\"own_ms_without\":52.8,\"alone_ms\":4.0,\"memory_bytes\":32000,"
    "\"changes_training\":true,\"has_room_elsewhere\":true}],"
    "\"places\":[{\"shard\":1,\"other\":null,\"gpu\":0,"
    "\"total_ms\":63.2,\"gain_ms\":-1.6,\"why_not\":null},{"
    "\"shard\":2,\"other\":null,\"gpu\":0,\"total_ms\":52.8,"
    "\"gain_ms\":8.8,\"why_not\":null}],\"gains\":[{\"shard\":1,"
    "\"other\":0,\"gpu\":0,\"total_ms\":52.8,\"gain_ms\":8.8,"
    "\"why_not\":null},{\"shard\":2,\"other\":null,\"gpu\":0,"
    "\"total_ms\":52.8,\"gain_ms\":8.8,\"why_not\":null},{"
    "\"shard\":2,\"other\":null,\"gpu\":2,\"total_ms\":52.8,"
    "\"gain_ms\":8.8,\"why_not\":null}],\"least_gain_ms\":0.0616,"
    "\"least_is_error\":false,\"what_if\":[],\"anew\":[],\"caches\":[],"
    "\"bound_ms\":44.0,"
    "\"bound_term\":\"largest piece\",\"stopped\":null,"
    "\"next\":null}";

static const char waiting_plan[] =
    "step    61.6000 ms\n"
    "        by plain (analytic)\n"
    "        as the cost model's authors published it, whatever the "
    "pipeline\n"
    "binds   GPU 1, which is ready last; compute, 52.000 ms of the "
    "GPU work; table 'hot' on GPU 1, without which it is 44.000 ms shorter\n"
    "        GPU 1 takes 55.2000 ms: compute 52.0000, backward "
    "communication 3.2000\n"
    "        the forward communication then takes 6.4000 ms, longest "
    "on GPU 1\n"
    "bound   none is proven for this cost model\n"
    "memory  fits: GPU 0 is fullest, 31.2 KiB of 32.2 KiB (97 %); "
    "a reserve of 0 % is kept, up to 3 % fits\n"
    "        binds: 1 of 2 pieces of GPU 1 have room on no other GPU\n"
    "\n"
    "         ready    sooner   compute  bwd comm  fwd comm memory     "
    "         fits\n"
    "GPU         ms     by ms        ms        ms        ms      %     "
    "  free  of 1\n"
    "1      55.2000    0.0000   52.0000    3.2000    6.4000   40.0    "
    "234 KiB      -\n"
    "0      11.2000   44.0000    8.0000    3.2000    6.4000   97.0     "
    "1000 B      0\n"
    "2      11.2000   44.0000    8.0000    3.2000    6.4000   64.0   "
    "35.2 KiB      1\n"
    "\n"
    "                                                      without   "
    "best elsewhere\n"
    "piece on GPU 1         kind      columns       rows  saves ms   "
    "GPU  change ms\n"
    "hot                    table          16       2000   44.0000     "
    "-          -\n"
    "wide                   column         16        500    4.0000     "
    "2    +0.8000\n"
    "\n"
    "4 moves and 3 swaps of pieces of GPU 1 tried; none gain more than\n"
    "a thousandth of the step, 0.0616 ms\n";

static const char waiting_table[] =
    "table   'hot': 2,000 rows x 16, pooling 3\n"
    "now     whole on GPU 1\n"
    "work    61.6000 ms by plain (analytic), 17.6000 ms without it\n"
    "why     no other way is allowed\n"
    "\n"
    "all else as it is                                GPU ms     change\n"
    "now                                             61.6000\n"
    "whole on GPU 0                                  65.6000    "
    "+4.0000  no: GPU 0 is 124 KiB short, mostly weights\n"
    "whole on GPU 2                                  70.4000    "
    "+8.8000  no: GPU 2 is 89.8 KiB short, mostly weights\n"
    "2 column pieces on GPUs 1 0                     41.6000   "
    "-20.0000  no: GPU 0 is 61.5 KiB short, mostly weights\n"
    "3 column pieces on GPUs 1 0 2                   38.8000   "
    "-22.8000  no: GPU 0 is 30.3 KiB short, mostly weights\n"
    "replicated                                      65.6000    "
    "+4.0000  no: GPU 0 is 124 KiB short, mostly weights\n"
    "not in rows                                           -          "
    "-  no: the cost model has no price for it\n"
    "not in a grid                                         -          "
    "-  no: the cost model has no price for it\n";

static const char waiting_json[] =
    "{\"table\":\"small\",\"cost_model\":\"plain\",\"outside\":[],"
    "\"total_ms\":61.6,\"total_ms_without\":61.6,\"ways\":[{"
    "\"way\":\"whole on GPU 2\",\"total_ms\":64.0,\"allowed\":true,"
    "\"why_not\":null,\"shards\":[{\"table\":0,\"kind\":\"table\","
    "\"row_begin\":0,\"row_end\":1000,\"col_begin\":0,\"col_end\":8,"
    "\"device\":2}]},{\"way\":\"whole on GPU 1\",\"total_ms\":72.0,"
    "\"allowed\":true,\"why_not\":null,\"shards\":[{\"table\":0,"
    "\"kind\":\"table\",\"row_begin\":0,\"row_end\":1000,"
    "\"col_begin\":0,\"col_end\":8,\"device\":1}]},{"
    "\"way\":\"2 column pieces on GPUs 0 2\",\"total_ms\":62.8,"
    "\"allowed\":true,\"why_not\":null,\"shards\":[{\"table\":0,"
    "\"kind\":\"column\",\"row_begin\":0,\"row_end\":1000,"
    "\"col_begin\":0,\"col_end\":4,\"device\":0},{\"table\":0,"
    "\"kind\":\"column\",\"row_begin\":0,\"row_end\":1000,"
    "\"col_begin\":4,\"col_end\":8,\"device\":2}]},{"
    "\"way\":\"replicated\",\"total_ms\":69.6,\"allowed\":true,"
    "\"why_not\":null,\"shards\":[{\"table\":0,\"kind\":\"replicate\","
    "\"row_begin\":0,\"row_end\":1000,\"col_begin\":0,\"col_end\":8,"
    "\"device\":0},{\"table\":0,\"kind\":\"replicate\",\"row_begin\":0,"
    "\"row_end\":1000,\"col_begin\":0,\"col_end\":8,\"device\":1},{"
    "\"table\":0,\"kind\":\"replicate\",\"row_begin\":0,"
    "\"row_end\":1000,\"col_begin\":0,\"col_end\":8,\"device\":2}]},{"
    "\"way\":\"not in rows\",\"total_ms\":null,\"allowed\":false,"
    "\"why_not\":\"the cost model has no price for it\","
    "\"shards\":[]},{\"way\":\"not in a grid\",\"total_ms\":null,"
    "\"allowed\":false,"
    "\"why_not\":\"the cost model has no price for it\","
    "\"shards\":[]}]}";

static const char alone_plan[] =
    "step    1.2000 ms\n"
    "        by plain (analytic)\n"
    "        as the cost model's authors published it, whatever the "
    "pipeline\n"
    "binds   forward communication, 0.800 ms of the GPU work; table "
    "'none', without which it is 1.200 ms shorter\n"
    "        GPU 0 takes 1.2000 ms: compute 0.0000, backward "
    "communication 0.4000,\n"
    "        forward communication 0.8000\n"
    "bound   none is proven for this cost model\n"
    "memory  fits: GPU 0 is fullest, 160 B of 80.0 GiB (0 %); a "
    "reserve of 0 % is kept, up to 99.9 % fits\n"
    "\n"
    "         total    sooner   compute  bwd comm  fwd comm memory     "
    "         fits\n"
    "GPU         ms     by ms        ms        ms        ms      %     "
    "  free  of 0\n"
    "0       1.2000    0.0000    0.0000    0.4000    0.8000    0.0   "
    "80.0 GiB      -\n"
    "\n"
    "                                                      without   "
    "best elsewhere\n"
    "piece on GPU 0         kind      columns       rows  saves ms   "
    "GPU  change ms\n"
    "none                   table           4         10    1.2000     "
    "-          -\n";

static const char alone_table[] =
    "table   'none': 10 rows x 4, pooling 0, of group 'one'\n"
    "now     whole\n"
    "work    1.2000 ms by plain (analytic), 0.0000 ms without it\n"
    "why     no other way is allowed\n"
    "\n"
    "all else as it is                                GPU ms     change\n"
    "now                                              1.2000\n"
    "not in columns                                        -          "
    "-  no: no piece may be as narrow\n"
    "not in rows                                           -          "
    "-  no: the cost model has no price for it\n"
    "not in a grid                                         -          "
    "-  no: the cost model has no price for it\n"
    "not replicated                                        -          "
    "-  no: there is no other GPU\n";

static void test_own(void)
{
    struct plan plan = make_plan();
    struct oracle oracle = make_oracle(&plan.problem, false);
    struct explained explained;
    struct buf ignored = {0};

    open_explained(&explained, &plan, &oracle);
    plan.bound_ms = 44;
    plan.bound_term = "largest piece";
    plan.bound_table = "hot";
    is_str(plan_text(&explained), own_plan, "a plan whose GPUs do not wait");
    is_str(table_text(&explained, 2), own_table, "a table in columns");
    is_in(
        table_text(&explained, 0),
        "\nwhy     it does not set the step: whole on GPU 2 costs the same\n");
    is_str(json_text(explain_plan(&explained, &ignored)), own_json,
           "the plan as JSON");
    buf_release(&ignored);
    what_if_release(&explained.what_if);
}

/* If the error of a gain is known, a smaller saving does not count as a gain.
 * The best move here saves 14 %. */
static void test_error(void)
{
    for (int i = 0; i < 2; i++) {
        struct plan plan = make_plan();
        struct oracle oracle = make_oracle(&plan.problem, false);
        struct explained explained;
        const char *text;

        open_explained(&explained, &plan, &oracle);
        memset(plan.exposed_ms, 0, sizeof(plan.exposed_ms));
        /* the whole step is lookups */
        plan.exposed_ms[STEP_FORWARD] = plan.total_ms;
        plan.cost.lookup_error.frac = (i ? 0.3 : 0.01) / RATIO_ERROR_SHARE;
        text = plan_text(&explained);
        is_in(text, i ? "; none gain more than\n"
                        "the error of such a gain, 18.4800 ms\n"
                      : "; these gain more than\n"
                        "the error of such a gain, 0.6160 ms:\n");
        what_if_release(&explained.what_if);
    }
}

/* GPU 0 has no memory left for another piece. */
static void test_waiting(void)
{
    struct plan plan = make_plan();
    struct oracle oracle = make_oracle(&plan.problem, true);
    struct explained explained;
    struct buf ignored = {0};

    plan.problem.cluster.memory_bytes[0] = 33000;
    open_explained(&explained, &plan, &oracle);
    is_str(plan_text(&explained), waiting_plan, "a plan whose GPUs wait");
    is_str(table_text(&explained, 1), waiting_table, "a whole table");
    is_in(table_text(&explained, 0),
          "\nwhy     each other way costs more, at least 1.2000 ms: 2 column "
          "pieces on GPUs 0 2\n");
    is_str(json_text(explain_table(&explained, 0, &ignored)), waiting_json,
           "a table as JSON");
    buf_release(&ignored);
    what_if_release(&explained.what_if);
}

/* More pieces and GPUs than are shown, many of them equal; all pieces except
 * replicas are on one GPU. */
static void test_many(void)
{
    struct plan plan = fixture_plan(40, 40, 64);
    struct oracle oracle = make_oracle(&plan.problem, true);
    struct explained explained;
    const char *text;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    for (uint32_t t = 0; t < 12; t++)
        fixture_whole(&plan, arena_printf(&arena, "t%u", t), 10, 4, 1, 7);
    fixture_table(&plan, "copies", 10, 8, 1);
    for (uint32_t r = 0; r < 40; r++)
        fixture_shard(&plan, 0, 10, 0, 8, r);
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    text = plan_text(&explained);
    is_in(text, "... and 8 that are sooner\n");
    is_in(text, "... and 3 more\n");
    text = table_text(&explained, 12);
    is_in(text, "now     40 replicate shards on GPUs 0-39\n");
    what_if_release(&explained.what_if);
}

/* Only the best of the other numbers of column pieces is listed. */
static void test_cuts(void)
{
    struct plan plan = fixture_plan(40, 40, 64);
    struct oracle oracle = make_oracle(&plan.problem, false);
    struct explained explained;
    const char *text;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_whole(&plan, "wide", 10, 256, 1, 0);
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    text = table_text(&explained, 0);
    is_in(text, "\n16 column pieces on GPUs 0 1 2 3 ...");
    is_in(text, "\n32 column pieces on GPUs 0 1 2 3 ...            10.4000");
    ok(!strstr(text, "33 column pieces"), "and no more");
    what_if_release(&explained.what_if);
}

/* Each piece is tried on the 32 GPUs that are ready soonest, and swapped with
 * the pieces on the first 8 of these. */
static void test_tried(void)
{
    static const struct {
        uint32_t n_gpus;
        const char *want;
    } cases[] = {{5, "8 moves and 8 swaps of pieces"},
                 {12, "22 moves and 16 swaps of pieces"},
                 {33, "64 moves and 16 swaps of pieces"},
                 {50, "64 moves and 16 swaps of pieces"}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const uint32_t n = cases[i].n_gpus;
        struct plan plan = fixture_plan(n, n, 64);
        struct oracle oracle = make_oracle(&plan.problem, true);
        struct explained explained;

        plan.problem.memory_model = MEMORY_WEIGHTS;
        for (uint32_t t = 0; t <= n; t++)
            fixture_whole(&plan, arena_printf(&arena, "t%u", t), 10, 4, 1,
                          t % n);
        fixture_finish(&plan);
        open_explained(&explained, &plan, &oracle);
        is_in(plan_text(&explained), cases[i].want);
        what_if_release(&explained.what_if);
    }
}

/* At most ten pieces are shown, each of which saves at least a thousandth of
 * the step. Here n_large pieces cost 4 s each, then n_small pieces cost about 1
 * ms. */
static void test_pieces(void)
{
    static const struct {
        uint32_t n_large, n_small;
        bool is_twice; /* true: another GPU is as slow, so nothing is saved */
        const char *want, *not ;
    } cases[] = {
        {10, 0, false, "t9 ", "... and "},
        {11, 0, false, "... and 1 more\n", "none of the"},
        {9, 1, false,
         "... none of the 1 other pieces on GPU 1 costs more than\n", "t9 "},
        {3, 4, false,
         "... none of the 4 other pieces on GPU 1 costs more than\n", "t3 "},
        {10, 2, false, "... and 2 more\n", "none of the"},
        {2, 0, true, "\nnone of the 2 pieces on GPU 0 costs more than\n",
         "... none"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct plan plan = fixture_plan(2, 2, 64);
        struct oracle oracle = make_oracle(&plan.problem, true);
        struct explained explained;
        const char *text;

        plan.problem.memory_model = MEMORY_WEIGHTS;
        for (uint32_t t = 0; t < cases[i].n_large + cases[i].n_small; t++)
            fixture_whole(&plan, arena_printf(&arena, "t%u", t), 10, 4,
                          t < cases[i].n_large ? 1000 : 0.01, 1);
        for (uint32_t t = 0; t < cases[i].n_large && cases[i].is_twice; t++)
            fixture_whole(&plan, arena_printf(&arena, "u%u", t), 10, 4, 1000,
                          0);
        fixture_finish(&plan);
        open_explained(&explained, &plan, &oracle);
        text = plan_text(&explained);
        is_in(text, cases[i].want);
        text =
            strstr(text, "piece on GPU") ? strstr(text, "piece on GPU") : text;
        ok(!strstr(text, cases[i].not ), "no '%s'", cases[i].not );
        what_if_release(&explained.what_if);
    }
}

/* Replicas send nothing forward, and the text names no sender. */
static void test_copies(void)
{
    struct plan plan = fixture_plan(2, 2, 64);
    struct oracle oracle = make_oracle(&plan.problem, true);
    struct explained explained;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_table(&plan, "copies", 10, 8, 1);
    for (uint32_t r = 0; r < 2; r++)
        fixture_shard(&plan, 0, 10, 0, 8, r);
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    is_in(plan_text(&explained), "the forward communication then takes 0.0000");
    what_if_release(&explained.what_if);
}

static void test_alone(void)
{
    struct plan plan = fixture_plan(1, 1, 64);
    struct oracle oracle = make_oracle(&plan.problem, false);
    struct explained explained;

    plan.problem.memory_model = MEMORY_WEIGHTS;
    fixture_whole(&plan, "none", 10, 4, 0, 0);
    plan.problem.tables[0].group = "one";
    fixture_finish(&plan);
    open_explained(&explained, &plan, &oracle);
    is_str(plan_text(&explained), alone_plan, "one GPU");
    is_str(table_text(&explained, 0), alone_table, "a table that stays");
    what_if_release(&explained.what_if);
}

int main(void)
{
    test_own();
    test_error();
    test_waiting();
    test_many();
    test_cuts();
    test_tried();
    test_pieces();
    test_copies();
    test_alone();
    arena_release(&arena);
    return tap_done();
}
