/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/load.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/buf.h"
#include "lib/base/str.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define HEAD(kind) "{\"rktVersion\":\"v1\",\"rktKind\":\"" kind "\","
#define TOKEN(host, t) \
	HEAD("auth")   \
	"\"type\":\"oauth\",\"domains\":[\"" host "\"],\"credentials\":{\"token\":\"" t "\"}}"
#define DATA(path) HEAD("paths") "\"data\":\"" path "\"}"

/* Three directories below the fixture's; "a/auth.d" and so on exist. */
struct dirs {
	char path[3][PATH_MAX];
	struct config_source sources[3];
};

static const char *const names[] = { "a", "b", "c" };

static void put(void **state, const char *name, const char *text)
{
	fixture_write(state, name, text, strlen(text));
}

static void make_dirs(void **state, struct dirs *d)
{
	static const char *const parts[] = { "", "/auth.d", "/paths.d", "/stage1.d" };
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		for (size_t p = 0; p < ARRAY_SIZE(parts); p++) {
			char name[32];
			snprintf(name, sizeof(name), "%s%s", names[i], parts[p]);
			assert_int_equal(mkdirat(fixture_dir(state), name, 0755), 0);
			assert_int_equal(fchmodat(fixture_dir(state), name, 0755, 0), 0);
		}
		snprintf(d->path[i], PATH_MAX, "%.*s/%s", PATH_MAX - 8, fixture_path(state),
			 names[i]);
		d->sources[i] = (struct config_source){ .dir = d->path[i] };
	}
}

static int load(const struct dirs *d, unsigned parts, struct config *c, struct err *e)
{
	return config_load(c, d->sources, ARRAY_SIZE(d->sources), parts, NULL, e);
}

static void test_override(void **state)
{
	struct dirs d;
	CLEANUP(config_deinit) struct config c;
	make_dirs(state, &d);
	put(state, "a/auth.d/x.json", TOKEN("one", "a"));
	put(state, "a/auth.d/y.json", TOKEN("two", "a"));
	put(state, "b/auth.d/z.json", TOKEN("one", "b"));
	put(state, "c/auth.d/z.json", TOKEN("three", "c"));
	put(state, "a/paths.d/p.json", DATA("/a"));
	put(state, "c/paths.d/p.json", DATA("/c"));
	put(state, "b/stage1.d/s.json", HEAD("stage1") "\"location\":\"/s\"}");
	config_init(&c);
	assert_int_equal(load(&d, CONFIG_ALL, &c, NULL), 0);
	assert_int_equal(c.parts, CONFIG_ALL);
	assert_int_equal(c.auth.n, 3);
	assert_string_equal(auths_find(&c.auth, "one")->token, "b");
	assert_string_equal(auths_find(&c.auth, "two")->token, "a");
	assert_string_equal(auths_find(&c.auth, "three")->token, "c");
	assert_string_equal(c.data, "/c");
	assert_string_equal(c.stage1_location, "/s");
}

static void test_parts(void **state)
{
	struct dirs d;
	CLEANUP(config_deinit) struct config c;
	struct err e = ERR_INIT;
	make_dirs(state, &d);
	put(state, "a/auth.d/x.json", "broken");
	put(state, "a/paths.d/x.json", DATA("/a"));
	config_init(&c);
	assert_int_equal(load(&d, CONFIG_PATHS | CONFIG_STAGE1, &c, &e), 0);
	assert_int_equal(c.parts, CONFIG_PATHS | CONFIG_STAGE1);
	/* Read once. */
	put(state, "a/paths.d/x.json", "broken");
	assert_int_equal(load(&d, CONFIG_PATHS, &c, &e), 0);
	assert_true(load(&d, CONFIG_ALL, &c, &e) < 0);
	assert_int_equal(c.parts, CONFIG_PATHS | CONFIG_STAGE1);
	assert_string_equal(c.data, "/a");
	assert_int_equal(c.auth.n, 0);
}

/* Nothing but regular files *.json counts, and nothing else is opened. */
static void test_ignored(void **state)
{
	struct dirs d;
	CLEANUP(config_deinit) struct config c;
	struct err e = ERR_INIT;
	make_dirs(state, &d);
	int dir = fixture_dir(state);
	put(state, "a/auth.d/x.json.bak", "broken");
	put(state, "a/auth.d/README", "broken");
	put(state, "outside.json", "broken");
	assert_int_equal(mkdirat(dir, "a/auth.d/dir.json", 0755), 0);
	put(state, "a/auth.d/dir.json/x.json", "broken");
	assert_int_equal(symlinkat("../../outside.json", dir, "a/auth.d/link.json"), 0);
	assert_int_equal(symlinkat("nothing", dir, "a/auth.d/dangling.json"), 0);
	assert_int_equal(mkfifoat(dir, "a/auth.d/fifo.json", 0644), 0);
	config_init(&c);
	assert_int_equal(load(&d, CONFIG_ALL, &c, &e), 0);
	assert_int_equal(c.auth.n, 0);
}

static void check_fails(const struct dirs *d, int code, const char *want, ...) PRINTF_FORMAT(3, 4);

static void check_fails(const struct dirs *d, int code, const char *want, ...)
{
	CLEANUP(config_deinit) struct config c;
	struct err e = ERR_INIT;
	char text[ERR_TEXT_MAX];
	va_list ap;
	va_start(ap, want);
	vsnprintf(text, sizeof(text), want, ap);
	va_end(ap);
	config_init(&c);
	assert_int_equal(load(d, CONFIG_ALL, &c, &e), code);
	assert_string_equal(e.text, text);
	assert_int_equal(c.parts & CONFIG_AUTH, 0);
}

static void test_errors(void **state)
{
	struct dirs d;
	make_dirs(state, &d);
	put(state, "b/auth.d/2.json", TOKEN("one", "b"));
	put(state, "b/auth.d/1.json", TOKEN("one", "b"));
	check_fails(&d, -EEXIST,
		    "configuration file \"%s/auth.d/2.json\": auth for domain \"one\" is already "
		    "specified in this directory (keep one of the two)",
		    d.path[1]);
	put(state, "b/auth.d/1.json", "{");
	check_fails(&d, -EBADMSG,
		    "configuration file \"%s/auth.d/1.json\": it is not an object in valid JSON "
		    "(correct it)",
		    d.path[1]);
}

static void test_places(void **state)
{
	struct dirs d;
	make_dirs(state, &d);
	int dir = fixture_dir(state);
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	/* Missing subdirectories, and a missing directory where that may be; none at all. */
	assert_int_equal(unlinkat(dir, "a/auth.d", AT_REMOVEDIR), 0);
	d.sources[1].dir = "/nonexistent";
	d.sources[1].optional = true;
	d.sources[2].dir = "";
	assert_int_equal(load(&d, CONFIG_ALL, &c, NULL), 0);
	assert_int_equal(symlinkat("paths.d", dir, "a/auth.d"), 0);
	check_fails(&d, -ENOTDIR,
		    "configuration directory \"%s/auth.d\" is something else (make it a directory; "
		    "symbolic links are not followed)",
		    d.path[0]);
	d.sources[1].optional = false;
	assert_int_equal(unlinkat(dir, "a/auth.d", 0), 0);
	check_fails(
		&d, -ENOENT,
		"configuration directory \"/nonexistent\" is not there (make it, or name another "
		"one)");
	d.sources[1].dir = "/dev/null";
	check_fails(&d, -ENOTDIR,
		    "configuration directory \"/dev/null\": cannot open it: Not a directory");
	/* The directory itself may be a link. */
	assert_int_equal(symlinkat("c", dir, "link"), 0);
	put(state, "c/paths.d/x.json", DATA("/c"));
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%.*s/link", PATH_MAX - 8, fixture_path(state));
	d.sources[1].dir = path;
	config_drop(&c, CONFIG_ALL);
	assert_int_equal(load(&d, CONFIG_ALL, &c, NULL), 0);
	assert_string_equal(c.data, "/c");
}

static void test_limits(void **state)
{
	struct dirs d;
	static char text[CONFIG_FILE_MAX + 1];
	CLEANUP(config_deinit) struct config c;
	make_dirs(state, &d);
	config_init(&c);
	memset(text, ' ', sizeof(text));
	memcpy(text, DATA("/a"), strlen(DATA("/a")));
	fixture_write(state, "a/paths.d/x.json", text, CONFIG_FILE_MAX);
	for (size_t i = 0; i < CONFIG_FILES_MAX; i++) {
		char name[32];
		snprintf(name, sizeof(name), "a/stage1.d/%zu.json", i);
		put(state, name, HEAD("stage1") "\"name\":\"\"}");
	}
	assert_int_equal(load(&d, CONFIG_ALL, &c, NULL), 0);
	put(state, "a/stage1.d/more.json", "{}");
	struct err e = ERR_INIT;
	char want[ERR_TEXT_MAX];
	config_drop(&c, CONFIG_ALL);
	assert_int_equal(load(&d, CONFIG_STAGE1, &c, &e), -E2BIG);
	snprintf(want, sizeof(want),
		 "configuration directory \"%.512s/stage1.d\": it has more than 256 files *.json "
		 "(merge some)",
		 d.path[0]);
	assert_string_equal(e.text, want);
	fixture_write(state, "a/paths.d/x.json", text, CONFIG_FILE_MAX + 1);
	assert_int_equal(load(&d, CONFIG_PATHS, &c, &e), -EFBIG);
	snprintf(
		want, sizeof(want),
		"configuration file \"%.512s/paths.d/x.json\": it has more than 65536 bytes (split "
		"it)",
		d.path[0]);
	assert_string_equal(e.text, want);
}

/* Fills @file with CONFIG_DOMAINS_MAX hosts of their own. */
static void put_hosts(void **state, const char *dir, size_t number)
{
	char name[64];
	cleanup_buf struct buf text;
	buf_init(&text, CONFIG_FILE_MAX);
	buf_puts(
		&text,
		HEAD("auth") "\"type\":\"oauth\",\"credentials\":{\"token\":\"t\"},\"domains\":[\"");
	for (size_t i = 0; i < CONFIG_DOMAINS_MAX; i++)
		buf_printf(&text, "%s%zu-%zu", i ? "\",\"" : "", number, i);
	assert_int_equal(buf_puts(&text, "\"]}"), 0);
	snprintf(name, sizeof(name), "%s/auth.d/%zu.json", dir, number);
	fixture_write(state, name, buf_data(&text), buf_len(&text));
}

static void test_many_hosts(void **state)
{
	struct dirs d;
	CLEANUP(config_deinit) struct config c;
	make_dirs(state, &d);
	for (size_t i = 0; i < AUTHS_MAX / CONFIG_DOMAINS_MAX; i++)
		put_hosts(state, "a", i);
	put_hosts(state, "b", 0);
	config_init(&c);
	assert_int_equal(load(&d, CONFIG_ALL, &c, NULL), 0);
	assert_int_equal(c.auth.n, AUTHS_MAX);
	put(state, "b/auth.d/more.json", TOKEN("more", "t"));
	check_fails(
		&d, -E2BIG,
		"configuration directory \"%s/auth.d\": more than 1024 hosts with those before it "
		"(remove some)",
		d.path[1]);
	put(state, "a/auth.d/more.json", TOKEN("more", "t"));
	check_fails(
		&d, -E2BIG,
		"configuration file \"%s/auth.d/more.json\": auth for domain \"more\" is one more "
		"than 1024 (remove some)",
		d.path[0]);
}

static void collect(const void *ctx, const char *text)
{
	struct strv *sv = *(struct strv *const *)ctx;
	assert_int_equal(strv_add(sv, text), 0);
}

static void test_warning(void **state)
{
	struct dirs d;
	cleanup_strv struct strv said;
	struct strv *to = &said;
	const struct config_warn warn = { .fn = collect, .ctx = &to };
	CLEANUP(config_deinit) struct config c;
	char want[ERR_TEXT_MAX];
	make_dirs(state, &d);
	strv_init(&said, 8);
	config_init(&c);
	put(state, "a/auth.d/open.json", TOKEN("one", "a"));
	put(state, "b/auth.d/private.json", TOKEN("one", "a"));
	put(state, "c/auth.d/behind.json", TOKEN("one", "a"));
	put(state, "a/paths.d/open.json", DATA("/a"));
	int dir = fixture_dir(state);
	assert_int_equal(fchmodat(dir, "a/auth.d/open.json", 0644, 0), 0);
	assert_int_equal(fchmodat(dir, "a/paths.d/open.json", 0644, 0), 0);
	assert_int_equal(fchmodat(dir, "b/auth.d/private.json", 0640, 0), 0);
	assert_int_equal(fchmodat(dir, "c/auth.d/behind.json", 0644, 0), 0);
	assert_int_equal(fchmodat(dir, "c/auth.d", 0750, 0), 0);
	assert_int_equal(config_load(&c, d.sources, 3, CONFIG_ALL, &warn, NULL), 0);
	assert_int_equal(said.n, 1);
	snprintf(want, sizeof(want),
		 "warning: configuration file \"%.512s/auth.d/open.json\" holds credentials and "
		 "everybody may read it (chmod o-r)",
		 d.path[0]);
	assert_string_equal(said.v[0], want);
}

static int load_it(void *ctx)
{
	CLEANUP(config_deinit) struct config c;
	config_init(&c);
	int r = load(ctx, CONFIG_ALL, &c, NULL);
	return r == 0 && (c.auth.n != 2 || !c.data) ? 1 : r;
}

static void test_short_memory(void **state)
{
	struct dirs d;
	make_dirs(state, &d);
	put(state, "a/auth.d/x.json", TOKEN("one", "a"));
	put(state, "b/auth.d/x.json", TOKEN("one", "b"));
	put(state, "b/auth.d/y.json", TOKEN("two", "b"));
	put(state, "c/paths.d/x.json", DATA("/a"));
	for_each_failing_alloc(load_it, &d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_override),     fixture_test(test_parts),
		fixture_test(test_ignored),      fixture_test(test_errors),
		fixture_test(test_places),       fixture_test(test_limits),
		fixture_test(test_many_hosts),   fixture_test(test_warning),
		fixture_test(test_short_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
