/* SPDX-License-Identifier: Apache-2.0 */
#include "host/launch/stage1.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/wire/stage1.h"

#define READ_CHUNK 4096

/* What is different between the interfaces. */
static const struct {
	const char *name;
	const char *prefix; /* of the annotations */
	const char *lock;   /* the variable with the number of the descriptor */
	int version_max;
} abis[STAGE1_ABI_COUNT_] = {
	[STAGE1_ABI_HUSK] = { "husk", STAGE1_ANN_PREFIX, STAGE1_ENV_LOCK_FD,
			      STAGE1_INTERFACE_VERSION },
	[STAGE1_ABI_RKT] = { "rkt", STAGE1_RKT_ANN_PREFIX, STAGE1_RKT_ENV_LOCK_FD,
			     STAGE1_RKT_INTERFACE_VERSION },
};

const char *stage1_abi_name(enum stage1_abi abi)
{
	return abis[abi].name;
}

/* Annotations of a manifest, from which they are borrowed. */
struct annotations {
	struct annotation {
		const char *name, *value;
	} * v;
	size_t n;
};

static void annotations_deinit(struct annotations *a)
{
	free(a->v);
}

/* Those that have both a name and a value, which may not be too long. 0 or -ENOMEM. */
static int read_annotations(struct json_object *manifest, struct annotations *ret)
{
	struct json_object *list = json_member(manifest, "annotations");
	size_t n = list && json_object_is_type(list, json_type_array)
			   ? json_object_array_length(list)
			   : 0;
	ret->v = calloc(n + 1, sizeof(*ret->v));
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		struct json_object *pair = json_object_array_get_idx(list, i);
		struct annotation *a = &ret->v[ret->n];
		if (json_get_str(pair, "name", STAGE1_ENTRYPOINT_MAX, &a->name) == 0 &&
		    json_get_str(pair, "value", STAGE1_ENTRYPOINT_MAX, &a->value) == 0)
			ret->n++;
	}
	return 0;
}

/* The value of the annotation of @abi that STAGE1_ANN_... @name is of ours, or NULL. Borrowed. */
static const char *find_annotation(const struct annotations *a, enum stage1_abi abi,
				   const char *name)
{
	const char *prefix = abis[abi].prefix;
	for (size_t i = 0; i < a->n; i++)
		if (str_starts(a->v[i].name, prefix) &&
		    strcmp(a->v[i].name + strlen(prefix), name + strlen(STAGE1_ANN_PREFIX)) == 0)
			return a->v[i].value;
	return NULL;
}

/* "ARGUMENT HELP" of the option @name. 0 or -EBADMSG. */
static int parse_option(const char *name, const char *text, struct stage1_option *ret)
{
	size_t len = strcspn(text, " ");
	const char *help = text + len + (text[len] == ' ');
	if (!name[0] || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")] ||
	    name[0] == '-' || len == 0 || len > STAGE1_OPTION_ARG_MAX || !*help ||
	    !str_is_printable(text, strlen(text)))
		return -EBADMSG;
	memcpy(ret->arg, text, len);
	ret->arg[len] = '\0';
	if (str_copy(ret->name, sizeof(ret->name), name) < 0 ||
	    str_copy(ret->help, sizeof(ret->help), help) < 0)
		return -EBADMSG;
	return 0;
}

/* Options that the manifest declares; rkt's have none. */
static int read_options(const struct annotations *a, struct stage1 *s, struct err *e)
{
	for (size_t i = 0; i < a->n; i++) {
		if (!str_starts(a->v[i].name, STAGE1_ANN_OPTION))
			continue;
		const char *name = a->v[i].name + strlen(STAGE1_ANN_OPTION);
		if (s->n_options == STAGE1_OPTIONS_MAX)
			return err_set(e, -E2BIG, "its manifest declares more than %d options",
				       STAGE1_OPTIONS_MAX);
		if (stage1_find_option(s, name, strlen(name)) ||
		    parse_option(name, a->v[i].value, &s->options[s->n_options]) < 0)
			return err_set(e, -EBADMSG,
				       "its manifest: option \"%.40s\" is not an argument and a "
				       "line of help, or is there twice",
				       name);
		s->n_options++;
	}
	return 0;
}

const struct stage1_option *stage1_find_option(const struct stage1 *s, const char *name, size_t len)
{
	for (size_t i = 0; i < s->n_options; i++)
		if (strncmp(s->options[i].name, name, len) == 0 && s->options[i].name[len] == '\0')
			return &s->options[i];
	return NULL;
}

/* Whether it is a path of names that are neither hidden nor "..". */
static bool is_place(const char *path)
{
	bool begins = true;
	for (const char *at = path; *at; at++) {
		if (begins && (*at == '.' || *at == '/'))
			return false;
		begins = *at == '/';
	}
	return !begins;
}

/* A file or directory below that of the pod. */
static int read_place(const struct annotations *a, const char *annotation, struct stage1 *s,
		      char ret[STAGE1_CHANGES_MAX + 1], struct err *e)
{
	const char *name = find_annotation(a, s->abi, annotation);
	if (!name)
		return 0;
	if (!is_place(name) || str_copy(ret, STAGE1_CHANGES_MAX + 1, name) < 0)
		return err_set(e, -EBADMSG, "its manifest: \"%.80s\" is not the path of a file",
			       name);
	return 0;
}

static int read_changes(const struct annotations *a, struct stage1 *s, struct err *e)
{
	const char *marks = find_annotation(a, s->abi, STAGE1_ANN_CHANGES_MARKS);
	s->marks_are_user = marks && strcmp(marks, STAGE1_MARKS_USER) == 0;
	if (marks && !s->marks_are_user)
		return err_set(e, -EBADMSG, "its manifest: marks \"%.80s\" are not known", marks);
	int r = read_place(a, STAGE1_ANN_CHANGES_FILE, s, s->changes_file, e);
	return r == 0 ? read_place(a, STAGE1_ANN_CHANGES_DIR, s, s->changes_dir, e) : r;
}

static bool is_name(const char *name)
{
	size_t len = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");
	return len > 0 && len <= STAGE1_NAME_MAX && !name[len];
}

static void read_network(const struct annotations *a, struct stage1 *s)
{
	const char *text = find_annotation(a, s->abi, STAGE1_ANN_NETWORK);
	s->has_network = text && strcmp(text, "true") == 0;
}

/* One word for people; none of a stage1 that does not say. */
static int read_flavor(const struct annotations *a, struct stage1 *s, struct err *e)
{
	const char *name = find_annotation(a, s->abi, STAGE1_ANN_FLAVOR);
	if (!name)
		return 0;
	if (!is_name(name) || str_copy(s->flavor, sizeof(s->flavor), name) < 0)
		return err_set(e, -EBADMSG, "its manifest: \"%.80s\" is not a name of a flavor",
			       name);
	return 0;
}

/*
 * Checks that @relative is a program below the directory @dirfd, @dir, and yields its absolute
 * path.
 */
static int resolve_entrypoint(int dirfd, const char *dir, const char *relative, char out[PATH_MAX],
			      struct err *e)
{
	cleanup_fd int fd = path_open_beneath(dirfd, relative, O_PATH, 0);
	if (fd < 0)
		return err_sys(e, fd, "entrypoint \"%s\"", relative);
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "entrypoint \"%s\"", relative);
	if (!S_ISREG(st.st_mode) || faccessat(dirfd, relative, X_OK, AT_EACCESS) < 0)
		return err_set(e, -EACCES, "entrypoint \"%s\" is not an executable file", relative);
	int n = snprintf(out, PATH_MAX, "%s/%s", dir, relative);
	if (n < 0 || n >= PATH_MAX)
		return err_sys(e, -ENAMETOOLONG, "entrypoint \"%s\"", relative);
	return 0;
}

/* Rkt's images of older interfaces are as good as new ones; of ours there is one. */
static int check_version(const struct annotations *a, struct stage1 *s, struct err *e)
{
	const char *text = find_annotation(a, s->abi, STAGE1_ANN_VERSION);
	const uint64_t max = (uint64_t)abis[s->abi].version_max;
	uint64_t version = 1; /* what a manifest without the annotation speaks */
	const uint64_t min = s->abi == STAGE1_ABI_HUSK ? STAGE1_INTERFACE_VERSION : 1;
	if (text && num_parse_u64(text, INT32_MAX, &version) < 0)
		return err_set(e, -EBADMSG, "interface version \"%s\" is not a number", text);
	if (version > max || version < min)
		return err_set(e, -EPROTONOSUPPORT, "interface version %llu, this husk speaks %d%s",
			       (unsigned long long)version, abis[s->abi].version_max,
			       s->abi == STAGE1_ABI_HUSK ? " (install the stage1 of this husk)"
							 : " of rkt's (use an older stage1)");
	s->version = (int64_t)version;
	return 0;
}

static int read_manifest(int dirfd, struct json_object **ret, struct err *e)
{
	cleanup_free char *text = NULL;
	cleanup_json struct json_object *obj = NULL;
	size_t len;
	int r = file_read_at(dirfd, STAGE1_FILE_MANIFEST, STAGE1_MANIFEST_MAX, &text, &len);
	if (r < 0)
		return err_sys(e, r, "cannot read its manifest");
	r = json_parse(text, len, &obj);
	if (r < 0)
		return err_set(e, r, "its manifest is not valid JSON");
	const char *kind;
	if (json_get_str(obj, "acKind", 32, &kind) < 0 || strcmp(kind, "ImageManifest") != 0)
		return err_set(e, -EBADMSG,
			       "the \"acKind\" of its manifest is not "
			       "\"ImageManifest\"");
	*ret = TAKE_PTR(obj);
	return 0;
}

const struct stage1_entrypoint stage1_entrypoints[] = {
	{ STAGE1_ANN_CHECK, offsetof(struct stage1, check) },
	{ STAGE1_ANN_RUN, offsetof(struct stage1, run) },
	{ STAGE1_ANN_STOP, offsetof(struct stage1, stop) },
	{ STAGE1_ANN_GC, offsetof(struct stage1, gc) },
	{ STAGE1_ANN_ENTER, offsetof(struct stage1, enter) },
	{ STAGE1_ANN_DOCTOR, offsetof(struct stage1, doctor) },
	{ STAGE1_ANN_ATTACH, offsetof(struct stage1, attach) },
	{ STAGE1_ANN_STATS, offsetof(struct stage1, stats) },
	{ STAGE1_ANN_UPDATE, offsetof(struct stage1, update) },
	{ STAGE1_ANN_APP_ADD, offsetof(struct stage1, app_add) },
	{ STAGE1_ANN_APP_START, offsetof(struct stage1, app_start) },
	{ STAGE1_ANN_APP_STOP, offsetof(struct stage1, app_stop) },
	{ STAGE1_ANN_APP_RM, offsetof(struct stage1, app_rm) },
	{ STAGE1_ANN_APP_UPDATE, offsetof(struct stage1, app_update) },
	{ STAGE1_ANN_APP_SIGNAL, offsetof(struct stage1, app_signal) },
	{ STAGE1_ANN_APP_PAUSE, offsetof(struct stage1, app_pause) },
	{ STAGE1_ANN_APP_RESUME, offsetof(struct stage1, app_resume) },
};
const size_t stage1_n_entrypoints = ARRAY_SIZE(stage1_entrypoints);

const char *stage1_program(const struct stage1 *s, size_t index)
{
	return (const char *)s + stage1_entrypoints[index].at;
}

/* The entrypoints that the manifest names, of programs below @dirfd, which is @dir. */
static int read_entrypoints(const struct annotations *a, int dirfd, const char *dir, bool is_image,
			    struct stage1 *s, struct err *e)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < stage1_n_entrypoints; i++) {
		const char *annotation = stage1_entrypoints[i].annotation;
		const char *path = find_annotation(a, s->abi, annotation);
		while (path && is_image && *path == '/') /* the root is the image's */
			path++;
		if (path)
			r = resolve_entrypoint(dirfd, dir, path,
					       (char *)s + stage1_entrypoints[i].at, e);
	}
	return r;
}

/* Takes what the annotations of a manifest say of the stage1 in @dirfd. */
static int take_annotations(const struct annotations *a, int dirfd, struct stage1 *s, struct err *e)
{
	char dir[PATH_MAX + sizeof("/" STAGE1_DIR_ROOTFS)];
	if (!find_annotation(a, s->abi, STAGE1_ANN_RUN))
		s->abi = STAGE1_ABI_RKT;
	if (!find_annotation(a, s->abi, STAGE1_ANN_RUN))
		return err_set(e, -EBADMSG, "its manifest has no annotation \"%s\"",
			       STAGE1_ANN_RUN);
	int r = check_version(a, s, e);
	if (r < 0)
		return r;
	cleanup_fd int rootfs =
		path_open_beneath(dirfd, STAGE1_DIR_ROOTFS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (rootfs < 0 && rootfs != -ENOENT)
		return err_sys(e, rootfs, "its directory \"" STAGE1_DIR_ROOTFS "\"");
	snprintf(dir, sizeof(dir), "%s%s", s->dir, rootfs < 0 ? "" : "/" STAGE1_DIR_ROOTFS);
	r = read_entrypoints(a, rootfs < 0 ? dirfd : rootfs, dir, rootfs >= 0, s, e);
	read_network(a, s);
	if (r == 0)
		r = read_options(a, s, e);
	if (r == 0)
		r = read_flavor(a, s, e);
	return r == 0 ? read_changes(a, s, e) : r;
}

static int read_stage1(int dirfd, struct stage1 *s, struct err *e)
{
	cleanup_json struct json_object *manifest = NULL;
	CLEANUP(annotations_deinit) struct annotations a = { NULL, 0 };
	int r = read_manifest(dirfd, &manifest, e);
	if (r < 0)
		return r;
	r = read_annotations(manifest, &a);
	return r < 0 ? err_sys(e, r, "its manifest") : take_annotations(&a, dirfd, s, e);
}

int stage1_locate(const char *which, char ret[PATH_MAX], struct err *e)
{
	char installed[sizeof(STAGE1_DIR_PREFIX) + STAGE1_NAME_MAX];
	const char *name = which ? which : STAGE1_DEFAULT;
	if (is_name(name)) {
		snprintf(installed, sizeof(installed), STAGE1_DIR_PREFIX "%s", name);
		int r = path_from_self(installed, ret, PATH_MAX);
		if (r == 0)
			return 0;
		if (!which)
			return err_sys(e, r,
				       "no stage1 at \"%s\" beside the husk program (complete the "
				       "installation or use --stage1=DIR)",
				       installed);
	}
	return realpath(name, ret) ? 0 : err_sys(e, -errno, "stage1 \"%s\"", name);
}

static void init(struct stage1 *s)
{
	memset(s, 0, offsetof(struct stage1, dir));
	s->dir[0] = '\0';
	for (size_t i = 0; i < stage1_n_entrypoints; i++)
		*((char *)s + stage1_entrypoints[i].at) = '\0';
}

int stage1_open(const char *which, struct stage1 *ret, struct err *e)
{
	init(ret);
	int r = stage1_locate(which, ret->dir, e);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(ret->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "stage1 \"%s\"", ret->dir);
	r = read_stage1(fd, ret, e);
	return r < 0 ? err_context(e, "stage1 \"%s\"", ret->dir) : 0;
}

/* argv: the program's path, then @args. */
static int make_argv(const char *program, const struct strv *args, struct strv *argv)
{
	strv_init(argv, args ? args->max + 1 : 1);
	int r = strv_add(argv, program);
	if (r == 0 && args)
		r = strv_extend(argv, args);
	return r;
}

int stage1_exec_run(const struct stage1 *s, int pod_fd, const struct strv *args, struct err *e)
{
	cleanup_strv struct strv argv;
	char number[16];
	int r = make_argv(s->run, args, &argv);
	if (r < 0)
		return err_sys(e, r, "arguments of \"%s\"", s->run);
	snprintf(number, sizeof(number), "%d", pod_fd);
	if (setenv(abis[s->abi].lock, number, 1) < 0)
		return err_sys(e, -errno, "cannot set %s", abis[s->abi].lock);
	if (fchdir(pod_fd) < 0)
		return err_sys(e, -errno, "cannot change to the pod directory");
	r = fd_close_others(&pod_fd, 1);
	if (r == 0)
		r = fd_set_cloexec(pod_fd, false);
	if (r < 0)
		return err_sys(e, r, "cannot hand over the pod lock");
	execv(s->run, argv.v);
	return err_sys(e, -errno, "cannot execute \"%s\"", s->run);
}

/* Becomes @program, an entrypoint called @name, in the pod directory. */
static int keep_only(int fd)
{
	int r = fd > STDERR_FILENO && fcntl(fd, F_SETFD, 0) < 0 ? -errno : 0;
	return r == 0 ? fd_close_others(&fd, 1) : r;
}

static int exec_in_pod(const struct stage1 *s, const char *program, const char *name, int pod_fd,
		       int keep_fd, const struct strv *args, struct err *e)
{
	if (!program[0])
		return err_set(e, -EOPNOTSUPP, "stage1 \"%s\" does not support %s", s->dir, name);
	cleanup_strv struct strv argv;
	int r = make_argv(program, args, &argv);
	if (r == 0 && fchdir(pod_fd) < 0)
		r = -errno;
	if (r == 0)
		r = keep_only(keep_fd);
	if (r < 0)
		return err_sys(e, r, "cannot execute \"%s\"", program);
	execv(program, argv.v);
	return err_sys(e, -errno, "cannot execute \"%s\"", program);
}

int stage1_exec_enter(const struct stage1 *s, int pod_fd, int keep_fd, const struct strv *args,
		      struct err *e)
{
	return exec_in_pod(s, s->enter, "enter", pod_fd, keep_fd, args, e);
}

int stage1_exec_attach(const struct stage1 *s, int pod_fd, int keep_fd, const struct strv *args,
		       struct err *e)
{
	return exec_in_pod(s, s->attach, "attach", pod_fd, keep_fd, args, e);
}

int stage1_call(const char *program, int pod_fd, const struct strv *args, struct err *e)
{
	cleanup_strv struct strv argv;
	int status = 0;
	pid_t pid = 0;
	int r = make_argv(program, args, &argv);
	if (r < 0)
		return err_sys(e, r, "arguments of \"%s\"", program);
	struct spawn_plan plan = { .program = program,
				   .argv = argv.v,
				   .change_dir = true,
				   .dir_fd = pod_fd,
				   .die_with_parent = true };
	for (int fd = STDOUT_FILENO; r == 0 && fd <= STDERR_FILENO; fd++)
		r = spawn_plan_fd(&plan, fd, fd);
	if (r == 0)
		r = spawn(&plan, &pid, NULL);
	if (r == 0)
		r = spawn_wait(pid, &status);
	if (r < 0)
		return err_sys(e, r, "cannot run \"%s\"", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return err_set(e, -EIO, "\"%s\" failed", program);
	return 0;
}

/* Appends everything that comes from @fd to @out. */
static int read_all(int fd, struct buf *out)
{
	for (;;) {
		char chunk[READ_CHUNK];
		size_t got;
		int r = fd_read_full(fd, chunk, sizeof(chunk), &got);
		if (r == 0 && got > 0)
			r = buf_append(out, chunk, got);
		if (r < 0 || got < sizeof(chunk))
			return r;
	}
}

/* Reads @fd to its end and keeps the last line, as far as it fits. 0 or -errno. */
static int read_last_line(int fd, char line[ERR_TEXT_MAX])
{
	size_t len = 0;
	bool ended = false;
	for (;;) {
		char chunk[READ_CHUNK];
		size_t got;
		int r = fd_read_full(fd, chunk, sizeof(chunk), &got);
		for (size_t i = 0; r == 0 && i < got; i++) {
			if (chunk[i] == '\n') {
				ended = true; /* blank lines are none */
				continue;
			}
			if (ended)
				len = 0;
			ended = false;
			if (len < ERR_TEXT_MAX - 1)
				line[len++] = chunk[i];
		}
		line[len] = '\0';
		if (r < 0 || got < sizeof(chunk))
			return r;
	}
}

/*
 * What follows "stage1: app/add: ", "stage1: check: " and the like: the words for people, which may
 * have colons, too.
 */
static const char *skip_prefixes(const char *line)
{
	static const char *const prefixes[] = { "stage1: ", "app/", "check: ", "update: " };
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		const char *colon = strstr(line, ": ");
		if (colon && str_starts(line, prefixes[i]))
			line = colon + 2;
	}
	return line;
}

bool stage1_is_mutable(const struct stage1 *s)
{
	return s->app_add[0] && s->app_start[0] && s->app_stop[0] && s->app_rm[0];
}

/*
 * Starts @program in @dir_fd, or where we are if that is -EBADF, with its @child_fd on a pipe, and
 * our stderr unless @quiet. *ret_fd is the end to read, owned by the caller. 0, or -errno and @e.
 */
static int start_piped(const char *program, int dir_fd, const struct strv *args, int child_fd,
		       bool quiet, pid_t *ret_pid, int *ret_fd, struct err *e)
{
	cleanup_strv struct strv argv;
	int pipe_fds[2];
	int r = make_argv(program, args, &argv);
	if (r < 0)
		return err_sys(e, r, "arguments of \"%s\"", program);
	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return err_sys(e, -errno, "cannot make a pipe");
	cleanup_fd int from = pipe_fds[0];
	cleanup_fd int to = pipe_fds[1];
	struct spawn_plan plan = { .program = program,
				   .argv = argv.v,
				   .change_dir = dir_fd >= 0,
				   .dir_fd = dir_fd,
				   .die_with_parent = true };
	r = spawn_plan_fd(&plan, to, child_fd);
	if (r == 0 && child_fd != STDERR_FILENO && !quiet)
		r = spawn_plan_fd(&plan, STDERR_FILENO, STDERR_FILENO);
	if (r == 0)
		r = spawn(&plan, ret_pid, NULL);
	if (r < 0)
		return err_sys(e, r, "cannot run \"%s\"", program);
	*ret_fd = from;
	from = -EBADF;
	return 0;
}

int stage1_ask(const char *program, int pod_fd, const struct strv *args, int *ret_code,
	       struct err *e)
{
	cleanup_fd int from = -EBADF;
	char line[ERR_TEXT_MAX] = "";
	int status = 0;
	pid_t pid = 0;
	int r = start_piped(program, pod_fd, args, STDERR_FILENO, false, &pid, &from, e);
	if (r < 0)
		return r;
	r = read_last_line(from, line);
	int waited = spawn_wait(pid, &status);
	if (r < 0 || waited < 0)
		return err_sys(e, r < 0 ? r : waited, "\"%s\"", program);
	if (!WIFEXITED(status))
		return err_set(e, -EIO, "\"%s\" was killed by signal %d", program,
			       WTERMSIG(status));
	*ret_code = WEXITSTATUS(status);
	if (*ret_code != 0)
		err_set(e, -EIO, "%s", line[0] ? skip_prefixes(line) : "it does not say why");
	return 0;
}

/* @pod_fd is the directory to run it in, or -EBADF: ours. */
static int query(const char *program, int pod_fd, const struct strv *args, bool quiet,
		 struct buf *out, int *ret_status, struct err *e)
{
	cleanup_fd int from = -EBADF;
	int status = 0;
	pid_t pid = 0;
	int r = start_piped(program, pod_fd, args, STDOUT_FILENO, quiet, &pid, &from, e);
	if (r < 0)
		return r;
	r = read_all(from, out);
	fd_replace(&from, -EBADF); /* one that prints too much gets EPIPE */
	int waited = spawn_wait(pid, &status);
	if (r < 0 || waited < 0)
		return err_sys(e, r < 0 ? r : waited, "output of \"%s\"", program);
	*ret_status = status;
	return 0;
}

int stage1_query(const char *program, const struct strv *args, struct buf *out, int *ret_status,
		 struct err *e)
{
	return query(program, -EBADF, args, false, out, ret_status, e);
}

int stage1_query_pod(const char *program, int pod_fd, const struct strv *args, bool quiet,
		     struct buf *out, int *ret_status, struct err *e)
{
	return query(program, pod_fd, args, quiet, out, ret_status, e);
}
