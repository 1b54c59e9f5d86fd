/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/skopeo_args.h"

#include <errno.h>
#include <nettle/base64.h>
#include <string.h>

/* Adds the arguments that @add has, up to NULL. */
static int add_all(struct strv *sv, const char *const *add)
{
	int r = 0;
	for (; r == 0 && *add; add++)
		r = strv_add(sv, *add);
	return r;
}

int skopeo_inspect_args(const struct registry_name *n, const struct digest *digest,
			const struct fetch_options *o, bool auth, struct strv *ret)
{
	char operand[REGISTRY_OPERAND_MAX + 1];
	static const char *const words[] = { "skopeo", "inspect", "--raw", NULL };
	registry_name_operand(n, digest, operand);
	int r = add_all(ret, words);
	if (r == 0 && o->insecure_tls)
		r = strv_add(ret, "--tls-verify=false");
	if (r == 0 && auth)
		r = strv_addf(ret, "--authfile=/proc/self/fd/%d", SKOPEO_AUTH_FD);
	return r < 0 ? r : strv_add(ret, operand);
}

int skopeo_copy_args(const struct registry_name *n, const struct digest *digest,
		     const struct fetch_options *o, bool auth, struct strv *ret)
{
	char operand[REGISTRY_OPERAND_MAX + 1];
	static const char *const insecure[] = { "--insecure-policy", NULL };
	/*
	 * An OCI layout has no place for signatures; the policy sees them before they are dropped.
	 */
	static const char *const words[] = { "copy",
					     "--quiet",
					     "--preserve-digests",
					     "--remove-signatures",
					     "--dest-oci-accept-uncompressed-layers",
					     NULL };
	registry_name_operand(n, digest, operand);
	int r = strv_add(ret, "skopeo");
	if (r == 0 && o->insecure_image)
		r = add_all(ret, insecure);
	if (r == 0)
		r = add_all(ret, words);
	if (r == 0 && o->insecure_tls)
		r = strv_add(ret, "--src-tls-verify=false");
	if (r == 0 && auth)
		r = strv_addf(ret, "--src-authfile=/proc/self/fd/%d", SKOPEO_AUTH_FD);
	if (r == 0)
		r = strv_add(ret, operand);
	return r < 0 ? r : strv_add(ret, "oci:.");
}

static bool is_passed(const char *variable)
{
	static const char *const names[] = {
		"HOME=",          "PATH=",          "TMPDIR=",       "REGISTRY_AUTH_FILE=",
		"DOCKER_CONFIG=", "SSL_CERT_FILE=", "SSL_CERT_DIR=", "http_proxy=",
		"https_proxy=",   "all_proxy=",     "no_proxy=",     "HTTP_PROXY=",
		"HTTPS_PROXY=",   "ALL_PROXY=",     "NO_PROXY=",     "XDG_",
	};
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_starts(variable, names[i]))
			return true;
	return false;
}

int skopeo_env(char *const *environment, struct strv *ret)
{
	int r = 0;
	for (; r == 0 && *environment; environment++)
		if (is_passed(*environment))
			r = strv_add(ret, *environment);
	return r;
}

const struct auth *skopeo_auth_find(const struct auths *auths, const struct registry_name *n)
{
	/* As docker's own configuration and rkt's documentation name the one registry. */
	static const char *const docker[] = { "index.docker.io", "registry-1.docker.io" };
	if (!auths)
		return NULL;
	const struct auth *found = auths_find(auths, n->registry);
	if (found || strcmp(n->registry, REGISTRY_DEFAULT) != 0)
		return found;
	for (size_t i = 0; !found && i < ARRAY_SIZE(docker); i++)
		found = auths_find(auths, docker[i]);
	return found;
}

/* "USER:PASSWORD" as base64. NULL if memory is short. The caller frees it. */
static char *skopeo_args_encode(const struct auth *auth)
{
	size_t user = strlen(auth->user), password = strlen(auth->password);
	size_t len = user + 1 + password;
	cleanup_free uint8_t *plain = malloc(len);
	char *text = calloc(1, BASE64_ENCODE_RAW_LENGTH(len) + 1);
	if (!plain || !text) {
		free(text);
		return NULL;
	}
	memcpy(plain, auth->user, user);
	plain[user] = ':';
	memcpy(plain + user + 1, auth->password, password);
	base64_encode_raw(text, len, plain);
	explicit_bzero(plain, len);
	return text;
}

int skopeo_auth_json(const struct auth *auth, const struct registry_name *n, struct buf *out,
		     struct err *e)
{
	if (strchr(auth->user, ':'))
		return err_set(e, -EINVAL,
			       "registry \"%s\": the configured user name has a colon, which basic "
			       "authentication cannot carry (see auth.d)",
			       n->registry);
	cleanup_free char *text = skopeo_args_encode(auth);
	if (!text)
		return err_set(e, -ENOMEM, "out of memory");
	/* The name and base64 have no character that JSON would escape. */
	int r = buf_printf(out, "{\"auths\":{\"%s\":{\"auth\":\"%s\"}}}", n->registry, text);
	explicit_bzero(text, strlen(text));
	return r < 0 ? err_sys(e, r, "credentials of registry \"%s\"", n->registry) : 0;
}
