#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a file system answers to a program: a line for each call, the same wherever it is the same.

file_calls.py DIR USER    in an empty directory; USER is the number of a user without privileges, and of a group of his
"""
import ctypes
import errno
import fcntl
import mmap
import os
import select
import stat
import subprocess
import sys
import time

libc = ctypes.CDLL(None, use_errno=True)


def say(what, fn, *args, **kw):
    """The result of a call, or the name of its error."""
    try:
        result = fn(*args, **kw)
    except OSError as e:
        result = errno.errorcode.get(e.errno, e.errno)
    except subprocess.CalledProcessError as e:
        result = f"exit status {e.returncode}"
    print(f"{what}: {result}", flush=True)
    return result


def put(name, data=b"", mode=0o644):
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    os.fchmod(fd, mode)
    os.write(fd, data)
    os.close(fd)


def get(name):
    with open(name, "rb") as f:
        return f.read()


def try_open(name, flags, mode=0o644):
    fd = os.open(name, flags, mode)
    os.close(fd)
    return "opened"


def as_user(user, groups, fn):
    """What fn() says for another user."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups(groups)
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            fn()
            sys.stdout.flush()
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def nameless():
    fd = os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600)
    os.write(fd, b"named later")
    linked = libc.linkat(-100, b"/proc/self/fd/%d" % fd, -100, b"later", 0x400)  # AT_FDCWD, AT_SYMLINK_FOLLOW
    os.close(fd)
    return "named" if linked == 0 else errno.errorcode[ctypes.get_errno()]


def opening():
    put("plain", b"plain")
    os.mkdir("dir")
    os.symlink("loop", "loop")
    os.symlink("plain", "link")
    os.symlink("nowhere", "dangling")
    say("create what is there", try_open, "plain", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    say("create through a dangling link", try_open, "dangling", os.O_CREAT | os.O_WRONLY)
    say("create only, through a link", try_open, "dangling", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    say("no link", try_open, "link", os.O_RDONLY | os.O_NOFOLLOW)
    say("a loop", try_open, "loop", os.O_RDONLY)
    say("a directory to write", try_open, "dir", os.O_WRONLY)
    say("a file as a directory", try_open, "plain", os.O_RDONLY | os.O_DIRECTORY)
    say("below a file", try_open, "plain/x", os.O_RDONLY)
    say("a slash behind a file", os.stat, "plain/")
    say("a name of 255 bytes", try_open, "n" * 255, os.O_CREAT | os.O_WRONLY)
    say("a name of 256 bytes", try_open, "n" * 256, os.O_CREAT | os.O_WRONLY)
    say("a name that is no text", try_open, b"\xff\xfe\x01\n", os.O_CREAT | os.O_WRONLY)
    say("a file without a name", nameless)
    say("what that has", get, "later")
    say("truncated by opening", lambda: (try_open("link", os.O_WRONLY | os.O_TRUNC), os.stat("plain").st_size))


def removing():
    put("gone", b"still here")
    fd = os.open("gone", os.O_RDWR)
    os.unlink("gone")
    say("read without a name", os.read, fd, 100)
    say("its links", lambda: os.fstat(fd).st_nlink)
    say("written without a name", os.pwrite, fd, b"S", 0)
    say("its mode is changed", lambda: (os.fchmod(fd, 0o600), stat.filemode(os.fstat(fd).st_mode))[1])
    say("truncated", lambda: (os.ftruncate(fd, 5), os.fstat(fd).st_size)[1])
    os.close(fd)
    os.makedirs("full/of")
    say("a directory that is not empty", os.rmdir, "full")
    say("a directory as a file", os.unlink, "full/of")
    say("a file as a directory", os.rmdir, "plain")
    say("the current directory", os.rmdir, ".")
    here = os.open("full", os.O_RDONLY)
    os.rmdir("full/of")
    os.rmdir("full")
    say("make something where nothing is any more", os.mkdir, "x", dir_fd=here)
    say("list what is gone", os.listdir, here)
    os.close(here)


def renaming():
    put("a", b"a")
    put("b", b"b")
    fd = os.open("b", os.O_RDONLY)
    os.rename("a", "b")
    say("the old one, open", os.read, fd, 10)
    os.close(fd)
    say("the new one", get, "b")
    os.link("b", "b2")
    say("onto a link to itself", os.rename, "b", "b2")
    say("both are there", lambda: sorted(n for n in os.listdir(".") if n in ("b", "b2")))
    os.makedirs("d1/sub")
    os.mkdir("d2")
    say("a directory onto an empty one", os.rename, "d1", "d2")
    os.mkdir("d1")
    say("onto one that is full", os.rename, "d1", "d2")
    say("onto a file", os.rename, "d1", "b")
    say("a file onto a directory", os.rename, "b", "d1")
    say("into itself", os.rename, "d2", "d2/sub/x")
    for name, flags in (("not over what is there", 1), ("two for each other", 2)):
        say(name, lambda: libc.renameat2(-100, b"b", -100, b"d1", flags) and errno.errorcode[ctypes.get_errno()])
    say("what d1 is now", lambda: stat.filemode(os.stat("d1").st_mode))


def linking():
    put("one", b"x")
    for i in range(10):
        os.link("one", f"one{i}")
    say("links", lambda: os.stat("one9").st_nlink)
    say("to a directory", os.link, "d2", "d3")
    say("of a symbolic link", lambda: (os.link("link", "link2", follow_symlinks=False), os.readlink("link2"))[1])
    say("4095 bytes of a link", lambda: (os.symlink("x" * 4095, "long"), len(os.readlink("long")))[1])
    say("4096 bytes of a link", os.symlink, "x" * 4096, "longer")
    say("one inode", lambda: os.stat("one").st_ino == os.stat("one5").st_ino)
    say("a path of 4096 bytes", os.stat, "./" * 2047 + "xy")


def holes_and_sizes():
    fd = os.open("sparse", os.O_RDWR | os.O_CREAT, 0o644)
    os.pwrite(fd, b"end", 1 << 40)
    say("size", lambda: os.fstat(fd).st_size)
    say("few blocks", lambda: os.fstat(fd).st_blocks < 100)
    say("data at", lambda: os.lseek(fd, 0, os.SEEK_DATA) >> 20)
    say("a hole at", os.lseek, fd, 0, os.SEEK_HOLE)
    say("beyond the end", os.lseek, fd, 1 << 41, os.SEEK_DATA)
    say("in the hole", os.pread, fd, 4, 12345)
    os.ftruncate(fd, 0)
    say("room is made", lambda: (os.posix_fallocate(fd, 0, 1 << 20), os.fstat(fd).st_size, os.fstat(fd).st_blocks >= 2048)[1:])
    os.pwrite(fd, b"x" * 65536, 0)
    say("a hole is cut", lambda: libc.fallocate(fd, 3, ctypes.c_long(4096), ctypes.c_long(8192)))
    say("what is in it", lambda: os.pread(fd, 20480, 0).count(b"x"))
    say("a large size", lambda: (os.ftruncate(fd, 1 << 43), os.fstat(fd).st_size)[1])
    os.ftruncate(fd, 1 << 20)
    os.close(fd)
    put("source", b"0123456789" * 10000)
    a, b = os.open("source", os.O_RDONLY), os.open("target", os.O_RDWR | os.O_CREAT, 0o644)
    say("copied by the kernel", lambda: os.copy_file_range(a, b, 100000))
    say("sent", lambda: os.sendfile(b, a, 0, 50000))
    say("spliced length", lambda: os.fstat(b).st_size)
    os.close(a)
    os.close(b)
    say("the same", lambda: get("target") == get("source") + get("source")[:50000])


def times_and_modes():
    put("timed")
    for ns in (0, 1, 981173106123456789, 4102444800000000007, -1000000001):
        say(f"time {ns}", lambda: (os.utime("timed", ns=(ns, ns)), os.stat("timed").st_mtime_ns)[1])
    say("of a link itself", lambda: (os.utime("link", ns=(5, 7), follow_symlinks=False), os.lstat("link").st_mtime_ns)[1])
    before = os.stat("timed").st_ctime_ns
    time.sleep(0.02)
    os.chmod("timed", 0o400)
    say("a change has a time", lambda: os.stat("timed").st_ctime_ns > before)
    os.utime("timed", ns=(9, 9))
    with open("timed", "ab") as f:
        f.write(b"x")
    say("a write has a time", lambda: os.stat("timed").st_mtime_ns > 9)
    for mode in (0, 0o777, 0o1777, 0o421):
        say(f"mode {mode:o}", lambda: (os.chmod("timed", mode), stat.filemode(os.stat("timed").st_mode))[1])
    for mask in (0, 0o22, 0o77, 0o777):
        old = os.umask(mask)
        os.mkdir(f"mask{mask:o}")
        try_open(f"maskfile{mask:o}", os.O_CREAT | os.O_WRONLY, 0o666)
        os.mkfifo(f"maskfifo{mask:o}")
        os.umask(old)
        say(f"mask {mask:o}", lambda: [stat.filemode(os.lstat(n % mask).st_mode) for n in ("mask%o", "maskfile%o", "maskfifo%o")])


def memory():
    put("mapped", b"a" * 8192)
    fd = os.open("mapped", os.O_RDWR)
    shared = mmap.mmap(fd, 8192)
    private = mmap.mmap(fd, 8192, flags=mmap.MAP_PRIVATE)
    shared[4096:4099] = b"new"
    say("read after a write in memory", os.pread, fd, 5, 4095)
    os.pwrite(fd, b"by write", 0)
    say("in memory after a write", lambda: bytes(shared[0:8]))
    private[100:103] = b"own"
    say("a private write stays", os.pread, fd, 3, 100)
    shared.flush()
    shared.close()
    private.close()
    os.close(fd)
    say("on disk", lambda: get("mapped")[4095:4100])
    say("a program", lambda: (put("program", b"#!/bin/sh\necho runs\n", 0o755), subprocess.check_output(["./program"]))[1])
    fd = os.open("program2", os.O_WRONLY | os.O_CREAT, 0o755)
    os.write(fd, get("/bin/true"))
    say("a program that is written to", lambda: os.spawnl(os.P_WAIT, "./program2", "true"))
    os.close(fd)
    say("and after that", lambda: os.spawnl(os.P_WAIT, "./program2", "true"))


def locks():
    put("locked")
    a, b = os.open("locked", os.O_RDWR), os.open("locked", os.O_RDWR)
    fcntl.flock(a, fcntl.LOCK_EX)
    say("flock held", fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(a, fcntl.LOCK_UN)
    say("flock free", fcntl.flock, b, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.lockf(a, fcntl.LOCK_EX, 10, 5)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        c = os.open("locked", os.O_RDWR)
        say("a record held by another", fcntl.lockf, c, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 14)
        say("beside it", fcntl.lockf, c, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 15)
        sys.stdout.flush()
        os._exit(0)
    os.waitpid(pid, 0)
    os.close(a)
    os.close(b)


def appending():
    sys.stdout.flush()
    children = []
    for letter in b"xy":
        pid = os.fork()
        if pid == 0:
            fd = os.open("log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            for _ in range(200):
                os.write(fd, bytes([letter]) * 99 + b"\n")
            os._exit(0)
        children.append(pid)
    for pid in children:
        os.waitpid(pid, 0)
    lines = get("log").split(b"\n")
    say("lines of two writers", lambda: (len(lines), {len(set(line)) for line in lines[:-1]}))
    os.unlink("log")


def directories():
    os.mkdir("many")
    for i in range(3000):
        put(f"many/{i}")
    say("listed", lambda: len(os.listdir("many")))
    seen = 0
    with os.scandir("many") as entries:
        for entry in entries:  # removing while reading
            os.unlink(entry.path)
            seen += 1
    say("removed while they were listed", lambda: (seen, os.listdir("many")))
    say("kinds of entries", lambda: sorted({stat.S_IFMT(e.stat(follow_symlinks=False).st_mode) for e in os.scandir(".")}))
    say("links of a directory", lambda: (os.mkdir("many/sub"), os.stat("many").st_nlink)[1])
    v = os.statvfs(".")
    say("names may have", lambda: v.f_namemax)
    say("free space is told", lambda: 0 < v.f_bavail <= v.f_bfree <= v.f_blocks)
    os.mkfifo("fifo")
    a = os.open("fifo", os.O_RDWR | os.O_NONBLOCK)
    os.write(a, b"through")
    say("through a FIFO", os.read, a, 10)
    os.close(a)


def attributes():
    put("attr")
    say("set", os.setxattr, "attr", "user.name", b"value")
    say("get", os.getxattr, "attr", "user.name")
    say("create what is there", os.setxattr, "attr", "user.name", b"v", os.XATTR_CREATE)
    say("replace what is not", os.setxattr, "attr", "user.none", b"v", os.XATTR_REPLACE)
    say("list", os.listxattr, "attr")
    say("remove", os.removexattr, "attr", "user.name")
    say("get what is gone", os.getxattr, "attr", "user.name")
    say("of a link", os.setxattr, "link", "user.name", b"v", follow_symlinks=False)


def owners(user):
    put("roots", b"r", 0o600)
    put("groups", b"g", 0o660)
    os.chown("groups", 0, user + 1)
    os.mkdir("groupdir", 0o770)
    os.chown("groupdir", 0, user + 1)
    os.chmod("groupdir", 0o770)
    os.mkdir("sticky")
    os.chmod("sticky", 0o1777)
    put("sticky/roots")
    put("his", b"h")
    os.chown("his", user, user)
    say("given away", lambda: (os.chown("roots", 12, 34), os.stat("roots").st_uid, os.stat("roots").st_gid)[1:])

    def user_does():
        say("read what is not his", try_open, "roots", os.O_RDONLY)
        say("read by a group", try_open, "groups", os.O_RDWR)
        say("make by a group", try_open, "groupdir/x", os.O_CREAT | os.O_WRONLY)
        say("make a directory by a group", os.mkdir, "groupdir/d")
        say("rename by a group", os.rename, "groupdir/x", "groupdir/y")
        say("access(2)", lambda: [os.access(n, os.W_OK) for n in ("roots", "groups", "his", "groupdir")])
        say("remove another's from a sticky directory", os.unlink, "sticky/roots")
        say("make his own there", try_open, "sticky/his", os.O_CREAT | os.O_WRONLY)
        say("remove it", os.unlink, "sticky/his")
        say("change the mode of another's", os.chmod, "groups", 0o666)
        say("change that of his own", os.chmod, "his", 0o640)
        say("give his own away", os.chown, "his", 0, 0)
        say("to a group of his", os.chown, "his", -1, user + 1)
        say("times of another's", os.utime, "groups", (1, 1))
        say("now, of what he may write", os.utime, "groups")
        say("make in a directory of another", try_open, "d2/x", os.O_CREAT | os.O_WRONLY)

    as_user(user, [user + 1], user_does)
    say("who owns what he made", lambda: (os.stat("groupdir/y").st_uid, os.stat("groupdir/y").st_gid))


def waiting():
    """Polling a file is always ready; watching a directory says what this machine itself does in it."""
    fd = os.open("plain", os.O_RDONLY)
    say("select", lambda: [len(s) for s in select.select([fd], [fd], [], 0)])
    os.close(fd)
    watch = libc.inotify_init1(os.O_NONBLOCK)
    say("watched", lambda: libc.inotify_add_watch(watch, b".", 0x100) > 0)  # IN_CREATE
    put("watched-for")
    say("seen", lambda: b"watched-for" in os.read(watch, 4096))
    os.close(watch)


def main():
    os.chdir(sys.argv[1])
    user = int(sys.argv[2])
    os.umask(0o22)
    for part in (opening, removing, renaming, linking, holes_and_sizes, times_and_modes, memory, locks, appending, directories,
                 attributes, waiting):
        print(f"- {part.__name__}", flush=True)
        part()
    print("- owners", flush=True)
    owners(user)


if __name__ == "__main__":
    main()
