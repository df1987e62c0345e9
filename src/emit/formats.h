/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EMIT_FORMATS_H
#define NEUROSHARD_EMIT_FORMATS_H

#include "emit/emit.h"

/* The emit functions of the formats, and what they share. */

int emit_torchrec(const struct plan *plan, const struct emit_options *options,
                  struct buf *out, struct err *err) MUST_CHECK;
int emit_torchrec_loader(const struct plan *plan,
                         const struct emit_options *options, struct buf *out,
                         struct err *err) MUST_CHECK;
int emit_dlrm(const struct plan *plan, const struct emit_options *options,
              struct buf *out, struct err *err) MUST_CHECK;
int emit_text(const struct plan *plan, const struct emit_options *options,
              struct buf *out, struct err *err) MUST_CHECK;

/* Appends text (UTF-8) as a JSON string, quoted and escaped. */
void emit_json_string(struct buf *out, const char *text);

/* Appends n_lines lines. */
void emit_lines(struct buf *out, const char *const *lines, size_t n_lines);

/* The end of table's shards, which begin at `begin`. */
size_t emit_shards_end(const struct plan *plan, size_t begin);

#endif
