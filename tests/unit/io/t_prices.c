/* SPDX-License-Identifier: MIT */
#include "io/prices.h"

#include "tests/tap.h"

#include <string.h>

static struct arena arena;
static struct err err;
static struct prices prices;

static int read_text(const char *text)
{
    err = (struct err){0};
    return prices_read(&prices, text, strlen(text), "p", &arena, &err);
}

static void test_read(void)
{
    ok(!read_text("gpu,price\r\n# ours\n\n h100\t2.5\r\n"
                  "NVIDIA A100, 1.25 # list\nt4 , 0.5"),
       "prices%s", err.msg);
    if (!ok(prices.n == 3, "%zu of them", prices.n))
        return;
    is_str(prices.list[0].gpu, "h100", "a name before blanks");
    is_near(prices.list[0].per_hour, 2.5, 0, "its price");
    is_i64((int64_t)prices.list[0].line, 4, "its line");
    is_str(prices.list[1].gpu, "NVIDIA A100", "a name before a comma");
    is_near(prices.list[1].per_hour, 1.25, 0, "its price");
    is_str(prices.list[2].gpu, "t4", "without blanks");
    is_near(prices.list[2].per_hour, 0.5, 0, "on a line without an end");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "p:1: the file has no prices"},
        {"# none\n", "p:1: the file has no prices"},
        {"a 1\nh100\n", "p:2: 'h100' is not the name of a GPU and its price "
                        "per hour, such as 'h100 2.49'"},
        {"\n,3\n", "p:2: the name of the GPU is missing"},
        {"h100 $3\n",
         "p:1: the price of 'h100' is '$3', not a number above 0, up to 1e9"},
        {"h100,0",
         "p:1: the price of 'h100' is '0', not a number above 0, up to 1e9"},
        {"h100 2e9",
         "p:1: the price of 'h100' is '2e9', not a number above 0, up to 1e9"},
        {"a 1\ngpu,price\n", "p:2: the price of 'gpu' is 'price', not a number "
                             "above 0, up to 1e9"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ok(read_text(cases[i].text) && err.code == ERR_INPUT, "refused");
        is_str(err.msg, cases[i].want, "one sentence");
    }
    ok(!read_text("h100 1e9"), "the largest price");
}

int main(void)
{
    test_read();
    test_refused();
    arena_release(&arena);
    return tap_done();
}
