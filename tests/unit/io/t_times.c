/* SPDX-License-Identifier: MIT */
/* Measured times of a job's steps: which files are accepted, and the message of
 * each refusal. */
#include "io/times.h"
#include "tests/tap.h"

#define HEAD "step,rank,phase,ms\n"

static void test_texts(void)
{
    static const struct {
        const char *text;
        const char *want; /* expected error; NULL: accepted */
        size_t n;
        bool is_cut;
    } CASES[] = {
        {HEAD "0,0,forward,1\n", NULL, 1, false},
        {HEAD "0,0,forward,1", NULL, 1, true},
        {HEAD "0,0,forward,1\n0,1,input,2.5\n9,1,replicas,0\n", NULL, 3, false},
        {"ms,phase,rank,step,more\n2.5,input,1,7,x\n", NULL, 1, false},
        {HEAD "0,0,forward,1000000000\n", NULL, 1, false},
        {HEAD "0,0,forward,1000000001\n",
         "job:2: ms is a time from 0 to 1e9 ms, not \'1000000001\'", 0, false},
        {HEAD "0,0,forward,-0.5\n",
         "job:2: ms is a time from 0 to 1e9 ms, not \'-0.5\'", 0, false},
        {HEAD "0,0,forward,nan\n",
         "job:2: ms is a time from 0 to 1e9 ms, not \'nan\'", 0, false},
        {HEAD "0,2,forward,1\n",
         "job:2: rank is 0 to 1, as the plan has 2 ranks, not \'2\'", 0, false},
        {HEAD "0,x,forward,1\n",
         "job:2: rank is 0 to 1, as the plan has 2 ranks, not \'x\'", 0, false},
        {HEAD "-1,0,forward,1\n", "job:2: step is a whole number, not '-1'", 0,
         false},
        {HEAD "0,0,sleep,1\n",
         "job:2: phase is input, forward, output, gradient, backward or "
         "replicas, not 'sleep'",
         0, false},
        {HEAD "0,0,forward,1\n0,0,forward,x\n",
         "job:3: ms is a time from 0 to 1e9 ms, not \'x\'", 0, false},
        {"step,rank,ms\n0,0,1\n",
         "job:1: the heading lacks 'phase', one of step,rank,phase,ms", 0,
         false},
        {HEAD, "job:2: no times", 0, false},
        {"[{\"step\": 1, \"rank\": 0, \"phase\": \"output\", \"ms\": 2}]", NULL,
         1, false},
        {" [\n{\"step\": 1, \"rank\": 0, \"phase\": \"output\", \"ms\": 2},\n"
         "{\"step\": 1, \"rank\": 1, \"phase\": \"output\", \"ms\": 3}]\n",
         NULL, 2, false},
        {"[\n{\"step\": 1, \"rank\": 0, \"phase\": \"output\", \"ms\": 2},\n"
         "{\"step\": 1, \"rank\": 5, \"phase\": \"output\", \"ms\": 3}]",
         "job:3: rank is 0 to 1, as the plan has 2 ranks, not \'5\'", 0, false},
        {"[]", "job:1: no times", 0, false},
    };

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        struct times times = {.n_ranks = 2};
        struct arena arena = {0};
        struct err err = {0};
        const int rc = times_add(&times, CASES[i].text, strlen(CASES[i].text),
                                 "job", &arena, &err);

        if (CASES[i].want) {
            ok(rc == -1 && err.code == ERR_INPUT, "case %zu is refused", i);
            is_str(err.msg, CASES[i].want, "and says why");
        } else {
            ok(!rc && times.n == CASES[i].n && times.is_cut == CASES[i].is_cut,
               "case %zu is taken %s", i, err.msg);
        }
        times_release(&times);
        arena_release(&arena);
    }
}

/* Times of several files are combined, and each figure is stored in its
 * place. */
static void test_values(void)
{
    static const char first[] = HEAD "7,1,input,2.5\n",
                      second[] = "ms,phase,rank,step\n3,replicas,0,8",
                      none[] = HEAD;
    struct times times = {.n_ranks = 2};
    struct arena arena = {0};
    struct err err = {0};

    ok(!times_add(&times, first, strlen(first), "a", &arena, &err) &&
           !times_add(&times, second, strlen(second), "b", &arena, &err) &&
           times.n == 2,
       "two files %s", err.msg);
    ok(times.times[0].step == 7 && times.times[0].rank == 1 &&
           times.times[0].part == STEP_INPUT && times.times[0].ms == 2.5 &&
           times.times[1].step == 8 && times.times[1].rank == 0 &&
           times.times[1].part == STEP_REPLICAS && times.times[1].ms == 3,
       "figures");
    ok(times_add(&times, none, strlen(none), "c", &arena, &err) == -1 &&
           times.is_cut,
       "one without times is refused, and that one was cut stays");
    times_release(&times);
    arena_release(&arena);
}

int main(void)
{
    test_texts();
    test_values();
    return tap_done();
}
