/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order in confine() is forced from both ends. A system call filter can be installed by a
 * process with CAP_SYS_ADMIN or by one that has given up new privileges for good (seccomp(2)); an
 * app may have neither, so the filter comes while the agent's CAP_SYS_ADMIN is still there. But it
 * may also forbid what would come after it: hence everything that can come before it does, and one
 * capset(2) is left, which the host's filters allow, as they allow execve(2), write(2) and
 * exit_group(2).
 *
 *   bounding set      with CAP_SETPCAP
 *   groups, user      PR_SET_KEEPCAPS leaves the capabilities permitted; execve(2) clears it
 *   capset(2)         all that are permitted become effective again
 *   resource limits   after the change of user, so that RLIMIT_NPROC does not make execve(2) fail
 *                     because another app has processes of a user of the same number
 *   filter
 *   capset(2)         what the app gets
 *
 * Inheritable capabilities are none, and so are ambient ones, which cannot be without
 * (capabilities(7)). How many capabilities the kernel knows is asked with prctl(2): /proc is the
 * app's.
 */
#include "guest-agent/app/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "guest-agent/app/idmap.h"
#include "guest-agent/app/ids.h"
#include "lib/base/hex.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"

#define CAP_BIT(c)       (UINT64_C(1) << (c))
#define CAPABILITIES_MAX 64 /* bits of a mask; Linux has 41 capabilities */
#define NOFILE_SOFT      1024

#define INSTRUCTION_DIGITS (2 * sizeof(struct sock_filter))
_Static_assert(AGENT_SECCOMP_MAX / INSTRUCTION_DIGITS == BPF_MAXINSNS, "the longest filter fits");

int confinement_set_groups(struct confinement *c, const struct strv *groups, struct fault *f)
{
	c->n_groups = 0;
	for (size_t i = 0; i < groups->n; i++) {
		uint64_t gid;
		if (num_parse_u64(groups->v[i], IDS_VALUE_MAX, &gid) < 0)
			return fault_set(f, AGENT_E_PARAMS, "groups: \"%s\" is not a number to %u",
					 groups->v[i], IDS_VALUE_MAX);
		c->groups[c->n_groups++] = (gid_t)gid;
	}
	return 0;
}

static int read_rlimits(struct confinement *c, const struct strv *rlimits, struct fault *f)
{
	for (size_t i = 0; i < rlimits->n; i++)
		if (rlimit_parse(rlimits->v[i], &c->rlimits[c->n_rlimits++]) < 0)
			return fault_set(
				f, AGENT_E_PARAMS,
				"rlimits: \"%s\" is not a NAME=SOFT:HARD with SOFT <= HARD",
				rlimits->v[i]);
	return 0;
}

static int read_filter(struct confinement *c, const char *hex, struct fault *f)
{
	size_t len = hex ? strlen(hex) : 0;
	if (len == 0)
		return 0;
	size_t n = len / INSTRUCTION_DIGITS;
	if (len % INSTRUCTION_DIGITS != 0 || n > BPF_MAXINSNS)
		return fault_set(f, AGENT_E_PARAMS,
				 "seccomp: not 1 to %d instructions of %zu digits", BPF_MAXINSNS,
				 INSTRUCTION_DIGITS);
	c->filter = calloc(n, sizeof(*c->filter));
	if (!c->filter)
		return fault_set(f, AGENT_E_INTERNAL, "out of memory");
	c->filter_len = n;
	if (hex_decode(hex, (unsigned char *)c->filter, n * sizeof(*c->filter)) < 0)
		return fault_set(f, AGENT_E_PARAMS,
				 "seccomp: other characters than lower-case hexadecimal digits");
	return 0;
}

int confinement_init(struct confinement *c, const struct agent_confinement *m, struct fault *f)
{
	*c = (struct confinement){
		.capabilities = (uint64_t)m->capabilities,
		.no_new_privs = m->no_new_privs,
		.read_only_root = m->read_only_root,
		.open_paths = m->open_paths,
		.umask = m->umask < 0 ? 022 : (mode_t)m->umask,
		.oom_score_adj = (int)m->oom_score_adj,
		.limits = { .memory_max = m->memory_max,
			    .cpu_millis = m->cpu_millis,
			    .cpu_weight = m->cpu_weight,
			    .pids_max = m->pids_max },
	};
	int r = confinement_set_groups(c, &m->groups, f);
	if (r == 0)
		r = read_rlimits(c, &m->rlimits, f);
	if (r == 0)
		r = read_filter(c, m->seccomp, f);
	if (r != 0)
		confinement_deinit(c);
	return r;
}

void confinement_deinit(struct confinement *c)
{
	free(c->filter);
	c->filter = NULL;
	c->filter_len = 0;
}

static int sys_failed(struct fault *f, const char *what)
{
	return fault_sys(f, AGENT_E_INTERNAL, errno, "cannot %s", what);
}

int confine_badness(const struct confinement *c, struct fault *f)
{
	char text[16];
	if (c->oom_score_adj == 0) /* as the agent's */
		return 0;
	int len = snprintf(text, sizeof(text), "%d", c->oom_score_adj);
	cleanup_fd int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_write_all(fd, text, (size_t)len);
	if (r == -EACCES)
		return fault_set(
			f, AGENT_E_INTERNAL,
			"cannot lower oom_score_adj to %d, which takes CAP_SYS_RESOURCE of "
			"the host (give the app another --oom-score-adj)",
			c->oom_score_adj);
	return r < 0 ? fault_sys(f, AGENT_E_INTERNAL, r, "cannot set oom_score_adj to %d",
				 c->oom_score_adj)
		     : 0;
}

static int drop_bounding(uint64_t keep, struct fault *f)
{
	for (int cap = 0; cap < CAPABILITIES_MAX; cap++)
		if (!(keep & CAP_BIT(cap)) && prctl(PR_CAPBSET_DROP, cap) < 0) {
			if (errno == EINVAL) /* behind the last capability of this kernel */
				break;
			return sys_failed(f, "drop capabilities");
		}
	return 0;
}

/*
 * Afterwards the process is as little dumpable as before, which changes of user are apt to change.
 */
static int change_ids(const struct confinement *c, const struct ids *ids, struct fault *f)
{
	gid_t groups[IDS_GROUPS_MAX + AGENT_GROUPS_MAX];
	int r = idmap_check_groups(c->groups, c->n_groups, f);
	if (r != 0)
		return r;
	memcpy(groups, ids->groups, ids->n_groups * sizeof(groups[0]));
	memcpy(groups + ids->n_groups, c->groups, c->n_groups * sizeof(groups[0]));
	if (prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(ids->n_groups + c->n_groups, groups) < 0 ||
	    setresgid(ids->gid, ids->gid, ids->gid) < 0 ||
	    setresuid(ids->uid, ids->uid, ids->uid) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
		return sys_failed(f, "change user and group");
	return 0;
}

static int set_capabilities(uint64_t caps, struct fault *f)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ .permitted = (uint32_t)caps, .effective = (uint32_t)caps },
		{ .permitted = (uint32_t)(caps >> 32), .effective = (uint32_t)(caps >> 32) },
	};
	return syscall(SYS_capset, &header, data) < 0 ? sys_failed(f, "set capabilities") : 0;
}

/*
 * After a change of user, which leaves no capability effective. *ret becomes those that there are:
 * in a namespace the agent may have less than an app is to have.
 */
static int regain_capabilities(uint64_t *ret, struct fault *f)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];
	if (syscall(SYS_capget, &header, data) < 0)
		return sys_failed(f, "read capabilities");
	*ret = (uint64_t)data[1].permitted << 32 | data[0].permitted;
	return set_capabilities(*ret, f);
}

static int set_rlimits(const struct confinement *c, struct fault *f)
{
	setrlimit(RLIMIT_NOFILE, &(struct rlimit){ NOFILE_SOFT, CONFINE_NOFILE_HARD });
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, RLIM_INFINITY });
	for (size_t i = 0; i < c->n_rlimits; i++) {
		const struct rlimit_spec *l = &c->rlimits[i];
		const struct rlimit limit = { l->soft, l->hard };
		if (setrlimit((unsigned)l->resource, &limit) < 0)
			return fault_sys(f, AGENT_E_INTERNAL, errno,
					 "cannot set resource limit \"%s\"",
					 rlimit_name(l->resource));
	}
	return 0;
}

static int install_filter(const struct confinement *c, struct fault *f)
{
	struct sock_fprog program = { .len = (unsigned short)c->filter_len, .filter = c->filter };
	if (c->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sys_failed(f, "give up new privileges");
	if (c->filter && syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
		return sys_failed(f, "install the system call filter");
	return 0;
}

int confine(const struct confinement *c, const struct ids *ids, struct fault *f)
{
	uint64_t caps = ids->uid == 0 ? c->capabilities : 0, permitted = 0;
	int r = drop_bounding(c->capabilities, f);
	if (r == 0)
		r = change_ids(c, ids, f);
	if (r == 0)
		r = regain_capabilities(&permitted, f);
	if (r == 0)
		r = set_rlimits(c, f);
	if (r == 0)
		r = install_filter(c, f);
	return r == 0 ? set_capabilities(caps & permitted, f) : r;
}
