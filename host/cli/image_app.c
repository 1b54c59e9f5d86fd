#include "host/cli/image_app.h"

#include <stdbool.h>

#include "host/pod/compose.h"

static const char placeholder[] = "none"; /* an app must have a command; taken away again */

int image_as_app(const struct image *image, struct pod_app *ret, struct err *e)
{
	const struct image_config *config = image_config(image);
	bool has_command = config->entrypoint.n > 0 || config->cmd.n > 0;
	CLEANUP(app_options_deinit) struct app_options o;
	CLEANUP(pod_env_deinit) struct pod_env env;
	app_options_init(&o);
	pod_env_init(&env);
	if (!has_command)
		o.exec = placeholder;
	int r = compose_app(&o, image_name(image), image_id(image), config, &env, ret, e);
	if (!has_command)
		strv_deinit(&ret->exec);
	return r;
}
