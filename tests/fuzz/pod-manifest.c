/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pod manifest. Properties: what is accepted keeps its limits, is written as a manifest that is
 * accepted again, and that is written as the same text; what is refused names a cause.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "host/manifest/user_manifest.h"
#include "lib/wire/pod_manifest.h"
#include "lib/wire/rlimit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

/* Whatever text is taken for a limit is one. */
static void check_rlimits(const struct strv *texts)
{
	struct rlimit_spec spec;
	for (size_t i = 0; i < texts->n; i++)
		check(rlimit_parse(texts->v[i], &spec) < 0 || spec.soft <= spec.hard);
}

/* 0, which means none, or in its range. */
static void check_number(const struct isolators *i, enum isolator which, int64_t n, int64_t min,
			 int64_t max)
{
	check(isolators_has(i, which) ? n >= min && n <= max : n == 0);
}

static void check_isolators(const struct isolators *i)
{
	struct rlimit_spec spec;
	check_number(i, ISOLATOR_MEMORY, i->memory, ISOLATOR_MEMORY_MIN, ISOLATOR_MEMORY_MAX);
	check_number(i, ISOLATOR_CPU, i->cpu_millis, ISOLATOR_CPU_MIN, ISOLATOR_CPU_MAX);
	check_number(i, ISOLATOR_CPU_SHARES, i->cpu_shares, ISOLATOR_CPU_SHARES_MIN,
		     ISOLATOR_CPU_SHARES_MAX);
	check_number(i, ISOLATOR_OOM_SCORE_ADJ, i->oom_score_adj, -ISOLATOR_OOM_SCORE_ADJ_MAX,
		     ISOLATOR_OOM_SCORE_ADJ_MAX);
	check_number(i, ISOLATOR_PIDS, i->pids_max, 1, ISOLATOR_PIDS_MAX);
	check(!isolators_has(i, ISOLATOR_CAPS_RETAIN) || !isolators_has(i, ISOLATOR_CAPS_REMOVE));
	check(!isolators_has(i, ISOLATOR_SECCOMP_RETAIN) ||
	      !isolators_has(i, ISOLATOR_SECCOMP_REMOVE));
	check(i->caps.n <= ISOLATOR_CAPS_MAX && i->seccomp.n <= ISOLATOR_SECCOMP_MAX);
	check(!i->seccomp_errno[0] || isolators_errno(i->seccomp_errno) > 0);
	for (size_t j = 0; j < i->rlimits.n; j++)
		check(rlimit_parse(i->rlimits.v[j], &spec) == 0 && spec.soft <= spec.hard);
}

static void check_ports(const struct pod_ports *p, bool of_pod)
{
	struct pod_port again = { .port = 0 };
	check(p->n <= POD_PORTS_MAX);
	for (size_t i = 0; i < p->n; i++) {
		const struct pod_port *port = &p->v[i];
		check(agent_name_is_valid(port->name) && port->port > 0 && port->count > 0);
		check(port->port + port->count <= UINT16_MAX + 1);
		check((port->host_port > 0) == of_pod);
		check(!port->host_ip[0] || pod_port_set_ip(&again, port->host_ip) == 0);
		check(strcmp(again.host_ip, port->host_ip) == 0 || !port->host_ip[0]);
	}
}

static void check_limits(const struct pod_manifest *m)
{
	check(m->n_apps >= 1 || m->is_mutable);
	check(m->n_apps <= AGENT_APPS_MAX);
	check_ports(&m->ports, true);
	check(pod_manifest_exit_policy(m) > POD_EXIT_DEFAULT);
	for (size_t i = 0; i < m->n_apps; i++) {
		const struct pod_app *app = &m->apps[i];
		check(agent_name_is_valid(app->name));
		check(app->exec.n >= 1 && app->exec.n <= AGENT_EXEC_MAX);
		check(app->env.n <= AGENT_ENV_MAX);
		check_rlimits(&app->exec);
		for (size_t j = 0; j < app->env.n; j++)
			check(strchr(app->env.v[j], '=') != NULL);
		check(app->groups.n <= AGENT_GROUPS_MAX);
		check_isolators(&app->isolators);
		check_ports(&app->ports, false);
	}
}

static void check_round_trip(const struct pod_manifest *m)
{
	cleanup_free char *text = NULL, *again = NULL;
	CLEANUP(pod_manifest_deinit) struct pod_manifest back;
	pod_manifest_init(&back);
	int r = pod_manifest_format(m, &text);
	/* json-c takes some byte sequences for UTF-8 that we do not write. */
	check(r == 0 || r == -EMSGSIZE || r == -EILSEQ);
	if (r < 0)
		return;
	check(pod_manifest_parse(text, strlen(text), &back, NULL) == 0);
	check(pod_manifest_format(&back, &again) == 0);
	check(strcmp(text, again) == 0);
}

/*
 * The manifest as a user's request: every app of it becomes one of the pod, or is refused with a
 * cause.
 */
static void check_request(const char *text, size_t size)
{
	static const struct image_config image = { .working_dir = "", .user = "" };
	CLEANUP(run_request_deinit) struct run_request q;
	struct err e = ERR_INIT;
	run_request_init(&q);
	int r = declare_parse(text, size, &q, &e);
	check((r < 0) == (e.text[0] != '\0'));
	for (size_t i = 0; r == 0 && i < q.n_apps; i++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		struct err why = ERR_INIT;
		pod_app_init(&app);
		int made = compose_app(&q.apps[i], "name", "sha256-00", &image, &q.env, &app, &why);
		check((made < 0) == (why.text[0] != '\0'));
		check(made < 0 || app.exec.n > 0);
	}
}

/* What OCI images call a port is what appc may call one. */
static void try_port(const char *text)
{
	struct pod_port port;
	enum port_protocol protocol;
	uint16_t number = 1;
	check(port_number_parse(text, &number) < 0 || number > 0);
	check(port_protocol_parse(text, &protocol) < 0 || protocol < PORT_PROTOCOL_COUNT_);
	if (pod_port_parse(text, &port) == 0)
		check(agent_name_is_valid(port.name) && port.port > 0);
}

/* What follows --exit-policy=, and --port=. */
static void try_policy(const uint8_t *data, size_t size)
{
	char text[32] = "";
	enum pod_exit_policy policy = POD_EXIT_DEFAULT;
	memcpy(text, data, MIN(size, sizeof(text) - 1));
	try_port(text);
	int r = pod_exit_policy_parse(text, &policy);
	check(r == 0 ? policy > POD_EXIT_DEFAULT && policy < POD_EXIT_COUNT_
		     : policy == POD_EXIT_DEFAULT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = ERR_INIT;
	if (size > 0)
		try_policy(data, size);
	check_request((const char *)data, size);
	CLEANUP(pod_manifest_deinit) struct pod_manifest m;
	pod_manifest_init(&m);
	int r = pod_manifest_parse((const char *)data, size, &m, &e);
	if (r < 0) {
		check(e.code == r && e.text[0] != '\0');
		return 0;
	}
	check_limits(&m);
	check_round_trip(&m);
	return 0;
}
