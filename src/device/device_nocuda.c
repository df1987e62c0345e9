/* SPDX-License-Identifier: MIT */
#include "device/device_ops.h"

unsigned device_count_cuda(void)
{
    return 0;
}

int device_open_cuda(struct device **out, unsigned ordinal, unsigned n_threads,
                     struct err *err)
{
    (void)out, (void)n_threads;
    return err_set(err, ERR_DEVICE,
                   "cannot open GPU %u: this build has no CUDA support (build "
                   "with CUDA=1)",
                   ordinal);
}
