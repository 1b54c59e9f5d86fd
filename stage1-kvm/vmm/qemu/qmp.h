/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QMP, the client side (QEMU Machine Protocol Specification, docs/interop/qmp-spec.rst of QEMU).
 *
 * Sans-IO: bytes from QEMU go in, messages come out; commands go to a buffer. QEMU may be under the
 * guest's control, so its bytes are bounded and checked like any other. One line of JSON per
 * message, as QEMU sends with its default of pretty=off.
 *
 * Order of use: wait for QMP_GREETING, send qmp_command("qmp_capabilities"), wait for its reply;
 * from then on any command and any event. The codec does not enforce the order.
 */
#ifndef STAGE1_KVM_VMM_QEMU_QMP_H
#define STAGE1_KVM_VMM_QEMU_QMP_H

#include <json-c/json_object.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"

/*
 * Longest line from QEMU, newline included. Replies to the commands husk sends are below 1 KiB
 * each; the greeting is some 200 bytes.
 */
#define QMP_LINE_MAX ((size_t)16 * 1024)

/* Longest command line that is sent, and thus room for the output buffer of an exchange. */
#define QMP_COMMAND_MAX ((size_t)4 * 1024)

#define QMP_NAME_MAX 63  /* event names, error classes */
#define QMP_TEXT_MAX 255 /* error descriptions; longer ones are cut */
#define QMP_ID_MAX   INT64_C(0xffffffff)

enum qmp_kind {
	QMP_GREETING, /* version in major, minor */
	QMP_RETURN,   /* id, body */
	QMP_ERROR,    /* id (-1 if QEMU could not tell), name = class, text */
	QMP_EVENT,    /* name, body = data or NULL */
};

struct qmp_msg {
	enum qmp_kind kind;
	int64_t id;
	int64_t major, minor;
	char name[QMP_NAME_MAX + 1];
	char text[QMP_TEXT_MAX + 1];
	struct json_object *body; /* owned; NULL if absent */
};

struct qmp {
	struct buf in;   /* at most QMP_LINE_MAX */
	size_t scanned;  /* bytes of @in known to hold no newline */
	int64_t next_id; /* of the next command */
};

/* QMP_INCOMPLETE: feed more bytes. */
enum {
	QMP_INCOMPLETE = 1,
};

/* Prepares a connection's state. Allocates nothing. */
void qmp_init(struct qmp *q);
void qmp_deinit(struct qmp *q);

/* How many bytes qmp_feed() takes at present; 0 only if complete lines wait for qmp_next(). */
size_t qmp_room(const struct qmp *q);

/* Takes bytes from QEMU. -EMSGSIZE beyond qmp_room(), -ENOMEM. */
int qmp_feed(struct qmp *q, const void *data, size_t len);

/*
 * Yields the next message (qmp_msg_deinit()). 0, QMP_INCOMPLETE, -ENOMEM, or -EBADMSG for a line
 * that is not a QMP message or too long: the connection is then useless.
 */
int qmp_next(struct qmp *q, struct qmp_msg *ret);

/* Frees what @m holds. Accepts NULL and an all-zero message. */
void qmp_msg_deinit(struct qmp_msg *m);

/*
 * Appends a command to @out; its id is in *ret_id (may be NULL). @args is taken over, also on
 * failure; NULL sends none. -EMSGSIZE if it is beyond QMP_COMMAND_MAX or @out is full,
 * -EILSEQ if @name is not UTF-8, -ENOMEM.
 */
int qmp_command(struct qmp *q, struct buf *out, const char *name, struct json_object *args,
		int64_t *ret_id);

#endif
