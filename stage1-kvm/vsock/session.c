/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/session.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/os/fd.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vsock/device.h"
#include "stage1-kvm/vsock/vhost_user.h"

_Static_assert(UNIX_FDS_MAX >= GUEST_MEMORY_REGIONS_MAX, "one descriptor per region");

struct session {
	struct loop *loop;
	struct loop_watch watch;
	struct device *device;
	struct vhost_user vu;
	struct err err;
	/* the request that is being read */
	size_t got;
	size_t n_fds;
	int fds[UNIX_FDS_MAX]; /* owned */
	unsigned char message[VHOST_USER_MESSAGE_MAX];
};

static void close_fds(struct session *s)
{
	while (s->n_fds > 0)
		fd_close(s->fds[--s->n_fds]);
}

/* Takes the descriptor of a request that has at most one; -EBADF without. */
static int take_only_fd(struct session *s)
{
	if (s->n_fds != 1)
		return -EBADF;
	s->n_fds = 0;
	return s->fds[0];
}

static int map_memory(struct session *s, const struct vhost_user_outcome *out)
{
	cleanup_guest_memory struct guest_memory m = GUEST_MEMORY_INIT;
	for (size_t i = 0; i < out->n_regions; i++) {
		int r = guest_memory_add(&m, &out->regions[i], s->fds[i], &s->err);
		if (r < 0)
			return r;
	}
	device_set_memory(s->device, &m);
	return 0;
}

/* Starts, moves or stops a queue as its state asks for. */
static void update_queue(struct session *s, size_t index)
{
	const struct vhost_user_queue *q = &s->vu.queue[index];
	if (!vhost_user_queue_runs(&s->vu, index)) {
		device_stop_queue(s->device, index);
		return;
	}
	struct device_queue_plan plan = { .size = q->size,
					  .base = q->base,
					  .desc = q->desc,
					  .avail = q->avail,
					  .used = q->used,
					  .features = s->vu.features };
	device_start_queue(s->device, index, &plan);
}

static int set_kick(struct session *s, size_t index)
{
	int r = device_set_kick(s->device, index, take_only_fd(s));
	if (r < 0)
		return err_sys(&s->err, r, "kick descriptor of queue %zu", index);
	update_queue(s, index);
	return 0;
}

static int set_notifier(struct session *s, size_t index,
			int (*set)(struct device *d, size_t index, int fd))
{
	int r = set(s->device, index, take_only_fd(s));
	return r < 0 ? err_sys(&s->err, r, "descriptor of queue %zu", index) : 0;
}

static int stop_queue(struct session *s, struct vhost_user_outcome *out)
{
	uint16_t base = device_stop_queue(s->device, out->index);
	s->vu.queue[out->index].base = base;
	vhost_user_reply_base(out->index, base, out);
	return device_set_kick(s->device, out->index, -EBADF);
}

static int act(struct session *s, struct vhost_user_outcome *out)
{
	switch (out->action) {
	case VHOST_USER_DO_NOTHING:
		return 0;
	case VHOST_USER_DO_RESET:
		device_reset(s->device);
		return 0;
	case VHOST_USER_DO_MAP:
		return map_memory(s, out);
	case VHOST_USER_DO_SET_KICK:
		return set_kick(s, out->index);
	case VHOST_USER_DO_SET_CALL:
		return set_notifier(s, out->index, device_set_call);
	case VHOST_USER_DO_SET_ERR:
		return set_notifier(s, out->index, device_set_err);
	case VHOST_USER_DO_STOP:
		return stop_queue(s, out);
	case VHOST_USER_DO_UPDATE:
		update_queue(s, out->index);
		return 0;
	}
	return -EINVAL;
}

static int send_reply(struct session *s, const struct vhost_user_outcome *out)
{
	size_t sent = 0;
	if (out->reply_len == 0)
		return 0;
	int r = unix_send_fds(s->watch.fd, out->reply, out->reply_len, NULL, 0, &sent);
	if (r < 0)
		return err_sys(&s->err, r, "vhost-user socket: reply");
	if (sent != out->reply_len)
		return err_set(&s->err, -EPROTO, "vhost-user socket: reply not taken");
	return 0;
}

static int handle_request(struct session *s)
{
	struct vhost_user_outcome out;
	int r = vhost_user_handle(&s->vu, s->message, s->got, s->n_fds, &out, &s->err);
	if (r == 0)
		r = act(s, &out);
	if (r == 0)
		r = send_reply(s, &out);
	close_fds(s);
	s->got = 0;
	return r;
}

/* Reads what is missing of a piece that ends at @end. Descriptors come with the first byte only. */
static int read_piece(struct session *s, size_t end, bool *ret_eof)
{
	int fds[UNIX_FDS_MAX];
	size_t n, n_fds;
	int r = unix_recv_fds(s->watch.fd, s->message + s->got, end - s->got, fds, &n, &n_fds);
	if (r < 0)
		return r == -EAGAIN ? r : err_sys(&s->err, r, "vhost-user socket");
	*ret_eof = n == 0;
	if (s->got == 0) {
		memcpy(s->fds, fds, n_fds * sizeof(*fds));
		s->n_fds = n_fds;
		n_fds = 0;
	}
	s->got += n;
	if (n_fds == 0)
		return 0;
	while (n_fds > 0)
		fd_close(fds[--n_fds]);
	return err_set(&s->err, -EPROTO, "vhost-user socket: descriptors inside a request");
}

/* Reads until a request is complete and handles it. -EAGAIN if bytes are missing. */
static int read_request(struct session *s, bool *ret_eof)
{
	size_t payload = 0;
	for (;;) {
		size_t end = VHOST_USER_HEADER_SIZE;
		if (s->got >= end) {
			int r = vhost_user_payload_size(s->message, &payload, &s->err);
			if (r < 0)
				return r;
			end += payload;
			if (s->got == end)
				return handle_request(s);
		}
		int r = read_piece(s, end, ret_eof);
		if (r < 0 || *ret_eof)
			return r;
	}
}

static void on_socket(void *ctx, uint32_t events)
{
	struct session *s = ctx;
	bool eof = false;
	(void)events;
	int r = read_request(s, &eof);
	if (r == -EAGAIN)
		return;
	if (r == 0 && eof && s->got > 0)
		err_set(&s->err, -EPROTO, "vhost-user socket: closed inside a request");
	if (r < 0 || eof)
		loop_quit(s->loop);
}

int session_new(struct loop *loop, int fd, uint64_t guest_cid, struct device *d,
		struct session **ret)
{
	int r = fd_set_nonblock(fd, true);
	if (r < 0)
		return r;
	struct session *s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->loop = loop;
	s->device = d;
	vhost_user_init(&s->vu, guest_cid);
	r = loop_watch_add(loop, &s->watch, fd, EPOLLIN, on_socket, s);
	if (r < 0) {
		free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	loop_watch_remove(&s->watch);
	close_fds(s);
	free(s);
}

int session_error(const struct session *s, struct err *e)
{
	if (s->err.code != 0)
		*e = s->err;
	return s->err.code;
}
