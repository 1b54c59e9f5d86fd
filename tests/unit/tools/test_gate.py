#!/usr/bin/python3
# check-style allows mirror: it is about tools/check, test_check about tools/check-*
# SPDX-License-Identifier: Apache-2.0
"""tools/check tells the truth about its steps, whichever lane they are in. What the steps call is planted."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

# What a planted program does is in the file of its name below "does": a shell script.
STUB = """#!/bin/bash
name=${0##*/}
echo "$name $*" >>called
[ ! -e "does/$name" ] || . "does/$name" "$@"
"""
STUBS = ("bin/cmake", "tools/install-deps", "tools/pins", "tools/run-tests", "tools/check-commits", "tools/check-tidy", "tools/check-cppcheck",
         "tests/kvm-lab/system-tests", "tests/crash/matrix", "tests/crash/power-cut")
LIBRARY = "busybox_image() { :; }\ndebian_image() { :; }\nservices_image() { :; }\ndatabase_image() { :; }\n"
# Every run of tests passes with two.
TWO = 'echo "2 0 0 0" >"$5.count"; echo "1.5 - a:test, x" >>build/check-logs/times'


class Gate(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="husk-test-")
        self.addCleanup(shutil.rmtree, self.root)
        for path in STUBS:
            self.write(path, STUB, 0o755)
        for path in "tools/check", "tools/cpu-time":
            shutil.copy(os.path.join(TOP, path), os.path.join(self.root, path))
        self.write("tests/system/lib.sh", LIBRARY)
        self.does("run-tests", TWO)
        self.does("system-tests", "echo PASS here a 3 s")
        self.write("build-fuzz/fuzz/fuzz-x", "#!/bin/sh\necho stat::number_of_executed_units: 7\n", 0o755)

    def write(self, path, text, mode=0o644):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)

    def does(self, name, script):
        self.write(f"does/{name}", script + "\n")

    def check(self, *words, ci=False):
        """Exit status, numbers of the last line, output."""
        environment = dict(os.environ, PATH=f"{self.root}/bin:{os.environ['PATH']}", CI="true" if ci else "", JOBS="1")
        done = subprocess.run(
            [f"{self.root}/tools/check", *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False)
        last = done.stdout.splitlines()[-1] if done.stdout else ""
        return done.returncode, [int(n) for n in re.findall(r"\d+", last)], done.stdout

    def called(self):
        with open(f"{self.root}/called", encoding="utf-8") as f:
            return f.read()

    def test_gate(self):
        status, counts, out = self.check()
        # Five of its 14 steps run two tests each.
        self.assertEqual((status, counts), (0, [5 * 2 + 9, 0, 0, 0]), out)
        for step in "deps", "build", "style", "unit", "clang", "tidy", "cppcheck", "release", "system", "kvm-lab-smoke":
            self.assertRegex(out, rf"(?m)^{step} +passed +[0-9.]+ s +[0-9.]+ ")
        self.assertIn("system-tests gate", self.called())
        self.assertIn("     1.5        -  a:test, x", out)

    def test_full_has_what_the_gate_has(self):
        _, _, out = self.check()
        steps = re.compile(r"(?m)^(\S+) +passed +[0-9.]+ s ")
        gate = set(steps.findall(out)) - {"kvm-lab-smoke"}
        status, _, out = self.check("full")
        full = set(steps.findall(out))
        self.assertEqual((status, gate - full), (0, set()), out)
        self.assertLessEqual({"system-more", "fuzz-short", "crash-short", "kvm-lab"}, full)
        self.assertIn("system-tests full", self.called())

    def test_a_failure_in_each_lane(self):
        for program, step in ("check-tidy", "tidy"), ("system-tests", "kvm-lab-smoke"):
            self.setUp()
            self.does(program, "echo what is wrong; exit 1")
            status, counts, out = self.check()
            self.assertEqual((status, counts[1]), (1, 1), out)
            self.assertRegex(out, rf"(?m)^{step} +FAILED .*\n    what is wrong")
            self.assertRegex(out, r"(?m)^release +passed")

    def test_failures_of_tests(self):
        self.does("run-tests", 'echo "5 3 0 0" >"$5.count"; [ "$4" != system ]')
        status, counts, out = self.check("system")
        self.assertEqual((status, counts), (1, [5, 3, 0, 0]), out)

    def test_nothing_after_a_failed_build(self):
        self.does("cmake", "[ $1 != --build ]")
        status, counts, out = self.check()
        self.assertEqual((status, counts), (1, [2, 1, 0, 0]), out)
        self.assertNotIn("run-tests", self.called())

    def test_a_warning(self):
        self.does("pins", "echo warning: the world has moved")
        status, counts, out = self.check("guest-kernel", "release")
        self.assertEqual((status, counts), (0, [3, 0, 0, 0]), out)
        self.assertEqual(re.findall(r"(?m)^.*warning.*$", out), ["    warning: the world has moved"])

    def test_a_lane_that_is_killed(self):
        # The parent of the step is cpu-time, whose parent is the lane.
        self.does("check-tidy", "lane=$(ps -o ppid= $(ps -o ppid= $PPID)); kill -KILL $lane")
        status, counts, out = self.check()
        self.assertEqual((status, counts[1]), (1, 1), out)
        self.assertIn("a lane ended early, with status 137; its steps were: commits style ", out)

    def test_skips(self):
        self.does("run-tests", 'echo "1 0 1 0" >"$5.count"')
        self.assertEqual(self.check("unit")[:2], (0, [1, 0, 1, 0]))
        self.assertEqual(self.check("unit", ci=True)[:2], (1, [1, 0, 1, 0]))
        self.does("check-tidy", "echo skip: no such compiler; exit 77")
        status, counts, out = self.check("tidy")
        self.assertEqual((status, counts), (0, [0, 0, 1, 0]))
        self.assertRegex(out, r"(?m)^tidy +skipped .*\n    skip: no such compiler")
        self.assertEqual(self.check("tidy", ci=True)[0], 1)

    def test_flaky(self):
        self.does("run-tests", 'echo "1 0 0 1" >"$5.count"; echo FLAKY a:test: why >>build/check-logs/flaky')
        status, counts, out = self.check("system", ci=True)
        self.assertEqual((status, counts), (0, [1, 0, 0, 1]))
        self.assertIn("\nFLAKY a:test: why\n", out)
        self.does("run-tests", TWO)
        self.assertNotIn("FLAKY", self.check("system")[2])

    def test_lab(self):
        self.does("system-tests", "echo PASS x a 3 s; echo AGAIN x b 4 s: its kernel crashed; echo PASS x b 5 s again; echo SKIP x c 1 s")
        status, counts, out = self.check("kvm-lab-smoke")
        self.assertEqual((status, counts), (0, [1, 0, 1, 1]), out)
        self.assertIn("FLAKY b x (the lab): its kernel crashed", out)
        self.assertIn("     5.0        -  b x, kvm-lab", out)

    def test_usage(self):
        for words in ("nothing",), ("unit", "nothing"), ("--full",), ("quick", "unit"), ("fuzz",), ("fuzz", "0"):
            status, _, out = self.check(*words)
            self.assertEqual(status, 2, out)
            self.assertIn("usage: check", out)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
