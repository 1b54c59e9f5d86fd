/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/spec/variant.h"
#include "tests/support/fixture.h"

#define A                  "0000000000000000000000000000000000000000000000000000000000000000"
#define B                  "1111111111111111111111111111111111111111111111111111111111111111"
#define C                  "2222222222222222222222222222222222222222222222222222222222222222"
#define MANIFEST           "\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\","
#define ENTRY(hex, more)   "{" MANIFEST "\"digest\":\"sha256:" hex "\",\"size\":1" more "}"
#define TAG(tag)           ",\"annotations\":{\"org.opencontainers.image.ref.name\":\"" tag "\"}"
#define FULL(tag)          ",\"annotations\":{\"io.containerd.image.name\":\"" tag "\"}"
#define PLATFORM(os, arch) ",\"platform\":{\"os\":\"" os "\",\"architecture\":\"" arch "\"}"
#define VARIANT(v) \
	",\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\",\"variant\":\"" v "\"}"
#define INDEX(entries) "{\"manifests\":[" entries "]}"

static const struct oci_platform host = { "linux", "amd64", "" };

static void check(const char *json, const char *name, const char *want)
{
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	struct err e = ERR_INIT;
	const struct oci_descriptor *d;
	assert_int_equal(oci_index_parse(json, strlen(json), &index, &e), 0);
	if (resolve_choose(&index, name, &host, &d, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(d->digest.hex, want);
}

static void check_fails(const char *json, const char *name, const char *want)
{
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	struct err e = ERR_INIT;
	const struct oci_descriptor *d;
	assert_int_equal(oci_index_parse(json, strlen(json), &index, &e), 0);
	assert_true(resolve_choose(&index, name, &host, &d, &e) < 0);
	if (strcmp(e.text, want) != 0)
		fail_msg("\"%s\" is not \"%s\"", e.text, want);
}

static void test_names(void **state)
{
	(void)state;
	static const char one[] = INDEX(ENTRY(A, TAG("v1")));
	static const char two[] = INDEX(ENTRY(A, TAG("v1")) "," ENTRY(B, TAG("v2")));
	check(one, "", A);
	check(one, "v1", A);
	check(one, "sha256:" A, A);
	check(two, "v2", B);
	check(two, "sha256:" B, B);
	check(INDEX(ENTRY(A, "")), "", A);
	check_fails(two, "", "there are several images in it (choose one with PATH:NAME: v1, v2)");
	check_fails(two, "v3", "no image \"v3\" in it (there is: v1, v2)");
	check_fails(one, "sha256:" C, "no image \"sha256:" C "\" in it (there is: v1)");
	check_fails(INDEX(ENTRY(A, "")), "x",
		    "no image \"x\" in it, its images have no names (leave \":x\" away)");
	check_fails(INDEX(""), "", "there is no image in it");
	check_fails(INDEX(ENTRY(A, "") "," ENTRY(B, "")), "",
		    "there are several images in it (choose one with PATH:NAME: sha256:" A
		    ", sha256:" B ")");
	/* The same image under two names is one image. */
	check(INDEX(ENTRY(A, TAG("v1")) "," ENTRY(A, TAG("v2"))), "", A);
	/* Full names, as docker writes them. */
	check(INDEX(ENTRY(A, FULL("docker.io/library/debian:12")) "," ENTRY(B, FULL("x/y:1"))),
	      "debian:12", A);
	check(INDEX(ENTRY(A, FULL("docker.io/library/debian:latest"))), "debian", A);
}

static void test_platforms(void **state)
{
	(void)state;
	static const char multi[] = INDEX(ENTRY(A, PLATFORM("linux", "arm64")) "," ENTRY(
		B, PLATFORM("linux", "amd64")) "," ENTRY(C, PLATFORM("unknown", "unknown")));
	check(multi, "", B);
	check_fails(INDEX(ENTRY(A, PLATFORM("linux", "arm64")) "," ENTRY(
			    B, PLATFORM("windows", "amd64"))),
		    "",
		    "not for this machine, which is linux/amd64 (there is: linux/arm64, "
		    "windows/amd64)");
	check_fails(INDEX(ENTRY(A, PLATFORM("linux", "amd64")) "," ENTRY(
			    B, PLATFORM("linux", "amd64"))),
		    "",
		    "there are several images in it (choose one with PATH:NAME: sha256:" A
		    ", sha256:" B ")");
	/* One that says it is for this machine beats one that says nothing. */
	check(INDEX(ENTRY(A, "") "," ENTRY(B, PLATFORM("linux", "amd64"))), "", B);
	check(INDEX(ENTRY(A, PLATFORM("linux", "amd64")) "," ENTRY(B, "")), "", A);
	/* Signatures and the like are not images. */
	check_fails("{\"manifests\":[{\"mediaType\":\"text/plain\",\"digest\":\"sha256:" A
		    "\",\"size\":1}]}",
		    "", "there is no container image in it");
}

/* Of builds of one image the one that runs everywhere, wherever it stands. */
static void test_variants(void **state)
{
	static const char *const amd64 = "not for this machine, which is linux/amd64 (there is: ";
	unsigned int level = variant_level();
	char want[200];
	(void)state;
	check(INDEX(ENTRY(A, VARIANT("v3")) "," ENTRY(B, VARIANT(""))), "", B);
	check(INDEX(ENTRY(A, PLATFORM("linux", "amd64")) "," ENTRY(B, VARIANT("v2"))), "", A);
	check(INDEX(ENTRY(A, VARIANT("v2")) "," ENTRY(B, VARIANT("v1")) "," ENTRY(C,
										  VARIANT("v4"))),
	      "", B);
	check(INDEX(ENTRY(A, VARIANT("x")) "," ENTRY(B, VARIANT("y"))), "", A);
	check(INDEX(ENTRY(A, "") "," ENTRY(B, VARIANT("v1"))), "", B);
	if (level >= 3)
		check(INDEX(ENTRY(A, VARIANT("v9")) "," ENTRY(B, VARIANT("v3")) "," ENTRY(
			      C, VARIANT("v2"))),
		      "", B);
	snprintf(want, sizeof(want), "%slinux/amd64/v8, linux/amd64/v9)", amd64);
	check_fails(INDEX(ENTRY(A, VARIANT("v8")) "," ENTRY(B, VARIANT("v9"))), "", want);
	/* Twice the same variant, and two images with names of their own, are still several. */
	check_fails(INDEX(ENTRY(A, VARIANT("v1")) "," ENTRY(B, VARIANT("v1"))), "",
		    "there are several images in it (choose one with PATH:NAME: sha256:" A
		    ", sha256:" B ")");
	check_fails(INDEX(ENTRY(A, PLATFORM("linux", "amd64")
					   TAG("a")) "," ENTRY(B, VARIANT("v1") TAG("b"))),
		    "", "there are several images in it (choose one with PATH:NAME: a, b)");
	check(INDEX(ENTRY(A, PLATFORM("linux", "amd64") TAG("a")) "," ENTRY(B, VARIANT("v1")
										       TAG("b"))),
	      "b", B);
}

/* A list of names too long for a message is cut, not overflowed. */
static void test_many_names(void **state)
{
	(void)state;
	struct oci_descriptor d[200] = { 0 };
	struct oci_index index = { d, ARRAY_SIZE(d) };
	struct err e = ERR_INIT;
	const struct oci_descriptor *found;
	for (size_t i = 0; i < ARRAY_SIZE(d); i++) {
		snprintf(d[i].tag, sizeof(d[i].tag), "some-rather-long-tag-name-%zu", i);
		snprintf(d[i].digest.hex, sizeof(d[i].digest.hex), "%064zu", i);
	}
	assert_true(resolve_choose(&index, "", &host, &found, &e) < 0);
	assert_non_null(strstr(e.text, "some-rather-long-tag-name-0, "));
	assert_non_null(strstr(e.text, ", ...)"));
}

static void test_docker(void **state)
{
	(void)state;
	static const char digest[] = "sha256:" A;
	static const char json[] =
		"[{\"Config\":\"" A ".json\",\"RepoTags\":[\"debian:12\",\"docker.io/foo/bar:1\"],"
		"\"Layers\":[\"a\"]},{\"Config\":\"b.json\",\"RepoTags\":null,\"Layers\":[\"a\"]}]";
	CLEANUP(docker_manifest_deinit) struct docker_manifest m = DOCKER_MANIFEST_INIT;
	struct err e = ERR_INIT;
	const struct docker_image *image;
	assert_int_equal(docker_manifest_parse(json, strlen(json), &m, &e), 0);
	static const char *const good[] = { "debian:12", "docker.io/library/debian:12", "foo/bar:1",
					    digest };
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(resolve_choose_docker(&m, good[i], &image, &e), 0);
		assert_ptr_equal(image, &m.images[0]);
	}
	assert_true(resolve_choose_docker(&m, "", &image, &e) < 0);
	assert_string_equal(e.text,
			    "there are several images in it (choose one with PATH:NAME: debian:12, "
			    "docker.io/foo/bar:1, b.json)");
	assert_int_equal(resolve_choose_docker(&m, "debian", &image, &e), -ENOENT);
	assert_non_null(strstr(e.text, "no image \"debian\" in it (there is: debian:12,"));
	struct docker_manifest none = DOCKER_MANIFEST_INIT;
	assert_true(resolve_choose_docker(&none, "", &image, &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_names),    fixture_test(test_platforms),
		fixture_test(test_variants), fixture_test(test_many_names),
		fixture_test(test_docker),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
