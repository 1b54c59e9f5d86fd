# SPDX-License-Identifier: Apache-2.0
"""Whether a directory is one file system to two apps. One of them serves, the other one asks:
    meet.py serve DIR    holds locks, a shared mapping, an inotify watch and a socket there, and answers
    meet.py ask DIR      prints a line for each of them
"""
import ctypes, fcntl, mmap, os, socket, struct, sys, time

LIMIT_S = 120
IN_CREATE = 0x100

what, where = sys.argv[1:]
os.chdir(where)


def open_file(name):
    return os.open(name, os.O_RDWR | os.O_CREAT, 0o644)


def map_file(name):
    fd = open_file(name)
    os.ftruncate(fd, 4096)
    return mmap.mmap(fd, 4096)


def watch():
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.inotify_init()
    assert fd >= 0 and libc.inotify_add_watch(fd, b".", IN_CREATE) >= 0
    return fd


def first_name(fd):
    length = struct.unpack("iIII", os.read(fd, 4096)[:16])[3]
    assert length > 0
    return "told"


def serve():
    flocked, locked, shared = open_file("flock"), open_file("lock"), map_file("map")
    fcntl.flock(flocked, fcntl.LOCK_EX)
    fcntl.lockf(locked, fcntl.LOCK_EX)
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")
    notify = watch()  # before anybody can come
    server.listen()
    server.settimeout(LIMIT_S)
    client = server.accept()[0]
    client.settimeout(LIMIT_S)
    assert client.recv(64) == b"made"
    shared[1:2] = b"b" if shared[0:1] == b"a" else b"?"
    client.sendall(first_name(notify).encode())
    client.recv(64)
    os.unlink("socket")


def connect():
    end = time.monotonic() + LIMIT_S
    while True:
        client = socket.socket(socket.AF_UNIX)
        try:
            client.connect("socket")
            client.settimeout(LIMIT_S)
            return client
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def is_taken(take, name):
    try:
        take(open_file(name), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return "taken"
    return "free"


def ask():
    client = connect()
    print("socket: connected")
    print("flock:", is_taken(fcntl.flock, "flock"))
    print("lock:", is_taken(fcntl.lockf, "lock"))
    shared = map_file("map")
    shared[0:1] = b"a"
    os.close(open_file("made"))
    client.sendall(b"made")
    print("inotify:", client.recv(64).decode())
    print("memory:", shared[1:2].decode())
    client.sendall(b"end")


{"serve": serve, "ask": ask}[what]()
