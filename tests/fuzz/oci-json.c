/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON documents of images and the choice among what they list. The first byte says which
 * parser gets the rest; what is parsed is also used the way resolve.c uses it.
 */
#include <stdlib.h>
#include <string.h>

#include "images/fetch/resolve.h"
#include "images/known/reference.h"
#include "images/spec/oci.h"

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

/* A failure must leave a message, success none. */
static void check(int r, const struct err *e)
{
	CHECK((r < 0) == (e->code < 0));
	CHECK((r < 0) == (e->text[0] != '\0'));
}

static void fuzz_index(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
	int r = oci_index_parse(text, len, &index, &e);
	check(r, &e);
	if (r < 0)
		return;
	CHECK(index.n <= OCI_MANIFESTS_MAX);
	const struct oci_descriptor *d;
	resolve_choose(&index, "", &oci_host_platform, &d, &e);
	resolve_choose(&index, "latest", &oci_host_platform, &d, &e);
	for (size_t i = 0; i < index.n; i++)
		resolve_choose(&index, index.manifests[i].tag, &index.manifests[i].platform, &d,
			       &e);
}

static void fuzz_manifest(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	int r = oci_manifest_parse(text, len, &m, &e);
	check(r, &e);
	CHECK(r < 0 || (m.n_layers > 0 && m.n_layers <= OCI_LAYERS_MAX));
}

static void fuzz_config(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	CLEANUP(oci_config_deinit) struct oci_config c;
	oci_config_init(&c);
	int r = oci_config_parse(text, len, &c, &e);
	check(r, &e);
	if (r < 0)
		return;
	CHECK(c.n_layers > 0 && c.n_layers <= OCI_LAYERS_MAX);
	struct digest chain;
	digest_chain(c.diff_ids, c.n_layers, &chain);
}

static void fuzz_docker(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	CLEANUP(docker_manifest_deinit) struct docker_manifest m = DOCKER_MANIFEST_INIT;
	int r = docker_manifest_parse(text, len, &m, &e);
	check(r, &e);
	if (r < 0)
		return;
	const struct docker_image *image;
	resolve_choose_docker(&m, "", &image, &e);
	for (size_t i = 0; i < m.n; i++)
		for (size_t k = 0; k < m.images[i].tags.n; k++)
			resolve_choose_docker(&m, m.images[i].tags.v[k], &image, &e);
}

static bool exists(const char *path)
{
	return strlen(path) % 3 == 0;
}

static void fuzz_reference(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	struct reference ref;
	struct digest digest;
	char *copy = strndup(text, len);
	if (copy && digest_parse(copy, &digest) == 0)
		CHECK(strlen(digest.hex) == DIGEST_HEX_LEN);
	if (copy)
		check(reference_parse(copy, exists, &ref, &e), &e);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	const char *text = (const char *)data + 1;
	size_t len = size - 1;
	struct err e = ERR_INIT;
	switch (data[0]) {
	case 'l':
		check(oci_layout_parse(text, len, &e), &e);
		break;
	case 'i':
		fuzz_index(text, len);
		break;
	case 'm':
		fuzz_manifest(text, len);
		break;
	case 'c':
		fuzz_config(text, len);
		break;
	case 'd':
		fuzz_docker(text, len);
		break;
	default:
		fuzz_reference(text, len);
	}
	return 0;
}
