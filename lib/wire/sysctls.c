/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/wire/sysctls.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/macros.h"

#define ISOLATORS "isolators"
#define SYSCTL    "os/unix/sysctl"

/* No component of the path @s is empty, "." or "..". */
static bool is_within(const char *s)
{
	for (;; s++) {
		size_t n = strcspn(s, "/");
		if (n == 0 || (n == 1 && s[0] == '.') || (n == 2 && s[0] == '.' && s[1] == '.'))
			return false;
		s += n;
		if (!*s)
			return true;
	}
}

/* What a person can see, and blanks between. */
static bool is_value(const char *s)
{
	for (const char *c = s; *c; c++)
		if ((*c < ' ' && *c != '\t') || *c >= 0x7f)
			return false;
	return *s != '\0';
}

int sysctl_split(const char *text, char ret_path[SYSCTL_NAME_MAX + 1], const char **ret_value)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-@:./";
	size_t n = strspn(text, letters);
	if (text[n] != '=' || !is_value(text + n + 1))
		return -EINVAL;
	if (n > SYSCTL_NAME_MAX || strlen(text + n + 1) > SYSCTL_VALUE_MAX)
		return -E2BIG;
	memcpy(ret_path, text, n);
	ret_path[n] = '\0';
	bool swaps = text[strcspn(text, "./")] == '.';
	for (char *c = ret_path; swaps && *(c += strcspn(c, "./")); c++)
		*c = *c == '.' ? '/' : '.';
	*ret_value = text + n + 1;
	return is_within(ret_path) ? 0 : -EINVAL;
}

int sysctls_add(struct strv *list, const char *text, struct err *e)
{
	char path[SYSCTL_NAME_MAX + 1];
	const char *value;
	int r = sysctl_split(text, path, &value);
	if (r == -E2BIG)
		return err_set(e, r,
			       "sysctl \"%.80s\": longer than %d bytes of name or %d of value",
			       text, SYSCTL_NAME_MAX, SYSCTL_VALUE_MAX);
	if (r < 0)
		return err_set(e, r, "sysctl \"%.80s\" is not NAME=VALUE, as sysctl(8) has it",
			       text);
	r = strv_add(list, text);
	return r < 0 ? err_sys(e, r, "sysctls: at most %d", SYSCTLS_MAX) : 0;
}

/* Whether the file @path of /proc/sys is of a namespace. */
static bool is_of_namespace(const char *path)
{
	static const char *const of_ipc[] = {
		"kernel/msgmax", "kernel/msgmnb", "kernel/msgmni", "kernel/sem",
		"kernel/shmall", "kernel/shmmax", "kernel/shmmni", "kernel/shm_rmid_forced",
	};
	for (size_t i = 0; i < ARRAY_SIZE(of_ipc); i++)
		if (strcmp(path, of_ipc[i]) == 0)
			return true;
	return str_starts(path, "fs/mqueue/") || str_starts(path, "net/");
}

int sysctls_check_shared(const struct strv *list, bool is_host_net, struct err *e)
{
	for (size_t i = 0; i < list->n; i++) {
		char path[SYSCTL_NAME_MAX + 1];
		const char *value;
		int r = sysctl_split(list->v[i], path, &value);
		if (r < 0)
			return err_sys(e, r, "sysctl");
		if (!is_of_namespace(path))
			return err_set(e, -EOPNOTSUPP,
				       "sysctl \"%.*s\" is of the whole host's kernel, which such "
				       "a pod shares (a pod with a VM can have it)",
				       (int)strlen(path), list->v[i]);
		if (is_host_net && str_starts(path, "net/"))
			return err_set(e, -EOPNOTSUPP,
				       "sysctl \"%.*s\" is of the network, which is the host's "
				       "(leave --net=host away)",
				       (int)strlen(path), list->v[i]);
	}
	return 0;
}

static int read_values(struct json_object *values, struct strv *list, struct err *e)
{
	if (!json_object_is_type(values, json_type_object))
		return err_set(e, -EBADMSG, "isolator \"" SYSCTL "\" is not an object of texts");
	json_object_object_foreach(values, name, value)
	{
		char text[SYSCTL_TEXT_MAX + 1];
		const char *s = json_object_is_type(value, json_type_string)
					? json_object_get_string(value)
					: NULL;
		if (!s || strlen(s) != (size_t)json_object_get_string_len(value))
			return err_set(e, -EBADMSG, "sysctl \"%.80s\": its value is not a text",
				       name);
		int n = snprintf(text, sizeof(text), "%s=%s", name, s);
		int r = strchr(name, '=') || (size_t)n >= sizeof(text)
				? err_set(e, -EINVAL, "sysctl \"%.80s\": too long, or no name",
					  name)
				: sysctls_add(list, text, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int sysctls_read(struct json_object *pod, struct strv *list, struct err *e)
{
	struct json_object *isolators = json_member(pod, ISOLATORS);
	if (!isolators)
		return 0;
	if (!json_object_is_type(isolators, json_type_array))
		return err_set(e, -EBADMSG, "\"" ISOLATORS "\" of the pod is not a list");
	for (size_t i = 0; i < json_object_array_length(isolators); i++) {
		struct json_object *isolator = json_object_array_get_idx(isolators, i);
		const char *name;
		if (json_get_str(isolator, "name", SYSCTL_NAME_MAX, &name) < 0)
			return err_set(e, -EBADMSG, "isolator %zu of the pod has no name", i);
		if (strcmp(name, SYSCTL) != 0)
			return err_set(
				e, -EOPNOTSUPP,
				"isolator \"%.80s\" of a pod is not supported (only \"" SYSCTL
				"\" is; others are of apps)",
				name);
		int r = read_values(json_member(isolator, "value"), list, e);
		if (r < 0)
			return r;
	}
	return 0;
}

int sysctls_write(const struct strv *list, struct json_object *pod)
{
	if (list->n == 0)
		return 0;
	cleanup_json struct json_object *isolators = json_object_new_array();
	struct json_object *isolator = json_make("name", json_object_new_string(SYSCTL), "value",
						 json_pairs_strv(list), NULL);
	int r = json_append(isolators, isolator);
	return r < 0 ? r : json_put(pod, ISOLATORS, TAKE_PTR(isolators));
}
