/* SPDX-License-Identifier: MIT */
#include "device/nccl.h"

#include "device/shared_library.h"

#include <dlfcn.h>

static const struct shared_function functions[] = {
    {"ncclGetVersion", offsetof(struct nccl, get_version)},
    {"ncclGetUniqueId", offsetof(struct nccl, get_unique_id)},
    {"ncclCommInitRank", offsetof(struct nccl, comm_init_rank)},
    {"ncclCommDestroy", offsetof(struct nccl, comm_destroy)},
    {"ncclCommGetAsyncError", offsetof(struct nccl, comm_get_async_error)},
    {"ncclGroupStart", offsetof(struct nccl, group_start)},
    {"ncclGroupEnd", offsetof(struct nccl, group_end)},
    {"ncclSend", offsetof(struct nccl, send)},
    {"ncclRecv", offsetof(struct nccl, recv)},
    {"ncclGetErrorString", offsetof(struct nccl, get_error_string)},
    {"ncclGetLastError", offsetof(struct nccl, get_last_error)},
    {0},
};

int nccl_load(struct nccl *nccl, const char *library, struct err *err)
{
    *nccl = (struct nccl){0};
    nccl->library = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!nccl->library)
        return err_set(
            err, ERR_DEVICE,
            "cannot load NCCL, which GPUs of several processes need: %s",
            dlerror());
    if (shared_library_find(nccl, nccl->library, functions, library,
                            "NCCL 2.13 or later", err)) {
        nccl_unload(nccl);
        return -1;
    }
    return 0;
}

void nccl_unload(struct nccl *nccl)
{
    if (nccl->library)
        dlclose(nccl->library);
    *nccl = (struct nccl){0};
}

int nccl_check(const struct nccl *nccl, int status, const char *name,
               struct err *err)
{
    const char *last;

    if (status == NCCL_SUCCESS || status == NCCL_IN_PROGRESS)
        return 0;
    last = nccl->get_last_error(NULL);
    return err_set(err, ERR_DEVICE, "%s failed: %s%s%s", name,
                   nccl->get_error_string(status), last && *last ? ": " : "",
                   last ? last : "");
}
