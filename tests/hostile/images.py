#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""images.py DIR BUSYBOX: makes the hostile images of tests/system/hostile-images.sh, one below DIR for each case.

A case is named after what is wrong with it. Everything else about it is right, digests above all: what is not
refused at the door has to be stood by the one that reads it.
"""

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import platform
import subprocess
import sys
import zlib

BLOCK = 512
END = bytes(2 * BLOCK)
OCI = "application/vnd.oci.image."
ARCH = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
ACI_ARCH = {"x86_64": "amd64"}.get(platform.machine(), platform.machine())
OUT = sys.argv[1]


# ---- tar, byte by byte: no library writes what is needed here ----


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def octal(number, width):
    """A number field; what octal digits have no room for goes into base 256, as GNU tar does it."""
    if 0 <= number < 8 ** (width - 1):
        return b"%0*o\0" % (width - 1, number)
    return bytes([0x80 if number >= 0 else 0xFF]) + (number % 256 ** (width - 1)).to_bytes(width - 1, "big")


def header(name, kind="0", size=0, link=b"", mode=0o644, mtime=0, dev=(0, 0), old=b"ustar\x0000"):
    name = name if isinstance(name, bytes) else name.encode()
    link = link if isinstance(link, bytes) else link.encode()
    fields = [name[:100].ljust(100, b"\0"), octal(mode, 8), octal(0, 8), octal(0, 8), octal(size, 12), octal(mtime, 12),
              b" " * 8, kind.encode(), link[:100].ljust(100, b"\0"), old, bytes(64), octal(dev[0], 8), octal(dev[1], 8)]
    raw = bytearray(b"".join(fields).ljust(BLOCK, b"\0"))
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def file(name, data=b"x\n", **more):
    return header(name, size=len(data), **more) + padded(data)


def directory(name):
    return header(name, "5", mode=0o755)


def symlink(name, target):
    return header(name, "2", link=target)


def hardlink(name, target):
    return header(name, "1", link=target)


def node(name, kind, dev=(1, 3)):
    return header(name, kind, dev=dev)


def pax(*records, kind="x"):
    """Records are KEY=VALUE in bytes; a pax record begins with its own length."""
    text = b""
    for record in records:
        length = len(record) + 3
        while length != len(b"%d " % length) + len(record) + 1:
            length += 1
        text += b"%d %s\n" % (length, record)
    return header("pax", kind, size=len(text)) + padded(text)


def many(count):
    """As many empty files, quickly: the headers differ by seven digits."""
    head = bytearray(header("f0000000"))
    total = sum(head[:148]) + 8 * 32 + sum(head[156:]) - 7 * 48
    for i in range(count):
        digits = b"%07d" % i
        head[1:8] = digits
        head[148:154] = b"%06o" % (total + sum(digits))
        yield bytes(head)


# ---- images ----


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def text_of(document):
    return document if isinstance(document, bytes) else json.dumps(document).encode()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


class Layout:
    """An OCI layout: blobs, and the index that add() leads to."""

    def __init__(self, name):
        self.dir = os.path.join(OUT, name)
        os.makedirs(self.dir + "/blobs/sha256")
        write(self.dir + "/oci-layout", b'{"imageLayoutVersion": "1.0.0"}')

    def path(self, digest):
        return self.dir + "/blobs/" + digest.replace(":", "/", 1)

    def blob(self, data, kind, **more):
        data = text_of(data)
        write(self.path(sha256(data)), data)
        return {"mediaType": OCI + kind, "digest": sha256(data), "size": len(data), **more}

    def index(self, document):
        write(self.dir + "/index.json", text_of(document))


def config_of(diff_ids, **more):
    return {"architecture": ARCH, "os": "linux", "config": {"Cmd": ["/bin/true"], **more},
            "rootfs": {"type": "layers", "diff_ids": diff_ids}}


def manifest_of(config, layers):
    return {"schemaVersion": 2, "mediaType": OCI + "manifest.v1+json", "config": config, "layers": layers}


def index_of(*manifests):
    return {"schemaVersion": 2, "manifests": list(manifests)}


def image(name, *layers, blobs=None, manifest=lambda m: m, config=lambda c: c, index=lambda i: i):
    """
    An image of these tars. @blobs are what they are stored as, if not as they are; the functions change the documents,
    before they are hashed, and may return bytes.
    """
    layout = Layout(name)
    stored = [layout.blob(b, "layer.v1.tar") for b in blobs or layers]
    c = layout.blob(config(config_of([sha256(l) for l in layers])), "config.v1+json")
    m = layout.blob(manifest(manifest_of(c, stored)), "manifest.v1+json")
    layout.index(index(index_of(m)))
    return layout


def tree(name, *entries, **more):
    """An image of one layer of these entries."""
    return image(name, b"".join(entries) + END, **more)


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


def frame(data, window):
    """A zstd frame of blocks that are not compressed, which says that it needs this window (RFC 8878, 3.1.1.1.2)."""
    blocks = [data[i:i + 1024] for i in range(0, len(data), 1024)]
    return b"\x28\xb5\x2f\xfd\x00" + bytes([window]) + b"".join(
        (len(b) << 3).to_bytes(3, "little") + b for b in blocks) + b"\x01\0\0"


def changed(**fields):
    return lambda document: {**document, **fields}


# ---- the cases: what tars say ----


def names():
    tree("dot-dot", file("../../../../../../etc/escape"), file("a/../../../b"), directory(".."), file("/abs"), file("//d//./e"))
    tree("through-link", symlink("out", "/etc"), file("out/escape"), symlink("up", "../../.."), file("up/escape-up"))
    tree("links-to-nowhere", symlink("a", "/nowhere/at/all"), symlink("b", "../../../etc/shadow"), symlink("c", "c"))
    tree("through-loop", symlink("a", "b"), symlink("b", "a"), file("a/x"))
    tree("hard-link-outside", hardlink("a", "/etc/shadow"))
    tree("hard-link-up", hardlink("a", "../../../../etc/shadow"))
    tree("hard-link-through", symlink("out", "/etc"), hardlink("a", "out/shadow"))
    tree("hard-link-to-itself", hardlink("a", "a"))
    tree("hard-link-to-directory", directory("d"), hardlink("a", "d"))
    tree("duplicates", file("a", b"1"), file("a", b"2"), directory("d"), file("d/x"), file("d"), directory("a"), file("a/y"))
    tree("whiteout-of-nothing", file(".wh.a"), file("d/.wh.b"), file("x/y/.wh..wh..opq"))
    tree("whiteout-of-dot-dot", file("d/.wh..."), file("kept"))
    tree("whiteout-of-dot", file("d/.wh.."), file("kept"))
    tree("whiteout-without-name", file(".wh."), file("kept"))
    image("opaque-root", file("lower") + directory("d") + END, file(".wh..wh..opq") + file("upper") + END)
    image("whiteout-through-link", symlink("out", "/etc") + directory("etc") + file("etc/x") + file("kept") + END,
          file("out/.wh.x") + END)
    image("root-is-a-file", file(".") + file("kept") + END)
    image("root-is-a-link", symlink("./", "/etc") + file("kept") + END)
    image("root-is-removed", file("kept") + END, file(".wh..") + END)
    tree("name-255", file("n" * 100), pax(b"path=" + b"n" * 255), file("short"))
    tree("name-256", pax(b"path=" + b"n" * 256), file("short"))
    tree("path-long", pax(b"path=" + b"d/" * 2500 + b"f"), file("short"))
    tree("deep", pax(b"path=" + b"d/" * 1500), directory("x"))
    tree("link-long", pax(b"linkpath=" + b"l" * 5000), symlink("a", "x"))
    tree("control-characters", file("\x1b[31m\n\x07"), hardlink("\x1b]0;x\x07\n", "nowhere"))
    tree("sockets-and-nodes", node("fifo", "6"), node("null", "3"), node("disk", "4", (8, 0)), header("odd", "9", size=0))


def many_entries():
    # Gzip in pieces: half a gigabyte of tar.
    layout = Layout("many-entries")
    packer, out, digest = zlib.compressobj(1, wbits=31), io.BytesIO(), hashlib.sha256()
    pending = []
    for i, head in enumerate(many(1000000)):
        pending.append(head)
        if i % 2000 == 1999:
            piece = b"".join(pending)
            pending = []
            digest.update(piece)
            out.write(packer.compress(piece))
    digest.update(END)
    out.write(packer.compress(END) + packer.flush())
    layer = layout.blob(out.getvalue(), "layer.v1.tar+gzip")
    config = layout.blob(config_of(["sha256:" + digest.hexdigest()]), "config.v1+json")
    layout.index(index_of(layout.blob(manifest_of(config, [layer]), "manifest.v1+json")))


def pax_oddities():
    tree("pax-negative-size", pax(b"size=-1"), file("a"))
    tree("pax-overflowing-size", pax(b"size=99999999999999999999"), file("a"))
    tree("pax-times", pax(b"mtime=-99999999999999999999"), file("a"), pax(b"mtime=99999999999999999999.5"), file("b"),
         file("c", mtime=-1), file("d", mtime=2**63 - 1))
    tree("pax-nul", pax(b"path=b\0../../c"), file("a"))
    tree("pax-path-up", pax(b"path=../../../../etc/escape"), file("a"), pax(b"linkpath=/etc/shadow"), symlink("l", "x"))
    tree("pax-global", pax(b"path=../escape", b"uid=-5", b"size=100000", kind="g"), file("a"), file("b"))
    tree("pax-unknown", pax(b"VENDOR.key=value", b"comment=" + b"c" * 100000, b"novalue", b"x="), file("a"))
    tree("pax-no-key", pax(b"="), file("a"))
    tree("pax-owner", pax(b"uid=99999999999999"), file("a"))
    tree("pax-xattr", pax(b"SCHILY.xattr.user.a=" + b"v" * 100000), file("a"))
    tree("pax-privileges", pax(b"SCHILY.xattr.security.capability=\1\0\0\2\xff\xff\xff\xff" + bytes(12),
                               b"SCHILY.xattr.trusted.overlay.opaque=y", b"SCHILY.xattr.trusted.overlay.redirect=/etc"), file("a"))
    tree("pax-huge", header("pax", "x", size=3 << 20) + padded(b"9" * (3 << 20)), file("a"))
    tree("pax-size-lies", header("pax", "x", size=8**11 - 1), file("a"))
    tree("pax-alone", pax(b"path=bb"))


def sparse():
    tree("sparse-pax", pax(b"GNU.sparse.major=1", b"GNU.sparse.minor=0", b"GNU.sparse.name=s",
                           b"GNU.sparse.realsize=9223372036854775807"), file("a", padded(b"1\n0\n3\n") + b"abc"))
    tree("sparse-gnu", sparse_header(2**63 - 1) + padded(b"abc"))
    # Within the limit, and nearly all of it holes: that may not be written out.
    tree("sparse-harmless", sparse_header(8 << 20) + padded(b"abc"))


def sparse_header(real):
    raw = bytearray(header("s", "S", size=3, old=b"ustar  \0"))
    raw[386:398] = octal(0, 12)
    raw[398:410] = octal(3, 12)
    raw[483:495] = octal(real, 12)
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw)


def ends():
    good = file("a") + END
    many_zeros = file("zeros", bytes(200000)) + END
    image("tar-truncated-header", good[:300])
    image("tar-truncated-data", header("a", size=5000) + b"x" * 100)
    image("tar-without-end", file("a"))
    image("tar-trailing", good + b"garbage" * 1000)
    image("tar-trailing-entry", good + file("hidden") + END)
    image("tar-empty", b"")
    image("tar-empty-above", good, b"")
    image("tar-empty-gzip", b"", blobs=[gzip.compress(b"")])
    image("tar-empty-zstd", b"", blobs=[zstd(b"")])
    image("tar-noise", b"\xa5" * 10240)
    packed = gzip.compress(many_zeros)
    image("gzip-truncated", many_zeros, blobs=[packed[: len(packed) // 2]])
    image("gzip-trailing", many_zeros, blobs=[packed + b"garbage"])
    image("gzip-members", good, blobs=[gzip.compress(good[:700]) + gzip.compress(good[700:])])
    image("gzip-damaged", many_zeros, blobs=[packed[:60] + bytes([packed[60] ^ 0x55]) + packed[61:]])
    image("gzip-in-gzip", good, blobs=[gzip.compress(gzip.compress(good))])
    image("gzip-in-gzip-honest", gzip.compress(good), blobs=[gzip.compress(gzip.compress(good))])
    # A few bytes, then 20 MiB of empty members, then a tar; each further level makes that a thousand times as much.
    image("gzip-nested", good, blobs=[gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"") * (1 << 20) + gzip.compress(good))))])
    packed = zstd(many_zeros)
    image("zstd-truncated", many_zeros, blobs=[packed[: len(packed) // 2]])
    image("zstd-trailing", many_zeros, blobs=[packed + b"garbage"])
    image("zstd-window", many_zeros, blobs=[b"\x28\xb5\x2f\xfd\x00\xf8" + packed[6:]])
    # A frame of blocks as they are, at the limit (128 MiB) and one beyond, alone and behind one that is harmless.
    for window, size in (("128", 0x88), ("256", 0x90)):
        large = frame(good, size)
        image("zstd-window-" + window, good, blobs=[large])
        image("zstd-window-later-" + window, good * 2, blobs=[zstd(good) + large])
    skippable = b"".join(bytes([0x50 + i]) + b"\x2a\x4d\x18\x04\0\0\0" + b"skip" for i in range(16))
    image("zstd-skippable", good, blobs=[skippable + zstd(good) + skippable])
    image("zstd-skippable-alone", b"", blobs=[skippable])
    image("zstd-skippable-truncated", b"", blobs=[skippable[:-2]])
    image("zstd-skippable-many", good, blobs=[skippable * 65 + zstd(good)])
    image("xz-layer", good, blobs=[lzma.compress(good)])
    image("bzip2-layer", good, blobs=[bz2.compress(good)])


def bombs():
    # To be fetched with HUSK_IMAGE_BYTES_MAX=16Mi.
    bomb = file("zeros", bytes(64 << 20)) + END
    image("bomb-plain", bomb)
    image("bomb-gzip", bomb, blobs=[gzip.compress(bomb, 1)])
    image("bomb-zstd", bomb, blobs=[zstd(bomb)])
    parts = [file(f"part{i}", bytes(6 << 20)) + END for i in range(3)]
    image("bomb-sum", *parts, blobs=[gzip.compress(p, 1) for p in parts])
    # What an upper layer removes was unpacked all the same.
    image("bomb-removed", parts[0], parts[0], file(".wh.part0") + parts[2])
    image("bomb-behind-end", END + bytes(64 << 20), blobs=[gzip.compress(END + bytes(64 << 20), 1)])
    image("bomb-links", *[file("a", bytes(1 << 20)) + b"".join(hardlink(f"l{i}", "a") for i in range(100)) + END])
    write(OUT + "/bomb.tar.gz", gzip.compress(bomb, 1))
    write(OUT + "/bomb.tar.zst", zstd(bomb))
    aci("bomb.aci", file("rootfs/zeros", bytes(64 << 20)), pack=lambda d: lzma.compress(d, preset=0))
    aci("bomb-bzip2.aci", file("rootfs/zeros", bytes(64 << 20)), pack=bz2.compress)


# ---- documents ----


def documents():
    good = file("a") + END
    image("no-layers")
    image("layers-too-many", good, manifest=lambda m: {**m, "layers": m["layers"] * 129})
    image("layers-a-million", good, manifest=lambda m: text_of(m).replace(
        b"}]}", b"}" + b",{}" * 1000000 + b"]}"))
    image("layers-no-list", good, manifest=changed(layers="x"))
    image("layers-unlike-config", good, manifest=lambda m: {**m, "layers": m["layers"] * 2})
    image("layer-size-lies", good, manifest=lambda m: {**m, "layers": [{**m["layers"][0], "size": 7}]})
    image("layer-size-huge", good, manifest=lambda m: {**m, "layers": [{**m["layers"][0], "size": 2**63 - 1}]})
    image("layer-size-negative", good, manifest=lambda m: {**m, "layers": [{**m["layers"][0], "size": -1}]})
    image("layer-size-text", good, manifest=lambda m: {**m, "layers": [{**m["layers"][0], "size": "1e9"}]})
    image("layer-unknown-type", good, manifest=lambda m: {**m, "layers": [{**m["layers"][0], "mediaType": "text/html"}]})
    for name, digest in (("digest-sha512", "sha512:" + "0" * 128), ("digest-unknown", "md5:" + "0" * 32),
                         ("digest-path", "sha256:../../../../../../etc/shadow"), ("digest-path-64", "sha256:" + "../" * 21 + "x"),
                         ("digest-upper", "sha256:" + "A" * 64), ("digest-empty", "")):
        image(name, good, manifest=lambda m, d=digest: {**m, "layers": [{**m["layers"][0], "digest": d}]})
        image(name + "-in-index", good, index=lambda i, d=digest: index_of({**i["manifests"][0], "digest": d}))
    image("diff-id-lies", good, config=lambda c: {**c, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + "0" * 64]}})
    image("manifest-twice", good, manifest=lambda m: b'{"layers": [], ' + text_of(m)[1:])
    image("manifest-schema-1", good, manifest=changed(schemaVersion=1))
    image("manifest-is-index", good, manifest=lambda m: index_of())
    image("config-not-json", good, config=lambda c: b"\x7fELF")
    image("config-huge", good, config=lambda c: text_of(c) + b" " * (4 << 20))
    image("config-control", good, config=lambda c: {**c, "config": {"Cmd": ["/bin/\u0000x"], "Env": ["A\u001b=\u0007"]}})
    image("config-types", good, config=lambda c: {**c, "config": {"Cmd": {"a": 1}, "Env": 7, "User": []}})
    image("config-foreign", good, config=changed(architecture="pdp11\u001b[31m"))
    image("index-empty", good, index=lambda i: index_of())
    image("index-not-json", good, index=lambda i: b"<html>")
    image("index-huge", good, index=lambda i: text_of(i) + b" " * (4 << 20))
    image("index-deep", good, index=lambda i: b"[" * 200000)
    image("index-deep-member", good, index=lambda i: b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b", " + text_of(i)[1:])
    image("index-many", good, index=lambda i: index_of(*i["manifests"] * 1025))
    image("index-wide", good, index=lambda i: b'{"x": [' + b"{}," * 1000000 + b"{}]," + text_of(i)[1:])
    image("index-control", good, index=lambda i: index_of(
        *({**i["manifests"][0], "digest": "sha256:" + str(n) * 64, "annotations": {
            "org.opencontainers.image.ref.name": f"\u001b[31m{n}\n"}} for n in (1, 2))))
    # An index that contains itself would have to have its own digest in it: the nearest that there is, five deep.
    layout = image("index-nested", good)
    inner = json.load(open(layout.dir + "/index.json", "rb"))
    for _ in range(5):
        inner = index_of(layout.blob(inner, "index.v1+json"))
    layout.index(inner)
    # And the one that needs no right digest: husk has to look.
    layout = image("index-loop", good)
    loop = {"mediaType": OCI + "index.v1+json", "digest": "sha256:" + "7" * 64, "size": 0}
    loop["size"] = len(text_of(index_of({**loop, "size": 100})))
    write(layout.path(loop["digest"]), text_of(index_of(loop)))
    layout.index(index_of(loop))


# ---- files that are none ----


def sources():
    good = file("a") + END
    first = lambda l: l.path(sha256(good))
    index = lambda l: l.dir + "/index.json"
    for what, path in (("blob", first), ("index", index)):
        for kind in ("fifo", "link", "directory", "device", "socket"):
            layout = image(f"{what}-is-{kind}", good)
            victim = path(layout)
            os.remove(victim)
            if kind == "fifo":
                os.mkfifo(victim)
            elif kind == "link":
                os.symlink("/etc/shadow", victim)
            elif kind == "directory":
                os.mkdir(victim)
            elif kind == "device":
                os.mknod(victim, 0o600 | 0o020000, os.makedev(1, 5))  # /dev/zero: as much as anybody reads
            else:
                subprocess.run([sys.executable, "-c", "import socket, sys, os; os.chdir(sys.argv[1]); "
                                "socket.socket(socket.AF_UNIX).bind(sys.argv[2])", os.path.dirname(victim),
                                os.path.basename(victim)], check=True)
    layout = image("blobs-is-link", good)
    os.rename(layout.dir + "/blobs", OUT + "/blobs-elsewhere")
    os.symlink("../blobs-elsewhere", layout.dir + "/blobs")
    os.mkfifo(OUT + "/fifo")
    os.symlink("/dev/zero", OUT + "/link-to-device")


def archives():
    good = file("a") + END
    config = text_of(config_of([sha256(good)]))

    def docker(name, layer, *more, conf="config.json", manifest=lambda m: m):
        document = manifest([{"Config": conf, "RepoTags": ["x:1"], "Layers": [layer]}])
        write(f"{OUT}/{name}.tar", file("manifest.json", text_of(document)) + file("config.json", config) + b"".join(more) + END)

    docker("docker-layer-up", "../../../../../../etc/shadow")
    docker("docker-layer-absolute", "/etc/shadow")
    docker("docker-layer-link", "layer.tar", symlink("layer.tar", "/etc/shadow"))
    docker("docker-layer-hard-link", "layer.tar", hardlink("layer.tar", "/etc/shadow"))
    docker("docker-layer-through-link", "out/shadow", symlink("out", "/etc"))
    docker("docker-layer-fifo", "layer.tar", node("layer.tar", "6"))
    docker("docker-config-up", "layer.tar", file("layer.tar", good), conf="../../../../etc/shadow")
    docker("docker-link-chain", "l0", *[symlink(f"l{i}", f"l{i + 1}") for i in range(100)])
    docker("docker-link-loop", "l0", symlink("l0", "l1"), symlink("l1", "l0"))
    docker("docker-no-list", "layer.tar", manifest=lambda m: {"x": m})
    docker("docker-truncated", "layer.tar", header("layer.tar", size=8**11 - 1))


def aci(name, *entries, manifest=lambda m: m, pack=lambda data: data):
    document = manifest({"acKind": "ImageManifest", "acVersion": "0.8.11", "name": "example.com/x", "labels": [
        {"name": "os", "value": "linux"}, {"name": "arch", "value": ACI_ARCH}],
        "app": {"exec": ["/bin/true"], "user": "0", "group": "0"}})
    write(f"{OUT}/{name}", pack(file("manifest", text_of(document)) + directory("rootfs") + b"".join(entries) + END))


def acis():
    for name, text in (("up", "../../../etc/x"), ("slash", "/etc/shadow"), ("control", "x\u001b[31m\n"), ("empty", ""),
                       ("long", "x" * 5000), ("upper", "Example.com/X")):
        aci(f"aci-name-{name}.aci", manifest=changed(name=text))
    for name, paths in (("relative", ["etc"]), ("up", ["/../../../etc/shadow", "/a"]), ("many", ["/a"] * 65537),
                        ("long", ["/" + "d" * 5000]), ("nothing", ["/nowhere"]), ("link", ["/out/passwd"])):
        aci(f"aci-whitelist-{name}.aci", file("rootfs/a"), symlink("rootfs/out", "/etc"), manifest=changed(pathWhitelist=paths))
    aci("aci-outside-rootfs.aci", file("rootfs/../../../etc/escape"), file("/etc/escape"), file("rootfsx/y"), file("rootfs/a"))
    aci("aci-rootfs-link.aci", symlink("rootfs", "/etc"), file("rootfs/escape"))
    aci("aci-two-manifests.aci", file("manifest", b"{}"))
    aci("aci-dependencies.aci", manifest=changed(dependencies=[{"imageName": "example.com/x"}] * 65))
    aci("aci-whiteout.aci", file("rootfs/a"), file("rootfs/.wh.a"))


# ---- what matters when the app is started ----


def guests(busybox):
    """Of what PID 1 of the guest mounts, makes or writes in an app's root directory, one thing is in the way."""
    with open(busybox, "rb") as f:
        shell = file("bin/busybox", f.read(), mode=0o755)
    for name, entries in {
        "dev-link": [symlink("dev", "/etc"), directory("etc")],
        "dev-link-up": [symlink("dev", "../../../../dev")],
        "dev-file": [file("dev")],
        "dev-entries": [directory("dev"), symlink("dev/null", "/bin/busybox"), symlink("dev/pts", "/bin"), file("dev/shm"),
                        symlink("dev/console", "/bin/busybox"), symlink("dev/fd", "/bin")],
        "proc-link": [symlink("proc", "/etc"), directory("etc")],
        # Mounted on x; behind the mount of /dev the link leads nowhere, and so would lead whoever protects /proc.
        "proc-lost": [directory("dev"), directory("dev/d"), directory("x"), symlink("proc", "dev/d/../../x")],
        "proc-file": [file("proc")],
        "sys-link": [symlink("sys", "/bin")],
        "sys-file": [file("sys")],
        "tmp-link": [symlink("tmp", "/bin")],
        "tmp-file": [file("tmp")],
        "etc-link": [symlink("etc", "/bin")],
        "etc-link-up": [symlink("etc", "../../../../../etc")],
        "etc-file": [file("etc")],
        "etc-entries": [directory("etc"), symlink("etc/hosts", "/bin/busybox"), symlink("etc/hostname", "../../../proc/sys/kernel/hostname"),
                        symlink("etc/mtab", "/bin/busybox"), node("etc/resolv.conf", "6")],
        "passwd-fifo": [directory("etc"), node("etc/passwd", "6"), node("etc/group", "6")],
        "passwd-link": [directory("etc"), symlink("etc/passwd", "/proc/1/environ"), symlink("etc/group", "/dev/zero")],
        "passwd-huge": [directory("etc"), sparse_named("etc/passwd", 1 << 30)],
        "all-links": [symlink(d, "/") for d in ("dev", "proc", "sys", "etc", "tmp", "run", "var")],
    }.items():
        tree("guest-" + name, shell, *entries)


def sparse_named(name, real):
    raw = bytearray(sparse_header(real))
    raw[:100] = name.encode().ljust(100, b"\0")
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw)
    return bytes(raw) + padded(b"abc")


def main():
    os.makedirs(OUT)
    for make in (names, many_entries, pax_oddities, sparse, ends, bombs, documents, sources, archives, acis):
        make()
    guests(sys.argv[2])


main()
