/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no registry; tests/system/registry.sh has one. */
#include "host/fetch/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/config/config.h"
#include "tests/support/fixture.h"

#define DIGEST(c) "sha256:" c c c c c c c c c c c c c c c c
#define LAYER(size, c)                                                                    \
	"{\"mediaType\":\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"" DIGEST( \
		c) "\",\"size\":" size "}"
#define MANIFEST(layers)                                                     \
	"{\"schemaVersion\":2,\"config\":{\"mediaType\":"                    \
	"\"application/vnd.oci.image.config.v1+json\",\"digest\":\"" DIGEST( \
		"0000") "\","                                                \
			"\"size\":10},\"layers\":[" layers "]}"

static struct registry_name name(const char *text)
{
	struct registry_name n;
	assert_int_equal(registry_name_parse(text, &n, NULL), 0);
	return n;
}

static void check_copy(void **state, const char *text, uint64_t bytes_max, int code,
		       const char *want)
{
	struct err e = ERR_INIT;
	struct registry_name n = name("127.0.0.1:1/a");
	const struct fetch_options o = { 0 };
	char copy[1000];
	snprintf(copy, sizeof(copy), "%s", text);
	struct registry_manifest m = { .text = copy, .len = strlen(copy) };
	digest_of(copy, m.len, &m.manifest);
	assert_int_equal(registry_copy(&n, &m, fixture_dir(state), &o, bytes_max, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" instead of \"%s\"", e.text, want);
	assert_null(strstr(e.text, "docker://")); /* the caller says that */
}

/* What is refused before skopeo is started. */
static void test_refused(void **state)
{
	static const char good[] = MANIFEST(LAYER("20", "1111"));
	char want[80];
	check_copy(state, "<html>", UINT64_MAX, -EBADMSG, "not a JSON object");
	check_copy(state, MANIFEST(LAYER("20", "1111") "," LAYER("21", "1111")), UINT64_MAX,
		   -EBADMSG, "two sizes");
	snprintf(want, sizeof(want), "it has %zu bytes, more than the %zu allowed",
		 30 + strlen(good), 29 + strlen(good));
	check_copy(state, good, 29 + strlen(good), -EFBIG, want);
}

/* The limit itself is no reason to refuse; then it is skopeo's turn, which is not there. */
static void test_no_skopeo(void **state)
{
	static const char good[] = MANIFEST(LAYER("20", "1111"));
	struct err e = ERR_INIT;
	struct registry_name n = name("127.0.0.1:1/a");
	const struct fetch_options o = { 0 };
	struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	char *path = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
	setenv("PATH", "/nonexistent", 1);
	check_copy(state, good, 30 + strlen(good), -ENOENT, "install the package skopeo");
	assert_int_equal(registry_look(&n, &o, &m, &e), -ENOENT);
	assert_non_null(strstr(e.text, "skopeo is not installed"));
	assert_null(m.text);
	assert_int_equal(registry_look(&n, &o, &m, NULL), -ENOENT);
	if (path)
		setenv("PATH", path, 1);
	free(path);
}

static void test_bad_credentials(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct registry_name n = name("127.0.0.1:1/a");
	char host[] = "127.0.0.1:1", user[] = "a:b", password[] = "secret";
	struct config_auth auth = { .host = host, .user = user, .password = password };
	const struct config_auths auths = { .v = &auth, .n = 1 };
	const struct fetch_options o = { .docker_auth = &auths };
	struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	assert_int_equal(registry_look(&n, &o, &m, &e), -EINVAL);
	assert_non_null(strstr(e.text, "colon"));
	assert_null(strstr(e.text, password));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_refused),
		fixture_test(test_no_skopeo),
		fixture_test(test_bad_credentials),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
