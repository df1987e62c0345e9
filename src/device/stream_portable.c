/* SPDX-License-Identifier: MIT */
#include "device/stream_kernels.h"

#define STREAM_ROWS stream_rows_portable
#include "device/stream_body.h"
