/* SPDX-License-Identifier: MIT */
/* Compares the roofline with measurements that others have published, within
 * the bounds of tests/bench/bench_anchors.c. */
#include "tests/tap.h"

#include "tests/anchors.h"

static void report(bool holds, const char *what)
{
    ok(holds, "%s", what);
}

int main(void)
{
    struct exchange_anchors exchanges;
    struct anchors anchors;
    struct arena arena = {0};

    anchors = anchor_lookups(&arena);
    anchor_check_lookups(&anchors, report, &arena);
    anchor_check_errors(&anchors, 20, 0.15, report, &arena);
    exchanges = anchor_exchanges(&arena);
    anchor_check_exchanges(&exchanges, report, &arena);
    arena_release(&arena);
    return tap_done();
}
