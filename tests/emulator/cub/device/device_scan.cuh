/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_TESTS_CUB_SCAN_CUH
#define NEUROSHARD_TESTS_CUB_SCAN_CUH

#include <type_traits>

#include "emulated_phases.h"

namespace cub
{

struct DeviceScan {
    /* Sums are computed in the input's type, as in CUB. */
    template <typename In, typename Out, typename N>
    static cudaError_t ExclusiveSum(void *d_temp, size_t &temp_bytes, In in,
                                    Out out, N n, cudaStream_t stream = 0)
    {
        return emulated_phases(d_temp, temp_bytes,
                               emulated_temp_bytes((uint64_t)n), stream, [=]() {
                                   std::decay_t<decltype(in[0])> sum{};

                                   for (N i = 0; i < n; i++) {
                                       auto own = in[i];

                                       out[i] = sum;
                                       sum += own;
                                   }
                               });
    }
};

} // namespace cub

#endif
