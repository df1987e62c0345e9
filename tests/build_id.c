/* SPDX-License-Identifier: MIT */
/* Build id of all test programs, which give the same output at any commit. */
#include "base/version.h"

const char build_id[] = "gtest";
