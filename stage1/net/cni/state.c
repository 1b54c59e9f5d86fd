/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "stage1/net/cni/document.h"

#define STATE_MODE 0600
/*
 * A configuration, values and a result each within its limit, for all networks; the lists around.
 */
#define STATE_CONTAINERS_MAX ((size_t)4 * NET_INTERFACES_MAX * CNI_CONTAINERS_MAX)

void cni_state_init(struct cni_state *s)
{
	memset(s, 0, sizeof(*s));
	strv_init(&s->dirs, CNI_PLUGIN_DIRS_MAX);
}

void cni_state_deinit(struct cni_state *s)
{
	if (!s)
		return;
	strv_deinit(&s->dirs);
	cni_attachments_deinit(&s->attachments);
}

static struct json_object *format_attachment(const struct cni_attachment *a)
{
	cleanup_json struct json_object *obj = json_object_new_object();
	int r = json_put_str(obj, "ifName", a->if_name);
	if (r == 0)
		r = json_put_str(obj, "args", a->args);
	if (r == 0)
		r = json_put_str(obj, "path", a->config.path);
	if (r == 0)
		r = json_put(obj, "config", cni_config_write(&a->config));
	if (r == 0)
		r = json_put_strv(obj, "plugins", &a->paths);
	if (r == 0 && a->runtime)
		r = json_put(obj, "runtimeConfig", json_object_get(a->runtime));
	if (r == 0 && a->result)
		r = json_put(obj, "result", json_object_get(a->result));
	return r < 0 ? NULL : TAKE_PTR(obj);
}

static bool are_utf8(const struct strv *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (!str_is_utf8(list->v[i]))
			return false;
	return true;
}

/* Whether all texts that nobody has checked can be in JSON. */
static bool is_utf8(const struct cni_state *s)
{
	if (!str_is_utf8(s->netns) || !are_utf8(&s->dirs))
		return false;
	for (size_t i = 0; i < s->attachments.n; i++) {
		const struct cni_attachment *a = &s->attachments.v[i];
		if (!str_is_utf8(a->config.path) || !str_is_utf8(a->if_name) ||
		    !are_utf8(&a->paths))
			return false;
	}
	return true;
}

int cni_state_format(const struct cni_state *s, struct buf *out)
{
	cleanup_json struct json_object *doc = json_object_new_object();
	cleanup_json struct json_object *list = json_object_new_array();
	if (!is_utf8(s))
		return -EILSEQ;
	for (size_t i = 0; i < s->attachments.n; i++)
		if (json_append(list, format_attachment(&s->attachments.v[i])) < 0)
			return -ENOMEM;
	int r = json_put_str(doc, "containerID", s->container.text);
	if (r == 0)
		r = json_put_str(doc, "netns", s->netns);
	if (r == 0)
		r = json_put_strv(doc, "pluginDirs", &s->dirs);
	if (r == 0)
		r = json_put(doc, "attachments", TAKE_PTR(list));
	if (r == 0)
		r = json_write(doc, false, out);
	return r < 0 ? r : buf_puts(out, "\n");
}

/* Copies the text member @key, which may be missing unless @needed. */
static int read_text(struct json_object *obj, const char *key, bool needed, char *out, size_t size)
{
	const char *s = "";
	int r = json_get_str(obj, key, size - 1, &s);
	if (r == -EBADMSG || (r == -ENOENT && needed))
		return -EBADMSG;
	return str_copy(out, size, s);
}

/* Takes a reference of an object that is to be kept, if it is there. */
static int read_document(struct json_object *obj, const char *key, struct json_object **ret)
{
	struct json_object *doc = json_member(obj, key);
	int r = doc ? cni_document_check(doc, NULL) : 0;
	if (r == 0)
		*ret = json_object_get(doc);
	return r;
}

static int read_paths(struct json_object *obj, struct cni_attachment *a)
{
	int r = json_get_strv(obj, "plugins", NET_INFO_TEXT_MAX, &a->paths);
	if (r == -ENOMEM)
		return r;
	if (r < 0 || (a->paths.n != 0 && a->paths.n != cni_config_plugins(&a->config)))
		return -EBADMSG;
	for (size_t i = 0; i < a->paths.n; i++)
		if (a->paths.v[i][0] != '/')
			return -EBADMSG;
	return 0;
}

static int read_attachment(struct json_object *obj, struct cni_attachment *a)
{
	int r = read_text(obj, "ifName", true, a->if_name, sizeof(a->if_name));
	if (r == 0)
		r = read_text(obj, "args", false, a->args, sizeof(a->args));
	if (r == 0 && (!a->if_name[0] || (a->args[0] && !cni_args_are_valid(a->args))))
		r = -EBADMSG;
	if (r == 0)
		r = cni_config_read(json_member(obj, "config"), &a->config, NULL);
	if (r == 0)
		r = read_text(obj, "path", false, a->config.path, sizeof(a->config.path));
	if (r == 0)
		r = read_paths(obj, a);
	if (r == 0)
		r = read_document(obj, "runtimeConfig", &a->runtime);
	return r < 0 ? r : read_document(obj, "result", &a->result);
}

static int read_attachments(struct json_object *doc, struct cni_attachments *list)
{
	struct json_object *array = json_member(doc, "attachments");
	if (!json_object_is_type(array, json_type_array) ||
	    json_object_array_length(array) > NET_INTERFACES_MAX)
		return -EBADMSG;
	for (size_t i = 0; i < json_object_array_length(array); i++) {
		cni_attachment_init(&list->v[list->n++]);
		int r = read_attachment(json_object_array_get_idx(array, i), &list->v[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_state(struct json_object *doc, struct cni_state *s)
{
	int r = read_text(doc, "containerID", true, s->container.text, sizeof(s->container.text));
	if (r == 0 && !uuid_is_valid(s->container.text))
		r = -EBADMSG;
	if (r == 0)
		r = read_text(doc, "netns", true, s->netns, sizeof(s->netns));
	if (r == 0)
		r = json_get_strv(doc, "pluginDirs", NET_INFO_TEXT_MAX, &s->dirs);
	return r < 0 ? r : read_attachments(doc, &s->attachments);
}

int cni_state_parse(const char *text, size_t len, struct cni_state *ret, struct err *e)
{
	cleanup_json struct json_object *doc = NULL;
	int r = -EBADMSG;
	if (len <= CNI_STATE_MAX && json_count_containers(text, len) <= STATE_CONTAINERS_MAX)
		r = json_parse(text, len, &doc);
	if (r == 0)
		r = read_state(doc, ret);
	if (r == 0 && !is_utf8(ret)) /* json-c takes overlong sequences */
		r = -EBADMSG;
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	return r < 0 ? err_set(e, -EBADMSG, "the pod's file \"" CNI_STATE_FILE "\" is damaged") : 0;
}

int cni_state_save(int pod_fd, const struct cni_state *s, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, CNI_STATE_MAX);
	int r = cni_state_format(s, &text);
	if (r == 0)
		r = file_write_at(pod_fd, CNI_STATE_FILE, buf_data(&text), buf_len(&text),
				  STATE_MODE);
	if (r == 0 && fsync(pod_fd) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, r, "cannot write the pod's file \"" CNI_STATE_FILE "\"") : 0;
}

/* Whether what is open as @fd can be nobody's but ours. */
static int check_owner(int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "the pod's file \"" CNI_STATE_FILE "\"");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH) ||
	    st.st_nlink != 1)
		return err_set(e, -EPERM,
			       "the pod's file \"" CNI_STATE_FILE
			       "\" could be somebody else's, and is not believed");
	return 0;
}

int cni_state_load(int pod_fd, const char *container, struct cni_state *ret, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	cleanup_fd int fd = openat(pod_fd, CNI_STATE_FILE,
				   O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return CNI_STATE_NONE;
	if (fd < 0)
		return err_sys(e, -errno, "the pod's file \"" CNI_STATE_FILE "\"");
	int r = check_owner(fd, e);
	if (r < 0)
		return r;
	r = file_read_fd(fd, CNI_STATE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "the pod's file \"" CNI_STATE_FILE "\"");
	r = cni_state_parse(text, len, ret, e);
	if (r == 0 && strcmp(ret->container.text, container) != 0)
		return err_set(e, -EPERM,
			       "the pod's file \"" CNI_STATE_FILE "\" is of another pod");
	return r;
}

int cni_state_remove(int pod_fd, struct err *e)
{
	int r = unlinkat(pod_fd, CNI_STATE_FILE, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (r == 0 && fsync(pod_fd) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, r, "cannot remove the pod's file \"" CNI_STATE_FILE "\"") : 0;
}
