/* SPDX-License-Identifier: Apache-2.0 */
#include "images/known/url.h"

#include <errno.h>
#include <string.h>

#include "images/store/catalog.h"
#include "images/store/find.h"
#include "lib/os/clock.h"
#include "lib/os/fd.h"

void url_deinit(struct url *u)
{
	found_deinit(&u->found);
	u->signature = fd_close(u->signature);
	u->body = fd_close(u->body);
}

bool url_is_plain(const char *url)
{
	return str_starts(url, "http://");
}

bool url_is_exposed(const struct url *u)
{
	return u->options.insecure_tls || u->options.insecure_http;
}

/* True if the image of the store is one that has a signature. */
static bool can_be_signed(const struct url *u, const struct digest *id)
{
	CLEANUP(record_deinit) struct record record;
	record_init(&record);
	return catalog_get(u->store, id, &record, NULL) == 0 && record.kind == IMAGE_ACI;
}

/* True if what was fetched may be used with the options of now. */
static bool is_accepted(const struct url *u)
{
	if (!u->known.unverified || u->options.insecure_image)
		return true;
	return url_is_exposed(u) && !url_is_plain(u->url) && !can_be_signed(u, &u->known.image);
}

void url_look_up(struct url *u)
{
	const struct acname *want = u->request->expected;
	u->is_known = catalog_get_ref(u->store, u->url, &u->known) == 0 &&
		      catalog_has_image(u->store, &u->known.image) && is_accepted(u) &&
		      (!want || u->options.insecure_image || /* as appc_check() */
		       find_is_appc(u->store, &u->known.image, want, "", false)) &&
		      (!u->request->signature || u->request->policy == PULL_NEVER);
}

void url_use_known(struct url *u, enum found_where where)
{
	u->found.where = where;
	u->found.image.id = u->known.image;
	str_copy(u->found.image.name, sizeof(u->found.image.name), u->known.name);
}

/* True if what is known need not be asked about. */
static bool is_fresh(const struct url *u, int64_t now_ns)
{
	if (!u->is_known)
		return false;
	return u->request->policy != PULL_UPDATE ||
	       (u->known.fetched_ns <= now_ns &&
		(now_ns - u->known.fetched_ns) / NS_PER_SEC < u->known.max_age_s);
}

int url_look(struct url *u, struct store *s, const char *url, const char *signature_url,
	     const struct fetch_request *q, struct err *e)
{
	*u = URL_INIT;
	u->store = s;
	u->url = url;
	u->signature_url = signature_url;
	u->request = q;
	u->options = q->options;
	if (strlen(url) > HTTP_URL_MAX || ref_init(&u->found.memo, url) < 0)
		return err_set(e, -ENAMETOOLONG, "the URL has more than %zu bytes", HTTP_URL_MAX);
	url_look_up(u);
	if (!is_fresh(u, clock_realtime_ns()))
		return 0;
	if (q->policy == PULL_UPDATE)
		fetch_note(&q->options, "image for %s isn't expired, not fetching.", url);
	fetch_note(&q->options, "using image from local store for url %s", url);
	url_use_known(u, FOUND_KNOWN);
	return 0;
}
