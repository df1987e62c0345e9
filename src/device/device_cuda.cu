/* SPDX-License-Identifier: MIT */
#include <cuda_runtime.h>

#include "device/device_ops.h"

unsigned device_count_cuda(void)
{
    int n = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess) {
        cudaGetLastError(); /* no driver or no GPU: not an error here */
        return 0;
    }
    return n > 0 ? (unsigned)n : 0;
}

int device_open_cuda(struct device **out, unsigned ordinal, struct err *err)
{
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);

    (void)out;
    if (status != cudaSuccess)
        return err_set(err, ERR_DEVICE, "cannot open GPU %u: %s", ordinal,
                       cudaGetErrorString(status));
    if (ordinal >= (unsigned)n)
        return err_set(err, ERR_DEVICE,
                       "cannot open GPU %u: this machine has %d", ordinal, n);
    return err_set(err, ERR_DEVICE,
                   "cannot open GPU %u: version %s looks embeddings up on "
                   "CPUs only",
                   ordinal, NEUROSHARD_VERSION);
}
