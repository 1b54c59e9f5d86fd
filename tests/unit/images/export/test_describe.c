/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/describe.h"

#include <string.h>

#include "images/spec/oci.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

static void make_app(struct pod_app *app)
{
	pod_app_init(app);
	strcpy(app->name, "web");
	strcpy(app->image_name, "Debian_x/Web:12--");
	strcpy(app->user, "www");
	strcpy(app->cwd, "/srv");
	assert_int_equal(strv_add(&app->exec, "/bin/web"), 0);
	assert_int_equal(strv_add(&app->exec, "--x=\"y\""), 0);
	app->n_entrypoint = 1;
	assert_int_equal(strv_add(&app->env, "A=b=c"), 0);
	assert_int_equal(pod_ports_add(&app->ports, &(struct pod_port){ .name = "dns",
									.protocol = PORT_UDP,
									.port = 53,
									.count = 2 }),
			 0);
}

static void test_aci(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	(void)state;
	make_app(&app);
	buf_init(&out, DESCRIBE_MAX);
	assert_int_equal(describe_aci(&app, &out, &e), 0);
	cleanup_free char *text = buf_take_string(&out);
	assert_string_equal(
		text,
		"{\"acKind\":\"ImageManifest\",\"acVersion\":\"0.8.11\",\"name\":\"debian_x/web\","
		"\"labels\":[{\"name\":\"version\",\"value\":\"12--\"},{\"name\":\"os\",\"value\":\"linux\"},{\"name\":\"arch\",\"value\":\"amd64\"}],"
		"\"app\":{\"exec\":[\"/bin/web\",\"--x=\\\"y\\\"\"],\"user\":\"www\",\"group\":\"www\","
		"\"environment\":[{\"name\":\"A\",\"value\":\"b=c\"}],\"ports\":[{\"name\":\"dns\",\"protocol\":\"udp\",\"port\":53,\"count\":2}],\"workingDirectory\":\"/srv\"}}");
}

/* The name of last resort is the app's. */
static void test_aci_name(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	(void)state;
	make_app(&app);
	strcpy(app.image_name, "--_:");
	app.user[0] = '\0';
	buf_init(&out, DESCRIBE_MAX);
	assert_int_equal(describe_aci(&app, &out, &e), 0);
	cleanup_free char *text = buf_take_string(&out);
	assert_non_null(strstr(text, "\"name\":\"web\""));
	assert_non_null(strstr(text, "\"user\":\"0\",\"group\":\"0\""));
}

/* What the image store's parsers make of the documents. */
static void test_oci(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	CLEANUP(oci_config_deinit) struct oci_config config;
	CLEANUP(oci_manifest_deinit) struct oci_manifest manifest = OCI_MANIFEST_INIT;
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	struct blob_ref a = { .size = 1 }, b = { .size = UINT64_C(1) << 40 };
	(void)state;
	make_app(&app);
	strcpy(app.group, "tape");
	assert_int_equal(isolators_set(&app.isolators, ISOLATOR_STOP_SIGNAL, "QUIT", NULL), 0);
	buf_init(&out, DESCRIBE_MAX);
	digest_of("a", 1, &a.digest);
	digest_of("b", 1, &b.digest);
	assert_int_equal(describe_oci_config(&app, &a.digest, &out, &e), 0);
	oci_config_init(&config);
	assert_int_equal(oci_config_parse(buf_data(&out), buf_len(&out), &config, &e), 0);
	assert_string_equal(config.user, "www:tape");
	assert_string_equal(config.working_dir, "/srv");
	assert_int_equal(config.stop_signal, 3);
	assert_int_equal(config.entrypoint.n, 1);
	assert_string_equal(config.entrypoint.v[0], "/bin/web");
	assert_int_equal(config.cmd.n, 1);
	assert_string_equal(config.cmd.v[0], "--x=\"y\"");
	assert_string_equal(config.env.v[0], "A=b=c");
	assert_true(digest_equal(&config.diff_ids[0], &a.digest));
	assert_string_equal(config.platform.os, "linux");
	buf_consume(&out, buf_len(&out));
	assert_int_equal(describe_oci_manifest(&a, &b, &out, &e), 0);
	assert_int_equal(oci_manifest_parse(buf_data(&out), buf_len(&out), &manifest, &e), 0);
	assert_true(digest_equal(&manifest.layers[0].digest, &b.digest));
	assert_int_equal(manifest.layers[0].size, b.size);
	buf_consume(&out, buf_len(&out));
	assert_int_equal(describe_oci_index(&a, NULL, "web", &out, &e), 0);
	assert_int_equal(oci_index_parse(buf_data(&out), buf_len(&out), &index, &e), 0);
	assert_string_equal(index.manifests[0].tag, "web");
	assert_int_equal(oci_layout_parse(DESCRIBE_OCI_LAYOUT, strlen(DESCRIBE_OCI_LAYOUT), &e), 0);
}

/* A list that would be empty is left out. */
static void test_oci_command(void **state)
{
	(void)state;
	for (size_t n = 0; n <= 2; n++) {
		CLEANUP(pod_app_deinit) struct pod_app app;
		cleanup_buf struct buf out;
		struct err e = ERR_INIT;
		struct digest diff_id;
		make_app(&app);
		app.n_entrypoint = n;
		digest_of("a", 1, &diff_id);
		buf_init(&out, DESCRIBE_MAX);
		assert_int_equal(describe_oci_config(&app, &diff_id, &out, &e), 0);
		cleanup_free char *text = buf_take_string(&out);
		assert_int_equal(strstr(text, "\"Entrypoint\":[\"/bin/web\"") != NULL, n > 0);
		assert_int_equal(strstr(text, "\"Cmd\":[") != NULL, n < 2);
		assert_non_null(strstr(text, "\"ExposedPorts\":{\"53/udp\":{},\"54/udp\":{}}"));
	}
}

static void test_not_utf8(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	cleanup_buf struct buf out;
	struct err e = ERR_INIT;
	(void)state;
	make_app(&app);
	buf_init(&out, DESCRIBE_MAX);
	assert_int_equal(strv_add(&app.env, "B=\xff"), 0);
	assert_int_equal(describe_aci(&app, &out, &e), -EILSEQ);
	assert_non_null(strstr(e.text, "not UTF-8"));
}

static int describe_all(void *ctx)
{
	cleanup_buf struct buf out;
	struct blob_ref blob = { .size = 1 };
	buf_init(&out, DESCRIBE_MAX);
	digest_of("a", 1, &blob.digest);
	int r = describe_aci(ctx, &out, NULL);
	if (r == 0)
		r = describe_oci_config(ctx, &blob.digest, &out, NULL);
	if (r == 0)
		r = describe_oci_manifest(&blob, &blob, &out, NULL);
	return r == 0 ? describe_oci_index(&blob, "type", "web", &out, NULL) : r;
}

static void test_memory(void **state)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	(void)state;
	make_app(&app);
	for_each_failing_alloc(describe_all, &app);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_aci),      fixture_test(test_aci_name),
		fixture_test(test_oci),      fixture_test(test_oci_command),
		fixture_test(test_not_utf8), fixture_test(test_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
