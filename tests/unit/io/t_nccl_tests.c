/* SPDX-License-Identifier: MIT */
#include "io/nccl_tests.h"

#include "tests/tap.h"

#define PROGRAM "# Collective test starting: alltoall_perf\n"
#define RANK(rank, host)                            \
    "#  Rank " rank " Group 0 Pid 1887 on " host    \
    " device 0 [0000:8d:00] NVIDIA H100 80GB HBM3 " \
    "\r\n"
#define RANKS RANK("0", "worker-1") RANK("1", "worker-2")
#define HEADING                                                      \
    "#  size  count  type  redop  root  time  algbw  busbw  #wrong " \
    "time  algbw  busbw  #wrong\n#  (B)  (elements)  (us)  (GB/s)\n"
#define PLACE " 77.0 1.00 0.50 0\n"
#define ROW "  1048576 131072 float none -1 100.0 10.49 5.24 0" PLACE
#define SMALL "  0 0 float none -1 0.13 0.00 0.00 0" PLACE
#define LARGE "  4194304 524288 float none -1 200.0 20.97 10.49 N/A" PLACE

static int parse(struct nccl_tests *out, const char *text, struct arena *arena,
                 struct err *err)
{
    return nccl_tests_parse(out, text, strlen(text), "a.txt", arena, err);
}

/* Ranks, hosts, device, and the rows out of place; what is empty is none. */
static void check_good(const char *text, uint32_t n_hosts, const char *name)
{
    struct nccl_tests out;
    struct err err = {0};
    struct arena arena = {0};

    if (ok(!parse(&out, text, &arena, &err), "%s: %s", name, err.msg)) {
        is_str(out.device, "NVIDIA H100 80GB HBM3", "the device of rank 0");
        is_i64(out.n_ranks, 2, "two ranks");
        is_i64(out.n_hosts, n_hosts, "on so many hosts");
        ok(out.n_rows == 2 && out.rows[0].bytes == 1048576 &&
               out.rows[0].us == 100 && out.rows[1].bytes == 4194304 &&
               out.rows[1].us == 200,
           "of %zu rows both are measured", out.n_rows);
    }
    arena_release(&arena);
}

static const struct {
    const char *text, *want;
} faults[] = {
    {"", "a.txt: no row of an exchange; alltoall_perf prints them"},
    {PROGRAM RANKS HEADING SMALL,
     "a.txt: no row of an exchange; alltoall_perf prints them"},
    {"# Collective test starting: all_reduce_perf\n",
     "a.txt:1: this is of all_reduce_perf, not of alltoall_perf"},
    {RANK("1", "w"), "a.txt:1: rank 1 stands where rank 0 is next; programs "
                     "that know nothing of each other, without MPI, measure no "
                     "exchange"},
    {RANK("0", "w") RANK("0", "w"),
     "a.txt:2: rank 0 stands where rank 1 is next; programs that know nothing "
     "of each other, without MPI, measure no exchange"},
    {"# Rank 0 Pid 7 device 0 [0000] H100\n",
     "a.txt:1: a rank without its host and device"},
    {"# Rank 0 Pid 7 on w device 0 H100\n",
     "a.txt:1: a rank without its host and device"},
    {"# Rank x on w device 0 [0000] H100\n",
     "a.txt:1: a rank without its host and device"},
    {"# Rank 0 on w device 0 [0000]  \n", "a.txt:1: no name of a device"},
    {"# Rank 0 on w device 0 [0000] H\x01\n", "a.txt:1: no name of a device"},
    {RANKS ROW, "a.txt:3: a row before the list of two ranks or more and the "
                "names of the columns"},
    {RANK("0", "w") HEADING ROW,
     "a.txt:4: a row before the list of two ranks or more and the names of the "
     "columns"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24\n",
     "a.txt:5: a row without size, time, algbw, busbw and what was wrong"},
    {RANKS HEADING ROW "4194304 524288 float none\n",
     "a.txt:6: a row without size, time, algbw, busbw and what was wrong"},
    {RANKS HEADING "1048576 131072 float none -1 x 10.49 5.24 0\n",
     "a.txt:5: a row without size, time, algbw, busbw and what was wrong"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 x 5.24 0\n",
     "a.txt:5: a row without size, time, algbw, busbw and what was wrong"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 x 0\n",
     "a.txt:5: a row without size, time, algbw, busbw and what was wrong"},
    {RANKS HEADING "1048576 131072 float sum -1 100.0 10.49 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 0 10.49 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.9 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 10.49 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "2251799813685248 1 float none -1 1e9 2251.80 1125.90 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24 3\n",
     "a.txt:5: what came was wrong"},
};

static void check_faults(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct nccl_tests out;
        struct err err = {0};
        struct arena arena = {0};

        ok(parse(&out, faults[i].text, &arena, &err) == -1 &&
               err.code == ERR_INPUT,
           "refused");
        is_str(err.msg, faults[i].want, "and why is said");
        arena_release(&arena);
    }
}

int main(void)
{
    struct nccl_tests out;
    struct err err = {0};
    struct arena arena = {0};

    check_good(PROGRAM RANKS HEADING SMALL ROW LARGE "# Avg bus : 7\n", 2,
               "two hosts");
    check_good(RANK("0", "w") RANK("1", "w") HEADING ROW LARGE, 1, "one host");
    check_good("[1,0]<stdout>:" RANK("0", "w") "[1,0]<stdout>:" RANK("1", "w")
                   HEADING "[1,0]<stdout>:" ROW LARGE,
               1, "with a launcher's marks");
    check_good(RANKS "# size count type redop time algbw busbw #wrong\n"
                     "1048576 1 float none 100.0 10.49 5.24 0\n"
                     "4194304 1 float none 200.0 20.97 10.49 0",
               2, "of an older one, that knows no root");
    check_faults();
    ok(nccl_tests_parse(&out, "#\0", 2, "a.txt", &arena, &err) == -1,
       "not text");
    is_str(err.msg, "a.txt: a NUL byte, so not a text", "and says so");
    arena_release(&arena);
    return tap_done();
}
