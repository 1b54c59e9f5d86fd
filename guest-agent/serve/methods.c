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

typedef int (*method_fn)(struct session_env *env, struct json_object *params,
			 struct pod_caller caller, struct json_object **ret, struct fault *f);

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

static int out_of_memory(struct fault *f)
{
	return fault_set(f, AGENT_E_INTERNAL, "out of memory");
}

static int call_info(struct session_env *env, struct json_object *params, struct pod_caller caller,
		     struct json_object **ret, struct fault *f)
{
	(void)params;
	(void)caller;
	struct timespec now;
	clock_gettime(CLOCK_BOOTTIME, &now);
	struct agent_info info = {
		.rss_kib = resident_kib(),
		.uptime_ms = now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS,
		.init_ms = env->init_ns / NS_PER_MS,
	};
	return agent_info_encode(&info, ret) < 0 ? out_of_memory(f) : 0;
}

static int bad_params(int r, const char *method, struct fault *f)
{
	if (r == -ENOMEM)
		return out_of_memory(f);
	return fault_set(f, AGENT_E_PARAMS,
			 "%s: a parameter is missing, of the wrong type or beyond its limit",
			 method);
}

static int call_pod_setup(struct session_env *env, struct json_object *params,
			  struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_pod_setup m;
	int r = agent_pod_setup_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_POD_SETUP, f) : pod_setup(env->pod, &m, caller, f);
}

static int call_pod_shutdown(struct session_env *env, struct json_object *params,
			     struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_pod_shutdown m;
	int r = agent_pod_shutdown_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_POD_SHUTDOWN, f) : pod_shutdown(env->pod, &m, caller, f);
}

static int call_app_add(struct session_env *env, struct json_object *params,
			struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	agent_app_add_init(&m);
	int r = agent_app_add_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_ADD, f) : pod_app_add(env->pod, &m, caller, f);
}

static int call_app_start(struct session_env *env, struct json_object *params,
			  struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_app_ref m;
	int r = agent_app_ref_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_START, f) : pod_app_start(env->pod, &m, caller, f);
}

static int call_app_remove(struct session_env *env, struct json_object *params,
			   struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_app_ref m;
	int r = agent_app_ref_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_REMOVE, f) : pod_app_remove(env->pod, &m, caller, f);
}

static int call_app_signal(struct session_env *env, struct json_object *params,
			   struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	(void)caller;
	struct agent_app_signal m;
	int r = agent_app_signal_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_SIGNAL, f) : pod_app_signal(env->pod, &m, f);
}

static int call_app_resize(struct session_env *env, struct json_object *params,
			   struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	(void)caller;
	struct agent_app_resize m;
	int r = agent_app_resize_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_RESIZE, f) : pod_app_resize(env->pod, &m, f);
}

static int call_app_stats(struct session_env *env, struct json_object *params,
			  struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_app_ref m;
	int r = agent_app_ref_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_APP_STATS, f) : pod_app_stats(env->pod, &m, caller, f);
}

static int call_app_exec(struct session_env *env, struct json_object *params,
			 struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	agent_app_exec_init(&m);
	struct agent_exec_ref made;
	int r = agent_app_exec_decode(params, &m);
	if (r < 0)
		return bad_params(r, AGENT_APP_EXEC, f);
	r = pod_app_exec(env->pod, &m, caller.conn, &made.exec, f);
	if (r != 0)
		return r;
	return agent_exec_ref_encode(&made, ret) < 0 ? out_of_memory(f) : 0;
}

static int call_exec_signal(struct session_env *env, struct json_object *params,
			    struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_exec_signal m;
	int r = agent_exec_signal_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_EXEC_SIGNAL, f)
		     : pod_exec_signal(env->pod, &m, caller.conn, f);
}

static int call_exec_resize(struct session_env *env, struct json_object *params,
			    struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)ret;
	struct agent_exec_resize m;
	int r = agent_exec_resize_decode(params, &m);
	return r < 0 ? bad_params(r, AGENT_EXEC_RESIZE, f)
		     : pod_exec_resize(env->pod, &m, caller.conn, f);
}

/* Both belong at the beginning of a connection. */
static int call_too_late(struct session_env *env, struct json_object *params,
			 struct pod_caller caller, struct json_object **ret, struct fault *f)
{
	(void)env;
	(void)params;
	(void)caller;
	(void)ret;
	return fault_set(f, AGENT_E_STATE, "only as the first message of a connection");
}

static const struct {
	const char *name;
	method_fn fn;
} methods[] = {
	{ AGENT_INFO, call_info },
	{ AGENT_POD_SETUP, call_pod_setup },
	{ AGENT_POD_SHUTDOWN, call_pod_shutdown },
	{ AGENT_APP_ADD, call_app_add },
	{ AGENT_APP_START, call_app_start },
	{ AGENT_APP_REMOVE, call_app_remove },
	{ AGENT_APP_SIGNAL, call_app_signal },
	{ AGENT_APP_RESIZE, call_app_resize },
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
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++)
		if (strcmp(msg->method, methods[i].name) == 0)
			return methods[i].fn(env, msg->body, caller, ret, f);
	return fault_set(f, AGENT_E_METHOD, "%s: no such method", msg->method);
}
