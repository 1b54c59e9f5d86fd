/* SPDX-License-Identifier: Apache-2.0 */
/*
 * floods-network INTERFACE SECONDS: sends the frames of standard input, each behind its length (16
 * bits, big-endian), again and again past the queue of the interface, as fast as it can. Prints how
 * many frames.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define FRAMES_MAX 16
#define FRAME_MAX  1514
#define BATCH      512 /* frames in one system call */

struct frame {
	unsigned char bytes[FRAME_MAX];
	size_t len;
};

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static size_t read_frames(struct frame *frames)
{
	uint16_t len;
	size_t n = 0;
	for (; n < FRAMES_MAX && fread(&len, sizeof(len), 1, stdin) == 1; n++) {
		frames[n].len = ntohs(len);
		if (frames[n].len > FRAME_MAX ||
		    fread(frames[n].bytes, 1, frames[n].len, stdin) != frames[n].len)
			fail("frames");
	}
	return n;
}

static int open_interface(const char *name)
{
	const struct sockaddr_ll address = { .sll_family = AF_PACKET,
					     .sll_ifindex = (int)if_nametoindex(name) };
	int sock = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), on = 1;
	if (sock < 0 || bind(sock, (const struct sockaddr *)&address, sizeof(address)) < 0)
		fail(name);
	if (setsockopt(sock, SOL_PACKET, PACKET_QDISC_BYPASS, &on, sizeof(on)) < 0)
		fail("PACKET_QDISC_BYPASS");
	return sock;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long flood(int sock, struct frame *frames, size_t n_frames, double seconds)
{
	struct mmsghdr messages[BATCH] = { 0 };
	struct iovec parts[BATCH];
	double end = now() + seconds;
	long n = 0;
	for (size_t i = 0; i < BATCH; i++) {
		struct frame *f = &frames[i % n_frames];
		parts[i] = (struct iovec){ f->bytes, f->len };
		messages[i].msg_hdr.msg_iov = &parts[i];
		messages[i].msg_hdr.msg_iovlen = 1;
	}
	while (now() < end) {
		int sent = sendmmsg(sock, messages, BATCH, 0);
		if (sent < 0 && errno != ENOBUFS) /* no room just now */
			fail("sendmmsg");
		n += sent > 0 ? sent : 0;
	}
	return n;
}

int main(int argc, char **argv)
{
	static struct frame frames[FRAMES_MAX];
	size_t n_frames = read_frames(frames);
	if (argc != 3 || n_frames == 0)
		return EXIT_FAILURE;
	printf("%ld\n", flood(open_interface(argv[1]), frames, n_frames, strtod(argv[2], NULL)));
	return EXIT_SUCCESS;
}
