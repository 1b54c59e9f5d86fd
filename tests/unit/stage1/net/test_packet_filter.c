/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernel, which executes the program here, lets through: each frame that an honest pod
 * sends, and each that is forged in one place.
 */
#include "stage1/net/packet_filter.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

#define OTHER_INTERFACE 1 /* lo: there is one everywhere */

static const unsigned char own_mac[] = { 0x02, 0x00, 0x5e, 0x00, 0x53, 0xfe };
static const unsigned char own_link[] = { 0xfe, 0x80, 0,    0,    0,    0,    0,    0,
					  0x00, 0x00, 0x5e, 0xff, 0xfe, 0x00, 0x53, 0xfe };

static struct net_interface pod;
static int filter = -EBADF;

static struct net_prefix address(int family, const char *text, int len)
{
	struct net_prefix p = { .ip = { .family = family }, .len = len };
	assert_int_equal(inet_pton(family, text, p.ip.bytes), 1);
	return p;
}

static void make_pod(void)
{
	memset(&pod, 0, sizeof(pod));
	memcpy(pod.mac, own_mac, sizeof(own_mac));
	pod.addresses[pod.n_addresses++] = address(AF_INET, "192.0.2.10", 24);
	pod.addresses[pod.n_addresses++] = address(AF_INET6, "2001:db8::10", 64);
	pod.addresses[pod.n_addresses++] = address(AF_INET, "198.51.100.254", 32);
	pod.addresses[pod.n_addresses++] = address(AF_INET6, "2001:db8:ffff:ffff::fffe", 128);
}

static int load(unsigned to)
{
	int fd = packet_filter_load(&pod, to, false);
	if (fd == -EPERM)
		skip();
	assert_true(fd >= 0);
	return fd;
}

/* What the program @fd says of the frame, the last of @times. */
static uint32_t judge_often(int fd, const unsigned char *frame, size_t len, uint32_t times)
{
	static unsigned char out[2048];
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.test.prog_fd = (uint32_t)fd;
	attr.test.data_in = (uintptr_t)frame;
	attr.test.data_size_in = (uint32_t)len;
	attr.test.data_out = (uintptr_t)out;
	attr.test.data_size_out = sizeof(out);
	attr.test.repeat = times;
	assert_int_equal(syscall(SYS_bpf, BPF_PROG_TEST_RUN, &attr, sizeof(attr)), 0);
	return attr.test.retval;
}

static uint32_t judge(int fd, const unsigned char *frame, size_t len)
{
	return judge_often(fd, frame, len, 1);
}

struct frame {
	unsigned char bytes[256];
	size_t len;
};

static void put(struct frame *f, const void *bytes, size_t len)
{
	memcpy(f->bytes + f->len, bytes, len);
	f->len += len;
}

static void put_text(struct frame *f, int family, const char *text)
{
	struct net_prefix p = address(family, text, 0);
	put(f, p.ip.bytes, family == AF_INET ? 4 : 16);
}

static void put_ether(struct frame *f, const unsigned char *from, uint16_t type)
{
	static const unsigned char other[] = { 0x02, 0xff, 0xff, 0xff, 0xff, 0xff };
	f->len = 0;
	put(f, other, 6);
	put(f, from, 6);
	put(f, &(uint16_t){ htons(type) }, 2);
}

static bool passes(const struct frame *f)
{
	uint32_t verdict = judge(filter, f->bytes, f->len);
	if (verdict != TC_ACT_SHOT)
		assert_int_equal(verdict, (uint32_t)TC_ACT_UNSPEC);
	return verdict != TC_ACT_SHOT;
}

static struct frame ipv4(const unsigned char *mac, const char *from)
{
	static const unsigned char head[] = { 0x45, 0, 0, 28, 0, 0, 0, 0, 64, IPPROTO_UDP, 0, 0 };
	static const unsigned char udp[8];
	struct frame f;
	put_ether(&f, mac, ETH_P_IP);
	put(&f, head, sizeof(head));
	put_text(&f, AF_INET, from);
	put_text(&f, AF_INET, "203.0.113.1");
	put(&f, udp, sizeof(udp));
	return f;
}

static struct frame arp_about(const unsigned char *sender_mac, const char *sender,
			      uint8_t operation, const char *wanted)
{
	const unsigned char head[] = { 0, 1, 8, 0, 6, 4, 0, operation };
	static const unsigned char target[6];
	struct frame f;
	put_ether(&f, own_mac, ETH_P_ARP);
	put(&f, head, sizeof(head));
	put(&f, sender_mac, 6);
	put_text(&f, AF_INET, sender);
	put(&f, target, 6);
	put_text(&f, AF_INET, wanted);
	return f;
}

static struct frame arp(const unsigned char *sender_mac, const char *sender)
{
	return arp_about(sender_mac, sender, 2, "192.0.2.1");
}

static struct frame ipv6(const char *from, uint8_t next, const void *body, size_t len)
{
	struct frame f;
	put_ether(&f, own_mac, ETH_P_IPV6);
	put(&f, (unsigned char[]){ 0x60, 0, 0, 0, 0, (unsigned char)len, next, 255 }, 8);
	put_text(&f, AF_INET6, from);
	put_text(&f, AF_INET6, "ff02::1");
	put(&f, body, len);
	return f;
}

static struct frame icmpv6(const char *from, uint8_t type, const char *target)
{
	unsigned char body[24] = { type };
	assert_int_equal(inet_pton(AF_INET6, target, body + 8), 1);
	return ipv6(from, IPPROTO_ICMPV6, body, sizeof(body));
}

static bool frame_passes(struct frame f)
{
	return passes(&f);
}

static int setup(void **state)
{
	(void)state;
	make_pod();
	filter = packet_filter_load(&pod, 0, false);
	return filter >= 0 || filter == -EPERM ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	filter = fd_close(filter);
	return 0;
}

static void need_kernel(void)
{
	if (filter == -EPERM)
		skip();
}

static void test_ipv4(void **state)
{
	(void)state;
	static const unsigned char macs[][6] = { { 0x02, 0x00, 0x5e, 0x00, 0x53, 0xff },
						 { 0x03, 0x00, 0x5e, 0x00, 0x53, 0xfe },
						 { 0 } };
	need_kernel();
	assert_true(frame_passes(ipv4(own_mac, "192.0.2.10")));
	assert_true(frame_passes(ipv4(own_mac, "198.51.100.254")));
	assert_false(frame_passes(ipv4(own_mac, "192.0.2.11")));
	assert_false(frame_passes(ipv4(own_mac, "192.0.2.1")));
	assert_false(frame_passes(ipv4(own_mac, "0.0.0.0")));
	assert_false(frame_passes(ipv4(own_mac, "255.255.255.255")));
	assert_false(frame_passes(ipv4(own_mac, "10.2.0.192")));
	for (size_t i = 0; i < ARRAY_SIZE(macs); i++)
		assert_false(frame_passes(ipv4(macs[i], "192.0.2.10")));
}

static void test_arp(void **state)
{
	(void)state;
	static const unsigned char other[] = { 0x02, 0x00, 0x5e, 0x00, 0x53, 0x01 };
	need_kernel();
	assert_true(frame_passes(arp(own_mac, "192.0.2.10")));
	assert_true(frame_passes(arp_about(own_mac, "0.0.0.0", 1, "192.0.2.10")));
	assert_true(frame_passes(arp_about(own_mac, "0.0.0.0", 1, "198.51.100.254")));
	assert_false(frame_passes(arp_about(own_mac, "0.0.0.0", 2, "192.0.2.10")));
	assert_false(frame_passes(arp_about(own_mac, "0.0.0.0", 1, "192.0.2.1")));
	assert_false(frame_passes(arp(own_mac, "192.0.2.1")));
	assert_false(frame_passes(arp(other, "192.0.2.10")));
	for (size_t at = 0; at < 6; at++) {
		struct frame f = arp(own_mac, "192.0.2.10");
		f.bytes[ETH_HLEN + at] ^= 1;
		assert_false(passes(&f));
	}
}

static void test_ipv6_addresses(void **state)
{
	(void)state;
	static const unsigned char udp[8];
	char link[INET6_ADDRSTRLEN];
	need_kernel();
	assert_non_null(inet_ntop(AF_INET6, own_link, link, sizeof(link)));
	const char *const own[] = { "2001:db8::10", "2001:db8:ffff:ffff::fffe", link };
	const char *const others[] = { "2001:db8::11",
				       "2001:db8::1",
				       "fe80::1",
				       "::",
				       "::1",
				       "fe80::5eff:fe00:53fd",
				       "2001:db8:0:1::10",
				       "2001:db8::1:0:10",
				       "2001:db8::1:10",
				       "2001:db9::10",
				       "fe80::200:5eff:fe00:53fe" };
	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		assert_true(frame_passes(ipv6(own[i], IPPROTO_UDP, udp, sizeof(udp))));
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		assert_false(frame_passes(ipv6(others[i], IPPROTO_UDP, udp, sizeof(udp))));
}

static void test_neighbor_discovery(void **state)
{
	(void)state;
	need_kernel();
	assert_true(frame_passes(icmpv6("2001:db8::10", 135, "2001:db8::1")));
	assert_true(frame_passes(icmpv6("::", 135, "2001:db8::10")));
	assert_true(frame_passes(icmpv6("::", 135, "fe80::5eff:fe00:53fe")));
	assert_false(frame_passes(icmpv6("::", 135, "2001:db8::1")));
	assert_false(frame_passes(icmpv6("2001:db8::10", 130, "::")));
	assert_true(frame_passes(icmpv6("2001:db8::10", 136, "2001:db8::10")));
	assert_true(frame_passes(icmpv6("2001:db8::10", 136, "fe80::5eff:fe00:53fe")));
	assert_true(frame_passes(icmpv6("2001:db8::10", 128, "::")));
	assert_true(frame_passes(icmpv6("fe80::5eff:fe00:53fe", 133, "::")));
	assert_false(frame_passes(icmpv6("2001:db8::10", 136, "2001:db8::1")));
	assert_false(frame_passes(icmpv6("2001:db8::10", 136, "::")));
	assert_false(frame_passes(icmpv6("fe80::5eff:fe00:53fe", 134, "::")));
	assert_false(frame_passes(icmpv6("2001:db8::10", 137, "::")));
	for (int type = 0; type < 256; type++)
		if (type != 135) /* nor that of "::" */
			assert_false(frame_passes(icmpv6("::", (uint8_t)type, "::")));
}

static void test_extension_headers(void **state)
{
	(void)state;
	unsigned char body[32] = { IPPROTO_ICMPV6 };
	static const uint8_t hiding[] = { 43, 51, 60, 135, 139, 140 };
	need_kernel();
	body[8] = 134;
	for (size_t i = 0; i < ARRAY_SIZE(hiding); i++)
		assert_false(frame_passes(ipv6("2001:db8::10", hiding[i], body, sizeof(body))));
	for (int type = 0; type < 256; type++) {
		bool is_mld = type == 131 || type == 132 || type == 143;
		body[8] = (unsigned char)type;
		assert_int_equal(frame_passes(ipv6("fe80::5eff:fe00:53fe", 0, body, sizeof(body))),
				 is_mld);
		assert_int_equal(frame_passes(ipv6("::", 0, body, sizeof(body))), is_mld);
	}
	body[8] = 143;
	body[1] = 1; /* a longer header has the type elsewhere */
	assert_false(frame_passes(ipv6("2001:db8::10", 0, body, sizeof(body))));
}

/* The first fragment of @next, whose first bytes are @first, or a later one. */
static bool fragment_passes(uint8_t next, const unsigned char first[4], bool is_later)
{
	unsigned char body[32] = { next, 0, 0, is_later ? 8 | 1 : 1 };
	memcpy(body + 8, first, 4);
	return frame_passes(ipv6("2001:db8::10", 44, body, sizeof(body)));
}

static void test_fragments(void **state)
{
	(void)state;
	static const uint8_t hiding[] = { 0, 43, 44, 51, 60, 135, 139, 140 };
	static const unsigned char server[] = { 547 >> 8, 547 & 0xff, 546 >> 8, 546 & 0xff };
	static const unsigned char dns[] = { 0, 53, 0x80, 0 };
	need_kernel();
	for (size_t i = 0; i < ARRAY_SIZE(hiding); i++)
		assert_false(fragment_passes(hiding[i], dns, false));
	for (int type = 0; type < 256; type++)
		assert_int_equal(
			fragment_passes(IPPROTO_ICMPV6, (unsigned char[4]){ (uint8_t)type }, false),
			type < 130);
	assert_true(fragment_passes(IPPROTO_UDP, dns, false));
	assert_true(fragment_passes(IPPROTO_TCP, server, false));
	assert_false(fragment_passes(IPPROTO_UDP, server, false));
	assert_true(fragment_passes(IPPROTO_UDP, server, true));
}

static struct frame udp4(const char *from, uint16_t source, uint16_t to)
{
	struct frame f = ipv4(own_mac, from);
	memcpy(f.bytes + ETH_HLEN + 20, &(uint16_t){ htons(source) }, 2);
	memcpy(f.bytes + ETH_HLEN + 22, &(uint16_t){ htons(to) }, 2);
	return f;
}

static void test_dhcp(void **state)
{
	(void)state;
	static const unsigned char server6[8] = { 547 >> 8, 547 & 0xff, 546 >> 8, 546 & 0xff };
	static const unsigned char client6[8] = { 546 >> 8, 546 & 0xff, 547 >> 8, 547 & 0xff };
	need_kernel();
	assert_false(frame_passes(udp4("192.0.2.10", 67, 68)));
	assert_true(frame_passes(udp4("192.0.2.10", 68, 67)));
	assert_true(frame_passes(udp4("192.0.2.10", 67, 67))); /* a relay asks */
	assert_false(frame_passes(udp4("0.0.0.0", 68, 67)));
	assert_false(frame_passes(ipv6("2001:db8::10", IPPROTO_UDP, server6, 8)));
	assert_true(frame_passes(ipv6("2001:db8::10", IPPROTO_UDP, client6, 8)));
	struct frame options = udp4("192.0.2.10", 1000, 1000), later = udp4("192.0.2.10", 67, 68);
	options.bytes[ETH_HLEN] = 0x46;
	assert_false(passes(&options));
	later.bytes[ETH_HLEN + 7] = 1;
	assert_true(passes(&later));

	int without = filter;
	filter = packet_filter_load(&pod, 0, true);
	assert_true(filter >= 0);
	assert_true(frame_passes(udp4("0.0.0.0", 68, 67)));
	assert_false(frame_passes(udp4("0.0.0.0", 68, 68)));
	assert_false(frame_passes(udp4("192.0.2.11", 68, 67)));
	assert_false(frame_passes(udp4("192.0.2.10", 67, 68)));
	fd_close(filter);
	filter = without;
}

static void test_other_types(void **state)
{
	(void)state;
	static const unsigned char zeroes[64];
	static const uint16_t types[] = {
		ETH_P_8021Q, ETH_P_8021AD, ETH_P_LLDP, ETH_P_MPLS_UC, ETH_P_PPP_SES, 38,
		0,           0xffff,       ETH_P_RARP, ETH_P_LOOPBACK
	};
	need_kernel();
	for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
		struct frame f;
		put_ether(&f, own_mac, types[i]);
		put(&f, zeroes, sizeof(zeroes));
		assert_false(passes(&f));
	}
}

/* What is cut off before the program has seen what it has to see is dropped. */
static void test_short_frames(void **state)
{
	(void)state;
	need_kernel();
	const struct frame whole[] = { ipv4(own_mac, "192.0.2.10"), arp(own_mac, "192.0.2.10"),
				       icmpv6("2001:db8::10", 136, "2001:db8::10") };
	/* The kernel tries no frame that is shorter than its IP header. */
	static const size_t shortest[] = { ETH_HLEN + 20, ETH_HLEN + 1, ETH_HLEN + 40 };
	static const size_t enough[] = { 38, 32, 78 };
	for (size_t i = 0; i < ARRAY_SIZE(whole); i++) {
		for (size_t len = shortest[i]; len <= whole[i].len; len++) {
			struct frame f = whole[i];
			f.len = len;
			assert_int_equal(passes(&f), len >= enough[i]);
		}
	}
}

static const unsigned char all[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

static struct frame addressed(struct frame f, const unsigned char *mac)
{
	memcpy(f.bytes, mac, 6);
	return f;
}

/* Frames of one window are all let through, and no more. */
static void test_to_many(void **state)
{
	(void)state;
	const unsigned char group[] = { 0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb };
	const struct frame one = ipv4(own_mac, "192.0.2.10"), many = addressed(one, group);
	uint32_t most, more = 0;
	need_kernel();
	for (int tries = 0; more != TC_ACT_SHOT; tries++) { /* the window may end in between */
		cleanup_fd int fresh = load(0);
		most = judge_often(fresh, many.bytes, many.len, PACKET_FILTER_TO_MANY_MAX);
		assert_int_equal(most, (uint32_t)TC_ACT_UNSPEC);
		more = judge(fresh, many.bytes, many.len);
		assert_true(tries < 20);
	}
	cleanup_fd int fd = load(0);
	while (judge_often(fd, many.bytes, many.len, PACKET_FILTER_TO_MANY_MAX) != TC_ACT_SHOT)
		;
	const struct frame question = addressed(arp(own_mac, "192.0.2.10"), all);
	while (judge(fd, question.bytes, question.len) == TC_ACT_SHOT)
		; /* until the next one */
	assert_int_equal(judge_often(fd, one.bytes, one.len, 2 * PACKET_FILTER_TO_MANY_MAX),
			 (uint32_t)TC_ACT_UNSPEC);
}

static void test_redirect(void **state)
{
	(void)state;
	need_kernel();
	cleanup_fd int own = load(OTHER_INTERFACE);
	const struct frame good = ipv4(own_mac, "192.0.2.10"), bad = ipv4(own_mac, "192.0.2.11");
	assert_int_equal(judge(own, good.bytes, good.len), TC_ACT_REDIRECT);
	assert_int_equal(judge(own, bad.bytes, bad.len), TC_ACT_SHOT);
}

/* The kernel takes the frames as received by lo, whose MAC address is zero. */
static void test_received(void **state)
{
	(void)state;
	static const unsigned char lo[6];
	need_kernel();
	const struct frame other = ipv4(own_mac, "192.0.2.11"), own = addressed(other, lo);
	const struct frame answer = addressed(udp4("192.0.2.1", 67, 68), all);
	for (int with_dhcp = 0; with_dhcp < 2; with_dhcp++) {
		cleanup_fd int fd = packet_filter_load_redirect(OTHER_INTERFACE, with_dhcp);
		assert_true(fd >= 0);
		assert_int_equal(judge(fd, own.bytes, own.len), TC_ACT_REDIRECT);
		assert_int_equal(judge(fd, other.bytes, other.len), TC_ACT_SHOT);
		assert_int_equal(judge(fd, answer.bytes, answer.len),
				 with_dhcp ? TC_ACT_OK : TC_ACT_REDIRECT);
		assert_int_equal(judge(fd, answer.bytes, ETH_HLEN + 20), TC_ACT_REDIRECT);
	}
}

/* The kernel takes it with no address, and with as many as there can be. */
static void test_limits(void **state)
{
	(void)state;
	need_kernel();
	pod.n_addresses = 0;
	fd_close(load(0));
	for (pod.n_addresses = 0; pod.n_addresses < NET_ADDRESSES_MAX; pod.n_addresses++)
		pod.addresses[pod.n_addresses] = address(AF_INET6, "2001:db8::10", 64);
	fd_close(load(0));
	make_pod();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ipv4),
		cmocka_unit_test(test_arp),
		cmocka_unit_test(test_ipv6_addresses),
		cmocka_unit_test(test_neighbor_discovery),
		cmocka_unit_test(test_extension_headers),
		cmocka_unit_test(test_fragments),
		cmocka_unit_test(test_dhcp),
		cmocka_unit_test(test_other_types),
		cmocka_unit_test(test_short_frames),
		cmocka_unit_test(test_to_many),
		cmocka_unit_test(test_redirect),
		cmocka_unit_test(test_received),
		cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
