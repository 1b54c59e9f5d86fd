/* SPDX-License-Identifier: Apache-2.0 */
/* husk cat-manifest */
#include <errno.h>

#include "host/cli/format/show.h"
#include "host/cli/pods.h"
#include "lib/os/file.h"
#include "lib/wire/pod_manifest.h"
#include "lib/wire/stage1.h"

/* Indented, a manifest grows; how much depends on how many short lists it has. */
#define OUTPUT_MAX (8 * POD_MANIFEST_SIZE_MAX)

struct cat_opts {
	bool pretty;
	const char *uuid_file;
};

static const struct cat_opts defaults = { .pretty = true };

static const struct flag flags[] = {
	FLAG_SWITCH("pretty-print", struct cat_opts, pretty,
		    "indent the manifest, the default; =false prints it on one line"),
	FLAG_UUID_FILE(struct cat_opts),
};

static int print_manifest(struct cli *c, const char *prefix, bool pretty, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_free char *text = NULL;
	cleanup_buf struct buf out;
	size_t len;
	buf_init(&out, OUTPUT_MAX);
	int r = cli_open_pod(c, false, prefix, &ps, &p, e);
	if (r < 0)
		return r;
	r = file_read_at(p.fd, POD_FILE_MANIFEST, POD_MANIFEST_SIZE_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "pod \"%s\": cannot read the pod manifest", p.uuid.text);
	r = show_manifest(text, len, pretty, &out);
	if (r < 0)
		return err_sys(e, r, "pod manifest");
	cli_print(&out);
	return 0;
}

static int cat_manifest_run(struct cli *c, void *opts, struct strv *operands, struct err *e)
{
	const struct cat_opts *o = opts;
	if (o->uuid_file) /* as rkt: what else there is does not count */
		strv_deinit(operands);
	int r = cli_take_uuids(c, o->uuid_file, 1, operands, e);
	return r == 0 ? print_manifest(c, operands->v[0], o->pretty, e) : r;
}

const struct command cmd_cat_manifest = {
	.name = "cat-manifest",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print the manifest of a pod",
	.description = "The manifest is an appc pod manifest in JSON.",
	COMMAND_FLAGS(flags, struct cat_opts),
	.defaults = &defaults,
	.run = cat_manifest_run,
};
