/* SPDX-License-Identifier: Apache-2.0 */
/* husk cat-manifest */
#include <errno.h>

#include "host/cli/pods.h"
#include "lib/base/json.h"
#include "lib/os/file.h"
#include "lib/wire/pod_manifest.h"
#include "lib/wire/stage1.h"

/* Indented, a manifest grows; how much depends on how many short lists it has. */
#define OUTPUT_MAX (8 * POD_MANIFEST_SIZE_MAX)

struct cat_opts {
	bool not_pretty;
	const char *uuid_file;
};

static int set_pretty(void *opts, const struct flag *f, const char *value, struct err *e)
{
	struct cat_opts *o = opts;
	(void)f;
	(void)e;
	o->not_pretty = value[0] == 'f';
	return 0;
}

static const struct flag flags[] = {
	{ .name = "pretty-print",
	  .set = set_pretty,
	  .help = "indent the manifest, the default; =false prints it on one line" },
	FLAG_STRING("uuid-file", "FILE", struct cat_opts, uuid_file,
		    "take the UUID from this file (see run --uuid-file-save)"),
};

static int format(const char *text, size_t len, bool pretty, struct buf *out, struct err *e)
{
	cleanup_json struct json_object *obj = NULL;
	int r = json_parse(text, len, &obj);
	if (r == 0)
		r = json_write(obj, pretty, out);
	if (r == 0)
		r = buf_puts(out, "\n");
	return r < 0 ? err_sys(e, r, "pod manifest") : 0;
}

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
	r = format(text, len, pretty, &out, e);
	if (r == 0)
		cli_print(&out);
	return r;
}

static int run(struct cli *c, char *const *args)
{
	struct cat_opts o = { 0 };
	cleanup_strv struct strv operands;
	struct err e = ERR_INIT;
	int status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &status))
		return status;
	if (o.uuid_file) /* as rkt: what else there is does not count */
		strv_deinit(&operands);
	if (!cli_take_uuids(c, o.uuid_file, 1, &operands, &status))
		return status;
	return print_manifest(c, operands.v[0], !o.not_pretty, &e) < 0 ? cli_fail(c, &e) : 0;
}

const struct command cmd_cat_manifest = {
	.name = "cat-manifest",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print the manifest of a pod",
	.description = "The manifest is an appc pod manifest in JSON.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = run,
};
