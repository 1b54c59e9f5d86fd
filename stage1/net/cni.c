/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/os/clock.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "stage1/net/cni/call.h"
#include "stage1/net/cni/state.h"
#include "stage1/net/info.h"

void cni_done_deinit(struct cni_done *done)
{
	if (done)
		net_dns_deinit(&done->dns);
}

static int64_t limit_or(int64_t limit, int64_t standard)
{
	return limit > 0 ? limit : standard;
}

static struct cni_call make_call(const struct cni_runtime *rt, const struct cni_state *s)
{
	return (struct cni_call){ .container = rt->container,
				  .netns = rt->netns,
				  .dirs = &s->dirs,
				  .cancel_fd = rt->cancel_fd };
}

/* Finds the plugins of @a, so that nothing is begun if one is missing. */
static int find_plugins(struct cni_attachment *a, const struct strv *dirs, struct err *e)
{
	char path[NET_INFO_TEXT_MAX + 1];
	int r = 0;
	for (size_t i = 0; r == 0 && i < cni_config_plugins(&a->config); i++) {
		const char *type = cni_config_type(&a->config, i);
		r = cni_plugin_find(type, dirs, path, sizeof(path), e);
		if (r == 0 && (r = strv_add(&a->paths, path)) < 0)
			err_set(e, r, "out of memory");
		if (r < 0)
			err_context(e, "network \"%s\": plugin \"%s\"", a->config.name, type);
	}
	return r;
}

static bool takes_ports(const struct cni_attachment *a)
{
	for (size_t i = 0; i < cni_config_plugins(&a->config); i++) {
		bool capable = false;
		json_get_bool(json_member(cni_config_plugin(&a->config, i), "capabilities"),
			      "portMappings", &capable);
		if (capable)
			return true;
	}
	return false;
}

/*
 * The ports go to the first network that takes them: two that forward the same port of the host
 * would be in each other's way.
 */
static int make_runtime(const struct cni_runtime *rt, struct cni_attachments *list,
			bool *ret_forwarded, struct err *e)
{
	bool forwarded = !rt->ports || rt->ports->n == 0;
	for (size_t i = 0; i < list->n; i++) {
		struct cni_attachment *a = &list->v[i];
		bool here = !forwarded && takes_ports(a);
		int r = cni_request_runtime(here ? rt->ports : NULL, rt->dns, a->args, &a->runtime,
					    e);
		if (r < 0)
			return err_context(e, "network \"%s\"", a->config.name), r;
		forwarded = forwarded || here;
	}
	*ret_forwarded = forwarded;
	return 0;
}

/* Fills the initialised @s with all that is to be done; takes @list. */
static int plan(const struct cni_runtime *rt, struct cni_attachments *list, struct cni_state *s,
		bool *ret_forwarded, struct err *e)
{
	s->attachments = *list;
	list->n = 0;
	int r = str_copy(s->container.text, sizeof(s->container.text), rt->container);
	if (r == 0)
		r = str_copy(s->netns, sizeof(s->netns), rt->netns);
	if (r == 0)
		r = strv_extend(&s->dirs, rt->dirs);
	if (r < 0)
		return err_sys(e, r, "cannot plan the networks");
	r = make_runtime(rt, &s->attachments, ret_forwarded, e);
	for (size_t i = 0; r == 0 && i < s->attachments.n; i++)
		r = find_plugins(&s->attachments.v[i], rt->dirs, e);
	return r;
}

static int describe(const struct cni_attachment *a, const struct cni_result *res,
		    struct net_info *info)
{
	*info = (struct net_info){ .n_ips = res->n_ips };
	memcpy(info->ips, res->ips, sizeof(info->ips));
	memcpy(info->mac, res->mac, sizeof(info->mac));
	memcpy(info->if_name, a->if_name, sizeof(info->if_name));
	info_choose_ip(info);
	int r = str_copy(info->net_name, sizeof(info->net_name), a->config.name);
	if (r == 0)
		r = str_copy(info->net_conf, sizeof(info->net_conf), a->config.path);
	if (r == 0)
		r = str_copy(info->args, sizeof(info->args), a->args);
	return r < 0 ? r : str_copy(info->plugin_path, sizeof(info->plugin_path), a->paths.v[0]);
}

/* Notes in @done what came of @a. */
static int take_result(const struct cni_attachment *a, const struct cni_result *res,
		       struct cni_done *done)
{
	size_t i = done->nets.n;
	int r = describe(a, res, &done->nets.nets[i]);
	if (r == 0 && net_dns_is_empty(&done->dns))
		r = net_dns_copy(&done->dns, &res->dns);
	done->with_dhcp |= cni_config_has_dhcp(&a->config);
	done->nets.n++;
	return r;
}

static int add_network(const struct cni_call *call, struct cni_state *s, size_t i, int pod_fd,
		       struct cni_done *done, struct err *e)
{
	struct cni_result res;
	struct cni_attachment *a = &s->attachments.v[i];
	int64_t start = clock_monotonic_ns();
	int r = cni_call_add(call, a, &res, e);
	done->plugins_ns += clock_monotonic_ns() - start;
	if (r < 0)
		return r;
	r = take_result(a, &res, done);
	cni_result_deinit(&res);
	return r < 0 ? err_sys(e, r, "network \"%s\"", a->config.name)
		     : cni_state_save(pod_fd, s, e);
}

/* DEL of all networks, the last first. The first failure with @e. */
static int delete_networks(const struct cni_call *call, const struct cni_state *s, struct err *e)
{
	int first = 0;
	for (size_t n = s->attachments.n; n-- > 0;) {
		struct err why = ERR_INIT;
		int r = cni_call_delete(call, &s->attachments.v[n], &why);
		if (r < 0 && first == 0)
			first = err_set(e, r, "%s", why.text);
		if (r == -ECANCELED)
			break;
	}
	return first;
}

static int remove_files(int pod_fd, struct err *e)
{
	int r = info_remove(pod_fd, e);
	return r < 0 ? r : cni_state_remove(pod_fd, e);
}

/*
 * After a failure: plugins of what was not begun have nothing to undo. A file that stays says more.
 */
static void forget_rest(struct cni_state *s, size_t begun, int pod_fd)
{
	struct err none = ERR_INIT;
	while (s->attachments.n > begun)
		cni_attachment_deinit(&s->attachments.v[--s->attachments.n]);
	if (begun == 0)
		cni_state_remove(pod_fd, &none);
	else
		cni_state_save(pod_fd, s, &none);
}

/* Does what @s says. */
static int carry_out(const struct cni_runtime *rt, struct cni_state *s, int pod_fd,
		     struct cni_done *done, struct err *e)
{
	struct cni_call call = make_call(rt, s);
	size_t begun = 0;
	call.timeout_ms = limit_or(rt->add_ms, CNI_ADD_MS);
	int r = cni_state_save(pod_fd, s, e);
	while (r == 0 && begun < s->attachments.n)
		r = add_network(&call, s, begun++, pod_fd, done, e);
	if (r == 0)
		r = info_write(pod_fd, &done->nets, e);
	if (r < 0)
		forget_rest(s, begun, pod_fd);
	return r;
}

int cni_add(const struct cni_runtime *rt, struct cni_attachments *list, int pod_fd,
	    struct cni_done *ret, struct err *e)
{
	CLEANUP(cni_state_deinit) struct cni_state s;
	cleanup_free struct cni_done *done = calloc(1, sizeof(*done));
	struct stat st;
	cni_state_init(&s);
	bool forwarded = false;
	int r = plan(rt, list, &s, &forwarded, e);
	if (r == 0 && !done)
		r = err_set(e, -ENOMEM, "out of memory");
	if (r == 0 && fstatat(pod_fd, CNI_STATE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		r = err_set(e, -EEXIST, "the pod has networks already");
	if (r == 0) {
		net_dns_init(&done->dns);
		done->ports_forwarded = forwarded;
		r = carry_out(rt, &s, pod_fd, done, e);
	}
	if (r < 0) {
		cni_done_deinit(done);
		return r;
	}
	*ret = *done;
	return 0;
}

int cni_delete(const struct cni_runtime *rt, int pod_fd, struct err *e)
{
	CLEANUP(cni_state_deinit) struct cni_state s;
	cni_state_init(&s);
	int r = cni_state_load(pod_fd, rt->container, &s, e);
	if (r == 0) {
		struct cni_call call = make_call(rt, &s);
		call.deadline_ns =
			clock_monotonic_ns() + limit_or(rt->del_ms, CNI_DEL_MS) * NS_PER_MS;
		r = delete_networks(&call, &s, e);
	}
	if (r >= 0)
		r = remove_files(pod_fd, e);
	if (r < 0)
		err_context(e, "failed to remove network");
	return r;
}

int cni_check(const struct cni_runtime *rt, int pod_fd, size_t *ret_asked, size_t *ret_n,
	      struct err *e)
{
	CLEANUP(cni_state_deinit) struct cni_state s;
	cni_state_init(&s);
	*ret_asked = *ret_n = 0;
	int r = cni_state_load(pod_fd, rt->container, &s, e);
	if (r == CNI_STATE_NONE)
		return 0;
	struct cni_call call = make_call(rt, &s);
	call.timeout_ms = limit_or(rt->check_ms, CNI_CHECK_MS);
	*ret_n = s.attachments.n;
	for (size_t i = 0; r == 0 && i < s.attachments.n; i++) {
		const struct cni_attachment *a = &s.attachments.v[i];
		if (!cni_config_has_check(&a->config) || a->config.disable_check)
			continue;
		r = cni_call_check(&call, a, e);
		++*ret_asked;
	}
	return r;
}
