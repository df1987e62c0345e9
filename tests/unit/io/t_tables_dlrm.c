/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"

#include "io/tables_csv.h"

#include "tests/tap.h"

/* Results of the last script that was read. */
static struct arena arena;
static struct table_list list;
static struct err err;
static struct buf notes;

static int import(const char *text, const char *names)
{
    const struct tables_options options = {
        .columns = "", .names = names, .notes = &notes};

    arena_release(&arena);
    buf_release(&notes);
    memset(&err, 0, sizeof(err));
    memset(&list, 0, sizeof(list));
    return tables_from_text(&list, text, strlen(text), "run.sh", &options,
                            &arena, &err);
}

/* Returns the tables as CSV without the notes, or the error message. */
static const char *imported(const char *text)
{
    static struct buf csv;

    buf_release(&csv);
    if (import(text, NULL))
        return err.msg;
    tables_to_csv(&csv, &list);
    return csv.data;
}

static const char *noted(void)
{
    return notes.data ? notes.data : "";
}

#define HEAD "name,num_embeddings,dim,pooling_factor,optimizer\n"

static void test_main(void)
{
    is_str(imported("torchrun --nproc_per_node 8 dlrm_main.py \\\n"
                    "  --num_embeddings_per_feature \"10,20,30\" \\\n"
                    "  --embedding_dim=16 --multi_hot_sizes 3,1,2 --adagrad "
                    "--batch_size 64\n"),
           HEAD "cat_0,10,16,3,adagrad\ncat_1,20,16,1,adagrad\n"
                "cat_2,30,16,2,adagrad\n",
           "dlrm_main.py");
    is_str(noted(), "# --batch_size 64: plan with --batch-per-gpu\n",
           "its batch is a rank's");
    is_str(imported("# --num_embeddings_per_feature 1,2\n"
                    "export SIZES='7,8' DIM=4 # --embedding_dim 8\n"
                    "dlrm_main.py --num_embeddings_per_feature ${SIZES} "
                    "--embedding_dim $DIM --batch_size $((64 / 8))"),
           HEAD "cat_0,7,4,1,sgd\ncat_1,8,4,1,sgd\n",
           "variables of a script, not its comments");
    is_str(noted(),
           "# --multi_hot_sizes is not given: 1 lookup a sample, the script's "
           "default\n"
           "# --adagrad is not given: sgd, the script's default\n"
           "# --batch_size 8: plan with --batch-per-gpu\n",
           "sums of a shell, and what is not given");
    ok(!import("dlrm_main.py --num_embeddings 5", NULL) &&
           list.n_tables == 26 && list.tables[25].num_embeddings == 5 &&
           list.tables[25].dim == 64,
       "26 tables of one size, and the script's default of columns");
}

/* Returns the notes of a command line from the one about the dense part on. */
static const char *dense_note(const char *text)
{
    const char *note;

    if (import(text, NULL))
        return err.msg;
    note = strstr(noted(), "dense part");
    return note ? note : "none";
}

static void test_dense(void)
{
#define MAIN "dlrm_main.py --num_embeddings_per_feature 10,20 "
#define S                                          \
    "dlrm_s_pytorch.py --arch-embedding-size=9-8 " \
    "--arch-sparse-feature-size=4 "
    static const char *const cases[][2] = {
        {MAIN, "none"},
        {MAIN "--dense_arch_layer_sizes 512,256,128 "
              "--over_arch_layer_sizes=1024,512,1",
         "dense part: plan with --dense "
         "'bottom:13-512-256-128;interaction:dot;top:1024-512-1;dtype:fp32'\n"},
        {MAIN "--interaction_type=dcn --dcn_num_layers=2 --dcn_low_rank_dim "
              "64 --allow_tf32",
         "dense part: plan with --dense "
         "'bottom:13-512-256-64;interaction:dcn:2x64;top:512-512-256-1;"
         "dtype:tf32'\n"},
        {MAIN "--interaction_type projection",
         "dense part is unknown, by --interaction_type projection\n"},
        {MAIN "--over_arch_layer_sizes $SIZES",
         "dense part is unknown, by --over_arch_layer_sizes $SIZES\n"},
        {MAIN "--over_arch_layer_sizes 512,x,1",
         "dense part cannot be read: top takes whole numbers from 1 to "
         "1000000, "
         "not 'x'\n"},
        {MAIN "--over_arch_layer_sizes 512,1\n" MAIN
              "--over_arch_layer_sizes 256,1",
         "dense part is unknown: the command lines give different ones\n"},
        {S "--arch-mlp-bot=13-16-4 --arch-mlp-top 8-1",
         "dense part: plan with --dense "
         "'bottom:13-16-4;interaction:dot;top:8-1;dtype:fp32'\n"},
        {S "--arch-interaction-op cat",
         "dense part: plan with --dense "
         "'bottom:4-3-2;interaction:cat;top:4-2-1;dtype:fp32'\n"},
        {S "--arch-interaction-itself",
         "dense part is unknown, by --arch-interaction-itself given\n"},
        {"--num_embeddings_per_feature 10,20\n--dense_arch_layer_sizes 64\n"
         "--embedding_dim 64\n",
         "dense part: plan with --dense "
         "'bottom:13-64;interaction:dot;top:512-512-256-1;dtype:fp32'\n"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        is_str(dense_note(cases[i][0]), cases[i][1], cases[i][0]);
        ok(list.n_tables == 2, "the tables are read");
    }
}

/* HugeCTR's benchmark, whose options list kinds of tables. */
static void test_hugectr(void)
{
#define KINDS                                                      \
    "--num_table 2,1 --vocabulary_size_per_table 1000,5000000000 " \
    "--nnz_per_table 1,20 "
    static const char *const refused[][2] = {
        {"train.py --vocabulary_size_per_table 5,6",
         "run.sh:1: --num_table has 26 values by default, but "
         "--vocabulary_size_per_table has 2"},
        {"train.py " KINDS "\\\n --ev_size_per_table 4,8,16",
         "run.sh:2: --ev_size_per_table has 3 values, but "
         "--vocabulary_size_per_table has 2"},
        {"train.py " KINDS "--combiner_per_table s",
         "run.sh:1: --combiner_per_table has 1 values, but "
         "--vocabulary_size_per_table has 2"},
        {"train.py " KINDS "--combiner_per_table s,mean",
         "run.sh:1: --combiner_per_table has 's,mean' instead of the letters s "
         "(sum) and c (concat), separated by commas"},
        {"train.py " KINDS "--optimizer rwsadagrad",
         "run.sh:1: --optimizer 'rwsadagrad' is not sgd, rowwise_adagrad or "
         "adagrad"},
        {"dlrm_main.py --embedding_dim 8 --num_table 3",
         "run.sh:1: --num_table is not an option of dlrm_main.py, as the other "
         "options are"},
        {"train.py --nnz_per_table 3 --batchsize 8",
         "run.sh:1: the number of rows is unknown: none of "
         "--num_embeddings_per_feature, --num_embeddings, "
         "--arch-embedding-size and --vocabulary_size_per_table is given"},
        {"for X in 1 2; do\nDATA=\"" KINDS "\"\ndone\n"
         "train.py --batchsize 8 $DATA",
         "run.sh:4: the number of rows is unknown: only a running shell knows "
         "'$DATA'; import the command line that 'bash -x' prints"},
        {"train.py " KINDS "\ntrain.py " KINDS "--batchsize 7",
         "run.sh:2: --batchsize is 7 here, but not given (8192 by default) in "
         "line 1; only one command line can be imported"},
        {"train.py --num_table 900000,900000 --nnz_per_table 1,1 "
         "--vocabulary_size_per_table 1,1",
         "run.sh:1: --num_table has more than 1000000 tables"}};

    is_str(imported("python3 train.py " KINDS "--ev_size_per_table 4,8 "
                    "--optimizer adagrad --combiner_per_table c,s "
                    "--bmlp_layer_sizes 32,8 --use_mixed_precision"),
           "name,num_embeddings,dim,pooling_factor,output,optimizer\n"
           "cat_0,1000,4,1,sequence,adagrad\ncat_1,1000,4,1,sequence,adagrad\n"
           "cat_2,5000000000,8,20,,adagrad\n",
           "HugeCTR's benchmark");
    is_str(noted(),
           "# --batchsize is not given: 8192, the script's default\n"
           "# dense part: plan with --dense 'bottom:13-32-8;interaction:dcn:"
           "3x512;top:1024-1024-512-256-1;dtype:fp16'\n",
           "its notes");
    is_str(imported("X=$1\ntrain.py " KINDS "--nnz_per_table $X --batchsize 64 "
                    "--enable_tf32_compute --dense_dim 7\n"),
           "name,num_embeddings,dim,pooling_factor,optimizer\n"
           "cat_0,1000,128,,sgd\ncat_1,1000,128,,sgd\n"
           "cat_2,5000000000,128,,sgd\n",
           "an argument decides its lookups");
    is_str(noted(),
           "# --optimizer is not given: sgd, the script's default\n"
           "# --ev_size_per_table is not given: 128, the script's default\n"
           "# dense part: plan with --dense 'bottom:7-512-256-128;interaction:"
           "dcn:3x512;top:1024-1024-512-256-1;dtype:tf32'\n"
           "# --batchsize 64: plan with --batch\n"
           "# --nnz_per_table $1 sets the number of lookups: plan with "
           "--pooling\n",
           "its notes");
    is_str(imported("other.py --batchsize 3 --embedding_dim 4\n"
                    "dlrm_main.py " KINDS "--adagrad\n"),
           HEAD "cat_0,1000,128,1,adagrad\ncat_1,1000,128,1,adagrad\n"
                "cat_2,5000000000,128,20,adagrad\n",
           "the dlrm_main.py beside it, not another program");
    is_str(noted(),
           "# --ev_size_per_table is not given: 128, the script's default\n"
           "# --batchsize is not given: 32, the script's default\n",
           "it has another batch");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        is_str(imported(refused[i][0]), refused[i][1], refused[i][0]);
}

static void test_s(void)
{
    is_str(
        imported("emb=\"4-3-200\"\nargs=\" --arch-sparse-feature-size=8\"\\\n"
                 "\" --arch-embedding-size=\"${emb}\\\n"
                 "\" --num-indices-per-lookup=100 \"\n"
                 "python dlrm_s_pytorch.py $args --mini-batch-size=2048"),
        HEAD "cat_0,4,8,2.125,sgd\ncat_1,3,8,1.6666666666666667,sgd\n"
             "cat_2,200,8,50.005,sgd\n",
        "dlrm_s_pytorch.py draws how many rows it looks up");
    is_str(noted(),
           "# --optimizer is not given: sgd, the script's default\n"
           "# --mini-batch-size 2048: plan with --batch\n",
           "its batch is that of all");
    is_str(imported("--arch-embedding-size 4-3 --num-indices-per-lookup 2 "
                    "--num-indices-per-lookup-fixed=1 --optimizer adagrad"),
           HEAD "cat_0,4,2,2,adagrad\ncat_1,3,2,2,adagrad\n",
           "unless it is to take all");
    is_str(imported("--arch-embedding-size 4 --optimizer rwsadagrad"),
           "name,num_embeddings,dim,pooling_factor\ncat_0,4,2,2.125\n",
           "10 by default");
}

/* The pooling factor is the mean of the loader's draws: max(1, r * most),
 * rounded. */
static void test_draws(void)
{
    double sum = 0;

    ok(!import("--arch-embedding-size 9 --num-indices-per-lookup 7", NULL),
       "7 of 9 rows");
    for (int i = 0; i < 700000; i++)
        sum += rint(fmax(1, (i + 0.5) / 700000 * 7));
    is_near(list.tables[0].pooling_factor, sum / 700000, 1e-5,
            "the mean of its draws");
}

static void test_names(void)
{
    static const char text[] = "--num_embeddings_per_feature 1,2";

    ok(!import(text, "user\nad\n") && !strcmp(list.tables[1].name, "ad"),
       "names by lines");
    is_str(import(text, "a") ? err.msg : "read",
           "option '--names' has fewer names than the 2 tables of "
           "'run.sh'",
           "too few");
    is_str(import(text, "a,b,c") ? err.msg : "read",
           "option '--names' has more names than the 2 tables of 'run.sh'",
           "too many");
    is_str(import(text, "a,a") ? err.msg : "read",
           "option '--names': 'a' is given twice", "one twice");
    is_str(import(text, "a,\x1b[m") ? err.msg : "read",
           "option '--names': '\\u001b[m' is not printable", "control");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"\n--embedding_dim 8",
         "run.sh:1: the number of rows is unknown: none of "
         "--num_embeddings_per_feature, --num_embeddings, "
         "--arch-embedding-size and --vocabulary_size_per_table is given"},
        {"\n\n--num_embeddings $ROWS",
         "run.sh:3: --num_embeddings has '$ROWS' instead of a whole number "
         "from 1 to 9223372036854775807; a value that only the shell knows "
         "cannot be read"},
        {"A=$B\nB=$A\n--num_embeddings $A",
         "run.sh:3: --num_embeddings has '$B' instead of a whole number from 1 "
         "to 9223372036854775807; a value that only the shell knows cannot be "
         "read"},
        {"--num_embeddings_per_feature 1,,2",
         "run.sh:1: --num_embeddings_per_feature has '' instead of a whole "
         "number from 1 to 9223372036854775807"},
        {"--num_embeddings 0", "run.sh:1: --num_embeddings has '0' instead of "
                               "a whole number from 1 to 9223372036854775807"},
        {"--num_embeddings 3\n--embedding_dim 2000000",
         "run.sh:2: --embedding_dim has '2000000' instead of a whole number "
         "from 1 to 1048576"},
        {"--num_embeddings_per_feature 1,2\n--multi_hot_sizes 1",
         "run.sh:2: --multi_hot_sizes has 1 sizes, but there are 2 tables"},
        {"--arch-embedding-size 1\n--optimizer adam",
         "run.sh:2: --optimizer 'adam' is not sgd, rwsadagrad or adagrad"},
        {"--num_embeddings 1\n--num_embeddings 2",
         "run.sh:2: --num_embeddings is 2 here, but 1 in line 1; only one "
         "command line can be imported"},
        {"dlrm_main.py --num_embeddings 1 --batch_size 2\n"
         "dlrm_main.py --num_embeddings 1",
         "run.sh:2: --batch_size is not given (32 by default) here, but 2 in "
         "line 1; only one command line can be imported"},
        {"dlrm_s_pytorch.py --mini-batch-size=2\n"
         "dlrm_s_pytorch.py --arch-embedding-size=5-6 --mini-batch-size=2",
         "run.sh:2: --arch-embedding-size is 5-6 here, but not given (4-3-2 by "
         "default) in line 1; only one command line can be imported"},
        {"if a; then\n dlrm_main.py --num_embeddings 1 --adagrad\nelse\n "
         "dlrm_main.py --num_embeddings 1\nfi",
         "run.sh:4: --adagrad is not given here, but given in line 2; only one "
         "command line can be imported"},
        {"if a; then R=1; else R=2; fi\ndlrm_main.py --num_embeddings $R",
         "run.sh:2: --num_embeddings has '$R' instead of a whole number from 1 "
         "to 9223372036854775807; a value that only the shell knows cannot be "
         "read"},
        {"dlrm_main.py --num_embeddings 1\ndlrm_s_pytorch.py "
         "--mini-batch-size=2",
         "run.sh:2: a command line of dlrm_s_pytorch.py, after one of "
         "dlrm_main.py in line 1; only one command line can be imported"},
        {"args = [\"--num_embeddings\", 5]\n",
         "run.sh:1: --num_embeddings is inside '[--num_embeddings,', where no "
         "shell takes it as an option"},
        {"dlrm_main.py --num_embeddings_per_feature 1,2 --multi_hot_sizes 1,2 "
         "--synthetic_multi_hot_criteo_path d",
         "run.sh:1: --multi_hot_sizes does not go with "
         "--synthetic_multi_hot_criteo_path in line 1"},
        {"dlrm_main.py --num_embeddings 1 --mini-batch-size 2",
         "run.sh:1: --mini-batch-size is not an option of dlrm_main.py, as the "
         "other options are"},
        {"dlrm_main.py --num_embeddings 'a",
         "run.sh:1: a quote that is not closed"},
        {"--arch-embedding-size 1 --data-generation=dataset",
         "run.sh:1: --data-generation makes tables of other sizes than the "
         "command line gives"},
        {"--arch-embedding-size 1 --md-flag",
         "run.sh:1: --md-flag makes tables of other sizes than the command "
         "line gives"},
        {"--arch-embedding-size 1 --qr-flag",
         "run.sh:1: --qr-flag makes tables of other sizes than the command "
         "line gives"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(import(cases[i].text, NULL) ? err.msg : "read", cases[i].want,
               "refused");
    ok(!import("--num_embeddings 1\n--num_embeddings=1\n--batch_size 2\n"
               "--batch_size 2",
               NULL),
       "an option may be given twice with one value");
    ok(!import("python prepare.py --batch_size 7\npython dlrm_main.py "
               "--num_embeddings 1 --batch_size 2\npython test.py "
               "--batch_size 3 --num_embeddings 4",
               NULL) &&
           list.tables[0].num_embeddings == 1,
       "other programs are passed over %s", err.msg);
}

/* Returns the rows of the only table; 0 if only a shell knows them, -1 if the
 * script is refused. */
static int64_t rows_of(const char *script)
{
    if (import(script, NULL))
        return strstr(err.msg, "only the shell knows") ? 0 : -1;
    return (int64_t)list.tables[0].num_embeddings;
}

static void test_shell(void)
{
    static const struct {
        const char *script;
        int64_t rows;
    } cases[] = {
        {"R=5\nrun $R", 5},
        {"R=5; R=6\nrun $R", 6},
        {"R=5\nR+=6\nrun $R", 56},
        {"R+=6\nrun $R", 0},
        {"R=${X:-7}\nrun $R", 7},
        {"X=8\nR=${X:-7}\nrun $R", 8},
        {"R=${X:-${Y:-9}}\nrun $R", 9},
        {"source env.sh\nR=${X:-7}\nrun $R", 0},
        {"run $((2 * 3 + (10 - 4) / 2))", 9},
        {"W=8 G=64\nrun $((G / W))", 8},
        {"run $((1 << 10))", 1024},
        {"run $((7 / 0))", 0},
        {"run $((X + 1))", 0},
        {"run $(nproc)", 0},
        {"run `nproc`", 0},
        {"run $1", 0},
        {"run $R", 0},
        {"if a; then R=1; fi\nrun $R", 0},
        {"R=1\nif a; then R=2; fi\nrun $R", 0},
        {"R=1\nif a; then R=2; R=1; fi\nrun $R", 1},
        {"if a; then R=1; elif b; then R=1; else R=1; fi\nrun $R", 1},
        {"if a; then R=1; run $R; fi", 1},
        {"case $1 in\na) R=1;;\n*) R=2;;\nesac\nrun $R", 0},
        {"case $1 in\n(a|b) R=2;;\n*) R=2\nesac\nrun $R", 2},
        {"R=2\ncase $1 in a) R=2;; esac\nrun $R", 2},
        {"R=1\nfor i in a b; do R=2; done\nrun $R", 0},
        {"R=1\nfor i in a b; do run $R; done\nR=2", 0},
        {"R=1\nfor i in a b; do run $R; done", 1},
        {"for R in 3; do run $R; done", 3},
        {"while read R; do run $R; done", 0},
        {"f() { R=2; }\nR=1\nf\nrun $R", 0},
        {"function f { run $R; }\nR=1\nf", 0},
        {"[ -n \"$1\" ] && R=2\nrun $R", 0},
        {"R=1\n(R=2)\nrun $R", 1},
        {"R=1\n{ R=2; }\nrun $R", 2},
        {"A=(--num_embeddings 4)\nA+=(--batch_size 2)\nrun 4 \"${A[@]}\"", 4},
        {"A='--num_embeddings 4'\nA=\"$A --batch_size 3\"\npython "
         "dlrm_main.py $A",
         4},
        {"bash -c 'python dlrm_main.py --num_embeddings 3'", 3},
        {"C='python dlrm_main.py --num_embeddings 3'\necho \"$C\"\neval $C", 3},
        {"cat <<EOF >job\npython dlrm_main.py --num_embeddings 3\nEOF", 3},
        {"echo \"it's\" # isn't\nrun 2 # --num_embeddings 3", 2},
        {"run \\\n 4", 4},
        {"run 3 < <(sort ids)", 3},
        {"run 3 > >(tee log) 2>&1", 3},
        {"run 3 <(sort ids", -1},
        {"case $1 in\n# one\n  # two\na) run 4;;\nesac", 4},
        {"case $1 in esac\nrun 4", 4},
        {"R=$(echo \\) 1)\nrun 4", 4},
        {"R=$(echo ')' \"(\")\nrun 4", 4},
        {"R=\"`echo \\`a`\"\nrun 4", 4},
        {"cat <<-E >job\n\tR=1\n\tE\nrun 4", 4},
        {"cat <<A <<B\nR=1\nA\nR=2\nB\nrun 4", 4},
        {"cat <<A\nR=1\nrun 4", 4},
        {"cat <<<\"R=1\"\nrun 4", 4},
        {"R=4 # comment\nexport R\nrun \"$R\" >log 2>&1 &", 4},
        {"R=5; unset R\nrun ${R:-6}", 6},
        {"R=5; read R\nrun $R", 0},
        {"R=5; ((R++))\nrun $R", 0},
        {"run {1..3}", 0},
        {"text it's\n```\n$ R=2\n$ run $R\nout (put)\n```\nthat's "
         "--num_embeddings",
         2},
        {"[0] it's a log\n+ run 3\nthat isn't", 3},
        {"#!/bin/sh\nif a; then\nrun 3\n", -1},
        {"#!/bin/sh\nfi\nrun 3\n", -1},
        {"R=1\nR=$R$R\nR=$R$R\nR=$R$R\nrun $R", 11111111},
    };
    char script[512], name[512];

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        const char *from = cases[i].script;
        char *out = script;

        while (*from)
            if (!strncmp(from, "run ", 4)) {
                out += sprintf(out, "dlrm_main.py --num_embeddings ");
                from += 4;
            } else {
                *out++ = *from++;
            }
        *out = '\0';
        for (out = script; (out = strchr(out, '\n'));)
            *out = '\x1f';
        snprintf(name, sizeof(name), "%s", script);
        for (out = script; (out = strchr(out, '\x1f'));)
            *out = '\n';
        for (out = name; (out = strpbrk(out, "\x1f#"));)
            *out = ' ';
        if (!is_i64(rows_of(script), cases[i].rows, name))
            printf("# %s\n", err.msg);
    }
}

/* Makes a script of n times `text`, then "run 4", then n times `close`; returns
 * the rows. */
static int64_t rows_after(const char *text, unsigned n, const char *close)
{
    struct buf script = {0};
    int64_t rows;

    buf_printf(&script, "#!/bin/sh\n");
    for (unsigned i = 0; i < n; i++)
        buf_printf(&script, "%s", text);
    buf_printf(&script, "dlrm_main.py --num_embeddings 4\n");
    for (unsigned i = 0; i < n; i++)
        buf_printf(&script, "%s", close);
    buf_add(&script, "", 1);
    rows = rows_of(script.data);
    buf_release(&script);
    return rows;
}

/* Limits of the reader: the most of each that is read, and one more. */
static void test_limits(void)
{
    static const struct {
        const char *text, *close;
        unsigned most; /* largest number that is read */
        const char *what;
    } cases[] = {
        {"if a; then\n", "fi\n", 64, "an if in another"},
        {"{\n", "}\n", 64, "a group in another"},
        {"for i in 1 2; do R=1; done\n", "", 256, "a loop behind another"},
        {"0123456789abcd\n", "", 69902, "MiB of script"},
    };
    char script[1 << 15];
    int n;

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        is_i64(rows_after(cases[i].text, cases[i].most, cases[i].close), 4,
               cases[i].what);
        is_i64(rows_after(cases[i].text, cases[i].most + 1, cases[i].close), -1,
               "and no more");
    }
    /* the value of the 1024th variable is known, that of the next one is not */
    for (int last = 1023; last < 1026; last++) {
        n = 0;
        for (int i = 1; i <= last; i++)
            n += snprintf(script + n, sizeof(script) - (size_t)n, "V%d=%d\n", i,
                          i);
        snprintf(script + n, sizeof(script) - (size_t)n,
                 "dlrm_main.py --num_embeddings $V%d\n", last);
        is_i64(rows_of(script), last <= 1024 ? last : 0, "variables");
    }
    /* nested defaults, at most sixteen deep */
    for (int depth = 14; depth < 19; depth++) {
        n = snprintf(script, sizeof(script), "dlrm_main.py --num_embeddings ");
        for (int i = 0; i < depth; i++)
            n += snprintf(script + n, sizeof(script) - (size_t)n, "${X%d:-", i);
        n += snprintf(script + n, sizeof(script) - (size_t)n, "4");
        for (int i = 0; i < depth; i++)
            n += snprintf(script + n, sizeof(script) - (size_t)n, "}");
        ok((rows_of(script) == 4) == (depth <= 16), "%d defaults: %s", depth,
           err.msg);
    }
}

/* Unknown values stay empty, and a comment names them. */
static void test_unknown(void)
{
    is_str(imported("dlrm_main.py --num_embeddings_per_feature 5,6 "
                    "--embedding_dim $D --synthetic_multi_hot_criteo_path $P "
                    "--adagrad --batch_size $B"),
           HEAD "cat_0,5,,,adagrad\ncat_1,6,,,adagrad\n", "empty cells");
    is_str(
        noted(),
        "# the value of --batch_size $B is unknown: plan with --batch-per-gpu\n"
        "# the value of --embedding_dim $D is unknown: plan with --dim\n"
        "# --synthetic_multi_hot_criteo_path $P sets the number of lookups: "
        "plan with --pooling\n",
        "named by comments");
    is_str(imported("dlrm_s_pytorch.py --mini-batch-size=2"),
           HEAD "cat_0,4,2,2.125,sgd\ncat_1,3,2,1.6666666666666667,sgd\n"
                "cat_2,2,2,1.25,sgd\n",
           "the script's default tables");
}

int main(void)
{
    test_main();
    test_dense();
    test_hugectr();
    test_s();
    test_draws();
    test_names();
    test_refused();
    test_shell();
    test_limits();
    test_unknown();
    buf_release(&notes);
    arena_release(&arena);
    return tap_done();
}
