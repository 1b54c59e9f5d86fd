/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/skopeo_args.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define HEX "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

/* A string that is not constant, for structures that own theirs. */
#define S(text) ((char[]){ text })

static struct registry_name name(const char *text)
{
	struct registry_name n;
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	return n;
}

static void check(const struct strv *args, const char *want)
{
	char line[1024] = "";
	for (size_t i = 0; i < args->n; i++) {
		size_t len = strlen(line);
		snprintf(line + len, sizeof(line) - len, "%s%s", i > 0 ? " " : "", args->v[i]);
	}
	assert_string_equal(line, want);
}

static void check_inspect(const char *text, const struct digest *d, const struct fetch_options *o,
			  bool auth, const char *want)
{
	cleanup_strv struct strv args;
	struct registry_name n = name(text);
	strv_init(&args, SKOPEO_ARGS_MAX);
	assert_int_equal(skopeo_inspect_args(&n, d, o, auth, &args), 0);
	check(&args, want);
}

static void test_inspect(void **state)
{
	(void)state;
	struct digest d;
	digest_of("", 0, &d);
	check_inspect("debian", NULL, &(struct fetch_options){ 0 }, false,
		      "skopeo inspect --raw docker://docker.io/library/debian:latest");
	check_inspect("debian", &d, &(struct fetch_options){ 0 }, false,
		      "skopeo inspect --raw docker://docker.io/library/debian@sha256:" HEX);
	check_inspect("x.io:1/a:b", NULL,
		      &(struct fetch_options){ .insecure_tls = true, .insecure_image = true }, true,
		      "skopeo inspect --raw --tls-verify=false --authfile=/proc/self/fd/3 "
		      "docker://x.io:1/a:b");
	/* What is insecure in other ways changes nothing here. */
	check_inspect("a", NULL,
		      &(struct fetch_options){ .insecure_http = true, .insecure_pubkey = true },
		      false, "skopeo inspect --raw docker://docker.io/library/a:latest");
}

static void check_copy(const struct fetch_options *o, bool auth, const char *want)
{
	cleanup_strv struct strv args;
	struct registry_name n = name("x.io/a:b");
	struct digest d;
	digest_of("", 0, &d);
	strv_init(&args, SKOPEO_ARGS_MAX);
	assert_int_equal(skopeo_copy_args(&n, &d, o, auth, &args), 0);
	check(&args, want);
}

static void test_copy(void **state)
{
	(void)state;
	check_copy(&(struct fetch_options){ 0 }, false,
		   "skopeo copy --quiet --preserve-digests --remove-signatures "
		   "--dest-oci-accept-uncompressed-layers docker://x.io/a@sha256:" HEX " oci:.");
	check_copy(&(struct fetch_options){ .insecure_tls = true, .insecure_image = true }, true,
		   "skopeo --insecure-policy copy --quiet --preserve-digests --remove-signatures "
		   "--dest-oci-accept-uncompressed-layers --src-tls-verify=false "
		   "--src-authfile=/proc/self/fd/3 docker://x.io/a@sha256:" HEX " oci:.");
}

static void test_env(void **state)
{
	(void)state;
	char *all[] = { S("HOME=/h"),
			S("SECRET=1"),
			S("PATH=/bin"),
			S("HTTPS_PROXY=p"),
			S("no_proxy=x"),
			S("LD_PRELOAD=e"),
			S("XDG_RUNTIME_DIR="),
			S("HOMES=x"),
			S("SSL_CERT_DIR="),
			S("GODEBUG=x"),
			S("REGISTRY_AUTH_FILE=a"),
			S("DOCKER_CONFIG=d"),
			S("TMPDIR=/t"),
			NULL };
	cleanup_strv struct strv env;
	strv_init(&env, SKOPEO_ENV_MAX);
	assert_int_equal(skopeo_env(all, &env), 0);
	check(&env, "HOME=/h PATH=/bin HTTPS_PROXY=p no_proxy=x XDG_RUNTIME_DIR= SSL_CERT_DIR= "
		    "REGISTRY_AUTH_FILE=a DOCKER_CONFIG=d TMPDIR=/t");
}

static void test_env_limit(void **state)
{
	(void)state;
	char *all[SKOPEO_ENV_MAX + 2] = { NULL };
	cleanup_strv struct strv env, more;
	strv_init(&env, SKOPEO_ENV_MAX);
	strv_init(&more, SKOPEO_ENV_MAX);
	static char variable[] = "XDG_X=1";
	for (size_t i = 0; i < SKOPEO_ENV_MAX; i++)
		all[i] = variable;
	assert_int_equal(skopeo_env(all, &env), 0);
	all[SKOPEO_ENV_MAX] = variable;
	assert_int_equal(skopeo_env(all, &more), -E2BIG);
}

#define AUTH_FOR(name)                                                      \
	{                                                                   \
		.host = S(name), .user = S("user"), .password = S("secret") \
	}

static void test_auth_find(void **state)
{
	(void)state;
	struct auth v[] = { AUTH_FOR("quay.io"), AUTH_FOR("index.docker.io") };
	const struct auths auths = { .v = v, .n = ARRAY_SIZE(v) };
	struct registry_name quay = name("quay.io/x"), hub = name("x"), other = name("quay.io:1/x");
	assert_ptr_equal(skopeo_auth_find(&auths, &quay), &v[0]);
	assert_ptr_equal(skopeo_auth_find(&auths, &hub), &v[1]);
	assert_null(skopeo_auth_find(&auths, &other));
	assert_null(skopeo_auth_find(NULL, &hub));
}

static void test_auth_json(void **state)
{
	(void)state;
	struct auth a = AUTH_FOR("quay.io");
	struct registry_name n = name("quay.io/x");
	struct err e = ERR_INIT;
	cleanup_buf struct buf out;
	buf_init(&out, SKOPEO_AUTH_MAX);
	assert_int_equal(skopeo_auth_json(&a, &n, &out, &e), 0);
	static const char want[] = "{\"auths\":{\"quay.io\":{\"auth\":\"dXNlcjpzZWNyZXQ=\"}}}";
	assert_int_equal(buf_len(&out), strlen(want));
	assert_memory_equal(buf_data(&out), want, strlen(want));
	a.user = S("us:er");
	assert_int_equal(skopeo_auth_json(&a, &n, &out, &e), -EINVAL);
	assert_non_null(strstr(e.text, "colon"));
	assert_null(strstr(e.text, "us:er"));
}

/* The longest credentials for the longest registry fit, and are JSON. */
static void test_auth_limit(void **state)
{
	(void)state;
	static char secret[AUTH_SECRET_MAX + 1];
	struct registry_name n = { .repository = "x" };
	struct auth a = { .user = secret, .password = secret };
	cleanup_json struct json_object *o = NULL;
	cleanup_buf struct buf out;
	memset(secret, 's', AUTH_SECRET_MAX);
	memset(n.registry, 'a', REGISTRY_NAME_MAX);
	buf_init(&out, SKOPEO_AUTH_MAX);
	assert_int_equal(skopeo_auth_json(&a, &n, &out, NULL), 0);
	assert_int_equal(json_parse(buf_data(&out), buf_len(&out), &o), 0);
	assert_non_null(json_member(json_member(o, "auths"), n.registry));
}

static int everything(void *ctx)
{
	(void)ctx;
	struct auth a = AUTH_FOR("quay.io");
	struct registry_name n = name("quay.io/x");
	const struct fetch_options o = { .insecure_image = true, .insecure_tls = true };
	char *all[] = { S("HOME=/h"), NULL };
	cleanup_strv struct strv inspect, copy, env;
	cleanup_buf struct buf out;
	strv_init(&inspect, SKOPEO_ARGS_MAX);
	strv_init(&copy, SKOPEO_ARGS_MAX);
	strv_init(&env, SKOPEO_ENV_MAX);
	buf_init(&out, SKOPEO_AUTH_MAX);
	int r = skopeo_inspect_args(&n, NULL, &o, true, &inspect);
	if (r == 0)
		r = skopeo_copy_args(&n, &n.digest, &o, true, &copy);
	if (r == 0)
		r = skopeo_env(all, &env);
	return r < 0 ? r : skopeo_auth_json(&a, &n, &out, NULL);
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc_lenient(everything, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_inspect),    fixture_test(test_copy),
		fixture_test(test_env),        fixture_test(test_env_limit),
		fixture_test(test_auth_find),  fixture_test(test_auth_json),
		fixture_test(test_auth_limit), fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
