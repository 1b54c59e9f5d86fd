/* SPDX-License-Identifier: Apache-2.0 */
/* Images behind http and https URLs. */
#ifndef HOST_FETCH_URL_H
#define HOST_FETCH_URL_H

#include "host/fetch/fetch.h"
#include "host/fetch/local.h"

/*
 * Brings the image at @url into the store, as q->policy says: an archive of any kind that local_fetch() takes.
 * With PULL_UPDATE the server is asked whether what was fetched is still current, if the time that it gave is
 * over. A download that breaks off is gone on with by the next fetch. The detached signature of an appc image
 * is at @signature_url; NULL: at @url with ".asc" behind its path. 0 or -errno with @e.
 */
int url_fetch(struct store *s, const char *url, const char *signature_url,
	      const struct fetch_request *q, struct fetched *ret, struct err *e);

#endif
