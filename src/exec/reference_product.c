/* SPDX-License-Identifier: MIT */
#include "exec/reference_product.h"

#include "base/host_device.h"
#include "base/mem.h"

#include <string.h>

/* A tile of the result has SIDE x SIDE elements, which stay in registers. A
 * task computes PANELS tiles of each row of tiles. */
#define SIDE 4
#define PANELS 4
#define LANES 2
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));

struct product_job {
    const struct reference_product *product;
    double *left; /* [row of tiles][k][SIDE]: copy of the left matrix */
};

/* Copies SIDE rows of a matrix of m rows, from row `first` on, to
 * out[k][SIDE]. Rows beyond the matrix become 0. */
static void pack(const struct reference_matrix *matrix, size_t first, size_t m,
                 size_t k, double *out)
{
    size_t n = min_u64(m - first, SIDE);

    for (size_t l = 0; l < k; l++, out += SIDE) {
        const double *from =
            matrix->elements + first * matrix->row + l * matrix->column;

        for (size_t i = 0; i < SIDE; i++)
            out[i] = i < n ? from[i * matrix->row] : 0;
    }
}

static void pack_left(void *ctx, size_t tile, unsigned thread)
{
    const struct product_job *job = ctx;
    const struct reference_product *product = job->product;

    (void)thread;
    pack(&product->left, tile * SIDE, product->m, product->k,
         job->left + tile * SIDE * product->k);
}

/* Computes one tile from packed rows left[k][SIDE] and packed columns
 * right[k][SIDE]. */
static void multiply_tile(const double *left, const double *right, size_t k,
                          double tile[SIDE][SIDE])
{
    lanes sums[SIDE][SIDE / LANES] = {{{0}}};
    lanes row[SIDE / LANES];

    for (size_t l = 0; l < k; l++, left += SIDE, right += SIDE) {
        memcpy(row, right, sizeof(row));
        for (unsigned i = 0; i < SIDE; i++)
            for (unsigned v = 0; v < SIDE / LANES; v++)
                sums[i][v] += left[i] * row[v];
    }
    memcpy(tile, sums, sizeof(sums));
}

static void store_tile(const struct reference_product *product, size_t i,
                       size_t j, double tile[SIDE][SIDE])
{
    size_t n_rows = min_u64(product->m - i, SIDE);
    size_t n_columns = min_u64(product->n - j, SIDE);

    for (size_t r = 0; r < n_rows; r++) {
        double *out = product->out + (i + r) * product->n + j;

        for (size_t c = 0; c < n_columns; c++)
            out[c] = product->is_added ? out[c] + tile[r][c] : tile[r][c];
    }
}

/* Computes PANELS * SIDE columns of the result. */
static void multiply_columns(void *ctx, size_t task, unsigned thread)
{
    const struct product_job *job = ctx;
    const struct reference_product *product = job->product;
    const struct reference_matrix columns = {
        product->right.elements, product->right.column, product->right.row};
    size_t k = product->k, begin = task * PANELS * SIDE;
    size_t end = min_u64(begin + PANELS * SIDE, product->n);
    double *right = mem_grow(NULL, PANELS * SIDE * k, sizeof(double));
    double tile[SIDE][SIDE];

    (void)thread;
    for (size_t j = begin; j < end; j += SIDE)
        pack(&columns, j, product->n, k, right + (j - begin) * k);
    for (size_t i = 0; i < product->m; i += SIDE)
        for (size_t j = begin; j < end; j += SIDE) {
            multiply_tile(job->left + i * k, right + (j - begin) * k, k, tile);
            store_tile(product, i, j, tile);
        }
    mem_free(right);
}

void reference_multiply(struct pool *pool,
                        const struct reference_product *product)
{
    size_t n_tiles = (product->m + SIDE - 1) / SIDE;
    size_t n_tasks = (product->n + PANELS * SIDE - 1) / (PANELS * SIDE);
    struct product_job job = {
        product, mem_grow(NULL, n_tiles * SIDE * product->k, sizeof(double))};

    pool_run(pool, n_tiles, pack_left, &job);
    pool_run(pool, n_tasks, multiply_columns, &job);
    mem_free(job.left);
}
