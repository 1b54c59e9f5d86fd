/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/spec/oci_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/buf.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/shim/spec/specs.h"

#define OWN_NS "\"namespaces\":[{\"type\":\"network\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}]"
#define NETNS  "\"linux\":{" OWN_NS "}"
#define SIMPLE "{\"process\":{\"args\":[\"true\"]}," NETNS "}"

/* What `ctr run` writes, somewhat shortened. */
static const char of_ctr[] =
	"{\"ociVersion\":\"1.1.0-rc.1\",\"process\":{\"user\":{\"uid\":1000,\"gid\":100,"
	"\"additionalGids\":[5,6],\"umask\":23},\"args\":[\"sh\",\"-c\",\"exit 7\"],\"env\":[\"PATH=/bin\","
	"\"A=1\",\"A=2\",\"noequals\"],\"cwd\":\"/tmp\",\"capabilities\":{\"bounding\":[\"CAP_CHOWN\","
	"\"CAP_KILL\"],\"effective\":[\"CAP_CHOWN\",\"CAP_KILL\"]},\"rlimits\":[{\"type\":"
	"\"RLIMIT_NOFILE\",\"hard\":1024,\"soft\":512}],\"noNewPrivileges\":true,\"oomScoreAdj\":-5},"
	"\"root\":{\"path\":\"rootfs\",\"readonly\":true},\"hostname\":\"box\",\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\",\"options\":[\"nosuid\"]},"
	"{\"destination\":\"/dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"},"
	"{\"destination\":\"/run\",\"type\":\"tmpfs\",\"source\":\"tmpfs\"}],"
	"\"linux\":{\"resources\":{\"devices\":[{\"allow\":false,\"access\":\"rwm\"}],\"memory\":"
	"{\"limit\":67108864},\"cpu\":{\"shares\":512,\"quota\":150000,\"period\":100000},\"pids\":"
	"{\"limit\":100}},\"cgroupsPath\":\"/default/c\",\"namespaces\":[{\"type\":\"pid\"},"
	"{\"type\":\"ipc\"},{\"type\":\"network\",\"path\":\"/run/netns/x\"}],\"sysctl\":{\"net.ipv4.ip_forward\":\"1\"},"
	"\"maskedPaths\":[\"/proc/kcore\"],\"readonlyPaths\":[\"/proc/sys\"]}}";

static void test_container(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	if (parse(of_ctr, &s, &e) < 0)
		fail_msg("%s", e.text);
	const struct app_options *o = &s.app;
	assert_true(o->instead_of_image);
	assert_int_equal(o->args.n, 3);
	assert_string_equal(o->args.v[2], "exit 7");
	assert_int_equal(o->env.n, 2);
	assert_string_equal(o->env.v[1], "A=2");
	assert_string_equal(o->working_dir, "/tmp");
	assert_string_equal(o->user, "1000");
	assert_string_equal(o->group, "100");
	assert_int_equal(o->groups.n, 2);
	assert_string_equal(o->groups.v[1], "6");
	assert_int_equal(o->isolators.umask, 027);
	assert_true(o->read_only_root);
	assert_int_equal(o->isolators.caps.n, 2);
	assert_true(isolators_has(&o->isolators, ISOLATOR_CAPS_RETAIN));
	assert_string_equal(o->isolators.rlimits.v[0], "nofile=512:1024");
	assert_true(o->isolators.no_new_privs);
	assert_int_equal(o->isolators.oom_score_adj, -5);
	assert_int_equal(o->isolators.memory, 67108864);
	assert_int_equal(o->isolators.cpu_shares, 512);
	assert_int_equal(o->isolators.cpu_millis, 1500);
	assert_int_equal(o->isolators.pids_max, 100);
	assert_int_equal(s.sysctls.n, 1);
	assert_string_equal(s.hostname, "box");
	assert_string_equal(s.netns, "/run/netns/x");
	assert_int_equal(o->volumes.n, 1);
	assert_string_equal(o->mounts.v[0].path, "/run");
	assert_false(s.terminal || s.is_sandbox);
	assert_null(s.sandbox_id);
}

/* The control group, as the stage1 is to make it; NULL: refused. */
static void check_cgroup(const char *path, const char *want)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	cleanup_free char *text = NULL;
	assert_true(asprintf(&text,
			     "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{"
			     "\"type\":\"network\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}],"
			     "\"cgroupsPath\":\"%s\"}}",
			     path) > 0);
	int r = parse(text, &s, &e);
	assert_int_equal(r, want ? 0 : -EBADMSG);
	assert_string_equal(want ? s.cgroup : e.text,
			    want ? want
				 : "config.json: \"linux.cgroupsPath\" is not a path of up to 511 "
				   "bytes");
}

static void test_cgroup(void **state)
{
	char path[OCI_SPEC_CGROUP_MAX + 2], own[sizeof(path) + 1] = "+";
	(void)state;
	check_cgroup("", "");
	check_cgroup("/default/c", "+/default/c");
	check_cgroup("/a:b:c/d", "+/a:b:c/d");
	check_cgroup("pods/c", "+/pods/c");
	check_cgroup("a:b", "+/a:b");
	check_cgroup("kubepods-pod1.slice:cri-containerd:4f",
		     "+kubepods-pod1.slice/cri-containerd-4f.scope");
	check_cgroup("a.slice::c:d", "+a.slice/c:d.scope");
	check_cgroup(":p:c", "+system.slice/p-c.scope");
	memset(path, 'a', sizeof(path));
	path[0] = '/';
	path[OCI_SPEC_CGROUP_MAX + 1] = '\0';
	check_cgroup(path, NULL);
	path[OCI_SPEC_CGROUP_MAX] = '\0';
	check_cgroup(path, strcat(own, path));
	memcpy(path, "a.slice:b:", 10); /* the name of the scope is longer */
	check_cgroup(path, NULL);
}

/* What is not said is what a runtime does then: root, no capabilities, no network. */
static void test_least(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(SIMPLE, &s, &e), 0);
	assert_string_equal(s.app.user, "0");
	assert_string_equal(s.app.group, "0");
	assert_true(isolators_has(&s.app.isolators, ISOLATOR_CAPS_RETAIN));
	assert_int_equal(s.app.isolators.caps.n, 0);
	assert_false(s.app.isolators.no_new_privs || s.app.read_only_root);
	assert_null(s.netns);
}

static const char sandbox[] =
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\","
	"\"io.kubernetes.cri.sandbox-id\":\"p\"},\"process\":{\"args\":[\"/pause\"],"
	"\"oomScoreAdj\":-998},\"hostname\":\"box\",\"mounts\":[{\"destination\":\"/dev/shm\","
	"\"type\":\"bind\",\"source\":\"/s\",\"options\":[\"rshared\"]}],\"linux\":{\"namespaces\":["
	"{\"type\":\"network\",\"path\":\"/run/netns/x\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}],"
	"\"seccomp\":{\"defaultAction\":"
	"\"SCMP_ACT_ALLOW\"},\"devices\":[{}],\"resources\":{\"cpu\":{\"shares\":2}},\"sysctl\":"
	"{\"kernel.msgmax\":\"8192\"}}}";
static const char member[] =
	"{\"annotations\":{\"io.kubernetes.cri.container-type\":\"container\","
	"\"io.kubernetes.cri.container-name\":\"web\",\"io.kubernetes.cri.sandbox-id\":\"p\"},"
	"\"process\":{\"args\":[\"true\"],\"terminal\":true,\"consoleSize\":{\"height\":25,"
	"\"width\":80}}," NETNS "}";

#define SHM(options)                                                                        \
	"{\"destination\":\"/dev/shm\",\"type\":\"tmpfs\",\"source\":\"shm\",\"options\":[" \
	"\"nosuid\",\"noexec\",\"nodev\",\"mode=1777\"" options "]}"
#define ALONE(mounts)                                                                            \
	"{\"process\":{\"args\":[\"true\"]},\"mounts\":[" mounts "],\"linux\":{\"namespaces\":[" \
	"{\"type\":\"network\"},{\"type\":\"pid\"},{\"type\":\"ipc\"}]}}"

/* A container by itself has as much as it is given. */
static void test_shared_memory(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec a, b;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(ALONE(SHM("")), &a, &e), 0);
	assert_int_equal(a.app.volumes.n, 0);
	assert_int_equal(parse(ALONE(SHM(",\"size=65536k\"")), &b, &e), 0);
	assert_int_equal(b.app.volumes.n, 1);
	assert_int_equal(b.app.volumes.v[0].kind, VOLUME_MEMORY);
	assert_int_equal(b.app.volumes.v[0].size, 64 << 20);
	assert_string_equal(b.app.mounts.v[0].path, "/dev/shm");
	assert_true(b.app.mounts.v[0].no_exec && b.app.mounts.v[0].no_suid);
	refuse(ALONE(SHM(",\"size=0\"")), -EINVAL, "the mount at \"/dev/shm\": option \"size=0\"");
}

/* What is in a sandbox's image, and how it would run, says nothing about the pod. */
static void test_pods(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec a, b;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(sandbox, &a, &e), 0);
	assert_true(a.is_sandbox);
	assert_null(a.sandbox_id);
	assert_int_equal(a.app.args.n, 0);
	assert_int_equal(a.app.volumes.n, 0);
	assert_false(isolators_has(&a.app.isolators, ISOLATOR_CPU_SHARES));
	assert_string_equal(a.hostname, "box");
	assert_string_equal(a.netns, "/run/netns/x");
	assert_int_equal(a.oom_score_adj, -998);
	assert_int_equal(a.sysctls.n, 1);
	assert_int_equal(parse(member, &b, &e), 0);
	assert_false(b.is_sandbox);
	assert_string_equal(b.sandbox_id, "p");
	assert_string_equal(b.container_name, "web");
	assert_true(b.terminal);
	assert_int_equal(b.rows, 25);
	assert_int_equal(b.columns, 80);
	refuse("{\"annotations\":{\"io.kubernetes.cri.container-type\":\"sandbox\"}}", -EOPNOTSUPP,
	       "host's network");
}

/* Its sandbox's processes are those of all containers that join them. */
static void test_shared_processes(void **state)
{
	static const char text[] =
		"{\"annotations\":{\"io.kubernetes.cri.sandbox-id\":\"p\"},\"process\":{\"args\":"
		"[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"network\",\"path\":\"/n\"},"
		"{\"type\":\"ipc\",\"path\":\"/i\"},{\"type\":\"uts\",\"path\":\"/u\"},{\"type\":\"pid\""
		"%s}]}}";
	(void)state;
	for (int i = 0; i < 2; i++) {
		CLEANUP(oci_spec_deinit) struct oci_spec s;
		struct err e = ERR_INIT;
		char whole[512];
		snprintf(whole, sizeof(whole), text, i ? ",\"path\":\"/p\"" : "");
		assert_int_equal(parse(whole, &s, &e), 0);
		assert_string_equal(s.netns, "/n");
		assert_int_equal(s.app.isolators.shared_processes, i);
	}
}

#define WITH_PROCESS(members) "{\"process\":{\"args\":[\"true\"]," members "}," NETNS "}"
#define WITH_LINUX(members)   "{\"process\":{\"args\":[\"true\"]},\"linux\":{" OWN_NS "," members "}}"

static void test_wrong(void **state)
{
	static const char *const cases[][2] = {
		{ "", "not valid JSON" },
		{ "{", "not valid JSON" },
		{ "[]", "not a JSON object" },
		{ "{}", "\"process\" is not an object" },
		{ "{\"process\":{}," NETNS "}", "\"process.args\"" },
		{ "{\"process\":{\"args\":[]}," NETNS "}", "\"process.args\"" },
		{ "{\"process\":{\"args\":[\"\"]}," NETNS "}", "\"process.args\"" },
		{ "{\"process\":{\"args\":[\"a\\u0000b\"]}," NETNS "}", "\"process.args\"" },
		{ WITH_PROCESS("\"env\":{}"), "\"process.env\"" },
		{ WITH_PROCESS("\"cwd\":7"), "\"process.cwd\"" },
		{ WITH_PROCESS("\"user\":7"), "\"process.user\"" },
		{ WITH_PROCESS("\"user\":{\"uid\":-1}"), "\"process.user.uid\"" },
		{ WITH_PROCESS("\"user\":{\"gid\":4294967295}"), "\"process.user.gid\"" },
		{ WITH_PROCESS("\"user\":{\"additionalGids\":7}"), "additionalGids" },
		{ WITH_PROCESS("\"user\":{\"additionalGids\":[\"x\"]}"), "additionalGids" },
		{ WITH_PROCESS("\"user\":{\"umask\":512}"), "\"process.user.umask\"" },
		{ WITH_PROCESS("\"rlimits\":7"), "\"process.rlimits\"" },
		{ WITH_PROCESS("\"rlimits\":[{}]"), "\"process.rlimits\"" },
		{ WITH_PROCESS("\"oomScoreAdj\":1001"), "\"process.oomScoreAdj\"" },
		{ WITH_PROCESS("\"terminal\":1"), "\"process.terminal\"" },
		{ WITH_PROCESS("\"consoleSize\":{\"width\":-1}"), "consoleSize.width" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":7}}",
		  "\"linux.namespaces\"" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{}]}}",
		  "\"linux.namespaces\"" },
		{ WITH_LINUX("\"sysctl\":[]"), "\"linux.sysctl\"" },
		{ WITH_LINUX("\"sysctl\":{\"a\":1}"), "\"linux.sysctl\"" },
		{ WITH_LINUX("\"resources\":{\"cpu\":{\"period\":-1}}"), "cpu.period" },
		{ WITH_LINUX("\"resources\":{\"memory\":{\"limit\":\"1\"}}"), "memory.limit" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuse(cases[i][0], -EBADMSG, cases[i][1]);
	refuse(WITH_PROCESS("\"capabilities\":{\"bounding\":[\"CAP_NO_SUCH,x y\"]}"), -EINVAL,
	       "capabilities.bounding");
}

/* What a pod of husk cannot do is not passed over. */
static void test_refused(void **state)
{
	static const char *const cases[][2] = {
		{ "{\"process\":{\"args\":[\"true\"]}}", "host's network" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"pid\"}]}}",
		  "host's network" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"network\"},"
		  "{\"type\":\"ipc\"}]}}",
		  "the host's processes are not to be had in a pod (give the container a "
		  "pid namespace)" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"network\"},"
		  "{\"type\":\"pid\"}]}}",
		  "host's shared memory" },
		{ "{\"process\":{\"args\":[\"true\"]},\"linux\":{\"namespaces\":[{\"type\":\"network\"},"
		  "{\"type\":\"pid\",\"path\":\"/proc/1/ns/pid\"},{\"type\":\"ipc\"}]}}",
		  "only a network namespace can be joined, not \"pid\"" },
		{ "{\"process\":{\"args\":[\"true\"]},\"hooks\":{\"prestart\":[]}," NETNS "}",
		  "\"hooks\"" },
		{ WITH_LINUX("\"resources\":{\"memory\":{\"disableOOMKiller\":true}}"),
		  "\"linux.resources.memory.disableOOMKiller\"" },
		{ WITH_LINUX("\"resources\":{\"cpu\":{\"cpus\":\"0-1\"}}"),
		  "\"linux.resources.cpu.cpus\"" },
		{ WITH_LINUX("\"resources\":{\"cpu\":{\"realtimeRuntime\":950000}}"),
		  "\"linux.resources.cpu.realtimeRuntime\"" },
		{ WITH_PROCESS("\"scheduler\":{\"policy\":\"SCHED_FIFO\"}"),
		  "\"process.scheduler\"" },
		{ WITH_LINUX("\"resources\":{\"hugepageLimits\":[{\"limit\":1}]}"),
		  "\"linux.resources.hugepageLimits\"" },
		{ WITH_LINUX("\"resources\":{\"hugepageLimits\":[{\"limit\":0},{}]}"),
		  "\"linux.resources.hugepageLimits\"" },
		{ WITH_LINUX("\"resources\":{\"hugepageLimits\":{}}"),
		  "\"linux.resources.hugepageLimits\"" },
		{ WITH_LINUX("\"resources\":{\"unified\":{\"memory.oom.group\":\"0\"}}"),
		  "\"linux.resources.unified\": \"memory.oom.group\"" },
		{ WITH_LINUX("\"resources\":{\"unified\":{\"memory.oom.group\":1}}"),
		  "\"linux.resources.unified\": \"memory.oom.group\"" },
		{ WITH_LINUX("\"resources\":{\"unified\":{\"memory.min\":\"1\"}}"),
		  "\"linux.resources.unified\": \"memory.min\"" },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuse(cases[i][0], -EOPNOTSUPP, cases[i][1]);
	/* Empty ones say nothing. */
	struct oci_spec s;
	struct err e = ERR_INIT;
	assert_int_equal(parse(WITH_LINUX("\"devices\":[],\"intelRdt\":{}"), &s, &e), 0);
	oci_spec_deinit(&s);
	assert_int_equal(parse(WITH_LINUX("\"resources\":{\"memory\":{\"kernel\":-1,"
					  "\"disableOOMKiller\":false},\"cpu\":{\"cpus\":\"\","
					  "\"realtimePeriod\":0}}"),
			       &s, &e),
			 0);
	oci_spec_deinit(&s);
	/* As a kubelet asks of every container. */
	assert_int_equal(parse(WITH_LINUX("\"resources\":{\"unified\":{\"memory.oom.group\":\"1\","
					  "\"memory.swap.max\":\"0\"},"
					  "\"hugepageLimits\":[{\"pageSize\":\"2MB\",\"limit\":0},"
					  "{\"pageSize\":\"1GB\",\"limit\":0}]}"),
			       &s, &e),
			 0);
	assert_true(s.app.makes_working_dir);
	oci_spec_deinit(&s);
	refuse(WITH_LINUX("\"resources\":{\"unified\":[]}"), -EBADMSG,
	       "\"linux.resources.unified\" is not an object");
}

/* Limits are named; -1 and 0 are none; the least quota that there is. */
static void test_resources(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec none, least;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse(WITH_LINUX("\"resources\":{\"memory\":{\"limit\":-1},\"cpu\":"
					  "{\"shares\":0,\"quota\":-1},\"pids\":{\"limit\":0}}"),
			       &none, &e),
			 0);
	assert_false(isolators_has(&none.app.isolators, ISOLATOR_MEMORY) ||
		     isolators_has(&none.app.isolators, ISOLATOR_CPU) ||
		     isolators_has(&none.app.isolators, ISOLATOR_CPU_SHARES) ||
		     isolators_has(&none.app.isolators, ISOLATOR_PIDS));
	assert_int_equal(parse(WITH_LINUX("\"resources\":{\"cpu\":{\"quota\":1000}}"), &least, &e),
			 0);
	assert_int_equal(least.app.isolators.cpu_millis, 10);
}

static void test_limits(void **state)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	/* The longest text, and one byte more. */
	cleanup_free char *text = malloc(OCI_SPEC_SIZE_MAX + 2);
	assert_non_null(text);
	memset(text, ' ', OCI_SPEC_SIZE_MAX + 1);
	text[OCI_SPEC_SIZE_MAX + 1] = '\0';
	memcpy(text, SIMPLE, strlen(SIMPLE));
	refuse(text, -E2BIG, "config.json: larger than 4 MiB");
	text[OCI_SPEC_SIZE_MAX] = '\0';
	assert_int_equal(parse(text, &s, &e), 0);
	oci_spec_deinit(&s);
}

static int parse_all(void *ctx)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	(void)ctx;
	int r = parse(of_ctr, &s, NULL);
	bool whole = s.app.args.n == 3 && s.app.env.n == 2 && s.app.groups.n == 2 &&
		     s.app.isolators.caps.n == 2 && s.sysctls.n == 1;
	return r == 0 && !whole ? 1 : r;
}

static int parse_in(const char *container, const char *text, struct oci_spec *ret, struct err *e)
{
	CLEANUP(oci_spec_deinit) struct oci_spec in;
	assert_int_equal(parse(container, &in, e), 0);
	oci_spec_init(ret);
	return oci_process_parse(text, strlen(text), &in, ret, e);
}

/* What `ctr task exec` writes: the container's process with other words. */
static void test_process(void **state)
{
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	int r = parse_in(
		of_ctr,
		"{\"terminal\":true,\"consoleSize\":{\"height\":24,\"width\":80},\"user\":{"
		"\"uid\":7,\"gid\":8},\"args\":[\"ls\"],\"env\":[\"B=1\"],\"cwd\":\"/x\","
		"\"capabilities\":{\"bounding\":[\"CAP_KILL\",\"CAP_CHOWN\"]},\"rlimits\":[{"
		"\"type\":\"RLIMIT_NOFILE\",\"hard\":1024,\"soft\":512}],"
		"\"noNewPrivileges\":true}",
		&s, &e);
	if (r < 0)
		fail_msg("%s", e.text);
	assert_true(s.terminal);
	assert_int_equal(s.rows, 24);
	assert_int_equal(s.columns, 80);
	assert_string_equal(s.app.args.v[0], "ls");
	assert_string_equal(s.app.user, "7");
	assert_string_equal(s.app.group, "8");
	assert_int_equal(s.app.groups.n, 0);
	assert_string_equal(s.app.env.v[0], "B=1");
	assert_string_equal(s.app.working_dir, "/x");
}

/* The usual umask is that of a container that has said nothing. */
static void test_usual_umask(void **state)
{
	static const char text[] = "{\"args\":[\"a\"],\"user\":{\"umask\":18}}";
	CLEANUP(oci_spec_deinit) struct oci_spec s;
	struct err e = ERR_INIT;
	(void)state;
	assert_int_equal(parse_in(SIMPLE, text, &s, &e), 0);
}

static void test_process_refused(void **state)
{
	static const char two[] = "\"capabilities\":{\"bounding\":[\"CAP_CHOWN\",\"CAP_KILL\"]},";
	static const struct {
		const char *text;
		int code;
		const char *want;
	} cases[] = {
		{ "{", -EBADMSG, "process: it is not valid JSON" },
		{ "[]", -EBADMSG, "process: it is not a JSON object" },
		{ "{}", -EBADMSG, "\"process.args\" is not" },
		{ "{\"args\":[\"a\"],\"scheduler\":{\"a\":1}}", -EOPNOTSUPP, "process.scheduler" },
		{ "{\"args\":[\"a\"]}", -EOPNOTSUPP, "\"process.capabilities\" is not that" },
		{ "{\"args\":[\"a\"],\"capabilities\":{\"bounding\":[\"CAP_CHOWN\"]}}", -EOPNOTSUPP,
		  "\"process.capabilities\" is not that of the container" },
		{ "{%s\"args\":[\"a\"],\"rlimits\":[{\"type\":\"RLIMIT_NOFILE\",\"hard\":9,\"soft\":9}]}",
		  -EOPNOTSUPP, "\"process.rlimits\" is not that" },
		{ "{%s\"args\":[\"a\"]}", -EOPNOTSUPP, "\"process.noNewPrivileges\" is not that" },
		{ "{%s\"args\":[\"a\"],\"noNewPrivileges\":true,\"oomScoreAdj\":5}", -EOPNOTSUPP,
		  "\"process.oomScoreAdj\" is not that" },
		{ "{%s\"args\":[\"a\"],\"noNewPrivileges\":true,\"user\":{\"umask\":18}}",
		  -EOPNOTSUPP, "\"process.user.umask\" is not that" },
		{ "{%s\"args\":[\"a\"],\"noNewPrivileges\":true}", 0, "" },
		{ "{%s\"args\":[\"a\"],\"noNewPrivileges\":true,\"user\":{\"umask\":23}}", 0, "" },
		{ "{%s\"args\":[\"a\"],\"noNewPrivileges\":true,\"oomScoreAdj\":-5}", 0, "" },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct oci_spec s;
		struct err e = ERR_INIT;
		cleanup_buf struct buf text;
		const char *in = strstr(cases[i].text, "%s");
		buf_init(&text, 4096);
		size_t front = in ? (size_t)(in - cases[i].text) : strlen(cases[i].text);
		assert_int_equal(buf_append(&text, cases[i].text, front), 0);
		if (in)
			assert_int_equal(buf_printf(&text, "%s%s", two, in + 2), 0);
		assert_int_equal(buf_append(&text, "", 1), 0);
		int r = parse_in(of_ctr, buf_data(&text), &s, &e);
		if (r != cases[i].code || !strstr(e.text, cases[i].want))
			fail_msg("%s: %d \"%s\"", buf_data(&text), r, e.text);
		oci_spec_deinit(&s);
	}
}

/* What is said is changed, and nothing else; -1 is no limit, and of a quota the period counts. */
static void test_other_limits(void **state)
{
	static const struct {
		const char *text;
		int code;
		unsigned changed;
		int64_t memory, millis, shares, pids, period;
	} cases[] = {
		{ "{}", 0, 0, 0, 0, 0, 0, 50000 },
		{ "{\"memory\":{\"limit\":1048576}}", 0, 1U << ISOLATOR_MEMORY, 1048576, 0, 0, 0,
		  50000 },
		{ "{\"memory\":{\"limit\":-1}}", 0, 1U << ISOLATOR_MEMORY, 0, 0, 0, 0, 50000 },
		{ "{\"memory\":{\"limit\":0}}", 0, 0, 0, 0, 0, 0, 50000 },
		{ "{\"cpu\":{\"quota\":20000}}", 0, 1U << ISOLATOR_CPU, 0, 400, 0, 0, 50000 },
		{ "{\"cpu\":{\"quota\":20000,\"period\":0}}", 0, 1U << ISOLATOR_CPU, 0, 400, 0, 0,
		  50000 },
		{ "{\"cpu\":{\"quota\":20000,\"period\":100000}}", 0, 1U << ISOLATOR_CPU, 0, 200, 0,
		  0, 100000 },
		{ "{\"cpu\":{\"quota\":-1,\"period\":100000}}", 0, 1U << ISOLATOR_CPU, 0, 0, 0, 0,
		  100000 },
		{ "{\"cpu\":{\"period\":50000}}", 0, 0, 0, 0, 0, 0, 50000 },
		{ "{\"cpu\":{\"period\":100000}}", -EOPNOTSUPP, 0, 0, 0, 0, 0, 50000 },
		{ "{\"cpu\":{\"shares\":512},\"pids\":{\"limit\":7}}", 0,
		  1U << ISOLATOR_CPU_SHARES | 1U << ISOLATOR_PIDS, 0, 0, 512, 7, 50000 },
		{ "{\"unified\":{\"memory.high\":\"1\"}}", -EOPNOTSUPP, 0, 0, 0, 0, 0, 50000 },
		{ "{\"unified\":{\"memory.oom.group\":\"1\",\"memory.swap.max\":\"max\"},"
		  "\"hugepageLimits\":[{\"limit\":0}]}",
		  0, 0, 0, 0, 0, 0, 50000 },
		{ "{\"memory\":{\"limit\":\"1\"}}", -EBADMSG, 0, 0, 0, 0, 0, 50000 },
		{ "[]", -EBADMSG, 0, 0, 0, 0, 0, 50000 },
		{ "", -EBADMSG, 0, 0, 0, 0, 0, 50000 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(isolators_deinit) struct isolators limits;
		struct err e = ERR_INIT;
		unsigned changed = 0;
		int64_t period = 50000;
		isolators_init(&limits);
		int r = oci_resources_parse(cases[i].text, strlen(cases[i].text), &period, &limits,
					    &changed, &e);
		if (r != cases[i].code)
			fail_msg("%s: %d \"%s\"", cases[i].text, r, e.text);
		assert_int_equal(changed, cases[i].changed);
		assert_int_equal(period, cases[i].period);
		if (r < 0)
			continue;
		assert_int_equal(limits.memory, cases[i].memory);
		assert_int_equal(limits.cpu_millis, cases[i].millis);
		assert_int_equal(limits.cpu_shares, cases[i].shares);
		assert_int_equal(limits.pids_max, cases[i].pids);
	}
}

static void test_allocations(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(parse_all, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_container),     fixture_test(test_cgroup),
		fixture_test(test_least),         fixture_test(test_pods),
		fixture_test(test_shared_memory), fixture_test(test_wrong),
		fixture_test(test_refused),       fixture_test(test_resources),
		fixture_test(test_limits),        fixture_test(test_allocations),
		fixture_test(test_process),       fixture_test(test_process_refused),
		fixture_test(test_other_limits),  fixture_test(test_shared_processes),
		fixture_test(test_usual_umask),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
