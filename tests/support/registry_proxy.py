#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A registry that misbehaves: passes requests on to a real one and spoils some of its answers.

registry_proxy.py UPSTREAM-PORT MODE [BYTES [TIMES]]

cut       end the connection after BYTES of a blob, for the first TIMES blobs that are larger
hang      send no more after BYTES of a blob, for the first TIMES blobs that are larger
endless   no end to blobs of more than BYTES
manifest  manifests that are asked for by digest get a blank at their end
replace   manifests are files of the directory "manifests", where there is one with the tag or digest

Prints the port that it listens on, then one line for each request: its path, and its range.
"""

import http.client
import http.server
import os
import sys
import threading

CHUNK = 65536


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    lock = threading.Lock()
    left = 0

    def log_message(self, format, *args):
        pass

    def spoils(self, size):
        """True if this answer, a blob of @size bytes, is one to spoil."""
        if "/blobs/" not in self.path or size <= Proxy.bytes or self.command == "HEAD":
            return False
        with Proxy.lock:
            Proxy.left -= 1
            return Proxy.left >= 0

    def answer(self, answer, size):
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "date"):
                self.send_header(name, value)
        if size is not None:
            self.send_header("Content-Length", str(size))
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True

    def spoil(self, answer, size):
        self.answer(answer, None if Proxy.mode == "endless" else size)
        self.wfile.write(answer.read(Proxy.bytes))
        self.wfile.flush()
        if Proxy.mode == "hang":
            self.connection.recv(1)  # until the client goes away
        while Proxy.mode == "endless":
            self.wfile.write(bytes(CHUNK))

    def replace(self):
        """Answers with a file. False if there is none."""
        path = os.path.join("manifests", os.path.basename(self.path))
        if Proxy.mode != "replace" or "/manifests/" not in self.path or not os.path.exists(path):
            return False
        with open(path, "rb") as f:
            body = f.read()
        kind = "index" if b'"manifests"' in body else "manifest"
        self.send_response(200)
        self.send_header("Content-Type", f"application/vnd.oci.image.{kind}.v1+json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)
        return True

    def do_GET(self):
        print(self.command, self.path, self.headers.get("Range", "whole"), flush=True)
        if self.replace():
            return
        upstream = http.client.HTTPConnection("127.0.0.1", Proxy.upstream)
        upstream.putrequest(self.command, self.path, skip_accept_encoding=True)
        for name, value in self.headers.items():  # Accept may come many times
            if name.lower() not in ("connection", "host", "accept-encoding"):
                upstream.putheader(name, value)
        upstream.endheaders()
        answer = upstream.getresponse()
        size = int(answer.getheader("Content-Length", 0))
        if Proxy.mode in ("cut", "hang", "endless") and self.spoils(size):
            self.spoil(answer, size)
            return
        body = answer.read()
        if Proxy.mode == "manifest" and "/manifests/sha256:" in self.path:
            body += b" "
        self.answer(answer, size if self.command == "HEAD" else len(body))
        self.wfile.write(body)

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        pass  # a client that went away


def main():
    Proxy.upstream = int(sys.argv[1])
    Proxy.mode = sys.argv[2]
    Proxy.bytes = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    Proxy.left = int(sys.argv[4]) if len(sys.argv) > 4 else 1 << 30
    server = Server(("127.0.0.1", 0), Proxy)
    print(server.server_port, flush=True)
    server.serve_forever()


main()
