/* SPDX-License-Identifier: MIT */
#include "device/elementwise.h"

#include "device/device_ops.h"

int device_elementwise(struct device *device, const struct elementwise *job,
                       struct err *err)
{
    return device->ops->elementwise(device, job, err);
}
