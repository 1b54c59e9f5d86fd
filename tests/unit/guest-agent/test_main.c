/*
 * The real program, as PID 1 of a PID namespace, with directories (and once a squashfs on a loop
 * device) for disks. Needs root for namespaces and mounts.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/json.h"
#include "lib/base/str.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"
#include "lib/os/spawn.h"
#include "lib/wire/agent.h"
#include "lib/wire/frame.h"
#include "lib/wire/rpc.h"
#include "tests/support/fixture.h"

#define SECRET     "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define TIMEOUT_MS 20000

/* One control connection. */
struct client {
	int fd;
	int64_t last_id;
	struct buf in;
	struct agent_app_exited exits[AGENT_APPS_MAX];
	size_t n_exits;
	struct agent_exec_exited exec_exit; /* the last one */
};

static pid_t agent;
static bool with_proc; /* the agent's /proc is that of its own PID namespace, as in a VM */
static char sock[108];
static struct client c;

static void write_file(const char *dir, const char *name, const char *text, mode_t mode)
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
	write_file(image, "etc/passwd", "root:x:0:0::/:/\nbob:x:1000:1001::/:/\n", 0644);
	write_file(image, "etc/group", "bob:x:1001:\nwheel:x:10:bob\n", 0644);
	write_file(image, "bin/script", "#!/no/such/interpreter\n", 0755);
	write_file(image, "bin/plain", "no program\n", 0755);
	write_file(image, "bin/noexec", "no program\n", 0644);
	/* Ways out of the app's root, for whoever follows them with the agent's privileges. */
	assert_int_equal(symlinkat("/proc/1/root", dir, "image/escape"), 0);
	assert_int_equal(symlinkat("../../../../../../..", dir, "image/up"), 0);
	assert_int_equal(symlinkat("/etc", dir, "image/inside"), 0);
}

static _Noreturn void exec_agent(const char *dir, int listener, int secret)
{
	char a[32], b[32], run[512], disks[512];
	snprintf(a, sizeof(a), "--listen-fd=%d", listener);
	snprintf(b, sizeof(b), "--secret-fd=%d", secret);
	snprintf(run, sizeof(run), "--run-dir=%s/run", dir);
	snprintf(disks, sizeof(disks), "--disk-dir=%s/disks", dir);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (unshare(CLONE_NEWPID | CLONE_NEWIPC) < 0)
		_exit(120);
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (with_proc && (unshare(CLONE_NEWNS) < 0 ||
				  mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
				  mount("proc", "/proc", "proc", 0, NULL) < 0))
			_exit(123);
		execl(AGENT_PROGRAM, "husk-agent", "--no-init", a, b, run, disks, NULL);
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

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct timeval tv = { .tv_sec = TIMEOUT_MS / 1000 };
	memcpy(addr.sun_path, sock, sizeof(sock));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	return fd;
}

static void client_init(struct client *cl)
{
	memset(cl, 0, sizeof(*cl));
	cl->fd = dial();
	buf_init(&cl->in, FRAME_MAX);
}

static void client_deinit(struct client *cl)
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

static int64_t ask(struct client *cl, const char *method, struct json_object *body)
{
	cleanup_buf struct buf out;
	buf_init(&out, FRAME_MAX);
	assert_int_equal(rpc_append_request(&out, ++cl->last_id, method, body), 0);
	assert_int_equal(fd_write_all(cl->fd, buf_data(&out), buf_len(&out)), 0);
	return cl->last_id;
}

static void note_exit(struct client *cl, const struct rpc_msg *msg)
{
	if (strcmp(msg->method, AGENT_EXEC_EXITED) == 0) {
		assert_int_equal(agent_exec_exited_decode(msg->body, &cl->exec_exit), 0);
		return;
	}
	assert_string_equal(msg->method, AGENT_APP_EXITED);
	assert_true(cl->n_exits < AGENT_APPS_MAX);
	assert_int_equal(agent_app_exited_decode(msg->body, &cl->exits[cl->n_exits++]), 0);
}

/*
 * Waits for the reply to @id: 0 or the error's code. *ret_text and *ret_exec, for the reply of app.exec,
 * may be NULL.
 */
static int wait_reply_of(struct client *cl, int64_t id, char *ret_text,
			 struct agent_exec_ref *ret_exec)
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
		if (ret_exec && msg.kind == RPC_RESULT)
			assert_int_equal(agent_exec_ref_decode(msg.body, ret_exec), 0);
		return msg.kind == RPC_ERROR ? (int)msg.code : 0;
	}
}

static int wait_reply(struct client *cl, int64_t id, char *ret_text)
{
	return wait_reply_of(cl, id, ret_text, NULL);
}

static int call(struct client *cl, const char *method, struct json_object *body)
{
	return wait_reply(cl, ask(cl, method, body), NULL);
}

static const struct agent_app_exited *wait_exit(struct client *cl, const char *app)
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

static int hello(struct client *cl, const char *secret)
{
	struct agent_hello m = { .version_min = 1, .version_max = 1 };
	struct json_object *body;
	str_copy(m.secret, sizeof(m.secret), secret);
	assert_int_equal(agent_hello_encode(&m, &body), 0);
	return call(cl, AGENT_HELLO, body);
}

static struct json_object *ref(const char *app)
{
	struct agent_app_ref m;
	struct json_object *body;
	str_copy(m.app, sizeof(m.app), app);
	assert_int_equal(agent_app_ref_encode(&m, &body), 0);
	return body;
}

/* What the tests vary of an app; zero means the usual. */
struct how {
	const char *argv[8];
	const char *user, *group, *cwd, *env;
	int64_t lun;
	bool with_stdin, with_tty;
};

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

static int64_t ask_add(const char *app, struct how how)
{
	CLEANUP(agent_app_add_deinit) struct agent_app_add m;
	struct json_object *body;
	agent_app_add_init(&m);
	str_copy(m.app, sizeof(m.app), app);
	m.lun = how.lun ? how.lun : 1;
	fill_process(&m.process, &how);
	assert_int_equal(agent_app_add_encode(&m, &body), 0);
	return ask(&c, AGENT_APP_ADD, body);
}

/* Starts a further process in @app; yields its number or the error's code. */
static int exec_in(struct client *cl, const char *app, struct how how)
{
	CLEANUP(agent_app_exec_deinit) struct agent_app_exec m;
	struct agent_exec_ref made;
	struct json_object *body;
	agent_app_exec_init(&m);
	str_copy(m.app, sizeof(m.app), app);
	fill_process(&m.process, &how);
	assert_int_equal(agent_app_exec_encode(&m, &body), 0);
	int r = wait_reply_of(cl, ask(cl, AGENT_APP_EXEC, body), NULL, &made);
	return r == 0 ? (int)made.exec : r;
}

static const struct agent_exec_exited *wait_exec(struct client *cl, int64_t number)
{
	while (cl->exec_exit.exec != number) {
		CLEANUP(rpc_msg_deinit) struct rpc_msg msg = { 0 };
		assert_true(receive(cl->fd, &cl->in, &msg));
		if (msg.kind == RPC_NOTIFICATION)
			note_exit(cl, &msg);
	}
	return &cl->exec_exit;
}

static int start(const char *app)
{
	return call(&c, AGENT_APP_START, ref(app));
}

static void add_and_start(const char *app, struct how how)
{
	assert_int_equal(wait_reply(&c, ask_add(app, how), NULL), 0);
	assert_int_equal(start(app), 0);
}

/* Attaches a stream of the app, or of process @exec in it; yields its connection or the error code. */
static int attach_to(const char *app, int64_t exec, enum agent_stream stream)
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

static int attach(const char *app, enum agent_stream stream)
{
	return attach_to(app, 0, stream);
}

/* Everything that comes out of a stream, as text. */
static const char *output_of(const char *app, int64_t exec, enum agent_stream stream)
{
	static char text[65536];
	size_t len;
	cleanup_fd int fd = attach_to(app, exec, stream);
	assert_true(fd >= 0);
	assert_int_equal(fd_read_full(fd, text, sizeof(text) - 1, &len), 0);
	text[len] = '\0';
	return text;
}

static const char *output(const char *app, enum agent_stream stream)
{
	return output_of(app, 0, stream);
}

static const char *run(const char *app, struct how how)
{
	add_and_start(app, how);
	const char *text = output(app, AGENT_STREAM_STDOUT);
	assert_int_equal(wait_exit(&c, app)->code, 0);
	return text;
}

static int setup(int64_t lun)
{
	struct agent_pod_setup m = { .hostname = "husk-test", .clock_ns = 1, .scratch_lun = lun };
	struct json_object *body;
	assert_int_equal(agent_pod_setup_encode(&m, &body), 0);
	return call(&c, AGENT_POD_SETUP, body);
}

static int64_t ask_shutdown(struct client *cl, int64_t grace_ms)
{
	struct agent_pod_shutdown m = { grace_ms };
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
	client_init(&c);
	return hello(&c, SECRET) == 0 && setup(-1) == 0 ? 0 : -1;
}

static int begin(void **state)
{
	return begin_with(state, true);
}

static int begin_without_proc(void **state)
{
	return begin_with(state, false);
}

static int end(void **state)
{
	int status = 0;
	client_deinit(&c);
	kill(agent, SIGKILL);
	waitpid(agent, &status, 0);
	return fixture_teardown(state);
}

static void test_identity(void **state)
{
	(void)state;
	const char *out = run("a", (struct how){ .argv = { "app", "id" },
						 .user = "bob",
						 .cwd = "/made/for/me",
						 .env = "PATH=/nope:/bin" });
	assert_non_null(strstr(out, "uid 1000 gid 1001 groups 10\n"));
	assert_non_null(strstr(out, "cwd /made/for/me\nhost husk-test\nsession 1\n"));
	assert_non_null(strstr(out, "env PATH=/nope:/bin\n"));
	assert_non_null(strstr(out, "env HOME=/root\n"));
	assert_non_null(strstr(out, "env AC_APP_NAME=a\n"));
	assert_null(strstr(out, "env TERM"));
	out = run("b",
		  (struct how){ .argv = { "bin/app", "id" }, .user = "/bin/app", .group = "7" });
	assert_non_null(strstr(out, "uid 0 gid 7 groups"));
	assert_int_equal(
		wait_reply(&c, ask_add("c", (struct how){ .argv = { "x" }, .user = "eve" }), NULL),
		AGENT_E_USER);
	assert_int_equal(start("c"), AGENT_E_NO_APP);
}

static void test_root_directory(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "read", "/etc/hostname", "read",
						 "/etc/hosts", "read", "/etc/passwd" } });
	assert_int_equal(strncmp(out, "husk-test\n127.0.0.1 localhost ", 30), 0);
	assert_non_null(strstr(out, "localdomain4 husk-test\n"));
	assert_non_null(strstr(out, "bob:x:1000"));
	out = run("b", (struct how){ .argv = { "/bin/app", "mode", "/tmp", "mode", "/dev/ptmx",
					       "mode", "/etc/mtab" } });
	assert_string_equal(out, "/tmp 41777 0:0\n/dev/ptmx 120777 0:0\n/etc/mtab 120777 0:0\n");
	out = run("c", (struct how){ .argv = { "/bin/app", "mode", "/dev/null", "mode", "/dev/shm",
					       "create", "/new" } });
	assert_string_equal(out, "/dev/null 20666 0:0\n/dev/shm 41777 0:0\n/new ok\n");
	/* Another app has its own copy of the image. */
	out = run("d",
		  (struct how){ .argv = { "/bin/app", "open", "/new", "open", "/etc/passwd" } });
	assert_string_equal(out, "/new ENOENT\n/etc/passwd ok\n");
}

static void test_confinement(void **state)
{
	(void)state;
	const char *out =
		run("a", (struct how){ .argv = { "/bin/app", "openw", "/proc/sysrq-trigger",
						 "openw", "/proc/sys/kernel/core_pattern", "openw",
						 "/proc/sys/fs/suid_dumpable" } });
	assert_null(strstr(out, " ok"));
	out = run("sys", (struct how){ .argv = { "/bin/app", "open", "/sys/module/overlay" } });
	assert_null(strstr(out, " ok"));
	out = run("b", (struct how){ .argv = { "/bin/app", "read", "/proc/self/status" } });
	assert_non_null(strstr(out, "CapEff:\t00000000a80425fb\n"));
	assert_non_null(strstr(out, "CapBnd:\t00000000a80425fb\n"));
	assert_non_null(strstr(out, "CapInh:\t0000000000000000\n"));
	assert_non_null(strstr(out, "SigBlk:\t0000000000000000\n"));
	assert_non_null(strstr(out, "SigIgn:\t0000000000000000\n"));
	out = run("c", (struct how){ .argv = { "/bin/app", "read", "/proc/self/status" },
				     .user = "bob" });
	assert_non_null(strstr(out, "CapEff:\t0000000000000000\n"));
	assert_non_null(strstr(out, "CapPrm:\t0000000000000000\n"));
	out = run("d", (struct how){ .argv = { "/bin/app", "read", "/proc/self/oom_score_adj" } });
	assert_string_equal(out, "0\n");
	/* The standard streams belong to the app, so that it can open them. */
	out = run("e",
		  (struct how){ .argv = { "/bin/app", "openw", "/dev/stdout" }, .user = "bob" });
	assert_string_equal(out, "/dev/stdout ok\n");
	/* No descriptor of the agent is left. */
	out = run("f", (struct how){ .argv = { "/bin/app", "open", "/proc/self/fd/3", "open",
					       "/proc/self/fd/4" } });
	assert_string_equal(out, "/proc/self/fd/3 ENOENT\n/proc/self/fd/4 ENOENT\n");
}

static void expect_not_executed(const char *app, const char *program, const char *message)
{
	add_and_start(app, (struct how){ .argv = { program } });
	const struct agent_app_exited *m = wait_exit(&c, app);
	assert_int_equal(m->code, 203);
	assert_int_equal(m->signal, 0);
	assert_string_equal(m->message, message);
	assert_string_equal(output(app, AGENT_STREAM_STDOUT), "");
}

static void test_not_executed(void **state)
{
	(void)state;
	expect_not_executed("a", "/foo-not-there",
			    "Unable to open \"/foo-not-there\": No such file or directory");
	expect_not_executed("b", "nowhere",
			    "Unable to open \"nowhere\": No such file or directory");
	expect_not_executed("c", "/bin/script",
			    "Unable to open \"/no/such/interpreter\": No such file or directory");
	expect_not_executed("d", "/bin/plain",
			    "Unable to execute \"/bin/plain\": Exec format error");
	expect_not_executed("e", "/bin/noexec",
			    "Unable to open \"/bin/noexec\": Permission denied");
	expect_not_executed("f", "/bin", "Unable to open \"/bin\": Permission denied");
}

static void test_status(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "exit", "203" } });
	assert_int_equal(wait_exit(&c, "a")->code, 203);
	assert_string_equal(wait_exit(&c, "a")->message, "");
	add_and_start("b", (struct how){ .argv = { "/bin/app", "wait" } });
	cleanup_fd int out = attach("b", AGENT_STREAM_STDOUT);
	char c1;
	assert_int_equal(read(out, &c1, 1), 1);
	struct agent_app_signal m = { .app = "b", .signal = SIGKILL };
	struct json_object *body;
	assert_int_equal(agent_app_signal_encode(&m, &body), 0);
	assert_int_equal(call(&c, AGENT_APP_SIGNAL, body), 0);
	assert_int_equal(wait_exit(&c, "b")->signal, SIGKILL);
	assert_int_equal(wait_exit(&c, "b")->code, 0);
	/* Who connects later hears of both. */
	CLEANUP(client_deinit) struct client late;
	client_init(&late);
	assert_int_equal(hello(&late, SECRET), 0);
	assert_int_equal(wait_exit(&late, "a")->code, 203);
	assert_int_equal(wait_exit(&late, "b")->signal, SIGKILL);
}

static void test_streams(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "cat" }, .with_stdin = true });
	cleanup_fd int in = attach("a", AGENT_STREAM_STDIN);
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_int_equal(attach("a", AGENT_STREAM_STDOUT), AGENT_E_STATE);
	assert_int_equal(attach("a", AGENT_STREAM_TTY), AGENT_E_STATE);
	assert_int_equal(attach("x", AGENT_STREAM_STDOUT), AGENT_E_NO_APP);
	char text[16];
	assert_int_equal(fd_write_all(in, "echo", 4), 0);
	assert_int_equal(read(out, text, sizeof(text)), 4);
	assert_int_equal(shutdown(in, SHUT_WR), 0);
	assert_int_equal(read(out, text, sizeof(text)), 0);
	assert_int_equal(wait_exit(&c, "a")->code, 0);
	assert_string_equal(output("a", AGENT_STREAM_STDERR), "");
}

/* 64 MiB through both streams while another connection gets its answers. */
static void test_flow(void **state)
{
	(void)state;
	enum {
		SIZE = 64 << 20
	};
	static char mem[65536];
	add_and_start("a", (struct how){ .argv = { "/bin/app", "flood", "67108864" } });
	cleanup_fd int out = attach("a", AGENT_STREAM_STDOUT);
	assert_int_equal(call(&c, AGENT_INFO, NULL), 0); /* nobody reads yet */
	size_t got = 0;
	for (ssize_t n; (n = read(out, mem, sizeof(mem))) > 0;)
		got += (size_t)n;
	assert_int_equal(got, SIZE);
	assert_int_equal(wait_exit(&c, "a")->code, 0);
}

static void test_terminal(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "tty", "cat" }, .with_tty = true });
	cleanup_fd int tty = attach("a", AGENT_STREAM_TTY);
	char text[256];
	size_t len = 0;
	while (!memchr(text, '\n', len))
		len += (size_t)read(tty, text + len, sizeof(text) - len);
	text[len] = '\0';
	assert_string_equal(text, "/dev/pts/0 24 80\r\n");
	struct agent_app_resize m = { .app = "a", .rows = 50, .cols = 100 };
	struct json_object *body;
	assert_int_equal(agent_app_resize_encode(&m, &body), 0);
	assert_int_equal(call(&c, AGENT_APP_RESIZE, body), 0);
	assert_int_equal(fd_write_all(tty, "\004", 1), 0); /* end of file */
	assert_int_equal(wait_exit(&c, "a")->code, 0);
	assert_int_equal(read(tty, text, sizeof(text)), 0);
}

/* Reads @fd up to the end of a line. */
static const char *read_line(int fd)
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

/* It sees what the app has written, and is who the host says, in a session of its own. */
static void test_exec(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "create", "/mine", "wait" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(ready), "/mine ok\n");
	int n = exec_in(&c, "a",
			(struct how){ .argv = { "/bin/app", "mode", "/mine", "id", "exit", "7" },
				      .user = "bob",
				      .env = "A=b",
				      .cwd = "/etc" });
	assert_true(n > 0);
	const char *text = output_of("a", n, AGENT_STREAM_STDOUT);
	assert_non_null(strstr(text, "/mine 100644 0:0\nuid 1000 gid 1001 groups 10\ncwd /etc\n"));
	assert_non_null(strstr(text, "session 1\nenv A=b\n"));
	assert_non_null(strstr(text, "env AC_APP_NAME=a\n"));
	assert_int_equal(wait_exec(&c, n)->code, 7);
	assert_int_equal(c.exec_exit.message[0], '\0');
	assert_int_equal(exec_in(&c, "b", (struct how){ .argv = { "/bin/app" } }), AGENT_E_NO_APP);
}

/* The same bounds as the app's (test_confinement). */
static void test_exec_is_confined(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	int n = exec_in(&c, "a",
			(struct how){ .argv = { "/bin/app", "read", "/proc/self/status", "open",
						"/proc/kcore", "openw", "/proc/sysrq-trigger" } });
	const char *text = output_of("a", n, AGENT_STREAM_STDOUT);
	assert_non_null(strstr(text, "CapEff:\t00000000a80425fb\n"));
	assert_non_null(strstr(text, "CapBnd:\t00000000a80425fb\n"));
	assert_null(strstr(text, " ok\n"));
	wait_exec(&c, n);
}

/* A working directory stays in the app's root, whatever links lead there. */
static void test_working_directory(void **state)
{
	static const char *const ways[] = { "/escape", "/escape/tmp", "/escape/made/here",
					    "/proc/1/root", "/proc/1/cwd" };
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		char name[16];
		snprintf(name, sizeof(name), "a%zu", i);
		add_and_start(name, (struct how){ .argv = { "/bin/app", "id" }, .cwd = ways[i] });
		assert_int_equal(wait_exit(&c, name)->code, 203);
	}
	const char *out = run("up", (struct how){ .argv = { "/bin/app", "id" }, .cwd = "/up/etc" });
	assert_non_null(strstr(out, "\ncwd /etc\n"));
	out = run("in", (struct how){ .argv = { "/bin/app", "id" }, .cwd = "/inside/new/one" });
	assert_non_null(strstr(out, "\ncwd /etc/new/one\n"));
	add_and_start("b", (struct how){ .argv = { "/bin/app", "wait" } });
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		int n = exec_in(&c, "b",
				(struct how){ .argv = { "/bin/app", "id" }, .cwd = ways[i] });
		assert_int_equal(wait_exec(&c, n)->code, 203);
		assert_non_null(strstr(c.exec_exit.message, "cannot change to directory"));
	}
}

/* As many commands as are promised, each with its streams attached. */
static void test_exec_limit(void **state)
{
	static int fds[AGENT_EXECS_MAX][3];
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	for (int i = 0; i < AGENT_EXECS_MAX; i++) {
		int n = exec_in(&c, "a",
				(struct how){ .argv = { "/bin/app", "cat" }, .with_stdin = true });
		assert_int_equal(n, i + 1);
		for (int k = 0; k < 3; k++) {
			fds[i][k] = attach_to("a", n, (enum agent_stream)k);
			assert_true(fds[i][k] >= 0);
		}
	}
	assert_int_equal(exec_in(&c, "a", (struct how){ .argv = { "/bin/app", "cat" } }),
			 AGENT_E_LIMIT);
	for (int i = 0; i < AGENT_EXECS_MAX; i++)
		for (int k = 0; k < 3; k++)
			close(fds[i][k]);
}

static void test_exec_fails(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	int n = exec_in(&c, "a", (struct how){ .argv = { "/nothing" } });
	assert_true(n > 0);
	assert_int_equal(wait_exec(&c, n)->code, 203);
	assert_string_equal(c.exec_exit.message,
			    "Unable to open \"/nothing\": No such file or directory");
	n = exec_in(&c, "a", (struct how){ .argv = { "/bin/app" }, .user = "nobody" });
	assert_int_equal(wait_exec(&c, n)->code, 203);
	assert_non_null(strstr(c.exec_exit.message, "nobody"));
	/* Right behind the start: the app may not be in its namespace yet. */
	assert_int_equal(wait_reply(&c, ask_add("b", (struct how){ .argv = { "/nothing" } }), NULL),
			 0);
	int64_t id = ask(&c, AGENT_APP_START, ref("b"));
	n = exec_in(&c, "b", (struct how){ .argv = { "/bin/app", "exit", "3" } });
	(void)id;
	if (n > 0) /* else the agent knew by then that the app has ended */
		assert_int_not_equal(wait_exec(&c, n)->code, 3);
	else
		assert_int_equal(n, AGENT_E_STATE);
}

static void exec_terminal(const char *expected)
{
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(ready), "ready\n");
	int n = exec_in(&c, "a",
			(struct how){ .argv = { "/bin/app", "tty", "cat" }, .with_tty = true });
	cleanup_fd int tty = attach_to("a", n, AGENT_STREAM_TTY);
	assert_string_equal(read_line(tty), expected);
	const struct agent_exec_resize m = { .exec = n, .rows = 50, .cols = 100 };
	struct json_object *body;
	assert_int_equal(agent_exec_resize_encode(&m, &body), 0);
	assert_int_equal(call(&c, AGENT_EXEC_RESIZE, body), 0);
	const struct agent_exec_signal hangup = { .exec = n, .signal = SIGHUP };
	assert_int_equal(agent_exec_signal_encode(&hangup, &body), 0);
	assert_int_equal(call(&c, AGENT_EXEC_SIGNAL, body), 0);
	assert_int_equal(wait_exec(&c, n)->signal, SIGHUP);
}

static void test_exec_terminal(void **state)
{
	(void)state;
	exec_terminal("/dev/pts/0 24 80\r\n");
}

/* The agent cannot find the app's devpts instance without a /proc that knows its processes. */
static void test_exec_terminal_without_proc(void **state)
{
	(void)state;
	exec_terminal("(null) 24 80\r\n");
}

/* It ends with the connection that asked for it, and the processes of its group with it. */
static void test_exec_ends_with_connection(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	CLEANUP(client_deinit) struct client cl;
	client_init(&cl);
	assert_int_equal(hello(&cl, SECRET), 0);
	int n = exec_in(&cl, "a", (struct how){ .argv = { "/bin/app", "orphan-wait" } });
	cleanup_fd int out = attach_to("a", n, AGENT_STREAM_STDOUT);
	assert_string_equal(read_line(out), "ready\n");
	fd_replace(&cl.fd, -EBADF);
	char byte;
	assert_int_equal(read(out, &byte, 1), 0);
	assert_int_equal(attach_to("a", n, AGENT_STREAM_STDERR), AGENT_E_NO_APP);
	assert_int_equal(call(&c, AGENT_INFO, NULL), 0);
}

static void test_unauthenticated(void **state)
{
	(void)state;
	CLEANUP(client_deinit) struct client bad, none;
	client_init(&bad);
	assert_int_equal(hello(&bad, "ff112233445566778899aabbccddeeff"
				     "00112233445566778899aabbccddeeff"),
			 AGENT_E_SECRET);
	char byte;
	assert_int_equal(recv(bad.fd, &byte, 1, 0), 0);
	client_init(&none);
	assert_int_equal(call(&none, AGENT_INFO, NULL), AGENT_E_SECRET);
	assert_int_equal(recv(none.fd, &byte, 1, 0), 0);
	assert_int_equal(call(&c, AGENT_INFO, NULL), 0);
}

/* Silent connections are bounded, and do not keep others out. */
static void test_silent_connections(void **state)
{
	(void)state;
	int silent[300];
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		silent[i] = dial();
	CLEANUP(client_deinit) struct client cl;
	client_init(&cl);
	assert_int_equal(hello(&cl, SECRET), 0);
	char byte;
	assert_int_equal(recv(silent[0], &byte, 1, 0), 0); /* the oldest were closed */
	for (size_t i = 0; i < ARRAY_SIZE(silent); i++)
		close(silent[i]);
}

static void test_disks(void **state)
{
	char text[RPC_ERROR_TEXT_MAX + 1], path[512];
	snprintf(path, sizeof(path), "%s/disks", fixture_path(state));
	write_file(path, "9", "not an image", 0644);
	assert_int_equal(
		wait_reply(&c, ask_add("a", (struct how){ .argv = { "x" }, .lun = 9 }), text),
		AGENT_E_DISK);
	assert_non_null(strstr(text, "disk 9"));
	assert_int_equal(setup(-1), AGENT_E_STATE);
}

/* A loop device with the image on it; its number in disks/3. Returns its descriptor. */
static int make_squashfs(const char *dir)
{
	char path[512], image[512], program[64];
	pid_t pid;
	int status;
	assert_int_equal(path_find_program("mksquashfs", "/usr/bin:/bin", program, sizeof(program)),
			 0);
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(path, sizeof(path), "%s/image.squashfs", dir);
	char *argv[] = { program, image, path, NULL };
	const struct spawn_plan plan = { .program = program, .argv = argv };
	assert_int_equal(spawn(&plan, &pid, NULL), 0);
	assert_int_equal(spawn_wait(pid, &status), 0);
	assert_int_equal(status, 0);
	cleanup_fd int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int number = ioctl(control, LOOP_CTL_GET_FREE);
	assert_true(number >= 0);
	cleanup_fd int file = open(path, O_RDONLY | O_CLOEXEC);
	char device[32];
	snprintf(device, sizeof(device), "/dev/loop%d", number);
	int fd = open(device, O_RDONLY | O_CLOEXEC);
	struct loop_config config = {
		.fd = (uint32_t)file,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_READ_ONLY,
	};
	assert_int_equal(ioctl(fd, LOOP_CONFIGURE, &config), 0);
	snprintf(path, sizeof(path), "%s/disks/3", dir);
	assert_int_equal(symlink(device, path), 0);
	return fd;
}

static void test_squashfs(void **state)
{
	cleanup_fd int device = make_squashfs(fixture_path(state));
	assert_true(device >= 0);
	const char *out = run("a", (struct how){ .argv = { "/bin/app", "create", "/etc/new", "read",
							   "/etc/group" },
						 .lun = 3 });
	assert_string_equal(out, "/etc/new ok\nbob:x:1001:\nwheel:x:10:bob\n");
	assert_int_equal(wait_reply(&c, ask_shutdown(&c, 1000), NULL), 0);
}

static void test_shutdown(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	add_and_start("b", (struct how){ .argv = { "/bin/app", "orphan" } });
	cleanup_fd int ready = attach("a", AGENT_STREAM_STDOUT);
	cleanup_fd int held = attach("b", AGENT_STREAM_STDOUT);
	char byte;
	assert_int_equal(read(ready, &byte, 1), 1);
	assert_int_equal(wait_exit(&c, "b")->code, 0); /* its child lives on */
	int64_t id = ask_shutdown(&c, 10000);
	assert_int_equal(wait_exit(&c, "a")->code, 4);
	assert_int_equal(wait_reply(&c, id, NULL), 0);
	assert_int_equal(read(held, &byte, 1), 0);
	assert_int_equal(start("a"), AGENT_E_STATE);
	fd_replace(&c.fd, -EBADF);
	int status;
	assert_int_equal(waitpid(agent, &status, 0), agent);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_forced_shutdown(void **state)
{
	(void)state;
	add_and_start("a", (struct how){ .argv = { "/bin/app", "wait" } });
	CLEANUP(client_deinit) struct client other;
	client_init(&other);
	assert_int_equal(hello(&other, SECRET), 0);
	assert_int_equal(wait_reply(&other, ask_shutdown(&other, 0), NULL), 0);
	assert_int_equal(wait_exit(&c, "a")->signal, SIGKILL);
}

/* The open descriptors of the agent, which is the only child of @agent. */
static size_t count_fds(void)
{
	char path[128];
	char pid[32] = "";
	size_t len;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)agent, (int)agent);
	cleanup_fd int children = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fd_read_full(children, pid, sizeof(pid) - 1, &len), 0);
	pid[strcspn(pid, " ")] = '\0';
	snprintf(path, sizeof(path), "/proc/%s/fd", pid);
	cleanup_dir DIR *dir = opendir(path);
	assert_non_null(dir);
	size_t n = 0;
	while (readdir(dir))
		n++;
	return n;
}

/* Not one more after connections, streams and apps have come and gone. */
static void test_descriptors(void **state)
{
	(void)state;
	char name[16];
	size_t before = count_fds();
	for (int i = 0; i < 5; i++) {
		snprintf(name, sizeof(name), "a%d", i);
		run(name, (struct how){ .argv = { "/bin/app", "id" } });
		output(name, AGENT_STREAM_STDERR);
		CLEANUP(client_deinit) struct client cl;
		client_init(&cl);
		assert_int_equal(hello(&cl, SECRET), 0);
	}
	int64_t deadline = clock_monotonic_ns() + TIMEOUT_MS * NS_PER_MS;
	while (count_fds() != before && clock_monotonic_ns() < deadline)
		assert_int_equal(call(&c, AGENT_INFO, NULL), 0);
	assert_int_equal(count_fds(), before);
}

int main(void)
{
	if (geteuid() != 0) {
		puts("SKIP: namespaces and mounts need root");
		return 77;
	}
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(test_identity),
		TEST(test_root_directory),
		TEST(test_confinement),
		TEST(test_not_executed),
		TEST(test_status),
		TEST(test_streams),
		TEST(test_flow),
		TEST(test_terminal),
		TEST(test_exec),
		TEST(test_exec_is_confined),
		TEST(test_working_directory),
		TEST(test_exec_limit),
		TEST(test_exec_fails),
		TEST(test_exec_terminal),
		cmocka_unit_test_setup_teardown(test_exec_terminal_without_proc, begin_without_proc,
						end),
		TEST(test_exec_ends_with_connection),
		TEST(test_unauthenticated),
		TEST(test_silent_connections),
		TEST(test_disks),
		TEST(test_squashfs),
		TEST(test_shutdown),
		TEST(test_forced_shutdown),
		TEST(test_descriptors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
