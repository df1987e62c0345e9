/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_DEVICE_NCCL_H
#define NEUROSHARD_DEVICE_NCCL_H

#include "base/err.h"

#include <stddef.h>

/*
 * The part of NCCL that this program calls, through NCCL's public binary
 * interface. nccl_load loads the library, so NCCL is needed neither to build
 * nor to start the program. Any libnccl.so.2 since 2.13 fits.
 */

#define NCCL_LIBRARY "libnccl.so.2"

struct nccl_id { /* ncclUniqueId */
    char bytes[128];
};
struct nccl_comm; /* *ncclComm_t */

/* The status codes of NCCL that this program distinguishes. */
enum nccl_status { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7 };
enum nccl_type { NCCL_BYTES = 0 }; /* ncclInt8 */

/* The NCCL functions that this program calls. They return a status, and the
 * parameter `stream` is a cudaStream_t. */
struct nccl {
    void *library; /* owned */
    int (*get_version)(int *version);
    int (*get_unique_id)(struct nccl_id *id);
    int (*comm_init_rank)(struct nccl_comm **comm, int n_ranks,
                          struct nccl_id id, int rank);
    int (*comm_destroy)(struct nccl_comm *comm);
    int (*comm_get_async_error)(struct nccl_comm *comm, int *status);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *d_src, size_t n, int type, int to,
                struct nccl_comm *comm, void *stream);
    int (*recv)(void *d_dst, size_t n, int type, int from,
                struct nccl_comm *comm, void *stream);
    const char *(*get_error_string)(int status);
    const char *(*get_last_error)(struct nccl_comm *comm);
};

/* Loads the NCCL library and finds its functions. library: NCCL_LIBRARY; tests
 * pass another one. Fails with ERR_DEVICE and the loader's message if the
 * library cannot be loaded or lacks a function. */
int nccl_load(struct nccl *nccl, const char *library,
              struct err *err) MUST_CHECK;
void nccl_unload(struct nccl *nccl); /* a zeroed struct is fine */

/* Checks the status that an NCCL call returned. Returns 0 if the status is a
 * success. Otherwise returns -1 and sets ERR_DEVICE with the name of the call
 * and NCCL's message. */
int nccl_check(const struct nccl *nccl, int status, const char *name,
               struct err *err) MUST_CHECK;

#endif
