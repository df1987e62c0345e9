/* SPDX-License-Identifier: MIT */
#include "device/comm_private.h"

/* Not reached: a build without CUDA opens no GPU. */
int comm_gpu_of(struct comm_gpu *gpu, struct device *device, struct err *err)
{
    (void)gpu;
    (void)device;
    return err_set(err, ERR_DEVICE, "this build has no CUDA body");
}
