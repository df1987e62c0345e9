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
#define SWEEP "# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: "
#define FOUR SWEEP "4(factor) warmup iters: 5\n"
#define PLACE " 77.0 1.00 0.50 0\n"
#define ROW "  1048576 131072 float none -1 100.0 10.49 5.24 0" PLACE
#define SMALL "  0 0 float none -1 0.13 0.00 0.00 0" PLACE
#define LARGE "  4194304 524288 float none -1 200.0 20.97 10.49 N/A" PLACE

static int parse(struct nccl_tests *out, const char *text, struct arena *arena,
                 struct err *err)
{
    return nccl_tests_parse(out, text, strlen(text), "a.txt", arena, err);
}

/* Checks ranks, hosts, device and the out-of-place rows; an empty text has none
 * of these. */
static void check_good(const char *text, uint32_t n_hosts, const char *name)
{
    struct nccl_tests out;
    struct err err = {0};
    struct arena arena = {0};

    if (ok(!parse(&out, text, &arena, &err), "%s: %s", name, err.msg)) {
        is_str(out.device, "NVIDIA H100 80GB HBM3", "the device of rank 0");
        is_i64(out.n_ranks, 2, "two ranks");
        is_i64(out.n_hosts, n_hosts, "number of hosts");
        ok(out.n_rows == 2 && out.rows[0].bytes == 1048576 &&
               out.rows[0].us == 100 && out.rows[1].bytes == 4194304 &&
               out.rows[1].us == 200,
           "%zu rows, of which two are expected", out.n_rows);
    }
    arena_release(&arena);
}

static const struct {
    const char *text, *want;
} faults[] = {
    {"", "a.txt: no rows of an all-to-all, which alltoall_perf prints"},
    {PROGRAM RANKS HEADING SMALL,
     "a.txt: no rows of an all-to-all, which alltoall_perf prints"},
    {"# Collective test starting: all_reduce_perf\n",
     "a.txt:1: this is output of all_reduce_perf, not of alltoall_perf"},
    {RANK("1", "w"),
     "a.txt:1: rank 1 is listed instead of rank 0; processes that were started "
     "without MPI do not see each other and measure no all-to-all"},
    {RANK("0", "w") RANK("0", "w"),
     "a.txt:2: rank 0 is listed instead of rank 1; processes that were started "
     "without MPI do not see each other and measure no all-to-all"},
    {"# Rank 0 Pid 7 device 0 [0000] H100\n",
     "a.txt:1: a rank has no host and device"},
    {"# Rank 0 Pid 7 on w device 0 H100\n",
     "a.txt:1: a rank has no host and device"},
    {"# Rank x on w device 0 [0000] H100\n",
     "a.txt:1: a rank has no host and device"},
    {"# Rank 0 on w device 0 [0000]  \n", "a.txt:1: the device has no name"},
    {"# Rank 0 on w device 0 [0000] H\x01\n",
     "a.txt:1: the device has no name"},
    {RANKS ROW, "a.txt:3: a row comes before the list of at least two ranks or "
                "before the column names"},
    {RANK("0", "w") HEADING ROW, "a.txt:4: a row comes before the list of at "
                                 "least two ranks or before the column names"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24\n",
     "a.txt:5: a row lacks size, time, algbw, busbw or '#wrong'"},
    {RANKS HEADING ROW "4194304 524288 float none\n",
     "a.txt:6: a row lacks size, time, algbw, busbw or '#wrong'"},
    {RANKS HEADING "1048576 131072 float none -1 x 10.49 5.24 0\n",
     "a.txt:5: a row lacks size, time, algbw, busbw or '#wrong'"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 x 5.24 0\n",
     "a.txt:5: a row lacks size, time, algbw, busbw or '#wrong'"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 x 0\n",
     "a.txt:5: a row lacks size, time, algbw, busbw or '#wrong'"},
    {RANKS HEADING "1048576 131072 float sum -1 100.0 10.49 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 0 10.49 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.9 5.24 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 10.49 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING
     "2251799813685248 281474976710656 float none -1 1e9 2251.80 1125.90 0\n",
     "a.txt:5: no all-to-all among 2 ranks has such a row"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24 3\n",
     "a.txt:5: wrong data were received"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24 1e-06\n",
     "a.txt:5: wrong data were received"},
    {RANKS HEADING ROW "# Out of bounds values : 7 FAILED\n",
     "a.txt:6: 7 values were wrong"},
    {RANKS HEADING ROW "# Avg bus bandwidth : 6.1\n",
     "a.txt:6: the mean bus bandwidth of the rows is 2.87 GB/s, but 'Avg bus "
     "bandwidth' is 6.1"},
    {FOUR RANKS HEADING ROW,
     "a.txt:1: sizes from 1048576 to 4194304 are announced, but 4194304 has no "
     "row"},
    {FOUR RANKS HEADING LARGE,
     "a.txt:6: a row of 4194304 bytes, but the next row should have 1048576"},
    {FOUR RANKS HEADING ROW ROW,
     "a.txt:7: a row of 1048576 bytes, but the next row should have 4194304"},
    {FOUR RANKS HEADING ROW LARGE LARGE,
     "a.txt:8: a row of 4194304 bytes follows the last row, of at most "
     "4194304"},
    {RANKS HEADING "1048576 131072 float none -1 100.0 10.49 5.24 0 77.0 1.00 "
                   "0.50 0 4194304 524288 float none -1 200.0 20.97 10.49 0\n",
     "a.txt:5: a row has 22 words, but the heading has 13: rows have run into "
     "each other"},
    {RANKS RANK("2", "w") HEADING ROW,
     "a.txt:6: no all-to-all among 3 ranks has such a row"},
    {RANKS HEADING "1048576 99 float none -1 100.0 10.49 5.24 0\n",
     "a.txt:5: 99 elements of 4 bytes for each of 2 ranks are not 1048576 "
     "bytes"},
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
        is_str(err.msg, faults[i].want, "with the reason");
        arena_release(&arena);
    }
}

/* Rows as old versions print them: redop and root are blank, errors are
 * 0e+00. */
static void test_versions(void)
{
    check_good(RANKS "# size count type redop time algbw busbw error time "
                     "algbw busbw error\n"
                     "1048576 131072 float 100.0 10.49 5.24 0e+00 99.0 10.59 "
                     "5.30 N/A\n"
                     "4194304 524288 float 200.0 20.97 10.49 0e+00 199.0 21.08 "
                     "10.54 N/A\n",
               2, "2.0: redop is blank");
    check_good(
        RANKS HEADING
        "1048576 131072 float 100.0 10.49 5.24 0e+00 99 10.59 5.30 N/A\n"
        "4194304 1048576 float none 200 20.97 10.49 0 99 42.37 21.18 0\n",
        2, "redop and root are blank; a count of all elements");
}

/* Prefixes that log collectors put in front of each line. */
static void test_prefixes(void)
{
    check_good("0: " FOUR "1: WARNING: something 1 2 3\n"
               "0: " RANK("0", "w") "0: " RANK("1", "w") "0: " HEADING "0: " ROW
                                                         "\n0: " LARGE,
               1, "srun -l");
    check_good(
        "2026-01-02T03:04:05.123456789Z " RANK(
            "0",
            "w") "2026-01-02T03:04:05.123456789Z " RANK("1",
                                                        "w") "2026-01-02T03:04:"
                                                             "05."
                                                             "123456789Z"
                                                             " " HEADING
                                                             "2026-01-02T03:04:"
                                                             "05."
                                                             "123456789Z " ROW
                                                             "2026-01-02T03:04:"
                                                             "05."
                                                             "123456789Z"
                                                             " " LARGE,
        1, "kubectl logs --timestamps");
    check_good("worker-0  | " RANK("0", "w") "worker-0  | " RANK(
                   "1", "w") "worker-0  | " HEADING "worker-0  | " ROW
                             "[2026-01-02 03:04:05,123] INFO " LARGE,
               1, "docker compose, and a logger");
}

#define WHOLE FOUR RANKS HEADING ROW LARGE "# Out of bounds values : 0 OK\n"

static void test_log(void)
{
    static const char more[] = WHOLE FOUR RANKS HEADING ROW;
    struct nccl_tests out;
    struct arena arena = {0};
    struct err err = {0};

    check_good(FOUR RANKS WHOLE, 2, "a test that was started again");
    check_good(
        "# Collective test starting: all_reduce_perf\n" FOUR RANKS HEADING
        "1048576 262144 float sum -1 100.0 10.49 10.49 0\n"
        "# Collective test starting: alltoall_perf\n" WHOLE,
        2, "behind another collective");
    ok(!parse(&out, more, &arena, &err) && out.n_rows == 2,
       "the whole one is read");
    is_str(out.doubt,
           "a.txt:9: sizes from 1048576 to 4194304 are announced, but 4194304 "
           "has no row; the test of line 9 is incomplete, so the one of line 1 "
           "is read",
           "and the cut one is said");
    arena_release(&arena);
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
                     "1048576 131072 float none 100.0 10.49 5.24 0\n"
                     "4194304 524288 float none 200.0 20.97 10.49 0",
               2, "of an older one, that knows no root");
    check_faults();
    test_versions();
    test_prefixes();
    test_log();
    ok(nccl_tests_parse(&out, "#\0", 2, "a.txt", &arena, &err) == -1,
       "not text");
    is_str(err.msg, "a.txt: a NUL byte, so not a text file", "and says so");
    arena_release(&arena);
    return tap_done();
}
