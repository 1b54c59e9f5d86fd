/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/state.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define POD   "0d6ba5bc-7d57-4ae5-a0b3-5a31e7ac2b54"
#define OTHER "1d6ba5bc-7d57-4ae5-a0b3-5a31e7ac2b54"
#define CONF  "{\"name\":\"a\",\"cniVersion\":\"0.4.0\",\"type\":\"t\"}"
#define ONE                                                                                  \
	"{\"containerID\":\"" POD "\",\"netns\":\"/run/ns\",\"pluginDirs\":[\"/p\"],"        \
	"\"attachments\":[{\"ifName\":\"eth0\",\"args\":\"A=b\",\"path\":\"/net.d/a.conf\"," \
	"\"config\":{\"name\":\"a\",\"cniVersion\":\"0.4.0\",\"disableCheck\":false,"        \
	"\"plugins\":[{\"name\":\"a\",\"cniVersion\":\"0.4.0\",\"type\":\"t\"}]},"           \
	"\"plugins\":[\"/p/t\"],\"runtimeConfig\":{\"ips\":[]},\"result\":{\"dns\":{}}}]}\n"

static struct cni_state s;
static struct err e;

static int fill(size_t n)
{
	cni_state_init(&s);
	int r = str_copy(s.container.text, sizeof(s.container.text), POD);
	if (r == 0)
		r = str_copy(s.netns, sizeof(s.netns), "/run/ns");
	if (r == 0)
		r = strv_add(&s.dirs, "/p");
	while (r == 0 && s.attachments.n < n) {
		struct cni_attachment *a = &s.attachments.v[s.attachments.n++];
		cni_attachment_init(a);
		r = cni_config_parse(CONF, strlen(CONF), &a->config, NULL);
		if (r == 0)
			r = strv_add(&a->paths, "/p/t");
		if (r == 0)
			r = str_copy(a->config.path, sizeof(a->config.path), "/net.d/a.conf");
		if (r == 0)
			r = str_copy(a->if_name, sizeof(a->if_name), "eth0");
		if (r == 0)
			r = str_copy(a->args, sizeof(a->args), "A=b");
		a->runtime = json_make("ips", json_object_new_array(), NULL);
		a->result = json_make("dns", json_object_new_object(), NULL);
		if (r == 0 && (!a->runtime || !a->result))
			r = -ENOMEM;
	}
	return r;
}

static void test_file(void **state)
{
	char text[1024] = "";
	int dir = fixture_dir(state);
	struct stat st;
	assert_int_equal(fill(1), 0);
	assert_int_equal(cni_state_save(dir, &s, &e), 0);
	cni_state_deinit(&s);
	assert_int_equal(fstatat(dir, CNI_STATE_FILE, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	int fd = openat(dir, CNI_STATE_FILE, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_string_equal(text, ONE);
	cni_state_init(&s);
	assert_int_equal(cni_state_load(dir, POD, &s, &e), 0);
	assert_string_equal(s.attachments.v[0].config.name, "a");
	assert_string_equal(s.attachments.v[0].paths.v[0], "/p/t");
	assert_string_equal(s.attachments.v[0].config.path, "/net.d/a.conf");
	cni_state_deinit(&s);
	cni_state_init(&s);
	assert_int_equal(cni_state_load(dir, OTHER, &s, &e), -EPERM);
	cni_state_deinit(&s);
	assert_int_equal(cni_state_remove(dir, &e), 0);
	assert_int_equal(cni_state_remove(dir, &e), 0);
	cni_state_init(&s);
	assert_int_equal(cni_state_load(dir, POD, &s, &e), CNI_STATE_NONE);
}

static int load(void **state)
{
	cni_state_init(&s);
	int r = cni_state_load(fixture_dir(state), POD, &s, &e);
	cni_state_deinit(&s);
	return r;
}

/* It names programs. */
static void test_untrusted(void **state)
{
	int dir = fixture_dir(state);
	fixture_write(state, CNI_STATE_FILE, ONE, strlen(ONE));
	assert_int_equal(fchmodat(dir, CNI_STATE_FILE, 0644, 0), 0);
	assert_int_equal(load(state), 0);
	assert_int_equal(fchmodat(dir, CNI_STATE_FILE, 0620, 0), 0);
	assert_int_equal(load(state), -EPERM);
	assert_int_equal(fchmodat(dir, CNI_STATE_FILE, 0602, 0), 0);
	assert_int_equal(load(state), -EPERM);
	assert_int_equal(fchmodat(dir, CNI_STATE_FILE, 0600, 0), 0);
	assert_int_equal(linkat(dir, CNI_STATE_FILE, dir, "second", 0), 0);
	assert_int_equal(load(state), -EPERM);
	assert_int_equal(unlinkat(dir, CNI_STATE_FILE, 0), 0);
	assert_int_equal(symlinkat("second", dir, CNI_STATE_FILE), 0);
	assert_int_equal(load(state), -ELOOP);
	assert_int_equal(unlinkat(dir, CNI_STATE_FILE, 0), 0);
	assert_int_equal(mkfifoat(dir, CNI_STATE_FILE, 0600), 0);
	assert_int_equal(load(state), -EPERM);
	assert_int_equal(unlinkat(dir, CNI_STATE_FILE, 0), 0);
	if (geteuid() != 0)
		return;
	fixture_write(state, CNI_STATE_FILE, ONE, strlen(ONE));
	assert_int_equal(fchownat(dir, CNI_STATE_FILE, 4711, 0, 0), 0);
	assert_int_equal(load(state), -EPERM);
}

static int parse(const char *text, size_t len)
{
	cni_state_init(&s);
	e = ERR_INIT;
	int r = cni_state_parse(text, len, &s, &e);
	assert_int_equal(r < 0, e.text[0] != '\0');
	cni_state_deinit(&s);
	return r;
}

/* Each of the texts of ONE that must be as it is, and what is not. */
static void test_damaged(void **state)
{
	static const char *const swaps[][2] = {
		{ POD, "../../x" },
		{ "\"/run/ns\"", "7" },
		{ "[\"/p\"]", "[1]" },
		{ "\"eth0\"", "\"\"" },
		{ "\"eth0\"", "\"sixteen-letters-\"" },
		{ "A=b", "A" },
		{ "\"/p/t\"", "\"p/t\"" },
		{ "\"/p/t\"", "\"/p/t\",\"/p/u\"" },
		{ "{\"ips\":[]}", "[]" },
		{ "{\"dns\":{}}", "{\"dns\":0.5}" },
		{ "\"type\":\"t\"", "\"type\":\"../t\"" },
		{ "attachments", "other" },
	};
	(void)state;
	assert_int_equal(parse(ONE, strlen(ONE)), 0);
	for (size_t i = 0; i < ARRAY_SIZE(swaps); i++) {
		cleanup_buf struct buf text;
		const char *at = strstr(ONE, swaps[i][0]);
		assert_non_null(at);
		buf_init(&text, 4096);
		assert_int_equal(buf_append(&text, ONE, (size_t)(at - ONE)), 0);
		assert_int_equal(buf_puts(&text, swaps[i][1]), 0);
		assert_int_equal(buf_puts(&text, at + strlen(swaps[i][0])), 0);
		assert_int_equal(parse(buf_data(&text), buf_len(&text)), -EBADMSG);
	}
	for (size_t len = 0; len < strlen(ONE) - 1; len++)
		assert_int_equal(parse(ONE, len), -EBADMSG);
}

static void test_limits(void **state)
{
	cleanup_buf struct buf text;
	cleanup_free char *big = malloc(CNI_STATE_MAX + 1);
	(void)state;
	buf_init(&text, CNI_STATE_MAX);
	assert_int_equal(fill(NET_INTERFACES_MAX), 0);
	assert_int_equal(cni_state_format(&s, &text), 0);
	cni_state_deinit(&s);
	assert_int_equal(parse(buf_data(&text), buf_len(&text)), 0);
	assert_non_null(big);
	memset(big, ' ', CNI_STATE_MAX + 1);
	memcpy(big, ONE, strlen(ONE));
	assert_int_equal(parse(big, CNI_STATE_MAX), 0);
	assert_int_equal(parse(big, CNI_STATE_MAX + 1), -EBADMSG);
	/* One attachment more than there can be. */
	const char *list = strstr(ONE, "[{") + 1;
	size_t head = (size_t)(list - ONE), len = strlen(list) - 3;
	size_t at = head;
	for (int i = 0; i <= NET_INTERFACES_MAX; i++, at += len + 1) {
		memcpy(big + at, list, len);
		big[at + len] = ',';
	}
	memcpy(big + at - 1, "]}", 2);
	assert_int_equal(parse(big, at + 1), -EBADMSG);
}

static int round_trip(void *ctx)
{
	cleanup_buf struct buf text;
	(void)ctx;
	buf_init(&text, CNI_STATE_MAX);
	int r = fill(2);
	if (r == 0)
		r = cni_state_format(&s, &text);
	cni_state_deinit(&s);
	cni_state_init(&s);
	if (r == 0)
		r = cni_state_parse(buf_data(&text), buf_len(&text), &s, &e);
	cni_state_deinit(&s);
	return r;
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(round_trip, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_file),   fixture_test(test_untrusted), fixture_test(test_damaged),
		fixture_test(test_limits), fixture_test(test_no_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
