/* SPDX-License-Identifier: MIT */
#include "base/file.h"
#include "base/text.h"
#include "core/target_rules.h"
#include "emit/formats.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/*
 * Emits a shell script that trains DLRM's dlrm_main.py with the plan.
 *
 * DLRM has no option that takes a plan. So the script contains the plan
 * (TorchRec's JSON), a loader for it, and a Python driver that replaces DLRM's
 * planner and returns the plan. DLRM names the table of feature x "t_x". It
 * makes all tables pooled, fp32 and equally wide; the driver gives each table
 * the width and precision of the plan.
 */

#define TABLE_PREFIX "t_"

FILE_TEXT(dlrm_script_sh, "src/emit/dlrm_script.sh");
FILE_TEXT(dlrm_multi_hot_sh, "src/emit/dlrm_multi_hot.sh");
FILE_TEXT(dlrm_driver_py, "src/emit/dlrm_driver.py");

/* The plan's tables, in the order in which DLRM lists its features. */
struct features {
    const struct problem *problem;
    uint32_t *order;    /* [n_tables] table of each feature; owned */
    bool have_prefix;   /* true if all table names begin with TABLE_PREFIX */
    size_t n_rounded;   /* number of pooling factors that are not integers */
    bool are_multi_hot; /* true if some pooling factor is above 1 */
    uint32_t width;     /* number of columns of the widest table */
};

static const char *feature_name(const struct features *features, size_t table)
{
    return features->problem->tables[table].name +
           (features->have_prefix ? strlen(TABLE_PREFIX) : 0);
}

/* Puts the features into DLRM's order. If the tables are named after numbered
 * columns of the data set, features are sorted by number: cat_10 follows cat_9,
 * wherever the problem lists the two tables. If tables have other names, the
 * features keep the order of the problem. */
static void order_features(struct features *features)
{
    size_t n = features->problem->n_tables;
    bool *seen = mem_alloc(n, sizeof(*seen));
    bool are_numbered = true;

    for (uint32_t i = 0; are_numbered && i < n; i++) {
        const char *name = feature_name(features, i);
        uint64_t number = 0;

        are_numbered = !strncmp(name, "cat_", 4) &&
                       text_to_u64(name + 4, &number) && number < n &&
                       !seen[number];
        if (!are_numbered)
            break;
        seen[number] = true;
        features->order[number] = i;
    }
    for (uint32_t i = 0; !are_numbered && i < n; i++)
        features->order[i] = i;
    mem_free(seen);
}

/* Returns the lookups per sample of a table, rounded to an integer >= 1,
 * because DLRM takes only integers. */
static long hotness(const struct table *table)
{
    return (long)fmin(fmax(round(table->pooling_factor), 1), 1e9);
}

static void features_init(struct features *features,
                          const struct problem *problem)
{
    *features = (struct features){
        .problem = problem,
        .order = mem_alloc(problem->n_tables, sizeof(*features->order)),
        .have_prefix = true,
    };
    for (size_t i = 0; i < problem->n_tables; i++) {
        const struct table *table = &problem->tables[i];

        features->have_prefix &=
            !strncmp(table->name, TABLE_PREFIX, strlen(TABLE_PREFIX)) &&
            table->name[strlen(TABLE_PREFIX)];
        features->n_rounded += (double)hotness(table) != table->pooling_factor;
        features->are_multi_hot |= hotness(table) > 1;
        if (features->width < table->dim)
            features->width = table->dim;
    }
    order_features(features);
}

/* Number of dense features of DLRM's data sets. */
#define DENSE_FEATURES 13

/* Checks that DLRM can train the plan's dense part. `width` is the number of
 * columns of the widest table. */
static int check_dense(const struct dense *dense, uint32_t width,
                       struct err *err)
{
    const struct dense_widths *bottom = &dense->bottom, *top = &dense->top;

    if (dense->interaction != INTERACTION_DOT &&
        dense->interaction != INTERACTION_DCN)
        return err_input(
            err,
            "the dense part has the interaction '%s', but DLRM has "
            "dot and dcn",
            interaction_names[dense->interaction]);
    if (bottom->n < 2 || bottom->width[0] != DENSE_FEATURES)
        return err_input(err,
                         "the dense part has %u dense features and %u bottom "
                         "layers, but DLRM has %d features and at least one "
                         "layer",
                         bottom->n ? bottom->width[0] : 0,
                         bottom->n ? bottom->n - 1 : 0, DENSE_FEATURES);
    if (bottom->width[bottom->n - 1] != width)
        return err_input(err,
                         "the bottom layers of the dense part end with %u "
                         "values, but DLRM needs %u, as the widest table has",
                         bottom->width[bottom->n - 1], width);
    if (top->width[top->n - 1] != 1)
        return err_input(err,
                         "the top layers of the dense part end with %u values, "
                         "but DLRM needs 1",
                         top->width[top->n - 1]);
    return 0;
}

/* Prints an option that takes widths begin .. n. */
static void print_widths(const char *option, const struct dense_widths *widths,
                         uint32_t begin, struct buf *out)
{
    buf_printf(out, "    %s \"", option);
    for (uint32_t i = begin; i < widths->n; i++)
        buf_printf(out, "%s%" PRIu32, i > begin ? "," : "", widths->width[i]);
    buf_printf(out, "\"\n");
}

/* Prints the options of the dense part, one on each line. Without a dense part
 * its bottom layers end with `width` values, as DLRM needs. */
static void print_dense(const struct dense *dense, uint32_t width,
                        struct buf *out)
{
    if (!dense) {
        buf_printf(out,
                   "    --dense_arch_layer_sizes \"512,256,%" PRIu32 "\"\n",
                   width);
        return;
    }
    print_widths("--dense_arch_layer_sizes", &dense->bottom, 1, out);
    print_widths("--over_arch_layer_sizes", &dense->top, 0, out);
    if (dense->interaction == INTERACTION_DCN)
        buf_printf(out,
                   "    --interaction_type dcn\n"
                   "    --dcn_num_layers %" PRIu32 "\n"
                   "    --dcn_low_rank_dim %" PRIu32 "\n",
                   dense->n_cross, dense->rank);
    if (dense->type == DENSE_TYPE_TF32)
        buf_printf(out, "    --allow_tf32\n");
}

/* Prints a note if DLRM does not compute as the dense part says. */
static void note_dense(const struct dense *dense, struct buf *notes)
{
    if (dense_is_mixed(dense))
        buf_printf(notes, "# DLRM multiplies in fp32, not in %s.\n",
                   dense_type_names[dense->type]);
    if (dense->gradients != DENSE_TYPE_FP32)
        buf_printf(notes, "# DLRM exchanges gradients in fp32, not in %s.\n",
                   dense_type_names[dense->gradients]);
    if (dense->is_fused)
        buf_printf(notes, "# DLRM does not compile its dense part.\n");
}

/* Expands a template: replaces each {{word}} by its text in `words`. */
static void expand(struct buf *out, const char *template, const json_t *words)
{
    for (const char *pos; (pos = strstr(template, "{{"));) {
        char word[16] = "";

        buf_add(out, template, (size_t)(pos - template));
        sscanf(pos, "{{%15[a-z_]", word);
        buf_printf(out, "%s", json_string_value(json_object_get(words, word)));
        template = strstr(pos, "}}") + 2;
    }
    buf_printf(out, "%s", template);
}

/* Sets the text of a template's word from the buffer, and releases the
 * buffer. */
static void set_word(json_t *words, const char *word, struct buf *text)
{
    json_object_set_new(words, word, json_string(text->len ? text->data : ""));
    buf_release(text);
}

static json_t *words_of_job(const struct plan *plan,
                            const struct features *features)
{
    const struct problem *problem = &plan->problem;
    const struct cluster *cluster = &problem->cluster;
    const uint32_t n_gpus = cluster->n_devices;
    const enum optimizer optimizer = problem->tables[0].optimizer;
    struct buf notes = {0}, pod = {0}, dense = {0};
    json_t *words = json_pack(
        "{s:o, s:o, s:o, s:s, s:o, s:o, s:s}", "hosts",
        json_sprintf("%u", n_gpus / cluster->devices_per_host), "local",
        json_sprintf("%u", cluster->devices_per_host), "job",
        json_sprintf("%zu tables on %u GPUs, global batch %" PRIu64
                     ", inputs %s",
                     problem->n_tables, n_gpus, problem->batch,
                     plan->inputs_hash ? plan->inputs_hash : "unknown"),
        "optimizer", optimizer_names[optimizer], "width",
        json_sprintf("%u", features->width), "batch",
        json_sprintf("%.0f", fmax(round((double)problem->batch / n_gpus), 1)),
        "adagrad",
        optimizer == OPTIMIZER_ADAGRAD || optimizer == OPTIMIZER_ROWWISE_ADAGRAD
            ? "    --adagrad\n"
            : "");

    if (features->n_rounded)
        buf_printf(&notes,
                   "# DLRM takes whole numbers of lookups >= 1: those of %zu "
                   "tables are rounded.\n",
                   features->n_rounded);
    if (problem->batch % n_gpus)
        buf_printf(&notes, "# The batch of a GPU is rounded.\n");
    if (problem->job.dense)
        note_dense(problem->job.dense, &notes);
    print_dense(problem->job.dense, features->width, &dense);
    if (cluster->hosts_per_domain > 1)
        buf_printf(&pod, "\nexport TORCHREC_RESOLVED_POD_SIZE=%u\n",
                   cluster->hosts_per_domain);
    set_word(words, "notes", &notes);
    set_word(words, "pod", &pod);
    set_word(words, "dense", &dense);
    return words;
}

/* Adds the words whose text lists one value per table, in the order of DLRM's
 * features. */
static void add_words_of_tables(json_t *words, const struct features *features)
{
    struct buf tables = {0}, rows = {0}, hot = {0};

    for (size_t i = 0; i < features->problem->n_tables; i++) {
        const uint32_t t = features->order[i];
        const struct table *table = &features->problem->tables[t];
        const char *comma = i ? "," : "";

        buf_printf(&tables, "    ");
        json_print(&tables, json_string(feature_name(features, t)));
        buf_printf(&tables, ": (%u, \"%s\"),\n", table->dim,
                   precision_names[table->precision]);
        buf_printf(&rows, "%s%" PRIu64, comma, table->num_embeddings);
        buf_printf(&hot, "%s%ld", comma, hotness(table));
    }
    set_word(words, "tables", &tables);
    set_word(words, "rows", &rows);
    set_word(words, "hotness", &hot);
}

static int print_script(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    const struct problem *problem = &plan->problem;
    struct buf text[4] = {0};
    struct emit_options torchrec = {0};
    struct features features;
    json_t *words;
    int rc;

    (void)options;
    if (emit_one_group(problem, "DLRM", err) ||
        target_check_as(plan, TARGET_DLRM, err))
        return -1;
    features_init(&features, problem);
    if (problem->job.dense &&
        check_dense(problem->job.dense, features.width, err)) {
        mem_free(features.order);
        return -1;
    }
    words = words_of_job(plan, &features);
    add_words_of_tables(words, &features);
    torchrec.prefix = features.have_prefix ? "" : TABLE_PREFIX;
    rc = emit_torchrec.emit(plan, &torchrec, &text[0], err) ||
         emit_torchrec_loader.emit(plan, &torchrec, &text[1], err);
    expand(&text[2], dlrm_driver_py, words);
    if (features.are_multi_hot)
        expand(&text[3], dlrm_multi_hot_sh, words);
    set_word(words, "plan", &text[0]);
    set_word(words, "loader", &text[1]);
    set_word(words, "driver", &text[2]);
    set_word(words, "multi_hot", &text[3]);
    expand(out, dlrm_script_sh, words);
    json_decref(words);
    mem_free(features.order);
    return rc ? -1 : 0;
}

const struct emitter emit_dlrm = {print_script, NULL};
