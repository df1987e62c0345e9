/* SPDX-License-Identifier: MIT */
#define ZLIB_CONST
#include "base/gzip.h"

#include "base/file.h"
#include "base/file_write.h"

#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "tests/tap.h"

/* Appends a gzip member with this content. */
static void pack(struct buf *out, const char *content, size_t len)
{
    z_stream stream = {0};

    if (deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8,
                     Z_DEFAULT_STRATEGY) != Z_OK)
        abort();
    stream.next_in = (const Bytef *)content;
    stream.avail_in = (uInt)len;
    stream.avail_out = (uInt)deflateBound(&stream, len);
    stream.next_out = (Bytef *)buf_reserve(out, stream.avail_out);
    if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
        abort();
    out->len += stream.total_out;
    deflateEnd(&stream);
}

static void test_members(void)
{
    static const char zeros[600000];
    struct buf packed = {0}, out = {0};

    ok(!gzip_is("", 0) && !gzip_is("name,rows", 9), "a text");
    pack(&packed, "rows\n", 5);
    pack(&packed, zeros, sizeof(zeros));
    buf_add(&packed, zeros, 3);
    pack(&packed, "end", 3);
    ok(gzip_is(packed.data, packed.len), "a gzip file");
    buf_add(&out, "kept ", 5);
    is_str(gzip_unpack(&out, packed.data, packed.len, 1 << 20), NULL,
           "three members and padding");
    is_i64((int64_t)out.len, 5 + 5 + (int64_t)sizeof(zeros) + 3, "length");
    ok(!memcmp(out.data, "kept rows\n", 10) &&
           !memcmp(out.data + out.len - 3, "end", 3),
       "content");
    buf_release(&packed);
    buf_release(&out);
}

static void test_limit(void)
{
    struct buf packed = {0}, out = {0};

    pack(&packed, "0123456789", 10);
    buf_add(&out, "kept", 4);
    is_str(gzip_unpack(&out, packed.data, packed.len, 10), NULL, "10 bytes");
    out.len = 4;
    is_str(gzip_unpack(&out, packed.data, packed.len, 9),
           "its unpacked content is too large", "a byte too many");
    is_i64((int64_t)out.len, 4 + 9, "no more than the limit");
    buf_release(&packed);
    buf_release(&out);
}

/* Each cut and each changed bit gives a reason, except for bits of the header
 * that say nothing about the content. */
static void test_damage(void)
{
    static const char content[] = "name,num_embeddings,dim\na,10,4\nb,20,8\n";
    struct buf packed = {0};
    size_t n_cut = 0, n_wrong = 0;

    pack(&packed, content, sizeof(content));
    for (size_t len = 3; len < packed.len; len++) {
        struct buf out = {0};
        const char *reason =
            gzip_unpack(&out, packed.data, len, FILE_MAX_BYTES);

        n_cut += reason && !strcmp(reason, "its gzip data end early");
        buf_release(&out);
    }
    is_i64((int64_t)n_cut, (int64_t)packed.len - 3, "all cuts are refused");
    for (size_t bit = 0; bit < 8 * packed.len; bit++) {
        struct buf out = {0};
        const char *reason;

        packed.data[bit / 8] ^= (char)(1 << bit % 8);
        reason = gzip_unpack(&out, packed.data, packed.len, FILE_MAX_BYTES);
        n_wrong += !reason && (out.len != sizeof(content) ||
                               memcmp(out.data, content, sizeof(content)) != 0);
        packed.data[bit / 8] ^= (char)(1 << bit % 8);
        buf_release(&out);
    }
    is_i64((int64_t)n_wrong, 0, "no changed bit gives another content");
    buf_release(&packed);
}

static void test_file(void)
{
    struct buf packed = {0};
    struct arena arena = {0};
    struct err err = {0};
    const char *text;
    size_t len;

    pack(&packed, "a,1\n", 4);
    ok(!file_write("list.gz", packed.data, packed.len, &err), "write");
    ok(!file_read(&text, &len, "list.gz", &arena, &err), "read");
    is_str(text, "a,1\n", "unpacked");
    is_i64((int64_t)len, 4, "length");
    ok(!file_write("cut.gz", packed.data, packed.len - 1, &err), "write");
    ok(file_read(&text, &len, "cut.gz", &arena, &err), "read a cut file");
    is_i64(err.code, ERR_IO, "code");
    is_str(err.msg, "cannot read 'cut.gz': its gzip data end early", "reason");
    unlink("list.gz");
    unlink("cut.gz");
    buf_release(&packed);
    arena_release(&arena);
}

int main(void)
{
    test_members();
    test_limit();
    test_damage();
    test_file();
    return tap_done();
}
