#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tools/cpu-time ends as its command does, and counts what all descendants of it have used."""

import os
import signal
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
# Uses the processor for half a second.
WORK = "import time\nwhile time.process_time() < 0.5: pass"


class CpuTime(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.file = f"{self.directory.name}/times"

    def run_it(self, *command, file=None):
        environment = {k: v for k, v in os.environ.items() if k != "HUSK_CPU_TIMES"}
        if file:
            environment["HUSK_CPU_TIMES"] = file
        return subprocess.run([f"{TOP}/tools/cpu-time", "name", *command], env=environment, check=False, capture_output=True)

    def used(self):
        """Processor-seconds by the only line."""
        with open(self.file, encoding="utf-8") as f:
            _, seconds, name = f.read().split()
        self.assertEqual(name, "name")
        return float(seconds)

    def test_exit_status(self):
        for file in None, self.file:
            self.assertEqual(self.run_it("sh", "-c", "exit 7", file=file).returncode, 7)
            self.assertEqual(self.run_it("sh", "-c", "kill -TERM $$", file=file).returncode, -signal.SIGTERM)
            self.assertEqual(self.run_it("sh", "-c", "kill -KILL $$", file=file).returncode, -signal.SIGKILL)

    def test_counts_children(self):
        self.assertEqual(self.run_it(sys.executable, "-c", WORK, file=self.file).returncode, 0)
        self.assertGreaterEqual(self.used(), 0.5)

    def test_counts_orphans(self):
        # What is adopted is also reaped, so that the command sees it go.
        orphan = 'pid=$(setsid python3 -c "$1" >/dev/null & echo $!); while kill -0 $pid; do sleep 0.05; done; exit 0'
        self.assertEqual(self.run_it("sh", "-c", orphan, "sh", WORK, file=self.file).returncode, 0)
        self.assertGreaterEqual(self.used(), 0.5)

    def test_does_not_wait_for_orphans(self):
        done = self.run_it("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!", file=self.file)
        os.kill(int(done.stdout), signal.SIGKILL)
        self.assertEqual(done.returncode, 0)

    def test_usage(self):
        self.assertIn(b"usage", self.run_it().stderr)


if __name__ == "__main__":
    unittest.main()
