/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_HUGECTR_SLOTS_H
#define NEUROSHARD_IO_HUGECTR_SLOTS_H

#include "io/tables_found.h"

/*
 * Slots of a HugeCTR model in Python. A SparseEmbedding has a table for each
 * slot of its input:
 *
 *   hugectr.DataReaderParams(slot_size_array=[10, 20, 30], ...)
 *   hugectr.DataReaderSparseParam("data1", 2, True, 3)
 *   hugectr.SparseEmbedding(bottom_name="data1", embedding_vec_size=8, ...)
 *
 * The sizes of the slots are those of the SparseEmbedding or those of the
 * DataReaderParams, which has the slots of all inputs one after the other. The
 * second argument of an input is the number of ids of a slot if the third one,
 * is_fixed_length, is True; otherwise it is only their maximum.
 */
struct hugectr_slots {
    json_t *inputs; /* owned; name: {nnz, is_fixed, n, first} */
    json_t *sizes;  /* owned; slot_size_array of the reader, or NULL */
    json_int_t n;   /* number of slots of all inputs */
};

/* Finds the inputs and the reader of a program. `names` are its constants. */
void slots_init(struct hugectr_slots *slots, const char *text,
                const json_t *names);
void slots_release(struct hugectr_slots *slots);

/* Adds the tables of a SparseEmbedding with these arguments. They are called
 * like their input, with the number of the slot. */
int slots_add(const struct hugectr_slots *slots, struct tables_found *found,
              const json_t *call, size_t line, struct err *err) MUST_CHECK;

#endif
