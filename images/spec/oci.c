/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/oci.h"

#include <errno.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/signame.h"
#include "lib/wire/pod_ports.h"

#define OCI_PREFIX    "application/vnd.oci.image."
#define DOCKER_PREFIX "application/vnd.docker."

const struct oci_platform oci_host_platform = {
	.os = "linux",
#if defined(__x86_64__)
	.architecture = "amd64",
#elif defined(__aarch64__)
	.architecture = "arm64",
#elif defined(__riscv) && __riscv_xlen == 64
	.architecture = "riscv64",
#elif defined(__s390x__)
	.architecture = "s390x",
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
	.architecture = "ppc64le",
#else
	.architecture = "unknown", /* nothing will fit */
#endif
};

static const char *const index_types[] = {
	OCI_TYPE_INDEX,
	DOCKER_PREFIX "distribution.manifest.list.v2+json",
};

static const char *const manifest_types[] = {
	OCI_TYPE_MANIFEST,
	DOCKER_PREFIX "distribution.manifest.v2+json",
};

static const char *const config_types[] = {
	OCI_TYPE_CONFIG,
	DOCKER_PREFIX "container.image.v1+json",
	OCI_TYPE_APPC,
};

static const char *const layer_types[] = {
	OCI_PREFIX "layer.v1.tar",
	OCI_PREFIX "layer.v1.tar+gzip",
	OCI_PREFIX "layer.v1.tar+zstd",
	OCI_PREFIX "layer.nondistributable.v1.tar",
	OCI_PREFIX "layer.nondistributable.v1.tar+gzip",
	OCI_PREFIX "layer.nondistributable.v1.tar+zstd",
	DOCKER_PREFIX "image.rootfs.diff.tar",
	DOCKER_PREFIX "image.rootfs.diff.tar.gzip",
	DOCKER_PREFIX "image.rootfs.diff.tar.zstd",
	DOCKER_PREFIX "image.rootfs.foreign.diff.tar",
	DOCKER_PREFIX "image.rootfs.foreign.diff.tar.gzip",
	OCI_TYPE_ACI,
};

bool oci_is_index_type(const char *media_type)
{
	return str_is_one_of(media_type, index_types, ARRAY_SIZE(index_types));
}

bool oci_is_manifest_type(const char *media_type)
{
	return str_is_one_of(media_type, manifest_types, ARRAY_SIZE(manifest_types));
}

static int bad_field(struct err *e, int r, const char *where, const char *field)
{
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	if (r == -ENOENT)
		return err_set(e, -EBADMSG, "%s has no field \"%s\"", where, field);
	return err_set(e, -EBADMSG, "%s: field \"%s\" has a wrong type or is too long", where,
		       field);
}

/* Parses a JSON object or list. */
static int parse_object(const char *text, size_t len, const char *what, enum json_type type,
			struct json_object **ret, struct err *e)
{
	if (len > OCI_JSON_MAX)
		return err_set(e, -EBADMSG, "%s is larger than %zu bytes", what, OCI_JSON_MAX);
	if (json_count_containers(text, len) > OCI_CONTAINERS_MAX)
		return err_set(e, -E2BIG, "%s has more than %zu objects and lists", what,
			       OCI_CONTAINERS_MAX);
	cleanup_json struct json_object *o = NULL;
	int r = json_parse(text, len, &o);
	if (r == -ENOMEM)
		return err_set(e, r, "out of memory");
	if (r < 0 || !json_object_is_type(o, type))
		return err_set(e, -EBADMSG, "%s is not a JSON %s", what,
			       type == json_type_array ? "list" : "object");
	*ret = TAKE_PTR(o);
	return 0;
}

/* Copies an optional string member; absent is "". */
static int copy_optional(struct json_object *o, const char *where, const char *key, char *out,
			 size_t max, struct err *e)
{
	const char *s;
	int r = json_get_str(o, key, max, &s);
	if (r == -ENOENT) {
		out[0] = '\0';
		return 0;
	}
	return r < 0 ? bad_field(e, r, where, key) : str_copy(out, max + 1, s);
}

/* Copies an annotation if it can be shown and fits; anything else counts as absent. */
static void copy_name(struct json_object *annotations, const char *key, char *out)
{
	const char *s;
	out[0] = '\0';
	if (json_get_str(annotations, key, IMAGE_NAME_MAX, &s) == 0 &&
	    str_is_text(s, IMAGE_NAME_MAX))
		str_copy(out, IMAGE_NAME_MAX + 1, s);
}

static int parse_platform(struct json_object *o, const char *where, struct oci_platform *ret,
			  struct err *e)
{
	int r = copy_optional(o, where, "os", ret->os, OCI_PLATFORM_MAX, e);
	if (r < 0)
		return r;
	r = copy_optional(o, where, "architecture", ret->architecture, OCI_PLATFORM_MAX, e);
	if (r < 0)
		return r;
	return copy_optional(o, where, "variant", ret->variant, OCI_PLATFORM_MAX, e);
}

static int check_digest(const char *text, const char *where, struct digest *ret, struct err *e)
{
	int r = digest_parse(text, ret);
	if (r == DIGEST_E_ALGORITHM)
		return err_set(e, -EOPNOTSUPP, "%s: digest \"%.20s...\" is not sha256", where,
			       text);
	return r < 0 ? err_set(e, -EBADMSG, "%s: malformed digest", where) : 0;
}

static int parse_descriptor(struct json_object *o, const char *where, struct oci_descriptor *ret,
			    struct err *e)
{
	const char *digest;
	int r = json_get_str(o, "digest", DIGEST_TEXT_MAX, &digest);
	if (r < 0)
		return bad_field(e, r, where, "digest");
	r = check_digest(digest, where, &ret->digest, e);
	if (r < 0)
		return r;
	int64_t size;
	r = json_get_int(o, "size", 0, OCI_BLOB_MAX, &size);
	if (r < 0)
		return bad_field(e, r, where, "size");
	ret->size = (uint64_t)size;
	struct json_object *platform = json_member(o, "platform");
	ret->has_platform = platform != NULL;
	r = parse_platform(platform, where, &ret->platform, e);
	if (r < 0)
		return r;
	struct json_object *annotations = json_member(o, "annotations");
	copy_name(annotations, "org.opencontainers.image.ref.name", ret->tag);
	copy_name(annotations, "io.containerd.image.name", ret->full_name);
	return copy_optional(o, where, "mediaType", ret->media_type, OCI_MEDIA_TYPE_MAX, e);
}

/* Parses the list @key of descriptors into a new array. */
static int parse_descriptors(struct json_object *o, const char *where, const char *key, size_t max,
			     struct oci_descriptor **ret, size_t *ret_n, struct err *e)
{
	struct json_object *list = json_member(o, key);
	if (!json_object_is_type(list, json_type_array))
		return err_set(e, -EBADMSG, "%s has no list \"%s\"", where, key);
	size_t n = json_object_array_length(list);
	if (n > max)
		return err_set(e, -E2BIG, "%s: %zu %s, more than the %zu that husk takes", where, n,
			       key, max);
	*ret = calloc(MAX(n, (size_t)1), sizeof(**ret));
	if (!*ret)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		int r = parse_descriptor(json_object_array_get_idx(list, i), where, &(*ret)[i], e);
		if (r < 0)
			return r;
	}
	*ret_n = n;
	return 0;
}

int oci_layout_parse(const char *text, size_t len, struct err *e)
{
	cleanup_json struct json_object *o = NULL;
	int r = parse_object(text, len, "oci-layout", json_type_object, &o, e);
	if (r < 0)
		return r;
	const char *version;
	r = json_get_str(o, "imageLayoutVersion", OCI_PLATFORM_MAX, &version);
	if (r < 0)
		return bad_field(e, r, "oci-layout", "imageLayoutVersion");
	if (!str_starts(version, "1."))
		return err_set(e, -EOPNOTSUPP, "OCI layout of version %s, husk reads 1.x", version);
	return 0;
}

void oci_index_deinit(struct oci_index *i)
{
	if (!i)
		return;
	free(i->manifests);
	*i = OCI_INDEX_INIT;
}

int oci_index_parse(const char *text, size_t len, struct oci_index *ret, struct err *e)
{
	cleanup_json struct json_object *o = NULL;
	int r = parse_object(text, len, "image index", json_type_object, &o, e);
	if (r < 0)
		return r;
	return parse_descriptors(o, "image index", "manifests", OCI_MANIFESTS_MAX, &ret->manifests,
				 &ret->n, e);
}

void oci_manifest_deinit(struct oci_manifest *m)
{
	if (!m)
		return;
	free(m->layers);
	*m = OCI_MANIFEST_INIT;
}

static int check_layers(const struct oci_manifest *m, struct err *e)
{
	if (m->n_layers == 0 || !m->layers)
		return err_set(e, -EBADMSG, "the image has no layers, so there is nothing to run");
	for (size_t i = 0; i < m->n_layers; i++)
		if (!str_is_one_of(m->layers[i].media_type, layer_types, ARRAY_SIZE(layer_types)))
			return err_set(e, -EOPNOTSUPP,
				       "layer %zu has the unknown media type \"%s\" (husk reads "
				       "tar, plain or with gzip or zstd)",
				       i + 1, m->layers[i].media_type);
	return 0;
}

int oci_manifest_parse(const char *text, size_t len, struct oci_manifest *ret, struct err *e)
{
	static const char where[] = "image manifest";
	cleanup_json struct json_object *o = NULL;
	int r = parse_object(text, len, where, json_type_object, &o, e);
	if (r < 0)
		return r;
	int64_t version;
	r = json_get_int(o, "schemaVersion", 0, INT64_MAX, &version);
	if (r < 0)
		return bad_field(e, r, where, "schemaVersion");
	if (version != 2)
		return err_set(e, -EOPNOTSUPP, "image manifest of schema %lld, husk reads schema 2",
			       (long long)version);
	r = copy_optional(o, where, "mediaType", ret->media_type, OCI_MEDIA_TYPE_MAX, e);
	if (r < 0)
		return r;
	struct json_object *config = json_member(o, "config");
	if (!config)
		return bad_field(e, -ENOENT, where, "config");
	r = parse_descriptor(config, where, &ret->config, e);
	if (r < 0)
		return r;
	if (!str_is_one_of(ret->config.media_type, config_types, ARRAY_SIZE(config_types)))
		return err_set(e, -EOPNOTSUPP, "it is not a container image but \"%s\"",
			       ret->config.media_type);
	ret->is_rootfs = json_member(json_member(o, "annotations"), OCI_ANNOTATION_ROOTFS);
	r = parse_descriptors(o, where, "layers", OCI_LAYERS_MAX, &ret->layers, &ret->n_layers, e);
	return r < 0 ? r : check_layers(ret, e);
}

void oci_config_init(struct oci_config *c)
{
	*c = (struct oci_config){ 0 };
	strv_init(&c->entrypoint, IMAGE_ARGS_MAX);
	strv_init(&c->cmd, IMAGE_ARGS_MAX);
	strv_init(&c->env, IMAGE_ENV_MAX);
	strv_init(&c->ports, IMAGE_PORTS_MAX);
	strv_init(&c->volumes, IMAGE_VOLUMES_MAX);
}

void oci_config_deinit(struct oci_config *c)
{
	if (!c)
		return;
	free(c->diff_ids);
	strv_deinit(&c->entrypoint);
	strv_deinit(&c->cmd);
	strv_deinit(&c->env);
	strv_deinit(&c->ports);
	strv_deinit(&c->volumes);
	oci_config_init(c);
}

static int parse_args(struct json_object *o, const char *key, struct strv *sv, struct err *e)
{
	int r = json_get_strv(o, key, IMAGE_ARG_MAX, sv);
	if (r == -ENOENT || r == 0)
		return 0;
	if (r == -E2BIG)
		return err_set(e, r, "image configuration: more than %zu members in \"%s\"",
			       sv->max, key);
	return bad_field(e, r, "image configuration", key);
}

/* A command. 'ENTRYPOINT [""]' of a Dockerfile is how people take away that of the image below. */
static int parse_command(struct json_object *o, const char *key, struct strv *sv, struct err *e)
{
	int r = parse_args(o, key, sv, e);
	if (r == 0 && sv->n == 1 && !sv->v[0][0])
		strv_deinit(sv);
	return r;
}

/*
 * Build tools write "NAME" or "=value" where a variable of theirs was not set: nobody could set
 * such a variable, and other runtimes run the image without.
 */
static void drop_nameless(struct strv *env)
{
	size_t n = 0;
	for (size_t i = 0; i < env->n; i++) {
		char *member = env->v[i];
		env->v[i] = NULL;
		if (member[0] != '=' && strchr(member, '='))
			env->v[n++] = member;
		else
			free(member);
	}
	env->n = n;
}

/*
 * {"80/tcp": {}}: what they are called, so that people can say which. None of them is needed to run
 * the image: what is something else, and what is beyond IMAGE_PORTS_MAX, has no name.
 */
static int parse_ports(struct json_object *o, struct strv *ret, struct err *e)
{
	struct json_object *ports = json_member(o, "ExposedPorts");
	struct pod_port port;
	if (!ports || !json_object_is_type(ports, json_type_object))
		return 0;
	json_object_object_foreach(ports, text, value)
	{
		(void)value;
		if (ret->n == ret->max || pod_port_parse(text, &port) < 0)
			continue;
		int r = strv_add(ret, text);
		if (r < 0)
			return err_sys(e, r, "image configuration");
	}
	return 0;
}

/* {"/data": {}}: the same. */
static int parse_volumes(struct json_object *o, struct strv *ret, struct err *e)
{
	struct json_object *volumes = json_member(o, "Volumes");
	if (!volumes || !json_object_is_type(volumes, json_type_object))
		return 0;
	json_object_object_foreach(volumes, path, value)
	{
		(void)value;
		if (ret->n == ret->max || path[0] != '/' || strlen(path) > IMAGE_PATH_MAX)
			continue;
		int r = strv_add(ret, path);
		if (r < 0)
			return err_sys(e, r, "image configuration");
	}
	return 0;
}

/* One that is none is left out: the app is then asked as others are. */
static int parse_stop_signal(struct json_object *o)
{
	const char *text;
	return json_get_str(o, "StopSignal", SIGNAME_MAX, &text) < 0 ? 0
								     : MAX(signame_parse(text), 0);
}

/* The object "config" of the configuration, which may be missing. */
static int parse_execution(struct json_object *o, struct oci_config *ret, struct err *e)
{
	static const char where[] = "image configuration";
	ret->stop_signal = parse_stop_signal(o);
	int r = parse_command(o, "Entrypoint", &ret->entrypoint, e);
	if (r == 0)
		r = parse_command(o, "Cmd", &ret->cmd, e);
	if (r == 0)
		r = parse_args(o, "Env", &ret->env, e);
	if (r == 0)
		r = parse_ports(o, &ret->ports, e);
	if (r == 0)
		r = parse_volumes(o, &ret->volumes, e);
	if (r == 0)
		r = copy_optional(o, where, "WorkingDir", ret->working_dir, IMAGE_PATH_MAX, e);
	if (r == 0)
		r = copy_optional(o, where, "User", ret->user, IMAGE_USER_MAX, e);
	drop_nameless(&ret->env);
	return r;
}

static int parse_diff_ids(struct json_object *rootfs, struct oci_config *ret, struct err *e)
{
	static const char where[] = "image configuration";
	CLEANUP(strv_deinit) struct strv ids;
	strv_init(&ids, OCI_LAYERS_MAX);
	int r = json_get_strv(rootfs, "diff_ids", DIGEST_TEXT_MAX, &ids);
	if (r == -E2BIG)
		return err_set(e, r, "the image has more than %zu layers", OCI_LAYERS_MAX);
	if (r < 0)
		return bad_field(e, r, where, "rootfs.diff_ids");
	if (ids.n == 0)
		return err_set(e, -EBADMSG, "the image has no layers, so there is nothing to run");
	ret->diff_ids = calloc(ids.n, sizeof(*ret->diff_ids));
	if (!ret->diff_ids)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < ids.n; i++) {
		r = check_digest(ids.v[i], where, &ret->diff_ids[i], e);
		if (r < 0)
			return r;
	}
	ret->n_layers = ids.n;
	return 0;
}

int oci_config_parse(const char *text, size_t len, struct oci_config *ret, struct err *e)
{
	static const char where[] = "image configuration";
	cleanup_json struct json_object *o = NULL;
	int r = parse_object(text, len, where, json_type_object, &o, e);
	if (r < 0)
		return r;
	r = parse_platform(o, where, &ret->platform, e);
	if (r == 0)
		r = parse_execution(json_member(o, "config"), ret, e);
	if (r < 0)
		return r;
	return parse_diff_ids(json_member(o, "rootfs"), ret, e);
}

void docker_manifest_deinit(struct docker_manifest *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++) {
		strv_deinit(&m->images[i].tags);
		strv_deinit(&m->images[i].layers);
	}
	free(m->images);
	*m = DOCKER_MANIFEST_INIT;
}

static int parse_docker_image(struct json_object *o, struct docker_image *ret, struct err *e)
{
	static const char where[] = "manifest.json";
	const char *config;
	int r = json_get_str(o, "Config", OCI_ENTRY_NAME_MAX, &config);
	if (r < 0)
		return bad_field(e, r, where, "Config");
	str_copy(ret->config, sizeof(ret->config), config);
	r = json_get_strv(o, "RepoTags", IMAGE_NAME_MAX, &ret->tags);
	if (r < 0 && r != -ENOENT)
		return bad_field(e, r, where, "RepoTags");
	for (size_t i = 0; i < ret->tags.n; i++)
		if (!str_is_text(ret->tags.v[i], IMAGE_NAME_MAX))
			return bad_field(e, -EBADMSG, where, "RepoTags");
	r = json_get_strv(o, "Layers", OCI_ENTRY_NAME_MAX, &ret->layers);
	if (r == -E2BIG)
		return err_set(e, r, "the image has more than %zu layers", OCI_LAYERS_MAX);
	return r < 0 ? bad_field(e, r, where, "Layers") : 0;
}

int docker_manifest_parse(const char *text, size_t len, struct docker_manifest *ret, struct err *e)
{
	cleanup_json struct json_object *o = NULL;
	int r = parse_object(text, len, "manifest.json", json_type_array, &o, e);
	if (r < 0)
		return r;
	size_t n = json_object_array_length(o);
	if (n > OCI_MANIFESTS_MAX)
		return err_set(e, -E2BIG, "manifest.json lists more than %zu images",
			       OCI_MANIFESTS_MAX);
	ret->images = calloc(MAX(n, (size_t)1), sizeof(*ret->images));
	if (!ret->images)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		struct docker_image *image = &ret->images[ret->n++];
		strv_init(&image->tags, OCI_TAGS_MAX);
		strv_init(&image->layers, OCI_LAYERS_MAX);
		r = parse_docker_image(json_object_array_get_idx(o, i), image, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static struct json_object *make_digest(const struct digest *d)
{
	char text[sizeof("sha256:") + DIGEST_HEX_LEN];
	snprintf(text, sizeof(text), "sha256:%s", d->hex);
	return json_object_new_string(text);
}

struct json_object *oci_make_descriptor(const char *media_type, const struct digest *d,
					uint64_t size, const char *name)
{
	cleanup_json struct json_object *o =
		json_make("mediaType", json_object_new_string(media_type), "digest", make_digest(d),
			  "size", json_object_new_int64((int64_t)size), NULL);
	int r = !name ? 0
		      : json_put(o, "annotations",
				 json_make("org.opencontainers.image.ref.name",
					   json_object_new_string(name), NULL));
	return r < 0 ? NULL : TAKE_PTR(o);
}

int oci_index_format(struct json_object *manifests, struct buf *out)
{
	cleanup_json struct json_object *o =
		json_make("schemaVersion", json_object_new_int64(2), "mediaType",
			  json_object_new_string(OCI_TYPE_INDEX), "manifests", manifests, NULL);
	return o ? json_write(o, false, out) : -ENOMEM;
}

int oci_manifest_format(const struct oci_manifest *m, struct buf *out)
{
	const struct oci_descriptor *c = &m->config;
	struct json_object *layers = json_object_new_array();
	cleanup_json struct json_object *o =
		json_make("schemaVersion", json_object_new_int64(2), "mediaType",
			  json_object_new_string(OCI_TYPE_MANIFEST), "config",
			  oci_make_descriptor(c->media_type, &c->digest, c->size, NULL), "layers",
			  layers, NULL);
	int r = o ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < m->n_layers; i++) {
		const struct oci_descriptor *l = &m->layers[i];
		r = json_append(layers,
				oci_make_descriptor(l->media_type, &l->digest, l->size, NULL));
	}
	if (r == 0 && m->is_rootfs)
		r = json_put(
			o, "annotations",
			json_make(OCI_ANNOTATION_ROOTFS, json_object_new_string("true"), NULL));
	return r < 0 ? r : json_write(o, false, out);
}

struct json_object *oci_make_rootfs(const struct digest *diff_ids, size_t n)
{
	struct json_object *ids = json_object_new_array();
	cleanup_json struct json_object *o =
		json_make("type", json_object_new_string("layers"), "diff_ids", ids, NULL);
	int r = o ? 0 : -ENOMEM;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = json_append(ids, make_digest(&diff_ids[i]));
	return r < 0 ? NULL : TAKE_PTR(o);
}

int oci_config_format(const struct digest *diff_ids, size_t n, struct buf *out)
{
	cleanup_json struct json_object *o =
		json_make("architecture", json_object_new_string(oci_host_platform.architecture),
			  "os", json_object_new_string(oci_host_platform.os), "config",
			  json_object_new_object(), "rootfs", oci_make_rootfs(diff_ids, n), NULL);
	return o ? json_write(o, false, out) : -ENOMEM;
}
