#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Speaks to a CRI plugin as a kubelet does: gRPC, the messages of cri.proto beside this file.

usage: cri_call.py SOCKET METHOD [REQUEST]
       cri_call.py SOCKET stream METHOD REQUEST
       cri_call.py SOCKET port-forward SANDBOX PORT

The request, and what is printed of the answer, are JSON (bytes are base64). If it is refused, the
name of the gRPC code and the text are printed as errors, and the exit code is 1. "stream" opens what
Exec or Attach answers, as kubectl does through a kubelet, by WebSocket: standard input goes in, what
comes out goes to standard output and errors, and the exit code is that of the command. Time is up
after CRI_CALL_LIMIT seconds (default 60).
"""
import base64
import functools
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

PACKAGE = "runtime.v1"
LIMIT = int(os.environ.get("CRI_CALL_LIMIT", "60"))
IMAGE_METHODS = {"PullImage", "ImageStatus"}
BY_ID = {"StopPodSandbox", "RemovePodSandbox", "StartContainer", "RemoveContainer", "ContainerStats", "ReopenContainerLog"}
WITHOUT_ANSWER = {"StopPodSandbox", "RemovePodSandbox", "StartContainer", "StopContainer", "RemoveContainer",
                  "UpdateContainerResources", "ReopenContainerLog"}
WITH_URL = {"Exec", "Attach", "PortForward"}


def read_messages():
    """The message classes, by name."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.NamedTemporaryFile() as out:
        subprocess.run(["protoc-c", "-I", here, "-o", out.name, os.path.join(here, "cri.proto")], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    pool.Add(files.file[0])
    factory = message_factory.MessageFactory(pool)
    return lambda name: factory.GetPrototype(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))


message = read_messages()


def message_or_empty(name):
    try:
        return message(name)
    except KeyError:
        return message("Empty")


def types_of(method):
    request = message("IdRequest") if method in BY_ID else message_or_empty(method + "Request")
    if method in WITH_URL:
        return request, message("UrlResponse")
    return request, message("Empty") if method in WITHOUT_ANSWER else message(method + "Response")


@functools.lru_cache
def channel_to(path):
    return grpc.insecure_channel("unix:" + os.path.abspath(path))


def call(path, method, text):
    request, response = types_of(method)
    service = "ImageService" if method in IMAGE_METHODS else "RuntimeService"
    send = channel_to(path).unary_unary(f"/{PACKAGE}.{service}/{method}", request.SerializeToString, response.FromString)
    return send(json_format.Parse(text, request()), timeout=LIMIT)


class WebSocket:
    """RFC 6455, as a client."""

    def __init__(self, url, protocol):
        host, port, path = re.fullmatch(r"http://([^:/]+):(\d+)(/.*)", url).groups()
        self.socket = socket.create_connection((host, int(port)))
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\n"
                             f"Sec-WebSocket-Version: 13\r\nOrigin: http://{host}\r\n"
                             f"Sec-WebSocket-Protocol: {protocol}\r\n\r\n").encode())
        self.bytes = b""
        while b"\r\n\r\n" not in self.bytes:
            self.more()
        head, self.bytes = self.bytes.split(b"\r\n\r\n", 1)
        if b" 101 " not in head.split(b"\r\n")[0]:
            sys.exit(head.decode(errors="replace"))

    def more(self):
        part = self.socket.recv(65536)
        if not part:
            raise EOFError
        self.bytes += part

    def send(self, payload):
        size = len(payload)
        mask = os.urandom(4)
        length = bytes([0x80 | size]) if size < 126 else struct.pack(">BH", 0x80 | 126, size)
        self.socket.sendall(b"\x82" + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(payload)))

    def take(self, n):
        while len(self.bytes) < n:
            self.more()
        part, self.bytes = self.bytes[:n], self.bytes[n:]
        return part

    def receive(self):
        """The next message; None at the end."""
        try:
            kind, size = self.take(2)
            if size == 126:
                size, = struct.unpack(">H", self.take(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.take(8))
            payload = self.take(size)
        except (EOFError, ConnectionResetError):
            return None
        return None if kind & 0xF == 8 else payload


def write_all(fd, data):
    while data:
        data = data[os.write(fd, data):]


def status_of(text):
    status = json.loads(text)
    if status["status"] == "Success":
        return 0
    if status.get("reason") == "NonZeroExitCode":
        return int(status["details"]["causes"][0]["message"])
    print(status.get("message"), file=sys.stderr)
    return 1


def carry(url, sends_input, take):
    """Carries standard input to channel 0 until take(channel, data) has an exit status, or the connection ends."""
    ws = WebSocket(url, "v4.channel.k8s.io")
    sources, status = [ws.socket] + ([sys.stdin] if sends_input else []), None
    while status is None:
        ready = [ws.socket] if ws.bytes else select.select(sources, [], [])[0]
        if ws.socket in ready:
            got = ws.receive()
            status = 0 if got is None else take(got[0], got[1:])
        elif data := os.read(0, 4096):
            ws.send(b"\0" + data)
        else:
            sources.remove(sys.stdin)
    return status


def take_stream(channel, data):
    """Of v4.channel.k8s.io: channels 0 to 2 are descriptors, 3 says how it has ended."""
    return status_of(data) if channel == 3 else write_all(channel, data)


def take_port():
    """Of portforward.k8s.io with one port: channel 0 is data, 1 errors; both begin with its number."""
    begun = set()

    def take(channel, data):
        data = data if channel in begun else data[2:]
        begun.add(channel)
        if channel == 1 and data:
            print(data.decode(), file=sys.stderr)
            return 1
        return write_all(1, data)

    return take


def main(path, verb, *rest):
    if verb == "stream":
        method, text = rest
        return carry(call(path, method, text).url, json.loads(text).get("stdin", False), take_stream)
    if verb == "port-forward":
        sandbox, port = rest
        url = call(path, "PortForward", json.dumps({"id": sandbox, "port": [int(port)]})).url
        return carry(f"{url}?port={port}", True, take_port())
    answer = call(path, verb, *(rest or ("{}",)))
    print(json_format.MessageToJson(answer, preserving_proto_field_name=True, including_default_value_fields=True, indent=None))
    return 0


if __name__ == "__main__":
    signal.alarm(LIMIT)
    try:
        sys.exit(main(*sys.argv[1:]))
    except grpc.RpcError as e:
        sys.exit(f"{e.code().name}: {e.details()}")
