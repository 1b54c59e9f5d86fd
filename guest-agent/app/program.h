/* SPDX-License-Identifier: Apache-2.0 */
/* What an app is executed with: its environment, and where its program may be. Pure. */
#ifndef GUEST_AGENT_APP_PROGRAM_H
#define GUEST_AGENT_APP_PROGRAM_H

#include <stdbool.h>

#include "guest-agent/app/ids.h"
#include "lib/base/str.h"
#include "lib/wire/agent.h"

#define PROGRAM_ENV_MAX  (AGENT_ENV_MAX + 8) /* what the host gives, and our defaults */
#define PROGRAM_DIRS_MAX 256                 /* directories of a PATH that are looked at */

/*
 * The environment of a process of @ids: @given as it is, defaults for PATH, HOME (also if that is
 * given as nothing), SHELL, of a user with a name USER and LOGNAME, and, with a terminal, TERM
 * where @given has none, and always AC_APP_NAME=@app. @ret was made with strv_init(ret,
 * PROGRAM_ENV_MAX). 0, -E2BIG, -ENOMEM.
 */
int program_environment(const struct strv *given, const char *app, const struct ids *ids,
			bool with_tty, struct strv *ret);

/*
 * Adds to @ret (at most PROGRAM_DIRS_MAX members), best first, the paths under which the program
 * @name is to be tried: @name itself if it has a slash (relative to the working directory),
 * else below each directory of the PATH that @given has, else of the default one, and, as rkt does,
 * below @cwd. Later directories of a longer PATH are not looked at. 0, -ENAMETOOLONG, -ENOMEM.
 */
int program_candidates(const char *name, const struct strv *given, const char *cwd,
		       struct strv *ret);

#endif
