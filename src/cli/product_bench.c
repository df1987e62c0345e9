/* SPDX-License-Identifier: MIT */
#include "cli/product_bench.h"

#include "base/cli_answer.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/bench_answers.h"
#include "io/store_rows.h"
#include "io/tables_io.h"
#include "microbench/product_case.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Argument of --dense that measures a grid of shapes instead of a dense
 * part. */
#define GRID "grid"

struct dense_request {
    struct cli *cli;
    struct bench_options *options;
    const struct dense *dense; /* NULL: the grid */
    struct product *products;  /* [n] products to measure */
    size_t n;
    struct device *device; /* owned */
    struct store *store;   /* owned */
    struct bench_result result;
    double seconds;
};

/* Reads the dense part of --dense, and the tables whose vectors it joins. */
static int read_dense(struct dense_request *request, struct err *err)
{
    struct cli *cli = request->cli;
    const char *text = cli_string(cli, "dense"),
               *path = cli_string(cli, "tables");
    const struct tables_options reading = {0};
    struct table_list list = {0};

    if (!strcmp(text, GRID))
        return path ? err_usage(err, "option '--tables' needs a dense part, "
                                     "not '--dense grid'")
                    : 0;
    if (path && tables_load(&list, path, &reading, cli->arena, err))
        return -1;
    if (dense_read(&request->dense, text, strlen(text), list.tables,
                   list.n_tables, cli->arena, err))
        return err_prefix(err, "option '--dense'");
    if (!path && request->dense->interaction != INTERACTION_CAT)
        return err_usage(err,
                         "the widths of '--dense %s' depend on the tables: "
                         "option '--tables' is missing",
                         text_shown(text, cli->arena));
    return 0;
}

/* Returns the memory that products may take on the device. */
static uint64_t memory_for(const struct dense_request *request)
{
    const uint64_t free_bytes = device_free_bytes(request->device);
    const uint64_t given = request->options->memory_bytes;

    return given ? min_u64(given, free_bytes) : free_bytes - free_bytes / 8;
}

static int list_products(struct dense_request *request, struct err *err)
{
    struct arena *arena = request->cli->arena;
    const bool is_host = device_is_host(request->device);

    if (request->dense && is_host && request->dense->type != DENSE_TYPE_FP32)
        return err_usage(err, "a CPU multiplies in fp32 only, not in %s",
                         dense_type_names[request->dense->type]);
    if (request->dense) {
        request->products = ARENA_NEW(arena, struct product, DENSE_MAX_SHAPES);
        request->n = dense_products(request->products, request->dense,
                                    (uint32_t)cli_u64(request->cli, "batch"));
    } else {
        request->products = ARENA_NEW(arena, struct product, PRODUCT_GRID_MAX);
        request->n =
            product_grid(request->products, is_host, memory_for(request));
    }
    if (request->options->n_cases)
        request->n = (size_t)min_u64(request->n, request->options->n_cases);
    return 0;
}

static void tell_stored(const struct product *product, double ms)
{
    printf("stored %s %s %u %u %u %u: %.4g ms\n",
           dense_type_names[product->type], product_form_names[product->form],
           product->m, product->n, product->k, product->n_batch, ms);
    fflush(stdout);
}

/* Stores a product. With --verbose, prints it. */
static int put(void *ctx, const struct sample_setting *setting,
               const struct product_sample *sample, struct err *err)
{
    struct dense_request *request = ctx;

    if (store_put_product(request->store, setting, sample, err))
        return -1;
    if (cli_given(request->cli, "verbose") && !cli_given(request->cli, "json"))
        tell_stored(&sample->product, sample->timing.median_ms);
    return 0;
}

static bool has(void *ctx, const struct sample_setting *setting,
                const struct product *product)
{
    return store_has_product(((struct dense_request *)ctx)->store, setting,
                             product);
}

static int measure(struct dense_request *request, struct err *err)
{
    struct bench_options options = *request->options;
    struct product_sink sink = {request, put, has};
    const double begin_ms = clock_ms();
    struct progress progress;
    int rc;

    progress_start(&progress, "products", request->n,
                   cli_given(request->cli, "verbose"));
    progress.limit_s = options.time_limit_s;
    options.progress = &progress;
    rc = bench_products(&request->result, request->device, &options,
                        request->products, request->n, &sink, err);
    progress_finish(&progress);
    request->seconds = (clock_ms() - begin_ms) / 1e3;
    return rc;
}

/* --- the answer --- */

/* Returns the sample of a product, or NULL. */
static const struct product_sample *find(const struct product_sample *samples,
                                         size_t n,
                                         const struct product *product)
{
    for (size_t i = 0; i < n; i++)
        if (product_is_same(&samples[i].product, product))
            return &samples[i];
    return NULL;
}

/* Returns the rate in 10^9 operations a second. */
static double rate_of(const struct product_sample *sample)
{
    return product_operations(&sample->product) / sample->timing.median_ms /
           1e6;
}

static void print_product(const struct product_sample *sample)
{
    const struct product *product = &sample->product;

    cli_printf("%-4s %-13s %6u %6u %6u %6u %9.4g %9.4g %8.1f%s\n",
               dense_type_names[product->type],
               product_form_names[product->form], product->m, product->n,
               product->k, product->n_batch, sample->timing.median_ms,
               sample->timing.p90_ms, rate_of(sample),
               sample->flags & SAMPLE_THROTTLED ? "  throttled" : "");
}

static json_t *product_to_json(const struct product_sample *sample)
{
    const struct product *product = &sample->product;

    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:b}",
                     "type", dense_type_names[product->type], "form",
                     product_form_names[product->form], "m",
                     (json_int_t)product->m, "n", (json_int_t)product->n, "k",
                     (json_int_t)product->k, "batch",
                     (json_int_t)product->n_batch, "median_ms",
                     sample->timing.median_ms, "p10_ms", sample->timing.p10_ms,
                     "p90_ms", sample->timing.p90_ms, "gflops", rate_of(sample),
                     "throttled", (sample->flags & SAMPLE_THROTTLED) != 0);
}

static void print_head(const struct dense_request *request)
{
    const struct bench_result *result = &request->result;
    struct buf text = {0};

    bench_print_device(request->device);
    if (request->dense)
        dense_print(request->dense, &text);
    cli_printf("dense           %s\n", request->dense ? text.data : GRID);
    buf_release(&text);
    cli_printf("products        %" PRIu64 " of %zu (stopped: %s), %" PRIu64
               " measured, %" PRIu64 " already stored\n",
               result->n_cases, request->n, bench_stopped_by(result),
               result->n_measured, result->n_resumed);
    if (result->n_flagged)
        cli_printf("flagged         %" PRIu64 " of them, disturbed\n",
                   result->n_flagged);
    cli_printf("time            %.1f s\n", request->seconds);
    cli_printf("database        %s\n", cli_shown(request->cli, "db"));
}

/* Prints the products that were asked for and that the database has. The text
 * has no table of the grid, which is long. */
static int print(const struct dense_request *request, struct err *err)
{
    const struct sample_setting setting = device_setting(
        &request->device->facts, PRECISION_FP32, OPTIMIZER_SGD, 1);
    const struct bench_result *result = &request->result;
    struct product_sample *samples;
    json_t *list = json_array();
    size_t n;

    if (store_products(request->store, &setting, &samples, &n,
                       request->cli->arena, err)) {
        json_decref(list);
        return -1;
    }
    print_head(request);
    if (request->dense)
        cli_printf("%-4s %-13s %6s %6s %6s %6s %9s %9s %8s\n", "type", "form",
                   "m", "n", "k", "batch", "median ms", "p90 ms", "GFLOP/s");
    for (size_t i = 0; i < request->n; i++) {
        const struct product_sample *sample =
            find(samples, n, &request->products[i]);

        if (sample && request->dense)
            print_product(sample);
        if (sample)
            json_array_append_new(list, product_to_json(sample));
    }
    cli_print_json(json_pack(
        "{s:o, s:I, s:I, s:I, s:I, s:s, s:f, s:s, s:o}", "machine",
        device_to_json(request->device), "cases", (json_int_t)result->n_cases,
        "measured", (json_int_t)result->n_measured, "resumed",
        (json_int_t)result->n_resumed, "flagged", (json_int_t)result->n_flagged,
        "stopped", bench_stopped_by(result), "seconds", request->seconds, "db",
        cli_shown(request->cli, "db"), "products", list));
    return 0;
}

int product_bench(struct cli *cli, struct bench_options *options,
                  struct err *err)
{
    struct dense_request request = {.cli = cli, .options = options};
    const int rc =
        read_dense(&request, err) ||
        device_open(&request.device,
                    (enum device_kind)cli_choice(cli, "device"), 0,
                    (unsigned)cli_u64(cli, "threads"), err) ||
        list_products(&request, err) ||
        store_open(&request.store, cli_string(cli, "db"), STORE_WRITE, err) ||
        measure(&request, err) || print(&request, err) ||
        bench_tell_interrupt(&request.result, err);

    store_close(request.store);
    device_close(request.device);
    return rc ? -1 : 0;
}
