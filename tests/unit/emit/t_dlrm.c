/* SPDX-License-Identifier: MIT */
#include "tests/unit/emit/fixture.h"

#include <unistd.h>

#include "base/file_write.h"
#include "emit/formats.h"

/* The emitted script and the Python in it are also checked with tools for their
 * languages, if these are installed. */
static char dir[] = "/tmp/t_dlrm.XXXXXX";

static const char *emitted(const struct emitter *format,
                           const struct plan *plan, struct err *err)
{
    struct emit_options options = {0};
    struct buf out = {0};
    const char *text = NULL;

    if (!format->emit(plan, &options, &out, err))
        text = arena_strndup(&arena, out.data, out.len);
    buf_release(&out);
    return text;
}

static bool have(const char *tool)
{
    return !system(arena_printf(&arena, "command -v %s >/dev/null 2>&1", tool));
}

/* Writes the text to a file in dir; returns its path. */
static const char *written(const char *name, const char *text)
{
    const char *path = arena_printf(&arena, "%s/%s", dir, name);
    struct err err = {0};

    if (file_write(path, text, strlen(text), &err))
        printf("# %s\n", err.msg);
    return path;
}

/* Returns the lines of a here-document of the script. */
static const char *here_document(const char *script, const char *file)
{
    const char *start = strstr(
        script, arena_printf(&arena, "cat >\"$work/%s\" <<'END_OF_", file));
    const char *end;

    if (!start)
        return "";
    start = strchr(start, '\n') + 1;
    end = strstr(start, "\nEND_OF_");
    return arena_strndup(&arena, start, (size_t)(end - start) + 1);
}

static void runs(const char *tool, const char *command, const char *path)
{
    if (!have(tool)) {
        tap_skip(tool, arena_printf(&arena, "there is no %s", tool));
        return;
    }
    ok(!system(arena_printf(&arena, "%s '%s' >&2", command, path)), "%s %s",
       command, strrchr(path, '/') + 1);
}

static struct plan criteo_plan(void)
{
    struct plan plan = fixture_plan(8, 4, 65536);

    /* tables in another order than DLRM's features */
    fixture_whole(&plan, "cat_2", 17295, 128, 1, 2);
    fixture_whole(&plan, "cat_0", 40000000, 128, 3.4, 0);
    fixture_table(&plan, "cat_1", 39060, 128, 1.6);
    fixture_shard(&plan, 0, 39060, 0, 64, 1);
    fixture_shard(&plan, 0, 39060, 64, 128, 5);
    fixture_finish(&plan);
    return plan;
}

static void test_script(void)
{
    struct plan plan = criteo_plan();
    struct err err = {0};
    const char *script;

    plan.inputs_hash = "0123456789abcdef";
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "#!/usr/bin/env bash\n"
                  "#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=4\n");
    is_in(script, "# 3 tables on 8 GPUs, global batch 65536, inputs "
                  "0123456789abcdef.\n");
    is_in(script, "those of 2 tables are rounded");
    is_in(script, "--num_embeddings_per_feature \"40000000,39060,17295\"\n");
    is_in(script, "--embedding_dim 128\n");
    is_in(script, "--dense_arch_layer_sizes \"512,256,128\"\n");
    is_in(script, "--batch_size 8192\n");
    is_in(script, "    --adagrad\n");
    is_in(
        script,
        "--multi_hot_sizes \"3,2,1\" --multi_hot_distribution_type uniform)\n");
    is_in(script, "torchrun --nnodes 2 --nproc_per_node 4 \\\n"
                  "    --node_rank \"${NODE_RANK:-${SLURM_NODEID:-0}}\" \\\n"
                  "    --master_addr \"${MASTER_ADDR:-localhost}\" \\\n"
                  "    --master_port \"${MASTER_PORT:-29500}\" \\\n"
                  "    \"$work/train.py\" \"${args[@]}\" \"$@\"\n");
    is_in(script, "OPTIMIZER = \"rowwise_adagrad\"\nTABLES = {\n"
                  "    \"cat_0\": (128, \"fp32\"),\n"
                  "    \"cat_1\": (128, \"fp32\"),\n"
                  "    \"cat_2\": (128, \"fp32\"),\n}\n");
    is_in(here_document(script, "plan.json"), "\n    \"t_cat_2\": {");
    runs("bash", "bash -n", written("run.sh", script));
    runs("shellcheck", "shellcheck", written("run.sh", script));
    runs("python3", "python3 -m py_compile",
         written("loader.py", here_document(script, "loader.py")));
    runs("python3", "python3 -m py_compile",
         written("train.py", here_document(script, "train.py")));
    is_str(here_document(script, "loader.py"),
           emitted(&emit_torchrec_loader, &plan, &err),
           "the loader is that of --format torchrec-loader");
    is_str(here_document(script, "plan.json"),
           here_document(emitted(&emit_dlrm, &plan, &err), "plan.json"),
           "the same plan, the same text");
}

static void set_dense(struct plan *plan, const char *text)
{
    struct err err = {0};

    if (dense_read(&plan->problem.job.dense, text, strlen(text),
                   plan->problem.tables, plan->problem.n_tables, &arena, &err))
        ok(0, "%s", err.msg);
}

/* The script passes the layers of the plan's dense part. */
static void test_dense(void)
{
    static const struct {
        const char *dense, *message;
    } refused[] = {
        {"dlrm;interaction:cat",
         "the dense part has the interaction 'cat', but DLRM has dot and dcn"},
        {"dlrm;interaction:pool:2",
         "the dense part has the interaction 'pool', but DLRM has dot and dcn"},
        {"dcnv2;bottom:13",
         "the dense part has 13 dense features and 0 bottom layers, but DLRM "
         "has 13 features and at least one layer"},
        {"dcnv2;bottom:10-128",
         "the dense part has 10 dense features and 1 bottom layers, but DLRM "
         "has 13 features and at least one layer"},
        {"dcnv2;bottom:13-64",
         "the bottom layers of the dense part end with 64 values, but DLRM "
         "needs 128, as the widest table has"},
        {"dcnv2;top:64-2", "the top layers of the dense part end with 2 "
                           "values, but DLRM needs 1"},
    };
    struct plan plan = criteo_plan();
    struct err err = {0};
    const char *script;

    set_dense(&plan, "dcnv2;bottom:13-64-128;dtype:tf32");
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "    --dense_arch_layer_sizes \"64,128\"\n"
                  "    --over_arch_layer_sizes \"1024,1024,512,256,1\"\n"
                  "    --interaction_type dcn\n"
                  "    --dcn_num_layers 3\n"
                  "    --dcn_low_rank_dim 512\n"
                  "    --allow_tf32\n");
    ok(!strstr(script, "# DLRM multiplies"), "DLRM computes like that");
    set_dense(&plan, "dlrm;dtype:bf16;grads:fp16;kernels:fused");
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "    --dense_arch_layer_sizes \"512,256,128\"\n"
                  "    --over_arch_layer_sizes \"1024,1024,512,256,1\"\n"
                  "    --batch_size 8192\n");
    is_in(script, "# DLRM multiplies in fp32, not in bf16.\n"
                  "# DLRM exchanges gradients in fp32, not in fp16.\n"
                  "# DLRM does not compile its dense part.\n");
    runs("shellcheck", "shellcheck", written("run.sh", script));
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct buf out = {0};

        err = (struct err){0};
        set_dense(&plan, refused[i].dense);
        ok(emit_dlrm.emit(&plan, &(struct emit_options){0}, &out, &err),
           "refused: %s", refused[i].dense);
        is_str(err.msg, refused[i].message, "its message");
        buf_release(&out);
    }
}

/* Two names with the same number do not determine an order, so the order of the
 * list stays. */
static void test_same_numbers(void)
{
    struct plan plan = fixture_plan(2, 2, 64);
    struct err err = {0};

    fixture_whole(&plan, "cat_0", 300, 16, 1, 0);
    fixture_whole(&plan, "cat_00", 700, 16, 1, 1);
    fixture_finish(&plan);
    is_in(emitted(&emit_dlrm, &plan, &err),
          "--num_embeddings_per_feature \"300,700\"\n");
}

/* Table names are not expanded, even if they look like words of the
 * template. */
static void test_names(void)
{
    struct plan plan = fixture_plan(1, 1, 8);
    struct err err = {0};
    const char *script;

    fixture_whole(&plan, "{{rows}}", 100, 16, 1, 0);
    fixture_whole(&plan, "{{none", 100, 16, 1, 0);
    fixture_finish(&plan);
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "TABLES = {\n    \"{{rows}}\": (16, \"fp32\"),\n"
                  "    \"{{none\": (16, \"fp32\"),\n}\n");
    is_in(here_document(script, "plan.json"), "\n    \"t_{{rows}}\": {");
}

static void test_other_lists(void)
{
    struct plan plan = fixture_plan(3, 3, 1001);
    struct err err = {0};
    const char *script;

    fixture_whole(&plan, "t_users", 100, 16, 1, 0);
    fixture_whole(&plan, "t_ads", 200, 24, 0, 1);
    plan.problem.tables[0].optimizer = OPTIMIZER_SGD;
    plan.problem.tables[0].precision = PRECISION_FP16;
    plan.problem.tables[1].optimizer = OPTIMIZER_SGD;
    fixture_finish(&plan);
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "TABLES = {\n    \"users\": (16, \"fp16\"),\n"
                  "    \"ads\": (24, \"fp32\"),\n}\n");
    is_in(script, "--embedding_dim 24\n");
    is_in(script, "--dense_arch_layer_sizes \"512,256,24\"\n");
    is_in(here_document(script, "plan.json"), "\n    \"t_users\": {");
    is_in(script, "--num_embeddings_per_feature \"100,200\"\n");
    is_in(script, "--batch_size 334\n");
    is_in(script, "# The batch of a GPU is rounded.\n");
    is_in(script, "torchrun --nnodes 1 --nproc_per_node 3 ");
    ok(!strstr(script, "--adagrad") && !strstr(script, "--multi_hot_sizes "),
       "no Adagrad, no multi-hot");
    runs("shellcheck", "shellcheck", written("other.sh", script));
    plan = fixture_plan(8, 2, 64);
    plan.problem.cluster.hosts_per_domain = 4;
    fixture_whole(&plan, "t_users", 100, 16, 1, 7);
    fixture_finish(&plan);
    script = emitted(&emit_dlrm, &plan, &err);
    is_in(script, "\"rank:7/cuda:1\"");
    is_in(script, "\nexport TORCHREC_RESOLVED_POD_SIZE=4\n\n"
                  "torchrun --nnodes 4 --nproc_per_node 2 ");
    runs("shellcheck", "shellcheck", written("domains.sh", script));
}

/* A fake Slurm of two hosts; the script runs on the second one and starts
 * torchrun there. */
static const char slurm[] =
    "bin() { cat >\"$1/bin/$2\" && chmod 755 \"$1/bin/$2\"; }\n"
    "cd \"$(dirname \"$1\")\" && mkdir bin && : >dlrm_main.py\n"
    "printf '#!/bin/sh\\necho host-0; echo host-1\\n' | bin . scontrol\n"
    "printf '#!/bin/sh\\nshift 2; exec env SLURM_STEP_ID=0 SLURM_NODEID=1 "
    "\"$@\"\\n' | bin . srun\n"
    "printf '#!/bin/sh\\necho \"$@\" >arguments\\n' | bin . torchrun\n"
    "unset MASTER_ADDR NODE_RANK SLURM_STEP_ID\n"
    "PATH=$PWD/bin:$PATH SLURM_JOB_ID=7 DLRM_DIR=. bash \"$1\" --more 'a b'\n"
    "grep -q 'node_rank 1 --master_addr host-0 .* --more a b' arguments\n";

static void test_slurm(void)
{
    struct plan plan = criteo_plan();
    struct err err = {0};
    const char *sh = written("slurm.sh", slurm);

    runs("bash", arena_printf(&arena, "bash -e '%s'", sh),
         written("job.sh", emitted(&emit_dlrm, &plan, &err)));
}

/* The script has the model's --adagrad switch for both kinds of Adagrad, and
 * for no other optimizer. */
static void test_optimizers(void)
{
    for (unsigned i = 0; i < N_OPTIMIZERS; i++) {
        struct plan plan = fixture_plan(2, 2, 64);
        struct err err = {0};
        const char *script;

        fixture_whole(&plan, "t_users", 100, 16, 1, 0);
        plan.problem.tables[0].optimizer = (enum optimizer)i;
        fixture_finish(&plan);
        script = emitted(&emit_dlrm, &plan, &err);
        if (i == OPTIMIZER_ADAMA)
            ok(!script && strstr(err.msg, "optimizer adama, which DLRM"),
               "refused: %s", err.msg);
        else
            ok(script && !strstr(script, "    --adagrad\n") ==
                             !(i == OPTIMIZER_ADAGRAD ||
                               i == OPTIMIZER_ROWWISE_ADAGRAD),
               "%s: %s", optimizer_names[(enum optimizer)i], err.msg);
    }
}

/* A stand-in for the parts of TorchRec that the loader uses, and a model of
 * three tables. */
static const char stand_in[] =
    "import json, os, sys, types\n"
    "from dataclasses import asdict, dataclass\n"
    "\n"
    "@dataclass\n"
    "class ShardMetadata:\n"
    "    shard_offsets: list\n"
    "    shard_sizes: list\n"
    "    placement: str\n"
    "\n"
    "@dataclass\n"
    "class EnumerableShardingSpec:\n"
    "    shards: list\n"
    "\n"
    "@dataclass\n"
    "class ParameterSharding:\n"
    "    sharding_type: str\n"
    "    compute_kernel: str\n"
    "    ranks: list\n"
    "    sharding_spec: object\n"
    "    cache_params: object = None\n"
    "\n"
    "@dataclass\n"
    "class CacheParams:\n"
    "    precision: str\n"
    "\n"
    "@dataclass\n"
    "class ShardingPlan:\n"
    "    plan: dict\n"
    "\n"
    "fake = types.ModuleType('torchrec.distributed.types')\n"
    "for c in (ShardMetadata, EnumerableShardingSpec, ParameterSharding,\n"
    "          ShardingPlan, CacheParams):\n"
    "    setattr(fake, c.__name__, c)\n"
    "fake.EmbeddingModuleShardingPlan = dict\n"
    "for name in ('torchrec', 'torchrec.distributed', 'torchrec.modules'):\n"
    "    sys.modules[name] = types.ModuleType(name)\n"
    "sys.modules[fake.__name__] = fake\n"
    "configs = types.ModuleType('torchrec.modules.embedding_configs')\n"
    "configs.DataType = types.SimpleNamespace(FP32='FP32', FP16='FP16')\n"
    "sys.modules[configs.__name__] = configs\n"
    "comm = types.ModuleType('torchrec.distributed.comm')\n"
    "comm.get_local_size = lambda _: int(os.environ['LOCAL_WORLD_SIZE'])\n"
    "sys.modules['torchrec.distributed'].comm = comm\n"
    "os.environ['LOCAL_WORLD_SIZE'] = '4'\n"
    "\n"
    "@dataclass\n"
    "class Config:\n"
    "    name: str\n"
    "    num_embeddings: int\n"
    "    embedding_dim: int\n"
    "    data_type: str = 'FP32'\n"
    "\n"
    "class Tables:\n"
    "    def __init__(self, *configs):\n"
    "        self.configs = configs\n"
    "    def embedding_bag_configs(self):\n"
    "        return self.configs\n"
    "\n"
    "class Model:\n"
    "    def __init__(self, **modules):\n"
    "        self.modules = modules\n"
    "    def named_modules(self):\n"
    "        return [('', object())] + list(self.modules.items())\n"
    "\n"
    "from loader import load_plan\n";

/* Plans that load unchanged, and plans that are refused. */
static const char loads[] =
    "FQN = 'model.sparse_arch.embedding_bag_collection'\n"
    "sizes = {'cat_0': 40000000, 'cat_1': 39060, 'cat_2': 17295}\n"
    "configs = [Config(n, r, 128) for n, r in sizes.items()]\n"
    "good = Model(**{FQN: Tables(*configs)})\n"
    "\n"
    "def entry(p):\n"
    "    e = {'sharding_type': p.sharding_type,\n"
    "         'compute_kernel': p.compute_kernel, 'ranks': p.ranks}\n"
    "    if p.sharding_spec:\n"
    "        e['shards'] = [asdict(s) for s in p.sharding_spec.shards]\n"
    "    return e\n"
    "\n"
    "plan = load_plan(sys.argv[1], good, 8)\n"
    "again = {m: {n: entry(p) for n, p in t.items()}\n"
    "         for m, t in plan.plan.items()}\n"
    "assert again == json.load(open(sys.argv[1]))['plan'], again\n"
    "cpu = load_plan(sys.argv[1], good, 8, 'cpu').plan[FQN]['cat_1']\n"
    "assert cpu.sharding_spec.shards[1].placement == 'rank:5/cpu', cpu\n"
    "\n"
    "def refused(model, world_size, want, path=sys.argv[1]):\n"
    "    try:\n"
    "        load_plan(path, model, world_size)\n"
    "    except ValueError as error:\n"
    "        assert str(error).replace(path, 'FILE') == want, error\n"
    "    else:\n"
    "        raise AssertionError('not refused: ' + want)\n"
    "\n"
    "def edited(want, edit):\n"
    "    path = sys.argv[1] + '.edited'\n"
    "    with open(sys.argv[1]) as file:\n"
    "        root = json.load(file)\n"
    "    edit(root, root['plan'][FQN]['cat_1'])\n"
    "    with open(path, 'w') as file:\n"
    "        json.dump(root, file)\n"
    "    refused(good, 8, want, path)\n"
    "\n"
    "def one_rank(_, entry):\n"
    "    entry['ranks'] = [5, 5]\n"
    "    entry['shards'][0]['placement'] = 'rank:5/cuda:1'\n"
    "\n"
    "def unequal(_, entry):\n"
    "    one_rank(_, entry)\n"
    "    entry['shards'][0]['shard_sizes'][1] = 96\n"
    "    entry['shards'][1]['shard_sizes'][1] = 32\n"
    "    entry['shards'][1]['shard_offsets'][1] = 96\n"
    "\n"
    "def by_rows(kind):\n"
    "    return lambda _, entry: entry.update(sharding_type=kind)\n"
    "\n"
    "edited('cat_1: pieces of 96 and of 32 columns on rank 5, where TorchRec "
    "'\n"
    "       'wants one width', unequal)\n"
    "edited('cat_1: shards on ranks [1, 5], not [1, 4]',\n"
    "       lambda _, entry: entry.update(ranks=[1, 4]))\n"
    "edited('cat_1: rank 8 of 8',\n"
    "       lambda _, entry: entry.update(ranks=[1, 8]))\n"
    "edited('cat_1: row_wise over 2 ranks, but TorchRec takes 8 at a time '\n"
    "       'here', by_rows('row_wise'))\n"
    "edited('cat_1: table_row_wise over 2 ranks, but TorchRec takes 4 at a '\n"
    "       'time here', by_rows('table_row_wise'))\n"
    "comm.get_topology_group_world_size = lambda _: 8\n"
    "refused(good, 8, 'FILE is for a pod size of 1, but that of this job is '\n"
    "        '2 (TORCHREC_RESOLVED_POD_SIZE)')\n"
    "edited('cat_1: grid_shard over 2 ranks, but TorchRec takes 8 at a '\n"
    "       'time here', lambda root, entry: (root.update(pod_size=2),\n"
    "       entry.update(sharding_type='grid_shard')))\n"
    "comm.get_topology_group_world_size = comm.get_local_size\n"
    "edited('FILE is for a pod size of 2, but that of this job is 1 '\n"
    "       '(TORCHREC_RESOLVED_POD_SIZE)',\n"
    "       lambda root, _: root.update(pod_size=2))\n"
    "refused(good, 4, 'FILE is for 8 ranks, but this job has 4')\n"
    "os.environ['LOCAL_WORLD_SIZE'] = '8'\n"
    "refused(good, 8, 'FILE is for hosts of 4 ranks, but those of this job '\n"
    "        'have 8 (LOCAL_WORLD_SIZE)')\n"
    "os.environ['LOCAL_WORLD_SIZE'] = '4'\n"
    "refused(Model(other=Tables(*configs)), 8, 'module other is not in the "
    "plan')\n"
    "refused(Model(), 8, 'the model has no tables in ' + FQN)\n"
    "refused(Model(**{FQN: Tables(*configs[:2])}), 8,\n"
    "        FQN + \": tables of one side: ['cat_2']\")\n"
    "refused(Model(**{FQN: Tables(*configs), 'x': Tables()}), 8,\n"
    "        'module x is not in the plan')\n"
    "configs[2].num_embeddings = 5\n"
    "refused(good, 8, 'cat_2: planned as [17295, 128], but is [5, 128]')\n";

static void test_loader(void)
{
    struct plan plan = criteo_plan();
    struct err err = {0};
    const char *json;

    written("loader.py", emitted(&emit_torchrec_loader, &plan, &err));
    written("stand_in.py", arena_printf(&arena, "%s\n%s", stand_in, loads));
    json = written("plan.json", emitted(&emit_torchrec, &plan, &err));
    runs("python3",
         arena_printf(&arena,
                      "cd %s && PYTHONDONTWRITEBYTECODE=1 python3 "
                      "stand_in.py",
                      dir),
         json);
}

static void refuses(const struct plan *plan, const char *want)
{
    struct err err = {0};

    ok(!emitted(&emit_dlrm, plan, &err) && err.code == ERR_INPUT, "refused");
    is_str(err.msg, want, "its sentence");
}

static void test_refused(void)
{
    struct plan plan = fixture_plan(2, 2, 64), broken;
    struct table tables[2];

    fixture_table(&plan, "a", 8, 8, 1);
    plan.problem.tables[0].optimizer = OPTIMIZER_LAMB;
    fixture_shard(&plan, 0, 8, 0, 8, 0);
    fixture_shard(&plan, 0, 8, 0, 8, 1);
    fixture_finish(&plan);
    refuses(&plan, "table 'a' is replicated and has the optimizer lamb, which "
                   "DLRM has for cut and whole tables only");

    plan = fixture_plan(4, 4, 64);
    fixture_whole(&plan, "a", 8, 8, 1, 0);
    fixture_whole(&plan, "b", 8, 8, 1, 1);
    fixture_finish(&plan);
    memcpy(tables, plan.problem.tables, sizeof(tables));
    broken = plan;
    broken.problem.tables = tables;
    tables[1].optimizer = OPTIMIZER_ADAM;
    refuses(&broken, "tables 'a' and 'b' have optimizers rowwise_adagrad and "
                     "adam, but DLRM has one for all");
    tables[1] = plan.problem.tables[1];
    tables[1].num_outputs = 2;
    refuses(&broken, "table 'b' does not give one pooled vector a sample, as "
                     "DLRM's tables do");
    tables[1] = plan.problem.tables[1];
    tables[1].precision = PRECISION_BF16;
    refuses(&broken, "table 'b' is bf16, but DLRM's tables are fp32 and fp16");

    plan = fixture_plan(2, 2, 64);
    fixture_whole(&plan, "a", 8, 10, 1, 0);
    fixture_finish(&plan);
    refuses(&plan,
            "table 'a' has 10 columns, but DLRM's kernels take multiples of "
            "4");
}

int main(void)
{
    if (!mkdtemp(dir))
        tap_skip_all("no temporary folder");
    test_script();
    test_dense();
    test_same_numbers();
    test_names();
    test_other_lists();
    test_slurm();
    test_optimizers();
    test_loader();
    test_refused();
    ok(!system(arena_printf(&arena, "rm -r '%s'", dir)), "cleaned up");
    arena_release(&arena);
    return tap_done();
}
