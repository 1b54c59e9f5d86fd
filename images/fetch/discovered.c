/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/discovered.h"

#include <errno.h>

static void deinit_place(struct discovered *d)
{
	importer_deinit(&d->importer);
	url_deinit(&d->url);
	d->url = URL_INIT;
}

static int open_place(struct discovered *d, struct store *s, size_t i, bool nested, struct err *e)
{
	const char *url = d->places.images.v[i], *signature = d->places.signatures.v[i];
	int r = url_look(&d->url, s, url, signature, &d->request, e);
	if (r == 0 && d->url.found.where == FOUND_NOWHERE)
		r = url_get(&d->url, nested, e);
	if (r == 0)
		r = importer_open(&d->importer, s, &d->url.found, &d->request, e);
	if (r < 0)
		deinit_place(d);
	return r;
}

int discovered_open(struct discovered *ret, struct store *s, const struct fetch_request *q,
		    bool nested, struct err *e)
{
	*ret = (struct discovered){ .request = *q, .url = URL_INIT };
	discovery_init(&ret->places);
	int r = fetch_load_credentials(&ret->request.options, e);
	if (r == 0)
		r = discovery_find(q->expected, DISCOVERY_IMAGES, &ret->request.options,
				   &ret->places, e);
	if (r < 0)
		return r;
	int first = open_place(ret, s, 0, nested, e);
	r = first;
	for (size_t i = 1; r < 0 && i < ret->places.images.n; i++)
		r = open_place(ret, s, i, nested, NULL);
	return r < 0 ? first : 0;
}

void discovered_deinit(struct discovered *d)
{
	deinit_place(d);
	discovery_deinit(&d->places);
}
