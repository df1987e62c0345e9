/* SPDX-License-Identifier: MIT */
/* The build id of all test programs: they give the same output at any commit. */
#include "base/version.h"

const char build_id[] = "gtest";
