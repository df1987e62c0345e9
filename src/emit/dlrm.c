/* SPDX-License-Identifier: MIT */
#include "emit/formats.h"

#include "base/text.h"

#include <inttypes.h>
#include <string.h>

/*
 * A shell script that trains torchrec_dlrm/dlrm_main.py with the plan. DLRM
 * takes no plan, so the script carries the plan (TorchRec's JSON), its loader
 * and a driver in Python that puts the plan where DLRM's planner would have
 * been asked. DLRM names the table of feature x "t_x" and makes all tables
 * pooled, of one width and fp32; the driver makes them as planned.
 */

#define TABLE_PREFIX "t_"

FILE_TEXT(dlrm_head_sh, "src/emit/dlrm_head.sh");
FILE_TEXT(dlrm_multi_hot_sh, "src/emit/dlrm_multi_hot.sh");
FILE_TEXT(dlrm_driver_py, "src/emit/dlrm_driver.py");

/* The tables in the order of DLRM's features. */
struct features {
    const struct problem *problem;
    uint32_t *order;    /* [n_tables]; owned */
    bool have_prefix;   /* all names begin with TABLE_PREFIX */
    size_t n_rounded;   /* pooling factors that are no whole number */
    bool are_multi_hot; /* any above 1 */
    uint32_t width;     /* of the widest */
};

static const char *feature_name(const struct features *features, size_t table)
{
    return features->problem->tables[table].name +
           (features->have_prefix ? strlen(TABLE_PREFIX) : 0);
}

/* Columns of the data set have numbers, so cat_10 comes after cat_9 whatever
 * the order of the list; any other names stay in the order of the list. */
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

/* Look-ups a sample, which DLRM takes as a whole number >= 1. */
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

/* Each table by itself, and beside the first. */
static int check_table(const struct table *table, const struct table *first,
                       struct err *err)
{
    if (table->optimizer != first->optimizer)
        return err_set(err, ERR_INPUT,
                       "tables '%s' and '%s' have optimizers %s and %s, but "
                       "DLRM has one for all",
                       first->name, table->name,
                       optimizer_name(first->optimizer),
                       optimizer_name(table->optimizer));
    if (table->optimizer == OPTIMIZER_ADAMA)
        return err_set(err, ERR_INPUT,
                       "table '%s' has the optimizer adama, which TorchRec "
                       "does not have",
                       table->name);
    if (table->output == OUTPUT_SEQUENCE || table->num_outputs != 1)
        return err_set(err, ERR_INPUT,
                       "table '%s' does not give one pooled vector a sample, "
                       "as DLRM's tables do",
                       table->name);
    if (table->precision != PRECISION_FP32 &&
        table->precision != PRECISION_FP16)
        return err_set(err, ERR_INPUT,
                       "table '%s' is %s, but the script makes fp32 and fp16 "
                       "tables",
                       table->name, precision_name(table->precision));
    return 0;
}

/* A replica is updated beside the dense part, by the rule of the others. */
static int check_replicas(const struct plan *plan, struct err *err)
{
    for (size_t i = 0; i < plan->n_shards; i++) {
        const struct table *table =
            &plan->problem.tables[plan->shards[i].table];

        if (plan->shards[i].kind == SHARD_REPLICATE &&
            table->optimizer >= OPTIMIZER_LAMB)
            return err_set(err, ERR_INPUT,
                           "table '%s' is replicated and has the optimizer "
                           "%s, which TorchRec has for cut and whole tables "
                           "only",
                           table->name, optimizer_name(table->optimizer));
    }
    return 0;
}

static void print_head(const struct plan *plan, const struct features *features,
                       struct buf *out)
{
    const struct problem *problem = &plan->problem;
    uint32_t n_local = problem->cluster.devices_per_host;

    buf_printf(
        out,
        "#!/usr/bin/env bash\n"
        "#SBATCH --nodes=%u --ntasks-per-node=1 --gpus-per-node=%u\n"
        "#SBATCH --exclusive\n"
        "# Trains torchrec_dlrm/dlrm_main.py with a plan of neuroshard:\n"
        "# %zu tables on %u GPUs, global batch %" PRIu64 ", inputs %s.\n",
        problem->cluster.n_devices / n_local, n_local, problem->n_tables,
        problem->cluster.n_devices, problem->batch,
        plan->inputs_hash ? plan->inputs_hash : "unknown");
    if (features->n_rounded)
        buf_printf(out,
                   "# DLRM takes whole numbers of look-ups >= 1: those of %zu "
                   "tables are rounded.\n",
                   features->n_rounded);
    if (problem->batch % problem->cluster.n_devices)
        buf_printf(out, "# The batch of a GPU is rounded.\n");
    buf_printf(out, "%s", dlrm_head_sh);
}

static int print_plan_file(const struct plan *plan,
                           const struct features *features, struct buf *out,
                           struct err *err)
{
    const struct emit_options options = {
        .prefix = features->have_prefix ? "" : TABLE_PREFIX,
    };

    buf_printf(out, "cat >\"$work/plan.json\" <<'END_OF_PLAN'\n");
    if (emit_torchrec.emit(plan, &options, out, err))
        return -1;
    buf_printf(out, "END_OF_PLAN\n\n");
    return 0;
}

static int print_python(const struct plan *plan,
                        const struct features *features, struct buf *out,
                        struct err *err)
{
    const struct emit_options options = {0};
    const char *rest = strstr(dlrm_driver_py, "# OPTIMIZER and TABLES");

    buf_printf(out, "cat >\"$work/loader.py\" <<'END_OF_PYTHON'\n");
    if (emit_torchrec_loader.emit(plan, &options, out, err))
        return -1;
    buf_printf(out, "END_OF_PYTHON\n\n"
                    "cat >\"$work/train.py\" <<'END_OF_PYTHON'\n");
    buf_add(out, dlrm_driver_py, (size_t)(rest - dlrm_driver_py));
    buf_printf(out, "OPTIMIZER = \"%s\"\nTABLES = {\n",
               optimizer_name(plan->problem.tables[0].optimizer));
    for (size_t i = 0; i < plan->problem.n_tables; i++) {
        const struct table *table = &plan->problem.tables[features->order[i]];

        buf_printf(out, "    ");
        emit_json(out, json_string(feature_name(features, features->order[i])));
        buf_printf(out, ": (%u, \"%s\"),\n", table->dim,
                   precision_name(table->precision));
    }
    buf_printf(out, "}\n");
    buf_printf(out, "%sEND_OF_PYTHON\n\n", strchr(rest, '\n') + 1);
    return 0;
}

static void print_arguments(const struct plan *plan,
                            const struct features *features, struct buf *out)
{
    const struct problem *problem = &plan->problem;
    const struct table *first = &problem->tables[0];
    double batch = (double)problem->batch / problem->cluster.n_devices;

    buf_printf(out, "args=(\n    --num_embeddings_per_feature \"");
    for (size_t i = 0; i < problem->n_tables; i++)
        buf_printf(out, "%s%" PRIu64, i ? "," : "",
                   problem->tables[features->order[i]].num_embeddings);
    buf_printf(out,
               "\"\n    --embedding_dim %u\n"
               "    --dense_arch_layer_sizes \"512,256,%u\"\n"
               "    --batch_size %.0f\n",
               features->width, features->width, fmax(round(batch), 1));
    if (first->optimizer == OPTIMIZER_ADAGRAD ||
        first->optimizer == OPTIMIZER_ROWWISE_ADAGRAD)
        buf_printf(out, "    --adagrad\n");
    buf_printf(out, ")\n");
    if (!features->are_multi_hot)
        return;
    buf_printf(out, "%s    args+=(--multi_hot_sizes \"", dlrm_multi_hot_sh);
    for (size_t i = 0; i < problem->n_tables; i++)
        buf_printf(out, "%s%ld", i ? "," : "",
                   hotness(&problem->tables[features->order[i]]));
    buf_printf(out, "\" --multi_hot_distribution_type uniform)\nfi\n");
}

static void print_launch(const struct cluster *cluster, struct buf *out)
{
    uint32_t n_local = cluster->devices_per_host;

    if (cluster->hosts_per_domain > 1)
        buf_printf(out, "\nexport TORCHREC_RESOLVED_POD_SIZE=%u\n",
                   cluster->hosts_per_domain);
    buf_printf(out,
               "\ntorchrun --nnodes %u --nproc_per_node %u \\\n"
               "    --node_rank \"${NODE_RANK:-${SLURM_NODEID:-0}}\" \\\n"
               "    --master_addr \"${MASTER_ADDR:-localhost}\" \\\n"
               "    --master_port \"${MASTER_PORT:-29500}\" \\\n"
               "    \"$work/train.py\" \"${args[@]}\" \"$@\"\n",
               cluster->n_devices / n_local, n_local);
}

static int print_script(const struct plan *plan,
                        const struct emit_options *options, struct buf *out,
                        struct err *err)
{
    const struct problem *problem = &plan->problem;
    struct features features = {0};
    int rc = -1;

    (void)options;
    for (size_t i = 0; i < problem->n_tables; i++)
        if (check_table(&problem->tables[i], &problem->tables[0], err))
            goto out;
    if (check_replicas(plan, err))
        goto out;
    features_init(&features, problem);
    print_head(plan, &features, out);
    if (print_plan_file(plan, &features, out, err) ||
        print_python(plan, &features, out, err))
        goto out;
    print_arguments(plan, &features, out);
    print_launch(&problem->cluster, out);
    rc = 0;
out:
    mem_free(features.order);
    return rc;
}

const struct emitter emit_dlrm = {print_script, NULL};
