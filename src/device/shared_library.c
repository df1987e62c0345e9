/* SPDX-License-Identifier: MIT */
#include "device/shared_library.h"

#include <dlfcn.h>
#include <string.h>

int shared_library_find(void *members, void *library,
                        const struct shared_function *functions,
                        const char *shown, const char *wanted, struct err *err)
{
    for (; functions->name; functions++) {
        void *address = dlsym(library, functions->name);

        if (!address)
            return err_set(err, ERR_DEVICE, "'%s' lacks '%s': it is not %s",
                           shown, functions->name, wanted);
        memcpy((char *)members + functions->offset, &address, sizeof address);
    }
    return 0;
}
