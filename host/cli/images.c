/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/images.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/cli/data_dir.h"
#include "host/cli/flags/insecure.h"
#include "host/cli/settings.h"
#include "images/images.h"
#include "lib/os/fd.h"

#define BYTES_VARIABLE       "HUSK_IMAGE_BYTES_MAX"
#define COMPRESSION_VARIABLE "HUSK_IMAGE_COMPRESSION"

/* What the environment says counts more than the files. */
int cli_image_settings(const struct cli *c, struct store_settings *ret, struct err *e)
{
	const struct config *config = NULL;
	const char *bytes = getenv(BYTES_VARIABLE), *compression = getenv(COMPRESSION_VARIABLE);
	store_settings_init(ret);
	int r = cli_config(c, CONFIG_IMAGES, &config, e);
	if (r < 0)
		return r;
	if (bytes)
		r = store_settings_bytes_max(ret, BYTES_VARIABLE, bytes, e);
	else if (config->images_max_bytes)
		r = store_settings_bytes_max(ret, "configuration: images, \"maxBytes\"",
					     config->images_max_bytes, e);
	if (r == 0 && compression)
		r = store_settings_compression(ret, COMPRESSION_VARIABLE, compression, e);
	else if (r == 0 && config->images_compression)
		r = store_settings_compression(ret, "configuration: images, \"compression\"",
					       config->images_compression, e);
	return r;
}

int cli_open_store(const struct cli *c, struct store **ret, struct err *e)
{
	char path[PATH_MAX];
	struct store_settings settings;
	int r = cli_data_dir(c, path, e);
	if (r == 0)
		r = cli_image_settings(c, &settings, e);
	if (r < 0)
		return r;
	cleanup_fd int fd = cli_open_data_dir(c, true, e);
	r = fd < 0 ? fd : store_open(fd, path, ret, e);
	if (r == 0)
		store_configure(*ret, &settings);
	return r;
}

static int load_credentials(void *ctx, const struct auths **ret_http,
			    const struct auths **ret_docker, struct err *e)
{
	const struct config *config = NULL;
	int r = cli_config(ctx, CONFIG_AUTH, &config, e);
	if (r < 0)
		return r;
	*ret_http = &config->auth;
	*ret_docker = &config->docker_auth;
	return 0;
}

struct fetch_options cli_fetch_options(struct cli *c, struct progress *p,
				       enum cli_audience audience)
{
	bool debug = c->debug && audience != CLI_NOBODY;
	progress_init(p, STDERR_FILENO, debug);
	return (struct fetch_options){
		.insecure_image = c->insecure & INSECURE_IMAGE,
		.insecure_tls = c->insecure & INSECURE_TLS,
		.insecure_http = c->insecure & INSECURE_HTTP,
		.insecure_pubkey = c->insecure & INSECURE_PUBKEY,
		.credentials = load_credentials,
		.keys = cli_trust_dirs(c),
		.config_ctx = c,
		.progress = audience == CLI_ANYBODY || (audience == CLI_TERMINAL && p->terminal)
				    ? progress_show
				    : NULL,
		.note = debug ? progress_note : NULL,
		.ctx = p,
	};
}

int cli_set_pull_policy(void *opts, const struct flag *f, const char *value, struct err *e)
{
	return pull_policy_parse(value, (enum pull_policy *)(void *)((char *)opts + f->offset), e);
}

typedef int (*open_fn)(struct store *s, const struct digest *id, struct image **ret, struct err *e);

static int open_named(struct store *s, const char *name, open_fn open_it, struct image **ret,
		      struct err *e)
{
	struct digest id;
	int r = find_image(s, name, &id, e);
	if (r == 0)
		r = open_it(s, &id, ret, e);
	if (r == STORE_MISSING)
		r = err_set(e, -ENOENT, "parts of it are missing (fetch the image again)");
	return r < 0 ? err_context(e, "image \"%s\"", name) : 0;
}

int cli_open_image(struct store *s, const char *name, struct image **ret, struct err *e)
{
	return open_named(s, name, image_open_documents, ret, e);
}

int cli_open_rendered_image(struct store *s, const char *name, struct image **ret, struct err *e)
{
	return open_named(s, name, image_open, ret, e);
}
