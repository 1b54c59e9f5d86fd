/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/packet_filter.h"

#include <arpa/inet.h>
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/pkt_cls.h>
#include <net/if_arp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "stage1/pod/bpf.h"

/* Offsets in a frame: Ethernet; RFC 826, 791, 8200, 4443. */
#define AT_TARGET     0
#define AT_SOURCE     6
#define AT_TYPE       12
#define AT_BODY       14
#define AT_ARP_KIND   (AT_BODY + 6)
#define AT_ARP_MAC    (AT_BODY + 8)
#define AT_ARP_IP     (AT_BODY + 14)
#define AT_ARP_TARGET (AT_BODY + 24)
#define AT_IPV4_PART  (AT_BODY + 6)
#define AT_IPV4_NEXT  (AT_BODY + 9)
#define AT_IPV4_FROM  (AT_BODY + 12)
#define AT_IPV4_BODY  (AT_BODY + 20) /* without options */
#define AT_IPV6_NEXT  (AT_BODY + 6)
#define AT_IPV6_FROM  (AT_BODY + 8)
#define AT_IPV6_BODY  (AT_BODY + 40)
#define AT_ND_TARGET  (AT_IPV6_BODY + 8)
#define AT_FRAGMENT   (AT_IPV6_BODY + 8) /* behind one fragment header */
#define AT_MLD        (AT_IPV6_BODY + 8) /* behind one hop-by-hop header with the router alert */
#define MLD_V2_REPORT 143                /* RFC 3810 */

/* Where a jump goes, until link_jumps(); others go on so many instructions behind the next. */
#define TO_DROP (-1)
#define TO_PASS (-2)

#define CONTEXT BPF_REG_6 /* the frame: struct __sk_buff */

/* 250 of frame and protocols; 8 for each of 17 addresses, four times; Linux takes 4096. */
#define INSNS_MAX 1024

struct program {
	struct bpf_insn insns[INSNS_MAX];
	size_t n;
	const struct net_interface *pod;
	bool with_dhcp;
};

/* What the program remembers from one frame to the next. */
struct memory {
	uint64_t window; /* the last one in which there was a frame to many */
	uint64_t n;      /* of them in it */
};

static struct bpf_insn *add(struct program *p, unsigned code, unsigned dst, unsigned src, int imm)
{
	struct bpf_insn *i = &p->insns[p->n++];
	*i = (struct bpf_insn){
		.code = (uint8_t)code, .dst_reg = dst & 0xf, .src_reg = src & 0xf, .imm = imm
	};
	return i;
}

static void add_move(struct program *p, unsigned reg, int value)
{
	add(p, BPF_ALU64 | BPF_MOV | BPF_K, reg, 0, value);
}

static void add_copy(struct program *p, unsigned to, unsigned from)
{
	add(p, BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0);
}

/* BPF_JEQ, BPF_JNE of the lower half of register 0. */
static struct bpf_insn *add_jump(struct program *p, unsigned op, uint32_t value, int16_t to)
{
	struct bpf_insn *i = add(p, BPF_JMP32 | op | BPF_K, BPF_REG_0, 0, (int)value);
	i->off = to;
	return i;
}

/* From here on @jump goes to the next instruction. */
static void land(struct program *p, struct bpf_insn *jump)
{
	jump->off = (int16_t)(&p->insns[p->n] - jump - 1);
}

/*
 * Copies @len bytes at @offset of the frame to the end of the stack, which is aligned; drops a
 * frame that is shorter. The lower registers are gone then.
 */
static void add_load(struct program *p, int offset, int len)
{
	add_copy(p, BPF_REG_1, CONTEXT);
	add_move(p, BPF_REG_2, offset);
	add_copy(p, BPF_REG_3, BPF_REG_10);
	add(p, BPF_ALU64 | BPF_ADD, BPF_REG_3, 0, -16); /* not BPF_SUB: the kernel refuses it */
	add_move(p, BPF_REG_4, len);
	add(p, BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_skb_load_bytes);
	add_jump(p, BPF_JNE, 0, TO_DROP);
}

/* Register 0: BPF_B, BPF_H, BPF_W, BPF_DW of what was loaded, @at so many bytes. */
static void add_get(struct program *p, unsigned size, int at)
{
	add(p, BPF_LDX | BPF_MEM | size, BPF_REG_0, BPF_REG_10, 0)->off = (int16_t)(at - 16);
}

static uint16_t half(const unsigned char *bytes)
{
	uint16_t v;
	memcpy(&v, bytes, sizeof(v));
	return v;
}

static uint32_t word(const unsigned char *bytes)
{
	uint32_t v;
	memcpy(&v, bytes, sizeof(v));
	return v;
}

/* One byte of the frame into register 0. */
static void add_load_byte(struct program *p, int offset)
{
	add_load(p, offset, 1);
	add_get(p, BPF_B, 0);
}

static void add_check_mac(struct program *p, int offset)
{
	const unsigned char *mac = p->pod->mac;
	add_load(p, offset, NET_MAC_LEN);
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JNE, word(mac), TO_DROP);
	add_get(p, BPF_H, 4);
	add_jump(p, BPF_JNE, half(mac + 4), TO_DROP);
}

/* ---- ARP and IPv4 ---- */

/* Passes if the address at @offset is one of the pod's. It stays in register 0. */
static void add_match_ipv4(struct program *p, int offset)
{
	add_load(p, offset, 4);
	add_get(p, BPF_W, 0);
	for (size_t i = 0; i < p->pod->n_addresses; i++)
		if (p->pod->addresses[i].ip.family == AF_INET)
			add_jump(p, BPF_JEQ, word(p->pod->addresses[i].ip.bytes), TO_PASS);
}

static void add_drop_rest(struct program *p)
{
	add(p, BPF_JMP | BPF_JA, 0, 0, 0)->off = TO_DROP;
}

static void add_arp(struct program *p)
{
	static const unsigned char kind[] = { 0, 1, ETH_P_IP >> 8, ETH_P_IP & 0xff, 6, 4 };
	struct bpf_insn *other = add_jump(p, BPF_JNE, htons(ETH_P_ARP), 0);
	add_load(p, AT_BODY, sizeof(kind));
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JNE, word(kind), TO_DROP);
	add_get(p, BPF_H, 4);
	add_jump(p, BPF_JNE, half(kind + 4), TO_DROP);
	add_check_mac(p, AT_ARP_MAC);
	add_match_ipv4(p, AT_ARP_IP);
	/* Who has an address that is to be the pod's? (RFC 5227, 2.1.1) */
	add_jump(p, BPF_JNE, INADDR_ANY, TO_DROP);
	add_load(p, AT_ARP_KIND, 2);
	add_get(p, BPF_H, 0);
	add_jump(p, BPF_JNE, htons(ARPOP_REQUEST), TO_DROP);
	add_match_ipv4(p, AT_ARP_TARGET);
	add_drop_rest(p);
	land(p, other);
}

/* Ports of UDP as they stand in the datagram, source and destination. */
#define PORTS(from, to) \
	word((const unsigned char[]){ (from) >> 8, (from)&0xff, (to) >> 8, (to)&0xff })

/*
 * UDP of IPv4: no server of DHCP, and with DHCP a client that has no address yet. Ports are where
 * they are only without options; a later fragment has none.
 */
static void add_udp4(struct program *p)
{
	add_load_byte(p, AT_IPV4_NEXT);
	struct bpf_insn *other = add_jump(p, BPF_JNE, IPPROTO_UDP, 0);
	add_load_byte(p, AT_BODY);
	add_jump(p, BPF_JNE, 0x45, TO_DROP);
	add_load(p, AT_IPV4_PART, 2);
	add_get(p, BPF_H, 0);
	add(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, htons(0x1fff));
	struct bpf_insn *later = add_jump(p, BPF_JNE, 0, 0);
	add_load(p, AT_IPV4_BODY, 4);
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JEQ, PORTS(67, 68), TO_DROP);
	if (p->with_dhcp) {
		struct bpf_insn *no_client = add_jump(p, BPF_JNE, PORTS(68, 67), 0);
		add_load(p, AT_IPV4_FROM, 4);
		add_get(p, BPF_W, 0);
		add_jump(p, BPF_JEQ, INADDR_ANY, TO_PASS);
		land(p, no_client);
	}
	land(p, later);
	land(p, other);
}

static void add_ipv4(struct program *p)
{
	struct bpf_insn *other = add_jump(p, BPF_JNE, htons(ETH_P_IP), 0);
	add_udp4(p);
	add_match_ipv4(p, AT_IPV4_FROM);
	add_drop_rest(p);
	land(p, other);
}

/* ---- IPv6 ---- */

/* *ret jumps if the loaded address is @ip. */
static void add_match_ipv6(struct program *p, const unsigned char *ip, struct bpf_insn **ret)
{
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JNE, word(ip), 6);
	add_get(p, BPF_W, 4);
	add_jump(p, BPF_JNE, word(ip + 4), 4);
	add_get(p, BPF_W, 8);
	add_jump(p, BPF_JNE, word(ip + 8), 2);
	add_get(p, BPF_W, 12);
	*ret = add_jump(p, BPF_JEQ, word(ip + 12), 0);
}

/* The modified EUI-64 of the MAC address below fe80::/64. */
static void link_local(const unsigned char *mac, unsigned char ret[16])
{
	memcpy(ret, (const unsigned char[16]){ 0xfe, 0x80 }, 16);
	memcpy(ret + 8, mac, 3);
	ret[8] ^= 2;
	ret[11] = 0xff;
	ret[12] = 0xfe;
	memcpy(ret + 13, mac + 3, 3);
}

/* Goes on if the address at @offset is one of the pod's, else drops. */
static void add_check_ipv6(struct program *p, int offset)
{
	struct bpf_insn *hits[NET_ADDRESSES_MAX + 1];
	unsigned char own[16];
	size_t n = 0;
	add_load(p, offset, 16);
	link_local(p->pod->mac, own);
	add_match_ipv6(p, own, &hits[n++]);
	for (size_t i = 0; i < p->pod->n_addresses; i++)
		if (p->pod->addresses[i].ip.family == AF_INET6)
			add_match_ipv6(p, p->pod->addresses[i].ip.bytes, &hits[n++]);
	add(p, BPF_JMP | BPF_JA, 0, 0, 0)->off = TO_DROP;
	while (n > 0)
		land(p, hits[--n]);
}

/* MLD, the one protocol that has a hop-by-hop header: all reports and leaves pass. */
static void add_mld(struct program *p)
{
	static const unsigned types[] = { MLD_LISTENER_REPORT, MLD_LISTENER_REDUCTION,
					  MLD_V2_REPORT };
	add_load(p, AT_IPV6_BODY, 2);
	add_get(p, BPF_H, 0);
	add_jump(p, BPF_JNE, half((const unsigned char[]){ IPPROTO_ICMPV6, 0 }), TO_DROP);
	add_load_byte(p, AT_MLD);
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		add_jump(p, BPF_JEQ, types[i], TO_PASS);
	add(p, BPF_JMP | BPF_JA, 0, 0, 0)->off = TO_DROP;
}

/* From no address: who has the pod's? (RFC 4862, 5.4) MLD reports and the solicitation. */
static void add_unspecified(struct program *p)
{
	static const unsigned char none[16];
	struct bpf_insn *hit;
	add_load(p, AT_IPV6_FROM, 16);
	add_match_ipv6(p, none, &hit);
	struct bpf_insn *other = add(p, BPF_JMP | BPF_JA, 0, 0, 0);
	land(p, hit);
	add_load_byte(p, AT_IPV6_NEXT);
	struct bpf_insn *icmp = add_jump(p, BPF_JNE, IPPROTO_HOPOPTS, 0);
	add_mld(p);
	land(p, icmp);
	add_jump(p, BPF_JNE, IPPROTO_ICMPV6, TO_DROP);
	add_load_byte(p, AT_IPV6_BODY);
	add_jump(p, BPF_JNE, ND_NEIGHBOR_SOLICIT, TO_DROP);
	add_check_ipv6(p, AT_ND_TARGET);
	add(p, BPF_JMP | BPF_JA, 0, 0, 0)->off = TO_PASS;
	land(p, other);
}

static void add_icmpv6(struct program *p)
{
	add_load_byte(p, AT_IPV6_BODY);
	add_jump(p, BPF_JEQ, ND_ROUTER_ADVERT, TO_DROP);
	add_jump(p, BPF_JEQ, ND_REDIRECT, TO_DROP);
	add_jump(p, BPF_JEQ, MLD_LISTENER_QUERY, TO_DROP);
	add_jump(p, BPF_JNE, ND_NEIGHBOR_ADVERT, TO_PASS);
	add_check_ipv6(p, AT_ND_TARGET);
	add(p, BPF_JMP | BPF_JA, 0, 0, 0)->off = TO_PASS;
}

/* No server of DHCPv6; @offset is where UDP begins. */
static void add_udp6(struct program *p, int offset)
{
	add_load(p, offset, 4);
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JNE, PORTS(547, 546), TO_PASS);
	add_drop_rest(p);
}

/* Behind headers of these kinds anything could hide. */
static void add_check_next(struct program *p)
{
	static const unsigned hidden[] = { IPPROTO_ROUTING, IPPROTO_AH,    IPPROTO_DSTOPTS,
					   IPPROTO_MH,      139 /* HIP */, 140 /* shim6 */ };
	for (size_t i = 0; i < ARRAY_SIZE(hidden); i++)
		add_jump(p, BPF_JEQ, hidden[i], TO_DROP);
}

/* A fragment: of ICMPv6 errors and echoes; all others fit into one packet (RFC 6980). */
static void add_fragment(struct program *p)
{
	struct bpf_insn *other = add_jump(p, BPF_JNE, IPPROTO_FRAGMENT, 0);
	add_load(p, AT_IPV6_BODY + 2, 2);
	add_get(p, BPF_H, 0);
	add(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, htons(0xfff8));
	add_jump(p, BPF_JNE, 0, TO_PASS); /* not the first */
	add_load_byte(p, AT_IPV6_BODY);
	add_check_next(p);
	add_jump(p, BPF_JEQ, IPPROTO_HOPOPTS, TO_DROP);
	add_jump(p, BPF_JEQ, IPPROTO_FRAGMENT, TO_DROP);
	struct bpf_insn *icmp = add_jump(p, BPF_JEQ, IPPROTO_ICMPV6, 0);
	add_jump(p, BPF_JNE, IPPROTO_UDP, TO_PASS);
	add_udp6(p, AT_FRAGMENT);
	land(p, icmp);
	add_load_byte(p, AT_FRAGMENT);
	add_jump(p, BPF_JLT, MLD_LISTENER_QUERY, TO_PASS);
	add_drop_rest(p);
	land(p, other);
}

static void add_ipv6(struct program *p)
{
	add_jump(p, BPF_JNE, htons(ETH_P_IPV6), TO_DROP);
	add_unspecified(p);
	add_check_ipv6(p, AT_IPV6_FROM);
	add_load_byte(p, AT_IPV6_NEXT);
	add_check_next(p);
	add_fragment(p);
	struct bpf_insn *icmp = add_jump(p, BPF_JEQ, IPPROTO_ICMPV6, 0);
	struct bpf_insn *udp = add_jump(p, BPF_JEQ, IPPROTO_UDP, 0);
	add_jump(p, BPF_JNE, IPPROTO_HOPOPTS, TO_PASS);
	add_mld(p);
	land(p, udp);
	add_udp6(p, AT_IPV6_BODY);
	land(p, icmp);
	add_icmpv6(p);
}

/* ---- the programs ---- */

/* Register 0: a word of struct __sk_buff. */
static void add_get_context(struct program *p, size_t at)
{
	add(p, BPF_LDX | BPF_MEM | BPF_W, BPF_REG_0, CONTEXT, 0)->off = (int16_t)at;
}

/*
 * Drops a frame to many when there were enough in its window. Two processors that begin a window at
 * once may both set the count back, which lets some more through.
 */
static void add_limit(struct program *p, int memory)
{
	const int16_t window = offsetof(struct memory, window), n = offsetof(struct memory, n);
	add_load_byte(p, AT_TARGET);
	add(p, BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, 1); /* IEEE 802: a group */
	struct bpf_insn *to_one = add_jump(p, BPF_JEQ, 0, 0);
	add(p, BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_ktime_get_ns);
	add(p, BPF_ALU64 | BPF_RSH | BPF_K, BPF_REG_0, 0, PACKET_FILTER_WINDOW_BITS);
	add(p, BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, memory);
	add(p, 0, 0, 0, 0);
	add(p, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_2, BPF_REG_1, 0)->off = window;
	struct bpf_insn *same = add(p, BPF_JMP | BPF_JEQ | BPF_X, BPF_REG_0, BPF_REG_2, 0);
	add(p, BPF_STX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_0, 0)->off = window;
	add(p, BPF_ST | BPF_MEM | BPF_DW, BPF_REG_1, 0, 0)->off = n;
	land(p, same);
	add_move(p, BPF_REG_2, 1);
	add(p, BPF_STX | BPF_XADD | BPF_DW, BPF_REG_1, BPF_REG_2, 0)->off = n;
	add(p, BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_0, BPF_REG_1, 0)->off = n;
	add_jump(p, BPF_JGT, PACKET_FILTER_TO_MANY_MAX, TO_DROP);
	land(p, to_one);
}

static void add_pass(struct program *p, unsigned to)
{
	if (to == 0) {
		add_move(p, BPF_REG_0, TC_ACT_UNSPEC);
	} else {
		add_move(p, BPF_REG_1, (int)to);
		add_move(p, BPF_REG_2, 0);
		add(p, BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_redirect);
	}
	add(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
}

static void add_drop(struct program *p)
{
	add_move(p, BPF_REG_0, TC_ACT_SHOT);
	add(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
}

/* Frames are dropped at instruction @drop, and pass at @pass. */
static void link_jumps(struct program *p, size_t drop, size_t pass)
{
	for (size_t i = 0; i < p->n; i++) {
		int16_t *off = &p->insns[i].off;
		if (BPF_CLASS(p->insns[i].code) != BPF_JMP &&
		    BPF_CLASS(p->insns[i].code) != BPF_JMP32)
			continue;
		if (*off == TO_DROP || *off == TO_PASS)
			*off = (int16_t)((*off == TO_PASS ? pass : drop) - i - 1);
	}
}

static void make_filter(struct program *p, unsigned to, int memory)
{
	add_copy(p, CONTEXT, BPF_REG_1);
	add_get_context(p, offsetof(struct __sk_buff, vlan_present));
	add_jump(p, BPF_JNE, 0, TO_DROP);
	add_check_mac(p, AT_SOURCE);
	add_load(p, AT_TYPE, 2);
	add_get(p, BPF_H, 0);
	add_arp(p);
	add_ipv4(p);
	add_ipv6(p);
	size_t pass = p->n;
	add_limit(p, memory);
	add_pass(p, to);
	size_t drop = p->n;
	add_drop(p);
	link_jumps(p, drop, pass);
}

/*
 * What a server of DHCP answers is the plugin's, whose client is in the namespace; the pod may have
 * a copy. Anything that is too short for that is the pod's.
 */
static void add_dhcp_answers(struct program *p, unsigned to)
{
	add_load(p, AT_TYPE, 2);
	add_get(p, BPF_H, 0);
	add_jump(p, BPF_JNE, htons(ETH_P_IP), TO_PASS);
	add_load_byte(p, AT_BODY);
	add_jump(p, BPF_JNE, 0x45, TO_PASS);
	add_load_byte(p, AT_IPV4_NEXT);
	add_jump(p, BPF_JNE, IPPROTO_UDP, TO_PASS);
	add_load(p, AT_IPV4_BODY, 4);
	add_get(p, BPF_W, 0);
	add_jump(p, BPF_JNE, PORTS(67, 68), TO_PASS);
	add_copy(p, BPF_REG_1, CONTEXT);
	add_move(p, BPF_REG_2, (int)to);
	add_move(p, BPF_REG_3, 0);
	add(p, BPF_JMP | BPF_CALL, 0, 0, BPF_FUNC_clone_redirect);
	add_move(p, BPF_REG_0, TC_ACT_OK);
	add(p, BPF_JMP | BPF_EXIT, 0, 0, 0);
}

static void make_redirect(struct program *p, unsigned to)
{
	add_copy(p, CONTEXT, BPF_REG_1);
	add_get_context(p, offsetof(struct __sk_buff, pkt_type));
	struct bpf_insn *other = add_jump(p, BPF_JEQ, PACKET_OTHERHOST, 0);
	if (p->with_dhcp)
		add_dhcp_answers(p, to);
	link_jumps(p, p->n, p->n);
	add_pass(p, to);
	land(p, other);
	add_drop(p);
}

/* ---- the kernel ---- */

/* The program has it until its own end. */
static int make_memory(void)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_ARRAY;
	attr.key_size = sizeof(uint32_t);
	attr.value_size = sizeof(struct memory);
	attr.max_entries = 1;
	return bpf_call(BPF_MAP_CREATE, &attr);
}

static int load(const struct program *p)
{
	return bpf_load(BPF_PROG_TYPE_SCHED_CLS, 0, p->insns, p->n);
}

int packet_filter_load(const struct net_interface *pod, unsigned to, bool with_dhcp)
{
	struct program p = { .pod = pod, .with_dhcp = with_dhcp };
	cleanup_fd int memory = make_memory();
	if (memory < 0)
		return memory;
	make_filter(&p, to, memory);
	return load(&p);
}

int packet_filter_load_redirect(unsigned to, bool with_dhcp)
{
	struct program p = { .with_dhcp = with_dhcp };
	make_redirect(&p, to);
	return load(&p);
}
