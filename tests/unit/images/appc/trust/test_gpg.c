/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/gpg.h"

#include <stdlib.h>
#include <string.h>

#include "images/appc/trust/worker.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/appc/trust/keys.h"

/*
 * More allocations than a verification makes; those that fail are each one at the beginning, then
 * one of ever more, since each run starts gpg several times.
 */
#define ALLOCATIONS_MAX 20000

struct attempt {
	struct gpg_home home;
	struct keyring ring;
	int content;
	char *signature;
	size_t signature_len;
	unsigned long n; /* which allocation fails */
};

struct outcome {
	int r;
	bool failed; /* an allocation did */
	struct trust_verdict verdict;
};

static int verify_once(void *ctx, void *result, struct err *e)
{
	struct attempt *a = ctx;
	struct outcome *o = result;
	fault_arm(a->n);
	o->r = gpg_verify(&a->home, &a->ring, a->content, a->signature, a->signature_len,
			  &o->verdict, e);
	o->failed = fault_disarm();
	return 0;
}

static void make_ring(struct keyring *ring)
{
	ring->v = calloc(1, sizeof(*ring->v));
	ring->n = 1;
	str_copy(ring->v->fingerprint, sizeof(ring->v->fingerprint), keys_fingerprint("alice"));
	ring->v->path = strdup("alice");
	ring->v->text = keys_read("alice.asc", &ring->v->len);
}

/* Nothing is accepted by mistake if memory is short in GPGME, whose process may die of it. */
static void test_allocations(void **state)
{
	(void)state;
	struct attempt a = { .home = GPG_HOME_INIT, .content = keys_open("file") };
	cleanup_fd int content = a.content;
	(void)content; /* freed at the end */
	make_ring(&a.ring);
	a.signature = keys_read("alice.sig", &a.signature_len);
	cleanup_free char *signature = a.signature;
	(void)signature; /* freed at the end */
	size_t refused = 0;
	bool more = true;
	for (a.n = 1; more && a.n < ALLOCATIONS_MAX; a.n += 1 + a.n / 4) {
		const struct worker_plan plan = { .fn = verify_once,
						  .ctx = &a,
						  .home = a.home.path,
						  .fds = &a.content,
						  .n_fds = 1 };
		struct outcome o = { .failed = true };
		assert_int_equal(gpg_home_make(keys_tmp(), &a.home, NULL), 0);
		int r = worker_run(&plan, &o, sizeof(o), NULL);
		gpg_home_remove(&a.home);
		keys_check_clean();
		more = r < 0 || o.failed;
		refused += r < 0 || o.r != 0;
		if (r == 0 && o.r == 0)
			assert_string_equal(o.verdict.signer, keys_fingerprint("alice"));
	}
	assert_false(more);
	assert_true(refused > 0);
	keyring_deinit(&a.ring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_allocations),
	};
	return cmocka_run_group_tests(tests, keys_setup, keys_teardown);
}
