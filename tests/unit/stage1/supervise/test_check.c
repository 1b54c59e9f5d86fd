/* SPDX-License-Identifier: Apache-2.0 */
/* What the options ask a flavor for, which may refuse it before a pod is made. */
#include "stage1/supervise/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "tests/support/fake_backend.h"
#include "tests/support/fixture.h"

static struct backend_pod pod;
static struct backend_wishes asked; /* by the last call */
static int n_asked, answer;

static struct backend_pod *create(void)
{
	return &pod;
}

static struct backend_pod *create_none(void)
{
	return NULL;
}

static int check(struct backend_pod *p, const struct backend_wishes *wishes, struct err *e)
{
	assert_ptr_equal(p, &pod);
	asked = *wishes;
	n_asked++;
	return answer < 0 ? err_set(e, answer, "not here") : 0;
}

/*
 * The exit status with @option and, if that is not of the network, none; what is said is in @told.
 */
static int ask_of(void **state, const struct backend *backend, const char *option, char told[256])
{
	char name[] = "check", none[] = "--net=none", copy[64];
	bool is_net = option && strncmp(option, "--net", 5) == 0;
	char *argv[] = { name, is_net ? copy : none, option && !is_net ? copy : NULL, NULL };
	size_t len = 0;
	snprintf(copy, sizeof(copy), "%s", option ? option : "");
	int saved = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	cleanup_fd int file =
		openat(fixture_dir(state), "told", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(saved >= 0 && file >= 0);
	assert_true(dup2(file, STDERR_FILENO) >= 0);
	int status = check_options(backend, argv[2] ? 3 : 2, argv);
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	fd_close(saved);
	assert_int_equal(lseek(file, 0, SEEK_SET), 0);
	assert_int_equal(fd_read_full(file, told, 255, &len), 0);
	told[len] = '\0';
	return status;
}

static struct backend make_backend(void)
{
	struct backend backend = fake_backend;
	backend.in_netns = true;
	backend.create = create;
	backend.check = check;
	n_asked = answer = 0;
	return backend;
}

/* Each option alone: the flavor hears of that, and of nothing else. */
static void test_wishes(void **state)
{
	static const struct {
		const char *option;
		struct backend_wishes wishes;
		bool needs_root;
	} cases[] = {
		{ NULL, { 0 }, false },
		{ "--host-volumes", { .host_volumes = true }, false },
		{ "--block-volumes", { .block_volumes = true }, false },
		{ "--disable-paths", { .open_paths = true }, false },
		{ "--net=host", { .shares_net = true }, false },
		{ "--netns=/run/netns/a", { .shares_net = true }, true },
	};
	const struct backend backend = make_backend();
	char told[256];
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct backend_wishes *want = &cases[i].wishes;
		if (cases[i].needs_root && geteuid() != 0)
			continue;
		assert_int_equal(ask_of(state, &backend, cases[i].option, told), 0);
		assert_string_equal(told, "");
		assert_int_equal(asked.host_volumes, want->host_volumes);
		assert_int_equal(asked.block_volumes, want->block_volumes);
		assert_int_equal(asked.open_paths, want->open_paths);
		assert_int_equal(asked.shares_net, want->shares_net);
	}
}

/* One line says why not; the flavor is not asked for what is wrong anyway. */
static void test_refused(void **state)
{
	struct backend backend = make_backend();
	char told[256];
	answer = -EOPNOTSUPP;
	assert_int_equal(ask_of(state, &backend, NULL, told), EXIT_HUSK_FAILURE);
	assert_string_equal(told, "stage1: check: not here\n");
	assert_int_equal(n_asked, 1);
	assert_int_equal(ask_of(state, &backend, "--colour=bad", told), EXIT_HUSK_FAILURE);
	assert_string_equal(told, "stage1: check: --colour=bad is bad\n");
	assert_int_equal(ask_of(state, &backend, "--unknown", told), EXIT_HUSK_FAILURE);
	backend.in_netns = false;
	assert_int_equal(ask_of(state, &backend, "--net=host", told), EXIT_HUSK_FAILURE);
	assert_non_null(strstr(told, "flavor fake requires private network configuration"));
	backend.create = create_none;
	assert_int_equal(ask_of(state, &backend, NULL, told), EXIT_HUSK_FAILURE);
	assert_string_equal(told, "stage1: check: pod: Cannot allocate memory\n");
	assert_int_equal(n_asked, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_wishes),
		fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
