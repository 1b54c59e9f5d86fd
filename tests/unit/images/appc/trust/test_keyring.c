/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/keyring.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/trust/armour.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

#define ARMOUR(body)                                         \
	"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n" body "\n" \
	"-----END PGP PUBLIC KEY BLOCK-----\n"
#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccc"

static char system_dir[PATH_MAX], local_dir[PATH_MAX];

static void set_dirs(void **state)
{
	snprintf(system_dir, sizeof(system_dir), "%.*s/system", PATH_MAX - 16, fixture_path(state));
	snprintf(local_dir, sizeof(local_dir), "%.*s/local", PATH_MAX - 16, fixture_path(state));
}

/* Writes the file NAME below WHERE, "system/root.d" or "local/prefix.d/P". */
static void put(void **state, const char *where, const char *dir, const char *name,
		const char *text)
{
	char path[PATH_MAX];
	set_dirs(state);
	snprintf(path, sizeof(path), "%.*s/%s/trustedkeys/%s", PATH_MAX / 2, fixture_path(state),
		 where, dir);
	cleanup_fd int fd = path_make_dirs(path, 0755);
	assert_int_equal(file_replace_at(fd, name, text, strlen(text), 0644), 0);
}

static int read_for(const char *name, struct keyring *ring, struct err *e)
{
	return keyring_read(system_dir, local_dir, name, ring, e);
}

/* Checks which of the keys A, B and C count for @name: their bodies, "-" for none. */
static void check_keys(const char *name, const char *want)
{
	static const char *const fingerprints[] = { A, B, C };
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	struct err e = ERR_INIT;
	char got[64] = "";
	size_t n = 0;
	if (read_for(name, &ring, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < ARRAY_SIZE(fingerprints); i++) {
		const struct keyring_key *key = keyring_find(&ring, fingerprints[i]);
		size_t len = strlen(got);
		if (key)
			snprintf(got + len, sizeof(got) - len, "%.1s",
				 key->text + key->start +
					 strlen("-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"));
		else
			snprintf(got + len, sizeof(got) - len, "-");
		n += key != NULL;
	}
	assert_string_equal(got, want);
	assert_int_equal(ring.n, n);
}

static void test_nothing(void **state)
{
	set_dirs(state);
	check_keys("example.com", "---");
	check_keys(NULL, "---");
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	assert_int_equal(keyring_read(NULL, NULL, "example.com", &ring, NULL), 0);
	assert_int_equal(ring.n, 0);
}

static void test_prefixes(void **state)
{
	put(state, "system", "root.d", A, ARMOUR("1"));
	put(state, "system", "prefix.d/example.com", B, ARMOUR("2"));
	put(state, "local", "prefix.d/example.com/a/b", C, ARMOUR("3"));
	/* Other names are not for us. */
	put(state, "local", "root.d", "README", "text");
	put(state, "local", "root.d", "." B ".0123456789abcdef", "cut");
	put(state, "local", "prefix.d/example.com/" A, "x", "a directory with the name of a key");
	check_keys(NULL, "1--");
	check_keys("example.org", "1--");
	check_keys("example.com", "12-");
	check_keys("example.com.au", "1--");
	check_keys("example.co", "1--");
	check_keys("example.com/a", "12-");
	check_keys("example.com/a/b", "123");
	check_keys("example.com/a/b/c/d", "123");
	check_keys("example.com/a/bb", "12-");
	check_keys("example.com/b/a", "12-");
}

static void test_masks(void **state)
{
	put(state, "system", "root.d", A, ARMOUR("1"));
	put(state, "system", "prefix.d/one", B, "what is masked may be broken");
	put(state, "local", "prefix.d/one", B, "");
	check_keys("one", "1--");
	put(state, "local", "root.d", A, "");
	check_keys("two", "---");
	/* For a prefix only, and again below that. */
	put(state, "local", "root.d", A, ARMOUR("2"));
	put(state, "local", "prefix.d/one", A, "");
	put(state, "local", "prefix.d/one/more", A, ARMOUR("3"));
	check_keys("two", "2--");
	check_keys("one", "---");
	check_keys("one/less", "---");
	check_keys("one/more", "3--");
	/* Later ones replace earlier ones. */
	put(state, "local", "prefix.d/one", B, ARMOUR("4"));
	check_keys("one", "-4-");
}

static void check_refused(const char *want)
{
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	struct err e = ERR_INIT;
	assert_true(read_for("one/two", &ring, &e) < 0);
	assert_non_null(strstr(e.text, want));
	if (!strstr(e.text, want))
		fail_msg("%s", e.text);
}

static void test_refused(void **state)
{
	int dir = fixture_dir(state);
	put(state, "local", "root.d", A, "text");
	check_refused("local/trustedkeys/root.d/" A "\": it is not an ASCII-armoured public key");
	assert_int_equal(unlinkat(dir, "local/trustedkeys/root.d/" A, 0), 0);
	/* What might be meant for a mask is not passed over. */
	assert_int_equal(symlinkat("/dev/null", dir, "local/trustedkeys/root.d/" A), 0);
	check_refused("local/trustedkeys/root.d/" A
		      "\": it is not a regular file (put the key there, or "
		      "an empty file; links are not followed)");
	assert_int_equal(unlinkat(dir, "local/trustedkeys/root.d/" A, 0), 0);
	assert_int_equal(mkfifoat(dir, "local/trustedkeys/root.d/" A, 0600), 0);
	check_refused("it is not a regular file");
	assert_int_equal(unlinkat(dir, "local/trustedkeys/root.d/" A, 0), 0);
	put(state, "local", "prefix.d/other", A, ARMOUR("1"));
	assert_int_equal(symlinkat("other", dir, "local/trustedkeys/prefix.d/one"), 0);
	check_refused(
		"local/trustedkeys/prefix.d/one\" or one above it is not a directory (make it one; "
		"symbolic links are not followed)");
	check_keys("other", "1--");
	assert_int_equal(unlinkat(dir, "local/trustedkeys/prefix.d/one", 0), 0);
	/* The configuration directory itself may be a link. */
	assert_int_equal(renameat(dir, "local", dir, "moved"), 0);
	assert_int_equal(symlinkat("moved", dir, "local"), 0);
	check_keys("other", "1--");
}

static void check_count(size_t want)
{
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	struct err e = ERR_INIT;
	if (read_for("one", &ring, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(ring.n, want);
}

static void test_limits(void **state)
{
	cleanup_free char *big = malloc(TRUST_KEY_MAX + 2);
	memset(big, '\n', TRUST_KEY_MAX + 1);
	big[TRUST_KEY_MAX + 1] = '\0';
	memcpy(big, ARMOUR("1"), strlen(ARMOUR("1")));
	put(state, "local", "root.d", A, big);
	check_refused("it has more than 1048576 bytes (export the key with less)");
	big[TRUST_KEY_MAX] = '\0';
	put(state, "local", "root.d", A, big);
	check_keys("one", "1--");
	/* Bytes of all. */
	char name[41];
	const unsigned full = KEYRING_BYTES_MAX / TRUST_KEY_MAX;
	for (unsigned i = 1; i <= full; i++) {
		if (i == full)
			check_count(full);
		snprintf(name, sizeof(name), "%040x", i);
		put(state, "local", "root.d", name, big);
	}
	check_refused(
		"the keys that count for one name have more than 16777216 bytes (remove some)");
	/* Keys. */
	for (unsigned i = 1; i <= KEYRING_KEYS_MAX - 1; i++) {
		snprintf(name, sizeof(name), "%040x", i);
		put(state, "local", "root.d", name, ARMOUR("2"));
	}
	check_count(KEYRING_KEYS_MAX);
	put(state, "local", "prefix.d/one", B, ARMOUR("2"));
	check_refused("more than 256 keys count for one name (remove some)");
}

static void test_many_names(void **state)
{
	char name[32];
	for (unsigned i = 1; i < KEYRING_NAMES_MAX - 1; i++) {
		snprintf(name, sizeof(name), "x%u", i);
		put(state, "local", "root.d", name, "");
	}
	check_keys("one", "---"); /* with . and .. */
	put(state, "local", "root.d", "y", "");
	check_refused("local/trustedkeys/root.d\" has more than 4096 names (remove some)");
}

static void test_open_dir(void **state)
{
	int dir = fixture_dir(state);
	struct stat st;
	mode_t mask = umask(077);
	cleanup_fd int made = keyring_open_dir(dir, "a/b/c", true);
	umask(mask);
	assert_true(made >= 0);
	assert_int_equal(fstatat(dir, "a/b", &st, 0), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(symlinkat("a", dir, "link"), 0);
	assert_int_equal(keyring_open_dir(dir, "link/b", true), -ENOTDIR);
	assert_int_equal(keyring_open_dir(dir, "none/b", false), -ENOENT);
	assert_int_equal(keyring_open_dir(dir, "/a", false), -EINVAL);
}

static int read_again(void *ctx)
{
	(void)ctx;
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	return read_for("one/two", &ring, NULL);
}

static void test_allocations(void **state)
{
	put(state, "system", "root.d", A, ARMOUR("1"));
	put(state, "local", "root.d", A, ARMOUR("2"));
	put(state, "local", "prefix.d/one", B, ARMOUR("3"));
	/* vasprintf(3) does without one. */
	for_each_failing_alloc_lenient(read_again, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_nothing),  fixture_test(test_prefixes),
		fixture_test(test_masks),    fixture_test(test_refused),
		fixture_test(test_limits),   fixture_test(test_many_names),
		fixture_test(test_open_dir), fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
