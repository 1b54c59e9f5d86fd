/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/key.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images/appc/trust/keystore.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/appc/trust/keys.h"

static int inspect(const char *file, struct trust_key *key, struct err *e)
{
	size_t len;
	cleanup_free char *text = keys_read(file, &len);
	return trust_key_inspect(text, len, keys_tmp(), key, e);
}

static void check_refused(const char *file, const char *want)
{
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(inspect(file, &key, &e), -EINVAL);
	assert_string_equal(e.text, want);
	keys_check_clean();
}

static void test_identities(void **state)
{
	(void)state;
	cleanup_trust_key struct trust_key alice = TRUST_KEY_INIT;
	cleanup_trust_key struct trust_key many = TRUST_KEY_INIT;
	cleanup_trust_key struct trust_key odd = TRUST_KEY_INIT;
	struct err e = ERR_INIT;
	assert_int_equal(inspect("alice.asc", &alice, &e), 0);
	assert_string_equal(alice.info.fingerprint, keys_fingerprint("alice"));
	assert_int_equal(alice.info.n_identities, 2);
	/* Made within a second, they have no order. */
	size_t project = strcmp(alice.info.identities[1], "Alice of the project") == 0;
	assert_string_equal(alice.info.identities[project], "Alice of the project");
	assert_string_equal(alice.info.identities[1 - project], "alice <alice@example.com>");
	assert_int_equal(inspect("many.asc", &many, &e), 0);
	assert_int_equal(many.info.n_identities, TRUST_IDENTITIES_MAX);
	assert_int_equal(many.info.n_more, 18 - TRUST_IDENTITIES_MAX);
	assert_int_equal(inspect("odd.asc", &odd, &e), 0);
	assert_string_equal(odd.info.identities[0], "odd?31m?desrever <odd@example.com>");
	keys_check_clean();
}

/* What is kept is the armour, whatever stands around it. */
static void test_text(void **state)
{
	(void)state;
	size_t len;
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	cleanup_free char *text = keys_read("carol.asc", &len);
	cleanup_free char *around = NULL;
	assert_true(asprintf(&around, "Our key:\n\n%s\nUse it.\n", text) > 0);
	assert_int_equal(trust_key_inspect(around, strlen(around), keys_tmp(), &key, NULL), 0);
	assert_string_equal(key.info.fingerprint, keys_fingerprint("carol"));
	assert_int_equal(key.len, len - 1); /* without the newline at the end */
	assert_memory_equal(key.text, text, key.len);
}

static void test_refused(void **state)
{
	(void)state;
	static const char several[] =
		"it has an OpenPGP armour that is not one complete public key "
		"(give one key per file)";
	check_refused("expired.asc", "the key is expired (get it again from the publisher, who may "
				     "have extended it)");
	check_refused("revoked.asc", "the key is revoked (ask the publisher for the new one)");
	check_refused("certify.asc", "the key cannot make signatures (give the one that images are "
				     "signed with)");
	check_refused("secret.asc",
		      "it is a private key (export the public one: gpg --armor --export)");
	check_refused("disguised.asc",
		      "it holds a private key (export the public one: gpg --armor --export)");
	check_refused("both.asc", "it holds more than one key (give one key per file)");
	check_refused("alice-armour.sig", several);
	check_refused("file", "it is not an ASCII-armoured public key (export it with gpg --armor "
			      "--export)");
	check_refused("alice.sig",
		      "it is not ASCII-armoured (export it with gpg --armor --export)");
}

static void test_damaged(void **state)
{
	(void)state;
	size_t len;
	struct err e = ERR_INIT;
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	cleanup_free char *text = keys_read("bob.asc", &len);
	text[len / 2] ^= 1;
	assert_int_equal(trust_key_inspect(text, len, keys_tmp(), &key, &e), -EINVAL);
	assert_string_equal(e.text, "gpg finds no valid public key in it (get it again)");
	static const char nothing[] = "-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n"
				      "-----END PGP PUBLIC KEY BLOCK-----\n";
	assert_int_equal(trust_key_inspect(nothing, strlen(nothing), keys_tmp(), &key, &e),
			 -EINVAL);
	assert_string_equal(e.text, "gpg finds no valid public key in it (get it again)");
	keys_check_clean();
}

static void test_without_gpg(void **state)
{
	(void)state;
	struct err e = ERR_INIT;
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	cleanup_free char *path = strdup(getenv("PATH"));
	setenv("PATH", "/nowhere", 1);
	assert_int_equal(inspect("alice.asc", &key, &e), TRUST_E_NO_GPG);
	setenv("PATH", path, 1);
	assert_string_equal(e.text, "no program gpg in PATH, which checks keys and signatures "
				    "(install gpg)");
}

/* In this process; what fails in the child is in test_gpg.c. */
static void test_allocations(void **state)
{
	(void)state;
	size_t len;
	cleanup_free char *text = keys_read("alice.asc", &len);
	for (unsigned long n = 1;; n++) {
		cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
		long before = fault_live_allocs();
		fault_arm(n);
		int r = trust_key_inspect(text, len, keys_tmp(), &key, NULL);
		if (!fault_disarm())
			break;
		assert_true(r < 0);
		assert_int_equal(fault_live_allocs(), before);
		assert_true(n < 100);
	}
	keys_check_clean();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_identities),  fixture_test(test_text),
		fixture_test(test_refused),     fixture_test(test_damaged),
		fixture_test(test_without_gpg), fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, keys_setup, keys_teardown);
}
