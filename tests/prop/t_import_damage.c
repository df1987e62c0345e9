/* SPDX-License-Identifier: MIT */
#include "io/ids.h"
#include "io/tables_io.h"

#include <unistd.h>

#include "base/file.h"
#include "base/rng.h"
#include "base/text.h"
#include "tests/npz.h"
#include "tests/tap.h"

/* Importers never guess silently. The test draws sources whose right table list
 * it knows, and damages them: lines or bytes are lost, doubled, joined, cut or
 * replaced by foreign ones. If the format has a checksum, bytes are flipped; if
 * it has none, the source is made to contradict itself. Each reader must
 * refuse, warn, leave a cell empty, or return the right list. */

#define MAX_TABLES 12
/* Lookups of the tables whose format has none, as --pooling gives them. */
#define POOLING 3

/* Result of the last import. */
static struct arena arena;
static struct table_list list;
static struct err err;
static size_t n_warnings;

/* The right tables. */
static struct table want[MAX_TABLES];
static size_t n_want;

enum outcome { REFUSED, WARNED, RIGHT, WRONG, N_OUTCOMES };

static void count_warning(void *ctx, const char *sentence)
{
    (void)ctx;
    (void)sentence;
    n_warnings++;
}

static void draw_tables(struct rng *rng)
{
    n_want = 2 + rng_below(rng, MAX_TABLES - 1);
    for (size_t i = 0; i < n_want; i++) {
        table_init(&want[i]);
        want[i].num_embeddings = 10 + rng_below(rng, 5000);
        want[i].dim = 4 * (1 + (uint32_t)rng_below(rng, 32));
        want[i].pooling_factor = (double)(1 + rng_below(rng, 20));
    }
}

static bool is_right(void)
{
    if (list.n_tables != n_want)
        return false;
    for (size_t i = 0; i < n_want; i++) {
        const struct table *got = &list.tables[i];

        if (got->num_embeddings != want[i].num_embeddings ||
            got->dim != want[i].dim ||
            !(fabs(got->pooling_factor - want[i].pooling_factor) <= 1e-9) ||
            got->optimizer != want[i].optimizer ||
            got->zipf_alpha != want[i].zipf_alpha || got->has_bins ||
            got->num_outputs != want[i].num_outputs)
            return false;
    }
    return true;
}

static enum outcome import_with(const struct buf *text, double pooling)
{
    static struct buf notes;
    const struct tables_options options = {.columns = "",
                                           .pooling = pooling,
                                           .notes = &notes,
                                           .keeps_unknown = true,
                                           .warn = count_warning};
    int rc;

    arena_release(&arena);
    buf_release(&notes);
    n_warnings = 0;
    memset(&list, 0, sizeof(list));
    rc = tables_from_text(&list, text->data, text->len, "source", &options,
                          &arena, &err);
    buf_release(&notes);
    return rc ? REFUSED : is_right() ? RIGHT : n_warnings ? WARNED : WRONG;
}

static enum outcome import(const struct buf *text)
{
    return import_with(text, 0);
}

/* --- damage --- */

static void splice(struct buf *text, size_t at, size_t n, const char *with,
                   size_t n_with)
{
    struct buf out = {0};

    buf_add(&out, text->data, at);
    if (n_with)
        buf_add(&out, with, n_with);
    buf_add(&out, text->data + at + n, text->len - at - n);
    buf_release(text);
    *text = out;
}

static size_t line_start(const struct buf *text, struct rng *rng)
{
    size_t at = rng_below(rng, text->len);

    while (at && text->data[at - 1] != '\n')
        at--;
    return at;
}

static void damage_lines(struct buf *text, struct rng *rng)
{
    static const char *const foreign[] = {
        "I0610 12:00:00.123456 7 main.cc:10] step 5\n", "\n",
        "[rank3]: WARNING: it's slow\n", "\"x\": 7,\n"};
    const size_t at = line_start(text, rng);
    size_t n = 0, len;

    for (size_t k = 1 + rng_below(rng, 8); k && at + n < text->len; k--) {
        n += strcspn(text->data + at + n, "\n");
        n += at + n < text->len;
    }
    switch (rng_below(rng, 5)) {
    case 0:
        splice(text, at, n, "", 0);
        break;
    case 1: {
        char *copy = strndup(text->data + at, n);

        splice(text, at, 0, copy, n);
        free(copy);
        break;
    }
    case 2:
        len = strcspn(text->data + at, "\n");
        if (at + len < text->len)
            splice(text, at + len, 1, "", 0);
        break;
    case 3: {
        const char *line = foreign[rng_below(rng, 4)];

        splice(text, at, 0, line, strlen(line));
        break;
    }
    default:
        len = 1 + rng_below(rng, text->len - 1);
        splice(text, len, text->len - len, "", 0);
    }
}

static void damage_bytes(struct buf *text, struct rng *rng, bool flips,
                         size_t n_flippable)
{
    const size_t at = rng_below(rng, text->len);
    size_t n = 1 + rng_below(rng, 40);
    char copy[40];

    n = n < text->len - at ? n : text->len - at;
    memcpy(copy, text->data + at, n);
    switch (rng_below(rng, flips ? 8 : 4)) {
    case 0:
        splice(text, at, n, "", 0);
        break;
    case 1:
        splice(text, at, 0, copy, n);
        break;
    case 2:
        for (size_t i = 0; i < n; i++)
            copy[i] = (char)rng_below(rng, 256);
        splice(text, at, 0, copy, n);
        break;
    case 3:
        splice(text, at, text->len - at, "", 0);
        break;
    default:
        text->data[rng_below(rng, n_flippable)] ^=
            (char)(1u << rng_below(rng, 8));
    }
}

/* --- sources that are imported as lists --- */

static void add_list(struct buf *out, const char *key, int which)
{
    buf_printf(out, "  \"%s\": [\n", key);
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out, "    %g%s\n",
                   which == 0   ? (double)want[i].num_embeddings
                   : which == 1 ? want[i].dim
                                : want[i].pooling_factor,
                   i + 1 < n_want ? "," : "");
    buf_printf(out, "  ],\n");
}

/* Writes a report as FBGEMM's reporter does. */
static void make_tbe(struct buf *out, struct rng *rng)
{
    double rows = 0, dims = 0;
    bool is_mixed = false;

    for (size_t i = 0; i < n_want; i++) {
        want[i].zipf_alpha = 0.5 + (double)rng_below(rng, 100) / 100;
        rows += (double)want[i].num_embeddings / (double)n_want;
        dims += (double)want[i].dim / (double)n_want;
        is_mixed |= want[i].dim != want[0].dim;
    }
    buf_printf(out,
               "{\n  \"T\": %zu,\n  \"E\": %.1f,\n  \"D\": %.1f,\n"
               "  \"mixed_dim\": %s,\n  \"weighted\": false,\n"
               "  \"batch_params\": {\n    \"B\": 256,\n    \"sigma_B\": null\n"
               "  },\n",
               n_want, ceil(rows), ceil(dims), is_mixed ? "true" : "false");
    add_list(out, "Es", 0);
    add_list(out, "Ds", 1);
    buf_printf(out, "  \"pooling_params\": {\n    \"L\": 1,\n  ");
    add_list(out, "Ls", 2);
    buf_printf(out, "    \"sigma_L\": null\n  },\n  \"use_cpu\": true,\n"
                    "  \"indices_params_list\": [\n");
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out,
                   "    {\n      \"heavy_hitters\": [],\n"
                   "      \"zipf_q\": 1.0,\n      \"zipf_s\": %.17g,\n"
                   "      \"index_dtype\": \"torch.int64\"\n    }%s\n",
                   want[i].zipf_alpha, i + 1 < n_want ? "," : "");
    buf_printf(out, "  ]\n}\n");
}

static void spoil_tbe(struct buf *out, struct rng *rng)
{
    make_tbe(out, rng);
    damage_lines(out, rng);
}

static void add_table_line(struct buf *out, size_t i, const char *rows)
{
    buf_printf(out, "t%zu,%s%s%" PRIu64 ",%u,%g,sgd\n", i, rows,
               *rows ? "," : "", want[i].num_embeddings, want[i].dim,
               want[i].pooling_factor);
}

#define CSV_HEAD "name,num_embeddings,dim,pooling_factor,optimizer\n"

static void make_csv(struct buf *out, struct rng *rng)
{
    buf_printf(out, "# %u\n" CSV_HEAD, (unsigned)rng_below(rng, 9));
    for (size_t i = 0; i < n_want; i++) {
        want[i].optimizer = OPTIMIZER_SGD;
        add_table_line(out, i, "");
    }
}

/* Writes a CSV file with an error that makes it invalid. */
static void spoil_csv(struct buf *out, struct rng *rng)
{
    const size_t at = rng_below(rng, n_want);
    static const char *const heads[] = {
        "name,num_embeddings,rows,dim,pooling_factor,optimizer\n",
        "name,num_embeddings,num_embeddings,dim,pooling_factor,optimizer\n",
        "name,num_embeddings,hash_size,dim,pooling_factor,optimizer\n"};
    const size_t kind = rng_below(rng, 9);

    buf_printf(out, "%s", kind < 3 ? heads[kind] : CSV_HEAD);
    for (size_t i = 0; i < n_want; i++) {
        want[i].optimizer = OPTIMIZER_SGD;
        add_table_line(out, i, kind < 3 ? "7" : "");
        if (i != at)
            continue;
        if (kind == 3) /* a table twice, with other rows */
            buf_printf(out, "t%zu,7,8,1,sgd\n", i);
        else if (kind == 4) /* two lists in one file */
            buf_printf(out, CSV_HEAD);
        else if (kind == 5) /* joined lines */
            out->data[out->len - 1] = ',';
        else if (kind == 6)
            buf_printf(out, "u,7;8;1;sgd\n");
        else if (kind == 7)
            buf_printf(out, "u,7.5,8,1,sgd\n");
        else if (kind == 8)
            buf_printf(out, "\"u,7,8,1,sgd\n");
    }
    if (kind == 5)
        buf_printf(out, "x\n");
}

static void add_member(struct buf *out, size_t i, const char *more)
{
    buf_printf(out,
               "{\"num_embeddings\": %" PRIu64
               ", \"embedding_dim\": %u, \"pooling_factor\": %g%s}",
               want[i].num_embeddings, want[i].dim, want[i].pooling_factor,
               more);
}

static void make_json(struct buf *out, struct rng *rng)
{
    const bool is_list = rng_below(rng, 2);

    buf_printf(out, is_list ? "[" : "{");
    for (size_t i = 0; i < n_want; i++) {
        if (!is_list)
            buf_printf(out, "\"t%zu\": ", i);
        add_member(out, i, "");
        buf_printf(out, i + 1 < n_want ? ",\n" : "\n");
    }
    buf_printf(out, is_list ? "]" : "}");
}

static void spoil_json(struct buf *out, struct rng *rng)
{
    static const char *const more[] = {
        ", \"rows\": 7", ", \"num_embeddings\": 7", ", \"bin_0\": 1",
        ", \"hotness\": 7", ", \"dim\": 7"};
    const size_t at = rng_below(rng, n_want), kind = rng_below(rng, 9);

    buf_printf(out, "{");
    for (size_t i = 0; i < n_want; i++) {
        const bool is_bad = i == at;

        buf_printf(out, "\"t%zu\": ", i);
        if (is_bad && kind == 5)
            buf_printf(out, "[%" PRIu64 ", %u, 7]", want[i].num_embeddings,
                       want[i].dim);
        /* no lookups, although others have them */
        else if (is_bad && kind == 6)
            buf_printf(out, "[%" PRIu64 ", %u]", want[i].num_embeddings,
                       want[i].dim);
        else
            add_member(out, i, is_bad && kind < 5 ? more[kind] : "");
        buf_printf(out, i + 1 < n_want ? ",\n" : "\n");
    }
    if (kind == 7)
        buf_printf(out, ", \"t%zu\": [7, 8]", at);
    if (kind != 8)
        buf_printf(out, "}");
}

static void add_sizes(struct buf *out, const char *option, bool has_rows)
{
    buf_printf(out, " %s ", option);
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out, "%s%g", i ? "," : "",
                   has_rows ? (double)want[i].num_embeddings
                            : want[i].pooling_factor);
}

/* Writes a script with a DLRM command line, in one of several common styles. */
static void make_dlrm(struct buf *out, struct rng *rng)
{
    const unsigned form = (unsigned)rng_below(rng, 5);

    for (size_t i = 0; i < n_want; i++) {
        want[i].dim = want[0].dim;
        want[i].optimizer = OPTIMIZER_ADAGRAD;
    }
    buf_printf(out, "#!/bin/bash\n# it's a job\nD=%u\nHALF=%u\n", want[0].dim,
               want[0].dim / 2);
    if (form == 0)
        buf_printf(out, "if [ -z \"$HOME\" ]; then E=%u; else E=%u; fi\nD=$E\n",
                   want[0].dim, want[0].dim);
    else if (form == 1)
        buf_printf(out, "D=$((HALF * 2))\n");
    else if (form == 2)
        buf_printf(out, "unset D\nD=${D:-%u}\n", want[0].dim);
    buf_printf(out, "ARGS=\"--adagrad --embedding_dim $D\"\nARGS+=\"");
    add_sizes(out, "--num_embeddings_per_feature", true);
    buf_printf(out, form == 3 ? "\"\necho \"$ARGS\"\n" : "\"\n");
    buf_printf(out, "torchrun --nproc_per_node 8 dlrm_main.py $ARGS \\\n  ");
    add_sizes(out, "--multi_hot_sizes", false);
    buf_printf(out, " \\\n  --batch_size %s --pin_memory >log 2>&1\n",
               form == 4 ? "$((4096 / 8))" : "512");
}

/* Makes the script ambiguous: several command lines or branches that differ,
 * lists of different lengths, options that exclude each other, or values that
 * only a data set or a shell knows. */
static void spoil_dlrm(struct buf *out, struct rng *rng)
{
    static const char *const others[] = {
        "dlrm_main.py $ARGS --batch_size 512",
        "dlrm_main.py $ARGS --multi_hot_sizes $HOTS --batch_size 64",
        ("dlrm_main.py $ARGS --multi_hot_sizes $HOTS --batch_size 512 "
         "--embedding_dim 20"),
        "dlrm_s_pytorch.py --arch-embedding-size=4-3-2"};
    const size_t kind = rng_below(rng, 12);

    make_dlrm(out, rng);
    if (kind < 4) {
        buf_printf(out, "%s\n", others[kind]);
        return;
    }
    out->len -= strlen(" --pin_memory >log 2>&1\n");
    buf_printf(out, "%s\n",
               kind == 4    ? " --multi_hot_sizes 1"
               : kind == 5  ? " --synthetic_multi_hot_criteo_path /data"
               : kind == 6  ? " --multi_hot_sizes $HOTS"
               : kind == 7  ? " --embedding_dim $1"
               : kind == 8  ? " --arch-sparse-feature-size 8"
               : kind == 9  ? " --num_embeddings_per_feature $(cat sizes)"
               : kind == 10 ? " \"$@\""
                            : " 'not closed");
}

/* Writes one value of each table for an option. */
static void add_values(struct buf *out, const char *option, int which)
{
    buf_printf(out, " --%s ", option);
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out, "%s%g", i ? "," : "",
                   which == 0   ? 1.0
                   : which == 1 ? (double)want[i].num_embeddings
                   : which == 2 ? want[i].pooling_factor
                                : want[i].dim);
}

/* Writes a script that starts HugeCTR's benchmark. */
static void make_hugectr(struct buf *out, struct rng *rng)
{
    for (size_t i = 0; i < n_want; i++)
        want[i].optimizer = OPTIMIZER_ADAGRAD;
    buf_printf(out, "#!/bin/bash\nARGS=\"--optimizer adagrad");
    add_values(out, "num_table", 0);
    buf_printf(out, " \\\n");
    add_values(out, "vocabulary_size_per_table", 1);
    buf_printf(out, "\"\nARGS+=\"");
    add_values(out, "nnz_per_table", 2);
    buf_printf(out, "\"\npython3 hugectr/train.py $ARGS --batchsize %u",
               (unsigned)rng_below(rng, 999) + 1);
    add_values(out, "ev_size_per_table", 3);
    buf_printf(out, " --max_iter 3\n");
}

/* Makes the script contradict itself, or hides values in the shell. */
static void spoil_hugectr(struct buf *out, struct rng *rng)
{
    static const char *const more[] = {
        " --num_table 1",
        " --vocabulary_size_per_table 5",
        " --nnz_per_table 3",
        " --nnz_per_table $HOTS",
        " --ev_size_per_table $1",
        " --combiner_per_table x",
        " --combiner_per_table s",
        " --embedding_dim 4",
        " --optimizer lamb",
        " \"$@\"",
        " 'not closed",
        " --num_table 0",
        " --vocabulary_size_per_table $(cat sizes)",
        "\nhugectr/train.py $ARGS --batchsize 12345",
        "\nhugectr/train.py $ARGS --ev_size_per_table 3",
        "\ndlrm_main.py --num_embeddings 5"};

    make_hugectr(out, rng);
    out->len -= strlen("\n");
    buf_printf(out, "%s\n", more[rng_below(rng, 16)]);
}

/* The right list with some empty cells counts as right, too. */
static enum outcome import_dlrm(const struct buf *text, bool is_spoilt)
{
    enum outcome outcome = import(text);
    bool is_known = true;

    for (size_t i = 0; outcome == WRONG && i < list.n_tables && i < n_want;
         i++) {
        is_known &= list.tables[i].dim && !isnan(list.tables[i].pooling_factor);
        if (!list.tables[i].dim)
            list.tables[i].dim = want[i].dim;
        if (isnan(list.tables[i].pooling_factor))
            list.tables[i].pooling_factor = want[i].pooling_factor;
    }
    if (outcome == WRONG && is_spoilt && !is_known && is_right())
        return RIGHT;
    return outcome == RIGHT && is_spoilt && !n_warnings ? WRONG : outcome;
}

/* --- Python, models, TorchEasyRec and YAML --- */

/* Cuts off up to half of a text. */
static void cut_at(struct buf *out, struct rng *rng)
{
    out->len -= 2 + rng_below(rng, out->len / 2);
}

static void add_config(struct buf *out, size_t i, const char *rows)
{
    buf_printf(out,
               "    EmbeddingBagConfig(\n        name=\"t%zu\",\n"
               "        num_embeddings=%s,\n        embedding_dim=%u,\n"
               "        feature_names=[\"f%zu\"],\n    ),\n",
               i, rows, want[i].dim, i);
}

/* Draws tables that all have the same lookups, which --pooling gives. */
static void draw_pooling(void)
{
    for (size_t i = 0; i < n_want; i++)
        want[i].pooling_factor = POOLING;
}

static void add_python(struct buf *out, size_t bad, const char *rows)
{
    draw_pooling();
    buf_printf(out, "N = 100\ntables = [\n");
    for (size_t i = 0; i < n_want; i++) {
        char right[32];

        snprintf(right, sizeof(right), "%" PRIu64 " + 1 * N",
                 want[i].num_embeddings);
        want[i].num_embeddings += 100;
        add_config(out, i, i == bad ? rows : right);
    }
    buf_printf(out, "]\n");
}

static void make_python(struct buf *out, struct rng *rng)
{
    (void)rng;
    add_python(out, n_want, "");
}

static void spoil_python(struct buf *out, struct rng *rng)
{
    static const char *const rows[] = {
        "args.rows", "sizes[0]", "N if big else 5", "7.5",
        "int(1e6)",  "-5",       "10 ** 40",        "max(3, 4)"};
    const size_t kind = rng_below(rng, 12), at = rng_below(rng, n_want);

    add_python(out, kind < 8 ? at : n_want, kind < 8 ? rows[kind] : "");
    if (kind == 8) { /* a table twice, with other rows */
        add_config(out, at, "7");
    } else if (kind == 9) { /* a constant with two values */
        buf_printf(out, "N = 200\n");
    } else if (kind == 10) {
        buf_printf(out, "EmbeddingBagConfig(name=\"t\", num_embeddings=5");
    } else if (kind == 11) {
        buf_printf(out, "for i in range(3):\n    EmbeddingBagConfig(name=f\"x"
                        "{i}\", num_embeddings=5, embedding_dim=4)\n");
    }
}

static void make_model(struct buf *out, struct rng *rng)
{
    (void)rng;
    draw_pooling();
    buf_printf(out, "DLRM(\n  (ebc): EmbeddingBagCollection(\n"
                    "    (embedding_bags): ModuleDict(\n");
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out,
                   "      (t%zu): EmbeddingBag(%" PRIu64 ", %u, mode='sum')\n",
                   i, want[i].num_embeddings, want[i].dim);
    buf_printf(out, "    )\n  )\n  (over): Linear(in_features=3, "
                    "out_features=1)\n)\n");
}

static void spoil_model(struct buf *out, struct rng *rng)
{
    const size_t kind = rng_below(rng, 5);

    make_model(out, rng);
    if (kind == 0) {
        cut_at(out, rng);
    } else if (kind == 1) { /* printed again without the last table */
        n_want--;
        make_model(out, rng);
        n_want++;
    } else if (kind == 2) { /* printed again with other rows */
        want[0].num_embeddings++;
        make_model(out, rng);
    } else if (kind == 3) {
        buf_printf(out, "  (t0): EmbeddingBag(7)\n");
    } else {
        buf_printf(out, "X(\n  (m): Y(\n  (t0): EmbeddingBag(7, 4)\n)\n");
    }
}

static void add_feature(struct buf *out, size_t i, const char *rows)
{
    buf_printf(out,
               "feature_configs {\n  id_feature {\n    feature_name: \"f%zu\"\n"
               "    embedding_name: \"t%zu\"\n    %s%" PRIu64 "%s\n"
               "    embedding_dim: %u\n    value_dim: %g\n  }\n}\n",
               i, i, rows, want[i].num_embeddings, *rows == 'v' ? "\"" : "",
               want[i].dim, want[i].pooling_factor);
}

static void make_easyrec(struct buf *out, struct rng *rng)
{
    buf_printf(out, "model_dir: \"x\"  # it's %u\n",
               (unsigned)rng_below(rng, 9));
    for (size_t i = 0; i < n_want; i++)
        add_feature(out, i, i % 2 ? "num_buckets: " : "hash_bucket_size: ");
}

static void spoil_easyrec(struct buf *out, struct rng *rng)
{
    const size_t kind = rng_below(rng, 6), at = rng_below(rng, n_want);

    if (kind == 0) {
        add_feature(out, at, "vocab_file: \"");
    } else if (kind == 1) {
        add_feature(out, at, "other: ");
    } else if (kind == 2) {
        want[at].dim += 4;
        add_feature(out, at, "num_buckets: ");
        want[at].dim -= 4;
    }
    make_easyrec(out, rng);
    if (kind == 3)
        out->len -= 2 + rng_below(rng, 40);
    else if (kind == 4)
        buf_printf(out, "}\n");
    else if (kind == 5)
        add_feature(out, at, "num_buckets: 1");
}

static void make_yaml(struct buf *out, struct rng *rng)
{
    const bool is_list = rng_below(rng, 2);

    buf_printf(out, "# tables\ntables:\n");
    for (size_t i = 0; i < n_want; i++)
        buf_printf(out,
                   is_list ? "- name: t%zu\n  num_embeddings: %" PRIu64
                             "\n  dim: %u\n  pooling_factor: %g\n"
                           : "  t%zu: {num_embeddings: %" PRIu64
                             ", dim: %u, pooling_factor: %g}\n",
                   i, want[i].num_embeddings, want[i].dim,
                   want[i].pooling_factor);
}

static void spoil_yaml(struct buf *out, struct rng *rng)
{
    static const char *const more[] = {"\tx: 1\n",
                                       " - y: 1\n",
                                       "tables: 3\n",
                                       "z: &a 1\n",
                                       "z: {num_embeddings: 4\n",
                                       "---\nz: 1\n",
                                       "z: |\n  text\n",
                                       "z: 'open\n",
                                       "no colon\n"};

    make_yaml(out, rng);
    buf_printf(out, "%s", more[rng_below(rng, 9)]);
}

/* --- arrays of ids --- */

static int64_t ids[4][600];
static size_t n_ids, n_arrays;

static void add_array(struct buf *out, const int64_t *numbers, size_t n)
{
    char header[128];
    int len = snprintf(header, sizeof(header),
                       "{'descr': '<i8', 'fortran_order': False, 'shape': "
                       "(%zu,), }",
                       n);
    const int padded = (10 + len + 1 + 63) / 64 * 64 - 10;

    memset(header + len, ' ', sizeof(header) - (size_t)len);
    header[padded - 1] = '\n';
    buf_add(out, "\x93NUMPY\1\0", 8);
    buf_add(out, (char[]){(char)padded, 0}, 2);
    buf_add(out, header, (size_t)padded);
    buf_add(out, (const char *)numbers, n * sizeof(*numbers));
}

static void draw_ids(struct rng *rng, size_t n)
{
    n_arrays = n;
    n_ids = 20 + rng_below(rng, 500);
    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < n_ids; i++)
            ids[t][i] = (int64_t)rng_below(rng, 1 + rng_below(rng, 900));
}

static void make_npy(struct buf *out, struct rng *rng)
{
    draw_ids(rng, 1);
    add_array(out, ids[0], n_ids);
}

static void make_npz(struct buf *out, struct rng *rng)
{
    struct npz npz = {0};

    draw_ids(rng, 1 + rng_below(rng, 4));
    for (size_t t = 0; t < n_arrays; t++) {
        struct buf array = {0};
        char name[24];

        snprintf(name, sizeof(name), "t%zu", t);
        add_array(&array, ids[t], n_ids);
        npz_add(&npz, out, name, &array);
        buf_release(&array);
    }
    npz_end(&npz, out);
}

static void spoil_npy(struct buf *out, struct rng *rng)
{
    make_npy(out, rng);
    damage_bytes(out, rng, true, out->len - n_ids * 8);
}

static void spoil_npz(struct buf *out, struct rng *rng)
{
    make_npz(out, rng);
    damage_bytes(out, rng, true, out->len);
}

/* Returns true if a table has the rows and ids that were drawn. */
static bool is_measured(const struct id_table *table, size_t t)
{
    const struct profile_result *result = &table->result;
    uint64_t n_used = 0, n_rows = 0;
    bool is_used[1000] = {false};

    for (size_t i = 0; i < n_ids; i++) {
        n_used += !is_used[ids[t][i]];
        is_used[ids[t][i]] = true;
        n_rows =
            (uint64_t)ids[t][i] + 1 > n_rows ? (uint64_t)ids[t][i] + 1 : n_rows;
    }
    return result->n_samples == n_ids && result->n_ids == n_ids &&
           result->n_rows == n_rows && result->n_used == n_used;
}

static enum outcome measure(const struct buf *text)
{
    char path[] = "import_damage_XXXXXX", *paths[] = {path};
    struct id_tables tables = {.dim = 4,
                               .arena = &arena,
                               .options = {.batch = 16,
                                           .local_batch = 16,
                                           .max_rows = 1000,
                                           .max_batches = 1000}};
    bool is_all;
    int fd = mkstemp(path), rc;

    arena_release(&arena);
    n_warnings = 0;
    if (fd < 0 || write(fd, text->data, text->len) != (ssize_t)text->len)
        return WRONG;
    close(fd);
    rc = ids_measure(&tables, paths, 1, &err);
    unlink(path);
    is_all = !rc && tables.n_tables == n_arrays;
    for (size_t t = 0; is_all && t < n_arrays; t++)
        is_all = is_measured(&tables.tables[t], t);
    ids_release(&tables);
    return rc ? REFUSED : is_all ? RIGHT : WRONG;
}

/* --- the formats --- */

static enum outcome import_any(const struct buf *text, bool is_spoilt)
{
    (void)is_spoilt;
    return import(text);
}

static enum outcome measure_any(const struct buf *text, bool is_spoilt)
{
    (void)is_spoilt;
    return measure(text);
}

/* Reader for formats without counts, header or checksum. Their damage makes
 * the source contradict itself, so reading it as the undamaged list is wrong,
 * too. */
static enum outcome import_strict(const struct buf *text, bool is_spoilt)
{
    const enum outcome outcome = import(text);

    return is_spoilt && outcome == RIGHT ? WRONG : outcome;
}

/* Reader like import_strict for formats without lookups. */
static enum outcome import_pooled(const struct buf *text, bool is_spoilt)
{
    const enum outcome outcome = import_with(text, POOLING);

    return is_spoilt && outcome == RIGHT ? WRONG : outcome;
}

static const struct format {
    const char *name;
    void (*make)(struct buf *out, struct rng *rng);
    void (*spoil)(struct buf *out, struct rng *rng);
    enum outcome (*read)(const struct buf *text, bool is_spoilt);
} formats[] = {
    {"TBE report, lines", make_tbe, spoil_tbe, import_any},
    {".npy, bytes", make_npy, spoil_npy, measure_any},
    {".npz, bytes", make_npz, spoil_npz, measure_any},
    {"CSV, contradictions", make_csv, spoil_csv, import_strict},
    {"JSON, contradictions", make_json, spoil_json, import_strict},
    {"DLRM, contradictions", make_dlrm, spoil_dlrm, import_dlrm},
    {"HugeCTR, contradictions", make_hugectr, spoil_hugectr, import_dlrm},
    {"Python, contradictions", make_python, spoil_python, import_pooled},
    {"model, contradictions", make_model, spoil_model, import_pooled},
    {"EasyRec, contradictions", make_easyrec, spoil_easyrec, import_strict},
    {"YAML, contradictions", make_yaml, spoil_yaml, import_strict},
};

static void try_format(const struct format *format, size_t n_damaged,
                       size_t n_whole)
{
    size_t counts[2][N_OUTCOMES] = {{0}}, n_talk = 0;

    for (size_t i = 0; i < n_damaged + n_whole; i++) {
        const bool is_spoilt = i < n_damaged;
        struct buf text = {0};
        struct rng rng;
        enum outcome outcome;
        const char *last;

        rng_init(&rng, i, (uint64_t)(format - formats));
        draw_tables(&rng);
        (is_spoilt ? format->spoil : format->make)(&text, &rng);
        outcome = format->read(&text, is_spoilt);
        counts[is_spoilt][outcome]++;
        n_talk += !is_spoilt && n_warnings;
        for (last = text.data + text.len - 1;
             last > text.data &&
             (last[-1] != '\n' || last - text.data + 60 > (ptrdiff_t)text.len);)
            last--;
        if (outcome == WRONG || (!is_spoilt && outcome != RIGHT))
            printf("# %s, seed %zu: %s\n#   %.*s\n", format->name, i,
                   outcome == REFUSED ? err.msg : "another list",
                   (int)strcspn(last, "\n"), last);
        buf_release(&text);
    }
    printf("# %-22s %6zu %8zu %7zu %6zu %6zu | %6zu %7zu\n", format->name,
           n_damaged, counts[1][REFUSED], counts[1][WARNED], counts[1][RIGHT],
           counts[1][WRONG], counts[0][RIGHT], n_talk);
    ok(!counts[1][WRONG], "%s: none of %zu damaged is a wrong list",
       format->name, n_damaged);
    ok(counts[0][RIGHT] == n_whole && !n_talk,
       "%s: each of %zu whole ones is right, without a warning", format->name,
       n_whole);
}

int main(void)
{
    const size_t n_damaged = tap_size(60, 300);

    printf("# %-22s %6s %8s %7s %6s %6s | %6s %7s\n", "", "damaged", "refused",
           "warned", "right", "wrong", "whole", "warned");
    for (size_t f = 0; f < sizeof(formats) / sizeof(*formats); f++)
        try_format(&formats[f], n_damaged, 100);
    arena_release(&arena);
    return tap_done();
}
