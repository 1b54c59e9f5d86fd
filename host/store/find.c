#include "host/store/find.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "host/image/config.h"
#include "host/store/catalog.h"
#include "lib/base/str.h"

#define PREFIX     "sha256-"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* The only member of the sorted list that begins with @hex. */
static int find_prefix(const struct catalog_list *l, const char *hex, struct digest *ret,
		       struct err *e)
{
	size_t n = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (!str_starts(l->ids[i].hex, hex))
			continue;
		*ret = l->ids[i];
		n++;
	}
	if (n == 0)
		return err_set(e, -ENOENT, "no image IDs found (see \"husk image list\")");
	if (n > 1)
		return err_set(e, -EEXIST,
			       "ambiguous image ID: \"%s\" (%zu images; give more digits)", hex, n);
	return 0;
}

int find_id(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	CLEANUP(catalog_list_deinit) struct catalog_list l = CATALOG_LIST_INIT;
	struct digest whole;
	const char *hex = str_starts(text, PREFIX) ? text + PREFIX_LEN : text;
	size_t len = strlen(hex);
	if (strspn(hex, "0123456789abcdef") != len || len > DIGEST_HEX_LEN)
		return err_set(e, -EINVAL, "\"%s\" is no image ID (" PREFIX " and hex digits)",
			       text);
	if (len < FIND_PREFIX_MIN)
		return err_set(e, -EINVAL, "image ID too short (give %zu digits at least)",
			       FIND_PREFIX_MIN);
	if (digest_from_hex(hex, &whole) == 0 && catalog_has_record(s, &whole)) {
		*ret = whole;
		return 0;
	}
	int r = catalog_list(s, &l, e);
	return r < 0 ? r : find_prefix(&l, hex, ret, e);
}

/* True if the text stands for an image that is still there. */
static bool try_ref(const struct store *s, const char *text, struct digest *ret)
{
	struct ref ref;
	if (catalog_get_ref(s, text, &ref) != 0 || !catalog_has_record(s, &ref.image))
		return false;
	*ret = ref.image;
	return true;
}

int find_name(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	char key[IMAGE_NAME_MAX + sizeof("name:")];
	if (strlen(text) > IMAGE_NAME_MAX)
		return err_set(e, -ENOENT, "no image has a name of more than %zu bytes",
			       IMAGE_NAME_MAX);
	snprintf(key, sizeof(key), "name:%s", text);
	if (try_ref(s, key, ret))
		return 0;
	return err_set(e, -ENOENT,
		       "cannot find an image of this name in the local store (see \"husk image "
		       "list\"; for a registry: docker://%s; for a file: its path)",
		       text);
}

int find_image(const struct store *s, const char *text, struct digest *ret, struct err *e)
{
	return str_starts(text, PREFIX) ? find_id(s, text, ret, e) : find_name(s, text, ret, e);
}
