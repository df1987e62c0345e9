#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: tests/check/python_lines.py MOST FILE...

Whether the files have at most so many lines of code, which are neither blank
nor comments nor docstrings."""
import ast
import sys
import tokenize

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}


def spans(first, last):
    return range(first, last + 1)


def n_lines(path):
    with open(path, "rb") as file:
        tokens = list(tokenize.tokenize(file.readline))
    code = {
        line
        for token in tokens
        if token.type not in NO_CODE
        for line in spans(token.start[0], token.end[0])
    }
    with open(path, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    texts = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in spans(node.lineno, node.end_lineno)
    }
    return len(code - texts)


def main():
    most, *paths = sys.argv[1:]
    counts = {path: n_lines(path) for path in paths}
    if sum(counts.values()) > int(most):
        each = ", ".join(f"{path} {n}" for path, n in counts.items())
        sys.exit(f"{sum(counts.values())} lines of Python, of {most}: {each}")


main()
