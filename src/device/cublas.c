/* SPDX-License-Identifier: MIT */
#include "device/cublas.h"

#include <dlfcn.h>
#include <string.h>

/* Versions of cuBLAS whose interface fits, the newest first. */
static const char *const libraries[] = {"libcublas.so.13", "libcublas.so.12",
                                        "libcublas.so.11"};
#define N_LIBRARIES (sizeof libraries / sizeof *libraries)

const char *const cublas_functions[] = {"cublasCreate_v2",
                                        "cublasDestroy_v2",
                                        "cublasSetStream_v2",
                                        "cublasSetWorkspace_v2",
                                        "cublasGemmStridedBatchedEx",
                                        "cublasGetStatusString",
                                        NULL};
/* Offsets of the members of struct cublas that hold their addresses. */
static const size_t offsets[] = {offsetof(struct cublas, create),
                                 offsetof(struct cublas, destroy),
                                 offsetof(struct cublas, set_stream),
                                 offsetof(struct cublas, set_workspace),
                                 offsetof(struct cublas, gemm_strided_batched),
                                 offsetof(struct cublas, get_status_string)};

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
    for (size_t i = 0; cublas_functions[i]; i++) {
        void *address = dlsym(cublas->library, cublas_functions[i]);

        if (!address) {
            cublas_unload(cublas);
            return err_set(err, ERR_DEVICE,
                           "'%s' lacks '%s': it is not cuBLAS 11.4 or later",
                           library ? library : "libcublas.so",
                           cublas_functions[i]);
        }
        memcpy((char *)cublas + offsets[i], &address, sizeof address);
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
