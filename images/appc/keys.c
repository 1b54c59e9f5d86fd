/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/keys.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/appc/discovery.h"
#include "images/appc/trust/armour.h"
#include "images/fetch/http/http.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"

/* The credentials, if the configuration has come into being yet. */
static int load_credentials(struct fetch_options *o, struct err *e)
{
	struct err why = ERR_INIT;
	int r = fetch_load_credentials(o, &why);
	if (r == 0 || r == -ENOENT)
		return 0;
	if (e)
		*e = why;
	return r;
}

int appc_find_keys(const char *prefix, const struct fetch_options *o, struct strv *ret,
		   struct err *e)
{
	struct acname name = { .n = 0 };
	struct fetch_options options = *o;
	CLEANUP(discovery_deinit) struct discovery d;
	if (!acname_is_identifier(prefix, ACNAME_MAX))
		return err_set(e, -EINVAL, "\"%s\" is not a name of images", prefix);
	str_copy(name.name, sizeof(name.name), prefix);
	discovery_init(&d);
	int r = load_credentials(&options, e);
	if (r == 0)
		r = discovery_find(&name, DISCOVERY_KEYS, &options, &d, e);
	if (r < 0)
		return r;
	r = strv_extend(ret, &d.keys);
	return r < 0 ? err_sys(e, r, "keys of \"%s\"", prefix) : 0;
}

int appc_download_key(const char *url, const struct fetch_options *o, char **ret, size_t *ret_len,
		      struct err *e)
{
	struct http_result result;
	struct fetch_options options = *o;
	cleanup_fd int fd = memfd_create("key", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot make a file in memory");
	const struct http_request q = { .url = url, .size_max = TRUST_KEY_MAX, .fd = fd };
	int r = load_credentials(&options, e);
	if (r == 0)
		r = http_get(&q, &options, &result, e);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = err_sys(e, -errno, "cannot read it");
	if (r < 0)
		return r;
	r = file_read_fd(fd, TRUST_KEY_MAX, ret, ret_len);
	return r < 0 ? err_sys(e, r, "cannot read it") : 0;
}
