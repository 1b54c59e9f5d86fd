/* SPDX-License-Identifier: Apache-2.0 */
#include "host/pod/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "tests/support/fixture.h"

static struct stage1 stage1 = { .dir = "/s", .changes_file = "scratch" };

static void test_final(void **state)
{
	struct pod p = POD_INIT;
	(void)state;
	for (int locked = 0; locked < 2; locked++)
		for (enum pod_phase phase = 0; phase < POD_PHASE_COUNT_; phase++) {
			p.phase = phase;
			p.locked = locked;
			assert_int_equal(pod_is_final(&p),
					 !locked &&
						 (phase == POD_RUN || phase == POD_EXITED_GARBAGE));
		}
}

/* Opens both, which works or says @error and leaves no descriptor. */
static void check(void **state, int result, const char *error)
{
	const struct pod p = { .fd = fixture_dir(state) };
	struct err e = ERR_INIT;
	struct pod_disks d = { -77, -77, -77 };
	assert_int_equal(pod_open_disks(&p, &stage1, "web", &d, &e), result);
	assert_non_null(strstr(e.text, error));
	if (result < 0) {
		assert_true(d.image == -77 && d.changes == -77 && d.upper == -77);
		return;
	}
	assert_int_equal(fcntl(d.image, F_GETFL) & O_ACCMODE, O_RDONLY);
	assert_int_equal(d.changes >= 0, stage1.changes_file[0] != 0);
	assert_int_equal(d.upper >= 0, stage1.changes_dir[0] != 0);
	if (d.changes >= 0)
		assert_int_equal(fcntl(d.changes, F_GETFL) & O_ACCMODE, O_RDONLY);
	if (d.upper >= 0)
		assert_true(fcntl(d.upper, F_GETFL) & O_PATH);
	fd_close(d.image);
	fd_close(d.changes);
	fd_close(d.upper);
}

static void test_open(void **state)
{
	int dir = fixture_dir(state);
	check(state, -ENOENT, "cannot open the image of app \"web\"");
	assert_int_equal(mkdirat(dir, "apps", 0750), 0);
	assert_int_equal(mkdirat(dir, "apps/web", 0750), 0);
	fixture_write(state, "apps/web/rootfs", "i", 1);
	check(state, -ENOENT, "there is no file \"scratch\" with changes");
	stage1.changes_file[0] = '\0';
	check(state, -EOPNOTSUPP, "its stage1 \"/s\" does not say where changes of apps are");
	stage1.changes_file[0] = 's';
	fixture_write(state, "scratch", "s", 1);
	check(state, 0, "");
}

/* A directory for each app: only that of the one is opened, whoever may enter it. */
static void test_directory(void **state)
{
	int dir = fixture_dir(state);
	stage1.changes_file[0] = '\0';
	strcpy(stage1.changes_dir, "files");
	assert_int_equal(mkdirat(dir, "apps", 0750), 0);
	assert_int_equal(mkdirat(dir, "apps/web", 0750), 0);
	fixture_write(state, "apps/web/rootfs", "i", 1);
	assert_int_equal(mkdirat(dir, "files", 0700), 0);
	check(state, -ENOENT, "there is no directory \"files/web/upper\" with changes");
	assert_int_equal(mkdirat(dir, "files/web", 0700), 0);
	assert_int_equal(symlinkat("/etc", dir, "files/web/upper"), 0);
	check(state, -ENOTDIR, "cannot open the directory \"files/web/upper\" with changes");
	assert_int_equal(unlinkat(dir, "files/web/upper", 0), 0);
	fixture_write(state, "files/web/upper", "", 0);
	check(state, -ENOTDIR, "cannot open the directory");
	assert_int_equal(unlinkat(dir, "files/web/upper", 0), 0);
	assert_int_equal(mkdirat(dir, "files/web/upper", 0), 0);
	check(state, 0, "");
	assert_int_equal(unlinkat(dir, "files/web/upper", AT_REMOVEDIR), 0);
	assert_int_equal(unlinkat(dir, "files/web", AT_REMOVEDIR), 0);
	assert_int_equal(symlinkat("/", dir, "files/web"), 0);
	check(state, -EXDEV, "cannot open the directory");
	strcpy(stage1.changes_file, "scratch");
	stage1.changes_dir[0] = '\0';
}

/* Who may write into the pod does not choose what else we read, nor hold us. */
static void test_hostile(void **state)
{
	int dir = fixture_dir(state);
	assert_int_equal(mkdirat(dir, "apps", 0750), 0);
	assert_int_equal(mkdirat(dir, "apps/web", 0750), 0);
	assert_int_equal(mkfifoat(dir, "apps/web/rootfs", 0600), 0);
	check(state, -EINVAL, "cannot open the image");
	assert_int_equal(unlinkat(dir, "apps/web/rootfs", 0), 0);
	fixture_write(state, "apps/web/rootfs", "i", 1);
	assert_int_equal(symlinkat("/etc/passwd", dir, "scratch"), 0);
	check(state, -ELOOP, "cannot open the file \"scratch\" with changes");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_final),
		fixture_test(test_open),
		fixture_test(test_directory),
		fixture_test(test_hostile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
