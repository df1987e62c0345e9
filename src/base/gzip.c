/* SPDX-License-Identifier: MIT */
#define ZLIB_CONST /* zlib reads constant data */
#include "base/gzip.h"

#include "base/host_device.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#define CHUNK ((size_t)256 << 10) /* bytes unpacked at a time */

bool gzip_is(const char *data, size_t len)
{
    return len >= 3 && !memcmp(data, "\x1f\x8b\x08", 3);
}

static const char *reason_of(int status)
{
    if (status == Z_BUF_ERROR)
        return "its gzip data end early";
    if (status == Z_MEM_ERROR)
        mem_exhausted(1, CHUNK);
    return "its gzip data are damaged";
}

/* Unpacks one member. Moves *pos behind it. */
static const char *unpack_member(z_stream *stream, struct buf *out,
                                 const char **pos, const char *end,
                                 size_t max_bytes)
{
    int status = Z_OK;

    while (status != Z_STREAM_END) {
        const size_t n_in = min_u64((uint64_t)(end - *pos), UINT_MAX);
        const size_t n_out = min_u64(max_bytes - out->len, CHUNK);

        stream->next_in = (const Bytef *)*pos;
        stream->avail_in = (uInt)n_in;
        stream->next_out = (Bytef *)buf_reserve(out, n_out);
        stream->avail_out = (uInt)n_out;
        status = inflate(stream, Z_NO_FLUSH);
        *pos += n_in - stream->avail_in;
        out->len += n_out - stream->avail_out;
        if (status == Z_BUF_ERROR && !n_out)
            return "its unpacked content is too large";
        if (status != Z_OK && status != Z_STREAM_END)
            return reason_of(status);
    }
    return NULL;
}

const char *gzip_unpack(struct buf *out, const char *data, size_t len,
                        size_t max_bytes)
{
    const size_t n_before = out->len;
    const char *pos = data, *end = data + len, *reason = NULL;
    z_stream stream = {0};

    if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK)
        mem_exhausted(1, CHUNK);
    while (!reason && pos < end) {
        reason = unpack_member(&stream, out, &pos, end, n_before + max_bytes);
        inflateReset(&stream);
        /* gzip pads a file with zeros on some media. */
        while (!reason && pos < end && !*pos)
            pos++;
    }
    inflateEnd(&stream);
    return reason;
}
