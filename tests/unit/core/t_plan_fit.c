/* SPDX-License-Identifier: MIT */
#include "core/plan_fit.h"

#include "tests/tap.h"

#include <string.h>

#define GIB (1ull << 30)

/* Three GPUs of 10 GiB, each with this reserve and these bytes of tables. */
static void test_plan(uint64_t reserve, const uint64_t tables[3],
                      double most_frac, const char *text)
{
    uint64_t memory[3] = {10 * GIB, 10 * GIB, 10 * GIB};
    struct device_cost devices[3] = {0};
    struct plan plan = {
        .problem = {.cluster = {.n_devices = 3, .memory_bytes = memory}},
        .devices = devices};
    struct buf out = {0};
    struct err err = {0};
    const bool fits = !strncmp(text, "fits", 4);

    for (int r = 0; r < 3; r++) {
        devices[r].memory.reserve = reserve;
        devices[r].memory.weights = tables[r];
        devices[r].memory.total = reserve + tables[r];
    }
    plan_print_fit(&plan, &out);
    is_str(out.data, text, text);
    is_near(plan_most_reserve_frac(&plan), most_frac, 1e-9,
            "the largest reserve");
    ok(!plan_check_fit(&plan, &err) == fits, "the check agrees");
    if (!fits)
        ok(err.code == ERR_NO_PLAN && !strncmp(err.msg, "the plan ", 9) &&
               !strcmp(err.msg + 9, text) && err.shortage.need_bytes > 10 * GIB,
           "the error has the same text");
    buf_release(&out);
}

int main(void)
{
    test_plan(1 * GIB, (uint64_t[]){4 * GIB, 6 * GIB, 2 * GIB}, 0.4,
              "fits: GPU 1 is fullest, 7.00 GiB of 10.0 GiB (70 %); a reserve "
              "of 10 % is kept, up to 40 % fits");
    test_plan(4 * GIB, (uint64_t[]){4 * GIB, 6 * GIB, 2 * GIB}, 0.4,
              "fits: GPU 1 is fullest, 10.0 GiB of 10.0 GiB (100 %); a reserve "
              "of 40 % is kept, up to 40 % fits");
    test_plan(5 * GIB, (uint64_t[]){4 * GIB, 6 * GIB, 2 * GIB}, 0.4,
              "does not fit: GPU 1 lacks 1.00 GiB (needs 11.0 GiB of 10.0 "
              "GiB); a reserve of 50 % is kept, up to 40 % fits");
    test_plan(5 * GIB, (uint64_t[]){6 * GIB, 7 * GIB, 12 * GIB}, -0.2,
              "does not fit: GPU 2 lacks 7.00 GiB (needs 17.0 GiB of 10.0 "
              "GiB); 2 other GPUs lack less; it does not fit without a reserve "
              "either");
    return tap_done();
}
