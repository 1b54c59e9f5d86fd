/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/metrics.h"

#include <stdlib.h>

#include "shim/proto/metrics.pb-c.h"
#include "tests/support/fixture.h"

static const struct agent_app_stats counts = {
	.cpu_usec = 7,
	.user_usec = 4,
	.system_usec = 3,
	.throttled_usec = 2,
	.memory_bytes = 100,
	.memory_peak_bytes = 200,
	.memory_limit = 300,
	.pids = 5,
	.pids_limit = 6,
	.io_read_bytes = 10,
	.io_write_bytes = 11,
	.oom_kills = 1,
	.cpu_limit_millis = 500,
	.memory_anon_bytes = 60,
	.memory_file_bytes = 40,
	.memory_inactive_file_bytes = 30,
	.page_faults = 8,
	.major_page_faults = 9,
};

static void test_version_1(void **state)
{
	size_t len = 0;
	const char *type;
	(void)state;
	uint8_t *bytes = metrics_pack(&counts, false, &len, &type);
	assert_string_equal(type, "io.containerd.cgroups.v1.Metrics");
	Metrics__MetricsV1 *m = metrics__metrics_v1__unpack(NULL, len, bytes);
	assert_non_null(m);
	assert_int_equal(m->cpu->usage->total, 7000);
	assert_int_equal(m->cpu->usage->user, 4000);
	assert_int_equal(m->cpu->usage->kernel, 3000);
	assert_int_equal(m->cpu->throttling->throttled_time, 2000);
	assert_int_equal(m->memory->usage->usage, 100);
	assert_int_equal(m->memory->usage->max, 200);
	assert_int_equal(m->memory->usage->limit, 300);
	assert_int_equal(m->memory->total_inactive_file, 30);
	assert_int_equal(m->memory->rss, 60);
	assert_int_equal(m->memory->total_cache, 40);
	assert_int_equal(m->memory->pg_fault, 8);
	assert_int_equal(m->memory->total_pg_maj_fault, 9);
	assert_int_equal(m->pids->current, 5);
	assert_int_equal(m->pids->limit, 6);
	assert_int_equal(m->blkio->n_io_service_bytes_recursive, 2);
	assert_string_equal(m->blkio->io_service_bytes_recursive[1]->op, "Write");
	assert_int_equal(m->blkio->io_service_bytes_recursive[1]->value, 11);
	metrics__metrics_v1__free_unpacked(m, NULL);
	free(bytes);
}

static void test_version_2(void **state)
{
	size_t len = 0;
	const char *type;
	(void)state;
	uint8_t *bytes = metrics_pack(&counts, true, &len, &type);
	assert_string_equal(type, "io.containerd.cgroups.v2.Metrics");
	Metrics__MetricsV2 *m = metrics__metrics_v2__unpack(NULL, len, bytes);
	assert_non_null(m);
	assert_int_equal(m->cpu->usage_usec, 7);
	assert_int_equal(m->cpu->user_usec, 4);
	assert_int_equal(m->cpu->system_usec, 3);
	assert_int_equal(m->cpu->throttled_usec, 2);
	assert_int_equal(m->memory->usage, 100);
	assert_int_equal(m->memory->max_usage, 200);
	assert_int_equal(m->memory->usage_limit, 300);
	assert_int_equal(m->memory->anon, 60);
	assert_int_equal(m->memory->file, 40);
	assert_int_equal(m->memory->inactive_file, 30);
	assert_int_equal(m->memory->pgfault, 8);
	assert_int_equal(m->memory->pgmajfault, 9);
	assert_int_equal(m->pids->current, 5);
	assert_int_equal(m->pids->limit, 6);
	assert_int_equal(m->io->usage[0]->rbytes, 10);
	assert_int_equal(m->io->usage[0]->wbytes, 11);
	assert_int_equal(m->memory_events->oom_kill, 1);
	metrics__metrics_v2__free_unpacked(m, NULL);
	free(bytes);
}

/* What is not counted is nothing; what is not limited is what the kernel calls that. */
static void test_nothing(void **state)
{
	const struct agent_app_stats none = AGENT_APP_STATS_NONE;
	size_t len = 0;
	const char *type;
	(void)state;
	uint8_t *bytes = metrics_pack(&none, false, &len, &type);
	Metrics__MetricsV1 *v1 = metrics__metrics_v1__unpack(NULL, len, bytes);
	assert_int_equal(v1->memory->usage->limit, UINT64_C(9223372036854771712));
	assert_int_equal(v1->memory->usage->usage, 0);
	assert_int_equal(v1->cpu->usage->total, 0);
	assert_int_equal(v1->pids->limit, 0);
	metrics__metrics_v1__free_unpacked(v1, NULL);
	free(bytes);
	bytes = metrics_pack(&none, true, &len, &type);
	Metrics__MetricsV2 *v2 = metrics__metrics_v2__unpack(NULL, len, bytes);
	assert_true(v2->memory->usage_limit == UINT64_MAX);
	assert_true(v2->pids->limit == UINT64_MAX);
	assert_int_equal(v2->memory->usage, 0);
	metrics__metrics_v2__free_unpacked(v2, NULL);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		fixture_test(test_version_1),
		fixture_test(test_version_2),
		fixture_test(test_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
