/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_STORE_PRIVATE_H
#define NEUROSHARD_IO_STORE_PRIVATE_H

/* The schema of the cost database. */

/* Content of data/schema.sql, which the assembler includes into the program. */
extern const char store_schema_sql[] __attribute__((visibility("hidden")));

#endif
