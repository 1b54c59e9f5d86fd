/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/guest-agent/client.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"

pid_t agent;
static bool with_proc; /* the agent's /proc is that of its own PID namespace, as in a VM */
static char sock[108];
const char *cgroup_dir;
struct client host;

void write_file(const char *dir, const char *name, const char *text, mode_t mode)
{
	char path[512];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	cleanup_fd int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static void make_dir(int dir, const char *name)
{
	assert_int_equal(mkdirat(dir, name, 0755), 0);
}

static void copy_program(int dir, const char *name)
{
	cleanup_fd int from = open(GUEST_APP, O_RDONLY | O_CLOEXEC);
	cleanup_fd int to = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
	assert_true(from >= 0 && to >= 0);
	assert_int_equal(file_copy_sparse(from, to), 0);
}

static void set_time(int dir, const char *name, time_t time)
{
	const struct timespec times[] = { { .tv_sec = time }, { .tv_sec = time } };
	assert_int_equal(utimensat(dir, name, times, 0), 0);
}

static void make_image(int dir, const char *path)
{
	static const char *const dirs[] = { "run",   "scratch",   "disks",
					    "image", "image/bin", "image/etc" };
	char image[512];
	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		make_dir(dir, dirs[i]);
	copy_program(dir, "image/bin/app");
	assert_int_equal(symlinkat("../image", dir, "disks/1"), 0);
	snprintf(image, sizeof(image), "%s/image", path);
	write_file(image, "etc/passwd", "root:x:0:0::/:/\nbob:x:1000:1001::/home/bob:/\n", 0644);
	write_file(image, "etc/group", "bob:x:1001:\nwheel:x:10:bob\n", 0644);
	write_file(image, "bin/script", "#!/no/such/interpreter\n", 0755);
	write_file(image, "bin/plain", "no program\n", 0755);
	write_file(image, "bin/noexec", "no program\n", 0644);
	/* Ways out of the app's root, for whoever follows them with the agent's privileges. */
	assert_int_equal(symlinkat("/proc/1/root", dir, "image/escape"), 0);
	assert_int_equal(symlinkat("../../../../../../..", dir, "image/up"), 0);
	assert_int_equal(symlinkat("/etc", dir, "image/inside"), 0);
	set_time(dir, "image", 1000000001);
	set_time(dir, "image/etc", 1000000002);
}

static _Noreturn void exec_agent(const char *dir, int listener, int secret)
{
	char a[32], b[32], run[512], disks[512], groups[512];
	snprintf(a, sizeof(a), "--listen-fd=%d", listener);
	snprintf(b, sizeof(b), "--secret-fd=%d", secret);
	snprintf(run, sizeof(run), "--run-dir=%s/run", dir);
	snprintf(disks, sizeof(disks), "--disk-dir=%s/disks", dir);
	snprintf(groups, sizeof(groups), "--cgroup-dir=%s", cgroup_dir ? cgroup_dir : "");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(120);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (with_proc && mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(123);
		execl(AGENT_PROGRAM, "husk-agent", "--no-init", a, b, run, disks,
		      cgroup_dir ? groups : NULL, NULL);
		_exit(121);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 122);
}

static void start_agent(const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int secret[2];
	snprintf(sock, sizeof(sock), "%s/a.sock", dir);
	memcpy(addr.sun_path, sock, sizeof(sock));
	cleanup_fd int listener = socket(AF_UNIX, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(listener, 400), 0);
	assert_int_equal(pipe(secret), 0);
	assert_int_equal(fd_write_all(secret[1], SECRET, AGENT_SECRET_LEN), 0);
	close(secret[1]);
	agent = fork();
	assert_true(agent >= 0);
	if (agent == 0)
		exec_agent(dir, listener, secret[0]);
	close(secret[0]);
}

int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = TIMEOUT_MS / 1000 };
	memcpy(addr.sun_path, sock, sizeof(sock));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

void client_init(struct client *cl)
{
	memset(cl, 0, sizeof(*cl));
	cl->fd = dial();
	buf_init(&cl->in, FRAME_MAX);
}

void client_deinit(struct client *cl)
{
	fd_replace(&cl->fd, -EBADF);
	buf_deinit(&cl->in);
}

/* Receives one message of @fd. False at the end of the connection. */
static bool receive(int fd, struct buf *in, struct rpc_msg *ret)
{
	const char *payload;
	size_t len;
	while (frame_peek(in, &payload, &len) != 0) {
		char *where;
		assert_int_equal(buf_reserve(in, 1, &where), 0);
		ssize_t n = recv(fd, where, 1, 0); /* not a byte of what follows */
		if (n <= 0)
			return false;
		buf_commit(in, 1);
	}
	assert_int_equal(rpc_decode(payload, len, ret), 0);
	frame_consume(in, len);
	return true;
}

int64_t ask(struct client *cl, const char *method, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, FRAME_MAX);
	assert_int_equal(rpc_append_request(&out, ++cl->last_id, method, body), 0);
	assert_int_equal(fd_write_all(cl->fd, buf_data(&out), buf_len(&out)), 0);
	return cl->last_id;
}

static void note_exit(struct client *cl, const struct rpc_msg *msg)
{
	if (strcmp(msg->method, AGENT_EXEC_STARTED) == 0) {
		assert_int_equal(agent_exec_ref_decode(msg->body, &cl->exec_start), 0);
		return;
	}
	if (strcmp(msg->method, AGENT_EXEC_EXITED) == 0) {
		assert_int_equal(agent_exec_exited_decode(msg->body, &cl->exec_exit), 0);
		return;
	}
	assert_string_equal(msg->method, AGENT_APP_EXITED);
	assert_true(cl->n_exits < AGENT_APPS_MAX);
	assert_int_equal(agent_app_exited_decode(msg->body, &cl->exits[cl->n_exits++]), 0);
}

/*
 * Waits for the reply to @id: 0 or the error's code. *ret_text and *ret_body, which is the
 * caller's, may be NULL.
 */
static int wait_reply_of(struct client *cl, int64_t id, char *ret_text,
			 struct json_object **ret_body)
{
	for (;;) {
		CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
		assert_true(receive(cl->fd, &cl->in, &msg));
		if (msg.kind == RPC_NOTIFICATION) {
			note_exit(cl, &msg);
			continue;
		}
		if (msg.id != id)
			continue;
		if (ret_text)
			str_copy(ret_text, sizeof(msg.text), msg.text);
		if (ret_body && msg.kind == RPC_RESULT)
			*ret_body = TAKE_PTR(msg.body);
		return msg.kind == RPC_ERROR ? (int)msg.code : 0;
	}
}

int wait_reply(struct client *cl, int64_t id, char *ret_text)
{
	return wait_reply_of(cl, id, ret_text, NULL);
}

int call(struct client *cl, const char *method, struct json_object *body)
{
	return wait_reply(cl, ask(cl, method, body), NULL);
}

const struct agent_app_exited *wait_exit(struct client *cl, const char *app)
{
	for (;;) {
		for (size_t i = 0; i < cl->n_exits; i++)
			if (strcmp(cl->exits[i].app, app) == 0)
				return &cl->exits[i];
		CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
		assert_true(receive(cl->fd, &cl->in, &msg));
		if (msg.kind == RPC_NOTIFICATION)
			note_exit(cl, &msg);
	}
}

int hello(struct client *cl, const char *secret)
{
	struct agent_hello m = { .version_min = 1, .version_max = 1 };
	struct json_object *body;
	str_copy(m.secret, sizeof(m.secret), secret);
	assert_int_equal(agent_hello_encode(&m, &body), 0);
	return call(cl, AGENT_HELLO, body);
}

struct json_object *ref(const char *app)
{
	struct agent_app_ref m;
	struct json_object *body;
	str_copy(m.app, sizeof(m.app), app);
	assert_int_equal(agent_app_ref_encode(&m, &body), 0);
	return body;
}

static void fill_process(struct agent_process *p, const struct how *how)
{
	str_copy(p->user, sizeof(p->user), how->user ? how->user : "");
	str_copy(p->group, sizeof(p->group), how->group ? how->group : "");
	str_copy(p->cwd, sizeof(p->cwd), how->cwd ? how->cwd : "/");
	for (int i = 0; i < 8 && how->argv[i]; i++)
		strv_add(&p->exec, how->argv[i]);
	if (how->env)
		strv_add(&p->env, how->env);
	p->with_stdin = how->with_stdin;
	p->with_tty = how->with_tty;
	p->rows = 24;
	p->cols = 80;
}

static void fill_confinement(struct agent_confinement *c, const struct how *how)
{
	c->capabilities = how->capabilities > 0   ? how->capabilities
			  : how->capabilities < 0 ? 0
						  : AGENT_CAPABILITIES_DEFAULT;
	c->oom_score_adj = how->oom_score_adj;
	c->memory_max = how->memory_max;
	c->pids_max = how->pids_max;
	c->no_new_privs = how->no_new_privs;
	c->read_only_root = how->read_only_root;
	c->open_paths = how->open_paths;
	c->seccomp = how->seccomp ? strdup(how->seccomp) : NULL;
	c->umask = how->umask ? how->umask : -1;
	for (int i = 0; i < 3 && how->masked[i]; i++)
		strv_add(&c->masked_paths, how->masked[i]);
	for (int i = 0; i < 3 && how->read_only[i]; i++)
		strv_add(&c->read_only_paths, how->read_only[i]);
	for (int i = 0; i < 2 && how->groups[i]; i++)
		strv_add(&c->groups, how->groups[i]);
	for (int i = 0; i < 2 && how->rlimits[i]; i++)
		strv_add(&c->rlimits, how->rlimits[i]);
}

int64_t ask_add(const char *app, struct how how)
{
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	struct json_object *body;
	agent_app_add_init(&m);
	str_copy(m.app, sizeof(m.app), app);
	m.lun = how.lun ? how.lun : 1;
	m.stop_signal = how.stop_signal;
	m.with_init = how.with_init;
	m.shares_processes = how.shares_processes;
	fill_process(&m.process, &how);
	fill_confinement(&m.confinement, &how);
	for (int i = 0; i < 4 && how.pre_start[i]; i++)
		strv_add(&m.pre_start, how.pre_start[i]);
	for (int i = 0; i < 4 && how.post_stop[i]; i++)
		strv_add(&m.post_stop, how.post_stop[i]);
	assert_int_equal(agent_app_add_encode(&m, &body), 0);
	return ask(&host, AGENT_APP_ADD, body);
}

/* Starts a further process in @app; yields its number or the error's code. */
int exec_in(struct client *cl, const char *app, struct how how)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	struct agent_exec_ref made;
	struct json_object *body;
	cleanup_json struct json_object *reply = NULL;
	agent_app_exec_init(&m);
	str_copy(m.app, sizeof(m.app), app);
	fill_process(&m.process, &how);
	for (int i = 0; i < 2 && how.groups[i]; i++)
		strv_add(&m.groups, how.groups[i]);
	assert_int_equal(agent_app_exec_encode(&m, &body), 0);
	int r = wait_reply_of(cl, ask(cl, AGENT_APP_EXEC, body), NULL, &reply);
	if (r != 0)
		return r;
	assert_int_equal(agent_exec_ref_decode(reply, &made), 0);
	return (int)made.exec;
}

struct agent_app_stats stats_of(const char *app)
{
	struct agent_app_stats m;
	cleanup_json struct json_object *reply = NULL;
	assert_int_equal(wait_reply_of(&host, ask(&host, AGENT_APP_STATS, ref(app)), NULL, &reply),
			 0);
	assert_int_equal(agent_app_stats_decode(reply, &m), 0);
	return m;
}

const struct agent_exec_exited *wait_exec(struct client *cl, int64_t number)
{
	while (cl->exec_exit.exec != number) {
		CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
		assert_true(receive(cl->fd, &cl->in, &msg));
		if (msg.kind == RPC_NOTIFICATION)
			note_exit(cl, &msg);
	}
	return &cl->exec_exit;
}

int start(const char *app)
{
	return call(&host, AGENT_APP_START, ref(app));
}

void add_and_start(const char *app, struct how how)
{
	assert_int_equal(wait_reply(&host, ask_add(app, how), NULL), 0);
	assert_int_equal(start(app), 0);
}

/*
 * Attaches a stream of the app, or of process @exec in it; yields its connection or the error code.
 */
int attach_to(const char *app, int64_t exec, enum agent_stream stream)
{
	cleanup_buf struct buf out, in;
	struct agent_attach m = { .stream = stream, .exec = exec, .secret = SECRET };
	struct json_object *body;
	CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
	buf_init(&out, FRAME_MAX);
	buf_init(&in, FRAME_MAX);
	str_copy(m.app, sizeof(m.app), app);
	assert_int_equal(agent_attach_encode(&m, &body), 0);
	assert_int_equal(rpc_append_request(&out, 1, AGENT_ATTACH, body), 0);
	cleanup_fd int fd = dial();
	assert_int_equal(fd_write_all(fd, buf_data(&out), buf_len(&out)), 0);
	assert_true(receive(fd, &in, &msg));
	return msg.kind == RPC_ERROR ? (int)msg.code : TAKE_FD(fd);
}

int attach(const char *app, enum agent_stream stream)
{
	return attach_to(app, 0, stream);
}

/* Everything that comes out of a stream, as text. */
const char *output_of(const char *app, int64_t exec, enum agent_stream stream)
{
	static char text[65536];
	size_t len;
	cleanup_fd int fd = attach_to(app, exec, stream);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

const char *output(const char *app, enum agent_stream stream)
{
	return output_of(app, 0, stream);
}

const char *run(const char *app, struct how how)
{
	add_and_start(app, how);
	const char *text = output(app, AGENT_STREAM_STDOUT);
	assert_int_equal(wait_exit(&host, app)->code, 0);
	return text;
}

int setup(int64_t lun)
{
	struct agent_pod_setup m = { .hostname = "husk-test", .clock_ns = 1, .scratch_lun = lun };
	struct json_object *body;
	assert_int_equal(agent_pod_setup_encode(&m, &body), 0);
	return call(&host, AGENT_POD_SETUP, body);
}

int64_t ask_shutdown(struct client *cl, int64_t grace_ms)
{
	struct agent_pod_shutdown m = { .grace_ms = grace_ms };
	struct json_object *body;
	assert_int_equal(agent_pod_shutdown_encode(&m, &body), 0);
	return ask(cl, AGENT_POD_SHUTDOWN, body);
}

static int begin_with(void **state, bool proc)
{
	agent = 0;
	with_proc = proc;
	if (fixture_setup(state) != 0)
		return -1;
	make_image(fixture_dir(state), fixture_path(state));
	start_agent(fixture_path(state));
	client_init(&host);
	return hello(&host, SECRET) == 0 && setup(-1) == 0 ? 0 : -1;
}

int begin(void **state)
{
	return begin_with(state, true);
}

int begin_without_proc(void **state)
{
	return begin_with(state, false);
}

int end(void **state)
{
	int status = 0;
	client_deinit(&host);
	kill(agent, SIGKILL);
	waitpid(agent, &status, 0);
	return fixture_teardown(state);
}

/* Reads @fd up to the end of a line. */
const char *read_line(int fd)
{
	static char text[256];
	size_t len = 0;
	while (!memchr(text, '\n', len) && len < sizeof(text) - 1) {
		ssize_t n = read(fd, text + len, 1);
		assert_true(n > 0);
		len += (size_t)n;
	}
	text[len] = '\0';
	return text;
}
