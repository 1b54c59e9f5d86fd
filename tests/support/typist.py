#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A person at a terminal, for tests.

usage: typist.py [--size ROWSxCOLS] [STEP...] -- COMMAND...

Runs COMMAND in a session of its own, on a terminal of its own, prints what appears on it, and exits
as COMMAND does (128 + N if signal N ended it). The steps are taken in their order:

  --await TEXT   waits until TEXT has appeared, behind what earlier steps waited for
  --type TEXT    types it; \\xNN and the like are understood: \\x03 is Ctrl-C, \\x1c Ctrl-\\
  --resize ROWSxCOLS  makes the terminal's window that large, and says so (SIGWINCH) again and again until the next text that
                 is waited for is there: a program that has asked for the size may not hear of a new one yet
  --hang-up      closes the terminal, as a window or a connection that is closed does
  --group SIGNAL sends it to every process of the terminal's session, as "kill -- -SESSION" does

Time is up after TYPIST_LIMIT seconds (default 180): the exit status is 124 then.
"""
import os
import pty
import select
import signal
import struct
import sys
import termios
import fcntl
import time

WITH_VALUE = {"--await", "--type", "--group", "--size", "--resize"}


def window(text):
    return tuple(int(n) for n in text.split("x"))


def resize(master, size):
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))


def parse(args):
    steps, size = [], (24, 80)
    while args and args[0] != "--":
        word = args.pop(0)
        value = args.pop(0) if word in WITH_VALUE else None
        if word == "--size":
            size = window(value)
        elif word in ("--await", "--type", "--hang-up", "--group", "--resize"):
            steps.append((word, value))
        else:
            sys.exit(f"typist: {word}: what is that?")
    return steps, size, args[1:]


def start(command, size):
    pid, master = pty.fork()
    if pid == 0:
        try:
            os.execvp(command[0], command)
        finally:
            os._exit(127)
    resize(master, size)
    return pid, master


def members(session):
    """Process groups of the session."""
    groups = set()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = open(f"/proc/{name}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            groups.add(int(fields[2]))
    return groups


class Terminal:
    def __init__(self, pid, master):
        self.pid, self.master, self.seen, self.is_new_size = pid, master, b"", False
        self.limit = time.monotonic() + float(os.environ.get("TYPIST_LIMIT", 180))

    def read(self):
        """Reads once; False at the end of the session's output."""
        if time.monotonic() > self.limit:
            os.kill(self.pid, signal.SIGKILL)
            sys.exit(124)
        if not select.select([self.master], [], [], 0.2)[0]:
            if self.is_new_size:
                self.signal(signal.SIGWINCH)
            return True
        try:
            data = os.read(self.master, 65536)
        except OSError:
            data = b""
        os.write(1, data)
        self.seen += data
        return bool(data)

    def wait_for(self, text):
        while text not in self.seen:
            if not self.read():
                sys.exit(f"typist: {text!r} never appeared")
        self.seen = self.seen.split(text, 1)[1]
        self.is_new_size = False

    def signal(self, number):
        for group in members(self.pid):
            try:
                os.killpg(group, number)
            except ProcessLookupError:
                pass  # it has ended meanwhile

    def take(self, step, value):
        if step == "--await":
            self.wait_for(value.encode())
        elif step == "--type":
            os.write(self.master, value.encode().decode("unicode_escape").encode())
        elif step == "--group":
            self.signal(getattr(signal, "SIG" + value))
        elif step == "--resize":
            resize(self.master, window(value))
            self.is_new_size = True
        elif step == "--hang-up":
            os.close(self.master)
            self.master = -1

    def finish(self):
        while self.master >= 0 and self.read():
            pass
        while time.monotonic() < self.limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code
            time.sleep(0.02)
        os.kill(self.pid, signal.SIGKILL)
        return 124


def main():
    steps, size, command = parse(sys.argv[1:])
    terminal = Terminal(*start(command, size))
    for step in steps:
        terminal.take(*step)
    return terminal.finish()


sys.exit(main())
