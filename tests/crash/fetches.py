# SPDX-License-Identifier: Apache-2.0
"""Verbs of tests/crash/matrix that fetch images from elsewhere: a registry, a web server, signed files.

The servers are tests/crash/sources; husk runs in their network. Each verb says what it fetches and what the store has
before. Afterwards, besides all that trial.py looks at:

  - what was in the store under that reference is there, or what is to be fetched; never nothing,
  - a fetch that says it succeeded did: that image is what the reference stands for,
  - no image is there but those that were or are to be fetched, none that the keys of the configuration do not vouch for,
  - image gc, without another fetch before, removes what the interrupted one left.
"""

import json
import os
import re
import shutil
import subprocess

from trial import HUSK, INJECT, LIMIT, TOP, Failure, Trial, busybox_image, check_collected_store, husk, must

AGAIN, CHANGING, PARTIAL = (f"https://localhost/{name}.tar" for name in ("again", "changing", "partial"))
EMPTY = ("oci", "images", "refs", "trees")  # what makes up the images of a data directory


class Sources:
    """The servers, from start() to stop()."""

    def start(self):
        self.process = subprocess.Popen(
            ["unshare", "--net", "--mount", os.path.join(TOP, "tests/crash/sources")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        self.path = self.process.stdout.readline().strip()
        if not self.path:
            raise SystemExit(self.process.wait())  # it said why; 77: cannot run here
        self.registry = open(os.path.join(self.path, "registry")).read().strip()
        of_process = f"/proc/{self.process.pid}/ns"
        # husk behind this is in the network of the servers.
        self.prefix = ["nsenter", f"--net={of_process}/net", f"--mount={of_process}/mnt", "--"]
        passed = {k: v for k, v in os.environ.items() if k in ("PATH", "TMPDIR", "LANG")}
        self.env = passed | {
            "HOME": os.path.join(self.path, "home"),
            "XDG_RUNTIME_DIR": os.path.join(self.path, "run"),
            "SSL_CERT_FILE": os.path.join(self.path, "ca.pem"),
        }
        self.config = os.path.join(self.path, "config")

    def stop(self):
        self.process.stdin.close()
        self.process.wait()

    def move(self):
        """The moving tag and the changing file become other images."""
        print("move", file=self.process.stdin, flush=True)
        if self.process.stdout.readline() != "moved\n":
            raise SystemExit("matrix: the servers have ended")

    def file(self, name):
        return os.path.join(self.path, name)

    def options(self, reference):
        """husk's options for a reference. The registry has no TLS."""
        insecure = ["--insecure-options=tls"] if reference.startswith("docker:") else []
        return [f"--local-config={self.config}", *insecure]

    def run(self, *command):
        """A command in the network of the servers."""
        return subprocess.run(
            [*self.prefix, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, env=self.env
        )

    def fetch(self, data, reference, *options):
        return self.run(*HUSK, *self.options(reference), f"--dir={data}", "fetch", "--full", *options, reference)

    def answers(self, path):
        """The statuses that the web server answered with when it was asked for a path."""
        return re.findall(rf'"GET {re.escape(path)} [^"]*" (\d+)', open(self.file("access.log")).read())


def id_of(record):
    """What people call the image: by half of the key if it is an appc image's."""
    key = json.load(open(record)).get("key")
    return "sha512-" + key[:64] if key else "sha256-" + os.path.basename(record).removesuffix(".json")


def images_of(data):
    """The IDs of the images that a store has."""
    path = os.path.join(data, "images")
    names = os.listdir(path) if os.path.isdir(path) else ()
    return {id_of(os.path.join(path, name)) for name in names if not name.startswith(".")}


class FetchTemplate:
    """A data directory with a pod, and with what was fetched before the images of the servers moved."""

    image = tree = tree_id = None

    def __init__(self, work):
        self.sources = Sources()
        self.sources.start()
        try:
            self.make(work)
        except BaseException:
            self.sources.stop()
            raise

    def close(self):
        self.sources.stop()

    def make(self, work):
        self.path, self.scratch = os.path.join(work, "fetch-template"), os.path.join(work, "scratch")
        self.rest = os.path.join(work, "rest")
        os.mkdir(self.path)
        self.uuids = {"bystander": must(self.path, "prepare", busybox_image(), "--", "true")}
        self.leave_rest(os.path.join(work, "killed"))
        self.old, self.new = {}, {}
        registry = f"docker://{self.sources.registry}"
        self.fixed, self.moving = f"{registry}/fixed:1", f"{registry}/moving:1"
        for reference in (self.moving, CHANGING, AGAIN):
            self.old[reference] = self.must_fetch(self.path, reference)
        self.sources.move()
        subprocess.run(["cp", "-a", self.path, self.scratch], check=True)
        self.check_sources()

    def must_fetch(self, data, reference):
        r = self.sources.fetch(data, reference)
        if r.returncode != 0:
            raise SystemExit(f"matrix: fetch {reference}: exit status {r.returncode}: {r.stderr.strip()}")
        return r.stdout.strip()

    def expected(self, reference):
        """The image that a fetch gets now."""
        if reference not in self.new:
            self.new[reference] = self.must_fetch(self.scratch, reference)
        return self.new[reference]

    def leave_rest(self, data):
        """Keeps what a download leaves that is killed in the middle of the body."""
        os.mkdir(data)
        place = [INJECT, "--at=0:pwrite64:3", "pwrite64", "--"]
        self.sources.run(*place, *HUSK, *self.sources.options(PARTIAL), f"--dir={data}", "fetch", PARTIAL)
        (name,) = os.listdir(os.path.join(data, "tmp"))
        there, whole = (os.path.getsize(p) for p in (f"{data}/tmp/{name}/download", self.sources.file("www/partial.tar")))
        if not 0 < there < whole:
            raise SystemExit(f"matrix: {there} of {whole} bytes are no partial download")
        os.rename(os.path.join(data, "tmp"), self.rest)

    def check_sources(self):
        """The verbs do what they are called."""
        subprocess.run(["cp", "-a", f"{self.rest}/.", os.path.join(self.scratch, "tmp")], check=True)
        for reference, status in ((PARTIAL, "206"), (AGAIN, "304"), (CHANGING, "200")):
            self.expected(reference)
            answers = self.sources.answers(reference.removeprefix("https://localhost"))
            if answers[-1] != status:
                raise SystemExit(f"matrix: {reference}: answers {answers}, not {status} at the end")
        for reference in (self.moving, CHANGING):
            if self.expected(reference) == self.old[reference]:
                raise SystemExit(f"matrix: {reference} has not changed")


class FetchTrial(Trial):
    """One fetch, and what the store may have after it."""

    inject_options = ("--wait", "--no-reading")

    def __init__(self, template, work):
        super().__init__(template, work)
        self.template, self.sources = template, template.sources
        self.prefix, self.env = self.sources.prefix, self.sources.env

    def empty(self):
        """As on a host that has no image."""
        for name in EMPTY:
            shutil.rmtree(os.path.join(self.data, name))
        return self

    def resume(self):
        """With the rest of a download."""
        subprocess.run(["cp", "-a", f"{self.template.rest}/.", os.path.join(self.data, "tmp")], check=True)
        return self

    def get(self, reference, *dependencies):
        self.had = self.template.old.get(reference)
        self.want = self.template.expected(reference)
        return self.begin(reference, {self.want, *map(self.template.expected, dependencies)})

    def get_file(self, name, *dependencies):
        return self.get(self.sources.file(name), *dependencies)

    def refuse(self, name):
        """What must not be accepted, whatever goes wrong."""
        self.had = self.want = None
        return self.begin(self.sources.file(name), set())

    def begin(self, reference, new):
        self.fetched, self.allowed = reference, images_of(self.data) | new
        self.options = self.sources.options(reference)
        return ["fetch", "--full", reference]

    def check_outcome(self, r):
        self.check_trust()
        if r.returncode == 0 and r.stdout.strip() != (self.want or ""):
            raise Failure(f"fetched {r.stdout.strip()!r} instead of {self.want}")
        self.check_known(r.returncode == 0)
        self.check_gc_alone()

    def check_known(self, succeeded):
        """What was fetched from elsewhere is still what the reference stands for."""
        if self.fetched.startswith("/") or not (succeeded or self.had):
            return
        r = self.sources.fetch(self.data, self.fetched, "--pull-policy=never")
        if r.returncode != 0 or r.stdout.strip() not in ({self.want} if succeeded else {self.had, self.want}):
            raise Failure(f"after success ({succeeded}) the reference stands for {r.stdout.strip()!r}: {r.stderr.strip()}")

    def check_trust(self):
        strangers = images_of(self.data) - self.allowed
        if strangers:
            raise Failure(f"images that nobody asked for: {strangers}")
        for where in ("images", "refs"):
            path = os.path.join(self.data, where)
            for name in os.listdir(path) if os.path.isdir(path) else ():
                if not name.startswith(".") and json.load(open(os.path.join(path, name))).get("unverified"):
                    raise Failure(f"{where}/{name} was not verified")

    def check_gc_alone(self):
        """What image gc makes of it if it comes before the next fetch."""
        copy = self.data + ".copy"
        shutil.rmtree(copy, ignore_errors=True)
        subprocess.run(["cp", "-a", "--sparse=always", self.data, copy], check=True)
        r = husk(copy, "image", "gc", "--grace-period=0")
        if r.returncode != 0 or r.stderr:
            raise Failure(f"image gc before the next fetch: {r.returncode}: {r.stderr.strip()}")
        check_collected_store(copy)

    def collect(self):
        super().collect()
        if self.data in open(f"/proc/{self.sources.process.pid}/mountinfo").read():
            raise Failure("left: a mount")

    def check_fetched(self):
        r = self.sources.fetch(self.data, self.fetched)
        self.check_trust()
        if self.want is None:
            if r.returncode != 254 or "signature made by unknown entity" not in r.stderr:
                raise Failure(f"the next fetch: {r.returncode}: {r.stderr.strip()}")
            return
        if r.returncode != 0 or r.stdout.strip() != self.want:
            raise Failure(f"the next fetch: {r.returncode}: {r.stdout.strip()!r} {r.stderr.strip()}")
        self.check_verifies(self.want)


VERBS = {
    "fetch docker": lambda t: t.empty().get(t.template.fixed),
    "fetch docker (moved tag)": lambda t: t.get(t.template.moving),
    "fetch http": lambda t: t.empty().get("https://localhost/image.tar"),
    "fetch http (resume)": lambda t: t.empty().resume().get(PARTIAL),
    "fetch http (again)": lambda t: t.get(AGAIN),
    "fetch http (changed)": lambda t: t.get(CHANGING),
    "fetch aci": lambda t: t.empty().get_file("signed.aci"),
    "fetch aci (forged)": lambda t: t.empty().refuse("forged.aci"),
    "fetch aci (dependency)": lambda t: t.empty().get_file("top.aci", "localhost/base"),
    "fetch archive": lambda t: t.empty().get_file("archive.tar.gz"),
}
