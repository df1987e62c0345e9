/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CHOICES_H
#define NEUROSHARD_SEARCH_CHOICES_H

#include "base/parallel.h"
#include "core/oracle.h"
#include "search/tuning.h"

/*
 * All that a search can place, priced once. A unit is a table, or all tables of
 * a group. It may be cut in several ways, and a part is one sort of piece that
 * comes of it: the whole, a number of columns, a block of rows, a block of rows
 * of a range of columns, a replica. Pieces that are alike are one part,
 * whatever their number and wherever they stand.
 *
 * Column pieces may have any width that is a multiple of the unit's quantum:
 * four columns, or more where a table is so wide or a list so long that all
 * widths would be too many.
 */

struct unit {
    const uint32_t *tables; /* [n_tables], indices into the problem */
    uint32_t n_tables;
    int64_t device; /* pin, or -1 */
};

/* In the problem's canonical order: a permuted list is searched alike. */
struct units {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    struct unit *units;            /* [n_units] */
    uint32_t n_units;
    uint64_t *room_bytes;     /* [R]: memory less reserve */
    uint64_t most_room_bytes; /* the largest of them */
};

/* Everything lives in the arena. ERR_INPUT where a group is pinned to two
 * devices. */
int units_collect(struct units *units, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

#define NO_PART UINT32_MAX

struct part {
    uint32_t unit;
    enum shard_kind kind;
    uint32_t width;             /* columns; the first table's of a group */
    uint64_t row_begin, n_rows; /* likewise; a block's is that of the first */
    uint32_t block;             /* which of its cut's, a block's likewise */
    uint32_t col_begin;         /* of a block that stands, else 0 */
    bool stands;    /* a block that is so in the plan to be replaced:
                       rows and columns begin where they say */
    uint64_t bytes; /* by the problem's memory model */
};

/* Rows in equal blocks, the last one shorter, of each of n_ranges equal column
 * ranges: parts `block` and `last`. Or, where they stand, blocks of any rows
 * and columns, n_blocks of one range: parts `block` to `last`. */
struct cut {
    uint32_t n_blocks, n_ranges;
    uint32_t block, last; /* parts */
    bool fills_host;      /* its blocks are those of one host's devices */
    bool stands;
};

/* A way to cut a unit: what a start or a new cut chooses from. Whole; 2, 3 ...
 * even column pieces; a replica on each device; rows and grids. */
enum form_kind { FORM_WHOLE, FORM_COLUMNS, FORM_REPLICA, FORM_CUT };

struct form {
    enum form_kind kind;
    uint32_t n; /* pieces, or of FORM_CUT: index in parts->cuts */
    uint32_t n_pieces;
    uint64_t peak_bytes; /* of the largest */
    double bytes;        /* of all of them */
    double load_ms;      /* its pieces alone, added up */
    double peak_ms;      /* the dearest of them */
};

struct part_unit {
    const struct unit *unit;
    unsigned kinds; /* that it may be cut into */
    uint32_t quantum, n_quanta;
    bool is_even;     /* a sequence that stands in more than two columns: there
                         or in pieces of one width */
    uint32_t whole;   /* part, or NO_PART */
    uint32_t columns; /* part of one quantum; n quanta are `n - 1` further;
                         NO_PART where columns may not be cut */
    uint32_t replica; /* part, or NO_PART */
    uint32_t first_cut, n_cuts;
    struct form *forms; /* [n_forms]: search/forms.h */
    uint32_t n_forms;
};

struct homes;

struct parts {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    const struct homes *homes;     /* where all stands now, not owned; NULL
                                      unless a plan is to be replaced:
                                      search/movement.h */
    uint32_t n_devices;
    const uint64_t *room_bytes; /* [n_devices], of its units */
    uint64_t most_room_bytes;
    const struct tuning *tuning; /* not owned; the default unless the caller
                                    sets another */
    struct part_unit *of;        /* [n_units] */
    uint32_t n_units;
    struct cut *cuts;
    uint32_t n_cuts;
    struct part *parts; /* [n_parts] */
    uint32_t n_parts;
    double *vectors;  /* [n_parts][oracle->width]; NULL where not priced */
    double *alone_ms; /* [n_parts]: a device that holds it alone: the sum of its
                         terms, or where there are none its compute; 0
                         where not priced */
};

/* Everything lives in the arena. ERR_USAGE where a table may be placed in no
 * way that the oracle can price, ERR_INPUT where the oracle gives no finite
 * cost, or as units_collect. Where a plan is to be replaced, and `homes` is not
 * NULL but outlives the parts, with all that its tables need to stay: widths as
 * fine as their pieces have and, unless the oracle wants equal blocks, their
 * row blocks, of which the last one grows with its table. */
int parts_init(struct parts *parts, const struct problem *problem,
               const struct oracle *oracle, const struct homes *homes,
               struct pool *pool, struct arena *arena,
               struct err *err) MUST_CHECK;

/* The same for a question of memory only: the oracle embeds nothing, and may be
 * of another problem. */
int parts_init_unpriced(struct parts *parts, const struct problem *problem,
                        const struct oracle *oracle, struct arena *arena,
                        struct err *err) MUST_CHECK;

/* Of a device that holds this alone: the sum of its terms, or where there are
 * none its compute. */
double parts_alone_ms(const struct oracle *oracle, const double *vector);

/* The part of `width` columns, full height: the whole where that is all of
 * them; NO_PART where there is none. */
uint32_t parts_of_width(const struct parts *parts, uint32_t unit,
                        uint32_t width);
/* Likewise of n quanta, 1 to n_quanta, of a unit that columns may be cut of. */
static inline uint32_t parts_of_quanta(const struct parts *parts, uint32_t unit,
                                       uint32_t n)
{
    const struct part_unit *of = &parts->of[unit];

    return n == of->n_quanta ? of->whole : of->columns + n - 1;
}
/* The part that is as wide as two of one unit; NO_PART where there is none. */
static inline uint32_t parts_joined(const struct parts *parts, uint32_t a,
                                    uint32_t b)
{
    return parts_of_width(parts, parts->parts[a].unit,
                          parts->parts[a].width + parts->parts[b].width);
}
/* Whether it is all rows of a unit that columns may be cut of; and how many
 * quanta. */
static inline bool parts_is_columns(const struct parts *parts, uint32_t part)
{
    const struct part *p = &parts->parts[part];

    return (p->kind & (SHARD_TABLE | SHARD_COLUMN)) &&
           parts->of[p->unit].columns != NO_PART;
}
static inline uint32_t parts_quanta(const struct parts *parts, uint32_t part)
{
    return parts->parts[part].width /
           parts->of[parts->parts[part].unit].quantum;
}
/* The part of block b of one of the cut's ranges. */
static inline uint32_t parts_of_block(const struct cut *cut, uint32_t b)
{
    if (cut->stands)
        return cut->block + b;
    return b + 1 == cut->n_blocks ? cut->last : cut->block;
}
/* The cut that a row block is of; NULL for other parts. */
const struct cut *parts_cut_of(const struct parts *parts, uint32_t part);
/* Rows and columns of a piece of such a part: block and range as in struct
 * piece. */
void parts_place_block(struct shard *shard, const struct part *part,
                       uint32_t range, uint32_t block);
/* Whether a search may put such a piece on another device by itself: not a
 * replica, nor a piece of a pinned unit, nor a row block where the oracle asks
 * for whole hosts. */
bool parts_can_move(const struct parts *parts, uint32_t part);

#endif
