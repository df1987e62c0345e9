/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_DLRM_JOBS_H
#define NEUROSHARD_IO_DLRM_JOBS_H

#include "base/mem.h"

/* Finds dlrm command lines in a script and reads those options that define the
 * tables or the dense part. All command lines of a file must describe the same
 * tables. */

enum dlrm_script {
    DLRM_MAIN,    /* dlrm_main.py of TorchRec's and MLPerf's DLRM */
    DLRM_S,       /* dlrm_s_pytorch.py of the first DLRM */
    DLRM_HUGECTR, /* train.py and dlrm_main.py of HugeCTR's benchmark of its
                     embedding collection */
    N_DLRM_SCRIPTS
};
#define IN_MAIN 1u
#define IN_S 2u
#define IN_HUGECTR 4u

/* Options of the scripts. Columns: id, name, whether a value follows the
 * option, scripts that have it, whether it concerns the dense part instead of
 * the tables, default value in the scripts. */
#define OPTIONS(OPTION)                                                        \
    OPTION(ROWS_LIST, "--num_embeddings_per_feature", true, IN_MAIN, false,    \
           NULL)                                                               \
    OPTION(ROWS, "--num_embeddings", true, IN_MAIN, false, "100000")           \
    OPTION(DIM, "--embedding_dim", true, IN_MAIN, false, "64")                 \
    OPTION(HOT_LIST, "--multi_hot_sizes", true, IN_MAIN, false, NULL)          \
    OPTION(DATA_ONE_HOT, "--in_memory_binary_criteo_path", true, IN_MAIN,      \
           false, NULL)                                                        \
    OPTION(DATA, "--synthetic_multi_hot_criteo_path", true, IN_MAIN, false,    \
           NULL)                                                               \
    OPTION(ADAGRAD, "--adagrad", false, IN_MAIN | IN_HUGECTR, false, NULL)     \
    OPTION(BATCH, "--batch_size", true, IN_MAIN, false, "32")                  \
    OPTION(BOTTOM, "--dense_arch_layer_sizes", true, IN_MAIN, true,            \
           "512,256,64")                                                       \
    OPTION(TOP, "--over_arch_layer_sizes", true, IN_MAIN, true,                \
           "512,512,256,1")                                                    \
    OPTION(INTERACTION, "--interaction_type", true, IN_MAIN, true, "original") \
    OPTION(CROSS_LAYERS, "--dcn_num_layers", true, IN_MAIN | IN_HUGECTR, true, \
           "3")                                                                \
    OPTION(CROSS_RANK, "--dcn_low_rank_dim", true, IN_MAIN | IN_HUGECTR, true, \
           "512")                                                              \
    OPTION(TF32, "--allow_tf32", false, IN_MAIN, true, NULL)                   \
    OPTION(S_ROWS_LIST, "--arch-embedding-size", true, IN_S, false, "4-3-2")   \
    OPTION(S_DIM, "--arch-sparse-feature-size", true, IN_S, false, "2")        \
    OPTION(S_LOOKUPS, "--num-indices-per-lookup", true, IN_S, false, "10")     \
    OPTION(S_FIXED, "--num-indices-per-lookup-fixed", true, IN_S, false, NULL) \
    OPTION(OPTIMIZER, "--optimizer", true, IN_S | IN_HUGECTR, false, "sgd")    \
    OPTION(S_GENERATION, "--data-generation", true, IN_S, false, "random")     \
    OPTION(S_MIXED_DIMS, "--md-flag", false, IN_S, false, NULL)                \
    OPTION(S_QUOTIENTS, "--qr-flag", false, IN_S, false, NULL)                 \
    OPTION(S_BATCH, "--mini-batch-size", true, IN_S, false, "1")               \
    OPTION(S_BOTTOM, "--arch-mlp-bot", true, IN_S, true, "4-3-2")              \
    OPTION(S_TOP, "--arch-mlp-top", true, IN_S, true, "4-2-1")                 \
    OPTION(S_INTERACTION, "--arch-interaction-op", true, IN_S, true, "dot")    \
    OPTION(S_ITSELF, "--arch-interaction-itself", false, IN_S, true, NULL)     \
    OPTION(H_COUNTS, "--num_table", true, IN_HUGECTR, false,                   \
           "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1")              \
    OPTION(H_ROWS, "--vocabulary_size_per_table", true, IN_HUGECTR, false,     \
           "40000000,39060,17295,7424,20265,3,7122,1543,63,40000000,"          \
           "3067956,405282,10,2209,11938,155,4,976,14,40000000,40000000,"      \
           "40000000,590152,12973,108,36")                                     \
    OPTION(H_LOOKUPS, "--nnz_per_table", true, IN_HUGECTR, false,              \
           "3,2,1,2,6,1,1,1,1,7,3,8,1,6,9,5,1,1,1,12,100,27,10,3,1,1")         \
    OPTION(H_DIMS, "--ev_size_per_table", true, IN_HUGECTR, false, "128")      \
    OPTION(H_COMBINERS, "--combiner_per_table", true, IN_HUGECTR, false, NULL) \
    OPTION(H_BATCH, "--batchsize", true, IN_HUGECTR, false, "8192")            \
    OPTION(H_FEATURES, "--dense_dim", true, IN_HUGECTR, true, "13")            \
    OPTION(H_BOTTOM, "--bmlp_layer_sizes", true, IN_HUGECTR, true,             \
           "512,256,128")                                                      \
    OPTION(H_TOP, "--tmlp_layer_sizes", true, IN_HUGECTR, true,                \
           "1024,1024,512,256,1")                                              \
    OPTION(H_TF32, "--enable_tf32_compute", false, IN_HUGECTR, true, NULL)     \
    OPTION(H_MIXED, "--use_mixed_precision", false, IN_HUGECTR, true, NULL)

#define OPTION_ID(id, name, has_value, scripts, is_dense, otherwise) id,
enum { OPTIONS(OPTION_ID) N_OPTIONS };
struct dlrm_option {
    const char *name;
    bool has_value;
    unsigned scripts;      /* bit 1 << script: that script has the option */
    bool is_dense;         /* true: it concerns the dense part */
    const char *otherwise; /* default value in the script; NULL: no default */
};
extern const struct dlrm_option dlrm_options[N_OPTIONS];
/* Names of the scripts for messages. The first two are those of files. */
extern const char *const dlrm_scripts[N_DLRM_SCRIPTS];

/* Options of one dlrm command line in a script. */
struct dlrm_job {
    const char *values[N_OPTIONS]; /* NULL if the option is not given */
    size_t lines[N_OPTIONS];
    /* a word whose value only a running shell knows, or NULL */
    const char *extra;
    size_t first_line, last_line, extra_line;
    bool names[2]; /* [i] true: the command line calls dlrm_scripts[i] */
};

struct dlrm_reader {
    const char *source;
    struct arena *arena;
    /* first command line of the file; all others agree with it */
    struct dlrm_job job;
    struct dlrm_job last;
    size_t n_jobs;
    /* true: two command lines give an option of the dense part different
     * values */
    bool differs_in_dense;
};

/* Returns the script that a command line calls. Without its name, it is the
 * first one that has the options. */
enum dlrm_script dlrm_script_of(const struct dlrm_job *job);
/* True if a script has an option of the tables, or of the dense part. */
bool dlrm_has(enum dlrm_script script, int option, bool is_dense);
/* Describes an option's value for a message: "3", "not given" or "not given (32
 * by default)". */
const char *dlrm_say_value(const struct dlrm_reader *reader, int option,
                           const char *value) NEVER_NULL;
/* Reads the command lines of a script; fills reader->job and n_jobs. If two
 * command lines disagree, ERR_INPUT names the line of each. */
int dlrm_read_script(struct dlrm_reader *reader, const char *text,
                     struct buf *notes, struct err *err) MUST_CHECK;

#endif
