/* SPDX-License-Identifier: Apache-2.0 */
#include "guest-agent/serve/methods.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/num.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

/* A request: from whom, with which parameters, and where its result or fault goes. */
struct call {
	struct session_env *env;
	const char *method;
	struct json_object *params;
	struct pod_caller caller;
	struct json_object **ret;
	struct fault *f;
};

void methods_describe(struct agent_hello_reply *r)
{
	struct utsname u;
	str_copy(r->agent, sizeof(r->agent), "husk-agent " HUSK_VERSION);
	if (uname(&u) == 0)
		snprintf(r->kernel, sizeof(r->kernel), "%s %s", u.sysname, u.release);
}

/* Resident memory from the second field of /proc/self/statm (proc(5)); 0 if that fails. */
static int64_t resident_kib(void)
{
	char text[128];
	size_t len;
	cleanup_fd int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1, &len) < 0)
		return 0;
	text[len] = '\0';
	char *save = NULL;
	uint64_t pages;
	if (!strtok_r(text, " ", &save))
		return 0;
	const char *field = strtok_r(NULL, " ", &save);
	if (!field || num_parse_u64(field, INT32_MAX, &pages) < 0)
		return 0;
	return (int64_t)pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* The bytes in the line "KEY: NUMBER kB" of meminfo's @text; -1 if there is none. */
static int64_t bytes_of(const char *text, const char *key)
{
	uint64_t kib;
	const char *at = strstr(text, key);
	at = at ? at + strlen(key) : "";
	at += strspn(at, ": ");
	char number[24];
	snprintf(number, sizeof(number), "%.*s", (int)strspn(at, "0123456789"), at);
	return num_parse_u64(number, INT64_MAX / 1024, &kib) == 0 ? (int64_t)kib * 1024 : -1;
}

/* The first lines of /proc/meminfo (proc(5)), and the processors. */
static void describe_machine(struct agent_info *info)
{
	char text[256];
	size_t len = 0;
	cleanup_fd int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fd_read_full(fd, text, sizeof(text) - 1, &len) < 0)
		len = 0;
	text[len] = '\0';
	info->memory_total = bytes_of(text, "MemTotal");
	info->memory_free = bytes_of(text, "MemFree");
	info->memory_available = bytes_of(text, "MemAvailable");
	info->cpus = sysconf(_SC_NPROCESSORS_ONLN);
}

static int out_of_memory(struct fault *f)
{
	return fault_set(f, AGENT_E_INTERNAL, "out of memory");
}

static int call_info(const struct call *c)
{
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	struct agent_info info = {
		.rss_kib = resident_kib(),
		.uptime_ms = now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS,
		.init_ms = c->env->init_ns / NS_PER_MS,
		.memory_total = -1,
		.memory_free = -1,
		.memory_available = -1,
		.cpus = -1,
	};
	if (c->env->is_machine)
		describe_machine(&info);
	return agent_info_encode(&info, c->ret) < 0 ? out_of_memory(c->f) : 0;
}

static int bad_params(const struct call *c, int r)
{
	if (r == -ENOMEM)
		return out_of_memory(c->f);
	return fault_set(c->f, AGENT_E_PARAMS,
			 "%s: a parameter is missing, of the wrong type or beyond its limit",
			 c->method);
}

/* A method whose parameters are a message @m, of which @result makes 0 or a fault. */
#define DEFINE_CALL(name, message, result)                       \
	static int call_##name(const struct call *c)             \
	{                                                        \
		struct agent_##message m;                        \
		int r = agent_##message##_decode(c->params, &m); \
		return r < 0 ? bad_params(c, r) : (result);      \
	}

DEFINE_CALL(pod_clock, pod_clock, pod_set_clock(c->env->pod, &m, c->f))
DEFINE_CALL(pod_shutdown, pod_shutdown, pod_shutdown(c->env->pod, &m, c->caller, c->f))
DEFINE_CALL(app_start, app_ref, pod_app_start(c->env->pod, &m, c->caller, c->f))
DEFINE_CALL(app_remove, app_ref, pod_app_remove(c->env->pod, &m, c->caller, c->f))
DEFINE_CALL(app_signal, app_signal, pod_app_signal(c->env->pod, &m, c->f))
DEFINE_CALL(app_freeze, app_freeze, pod_app_freeze(c->env->pod, &m, c->f))
DEFINE_CALL(app_resize, app_resize, pod_app_resize(c->env->pod, &m, c->f))
DEFINE_CALL(app_update, app_update, pod_app_update(c->env->pod, &m, c->caller, c->f))
DEFINE_CALL(app_stats, app_ref, pod_app_stats(c->env->pod, &m, c->caller, c->f))
DEFINE_CALL(exec_signal, exec_signal, pod_exec_signal(c->env->pod, &m, c->caller.conn, c->f))
DEFINE_CALL(exec_resize, exec_resize, pod_exec_resize(c->env->pod, &m, c->caller.conn, c->f))

static int call_pod_setup(const struct call *c)
{
	CLEANUP(agent_pod_setup_deinit) struct agent_pod_setup m;
	agent_pod_setup_init(&m);
	int r = agent_pod_setup_decode(c->params, &m);
	return r < 0 ? bad_params(c, r) : pod_setup(c->env->pod, &m, c->caller, c->f);
}

static int call_app_add(const struct call *c)
{
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	agent_app_add_init(&m);
	int r = agent_app_add_decode(c->params, &m);
	return r < 0 ? bad_params(c, r) : pod_app_add(c->env->pod, &m, c->caller, c->f);
}

static int call_app_exec(const struct call *c)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	agent_app_exec_init(&m);
	struct agent_exec_ref made;
	int r = agent_app_exec_decode(c->params, &m);
	if (r < 0)
		return bad_params(c, r);
	r = pod_app_exec(c->env->pod, &m, c->caller.conn, &made.exec, c->f);
	if (r != 0)
		return r;
	return agent_exec_ref_encode(&made, c->ret) < 0 ? out_of_memory(c->f) : 0;
}

/* Both belong at the beginning of a connection. */
static int call_too_late(const struct call *c)
{
	return fault_set(c->f, AGENT_E_STATE, "only as the first message of a connection");
}

static const struct {
	const char *name;
	int (*fn)(const struct call *c);
} methods[] = {
	{ AGENT_INFO, call_info },
	{ AGENT_POD_SETUP, call_pod_setup },
	{ AGENT_POD_CLOCK, call_pod_clock },
	{ AGENT_POD_SHUTDOWN, call_pod_shutdown },
	{ AGENT_APP_ADD, call_app_add },
	{ AGENT_APP_START, call_app_start },
	{ AGENT_APP_REMOVE, call_app_remove },
	{ AGENT_APP_SIGNAL, call_app_signal },
	{ AGENT_APP_FREEZE, call_app_freeze },
	{ AGENT_APP_RESIZE, call_app_resize },
	{ AGENT_APP_UPDATE, call_app_update },
	{ AGENT_APP_STATS, call_app_stats },
	{ AGENT_APP_EXEC, call_app_exec },
	{ AGENT_EXEC_SIGNAL, call_exec_signal },
	{ AGENT_EXEC_RESIZE, call_exec_resize },
	{ AGENT_HELLO, call_too_late },
	{ AGENT_ATTACH, call_too_late },
};

int methods_call(struct session_env *env, const struct rpc_msg *msg, struct pod_caller caller,
		 struct json_object **ret, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		const struct call c = { env, methods[i].name, msg->body, caller, ret, f };
		if (strcmp(msg->method, c.method) == 0)
			return methods[i].fn(&c);
	}
	return fault_set(f, AGENT_E_METHOD, "%s: no such method", msg->method);
}
