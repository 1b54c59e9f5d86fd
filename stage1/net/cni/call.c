/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/call.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/os/clock.h"
#include "stage1/net/cni/plugin.h"
#include "stage1/net/cni/request.h"

/* Puts the names of the plugin and its network before what @e says. */
static int name_it(const struct cni_attachment *a, size_t i, struct err *e)
{
	err_context(e, "plugin \"%s\"", cni_config_type(&a->config, i));
	return err_context(e, "network \"%s\"", a->config.name);
}

/* Runs @command of plugin @i, which is the file @path. */
static int call_plugin(const struct cni_call *call, const struct cni_attachment *a, size_t i,
		       const char *path, const char *command, bool with_result, struct buf *out,
		       struct err *e)
{
	cleanup_buf struct buf input;
	cleanup_strv struct strv env;
	buf_init(&input, CNI_REQUEST_MAX);
	strv_init(&env, CNI_ENV_MAX);
	int r = cni_request_document(a, i, with_result, &input);
	if (r == 0)
		r = cni_request_env(a, command, call->container, call->netns, call->dirs, &env);
	if (r < 0)
		return err_sys(e, r, "cannot say what it is to do");
	struct cni_plugin_run run = { .path = path,
				      .type = cni_config_type(&a->config, i),
				      .env = &env,
				      .input = &input,
				      .timeout_ms = call->timeout_ms,
				      .cancel_fd = call->cancel_fd };
	return cni_plugin_run(&run, out, e);
}

static int add_one(const struct cni_call *call, struct cni_attachment *a, size_t i,
		   struct cni_result *res, struct err *e)
{
	cleanup_buf struct buf out;
	struct cni_result got;
	buf_init(&out, CNI_OUTPUT_MAX);
	int r = call_plugin(call, a, i, a->paths.v[i], "ADD", i > 0, &out, e);
	if (r < 0)
		return r;
	if (buf_len(&out) == 0)
		return err_set(e, -EBADMSG, "prints no result");
	r = cni_result_parse(buf_data(&out), buf_len(&out), a->config.version, a->if_name, &got, e);
	if (r < 0)
		return err_context(e, "its result");
	cni_result_deinit(res);
	*res = got;
	json_object_put(a->result);
	a->result = json_object_get(got.doc);
	return 0;
}

int cni_call_add(const struct cni_call *call, struct cni_attachment *a, struct cni_result *ret,
		 struct err *e)
{
	struct cni_result res = { .n_ips = 0 };
	net_dns_init(&res.dns);
	for (size_t i = 0; i < cni_config_plugins(&a->config); i++) {
		int r = add_one(call, a, i, &res, e);
		if (r < 0) {
			cni_result_deinit(&res);
			name_it(a, i, e);
			return r;
		}
	}
	*ret = res;
	return 0;
}

static int delete_one(const struct cni_call *call, const struct cni_attachment *a, size_t i,
		      struct err *e)
{
	cleanup_buf struct buf out;
	char found[PATH_MAX];
	const char *path = i < a->paths.n ? a->paths.v[i] : "";
	int64_t left = call->deadline_ns - clock_monotonic_ns();
	struct cni_call own = *call;
	own.timeout_ms = MAX(left, 0) / NS_PER_MS / 2;
	buf_init(&out, CNI_OUTPUT_MAX);
	if (cni_plugin_check(path, NULL) < 0) {
		int r = cni_plugin_find(cni_config_type(&a->config, i), call->dirs, found,
					sizeof(found), e);
		if (r < 0)
			return r;
		path = found;
	}
	return call_plugin(&own, a, i, path, "DEL", cni_config_has_check(&a->config), &out, e);
}

int cni_call_delete(const struct cni_call *call, const struct cni_attachment *a, struct err *e)
{
	int first = 0;
	for (size_t i = cni_config_plugins(&a->config); i-- > 0;) {
		struct err why = ERR_INIT;
		int r = delete_one(call, a, i, &why);
		if (r < 0 && first == 0) {
			name_it(a, i, &why);
			first = err_set(e, r, "%s", why.text);
		}
		if (r == -ECANCELED)
			break;
	}
	return first;
}

int cni_call_check(const struct cni_call *call, const struct cni_attachment *a, struct err *e)
{
	for (size_t i = 0; i < a->paths.n; i++) {
		cleanup_buf struct buf out;
		buf_init(&out, CNI_OUTPUT_MAX);
		int r = cni_plugin_check(a->paths.v[i], e);
		if (r == 0)
			r = call_plugin(call, a, i, a->paths.v[i], "CHECK", true, &out, e);
		if (r < 0) {
			name_it(a, i, e);
			return r;
		}
	}
	return 0;
}
