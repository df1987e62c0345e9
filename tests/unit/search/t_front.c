/* SPDX-License-Identifier: MIT */
/* Which points replan's Pareto front accepts, and which point a full front
 * drops. */
#include "search/front.h"

#include "tests/tap.h"

/* The points that should remain, in order. */
struct expected {
    uint64_t moved_bytes[FRONT_MAX + 1];
    double total_ms[FRONT_MAX + 1];
    uint32_t n;
};

static void offer(struct front *front, uint64_t moved_bytes, double total_ms)
{
    struct snapshot *room = front_add(front, moved_bytes, total_ms);

    if (room)
        room->total_ms = total_ms;
}

/* Adds points at 10, 20, 30 ... bytes. Point i is 1 ms cheaper than the point
 * before it; point `little` is only `little_ms` cheaper. */
static void fill(struct front *front, uint32_t n, uint32_t little,
                 double little_ms)
{
    double total_ms = 1000;

    for (uint32_t i = 0; i < n; i++) {
        total_ms -= i == 0 ? 0 : i == little ? little_ms : 1 + 0.001 * i;
        offer(front, 10 * (uint64_t)(i + 1), total_ms);
    }
}

static void expect_drop(struct expected *expected, const struct front *front,
                        uint32_t dropped)
{
    expected->n = 0;
    for (uint32_t i = 0; i < front->n; i++)
        if (i != dropped) {
            expected->moved_bytes[expected->n] = front->points[i].moved_bytes;
            expected->total_ms[expected->n++] = front->points[i].total_ms;
        }
}

static void expect_point(struct expected *expected, uint64_t moved_bytes,
                         double total_ms)
{
    uint32_t at = expected->n++;

    for (; at > 0 && expected->moved_bytes[at - 1] > moved_bytes; at--) {
        expected->moved_bytes[at] = expected->moved_bytes[at - 1];
        expected->total_ms[at] = expected->total_ms[at - 1];
    }
    expected->moved_bytes[at] = moved_bytes;
    expected->total_ms[at] = total_ms;
}

static bool stands(const struct front *front, const struct expected *expected)
{
    bool is_same = front->n == expected->n;

    for (uint32_t i = 0; is_same && i < front->n; i++)
        is_same = front->points[i].moved_bytes == expected->moved_bytes[i] &&
                  front->points[i].total_ms == expected->total_ms[i];
    return is_same;
}

/* The new point is inserted after point `at` and is `better_ms` cheaper. */
static void test_full(void)
{
    static const struct {
        const char *name;
        uint32_t little;
        double little_ms;
        uint32_t at;
        uint64_t behind_bytes;
        double better_ms;
        uint32_t dropped;
    } cases[] = {
        {"a new best point: the least gain goes", 20, 0.5, 63, 5, 1, 20},
        {"a new point in front of it", 20, 0.5, 10, 5, 0.4, 20},
        {"a new point behind it", 20, 0.5, 40, 5, 0.4, 20},
        {"the second point may go", 1, 0.5, 30, 5, 0.4, 1},
        {"the last but one may go", 62, 0.5, 30, 5, 0.4, 62},
        {"the best point stays, however little it gains", 63, 0.5, 30, 5, 0.4,
         1},
        {"a gain that is larger keeps its point", 20, 2, 30, 5, 0.4, 1},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct front front = {0};
        struct expected expected;
        uint64_t bytes;
        double ms;

        fill(&front, FRONT_MAX, cases[c].little, cases[c].little_ms);
        is_i64(front.n, 64, "a full front");
        bytes = front.points[cases[c].at].moved_bytes + cases[c].behind_bytes;
        ms = front.points[cases[c].at].total_ms - cases[c].better_ms;
        expect_drop(&expected, &front, cases[c].dropped);
        expect_point(&expected, bytes, ms);
        offer(&front, bytes, ms);
        ok(stands(&front, &expected), "%s", cases[c].name);
        front_release(&front);
    }
}

static void test_room(void)
{
    struct front front = {0};
    struct expected expected;

    fill(&front, FRONT_MAX - 1, 20, 0.5);
    expect_drop(&expected, &front, FRONT_MAX);
    expect_point(&expected, 5, 2000);
    offer(&front, 5, 2000);
    ok(stands(&front, &expected), "with room for one more nothing is dropped");
    front_release(&front);
}

/* A front with one point of 100 bytes and 50 ms receives a second point. */
static void test_taken(void)
{
    static const struct {
        const char *name;
        uint64_t moved_bytes;
        double total_ms;
        uint32_t n;       /* points afterwards */
        double within_ms; /* the cheapest within 100 bytes */
    } cases[] = {
        {"equal cost, equal bytes", 100, 50, 1, 50},
        {"higher cost, more bytes", 200, 51, 1, 50},
        {"equal cost, more bytes", 200, 50, 1, 50},
        {"lower cost by rounding, more bytes", 200, 50 - 5e-9, 1, 50},
        {"lower cost by more than rounding, more bytes", 200, 50 - 5e-7, 2, 50},
        {"lower cost, equal bytes", 100, 49, 1, 49},
        {"lower cost, fewer bytes", 90, 49, 1, 49},
        {"equal cost, fewer bytes", 90, 50, 1, 50},
        {"higher cost, fewer bytes", 90, 51, 2, 50},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct front front = {0};
        const struct snapshot *within;

        offer(&front, 100, 50);
        offer(&front, cases[c].moved_bytes, cases[c].total_ms);
        is_i64(front.n, cases[c].n, cases[c].name);
        within = front_within(&front, 100);
        is_near(within ? within->total_ms : NAN, cases[c].within_ms, 0,
                "the cheapest within 100 bytes");
        ok(!front_within(&front, 89), "none within 89 bytes");
        front_release(&front);
    }
}

/* Starts with a point of 100 ms, then adds points of these times. Checks which
 * points remain after thinning at 1 %. */
static void test_thin(void)
{
    static const struct {
        const char *name;
        double ms[2];
        uint32_t n;
        double last_ms;
    } cases[] = {
        {"0.9 % gain too little", {99.1, 98.9}, 2, 98.9},
        {"1.1 % are enough", {98.9, 98.0}, 2, 98.9},
        {"each is compared with the last that stays", {98.9, 97.8}, 3, 97.8},
        {"no point gains enough", {99.5, 99.1}, 1, 100},
    };

    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct front front = {0};

        offer(&front, 10, 100);
        offer(&front, 20, cases[c].ms[0]);
        offer(&front, 30, cases[c].ms[1]);
        front_thin(&front, 0.01);
        is_i64(front.n, cases[c].n, cases[c].name);
        is_near(front.points[front.n - 1].total_ms, cases[c].last_ms, 0,
                "the last one");
        front_release(&front);
    }
}

int main(void)
{
    test_full();
    test_room();
    test_taken();
    test_thin();
    return tap_done();
}
