/* SPDX-License-Identifier: Apache-2.0 */
#include "host/cli/image_app.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "host/manifest/compose.h"
#include "images/images.h"

static const char placeholder[] = "none"; /* an app must have a command; taken away again */

int image_as_app(const struct image *image, struct pod_app *ret, struct err *e)
{
	const struct image_config *config = &image->config;
	bool has_command = config->entrypoint.n > 0 || config->cmd.n > 0;
	CLEANUP(app_options_deinit) struct app_options o;
	CLEANUP(pod_env_deinit) struct pod_env env;
	app_options_init(&o);
	pod_env_init(&env);
	if (!has_command)
		o.exec = placeholder;
	int r = compose_app(&o, image->name, image->id, config, &env, ret, e);
	if (!has_command)
		strv_deinit(&ret->exec);
	return r;
}

static int read_own(const struct image *image, struct buf *out, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int r = image_read_appc(image, &text, &len, e);
	if (r < 0)
		return r;
	r = buf_append(out, text, len);
	return r < 0 ? err_sys(e, r, "the image's manifest") : 0;
}

int image_describe(const struct image *image, struct buf *out, struct err *e)
{
	CLEANUP(pod_app_deinit) struct pod_app app;
	pod_app_init(&app);
	if (image->is_appc)
		return read_own(image, out, e);
	int r = image_as_app(image, &app, e);
	return r == 0 ? describe_aci(&app, out, e) : r;
}

int export_format_of(const char *text, enum export_format aci, enum export_format *ret,
		     struct err *e)
{
	*ret = text && strcmp(text, "oci") == 0 ? EXPORT_OCI : aci;
	if (text && *ret != EXPORT_OCI && strcmp(text, "aci") != 0)
		return err_set(e, -EINVAL, "--format: \"%.80s\" is neither aci nor oci", text);
	return 0;
}
