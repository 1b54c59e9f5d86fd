/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/used_images.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host/pod/pod_stage1.h"
#include "images/store/list.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"
#include "tests/unit/images/store/support.h"

#define MANIFEST                                                                            \
	"{\"acVersion\":\"0.8.11\",\"acKind\":\"PodManifest\",\"apps\":[{\"name\":\"web\"," \
	"\"image\":{\"id\":\"%s\"},\"app\":{\"exec\":[\"a\"]}}]}"

/*
 * A pod of one app with the image @app, made with the stage1 that was the image @stage1 ("": none).
 */
static void put_pod(struct pods *ps, const char *app, const char *stage1)
{
	static struct stage1 s = { .dir = "/s", .version = 1 };
	cleanup_pod struct pod p = POD_INIT;
	struct err e = ERR_INIT;
	char text[1024];
	int n = snprintf(text, sizeof(text), MANIFEST, app);
	snprintf(s.image, sizeof(s.image), "%s", stage1);
	assert_int_equal(pod_create(ps, false, &p, &e), 0);
	assert_int_equal(file_write_at(p.fd, POD_FILE_MANIFEST, text, (size_t)n, 0600), 0);
	assert_int_equal(pod_stage1_write(&p, &s, &e), 0);
	assert_int_equal(pod_start(ps, &p, &e), 0);
}

static size_t count(const struct used_images *used, const struct digest *id)
{
	size_t n = 0;
	for (size_t i = 0; i < used->n; i++)
		n += digest_equal(&used->ids[i], id);
	return n;
}

static void test_used(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	cleanup_pods struct pods *ps = NULL;
	CLEANUP(used_images_deinit) struct used_images used = { .store = s };
	struct digest app, stage1, unused;
	char app_id[IMAGE_ID_LEN + 1], stage1_id[IMAGE_ID_LEN + 1];
	struct err e = ERR_INIT;
	add_image(s, "app", "app", &app);
	add_image(s, "stage1", "stage1", &stage1);
	add_image(s, "unused", "unused", &unused);
	store_list_id(s, &app, app_id);
	store_list_id(s, &stage1, stage1_id);
	assert_int_equal(pods_open(fixture_dir(state), true, &ps, &e), 0);
	put_pod(ps, app_id, stage1_id);
	for (size_t i = 0; i < 70; i++) /* more than one allocation has room for */
		put_pod(ps, app_id, "");
	put_pod(ps, "sha512-0000000000000000", ""); /* removed from the store, as it may be */
	put_pod(ps, "no ID at all", "");
	assert_int_equal(pods_used_images(ps, &used, &e), 0);
	assert_int_equal(count(&used, &app), 71);
	assert_int_equal(count(&used, &stage1), 1);
	assert_int_equal(count(&used, &unused), 0);
	assert_int_equal(used.n, 72);
}

static void test_no_pods(void **state)
{
	cleanup_store struct store *s = must_open_store(state);
	cleanup_pods struct pods *ps = NULL;
	CLEANUP(used_images_deinit) struct used_images used = { .store = s };
	struct err e = ERR_INIT;
	assert_int_equal(pods_open(fixture_dir(state), false, &ps, &e), 0);
	assert_int_equal(pods_used_images(ps, &used, &e), 0);
	assert_int_equal(used.n, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_used),
		fixture_test(test_no_pods),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
