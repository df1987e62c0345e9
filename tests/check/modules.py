#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: tests/check/modules.py FOLDER...

Checks that a header is the interface of the source file with its name. Each
FOLDER is a room. NAME_private.h counts as a header of NAME.c.

Counts the functions that are declared in a header of another name. Fails if
there are more than LIMIT, which only ever falls, and prints all of them.

Finds circles of includes: modules that need each other. A module is NAME.c and
NAME.h together. Fails if a room that is not in WITH_CIRCLES has a circle.
"""
import collections
import os
import re
import sys

# Most functions that are declared in a header of another name.
LIMIT = 16
# Rooms that may have circles: `device` calls its backends, which call it back,
# and a command of the shell may hold commands.
WITH_CIRCLES = {"device", "io"}

# Comments, strings and lines of the preprocessor.
SKIPPED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|'
                     r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", re.S | re.M)
# Functions begin in the first column: `type name(arguments)`, then ';' or '{'.
FUNCTION = re.compile(
    r"^(?!static\b|typedef\b|[\s}])[\w \t\n*]*?\b(\w+)\(([^;{}]*)\)"
    r"([^;{}]*)([;{])", re.M)
# A function that is declared by the type of all functions of its kind.
TYPED = re.compile(r"^(?!static|typedef|struct|enum)\w+ (\w+)"
                   r"(?: MUST_CHECK)?;", re.M)
INCLUDE = re.compile(r'^#include "([^"]+)"', re.M)
SOURCES, HEADERS = (".c", ".cu"), (".h", ".cuh")


def module(path):
    """Returns the path without suffix, the same for NAME.c and NAME.h."""
    return re.sub(r"_private$", "", os.path.splitext(path)[0])


def room(path):
    return os.path.basename(os.path.dirname(path))


def read_files(folders):
    """Returns the texts of all C files of the folders, by path."""
    texts = {}
    for folder in folders:
        for name in sorted(os.listdir(folder)):
            if name.endswith(SOURCES + HEADERS):
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8") as file:
                    texts[path] = file.read()
    return texts


def list_functions(texts):
    """Returns where each function is declared, and where it is defined."""
    declared, defined = {}, collections.defaultdict(set)
    for path, text in texts.items():
        code = SKIPPED.sub("", text)
        for match in FUNCTION.finditer(code):
            if match.group(4) == "{":
                defined[match.group(1)].add(path)
            elif path.endswith(HEADERS):
                declared[match.group(1)] = path
        if path.endswith(HEADERS):
            declared.update((name, path) for name in TYPED.findall(code))
    return declared, defined


def check_headers(texts):
    """Returns 1 if too many functions are declared in other headers."""
    declared, defined = list_functions(texts)
    foreign = collections.defaultdict(list)
    for name, header in sorted(declared.items()):
        sources = {path for path in defined[name] if path.endswith(SOURCES)}
        if sources and module(header) not in map(module, sources):
            foreign[header, min(sources)].append(name)
    n = sum(map(len, foreign.values()))
    if n <= LIMIT:
        return 0
    for (header, source), names in sorted(foreign.items()):
        print(f"{header}: declares functions of {source}: {' '.join(names)}",
              file=sys.stderr)
    print(f"{n} functions are declared in headers of other names, of {LIMIT}",
          file=sys.stderr)
    return 1


def find_needs(texts):
    """Returns the modules that each module includes."""
    paths = {f"{room(path)}/{os.path.basename(path)}": path for path in texts}
    needs = collections.defaultdict(set)
    for path, text in texts.items():
        for name in INCLUDE.findall(text):
            if name in paths and module(paths[name]) != module(path):
                needs[module(path)].add(module(paths[name]))
    return needs


def reachable(needs, start):
    found, left = set(), [start]
    while left:
        for other in needs.get(left.pop(), ()):
            if other not in found:
                found.add(other)
                left.append(other)
    return found


def check_circles(texts):
    """Returns 1 if a room that must have no circles has one."""
    needs = find_needs(texts)
    reached = {name: reachable(needs, name) for name in sorted(needs)}
    failed, seen = 0, set()
    for name in reached:
        if name in seen or name not in reached[name]:
            continue
        circle = sorted(other for other in reached[name]
                        if name in reached.get(other, ()))
        seen.update(circle)
        if {room(other) for other in circle} - WITH_CIRCLES:
            print("modules that include each other:", *circle,
                  file=sys.stderr)
            failed = 1
    return failed


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    texts = read_files(sys.argv[1:])
    return check_headers(texts) | check_circles(texts)


if __name__ == "__main__":
    sys.exit(main())
