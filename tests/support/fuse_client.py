#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A hostile virtiofs client: what a guest's kernel, or a QEMU that it has taken over, may ask of virtiofsd.

fuse_client.py HUSK-VIRTIOFS VIRTIOFSD DIR

Starts virtiofsd as stage1-kvm does, with DIR/rw as a volume and DIR/ro as one that is read-only, and speaks vhost-user and
FUSE to it, in place of QEMU and the kernel. Prints a line for each thing that should not have worked; exit status 1 if there
was one. What the volumes and what is around them have become is for the caller to look at. Needs root.
"""
import array
import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import stat
import struct
import sys
import time

# vhost-user messages (QEMU's docs/interop/vhost-user.rst).
GET_FEATURES, SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 1, 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE, SET_VRING_KICK, SET_VRING_CALL = 8, 9, 10, 12, 13
GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES, SET_VRING_ENABLE = 15, 16, 18
FEATURES = 1 << 30 | 1 << 32  # protocol features, virtio 1

# FUSE requests (linux/fuse.h).
LOOKUP, FORGET, GETATTR, SETATTR, READLINK, SYMLINK, MKNOD, MKDIR = 1, 2, 3, 4, 5, 6, 8, 9
UNLINK, RMDIR, RENAME, LINK, OPEN, READ, WRITE, SETXATTR, GETXATTR = 10, 11, 12, 13, 14, 15, 16, 21, 22
INIT, OPENDIR, CREATE, IOCTL, FALLOCATE, RENAME2, SETUPMAPPING, TMPFILE = 26, 27, 35, 39, 43, 45, 48, 51
ATTR_MODE, ATTR_OWNER, ATTR_SIZE = 1, 6, 8

ROOT = 1  # the node that is what virtiofsd serves
MEMORY, GUEST_BASE = 16 << 20, 1 << 32
REQUEST_AT, REPLY_AT = 1 << 20, 4 << 20
QUEUE_SIZE = 128
LIMIT_S = 20  # for an answer
FILES = 20000  # that virtiofsd can have open: fewer than it is asked for


class Died(Exception):
    """virtiofsd has ended, or answers no more."""


class Queue:
    def __init__(self, at):
        self.desc, self.avail, self.used = at, at + 0x4000, at + 0x6000
        self.n = 0
        self.kick, self.call = os.eventfd(0), os.eventfd(0)


class Client:
    def __init__(self, program, virtiofsd, volumes):
        listener, path = socket.socket(socket.AF_UNIX), f"\0husk-fuse-client-{os.getpid()}-{time.monotonic_ns()}"
        listener.bind(path)
        listener.listen(1)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.pid = os.fork()
        if self.pid == 0:
            os.dup2(listener.fileno(), 3)
            os.set_inheritable(3, True)
            os.closerange(4, 64)
            files = min(resource.getrlimit(resource.RLIMIT_NOFILE)[1], FILES)
            os.execv(program, ["husk-virtiofs", virtiofsd, "auto", str(0x70000000), str(files), *volumes])
        listener.close()
        self.fd = os.memfd_create("guest")
        os.ftruncate(self.fd, MEMORY)
        self.memory = mmap.mmap(self.fd, MEMORY)
        self.queues = [Queue(0), Queue(0x10000)]  # for what is urgent, and for requests
        self.unique = 0
        self.connect()
        self.call(INIT, 0, struct.pack("<IIII", 7, 31, 1 << 20, 0x7FFFFFFF & ~(1 << 30)))

    # ---- vhost-user ----

    def message(self, request, payload=b"", fds=(), reply=False):
        data = struct.pack("<III", request, 1, len(payload)) + payload
        self.sock.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        if reply:
            size = struct.unpack("<III", self.sock.recv(12, socket.MSG_WAITALL))[2]
            return self.sock.recv(size, socket.MSG_WAITALL)
        return None

    def connect(self):
        self.message(GET_FEATURES, reply=True)
        self.message(SET_OWNER)
        self.message(SET_FEATURES, struct.pack("<Q", FEATURES))
        self.message(GET_PROTOCOL_FEATURES, reply=True)
        self.message(SET_PROTOCOL_FEATURES, struct.pack("<Q", 1))
        self.message(SET_MEM_TABLE, struct.pack("<IIQQQQ", 1, 0, 0, MEMORY, GUEST_BASE, 0), [self.fd])
        for i, q in enumerate(self.queues):
            self.message(SET_VRING_NUM, struct.pack("<II", i, QUEUE_SIZE))
            self.message(SET_VRING_BASE, struct.pack("<II", i, 0))
            places = [GUEST_BASE + at for at in (q.desc, q.used, q.avail)]
            self.message(SET_VRING_ADDR, struct.pack("<IIQQQQ", i, 0, *places, 0))
            self.message(SET_VRING_CALL, struct.pack("<Q", i), [q.call])
            self.message(SET_VRING_KICK, struct.pack("<Q", i), [q.kick])
            self.message(SET_VRING_ENABLE, struct.pack("<II", i, 1))

    def send(self, request, replies, queue=1):
        """One chain of descriptors: the request, and room for the reply. What was written there."""
        q, memory = self.queues[queue], self.memory
        memory[REQUEST_AT : REQUEST_AT + len(request)] = request
        parts, at = [(REQUEST_AT, len(request), 0)], REPLY_AT
        for size in replies:
            parts.append((at, size, 2))  # for the device to write
            at += -(-size // 4096) * 4096
        for i, (place, size, flags) in enumerate(parts):
            more = i + 1 < len(parts)
            struct.pack_into("<QIHH", memory, q.desc + 16 * i, place, size, flags | more, i + 1)
        struct.pack_into("<H", memory, q.avail + 4 + 2 * (q.n % QUEUE_SIZE), 0)
        q.n = (q.n + 1) & 0xFFFF
        struct.pack_into("<H", memory, q.avail + 2, q.n)
        os.eventfd_write(q.kick, 1)
        self.await_used(q)
        reply, at = b"", REPLY_AT
        for size in replies:
            reply += memory[at : at + size]
            at += -(-size // 4096) * 4096
        return reply

    def await_used(self, q):
        deadline = time.monotonic() + LIMIT_S
        while struct.unpack_from("<H", self.memory, q.used + 2)[0] != q.n:
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                raise Died("virtiofsd has ended")
            if time.monotonic() > deadline:
                raise Died("virtiofsd does not answer")
            time.sleep(0.0002)

    # ---- FUSE ----

    def call(self, op, node, payload=b"", uid=0, length=None, room=4096):
        """The error's name, or "", and what came with it."""
        self.unique += 2
        header = struct.pack("<IIQQIIII", length or 40 + len(payload), op, self.unique, node, uid, uid, 1, 0)
        self.memory[REPLY_AT : REPLY_AT + 16] = bytes(16)
        reply = self.send(header + payload, [16, room])
        size, code, _ = struct.unpack_from("<IiQ", reply)
        return (errno.errorcode.get(-code, str(code)) if code else "", reply[16:size])

    def lookup(self, node, name):
        error, body = self.call(LOOKUP, node, name + b"\0")
        return None if error else struct.unpack_from("<Q", body)[0]

    def forget(self, node, n):
        self.unique += 2
        payload = struct.pack("<Q", n)
        self.send(struct.pack("<IIQQIIII", 48, FORGET, self.unique, node, 0, 0, 1, 0) + payload, [], queue=0)

    def open(self, node, flags):
        error, body = self.call(OPEN, node, struct.pack("<II", flags, 0))
        return error, None if error else struct.unpack_from("<Q", body)[0]

    def create(self, node, name, mode):
        return self.call(CREATE, node, struct.pack("<IIII", os.O_RDWR | os.O_CREAT, mode, 0, 0) + name + b"\0")[0]

    def mknod(self, node, name, mode, device=0):
        return self.call(MKNOD, node, struct.pack("<IIII", mode, device, 0, 0) + name + b"\0")[0]

    def mkdir(self, node, name, mode):
        return self.call(MKDIR, node, struct.pack("<II", mode, 0) + name + b"\0")[0]

    def setattr(self, node, valid, mode=0, size=0, uid=0):
        fields = struct.pack("<IIQQQQQQIIIIIIII", valid, 0, 0, size, 0, 0, 0, 0, 0, 0, 0, mode, 0, uid, uid, 0)
        return self.call(SETATTR, node, fields)[0]

    def link(self, node, target, name):
        return self.call(LINK, node, struct.pack("<Q", target) + name + b"\0")[0]

    def rename(self, node, name, to, new, flags=0):
        return self.call(RENAME2, node, struct.pack("<QII", to, flags, 0) + name + b"\0" + new + b"\0")[0]

    def end(self):
        self.sock.close()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass


# ---- what is tried ----

wrong = []


def refused(what, error):
    if not error:
        wrong.append(f"{what}: it worked")


def names(c, rw, _):
    """Names are of one component, and none leads out."""
    target = c.lookup(rw, b"file")
    for name in (b"..", b".", b"", b"/", b"a/b", b"../out", b"/tmp/out", b"dir/../../out", b"dir/", b"x" * 256, b"y" * 4000):
        node = c.lookup(rw, name)
        if node is not None and name not in (b".", b".."):
            wrong.append(f"lookup of {name[:20]}: it worked")
        refused(f"create {name[:20]}", c.create(rw, name, 0o644))
        refused(f"mkdir {name[:20]}", c.mkdir(rw, name, 0o755))
        refused(f"mknod {name[:20]}", c.mknod(rw, name, stat.S_IFREG | 0o644))
        refused(f"symlink {name[:20]}", c.call(SYMLINK, rw, name + b"\0/etc\0")[0])
        refused(f"unlink {name[:20]}", c.call(UNLINK, rw, name + b"\0")[0])
        refused(f"rmdir {name[:20]}", c.call(RMDIR, rw, name + b"\0")[0])
        refused(f"link {name[:20]}", c.link(rw, target, name))
        refused(f"rename to {name[:20]}", c.rename(rw, b"file", rw, name))
        refused(f"rename of {name[:20]}", c.rename(rw, name, rw, b"got"))
    # Above the directory that is served there is nothing; above a volume that directory.
    for node in (ROOT, rw):
        above = c.lookup(node, b"..")
        if above is not None and c.lookup(above, b"secret") is not None:
            wrong.append("a file beside the volumes was found")


def links(c, rw, _):
    """Symbolic links are the guest's to follow."""
    for name in (b"absolute", b"above", b"everything"):
        node = c.lookup(rw, name)
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_PATH, os.O_DIRECTORY):
            refused(f"open {name} {flags:o}", c.open(node, flags)[0])
        refused(f"opendir {name}", c.call(OPENDIR, node, bytes(8))[0])
        refused(f"truncate {name}", c.setattr(node, ATTR_SIZE))
        refused(f"lookup in {name}", "" if c.lookup(node, b"passwd") else "ENOENT")


def modes(c, rw, _):
    """Nothing that makes somebody on the host more than he is."""
    for mode in (0o4755, 0o2755, 0o6711):
        refused(f"create {mode:o}", c.create(rw, b"bits", stat.S_IFREG | mode))
        refused(f"mknod {mode:o}", c.mknod(rw, b"bits", stat.S_IFREG | mode))
        c.mkdir(rw, b"directory-%o" % mode, mode)  # the kernel takes none of these bits
        refused(f"chmod {mode:o}", c.setattr(c.lookup(rw, b"file"), ATTR_MODE, mode=stat.S_IFREG | mode))
        refused(f"tmpfile {mode:o}", c.call(TMPFILE, rw, struct.pack("<IIII", os.O_TMPFILE | os.O_RDWR, mode, 0, 0) + b"\0")[0])
    for kind in (stat.S_IFBLK, stat.S_IFCHR):
        refused(f"device {kind:o}", c.mknod(rw, b"device", kind | 0o666, 0x103))
    for name in (b"security.capability", b"user.x", b"trusted.x", b"system.posix_acl_access"):
        refused(f"setxattr {name}", c.call(SETXATTR, c.lookup(rw, b"file"), struct.pack("<II", 1, 0) + name + b"\0x")[0])
    suid = c.lookup(rw, b"suid")
    error, handle = c.open(suid, os.O_RDWR)
    if not error:
        c.call(WRITE, suid, struct.pack("<QQIIQII", handle, 0, 1, 0, 0, 0, 0) + b"x")


def read_only(c, rw, ro):
    """Not by any request, and not through the other volume."""
    file, mine = c.lookup(ro, b"file"), c.lookup(rw, b"file")
    for flags in (os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_APPEND):
        refused(f"open {flags:o}", c.open(file, flags)[0])
    refused("create", c.create(ro, b"new", 0o644))
    refused("mkdir", c.mkdir(ro, b"new", 0o755))
    refused("unlink", c.call(UNLINK, ro, b"file\0")[0])
    refused("truncate", c.setattr(file, ATTR_SIZE))
    refused("chmod", c.setattr(file, ATTR_MODE, mode=0o777))
    refused("chown", c.setattr(file, ATTR_OWNER, uid=5))
    refused("link into it", c.link(ro, mine, b"new"))
    refused("link out of it", c.link(rw, file, b"stolen"))
    for flags in (0, 1, 2, 4):
        refused(f"rename out of it {flags}", c.rename(ro, b"file", rw, b"stolen", flags))
        refused(f"rename into it {flags}", c.rename(rw, b"file", ro, b"file", flags))
        refused(f"swap volumes {flags}", c.rename(ROOT, b"0", ROOT, b"1", flags))
    error, handle = c.open(file, os.O_RDONLY)
    if not error:
        refused("write by a handle to read", c.call(WRITE, file, struct.pack("<QQIIQII", handle, 0, 1, 0, 0, 0, 0) + b"x")[0])
        refused("fallocate", c.call(FALLOCATE, file, struct.pack("<QQQII", handle, 0, 10, 0, 0))[0])
        refused("ioctl", c.call(IOCTL, file, struct.pack("<QIIQII", handle, 0, 0x40086602, 0, 8, 0) + bytes(8))[0])
    refused("create beside the volumes", c.create(ROOT, b"new", 0o644))
    refused("map", c.call(SETUPMAPPING, file, bytes(40))[0])


def many(c, rw, _):
    """As many files as it may have open, and then it still serves."""
    nodes, directory = [], c.lookup(rw, b"many")
    for i in range(30000):
        node = c.lookup(directory, b"%d" % i)
        if node is None:
            break
        nodes.append(node)
    if not nodes:
        wrong.append("no file of many was found")
    for node in nodes:
        c.forget(node, 1)
    if c.lookup(rw, b"file") is None:
        wrong.append("nothing is found after many files were forgotten")


def nonsense(c, rw, _):
    """It may end at any of it; nothing around it changes."""
    for node in (0, 99999, 1 << 63, (1 << 64) - 1):
        refused(f"node {node}", c.call(GETATTR, node, bytes(16))[0])
        c.create(node, b"out", 0o644)
    file = c.lookup(rw, b"file")
    for handle in (99, 1 << 63, (1 << 64) - 1):
        refused(f"handle {handle}", c.call(READ, file, struct.pack("<QQIIQII", handle, 0, 100, 0, 0, 0, 0))[0])
    for op in (0, 7, 55, 4096, 0xFFFFFFFF):
        refused(f"request {op}", c.call(op, rw, b"file\0")[0])
    for op in range(1, 52):
        if op not in (FORGET, 38, 42):  # without a reply, or the end of the session
            c.call(op, rw, b"")
            c.call(op, rw, b"\xff" * 64)
    c.call(LOOKUP, rw, b"no end")
    c.call(LOOKUP, rw, b"file\0", length=41)
    c.call(LOOKUP, rw, b"file\0", length=0xFFFFFFF0)
    for _ in range(3):
        c.forget(c.lookup(rw, b"dir") or rw, 1 << 62)
    c.lookup(rw, b"file")


def main():
    program, virtiofsd, directory = sys.argv[1:]
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: what it leaves is seen here
    for attack in (names, links, modes, read_only, many, nonsense):
        client = Client(program, virtiofsd, [f"0:rw:all:{directory}/rw", f"1:ro:all:{directory}/ro"])
        before = len(wrong)
        try:
            attack(client, client.lookup(ROOT, b"0"), client.lookup(ROOT, b"1"))
        except (Died, OSError) as e:
            if attack is not nonsense:
                wrong.append(str(e))
        client.end()
        for text in wrong[before:]:
            print(f"{attack.__name__}: {text}", flush=True)
    sys.exit(1 if wrong else 0)


main()
