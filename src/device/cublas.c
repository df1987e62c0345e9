/* SPDX-License-Identifier: MIT */
#include "device/cublas.h"

#include "device/shared_library.h"

#include <dlfcn.h>

/* Versions of cuBLAS whose interface fits, the newest first. */
static const char *const libraries[] = {"libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so.11"};
#define N_LIBRARIES (sizeof libraries / sizeof *libraries)

static const struct shared_function functions[] = {
    {"cublasCreate_v2", offsetof(struct cublas, create)},
    {"cublasDestroy_v2", offsetof(struct cublas, destroy)},
    {"cublasSetStream_v2", offsetof(struct cublas, set_stream)},
    {"cublasSetWorkspace_v2", offsetof(struct cublas, set_workspace)},
    {"cublasGemmStridedBatchedEx",
     offsetof(struct cublas, gemm_strided_batched)},
    {"cublasGetStatusString", offsetof(struct cublas, get_status_string)},
    {0},
};

/* Loads a library. If `name` is NULL, tries all versions. If none can be
 * loaded, the error is about the newest. */
static void *open_library(const char *name, struct err *err)
{
    void *library = NULL;

    for (size_t i = 0; !library && i < (name ? 1 : N_LIBRARIES); i++) {
        library = dlopen(name ? name : libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (!library && !i)
            err_set(err, ERR_DEVICE,
                    "cannot load cuBLAS, which the dense part needs on a GPU: "
                    "%s",
                    dlerror());
    }
    if (library)
        *err = (struct err){0};
    return library;
}

int cublas_load(struct cublas *cublas, const char *library, struct err *err)
{
    *cublas = (struct cublas){0};
    cublas->library = open_library(library, err);
    if (!cublas->library)
        return -1;
    if (shared_library_find(cublas, cublas->library, functions,
                            library ? library : "libcublas.so",
                            "cuBLAS 11.4 or later", err)) {
        cublas_unload(cublas);
        return -1;
    }
    return 0;
}

void cublas_unload(struct cublas *cublas)
{
    if (cublas->library)
        dlclose(cublas->library);
    *cublas = (struct cublas){0};
}

int cublas_check(const struct cublas *cublas, int status, const char *name,
                 struct err *err)
{
    if (status == CUBLAS_SUCCESS)
        return 0;
    return err_set(err, ERR_DEVICE, "%s failed: %s", name,
                   cublas->get_status_string(status));
}
