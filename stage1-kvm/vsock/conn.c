/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/conn.h"

#include <string.h>

#include "lib/base/macros.h"
#include "lib/base/num.h"

/* Packets owed to the guest, sent in this order. */
#define CONN_OWE_REQUEST        1u
#define CONN_OWE_CREDIT_REQUEST 2u
#define CONN_OWE_CREDIT_UPDATE  4u
#define CONN_OWE_SHUTDOWN       8u
#define CONN_OWE_RST            16u

/* A CREDIT_UPDATE goes out when this part of the buffer was freed since the guest was last told. */
#define CREDIT_UPDATE_PART 4

static const char line_word[] = "CONNECT ";

void conn_start(struct conn *c, uint32_t local_port, uint32_t buf_alloc)
{
	*c = (struct conn){ .state = CONN_HELLO, .local_port = local_port, .buf_alloc = buf_alloc };
}

/* True if the @len bytes, less than a line, could become one. */
static bool is_line_prefix(const char *bytes, size_t len)
{
	return memcmp(bytes, line_word, MIN(len, sizeof(line_word) - 1)) == 0;
}

int conn_on_line(struct conn *c, const char *bytes, size_t len, size_t *ret_used)
{
	len = MIN(len, (size_t)CONN_LINE_MAX);
	if (len == 0)
		return CONN_E_MORE;
	const char *end = memchr(bytes, '\n', len);
	if (!end)
		return len < CONN_LINE_MAX && is_line_prefix(bytes, len) ? CONN_E_MORE
									 : CONN_E_LINE;
	size_t word = sizeof(line_word) - 1;
	size_t line = (size_t)(end - bytes);
	if (line <= word || !is_line_prefix(bytes, line))
		return CONN_E_LINE;
	char digits[CONN_LINE_MAX] = { 0 };
	memcpy(digits, bytes + word, line - word);
	uint64_t port;
	/* The last number is VMADDR_PORT_ANY. */
	if (strlen(digits) != line - word || num_parse_u64(digits, UINT32_MAX - 1, &port) < 0)
		return CONN_E_LINE;
	c->guest_port = (uint32_t)port;
	c->state = CONN_WAITING;
	c->owed = CONN_OWE_REQUEST;
	*ret_used = line + 1;
	return 0;
}

/* The last state: the host side is to be closed, the guest gets what @owed says. */
static void enter_closing(struct conn *c, unsigned owed)
{
	c->state = CONN_CLOSING;
	c->owed = owed;
	c->duties = CONN_DUTY_CLOSE;
	c->fwd_cnt = c->rx_cnt;
}

static bool is_guest_shut(const struct conn *c, unsigned flag)
{
	return (c->guest_shut & flag) == flag;
}

/* Leaves CONN_OPEN or CONN_LINGER if it is time, after any event. */
static void conn_settle(struct conn *c)
{
	bool flushed = c->rx_cnt == c->fwd_cnt;
	if (c->state == CONN_LINGER && flushed)
		enter_closing(c, c->owed);
	if (c->state != CONN_OPEN)
		return;
	bool to_guest_done = c->host_eof || is_guest_shut(c, VSOCK_SHUTDOWN_RCV);
	bool to_host_done = c->host_deaf || (is_guest_shut(c, VSOCK_SHUTDOWN_SEND) && flushed);
	if (to_guest_done && to_host_done) {
		c->our_shut = VSOCK_SHUTDOWN_BOTH;
		enter_closing(c, CONN_OWE_SHUTDOWN | CONN_OWE_RST);
	}
}

/* Owes a SHUTDOWN that announces @flag, once. */
static void announce_shut(struct conn *c, unsigned flag)
{
	if (c->our_shut & flag)
		return;
	c->our_shut |= flag;
	c->owed |= CONN_OWE_SHUTDOWN;
}

/* The guest wants no more of this connection; accepted bytes still go to the host. */
static void guest_is_done(struct conn *c, unsigned owed)
{
	c->state = CONN_LINGER;
	c->owed = owed;
	conn_settle(c);
}

static void on_shutdown(struct conn *c, unsigned flags)
{
	unsigned news = flags & VSOCK_SHUTDOWN_BOTH & ~c->guest_shut;
	c->guest_shut |= news;
	if (c->guest_shut == VSOCK_SHUTDOWN_BOTH) {
		guest_is_done(c, CONN_OWE_RST);
		return;
	}
	if (news & VSOCK_SHUTDOWN_RCV)
		c->duties |= CONN_DUTY_SHUT_READ;
	if (is_guest_shut(c, VSOCK_SHUTDOWN_SEND) && c->rx_cnt == c->fwd_cnt)
		c->duties |= CONN_DUTY_SHUT_WRITE;
	conn_settle(c);
}

static uint32_t on_data(struct conn *c, uint32_t len)
{
	if (is_guest_shut(c, VSOCK_SHUTDOWN_SEND) || len > c->buf_alloc - conn_buffered(c)) {
		enter_closing(c, CONN_OWE_RST);
		return 0;
	}
	c->rx_cnt += len;
	if (!c->host_deaf)
		return len;
	conn_on_forwarded(c, len);
	return 0;
}

static void on_response(struct conn *c)
{
	c->state = CONN_OPEN;
	c->duties |= CONN_DUTY_OK;
}

static uint32_t on_packet_open(struct conn *c, const struct vsock_header *h)
{
	switch (h->op) {
	case VSOCK_OP_RW:
		return on_data(c, h->len);
	case VSOCK_OP_CREDIT_UPDATE:
		return 0;
	case VSOCK_OP_CREDIT_REQUEST:
		c->owed |= CONN_OWE_CREDIT_UPDATE;
		return 0;
	case VSOCK_OP_SHUTDOWN:
		on_shutdown(c, h->flags);
		return 0;
	case VSOCK_OP_RST:
		guest_is_done(c, 0);
		return 0;
	default:
		enter_closing(c, CONN_OWE_RST);
		return 0;
	}
}

static void on_packet_requested(struct conn *c, const struct vsock_header *h)
{
	if (h->op == VSOCK_OP_RESPONSE)
		on_response(c);
	else
		enter_closing(c, h->op == VSOCK_OP_RST ? 0 : CONN_OWE_RST);
}

uint32_t conn_on_packet(struct conn *c, const struct vsock_header *h)
{
	c->peer_buf_alloc = h->buf_alloc;
	c->peer_fwd_cnt = h->fwd_cnt;
	c->asked = false;
	switch (c->state) {
	case CONN_REQUESTED:
		on_packet_requested(c, h);
		return 0;
	case CONN_OPEN:
		return on_packet_open(c, h);
	case CONN_LINGER:
	case CONN_CLOSING:
		if (h->op == VSOCK_OP_RST)
			c->owed = 0;
		return 0;
	case CONN_FREE:
	case CONN_HELLO:
	case CONN_WAITING:
		break;
	}
	return 0;
}

void conn_on_forwarded(struct conn *c, uint32_t n)
{
	c->fwd_cnt += MIN(n, conn_buffered(c));
	if (c->state == CONN_OPEN) {
		if (c->fwd_cnt - c->fwd_told >= c->buf_alloc / CREDIT_UPDATE_PART)
			c->owed |= CONN_OWE_CREDIT_UPDATE;
		if (is_guest_shut(c, VSOCK_SHUTDOWN_SEND) && c->rx_cnt == c->fwd_cnt)
			c->duties |= CONN_DUTY_SHUT_WRITE;
	}
	conn_settle(c);
}

void conn_on_host_eof(struct conn *c)
{
	if (c->state != CONN_OPEN || c->host_eof)
		return;
	c->host_eof = true;
	announce_shut(c, VSOCK_SHUTDOWN_SEND);
	conn_settle(c);
}

void conn_on_host_deaf(struct conn *c)
{
	if (c->host_deaf)
		return;
	c->host_deaf = true;
	if (c->state == CONN_OPEN)
		announce_shut(c, VSOCK_SHUTDOWN_RCV);
	conn_on_forwarded(c, conn_buffered(c));
}

void conn_on_host_gone(struct conn *c)
{
	switch (c->state) {
	case CONN_HELLO:
	case CONN_WAITING:
		enter_closing(c, 0);
		break;
	case CONN_REQUESTED:
	case CONN_OPEN:
		enter_closing(c, CONN_OWE_RST);
		break;
	case CONN_LINGER:
		enter_closing(c, c->owed);
		break;
	case CONN_FREE:
	case CONN_CLOSING:
		break;
	}
}

void conn_on_guest_lost(struct conn *c)
{
	if (c->state == CONN_REQUESTED || c->state == CONN_OPEN || c->state == CONN_LINGER)
		guest_is_done(c, 0);
	else if (c->state == CONN_CLOSING)
		c->owed = 0;
}

bool conn_wants_host_bytes(const struct conn *c)
{
	return c->state == CONN_OPEN && !c->host_eof && !is_guest_shut(c, VSOCK_SHUTDOWN_RCV);
}

uint32_t conn_credit(const struct conn *c)
{
	uint32_t in_flight = c->tx_cnt - c->peer_fwd_cnt;
	if (!conn_wants_host_bytes(c) || in_flight >= c->peer_buf_alloc)
		return 0;
	return c->peer_buf_alloc - in_flight;
}

void conn_on_starved(struct conn *c)
{
	if (c->state != CONN_OPEN || c->asked)
		return;
	c->asked = true;
	c->owed |= CONN_OWE_CREDIT_REQUEST;
}

/* A header with our side of the credit; the guest is up to date afterwards. */
static void make_header(struct conn *c, enum vsock_op op, struct vsock_header *ret)
{
	*ret = (struct vsock_header){
		.src_port = c->local_port,
		.dst_port = c->guest_port,
		.type = VSOCK_TYPE_STREAM,
		.op = (uint16_t)op,
		.buf_alloc = c->buf_alloc,
		.fwd_cnt = c->fwd_cnt,
	};
	c->fwd_told = c->fwd_cnt;
	c->owed &= ~CONN_OWE_CREDIT_UPDATE;
}

void conn_make_data(struct conn *c, uint32_t len, struct vsock_header *ret)
{
	make_header(c, VSOCK_OP_RW, ret);
	ret->len = len;
	c->tx_cnt += len;
}

bool conn_owes_packet(const struct conn *c)
{
	return c->owed != 0;
}

bool conn_next_packet(struct conn *c, struct vsock_header *ret)
{
	unsigned owed = c->owed;
	if (owed & CONN_OWE_REQUEST) {
		make_header(c, VSOCK_OP_REQUEST, ret);
		c->owed = owed & ~CONN_OWE_REQUEST;
		c->state = CONN_REQUESTED;
	} else if (owed & CONN_OWE_CREDIT_REQUEST) {
		make_header(c, VSOCK_OP_CREDIT_REQUEST, ret);
		c->owed &= ~CONN_OWE_CREDIT_REQUEST;
	} else if (owed & CONN_OWE_CREDIT_UPDATE) {
		make_header(c, VSOCK_OP_CREDIT_UPDATE, ret);
	} else if (owed & CONN_OWE_SHUTDOWN) {
		make_header(c, VSOCK_OP_SHUTDOWN, ret);
		ret->flags = c->our_shut;
		c->owed &= ~CONN_OWE_SHUTDOWN;
	} else if (owed & CONN_OWE_RST) {
		make_header(c, VSOCK_OP_RST, ret);
		c->owed &= ~CONN_OWE_RST;
	} else {
		return false;
	}
	return true;
}

unsigned conn_take_duties(struct conn *c)
{
	unsigned duties = c->duties;
	c->duties = 0;
	return duties;
}

uint32_t conn_buffered(const struct conn *c)
{
	return c->rx_cnt - c->fwd_cnt;
}

bool conn_is_done(const struct conn *c)
{
	return c->state == CONN_CLOSING && c->owed == 0 && c->duties == 0;
}
