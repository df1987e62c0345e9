/* SPDX-License-Identifier: MIT */
/* Shell arithmetic. Each known value equals that of bash. Some expressions stay
 * unknown although bash can evaluate them. */
#include "io/shell_arith.h"

#include "tests/tap.h"

#define LONGEST \
    "a_name_of_sixty_three_letters_is_the_longest_that_is_read_here_"

/* W, G and the variable with the longest name are whole numbers. X and WORD are
 * not, and BIG is too large. */
static struct shell_variable variables[] = {
    {"W", "8", false},
    {"G", "64", false},
    {"X", NULL, false},
    {"WORD", "many", false},
    {"BIG", "9223372036854775807", false},
    {LONGEST, "3", false},
};

static void test_expressions(void)
{
    static const struct {
        const char *text;
        bool is_known;
        int64_t value;
    } CASES[] = {
        {"1+2", true, 3},
        {"7-10", true, -3},
        {"6*7", true, 42},
        {"2**10", true, 1024},
        {"2**0", true, 1},
        {"(-3)**3", true, -27},
        {"2**62", true, 4611686018427387904},
        {"2**3**2", true, 512},
        {"-2**2", true, 4},
        {"7/2", true, 3},
        {"-7/2", true, -3},
        {"7%3", true, 1},
        {"-7%3", true, -1},
        {"1<<10", true, 1024},
        {"0<<3", true, 0},
        {"1<<61", true, 2305843009213693952},
        {"4>>1", true, 2},
        {"9>>0", true, 9},
        {"1>>63", true, 0},
        {"3<4", true, 1},
        {"4<4", true, 0},
        {"5<4", true, 0},
        {"3<=4", true, 1},
        {"4<=4", true, 1},
        {"5<=4", true, 0},
        {"4>3", true, 1},
        {"4>4", true, 0},
        {"4>5", true, 0},
        {"4>=3", true, 1},
        {"4>=4", true, 1},
        {"4>=5", true, 0},
        {"4==4", true, 1},
        {"4==5", true, 0},
        {"4!=4", true, 0},
        {"4!=5", true, 1},
        {"2&&3", true, 1},
        {"2&&0", true, 0},
        {"0&&3", true, 0},
        {"0||0", true, 0},
        {"0||3", true, 1},
        {"2||0", true, 1},
        {"6&3", true, 2},
        {"6|3", true, 7},
        {"6^3", true, 5},
        {"-5", true, -5},
        {"+5", true, 5},
        {"!5", true, 0},
        {"!0", true, 1},
        {"~5", true, -6},
        {"~-1", true, 0},
        {"- -5", true, 5},
        {"2+3*4", true, 14},
        {"(2+3)*4", true, 20},
        {"2*3+4", true, 10},
        {"10-4-3", true, 3},
        {"100/10/5", true, 2},
        {"2*3%4", true, 2},
        {"1+2<<3", true, 24},
        {"1<<2+3", true, 32},
        {"8>>1<2", true, 0},
        {"1<2==1", true, 1},
        {"3<2==0", true, 1},
        {"6&3==3", true, 0},
        {"1|6&3", true, 3},
        {"5^1|2", true, 6},
        {"1^3&2", true, 3},
        {"1&&0||1", true, 1},
        {"1||1&&0", true, 1},
        {"0?5:6", true, 6},
        {"1?5:6", true, 5},
        {"1?0?7:8:9", true, 8},
        {"0?1:0?2:3", true, 3},
        {"2>1?10:20", true, 10},
        {"1+1?3:4", true, 3},
        {"W+1", true, 9},
        {"W*G", true, 512},
        {"W?G:1", true, 64},
        {" ( 1 + 2 ) * 3 ", true, 9},
        {"9223372036854775806", true, 9223372036854775806},
        {"4611686018427387904+4611686018427387903", true, 9223372036854775807},
        {"1+", false, 0},
        {"*2", false, 0},
        {"(1", false, 0},
        {"1)", false, 0},
        {"()", false, 0},
        {"1 2", false, 0},
        {"4/0", false, 0},
        {"4%0", false, 0},
        {"1<<63", false, 0},
        {"1<<-1", false, 0},
        {"1<<64", false, 0},
        {"-1<<1", false, 0},
        {"2<<62", false, 0},
        {"-8>>1", false, 0},
        {"1>>64", false, 0},
        {"1>>-1", false, 0},
        {"2**-1", false, 0},
        {"2**63", false, 0},
        {"3**64", false, 0},
        {"1**64", false, 0},
        {"-1**65", false, 0},
        {"5000000000*5000000000", false, 0},
        {"9223372036854775806+2", false, 0},
        {"-9223372036854775806-3", false, 0},
        {"9223372036854775807", false, 0},
        {"007", false, 0},
        {"0x10", false, 0},
        {"12a", false, 0},
        {"X", false, 0},
        {"NONE", false, 0},
        {"WORD", false, 0},
        {"BIG", false, 0},
        {"++W", false, 0},
        {"--W", false, 0},
        {"W++", false, 0},
        {"W--", false, 0},
        {"W=1", false, 0},
        {"W+=1", false, 0},
        {"W*=2", false, 0},
        {"1?2", false, 0},
        {"1?2:", false, 0},
        {"?2:3", false, 0},
        {"1:2", false, 0},
        {"@", false, 0},
        {"#", false, 0},
        {"1,2", false, 0},
        {"a_name_of_sixty_four_letters_is_longer_than_any_that_is_read_here",
         false, 0},
        {LONGEST "+1", true, 4},
    };
    struct shell shell = {
        .variables = {variables, sizeof(variables) / sizeof(*variables), 0, 0}};

    for (size_t i = 0; i < sizeof(CASES) / sizeof(*CASES); i++) {
        int64_t value = 0;
        const bool is_known = shell_calculate(&shell, CASES[i].text, &value);

        if (!is_known)
            value = 0;
        ok(is_known == CASES[i].is_known && value == CASES[i].value,
           "%s: %s %lld", CASES[i].text, is_known ? "is" : "not known",
           (long long)value);
    }
}

/* Brackets and signs may be nested 63 deep, but not deeper. */
static void test_depth(void)
{
    struct shell shell = {0};

    for (unsigned depth = 62; depth < 67; depth++) {
        char brackets[200] = "", signs[200] = "";
        int64_t value;

        memset(brackets, '(', depth);
        brackets[depth] = '7';
        memset(brackets + depth + 1, ')', depth);
        for (unsigned i = 0; i < depth; i++)
            signs[i] = i % 2 ? '-' : '~';
        signs[depth] = '7';
        ok(shell_calculate(&shell, brackets, &value) == (depth < 64),
           "%u brackets", depth);
        ok(shell_calculate(&shell, signs, &value) == (depth < 64), "%u signs",
           depth);
    }
    /* only nesting counts: the length of an expression is not limited */
    {
        char text[400] = "1";
        int64_t value = 0;
        size_t n = 1;

        for (unsigned i = 0; i < 90; i++)
            n += (size_t)snprintf(text + n, sizeof(text) - n, "%s",
                                  i % 3   ? "+1"
                                  : i % 2 ? "+(1)"
                                          : "+ -1");
        ok(shell_calculate(&shell, text, &value) && value == 61,
           "a long sum: %lld", (long long)value);
    }
}

int main(void)
{
    test_expressions();
    test_depth();
    return tap_done();
}
