/* husk status */
#include <errno.h>
#include <fcntl.h>

#include "host/cli/cli.h"
#include "host/cli/show.h"
#include "host/pod/info.h"
#include "lib/base/json.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

#define UUID_FILE_MAX       64 /* a UUID and some white space */
#define EXIT_UUID_FILE      1  /* as rkt: the file of --uuid-file cannot be read */
#define STATUS_OUTPUT_LIMIT ((size_t)1024 * 1024)

struct status_opts {
	const char *format;
	const char *uuid_file;
};

static const struct flag flags[] = {
	FLAG_STRING("format", "json|json-pretty", struct status_opts, format,
		    "print JSON instead of lines"),
	FLAG_STRING("uuid-file", "FILE", struct status_opts, uuid_file,
		    "take the UUID from this file (see run --uuid-file-save)"),
};

/* Opens the pod that @prefix names. 0, or -errno and @e. */
static int open_pod(const struct cli *c, const char *prefix, struct pod *ret, struct err *e)
{
	cleanup_pods struct pods *ps = NULL;
	struct uuid uuid;
	if (!*prefix)
		return err_set(e, -EINVAL, "UUID cannot be empty");
	cleanup_fd int data_fd = cli_open_data_dir(c, false, e);
	if (data_fd == -ENOENT) /* no data directory: no pods */
		return err_set(e, -ENOENT, "no matches found for \"%.80s\"", prefix);
	if (data_fd < 0)
		return data_fd;
	int r = pods_open(data_fd, false, &ps, e);
	if (r == 0)
		r = pods_resolve(ps, prefix, &uuid, e);
	if (r < 0)
		return r;
	r = pod_open(ps, uuid.text, ret, e);
	return r > 0 ? err_set(e, -ENOENT, "no matches found for \"%.80s\"", prefix) : r;
}

static int print_pod(const struct pod_info *info, enum show_format format, struct err *e)
{
	cleanup_buf struct buf out;
	buf_init(&out, STATUS_OUTPUT_LIMIT);
	int r;
	if (format == SHOW_TEXT) {
		r = show_status(info, &out);
	} else {
		cleanup_json struct json_object *obj = show_pod_json(info);
		r = obj ? show_json(obj, format, &out) : -ENOMEM;
	}
	if (r < 0)
		return err_sys(e, r, "cannot print the status");
	fwrite(buf_data(&out), 1, buf_len(&out), stdout);
	return 0;
}

static int show_pod(struct cli *c, const char *prefix, enum show_format format)
{
	struct err e = ERR_INIT;
	cleanup_pod struct pod p = POD_INIT;
	cleanup_pod_info struct pod_info info = POD_INFO_INIT;
	int r = open_pod(c, prefix, &p, &e);
	if (r < 0) {
		err_context(&e, "problem retrieving pod");
		return cli_fail(c, &e);
	}
	r = pod_info_read(&p, &info);
	if (r < 0)
		err_sys(&e, r, "cannot read pod \"%s\"", p.uuid.text);
	else
		r = print_pod(&info, format, &e);
	if (r < 0)
		return cli_fail(c, &e);
	if (info.problem.code < 0)
		cli_message(c, "pod \"%s\": %s", p.uuid.text, info.problem.text);
	return 0;
}

/* Reads the UUID that `husk run --uuid-file-save` wrote. */
static int read_uuid_file(const char *path, char **ret, struct err *e)
{
	int r = file_read_at(AT_FDCWD, path, UUID_FILE_MAX, ret, NULL);
	if (r < 0)
		return err_sys(e, r, "unable to resolve UUID from file: \"%s\"", path);
	for (char *p = *ret; *p; p++)
		if (*p == '\n' || *p == ' ')
			*p = '\0';
	return 0;
}

static int status(struct cli *c, char *const *args)
{
	struct status_opts o = { 0 };
	cleanup_strv struct strv operands;
	cleanup_free char *from_file = NULL;
	struct err e = ERR_INIT;
	enum show_format format = SHOW_TEXT;
	int exit_status;
	strv_init(&operands, CLI_ARGS_MAX);
	if (!cli_parse(c, &o, args, &operands, &exit_status))
		return exit_status;
	if (show_format_of(o.format, &format, &e) < 0)
		return cli_usage_error(c, &e);
	if (operands.n != (o.uuid_file ? 0 : 1)) {
		err_set(&e, -EINVAL, "exactly one of UUID and --uuid-file is needed");
		return cli_usage_error(c, &e);
	}
	if (o.uuid_file && read_uuid_file(o.uuid_file, &from_file, &e) < 0) {
		cli_fail(c, &e);
		return EXIT_UUID_FILE;
	}
	return show_pod(c, from_file ? from_file : operands.v[0], format);
}

const struct command cmd_status = {
	.name = "status",
	.usage = "[OPTIONS] UUID | --uuid-file=FILE",
	.summary = "print the state of a pod and the exit codes of its apps",
	.description =
		"UUID may be shortened as long as it stays unique. The exit status is 0 whatever\n"
		"the apps' exit codes are.",
	.flags = flags,
	.n_flags = ARRAY_SIZE(flags),
	.run = status,
};
