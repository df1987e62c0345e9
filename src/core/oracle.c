/* SPDX-License-Identifier: MIT */
#include "core/oracle.h"

const char *cost_basis_name(enum cost_basis basis)
{
    switch (basis) {
    case BASIS_ANALYTIC:
        return "analytic";
    case BASIS_MODELLED:
        return "modelled";
    case BASIS_MEASURED:
        return "measured";
    }
    return "unknown";
}

void oracle_close(struct oracle *oracle)
{
    if (oracle && oracle->ops->close)
        oracle->ops->close(oracle);
}
