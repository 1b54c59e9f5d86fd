/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/image.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/os/path.h"

/* Runs a program with words as they are; *ret_out as in contender_run(), or NULL. */
static int run(const struct site *site, const char *const *words, char **ret_out, struct err *e)
{
	cleanup_command struct command command;
	command_init(&command);
	int r = command_words(&command, words, e);
	if (r == 0)
		r = command_run(site->runner, &command, e);
	if (r < 0 || !ret_out)
		return r;
	*ret_out = buf_take_string(&command.out);
	return *ret_out ? 0 : err_sys(e, -ENOMEM, "cannot read what %s says", words[0]);
}

/* Has husk fetch @ref and takes the ID that it prints. */
static int fetch(struct site *site, const char *dir_option, const char *ref, struct err *e)
{
	cleanup_free char *out = NULL;
	int r = run(
		site,
		WORDS(site->husk, dir_option, "--insecure-options=image", "fetch", "--full", ref),
		&out, e);
	if (r == 0)
		out[strcspn(out, "\n")] = '\0';
	if (r == 0 && str_copy(site->image, sizeof(site->image), out) < 0)
		r = err_set(e, -EBADMSG, "husk fetch prints no ID");
	return r;
}

/* The image of this host's programs: a directory, which both husk and the others take. */
static int make(const struct site *site, bool for_disk, struct err *e)
{
	char program[PATH_MAX];
	if (path_from_self("../lib/husk/bench/make-image", program, sizeof(program)) < 0)
		return err_set(e, -ENOENT,
			       "../lib/husk/bench/make-image is not there (install husk again)");
	return run(site, WORDS(program, site->rootfs, for_disk ? "disk" : "plain"), NULL, e);
}

int image_prepare(struct site *site, const char *ref, bool for_disk, struct err *e)
{
	char dir_option[PATH_MAX + 8], made[PATH_MAX + 8];
	snprintf(dir_option, sizeof(dir_option), "--dir=%s", site->data);
	snprintf(made, sizeof(made), "rootfs:%s", site->rootfs);
	int r = ref ? 0 : make(site, for_disk, e);
	if (r == 0)
		r = fetch(site, dir_option, ref ? ref : made, e);
	if (r == 0 && ref)
		r = run(site,
			WORDS(site->husk, dir_option, "image", "extract", "--rootfs-only",
			      site->image, site->rootfs),
			NULL, e);
	return r < 0 ? err_context(e, "image \"%s\"", ref ? ref : "busybox") : 0;
}
