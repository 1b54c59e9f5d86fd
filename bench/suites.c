/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/suites.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/host.h"
#include "bench/volume.h"
#include "lib/base/macros.h"
#include "lib/os/clock.h"

#define AT_ONCE    8 /* starts at a time: more than most laptops have processors */
#define STREAM_MIB 256
#define NET_MIB    256
#define NET_TRIPS  2000
#define NET_ASKS   500
#define FILE_MIB   64 /* /bench/data of the image that husk-bench makes: see make-image */

const char *const suites_names[] = { "start",  "app",     "stream", "processor", "disk",
				     "volume", "network", "memory", "many",      NULL };

static const struct {
	const char *suite, *text;
} abouts[] = {
	{ "start",
	  "A pod is started, prints a word and ends, as with \"husk run IMAGE -- echo\"." },
	{ "app", "An app is added to a pod that runs. For runc and its like that is a second "
		 "container in the namespaces of the first, as under Kubernetes." },
	{ "stream", "Bytes between the pod and whoever started it, counted by husk-bench." },
	{ "processor", "Programs of the image at work. Times are taken by husk-bench between lines "
		       "that the pod prints, so neither start nor the pod's own clock count." },
	{ "disk", "The image is read, and files are written into the pod's root file system." },
	{ "volume",
	  "Files are written into a volume: a directory on the pod's disk (empty), one of the host "
	  "(host), a file system in a file of the host (block). For runc and its like a directory "
	  "of the host is a bind mount." },
	{ "network",
	  "A service in the pod, and husk-bench as its client on the host. Pods of husk have "
	  "the default network, that is a plugin, and a filter; for runc and its like it is "
	  "a bare veth pair." },
	{ "memory", "Pods that do nothing but sleep, counted on the host." },
	{ "many", "Pods that are started at the same time." },
};

const char *suites_about(const char *suite)
{
	for (size_t i = 0; i < ARRAY_SIZE(abouts); i++)
		if (strcmp(abouts[i].suite, suite) == 0)
			return abouts[i].text;
	return "";
}

static double ms(int64_t from, int64_t to)
{
	return (double)(to - from) / (double)NS_PER_MS;
}

/* As husk has rendered the image, and as the others read it. */
static void drop_caches(const struct contender *c)
{
	char trees[PATH_MAX];
	snprintf(trees, sizeof(trees), "%s/trees", c->site->data);
	host_drop_cache(trees);
	host_drop_cache(c->site->rootfs);
}

static int measure_start(const struct step *step, struct contender *c, struct reading *readings,
			 struct err *e)
{
	(void)step;
	drop_caches(c);
	for (size_t warm = 0; warm <= 1; warm++) {
		cleanup_command struct command command;
		command_init(&command);
		int r = c->ops->run(c, 0, WORDS("echo", "ready"), &command, e);
		if (r == 0)
			r = command_run(c->site->runner, &command, e);
		if (r < 0)
			return r;
		readings[2 * warm].value = ms(command.start_ns, command.first_ns);
		readings[2 * warm + 1].value = ms(command.start_ns, command.end_ns);
	}
	return 0;
}

/* One of the functions for apps, timed; what goes wrong is the matter of this row alone. */
static bool time_app(struct contender *c, int (*fn)(struct contender *, struct err *),
		     struct reading *reading)
{
	struct err e = ERR_INIT;
	int64_t start = clock_monotonic_ns();
	int r = fn(c, &e);
	reading->value = r == 0 ? ms(start, clock_monotonic_ns()) : NAN;
	snprintf(reading->why, sizeof(reading->why), "%.*s", RESULTS_TEXT_MAX - 1, e.text);
	return r == 0;
}

static int measure_app(const struct step *step, struct contender *c, struct reading *readings,
		       struct err *e)
{
	(void)step;
	int r = c->ops->start(c, 0, true, e);
	if (r < 0)
		return r;
	(void)time_app(c, c->ops->app_add, &readings[0]);
	(void)time_app(c, c->ops->app_exec, &readings[1]);
	(void)time_app(c, c->ops->app_remove, &readings[2]);
	return 0;
}

/* Parts of a script lie between the lines that it prints; those that came to their end count. */
static int measure_script(const struct step *step, struct contender *c, struct reading *readings,
			  struct err *e)
{
	cleanup_command struct command command;
	command_init(&command);
	command.feed = step->feed;
	if (step->cold)
		drop_caches(c);
	int r = c->ops->run(c, 0, WORDS("sh", "-c", step->script), &command, e);
	if (r == 0)
		r = command_run(c->site->runner, &command, e);
	for (size_t i = 0; i < suites_step_rows(step) && i + 1 < command.n_marks; i++) {
		double s = ms(command.mark_ns[i], command.mark_ns[i + 1]) / 1000;
		readings[i].value = s > 0 ? step->amounts[i] / s : NAN;
	}
	return r;
}

static int measure_stdout(const struct step *step, struct contender *c, struct reading *readings,
			  struct err *e)
{
	cleanup_command struct command command;
	command_init(&command);
	int r = c->ops->run(c, 0, WORDS("sh", "-c", step->script), &command, e);
	if (r == 0)
		r = command_run(c->site->runner, &command, e);
	if (r < 0)
		return r;
	if (command.bytes != (uint64_t)STREAM_MIB << 20)
		return err_set(e, -EIO, "%llu bytes came instead of %llu",
			       (unsigned long long)command.bytes,
			       (unsigned long long)STREAM_MIB << 20);
	readings[0].value = (double)(command.bytes - command.first_bytes) / (1 << 20) /
			    (ms(command.first_ns, command.last_ns) / 1000);
	return 0;
}

/* fio says it itself, as the only line. */
static int measure_fio(const struct step *step, struct contender *c, struct reading *readings,
		       struct err *e)
{
	cleanup_command struct command command;
	command_init(&command);
	drop_caches(c);
	int r = c->ops->run(c, 0, WORDS("sh", "-c", step->script), &command, e);
	if (r == 0)
		r = command_run(c->site->runner, &command, e);
	if (r < 0)
		return r;
	cleanup_free char *text = buf_take_string(&command.out);
	char *end = text;
	double value = text ? strtod(text, &end) : 0;
	if (end == text || value <= 0)
		return err_set(e, -EBADMSG, "fio says \"%.100s\"", text ? text : "");
	readings[0].value = value;
	return 0;
}

/* What the script of this step has serve. */
enum network_port {
	PORT_SINK = 5001,
	PORT_SOURCE,
	PORT_ECHO,
	PORT_HTTP,
};

static int measure_network(const struct step *step, struct contender *c, struct reading *readings,
			   struct err *e)
{
	char ip[NETWORK_IP_SIZE];
	const struct network_client n = { c->site->runner, contender_namespaces(c), ip };
	const uint64_t bytes = (uint64_t)NET_MIB << 20;
	double s;
	if (!c->ops->serve)
		return err_set(e, -ENOTSUP, "it is not given a network");
	int r = c->ops->serve(c, step->script, ip, e);
	if (r == 0 && (r = network_send(&n, PORT_SINK, bytes, &s, e)) == 0)
		readings[0].value = NET_MIB / s;
	if (r == 0 && (r = network_receive(&n, PORT_SOURCE, bytes, &s, e)) == 0)
		readings[1].value = NET_MIB / s;
	if (r == 0 && (r = network_echo(&n, PORT_ECHO, NET_TRIPS, &s, e)) == 0)
		readings[2].value = s / NET_TRIPS * 1e6;
	if (r == 0 && (r = network_ask(&n, PORT_HTTP, NET_ASKS, &s, e)) == 0)
		readings[3].value = NET_ASKS / s;
	return r;
}

/* Counts the families of the first @n pods. */
static int count_pods(struct contender *c, unsigned n, bool with_memory, struct family *ret,
		      struct err *e)
{
	cleanup_free pid_t *heads = calloc(n, sizeof(*heads));
	int r = heads ? 0 : err_sys(e, -ENOMEM, "cannot list pods");
	for (unsigned i = 0; r == 0 && i < n; i++)
		r = c->ops->pid(c, i, &heads[i], e);
	return r < 0 ? r : host_count_families(heads, n, c->dir, with_memory, ret, e);
}

/* Processor time of @n pods in 10 s, a thousand clock ticks, in percent of one processor. */
static int measure_idle_time(struct contender *c, unsigned n, struct reading *reading,
			     struct err *e)
{
	struct family before = { 0 }, after = { 0 };
	struct runner *runner = c->site->runner;
	cleanup_command struct command nap;
	command_init(&nap);
	int r = command_words(&nap, WORDS("/bin/sleep", "10"), e);
	if (r == 0)
		r = count_pods(c, n, false, &before, e);
	int64_t start = clock_monotonic_ns();
	if (r == 0)
		r = command_run(runner, &nap, e); /* so that a signal ends it */
	double s = ms(start, clock_monotonic_ns()) / 1000;
	if (r == 0)
		r = count_pods(c, n, false, &after, e);
	if (r < 0)
		return r;
	double used = (double)(after.ticks - before.ticks) / (double)sysconf(_SC_CLK_TCK);
	reading->value = after.ticks >= before.ticks ? 100 * used / s : NAN;
	return 0;
}

static int measure_memory(const struct step *step, struct contender *c, struct reading *readings,
			  struct err *e)
{
	static const unsigned counts[] = { 1, 10, 50 };
	struct family family;
	unsigned n = 0;
	(void)step;
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		if (counts[i] > c->site->pods)
			return err_set(e, -ERANGE, "not asked for: --pods=%u", c->site->pods);
		for (; n < counts[i]; n++) {
			int r = c->ops->start(c, n, false, e);
			if (r < 0)
				return r;
		}
		int r = count_pods(c, n, true, &family, e);
		if (r < 0)
			return r;
		readings[i].value = (double)family.pss_kib / 1024 / n;
		if (family.guest_kib > 0)
			readings[3].value = (double)family.guest_kib / 1024 / n;
		else
			snprintf(readings[3].why, sizeof(readings[3].why), "there is no guest");
	}
	return measure_idle_time(c, n, &readings[4], e);
}

static int measure_many(const struct step *step, struct contender *c, struct reading *readings,
			struct err *e)
{
	struct command commands[AT_ONCE];
	int r = 0;
	(void)step;
	for (unsigned i = 0; i < AT_ONCE; i++)
		command_init(&commands[i]);
	for (unsigned i = 0; r == 0 && i < AT_ONCE; i++)
		r = c->ops->run(c, i, WORDS("true"), &commands[i], e);
	int64_t start = clock_monotonic_ns();
	if (r == 0)
		r = command_run_all(c->site->runner, commands, AT_ONCE, e);
	double s = ms(start, clock_monotonic_ns()) / 1000;
	for (unsigned i = 0; i < AT_ONCE; i++) {
		if (r == 0)
			r = command_check(&commands[i], e);
		command_deinit(&commands[i]);
	}
	if (r == 0)
		readings[0].value = AT_ONCE / s;
	return r;
}

#define LESS true
#define MORE false

/* The same for each kind of volume. */
#define VOLUME_STEPS(kind)                                                                           \
	{ .suite = "volume",                                                                         \
	  .weight = 15,                                                                              \
	  .measure = measure_script,                                                                 \
	  .volume = kind,                                                                            \
	  .script = "set -e; cd " VOLUME_TARGET "; echo;"                                            \
		    "dd if=/dev/zero of=w bs=64k count=1024 conv=fsync 2>/dev/null; echo;"           \
		    "dd if=w of=/dev/null bs=64k 2>/dev/null; echo;"                                 \
		    "i=0; while [ $i -lt 500 ]; do : >f$i; i=$((i+1)); done; echo; rm f*; echo",     \
	  .amounts = { FILE_MIB, FILE_MIB, 500, 500 },                                               \
	  .rows = { { "volume." kind ".write", "Write a file with fsync, " kind, "MiB/s", MORE,      \
		      "dd writes 64 MiB of zeros, until all of it is on disk." },                    \
		    { "volume." kind ".read", "Read it again, " kind, "MiB/s", MORE,                 \
		      "dd, from the page cache of whoever has one." },                               \
		    { "volume." kind ".create", "Make files, " kind, "1/s", MORE,                    \
		      "A shell makes 500 empty files." },                                            \
		    { "volume." kind ".remove", "Remove files, " kind, "1/s", MORE,                  \
		      "rm removes them." } } },                                                      \
	{                                                                                            \
		.suite = "volume", .weight = 15, .measure = measure_fio, .volume = kind,             \
		.script =                                                                            \
			"command -v fio >/dev/null || { echo 'the image has no fio' >&2; exit 1; };" \
			"fio --name=s --filename=" VOLUME_TARGET                                     \
			"/s --rw=randwrite --bs=4k --size=4m "                                       \
			"--fsync=1 --ioengine=psync --runtime=5 --minimal >/tmp/fio && "             \
			"cut -d';' -f49 /tmp/fio",                                                   \
		.rows = {                                                                            \
			{ "volume." kind ".sync", "Write blocks and fsync each, " kind, "1/s",       \
			  MORE,                                                                      \
			  "fio writes blocks of 4 KiB of a file of 4 MiB in random order, each to "  \
			  "disk, as the log of a database." }                                        \
		}                                                                                    \
	}

const struct step suites_steps[] = {
	{ .suite = "start",
	  .weight = 5,
	  .measure = measure_start,
	  .rows = { { "start.cold.output", "Cold: to the first output", "ms", LESS,
		      "From the start of the command to the first byte from the pod, after the kernel "
		      "was told to forget the image's files." },
		    { "start.cold.end", "Cold: to the end of the command", "ms", LESS,
		      "The same pod, until its command has returned." },
		    { "start.warm.output", "Warm: to the first output", "ms", LESS,
		      "The same again at once, with the image in memory." },
		    { "start.warm.end", "Warm: to the end of the command", "ms", LESS,
		      "The same pod, until its command has returned." } } },
	{ .suite = "app",
	  .weight = 4,
	  .measure = measure_app,
	  .rows = { { "app.start", "Add an app and start it", "ms", LESS,
		      "husk app add and husk app start; or a second container in the first one's "
		      "namespaces." },
		    { "app.exec", "Run a command in it", "ms", LESS,
		      "husk app exec of true, or exec of the runtime, to its end." },
		    { "app.remove", "Stop and remove it", "ms", LESS,
		      "husk app rm without a grace period, or delete --force of the runtime." } } },
	{ .suite = "stream",
	  .weight = 5,
	  .measure = measure_stdout,
	  .script = "exec dd if=/dev/zero bs=64k count=4096 2>/dev/null",
	  .rows = { { "stream.stdout", "Standard output", "MiB/s", MORE,
		      "dd writes 256 MiB in blocks of 64 KiB; from the first to the last byte." } } },
	{ .suite = "stream",
	  .weight = 5,
	  .measure = measure_script,
	  .script = "echo; dd of=/dev/null bs=64k 2>/dev/null; echo",
	  .feed = (uint64_t)STREAM_MIB << 20,
	  .amounts = { STREAM_MIB },
	  .rows = { { "stream.stdin", "Standard input", "MiB/s", MORE,
		      "256 MiB are written to it, and dd reads them to the end." } } },
	{ .suite = "processor",
	  .weight = 15,
	  .measure = measure_script,
	  .script = "set -e; echo;"
		    "dd if=/dev/zero bs=64k count=1024 2>/dev/null | sha256sum >/dev/null; echo;"
		    "dd if=/dev/zero of=/dev/null bs=1 count=300000 2>/dev/null; echo;"
		    "mkfifo /tmp/a /tmp/b; exec 3<>/tmp/a 4<>/tmp/b; printf x >&3;"
		    "dd bs=1 count=20000 <&3 >&4 2>/dev/null & "
		    "dd bs=1 count=20000 <&4 >&3 2>/dev/null; wait; rm /tmp/a /tmp/b; echo;"
		    "for i in 1 2 3 4; do dd if=/dev/zero of=/dev/null bs=64M count=1 2>/dev/null; "
		    "done; echo;"
		    "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done; echo",
	  .amounts = { 64, 600000, 40000, 256, 200 },
	  .rows = { { "processor.checksum", "Checksum", "MiB/s", MORE,
		      "SHA-256 of 64 MiB of zeros from a pipe, by sha256sum: plain computing." },
		    { "processor.syscalls", "System calls", "1/s", MORE,
		      "dd copies /dev/zero to /dev/null byte by byte: each is a read and a write." },
		    { "processor.switches", "Handovers between two processes", "1/s", MORE,
		      "Two dd pass one byte round through two named pipes: each pass is a context "
		      "switch." },
		    { "processor.faults", "First touch of memory", "MiB/s", MORE,
		      "dd fills a new block of 64 MiB, four times: page faults, and zeroed pages." },
		    { "processor.processes", "New processes", "1/s", MORE,
		      "A shell runs /bin/true 200 times: fork, exec, page faults, exit." } } },
	{ .suite = "disk",
	  .weight = 5,
	  .measure = measure_script,
	  .cold = true,
	  .script =
		  "set -e; [ -e /bench/data ] || { echo 'the image has no /bench/data' >&2; exit 1; };"
		  "echo; dd if=/bench/data of=/dev/null bs=64k 2>/dev/null; echo;"
		  "dd if=/bench/data of=/dev/null bs=64k 2>/dev/null; echo",
	  .amounts = { FILE_MIB, FILE_MIB },
	  .rows = { { "disk.read.cold", "Read a file of the image, cold", "MiB/s", MORE,
		      "dd reads 64 MiB of random bytes in blocks of 64 KiB, after the kernel was told "
		      "to forget the image's files." },
		    { "disk.read.warm", "Read it again", "MiB/s", MORE,
		      "The same at once: from the page cache of whoever has one." } } },
	{ .suite = "disk",
	  .weight = 15,
	  .measure = measure_fio,
	  .script = "command -v fio >/dev/null || { echo 'the image has no fio' >&2; exit 1; };"
		    "fio --name=r --filename=/bench/data --readonly --rw=randread --bs=4k "
		    "--ioengine=psync --minimal >/tmp/fio && cut -d';' -f8 /tmp/fio && rm /tmp/fio",
	  .rows = { { "disk.random", "Read it in random order, cold", "1/s", MORE,
		      "fio reads every block of 4 KiB of that file once, and counts for itself." } } },
	{ .suite = "disk",
	  .weight = 5,
	  .measure = measure_script,
	  .script = "set -e; echo; dd if=/dev/zero of=/tmp/w bs=64k count=1024 2>/dev/null; echo;"
		    "rm /tmp/w",
	  .amounts = { FILE_MIB },
	  .rows = { { "disk.write", "Write a file", "MiB/s", MORE,
		      "dd writes 64 MiB of zeros, which may then still be in memory." } } },
	{ .suite = "disk",
	  .weight = 5,
	  .measure = measure_script,
	  .script = "set -e; echo;"
		    "dd if=/dev/zero of=/tmp/w bs=64k count=1024 conv=fsync 2>/dev/null; echo;"
		    "rm /tmp/w",
	  .amounts = { FILE_MIB },
	  .rows = { { "disk.write.fsync", "Write a file with fsync", "MiB/s", MORE,
		      "The same, and at the end all of it has to be on disk." } } },
	VOLUME_STEPS("empty"),
	VOLUME_STEPS("host"),
	VOLUME_STEPS("block"),
	{ .suite = "network",
	  .weight = 15,
	  .measure = measure_network,
	  .script = "nc -ll -p 5001 -e dd of=/dev/null bs=64k 2>/dev/null & "
		    "nc -ll -p 5002 -e dd if=/dev/zero bs=64k count=4096 2>/dev/null & "
		    "nc -ll -p 5003 -e cat & "
		    "nginx -e stderr -p /tmp -c /bench/nginx.conf & wait",
	  .rows = { { "network.in", "Into the pod", "MiB/s", MORE,
		      "256 MiB over one TCP connection, until dd in the pod has read all." },
		    { "network.out", "Out of the pod", "MiB/s", MORE,
		      "256 MiB that dd in the pod writes to one TCP connection." },
		    { "network.trip", "Round trip", "us", LESS,
		      "A byte goes to cat in the pod and comes back, 2000 times; the mean." },
		    { "network.connections", "Connections", "1/s", MORE,
		      "500 times, one after the other: connect, ask nginx for a page, and have it." } } },
	{ .suite = "memory",
	  .weight = 120,
	  .once = true,
	  .measure = measure_memory,
	  .rows = { { "memory.1", "Memory of a pod, alone", "MiB", LESS,
		      "Proportional set size (PSS) of all its processes on the host: what is shared "
		      "counts divided by those who share it." },
		    { "memory.10", "Memory per pod, of 10", "MiB", LESS,
		      "The same, divided by 10." },
		    { "memory.50", "Memory per pod, of 50", "MiB", LESS,
		      "The same, divided by 50." },
		    { "memory.guest", "Of that touched by the guest", "MiB", LESS,
		      "Resident part of the mapping that is the guest's memory, per pod, in the last of "
		      "these counts that was reached." },
		    { "memory.idle", "Processor time of 50 idle pods", "%", LESS,
		      "User and system time of all their processes in 10 s; 100 % is one "
		      "processor." } } },
	{ .suite = "many",
	  .weight = 15,
	  .measure = measure_many,
	  .rows = { { "many.starts", "Pods per second, 8 at once", "1/s", MORE,
		      "8 pods that run true are started together, until the last has ended." } } },
};

const size_t suites_n_steps = ARRAY_SIZE(suites_steps);

size_t suites_step_rows(const struct step *step)
{
	size_t n = 0;
	while (n < SUITES_STEP_ROWS_MAX && step->rows[n].id)
		n++;
	return n;
}
