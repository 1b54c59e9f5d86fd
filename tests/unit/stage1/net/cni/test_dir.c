/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/net/cni/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage1/net/cni/document.h"
#include "tests/support/fixture.h"

static struct cni_networks nets;
static struct err e;

/* Loads the directories "a" and "b" of the fixture. */
static int load(void **state)
{
	cleanup_strv struct strv dirs;
	strv_init(&dirs, 2);
	fixture_dir(state);
	assert_int_equal(strv_addf(&dirs, "%s/a", fixture_path(state)), 0);
	assert_int_equal(strv_addf(&dirs, "%s/b", fixture_path(state)), 0);
	cni_networks_deinit(&nets);
	e = ERR_INIT;
	return cni_dir_load(&dirs, &nets, &e);
}

static void write_net(void **state, const char *file, const char *name)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"name\":\"%s\",\"type\":\"%.1s\"}", name, file);
	fixture_write(state, file, text, (size_t)n);
	assert_int_equal(fchmodat(fixture_dir(state), file, 0644, 0), 0);
}

static const struct cni_network *find(const char *name)
{
	const struct cni_network *net = NULL;
	return cni_networks_find(&nets, name, &net, &e) == 0 ? net : NULL;
}

static void make_dirs(void **state)
{
	assert_int_equal(mkdirat(fixture_dir(state), "a", 0755), 0);
	assert_int_equal(mkdirat(fixture_dir(state), "b", 0755), 0);
}

static void test_nothing(void **state)
{
	assert_int_equal(load(state), 0);
	assert_int_equal(nets.n, 2);
	assert_string_equal(nets.v[0].config.name, "default");
	assert_string_equal(cni_config_type(&nets.v[0].config, 0), "ptp");
	assert_int_equal(cni_config_plugins(&nets.v[1].config), 2);
	cni_networks_deinit(&nets);
}

static void test_files(void **state)
{
	make_dirs(state);
	write_net(state, "a/20.conf", "one");
	write_net(state, "a/10.json", "two");
	write_net(state, "a/30.conflist", "default");
	write_net(state, "b/05.conf", "one");
	write_net(state, "b/.hidden.conf", "hidden");
	write_net(state, "b/01.conf~", "backup");
	assert_int_equal(load(state), 0);
	assert_int_equal(nets.n, 4);
	assert_string_equal(nets.v[0].config.name, "one");
	assert_string_equal(cni_config_type(&nets.v[0].config, 0), "b");
	assert_true(str_ends(nets.v[0].config.path, "/b/05.conf"));
	assert_string_equal(nets.v[1].config.name, "two");
	assert_string_equal(nets.v[2].config.name, "default");
	assert_string_equal(nets.v[3].config.name, "default-restricted");
	cni_networks_deinit(&nets);
}

static void test_broken(void **state)
{
	make_dirs(state);
	write_net(state, "a/1.conf", "one");
	write_net(state, "b/2.conf", "two");
	fixture_write(state, "a/3.conf", "{", 1);
	assert_int_equal(fchmodat(fixture_dir(state), "a/3.conf", 0644, 0), 0);
	assert_int_equal(load(state), 0);
	assert_non_null(find("one"));
	assert_non_null(find("two"));
	assert_null(find("default"));
	assert_non_null(strstr(e.text, "/a/3.conf\": it is not JSON"));
	cni_networks_deinit(&nets);
}

/* What others could have written names no programs for us. */
static void test_untrusted(void **state)
{
	make_dirs(state);
	write_net(state, "b/1.conf", "default");
	assert_int_equal(fchmodat(fixture_dir(state), "b/1.conf", 0664, 0), 0);
	assert_int_equal(load(state), 0);
	assert_null(find("default"));
	assert_non_null(strstr(e.text, "/b/1.conf\" can be changed by others"));
	assert_int_equal(fchmodat(fixture_dir(state), "b/1.conf", 0644, 0), 0);
	assert_int_equal(fchmodat(fixture_dir(state), "b", 0775, 0), 0);
	assert_int_equal(load(state), -EPERM);
	assert_int_equal(fchmodat(fixture_dir(state), "b", 0755, 0), 0);
	assert_int_equal(symlinkat("1.conf", fixture_dir(state), "b/0.conf"), 0);
	assert_int_equal(mkfifoat(fixture_dir(state), "b/2.conf", 0600), 0);
	assert_int_equal(load(state), 0);
	assert_int_equal(nets.n, 4);
	assert_non_null(strstr(nets.v[0].broken, "/b/0.conf\" is a symbolic link"));
	assert_string_equal(nets.v[1].config.name, "default");
	assert_non_null(strstr(nets.v[2].broken, "/b/2.conf\""));
	cni_networks_deinit(&nets);
}

static void test_limits(void **state)
{
	static char text[CNI_DOCUMENT_MAX + 1];
	char name[32];
	make_dirs(state);
	memset(text, ' ', sizeof(text));
	memcpy(text, "{\"name\":\"a\",\"type\":\"b\"}", 23);
	for (size_t len = CNI_DOCUMENT_MAX; len <= CNI_DOCUMENT_MAX + 1; len++) {
		fixture_write(state, "a/1.conf", text, len);
		assert_int_equal(fchmodat(fixture_dir(state), "a/1.conf", 0644, 0), 0);
		assert_int_equal(load(state), 0);
		assert_int_equal(nets.v[0].broken != NULL, len > CNI_DOCUMENT_MAX);
	}
	for (size_t i = 1; i <= CNI_FILES_MAX; i++) {
		snprintf(name, sizeof(name), "a/%zu.conf", i);
		write_net(state, name, "a");
	}
	assert_int_equal(load(state), 0);
	write_net(state, "a/0.conf", "a");
	assert_int_equal(load(state), -E2BIG);
	cni_networks_deinit(&nets);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_nothing),   fixture_test(test_files),  fixture_test(test_broken),
		fixture_test(test_untrusted), fixture_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
