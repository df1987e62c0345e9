/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_DLRM_JOBS_H
#define NEUROSHARD_IO_DLRM_JOBS_H

#include "base/mem.h"

/* Finds dlrm command lines in a script and reads those options that define the
 * tables or the dense part. All command lines of a file must describe the same
 * tables. */

/* Options of the two dlrm scripts. An id with the prefix S_ is an option of
 * dlrm_s_pytorch.py; all other ids are options of dlrm_main.py. Options of the
 * dense part come last in each group. Columns: id, name, whether a value
 * follows the option, default value in the script. */
#define OPTIONS(OPTION)                                                \
    OPTION(ROWS_LIST, "--num_embeddings_per_feature", true, NULL)      \
    OPTION(ROWS, "--num_embeddings", true, "100000")                   \
    OPTION(DIM, "--embedding_dim", true, "64")                         \
    OPTION(HOT_LIST, "--multi_hot_sizes", true, NULL)                  \
    OPTION(DATA_ONE_HOT, "--in_memory_binary_criteo_path", true, NULL) \
    OPTION(DATA, "--synthetic_multi_hot_criteo_path", true, NULL)      \
    OPTION(ADAGRAD, "--adagrad", false, NULL)                          \
    OPTION(BATCH, "--batch_size", true, "32")                          \
    OPTION(BOTTOM, "--dense_arch_layer_sizes", true, "512,256,64")     \
    OPTION(TOP, "--over_arch_layer_sizes", true, "512,512,256,1")      \
    OPTION(INTERACTION, "--interaction_type", true, "original")        \
    OPTION(CROSS_LAYERS, "--dcn_num_layers", true, "3")                \
    OPTION(CROSS_RANK, "--dcn_low_rank_dim", true, "512")              \
    OPTION(TF32, "--allow_tf32", false, NULL)                          \
    OPTION(S_ROWS_LIST, "--arch-embedding-size", true, "4-3-2")        \
    OPTION(S_DIM, "--arch-sparse-feature-size", true, "2")             \
    OPTION(S_LOOKUPS, "--num-indices-per-lookup", true, "10")          \
    OPTION(S_FIXED, "--num-indices-per-lookup-fixed", true, NULL)      \
    OPTION(S_OPTIMIZER, "--optimizer", true, "sgd")                    \
    OPTION(S_GENERATION, "--data-generation", true, "random")          \
    OPTION(S_MIXED_DIMS, "--md-flag", false, NULL)                     \
    OPTION(S_QUOTIENTS, "--qr-flag", false, NULL)                      \
    OPTION(S_BATCH, "--mini-batch-size", true, "1")                    \
    OPTION(S_BOTTOM, "--arch-mlp-bot", true, "4-3-2")                  \
    OPTION(S_TOP, "--arch-mlp-top", true, "4-2-1")                     \
    OPTION(S_INTERACTION, "--arch-interaction-op", true, "dot")        \
    OPTION(S_ITSELF, "--arch-interaction-itself", false, NULL)

#define OPTION_ID(id, name, has_value, otherwise) id,
enum { OPTIONS(OPTION_ID) N_OPTIONS, FIRST_S = S_ROWS_LIST };
/* True for options of the dense part, which do not concern the tables. */
static inline bool dlrm_is_of_dense(int option)
{
    return (option >= BOTTOM && option < FIRST_S) || option >= S_BOTTOM;
}
struct dlrm_option {
    const char *name;
    bool has_value;
    const char *otherwise; /* default value in the script; NULL: no default */
};
extern const struct dlrm_option dlrm_options[N_OPTIONS];
extern const char *const dlrm_scripts[2];

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

/* True if the job's command line calls dlrm_s_pytorch.py. */
bool dlrm_is_s(const struct dlrm_job *job);
/* Describes an option's value for a message: "3", "not given" or "not given (32
 * by default)". */
const char *dlrm_say_value(const struct dlrm_reader *reader, int option,
                           const char *value) NEVER_NULL;
/* Reads the command lines of a script; fills reader->job and n_jobs. If two
 * command lines disagree, ERR_INPUT names the line of each. */
int dlrm_read_script(struct dlrm_reader *reader, const char *text,
                     struct buf *notes, struct err *err) MUST_CHECK;

#endif
