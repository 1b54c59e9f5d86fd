/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/stdio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/fixture.h"

static void make_fifos(void **state, struct loop *loop)
{
	assert_int_equal(fchdir(fixture_dir(state)), 0);
	assert_int_equal(mkfifo("in", 0600) | mkfifo("out", 0600), 0);
	assert_int_equal(loop_init(loop), 0);
}

static int open_all(struct loop *loop, const char *const paths[STDIO_COUNT], struct stdio *s,
		    struct err *e)
{
	const struct stdio_request q = { .loop = loop,
					 .paths = { paths[0], paths[1], paths[2] },
					 .source = { "some-id", "some-ns" } };
	return stdio_open(&q, s, e);
}

/* Opening waits for no client, and one that goes and comes again finds its stream. */
static void test_clients(void **state)
{
	static const char *const paths[STDIO_COUNT] = { "in", "out", "" };
	struct loop loop;
	struct stdio s;
	struct err e = ERR_INIT;
	char text[8] = "";
	make_fifos(state, &loop);
	assert_int_equal(open_all(&loop, paths, &s, &e), 0);
	assert_true(s.fds[0] >= 0 && s.fds[1] >= 0);
	assert_int_equal(s.fds[2], -EBADF);
	assert_int_equal(fcntl(s.fds[1], F_GETFL) & O_NONBLOCK, 0);
	for (int i = 0; i < 2; i++) {
		int client = open("out", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		assert_int_equal(write(s.fds[1], "text", 4), 4);
		assert_int_equal(read(client, text, sizeof(text)), 4);
		close(client);
	}
	/* The end of the output is there when all is closed. */
	int client = open("out", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	stdio_close(&s);
	assert_int_equal(read(client, text, sizeof(text)), 0);
	close(client);
	loop_deinit(&loop);
}

/* With the process having its streams, only input goes on here. */
static void test_hand_over(void **state)
{
	static const char *const paths[STDIO_COUNT] = { "in", "out", "out" };
	struct loop loop;
	struct stdio s;
	struct err e = ERR_INIT;
	make_fifos(state, &loop);
	assert_int_equal(open_all(&loop, paths, &s, &e), 0);
	stdio_hand_over(&s);
	for (int i = 0; i < STDIO_COUNT; i++)
		assert_int_equal(s.fds[i], -EBADF);
	assert_true(s.input.fifo >= 0);
	stdio_close(&s);
	assert_int_equal(s.input.fifo, -EBADF);
	loop_deinit(&loop);
}

/* A file, or a device, is read by the process itself. */
static void test_file(void **state)
{
	static const char *const inputs[] = { "file", "/dev/null" };
	struct loop loop;
	make_fifos(state, &loop);
	int file = open("file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(write(file, "text", 4), 4);
	close(file);
	for (size_t i = 0; i < ARRAY_SIZE(inputs); i++) {
		const char *const paths[] = { inputs[i], "", "" };
		char text[8];
		struct stdio s;
		struct err e = ERR_INIT;
		assert_int_equal(open_all(&loop, paths, &s, &e), 0);
		assert_int_equal(read(s.fds[0], text, sizeof(text)), i == 0 ? 4 : 0);
		assert_int_equal(s.input.fifo, -EBADF);
		stdio_close(&s);
	}
	loop_deinit(&loop);
}

static void test_refused(void **state)
{
	char fifo[PATH_MAX], program[PATH_MAX];
	snprintf(fifo, sizeof(fifo), "file://%s/out", fixture_path(state));
	snprintf(program, sizeof(program), "binary://%s/directory", fixture_path(state));
	const struct {
		const char *paths[STDIO_COUNT];
		int code;
	} cases[] = {
		{ { "", "npipe:///log", "" }, -EOPNOTSUPP },
		{ { "", "", "binary:///bin/true" }, -EOPNOTSUPP },
		{ { "", "binary:///not/there", "" }, -ENOENT },
		{ { "", "file://relative", "" }, -EINVAL },
		{ { "", fifo, "" }, -ENXIO }, /* nobody reads it, which is not waited for */
		{ { "", program, "" }, -EACCES },
		{ { "in", "missing", "" }, -ENOENT },
		{ { "", "directory", "" }, -EISDIR },
	};
	struct loop loop;
	make_fifos(state, &loop);
	assert_int_equal(mkdir("directory", 0700), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct stdio s;
		struct err e = ERR_INIT;
		assert_int_equal(open_all(&loop, cases[i].paths, &s, &e), cases[i].code);
		assert_true(e.text[0] != '\0');
		assert_int_equal(s.input.fifo, -EBADF);
	}
	loop_deinit(&loop);
}

/* What is written to a file goes behind what is there; its directory is made. */
static void test_log_file(void **state)
{
	struct loop loop;
	struct stdio s;
	struct err e = ERR_INIT;
	char uri[PATH_MAX], text[16] = "";
	make_fifos(state, &loop);
	snprintf(uri, sizeof(uri), "file://%s/new/dir/log%%20file", fixture_path(state));
	const char *const paths[STDIO_COUNT] = { "", uri, uri };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(open_all(&loop, paths, &s, &e), 0);
		assert_int_equal(write(s.fds[1], "out", 3), 3);
		assert_int_equal(write(s.fds[2], "err", 3), 3);
		stdio_close(&s);
	}
	int fd = open("new/dir/log file", O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 12);
	assert_string_equal(text, "outerrouterr");
	close(fd);
	loop_deinit(&loop);
}

/* A program has both outputs to their ends, and is told whose they are. */
static void test_log_program(void **state)
{
	static const char script[] =
		"#!/bin/sh\nexec 5>&-\n"
		"{ echo \"$*\" $CONTAINER_ID $CONTAINER_NAMESPACE; cat <&3; cat <&4; } >log.part\n"
		"mv log.part log\n";
	struct loop loop;
	struct stdio s;
	struct err e = ERR_INIT;
	char uri[PATH_MAX], text[64] = "";
	make_fifos(state, &loop);
	snprintf(uri, sizeof(uri), "binary://%s/logger?--a=b%%26c&d", fixture_path(state));
	int file = open("logger", O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_int_equal(write(file, script, sizeof(script) - 1), sizeof(script) - 1);
	close(file);
	for (int one = 0; one < 2; one++) {
		const char *const paths[STDIO_COUNT] = { "", uri, one ? "" : uri };
		assert_int_equal(open_all(&loop, paths, &s, &e), 0);
		assert_int_equal(s.fds[2] < 0, one);
		assert_int_equal(write(s.fds[1], "out", 3), 3);
		if (!one)
			assert_int_equal(write(s.fds[2], "err", 3), 3);
		stdio_close(&s);
		assert_int_equal(loop_turn(&loop), 0); /* its end */
		int fd = open("log", O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, text, sizeof(text) - 1);
		assert_true(n > 0);
		text[n] = '\0';
		assert_string_equal(text, one ? "--a b&c d some-id some-ns\nout"
					      : "--a b&c d some-id some-ns\nouterr");
		close(fd);
		assert_int_equal(unlink("log"), 0);
	}
	loop_deinit(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_clients),     fixture_test(test_hand_over),
		fixture_test(test_file),        fixture_test(test_log_file),
		fixture_test(test_log_program), fixture_test(test_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
