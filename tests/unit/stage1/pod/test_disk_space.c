/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/pod/disk_space.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/clock.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/wire/stage1.h"
#include "tests/support/fixture.h"

static bool is_noted(int dir)
{
	return faccessat(dir, POD_FILE_DISK_FULL, F_OK, 0) == 0;
}

/* What is said on stderr from now on goes into the file "said". */
static int catch_stderr(int dir)
{
	cleanup_fd int fd = openat(dir, "said", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	assert_true(fd >= 0 && old >= 0);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	return old;
}

/* Ends that. Returns how many lines there were. */
static int count_said(int dir, int old)
{
	cleanup_free char *text = NULL;
	size_t len;
	int n = 0;
	assert_int_equal(dup2(old, STDERR_FILENO), STDERR_FILENO);
	fd_close(old);
	assert_int_equal(file_read_at(dir, "said", 4096, &text, &len), 0);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

/*
 * It can be full again and again, and QEMU tells of each write that fails; people hear of it once
 * each time.
 */
static void test_full_and_room_again(void **state)
{
	struct loop loop;
	struct disk_space room;
	int dir = fixture_dir(state);
	assert_int_equal(loop_init(&loop), 0);
	disk_space_init(&room, &loop, dir);
	disk_space_note_error(&room); /* that was for another reason */
	assert_false(room.full);
	int old = catch_stderr(dir);
	for (int i = 0; i < 2; i++) {
		room.min = UINT64_MAX;
		disk_space_note_error(&room);
		disk_space_note_error(&room);
		assert_true(room.full);
		assert_true(is_noted(dir));
		assert_int_equal(loop_turn(&loop), 0); /* one look */
		assert_true(room.full);
		room.min = 0;
		assert_int_equal(loop_turn(&loop), 0);
		assert_false(room.full);
		assert_false(is_noted(dir));
	}
	assert_int_equal(count_said(dir, old), 2);
	disk_space_deinit(&room);
	loop_deinit(&loop);
}

static void test_end_of_pod(void **state)
{
	struct loop loop;
	struct disk_space room;
	int dir = fixture_dir(state);
	assert_int_equal(loop_init(&loop), 0);
	disk_space_init(&room, &loop, dir);
	room.min = UINT64_MAX;
	disk_space_note_error(&room);
	disk_space_deinit(&room);
	assert_false(is_noted(dir));
	assert_null(loop.timers);
	disk_space_deinit(&room);
	loop_deinit(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_full_and_room_again),
		fixture_test(test_end_of_pod),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
