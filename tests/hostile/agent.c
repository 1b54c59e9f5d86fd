/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A guest agent that lies: PID 1 of a VM, or of a pod of namespaces, in
 * tests/system/hostile-agent.sh, instead of husk-agent.
 *
 * Theory of operation. It does not run anything: it answers as if it did, and tells one lie. The
 * lie is named METHOD.LIE and told when a request of that METHOD comes ("all": any), instead of the
 * honest reply. The pod's host name names the lie for the pod's first control connection and the
 * streams of its apps; "later." before it, for the other control connections. The program of
 * app.exec names the lie for the connection on which it comes and the streams of that process.
 * Other words are no lie. An app whose program is "true" ends at once, others when they get a
 * signal.
 *
 * Each connection has a process of its own, so that a lie which never ends holds up nothing else.
 * Replies to a hello wait for the request behind it, which has the name of the lie.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "guest-agent/boot/boot.h"
#include "guest-agent/log.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"

#define LIE_TEXT_MAX 128                  /* METHOD.LIE; the longest host name is half of it */
#define CHUNK        4096                 /* bytes written at a time by lies without an end */
#define LONG_TEXT    ((size_t)100 * 1024) /* bytes of an error's text, 200 times the limit */
#define FLOOD_BYTES  ((size_t)10 * 1024 * 1024)
#define EXECS_MAX    1024 /* processes of app.exec in the life of a VM */

/*
 * What all connections know; one process writes at a time, as the host asks for one thing after the
 * other.
 */
struct shared {
	bool controlled; /* the first control connection has come */
	bool ends;       /* the app ends at once */
	char app[AGENT_NAME_MAX + 1];
	char lie[LIE_TEXT_MAX];                  /* of the pod */
	char exec_lies[EXECS_MAX][LIE_TEXT_MAX]; /* by number of the process */
	int n_execs;
};

struct peer {
	int fd;
	bool first; /* the first control connection */
	char lie[LIE_TEXT_MAX];
	int exec; /* the process that was started on it; 0: none */
};

static struct shared *shared;

/* ---- sending ---- */

/* The host may leave at any time: that is the end of this process. */
static void send_bytes(struct peer *p, const void *data, size_t len)
{
	if (fd_write_all(p->fd, data, len) < 0)
		_exit(0);
}

static void send_header(struct peer *p, uint32_t len)
{
	const unsigned char header[FRAME_HEADER_LEN] = { (unsigned char)(len >> 24),
							 (unsigned char)(len >> 16),
							 (unsigned char)(len >> 8),
							 (unsigned char)len };
	send_bytes(p, header, sizeof(header));
}

static void send_frame(struct peer *p, const char *text, size_t len)
{
	send_header(p, (uint32_t)len);
	send_bytes(p, text, len);
}

static void send_text(struct peer *p, const char *text)
{
	send_frame(p, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void sendf(struct peer *p, const char *fmt, ...)
{
	char text[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	send_text(p, text);
}

static void send_exited(struct peer *p, const char *app, long long code, int sig)
{
	sendf(p,
	      "{\"jsonrpc\":\"2.0\",\"method\":\"app.exited\",\"params\":{\"app\":\"%s\",\"code\":%lld,"
	      "\"signal\":%d,\"oom\":false,\"message\":\"\"}}",
	      app, code, sig);
}

static void send_exec_exited(struct peer *p, int number)
{
	sendf(p,
	      "{\"jsonrpc\":\"2.0\",\"method\":\"exec.exited\",\"params\":{\"exec\":%d,\"code\":0,"
	      "\"signal\":0,\"message\":\"\"}}",
	      number);
}

/* @open, then @piece as often as it fits before @close into the largest frame. */
static void send_filled(struct peer *p, const char *open, const char *piece, const char *close)
{
	static char text[FRAME_PAYLOAD_MAX + 1];
	size_t len = strlen(open), step = strlen(piece);
	memcpy(text, open, len);
	for (; len + step + strlen(close) < FRAME_PAYLOAD_MAX; len += step)
		memcpy(text + len, piece, step);
	memcpy(text + len, close, strlen(close));
	send_frame(p, text, len + strlen(close));
}

static void send_for_ever(struct peer *p, const char *piece)
{
	char chunk[CHUNK];
	for (size_t i = 0; i < sizeof(chunk); i++)
		chunk[i] = piece[i % strlen(piece)];
	for (;;)
		send_bytes(p, chunk, sizeof(chunk));
}

/* ---- the truth ---- */

static const char *word(const struct rpc_msg *m, const char *key)
{
	const char *text;
	return json_get_str(m->body, key, AGENT_STRING_MAX, &text) == 0 ? text : "";
}

static void send_result(struct peer *p, const struct rpc_msg *m, const char *result)
{
	sendf(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":%s}", (long long)m->id, result);
}

static bool is(const struct rpc_msg *m, const char *method)
{
	return strcmp(m->method, method) == 0;
}

static bool is_stream(const struct rpc_msg *m, const char *stream)
{
	return strcmp(word(m, "stream"), stream) == 0;
}

/*
 * Writes a line and ends the connection: the stream of an app that has ended. A terminal stays
 * open. Nothing comes on standard error, where the host's own messages are.
 */
static void be_stream(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{}");
	if (!is_stream(m, "stderr"))
		send_bytes(p, "output\n", 7);
	while (is_stream(m, "tty"))
		pause();
	_exit(0);
}

static void tell_truth(struct peer *p, const struct rpc_msg *m)
{
	if (is(m, AGENT_ATTACH)) {
		be_stream(p, m);
	} else if (is(m, AGENT_HELLO)) {
		send_result(p, m, "{\"version\":1,\"agent\":\"hostile\",\"kernel\":\"none\"}");
	} else if (is(m, AGENT_APP_EXEC)) {
		char result[32];
		snprintf(result, sizeof(result), "{\"exec\":%d}", p->exec);
		send_result(p, m, result);
		send_exec_exited(p, p->exec);
	} else {
		send_result(p, m, "{}");
	}
	if (is(m, AGENT_APP_START) && shared->ends)
		send_exited(p, shared->app, 0, 0);
	else if (is(m, AGENT_APP_SIGNAL))
		send_exited(p, shared->app, 0, SIGTERM);
}

/* ---- lies ---- */

static void lie_silence(struct peer *p, const struct rpc_msg *m)
{
	(void)p;
	(void)m;
}

static void lie_close(struct peer *p, const struct rpc_msg *m)
{
	(void)p;
	(void)m;
	_exit(0);
}

static void lie_wrong_id(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	sendf(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{}}", (long long)RPC_ID_MAX);
}

static void lie_twice(struct peer *p, const struct rpc_msg *m)
{
	tell_truth(p, m);
	send_result(p, m, "{}");
}

static void lie_request(struct peer *p, const struct rpc_msg *m)
{
	sendf(p, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"agent.hello\",\"params\":{}}",
	      (long long)m->id);
}

static void lie_error(struct peer *p, const struct rpc_msg *m)
{
	sendf(p,
	      "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":-32000,"
	      "\"message\":\"one\\ntwo\\u001b[31m\\r\\u0007three\"}}",
	      (long long)m->id);
}

static void lie_long_error(struct peer *p, const struct rpc_msg *m)
{
	static char text[LONG_TEXT + 256];
	int len = snprintf(text, sizeof(text),
			   "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"error\":{\"code\":1,\"message\":\"",
			   (long long)m->id);
	memset(text + len, 'x', LONG_TEXT);
	memcpy(text + len + LONG_TEXT, "\"}}", 3);
	send_frame(p, text, (size_t)len + LONG_TEXT + 3);
}

static void lie_version(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{\"version\":9223372036854775807,\"agent\":\"a\",\"kernel\":\"k\"}");
}

static void lie_long_hello(struct peer *p, const struct rpc_msg *m)
{
	char open[128];
	snprintf(open, sizeof(open),
		 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"version\":1,\"kernel\":\"\","
		 "\"agent\":\"",
		 (long long)m->id);
	send_filled(p, open, "x", "\"}}");
}

static void lie_no_object(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "[1,2,3]");
}

static void lie_empty_frame(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_header(p, 0);
}

static void lie_huge_frame(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_header(p, UINT32_MAX);
}

/* A length within the limits, and no end of it. */
static void lie_half_frame(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_header(p, 64);
	send_bytes(p, "{\"jsonrpc\":", 11);
}

static void lie_endless_frame(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_header(p, FRAME_PAYLOAD_MAX);
	send_for_ever(p, "x");
}

static void lie_garbage(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_text(p, "\x01\xff{]not json");
}

static void lie_deep(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	send_filled(p, "", "[", "");
}

/* Small on the wire, large in memory. */
static void lie_objects(struct peer *p, const struct rpc_msg *m)
{
	send_filled(p, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[{}", ",{}", "]}");
	tell_truth(p, m);
}

static void lie_numbers(struct peer *p, const struct rpc_msg *m)
{
	send_filled(p, "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":[1", ",1", "]}");
	tell_truth(p, m);
}

static const char noise[] = "\0\0\0\036{\"jsonrpc\":\"2.0\",\"method\":\"x\"}";
#define NOISE_LEN   (sizeof(noise) - 1)
#define FLOOD_CHUNK (1000 * NOISE_LEN) /* bytes written at a time */

/* Notifications without a pause. */
static void flood(struct peer *p)
{
	static char chunk[FLOOD_CHUNK];
	for (size_t i = 0; i < sizeof(chunk); i += NOISE_LEN)
		memcpy(chunk + i, noise, NOISE_LEN);
	for (size_t sent = 0; sent < FLOOD_BYTES; sent += sizeof(chunk))
		send_bytes(p, chunk, sizeof(chunk));
}

static void lie_flood(struct peer *p, const struct rpc_msg *m)
{
	flood(p);
	tell_truth(p, m);
}

static void lie_endless_flood(struct peer *p, const struct rpc_msg *m)
{
	(void)m;
	for (;;)
		flood(p);
}

static void lie_no_app(struct peer *p, const struct rpc_msg *m)
{
	tell_truth(p, m);
	send_exited(p, "nobody-has-this", 0, 0);
}

static void lie_exited_early(struct peer *p, const struct rpc_msg *m)
{
	send_exited(p, shared->app, 0, 0);
	tell_truth(p, m);
}

static void lie_exited_twice(struct peer *p, const struct rpc_msg *m)
{
	tell_truth(p, m);
	send_exited(p, shared->app, 0, 0);
	send_exited(p, shared->app, 0, 0);
}

static void lie_exit_code(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{}");
	send_exited(p, shared->app, INT64_MAX, -1);
}

static void lie_exec_other(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{\"exec\":1}");
	send_exec_exited(p, 4711);
}

static void lie_exec_zero(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{\"exec\":0}");
}

/* Of a stream: it flows, and never ends. */
static void lie_half_open(struct peer *p, const struct rpc_msg *m)
{
	send_result(p, m, "{}");
	if (!is_stream(m, "stderr"))
		send_bytes(p, "output\n", 7);
}

static void lie_endless_output(struct peer *p, const struct rpc_msg *m)
{
	if (is_stream(m, "stderr"))
		be_stream(p, m);
	send_result(p, m, "{}");
	send_for_ever(p, "output\n");
}

static const struct lie {
	const char *name;
	void (*tell)(struct peer *p, const struct rpc_msg *m);
} lies[] = {
	{ "silence", lie_silence },
	{ "close", lie_close },
	{ "wrong-id", lie_wrong_id },
	{ "twice", lie_twice },
	{ "request", lie_request },
	{ "error", lie_error },
	{ "long-error", lie_long_error },
	{ "version", lie_version },
	{ "long-hello", lie_long_hello },
	{ "no-object", lie_no_object },
	{ "empty-frame", lie_empty_frame },
	{ "huge-frame", lie_huge_frame },
	{ "half-frame", lie_half_frame },
	{ "endless-frame", lie_endless_frame },
	{ "garbage", lie_garbage },
	{ "deep", lie_deep },
	{ "objects", lie_objects },
	{ "numbers", lie_numbers },
	{ "flood", lie_flood },
	{ "endless-flood", lie_endless_flood },
	{ "no-app", lie_no_app },
	{ "exited-early", lie_exited_early },
	{ "exited-twice", lie_exited_twice },
	{ "exit-code", lie_exit_code },
	{ "exec-other", lie_exec_other },
	{ "exec-zero", lie_exec_zero },
	{ "half-open", lie_half_open },
	{ "endless-output", lie_endless_output },
};

/* The lie that @name (METHOD.LIE) has for @method, or NULL. */
static const struct lie *find_lie(const char *name, const char *method)
{
	const char *dot = strrchr(name, '.');
	if (!dot)
		return NULL;
	size_t len = (size_t)(dot - name);
	bool all = len == 3 && memcmp(name, "all", 3) == 0;
	if (!all && (strlen(method) != len || memcmp(name, method, len) != 0))
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++)
		if (strcmp(lies[i].name, dot + 1) == 0)
			return &lies[i];
	return NULL;
}

/* ---- connections ---- */

/* The next request; does not return at the end of the connection. */
static void receive(struct peer *p, struct rpc_msg *ret)
{
	static char frame[FRAME_MAX];
	size_t got = 0, len = 0;
	if (fd_read_full(p->fd, frame, FRAME_HEADER_LEN, &got) < 0 || got < FRAME_HEADER_LEN)
		_exit(0);
	for (size_t i = 0; i < FRAME_HEADER_LEN; i++)
		len = len << 8 | (unsigned char)frame[i];
	if (len > FRAME_PAYLOAD_MAX || fd_read_full(p->fd, frame, len, &got) < 0 || got < len ||
	    rpc_decode(frame, len, ret) < 0)
		_exit(0);
}

static const char *program(const struct rpc_msg *m)
{
	struct json_object *exec = json_member(m->body, "exec");
	const char *text = json_object_is_type(exec, json_type_array)
				   ? json_object_get_string(json_object_array_get_idx(exec, 0))
				   : NULL;
	return text ? text : "";
}

/* What a request tells about which lie is wanted, and for whom. */
static void take_notes(struct peer *p, const struct rpc_msg *m)
{
	if (is(m, AGENT_POD_SETUP)) {
		str_copy(shared->lie, sizeof(shared->lie), word(m, "hostname"));
		str_copy(p->lie, sizeof(p->lie), shared->lie);
	} else if (is(m, AGENT_APP_ADD)) {
		str_copy(shared->app, sizeof(shared->app), word(m, "app"));
		shared->ends = strcmp(program(m), "true") == 0;
	} else if (is(m, AGENT_APP_EXEC) && shared->n_execs < EXECS_MAX - 1) {
		p->exec = ++shared->n_execs;
		str_copy(shared->exec_lies[p->exec], LIE_TEXT_MAX, program(m));
		str_copy(p->lie, sizeof(p->lie), program(m));
	} else if (is(m, AGENT_ATTACH)) {
		int64_t exec = 0;
		json_get_int(m->body, "exec", 0, EXECS_MAX - 1, &exec);
		str_copy(p->lie, sizeof(p->lie), exec > 0 ? shared->exec_lies[exec] : shared->lie);
	} else if (!p->first && str_starts(shared->lie, "later.")) {
		str_copy(p->lie, sizeof(p->lie), shared->lie + strlen("later."));
	}
}

static void answer(struct peer *p, const struct rpc_msg *m)
{
	const struct lie *lie = find_lie(p->lie, m->method);
	if (lie)
		lie->tell(p, m);
	else
		tell_truth(p, m);
}

static void serve(int fd)
{
	struct peer p = { .fd = fd };
	CLEANUP(rpc_msg_deinit) struct rpc_msg hello = { 0 };
	bool greeted = true;
	for (;;) {
		CLEANUP(rpc_msg_deinit) struct rpc_msg m = { 0 };
		receive(&p, &m);
		take_notes(&p, &m);
		if (is(&m, AGENT_HELLO)) {
			p.first = !shared->controlled;
			shared->controlled = true;
			greeted = false;
			hello = m;
			m = (struct rpc_msg){ 0 };
			continue;
		}
		if (!greeted)
			answer(&p, &hello);
		greeted = true;
		answer(&p, &m);
	}
}

static void accept_for_ever(int listener)
{
	for (;;) {
		struct pollfd pfd = { .fd = listener, .events = POLLIN };
		poll(&pfd, 1, -1);
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		if (fork() == 0)
			serve(fd);
		fd_close(fd);
	}
}

/* The listening socket: that of --listen-fd, of namespaces, else one of the VM's that we boot. */
static int prepare(int argc, char **argv, struct err *e)
{
	static const char option[] = "--listen-fd=";
	uint64_t fd;
	for (int i = 1; i < argc; i++)
		if (str_starts(argv[i], option) &&
		    num_parse_u64(argv[i] + sizeof(option) - 1, INT_MAX, &fd) == 0)
			return (int)fd;
	int r = boot_mount(e);
	return r < 0 ? r : boot_listen(e);
}

int main(int argc, char **argv)
{
	struct err e = ERR_INIT;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	int listener = shared == MAP_FAILED ? -ENOMEM : prepare(argc, argv, &e);
	if (listener < 0) {
		log_error("%s", e.text);
		boot_power_off();
	}
	log_info("listening");
	accept_for_ever(listener);
}
