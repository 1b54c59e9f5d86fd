#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks to a shim of containerd as containerd does: ttrpc 1.1, the messages of shim/proto/task.proto.

usage: shim_call.py SOCKET METHOD [FIELD=VALUE...] [-- METHOD [FIELD=VALUE...]]...

All requests are sent at once, on one connection. Of each answer, in the order in which they come, a
line is printed: the method, and what came as JSON, or the code and text of the error. A value @FILE
is a file's content; one of the type Any is its value, which are options if the field is called so, else
an OCI process. Exits with 1 if there was an error. Time is up after SHIM_CALL_LIMIT seconds (default 60).
"""
import json
import os
import re
import socket
import struct
import sys

PROTO = os.path.join(os.path.dirname(__file__), "../../shim/proto/task.proto")
PROCESS_TYPE = b"types.containerd.io/opencontainers/runtime-spec/1/Process"
OPTIONS_TYPE = b"runtimeoptions.v1.Options"
REQUESTS = {"Start": "ProcessRequest", "Delete": "ProcessRequest", "State": "ProcessRequest", "Wait": "ProcessRequest",
            "Pids": "ContainerRequest", "Pause": "ContainerRequest", "Resume": "ContainerRequest", "Stats": "ContainerRequest",
            "Connect": "ContainerRequest", "Checkpoint": "ContainerRequest"}
EMPTY = {"Exec", "Kill", "ResizePty", "CloseIO", "Shutdown", "Pause", "Resume"}


def read_messages():
    """{message: {number: (name, type, repeated)}}"""
    found = {}
    for name, body in re.findall(r"^message (\w+) \{\n(.*?)^\}", open(PROTO).read(), re.M | re.S):
        fields = re.findall(r"^  (repeated )?(\w+) (\w+) = (\d+);", body, re.M)
        found[name] = {int(n): (field, kind, bool(many)) for many, kind, field, n in fields}
    return found


MESSAGES = read_messages()


def varint(n):
    out = b""
    while n > 0x7f:
        out += bytes([n & 0x7f | 0x80])
        n >>= 7
    return out + bytes([n])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def pack(message, words):
    numbers = {name: (n, kind) for n, (name, kind, _) in MESSAGES[message].items()}
    out = b""
    for word in words:
        name, _, value = word.partition("=")
        data = open(value[1:], "rb").read() if value.startswith("@") else value.encode()
        number, kind = numbers[name]
        if kind == "Any":
            data = field(1, OPTIONS_TYPE if name == "options" else PROCESS_TYPE) + field(2, data)
        out += field(number, data if kind in ("string", "bytes", "Any") else int(data))
    return out


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7f) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def unpack(message, data):
    out, at = {}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        value, at = read_varint(data, at)
        name, kind, many = MESSAGES.get(message, {}).get(key >> 3, (str(key >> 3), "", False))
        if key & 7 == 2:
            raw, at = data[at:at + value], at + value
            value = unpack(kind, raw) if kind in MESSAGES else raw.decode(errors="replace")
        if many:
            out.setdefault(name, []).append(value)
        else:
            out[name] = value
    return out


def receive(sock, size):
    data = b""
    while len(data) < size:
        more = sock.recv(size - len(data))
        if not more:
            raise EOFError("the shim has ended the connection")
        data += more
    return data


def connect(address, limit):
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(limit)
    sock.connect(address.removeprefix("unix://"))
    return sock


def frame(stream, kind, data):
    return struct.pack(">IIBB", len(data), stream, kind, 0) + data


def request(stream, method, fields):
    payload = pack(REQUESTS.get(method, method + "Request"), fields)
    return frame(stream, 1, field(1, b"containerd.task.v2.Task") + field(2, method.encode()) + field(3, payload))


def read_frame(sock):
    """The number of its stream, and its data."""
    size, stream, _, _ = struct.unpack(">IIBB", receive(sock, 10))
    return stream, receive(sock, size)


def read_answer(method, data):
    """The code and text of the error, of which the code is 0 if there is none, and what came."""
    answer, at = {1: b"", 2: b""}, 0
    while at < len(data):
        key, at = read_varint(data, at)
        length, at = read_varint(data, at)
        answer[key >> 3], at = data[at:at + length], at + length
    status = unpack("", answer[1])
    return status.get("1", 0), status.get("2", ""), unpack("Empty" if method in EMPTY else method + "Response", answer[2])


def main():
    calls, words = [[]], sys.argv[2:]
    for word in words:
        if word == "--":
            calls.append([])
        else:
            calls[-1].append(word)
    sock = connect(sys.argv[1], float(os.environ.get("SHIM_CALL_LIMIT", 60)))
    sock.sendall(b"".join(request(2 * i + 1, method, fields) for i, (method, *fields) in enumerate(calls)))
    failed = 0
    for _ in calls:
        try:
            stream, data = read_frame(sock)
        except EOFError as e:
            sys.exit(f"shim_call: {e}")
        method = calls[stream // 2][0]
        code, text, came = read_answer(method, data)
        failed |= code != 0
        print(method, f"{code} {text}" if code else json.dumps(came), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
