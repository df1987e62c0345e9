/* SPDX-License-Identifier: MIT */
#include "io/shell_arith.h"

#include <stdlib.h>
#include <string.h>

/* Evaluates the shell's arithmetic expressions on 64-bit integers, by
 * precedence climbing. The result is unknown if an operation overflows, divides
 * by zero or assigns. */

struct sum {
    struct shell *shell;
    const char *pos;
    unsigned depth;
};

#define MAX_DEPTH 64

/* Binary operators. Longer operators come first, because the first operator
 * that matches is used. */
static const struct operator
{
    const char *text;
    int rank;
}
operators[] = {
    {"**", 11}, {"<<", 8}, {">>", 8}, {"<=", 7}, {">=", 7},
    {"==", 6},  {"!=", 6}, {"&&", 2}, {"||", 1}, {"*", 10},
    {"/", 10},  {"%", 10}, {"+", 9},  {"-", 9},  {"<", 7},
    {">", 7},   {"&", 5},  {"^", 4},  {"|", 3},
};

static bool climb(struct sum *sum, int rank, int64_t *out);

static void skip_blanks(struct sum *sum)
{
    sum->pos += strspn(sum->pos, " \t\r\n");
}

static bool read_number(const char *text, size_t len, int64_t *out)
{
    char *end;
    long long value;

    if (!len || len > 20 || (text[0] == '0' && len > 1))
        return false; /* octal and hexadecimal numbers count as unknown */
    value = strtoll(text, &end, 10);
    *out = value;
    return end == text + len && value < INT64_MAX;
}

static bool read_operand(struct sum *sum, int64_t *out)
{
    const struct shell_variable *variable;
    const char *value;
    size_t len = shell_name_length(sum->pos);
    char name[64];

    if (len) {
        if (len >= sizeof(name))
            return false;
        memcpy(name, sum->pos, len);
        name[len] = '\0';
        sum->pos += len;
        variable = shell_find(sum->shell, name);
        value = variable ? variable->value : NULL;
        return value && read_number(value, strlen(value), out);
    }
    len = strspn(sum->pos, "0123456789");
    if (strchr(SHELL_NAME, sum->pos[len]) && sum->pos[len])
        return false;
    sum->pos += len;
    return read_number(sum->pos - len, len, out);
}

static bool read_unary(struct sum *sum, int64_t *out)
{
    const char sign = (skip_blanks(sum), *sum->pos);

    if (sum->depth >= MAX_DEPTH)
        return false;
    if (sign && strchr("+-!~", sign)) {
        sum->pos++;
        if (*sum->pos == sign)
            return false; /* ++ and -- assign to a variable */
        sum->depth++;
        if (!read_unary(sum, out) || *out == INT64_MIN)
            return false;
        sum->depth--;
        *out = sign == '-'   ? -*out
               : sign == '!' ? !*out
               : sign == '~' ? ~*out
                             : *out;
        return true;
    }
    if (sign != '(')
        return read_operand(sum, out);
    sum->pos++;
    sum->depth++;
    if (!climb(sum, 0, out))
        return false;
    sum->depth--;
    skip_blanks(sum);
    return *sum->pos++ == ')';
}

static bool power(int64_t base, int64_t n, int64_t *out)
{
    *out = 1;
    if (n < 0 || n > 63)
        return false;
    while (n--)
        if (__builtin_mul_overflow(*out, base, out))
            return false;
    return true;
}

static bool apply(const char *name, int64_t x, int64_t y, int64_t *out)
{
    switch (name[0]) {
    case '+':
        return !__builtin_add_overflow(x, y, out);
    case '-':
        return !__builtin_sub_overflow(x, y, out);
    case '*':
        return name[1] ? power(x, y, out) : !__builtin_mul_overflow(x, y, out);
    case '/':
    case '%':
        if (!y || (x == INT64_MIN && y == -1))
            return false;
        *out = name[0] == '/' ? x / y : x % y;
        return true;
    case '<':
        if (name[1] == '<')
            return y >= 0 && y < 63 && x >= 0 &&
                   !__builtin_mul_overflow(x, INT64_C(1) << y, out);
        *out = name[1] ? x <= y : x < y;
        return true;
    case '>':
        if (name[1] == '>') {
            *out = y >= 0 && y < 64 ? x >> y : 0;
            return y >= 0 && y < 64 && x >= 0;
        }
        *out = name[1] ? x >= y : x > y;
        return true;
    case '&':
        *out = name[1] ? x && y : (x & y);
        return true;
    case '|':
        *out = name[1] ? x || y : (x | y);
        return true;
    case '^':
        *out = x ^ y;
        return true;
    default:
        *out = name[0] == '=' ? x == y : x != y;
        return true;
    }
}

static const struct operator* find_operator(const char *pos)
{
    for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++)
        if (!strncmp(pos, operators[i].text, strlen(operators[i].text)))
            return &operators[i];
    return NULL;
}

static bool climb(struct sum *sum, int rank, int64_t *out)
{
    int64_t y, z;

    if (!read_unary(sum, out))
        return false;
    for (;;) {
        const struct operator*
            next =(skip_blanks(sum), find_operator(sum->pos));

        if (*sum->pos == '?' && rank <= 0) {
            sum->pos++;
            if (!climb(sum, 0, &y) || (skip_blanks(sum), *sum->pos++ != ':') ||
                !climb(sum, 0, &z))
                return false;
            *out = *out ? y : z;
            continue;
        }
        if (!next || next->rank < rank || next->rank < 1)
            return true;
        sum->pos += strlen(next->text);
        if (*sum->pos == '=' || ++sum->depth > MAX_DEPTH)
            return false;
        if (!climb(sum, next->rank + (next->rank != 11), &y) ||
            !apply(next->text, *out, y, out))
            return false;
        sum->depth--;
    }
}

bool shell_calculate(struct shell *shell, const char *text, int64_t *out)
{
    struct sum sum = {.shell = shell, .pos = text};

    if (!climb(&sum, 0, out))
        return false;
    skip_blanks(&sum);
    return !*sum.pos;
}
