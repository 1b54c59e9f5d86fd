# SPDX-License-Identifier: Apache-2.0
"""What the check-* scripts share: which files there are, C without comments, functions, reporting.

The parsers rely on the form that clang-format gives our sources (tools/check-format): a function's
opening and closing brace stand in the first column, nothing else's opening brace does.
"""

import argparse
import os
import re
import subprocess
import sys

# Columns of a line of documentation, as of code.
DOC_COLUMNS = 100

# How an item of a list begins.
ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s+")

# Where our own C lives. tests is apart: the law of the product does not hold there throughout.
PRODUCT = ("lib", "images", "host", "stage1", "stage1-kvm", "stage1-ns", "guest-agent", "shim", "bench")


class Check:
    """One check over one tree: collects findings, prints them, knows the exit status."""

    def __init__(self, description):
        parser = argparse.ArgumentParser(description=description)
        top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        parser.add_argument("--root", default=top, help="tree to check (default: this one)")
        self.root = parser.parse_args().root
        self.findings = 0
        self.cache = {}

    def finding(self, path, line, text):
        """Reports one violation in the form that editors understand."""
        self.findings += 1
        print(f"{path}:{line}: {text}")

    def done(self, figures=""):
        """Prints the summary and ends the program: 1 if there were findings."""
        name = os.path.basename(sys.argv[0])
        print(f"{name}: {self.findings} findings{', ' if figures else ''}{figures}")
        sys.exit(1 if self.findings else 0)

    def files(self, *suffixes, under=None):
        """Sorted paths, relative to the tree, of tracked and not ignored files with a suffix."""
        found = self._list()
        return [
            p
            for p in found
            if p.endswith(suffixes) and (under is None or p.startswith(tuple(u + "/" for u in under)))
        ]

    def _list(self):
        if "files" not in self.cache:
            self.cache["files"] = sorted(self._git_files() or self._walk())
        return self.cache["files"]

    def _git_files(self):
        if not os.path.exists(os.path.join(self.root, ".git")):
            return None
        git = ["git", "-C", self.root, "-c", f"safe.directory={self.root}", "ls-files"]
        out = subprocess.run(git + ["-co", "--exclude-standard"], check=True, stdout=subprocess.PIPE)
        paths = out.stdout.decode().splitlines()
        return [p for p in paths if os.path.isfile(os.path.join(self.root, p))]

    def _walk(self):
        for where, dirs, names in os.walk(self.root):
            dirs[:] = [d for d in dirs if not d.startswith((".", "build"))]
            for name in names:
                yield os.path.relpath(os.path.join(where, name), self.root)

    def read(self, path):
        """The text of a file of the tree."""
        if path not in self.cache:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace") as f:
                self.cache[path] = f.read()
        return self.cache[path]


TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def strip_comments(text):
    """C with comments blanked out; lines and columns stay, strings stay."""
    return TOKEN.sub(lambda m: m[0] if m[0][0] in "\"'" else _blank(m[0]), text)


def strip_strings(text):
    """C with comments and the contents of literals blanked out."""

    def blank(match):
        literal = match[0]
        if literal[0] in "\"'":
            return literal[0] + _blank(literal[1:-1]) + literal[-1]
        return _blank(literal)

    return TOKEN.sub(blank, text)


class Function:
    """A function definition: name, first and last line (from 1), code without comments."""

    def __init__(self, name, first, last, code):
        self.name, self.first, self.last, self.code = name, first, last, code

    @property
    def lines(self):
        return self.last - self.first + 1


def functions(text):
    """All function definitions of a C file, macros that define functions left out."""
    lines = strip_strings(text).split("\n")
    found = []
    for start, line in enumerate(lines):
        if line != "{" or start == 0 or not lines[start - 1].rstrip().endswith(")"):
            continue
        first = start - 1
        while first > 0 and lines[first][:1].isspace():
            first -= 1
        head = " ".join(lines[first:start])
        # A return type on a line of its own belongs to the definition.
        if re.match(r"\w+\s*\(", head) and re.match(r"[\w *]+$", lines[first - 1] or ";"):
            first -= 1
        name = re.search(r"(\w+)\s*\(", head)
        end = next((i for i in range(start, len(lines)) if lines[i] == "}"), len(lines) - 1)
        if name:
            found.append(Function(name[1], first + 1, end + 1, "\n".join(lines[first : end + 1])))
    return found


def line_of(text, offset):
    """The line number, from 1, of an offset in a text."""
    return text.count("\n", 0, offset) + 1


def prose_blocks(lines):
    """The paragraphs and list items of a Markdown text as (first, end) of line numbers from 0; neither code, tables nor headings."""
    blocks, start, fenced = [], None, False
    for at, line in enumerate(lines + [""]):
        fence = line.lstrip().startswith("```")
        prose = not fenced and not fence and line.strip() and not re.match(r"\s*\||#|    |\t|<", line)
        # What is indented like code goes on where a list item began.
        prose = prose or (start is not None and not fence and line.strip() and not re.match(r"\s*\|", line))
        if start is not None and (not prose or re.match(r"\s*([-*+]|\d+\.)\s", line)):
            blocks.append((start, at))
            start = None
        if prose and start is None:
            start = at
        fenced ^= fence
    return blocks


def columns(line):
    """How wide a line is."""
    return len(line.expandtabs(8))


def man_blocks(lines):
    """The same of a man page for scdoc(5), where an indented paragraph is one as well."""
    blocks, start, fenced = [], None, False
    for at, line in enumerate(lines + [""]):
        fence = line.startswith("```")
        prose = not fenced and not fence and line.strip() and not re.match(r"[|\[\]:#;]|\t*\t[|\[\]:]", line)
        # scdoc(5) takes what follows a forced line break as it stands.
        prose = prose and not line.endswith("++") and not lines[at - 1].endswith("++")
        indent = re.match(r"\t*", line)[0]
        if start is not None and (not prose or ITEM.match(line) or indent != re.match(r"\t*", lines[start])[0]):
            blocks.append((start, at))
            start = None
        if prose and start is None:
            start = at
        fenced ^= fence
    return blocks


# A line of a comment of C: " * ", what it is indented by, the label of a list's item, text.
COMMENT_LINE = re.compile(r"([ \t]* \* )(\s*)([-*] |\S+\s{2,})?(?=\S)")
# A comment that is all of a line.
COMMENT_ALONE = re.compile(r"([ \t]*)/\* ((?:(?!\*/).)*) \*/$")


def comment_blocks(lines):
    """The same of C: paragraphs of comments that have lines of their own. Tables are none."""
    blocks, at, inside = [], 0, False
    while at < len(lines):
        line, start = lines[at], at
        at += 1
        inside = line.strip() == "/*" or inside and not line.rstrip().endswith("*/")
        m = COMMENT_LINE.match(line) if inside else None
        if m:
            rest = m[1] + m[2] + " " * len(m[3] or "")
            goes_on = re.compile(re.escape(rest) + r"(?![-*] )\S(?!.*\S\s{2,}\S)(?!.*\*/$)")
            while at < len(lines) and goes_on.match(lines[at]):
                at += 1
            if not re.search(r"\S\s{2,}\S", line[m.end() :]):
                blocks.append((start, at))
        elif COMMENT_ALONE.match(line):
            blocks.append((start, at))
    return blocks


def doc_blocks(path, lines):
    """The blocks of a text that lines of at most DOC_COLUMNS are wanted in."""
    if path.endswith((".c", ".h")):
        return comment_blocks(lines)
    return (man_blocks if path.endswith(".scd") else prose_blocks)(lines)


def tracked(root, suffix):
    """The files of a tree with a suffix that git knows."""
    out = subprocess.run(["git", "-C", root, "ls-files", "*" + suffix], check=True, stdout=subprocess.PIPE)
    return out.stdout.decode().splitlines()
