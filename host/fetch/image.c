#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/fetch/resolve.h"
#include "host/fetch/source.h"
#include "host/render/render.h"
#include "host/store/store_int.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

struct image {
	const struct store *store; /* borrowed */
	struct resolved resolved;
	struct image_config config; /* borrows from @resolved */
	struct image_timing timing;
	struct digest chain;
	char id[IMAGE_ID_LEN + 1];
	char chain_id[IMAGE_ID_LEN + 1];
	char name[IMAGE_NAME_MAX + 1];
	uint64_t size;
	int tree; /* the rendered file, with a shared lock */
};

void image_free(struct image *i)
{
	if (!i)
		return;
	fd_close(i->tree);
	resolved_deinit(&i->resolved);
	free(i);
}

const char *image_id(const struct image *i)
{
	return i->id;
}

const char *image_name(const struct image *i)
{
	return i->name;
}

const char *image_chain_id(const struct image *i)
{
	return i->chain_id;
}

uint64_t image_size(const struct image *i)
{
	return i->size;
}

const struct image_config *image_config(const struct image *i)
{
	return &i->config;
}

const struct image_timing *image_timing(const struct image *i)
{
	return &i->timing;
}

int image_link_rootfs(const struct image *i, int dirfd, const char *name, struct err *e)
{
	return store_link_tree(i->store, &i->chain, dirfd, name, e);
}

static int64_t elapsed_ms(int64_t since_ns)
{
	return (clock_monotonic_ns() - since_ns) / NS_PER_MS;
}

/* The path's last component without an archive's suffix, as far as it is printable. */
static void name_of_path(const char *path, char out[IMAGE_NAME_MAX + 1])
{
	static const char *const suffixes[] = {
		".gz", ".zst", ".xz", ".bz2", ".tgz", ".tar", ".oci"
	};
	size_t end = strlen(path);
	while (end > 1 && path[end - 1] == '/')
		end--;
	size_t start = end;
	while (start > 0 && path[start - 1] != '/')
		start--;
	size_t len = MIN(end - start, IMAGE_NAME_MAX);
	memcpy(out, path + start, len);
	out[len] = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t n = strlen(suffixes[i]);
		if (len > n && str_ends(out, suffixes[i]))
			out[len -= n] = '\0';
	}
	for (char *p = out; *p; p++)
		if (*p < 0x20 || *p > 0x7e)
			*p = '?';
	if (!*out)
		str_copy(out, IMAGE_NAME_MAX + 1, "image");
}

static void set_name(struct image *i, const struct reference *ref)
{
	struct digest digest;
	if (*ref->name && digest_parse(ref->name, &digest) != 0)
		str_copy(i->name, sizeof(i->name), ref->name);
	else if (*i->resolved.tag)
		str_copy(i->name, sizeof(i->name), i->resolved.tag);
	else
		name_of_path(ref->path, i->name);
}

/* Everything about the image that is known without its layers. */
static void describe(struct image *i, const struct reference *ref)
{
	const struct oci_config *c = &i->resolved.config;
	digest_chain(c->diff_ids, c->n_layers, &i->chain);
	snprintf(i->id, sizeof(i->id), "sha256-%s", i->resolved.id.hex);
	snprintf(i->chain_id, sizeof(i->chain_id), "sha256-%s", i->chain.hex);
	set_name(i, ref);
	i->config = (struct image_config){
		.entrypoint = c->entrypoint,
		.cmd = c->cmd,
		.env = c->env,
		.working_dir = c->working_dir,
		.user = c->user,
	};
}

/* Renders into a file without a name, then publishes it. */
static int render(struct image *i, struct err *e)
{
	const struct store *s = i->store;
	cleanup_fd int out = openat(store_tmp_dirfd(s), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (out < 0)
		return err_sys(e, -errno, "cannot create a file in %s/tmp", store_path(s));
	struct render_job job = {
		.layers = i->resolved.layers,
		.n_layers = i->resolved.n_layers,
		.out = out,
		.where = store_path(s),
		.bytes_max = store_bytes_max(s),
	};
	int r = render_confined(&job, NULL, e);
	return r < 0 ? r : store_publish_tree(s, &i->chain, out, e);
}

/* Renders the image unless somebody else did it while we waited for the lock. */
static int find_or_render(struct image *i, struct err *e)
{
	int r = store_find_tree(i->store, &i->chain, &i->tree, e);
	if (r != STORE_MISSING)
		return r;
	int64_t start = clock_monotonic_ns();
	cleanup_fd int lock = -EBADF;
	r = store_lock_tree(i->store, &i->chain, &lock, e);
	if (r < 0)
		return r;
	r = store_find_tree(i->store, &i->chain, &i->tree, e);
	if (r == STORE_MISSING) {
		i->timing.rendered = true;
		r = render(i, e);
		if (r == 0)
			r = store_find_tree(i->store, &i->chain, &i->tree, e);
		if (r == STORE_MISSING)
			r = err_set(e, -ENOENT, "the rendered image was removed (try again)");
	}
	i->timing.render_ms = elapsed_ms(start);
	return r;
}

static bool path_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

static void cleanup_source(struct source **s)
{
	source_free(*s);
}

static int open_reference(struct image *i, const char *reference, struct err *e)
{
	int64_t start = clock_monotonic_ns();
	struct reference ref;
	int r = reference_parse(reference, path_exists, &ref, e);
	if (r < 0)
		return r;
	CLEANUP(cleanup_source) struct source *source = NULL;
	r = source_open(&ref, store_tmp_dirfd(i->store), store_bytes_max(i->store), &source, e);
	if (r == 0)
		r = resolve_image(source, ref.name, &i->resolved, e);
	if (r < 0)
		return r;
	describe(i, &ref);
	i->timing.parse_ms = elapsed_ms(start);
	r = find_or_render(i, e);
	struct stat st;
	if (r == 0 && fstat(i->tree, &st) < 0)
		r = err_sys(e, -errno, "cannot read the rendered image");
	if (r == 0)
		i->size = (uint64_t)st.st_size;
	return r;
}

int image_open(struct store *s, const char *reference, struct image **ret, struct err *e)
{
	cleanup_image struct image *i = calloc(1, sizeof(*i));
	if (!i)
		return err_set(e, -ENOMEM, "out of memory");
	i->store = s;
	i->tree = -EBADF;
	resolved_init(&i->resolved);
	int r = open_reference(i, reference, e);
	if (r < 0)
		return err_context(e, "image \"%s\"", reference);
	*ret = TAKE_PTR(i);
	return 0;
}
