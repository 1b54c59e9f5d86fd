/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/data/temp_name.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"
#include "lib/os/random.h"

int temp_name_make(char out[TEMP_NAME_LEN + 1])
{
	unsigned char random[(TEMP_NAME_LEN + 1 - sizeof(TEMP_NAME_PREFIX)) / 2];
	int r = random_bytes(random, sizeof(random));
	if (r < 0)
		return r;
	memcpy(out, TEMP_NAME_PREFIX, sizeof(TEMP_NAME_PREFIX));
	hex_encode(random, sizeof(random), out + sizeof(TEMP_NAME_PREFIX) - 1);
	return 0;
}

int temp_name_split(const char *path, char *dir, size_t size, char *name)
{
	const char *slash = strrchr(path, '/');
	const char *last = slash ? slash + 1 : path;
	if (!*last || strcmp(last, ".") == 0 || strcmp(last, "..") == 0)
		return -EISDIR;
	int r = str_copy(name, NAME_MAX + 1, last);
	if (r == 0)
		r = str_copy(dir, size, slash ? path : ".");
	if (r == 0 && slash)
		dir[slash == path ? 1 : slash - path] = '\0';
	return r;
}
