/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_COSTMODEL_MODELFILE_GPU_FIELDS_H
#define NEUROSHARD_COSTMODEL_MODELFILE_GPU_FIELDS_H

#include "base/json.h"
#include "costmodel/formulas/gpu_spec.h"

/* Table of those members of a GPU file that are numbers or texts. Every number
 * is a figure that has a source in the file. The ranges are narrow enough to
 * catch MiB given as bytes and MHz given as GHz. Figures that the user changes
 * have the same ranges (costmodel/modelfile/gpu_changes.h). */
#define GPU(member) MEMBER_OF(struct gpu_spec, member)
static const struct place_field gpu_fields[] = {
    {"name", GPU(full_name), true, 0, 0, NULL},
    {"exchange", MEMBER_U32, offsetof(struct gpu_spec, comm_form), true, 0, 0,
     comm_form_names},
    {"memory_bytes", GPU(memory_bytes), true, 0x1p28, 0x1p44, NULL},
    {"gpus_per_host", GPU(gpus_per_host), true, 0, 1024, NULL},
    {"dram_gbps", GPU(dram_gbps), true, 1, 1e5, NULL},
    {"l2_gbps", GPU(l2_gbps), true, 1, 1e6, NULL},
    {"l2_bytes", GPU(l2_bytes), true, 0x1p16, 0x1p33, NULL},
    {"clock_ghz", GPU(clock_ghz), true, 0.1, 10, NULL},
    {"n_sms", GPU(n_sms), true, 1, 4096, NULL},
    {"row_cycles", GPU(row_cycles), true, 0.1, 1000, NULL},
    {"bag_row_us", GPU(bag_row_us), true, 0, 100, NULL},
    {"launch_us", GPU(launch_us), true, 0, 1000, NULL},
    {"intra_gbps", GPU(intra_gbps), true, CLUSTER_MIN_GBPS, 1e5, NULL},
    {"intra_alpha_us", GPU(intra_alpha_us), true, 0, 1e4, NULL},
    {"nic_gbps", GPU(nic_gbps), true, CLUSTER_MIN_GBPS, 1e4, NULL},
    {"host_gbps", GPU(host_gbps), false, 0.1, 1e4, NULL},
    {"host_memory_bytes", GPU(host_memory_bytes), false, 0x1p30, 0x1p48, NULL},
    {"host_memory_gbps", GPU(host_memory_gbps), false, 1, 1e5, NULL},
    {"cache_id_ns", GPU(cache_id_ns), false, 0.01, 1000, NULL},
    {"sheet_gbps", GPU(sheet_gbps), false, 1, 1e5, NULL},
    {"fp32_tflops", GPU(tflops[DENSE_TYPE_FP32]), false, 1e-3, 1e5, NULL},
    {"tf32_tflops", GPU(tflops[DENSE_TYPE_TF32]), false, 1e-3, 1e5, NULL},
    {"fp16_tflops", GPU(tflops[DENSE_TYPE_FP16]), false, 1e-3, 1e5, NULL},
    {"bf16_tflops", GPU(tflops[DENSE_TYPE_BF16]), false, 1e-3, 1e5, NULL},
    {"lookup_error_frac", GPU(lookup_error.frac), false, 1e-3, 100, NULL},
};
#define N_GPU_FIELDS (sizeof(gpu_fields) / sizeof(*gpu_fields))
/* Index of the first member that is a figure, and number of figures that can be
 * changed. They follow one another. */
#define GPU_FIRST_FIGURE 2
#define N_GPU_FIGURES (N_GPU_FIELDS - GPU_FIRST_FIGURE - 1)
#undef GPU

#endif
