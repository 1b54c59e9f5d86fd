/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vhost-user session of the vsock device against a hostile VMM: the input is a list of messages
 * with descriptors of various kinds, sent over a real socket to a real session and device. It also
 * feeds the message decoder directly, with descriptors that are only counted.
 *
 * One message: a byte (0x80: a well-formed header is made, 0x40: acknowledgement wanted; low bits:
 * number of descriptors), a byte for the kinds of descriptors, a byte for the request, a byte of
 * length, the payload.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vsock/device.h"
#include "stage1-kvm/vsock/session.h"
#include "stage1-kvm/vsock/vhost_user.h"

#define MEMORY ((size_t)1 << 20)

struct input {
	const uint8_t *p;
	size_t left;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t take(struct input *in, void *mem, size_t len)
{
	len = MIN(len, in->left);
	memcpy(mem, in->p, len);
	in->p += len;
	in->left -= len;
	return len;
}

static void on_report(const char *text)
{
	(void)text;
}

static void on_tick(void *ctx)
{
	(void)ctx;
}

/* Descriptors that a VMM may send: memory, events, and what does not belong here. */
static int sample_fd(unsigned kind)
{
	static int fds[4] = { -EBADF };
	if (fds[0] < 0) {
		int pair[2];
		fds[0] = memfd_create("fuzz", MFD_CLOEXEC);
		fds[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (fds[0] < 0 || fds[1] < 0 || pipe(pair) < 0 ||
		    ftruncate(fds[0], (off_t)MEMORY) < 0)
			abort();
		fds[2] = pair[0];
		fds[3] = pair[1];
	}
	return fds[kind & 3];
}

/* Reads one message of the input. Its length, 0 at the end. */
static size_t next_message(struct input *in, unsigned char *m, int *fds, size_t *ret_n_fds)
{
	unsigned char how[4];
	if (take(in, how, sizeof(how)) < sizeof(how))
		return 0;
	*ret_n_fds = how[0] & 0xf;
	for (size_t i = 0; i < UNIX_FDS_MAX; i++)
		fds[i] = sample_fd(how[1] >> (i % 4 * 2));
	size_t len = take(in, m + VHOST_USER_HEADER_SIZE, how[3]);
	uint32_t head[3] = { how[2], how[0] & 0x40 ? 9 : 1, (uint32_t)len };
	memcpy(m, head, sizeof(head));
	if (how[0] & 0x80)
		return VHOST_USER_HEADER_SIZE + len;
	memmove(m, m + VHOST_USER_HEADER_SIZE, len);
	return len;
}

/* The decoder alone. Outcomes are checked as the session relies on them. */
static void run_decoder(struct input in)
{
	struct vhost_user vu;
	unsigned char m[VHOST_USER_HEADER_SIZE + 256];
	int fds[UNIX_FDS_MAX];
	size_t n_fds, len;
	vhost_user_init(&vu, 5);
	while ((len = next_message(&in, m, fds, &n_fds)) > 0) {
		struct vhost_user_outcome out;
		struct err e = ERR_INIT;
		if (vhost_user_handle(&vu, m, len, n_fds, &out, &e) < 0) {
			if (e.code >= 0 || e.text[0] == '\0')
				abort();
			return;
		}
		if (out.index >= VHOST_USER_QUEUES || out.n_regions > GUEST_MEMORY_REGIONS_MAX ||
		    out.reply_len > sizeof(out.reply) ||
		    (out.action == VHOST_USER_DO_MAP && out.n_regions != n_fds))
			abort();
	}
}

static void run_session(struct input in)
{
	const struct device_config config = {
		.listen_fd = -EBADF, .guest_cid = 5, .max_streams = 4, .report = on_report
	};
	unsigned char m[VHOST_USER_HEADER_SIZE + 256], answer[512];
	int sock[2], fds[UNIX_FDS_MAX];
	struct loop loop;
	struct loop_timer tick = { 0 };
	struct device *d = NULL;
	struct session *s = NULL;
	size_t n_fds, len, sent;
	if (loop_init(&loop) < 0 || unix_pair(sock) < 0 || device_new(&loop, &config, &d) < 0 ||
	    session_new(&loop, sock[0], 5, d, &s) < 0)
		abort();
	while (!loop.quit && (len = next_message(&in, m, fds, &n_fds)) > 0) {
		if (unix_send_fds(sock[1], m, len, fds, MIN(n_fds, (size_t)UNIX_FDS_MAX), &sent) <
		    0)
			break;
		loop_timer_arm(&loop, &tick, 0, on_tick, NULL);
		if (loop_turn(&loop) < 0)
			abort();
		if (!loop.quit)
			device_pump(d);
		while (recv(sock[1], answer, sizeof(answer), MSG_DONTWAIT) > 0)
			;
	}
	session_free(s);
	device_free(d);
	loop_deinit(&loop);
	fd_close(sock[0]);
	fd_close(sock[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { .p = data, .left = size };
	run_decoder(in);
	run_session(in);
	return 0;
}
