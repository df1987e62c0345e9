/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_JSON_LISTS_H
#define NEUROSHARD_BASE_JSON_LISTS_H

#include "base/json.h"

/*
 * Documents with long lists of objects. The elements of such a list stay text,
 * and one element is parsed at a time. So a document takes no more memory than
 * its text and one element. A plan of 200,000 tables has 85 MB of text, and its
 * values would take 500 MB.
 */

/* Makes element i of a list. */
typedef json_t *json_element_fn(const void *ctx, size_t i);

/* A long list of objects: a member of the document. Its elements are text, or
 * made by a function, or parsed with the document. */
struct json_list {
    const char *key; /* set by the caller, as are make, ctx and n_apart */
    json_element_fn *make;
    const void *ctx;
    /* elements that are not read yet, borrowed from the document's text */
    const char *text, *end;
    size_t n_apart;       /* number of elements in the text or to be made */
    const json_t *parsed; /* the list in the document, borrowed */
    size_t n;             /* number of elements, after place_long_list */
    size_t n_read;
    json_t *element; /* the element that was read last, unless it is parsed */
};

/* Parses a document, but leaves the elements of lists[n] text, which must stay
 * valid. In *root these lists are empty. Returns -1 if the text is not valid
 * JSON, or if its lists cannot be told apart; only json_parse knows the reason.
 * Invalid elements are found by place_next. The caller decrefs *root. */
int json_parse_but(json_t **root, struct json_list *lists, size_t n,
                   const char *text, size_t len) MUST_CHECK;

/* Begins to read a list, which is a member of the object at `place`, and sets
 * list->n. */
int place_long_list(struct json_list *list, const struct json_place *place,
                    struct err *err) MUST_CHECK;
/* Sets *out to the next element, which must be an object and is valid until the
 * next call. There must be another one. */
int place_next(struct json_place *out, struct json_list *list,
               const struct json_place *place, struct err *err) MUST_CHECK;
/* Releases the last element. */
void json_list_release(struct json_list *list);

#endif
