#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""stop_accepting.py PID SOCKET: makes the process, which listens on the unix socket at the path
SOCKET, one that never accepts: it is stopped, its queue has room for one, and that is taken until
this program is killed. Prints "full" then."""

import ctypes
import os
import signal
import socket
import sys
import time

PIDFD_OPEN, PIDFD_GETFD = 434, 438

pid, path = int(sys.argv[1]), sys.argv[2]
libc = ctypes.CDLL(None, use_errno=True)


def listeners(pidfd):
    for name in os.listdir(f"/proc/{pid}/fd"):
        if os.readlink(f"/proc/{pid}/fd/{name}").startswith("socket:"):
            fd = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
            if fd < 0:
                raise OSError(ctypes.get_errno(), "pidfd_getfd")
            found = socket.socket(fileno=fd)
            listens = found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            if found.family == socket.AF_UNIX and listens:
                yield found


os.kill(pid, signal.SIGSTOP)
(listener,) = listeners(libc.syscall(PIDFD_OPEN, pid, 0))
listener.listen(0)
held = []
os.chdir(os.path.dirname(path))  # a short name: it has to fit in an address
while True:
    one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    one.setblocking(False)
    try:
        one.connect(os.path.basename(path))
    except BlockingIOError:
        break
    held.append(one)
print("full", flush=True)
time.sleep(1000)
