/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include "tests/tap.h"

static void test_set(void)
{
    struct err err = {0};

    ok(err.code == ERR_NONE && !*err.msg, "a zeroed err is no error");
    is_i64(err_set(&err, ERR_INPUT, "%s:%d: dim is %d", "a.csv", 3, 5), -1,
           "err_set answers -1");
    is_i64(err.code, ERR_INPUT, "the code is kept");
    is_str(err.msg, "a.csv:3: dim is 5", "the sentence is kept");
    is_i64(err_prefix(&err, "cannot read '%s'", "x"), -1,
           "err_prefix answers -1");
    is_str(err.msg, "cannot read 'x': a.csv:3: dim is 5",
           "the prefix stands in front");
    is_i64(err.code, ERR_INPUT, "a prefix leaves the code alone");
    err.shortage.need_bytes = 7;
    err_prefix(&err, "again");
    is_i64((int64_t)err.shortage.need_bytes, 7, "and what is short");
    err_set(&err, ERR_IO, "%s", "another");
    is_i64((int64_t)err.shortage.need_bytes, 0, "another error has none");
    err.shortage.need_bytes = 7;
    is_i64(err_input(&err, "%s: no '%s'", "a.csv", "dim"), -1,
           "err_input answers -1");
    is_str(err.msg, "a.csv: no 'dim'", "with its sentence");
    ok(err.code == ERR_INPUT && !err.shortage.need_bytes, "and code alone");
}

static void test_long(void)
{
    struct err err = {0};
    char text[3 * sizeof err.msg];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    err_set(&err, ERR_IO, "%s", text);
    is_i64((int64_t)strlen(err.msg), sizeof err.msg - 1,
           "a long sentence is cut");
    err_prefix(&err, "in front");
    is_i64((int64_t)strlen(err.msg), sizeof err.msg - 1,
           "a prefix to a full sentence is cut at its end");
    ok(!strncmp(err.msg, "in front: xxx", 13), "and keeps the prefix");
    err_prefix(&err, "%s", text);
    is_i64((int64_t)strlen(err.msg), sizeof err.msg - 1,
           "a prefix that is too long is cut as well");
}

/* Setting a struct err that was never zeroed, as on the stack, must work. */
static void test_not_zeroed(void)
{
    struct err err;
    char text[2 * sizeof err.msg];

    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    memset(&err, 'y', sizeof err);
    err_set(&err, ERR_IO, "short");
    err_prefix(&err, "%s", text);
    ok(memchr(err.msg, '\0', sizeof err.msg) == err.msg + sizeof err.msg - 1,
       "a long prefix ends inside an err that was not zeroed");
}

/* A message is one line of plain text, whatever is inserted into it. */
static void test_hostile(void)
{
    struct err err = {0};

    err_set(&err, ERR_INPUT, "no file '%s'", "a\nb\x1b[2J\xc2\x9b\xff");
    is_str(err.msg, "no file 'a\\u000ab\\u001b[2J\\u009b\\xff'",
           "a sentence is quoted");
    err_prefix(&err, "%s", "x\ry");
    is_str(err.msg, "x\\u000dy: no file 'a\\u000ab\\u001b[2J\\u009b\\xff'",
           "and so is its prefix, once");
    err_set(&err, ERR_INPUT, "%s: no '%s' in '%.4s', it's 'x%d%s'", "it's",
            "a' or 'b", "'c'd'e", 7, "'");
    is_str(err.msg,
           "it's: no 'a\\u0027 or \\u0027b' in '\\u0027c\\u0027d', it's "
           "'x7\\u0027'",
           "quotes in quotes are quoted");
    err_prefix(&err, "file '%s'", "<'>");
    is_str(err.msg,
           "file '<\\u0027>': it's: no 'a\\u0027 or \\u0027b' in "
           "'\\u0027c\\u0027d', it's 'x7\\u0027'",
           "once");
}

static void test_exit_status(void)
{
    is_i64(err_exit_status(ERR_NONE), 0, "no error exits with 0");
    is_i64(err_exit_status(ERR_INPUT), 1, "bad input with 1");
    is_i64(err_exit_status(ERR_IO), 1, "a refusal of the system with 1");
    is_i64(err_exit_status(ERR_DEVICE), 1, "a device with 1");
    is_i64(err_exit_status(ERR_INTERRUPTED), 130, "an interrupt with 130");
    is_i64(err_exit_status(ERR_USAGE), 2, "usage with 2");
    is_i64(err_exit_status(ERR_NO_PLAN), 3, "no plan with 3");
}

int main(void)
{
    test_set();
    test_long();
    test_not_zeroed();
    test_hostile();
    test_exit_status();
    return tap_done();
}
