/* SPDX-License-Identifier: Apache-2.0 */
/* What is known without asking anybody; nothing else of husk is linked to this but the store. */
#include "images/known/known.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/store/catalog.h"
#include "lib/os/clock.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

/* Looks for @text; *ret_type is where it would be fetched from. */
static int look(struct store *s, const char *text, enum pull_policy policy, struct digest *ret,
		enum reference_type *ret_type, struct err *e)
{
	struct reference ref;
	struct fetched f = { .name = "" };
	const struct fetch_request q = { .reference = text, .policy = policy };
	*e = ERR_INIT;
	int r = known_find(s, &q, &ref, &f, e);
	assert_int_equal(r < 0, e->text[0] != '\0');
	*ret = f.id;
	*ret_type = ref.type;
	return r;
}

static void is_known(struct store *s, const char *text, enum pull_policy policy,
		     const struct digest *want)
{
	enum reference_type type;
	struct digest got;
	struct err e;
	if (look(s, text, policy, &got, &type, &e) != 0)
		fail_msg("%s: %s", text, e.text);
	assert_true(digest_equal(&got, want));
}

static void is_to_be_fetched(struct store *s, const char *text, enum pull_policy policy,
			     enum reference_type want)
{
	enum reference_type type;
	struct digest got;
	struct err e;
	assert_int_equal(look(s, text, policy, &got, &type, &e), KNOWN_NOT);
	assert_int_equal(type, want);
}

static void fails(struct store *s, const char *text, enum pull_policy policy, int code)
{
	enum reference_type type;
	struct digest got;
	struct err e;
	assert_int_equal(look(s, text, policy, &got, &type, &e), code);
}

/* Notes that @text was fetched just now and is @id. */
static void put_ref(struct store *s, const char *text, const struct digest *id)
{
	struct ref ref;
	struct err e;
	assert_int_equal(ref_init(&ref, text), 0);
	ref.image = *id;
	ref.fetched_ns = clock_realtime_ns();
	ref.max_age_s = 3600;
	assert_int_equal(catalog_refer(s, &ref, &e), 0);
}

static void test_names(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	char text[IMAGE_ID_LEN + 1];
	add_image(s, "one", "one", &id);
	is_known(s, "one", PULL_NEW, &id);
	is_known(s, "one", PULL_NEVER, &id);
	snprintf(text, sizeof(text), "sha256-%.12s", id.hex);
	is_known(s, text, PULL_UPDATE, &id);
	fails(s, "two", PULL_NEW, -ENOENT);
	fails(s, "sha256-ffffffffffff", PULL_NEW, -ENOENT);
	fails(s, "", PULL_NEW, -EINVAL);
	/* A name with a host may be one of appc; never means that nobody is asked. */
	is_to_be_fetched(s, "example.com/app", PULL_NEW, REFERENCE_NAME);
	fails(s, "example.com/app", PULL_NEVER, -ENOENT);
}

static void test_registries(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	add_image(s, "one", "docker.io/library/one:latest", &id);
	is_to_be_fetched(s, "docker://one", PULL_NEW, REFERENCE_REGISTRY);
	fails(s, "docker://one", PULL_NEVER, -ENOENT);
	put_ref(s, "docker://docker.io/library/one:latest", &id);
	is_known(s, "docker://one", PULL_NEW, &id);
	is_known(s, "docker://one", PULL_NEVER, &id);
	is_to_be_fetched(s, "docker://one", PULL_UPDATE, REFERENCE_REGISTRY);
	/* The name alone is that image, too. */
	is_known(s, "one", PULL_NEW, &id);
	is_to_be_fetched(s, "one", PULL_UPDATE, REFERENCE_REGISTRY);
}

static void test_urls(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct digest id;
	add_image(s, "one", "one", &id);
	is_to_be_fetched(s, "https://h/one", PULL_NEW, REFERENCE_URL);
	fails(s, "https://h/one", PULL_NEVER, -ENOENT);
	put_ref(s, "https://h/one", &id);
	is_known(s, "https://h/one", PULL_NEVER, &id);
	is_known(s, "https://h/one", PULL_UPDATE, &id); /* the server said for how long */
}

static void test_files(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	char text[PATH_MAX + 8];
	snprintf(text, sizeof(text), "rootfs:%s", fixture_path(state));
	is_to_be_fetched(s, text, PULL_NEVER, REFERENCE_ROOTFS);
	fails(s, "./nowhere", PULL_NEW, -ENOENT);
}

/* There is nothing that a signature could be checked against. */
static void test_signature(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	struct reference ref;
	struct fetched f;
	struct err e = ERR_INIT;
	const struct fetch_request q = { .reference = "docker://x", .signature = "x.asc" };
	assert_int_equal(known_find(s, &q, &ref, &f, &e), -EINVAL);
	assert_non_null(strstr(e.text, "leave --signature away"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_names), fixture_test(test_registries), fixture_test(test_urls),
		fixture_test(test_files), fixture_test(test_signature),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
