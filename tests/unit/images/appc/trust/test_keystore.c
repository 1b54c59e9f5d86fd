/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/keystore.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/appc/trust/keys.h"

/* Of the test's directory, "system" and "local". */
static const struct trust_dirs *dirs_of(void **state)
{
	static char system_dir[PATH_MAX], local_dir[PATH_MAX];
	static const struct trust_dirs dirs = { system_dir, local_dir };
	snprintf(system_dir, PATH_MAX, "%.*s/system", PATH_MAX - 16, fixture_path(state));
	snprintf(local_dir, PATH_MAX, "%.*s/local", PATH_MAX - 16, fixture_path(state));
	return &dirs;
}

static void add(const struct trust_dirs *dirs, const char *prefix, const char *name)
{
	char file[NAME_MAX], path[PATH_MAX];
	size_t len;
	struct err e = ERR_INIT;
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	snprintf(file, sizeof(file), "%s.asc", name);
	cleanup_free char *text = keys_read(file, &len);
	assert_int_equal(trust_key_inspect(text, len, keys_tmp(), &key, &e), 0);
	assert_int_equal(keystore_add(dirs->local, prefix, &key, path, &e), 0);
}

/* Puts the content of NAME.asc into root.d by hand, under the fingerprint of the key AS. */
static void put(void **state, const char *name, const char *as)
{
	char file[NAME_MAX], path[PATH_MAX];
	size_t len;
	snprintf(file, sizeof(file), "%s.asc", name);
	snprintf(path, sizeof(path), "%.*s/system/trustedkeys/root.d", PATH_MAX / 2,
		 fixture_path(state));
	cleanup_free char *text = keys_read(file, &len);
	cleanup_fd int dir = path_make_dirs(path, 0755);
	assert_int_equal(file_replace_at(dir, keys_fingerprint(as), text, len, 0644), 0);
}

static int verify_fds(const struct trust_dirs *dirs, const char *image, int content, int signature,
		      struct trust_verdict *ret, struct err *e)
{
	*e = ERR_INIT;
	int r = keystore_verify(dirs, image, content, signature, keys_tmp(), ret, e);
	keys_check_clean();
	assert_int_equal(r != 0, e->text[0] != '\0');
	return r;
}

static int verify(const struct trust_dirs *dirs, const char *image, const char *signature,
		  struct trust_verdict *ret, struct err *e)
{
	cleanup_fd int content = keys_open("file");
	cleanup_fd int fd = keys_open(signature);
	/* Their offsets do not count and do not change. */
	assert_int_equal(lseek(content, 3, SEEK_SET), 3);
	assert_int_equal(lseek(fd, 5, SEEK_SET), 5);
	int r = verify_fds(dirs, image, content, fd, ret, e);
	assert_int_equal(lseek(content, 0, SEEK_CUR), 3);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), 5);
	return r;
}

static void check_good(const struct trust_dirs *dirs, const char *image, const char *signature,
		       const char *signer)
{
	struct trust_verdict verdict;
	struct err e;
	if (verify(dirs, image, signature, &verdict, &e) != 0)
		fail_msg("%s: %s", signature, e.text);
	assert_string_equal(verdict.key.fingerprint, keys_fingerprint(signer));
}

static void check_refused(const struct trust_dirs *dirs, const char *image, const char *signature,
			  int code, const char *want)
{
	struct trust_verdict verdict;
	struct err e;
	int r = verify(dirs, image, signature, &verdict, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%s: %d, %s", signature, r, e.text);
}

static void test_good(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	struct trust_verdict verdict;
	struct err e;
	add(dirs, NULL, "alice");
	add(dirs, NULL, "bob");
	add(dirs, NULL, "carol");
	check_good(dirs, NULL, "alice.sig", "alice");
	check_good(dirs, "example.com/a", "alice-armour.sig", "alice");
	check_good(dirs, NULL, "bob.sig", "bob");
	check_good(dirs, NULL, "sha224.sig", "bob");
	check_good(dirs, NULL, "sha384.sig", "bob");
	check_good(dirs, NULL, "sha512.sig", "bob");
	check_good(dirs, NULL, "two.sig", "alice");
	/* By a subkey. */
	assert_int_equal(verify(dirs, NULL, "carol.sig", &verdict, &e), 0);
	assert_string_equal(verdict.key.fingerprint, keys_fingerprint("carol"));
	assert_string_not_equal(verdict.signer, verdict.key.fingerprint);
	assert_true(trust_is_fingerprint(verdict.signer));
	assert_int_equal(verdict.key.n_identities, 1);
	assert_string_equal(verdict.key.identities[0], "carol <carol@example.com>");
}

static void test_prefixes(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	static const char unknown[] = "openpgp: signature made by unknown entity";
	check_refused(
		dirs, "example.com/a", "alice.sig", TRUST_E_NO_KEYS,
		"no key is trusted for \"example.com/a\": openpgp: signature made by unknown "
		"entity (run husk trust --prefix=\"example.com/a\" with the publisher's key)");
	check_refused(dirs, NULL, "alice.sig", TRUST_E_NO_KEYS,
		      "no key is trusted for all names: openpgp: signature made by unknown entity "
		      "(run husk trust --root with the publisher's key)");
	add(dirs, "example.com", "alice");
	add(dirs, "example.com/team", "bob");
	check_good(dirs, "example.com", "alice.sig", "alice");
	check_good(dirs, "example.com/team/app", "alice.sig", "alice");
	check_good(dirs, "example.com/team/app", "bob.sig", "bob");
	check_refused(dirs, "example.com/app", "bob.sig", TRUST_E_UNKNOWN, unknown);
	check_refused(dirs, "example.org", "alice.sig", TRUST_E_NO_KEYS, unknown);
	check_refused(dirs, NULL, "alice.sig", TRUST_E_NO_KEYS, unknown);
	check_refused(dirs, "example.com/../x", "alice.sig", -EINVAL, "the name of the image");
}

static void test_refused(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	add(dirs, NULL, "bob");
	check_refused(dirs, NULL, "alice.sig", TRUST_E_UNKNOWN,
		      "openpgp: signature made by unknown entity, key ");
	check_refused(dirs, NULL, "bob-other.sig", TRUST_E_BAD,
		      "the content is not what was signed (get both again)");
	check_refused(dirs, NULL, "sha1.sig", TRUST_E_WEAK, "uses a digest that can be forged");
	check_refused(dirs, NULL, "md5.sig", TRUST_E_WEAK, "uses a digest that can be forged");
	check_refused(dirs, NULL, "ripemd160.sig", TRUST_E_WEAK,
		      "uses a digest that can be forged");
	check_refused(dirs, NULL, "text.sig", TRUST_E_TYPE,
		      "not a detached signature over binary content");
	check_refused(dirs, NULL, "inline.sig", TRUST_E_TYPE, "not a detached signature");
	check_refused(dirs, NULL, "clear.sig", TRUST_E_TYPE, "not a detached signature");
	check_refused(dirs, NULL, "sig-expired.sig", TRUST_E_EXPIRED, "expired");
	check_refused(dirs, NULL, "file", TRUST_E_MALFORMED,
		      "gpg finds no signature that it understands (get it again)");
	check_refused(dirs, NULL, "bob.asc", TRUST_E_MALFORMED,
		      "gpg finds no signature that it understands (get it again)");
}

/* Keys that trust refuses may get into the keystore by hand, or go bad there. */
static void test_keys_gone_bad(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	put(state, "expired", "expired");
	put(state, "revoked", "revoked");
	check_refused(dirs, NULL, "expired.sig", TRUST_E_EXPIRED, "or that key is expired");
	check_refused(dirs, NULL, "revoked.sig", TRUST_E_REVOKED, "which is revoked");
	put(state, "alice", "bob");
	check_refused(dirs, NULL, "alice.sig", -EINVAL, "but no file is named so");
	put(state, "both", "bob");
	check_refused(dirs, NULL, "alice.sig", -EINVAL, "but no file is named so");
	put(state, "both", "alice"); /* each of them is in a file of its name */
	check_good(dirs, NULL, "alice.sig", "alice");
	put(state, "bob", "alice");
	put(state, "bob", "bob");
	check_refused(dirs, NULL, "bob.sig", -EINVAL, "gpg finds no valid key of that fingerprint");
}

static void test_several(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	add(dirs, "one", "alice");
	add(dirs, "both", "alice");
	add(dirs, "both", "bob");
	/* One of a stranger does not count; a bad one by a trusted key does. */
	check_good(dirs, "one", "two.sig", "alice");
	check_good(dirs, "one", "good-and-bad.sig", "alice");
	check_refused(dirs, "both", "good-and-bad.sig", TRUST_E_BAD, "bad signature by key");
	check_good(dirs, "one", "sixteen.sig", "alice");
	check_refused(dirs, "one", "seventeen.sig", TRUST_E_MALFORMED,
		      "more than 16 signatures in one file (give fewer)");
}

static void test_masked(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	put(state, "alice", "alice");
	check_good(dirs, "example.com", "alice.sig", "alice");
	char path[PATH_MAX];
	snprintf(path, sizeof(path), "%.*s/local/trustedkeys/root.d", PATH_MAX / 2,
		 fixture_path(state));
	cleanup_fd int dir = path_make_dirs(path, 0755);
	assert_int_equal(file_replace_at(dir, keys_fingerprint("alice"), "", 0, 0644), 0);
	check_refused(dirs, "example.com", "alice.sig", TRUST_E_NO_KEYS, "unknown entity");
	add(dirs, NULL, "alice"); /* who adds it wants it */
	check_good(dirs, "example.com", "alice.sig", "alice");
}

static void test_added_file(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	char path[PATH_MAX], want[PATH_MAX];
	struct stat st;
	size_t len;
	cleanup_free char *text = keys_read("bob.asc", &len);
	assert_int_equal(trust_key_inspect(text, len, keys_tmp(), &key, NULL), 0);
	mode_t mask = umask(077);
	assert_int_equal(keystore_add(dirs->local, "example.com/a", &key, path, NULL), 0);
	umask(mask);
	snprintf(want, sizeof(want), "%.*s/local/trustedkeys/prefix.d/example.com/a/%s",
		 PATH_MAX / 2, fixture_path(state), keys_fingerprint("bob"));
	assert_string_equal(path, want);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFREG | 0644);
	assert_int_equal(st.st_size, key.len);
	*strrchr(path, '/') = '\0';
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
}

static void test_not_added(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	struct trust_key key = { .text = (char[]){ "x" }, .len = 1 };
	char path[PATH_MAX];
	struct err e = ERR_INIT;
	str_copy(key.info.fingerprint, sizeof(key.info.fingerprint), keys_fingerprint("bob"));
	assert_int_equal(keystore_add(dirs->local, "../x", &key, path, &e), -EINVAL);
	assert_int_equal(mkdirat(fixture_dir(state), "local", 0755), 0);
	assert_int_equal(symlinkat("/", fixture_dir(state), "local/trustedkeys"), 0);
	assert_int_equal(keystore_add(dirs->local, NULL, &key, path, &e), -ENOTDIR);
	assert_non_null(strstr(e.text,
			       "something on the way is not a directory (make it one; symbolic "
			       "links are not followed)"));
	assert_int_equal(keystore_add("", NULL, &key, path, &e), -EINVAL);
	assert_string_equal(e.text,
			    "no local configuration directory, which keys are added to (choose "
			    "one with --local-config)");
}

/* At the limit, with what gpg skips in front of the armour, and one byte beyond. */
static void test_signature_size(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	struct trust_verdict verdict;
	struct err e;
	size_t len;
	add(dirs, NULL, "alice");
	cleanup_free char *text = keys_read("alice-armour.sig", &len);
	for (size_t over = 0; over <= 1; over++) {
		cleanup_fd int content = keys_open("file");
		cleanup_fd int fd = memfd_create("signature", MFD_CLOEXEC);
		size_t pad = TRUST_SIGNATURE_MAX + over - len;
		cleanup_free char *all = malloc(pad + len);
		memset(all, '\n', pad);
		memcpy(all + pad, text, len);
		assert_int_equal(fd_write_all(fd, all, pad + len), 0);
		int r = verify_fds(dirs, NULL, content, fd, &verdict, &e);
		assert_int_equal(r, over ? TRUST_E_MALFORMED : 0);
	}
	assert_string_equal(e.text,
			    "the signature has more than 65536 bytes (give a detached one: gpg "
			    "--detach-sign)");
}

static void test_unreadable(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	struct trust_verdict verdict;
	struct err e;
	add(dirs, NULL, "alice");
	cleanup_fd int signature = keys_open("alice.sig");
	cleanup_fd int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(verify_fds(dirs, NULL, dir, signature, &verdict, &e), -EISDIR);
	assert_string_equal(e.text, "cannot read the signed file: Is a directory");
	assert_int_equal(verify_fds(dirs, NULL, signature, dir, &verdict, &e), -EISDIR);
	assert_string_equal(e.text, "cannot read the signature: Is a directory");
	/* Nothing is a content, too, just not the one that was signed. */
	cleanup_fd int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(verify_fds(dirs, NULL, empty, signature, &verdict, &e), TRUST_E_BAD);
	assert_int_equal(verify_fds(dirs, NULL, signature, empty, &verdict, &e), TRUST_E_MALFORMED);
}

static void test_allocations(void **state)
{
	const struct trust_dirs *dirs = dirs_of(state);
	add(dirs, NULL, "alice");
	for (unsigned long n = 1;; n++) {
		cleanup_fd int content = keys_open("file");
		cleanup_fd int signature = keys_open("alice.sig");
		struct trust_verdict verdict;
		long before = fault_live_allocs();
		fault_arm(n);
		int r = keystore_verify(dirs, NULL, content, signature, keys_tmp(), &verdict, NULL);
		if (!fault_disarm())
			break;
		assert_true(r <= 0); /* vasprintf(3) does without one */
		assert_int_equal(fault_live_allocs(), before);
		assert_true(n < 100);
	}
	keys_check_clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),           fixture_test(test_prefixes),
		fixture_test(test_refused),        fixture_test(test_keys_gone_bad),
		fixture_test(test_several),        fixture_test(test_masked),
		fixture_test(test_added_file),     fixture_test(test_not_added),
		fixture_test(test_signature_size), fixture_test(test_unreadable),
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, keys_setup, keys_teardown);
}
