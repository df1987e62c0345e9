/* SPDX-License-Identifier: MIT */
/* Compares the price of matrix products with published ones
 * (data/measurements/published-gemms.csv). The price was fitted to those of an
 * H100 alone. tests/bench/bench_dense.c prints the errors, and those of whole
 * steps. */
#include "tests/tap.h"

#include "costmodel/formulas/dense_cost.h"
#include "tests/anchors.h"

static void check(char *(*fields)[ANCHOR_COLUMNS], size_t n, const char *gpu,
                  double most_mean, struct arena *arena)
{
    const struct gpu_spec *spec = shipped_gpu(gpu, arena);
    struct anchor_errors errors = {0};
    size_t n_inside = 0;

    for (size_t i = 0; i < n; i++) {
        const enum dense_type type =
            (enum dense_type)anchor_name(fields[i][1], dense_type_names);
        const double m = strtod(fields[i][2], NULL);
        const double n_out = strtod(fields[i][3], NULL);
        const double k = strtod(fields[i][4], NULL);
        const double ms = 2e-9 * m * n_out * k / strtod(fields[i][5], NULL);
        double ratio;

        if (strcmp(fields[i][0], gpu) != 0)
            continue;
        ratio = dense_product_ms(spec, type, m, n_out, k) / ms;
        anchor_add(&errors, ratio);
        n_inside += fabs(log(ratio)) <= log(1 + DENSE_ERROR_FRAC);
    }
    ok(errors.n >= 70, "%s: %zu products", gpu, errors.n);
    ok(anchor_mape(&errors) <= most_mean, "mean error %.1f %%",
       100 * anchor_mape(&errors));
    ok(fabs(log(anchor_geometric(&errors))) <= log(1.05),
       "geometric mean of predicted / measured %.2f",
       anchor_geometric(&errors));
    ok((double)n_inside >= 0.9 * (double)errors.n,
       "%zu of them are inside the printed error", n_inside);
}

int main(void)
{
    struct arena arena = {0};
    char *(*fields)[ANCHOR_COLUMNS];
    const size_t n =
        anchor_records(&fields, "measurements/published-gemms.csv", &arena);

    check(fields, n, "h100", 0.16, &arena);
    check(fields, n, "b200", 0.11, &arena);
    arena_release(&arena);
    return tap_done();
}
