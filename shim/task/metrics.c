/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/task/metrics.h"

#include "shim/proto/metrics.pb-c.h"
#include "shim/proto/pack.h"

#define NO_LIMIT_V1 UINT64_C(0x7ffffffffffff000) /* what memory.limit_in_bytes has without one */
#define NS_PER_US   1000

static uint64_t or_zero(int64_t count)
{
	return count < 0 ? 0 : (uint64_t)count;
}

static uint64_t ns(int64_t usec)
{
	return or_zero(usec) * NS_PER_US;
}

static uint64_t limit(int64_t count, uint64_t none)
{
	return count < 0 ? none : (uint64_t)count;
}

static void fill_memory_v1(const struct agent_app_stats *c, Metrics__MemoryV1 *m)
{
	m->cache = m->total_cache = or_zero(c->memory_file_bytes);
	m->rss = m->total_rss = or_zero(c->memory_anon_bytes);
	m->inactive_file = m->total_inactive_file = or_zero(c->memory_inactive_file_bytes);
	m->pg_fault = m->total_pg_fault = or_zero(c->page_faults);
	m->pg_maj_fault = m->total_pg_maj_fault = or_zero(c->major_page_faults);
	m->usage->usage = or_zero(c->memory_bytes);
	m->usage->max = or_zero(c->memory_peak_bytes);
	m->usage->limit = limit(c->memory_limit, NO_LIMIT_V1);
}

static uint8_t *pack_v1(const struct agent_app_stats *c, size_t *ret_len)
{
	Metrics__PidsV1 pids;
	Metrics__CpuUsageV1 usage;
	Metrics__ThrottleV1 throttle;
	Metrics__CpuV1 cpu;
	Metrics__MemoryEntryV1 entry;
	Metrics__MemoryV1 memory;
	Metrics__BlkEntryV1 in, out, *list[] = { &in, &out };
	Metrics__BlkV1 blk;
	Metrics__MetricsV1 m;
	metrics__pids_v1__init(&pids);
	metrics__cpu_usage_v1__init(&usage);
	metrics__throttle_v1__init(&throttle);
	metrics__cpu_v1__init(&cpu);
	metrics__memory_entry_v1__init(&entry);
	metrics__memory_v1__init(&memory);
	metrics__blk_entry_v1__init(&in);
	metrics__blk_entry_v1__init(&out);
	metrics__blk_v1__init(&blk);
	metrics__metrics_v1__init(&m);
	pids.current = or_zero(c->pids);
	pids.limit = or_zero(c->pids_limit);
	usage.total = ns(c->cpu_usec);
	usage.user = ns(c->user_usec);
	usage.kernel = ns(c->system_usec);
	throttle.throttled_time = ns(c->throttled_usec);
	cpu.usage = &usage;
	cpu.throttling = &throttle;
	memory.usage = &entry;
	fill_memory_v1(c, &memory);
	in.op = proto_text("Read");
	in.value = or_zero(c->io_read_bytes);
	out.op = proto_text("Write");
	out.value = or_zero(c->io_write_bytes);
	blk.io_service_bytes_recursive = list;
	blk.n_io_service_bytes_recursive = 2;
	m.pids = &pids;
	m.cpu = &cpu;
	m.memory = &memory;
	m.blkio = &blk;
	return proto_pack(&m.base, ret_len);
}

static uint8_t *pack_v2(const struct agent_app_stats *c, size_t *ret_len)
{
	Metrics__PidsV2 pids;
	Metrics__CpuV2 cpu;
	Metrics__MemoryV2 memory;
	Metrics__IoEntryV2 entry, *list[] = { &entry };
	Metrics__IoV2 io;
	Metrics__MemoryEventsV2 events;
	Metrics__MetricsV2 m;
	metrics__pids_v2__init(&pids);
	metrics__cpu_v2__init(&cpu);
	metrics__memory_v2__init(&memory);
	metrics__io_entry_v2__init(&entry);
	metrics__io_v2__init(&io);
	metrics__memory_events_v2__init(&events);
	metrics__metrics_v2__init(&m);
	pids.current = or_zero(c->pids);
	pids.limit = limit(c->pids_limit, UINT64_MAX);
	cpu.usage_usec = or_zero(c->cpu_usec);
	cpu.user_usec = or_zero(c->user_usec);
	cpu.system_usec = or_zero(c->system_usec);
	cpu.throttled_usec = or_zero(c->throttled_usec);
	memory.anon = or_zero(c->memory_anon_bytes);
	memory.file = or_zero(c->memory_file_bytes);
	memory.inactive_file = or_zero(c->memory_inactive_file_bytes);
	memory.pgfault = or_zero(c->page_faults);
	memory.pgmajfault = or_zero(c->major_page_faults);
	memory.usage = or_zero(c->memory_bytes);
	memory.max_usage = or_zero(c->memory_peak_bytes);
	memory.usage_limit = limit(c->memory_limit, UINT64_MAX);
	entry.rbytes = or_zero(c->io_read_bytes);
	entry.wbytes = or_zero(c->io_write_bytes);
	io.usage = list;
	io.n_usage = 1;
	events.oom_kill = or_zero(c->oom_kills);
	m.pids = &pids;
	m.cpu = &cpu;
	m.memory = &memory;
	m.io = &io;
	m.memory_events = &events;
	return proto_pack(&m.base, ret_len);
}

uint8_t *metrics_pack(const struct agent_app_stats *counts, bool v2, size_t *ret_len,
		      const char **ret_type)
{
	*ret_type = v2 ? "io.containerd.cgroups.v2.Metrics" : "io.containerd.cgroups.v1.Metrics";
	return (v2 ? pack_v2 : pack_v1)(counts, ret_len);
}
