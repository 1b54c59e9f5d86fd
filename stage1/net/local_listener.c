/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/local_listener.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "stage1/net/netns.h"
#include "stage1/pod/bpf.h"

/*
 * In the namespace, whose loopback may come up later. The port of its own that it gets is of no
 * importance.
 */
static int listen_inside(void *ctx, struct err *e)
{
	const struct sockaddr_in any = { .sin_family = AF_INET,
					 .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int on = 1;
	cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &on, sizeof(on)) < 0 ||
	    bind(fd, (const struct sockaddr *)&any, sizeof(any)) < 0 ||
	    listen(fd, LOCAL_LISTENER_BACKLOG) < 0)
		return err_sys(e, -errno, "its loopback: cannot listen there");
	*(int *)ctx = TAKE_FD(fd);
	return 0;
}

/* A map with @socket at 0, which leaves it when it is closed. */
static int make_map(int socket)
{
	union bpf_attr attr;
	uint32_t key = 0, value = (uint32_t)socket;
	memset(&attr, 0, sizeof(attr));
	attr.map_type = BPF_MAP_TYPE_SOCKMAP;
	attr.key_size = sizeof(key);
	attr.value_size = sizeof(value);
	attr.max_entries = 1;
	cleanup_fd int map = bpf_call(BPF_MAP_CREATE, &attr);
	if (map < 0)
		return map;
	memset(&attr, 0, sizeof(attr));
	attr.map_fd = (uint32_t)map;
	attr.key = (uintptr_t)&key;
	attr.value = (uintptr_t)&value;
	int r = bpf_call(BPF_MAP_UPDATE_ELEM, &attr);
	return r < 0 ? r : TAKE_FD(map);
}

#define CONTEXT BPF_REG_6 /* struct bpf_sk_lookup */
#define SOCKET  BPF_REG_7

#define TO_END (-1) /* of a jump: to the last two instructions */

#define INSN(op, dst, src, at, value)                                                   \
	{                                                                               \
		.code = (op), .dst_reg = (dst), .src_reg = (src), .off = (int16_t)(at), \
		.imm = (value)                                                          \
	}
#define COPY(dst, src)  INSN(BPF_ALU64 | BPF_MOV | BPF_X, dst, src, 0, 0)
#define SET(dst, value) INSN(BPF_ALU64 | BPF_MOV | BPF_K, dst, 0, 0, value)
#define CALL(function)  INSN(BPF_JMP | BPF_CALL, 0, 0, 0, function)
#define LOAD(member)                                        \
	INSN(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_0, CONTEXT, \
	     offsetof(struct bpf_sk_lookup, member), 0)
#define END_UNLESS(value) INSN(BPF_JMP32 | BPF_JNE | BPF_K, BPF_REG_0, 0, TO_END, (int)(value))

/* For TCP to the loopback the socket of @map is named, as long as it is there. */
static int load_program(int map)
{
	struct bpf_insn p[] = {
		COPY(CONTEXT, BPF_REG_1),
		LOAD(family),
		END_UNLESS(AF_INET),
		LOAD(protocol),
		END_UNLESS(IPPROTO_TCP),
		LOAD(local_ip4),
		INSN(BPF_ALU | BPF_AND | BPF_K, BPF_REG_0, 0, 0, (int)htonl(IN_CLASSA_NET)),
		END_UNLESS(htonl(IN_LOOPBACKNET << IN_CLASSA_NSHIFT)),
		/* socket = map[0] */
		INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0),
		COPY(BPF_REG_2, BPF_REG_10),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		CALL(BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, TO_END, 0),
		COPY(SOCKET, BPF_REG_0),
		/* bpf_sk_assign(context, socket, 0) */
		COPY(BPF_REG_1, CONTEXT),
		COPY(BPF_REG_2, SOCKET),
		SET(BPF_REG_3, 0),
		CALL(BPF_FUNC_sk_assign),
		COPY(BPF_REG_1, SOCKET),
		CALL(BPF_FUNC_sk_release),
		/* the end */
		SET(BPF_REG_0, SK_PASS),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		if (p[i].off == TO_END)
			p[i].off = (int16_t)(ARRAY_SIZE(p) - 2 - i - 1);
	return bpf_load(BPF_PROG_TYPE_SK_LOOKUP, BPF_SK_LOOKUP, p, ARRAY_SIZE(p));
}

/* The link, which takes the program away when it is closed, also by the end of a process. */
static int attach(int netns, int program)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.link_create.prog_fd = (uint32_t)program;
	attr.link_create.target_fd = (uint32_t)netns;
	attr.link_create.attach_type = BPF_SK_LOOKUP;
	return bpf_call(BPF_LINK_CREATE, &attr);
}

static int catch (int netns, int socket)
{
	cleanup_fd int map = make_map(socket);
	cleanup_fd int program = map < 0 ? map : load_program(map);
	return program < 0 ? program : attach(netns, program);
}

int local_listener_make(int netns, int *ret_socket, int *ret_link, struct err *e)
{
	cleanup_fd int socket = -EBADF;
	int r = netns_call(netns, listen_inside, &socket, e);
	if (r < 0)
		return r;
	int link = catch (netns, socket);
	if (link < 0)
		return err_sys(e, link, "its loopback: cannot lead connections into the VM");
	*ret_socket = TAKE_FD(socket);
	*ret_link = link;
	return 0;
}
