# SPDX-License-Identifier: Apache-2.0
"""What tests/crash/matrix starts from, a data directory with pods and images, and what must be true of it afterwards."""

import contextlib
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import time
import uuid

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("HUSK_BUILD_DIR", os.path.join(TOP, "build")))
INJECT = os.path.join(BUILD, "tests/inject")
FLAVOR = os.environ.get("HUSK_TEST_STAGE1", "kvm")  # of the pods
IS_VM = FLAVOR == "kvm"
# Without the configuration of this machine, and pods without a network.
NO_NETWORK = os.path.join(TOP, "tests/support/no-network")
HUSK = (os.path.join(BUILD, "bin/husk"), f"--system-config={NO_NETWORK}", "--local-config=", *(() if IS_VM else (f"--stage1={FLAVOR}",)))
CACHE = os.environ.get("HUSK_CACHE") or os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "husk")
PHASES = ("embryo", "prepare", "prepared", "run", "exited-garbage", "garbage")
SLOW = int(os.environ.get("HUSK_TEST_SLOWNESS") or subprocess.run([os.path.join(TOP, "tests/support/slowness")], check=True, capture_output=True).stdout)
LIMIT = 120 * SLOW  # seconds for one command; emulation is slow
GONE_LIMIT = 120 * SLOW  # seconds until a killed pod's processes are gone


class Failure(Exception):
    """Something is not as it must be after a crash."""


def husk(data, *args, **kwargs):
    return subprocess.run([*HUSK, f"--dir={data}", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, **kwargs)


def must(data, *args):
    r = husk(data, *args)
    if r.returncode != 0:
        raise SystemExit(f"matrix: husk {' '.join(args)}: exit status {r.returncode}: {r.stderr.strip()}")
    return r.stdout.strip()


def busybox_image():
    path = os.path.join(BUILD, "try/busybox")
    if not os.path.exists(os.path.join(path, "index.json")):
        subprocess.run([os.path.join(TOP, "tools/make-try-image"), path], check=True, stdout=subprocess.DEVNULL)
    return path


def make_stub(path):
    """A stage1 whose programs do nothing."""
    os.makedirs(os.path.join(path, "bin"))
    manifest = open(os.path.join(TOP, "stage1-kvm/manifest.in")).read().replace("@PROJECT_VERSION@", "test")
    open(os.path.join(path, "manifest"), "w").write(manifest)
    for name in re.findall(r'"(bin/[\w-]+)"', manifest):
        program = os.path.join(path, name)
        open(program, "w").write("#!/bin/sh\nexit 0\n")
        os.chmod(program, 0o755)
    return path


def pods_of(data):
    """UUID to list of phases."""
    found = {}
    for phase in PHASES:
        directory = os.path.join(data, "pods", phase)
        for name in os.listdir(directory) if os.path.isdir(directory) else ():
            found.setdefault(name, []).append(phase)
    return found


def pod_path(data, uuid):
    for phase in PHASES:
        path = os.path.join(data, "pods", phase, uuid)
        if os.path.isdir(path):
            return path
    return None


def fingerprint(path):
    """Names, types, modes, times and contents of a tree."""
    h = hashlib.sha256()
    for directory, names, files in os.walk(path):
        names.sort()
        for name in sorted(names + files) + ["."]:
            full = os.path.join(directory, name)
            st = os.lstat(full)
            h.update(f"{full} {st.st_mode} {st.st_ino} {st.st_mtime_ns}\n".encode())
            if os.path.islink(full):
                h.update(os.readlink(full).encode())
            elif name in files and name != "rootfs":
                h.update(open(full, "rb").read(1 << 20))
    return h.hexdigest()


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest() if hasattr(hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()


def blobs_of(data):
    """What the records of the store need. All of it must be there."""
    needed = set()
    images = os.path.join(data, "images")
    for name in os.listdir(images) if os.path.isdir(images) else ():
        if name.startswith("."):
            continue
        record = json.load(open(os.path.join(images, name)))
        manifest_path = os.path.join(data, "oci/blobs/sha256", record["id"])
        needed.add(record["id"])
        manifest = json.load(open(manifest_path))
        needed.update(d["digest"].removeprefix("sha256:") for d in [manifest["config"], *manifest["layers"]])
        needed.update(record.get("below", ()))
    return needed


def check_store(data):
    r = husk(data, "image", "list", "--full")
    if r.returncode != 0 or r.stderr:
        raise Failure(f"image list: {r.returncode}: {r.stderr.strip()}")
    try:
        for blob in blobs_of(data):
            if sha256(os.path.join(data, "oci/blobs/sha256", blob)) != blob:
                raise Failure(f"blob {blob} is damaged")
    except (OSError, ValueError) as e:
        raise Failure(f"an image of the store is not whole: {e}") from e


def check_collected_store(data):
    if os.listdir(os.path.join(data, "tmp")):
        raise Failure(f"image gc left {os.listdir(os.path.join(data, 'tmp'))} in tmp")
    there = set(os.listdir(os.path.join(data, "oci/blobs/sha256")))
    if there != blobs_of(data):
        raise Failure(f"image gc left blobs {sorted(there - blobs_of(data))}")


def links_of(pid):
    """Where a process is, and what it has open: the agent of a pod of namespaces is nowhere, but has a file there."""
    links = [f"/proc/{pid}/cwd"]
    with contextlib.suppress(OSError):
        links += [] if IS_VM else [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
    for link in links:
        with contextlib.suppress(OSError):
            yield os.readlink(link)


def processes_in(path):
    pids = (pid for pid in filter(str.isdigit, os.listdir("/proc")) if int(pid) != os.getpid())
    return [pid for pid in pids if any(link.startswith(path + "/") for link in links_of(pid))]


def mounts_of(pid):
    with contextlib.suppress(OSError):
        return open(f"/proc/{pid}/mountinfo").read().splitlines()
    return []


def loop_devices_of(path):
    found = []
    for file in glob.glob("/sys/block/loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            if open(file).read().startswith(path + "/"):
                found.append(file.split("/")[3])
    return found


def groups_of(uuid):
    """The control groups of a pod of namespaces."""
    return glob.glob(f"/sys/fs/cgroup/husk/{uuid}") + glob.glob(f"/sys/fs/cgroup/*/husk/{uuid}")


def network_of(uuid, network):
    """What a pod's network has left on the host: a name of its namespace, addresses that are taken, rules, links."""
    found = glob.glob(f"/run/netns/husk-{uuid}")
    for lease in glob.glob(f"/var/lib/cni/networks/{network}/[0-9]*"):
        with contextlib.suppress(OSError):
            found += [lease] if uuid in open(lease).read() else []
    for table in "nat", "filter":
        rules = subprocess.run(["iptables", "-w", "-t", table, "-S"], capture_output=True, text=True, check=True).stdout
        found += [line for line in rules.splitlines() if uuid in line]
    return found


def links_with(address):
    """The interfaces that have it: that of ptp on the host, as long as the pod's is there."""
    lines = subprocess.run(["ip", "-o", "address"], capture_output=True, text=True, check=True).stdout.splitlines()
    return [line.split()[1] for line in lines if f" {address}/" in line]


def servers_of(path):
    """Those of volumes, which are nowhere but in what they serve."""
    found = []
    for comm in glob.glob("/proc/[0-9]*/comm"):
        with contextlib.suppress(OSError):
            is_server = open(comm).read().strip() in ("virtiofsd", "husk-virtiofs")
            found += [comm] if is_server and path in open(f"{os.path.dirname(comm)}/mountinfo").read() else []
    return found


def users_of(disk):
    """Whoever has the lock of a volume's file, which nobody has any more."""
    with open(disk, "rb") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return [disk]
    return []


def wait_free(what, find, *args):
    """The kernel lets go of some things after the last process that had them has ended."""
    deadline = time.monotonic() + GONE_LIMIT
    while find(*args):
        if time.monotonic() > deadline:
            raise Failure(f"{what} left: {' '.join(find(*args))}")
        time.sleep(0.01)


def wait_no_processes(path):
    wait_free("processes", processes_in, path)


class Template:
    """A data directory with a rendered image, from which each trial gets its own copy."""

    def __init__(self, work):
        self.path = os.path.join(work, "template")
        self.image = busybox_image()
        os.mkdir(self.path)
        self.tree = os.path.join(work, "tree")
        os.mkdir(self.tree)
        with open(os.path.join(self.tree, "file"), "w") as f:
            f.write("content\n" * 100000)
        self.tree_id = must(self.path, "fetch", "--full", f"rootfs:{self.tree}")
        self.uuids = {}
        must(self.path, "run", self.image, "--", "true")
        self.uuids["exited"] = next(iter(pods_of(self.path)))
        for name in ("bystander", "prepared"):
            self.uuids[name] = must(self.path, "prepare", self.image, "--", "true")
        for name, phase in (("aborted", "prepare"), ("garbage", "garbage")):
            uuid = must(self.path, "prepare", self.image, "--", "true")
            os.rename(os.path.join(self.path, "pods/prepared", uuid), os.path.join(self.path, "pods", phase, uuid))
            self.uuids[name] = uuid
        self.uuids["embryo"] = "00000000-0000-4000-8000-0000000c4a54"
        os.mkdir(os.path.join(self.path, "pods/embryo", self.uuids["embryo"]), 0o750)

    def close(self):
        """There is nothing but files."""


class Trial:
    """One copy of the template, with the bystander locked as a pod in somebody's hands is."""

    # How the verb is run: what comes before inject, inject's and husk's own options, the environment.
    prefix = inject_options = options = ()
    env = None

    def __init__(self, template, work):
        self.data = os.path.join(work, "data")
        shutil.rmtree(self.data, ignore_errors=True)
        subprocess.run(["cp", "-a", "--sparse=always", template.path, self.data], check=True)
        self.uuids, self.image = template.uuids, template.image
        self.tree, self.tree_id = template.tree, template.tree_id
        self.fetched = None
        self.bystander = pod_path(self.data, self.uuids["bystander"])
        self.lock = os.open(self.bystander, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.before = fingerprint(self.bystander)
        self.background = None
        self.sandbox = None
        self.network = None
        self.disk = None
        self.seen = set()

    def close(self):
        if self.background:
            self.background.kill()
            self.background.wait()
        os.close(self.lock)

    def own_prepared(self):
        """A prepared pod that may run beside those of other trials: what it has on the host goes by its UUID."""
        pods = os.path.join(self.data, "pods/prepared")
        fresh = str(uuid.uuid4())
        os.rename(os.path.join(pods, self.uuids["prepared"]), os.path.join(pods, fresh))
        return fresh

    def run_in_background(self, *words):
        """A pod that runs until it is told to stop; its UUID. @words instead of a run."""
        uuid_file = os.path.join(self.data, "uuid")
        words = words or ("run", self.image, "--", "sleep", "1000")
        split = 2 if words[0] == "app" else 1
        self.background = subprocess.Popen(
            [*HUSK, *self.options, f"--dir={self.data}", *words[:split], f"--uuid-file-save={uuid_file}", *words[split:]],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        while not os.path.exists(uuid_file) or os.path.getsize(uuid_file) == 0:
            if self.background.poll() is not None:
                raise SystemExit("matrix: the pod in the background ended")
            time.sleep(0.01)
        uuid = open(uuid_file).read()
        os.unlink(uuid_file)
        must(self.data, "status", "--wait-ready", uuid)
        return uuid

    def run_sandbox(self, *steps):
        """A mutable pod with the app "app", which brings a directory of the host, after these verbs; its UUID."""
        os.makedirs(os.path.join(self.data, "shared"), exist_ok=True)
        self.brings = [f"--mnt-volume=name=h,kind=host,source={self.data}/shared,target=/h"]
        self.sandbox = self.run_in_background("app", "sandbox", *(["--hot-volumes=always"] if IS_VM else []))
        if "add" in steps:
            self.add_app()
        if "start" in steps:
            must(self.data, "app", "start", "--app=app", self.sandbox)
        return self.sandbox

    def networked(self, *words):
        """The verb's pod has a network, which no other trial has at this time."""
        number = int(re.search(r"(\d*)$", os.path.dirname(self.data)).group(1) or 99) % 4096  # of a directory, any
        subnet = f"10.{96 + number // 256}.{number % 256}"
        self.network = f"crash{os.getpid()}-{number}"
        self.gateway = f"{subnet}.1"
        os.makedirs(os.path.join(self.data, "etc/net.d"), exist_ok=True)
        with open(os.path.join(self.data, "etc/net.d/net.conflist"), "w") as f:
            ipam = {"type": "host-local", "subnet": f"{subnet}.0/24"}
            plugins = [{"type": "ptp", "ipMasq": True, "ipam": ipam}, {"type": "portmap", "capabilities": {"portMappings": True}}]
            json.dump({"cniVersion": "0.4.0", "name": self.network, "plugins": plugins}, f)
        self.options = ("--system-config=", f"--local-config={self.data}/etc")
        split = 2 if words[1] == "--detach" else 1
        return [*words[:split], f"--net={self.network}", f"--port=80/tcp:{20000 + number}", *words[split:]]

    def with_plugins(self, *words):
        """The same; its plugins may be killed and failed as husk may: what they execute they ask for its exit code alone."""
        self.inject_options = ("--plugins",)
        return self.networked(*words)

    def killed_with_network(self):
        """A pod all processes of which were killed at once, so that its network is still there; its UUID."""
        uuid = self.run_in_background(*self.networked("run", self.image, "--", "sleep", "1000"))
        self.seen.add(uuid)
        for pid in processes_in(self.data):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        self.background.wait()
        self.background = None
        wait_no_processes(self.data)
        if not network_of(uuid, self.network):
            raise SystemExit("matrix: nothing of the pod's network is left to remove")
        return uuid

    def with_volumes(self, *words):
        """The verb's pod has a directory of the host, and a VM a disk."""
        source = os.path.join(self.data, "shared")
        os.makedirs(source, exist_ok=True)
        volumes = [f"--volume=h,kind=host,source={source}", "--mount=volume=h,target=/h"]
        if IS_VM:
            self.disk = os.path.join(self.data, "disk")
            subprocess.run(["truncate", "-s", "16M", self.disk], check=True)
            subprocess.run(["mkfs.ext4", "-q", "-F", self.disk], check=True)
            volumes += [f"--volume=b,kind=block,source={self.disk}", "--mount=volume=b,target=/b"]
        return [words[0], *volumes, *words[1:]]

    def add_app(self):
        must(self.data, "app", "add", self.sandbox, self.image, "--name=app", *self.brings, "--", "sleep", "1000")

    def check_sandbox(self):
        """The app is whole, or its name is free for another."""
        if pods_of(self.data).get(self.sandbox) != ["run"] or self.background.poll() is not None:
            return  # ended, with all that is in it
        r = husk(self.data, "app", "list", "--no-legend", self.sandbox)
        if r.returncode != 0 or r.stderr:
            raise Failure(f"app list: {r.returncode}: {r.stderr.strip()}")
        try:
            if re.search(r"^app\t+(created|running|stopping|exited)$", r.stdout, re.M):
                must(self.data, "app", "rm", "--grace=0", "--app=app", self.sandbox)
            self.add_app()
            must(self.data, "app", "start", "--app=app", self.sandbox)
            must(self.data, "app", "exec", self.sandbox, "ls", "/h")
            must(self.data, "update", "--app=app", "--pids-limit=none", self.sandbox)
            must(self.data, "app", "rm", "--grace=0", "--app=app", self.sandbox)
        except SystemExit as e:
            raise Failure(f"after {r.stdout.strip()!r}: {e}") from e
        left = [n for d in ("apps", "status", "logs") for n in os.listdir(os.path.join(self.data, "pods/run", self.sandbox, d))]
        left += [line for pid in processes_in(self.data) for line in mounts_of(pid) if "/apps/app/" in line]
        if left:
            raise Failure(f"app rm left {left}")

    def fetch(self, reference):
        """The verb fetches; afterwards it can be done again."""
        self.fetched = reference
        return ["fetch", reference]

    def check_fetched(self):
        r = husk(self.data, "fetch", "--full", self.fetched)
        if r.returncode != 0:
            raise Failure(f"the next fetch: {r.returncode}: {r.stderr.strip()}")
        self.check_verifies(r.stdout.strip())

    def check_listed(self):
        """Nothing failed when nothing was made to; for others than this."""

    def check_survived(self):
        """What serves others goes on after a call that failed; for others than this."""

    def check_outcome(self, r):
        """What the verb said must be true; for others than this."""

    def check_verifies(self, image):
        r = husk(self.data, "image", "verify", image)
        if r.returncode != 0 or r.stderr or "successfully verified" not in r.stdout:
            raise Failure(f"image verify: {r.returncode}: {r.stdout.strip()} {r.stderr.strip()}")

    def check(self):
        self.seen |= set(pods_of(self.data))
        if self.sandbox:
            self.check_sandbox()
        check_store(self.data)
        if self.fetched:
            self.check_fetched()
        for uuid, phases in pods_of(self.data).items():
            if len(phases) != 1:
                raise Failure(f"pod {uuid} is in {' and '.join(phases)}")
        r = husk(self.data, "list", "--full")
        if r.returncode != 0 or r.stderr:
            raise Failure(f"list: {r.returncode}: {r.stderr.strip()}")
        for uuid, phases in pods_of(self.data).items():
            r = husk(self.data, "status", uuid)
            shown = phases[0] not in ("embryo", "garbage")
            if shown and (r.returncode != 0 or r.stderr):
                raise Failure(f"status of {uuid} in {phases[0]}: {r.returncode}: {r.stderr.strip()}")
        if fingerprint(self.bystander) != self.before:
            raise Failure("another pod was changed")

    def collect(self):
        """One gc, and nothing is left."""
        self.seen |= set(pods_of(self.data))
        running = [u for u, p in pods_of(self.data).items() if p == ["run"]]
        if running:
            must(self.data, "stop", "--force", *running)
        if self.background:
            self.background.wait()
            self.background = None
        wait_no_processes(self.data)
        r = husk(self.data, "gc", "--grace-period=0", "--expire-prepared=0")
        if r.returncode != 0 or re.search(r"^gc: (?!moving )", r.stderr, re.M):
            raise Failure(f"gc: {r.returncode}: {r.stderr.strip()}")
        r = husk(self.data, "image", "gc", "--grace-period=0")
        if r.returncode != 0 or r.stderr:
            raise Failure(f"image gc: {r.returncode}: {r.stderr.strip()}")
        check_collected_store(self.data)
        left = sorted(set(pods_of(self.data)) - {self.uuids["bystander"]})
        if left:
            raise Failure(f"gc left pods {left}")
        if fingerprint(self.bystander) != self.before:
            raise Failure("gc changed a pod that is in use")
        for directory, names, files in os.walk(self.data):
            for name in names + files:
                if name.startswith(".") or name.endswith((".new", ".sock", ".tmp")) or directory.endswith("/tmp"):
                    raise Failure(f"left: {os.path.join(directory, name)}")
        if self.data in open("/proc/self/mountinfo").read():
            raise Failure("left: a mount")
        wait_no_processes(self.data)
        wait_free("loop devices", loop_devices_of, self.data)
        wait_free("what serves volumes", servers_of, self.data)
        if self.disk:
            wait_free("the lock of a volume", users_of, self.disk)
        if self.network:
            for uuid in self.seen:
                wait_free("of the network", network_of, uuid, self.network)
            wait_free("interfaces", links_with, self.gateway)
        groups = [g for uuid in self.seen for g in groups_of(uuid)]
        if groups:
            raise Failure(f"left: {' '.join(groups)}")
