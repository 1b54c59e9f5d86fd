/* SPDX-License-Identifier: Apache-2.0 */
/* What needs no registry: what the store has. tests/system/fetch.sh has one. */
#include "images/fetch/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images/fetch/fetch.h"
#include "images/store/catalog.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static int try_fetch(struct store *s, const char *text, enum pull_policy policy,
		     struct fetched *ret, struct err *e)
{
	char reference[sizeof("docker://") + 2 * IMAGE_NAME_MAX];
	const struct fetch_request q = { .reference = reference, .policy = policy };
	snprintf(reference, sizeof(reference), "docker://%s", text);
	*e = ERR_INIT;
	*ret = (struct fetched){ .name = "" };
	int r = fetch_to_store(s, &q, ret, e);
	assert_true(r <= 0);
	assert_int_equal(r < 0, e->text[0] != '\0');
	return r;
}

static void check_fails(struct store *s, const char *text, enum pull_policy policy, int code,
			const char *want)
{
	struct fetched f;
	struct err e;
	assert_int_equal(try_fetch(s, text, policy, &f, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

/* Notes that @text was fetched and is @id. */
static void put_ref(const struct store *s, const char *text, const struct digest *id)
{
	struct ref ref;
	assert_int_equal(ref_init(&ref, text), 0);
	ref.image = *id;
	assert_int_equal(catalog_put_ref(s, &ref), 0);
}

/*
 * However the name is written, it is one image; never and new take what is there, and ask nobody.
 */
static void test_known(void **state)
{
	static const char *const texts[] = { "x", "x:latest", "docker.io/x", "library/x",
					     "docker.io/library/x:latest" };
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct fetched f;
	struct err e;
	add_image(s, "one", "other", &id);
	put_ref(s, "docker://docker.io/library/x:latest", &id);
	setenv("PATH", "/nonexistent", 1); /* no skopeo */
	for (size_t i = 0; i < 2 * ARRAY_SIZE(texts); i++) {
		enum pull_policy policy = i % 2 ? PULL_NEVER : PULL_NEW;
		if (try_fetch(s, texts[i / 2], policy, &f, &e) < 0)
			fail_msg("%s: %s", texts[i / 2], e.text);
		assert_true(digest_equal(&f.id, &id));
		assert_string_equal(f.name, "docker.io/library/x:latest");
		assert_false(f.rendered);
	}
	check_fails(
		s, "x:other", PULL_NEVER, -ENOENT,
		"it is not in the local store (husk fetch, or another --pull-policy than never,");
	check_fails(s, "x:other", PULL_NEW, -ENOENT, "skopeo is not installed");
	check_fails(s, "x", PULL_UPDATE, -ENOENT, "skopeo is not installed");
	check_fails(s, "x@sha256:" HEX, PULL_NEVER, -ENOENT, "it is not in the local store");
	put_ref(s, "docker://docker.io/library/x@sha256:" HEX, &id);
	assert_int_equal(try_fetch(s, "x@sha256:" HEX, PULL_NEVER, &f, &e), 0);
	assert_string_equal(f.name, "docker.io/library/x@sha256:" HEX);
}

/* A reference to an image that is gone, or lacks a blob, is none. */
static void test_stale(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	struct fetched f;
	struct err e;
	add_image(s, "one", "other", &id);
	put_ref(s, "docker://docker.io/library/x:latest", &id);
	assert_int_equal(try_fetch(s, "x", PULL_NEVER, &f, &e), 0);
	char path[128];
	snprintf(path, sizeof(path), "oci/blobs/sha256/%s", id.hex);
	fixture_write(state, path, "x", 0);
	check_fails(s, "x", PULL_NEVER, -ENOENT, "it is not in the local store");
	add_image(s, "one", "other", &id);
	assert_int_equal(try_fetch(s, "x", PULL_NEVER, &f, &e), 0);
	assert_int_equal(catalog_remove(s, &id, &e), 0);
	check_fails(s, "x", PULL_NEVER, -ENOENT, "it is not in the local store");
	char file[DIGEST_HEX_LEN + 16];
	digest_of("docker://docker.io/library/x:latest", 35, &id);
	snprintf(file, sizeof(file), "refs/%s.json", id.hex);
	assert_true(is_there(state, "%s", file));
	fixture_write(state, file, "{}", 2);
	check_fails(s, "x", PULL_NEVER, -ENOENT, "it is not in the local store");
}

/* The whole name is the image's name, so it has that limit. */
static void test_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	const size_t rest = strlen("docker.io/") + strlen(":latest");
	char text[IMAGE_NAME_MAX + 2];
	check_fails(s, "", PULL_NEVER, -EINVAL, "");
	check_fails(s, "X", PULL_NEVER, -EINVAL, "X");
	memset(text, 'a', sizeof(text));
	text[1] = '/';
	text[IMAGE_NAME_MAX - rest] = '\0';
	check_fails(s, text, PULL_NEVER, -ENOENT, "it is not in the local store");
	text[IMAGE_NAME_MAX - rest] = 'a';
	text[IMAGE_NAME_MAX - rest + 1] = '\0';
	check_fails(s, text, PULL_NEVER, -ENAMETOOLONG, "has more than 255 bytes");
}

static int no_credentials(void *ctx, const struct auths **ret_http, const struct auths **ret_docker,
			  struct err *e)
{
	(void)ctx;
	(void)ret_http;
	(void)ret_docker;
	return err_set(e, -EPERM, "no credentials");
}

/* Credentials are read when a registry is asked, not before. */
static void test_credentials(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct fetch_request q = {
		.reference = "docker://x",
		.policy = PULL_NEVER,
		.options = { .credentials = no_credentials },
	};
	struct fetched f = { .name = "" };
	struct err e = ERR_INIT;
	assert_int_equal(fetch_to_store(s, &q, &f, &e), -ENOENT);
	q.policy = PULL_NEW;
	e = ERR_INIT;
	assert_int_equal(fetch_to_store(s, &q, &f, &e), -EPERM);
	assert_string_equal(e.text, "no credentials");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_known),
		fixture_test(test_stale),
		fixture_test(test_names),
		fixture_test(test_credentials),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
