#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Every check of tools/check-* finds a planted violation and is silent about a clean tree."""

import contextlib
import io
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

HEADER = """/* A module for tests of the checks. */
#ifndef LIB_BASE_THING_H
#define LIB_BASE_THING_H

/* Doubles @n. */
int thing_double(int n);

#endif
"""

SOURCE = """#include "lib/base/thing.h"

int thing_double(int n)
{
	return n * 2;
}
"""

SCRIPT = """#!/bin/bash
set -euo pipefail
echo "$1"
"""

CMAKE = """husk_library(lib-base
  SOURCES base/thing.c)
husk_library(lib-os
  SOURCES os/disk.c
  LINK lib-base)
"""

DISK = '#include "lib/base/thing.h"\n'

CLEAN = {
    "lib/base/thing.h": HEADER,
    "lib/base/thing.c": SOURCE,
    "lib/os/disk.c": DISK,
    "lib/CMakeLists.txt": CMAKE,
    "tests/unit/lib/base/test_thing.c": DISK,
    "tests/unit/lib/os/test_disk.c": DISK,
    "tools/hello": SCRIPT,
    "README.md": "# Thing\n\n| Where | What |\n|---|---|\n| `lib/base/` | [things](lib/base/thing.h) |\n",
}

CHECKS = ("format", "layering", "headers", "sizes", "docs", "style", "shell")


MARK = "/* SPDX-License-Identifier: {} */\n"


def function(body, name="f"):
    return f"static int {name}(void)\n{{\n{body}\n}}\n"


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="husk-test-")
        self.addCleanup(shutil.rmtree, self.root)
        shutil.copy(os.path.join(TOP, ".clang-format"), self.root)
        for path, text in CLEAN.items():
            self.plant(path, text)

    def plant(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)

    def run_check(self, name):
        """Runs the script inside this process, which is faster: its exit status and output."""
        script = os.path.join(TOP, "tools", "check-" + name)
        sys.argv = [script, "--root", self.root]
        text = io.StringIO()
        try:
            with contextlib.redirect_stdout(text):
                runpy.run_path(script, run_name="__main__")
        except SystemExit as end:
            return end.code or 0, text.getvalue()
        self.fail(f"{script} has no verdict")

    def finds(self, name, words):
        status, text = self.run_check(name)
        self.assertEqual(status, 1, text)
        self.assertIn(words, text)

    def silent(self, name):
        status, text = self.run_check(name)
        self.assertEqual(status, 0, text)

    def code(self, text, path="lib/os/disk.c"):
        self.plant(path, DISK + text)

    def test_clean_tree(self):
        for name in CHECKS:
            self.silent(name)

    def test_empty_tree_is_no_success(self):
        shutil.rmtree(os.path.join(self.root, "lib"))
        shutil.rmtree(os.path.join(self.root, "tests"))
        os.remove(os.path.join(self.root, "tools/hello"))
        for name in ("format", "layering", "headers", "sizes", "docs", "shell"):
            self.finds(name, "found: wrong tree?")

    def test_format(self):
        self.code("int  x;\n")
        self.finds("format", "lib/os/disk.c:2")

    def test_layering_include(self):
        self.code('#include "lib/os/disk.h"\n', "lib/base/thing.c")
        self.plant("lib/os/disk.h", "")
        self.finds("layering", "lib/base must not use lib/os")

    def test_layering_between_programs(self):
        for path, used in (
            ("host/pod/x.c", "stage1-kvm/plan/plan.h"),
            ("stage1/apps/x.c", "host/pod/pod.h"),
            ("stage1/apps/x.c", "stage1-kvm/plan/vm.h"),
            ("stage1-kvm/backend/x.c", "guest-agent/pod/app.h"),
            ("stage1-kvm/vmm/qemu/x.c", "stage1-kvm/backend/backend.h"),
            ("stage1-kvm/vsock/x.c", "lib/wire/frame.h"),
            ("stage1-kvm/plan/x.c", "lib/os/fd.h"),
            ("lib/wire/x.c", "lib/os/fd.h"),
            ("images/store/x.c", "host/launch/launch.h"),
            ("host/launch/x.c", "host/pod/pod.h"),
            ("host/config/x.c", "host/cli/cli.h"),
            ("host/pod/x.c", "host/config/config.h"),
            ("guest-agent/x.c", "tests/support/fault.h"),
        ):
            with self.subTest(path=path, used=used):
                self.plant(path, f'#include "{used}"\n')
                self.plant(used, "")
                self.finds("layering", f'{path}:1: {os.path.dirname(path)} must not use')
                os.remove(os.path.join(self.root, path))

    def test_layering_circles(self):
        self.plant("images/store/a.c", '#include "images/store/b.h"\n')
        self.plant("images/store/a.h", "")
        self.plant("images/store/b.h", '#include "images/store/c_int.h"\n')
        self.plant("images/store/c_int.h", "")
        self.silent("layering")
        self.plant("images/store/c.c", '#include "images/store/a.h"\n')
        self.finds("layering", 'images/store/a.c:1: modules need each other: #include "images/store/b.h" (a -> b -> c -> a)')
        self.finds("layering", "images/store/c.c:1: modules need each other")

    def test_layering_ignores_comments(self):
        self.code('/*\n#include "lib/os/disk.h"\n*/\n', "lib/base/thing.c")
        self.silent("layering")

    def test_layering_link(self):
        self.plant("lib/CMakeLists.txt", CMAKE.replace("thing.c)", "thing.c LINK lib-os)"))
        self.finds("layering", "lib-base (lib/base) must not link lib-os (lib/os)")

    def test_layering_target_link_libraries(self):
        self.plant("lib/CMakeLists.txt", CMAKE + "target_link_libraries(lib-base PUBLIC lib-os)\n")
        self.finds("layering", "lib-base (lib/base) must not link lib-os (lib/os)")

    def test_layering_pure(self):
        self.code("#include <unistd.h>\n", "lib/base/thing.c")
        self.finds("layering", "lib/base is pure code")

    def test_layering_unknown_directory(self):
        self.plant("extra/x.c", "int x;\n")
        self.finds("layering", "not in the table")

    def test_layering_relative_include(self):
        self.code('#include "thing.h"\n', "lib/base/thing.c")
        self.finds("layering", "from the top of the tree")

    def test_headers_alone(self):
        self.plant("lib/base/thing.h", HEADER.replace("int n", "size_t n"))
        self.finds("headers", "does not compile alone")

    def test_headers_of_messages(self):
        self.plant("shim/proto/thing.proto", 'syntax = "proto3";\npackage thing;\nmessage Thing { string name = 1; }\n')
        taken = '#include "shim/proto/thing.pb-c.h"\n\nint thing_double(const Thing__Thing *n);'
        self.plant("lib/base/thing.h", HEADER.replace("int thing_double(int n);", taken))
        status, text = self.run_check("headers")
        self.assertEqual(status, 0, text)

    def test_headers_guard(self):
        self.plant("lib/base/thing.h", HEADER.replace("LIB_BASE_THING_H", "THING_H"))
        self.finds("headers", "the guard is not LIB_BASE_THING_H")

    def test_sizes_function(self):
        self.code(function("\n".join(["\tcall();"] * 117)))  # 120 lines
        self.code(function("\n".join(["\tcall();"] * 118)), "lib/os/other.c")
        status, text = self.run_check("sizes")
        self.assertEqual(status, 1)
        self.assertIn("lib/os/other.c:2: f: 121 lines, at most 120", text)
        self.assertNotIn("lib/os/disk.c", text)

    def test_sizes_median(self):
        self.code("".join(function("\tcall();\n" * 18, name) for name in "abc"))
        self.finds("sizes", "median function: 22 lines")

    def test_sizes_file(self):
        self.code("\n" * 999)
        self.silent("sizes")
        self.code("\n" * 1000)
        self.finds("sizes", "1001 lines, at most 1000")

    def test_docs_contract(self):
        self.plant("lib/base/thing.h", HEADER.replace("/* Doubles @n. */", ""))
        self.finds("docs", "thing_double() has no contract comment")

    def test_docs_contract_of_a_block(self):
        two = "int thing_double(int n);\nint thing_half(int (*fn)(void *), const char *s,\n\t       int n);"
        self.plant("lib/base/thing.h", HEADER.replace("int thing_double(int n);", two))
        self.silent("docs")
        self.plant("lib/base/thing.h", HEADER.replace("int thing_double(int n);", two.replace("\n", "\n\n", 1)))
        self.finds("docs", "thing_half() has no contract comment")

    def test_docs_states(self):
        self.code("enum disk_state {\n\tDISK_IDLE, /* may be opened */\n\tDISK_BUSY,\n};\n")
        status, text = self.run_check("docs")
        self.assertEqual(status, 1)
        self.assertIn("opens with no theory", text)
        self.assertIn("lib/os/disk.c:4: state DISK_BUSY", text)
        self.assertNotIn("DISK_IDLE", text)

    def test_docs_states_in_theory(self):
        words = " ".join(["w"] * 30)
        self.plant("lib/os/disk.c", f"/*\n * IDLE: {words}\n * BUSY: more\n */\n" + DISK
                   + "enum disk_state {\n\tDISK_IDLE,\n\tDISK_BUSY,\n};\n")
        self.silent("docs")

    def test_docs_theory_behind_license(self):
        theory = "/*\n * " + " ".join(["w"] * 30) + "\n */\n"
        states = DISK + "enum disk_state {\n\tDISK_IDLE, /* may be opened */\n};\n"
        self.plant("lib/os/disk.c", MARK.format("Apache-2.0") + theory + states)
        self.silent("docs")
        self.plant("lib/os/disk.c", MARK.format("Apache-2.0") + states)
        self.finds("docs", "opens with no theory")

    def test_docs_link(self):
        self.plant("README.md", "See [there](docs/nothing.md) and [web](https://example.org/x).\n")
        self.finds("docs", "README.md:1: link to docs/nothing.md")

    def test_docs_pages(self):
        page = "husk(1)\n\n# PARTS\n\nSee *husk*(1), see *PARTS*, and *PARTS* in *husk*(1); *FOO* is no section.\n"
        self.plant("docs/man/husk.1.scd", page)
        self.plant("README.md", "See husk(1), and husk-other() is a function.\n")
        self.silent("docs")
        for text in ("See husk-run(1).\n", "See *husk.conf*(5).\n", "See *husk*(7).\n"):
            self.plant("README.md", text)
            self.finds("docs", "is not there")
        self.plant("README.md", CLEAN["README.md"])
        for text in ("see\n*GONE*", "see *GONE AWAY*", "*GONE* in *husk*(1)"):
            self.plant("docs/man/husk.1.scd", page + text + "\n")
            self.finds("docs", "has no section GONE")

    def test_docs_columns(self):
        long = "word " * 20  # 99 columns and a space
        for text in (long.strip() + "x", f"| {long} {long} |", f"```\n{long} {long}\n```", "# " + long + long,
                     "x" * 200, "- " + "x" * 200):
            self.plant("README.md", text + "\n")
            self.silent("docs")
        for text in (long + "xy", f"- {long}", f"1. word\n   {long}", f"word\n{long}{long}\nword"):
            self.plant("README.md", text + "\n")
            self.finds("docs", "more than 100 columns")

    def test_docs_columns_of_comments(self):
        long = "word " * 20
        head = "/* SPDX-License-Identifier: Apache-2.0 */\n"
        for text in (f"int a; /* {long} */", f'char a[] = "{long}{long}";', f"/*\n * {long}  table {long}\n */",
                     f"/*\n * {long[:-5]}\n */"):
            self.plant("lib/os/disk.c", head + text + "\n")
            self.silent("docs")
        for text in (f"/* {long} */", f"/*\n * {long}\n */", f"/*\n * - word\n *   {long}\n */",
                     f"\t/*\n\t * word\n\t * {long[:-5]}\n\t */", f"/*\n * word  {long}\n */"):
            self.plant("lib/os/disk.c", head + text + "\n")
            self.finds("docs", "more than 100 columns")

    def test_docs_tree(self):
        self.plant("README.md", CLEAN["README.md"] + "| `lib/gone/` | nothing |\n")
        self.finds("docs", "README.md:6: lib/gone/ is not there")

    def style_rule(self, rule, text, path="lib/os/disk.c"):
        with self.subTest(rule=rule, text=text):
            before = CLEAN.get(path)
            self.plant(path, text)
            self.finds("style", f"{path}:1: {rule}: ")
            # Excused in place, with a reason.
            comment = "# " if path.endswith(".sh") else "/* */ "
            excuse = f"check-style allows {rule}: planted"
            self.plant(path, text.rstrip("\n") + (f" # {excuse}\n" if comment == "# " else f" /* {excuse} */\n"))
            self.silent("style")
            if before is None and not path.startswith("lib/"):
                os.remove(os.path.join(self.root, path))
            else:
                self.plant(path, before or "")

    def test_style_rules(self):
        self.plant("lib/wire/disk.c", "")
        self.plant("tests/unit/lib/wire/test_disk.c", "")
        self.style_rule("print", "void f(void) { printf(); }\n")
        self.style_rule("print", "void f(void) { syslog(1); }\n")
        for path in ("lib/wire/disk.c", "stage1-kvm/vsock/x.c", "images/store/x.c"):
            self.style_rule("assert", "void f(int n) { assert(n); }\n", path)
        for call in ("strcpy(a, b)", "sprintf(a, b)", "atoi(a)", "system(a)", "alloca(1)", "strtok(a, b)",
                     "popen(a, b)", "gets(a)", "strcat(a, b)", "strtol(a, b, 0)"):
            self.style_rule("banned", f"void f(void) {{ {call}; }}\n")
        for call in ("accept(s, a, b)", "pipe(p)", "dup(1)", "open(p, O_RDONLY)", "openat(d, p, (O_RDONLY))",
                     "socket(AF_UNIX, SOCK_STREAM, 0)", "epoll_create1(0)", "memfd_create(p, 0)",
                     "accept4(s, a, b, SOCK_NONBLOCK)", "pipe2(p, O_NONBLOCK)", 'fopen(p, "r")',
                     "fcntl(1, F_DUPFD, 3)", "recvmsg(s, &m, 0)"):
            self.style_rule("cloexec", f"int f(void) {{ return {call}; }}\n")
        self.style_rule("max", "#define DISK_NAME_MAX 17\n")
        self.style_rule("sleep", "void f(void) { usleep(1); }\n", "tests/support/x.c")
        for line in ("sleep 1", "true; sleep 0.1", "while true; do sleep 1; done", "  sleep $x # 'wait'"):
            self.style_rule("sleep", line + "\n", "tests/system/x.sh")
        self.style_rule("path", "/* see /work/" "main/x */\n")
        self.style_rule("left-over", "/* TO" "DO: more */\n")

    def test_style_silent(self):
        self.plant("tests/system/x.sh", "husk run x -- sleep 5\nhusk run y 'true; sleep 3'\n# sleep 1\n")
        self.code(
            'int f(void)\n{\n\t/* printf() and strcpy() */\n\tputs_nothing("printf(x)");\n'
            "\tstatic_assert(1);\n\tint fd = open(p, O_RDONLY | O_CLOEXEC);\n"
            "\tx->open(p, 0);\n\treturn fd;\n}\n\n"
            "/* As the specification says. */\n#define DISK_A_MAX 1\n#define DISK_B_MAX 2\n"
        )
        self.silent("style")

    def test_style_goto(self):
        self.code(function("\tgoto out;\nout:\n\treturn 0;"))
        self.silent("style")
        self.code(function("\tgoto a;\na:\n\tgoto b;\nb:\n\treturn 0;"))
        self.finds("style", "more than one label")
        self.code(function("again:\n\tgoto again;"))
        self.finds("style", "goes backward")
        self.code(function("\tgoto out;\n\tgoto out;\nout:\n\treturn 0;"))
        self.finds("style", "over the budget")

    def test_style_fuzzed(self):
        self.plant("lib/base/thing.h", HEADER.replace("thing_double", "thing_parse"))
        self.finds("style", "thing_parse() is in no fuzz target")
        self.plant("tests/fuzz/thing.c", "int x(void) { return thing_parse(1); }\n")
        self.silent("style")

    def test_style_mirror(self):
        os.remove(os.path.join(self.root, "tests/unit/lib/os/test_disk.c"))
        self.finds("style", "there is no tests/unit/lib/os/test_disk.c")
        self.plant("tests/unit/lib/os/test_disk.c", "")
        self.plant("tests/unit/lib/os/test_moved.c", "")
        self.finds("style", "there is no lib/os/moved to test")

    def test_style_license(self):
        marked = {p: ("" if p.endswith(".md") else
                      "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\n" if p == "tools/hello" else
                      "# SPDX-License-Identifier: Apache-2.0\n" if p.endswith(".txt") else
                      MARK.format("Apache-2.0")) + text for p, text in CLEAN.items()}
        marked["linux/a.patch"] = "SPDX-License-Identifier: GPL-2.0-only\n"
        marked["tests/golden/a"] = "text\n"
        for path, text in marked.items():
            self.plant(path, text)
        self.plant("LICENSE", "text\n")
        os.remove(os.path.join(self.root, ".clang-format"))
        self.silent("style")
        for path in marked:
            if path == "README.md" or path.startswith("tests/golden"):
                continue
            for wrong in ("", "GPL-3.0", "GPL-2.0-only" if path.endswith(".c") else "Apache-2.00"):
                self.plant(path, re.sub(r"SPDX.*", wrong and MARK.format(wrong)[3:-4], marked[path]))
                self.finds("style", f"{path}:1: license: no line")
            self.plant(path, marked[path])

    def test_shell(self):
        self.plant("tools/hello", SCRIPT.replace('"$1"', "$1"))
        self.finds("shell", "tools/hello:3")
        self.plant("tools/hello", SCRIPT.replace("set -euo pipefail\n", ""))
        self.finds("shell", "set -euo pipefail")


class Analysis(unittest.TestCase):
    """The analyzers see a planted bug in a unit of a build directory of its own."""

    def run_check(self, name, code):
        with tempfile.TemporaryDirectory(prefix="husk-test-") as build:
            source = os.path.join(build, "x.c")
            with open(source, "w", encoding="utf-8") as f:
                f.write(code)
            entry = {"directory": build, "file": source, "command": f"gcc -std=gnu17 -I{TOP} -o x.o -c {source}"}
            with open(os.path.join(build, "compile_commands.json"), "w", encoding="utf-8") as f:
                json.dump([entry], f)
            command = [os.path.join(TOP, "tools", "check-" + name)] + ([build] if name == "cppcheck" else [])
            done = subprocess.run(command, env=dict(os.environ, BUILD=build), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            return done.returncode, done.stdout.decode()

    def verdicts(self, name, bad, words):
        status, text = self.run_check(name, bad)
        self.assertEqual(status, 1, text)
        self.assertIn(words, text)
        status, text = self.run_check(name, "int f(const int *p);\nint f(const int *p)\n{\n\treturn *p;\n}\n")
        self.assertEqual(status, 0, text)

    def test_cppcheck(self):
        self.verdicts("cppcheck", "int f(void)\n{\n\tint a[2] = { 0 };\n\treturn a[2];\n}\n", "arrayIndexOutOfBounds")

    def test_tidy(self):
        self.verdicts("tidy", "int f(void)\n{\n\tconst int *p = 0;\n\treturn *p;\n}\n", "NullDereference")


class Commits(unittest.TestCase):
    def verdict(self, message):
        with tempfile.NamedTemporaryFile("w", prefix="husk-test-") as f:
            f.write(message)
            f.flush()
            command = [os.path.join(TOP, "tools/check-commits"), "--hook", f.name]
            return subprocess.run(command, stderr=subprocess.PIPE).returncode

    def test_messages(self):
        self.assertEqual(self.verdict("lib/os: what\n\nWhy it is so.\n"), 0)
        self.assertEqual(self.verdict("lib: what\n\nMeasured: a colon is not a trailer.\n"), 0)
        self.assertEqual(self.verdict("no component\n\nWhy.\n"), 1)
        self.assertEqual(self.verdict("lib: what\n"), 1)
        self.assertEqual(self.verdict("lib: what\n\nFixes: 1234\n# comment\n"), 1)
        self.assertEqual(self.verdict("lib: what\nwhy\n"), 1)
        self.assertEqual(self.verdict("lib: " + "x" * 70 + "\n\nWhy.\n"), 0)
        self.assertEqual(self.verdict("lib: " + "x" * 71 + "\n\nWhy.\n"), 1)


if __name__ == "__main__":
    sys.path.insert(0, os.path.join(TOP, "tools"))
    unittest.main()
