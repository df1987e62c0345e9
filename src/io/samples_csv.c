/* SPDX-License-Identifier: MIT */
#include "io/samples_csv.h"

#include "base/hash.h"
#include "base/text.h"

#include <inttypes.h>

void samples_csv_header(struct buf *out)
{
    buf_printf(out, "device,threads,isa,batch,precision,optimizer,seed,case,"
                    "kind,part,n_tables,dims,rows,lookups,unique_rows,"
                    "forward_ms,forward_p10_ms,forward_p90_ms,backward_ms,"
                    "backward_p10_ms,backward_p90_ms,total_ms,total_p10_ms,"
                    "total_p90_ms,linearise_ms,sort_ms,update_ms,sm_mhz,"
                    "memory_mhz,temperature_c,power_w,throttle_reasons,"
                    "iterations,flags,version,started_at\n");
}

static void add_text(struct buf *out, const char *text)
{
    text_csv(out, text);
    buf_add(out, ",", 1);
}

static void add_timing(struct buf *out, const struct timing *timing)
{
    buf_printf(out, "%.6g,%.6g,%.6g,", timing->median_ms, timing->p10_ms,
               timing->p90_ms);
}

static void add_tables(struct buf *out, const struct sample *sample)
{
    double n_lookups = 0, n_unique = 0;
    uint64_t dims = 0, n_rows = 0;

    for (uint32_t t = 0; t < sample->n_tables; t++) {
        const struct sample_table *table = &sample->tables[t];

        dims += table->dim;
        n_rows += table->n_rows;
        n_lookups += table->pooling_factor * sample->setting->batch;
        n_unique += table->n_unique;
    }
    buf_printf(out, "%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%.0f,%.0f,",
               sample->n_tables, dims, n_rows, n_lookups, n_unique);
}

void samples_csv_add(struct buf *out, const struct sample *sample)
{
    const struct sample_setting *setting = sample->setting;
    const struct sample_health *health = &sample->health;
    char seed[HASH_TEXT_MAX];

    add_text(out, setting->device);
    buf_printf(out, "%" PRIu32 ",", setting->n_threads);
    add_text(out, setting->isa);
    buf_printf(out, "%" PRIu32 ",%s,%s,", setting->batch,
               precision_name(setting->precision),
               optimizer_name(setting->optimizer));
    buf_printf(out, "%s,%" PRIu64 ",%s,%" PRIu32 ",",
               hash_text(seed, sample->seed), sample->case_idx,
               sample_kind_names[sample->kind], sample->part);
    add_tables(out, sample);
    add_timing(out, &sample->forward);
    add_timing(out, &sample->backward);
    add_timing(out, &sample->total);
    buf_printf(out, "%.6g,%.6g,%.6g,", sample->linearise.median_ms,
               sample->sort.median_ms, sample->update.median_ms);
    buf_printf(out, "%.0f,%.0f,%.0f,%.1f,%" PRIu64 ",", health->sm_mhz,
               health->memory_mhz, health->temperature_c, health->power_w,
               health->throttle_reasons);
    buf_printf(out, "%" PRIu32 ",%u,", sample->n_iterations, sample->flags);
    add_text(out, sample->version);
    add_text(out, sample->started_at);
    out->data[out->len - 1] = '\n'; /* was the comma behind the last */
}
