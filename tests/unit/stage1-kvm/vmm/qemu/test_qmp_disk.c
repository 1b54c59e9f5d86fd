/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/qmp_disk.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/wire/agent.h"
#include "tests/support/fault.h"
#include "tests/support/fixture.h"

struct exchange {
	struct qmp q;
	struct buf out;
};

static void exchange_init(struct exchange *x)
{
	qmp_init(&x->q);
	buf_init(&x->out, QMP_COMMAND_MAX);
}

static void exchange_deinit(struct exchange *x)
{
	qmp_deinit(&x->q);
	buf_deinit(&x->out);
}

/* What was sent so far, which is then forgotten. */
static void sent(struct exchange *x, const char *expected)
{
	cleanup_free char *text = buf_take_string(&x->out);

	assert_string_equal(text, expected);
}

static void test_add(void **state)
{
	CLEANUP(exchange_deinit) struct exchange x;

	(void)state;
	exchange_init(&x);
	assert_int_equal(qmp_disk_fd_add(&x.q, &x.out, 5, NULL), 0);
	sent(&x, "{\"execute\":\"add-fd\",\"arguments\":{\"fdset-id\":5},\"id\":0}\n");
	assert_int_equal(qmp_disk_node_add(&x.q, &x.out, 5, 255, true, NULL), 0);
	sent(&x, "{\"execute\":\"blockdev-add\",\"arguments\":{\"node-name\":\"disk255\","
		 "\"driver\":\"file\",\"filename\":\"/dev/fdset/5\",\"read-only\":true,"
		 "\"discard\":\"ignore\"},\"id\":1}\n");
	assert_int_equal(qmp_disk_device_add(&x.q, &x.out, 255, NULL), 0);
	sent(&x, "{\"execute\":\"device_add\",\"arguments\":{\"driver\":\"scsi-hd\","
		 "\"bus\":\"scsi0.0\",\"id\":\"disk255\",\"drive\":\"disk255\",\"scsi-id\":0,"
		 "\"lun\":255},\"id\":2}\n");
	assert_int_equal(qmp_disk_node_add(&x.q, &x.out, QMP_FDSET_MAX, 0, false, NULL), 0);
	sent(&x, "{\"execute\":\"blockdev-add\",\"arguments\":{\"node-name\":\"disk0\","
		 "\"driver\":\"file\",\"filename\":\"/dev/fdset/2147483647\",\"read-only\":false,"
		 "\"discard\":\"unmap\"},\"id\":3}\n");
}

static void test_remove(void **state)
{
	CLEANUP(exchange_deinit) struct exchange x;
	int64_t id;

	(void)state;
	exchange_init(&x);
	assert_int_equal(qmp_disk_device_del(&x.q, &x.out, 0, &id), 0);
	assert_int_equal(id, 0);
	sent(&x, "{\"execute\":\"device_del\",\"arguments\":{\"id\":\"disk0\"},\"id\":0}\n");
	assert_int_equal(qmp_disk_node_del(&x.q, &x.out, 0, &id), 0);
	sent(&x,
	     "{\"execute\":\"blockdev-del\",\"arguments\":{\"node-name\":\"disk0\"},\"id\":1}\n");
	assert_int_equal(qmp_disk_fd_remove(&x.q, &x.out, 0, &id), 0);
	assert_int_equal(id, 2);
	sent(&x, "{\"execute\":\"remove-fd\",\"arguments\":{\"fdset-id\":0},\"id\":2}\n");
}

static void test_out_of_range(void **state)
{
	CLEANUP(exchange_deinit) struct exchange x;
	static const int luns[] = { -1, AGENT_LUN_MAX + 1 };
	static const int64_t sets[] = { -1, QMP_FDSET_MAX + 1 };

	(void)state;
	exchange_init(&x);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(qmp_disk_device_add(&x.q, &x.out, luns[i], NULL), -EINVAL);
		assert_int_equal(qmp_disk_device_del(&x.q, &x.out, luns[i], NULL), -EINVAL);
		assert_int_equal(qmp_disk_node_del(&x.q, &x.out, luns[i], NULL), -EINVAL);
		assert_int_equal(qmp_disk_node_add(&x.q, &x.out, 1, luns[i], true, NULL), -EINVAL);
		assert_int_equal(qmp_disk_node_add(&x.q, &x.out, sets[i], 1, true, NULL), -EINVAL);
		assert_int_equal(qmp_disk_fd_add(&x.q, &x.out, sets[i], NULL), -EINVAL);
		assert_int_equal(qmp_disk_fd_remove(&x.q, &x.out, sets[i], NULL), -EINVAL);
	}
	assert_int_equal(buf_len(&x.out), 0);
}

static int add_once(void *ctx)
{
	CLEANUP(exchange_deinit) struct exchange x;
	int r;

	(void)ctx;
	exchange_init(&x);
	if ((r = qmp_disk_fd_add(&x.q, &x.out, 1, NULL)) < 0 ||
	    (r = qmp_disk_node_add(&x.q, &x.out, 1, 1, false, NULL)) < 0 ||
	    (r = qmp_disk_device_add(&x.q, &x.out, 1, NULL)) < 0)
		return r;
	return qmp_disk_device_del(&x.q, &x.out, 1, NULL);
}

static void test_no_memory(void **state)
{
	(void)state;
	for_each_failing_alloc(add_once, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_add),
		fixture_test(test_remove),
		fixture_test(test_out_of_range),
		fixture_test(test_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
