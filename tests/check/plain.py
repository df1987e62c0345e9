#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: tests/check/plain.py [--list MARKER] FILE...

Counts constructions that readers have to read twice, per 1,000 words of
comments (C, CUDA, SQL, Python, shell, make) or of text (manual pages,
Markdown). Fails if a group of files has more than its limit. The limits only
ever fall. Prints the worst files of a group that fails, and with --list every
text that has the marker.

A marker is a hint: text without any can still be hard to read. CONTRIBUTING.md
says how comments are written.
"""
import argparse
import collections
import re
import sys

# Hits per 1,000 words: the limit of each group of files.
LIMITS = {"program": 0.6, "tests": 0.9, "pages": 1.1}
# Texts with fewer words are not looked at.
LEAST_WORDS = 5

START = r"(?:^|(?<=[.;:] ))"
MARKERS = {
    # A clause in the place of a noun: "what is measured", "what it costs".
    "what": r"\bwhat\b(?!-| if\b)",
    # A sentence whose first word names nothing.
    "headless": START + r"(?:of|that of|those|such|likewise|the same|as of|"
                        r"also of|n?either|nor|what|(?:by|of|in) which|where "
                        r"what|so many|but for)\b",
    "so many": r"\bso (?:many|much|manieth)\b",
    # Models predict and GPUs are measured; neither speaks.
    "told": r"\b(?:told|tells? (?:of|apart)|says? of|(?:is|are) said)\b",
    "beside": r"\b(?:besides?|thereby|therein|whereof|hangs? on|la(?:id|y) by|"
              r"comes? true)\b",
    "where, which": r"\bwhere\b[^.;:]{0,80}\bwhich\b|"
                    r"\bwhich\b[^.;:]{0,80}\bwhere\b",
    "but for": r"\b(?:but for|(?:all|nothing) but|no more than does|none is|"
               r"is none)\b",
    "likewise": r"\b(?:likewise|as well as if|however (?:many|few|much|well|"
                r"long))\b",
}
SEARCHES = {name: re.compile(text, re.I) for name, text in MARKERS.items()}

C_TOKEN = re.compile(r'/\*(.*?)\*/|//([^\n]*)|"(?:[^"\\\n]|\\.)*"|'
                     r"'(?:[^'\\\n]|\\.)*'", re.S)
HASH = re.compile(r"^\s*#(?!!)\s?(.*)$", re.M)
DASHES = re.compile(r"--\s?(.*)$", re.M)
C_SUFFIXES = (".c", ".h", ".cu", ".cuh", ".cpp")


def group_of(path):
    if path.endswith((".md", ".1", ".5", ".7")):
        return "pages"
    return "tests" if path.startswith("tests/") else "program"


def runs_of_lines(text, line):
    """Joins comments of one line each that follow each other."""
    joined, last = [], -2
    for match in line.finditer(text):
        number = text.count("\n", 0, match.start(1))
        if number == last + 1 and joined:
            joined[-1] += " " + match.group(1)
        else:
            joined.append(match.group(1))
        last = number
    return joined


def page_texts(text):
    """Paragraphs of a manual page, without its macros and literal blocks."""
    paragraph, literal = [], False
    for line in text.split("\n"):
        if re.match(r"\.Bd\b.*-literal", line):
            literal = True
        elif line.startswith(".Ed"):
            literal = False
        elif literal or line.startswith('.\\"'):
            continue
        elif re.match(r"\.(?:Pp|Sh|Ss|It|Bl|El|Dd|Dt|Os)\b", line):
            yield " ".join(paragraph)
            paragraph = []
        else:
            words = re.sub(r"^\.(?:[A-Z][a-z]\s+)*", "", line)
            paragraph.append(re.sub(r"\\[&fe]\w?", "", words))
    yield " ".join(paragraph)


def texts(path, text):
    """Yields the comments of a source file or the paragraphs of a page."""
    if path.endswith(C_SUFFIXES):
        for match in C_TOKEN.finditer(text):
            body = match.group(1) or match.group(2) or ""
            yield re.sub(r"^\s*\*+ ?", "", body, flags=re.M)
    elif path.endswith(".sql"):
        yield from runs_of_lines(text, DASHES)
    elif path.endswith((".1", ".5", ".7")):
        yield from page_texts(text)
    elif path.endswith(".md"):
        prose = re.sub(r"^(?:    |```).*$", "", text, flags=re.M)
        yield from re.split(r"\n\s*\n|\n- |\|", prose)
    else:
        yield from runs_of_lines(text, HASH)


def is_read(text):
    return len(text.split()) >= LEAST_WORDS and "SPDX" not in text


def main():
    args = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("files", nargs="+")
    args.add_argument("--list", choices=sorted(MARKERS))
    args = args.parse_args()
    words = collections.Counter()
    hits = collections.Counter()
    by_file = collections.Counter()
    for path in args.files:
        with open(path, encoding="utf-8", errors="replace") as file:
            source = file.read()
        for body in texts(path, source):
            body = " ".join(body.split())
            if not is_read(body):
                continue
            words[group_of(path)] += len(body.split())
            for name, search in SEARCHES.items():
                found = len(search.findall(body))
                hits[group_of(path), name] += found
                by_file[group_of(path), path] += found
                if found and name == args.list:
                    print(f"{path}: {body}\n")
    return 0 if args.list else verdict(words, hits, by_file)


def verdict(words, hits, by_file):
    """Prints each group's hits; returns 1 if one has more than its limit."""
    failed = 0
    for group in sorted(words):
        counts = {name: hits[group, name] for name in MARKERS}
        rate = 1000 * sum(counts.values()) / words[group]
        shown = ", ".join(f"{name} {n}" for name, n in counts.items() if n)
        if rate <= LIMITS[group]:
            continue
        failed = 1
        print(f"{group}: {rate:.2f} hits per 1,000 words, of {LIMITS[group]}: "
              f"{shown}", file=sys.stderr)
        worst = [(n, path) for (of_group, path), n in by_file.items()
                 if of_group == group and n]
        for n, path in sorted(worst, reverse=True)[:10]:
            print(f"{n:6}  {path}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main())
