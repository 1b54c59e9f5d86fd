/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/home.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/trust/key.h"
#include "images/appc/trust/worker.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/lock.h"
#include "lib/os/path.h"
#include "lib/os/rmtree.h"

/*
 * No agent, no dirmngr, no key from anywhere but the keystore; what is imported is what counts, so
 * gpg's own trust is off.
 */
static const char options[] = "no-autostart\n"
			      "disable-dirmngr\n"
			      "no-auto-key-retrieve\n"
			      "no-auto-key-locate\n"
			      "trust-model always\n"
			      "no-auto-check-trustdb\n";

static int find_program(struct gpg_home *home, struct err *e)
{
	int r = path_find_program("gpg", worker_search_path(), home->program,
				  sizeof(home->program));
	if (r == 0)
		return 0;
	err_set(e, r, "no program gpg in PATH, which checks keys and signatures (install gpg)");
	return r == -ENOENT ? TRUST_E_NO_GPG : r;
}

/* Locks the directory and puts the options there. */
static int furnish(struct gpg_home *home)
{
	home->lock = open(home->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = home->lock < 0 ? -errno : lock_exclusive(home->lock);
	if (r < 0)
		return r;
	return file_replace_at(home->lock, "gpg.conf", options, sizeof(options) - 1, 0600);
}

int gpg_home_make(const char *tmp_dir, struct gpg_home *ret, struct err *e)
{
	cleanup_gpg_home struct gpg_home home = GPG_HOME_INIT;
	int r = find_program(&home, e);
	if (r != 0)
		return r;
	int n = snprintf(home.path, sizeof(home.path), "%s/" TRUST_HOME_PREFIX "XXXXXX", tmp_dir);
	if (n < 0 || (size_t)n >= sizeof(home.path))
		r = -ENAMETOOLONG;
	else if (!mkdtemp(home.path))
		r = -errno;
	if (r < 0) {
		home.path[0] = '\0';
		return err_sys(e, r, "cannot make a temporary directory in \"%s\"", tmp_dir);
	}
	r = furnish(&home);
	if (r < 0)
		return err_sys(e, r, "cannot write to temporary directory \"%s\"", home.path);
	*ret = home;
	home = GPG_HOME_INIT;
	return 0;
}

void gpg_home_clear(const struct gpg_home *home)
{
	/* Twice if need be: memory was short. */
	if (home->path[0] && rmtree(AT_FDCWD, home->path) < 0)
		(void)rmtree(AT_FDCWD, home->path);
}

void gpg_home_remove(struct gpg_home *home)
{
	gpg_home_clear(home);
	home->path[0] = '\0';
	home->lock = fd_close(home->lock);
}
