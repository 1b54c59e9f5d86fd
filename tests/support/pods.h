/* SPDX-License-Identifier: Apache-2.0 */
/* Pod manifests for tests of plans. */
#ifndef TESTS_SUPPORT_PODS_H
#define TESTS_SUPPORT_PODS_H

#include <stdio.h>

#include "lib/wire/pod_manifest.h"
#include "tests/support/cmocka.h"

/* Adds an app; @odd goes into every text of it but its name. */
static inline void pod_add(struct pod_manifest *pod, const char *name, const char *odd)
{
	struct pod_app app;

	pod_app_init(&app);
	assert_int_equal(str_copy(app.name, sizeof(app.name), name), 0);
	assert_int_equal(str_copy(app.image_name, sizeof(app.image_name), odd), 0);
	assert_int_equal(str_copy(app.cwd, sizeof(app.cwd), odd), 0);
	assert_int_equal(str_copy(app.user, sizeof(app.user), odd), 0);
	assert_int_equal(str_copy(app.group, sizeof(app.group), odd), 0);
	assert_int_equal(strv_add(&app.exec, odd), 0);
	assert_int_equal(strv_addf(&app.env, "NAME=%s", odd), 0);
	assert_int_equal(pod_manifest_add(pod, &app), 0);
}

/* A pod of @n apps named app0, app1, ... */
static inline void pod_make(struct pod_manifest *pod, size_t n, const char *odd)
{
	pod_manifest_init(pod);
	for (size_t i = 0; i < n; i++) {
		char name[32];

		snprintf(name, sizeof(name), "app%zu", i);
		pod_add(pod, name, odd);
	}
}

#endif
