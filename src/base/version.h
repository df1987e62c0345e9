/* SPDX-License-Identifier: MIT */
#ifndef NEUROSHARD_BASE_VERSION_H
#define NEUROSHARD_BASE_VERSION_H

/*
 * NEUROSHARD_VERSION is the version as in the file VERSION, such as "0.2.0";
 * the Makefile defines it. Comparisons between versions use only
 * NEUROSHARD_VERSION.
 *
 * build_id names the commit that the program was built from: "g8f85c146", with
 * "-dirty" if files differed from it, or the version if git did not know the
 * commit. The Makefile generates its definition for the program. Tests have a
 * fixed build_id, "gtest".
 */
extern const char build_id[];

#endif
