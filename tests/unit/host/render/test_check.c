/* SPDX-License-Identifier: Apache-2.0 */
#include "host/render/render.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "host/image/oci.h"
#include "lib/os/fd.h"
#include "tests/support/fixture.h"
#include "tests/unit/host/render/layers.h"

#define BYTES_MAX ((uint64_t)1 << 30)

static const char *const lines[] = { "d d", "f d/f text=content", NULL };

/* One layer in memory and what its digests are. */
struct sample {
	struct blob tar;
	struct blob stored;
	struct render_layer layer;
};

static void sample_init(struct sample *s, const char *filter, enum layer_kind kind)
{
	*s = (struct sample){ .layer = { .kind = kind, .span = SPAN_INIT, .has_blob = true } };
	layers_make(lines, "pax", &s->tar);
	if (filter)
		layers_compress(&s->tar, filter, &s->stored);
	const struct blob *b = filter ? &s->stored : &s->tar;
	layers_span(b->data, b->len, &s->layer.span);
	digest_of(b->data, b->len, &s->layer.blob);
	digest_of(s->tar.data, s->tar.len, &s->layer.diff_id);
}

static void sample_deinit(struct sample *s)
{
	blob_deinit(&s->tar);
	blob_deinit(&s->stored);
	span_deinit(&s->layer.span);
}

static int check(const struct render_layer *layers, size_t n, uint64_t bytes_max, struct err *e)
{
	const struct render_job job = {
		.layers = layers,
		.n_layers = n,
		.out = -EBADF,
		.where = "nowhere",
		.bytes_max = bytes_max,
	};
	*e = ERR_INIT;
	int r = render_check_confined(&job, e);
	assert_int_equal(r < 0, e->text[0] != '\0');
	return r;
}

static void check_fails(const struct render_layer *layers, size_t n, uint64_t bytes_max, int code,
			const char *want)
{
	struct err e;
	assert_int_equal(check(layers, n, bytes_max, &e), code);
	if (!strstr(e.text, want))
		fail_msg("\"%s\" is not in \"%s\"", want, e.text);
}

/* Each compression that a layer of its kind may have. */
static void test_good(void **state)
{
	static const struct {
		const char *filter;
		enum layer_kind kind;
	} cases[] = {
		{ NULL, LAYER_OCI },     { "gzip", LAYER_OCI }, { "zstd", LAYER_OCI },
		{ NULL, LAYER_PLAIN },   { "xz", LAYER_PLAIN }, { "bzip2", LAYER_PLAIN },
		{ "gzip", LAYER_PLAIN },
	};
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(sample_deinit) struct sample s;
		struct err e;
		sample_init(&s, cases[i].filter, cases[i].kind);
		if (check(&s.layer, 1, BYTES_MAX, &e) < 0)
			fail_msg("%s", e.text);
		/* Twice, as the descriptor's offset does not count. */
		assert_int_equal(check(&s.layer, 1, BYTES_MAX, &e), 0);
	}
}

/* Either digest is enough; a blob whose digest nobody knows is only what its content says. */
static void test_mismatch(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	struct digest right;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	right = s.layer.blob;
	digest_of("wrong", 5, &s.layer.blob);
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "layer 1 of 1 (sha256:");
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "): digest mismatch: it is sha256:");
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "(fetch the image again)");
	s.layer.has_blob = false;
	assert_int_equal(check(&s.layer, 1, BYTES_MAX, &e), 0);
	s.layer.has_blob = true;
	s.layer.blob = right;
	digest_of("wrong", 5, &s.layer.diff_id);
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "diff_id mismatch");
	s.layer.has_blob = false;
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "diff_id mismatch");
}

/* The second of two is named. */
static void test_which(void **state)
{
	CLEANUP(sample_deinit) struct sample a;
	CLEANUP(sample_deinit) struct sample b;
	struct err e;
	(void)state;
	sample_init(&a, "gzip", LAYER_OCI);
	sample_init(&b, NULL, LAYER_OCI);
	struct render_layer layers[] = { a.layer, b.layer };
	assert_int_equal(check(layers, 2, BYTES_MAX, &e), 0);
	digest_of("wrong", 5, &layers[1].diff_id);
	check_fails(layers, 2, BYTES_MAX, -EBADMSG, "layer 2 of 2");
	assert_int_equal(check(layers, 0, BYTES_MAX, &e), 0);
}

/* All layers together have at most so many bytes. */
static void test_limit(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	const struct render_layer layers[] = { s.layer, s.layer };
	assert_int_equal(check(layers, 2, 2 * s.tar.len, &e), 0);
	check_fails(layers, 2, 2 * s.tar.len - 1, -EFBIG, "layer 2 of 2");
	check_fails(layers, 1, 0, -EFBIG, "raise HUSK_IMAGE_BYTES_MAX");
}

/* What is cut, damaged or compressed as no layer may be. */
static void test_damaged(void **state)
{
	CLEANUP(sample_deinit) struct sample s;
	CLEANUP(sample_deinit) struct sample xz;
	(void)state;
	sample_init(&s, "gzip", LAYER_OCI);
	s.layer.span.size /= 2;
	check_fails(&s.layer, 1, BYTES_MAX, -EBADMSG, "layer 1 of 1");
	s.layer.span.size = s.stored.len + 1; /* the file is shorter than it was */
	struct err e;
	assert_true(check(&s.layer, 1, BYTES_MAX, &e) < 0);
	sample_init(&xz, "xz", LAYER_OCI);
	assert_true(check(&xz.layer, 1, BYTES_MAX, &e) < 0);
}

static void test_number(void **state)
{
	static struct render_layer layers[OCI_LAYERS_MAX + 1];
	CLEANUP(sample_deinit) struct sample s;
	struct err e;
	(void)state;
	sample_init(&s, NULL, LAYER_OCI);
	for (size_t i = 0; i < ARRAY_SIZE(layers); i++)
		layers[i] = s.layer;
	assert_int_equal(check(layers, OCI_LAYERS_MAX, BYTES_MAX, &e), 0);
	check_fails(layers, OCI_LAYERS_MAX + 1, BYTES_MAX, -E2BIG, "more than 128 layers");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_good),  fixture_test(test_mismatch), fixture_test(test_which),
		fixture_test(test_limit), fixture_test(test_damaged),  fixture_test(test_number),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
