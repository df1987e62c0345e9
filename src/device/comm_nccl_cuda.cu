/* SPDX-License-Identifier: MIT */
#include "device/comm_private.h"
#include "device/cuda_private.cuh"

#include <string.h>

int comm_gpu_of(struct comm_gpu *gpu, struct device *device, struct err *err)
{
    struct device_cuda *cuda = device_cuda_of(device);
    cudaDeviceProp properties;

    if (CUDA(cudaGetDeviceProperties(&properties, cuda->ordinal), err))
        return -1;
    static_assert(sizeof properties.uuid == sizeof gpu->identity,
                  "a UUID has 16 bytes");
    memcpy(gpu->identity, &properties.uuid, sizeof gpu->identity);
    gpu->stream = cuda->stream;
    return 0;
}
