/* SPDX-License-Identifier: Apache-2.0 */
#include "host/trust/key.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "host/trust/gpg.h"
#include "host/trust/home.h"
#include "host/trust/worker.h"

struct inspection {
	const struct gpg_home *home;
	const char *text;
	size_t len;
};

void trust_key_deinit(struct trust_key *key)
{
	free(key->text);
	*key = TRUST_KEY_INIT;
}

static int run_inspection(void *ctx, void *result, struct err *e)
{
	const struct inspection *i = ctx;
	return gpg_inspect(i->home, i->text, i->len, result, e);
}

static void clear_home(void *ctx)
{
	const struct inspection *i = ctx;
	gpg_home_clear(i->home);
}

int trust_key_inspect(const char *text, size_t len, const char *tmp_dir, struct trust_key *ret,
		      struct err *e)
{
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	cleanup_gpg_home struct gpg_home home = GPG_HOME_INIT;
	size_t start;
	int r = armour_find_key(text, len, &start, &key.len, e);
	if (r < 0)
		return r;
	key.text = malloc(key.len);
	if (!key.text)
		return err_sys(e, -ENOMEM, "cannot read it");
	memcpy(key.text, text + start, key.len);
	r = gpg_home_make(tmp_dir, &home, e);
	if (r != 0)
		return r;
	struct inspection inspection = { .home = &home, .text = key.text, .len = key.len };
	const struct worker_plan plan = {
		.fn = run_inspection, .ctx = &inspection, .home = home.path, .last = clear_home
	};
	r = worker_run(&plan, &key.info, sizeof(key.info), e);
	if (r != 0)
		return r;
	*ret = key;
	key = TRUST_KEY_INIT;
	return 0;
}
