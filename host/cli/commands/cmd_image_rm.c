/* SPDX-License-Identifier: Apache-2.0 */
/* husk image rm */
#include <errno.h>
#include <string.h>

#include "host/cli/cli.h"
#include "host/cli/images.h"
#include "host/cli/stage1_image.h"
#include "images/images.h"

/* The images to remove, none twice. */
struct victims {
	struct digest *ids;              /* room for all operands */
	char (*names)[IMAGE_ID_LEN + 1]; /* what they are called; their records will be gone */
	size_t n;
};

static void victims_deinit(struct victims *v)
{
	free(v->ids);
	free(v->names);
}

static void image_rm_add(struct victims *v, const struct store *s, const struct digest *id)
{
	for (size_t i = 0; i < v->n; i++)
		if (digest_equal(&v->ids[i], id))
			return;
	store_list_id(s, id, v->names[v->n]);
	v->ids[v->n++] = *id;
}

/* Finds what the operands name; what is not there is said. */
static int find_all(const struct cli *c, const struct store *s, const struct strv *names,
		    struct victims *v, struct err *e)
{
	v->ids = calloc(names->n, sizeof(*v->ids));
	v->names = calloc(names->n, sizeof(*v->names));
	if (!v->ids || !v->names)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < names->n; i++) {
		struct digest id;
		struct err why = ERR_INIT;
		if (find_image(s, names->v[i], &id, &why) == 0)
			image_rm_add(v, s, &id);
		else
			cli_message(c, "image \"%s\": %s", names->v[i], why.text);
	}
	return 0;
}

static int image_rm_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	cleanup_store struct store *s = NULL;
	CLEANUP(victims_deinit) struct victims v = { .n = 0 };
	(void)opts;
	if (operands->n == 0)
		return err_set(e, CLI_MISUSE, "must provide at least one image ID");
	int r = cli_open_store(c, &s, e);
	if (r == 0)
		r = find_all(c, s, operands, &v, e);
	if (r == 0)
		r = collect_remove(s, v.ids, v.n, e);
	if (r == 0)
		r = stage1_image_sweep(c, s, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < v.n; i++)
		printf("successfully removed aci for image: \"%s\"\n", v.names[i]);
	fflush(stdout);
	if (v.n > 0)
		cli_message(c, "%zu image(s) successfully removed", v.n);
	return 0; /* as in rkt, whatever was not found */
}

const struct command cmd_image_rm = {
	.name = "rm",
	.path = "image rm",
	.usage = "IMAGE...",
	.summary = "remove images from the store",
	.description = "Pods that use an image keep what they need of it.",
	.run = image_rm_run,
};
