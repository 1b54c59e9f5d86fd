/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/stage1_choice.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/cli/images.h"
#include "host/cli/settings.h"
#include "host/cli/stage1_image.h"
#include "host/config/location.h"
#include "host/launch/trusted.h"
#include "host/pod/pod_stage1.h"
#include "images/images.h"
#include "lib/os/path.h"
#include "lib/wire/stage1.h"

/* Where images of stage1s are, relative to the executable, if the configuration does not say. */
#define IMAGES_DIR "../lib/husk/stage1-images"

#define BOTH "flags --%s and --%s are mutually exclusive"

int stage1_choice_set(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct stage1_choice *s = (struct stage1_choice *)(void *)((char *)opts + f->offset);
	if (s->flag && strcmp(s->flag, f->name) == 0)
		return err_set(e, -EINVAL, "--%s already used", f->name);
	if (s->flag)
		return err_set(e, -EINVAL, BOTH, s->flag, f->name);
	if (!*value)
		return err_set(e, -EINVAL, "--%s: which stage1 is missing", f->name);
	*s = (struct stage1_choice){ f->name, value };
	return 0;
}

/* True if the directory is a stage1, or one that was extracted, and no OCI layout. */
static bool is_directory(const char *path)
{
	char manifest[PATH_MAX];
	int n = snprintf(manifest, sizeof(manifest), "%s/" STAGE1_FILE_MANIFEST, path);
	return n > 0 && (size_t)n < sizeof(manifest) && access(manifest, F_OK) == 0;
}

/* An archive, or the directory of a stage1. */
static int open_path(struct cli *c, const char *path, enum pull_policy policy, struct stage1 *ret,
		     struct err *e)
{
	char full[PATH_MAX], reference[PATH_MAX + sizeof("file:")];
	if (!realpath(path, full))
		return err_sys(e, -errno, "stage1 \"%s\"", path);
	if (is_directory(full))
		return stage1_open(full, ret, e);
	/* As it was given, so it is told; what looks like something else says what it is. */
	bool is_clear = !strchr(path, ':') && !str_starts(path, "sha");
	snprintf(reference, sizeof(reference), "%s%s", is_clear ? "" : "file:", path);
	return stage1_image_open(c, reference, false, policy, ret, e);
}

/* What location_check() holds for. */
static int open_location(struct cli *c, const char *location, enum pull_policy policy,
			 struct stage1 *ret, struct err *e)
{
	char path[PATH_MAX];
	return location_path(location, path) == 0
		       ? open_path(c, path, policy, ret, e)
		       : stage1_image_open(c, location, false, policy, ret, e);
}

/* The configured path of an image may be its file's name alone: that is beside the program. */
static int open_beside(struct cli *c, const char *path, enum pull_policy policy, struct stage1 *ret,
		       struct err *e)
{
	const char *base = strrchr(path, '/') + 1;
	char beside[PATH_MAX];
	struct progress progress;
	const struct fetch_options o = cli_fetch_options(c, &progress, CLI_TERMINAL);
	if (!*base || path_from_self(base, beside, sizeof(beside)) < 0)
		return err_set(e, -ENOENT,
			       "stage1 \"%s\": No such file or directory (nor beside the husk "
			       "program)",
			       path);
	fetch_note(&o, "using image from file %s", path);
	return open_path(c, beside, policy, ret, e);
}

/* What the configuration names. */
static int open_configured_location(struct cli *c, const char *location, enum pull_policy policy,
				    struct stage1 *ret, struct err *e)
{
	char path[PATH_MAX];
	return location_path(location, path) == 0 && access(path, F_OK) < 0 && errno == ENOENT
		       ? open_beside(c, path, policy, ret, e)
		       : open_location(c, location, policy, ret, e);
}

static int open_url(struct cli *c, const char *url, enum pull_policy policy, struct stage1 *ret,
		    struct err *e)
{
	if (url[0] == '/')
		return err_set(e, -EINVAL,
			       "\"%s\" is not a URL of scheme docker, file, http or https (use "
			       "--stage1-path)",
			       url);
	int r = location_check(url, e);
	return r < 0 ? r : open_location(c, url, policy, ret, e);
}

static int open_name(struct cli *c, const char *name, enum pull_policy policy, struct stage1 *ret,
		     struct err *e)
{
	cleanup_free struct acname *parsed = malloc(sizeof(*parsed));
	int r = parsed ? acname_parse(name, parsed, e) : err_sys(e, -ENOMEM, "name");
	return r < 0 ? r : stage1_image_open(c, name, true, policy, ret, e);
}

static int open_hash(struct cli *c, const char *id, enum pull_policy policy, struct stage1 *ret,
		     struct err *e)
{
	if (!str_starts(id, "sha512-") && !str_starts(id, "sha256-"))
		return err_set(e, -EINVAL, "\"%s\" is not an image ID (see husk image list)", id);
	return stage1_image_open(c, id, true, policy, ret, e);
}

static int open_from_dir(struct cli *c, const char *file, enum pull_policy policy,
			 struct stage1 *ret, struct err *e)
{
	char dir[PATH_MAX], path[PATH_MAX];
	const struct config *config = NULL;
	if (strchr(file, '/') || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
		return err_set(e, -EINVAL, "\"%s\" is not a name of a file (use --stage1-path)",
			       file);
	int r = cli_config(c, CONFIG_PATHS, &config, e);
	if (r < 0)
		return r;
	r = config->stage1_images ? str_copy(dir, sizeof(dir), config->stage1_images)
				  : path_from_self(IMAGES_DIR, dir, sizeof(dir));
	if (r < 0)
		return err_sys(e, r,
			       "no directory \"" IMAGES_DIR "\" beside the husk program (configure "
			       "\"stage1-images\")");
	int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "\"%s\"", file);
	return open_path(c, path, policy, ret, e);
}

/* The configured image if the store has it. STAGE1_IMAGE_NONE if not, or if none is configured. */
static int open_configured(struct cli *c, const struct config *config, struct stage1 *ret,
			   struct err *e)
{
	char name[2 * CONFIG_NAME_MAX + 2];
	if (!config->stage1_name)
		return STAGE1_IMAGE_NONE;
	snprintf(name, sizeof(name), "%s:%s", config->stage1_name, config->stage1_version);
	int r = stage1_image_find(c, name, ret, e);
	if (r == STAGE1_IMAGE_NONE && !config->stage1_location)
		return err_set(e, -ENOENT,
			       "the configured stage1 \"%s\" is not in the store, and no location "
			       "of it is configured (husk fetch it)",
			       name);
	return r;
}

/* Without an option of its own: --stage1, the configuration, the installation. */
static int open_usual(struct cli *c, enum pull_policy policy, struct stage1 *ret, struct err *e)
{
	const struct config *config = NULL;
	if (c->stage1)
		return stage1_open(c->stage1, ret, e);
	int r = cli_config(c, CONFIG_STAGE1, &config, e);
	if (r == 0)
		r = open_configured(c, config, ret, e);
	if (r != STAGE1_IMAGE_NONE)
		return r;
	return config->stage1_location
		       ? open_configured_location(c, config->stage1_location, policy, ret, e)
		       : stage1_open(NULL, ret, e);
}

int stage1_choose(struct cli *c, const struct stage1_choice *choice, enum pull_policy policy,
		  struct stage1 *ret, struct err *e)
{
	static const struct {
		const char *flag;
		int (*open)(struct cli *c, const char *value, enum pull_policy policy,
			    struct stage1 *ret, struct err *e);
	} ways[] = {
		{ "stage1-from-dir", open_from_dir }, { "stage1-hash", open_hash },
		{ "stage1-name", open_name },         { "stage1-path", open_path },
		{ "stage1-url", open_url },
	};
	if (!choice || !choice->flag)
		return open_usual(c, policy, ret, e);
	if (c->stage1)
		return err_set(e, -EINVAL, BOTH, "stage1", choice->flag);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (strcmp(ways[i].flag, choice->flag) == 0)
			return ways[i].open(c, choice->value, policy, ret, e) < 0
				       ? err_context(e, "--%s", choice->flag)
				       : 0;
	return err_set(e, -EINVAL, "--%s", choice->flag);
}

/*
 * True if that directory is what flags, configuration or installation name today: so it is trusted.
 */
static bool is_named(const struct cli *c, const char *dir)
{
	char space[PATH_MAX], full[PATH_MAX];
	const struct config *config = NULL;
	const char *named = c->stage1;
	if (!named && (cli_config(c, CONFIG_STAGE1, &config, NULL) < 0 || !config))
		return false;
	if (config && config->stage1_location) {
		if (location_path(config->stage1_location, space) != 0)
			return false;
		named = space;
	}
	struct err none = ERR_INIT;
	return stage1_locate(named, full, &none) == 0 && strcmp(full, dir) == 0;
}

static int open_of_pod(struct cli *c, const struct pod *p, struct stage1 *ret, struct err *e)
{
	struct err why = ERR_INIT;
	int r = pod_stage1_open(p, ret, &why);
	if (r == POD_STAGE1_NONE)
		return stage1_choose(c, NULL, PULL_NEVER, ret, e);
	if (r == 0 && trusted_stage1(ret, geteuid(), &why) < 0 && !is_named(c, ret->dir))
		r = why.code;
	if (r == 0)
		return 0;
	if (c->stage1)
		return stage1_open(c->stage1, ret, e);
	return err_set(e, why.code, "the stage1 of the pod: %s (name one with --stage1=DIR)",
		       why.text);
}

int cli_pod_stage1(struct cli *c, const struct pod *p, struct stage1 **ret, struct err *e)
{
	cleanup_free struct stage1 *s = calloc(1, sizeof(*s));
	int r = s ? open_of_pod(c, p, s, e) : err_sys(e, -ENOMEM, "stage1");
	if (r == 0)
		*ret = TAKE_PTR(s);
	return r;
}
