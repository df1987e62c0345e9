/* SPDX-License-Identifier: MIT */
#include "io/tables_io.h"

#include "tests/tap.h"

/* The last reading. */
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

/* As CSV without the notes, or why not. */
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
    ok(!notes.len, "no note of a batch that only a shell knows");
    ok(!import("dlrm_main.py --num_embeddings 5", NULL) &&
           list.n_tables == 26 && list.tables[25].num_embeddings == 5 &&
           list.tables[25].dim == 64,
       "26 tables of one size, and the script's default of columns");
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
    is_str(noted(), "# --mini-batch-size 2048: plan with --batch\n",
           "its batch is that of all");
    is_str(imported("--arch-embedding-size 4-3 --num-indices-per-lookup 2 "
                    "--num-indices-per-lookup-fixed=1 --optimizer adagrad"),
           HEAD "cat_0,4,2,2,adagrad\ncat_1,3,2,2,adagrad\n",
           "unless it is to take all");
    is_str(imported("--arch-embedding-size 4 --optimizer rwsadagrad"),
           "name,num_embeddings,dim,pooling_factor\ncat_0,4,2,2.125\n",
           "10 by default");
}

/* The mean of what its loader draws: max(1, r * most), rounded. */
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
           "option '--names' has fewer names than the 2 tables of 'run.sh'",
           "too few");
    is_str(import(text, "a,b,c") ? err.msg : "read",
           "option '--names' has more names than the 2 tables of 'run.sh'",
           "too many");
    is_str(import(text, "a,a") ? err.msg : "read",
           "option '--names': 'a' is there twice", "one twice");
    is_str(import(text, "a,\x1b[m") ? err.msg : "read",
           "option '--names': '\\u001b[m' is not printable", "control");
}

static void test_refused(void)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"\n--embedding_dim 8",
         "run.sh:1: neither --num_embeddings_per_feature, --num_embeddings nor "
         "--arch-embedding-size says how many rows tables have"},
        {"\n\n--num_embeddings $ROWS",
         "run.sh:3: --num_embeddings has '$ROWS' where a whole number from 1 "
         "to 9223372036854775807 is wanted, not what only a shell knows"},
        {"A=$B\nB=$A\n--num_embeddings $A",
         "run.sh:3: --num_embeddings has '$B' where a whole number from 1 to "
         "9223372036854775807 is wanted, not what only a shell knows"},
        {"--num_embeddings_per_feature 1,,2",
         "run.sh:1: --num_embeddings_per_feature has '' where a whole number "
         "from 1 to 9223372036854775807 is wanted"},
        {"--num_embeddings 0",
         "run.sh:1: --num_embeddings has '0' where a whole number from 1 to "
         "9223372036854775807 is wanted"},
        {"--num_embeddings 3\n--embedding_dim 2000000",
         "run.sh:2: --embedding_dim has '2000000' where a whole number from 1 "
         "to 1048576 is wanted"},
        {"--num_embeddings_per_feature 1,2\n--multi_hot_sizes 1",
         "run.sh:2: --multi_hot_sizes has 1 sizes, but there are 2 tables"},
        {"--arch-embedding-size 1\n--optimizer adam",
         "run.sh:2: --optimizer 'adam' is none of sgd, rwsadagrad and adagrad"},
        {"--num_embeddings 1\n--num_embeddings 2",
         "run.sh:2: --num_embeddings is given again, as something else than in "
         "line 1; one command line is imported"},
        {"--arch-embedding-size 1 --data-generation=dataset",
         "run.sh:1: --data-generation makes tables of other sizes than the "
         "command line says"},
        {"--arch-embedding-size 1 --md-flag",
         "run.sh:1: --md-flag makes tables of other sizes than the command "
         "line says"},
        {"--arch-embedding-size 1 --qr-flag",
         "run.sh:1: --qr-flag makes tables of other sizes than the command "
         "line says"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        is_str(import(cases[i].text, NULL) ? err.msg : "read", cases[i].want,
               "refused");
    ok(!import("--num_embeddings 1\n--num_embeddings=1\n--batch_size 2\n"
               "--batch_size 3",
               NULL),
       "what is given twice alike, and other batches, are taken");
}

int main(void)
{
    test_main();
    test_s();
    test_draws();
    test_names();
    test_refused();
    buf_release(&notes);
    arena_release(&arena);
    return tap_done();
}
