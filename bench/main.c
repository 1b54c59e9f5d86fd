/* SPDX-License-Identifier: Apache-2.0 */
/*
 * husk-bench: pods of husk compared with each other and with other runtimes.
 *
 * All that a run makes is below DIR/work of --out, which is gone at the end; the lock on DIR tells
 * that a run is at it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/host.h"
#include "bench/image.h"
#include "bench/options.h"
#include "bench/plots.h"
#include "bench/report.h"
#include "bench/run.h"
#include "bench/suites.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"
#include "lib/os/trusted.h"
#include "lib/wire/stage1.h"

/*
 * Finds the paths, and makes the directory of the results, at @ret. What lies in there, of an
 * earlier run or of peers, is executed: so nobody else may have had a hand in it, nor get one.
 */
static int find_out(const char *out, struct site *site, char ret[PATH_MAX], struct err *e)
{
	cleanup_fd int fd = path_make_dirs(out, 0755);
	if (fd < 0)
		return err_sys(e, fd, "\"%s\": cannot be made", out);
	if (!realpath(out, ret) || strlen(ret) > SITE_PATH_MAX - 8)
		return err_sys(e, -ENAMETOOLONG, "\"%s\"", out);
	snprintf(site->dir, sizeof(site->dir), "%.*s/work", SITE_PATH_MAX - 8, ret);
	snprintf(site->data, sizeof(site->data), "%s/data", site->dir);
	snprintf(site->rootfs, sizeof(site->rootfs), "%s/rootfs", site->dir);
	int r = trusted_path(site->dir, geteuid(), e);
	if (r == -ENOENT)
		r = trusted_path(ret, geteuid(), e);
	return r < 0 ? err_context(e, "--out") : 0;
}

/* Opens and locks it. The descriptor or -errno. */
static int open_out(const char *out, struct site *site, struct err *e)
{
	char path[PATH_MAX];
	int r = find_out(out, site, path, e);
	if (r < 0)
		return r;
	cleanup_fd int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	r = fd < 0 ? -errno : lock_try_exclusive(fd);
	if (r == LOCK_TAKEN)
		return err_set(e, -EBUSY,
			       "\"%s\": another husk-bench is at work there (wait for it, or give "
			       "another --out)",
			       out);
	if (r < 0)
		return err_sys(e, r, "\"%s\": cannot be locked", out);
	return TAKE_FD(fd);
}

static void add_facts(struct results *r, const struct options *o)
{
	char text[RESULTS_TEXT_MAX];
	time_t now = time(NULL);
	struct tm tm;
	if (gmtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &tm) > 0)
		results_add_fact(r, "date", "Date", text);
	host_add_facts(r);
	results_add_fact(r, "image", "Image",
			 o->image ? o->image : "busybox of this host, made by husk-bench");
	snprintf(text, sizeof(text), "%u", o->rounds);
	results_add_fact(r, "rounds", "Rounds", text);
	r->rounds = o->rounds;
}

static int save(int out, const char *name, int (*report)(const struct results *, struct buf *),
		const struct results *r, struct err *e)
{
	cleanup_buf struct buf text;
	buf_init(&text, REPORT_MAX);
	int x = report(r, &text);
	if (x == 0)
		x = file_replace_at(out, name, buf_data(&text), buf_len(&text), 0644);
	return x < 0 ? err_sys(e, x, "%s: cannot be written", name) : 0;
}

static int save_page(int out, struct run *run, struct err *e)
{
	char **plots = NULL;
	struct err why = ERR_INIT;
	cleanup_buf struct buf text;
	buf_init(&text, REPORT_MAX);
	run->site->runner->cleaning = true; /* an interrupted run has drawings, too */
	int x = plots_make(run->results, run->site->runner, run->site->dir, &plots, &why);
	if (x < 0)
		fprintf(stderr, "husk-bench: the page has no drawings: %s\n", why.text);
	x = report_html(run->results, plots, &text);
	plots_free(plots);
	if (x == 0)
		x = file_replace_at(out, "index.html", buf_data(&text), buf_len(&text), 0644);
	return x < 0 ? err_sys(e, x, "index.html: cannot be written") : 0;
}

static int save_all(int out, struct run *run, struct err *e)
{
	int r = save(out, "results.json", report_json, run->results, e);
	if (r == 0)
		r = save(out, "results.csv", report_csv, run->results, e);
	return r < 0 ? r : save_page(out, run, e);
}

/* What a run that was killed left there is removed first: its pods were ended by now. */
static int make_work(struct run *run, struct err *e)
{
	const char *dir = run->site->dir;
	int r = 0;
	if (faccessat(AT_FDCWD, dir, F_OK, 0) == 0)
		r = run_sweep_left(run);
	if (r == 0)
		r = rmtree(AT_FDCWD, dir);
	if (r == 0 && mkdir(dir, 0700) < 0)
		r = -errno;
	return r < 0 ? err_sys(e, r, "\"%s\": what an earlier run left cannot be removed", dir) : 0;
}

static bool is_anything_there(const struct results *r)
{
	for (size_t i = 0; i < r->n_columns; i++)
		if (r->columns[i].why[0] == '\0')
			return true;
	return false;
}

static int prepare_and_measure(int out, struct run *run, struct err *e)
{
	const struct options *o = run->options;
	int r = make_work(run, e);
	if (r == 0)
		r = image_prepare(run->site, o->image,
				  options_want(o, "disk") || options_want(o, "volume"), e);
	if (r == 0)
		run_measure(run);
	if (r == 0)
		r = save_all(out, run, e);
	int x = run_sweep(run);
	run_deinit(run);
	if (x == 0)
		x = rmtree(AT_FDCWD, run->site->dir);
	if (r == 0 && x < 0)
		r = err_sys(e, x, "\"%s\": cannot be removed", run->site->dir);
	return r;
}

static int bench(const struct options *o, struct err *e)
{
	static struct results results;
	struct runner runner;
	struct site site = { .runner = &runner, .pods = o->pods };
	struct run run = { .options = o, .site = &site, .results = &results };
	if (path_from_self("husk", site.husk, sizeof(site.husk)) < 0)
		return err_set(e, -ENOENT, "husk is not beside this program (install it there)");
	cleanup_fd int out = open_out(o->out, &site, e);
	if (out < 0)
		return out;
	int r = runner_init(&runner);
	if (r < 0)
		return err_sys(e, r, "cannot wait for signals");
	add_facts(&results, o);
	run_find_contenders(&run);
	if (!is_anything_there(&results))
		return err_set(e, -ENOENT, "nothing to measure: no contender is installed");
	r = prepare_and_measure(out, &run, e);
	if (r == 0 && results.partial)
		r = err_set(e, -EINTR, "interrupted: the results in \"%s\" are partial", o->out);
	if (r == 0)
		printf("%s/index.html\n", o->out);
	return r;
}

int main(int argc, char **argv)
{
	struct options o;
	struct err e = ERR_INIT;
	static char name[] = "husk-bench";
	static char *none[] = { name, NULL };
	if (fd_fill_stdio() < 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
		return EXIT_HUSK_FAILURE;
	int r = options_read(argc > 0 ? argv : none, suites_names, &o, &e);
	if (r == 0 && o.help)
		options_print_help();
	else if (r == 0 && o.version)
		printf("husk-bench %s\n", HUSK_VERSION);
	else if (r == 0)
		r = bench(&o, &e);
	if (r < 0)
		fprintf(stderr, "husk-bench: %s\n", e.text);
	if (fflush(stdout) != 0)
		r = -EIO;
	return r < 0 ? EXIT_HUSK_FAILURE : 0;
}
