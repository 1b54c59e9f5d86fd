/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/abi.h"

#include <errno.h>
#include <string.h>

#include "lib/wire/stage1.h"

#define OPTION_USERS "userns" /* of those stage1s whose pods could also have the host's users */

static bool is_ours(const struct stage1 *s)
{
	return s->abi == STAGE1_ABI_HUSK;
}

/* True if @s speaks our interface, or rkt's of at least that version. */
static bool knows(const struct stage1 *s, int64_t rkt_version)
{
	return is_ours(s) || s->version >= rkt_version;
}

static bool has_users(const struct stage1 *s)
{
	return stage1_find_option(s, OPTION_USERS, strlen(OPTION_USERS)) != NULL;
}

static int add_if(struct strv *args, bool wanted, const char *arg)
{
	return wanted ? strv_add(args, arg) : 0;
}

/* What is said of the network, and cannot be passed on, would be something else. */
static int check_network(const struct stage1 *s, const struct abi_run *q, struct err *e)
{
	const char *flag = NULL;
	if (is_ours(s)) {
		flag = q->network ? network_flag(q->network) : NULL;
		flag = !flag && q->has_ports ? "port" : flag;
		if (flag && !s->has_network)
			return err_set(e, -EOPNOTSUPP,
				       "stage1 \"%s\" does not support networks (leave --%s away)",
				       s->dir, flag);
		return 0;
	}
	flag = q->network ? network_flag_beyond_rkt(q->network) : NULL;
	return flag ? err_set(e, -EOPNOTSUPP, "--%s option is not supported by stage1", flag) : 0;
}

int abi_check_run(const struct stage1 *s, const struct abi_run *q, struct err *e)
{
	if (q->is_mutable && !(stage1_is_mutable(s) && knows(s, STAGE1_RKT_HAS_MUTABLE)))
		return err_set(e, -EOPNOTSUPP, "stage1 does not support mutable pods");
	if (q->detach && !is_ours(s))
		return err_set(
			e, -EOPNOTSUPP,
			"stage1 \"%s\" speaks rkt's interface, which does not tell when a pod "
			"is up (leave --detach away)",
			s->dir);
	if (q->has_blocks && !is_ours(s))
		return err_set(
			e, -EOPNOTSUPP,
			"stage1 \"%s\" speaks rkt's interface, which has no volumes of kind=block",
			s->dir);
	if (q->has_sysctls && !is_ours(s))
		return err_set(e, -EOPNOTSUPP,
			       "stage1 \"%s\" speaks rkt's interface, which sets no sysctls",
			       s->dir);
	if (q->private_users && !is_ours(s))
		return err_set(e, -EOPNOTSUPP, "--private-users option is not supported by stage1");
	return check_network(s, q, e);
}

int abi_lacking(const struct stage1 *s, const struct abi_run *q, struct strv *names)
{
	bool insecure = knows(s, STAGE1_RKT_HAS_INSECURE);
	int r = add_if(names, q->hostname && !knows(s, STAGE1_RKT_HAS_HOSTNAME), "--hostname");
	if (r == 0 && q->network && !knows(s, STAGE1_RKT_HAS_DNS))
		r = add_if(names, network_has_rkt_dns(q->network), "--dns-conf-mode");
	if (r == 0 && !insecure && (q->all_capabilities || q->open_paths || q->no_seccomp))
		r = strv_add(names, "--insecure-options");
	return r;
}

/* Names of the options, and their order, are the same in both interfaces. */
static int add_insecure(const struct abi_run *q, struct strv *args)
{
	int r = add_if(args, q->all_capabilities, "--disable-capabilities-restriction");
	if (r == 0)
		r = add_if(args, q->open_paths, "--disable-paths");
	return r == 0 ? add_if(args, q->no_seccomp, "--disable-seccomp") : r;
}

static int run_rkt(const struct stage1 *s, const struct abi_run *q, struct strv *args)
{
	static const struct network_wishes nothing;
	const struct network_wishes *network = q->network ? q->network : &nothing;
	int r = add_if(args, q->debug, "--debug");
	if (r == 0)
		r = network_add_rkt_net(network, args);
	if (r == 0)
		r = add_if(args, q->interactive, "--interactive");
	if (r == 0 && q->hostname && knows(s, STAGE1_RKT_HAS_HOSTNAME))
		r = strv_addf(args, "--hostname=%s", q->hostname);
	if (r == 0 && knows(s, STAGE1_RKT_HAS_DNS))
		r = network_add_rkt_dns(network, args);
	if (r == 0 && knows(s, STAGE1_RKT_HAS_INSECURE))
		r = add_insecure(q, args);
	if (r == 0)
		r = add_if(args, q->is_mutable, "--mutable");
	return r == 0 ? strv_add(args, q->uuid) : r;
}

/* What the supervisor of ours wants to know of the host, and of the time. */
static int add_husk_options(const struct stage1 *s, const struct abi_run *q, struct strv *args)
{
	int r = strv_addf(args, "--cache-dir=%s", q->cache_dir);
	if (r == 0)
		r = strv_extend(args, q->options);
	if (r == 0) /* whatever these say, and the configuration */
		r = add_if(args, q->private_users && has_users(s), "--" OPTION_USERS "=private");
	if (r == 0)
		r = strv_addf(args, "--start-ns=%lld", (long long)q->start_ns);
	return r;
}

int abi_run_args(const struct stage1 *s, const struct abi_run *q, struct strv *args)
{
	if (!is_ours(s))
		return run_rkt(s, q, args);
	int r = add_if(args, q->debug, "--debug");
	if (r == 0)
		r = add_if(args, q->interactive, "--interactive");
	if (r == 0)
		r = add_if(args, q->detach, "--detach");
	if (r == 0)
		r = add_insecure(q, args);
	if (r == 0 && q->hostname)
		r = strv_addf(args, "--hostname=%s", q->hostname);
	if (r == 0 && s->has_network && q->network)
		r = network_add_args(q->network, args);
	if (r == 0)
		r = add_husk_options(s, q, args);
	return r == 0 ? strv_add(args, q->uuid) : r;
}

int abi_stop_args(const struct stage1 *s, const char *uuid, bool debug, bool force,
		  struct strv *args)
{
	int r = add_if(args, debug && is_ours(s), "--debug");
	if (r == 0)
		r = add_if(args, force, "--force");
	return r == 0 ? strv_add(args, uuid) : r;
}

int abi_gc_args(const char *uuid, bool stays, bool debug, struct strv *args)
{
	int r = add_if(args, debug, "--debug");
	if (r == 0)
		r = add_if(args, stays, "--pod-stays");
	return r == 0 ? strv_add(args, uuid) : r;
}

int abi_app_args(const struct stage1 *s, const struct abi_app *q, struct strv *args)
{
	int r = strv_add(args, "--debug=false");
	if (r == 0 && (is_ours(s) || q->adds))
		r = strv_addf(args, "--uuid=%s", q->uuid);
	if (r == 0 && is_ours(s) && q->grace_s >= 0)
		r = strv_addf(args, "--grace=%lld", (long long)q->grace_s);
	if (r == 0 && q->signal > 0)
		r = strv_addf(args, "--signal=%d", q->signal);
	if (r == 0)
		r = add_if(args, q->all, "--all=true");
	return r == 0 ? strv_addf(args, "--app=%s", q->name) : r;
}

int abi_attach_args(const struct abi_attach *q, struct strv *args)
{
	static const char *const ends[ABI_END_COUNT_] = {
		[ABI_END_STDIN] = "--stdin=true",     [ABI_END_STDOUT] = "--stdout=true",
		[ABI_END_STDERR] = "--stderr=true",   [ABI_END_TTY_IN] = "--tty-in=true",
		[ABI_END_TTY_OUT] = "--tty-out=true",
	};
	int r = strv_addf(args, "--action=%s",
			  q->list   ? "list"
			  : q->ends ? "custom-attach"
				    : "auto-attach");
	for (int end = 0; r == 0 && end < ABI_END_COUNT_; end++)
		r = add_if(args, q->ends & 1U << end, ends[end]);
	if (r == 0)
		r = strv_addf(args, "--app=%s", q->app);
	if (r == 0)
		r = add_if(args, q->keep_stdin, "--keep-stdin=true");
	if (r == 0 && q->detach_keys)
		r = strv_addf(args, "--detach-keys=%s", q->detach_keys);
	return r == 0 && q->control_fd ? strv_addf(args, "--control=%d", q->control_fd) : r;
}

int abi_stats_args(const struct abi_stats *q, struct strv *args)
{
	int r = strv_add(args, q->debug ? "--debug=true" : "--debug=false");
	if (r == 0)
		r = strv_addf(args, "--uuid=%s", q->uuid);
	if (r == 0 && q->host)
		r = strv_add(args, "--host");
	return r == 0 && q->app ? strv_addf(args, "--app=%s", q->app) : r;
}

int abi_update_args(const char *uuid, unsigned changed, const struct isolators *l,
		    struct strv *args)
{
	const struct {
		enum isolator which;
		const char *option;
		int64_t value; /* 0: there is to be no limit */
	} limits[] = {
		{ ISOLATOR_MEMORY, "memory", l->memory },
		{ ISOLATOR_CPU, "cpu-millis", l->cpu_millis },
		{ ISOLATOR_CPU_SHARES, "cpu-shares", l->cpu_shares },
		{ ISOLATOR_PIDS, "pids-limit", l->pids_max },
	};
	int r = strv_add(args, "--debug=false");
	if (r == 0)
		r = strv_addf(args, "--uuid=%s", uuid);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(limits); i++)
		if (changed & 1U << limits[i].which)
			r = strv_addf(args, "--%s=%lld", limits[i].option,
				      (long long)limits[i].value);
	return r;
}

/* How the command is to run; rkt's interface has it run as the app's first process always. */
static int add_enter_options(const struct abi_enter *q, struct strv *args)
{
	int r = q->user ? strv_addf(args, "--user=%s", q->user) : 0;
	if (r == 0 && q->workdir)
		r = strv_addf(args, "--workdir=%s", q->workdir);
	for (size_t i = 0; r == 0 && i < q->env->n; i++)
		r = strv_addf(args, "--env=%s", q->env->v[i]);
	if (r == 0 && q->tty)
		r = strv_addf(args, "--tty=%s", q->tty);
	if (r == 0 && q->timeout_ms > 0)
		r = strv_addf(args, "--timeout-ms=%lld", (long long)q->timeout_ms);
	for (size_t i = 0; r == 0 && q->groups && i < q->groups->n; i++)
		r = strv_addf(args, "--group=%s", q->groups->v[i]);
	if (r == 0 && q->clear_env)
		r = strv_add(args, "--clear-env=true");
	return r == 0 && q->control_fd ? strv_addf(args, "--control=%d", q->control_fd) : r;
}

static int check_enter(const struct stage1 *s, const struct abi_enter *q, struct err *e)
{
	const struct {
		bool given;
		const char *name;
	} options[] = {
		{ q->user, "user" },
		{ q->workdir, "workdir" },
		{ q->env->n > 0, "env" },
		{ q->tty, q->tty && *q->tty == 'f' ? "no-tty" : "tty" },
		{ q->timeout_ms > 0, "timeout" },
		{ q->groups && q->groups->n > 0, "group" },
		{ q->clear_env, "clear-env" },
		{ q->control_fd > 0, "control" },
	};
	if (is_ours(s))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (options[i].given)
			return err_set(e, -EOPNOTSUPP, "--%s option is not supported by stage1",
				       options[i].name);
	return q->pid > 0 ? 0
			  : err_set(e, -EAGAIN,
				    "its stage1 has not said which process it is "
				    "(wait until it runs)");
}

int abi_enter_args(const struct stage1 *s, const struct abi_enter *q, struct strv *args,
		   struct err *e)
{
	int r = check_enter(s, q, e);
	if (r < 0)
		return r;
	r = add_if(args, q->debug && is_ours(s), "--debug");
	if (r == 0 && q->pid > 0)
		r = strv_addf(args, "--pid=%d", (int)q->pid);
	if (r == 0)
		r = strv_addf(args, "--appname=%s", q->app);
	if (r == 0 && is_ours(s))
		r = add_enter_options(q, args);
	if (r == 0)
		r = strv_add(args, "--");
	for (char *const *word = q->command; r == 0 && *word; word++)
		r = strv_add(args, *word);
	return r < 0 ? err_sys(e, r, "command") : 0;
}
