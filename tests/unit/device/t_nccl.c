/* SPDX-License-Identifier: MIT */
#include "device/nccl.h"

#include "tests/tap.h"

static void test_missing(void)
{
    struct nccl nccl;
    struct err err = {0};

    ok(nccl_load(&nccl, "libno-such-nccl.so.2", &err) && err.code == ERR_DEVICE,
       "no NCCL");
    is_str(err.msg,
           "cannot load NCCL, which GPUs of several processes need: "
           "libno-such-nccl.so.2: cannot open shared object file: No such file "
           "or directory",
           "is one sentence");
    ok(nccl_load(&nccl, "libm.so.6", &err) && err.code == ERR_DEVICE,
       "another library");
    is_str(err.msg,
           "'libm.so.6' lacks 'ncclGetVersion': it is not NCCL 2.13 or later",
           "is another one");
    nccl_unload(&nccl);
}

static void test_real(void)
{
    struct nccl nccl;
    struct err err = {0};
    int version = 0;

    if (nccl_load(&nccl, NCCL_LIBRARY, &err)) {
        tap_skip("the real one", "there is no NCCL");
        return;
    }
    ok(!nccl_check(&nccl, nccl.get_version(&version), "ncclGetVersion", &err),
       "it has a version");
    ok(version >= 21300, "%d", version);
    ok(!nccl_check(&nccl, NCCL_IN_PROGRESS, "ncclSend", &err),
       "an operation in progress has not failed");
    ok(nccl_check(&nccl, nccl.comm_init_rank(NULL, 2, (struct nccl_id){{0}}, 0),
                  "ncclCommInitRank", &err),
       "nowhere to put a communicator");
    ok(err.code == ERR_DEVICE &&
           !strncmp(err.msg, "ncclCommInitRank failed: ", 25),
       "%s", err.msg);
    nccl_unload(&nccl);
}

int main(void)
{
    test_missing();
    test_real();
    return tap_done();
}
