/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_EXEC_TALLY_H
#define NEUROSHARD_EXEC_TALLY_H

#include <stdint.h>

/* What a thread has compared so far. */
struct tally {
    double error; /* largest; INFINITY for what is no number */
    uint64_t n;
};

/* Largest |value| of a row. */
double tally_scale(const double *row, uint32_t n);
/* Compares n numbers of a row whose largest |want| is scale. */
void tally_row(struct tally *tally, const double *want, const float *got,
               uint32_t n, double scale);
/* All threads together. */
struct tally tally_sum(const struct tally *tallies, unsigned n_threads);

#endif
