#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""tests/tiers is whole, and tools/tiers finds what is not. usage: test_tiers.py BUILD [UNITTEST-OPTION...]"""

import importlib.machinery
import importlib.util
import os
import sys
import unittest

sys.dont_write_bytecode = True
TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
LOADER = importlib.machinery.SourceFileLoader("tiers", os.path.join(TOP, "tools/tiers"))
tiers = importlib.util.module_from_spec(importlib.util.spec_from_loader("tiers", LOADER))
LOADER.exec_module(tiers)

BUILD = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else os.path.join(TOP, "build")

CHECK = """readonly FIRST='build'
readonly GATE_VM='system lab'
readonly GATE_COMPILE='unit'
readonly FULL_VM='system system-more lab'
readonly FULL_COMPILE="$GATE_COMPILE fuzz"
step_build() {
    compile dev build
}
step_unit() {
    tests build 'unit|fuzz'
}
step_fuzz() {
    fuzz_all
}
step_lab() {
    lab_tests gate
}
step_system() {
    tests build system
}
step_system-more() {
    built && tests build system-more
}
step_soak() {
    tests build soak
}
"""

TABLE = """# a comment
out   ns             clock
out   libvirt-embed  clock

gate  vm  run    10
full  vm  clock   5
gate  ns  run     2
full  libvirt-embed  run.short  7
gate  lab/user/q35  run@packaged  4
full  lab/user/q35  vsock  4
full  -  crash:durable  4
"""

CTESTS = {
    "unit:x": {"unit"},
    "system:run": {"system"},
    "system:clock": {"system-more"},
    "system:ns/run": {"system"},
    "system:libvirt-embed/run.short": {"system-more"},
    "crash:durable": {"system-more"},
}


class Tiers(unittest.TestCase):
    def findings(self, table=TABLE, scripts=("run", "clock"), ctests=None):
        return list(tiers.findings(table, set(scripts), {"vsock"}, ctests or CTESTS, CHECK))

    def test_this_tree(self):
        self.assertEqual(tiers.check_tree(BUILD), [])

    def test_clean(self):
        self.assertEqual(self.findings(), [])

    def expect(self, finding, **kinds):
        self.assertEqual(self.findings(**kinds), [finding])

    def test_lines(self):
        for line in "never  vm  x  1", "gate  arm  x  1", "gate  vm  x", "gate  vm  x  1.5", "out  arm  run", "out  ns":
            self.expect(f"no line of such a table: {line}", table=f"{TABLE}{line}\n")
        self.expect("twice: ns run", table=f"{TABLE}gate  ns  run  3\n")

    def test_text_without_a_row(self):
        new = ["no row has tests/system/new.sh"] + [f"new neither runs with {pod} nor is left out" for pod in tiers.WHOLE]
        self.assertEqual(self.findings(scripts=("run", "clock", "new")), new)

    def test_left_out(self):
        self.expect("run is left out of ns, and is not", table=f"{TABLE}out  ns  run\n")
        self.expect("gone is left out of ns, and is no test", table=f"{TABLE}out  ns  gone\n")

    def test_lab(self):
        self.expect("no test of the lab: gone", table=f"{TABLE}full  lab/user/q35  gone  3\n")

    def test_row_without_a_ctest(self):
        self.expect("no ctest: crash:gone", table=f"{TABLE}full  -  crash:gone  3\n")

    def test_ctest_without_a_row(self):
        self.expect("not in the table: release:x", ctests=dict(CTESTS, **{"release:x": {"system"}}))

    def test_not_in_full(self):
        self.expect("tools/check full does not run soak:x", ctests=dict(CTESTS, **{"soak:x": {"soak"}}))

    def test_other_tier(self):
        wrong = "system:run is in the tier gate, tools/check has it in another"
        self.expect(wrong, ctests=dict(CTESTS, **{"system:run": {"system-more"}}))


if __name__ == "__main__":
    unittest.main()
