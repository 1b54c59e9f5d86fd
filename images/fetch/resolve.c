/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "images/spec/registry_name.h"
#include "images/spec/variant.h"
#include "lib/base/buf.h"

#define LIST_MAX ((size_t)600) /* bytes of names shown in a message */

void resolved_init(struct resolved *r)
{
	*r = (struct resolved){ 0 };
	oci_config_init(&r->config);
}

void resolved_deinit(struct resolved *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_layers; i++)
		span_deinit(&r->layers[i].span);
	free(r->layers);
	free(r->manifest_text);
	free(r->config_text);
	oci_config_deinit(&r->config);
	resolved_init(r);
}

/* Names for a message: "a, b, c, ...". */
struct names {
	char text[LIST_MAX];
	size_t len;
	size_t n;
	bool cut;
};

static void names_add(struct names *names, const char *name)
{
	if (!*name)
		return;
	const char *comma = names->n++ > 0 ? ", " : "";
	if (names->cut)
		return;
	size_t room = sizeof(names->text) - names->len;
	int n = snprintf(names->text + names->len, room, "%s%s", comma, name);
	names->cut = n < 0 || (size_t)n >= room - sizeof(", ...");
	if (names->cut)
		snprintf(names->text + names->len, room, "%s...", comma);
	else
		names->len += (size_t)n;
}

/* However they are spelled: "docker.io/library/debian" is "debian:latest". */
static bool same_name(const char *a, const char *b)
{
	char x[REGISTRY_TEXT_MAX + 1], y[REGISTRY_TEXT_MAX + 1];
	registry_name_normal(a, x);
	registry_name_normal(b, y);
	return *x && strcmp(x, y) == 0;
}

static bool is_named(const struct oci_descriptor *d, const char *name)
{
	struct digest digest;
	if (digest_parse(name, &digest) == 0)
		return digest_equal(&digest, &d->digest);
	if (*d->tag && strcmp(d->tag, name) == 0)
		return true;
	return (*d->full_name && same_name(d->full_name, name)) ||
	       (*d->tag && same_name(d->tag, name));
}

static bool is_image(const struct oci_descriptor *d)
{
	return !*d->media_type || oci_is_manifest_type(d->media_type) ||
	       oci_is_index_type(d->media_type);
}

static enum variant_fit fit_of(const struct oci_descriptor *d)
{
	return variant_fit(d->platform.architecture, d->platform.variant, variant_level());
}

static bool runs_here(const struct oci_descriptor *d, const struct oci_platform *host)
{
	return !d->has_platform || (strcmp(d->platform.os, host->os) == 0 &&
				    strcmp(d->platform.architecture, host->architecture) == 0 &&
				    fit_of(d) != VARIANT_TOO_NEW);
}

static int no_such_name(const char *name, const struct names *names, struct err *e)
{
	if (names->n == 0)
		return err_set(e, -ENOENT,
			       "no image \"%s\" in it, its images have no names (leave \":%s\" "
			       "away)",
			       name, name);
	return err_set(e, -ENOENT, "no image \"%s\" in it (there is: %s)", name, names->text);
}

/* The message for an index of which nothing fits. */
static int nothing_fits(const struct oci_index *index, const char *name,
			const struct oci_platform *host, struct err *e)
{
	struct names tags = { .n = 0 }, platforms = { .n = 0 };
	bool named = false;
	for (size_t i = 0; i < index->n; i++) {
		const struct oci_descriptor *d = &index->manifests[i];
		char platform[3 * OCI_PLATFORM_MAX + 3];
		names_add(&tags, *d->tag ? d->tag : d->full_name);
		if (!is_image(d) || (*name && !is_named(d, name)))
			continue;
		named = true;
		snprintf(platform, sizeof(platform), "%s/%s%s%s", d->platform.os,
			 d->platform.architecture, *d->platform.variant ? "/" : "",
			 d->platform.variant);
		names_add(&platforms, platform);
	}
	if (index->n == 0)
		return err_set(e, -EBADMSG, "there is no image in it");
	if (!named && *name)
		return no_such_name(name, &tags, e);
	if (!named)
		return err_set(e, -EOPNOTSUPP, "there is no container image in it");
	return err_set(e, -EOPNOTSUPP, "not for this machine, which is %s/%s (there is: %s)",
		       host->os, host->architecture, platforms.text);
}

/* The message for an index of which several images fit. */
static int ambiguous(const struct oci_index *index, const char *name, struct err *e)
{
	struct names names = { .n = 0 };
	for (size_t i = 0; i < index->n; i++) {
		const struct oci_descriptor *d = &index->manifests[i];
		char digest[sizeof("sha256:") + DIGEST_HEX_LEN];
		snprintf(digest, sizeof(digest), "sha256:%s", d->digest.hex);
		if (is_image(d) && (!*name || is_named(d, name)))
			names_add(&names, *name || (!*d->tag && !*d->full_name) ? digest
					  : *d->tag                             ? d->tag
										: d->full_name);
	}
	return err_set(e, -EINVAL, "there are several images in it (choose one with PATH:NAME: %s)",
		       names.text);
}

static bool is_candidate(const struct oci_descriptor *d, const char *name,
			 const struct oci_platform *platform)
{
	return is_image(d) && runs_here(d, platform) && (!*name || is_named(d, name));
}

/* An entry that says it is for this machine beats one that says nothing. */
static bool is_better(const struct oci_descriptor *d, const struct oci_descriptor *than)
{
	if (d->has_platform != than->has_platform)
		return d->has_platform;
	return fit_of(d) < fit_of(than);
}

/*
 * True if nothing says which of the two is meant. Builds of one image for several variants are no
 * choice, but the names of two images are.
 */
static bool is_rival(const struct oci_descriptor *d, const struct oci_descriptor *found)
{
	if (d->has_platform != found->has_platform || digest_equal(&d->digest, &found->digest))
		return false;
	return strcmp(d->platform.variant, found->platform.variant) == 0 ||
	       strcmp(d->tag, found->tag) != 0 || strcmp(d->full_name, found->full_name) != 0;
}

int resolve_choose(const struct oci_index *index, const char *name,
		   const struct oci_platform *platform, const struct oci_descriptor **ret,
		   struct err *e)
{
	const struct oci_descriptor *found = NULL;
	for (size_t i = 0; i < index->n; i++) {
		const struct oci_descriptor *d = &index->manifests[i];
		if (is_candidate(d, name, platform) && (!found || is_better(d, found)))
			found = d;
	}
	if (!found)
		return nothing_fits(index, name, platform, e);
	for (size_t i = 0; i < index->n; i++) {
		const struct oci_descriptor *d = &index->manifests[i];
		if (is_candidate(d, name, platform) && is_rival(d, found))
			return ambiguous(index, name, e);
	}
	*ret = found;
	return 0;
}

static bool docker_is_named(const struct docker_image *image, const char *name)
{
	struct digest digest;
	if (digest_parse(name, &digest) == 0)
		return strstr(image->config, digest.hex) != NULL;
	for (size_t i = 0; i < image->tags.n; i++)
		if (same_name(image->tags.v[i], name))
			return true;
	return false;
}

int resolve_choose_docker(const struct docker_manifest *m, const char *name,
			  const struct docker_image **ret, struct err *e)
{
	const struct docker_image *found = NULL;
	size_t n_found = 0;
	struct names names = { .n = 0 };
	for (size_t i = 0; i < m->n; i++) {
		const struct docker_image *image = &m->images[i];
		for (size_t k = 0; k < image->tags.n; k++)
			names_add(&names, image->tags.v[k]);
		if (image->tags.n == 0)
			names_add(&names, image->config);
		if (*name && !docker_is_named(image, name))
			continue;
		found = found ? found : image;
		n_found++;
	}
	if (m->n == 0)
		return err_set(e, -EBADMSG, "there is no image in it");
	if (!found)
		return no_such_name(name, &names, e);
	if (n_found > 1)
		return err_set(e, -EINVAL,
			       "there are several images in it (choose one with PATH:NAME: %s)",
			       names.text);
	*ret = found;
	return 0;
}

/* Finds a blob by digest; its size must be the one of the descriptor. */
static int find_blob(const struct source *s, const struct oci_descriptor *d, struct span *ret,
		     struct err *e)
{
	char name[sizeof("blobs/sha256/") + DIGEST_HEX_LEN];
	snprintf(name, sizeof(name), "blobs/sha256/%s", d->digest.hex);
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	int r = source_find(s, name, &span, e);
	if (r < 0)
		return r;
	if (span.size != d->size)
		return err_set(e, -EBADMSG,
			       "blob sha256:%.12s... has %llu bytes instead of %llu (fetch the "
			       "image again)",
			       d->digest.hex, (unsigned long long)span.size,
			       (unsigned long long)d->size);
	*ret = span;
	span.fd = -EBADF;
	return 0;
}

/* Reads a JSON blob and verifies its digest. */
static int read_blob(const struct source *s, const struct oci_descriptor *d, const char *what,
		     char **ret, size_t *ret_len, struct err *e)
{
	CLEANUP(span_deinit) struct span span = SPAN_INIT;
	int r = find_blob(s, d, &span, e);
	if (r < 0)
		return r;
	cleanup_free char *text = NULL;
	struct digest got;
	r = source_read_span(&span, what, OCI_JSON_MAX, &text, ret_len, e);
	if (r < 0)
		return r;
	digest_of(text, *ret_len, &got);
	if (!digest_equal(&got, &d->digest))
		return err_set(e, -EBADMSG,
			       "%s: digest mismatch: it is sha256:%.12s... instead of "
			       "sha256:%.12s... (fetch the image again)",
			       what, got.hex, d->digest.hex);
	*ret = TAKE_PTR(text);
	return 0;
}

static int check_platform(const struct oci_config *c, struct err *e)
{
	const struct oci_platform *host = &oci_host_platform, *is = &c->platform;
	/* Very old images leave these out. */
	if ((!*is->os || strcmp(is->os, host->os) == 0) &&
	    (!*is->architecture || strcmp(is->architecture, host->architecture) == 0))
		return 0;
	return err_set(e, -EOPNOTSUPP,
		       "not for this machine: the image is for %s/%s, this is %s/%s", is->os,
		       is->architecture, host->os, host->architecture);
}

/* Checks the configuration and makes room for its layers. */
static int begin_layers(struct resolved *ret, size_t n_layers, struct err *e)
{
	int r = check_platform(&ret->config, e);
	if (r < 0)
		return r;
	if (n_layers != ret->config.n_layers)
		return err_set(e, -EBADMSG,
			       "the manifest has %zu layers but the configuration has %zu",
			       n_layers, ret->config.n_layers);
	ret->layers = calloc(n_layers, sizeof(*ret->layers));
	if (!ret->layers)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

static int open_oci(const struct source *s, const struct oci_descriptor *d, struct resolved *ret,
		    struct err *e)
{
	CLEANUP(oci_manifest_deinit) struct oci_manifest m = OCI_MANIFEST_INIT;
	int r = read_blob(s, d, "image manifest", &ret->manifest_text, &ret->manifest_len, e);
	if (r == 0)
		r = oci_manifest_parse(ret->manifest_text, ret->manifest_len, &m, e);
	if (r == 0)
		r = read_blob(s, &m.config, "image configuration", &ret->config_text,
			      &ret->config_len, e);
	if (r == 0)
		r = oci_config_parse(ret->config_text, ret->config_len, &ret->config, e);
	if (r == 0)
		r = begin_layers(ret, m.n_layers, e);
	for (size_t i = 0; r == 0 && i < m.n_layers; i++) {
		struct render_layer *l = &ret->layers[i];
		r = find_blob(s, &m.layers[i], &l->span, e);
		if (r < 0)
			break;
		ret->n_layers++;
		l->has_blob = true;
		l->blob = m.layers[i].digest;
		l->diff_id = ret->config.diff_ids[i];
	}
	ret->id = d->digest;
	return r;
}

static int resolve_oci(const struct source *s, const char *name, struct resolved *ret,
		       struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = source_read(s, "oci-layout", OCI_JSON_MAX, &text, &len, e);
	if (r == 0)
		r = oci_layout_parse(text, len, e);
	if (r < 0)
		return r;
	free(TAKE_PTR(text));
	r = source_read(s, "index.json", OCI_JSON_MAX, &text, &len, e);
	for (int level = 0; r == 0 && level < RESOLVE_NESTING_MAX; level++) {
		CLEANUP(oci_index_deinit) struct oci_index index = OCI_INDEX_INIT;
		const struct oci_descriptor *d = NULL;
		r = oci_index_parse(text, len, &index, e);
		if (r == 0)
			r = resolve_choose(&index, level == 0 ? name : "", &oci_host_platform, &d,
					   e);
		if (r < 0 || !d)
			return r;
		if (level == 0)
			str_copy(ret->tag, sizeof(ret->tag), *d->tag ? d->tag : d->full_name);
		if (!oci_is_index_type(d->media_type))
			return open_oci(s, d, ret, e);
		free(TAKE_PTR(text));
		r = read_blob(s, d, "image index", &text, &len, e);
	}
	return r < 0 ? r
		     : err_set(e, -EBADMSG, "image indexes are nested more than %d deep",
			       RESOLVE_NESTING_MAX);
}

/* A configuration named by its digest ("HEX.json", "blobs/sha256/HEX") must have that digest. */
static int check_config_name(const char *name, const struct digest *got, struct err *e)
{
	const char *base = strrchr(name, '/');
	base = base ? base + 1 : name;
	size_t hex = strspn(base, "0123456789abcdef");
	if (hex != DIGEST_HEX_LEN || (base[hex] && strcmp(base + hex, ".json") != 0))
		return 0;
	if (strncmp(base, got->hex, hex) == 0)
		return 0;
	return err_set(e, -EBADMSG,
		       "image configuration: digest mismatch: it is sha256:%.12s... instead of "
		       "sha256:%.12s... (fetch the image again)",
		       got->hex, base);
}

static int open_docker(const struct source *s, const struct docker_image *image,
		       struct resolved *ret, struct err *e)
{
	int r = source_read(s, image->config, OCI_JSON_MAX, &ret->config_text, &ret->config_len, e);
	if (r < 0)
		return r;
	digest_of(ret->config_text, ret->config_len, &ret->id);
	r = check_config_name(image->config, &ret->id, e);
	if (r == 0)
		r = oci_config_parse(ret->config_text, ret->config_len, &ret->config, e);
	if (r == 0)
		r = begin_layers(ret, image->layers.n, e);
	for (size_t i = 0; r == 0 && i < image->layers.n; i++) {
		r = source_find(s, image->layers.v[i], &ret->layers[i].span, e);
		if (r < 0)
			break;
		ret->n_layers++;
		ret->layers[i].diff_id = ret->config.diff_ids[i];
	}
	if (image->tags.n > 0)
		str_copy(ret->tag, sizeof(ret->tag), image->tags.v[0]);
	return r;
}

static int resolve_docker(const struct source *s, const char *name, struct resolved *ret,
			  struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	CLEANUP(docker_manifest_deinit) struct docker_manifest m = DOCKER_MANIFEST_INIT;
	const struct docker_image *image = NULL;
	int r = source_read(s, "manifest.json", OCI_JSON_MAX, &text, &len, e);
	if (r == 0)
		r = docker_manifest_parse(text, len, &m, e);
	if (r == 0)
		r = resolve_choose_docker(&m, name, &image, e);
	return r < 0 || !image ? r : open_docker(s, image, ret, e);
}

int resolve_image(const struct source *s, const char *name, struct resolved *ret, struct err *e)
{
	return source_type(s) == SOURCE_OCI ? resolve_oci(s, name, ret, e)
					    : resolve_docker(s, name, ret, e);
}
