#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""http_server.py DIR: a web server on loopback for tests, which can be told to misbehave.

Prints one line "http=PORT http6=PORT tls=PORT expired=PORT other=PORT self=PORT" once it listens (http6 is
0 where there is no IPv6) and serves until it is killed. DIR gets "log", a line per request, and "ca.pem",
the authority of the certificates. The plain port is a proxy, too: what is asked of it for another host, also
through CONNECT, comes from the files DIR/sites/HOST/PATH.

    /file/ID       a body of "size" bytes; byte i is (i + v) % 251. Understands Range and If-Range.
    /status/CODE/ID, /redirect/N, /to?url=URL, /auth, /aws, /echo, /endless, /header?size=N, /headers, /interim, /garbage,
    /silent, /hang, /drip: what they say; see below

Parameters of /file: size, v, etag, lm (Last-Modified), cc (Cache-Control), norange, nolength, chunked, times (of
the first so many requests for this ID the following are done: ) break (ends the connection after so many bytes of
body), cl (lies about Content-Length), cr (lies about Content-Range), etag206 (another ETag on pieces), more
(sends so many bytes more than announced); headetag, headcl (what HEAD says); piece (pieces have at most so many bytes), change (from the so-maniest
request on it is version v + 1 with etag + "x"), code416 (answers 416 to every Range).
"""

import hashlib
import hmac
import http.server
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

DIR = os.path.abspath(sys.argv[1])
CYCLE = bytes(range(251))
SECRET = "aws-secret"
NAMES = "DNS:localhost,IP:127.0.0.1,IP:::1,DNS:example.com,DNS:*.example.com,DNS:cdn.example.net"
lock = threading.Lock()
counts = {}


def openssl(*words):
    subprocess.run(("openssl",) + words, cwd=DIR, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def make_key(name, subject):
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", name + ".key",
            "-out", name + ".csr", "-subj", subject)


def make_certificate(name, names, *when):
    """A certificate for @names by our authority."""
    make_key(name, "/CN=" + name)
    with open(os.path.join(DIR, name + ".ext"), "w", encoding="ascii") as f:
        f.write("subjectAltName=" + names + "\nbasicConstraints=CA:FALSE\n")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
            name + ".pem", "-extfile", name + ".ext", *(when or ("-days", "2")))


def make_certificates():
    make_key("ca", "/CN=test authority")
    openssl("req", "-x509", "-key", "ca.key", "-in", "ca.csr", "-out", "ca.pem", "-days", "2", "-addext",
            "keyUsage=keyCertSign")
    make_certificate("tls", NAMES)
    make_certificate("other", "DNS:other.example.org")
    make_certificate("expired", NAMES, "-days", "-1")
    make_key("self", "/CN=localhost")
    openssl("x509", "-req", "-in", "self.csr", "-signkey", "self.key", "-out", "self.pem", "-days", "2")


def context(name):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(os.path.join(DIR, name + ".pem"), os.path.join(DIR, name + ".key"))
    return c


def content(v, first, n):
    start = (first + v) % len(CYCLE)
    return (CYCLE * (n // len(CYCLE) + 2))[start : start + n]


def count(key):
    with lock:
        counts[key] = counts.get(key, 0) + 1
        return counts[key]


def aws_signature(headers, path, authorization):
    """The signature that the request should have (AWS Signature Version 4)."""
    fields = dict(w.strip().split("=", 1) for w in authorization.split(" ", 1)[1].split(","))
    scope = fields["Credential"].split("/", 1)[1]
    names = fields["SignedHeaders"].split(";")
    canonical = "".join(n + ":" + " ".join(headers[n].split()) + "\n" for n in names)
    payload = headers["x-amz-content-sha256"]
    request = "\n".join(["GET", path, "", canonical, ";".join(names), payload])
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, digest])
    key = ("AWS4" + SECRET).encode()
    for word in scope.split("/"):
        key = hmac.new(key, word.encode(), hashlib.sha256).digest()
    return fields, hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    tunnel = None  # the host that a CONNECT was for

    def log_message(self, format, *args):
        pass

    def log_request_line(self):
        words = [self.command, self.path] + [f"{k}={v}" for k, v in self.headers.items()]
        with lock, open(os.path.join(DIR, "log"), "a", encoding="utf-8") as f:
            f.write(" | ".join(words) + "\n")

    def end(self):
        """Ends the connection without further ado."""
        self.close_connection = True
        self.wfile.flush()
        try:
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def head(self, status, **fields):
        self.send_response(status)
        for name, value in fields.items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def answer(self, status, body=b"", **fields):
        self.head(status, Content_Length=len(body), **fields)
        self.wfile.write(body)

    def do_CONNECT(self):
        self.log_request_line()
        if not os.path.isdir(os.path.join(DIR, "sites", self.path.split(":")[0])):
            self.answer(502)
            return
        self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        inner = context("tls").wrap_socket(self.connection, server_side=True)
        handler = type("Tunnel", (Handler,), {"tunnel": self.path.split(":")[0]})
        handler(inner, self.client_address, self.server)
        self.close_connection = True

    def do_GET(self):
        self.log_request_line()
        url = urllib.parse.urlsplit(self.path)
        if self.tunnel or url.netloc:
            self.site(self.tunnel or url.hostname, url.path)
            return
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        words = url.path.strip("/").split("/")
        handler = getattr(self, "get_" + words[0], None)
        if not handler:
            self.answer(404, b"no such thing\n")
            return
        try:
            handler(url, words)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
            self.close_connection = True

    def do_HEAD(self):
        """Of /file: may know what GET does not say: headetag; and may lie about the length: headcl."""
        self.log_request_line()
        q = self.query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query, keep_blank_values=True))
        self.head(200 if "headetag" in q else 405, ETag=q.get("headetag"), Content_Length=q.get("headcl", q.get("size", "1000")))

    def site(self, host, path):
        name = os.path.join(DIR, "sites", host, path.strip("/") or "index.html")
        if os.path.isdir(name):
            name = os.path.join(name, "index.html")
        if not os.path.isfile(name):
            self.answer(404, b"no such page\n")
            return
        with open(name, "rb") as f:
            body = f.read()
        if body.startswith(b"REDIRECT "):
            self.answer(302, Location=body.split()[1].decode())
        else:
            self.answer(200, body, Content_Type="text/html")

    def number(self, name, default=0):
        return int(self.query.get(name, default))

    def get_file(self, url, words):
        q, n = self.query, count(url.path)
        lying = n <= self.number("times", 1 << 30)
        size, v, etag, lm = self.number("size", 1000), self.number("v"), q.get("etag"), q.get("lm")
        if 0 < self.number("change") <= n:
            v, etag = v + 1, '"' + etag.strip('"') + 'x"'
        first, last, status = 0, size - 1, 200
        asked = self.headers.get("Range")
        condition = self.headers.get("If-Range")
        if (etag and self.headers.get("If-None-Match") == etag) or (lm and self.headers.get("If-Modified-Since") == lm):
            self.answer_304(etag)
            return
        if asked and "norange" not in q and (condition is None or condition in (etag, lm, q.get("headetag")) or "etag206" in q):
            first, status = int(asked[len("bytes=") :].rstrip("-")), 206
            last = min(last, first + self.number("piece", size) - 1)
            if first >= size or "code416" in q:
                self.answer(416, Content_Range=f"bytes */{size}")
                return
        self.send_file(status, v, etag, lm, first, last, size, lying)

    def answer_304(self, etag):
        self.head(304, ETag=etag, Cache_Control=self.query.get("cc"))

    def send_file(self, status, v, etag, lm, first, last, size, lying):
        q, length = self.query, last - first + 1
        if status == 206 and lying:
            etag = q.get("etag206", etag)
        fields = {"ETag": etag, "Last_Modified": lm, "Cache_Control": q.get("cc")}
        if status == 206:
            fields["Content_Range"] = q["cr"] if lying and "cr" in q else f"bytes {first}-{last}/{size}"
        if "chunked" in q:
            fields["Transfer_Encoding"] = "chunked"
        elif "nolength" in q:
            fields["Connection"] = "close"
        else:
            fields["Content_Length"] = q["cl"] if lying and "cl" in q else length
        self.head(status, **fields)
        body = content(v, first, length + (self.number("more") if lying else 0))
        if lying and "break" in q:
            body = body[: self.number("break")]
        self.send_body(body, lying and "break" in q)
        if "nolength" in q or (lying and ("break" in q or "cl" in q)):
            self.end()

    def send_body(self, body, breaks):
        if "chunked" not in self.query:
            self.wfile.write(body)
            return
        for at in range(0, len(body), 10000):
            piece = body[at : at + 10000]
            self.wfile.write(b"%x\r\n" % len(piece) + piece + b"\r\n")
        if not breaks:
            self.wfile.write(b'0\r\nETag: "trailer"\r\n\r\n')

    def get_status(self, url, words):
        if count(url.path) <= self.number("times", 1 << 30):
            self.answer(int(words[1]), b"words\n", Retry_After=self.query.get("after"), Location=self.query.get("url"))
        else:
            self.get_file(url, words)

    def get_redirect(self, url, words):
        n = int(words[1])
        if n == 0:
            self.get_file(url, words)
        else:
            self.answer(302, Location=f"{n - 1}?{url.query}")

    def get_to(self, url, words):
        self.answer(302, Location=self.query["url"])

    def get_auth(self, url, words):
        value = self.headers.get("Authorization")
        wanted = self.query.get("want")
        if value is None or (wanted is not None and value != wanted):
            self.answer(401, WWW_Authenticate='Basic realm="test"')
        else:
            self.answer(200, value.encode())

    def get_aws(self, url, words):
        fields, signature = aws_signature(self.headers, url.path, self.headers["Authorization"])
        good = fields["Signature"] == signature
        self.answer(200 if good else 403, fields["Credential"].encode() if good else b"")

    def get_echo(self, url, words):
        self.answer(200, "".join(f"{k}: {v}\n" for k, v in self.headers.items()).encode())

    def get_endless(self, url, words):
        self.head(200, Connection="close")
        while True:
            self.wfile.write(CYCLE * 100)

    def get_header(self, url, words):
        start, end = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n", b"\r\n"
        left = self.number("size") - len(start) - len(end)
        lines = []
        while left > 0:
            n = left if left <= 1000 else 500
            lines.append(b"X: " + b"x" * (n - 5) + b"\r\n")
            left -= n
        self.wfile.write(start + b"".join(lines) + end)

    def get_headers(self, url, words):
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.wfile.write(b"X-More: and more\r\n")

    def get_interim(self, url, words):
        while True:
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nX-More: and more\r\n\r\n")

    def get_garbage(self, url, words):
        self.wfile.write(b"\x16\x03\x01 this is not HTTP\r\n\r\n")
        self.end()

    def get_silent(self, url, words):
        self.end()

    def get_hang(self, url, words):
        self.connection.recv(1)

    def get_drip(self, url, words):
        self.head(200, Content_Length=1 << 20, ETag=self.query.get("etag"))
        self.wfile.write(bytes(self.number("size")))
        while True:
            self.wfile.write(b"x")
            time.sleep(0.2)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (OSError, ssl.SSLError)):
            super().handle_error(request, client_address)



class Server6(Server):
    address_family = socket.AF_INET6


def serve(address, cls=Server, certificate=None):
    """The port of a new server."""
    try:
        server = cls((address, 0), Handler)
    except OSError:
        return 0
    if certificate:
        # The handshake is made by the thread of the connection.
        server.socket = context(certificate).wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server.server_address[1]


def main():
    make_certificates()
    open(os.path.join(DIR, "log"), "w", encoding="utf-8").close()
    ports = {"http": serve("127.0.0.1"), "http6": serve("::1", Server6)}
    for name in ("tls", "expired", "other", "self"):
        ports[name] = serve("127.0.0.1", certificate=name)
    print(" ".join(f"{k}={v}" for k, v in ports.items()), flush=True)
    threading.Event().wait()


main()
