/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The connection state machine as conversations: a row is one event, and then the state, the
 * packets that are owed (sent at once) and the duties on the host socket that must follow.
 */
#include "stage1-kvm/vsock/conn.h"

#include <string.h>

#include "tests/support/fixture.h"

#define PORT  4711u
#define ALLOC 4096u
#define PEER  65536u /* what our guests advertise */

enum event {
	END,
	LINE,    /* "CONNECT 1024\n" */
	REQUEST, /* packets of the guest; RW has .arg bytes, SHUTDOWN the flags .arg */
	RESPONSE,
	RST,
	SHUTDOWN,
	RW,
	CREDIT,
	ASK,
	BOGUS,
	FORWARDED, /* .arg bytes written to the host */
	HOST_EOF,
	HOST_DEAF,
	HOST_GONE,
	LOST, /* the guest was reset */
	STARVED,
	SEND, /* .arg bytes to the guest */
};

struct step {
	enum event event;
	uint32_t arg;
	enum conn_state state;
	const char *packets; /* letters: q request, u update, a ask, s shutdown, r rst */
	unsigned duties;
};

static const uint16_t ops[] = {
	[REQUEST] = VSOCK_OP_REQUEST,
	[RESPONSE] = VSOCK_OP_RESPONSE,
	[RST] = VSOCK_OP_RST,
	[SHUTDOWN] = VSOCK_OP_SHUTDOWN,
	[RW] = VSOCK_OP_RW,
	[CREDIT] = VSOCK_OP_CREDIT_UPDATE,
	[ASK] = VSOCK_OP_CREDIT_REQUEST,
	[BOGUS] = 99,
};

#define OK    CONN_DUTY_OK
#define CLOSE CONN_DUTY_CLOSE
#define SH_RD CONN_DUTY_SHUT_READ
#define SH_WR CONN_DUTY_SHUT_WRITE
#define RCV   VSOCK_SHUTDOWN_RCV
#define SND   VSOCK_SHUTDOWN_SEND
#define BOTH  VSOCK_SHUTDOWN_BOTH

static void deliver(struct conn *c, const struct step *s)
{
	struct vsock_header h = { .op = ops[s->event],
				  .buf_alloc = PEER,
				  .type = VSOCK_TYPE_STREAM };
	if (s->event == RW)
		h.len = s->arg;
	if (s->event == SHUTDOWN)
		h.flags = s->arg;
	uint32_t taken = conn_on_packet(c, &h);
	assert_true(taken == 0 || (s->event == RW && taken == s->arg));
}

static void run_event(struct conn *c, const struct step *s)
{
	static const char line[] = "CONNECT 1024\n";
	struct vsock_header h;
	size_t used;
	switch (s->event) {
	case LINE:
		assert_int_equal(conn_on_line(c, line, strlen(line), &used), 0);
		break;
	case REQUEST:
	case RESPONSE:
	case RST:
	case SHUTDOWN:
	case RW:
	case CREDIT:
	case ASK:
	case BOGUS:
		deliver(c, s);
		break;
	case FORWARDED:
		conn_on_forwarded(c, s->arg);
		break;
	case HOST_EOF:
		conn_on_host_eof(c);
		break;
	case HOST_DEAF:
		conn_on_host_deaf(c);
		break;
	case HOST_GONE:
		conn_on_host_gone(c);
		break;
	case LOST:
		conn_on_guest_lost(c);
		break;
	case STARVED:
		conn_on_starved(c);
		break;
	case SEND:
		assert_true(conn_credit(c) >= s->arg);
		conn_make_data(c, s->arg, &h);
		assert_int_equal(h.op, VSOCK_OP_RW);
		break;
	case END:
		break;
	}
}

/* Sends all that is owed. */
static void collect_packets(struct conn *c, char *letters)
{
	static const char letter[] = { [VSOCK_OP_REQUEST] = 'q',
				       [VSOCK_OP_RST] = 'r',
				       [VSOCK_OP_SHUTDOWN] = 's',
				       [VSOCK_OP_CREDIT_UPDATE] = 'u',
				       [VSOCK_OP_CREDIT_REQUEST] = 'a' };
	struct vsock_header h;
	while (conn_next_packet(c, &h)) {
		assert_int_equal(h.src_port, PORT);
		assert_int_equal(h.dst_port, 1024);
		assert_int_equal(h.len, 0);
		*letters++ = letter[h.op];
	}
	*letters = '\0';
	assert_false(conn_owes_packet(c));
}

static void run(const struct step *steps)
{
	struct conn c;
	conn_start(&c, PORT, ALLOC);
	for (int i = 0; steps[i].event != END; i++) {
		char letters[16];
		run_event(&c, &steps[i]);
		collect_packets(&c, letters);
		if (c.state != steps[i].state || strcmp(letters, steps[i].packets) != 0)
			fail_msg("step %d: state %d, packets \"%s\"", i, (int)c.state, letters);
		assert_int_equal(conn_take_duties(&c), steps[i].duties);
		assert_int_equal(conn_is_done(&c), c.state == CONN_CLOSING);
	}
}

#define OPENING                                \
	{ LINE, 0, CONN_REQUESTED, "q", 0 },   \
	{                                      \
		RESPONSE, 0, CONN_OPEN, "", OK \
	}

static void test_conversations(void **state)
{
	static const struct step conversations[][10] = {
		/* the guest closes in order */
		{ OPENING,
		  { RW, 100, CONN_OPEN, "", 0 },
		  { FORWARDED, 100, CONN_OPEN, "", 0 },
		  { SHUTDOWN, BOTH, CONN_CLOSING, "r", CLOSE } },
		/* the guest closes while the host has not read everything */
		{ OPENING,
		  { RW, 100, CONN_OPEN, "", 0 },
		  { SHUTDOWN, BOTH, CONN_LINGER, "r", 0 },
		  { RW, 1, CONN_LINGER, "", 0 },
		  { FORWARDED, 99, CONN_LINGER, "", 0 },
		  { FORWARDED, 1, CONN_CLOSING, "", CLOSE } },
		/* the same, but the host goes away */
		{ OPENING,
		  { RW, 100, CONN_OPEN, "", 0 },
		  { SHUTDOWN, BOTH, CONN_LINGER, "r", 0 },
		  { HOST_DEAF, 0, CONN_CLOSING, "", CLOSE } },
		{ OPENING,
		  { RW, 100, CONN_OPEN, "", 0 },
		  { RST, 0, CONN_LINGER, "", 0 },
		  { HOST_GONE, 0, CONN_CLOSING, "", CLOSE } },
		/* the guest closes one way after the other */
		{ OPENING,
		  { SHUTDOWN, SND, CONN_OPEN, "", SH_WR },
		  { SHUTDOWN, RCV, CONN_CLOSING, "r", CLOSE } },
		{ OPENING,
		  { RW, 5, CONN_OPEN, "", 0 },
		  { SHUTDOWN, SND, CONN_OPEN, "", 0 },
		  { FORWARDED, 5, CONN_OPEN, "", SH_WR },
		  { HOST_EOF, 0, CONN_CLOSING, "sr", CLOSE } },
		{ OPENING,
		  { SHUTDOWN, RCV, CONN_OPEN, "", SH_RD },
		  { RW, 5, CONN_OPEN, "", 0 },
		  { FORWARDED, 5, CONN_OPEN, "", 0 },
		  { SHUTDOWN, SND, CONN_CLOSING, "r", CLOSE } },
		/* the host half-closes, the guest answers and closes */
		{ OPENING,
		  { SEND, 10, CONN_OPEN, "", 0 },
		  { HOST_EOF, 0, CONN_OPEN, "s", 0 },
		  { HOST_EOF, 0, CONN_OPEN, "", 0 },
		  { RW, 10, CONN_OPEN, "", 0 },
		  { FORWARDED, 10, CONN_OPEN, "", 0 },
		  { SHUTDOWN, BOTH, CONN_CLOSING, "r", CLOSE } },
		/* the host stops reading, then writing */
		{ OPENING,
		  { HOST_DEAF, 0, CONN_OPEN, "s", 0 },
		  { RW, 1024, CONN_OPEN, "u", 0 }, /* dropped, and credited */
		  { HOST_EOF, 0, CONN_CLOSING, "sr", CLOSE } },
		/* the host goes at each stage */
		{ { HOST_GONE, 0, CONN_CLOSING, "", CLOSE } },
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { HOST_GONE, 0, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { HOST_GONE, 0, CONN_CLOSING, "r", CLOSE } },
		/* nobody listens */
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { RST, 0, CONN_CLOSING, "", CLOSE } },
		/* the guest's kernel gives up on a connection */
		{ OPENING, { RST, 0, CONN_CLOSING, "", CLOSE }, { RST, 0, CONN_CLOSING, "", 0 } },
		/* what does not belong into a state */
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { RW, 5, CONN_CLOSING, "r", CLOSE } },
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { SHUTDOWN, 3, CONN_CLOSING, "r", CLOSE } },
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { CREDIT, 0, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { RESPONSE, 0, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { REQUEST, 0, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { BOGUS, 0, CONN_CLOSING, "r", CLOSE } },
		{ OPENING,
		  { SHUTDOWN, SND, CONN_OPEN, "", SH_WR },
		  { RW, 1, CONN_CLOSING, "r", CLOSE } },
		/* shutting nothing, or unknown flags, means nothing */
		{ OPENING,
		  { SHUTDOWN, 0, CONN_OPEN, "", 0 },
		  { SHUTDOWN, 0xfffffffc, CONN_OPEN, "", 0 },
		  { RW, 1, CONN_OPEN, "", 0 } },
		/* credit: at the limit and beyond */
		{ OPENING, { RW, ALLOC, CONN_OPEN, "", 0 }, { RW, 1, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { RW, ALLOC + 1, CONN_CLOSING, "r", CLOSE } },
		{ OPENING, { RW, UINT32_MAX, CONN_CLOSING, "r", CLOSE } },
		{ OPENING,
		  { RW, ALLOC, CONN_OPEN, "", 0 },
		  { FORWARDED, 1, CONN_OPEN, "", 0 },
		  { RW, 1, CONN_OPEN, "", 0 },
		  { RW, 1, CONN_CLOSING, "r", CLOSE } },
		/* the guest is told when a quarter of the buffer is free again, or when it asks */
		{ OPENING,
		  { RW, 2048, CONN_OPEN, "", 0 },
		  { FORWARDED, 1023, CONN_OPEN, "", 0 },
		  { FORWARDED, 1, CONN_OPEN, "u", 0 },
		  { FORWARDED, 1023, CONN_OPEN, "", 0 },
		  { ASK, 0, CONN_OPEN, "u", 0 },
		  { FORWARDED, 1, CONN_OPEN, "", 0 } },
		/* a packet with data tells it as well */
		{ OPENING,
		  { RW, 2048, CONN_OPEN, "", 0 },
		  { FORWARDED, 1023, CONN_OPEN, "", 0 },
		  { SEND, 1, CONN_OPEN, "", 0 },
		  { FORWARDED, 1, CONN_OPEN, "", 0 } },
		/* we ask once until the guest says anything */
		{ OPENING,
		  { STARVED, 0, CONN_OPEN, "a", 0 },
		  { STARVED, 0, CONN_OPEN, "", 0 },
		  { CREDIT, 0, CONN_OPEN, "", 0 },
		  { STARVED, 0, CONN_OPEN, "a", 0 } },
		/* the guest is reset */
		{ { LINE, 0, CONN_REQUESTED, "q", 0 }, { LOST, 0, CONN_CLOSING, "", CLOSE } },
		{ OPENING, { LOST, 0, CONN_CLOSING, "", CLOSE } },
		{ OPENING,
		  { RW, 9, CONN_OPEN, "", 0 },
		  { LOST, 0, CONN_LINGER, "", 0 },
		  { FORWARDED, 9, CONN_CLOSING, "", CLOSE } },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(conversations) / sizeof(*conversations); i++)
		run(conversations[i]);
}

static void test_lines(void **state)
{
	static const struct {
		const char *text;
		int expect;
		uint32_t port;
	} cases[] = {
		{ "CONNECT 0\n", 0, 0 },
		{ "CONNECT 1024\nmore", 0, 1024 },
		{ "CONNECT 4294967294\n", 0, 4294967294u },
		{ "CONNECT 4294967294\nm", 0, 4294967294u },
		{ "CONNECT 4294967295\n", CONN_E_LINE, 0 }, /* VMADDR_PORT_ANY */
		{ "CONNECT 4294967296\n", CONN_E_LINE, 0 },
		{ "CONNECT 99999999999\n", CONN_E_LINE, 0 }, /* longer than any line */
		{ "CONNECT 00000000001\n", CONN_E_LINE, 0 },
		{ "CONNECT \n", CONN_E_LINE, 0 },
		{ "CONNECT\n", CONN_E_LINE, 0 },
		{ "CONNECT 12 \n", CONN_E_LINE, 0 },
		{ "CONNECT  12\n", CONN_E_LINE, 0 },
		{ "CONNECT -1\n", CONN_E_LINE, 0 },
		{ "CONNECT +1\n", CONN_E_LINE, 0 },
		{ "CONNECT 0x1\n", CONN_E_LINE, 0 },
		{ "CONNECT 12\r\n", CONN_E_LINE, 0 },
		{ "connect 12\n", CONN_E_LINE, 0 },
		{ "\n", CONN_E_LINE, 0 },
		{ "G", CONN_E_LINE, 0 },
		{ "", CONN_E_MORE, 0 },
		{ "C", CONN_E_MORE, 0 },
		{ "CONNECT ", CONN_E_MORE, 0 },
		{ "CONNECT 1024", CONN_E_MORE, 0 },
		{ "CONNECT 4294967295", CONN_E_MORE, 0 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct conn c;
		size_t used = 0;
		conn_start(&c, PORT, ALLOC);
		int r = conn_on_line(&c, cases[i].text, strlen(cases[i].text), &used);
		if (r != cases[i].expect)
			fail_msg("\"%s\": %d", cases[i].text, r);
		assert_int_equal(c.state, r == 0 ? CONN_WAITING : CONN_HELLO);
		assert_int_equal(c.guest_port, cases[i].port);
		if (r == 0)
			assert_int_equal(used, strcspn(cases[i].text, "\n") + 1);
	}
}

static void test_line_with_nul(void **state)
{
	struct conn c;
	size_t used;
	(void)state;
	conn_start(&c, PORT, ALLOC);
	assert_int_equal(conn_on_line(&c, "CONNECT 1\0002\n", 12, &used), CONN_E_LINE);
}

static void open_conn(struct conn *c, uint32_t peer_alloc, uint32_t peer_fwd)
{
	struct vsock_header h;
	size_t used;
	conn_start(c, PORT, ALLOC);
	assert_int_equal(conn_on_line(c, "CONNECT 1\n", 10, &used), 0);
	assert_true(conn_next_packet(c, &h));
	assert_int_equal(h.buf_alloc, ALLOC);
	h = (struct vsock_header){ .op = VSOCK_OP_RESPONSE,
				   .buf_alloc = peer_alloc,
				   .fwd_cnt = peer_fwd };
	conn_on_packet(c, &h);
}

static void test_credit_of_the_guest(void **state)
{
	struct conn c;
	struct vsock_header h;
	(void)state;
	open_conn(&c, 1000, 0);
	assert_int_equal(conn_credit(&c), 1000);
	conn_make_data(&c, 1000, &h);
	assert_int_equal(conn_credit(&c), 0);
	h = (struct vsock_header){ .op = VSOCK_OP_CREDIT_UPDATE, .buf_alloc = 1000, .fwd_cnt = 1 };
	conn_on_packet(&c, &h);
	assert_int_equal(conn_credit(&c), 1);
	h.buf_alloc = 500; /* shrunk below what is in flight */
	conn_on_packet(&c, &h);
	assert_int_equal(conn_credit(&c), 0);
	h.fwd_cnt = 1001; /* forwarded what was never sent */
	h.buf_alloc = UINT32_MAX;
	conn_on_packet(&c, &h);
	assert_int_equal(conn_credit(&c), 0);
	h.fwd_cnt = 1000;
	conn_on_packet(&c, &h);
	assert_int_equal(conn_credit(&c), UINT32_MAX);
	conn_on_host_eof(&c);
	assert_int_equal(conn_credit(&c), 0);
}

/* The counters are free-running: they wrap in a long stream. */
static void test_counters_wrap(void **state)
{
	struct conn c;
	struct vsock_header h;
	(void)state;
	open_conn(&c, 1000, 0);
	c.tx_cnt = c.peer_fwd_cnt = UINT32_MAX - 10;
	c.rx_cnt = c.fwd_cnt = c.fwd_told = UINT32_MAX - 10;
	conn_make_data(&c, 100, &h);
	assert_int_equal(c.tx_cnt, 89);
	assert_int_equal(conn_credit(&c), 900);
	h = (struct vsock_header){
		.op = VSOCK_OP_RW, .len = ALLOC, .buf_alloc = 1000, .fwd_cnt = 89
	};
	assert_int_equal(conn_on_packet(&c, &h), ALLOC);
	assert_int_equal(conn_buffered(&c), ALLOC);
	conn_on_forwarded(&c, ALLOC);
	assert_int_equal(conn_buffered(&c), 0);
	assert_int_equal(conn_credit(&c), 1000);
	assert_int_equal(c.state, CONN_OPEN);
}

/* Packets for a connection that the guest cannot know of yet change nothing. */
static void test_early_packets(void **state)
{
	struct conn c;
	struct vsock_header h = { .op = VSOCK_OP_RST };
	size_t used;
	(void)state;
	conn_start(&c, PORT, ALLOC);
	assert_int_equal(conn_on_packet(&c, &h), 0);
	assert_int_equal(c.state, CONN_HELLO);
	assert_int_equal(conn_on_line(&c, "CONNECT 1\n", 10, &used), 0);
	assert_int_equal(conn_on_packet(&c, &h), 0);
	assert_int_equal(c.state, CONN_WAITING);
	conn_on_guest_lost(&c);
	assert_int_equal(c.state, CONN_WAITING);
	conn_on_host_eof(&c);
	assert_int_equal(c.state, CONN_WAITING);
}

/* A reset while closing takes back what is owed. */
static void test_rst_crosses_close(void **state)
{
	struct conn c;
	struct vsock_header h = { .op = VSOCK_OP_RST };
	(void)state;
	open_conn(&c, 1000, 0);
	conn_on_host_gone(&c);
	assert_true(conn_owes_packet(&c));
	conn_on_packet(&c, &h);
	assert_false(conn_owes_packet(&c));
	conn_take_duties(&c);
	assert_true(conn_is_done(&c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_conversations),     fixture_test(test_lines),
		fixture_test(test_line_with_nul),     fixture_test(test_credit_of_the_guest),
		fixture_test(test_counters_wrap),     fixture_test(test_early_packets),
		fixture_test(test_rst_crosses_close),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
