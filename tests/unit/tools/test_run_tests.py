#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/run-tests counts planted tests rightly, and gives a second try to those alone that may have one."""

import datetime
import os
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))

# Fails the first time that it is run.
ONCE = '[ -e "$0.tried" ] || { touch "$0.tried"; echo "FAILED: the first time"; exit 1; }'
ALWAYS = "echo 'FAILED: always'; exit 1"


class RunTests(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.directory = tempfile.TemporaryDirectory()
        self.root = self.directory.name
        self.names = []
        os.makedirs(f"{self.root}/tests/system")
        os.makedirs(f"{self.root}/logs")

    def tearDown(self):
        self.directory.cleanup()

    def restart(self):
        self.tearDown()
        self.setUp()

    def write(self, path, text):
        with open(f"{self.root}/{path}", "w", encoding="utf-8") as f:
            f.write(text)

    def plant(self, name, body, label="system", limit=60):
        """A test that is tests/system/NAME.sh."""
        path = f"tests/system/{name}.sh"
        self.write(path, f"#!/bin/sh\n{body}\n")
        os.chmod(f"{self.root}/{path}", 0o755)
        with open(f"{self.root}/CTestTestfile.cmake", "a", encoding="utf-8") as f:
            test = f"{label}:{name}"
            f.write(f'add_test({test} "{self.root}/{path}")\n')
            f.write(f'set_tests_properties({test} PROPERTIES LABELS "{label}" SKIP_RETURN_CODE 77 TIMEOUT {limit})\n')

    def git(self, *words):
        subprocess.run(
            ["git", "-C", self.root, "-c", "user.name=x", "-c", "user.email=x@example.org", *words],
            check=True, capture_output=True)

    def commit(self):
        """All that is there, twice, so that the last commit changes nothing."""
        self.git("init", "--quiet")
        self.git("add", "tests")
        self.git("commit", "--quiet", "-m", "x")
        self.git("commit", "--quiet", "--allow-empty", "-m", "y")

    def run_tests(self, labels="system"):
        """Exit status, counts as a list, output."""
        done = subprocess.run(
            [f"{TOP}/tools/run-tests", self.root, labels, f"{self.root}/logs/step", "--root", self.root],
            capture_output=True, text=True, check=False)
        with open(f"{self.root}/logs/step.count", encoding="utf-8") as f:
            counts = f.read().split()
        return done.returncode, [int(n) for n in counts], done.stdout + done.stderr

    def read_flaky(self):
        with open(f"{self.root}/logs/flaky", encoding="utf-8") as f:
            return f.read()

    def test_counts(self):
        self.plant("good", "exit 0")
        self.plant("skipped", "exit 77")
        status, counts, _ = self.run_tests()
        self.assertEqual((status, counts), (0, [1, 0, 1, 0]))
        with open(f"{self.root}/logs/times", encoding="utf-8") as f:
            self.assertRegex(f.read(), r"(?m)^[0-9.]+ - system:good, step$")
        self.assertEqual(self.read_flaky(), "")

    def test_fails_always(self):
        self.plant("bad", ALWAYS)
        status, counts, out = self.run_tests()
        self.assertEqual((status, counts), (1, [0, 1, 0, 0]))
        self.assertIn("once more, alone: system:bad", out)

    def test_fails_the_first_time(self):
        self.plant("good", "exit 0")
        self.plant("once", ONCE)
        self.plant("again", ONCE)
        status, counts, out = self.run_tests()
        self.assertEqual((status, counts), (0, [1, 0, 0, 2]))
        self.assertIn("FLAKY system:once (not listed: mend it in the next change): FAILED: the first time", out)
        self.assertIn("FLAKY system:again", self.read_flaky())

    def test_one_of_two_is_flaky(self):
        self.plant("bad", ALWAYS)
        self.plant("once", ONCE)
        status, counts, _ = self.run_tests()
        self.assertEqual((status, counts), (1, [0, 1, 0, 1]))

    def expect_no_second_try(self, reason, failed=1, labels="system"):
        status, counts, out = self.run_tests(labels)
        self.assertEqual((status, counts[1], counts[3]), (1, failed, 0))
        self.assertIn(f"not run again: {reason}", out)

    def test_leaves_something(self):
        for text in "-- left behind: qemu", "AddressSanitizer: x", "a.c:1: runtime error: x", "[ 1.0] BUG: x", "Oops: x":
            self.restart()
            self.plant("once", f"echo '{text}'\n{ONCE}")
            self.expect_no_second_try("system:once: its output has")

    def test_hangs(self):
        self.plant("once", ONCE.replace("exit 1", "exec sleep 60"), limit=1)
        self.expect_no_second_try("system:once: it hung")

    def test_three(self):
        for name in "a", "b", "c":
            self.plant(name, ONCE)
        self.expect_no_second_try("3 tests failed", failed=3)

    def test_of_other_kinds(self):
        self.plant("once", ONCE, label="unit")
        self.expect_no_second_try("only system tests", labels="unit|fuzz")

    def test_listed(self):
        self.plant("once", ONCE)
        today = datetime.date.today()
        self.write("tests/known-flaky", f"# a comment\nsystem:once {today} a cause\n")
        status, counts, out = self.run_tests()
        self.assertEqual((status, counts), (0, [0, 0, 0, 1]))
        self.assertIn("FLAKY system:once (listed)", out)

    def test_listed_past_its_date(self):
        self.plant("once", ONCE)
        yesterday = datetime.date.today() - datetime.timedelta(days=1)
        self.write("tests/known-flaky", f"system:once {yesterday} a cause\n")
        self.expect_no_second_try(f"system:once: accepted as flaky until {yesterday}")

    def test_touched(self):
        for path in "tests/system/once.sh", "tests/system/lib.sh", "tests/system/net_lib.sh", "tests/support/typist.py":
            self.restart()
            os.makedirs(f"{self.root}/tests/support")
            self.plant("once", ONCE)
            self.commit()
            with open(f"{self.root}/{path}", "a", encoding="utf-8") as f:
                f.write("# touched\n")
            self.git("add", "tests")
            self.git("commit", "--quiet", "-m", "z")
            self.expect_no_second_try("system:once: this change touches it")

    def test_untouched(self):
        self.plant("once", ONCE)
        self.commit()
        self.write("tests/system/other.sh", "")
        status, counts, _ = self.run_tests()
        self.assertEqual((status, counts), (0, [0, 0, 0, 1]))

    def run_by(self, name, *program):
        """Has a planted test run by a program."""
        with open(f"{self.root}/CTestTestfile.cmake", encoding="utf-8") as f:
            text = f.read()
        script = f'"{self.root}/tests/system/{name}.sh"'
        words = " ".join(f'"{word}"' for word in program)
        self.write("CTestTestfile.cmake", text.replace(f":{name} {script}", f":{name} {words} {script}"))

    def test_what_is_run_by_another(self):
        self.plant("once", ONCE)
        self.run_by("once", "/bin/sh")
        self.commit()
        with open(f"{self.root}/tests/system/once.sh", "a", encoding="utf-8") as f:
            f.write("# touched, not committed\n")
        self.expect_no_second_try("system:once: this change touches it")

    def test_processor_time(self):
        self.plant("good", "exit 0")
        self.run_by("good", f"{TOP}/tools/cpu-time", "system:good")
        for _ in range(2): # what the first run has left says nothing
            self.assertEqual(self.run_tests()[1], [1, 0, 0, 0])
        with open(f"{self.root}/logs/times", encoding="utf-8") as f:
            self.assertRegex(f.read(), r"\A([0-9.]+ [0-9.]+ system:good, step\n){2}\Z")
        with open(f"{self.root}/logs/step.cpu", encoding="utf-8") as f:
            self.assertRegex(f.read(), r"\A[0-9.]+ [0-9.]+ system:good\n\Z")

    def test_nothing_to_run(self):
        self.plant("good", "exit 0", label="unit")
        status, _, _ = self.run_tests()
        self.assertEqual(status, 1)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
