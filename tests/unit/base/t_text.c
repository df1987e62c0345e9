/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include "base/printable.h"

#include "tests/tap.h"

static void test_u64(void)
{
    static const struct {
        const char *text;
        bool fits;
        uint64_t value;
    } cases[] = {
        {"0", true, 0},
        {"007", true, 7},
        {"18446744073709551615", true, UINT64_MAX},
        {"18446744073709551616", false, 0},
        {"18446744073709551620", false, 0},
        {"99999999999999999999", false, 0},
        {"", false, 0},
        {"-1", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1.0", false, 0},
        {"0x10", false, 0},
        {"1e3", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t got = 12345;
        bool fits = text_to_u64(cases[i].text, &got);

        ok(fits == cases[i].fits && got == (fits ? cases[i].value : 12345),
           "u64 of '%s'", cases[i].text);
    }
}

static void test_double(void)
{
    static const struct {
        const char *text;
        bool fits;
        double value;
    } cases[] = {
        {"0", true, 0},
        {"1.5", true, 1.5},
        {"-1.5", true, -1.5},
        {".5", true, 0.5},
        {"5.", true, 5},
        {"1e3", true, 1000},
        {"1E+3", true, 1000},
        {"1e-3", true, 0.001},
        {"1.7976931348623157e308", true, 1.7976931348623157e308},
        {"0.1000000000000000055511151231257827021181583404541015625", true,
         0.1},
        {"1e-400", true, 0},
        {"1e309", false, 0},
        {"-1e309", false, 0},
        {"nan", false, 0},
        {"inf", false, 0},
        {"-inf", false, 0},
        {"infinity", false, 0},
        {"0x1p3", false, 0},
        {"0x10", false, 0},
        {"", false, 0},
        {"-", false, 0},
        {".", false, 0},
        {"e5", false, 0},
        {"1e", false, 0},
        {"1e+", false, 0},
        {"1,5", false, 0},
        {"1.5.2", false, 0},
        {"+1", false, 0},
        {" 1", false, 0},
        {"1 ", false, 0},
        {"1f", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = 12345;
        bool fits = text_to_double(cases[i].text, &got);
        double want = fits ? cases[i].value : 12345;

        ok(fits == cases[i].fits && !(got < want) && !(got > want),
           "double of '%s'", cases[i].text);
    }
}

static void test_bytes(void)
{
    static const struct {
        const char *text;
        bool fits;
        uint64_t value;
    } cases[] = {
        {"4096", true, 4096},
        {"0", true, 0},
        {"17 B", true, 17},
        {"1KiB", true, 1024},
        {"512 MiB", true, UINT64_C(512) << 20},
        {"80GiB", true, UINT64_C(80) << 30},
        {"1.5TiB", true, UINT64_C(1536) << 30},
        {"1KB", true, 1000},
        {"80 GB", true, UINT64_C(80000000000)},
        {"0.5KiB", true, 512},
        {"0.3333KiB", true, 341},
        {"9223372036854775807", true, INT64_MAX},
        {"9223372036854775808", false, 0},
        {"8388607TiB", true, UINT64_C(8388607) << 40},
        {"8388608TiB", false, 0},
        {"8388608.5TiB", false, 0},
        {"99999999999999999999GiB", false, 0},
        {"", false, 0},
        {"GiB", false, 0},
        {"80 ", false, 0},
        {"80  GiB", false, 0},
        {"80GiB ", false, 0},
        {" 80GiB", false, 0},
        {"-1GiB", false, 0},
        {"80gib", true, UINT64_C(80) << 30},
        {"80G", true, UINT64_C(80) << 30},
        {"80g", true, UINT64_C(80) << 30},
        {"1.5t", true, UINT64_C(1536) << 30},
        {"2 k", true, 2048},
        {"3m", true, UINT64_C(3) << 20},
        {"80Gi", false, 0},
        {"80gg", false, 0},
        {"1.5", false, 0},
        {"1.5B", false, 0},
        {"1e3KiB", false, 0},
        {"infGiB", false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t got = 12345;
        bool fits = text_to_bytes(cases[i].text, &got);

        ok(fits == cases[i].fits && got == (fits ? cases[i].value : 12345),
           "bytes of '%s'", cases[i].text);
    }
}

static void test_share(void)
{
    static const struct {
        const char *text;
        uint64_t whole;
        bool is_right;
        uint64_t value;
    } cases[] = {
        {"15%", 1000, true, 150},     {"0%", 1000, true, 0},
        {"100%", 7, true, 7},         {"0.5%", 1000, true, 5},
        {"33%", 10, true, 3},         {"1KiB", 1024, true, 1024},
        {"1000", 1000, true, 1000},   {"1KiB", 1023, false, 0},
        {"100.1%", 1000, false, 0},   {"-1%", 1000, false, 0},
        {"%", 1000, false, 0},        {"", 1000, false, 0},
        {"15 percent", 99, false, 0}, {"nan%", 1000, false, 0},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t got = 0;
        bool is_right = text_to_share(cases[i].text, cases[i].whole, &got);

        ok(is_right == cases[i].is_right &&
               (!is_right || got == cases[i].value),
           "'%s' of %d bytes", cases[i].text, (int)cases[i].whole);
    }
}

static void test_print(void)
{
    char buf[TEXT_BYTES_MAX];

    is_str(text_from_bytes(buf, 512), "512 B", "bytes");
    is_str(text_from_bytes(buf, 0), "0 B", "no bytes");
    is_str(text_from_bytes(buf, 1536), "1.50 KiB", "kibibytes");
    is_str(text_from_bytes(buf, 80.0 * 1024 * 1024 * 1024), "80.0 GiB",
           "gibibytes");
    is_str(text_from_bytes(buf, 300.4 * 1024), "300 KiB", "no decimals");
    is_str(text_from_bytes(buf, -1536), "-1.50 KiB", "a negative difference");
    is_str(text_from_bytes(buf, 0x1p70), "1024 EiB", "beyond the last unit");
    is_str(text_from_count(buf, 0), "0", "count of none");
    is_str(text_from_count(buf, 999), "999", "count without a comma");
    is_str(text_from_count(buf, 1000), "1,000", "count with one");
    is_str(text_from_count(buf, 1234567), "1,234,567", "count with two");
    is_str(text_from_count(buf, UINT64_MAX), "18,446,744,073,709,551,615",
           "the largest count");
}

static void test_utf8(void)
{
    static const struct {
        const char *text;
        bool is_valid;
    } cases[] = {
        {"", true},
        {"plain", true},
        {"\xc3\xa9", true},
        {"\xe2\x82\xac", true},
        {"\xf0\x9f\x98\x80", true},
        {"\xf4\x8f\xbf\xbf", true},
        {"\xf4\x90\x80\x80", false}, /* beyond U+10FFFF */
        {"\xc0\x80", false},         /* overlong */
        {"\xc1\xbf", false},         /* overlong */
        {"\xe0\x9f\xbf", false},     /* overlong */
        {"\xf0\x8f\xbf\xbf", false}, /* overlong */
        {"\xed\xa0\x80", false},     /* surrogate */
        {"\xed\x9f\xbf", true},
        {"\xee\x80\x80", true},
        {"\xe2\x82", false}, /* truncated */
        {"\xf0\x9f\x98", false},
        {"\x80", false},
        {"a\xffz", false},
        {"\xc3z", false},
        {"\xe2\x82z", false},
        {"\xf5\x80\x80\x80", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ok(text_is_utf8(cases[i].text, strlen(cases[i].text)) ==
               cases[i].is_valid,
           "utf-8 case %zu", i);
    ok(text_is_utf8("a\0b", 3), "NUL is a character");
    ok(!text_is_utf8("\xe2\x82\xac", 2), "len cuts a character");
}

static void test_quote(void)
{
    static const struct {
        const char *text, *quoted;
    } cases[] = {
        {"", NULL},
        {"t\303\244ble 'a' \"b\" \\ $(x)", NULL},
        {"\xf0\x9f\x98\x80 \xe4\xb8\xad \xc2\xa0", NULL},
        {"\x1b[31m", "\\u001b[31m"},
        {"a\nb\tc\rd\x7f", "a\\u000ab\\u0009c\\u000dd\\u007f"},
        {"\xc2\x9b"
         "31m\xc2\x80",
         "\\u009b31m\\u0080"},
        {"\x9b"
         "31m",
         "\\x9b31m"},
        {"caf\xe9", "caf\\xe9"},
        {"\xe2\x82", "\\xe2\\x82"},
        {"\xe2\x80\xae"
         "a\xe2\x80\xa9\xe2\x80\x8b",
         "\\u202ea\\u2029\\u200b"},
        {"\xef\xbb\xbf\xf3\xa0\x80\x81", "\\ufeff\\ue0001"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *text = cases[i].text, *want = cases[i].quoted;
        char quoted[128];
        size_t len = text_quote(quoted, sizeof quoted, text);

        is_str(quoted, want ? want : text, "quoted");
        ok(len == strlen(quoted), "its length");
        ok(text_is_printable(text) == !want, "is printable or not");
    }
}

/* Quotes random bytes: the result is printable, is unchanged by quoting it
 * again and is no longer than declared. If the buffer is short, it holds the
 * beginning of the result. */
static void test_quote_random(void)
{
    static const char *const pieces[] = {
        "a",    "\n",   "\x1b",     "\xc2", "\x9b", "\xe2",
        "\x80", "\xae", "\xc3\xa4", "\\",   "'",    "\xf0\x9f\x98\x80"};
    size_t n_bad = 0;

    for (uint32_t i = 0, state = 1; i < 20000; i++) {
        char text[64] = "", quoted[256], again[256], cut[16];
        size_t len = 0;

        for (int k = 0; k < 12; k++) {
            const char *piece = pieces[(state >> 16) % 12];

            memcpy(text + len, piece, strlen(piece) + 1);
            len += strlen(piece);
            state = state * 1664525 + 1013904223;
        }
        len = text_quote(quoted, sizeof quoted, text);
        text_quote(again, sizeof again, quoted);
        text_quote(cut, sizeof cut, text);
        n_bad += !text_is_printable(quoted) || strcmp(quoted, again) != 0 ||
                 len > TEXT_QUOTED_MAX * strlen(text) ||
                 !text_is_printable(cut) ||
                 strncmp(cut, quoted, strlen(cut)) != 0;
    }
    is_i64((int64_t)n_bad, 0, "20000 random texts");
}

static void test_shown(void)
{
    struct arena arena = {0};
    const char *text = "plain";

    ok(text_shown(text, &arena) == text, "printable text is shown unchanged");
    is_str(text_shown("a\n\n\n", &arena), "a\\u000a\\u000a\\u000a",
           "other text is quoted");
    arena_release(&arena);
}

static void test_list(void)
{
    static const char *const names[] = {"a", "b", "c", NULL};
    struct arena arena = {0};

    is_str(text_list(names, " or ", &arena), "a, b or c", "three names");
    is_str(text_list(names + 1, ", ", &arena), "b, c", "two");
    is_str(text_list(names + 2, " or ", &arena), "c", "one");
    arena_release(&arena);
}

static void test_one_of(void)
{
    static const char *const none[] = {"",           "r", "rowss",
                                       "hash_size|", "|", "rows|hash_size"};

    ok(text_which("rows|hash_size", "rows") >= 0, "the first of the names");
    ok(text_which("rows|hash_size", "hash_size") >= 0, "and the last");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        ok(text_which("rows|hash_size", none[i]) < 0, "but not '%s'", none[i]);
}

static void test_wrapped(void)
{
    static const struct {
        const char *text;
        size_t at, indent, n_columns;
        const char *printed;
    } cases[] = {
        {"one two three", 0, 0, 13, "one two three"},
        {"one two three", 0, 0, 12, "one two\nthree"},
        {"one two three", 4, 2, 8, "one\n  two\n  three"},
        {"one two three", 0, 1, 4, "one\n two\n thr\n ee"},
        {" a  b ", 0, 0, 80, "a  b"},
        {"\303\251\303\251 b", 0, 0, 4, "\303\251\303\251 b"},
        {"one two three", 0, 0, SIZE_MAX, "one two three"},
        {"", 0, 0, 1, ""},
        {"a 12345678", 0, 2, 6, "a\n  1234\n  5678"},
        {"12345678 b", 2, 2, 6, "1234\n  5678\n  b"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};

        text_wrap(&out, cases[i].text, cases[i].at, cases[i].indent,
                  cases[i].n_columns);
        is_str(out.data ? out.data : "", cases[i].printed, cases[i].text);
        buf_release(&out);
    }
}

static void test_wrapped_lines(void)
{
    static const char text[] = "label   two words and more\n"
                               "\n"
                               "  so far right\n"
                               "  1.250   2.500\n"
                               "        /one/path/that/is/long\n"
                               "four and others went\n";
    struct buf out = {0}, whole = {0};

    text_wrap_lines(&out, text, 18);
    is_str(out.data ? out.data : "",
           "label   two words\n"
           "        and more\n"
           "\n"
           "  so far right\n"
           "  1.250   2.500\n"
           "        /one/path/\n"
           "        that/is/lo\n"
           "        ng\n"
           "four and others\n"
           "    went\n",
           "what goes on stands below the text");
    buf_release(&out);
    text_wrap_lines(&whole, text, SIZE_MAX);
    is_str(whole.data ? whole.data : "", text, "or all is as it was");
    buf_release(&whole);
}

static void test_column(void)
{
    static const struct {
        const char *text;
        unsigned width;
        const char *printed;
    } cases[] = {
        {"short", 8, "short   "},
        {"just so", 7, "just so"},
        {"a long name", 7, "a l~ame"},
        {"a long name", 6, "a ~ame"},
        {"a long name", 2, "~e"},
        {"a long name", 1, "~"},
        {"", 2, "  "},
        {"\303\251\303\250\303\240\303\251\303\250", 4,
         "\303\251~\303\251\303\250"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};

        text_column(&out, cases[i].text, cases[i].width);
        is_str(out.data ? out.data : "", cases[i].printed, cases[i].text);
        buf_release(&out);
    }
}

static void test_nearest(void)
{
    static const char *const names[] = {"2080-ti", "a100",      "a100-40gb",
                                        "h100",    "h100-pcie", "h20",
                                        "mi300x",  NULL};
    static const struct {
        const char *name, *near; /* expected suggestion; NULL: none */
    } cases[] = {
        {"h100", "h100"},
        {"H100-PCIe", "h100-pcie"}, /* the nearer one of two candidates */
        {"h100_pcle", "h100-pcie"},
        {"2080 Ti", "2080-ti"},
        {"h10", "h100"}, /* a prefix of two names: the shorter one */
        {"a100-40", "a100-40gb"},
        {"H100-SXM", "h100"},
        {"h20e", "h20"},
        {"h101", "h100"},
        {"mi350x", "mi300x"},
        {"H2", "h20"},
        {"b100", NULL},
        {"h", NULL},
        {"h-100", NULL},
        {"-", NULL},
        {"", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *near = text_nearest(names, cases[i].name);

        is_str(near ? near : "none", cases[i].near ? cases[i].near : "none",
               cases[i].name);
    }
}

static void test_rate(void)
{
    static const struct {
        const char *text;
        double rate; /* 0: refused */
        const char *printed;
    } cases[] = {
        {"30M", 30e6, "30.0M"},   {"1.5G", 1.5e9, "1.50G"},
        {"2k", 2000, "2.00k"},    {"2e6", 2e6, "2.00M"},
        {"999", 999, "999"},      {"999.6", 999.6, "1.00k"},
        {"1e13", 1e13, "10000G"}, {"0", 0, NULL},
        {"-1M", 0, NULL},         {"30m", 0, NULL},
        {"M", 0, NULL},           {"", 0, NULL},
        {"30MM", 0, NULL},        {"1e308G", 0, NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct buf out = {0};
        double rate = 0;

        if (!cases[i].printed) {
            ok(!text_to_rate(cases[i].text, &rate), "'%s' is none",
               cases[i].text);
            continue;
        }
        ok(text_to_rate(cases[i].text, &rate), "rate '%s'", cases[i].text);
        is_near(rate, cases[i].rate, 1e-6 * rate, "its value");
        text_print_rate(rate, &out);
        is_str(out.data, cases[i].printed, "printed");
        buf_release(&out);
    }
}

int main(void)
{
    test_rate();
    test_nearest();
    test_wrapped();
    test_wrapped_lines();
    test_column();
    test_quote();
    test_quote_random();
    test_shown();
    test_list();
    test_one_of();
    test_u64();
    test_double();
    test_bytes();
    test_share();
    test_print();
    test_utf8();
    return tap_done();
}
