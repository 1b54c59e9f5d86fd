/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/pod_stage1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static struct pod make_pod(void **state)
{
	return (struct pod){ .fd = fixture_dir(state) };
}

static void test_write_and_read(void **state)
{
	static struct stage1 s = {
		.dir = "/s \"\\", .image = "sha512-ab", .abi = STAGE1_ABI_RKT, .version = 5
	};
	struct pod_stage1 got;
	struct err e = ERR_INIT;
	cleanup_free char *text = NULL;
	struct pod p = make_pod(state);
	assert_int_equal(pod_stage1_read(&p, &got, &e), POD_STAGE1_NONE);
	for (int durable = 0; durable < 2; durable++) {
		p.durable = durable;
		assert_int_equal(pod_stage1_write(&p, &s, &e), 0);
		assert_int_equal(pod_stage1_read(&p, &got, &e), 0);
		assert_string_equal(got.dir, s.dir);
		assert_string_equal(got.image, s.image);
		assert_int_equal(got.abi, s.abi);
		assert_int_equal(got.version, s.version);
		s.image[0] = '\0';
	}
	assert_int_equal(file_read_at(p.fd, POD_FILE_STAGE1, POD_STAGE1_MAX, &text, NULL), 0);
	assert_string_equal(text,
			    "{\"path\":\"/s \\\"\\\\\",\"interface\":\"rkt\",\"version\":5}\n");
	strcpy(s.dir, "/\xff");
	assert_int_equal(pod_stage1_write(&p, &s, &e), -EILSEQ);
	assert_non_null(strstr(e.text, "its path is not UTF-8"));
}

/* The longest path, of bytes that are longest as JSON, fits into the file. */
static void test_longest(void **state)
{
	static struct stage1 s = { .version = INT32_MAX };
	struct pod_stage1 got;
	struct err e = ERR_INIT;
	struct pod p = make_pod(state);
	memset(s.dir, '\x01', sizeof(s.dir) - 1);
	s.dir[0] = '/';
	memset(s.image, '\x01', sizeof(s.image) - 1);
	assert_int_equal(pod_stage1_write(&p, &s, &e), 0);
	assert_int_equal(pod_stage1_read(&p, &got, &e), 0);
	assert_string_equal(got.dir, s.dir);
	assert_string_equal(got.image, s.image);
}

#define REST ",\"interface\":\"husk\",\"version\":2"

static void test_parse(void **state)
{
	static const struct {
		const char *text;
		int result;
	} cases[] = {
		{ "{\"path\":\"/s\"" REST "}", 0 },
		{ "{\"path\":\"/s\"" REST ",\"image\":\"\",\"more\":[]}", 0 },
		{ "", -EBADMSG },
		{ "[]", -EBADMSG },
		{ "{}", -EBADMSG },
		{ "{\"path\":\"s\"" REST "}", -EBADMSG },
		{ "{\"path\":\"\"" REST "}", -EBADMSG },
		{ "{\"path\":\"/s\\u0000\"" REST "}", -EBADMSG },
		{ "{\"path\":7" REST "}", -EBADMSG },
		{ "{\"path\":\"/s\"" REST ",\"image\":7}", -EBADMSG },
		{ "{\"path\":\"/s\",\"interface\":\"other\",\"version\":1}", -EBADMSG },
		{ "{\"path\":\"/s\",\"interface\":\"husk\",\"version\":0}", -EBADMSG },
		{ "{\"path\":\"/s\",\"interface\":\"husk\",\"version\":2147483648}", -EBADMSG },
		{ "{\"path\":\"/s\",\"interface\":\"husk\"}", -EBADMSG },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct pod_stage1 got = { .version = 77 };
		struct err e = ERR_INIT;
		assert_int_equal(pod_stage1_parse(cases[i].text, strlen(cases[i].text), &got, &e),
				 cases[i].result);
		assert_int_equal(got.version, cases[i].result < 0 ? 77 : 2);
		assert_string_equal(e.text, cases[i].result < 0
						    ? "its file \"stage1.json\" does not say which "
						      "stage1 it was made with"
						    : "");
	}
}

/* A member at its limit, and one byte beyond. */
static void test_limits(void **state)
{
	static char path[PATH_MAX + 1], image[STAGE1_IMAGE_MAX + 2], text[2 * PATH_MAX];
	struct pod_stage1 got;
	(void)state;
	for (size_t over = 0; over < 3; over++) {
		memset(path, 'p', PATH_MAX - 1 + (over == 1));
		memset(image, 'i', STAGE1_IMAGE_MAX + (over == 2));
		path[0] = '/';
		path[PATH_MAX - 1 + (over == 1)] = image[STAGE1_IMAGE_MAX + (over == 2)] = '\0';
		int n = snprintf(text, sizeof(text), "{\"path\":\"%s\",\"image\":\"%s\"" REST "}",
				 path, image);
		assert_int_equal(pod_stage1_parse(text, (size_t)n, &got, NULL),
				 over ? -EBADMSG : 0);
	}
}

/* What is in the place of the file is not followed, nor read without end. */
static void test_hostile_file(void **state)
{
	static char blanks[POD_STAGE1_MAX + 2];
	struct pod_stage1 got;
	struct err e = ERR_INIT;
	struct pod p = make_pod(state);
	memset(blanks, ' ', POD_STAGE1_MAX + 1);
	memcpy(blanks, "{\"path\":\"/s\"" REST "}", strlen("{\"path\":\"/s\"" REST "}"));
	fixture_write(state, POD_FILE_STAGE1, blanks, POD_STAGE1_MAX);
	assert_int_equal(pod_stage1_read(&p, &got, &e), 0);
	fixture_write(state, POD_FILE_STAGE1, blanks, POD_STAGE1_MAX + 1);
	assert_int_equal(pod_stage1_read(&p, &got, &e), -EFBIG);
	assert_int_equal(renameat(p.fd, POD_FILE_STAGE1, p.fd, "other"), 0);
	assert_int_equal(symlinkat("other", p.fd, POD_FILE_STAGE1), 0);
	assert_int_equal(pod_stage1_read(&p, &got, &e), -ELOOP);
	assert_int_equal(unlinkat(p.fd, POD_FILE_STAGE1, 0), 0);
	assert_int_equal(mkfifoat(p.fd, POD_FILE_STAGE1, 0600), 0);
	assert_int_equal(pod_stage1_read(&p, &got, &e), -EINVAL);
}

#define ANN(name) "{\"name\":\"" name "\",\"value\":\"run\"}"
#define MANIFEST  "{\"acKind\":\"ImageManifest\",\"annotations\":["

static void test_open(void **state)
{
	static struct stage1 s, got;
	struct err e = ERR_INIT;
	struct pod p = make_pod(state);
	static const char ours[] = MANIFEST ANN(STAGE1_ANN_RUN) ",{\"name\":\"" STAGE1_ANN_VERSION
								"\",\"value\":\"2\"}]}",
			  theirs[] = MANIFEST ANN(STAGE1_RKT_ANN_PREFIX "run") "]}";
	assert_int_equal(pod_stage1_open(&p, &got, &e), POD_STAGE1_NONE);
	fixture_write(state, "run", "", 0);
	assert_int_equal(fchmodat(p.fd, "run", 0755, 0), 0);
	fixture_write(state, "manifest", ours, strlen(ours));
	assert_int_equal(stage1_open(fixture_path(state), &s, &e), 0);
	strcpy(s.image, "sha512-ab");
	assert_int_equal(pod_stage1_write(&p, &s, &e), 0);
	assert_int_equal(pod_stage1_open(&p, &got, &e), 0);
	assert_string_equal(got.run, s.run);
	assert_string_equal(got.image, "sha512-ab");
	fixture_write(state, "manifest", theirs, strlen(theirs));
	assert_int_equal(pod_stage1_open(&p, &got, &e), -EPROTO);
	assert_non_null(strstr(e.text, "is another one now"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_write_and_read), fixture_test(test_longest),
		fixture_test(test_parse),          fixture_test(test_limits),
		fixture_test(test_hostile_file),   fixture_test(test_open),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
