/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/stream.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "stage1-kvm/vsock/iov.h"

#define WATCH_ALWAYS (EPOLLIN | EPOLLRDHUP | EPOLLET)

/* A host's leftover bytes are read away before closing, see close_socket(): at most this many. */
#define DRAIN_MAX (1u << 20)

/* The answer with the longest port, and its NUL. */
#define OK_LINE_MAX (sizeof("OK 4294967295\n"))

static_assert(STREAM_BUFFER_MIN * (uint64_t)STREAMS_MAX + STREAM_BUDGET <= 12u << 20,
	      "all backlogs together");

int streams_init(struct streams *t, struct loop *loop, size_t max)
{
	if (max == 0 || max > STREAMS_MAX)
		return -EINVAL;
	*t = (struct streams){ .loop = loop, .max = max, .budget = STREAM_BUDGET };
	t->slot = calloc(max, sizeof(*t->slot));
	t->generation = calloc(max, sizeof(*t->generation));
	if (!t->slot || !t->generation) {
		streams_deinit(t);
		return -ENOMEM;
	}
	return 0;
}

void streams_deinit(struct streams *t)
{
	if (t->slot)
		streams_close_all(t);
	free(t->slot);
	free(t->generation);
	t->slot = NULL;
	t->generation = NULL;
}

static void dequeue(struct stream *s)
{
	struct streams *t = s->table;
	if (!s->queued)
		return;
	*(s->prev ? &s->prev->next : &t->ready_head) = s->next;
	*(s->next ? &s->next->prev : &t->ready_tail) = s->prev;
	s->next = s->prev = NULL;
	s->queued = false;
}

static void stream_enqueue(struct stream *s)
{
	struct streams *t = s->table;
	if (s->queued)
		return; /* keeps its turn */
	s->prev = t->ready_tail;
	*(s->prev ? &s->prev->next : &t->ready_head) = s;
	t->ready_tail = s;
	s->queued = true;
}

/*
 * Closing a unix socket that holds unread bytes would make the peer's next read fail with
 * ECONNRESET instead of ending in order, so what the host sent in vain is read away first.
 */
static void close_socket(struct stream *s)
{
	char scratch[4096];
	if (s->fd < 0)
		return;
	loop_watch_remove(&s->watch);
	shutdown(s->fd, SHUT_RDWR);
	for (size_t got = 0; got < DRAIN_MAX;) {
		ssize_t n = recv(s->fd, scratch, sizeof(scratch), MSG_DONTWAIT);
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	s->fd = fd_close(s->fd);
	buf_deinit(&s->backlog);
	s->readable = false;
}

/* Gives the slot back. */
static void stream_release(struct stream *s)
{
	struct streams *t = s->table;
	close_socket(s);
	dequeue(s);
	t->budget += s->conn.buf_alloc - STREAM_BUFFER_MIN;
	s->conn.state = CONN_FREE;
	s->next = t->free;
	t->free = s;
	t->n--;
}

/* A slot that is out of use, or NULL. The list of free ones first: their memory is touched. */
static struct stream *take_slot(struct streams *t)
{
	struct stream *s = t->free;
	if (s) {
		t->free = s->next;
	} else if (t->n_ever < t->max) {
		s = &t->slot[t->n_ever];
		s->index = (uint32_t)t->n_ever++;
	} else {
		return NULL;
	}
	t->n++;
	return s;
}

/* Ports below STREAMS_MAX (in a full table) and the number "any port" are not used. */
static uint32_t next_port(struct streams *t, uint32_t index)
{
	uint32_t generation = t->generation[index] + 1;
	if (generation >= UINT32_MAX / STREAMS_MAX)
		generation = 1;
	t->generation[index] = generation;
	return generation * STREAMS_MAX + index;
}

static void on_socket_event(void *ctx, uint32_t events);

int streams_add(struct streams *t, int fd)
{
	struct stream *s = take_slot(t);
	if (!s)
		return -ENFILE;
	uint32_t extra =
		MIN(t->budget / STREAM_BUDGET_SHARE, STREAM_BUFFER_MAX - STREAM_BUFFER_MIN);
	uint32_t index = s->index;
	*s = (struct stream){ .fd = -EBADF, .index = index, .table = t, .watch = LOOP_WATCH_INIT };
	t->budget -= extra;
	conn_start(&s->conn, next_port(t, index), STREAM_BUFFER_MIN + extra);
	buf_init(&s->backlog, s->conn.buf_alloc);
	int r = loop_watch_add(t->loop, &s->watch, fd, WATCH_ALWAYS, on_socket_event, s);
	if (r < 0) {
		stream_release(s);
		return r;
	}
	s->fd = fd;
	return 0;
}

struct stream *streams_find(struct streams *t, uint32_t local_port, uint32_t guest_port)
{
	size_t index = local_port % STREAMS_MAX;
	if (index >= t->n_ever)
		return NULL;
	struct stream *s = &t->slot[index];
	bool known = s->conn.state >= CONN_REQUESTED;
	bool ours = s->conn.local_port == local_port && s->conn.guest_port == guest_port;
	return known && ours ? s : NULL;
}

struct stream *streams_next_ready(struct streams *t)
{
	return t->ready_head;
}

void stream_served(struct stream *s)
{
	dequeue(s);
	stream_settle(s);
}

void streams_guest_lost(struct streams *t)
{
	for (size_t i = 0; i < t->n_ever; i++) {
		struct stream *s = &t->slot[i];
		if (s->conn.state < CONN_REQUESTED)
			continue;
		conn_on_guest_lost(&s->conn);
		stream_settle(s);
	}
}

void streams_close_all(struct streams *t)
{
	for (size_t i = 0; i < t->n_ever; i++)
		if (t->slot[i].conn.state != CONN_FREE)
			stream_release(&t->slot[i]);
}

/* Streams that wait for the guest; counted only while it is down, when they are few. */
static size_t count_waiting(const struct streams *t)
{
	size_t n = 0;
	for (size_t i = 0; i < t->n_ever; i++)
		n += t->slot[i].conn.state == CONN_WAITING;
	return n;
}

/* Looks at what the host sent without taking more than the line: the rest is the guest's. */
static void read_line(struct stream *s)
{
	char line[CONN_LINE_MAX];
	ssize_t n = recv(s->fd, line, sizeof(line), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	size_t used = 0;
	int r = n <= 0 ? CONN_E_LINE : conn_on_line(&s->conn, line, (size_t)n, &used);
	if (r == CONN_E_MORE)
		return;
	bool full = !s->table->guest_up && count_waiting(s->table) > STREAMS_WAITING_MAX;
	if (r != 0 || full || recv(s->fd, line, used, MSG_DONTWAIT) != (ssize_t)used)
		conn_on_host_gone(&s->conn);
}

/* Takes @n bytes off the backlog. Its memory is given back as soon as it is empty. */
static void drop_backlog(struct stream *s, size_t n)
{
	buf_consume(&s->backlog, n);
	if (buf_len(&s->backlog) == 0)
		buf_deinit(&s->backlog);
}

static void flush_backlog(struct stream *s)
{
	size_t len = buf_len(&s->backlog);
	if (len == 0 || s->fd < 0)
		return;
	ssize_t n = send(s->fd, buf_data(&s->backlog), len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n >= 0) {
		drop_backlog(s, (size_t)n);
		conn_on_forwarded(&s->conn, (uint32_t)n);
	} else if (errno != EAGAIN && errno != EINTR) {
		drop_backlog(s, len);
		conn_on_host_deaf(&s->conn);
	}
}

/* EPOLLHUP: the peer is closed or both ways are shut; either way nobody reads what we write. */
static void on_hangup(struct stream *s)
{
	if (s->conn.state <= CONN_REQUESTED) {
		conn_on_host_gone(&s->conn);
		return;
	}
	drop_backlog(s, buf_len(&s->backlog));
	conn_on_host_deaf(&s->conn);
}

static void on_socket_event(void *ctx, uint32_t events)
{
	struct stream *s = ctx;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		s->readable = true;
	if (s->conn.state == CONN_HELLO)
		read_line(s);
	if (events & (EPOLLHUP | EPOLLERR))
		on_hangup(s);
	else if (events & EPOLLOUT)
		flush_backlog(s);
	stream_settle(s);
}

/* Appends what lies behind the first @skip bytes of the list. */
static int append_backlog(struct stream *s, const struct iovec *iov, size_t n, size_t skip)
{
	for (size_t i = 0; i < n; i++) {
		size_t cut = MIN(skip, iov[i].iov_len);
		skip -= cut;
		int r = buf_append(&s->backlog, (const char *)iov[i].iov_base + cut,
				   iov[i].iov_len - cut);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Writes what the socket takes at once. The number of bytes, 0 for "none now", or -errno. */
static ssize_t send_now(int fd, const struct iovec *iov, size_t n)
{
	union {
		const struct iovec *in;
		struct iovec *out;
	} list = { .in = iov }; /* struct msghdr knows no const */
	struct msghdr msg = { .msg_iov = list.out, .msg_iovlen = n };
	ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	return sent;
}

int stream_forward(struct stream *s, const struct iovec *iov, size_t n, size_t len)
{
	size_t done = 0;
	if (buf_len(&s->backlog) == 0) {
		ssize_t sent = send_now(s->fd, iov, n);
		if (sent == -EFAULT)
			return -EFAULT;
		if (sent < 0) {
			conn_on_host_deaf(&s->conn);
			return 0;
		}
		done = (size_t)sent;
	}
	int r = done < len ? append_backlog(s, iov, n, done) : 0;
	if (r == 0)
		conn_on_forwarded(&s->conn, (uint32_t)done);
	return r;
}

/* The socket is fresh and takes a line; if it does not, its program plays tricks. */
static void send_ok(struct stream *s)
{
	char line[OK_LINE_MAX];
	int len = snprintf(line, sizeof(line), "OK %u\n", s->conn.local_port);
	if (send(s->fd, line, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT) != len)
		conn_on_host_gone(&s->conn);
}

static void do_duties(struct stream *s)
{
	unsigned duties;
	while ((duties = conn_take_duties(&s->conn)) != 0 && s->fd >= 0) {
		if (duties & CONN_DUTY_OK)
			send_ok(s);
		if (duties & CONN_DUTY_SHUT_READ)
			shutdown(s->fd, SHUT_RD);
		if (duties & CONN_DUTY_SHUT_WRITE)
			shutdown(s->fd, SHUT_WR);
		if (duties & CONN_DUTY_CLOSE)
			close_socket(s);
	}
}

void stream_settle(struct stream *s)
{
	do_duties(s);
	if (conn_is_done(&s->conn)) {
		stream_release(s);
		return;
	}
	bool has_bytes = s->readable && conn_wants_host_bytes(&s->conn);
	bool has_credit = conn_credit(&s->conn) > 0;
	if (has_bytes && !has_credit)
		conn_on_starved(&s->conn);
	if (conn_owes_packet(&s->conn) || (has_bytes && has_credit))
		stream_enqueue(s);
	else
		dequeue(s);
	if (s->fd >= 0)
		loop_watch_modify(&s->watch, buf_len(&s->backlog) > 0 ? WATCH_ALWAYS | EPOLLOUT
								      : WATCH_ALWAYS);
}
