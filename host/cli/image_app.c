#include "host/cli/image_app.h"

#include "host/pod/compose.h"

static const char any_command[] =
	"/bin/sh"; /* of an image that has none: it can still be exported */

int image_as_app(const struct image *image, struct pod_app *ret, struct err *e)
{
	const struct image_config *config = image_config(image);
	CLEANUP(app_options_deinit) struct app_options o;
	CLEANUP(pod_env_deinit) struct pod_env env;
	app_options_init(&o);
	pod_env_init(&env);
	if (config->entrypoint.n == 0 && config->cmd.n == 0)
		o.exec = any_command;
	return compose_app(&o, image_name(image), image_id(image), config, &env, ret, e);
}
