# SPDX-License-Identifier: Apache-2.0
"""Verbs of tests/crash/matrix in which a shim of containerd is killed, or fails: this is containerd then.

Traced are `containerd-shim-husk-v2 start`, the server that it leaves, and the processes that do the server's work; not the
pod, which dies in other verbs. Besides all that trial.py looks at:

  - what is answered with an error says why, and nothing hangs; a call that fails does not end the server,
  - who still answers does what failed when it is asked again: kill, wait, delete and shutdown end it,
  - `delete`, as containerd calls it whatever became of the shim, leaves nothing that one gc does not remove, and no pod that
    runs, no process, no socket, no mount, no control group.
"""

import contextlib
import glob
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import threading

from trial import BUILD, FLAVOR, IS_VM, LIMIT, TOP, Failure, Trial, pods_of, processes_in, wait_free, wait_no_processes

sys.path.insert(0, os.path.join(TOP, "tests/support"))

import shim_call  # noqa: E402

SHIM = os.path.join(BUILD, "bin/containerd-shim-husk-v2")
NAMESPACE = "crash"
ANNOTATION = "io.kubernetes.cri."
NOT_FOUND = 5  # of the codes of gRPC
KILL = 9
OWN = [{"type": kind} for kind in ("network", "pid", "ipc")]
OF_SANDBOX = [{"type": kind, "path": f"/proc/1/ns/{kind[:3]}"} for kind in ("network", "pid", "ipc")]
TRUE = {"args": ["true"], "cwd": "/", "user": {"uid": 0, "gid": 0}, "env": ["PATH=/bin"]}
WORK = {**TRUE, "args": ["sh", "-c", "echo begun; exec sleep 1000"]}


class Events:
    """Takes the events of a shim, as containerd does."""

    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(path)
        self.sock.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                conn, _ = self.sock.accept()
                threading.Thread(target=self.serve, args=(conn,), daemon=True).start()

    @staticmethod
    def serve(conn):
        with conn, contextlib.suppress(OSError, EOFError):
            while True:
                stream, _ = shim_call.read_frame(conn)
                conn.sendall(shim_call.frame(stream, 2, b""))

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


class ShimTrial(Trial):
    """A container by itself, or a pod with one, and the shim for it."""

    inject_options = ("--wait", f"--only={os.path.basename(SHIM)}")

    def __init__(self, template, work):
        super().__init__(template, work)
        self.place = os.path.join(work, "containerd")
        shutil.rmtree(self.place, ignore_errors=True)
        os.makedirs(os.path.join(self.place, "etc/paths.d"))
        os.makedirs(os.path.join(self.place, "etc/stage1.d"))
        self.save("etc/paths.d/data.json", {"rktKind": "paths", "rktVersion": "v1", "data": self.data})
        self.configure()
        with open(self.file("options"), "wb") as f:  # of the runtime: where the configuration is
            f.write(shim_call.field(2, self.file("etc").encode()))
        self.save("true.json", TRUE)
        self.address = self.file("containerd.sock")
        self.group = f"husk-crash{os.getpid()}-{os.path.basename(work)}"
        self.events = Events(self.file("events.sock"))
        self.logs = []
        self.bundles = []
        self.failed = []
        self.asked = self.lost = ""  # the last call, and the one without an answer
        self.told_to_end = set()

    def file(self, name):
        return os.path.join(self.place, name)

    def save(self, name, value):
        with open(self.file(name), "w") as f:
            json.dump(value, f)

    def configure(self, **more):
        """Husk, for the shim: which stage1, and what else is said of it."""
        location = os.path.join(BUILD, f"lib/husk/stage1-{FLAVOR}")
        self.save("etc/stage1.d/stage1.json", {"rktKind": "stage1", "rktVersion": "v1", "location": location, **more})

    def add_bundle(self, name, annotations, **members):
        bundle = self.file(name)
        os.makedirs(os.path.join(bundle, "rootfs/bin"))
        shutil.copy(shutil.which("busybox"), os.path.join(bundle, "rootfs/bin/busybox"))
        for applet in "sh", "sleep", "true":
            os.symlink("busybox", os.path.join(bundle, "rootfs/bin", applet))
        annotations = {ANNOTATION + key: value for key, value in annotations.items()}
        linux = {"namespaces": OWN if name == "box" else OF_SANDBOX, "cgroupsPath": f"/{self.group}/{name}"}
        self.save(f"{name}/config.json", {"process": WORK, "annotations": annotations, "linux": linux, **members})
        for fifo in "log", "out", "err", "exec":
            os.mkfifo(os.path.join(bundle, fifo))
            self.logs.append(os.open(os.path.join(bundle, fifo), os.O_RDWR | os.O_NONBLOCK))
        self.bundles.insert(0, name)
        return bundle

    def calls_of(self, name):
        """What is asked of a container in its life."""
        bundle = self.file(name)
        me, process = f"id={name}", (f"id={name}", "exec_id=x")
        return (
            ("Create", me, f"bundle={bundle}", f"stdout={bundle}/out", f"stderr={bundle}/err", f"options=@{self.file('options')}"),
            ("State", me),
            ("Start", me),
            ("Pids", me),
            ("Stats", me),
            ("Exec", *process, f"stdout={bundle}/exec", f"spec=@{self.file('true.json')}"),
            ("Start", *process),
            ("Wait", *process),
            ("Delete", *process),
            ("Pause", me),
            ("Resume", me),
            ("CloseIO", me, "stdin=1"),
        )

    def container(self):
        """One by itself."""
        self.add_bundle("box", {})
        self.calls = [*self.calls_of("box"), *self.end_of("box")]
        return ["shim"]

    def pod(self):
        """A sandbox, which has no app, and a container in it, which has its root directory live."""
        self.configure(**{"container-roots": "live"})
        self.add_bundle("box", {"container-type": "sandbox", "sandbox-id": "box"}, hostname="box")
        self.add_bundle("web", {"container-type": "container", "sandbox-id": "box", "container-name": "web"})
        box = self.calls_of("box")
        self.calls = [*box[:3], *self.calls_of("web"), *self.end_of("web"), *self.end_of("box")]
        return ["shim"]

    @staticmethod
    def end_of(name):
        me = f"id={name}"
        return (("Kill", me, f"signal={KILL}", "all=1"), ("Wait", me), ("Delete", me), ("Shutdown", me))

    def shim(self, name, action):
        bundle = self.file(name)
        flags = ("-namespace", NAMESPACE, "-address", self.address, "-publish-binary", "/bin/false", "-id", name)
        return [SHIM, *flags, "-bundle", bundle, action] if action == "delete" else [SHIM, *flags, action]

    def call(self, conn, method, *fields):
        self.asked = f"{method} {' '.join(fields)}"
        conn.sendall(shim_call.request(1, method, fields))
        _, data = shim_call.read_frame(conn)
        code, text, _ = shim_call.read_answer(method, data)
        if code and not text:
            raise Failure(f"{method} fails without a reason")
        self.told_to_end |= {fields[0]} if method == "Shutdown" else set()
        if code:
            self.failed.append(f"{self.asked}: {text}")
        return code, text

    def drive(self, address):
        """All that is asked, and what failed again. It is noted if the shim ended before it was told to."""
        try:
            with shim_call.connect(address, LIMIT) as conn:
                for method, *fields in self.calls:
                    if method == "Create" and fields[0] != "id=box":
                        self.join(fields[0].removeprefix("id="), address)
                    code, _ = self.call(conn, method, *fields)
                    if code and method == "Kill":
                        break  # to wait for what was not killed would take long
                for name in self.bundles:
                    for method, *fields in self.end_of(name):
                        code, text = self.call(conn, method, *fields)
                        if code not in (0, NOT_FOUND):
                            raise Failure(f"{method} {name} fails a second time: {text}")
                shim_call.read_frame(conn)
                raise Failure("an answer to nothing")
        except (EOFError, ConnectionError):
            if not self.told_to_end:  # without containers any of them is for the shim
                self.lost = self.asked
        except TimeoutError as e:
            raise Failure(f"no answer, and no end: {self.asked}") from e

    def join(self, name, address):
        """A container of the sandbox, whose shim serves it, unless that has ended."""
        r = subprocess.run(
            self.shim(name, "start"), cwd=self.file(name), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT
        )
        if r.stdout != address and not r.stderr.strip():
            raise Failure(f"start of {name}: exit status {r.returncode}, address {r.stdout!r}")

    def run(self, inject):
        """One life of the shim under inject, and what containerd does after it."""
        env = {**os.environ, "TTRPC_ADDRESS": self.file("events.sock")}
        errors = open(self.file("errors"), "w+")
        with errors, subprocess.Popen(
            [*inject, *self.shim("box", "start")], cwd=self.file("box"), env=env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        ) as p:
            try:
                address = p.stdout.read()
                if address:
                    self.drive(address)
                for name in self.bundles:
                    self.delete(name)
                p.wait(LIMIT)
            finally:
                p.kill()
            errors.seek(0)
            return subprocess.CompletedProcess(p.args, p.returncode, address, errors.read())

    def check_listed(self):
        """Without a fault nothing fails, but the freezer that a pod of namespaces may not have."""
        failed = [text for text in self.failed if IS_VM or not text.startswith(("Pause", "Resume"))]
        if failed or "id=box" not in self.told_to_end:
            raise SystemExit(f"matrix: {'; '.join(failed)}; the last call was {self.asked}")

    def check_survived(self):
        """A call that fails, which may be said, is not the end."""
        if self.lost:
            raise Failure(f"the shim has ended at {self.lost}")

    def delete(self, name):
        r = subprocess.run(
            self.shim(name, "delete"), cwd=self.file(name), stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT
        )
        if r.returncode != 0 or r.stderr:
            raise Failure(f"delete of {name}: exit status {r.returncode}: {r.stderr.decode().strip()}")

    def collect(self):
        wait_free("processes of the shim", processes_in, self.place)
        wait_no_processes(self.data)
        running = [uuid for uuid, phases in pods_of(self.data).items() if phases == ["run"] and self.is_locked(uuid)]
        if running:
            raise Failure(f"delete left {running} running")
        super().collect()
        digest = hashlib.sha256(f"{self.address}/{NAMESPACE}/box".encode()).hexdigest()
        left = glob.glob(f"/run/containerd/s/{digest}")
        left += [line for line in open("/proc/self/mountinfo").read().splitlines() if f" {self.place}" in line]
        left += glob.glob(f"/sys/fs/cgroup/{self.group}/*/") + glob.glob(f"/sys/fs/cgroup/*/{self.group}/*/")
        if left:
            raise Failure(f"left: {' '.join(left)}")

    def is_locked(self, uuid):
        """Whether somebody looks after a pod that is in the phase of those that run."""
        r = subprocess.run(
            ["flock", "--exclusive", "--nonblock", os.path.join(self.data, "pods/run", uuid), "true"], check=False
        )
        return r.returncode != 0

    def close(self):
        self.events.close()
        for fd in self.logs:
            os.close(fd)
        for group in glob.glob(f"/sys/fs/cgroup/{self.group}") + glob.glob(f"/sys/fs/cgroup/*/{self.group}"):
            with contextlib.suppress(OSError):
                os.rmdir(group)
        super().close()


VERBS = {
    "shim": lambda t: t.container(),
    "shim (pod)": lambda t: t.pod(),
}
