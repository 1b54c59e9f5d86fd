#!/usr/bin/python3
# check-style allows mirror: tools/archive.sh is a library of shell functions, tools/pins and tools/install-deps are its like
# SPDX-License-Identifier: Apache-2.0
"""What is pinned is downloaded, whatever becomes of the archive. apt is real, the archive is one that is made here."""

import functools
import hashlib
import http.server
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest

TOP = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
SOURCE = "linux-source-6.12"
CLOUD = "linux-image-6.12.{}+deb12-cloud-amd64"
LOOK = """
set -euo pipefail
die() { echo "died: $*"; exit 1; }
say() { echo "$*"; }
. tools/archive.sh
pin_read "$1"
"""


class Handler(http.server.SimpleHTTPRequestHandler):
    failures = {}  # end of a path: how many times it is not there yet

    def do_GET(self):
        del self.headers["If-Modified-Since"]  # whose times are whole seconds
        for end, times in self.failures.items():
            if self.path.endswith(end) and times > 0:
                self.failures[end] -= 1
                self.send_error(404)
                return
        super().do_GET()

    def log_message(self, *args):  # pylint: disable=arguments-differ
        pass


class Archive(unittest.TestCase):
    def setUp(self):
        self.root = tempfile.mkdtemp(prefix="husk-test-")
        self.addCleanup(shutil.rmtree, self.root)
        for path in "tools", "kernel-config", "www", "state/lists/partial", "cache/archives/partial", "got":
            os.makedirs(f"{self.root}/{path}")
        for tool in "archive.sh", "pins":
            shutil.copy(f"{TOP}/tools/{tool}", f"{self.root}/tools/{tool}")
        Handler.failures = {}
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=f"{self.root}/www"))
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.write("sources.list", f"deb [trusted=yes] http://127.0.0.1:{self.server.server_port} ./\n")
        self.write("status", "")
        self.write("apt.conf", f"""
            Dir::State "{self.root}/state"; Dir::State::status "{self.root}/status"; Dir::Cache "{self.root}/cache";
            Dir::Etc::sourcelist "{self.root}/sources.list"; Dir::Etc::sourceparts "/dev/null"; APT::Architecture "amd64";
            Acquire::Retries "0"; APT::Sandbox::User "root"; Acquire::Languages "none"; Acquire::http::Proxy "DIRECT";
            Dir::Cache::srcpkgcache ""; Dir::Cache::pkgcache "";
        """)

    def write(self, path, text):
        with open(f"{self.root}/{path}", "w", encoding="utf-8") as f:
            f.write(text)

    def publish(self, *packages):
        """An archive that has these (name, version), and nothing else. Returns the hash of the last."""
        index, digest = "", ""
        for old in os.listdir(f"{self.root}/www"):
            os.unlink(f"{self.root}/www/{old}")
        for name, version in packages:
            content = f"{name} {version}".encode()
            digest = hashlib.sha256(content).hexdigest()
            file = f"{name}_{version}.deb"
            with open(f"{self.root}/www/{file}", "wb") as f:
                f.write(content)
            index += (f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: husk\nDescription: a kernel\n"
                      f"Filename: ./{file}\nSize: {len(content)}\nSHA256: {digest}\n\n")
        self.write("www/Packages", index)
        return digest

    def run_it(self, *command):
        environment = dict(os.environ, APT_CONFIG=f"{self.root}/apt.conf")
        done = subprocess.run(command, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        return done.returncode, done.stdout

    def update(self):
        self.assertEqual(self.run_it("apt-get", "-q", "update")[0], 0)

    def download(self, name="small"):
        """Exit status, output; its last line is what was downloaded."""
        return self.run_it("bash", "-c", LOOK + 'pin_download got; cmp "$deb" "www/${deb##*/}"; echo "$package $version"', "-", name)

    def pin(self, digest, package=SOURCE, version="6.12.5-1", name="small"):
        self.write("kernel-config/pins", f"# a comment\n{name} {package} {version} {digest}\n")

    def expect(self, status, result, last, *texts):
        self.assertEqual(result[0], status, result[1])
        self.assertEqual(result[1].splitlines()[-1], last, result[1])
        for text in texts:
            self.assertIn(text, result[1])

    def test_pin(self):
        self.pin(self.publish((SOURCE, "6.12.9-1"), (SOURCE, "6.12.5-1")))
        self.update()
        result = self.download()
        self.expect(0, result, f"{SOURCE} 6.12.5-1")
        self.assertNotIn("warning", result[1])
        # What is there already needs no archive.
        self.server.shutdown()
        self.assertEqual(self.download(), (0, f"{SOURCE} 6.12.5-1\n"))

    def test_without_lists(self):
        self.pin(self.publish((SOURCE, "6.12.5-1")))
        self.expect(0, self.download(), f"{SOURCE} 6.12.5-1", "apt-get update")

    def test_dropped(self):
        # The lists say so; or they are older than that; or than the pin.
        for before in (SOURCE, "6.12.9-1"), (SOURCE, "6.12.5-1"), (SOURCE, "6.12.2-1"):
            self.pin(self.publish(before))
            self.update()
            self.publish((SOURCE, "6.12.9-1"))
            self.expect(0, self.download(), f"{SOURCE} 6.12.9-1", f"warning: the archive does not have {SOURCE}=6.12.5-1 any more: "
                        f"taking {SOURCE}=6.12.9-1")

    def test_lists_older_than_the_pin(self):
        self.publish((SOURCE, "6.12.2-1"))
        self.update()
        self.pin(self.publish((SOURCE, "6.12.2-1"), (SOURCE, "6.12.5-1")))
        result = self.download()
        self.expect(0, result, f"{SOURCE} 6.12.5-1")
        self.assertNotIn("warning", result[1])

    def test_series(self):
        # Of the same line and flavour only; the newest by version, not by letters.
        self.publish((CLOUD.format(9), "6.12.9-1"), (CLOUD.format(10), "6.12.10-1"), ("linux-image-6.13.1+deb12-cloud-amd64", "6.13.1-1"),
                     ("linux-image-6.12.11+deb12-amd64", "6.12.11-1"), (CLOUD.format(12) + "-dbg", "6.12.12-1"))
        self.pin("0", CLOUD.format(5), name="packaged")
        self.expect(0, self.download("packaged"), f"{CLOUD.format(10)} 6.12.10-1")

    def test_nothing_of_the_series(self):
        self.publish(("linux-source-6.13", "6.13.1-1"))
        self.pin("0")
        self.expect(1, self.download(), f"died: {SOURCE}=6.12.5-1: apt knows no package {SOURCE}: apt-get update, or add Debian's archive")

    def test_other_bytes(self):
        self.publish((SOURCE, "6.12.5-1"))
        self.pin("0" * 64)
        result = self.download()
        self.assertEqual(result[0], 1)
        self.assertRegex(result[1], r"died: .*: SHA-256 differs from the pin: .* do not trust the archive\n$")
        self.assertNotIn("try 1 of 3", result[1])

    def test_a_mirror_in_between(self):
        self.pin(self.publish((SOURCE, "6.12.5-1")))
        Handler.failures = {".deb": 2}
        self.expect(0, self.download(), f"{SOURCE} 6.12.5-1", "try 2 of 3")
        shutil.rmtree(f"{self.root}/got")
        Handler.failures = {".deb": 3}
        self.expect(1, self.download(), f"died: {SOURCE}=6.12.5-1: cannot download it (above): check the network, and the proxy if there is one",
                    "try 3 of 3")
        self.assertEqual([f for f in os.listdir(f"{self.root}/got") if f.endswith(".deb")], [])

    def test_without_network(self):
        self.pin(self.publish((SOURCE, "6.12.5-1")))
        self.update()
        self.server.shutdown()
        self.server.server_close()
        self.expect(1, self.download(), f"died: {SOURCE}=6.12.5-1: cannot download it (above): check the network, and the proxy if there is one",
                    "Connection refused")

    def test_no_pin(self):
        self.pin("0")
        self.expect(1, self.download("large"), 'died: tools/../kernel-config/pins: has no line "large": restore the file')

    def test_pins(self):
        digest = self.publish((CLOUD.format(9), "6.12.9-1"), (SOURCE, "6.12.9-1"))
        self.update()
        self.write("kernel-config/pins", f"# a comment\npackaged {CLOUD.format(5)} 6.12.5-1 00\nsmall {SOURCE} 6.12.9-1 {digest}\n")
        self.assertEqual(self.run_it("tools/pins"), (0, f"warning: kernel-config/pins: packaged is {CLOUD.format(5)}=6.12.5-1, "
                                                     f"the newest is {CLOUD.format(9)}=6.12.9-1: tools/pins update, then tools/check full\n"))
        self.expect(0, self.run_it("tools/pins", "update"), f"pins: packaged: {CLOUD.format(5)}=6.12.5-1 becomes {CLOUD.format(9)}=6.12.9-1")
        self.assertEqual(self.run_it("tools/pins", "check"), (0, ""))
        with open(f"{self.root}/kernel-config/pins", encoding="utf-8") as f:
            self.assertEqual(f.readline(), "# a comment\n")
        self.expect(0, self.download("packaged"), f"{CLOUD.format(9)} 6.12.9-1")
        self.assertEqual(self.run_it("tools/pins", "upgrade")[0], 2)

    def test_pins_of_nothing(self):
        self.publish()
        self.pin("0")
        self.assertEqual(self.run_it("tools/pins"), (0, f"warning: kernel-config/pins: small: apt knows no package {SOURCE}: "
                                                     "apt-get update, or add Debian's archive\n"))


if __name__ == "__main__":
    if not shutil.which("apt-get"):
        print("SKIPPED: no apt here")
        sys.exit(77)
    sys.dont_write_bytecode = True
    unittest.main()
