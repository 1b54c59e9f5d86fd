/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fixture of a unit test: fails the test if it leaks a descriptor, and gives it a directory of
 * its own that is removed afterwards.
 *
 *	static void test_x(void **state)
 *	{
 *		int dir = fixture_dir(state);
 *		...
 *	}
 *	const struct CMUnitTest tests[] = { fixture_test(test_x) };
 */
#ifndef TESTS_SUPPORT_FIXTURE_H
#define TESTS_SUPPORT_FIXTURE_H

#include <stddef.h>

#include "tests/support/cmocka.h"

/* Registers @fn with cmocka under this fixture. */
#define fixture_test(fn) cmocka_unit_test_setup_teardown(fn, fixture_setup, fixture_teardown)

/*
 * For cmocka: set-up notes which descriptors are open; tear-down removes the directory, prints
 * every descriptor that was opened and not closed since, and returns -1 if there is one.
 */
int fixture_setup(void **state);
int fixture_teardown(void **state);

/* A descriptor of the test's own empty directory, made on first use. The fixture closes it. */
int fixture_dir(void **state);

/* The path of that directory. The fixture keeps ownership. */
const char *fixture_path(void **state);

/* Creates the file @name in that directory with @len bytes of content. */
void fixture_write(void **state, const char *name, const void *data, size_t len);

#endif
