/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_SEARCH_CHOICES_H
#define NEUROSHARD_SEARCH_CHOICES_H

#include "base/parallel.h"
#include "core/oracle.h"
#include "search/tuning.h"

/*
 * All that a search can place, priced once. A unit may be cut in several ways,
 * its forms, and a part is one sort of piece that comes of them: the whole, a
 * number of columns, a block of rows, a block of rows of a range of columns, a
 * replica. Pieces that are alike are one part, whatever their number and
 * wherever they stand.
 *
 * Column pieces may have any width that is a multiple of the unit's quantum:
 * four columns, or more where a table is so wide or a list so long that all
 * widths would be too many.
 */

#define NO_PART UINT32_MAX

struct part {
    uint32_t unit;
    uint32_t form; /* in its unit's, that it is a piece of; of columns the first
                      such */
    enum shard_kind kind;
    uint32_t width;             /* columns; the first table's of a group */
    uint64_t row_begin, n_rows; /* likewise */
    uint32_t block;     /* which of its form's these are: of several blocks that
                           are alike one with as much to do as they on average */
    uint32_t hottest;   /* and the one with most, which tells the bytes */
    uint32_t col_begin; /* of a block that stands, else 0 */
    uint32_t first_device; /* of the hosts that its cut's blocks may fill */
    bool is_empty;       /* a block of no rows, which costs as much as the first
                            one: oracle->prices_empty_blocks */
    bool stands;         /* a block that is so in the plan to be replaced:
                            rows and columns begin where they say */
    uint64_t bytes;      /* by the problem's memory model */
    uint64_t mean_bytes; /* if all rows of the table were equally hot */
};

/*
 * A way to cut a unit, a sharding option: what a start or a new cut chooses
 * from. Whole; 2, 3 ... even column ranges; a replica on each device; row
 * blocks, perhaps of column ranges. Pieces go range by range. Of columns n_last
 * of them are of part `last`, a quantum wider; blocks are of parts `part` to
 * `last`, those that have about as much to do of one. Or, where they stand,
 * blocks of any rows and columns, n_blocks of one range, each a part. Uneven
 * widths come of later changes.
 */
enum form_kind { FORM_WHOLE, FORM_COLUMNS, FORM_REPLICA, FORM_CUT };

struct form {
    enum form_kind kind;
    uint32_t n_blocks, n_ranges, n_pieces;
    uint32_t part, last, n_last; /* parts, and how many pieces of `last` */
    const uint8_t *sorts; /* [n_blocks]: part of each, from `part` on; NULL: one
                             each */
    bool fills_host; /* row blocks are those of one host's devices, in order */
    uint64_t peak_bytes; /* of the largest piece */
    double bytes;        /* of all of them; of a cut of rows at least, as parts
                            tell the bytes of their hottest block */
    double load_ms;      /* its pieces alone, added up */
    double peak_ms;      /* the dearest of them */
    double least_ms;     /* and the cheapest */
};

/* What is placed as one: a table, or all tables of a group. */
struct unit {
    const uint32_t *tables; /* [n_tables], indices into the problem */
    uint32_t n_tables;
    const struct table *first; /* of these; only what has no others is cut */
    int64_t pin;               /* device, or -1 */
    unsigned kinds;            /* that it may be cut into */
    uint32_t quantum, n_quanta;
    uint32_t whole;     /* part, or NO_PART */
    uint32_t columns;   /* part of one quantum; n quanta are `n - 1` further;
                           NO_PART where columns may not be cut */
    uint32_t replica;   /* part, or NO_PART */
    uint32_t device;    /* all its pieces': its pin, or the only one there is;
                           else NO_PIECE */
    struct form *forms; /* [n_forms] */
    uint32_t n_forms;
    bool leaves_out;    /* forms that cannot pay (search/listing.c) */
    double left_out_ms; /* that the cheapest of these may save, at most */
};

/* Replicas count this share of what they take alone, at least: beside others
 * each is cheaper than it looks. */
#define LEAST_REPLICA_FRAC 0.2

struct homes;
struct search_options;

struct parts {
    const struct problem *problem; /* not owned */
    const struct oracle *oracle;   /* not owned */
    const struct homes *homes;     /* where all stands now, not owned; NULL
                                      unless a plan is to be replaced:
                                      search/movement.h */
    uint32_t n_devices;
    const uint64_t *room_bytes;  /* [n_devices]: memory less reserve */
    uint64_t most_room_bytes;    /* the largest of them */
    uint64_t least_room_bytes;   /* the smallest */
    double all_room_bytes;       /* their sum */
    const struct tuning *tuning; /* not owned; the default unless the caller
                                    sets another */
    struct unit *of;             /* [n_units], in the problem's canonical
                                         order: a permuted list is searched alike */
    uint32_t n_units;
    struct arena *arena; /* not owned: of all that is here */
    struct form *forms;  /* [n_forms] */
    uint32_t n_forms;
    struct part *parts; /* [n_parts] */
    uint32_t n_parts;
    bool is_long;         /* list: forms that cannot pay are left out */
    uint32_t most_quanta; /* of a unit */
    uint32_t most_sorts;  /* of a cut */
    double mean_ms;  /* load of a device if all units stood whole; 0 if the list
                        is short: then no form is left out */
    double *vectors; /* [n_parts][oracle->width]; NULL where not priced */
    double *load_ms; /* [n_parts]: what a piece counts in its device's load:
                        alone_ms, or as search/marginal.h has it */
    double *alone_ms; /* [n_parts]: a device that holds it alone: the sum of its
                         terms, or where there are none its compute; 0
                         where not priced */
};

/* The units, how they may be cut, and the room that there is; no part and no
 * form. Everything lives in the arena. ERR_INPUT where a group is pinned to two
 * devices. */
int parts_collect(struct parts *parts, const struct problem *problem,
                  const struct oracle *oracle, struct arena *arena,
                  struct err *err) MUST_CHECK;

/* All of it, in the arena. ERR_USAGE where a table may be placed in no
 * way that the oracle can price, ERR_INPUT where the oracle gives no finite
 * cost, or as parts_collect. Where a plan is to be replaced, and `homes` is not
 * NULL but outlives the parts, with all that its tables need to stay: widths as
 * fine as their pieces have and, unless the oracle wants equal blocks, their
 * row blocks, of which the last one grows with its table. Of an oracle that
 * embeds nothing (ops->embed is NULL) parts have bytes alone. Options give the
 * threads and the time limit, past which tables that can stand whole or be cut
 * by columns get no other form; NULL: none. ERR_INTERRUPTED after an interrupt
 * if the list is long; a short one takes no time. */
int parts_init(struct parts *parts, const struct problem *problem,
               const struct oracle *oracle, const struct homes *homes,
               const struct search_options *options, struct arena *arena,
               struct err *err) MUST_CHECK;

/* A piece of the part, of one of its unit's tables: what the oracle and the
 * memory model are asked about. Of rows and columns the piece that stands
 * first, as all of one part are alike. */
struct shard parts_shard(const struct parts *parts, const struct part *part,
                         uint32_t table);

/* Of a device that holds this alone: the sum of its terms, or where there are
 * none its compute. */
double parts_alone_ms(const struct oracle *oracle, const double *vector);

/* The part of `width` columns, of 1 to all of them, full height: the whole
 * where that is all; NO_PART where there is none. */
uint32_t parts_of_width(const struct parts *parts, uint32_t unit,
                        uint32_t width);
/* Likewise of n quanta, 1 to n_quanta. */
static inline uint32_t parts_of_quanta(const struct unit *of, uint32_t n)
{
    return n == of->n_quanta ? of->whole : of->columns + n - 1;
}
/* The part that is as wide as two of one unit; NO_PART where there is none. */
static inline uint32_t parts_joined(const struct parts *parts, uint32_t a,
                                    uint32_t b)
{
    return parts_of_width(parts, parts->parts[a].unit,
                          parts->parts[a].width + parts->parts[b].width);
}
/* How many quanta a part is of all rows of a unit that columns may be cut of;
 * else 0. */
static inline uint32_t parts_quanta(const struct parts *parts, uint32_t part)
{
    const struct part *p = &parts->parts[part];
    const struct unit *of = &parts->of[p->unit];
    bool has_all_rows = p->kind & (SHARD_TABLE | SHARD_COLUMN);

    return has_all_rows && of->columns != NO_PART ? p->width / of->quantum : 0;
}
/* The part of row block b of one of the form's ranges; of the only block that
 * there is where rows are not cut, which of columns the last ones are not of.
 */
static inline uint32_t parts_of_block(const struct form *cut, uint32_t b)
{
    return cut->part + (cut->sorts ? cut->sorts[b] : b);
}
/* The form that a piece is of; of columns the first such. */
static inline const struct form *parts_form_of(const struct parts *parts,
                                               uint32_t part)
{
    const struct part *p = &parts->parts[part];

    return &parts->of[p->unit].forms[p->form];
}
/* Rows and columns of a piece of such a part: block and range as in struct
 * piece. */
void parts_place_block(struct shard *shard, const struct part *part,
                       uint32_t range, uint32_t block);
/* Whether a search may put such a piece on another device by itself: not a
 * replica, nor a piece of a pinned unit, nor a row block where the oracle asks
 * for whole hosts. */
bool parts_can_move(const struct parts *parts, uint32_t part);

/* One at random. There are many ways to cut, but one to leave whole and one to
 * replicate, which are drawn more often. */
const struct form *forms_draw(const struct parts *parts, uint32_t unit,
                              struct rng *rng);

/* Piece i of a form: its part, range and block. The device is that of its unit,
 * that of a replica, of a row cut over all devices where the oracle asks for
 * it, else NO_PIECE. The blocks of a cut that fills a host are left open too:
 * block b goes on device b of any one host. */
struct change forms_piece(const struct parts *parts, const struct form *form,
                          uint32_t i);

#endif
