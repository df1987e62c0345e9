/* SPDX-License-Identifier: MIT */
#include "io/tables_header.h"

#include "base/text.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#define MAX_COLUMNS_LISTED 40
/* Maximum length of a foreign name, in bytes. Longer ones mean no column. */
#define MAX_GUESSED 79

/* --- names that other programs give the columns --- */

/* Words of foreign names, and the words that replace them. An empty
 * replacement drops the word. */
static const struct {
    const char *words, *word;
} synonyms[] = {
    {"emb|embed|embeds|embeddings", "embedding"},
    {"vec|vectors", "vector"},
    {"dims|dimension|dimensions|dimensionality", "dim"},
    {"sz|sizes", "size"},
    {"len|lens|lengths", "length"},
    {"mean|average|ave", "avg"},
    {"nr|no|n|number|count|counts|cnt", "num"},
    {"rows", "row"},
    {"ids|indices|keys|values", "id"},
    {"lookups|look", "lookup"},
    {"ups|up|of|per|a|an|the|in|for|each", ""},
    {"samples|example|examples|request|requests", "sample"},
    {"features|feat|feats", "feature"},
    {"tables|tbl", "table"},
    {"vocabulary", "vocab"},
    {"buckets", "bucket"},
    {"distinct", "unique"},
    {"multihot|hots", "hot"},
    {"seq", "sequence"},
    {"entries", "entry"},
    {"categories", "category"},
    {"optimiser", "optimizer"},
    {"parameter|variable|param|slot|field", "table"},
};

/* Names of the columns after words were replaced. */
static const struct {
    size_t column;
    const char *names;
} guesses[] = {
    {COLUMN_NAME, "name|table|table name|embedding name|embedding "
                  "table|embedding table name|"
                  "feature|feature name|sparse feature|sparse feature name|"
                  "categorical feature|column name|fqn|table fqn"},
    {COLUMN_ROWS,
     "row|num row|row num|table row|embedding row|num embedding row|num "
     "embedding|"
     "cardinality|feature cardinality|id cardinality|table cardinality|"
     "vocab|vocab size|max vocab size|feature vocab size|"
     "hash size|hash bucket size|bucket|num bucket|hash bucket|"
     "num hash bucket|bucket size|unique id|num unique id|num unique|unique|"
     "unique num|num category|num entry|input dim"},
    {COLUMN_DIM,
     "dim|num dim|embedding dim|embedding size|size embedding|embedding "
     "width|embedding length|width|"
     "vector dim|vector size|vector length|vector width|"
     "embedding vector size|embedding vector dim|embedding vector length|"
     "ev size|ev dim|output dim|latent dim|latent size|table dim|d|"
     "embedding feature dim"},
    {COLUMN_POOLING,
     "pooling factor|avg pooling factor|pooling|avg pooling|"
     "avg id|avg id sample|id sample|num id sample|avg num id|"
     "avg num id sample|avg length|length avg|avg sequence length|"
     "hotness|avg hotness|hot|multi hot|multi hot size|hot size|"
     "lookup|lookup sample|num lookup|num lookup sample|avg lookup|"
     "avg lookup sample|avg num lookup|avg num lookup sample|"
     "bag size|avg bag size|bag length|avg bag length|"
     "nnz|avg nnz|nnz sample|avg nnz sample|id lookup|num id lookup|"
     "avg id lookup"},
    {COLUMN_ZIPF, "zipf|zipf alpha|zipf exponent|zipf s"},
    {COLUMN_PRECISION, "precision|dtype|data type|weight precision|"
                       "weight dtype|embedding dtype"},
    {COLUMN_OPTIMIZER, "optimizer|sparse optimizer|embedding optimizer"},
};

static const char *replaced(const char *word)
{
    for (size_t i = 0; i < sizeof(synonyms) / sizeof(*synonyms); i++)
        if (text_which(synonyms[i].words, word) >= 0)
            return synonyms[i].word;
    return word;
}

/* Reads the next word of a name in lower case: letters and digits, up to an
 * upper-case letter after a lower-case one. '#' is the word "num". Returns the
 * position behind the word, or NULL if there is no further word. */
static const char *next_word(char word[MAX_GUESSED + 1], const char *pos)
{
    size_t n = 0;

    pos += strspn(pos, " \t_-./()");
    if (*pos == '#') {
        memcpy(word, "num", sizeof("num"));
        return pos + 1;
    }
    for (; isalnum((unsigned char)*pos); pos++) {
        if (n && isupper((unsigned char)*pos) &&
            islower((unsigned char)pos[-1]))
            break;
        word[n++] = (char)tolower((unsigned char)*pos);
    }
    word[n] = '\0';
    return n ? pos : NULL;
}

size_t tables_header_guess(const char *field)
{
    char name[MAX_GUESSED + 1] = "", word[MAX_GUESSED + 1];
    size_t len = 0;

    if (strlen(field) > MAX_GUESSED)
        return N_TABLE_COLUMNS;
    for (const char *pos = field; (pos = next_word(word, pos)); field = pos) {
        const char *put = replaced(word);

        if (!*put)
            continue;
        if (len + strlen(put) + 2 > sizeof(name))
            return N_TABLE_COLUMNS;
        len += (size_t)snprintf(name + len, sizeof(name) - len, "%s%s",
                                len ? " " : "", put);
    }
    if (field[strspn(field, " \t_-./()")])
        return N_TABLE_COLUMNS; /* other characters do not occur in names */
    for (size_t i = 0; i < sizeof(guesses) / sizeof(*guesses); i++)
        if (text_which(guesses[i].names, name) >= 0)
            return guesses[i].column;
    return N_TABLE_COLUMNS;
}

/* --- messages --- */

/* Guesses the field of the header that the user meant for a column. A field is
 * a candidate if it resembles the name that the options give. It is also a
 * candidate if an import takes it for the column, or if it resembles one of the
 * column's names, or ends in one. Returns NULL if no field is a candidate. */
static const char *nearest_field(const struct tables_header *header,
                                 size_t column)
{
    const char *const *fields = header->csv->fields;
    char *rest = arena_strdup(header->arena, table_columns[column].key);
    const char *asked = header->asked[column], *nearest;

    nearest = asked ? text_nearest(fields, asked) : NULL;
    for (size_t i = 0; !nearest && fields[i]; i++)
        if (tables_header_guess(fields[i]) == column)
            nearest = fields[i];
    for (char *name; !nearest && (name = strtok_r(rest, "|", &rest));) {
        nearest = text_nearest(fields, name);
        for (size_t i = 0; !nearest && fields[i]; i++)
            if (strlen(fields[i]) > strlen(name) &&
                !strcmp(fields[i] + strlen(fields[i]) - strlen(name), name))
                nearest = fields[i];
    }
    return nearest;
}

static bool is_used(const struct tables_header *header, const char *field)
{
    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (header->names[c] && !strcmp(header->names[c], field))
            return true;
    return false;
}

static const char *column_name(const struct tables_header *header,
                               size_t column)
{
    const char *key = table_columns[column].key;

    return arena_strndup(header->arena, key, strcspn(key, "|"));
}

/* Returns "column=field", with the field that resembles the column, or with
 * NAME if none of the unused fields does. A field with brackets may have a
 * unit. */
static const char *say_pair(const struct tables_header *header, size_t column)
{
    const char *nearest = nearest_field(header, column);

    if (!nearest || is_used(header, nearest) || strchr(nearest, '('))
        nearest = "NAME";
    return text_say(header->arena, "%s=%s", column_name(header, column),
                    tables_shown(nearest, header->arena));
}

/* True if neither a field nor an option gives a required column. */
static bool is_missing(const struct tables_header *header, size_t column)
{
    const struct tables_options *options = header->options;

    if (header->names[column] || column > COLUMN_POOLING)
        return false;
    if (column == COLUMN_DIM)
        return !options->dim;
    return column != COLUMN_POOLING ||
           (!(options->pooling > 0) &&
            (options->columns || !options->keeps_unknown));
}

/* An import lists all missing columns, and the words to add to its command
 * line. */
static int refuse_import(const struct tables_header *header, struct err *err)
{
    const char *names[COLUMN_POOLING + 2] = {NULL}, *pairs = "";
    const struct csv *csv = header->csv;
    size_t n = 0;

    for (size_t c = COLUMN_NAME; c <= COLUMN_POOLING; c++)
        if (is_missing(header, c)) {
            names[n++] = column_name(header, c);
            pairs = text_say(header->arena, "%s%s%s", pairs, n > 1 ? "," : "",
                             say_pair(header, c));
        }
    return err_input(
        err, "the header has no column for %s; its columns are %s%s; add %s%s",
        text_list(names, " and ", header->arena),
        tables_listed(csv->fields, csv->n_fields, MAX_COLUMNS_LISTED,
                      header->arena),
        csv->n_fields == 1 ? " only; fields are separated by commas" : "",
        text_say(header->arena, "--columns %s",
                 text_shell_word(pairs, header->arena)),
        names[n - 1][0] != 'p'
            ? ""
            : " (or --pooling P if all tables have the same number of lookups "
              "per sample)");
}

/* Other commands name the first missing column, and the field that an import
 * would take for it. */
static int refuse_list(const struct tables_header *header, size_t column,
                       struct err *err)
{
    static const char *const needed[] = {
        [COLUMN_NAME] = "'name'",
        [COLUMN_ROWS] = "'num_embeddings' (nor 'rows' nor 'hash_size')",
        [COLUMN_DIM] = ("'dim' (nor 'embedding_dim'), and no option '--dim D' "
                        "sets the width"),
        [COLUMN_POOLING] = ("'pooling_factor' (nor 'hotness' nor 'multi_hot'), "
                            "and no option '--pooling P' sets the lookups per "
                            "sample"),
    };
    const bool is_single = header->csv->n_fields == 1;
    const char *nearest = nearest_field(header, column);

    return err_input(
        err, "the header has no column %s%s%s", needed[column],
        column == COLUMN_NAME && is_single
            ? ", only one column; fields are separated by commas"
            : "",
        !nearest || is_single
            ? ""
            : text_say(header->arena,
                       "; 'tables import' with '--columns %s' takes it",
                       say_pair(header, column)));
}

/* Checks that the header has all required columns, all columns that the option
 * asks for, and all bins or none. */
static int check_columns(const struct tables_header *header, struct err *err)
{
    const char *const *names = header->names;

    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (header->asked[c] && !names[c])
            return err_input(
                err,
                "the header has no column '%s', which '--columns' asks for%s",
                tables_shown(header->asked[c], header->arena),
                c >= COLUMN_BIN_0
                    ? ""
                    : text_say(header->arena,
                               "; its columns are %s; did you mean "
                               "'--columns %s'",
                               tables_listed(header->csv->fields,
                                             header->csv->n_fields,
                                             MAX_COLUMNS_LISTED, header->arena),
                               say_pair(header, c)));
    for (size_t c = COLUMN_NAME; c <= COLUMN_POOLING; c++)
        if (is_missing(header, c))
            return header->options->columns ? refuse_import(header, err)
                                            : refuse_list(header, c, err);
    for (unsigned k = REUSE_BINS; --k;)
        if (!names[COLUMN_BIN_0] != !names[COLUMN_BIN_0 + k])
            return err_input(
                err, "the header has no column 'bin_%u', but has other bins",
                names[COLUMN_BIN_0] ? k : 0);
    return 0;
}

/* Says which foreign names were taken for which columns: a warning, and a
 * comment of the list. */
static void say_guesses(const struct tables_header *header)
{
    const struct tables_options *options = header->options;
    const char *list = "";

    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (header->is_guessed[c])
            list = text_say(header->arena, "%s%s'%s' for %s", list,
                            *list ? ", " : "",
                            tables_shown(header->names[c], header->arena),
                            column_name(header, c));
    if (!*list)
        return;
    if (options->warn)
        options->warn(
            options->warn_ctx,
            text_say(header->arena, "%s:%zu: took %s; '--columns' corrects it",
                     header->csv->source, header->csv->record_line, list));
    if (options->notes)
        buf_printf(options->notes, "# columns taken: %s\n", list);
}

/* --- reading --- */

int tables_header_asked(struct tables_header *header, struct err *err)
{
    const char *asked = header->options->columns;
    char *rest = arena_strdup(header->arena, asked ? asked : "");

    for (char *pair; (pair = strtok_r(rest, ",", &rest));) {
        char *field = strchr(pair, '=');
        size_t column = N_TABLE_COLUMNS;

        if (field) {
            *field++ = '\0';
            column = table_column(pair);
        }
        if (column == N_TABLE_COLUMNS || !*field || header->asked[column])
            return err_usage(err,
                             "option '--columns' takes COLUMN=NAME,... with "
                             "each COLUMN of neuroshard-tables(5) once, as in "
                             "name=table_name,rows=num_rows; '%s' is %s",
                             tables_shown(pair, header->arena),
                             column == N_TABLE_COLUMNS ? "no such column"
                             : *field                  ? "given twice"
                                                       : "without a name");
        header->asked[column] = field;
    }
    return 0;
}

/* Returns the column of a field by rules 1 and 2, or N_TABLE_COLUMNS. */
static size_t exact_column(const struct tables_header *header,
                           const char *field)
{
    size_t column = table_column(field);

    for (size_t c = 0; c < N_TABLE_COLUMNS; c++)
        if (header->asked[c] && !strcmp(header->asked[c], field))
            return c;
    return column < N_TABLE_COLUMNS && header->asked[column] ? N_TABLE_COLUMNS
                                                             : column;
}

static int place_column(struct tables_header *header, size_t field,
                        size_t column, bool is_guessed, struct err *err)
{
    const char *name = header->csv->fields[field];
    const char *other = header->names[column];

    if (other && !strcmp(other, name))
        return err_input(err, "the header has column '%s' twice", name);
    if (other)
        return err_input(
            err, "the header's columns '%s' and '%s' mean the same%s", other,
            name,
            is_guessed ? text_say(header->arena, "; choose one with %s",
                                  text_say(header->arena, "'--columns %s=NAME'",
                                           column_name(header, column)))
                       : "");
    header->field_of[column] = field;
    header->names[column] = name;
    header->is_guessed[column] = is_guessed;
    return 0;
}

/* Places the fields whose column rule 3 finds. A column that rule 1 or 2 has
 * found is not looked for again. */
static int place_guesses(struct tables_header *header, struct err *err)
{
    for (size_t i = 0; i < header->csv->n_fields; i++) {
        const char *field = header->csv->fields[i];
        const size_t column = exact_column(header, field) < N_TABLE_COLUMNS ||
                                      !header->options->columns
                                  ? N_TABLE_COLUMNS
                                  : tables_header_guess(field);
        const bool is_free =
            column < N_TABLE_COLUMNS && !header->asked[column] &&
            (!header->names[column] || header->is_guessed[column]);

        if (is_free && place_column(header, i, column, true, err))
            return -1;
        if (!is_free && exact_column(header, field) == N_TABLE_COLUMNS)
            json_object_set_new(header->unknown, field, json_true());
    }
    return 0;
}

int tables_header_read(struct tables_header *header, const struct csv *csv,
                       struct err *err)
{
    header->csv = csv;
    for (size_t i = 0; i < csv->n_fields; i++) {
        size_t column = exact_column(header, csv->fields[i]);

        if (column < N_TABLE_COLUMNS &&
            place_column(header, i, column, false, err))
            return -1;
    }
    if (place_guesses(header, err) || check_columns(header, err))
        return -1;
    say_guesses(header);
    return 0;
}
