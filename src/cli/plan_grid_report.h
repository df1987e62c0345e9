/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_CLI_PLAN_GRID_REPORT_H
#define NEUROSHARD_CLI_PLAN_GRID_REPORT_H

#include "base/cli.h"
#include "base/json.h"
#include "core/host.h"
#include "core/problem.h"
#include "io/prices.h"

/* Results of `plan` for several GPUs or numbers of GPUs, their comparison and
 * their report. */

/* Result for one GPU and one number of GPUs. If no plan fits, the real numbers
 * after `fits` are NAN. */
struct grid_cell {
    const char *gpu;
    /* `fullest`: index of the GPU with the largest share of its memory used. */
    uint32_t n_gpus, n_hosts, fullest;
    bool hosts_assumed, fits;
    const char *hosts;   /* "2x8": hosts x GPUs per host */
    const char *why_not; /* why no plan fits: a sentence; NULL if one fits */
    /* GPU work, step with the host and its range */
    double total_ms, step_ms, least_ms, most_ms;
    /* samples a second of all GPUs, and of one GPU */
    double rate, gpu_rate;
    /* gpu_rate as a share of that of the smallest number that fits */
    double scaling_frac;
    double bound_ms;                   /* NAN if not known */
    uint64_t used_bytes, memory_bytes; /* memory of the fullest GPU */
    double used, used_frac;
    double host_ms;
    bool waits_for_host;
    const char *cost, *basis; /* name and basis of the cost model */
    struct step_parts parts;
    /* speed as a multiple of that of the first row, and its relative error;
     * NAN: unknown */
    double ratio, ratio_error_frac;
    bool ties; /* the ratio is within its error of 1 */
    /* price of a GPU-hour and of 10^9 samples; NAN: no price was asked for */
    double price_per_hour, price;
    bool meets_target, is_chosen;
    const char *stopped, *inputs_hash;
    /* texts of the table */
    const char *range, *shown_rate, *waits, *shown_basis, *shown_ratio, *mark;
};

struct grid {
    struct arena *arena;     /* arena of the results */
    struct grid_cell *cells; /* [n], in the order of planning */
    size_t n, n_asked;
    const struct grid_cell **order; /* [n], the fastest first */
    /* Cells of the smallest number of GPUs with a plan, of the one with the
     * most samples a second, and of the smallest that is about as fast; NULL:
     * no plan fits. */
    const struct grid_cell *smallest, *fastest, *near;
    const struct prices *prices; /* NULL: none */
    double target;               /* samples a second; 0: none */
    const struct grid_cell
        *chosen;      /* cheapest that meets the target, or NULL */
    bool is_compared; /* a table in the order of speed is printed at the end */
    bool any_assumed;
    bool is_bound; /* the dense part is unknown: rates are upper bounds */
    /* Some cells have a time of the host and others have none, so GPU work
     * alone is compared. */
    bool is_mixed;
};

/* Relative tolerance of `near`: a number of GPUs whose samples a second are
 * within 5 % of the most counts as about as fast. */
#define GRID_NEAR_FRAC 0.05

/* Compares the cells: order, ratios, ties, near, prices and target. */
void grid_compare(struct grid *grid);
/* Prints the row of the last cell, and the heading before the first one. */
void grid_print_last(const struct grid *grid);
/* Prints the table in the order of speed, and what follows it. */
void grid_print_compared(const struct grid *grid, const struct cli *cli);
/* Returns the cells as a JSON list. */
json_t *grid_cells_to_json(const struct grid *grid);

#endif
