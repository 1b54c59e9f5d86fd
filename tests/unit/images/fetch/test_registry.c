/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no registry; tests/system/registry.sh has one. */
#include "images/fetch/registry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/config/config.h"
#include "lib/os/file.h"
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

/*
 * A skopeo that keeps notes: its arguments in "args", the credentials in "auth". What it does is
 * @script, a piece of shell. Only this one is found from now on.
 */
static char *put_skopeo(void **state, const char *script)
{
	char text[4096], path[PATH_MAX];
	const char *dir = fixture_path(state);
	int n = snprintf(text, sizeof(text),
			 "#!/bin/sh\nPATH=/usr/bin:/bin\necho \"$*\" >>%s/args\n"
			 "case \"$*\" in *authfile=*) cat /proc/self/fd/3 >%s/auth ;; esac\n%s\n",
			 dir, dir, script);
	assert_true(n > 0 && (size_t)n < sizeof(text));
	int fd = openat(fixture_dir(state), "skopeo", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0700);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, (size_t)n), n);
	close(fd);
	snprintf(path, sizeof(path), "%s", dir);
	char *old = getenv("PATH") ? strdup(getenv("PATH")) : NULL;
	setenv("PATH", path, 1);
	return old;
}

static void restore_path(char *old)
{
	if (old)
		setenv("PATH", old, 1);
	free(old);
}

static void assert_note(void **state, const char *name, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	assert_int_equal(file_read_at(fixture_dir(state), name, 65536, &text, &len), 0);
	assert_string_equal(text, want);
}

/* What skopeo is asked, with which credentials, and what is made of its answer. */
static void test_look(void **state)
{
	static const char manifest[] = MANIFEST(LAYER("20", "1111"));
	char script[2048], host[] = "127.0.0.1:1", user[] = "user", password[] = "secret";
	struct auth auth = { .host = host, .user = user, .password = password };
	const struct auths auths = { .v = &auth, .n = 1 };
	const struct fetch_options o = { .docker_auth = &auths, .insecure_tls = true };
	struct registry_name n = name("127.0.0.1:1/a:b");
	CLEANUP(registry_manifest_deinit) struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	struct err e = ERR_INIT;
	struct digest want;
	snprintf(script, sizeof(script), "printf %%s '%s'", manifest);
	char *old = put_skopeo(state, script);
	int r = registry_look(&n, &o, &m, &e);
	restore_path(old);
	if (r != 0)
		fail_msg("%s", e.text);
	digest_of(manifest, strlen(manifest), &want);
	assert_int_equal(m.len, strlen(manifest));
	assert_memory_equal(m.text, manifest, m.len);
	assert_true(digest_equal(&m.manifest, &want));
	assert_true(digest_equal(&m.source, &want));
	assert_note(
		state, "args",
		"inspect --raw --tls-verify=false --authfile=/proc/self/fd/3 docker://127.0.0.1:1/a:b\n");
	/* "user:secret" */
	assert_note(state, "auth", "{\"auths\":{\"127.0.0.1:1\":{\"auth\":\"dXNlcjpzZWNyZXQ=\"}}}");
}

/* What a registry says to wrong credentials, and to none. */
static void test_look_refused(void **state)
{
	static const char script[] =
		"echo 'time=\"2026-01-01T00:00:00Z\" level=fatal msg=\"Error parsing image name "
		"\\\"docker://127.0.0.1:1/a:latest\\\": reading manifest latest in 127.0.0.1:1/a: "
		"unauthorized: authentication required\"' >&2; exit 1";
	struct registry_name n = name("127.0.0.1:1/a");
	const struct fetch_options o = { 0 };
	struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	struct err e = ERR_INIT;
	char *old = put_skopeo(state, script);
	int r = registry_look(&n, &o, &m, &e);
	restore_path(old);
	assert_int_equal(r, -EACCES);
	assert_non_null(strstr(e.text, "127.0.0.1:1"));
	assert_null(m.text);
	assert_note(state, "args",
		    "inspect --raw docker://127.0.0.1:1/a:latest\n"); /* it is not tried again */
}

/* Copies an image whose layer has @bytes bytes instead of three. */
static int copy_with_layer(void **state, const char *bytes, struct err *e)
{
	struct registry_name n = name("127.0.0.1:1/a");
	const struct fetch_options o = { 0 };
	char text[1024], script[2048];
	struct digest config, layer;
	digest_of("configured", 10, &config);
	digest_of("one", 3, &layer);
	snprintf(
		text, sizeof(text),
		"{\"schemaVersion\":2,\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
		"\"digest\":\"sha256:%s\",\"size\":10},\"layers\":[{\"mediaType\":"
		"\"application/vnd.oci.image.layer.v1.tar\",\"digest\":\"sha256:%s\",\"size\":3}]}",
		config.hex, layer.hex);
	struct registry_manifest m = { .text = text, .len = strlen(text) };
	digest_of(text, m.len, &m.manifest);
	snprintf(
		script, sizeof(script),
		"cd blobs/sha256 && printf configured >%s && printf %%s %s >%s && printf %%s '%s' >%s",
		config.hex, bytes, layer.hex, text, m.manifest.hex);
	mkdirat(fixture_dir(state), "blobs", 0700);
	mkdirat(fixture_dir(state), "blobs/sha256", 0700);
	char *old = put_skopeo(state, script);
	int r = registry_copy(&n, &m, fixture_dir(state), &o, UINT64_MAX, e);
	restore_path(old);
	return r;
}

/* A blob as long as announced, shorter, and one byte longer. */
static void test_copy(void **state)
{
	struct err e = ERR_INIT;
	if (copy_with_layer(state, "one", &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(copy_with_layer(state, "on", &e), -EBADMSG);
	assert_non_null(strstr(e.text, "has 2 bytes instead of the 3 that the manifest says"));
	assert_int_equal(copy_with_layer(state, "more", &e), -EBADMSG);
	assert_non_null(strstr(e.text, "has 4 bytes instead of the 3 that the manifest says"));
}

static void test_bad_credentials(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	struct registry_name n = name("127.0.0.1:1/a");
	char host[] = "127.0.0.1:1", user[] = "a:b", password[] = "secret";
	struct auth auth = { .host = host, .user = user, .password = password };
	const struct auths auths = { .v = &auth, .n = 1 };
	const struct fetch_options o = { .docker_auth = &auths };
	struct registry_manifest m = REGISTRY_MANIFEST_INIT;
	assert_int_equal(registry_look(&n, &o, &m, &e), -EINVAL);
	assert_non_null(strstr(e.text, "colon"));
	assert_null(strstr(e.text, password));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_refused), fixture_test(test_no_skopeo),
		fixture_test(test_look),    fixture_test(test_look_refused),
		fixture_test(test_copy),    fixture_test(test_bad_credentials),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
