/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_IO_TABLES_YAML_H
#define NEUROSHARD_IO_TABLES_YAML_H

#include "io/tables_reader.h"

/*
 * Imports table lists in YAML. There are two forms:
 *
 *   - The forms of JSON (io/tables_json.h): a mapping of tables by name, or a
 *     sequence of tables, at the root or below a key such as "tables".
 *   - A configuration of TorchRec's benchmarks with EmbeddingTablesConfig. Its
 *     tables are those that the benchmark generates: table I has
 *     max(I + 1, 100) * base_row_size / 100 rows.
 */
bool tables_is_yaml(const char *text);
tables_reader tables_from_yaml MUST_CHECK;

#endif
