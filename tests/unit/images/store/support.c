/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/store/support.h"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "images/spec/oci.h"
#include "lib/os/fd.h"
#include "tests/support/cmocka.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/render/layers.h"

struct store *must_open_store(void **state)
{
	struct store *s = NULL;
	struct err e = ERR_INIT;
	if (store_open(fixture_dir(state), "DIR", &s, &e) < 0)
		fail_msg("%s", e.text);
	return s;
}

/* Adds the layer; @d describes it. */
static void fill_layer(struct import *i, const char *text, struct oci_descriptor *d)
{
	char line[256];
	const char *const lines[] = { line, NULL };
	struct blob tar = { NULL, 0 };
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	struct err e = ERR_INIT;
	snprintf(line, sizeof(line), "f f text=%s", text);
	layers_make(lines, "pax", &tar);
	layers_span(tar.data, tar.len, &span);
	*d = (struct oci_descriptor){ .media_type = OCI_TYPE_LAYER, .size = tar.len };
	blob_deinit(&tar);
	if (import_copy(i, &span, NULL, NULL, &d->digest, &e) < 0)
		fail_msg("%s", e.text);
}

void fill_import(struct import *i, const char *text, struct digest *ret)
{
	struct oci_descriptor layer;
	struct oci_manifest m = { .layers = &layer, .n_layers = 1 };
	struct err e = ERR_INIT;
	CLEANUP(buf_deinit) struct buf config;
	CLEANUP(buf_deinit) struct buf manifest;
	buf_init(&config, OCI_JSON_MAX);
	buf_init(&manifest, OCI_JSON_MAX);
	fill_layer(i, text, &layer);
	assert_int_equal(oci_config_format(&layer.digest, 1, &config), 0);
	m.config =
		(struct oci_descriptor){ .media_type = OCI_TYPE_CONFIG, .size = buf_len(&config) };
	if (import_text(i, buf_data(&config), buf_len(&config), &m.config.digest, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(oci_manifest_format(&m, &manifest), 0);
	if (import_text(i, buf_data(&manifest), buf_len(&manifest), ret, &e) < 0)
		fail_msg("%s", e.text);
}

int publish_import(struct import *i, const struct digest *id, const char *name, bool *ret_rendered,
		   struct err *e)
{
	const struct import_image image = { .id = *id, .name = name };
	return import_publish(i, &image, ret_rendered, e);
}

void add_image(struct store *s, const char *text, const char *name, struct digest *ret)
{
	cleanup_import struct import *i = NULL;
	struct err e = ERR_INIT;
	bool rendered;
	if (import_begin(s, name, &i, &e) < 0)
		fail_msg("%s", e.text);
	fill_import(i, text, ret);
	if (publish_import(i, ret, name, &rendered, &e) < 0)
		fail_msg("%s", e.text);
}

bool share_store(void **state)
{
	int fd = fixture_dir(state);
	if (geteuid() != 0) {
		print_message("only root can act as somebody else\n");
		return false;
	}
	assert_int_equal(fchown(fd, 0, GROUP_GID), 0);
	assert_int_equal(fchmod(fd, 03770), 0);
	return true;
}

void run_as_member(void **state, int (*fn)(void **state, void *ctx), void *ctx)
{
	const gid_t groups[] = { GROUP_GID };
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		umask(022);
		if (setgroups(1, groups) < 0 || setresgid(MEMBER_UID, MEMBER_UID, MEMBER_UID) < 0 ||
		    setresuid(MEMBER_UID, MEMBER_UID, MEMBER_UID) < 0)
			_exit(99);
		_exit(fn(state, ctx));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

size_t count_names(void **state, const char *name)
{
	int fd = openat(fixture_dir(state), name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = fdopendir(fd);
	const struct dirent *de;
	size_t n = 0;
	assert_non_null(dir);
	while ((de = readdir(dir)))
		n += de->d_name[0] != '.';
	return n;
}

bool is_there(void **state, const char *fmt, ...)
{
	char path[512];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	return faccessat(fixture_dir(state), path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}
