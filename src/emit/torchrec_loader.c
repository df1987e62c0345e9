/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

/*
 * TorchRec writes plans but does not read them. This module does, and checks
 * what TorchRec leaves unchecked: that the plan is for a job of this shape,
 * that plan and model name the same modules and tables, of the same sizes, and
 * that a rank's pieces of a table are of one width.
 */
FILE_TEXT(torchrec_loader_py, "src/python/neuroshard/_loader.py");

static int print_loader(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    (void)plan;
    (void)options;
    (void)err;
    buf_printf(out, "%s", torchrec_loader_py);
    return 0;
}

const struct emitter emit_torchrec_loader = {print_loader, NULL};
