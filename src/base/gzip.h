/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_GZIP_H
#define NEUROSHARD_BASE_GZIP_H

#include "base/mem.h"

/* Files of gzip (RFC 1952), unpacked by zlib. */

/* True if the data begin as a gzip file does. No text and no file of ours
 * begins so. */
bool gzip_is(const char *data, size_t len);

/* Unpacks a gzip file of one or several members, and appends its content to
 * `out`. Returns NULL, or the reason why it cannot, such as "its gzip data end
 * early". A content of more than max_bytes is such a reason, too; then at most
 * max_bytes have been appended. */
const char *gzip_unpack(struct buf *out, const char *data, size_t len,
                        size_t max_bytes);

#endif
