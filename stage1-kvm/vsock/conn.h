/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One vsock stream connection: virtio 1.2, 5.10.6. Sans-IO: packets and host events in, packets and
 * duties out; no descriptor, buffer or clock.
 *
 * The host side always connects. A connection goes through these states:
 *
 *   CONN_FREE       nothing.
 *   CONN_HELLO      The host program has to send its line. Allowed: conn_on_line(), host events.
 *                   The guest knows nothing of the connection.
 *   CONN_WAITING    A REQUEST is owed to the guest. Host events only; packets are not for us.
 *   CONN_REQUESTED  The REQUEST is in the guest. RESPONSE opens, RST ends; anything else ends it
 *                   with RST.
 *   CONN_OPEN       Bytes flow both ways, each way can be shut on its own.
 *   CONN_LINGER     The guest is done (SHUTDOWN of both ways, or RST) but bytes that were accepted
 *                   from it are still on their way to the host. Packets are ignored.
 *   CONN_CLOSING    The host side is closed or has to be closed now; what is owed to the guest
 *                   (SHUTDOWN, RST) still has to go out. Packets other than RST are ignored.
 *
 * Credit (5.10.6.3). Guest to host: we advertise buf_alloc bytes; more than that unforwarded is a
 * violation that ends the connection. The guest is told about forwarded bytes with every packet,
 * and with a CREDIT_UPDATE of its own each time a quarter of the buffer was freed since. Host to
 * guest: nothing is sent beyond what the guest advertises; all its counters are free-running
 * 32-bit values, and nonsense in them means no credit, not an error.
 *
 * A close of the host side is told to the guest as SHUTDOWN of both ways followed by RST, so the
 * slot is free at once and no timer is needed; later packets of the guest find no connection and
 * are answered with RST.
 */
#ifndef STAGE1_KVM_VSOCK_CONN_H
#define STAGE1_KVM_VSOCK_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stage1-kvm/vsock/packet.h"

/* "CONNECT 4294967295\n" without a NUL. */
#define CONN_LINE_MAX 19

enum conn_state {
	CONN_FREE = 0,
	CONN_HELLO,
	CONN_WAITING,
	CONN_REQUESTED,
	CONN_OPEN,
	CONN_LINGER,
	CONN_CLOSING,
};

/* conn_on_line(): more bytes are needed; the line is wrong. */
enum {
	CONN_E_MORE = 1,
	CONN_E_LINE = 2,
};

/* What the owner has to do on the host socket; from conn_take_duties(). */
#define CONN_DUTY_OK         1u /* write the line "OK <local port>\n" */
#define CONN_DUTY_SHUT_READ  2u /* the guest receives no more: shutdown(SHUT_RD) */
#define CONN_DUTY_SHUT_WRITE 4u /* the guest sends no more and all is forwarded: SHUT_WR */
#define CONN_DUTY_CLOSE      8u /* close the socket and drop what is buffered */

struct conn {
	enum conn_state state;
	uint32_t local_port;
	uint32_t guest_port;
	unsigned owed;       /* packets to send, CONN_OWE_* in conn.c */
	unsigned duties;     /* CONN_DUTY_* not taken yet */
	unsigned guest_shut; /* VSOCK_SHUTDOWN_* that the guest announced */
	unsigned our_shut;   /* VSOCK_SHUTDOWN_* that we announced or owe */
	bool host_eof;       /* the host sends no more */
	bool host_deaf;      /* the host receives no more: bytes of the guest are dropped */
	bool asked;          /* a CREDIT_REQUEST is on its way */
	/* guest to host */
	uint32_t buf_alloc;
	uint32_t rx_cnt;   /* bytes accepted from the guest */
	uint32_t fwd_cnt;  /* of these, bytes forwarded or dropped */
	uint32_t fwd_told; /* fwd_cnt as the guest knows it */
	/* host to guest */
	uint32_t tx_cnt;
	uint32_t peer_buf_alloc;
	uint32_t peer_fwd_cnt;
};

/* CONN_FREE to CONN_HELLO, with our port and the receive buffer that is granted to the guest. */
void conn_start(struct conn *c, uint32_t local_port, uint32_t buf_alloc);

/*
 * CONN_HELLO only: looks for "CONNECT <port>\n" in the first @len bytes that the host sent. On
 * success *ret_used is the length of the line and the state is CONN_WAITING. CONN_E_MORE: wait for
 * more bytes; CONN_E_LINE: not such a line, end the connection.
 */
int conn_on_line(struct conn *c, const char *bytes, size_t len, size_t *ret_used);

/*
 * A packet with our port and the guest's port. Yields the number of its payload bytes that must be
 * forwarded to the host now (h->len or 0) and reported through conn_on_forwarded().
 */
uint32_t conn_on_packet(struct conn *c, const struct vsock_header *h);

/* @n accepted bytes were written to the host, or dropped because it is deaf. */
void conn_on_forwarded(struct conn *c, uint32_t n);

/* The host sends no more bytes: all that it sent is in the guest's buffers. */
void conn_on_host_eof(struct conn *c);

/* The host receives no more bytes. What is buffered for it counts as forwarded. */
void conn_on_host_deaf(struct conn *c);

/* The host side is gone in both ways, before CONN_OPEN or because of an error. */
void conn_on_host_gone(struct conn *c);

/* The guest lost all its connections. Owes nothing to it any more. */
void conn_on_guest_lost(struct conn *c);

/* True if bytes of the host are wanted, credit permitting. */
bool conn_wants_host_bytes(const struct conn *c);

/* How many bytes may be sent to the guest now; 0 unless conn_wants_host_bytes(). */
uint32_t conn_credit(const struct conn *c);

/* The host has bytes and there is no credit: owes one CREDIT_REQUEST until the guest answers. */
void conn_on_starved(struct conn *c);

/* Accounts for @len bytes (at most conn_credit()) and makes their header. CIDs are not filled. */
void conn_make_data(struct conn *c, uint32_t len, struct vsock_header *ret);

/* True if a packet without payload is owed. */
bool conn_owes_packet(const struct conn *c);

/* Makes the next owed packet. False if none is owed. CIDs are not filled. */
bool conn_next_packet(struct conn *c, struct vsock_header *ret);

/* The duties that came up since the last call, in the order of their values. */
unsigned conn_take_duties(struct conn *c);

/* Bytes accepted from the guest and not forwarded yet. */
uint32_t conn_buffered(const struct conn *c);

/* True if nothing is left to be done: the owner may forget the connection. */
bool conn_is_done(const struct conn *c);

#endif
