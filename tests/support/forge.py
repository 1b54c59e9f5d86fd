#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a hostile pod puts on its wire, and what comes out of it.

forge.py send INTERFACE IPV4 IPV6 VICTIM4 GATEWAY4 GATEWAY6
    sends frames that are not the sender's to send, each with a text "forged-KIND;" in it, in two ways: through the queue of
    the interface and past it; and honest ones with "honest-KIND;".
forge.py watch INTERFACE SECONDS
    prints each such text that is seen on the interface of the host, once; "watching" as soon as it does.
forge.py advertise INTERFACE
    sends what a router there would: addresses of 2001:db8::/64, and itself as the default route.
forge.py garbage INTERFACE MAC
    prints frames of garbage to that address, as floods-network takes them.
forge.py question INTERFACE MAC IPV4 WANTED4
    prints a frame that asks that address who has WANTED4, as IPV4 honestly would.
"""
import re
import socket
import struct
import sys
import time

SOL_PACKET, PACKET_QDISC_BYPASS = 263, 20
PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 1, 1
BROADCAST = b"\xff" * 6
ALL_NODES, ALL_NODES_MAC = "ff02::1", b"\x33\x33\0\0\0\1"


def raw(interface, bypass=False):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    if bypass:
        s.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    return s


def mac_of(interface):
    return raw(interface).getsockname()[4]


def checksum(data):
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ether(to, sender, kind, payload):
    return to + sender + struct.pack("!H", kind) + payload


def udp4(source, to, text):
    udp = struct.pack("!HHHH", 9999, 9999, 8 + len(text), 0) + text
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 1, 0, 64, socket.IPPROTO_UDP, 0)
    ends = socket.inet_aton(source) + socket.inet_aton(to)
    return head[:10] + struct.pack("!H", checksum(head + ends)) + ends + udp


def ip6(source, to, following, payload):
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    return struct.pack("!IHBB", 6 << 28, len(payload), following, 255) + ends + payload


def icmp6(source, to, kind, body):
    ends = socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, to)
    message = struct.pack("!BBH", kind, 0, 0) + body
    total = checksum(ends + struct.pack("!II", len(message), socket.IPPROTO_ICMPV6) + message)
    return message[:2] + struct.pack("!H", total) + message[4:]


def arp(operation, sender, ip, to, wanted, text):
    fixed = struct.pack("!HHBBH", 1, 0x0800, 6, 4, operation)
    return fixed + sender + socket.inet_aton(ip) + to + socket.inet_aton(wanted) + text


def link_local(mac):
    middle = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
    return socket.inet_ntop(socket.AF_INET6, b"\xfe\x80" + b"\0" * 6 + middle)


def advertisement():
    prefix = struct.pack("!BBBBIII", 3, 4, 64, 0xC0, 86400, 86400, 0) + socket.inet_pton(socket.AF_INET6, "2001:db8::")
    return struct.pack("!BBHII", 64, 0, 1800, 0, 0) + prefix


def frames(mac, ip, ipv6, victim, gateway, gateway6):
    """(text, frame) of all kinds."""
    other = b"\x02\xbb\xbb\xbb\xbb\xbb"
    own = link_local(mac)
    advertise = advertisement()
    redirect = struct.pack("!I", 0) + socket.inet_pton(socket.AF_INET6, own) + socket.inet_pton(socket.AF_INET6, gateway6)
    neighbor = struct.pack("!I", 0x20000000) + socket.inet_pton(socket.AF_INET6, gateway6) + b"\x02\x01" + mac
    nothing = bytes([socket.IPPROTO_ICMPV6, 0, 1, 4, 0, 0, 0, 0])  # an extension header of padding

    def text(word):
        return f"{word};".encode()

    def icmp_from(kind, body, word):
        return icmp6(own, ALL_NODES, kind, body + text(word))

    make = {
        "honest-ipv4": lambda w: ether(BROADCAST, mac, 0x0800, udp4(ip, "255.255.255.255", text(w))),
        "honest-ipv6": lambda w: ether(ALL_NODES_MAC, mac, 0x86DD, ip6(ipv6, ALL_NODES, 59, text(w))),
        "honest-arp": lambda w: ether(BROADCAST, mac, 0x0806, arp(1, mac, ip, b"\0" * 6, gateway, text(w))),
        "forged-mac": lambda w: ether(BROADCAST, other, 0x0800, udp4(ip, "255.255.255.255", text(w))),
        "forged-ipv4": lambda w: ether(BROADCAST, mac, 0x0800, udp4(victim, "255.255.255.255", text(w))),
        "forged-ipv6": lambda w: ether(ALL_NODES_MAC, mac, 0x86DD, ip6(gateway6, ALL_NODES, 59, text(w))),
        "forged-arp-gateway": lambda w: ether(BROADCAST, mac, 0x0806, arp(2, mac, gateway, BROADCAST, victim, text(w))),
        "forged-arp-request": lambda w: ether(BROADCAST, mac, 0x0806, arp(1, mac, victim, b"\0" * 6, gateway, text(w))),
        "forged-arp-sender": lambda w: ether(BROADCAST, mac, 0x0806, arp(2, other, ip, BROADCAST, gateway, text(w))),
        "forged-router": lambda w: ether(ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 58, icmp_from(134, advertise, w))),
        "forged-router-behind-options": lambda w: ether(
            ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 0, nothing + icmp_from(134, advertise, w))),
        "forged-router-behind-destination": lambda w: ether(
            ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 60, nothing + icmp_from(134, advertise, w))),
        "forged-redirect": lambda w: ether(ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 58, icmp_from(137, redirect, w))),
        "forged-neighbor": lambda w: ether(ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 58, icmp_from(136, neighbor, w))),
        "forged-vlan": lambda w: ether(
            BROADCAST, mac, 0x8100, struct.pack("!HH", 1, 0x0800) + udp4(ip, "255.255.255.255", text(w))),
        "forged-bridge": lambda w: ether(b"\x01\x80\xc2\0\0\0", mac, 38, b"\x42\x42\x03" + b"\0" * 35 + text(w)),
        "forged-short": lambda w: ether(BROADCAST, mac, 0x0806, text(w)[:12]),
    }
    return [build(word) for word, build in make.items()]


def send(interface, *addresses):
    for bypass in False, True:
        s = raw(interface, bypass)
        for frame in frames(mac_of(interface), *addresses):
            for _ in range(3):
                try:
                    s.send(frame)
                except OSError:  # the interface itself refuses it
                    pass
                time.sleep(0.005)


def watch(interface, seconds):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    s.bind((interface, 3))
    member = struct.pack("iHH8s", socket.if_nametoindex(interface), PACKET_MR_PROMISC, 0, b"")
    s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP, member)
    s.settimeout(0.2)
    print("watching", flush=True)
    seen, end = set(), time.monotonic() + float(seconds)
    while time.monotonic() < end:
        try:
            found = set(re.findall(rb"(?:honest|forged)-[a-z0-9-]*", s.recv(2048))) - seen
        except TimeoutError:
            continue
        seen |= found
        for word in found:
            print(word.decode(), flush=True)


def advertise(interface):
    mac = mac_of(interface)
    own = link_local(mac)
    message = icmp6(own, ALL_NODES, 134, advertisement())
    raw(interface).send(ether(ALL_NODES_MAC, mac, 0x86DD, ip6(own, ALL_NODES, 58, message)))


def print_frame(to, sender, kind, payload):
    frame = ether(bytes.fromhex(to.replace(":", "")), sender, kind, payload)
    sys.stdout.buffer.write(struct.pack("!H", len(frame)) + frame)


def garbage(interface, mac):
    text = b"\x45" + bytes(range(256)) * 5
    for payload in text, text[:50]:
        print_frame(mac, mac_of(interface), 0x0800, payload)


def question(interface, mac, ip, wanted):
    own = mac_of(interface)
    print_frame(mac, own, 0x0806, arp(1, own, ip, b"\0" * 6, wanted, b"\0" * 18))


if __name__ == "__main__":
    kinds = {"send": send, "watch": watch, "advertise": advertise, "garbage": garbage, "question": question}
    kinds[sys.argv[1]](*sys.argv[2:])
