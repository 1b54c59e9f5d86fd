/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/status.h"

#include <errno.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"

#define KIND_FIELD 8 /* fields in front of that with the kind; the first is the fingerprint */
#define KIND_SIZE  3 /* two digits, NUL */

/* Copies the field at *@args, which ends at a blank, and moves *@args to the next. */
static int take_field(const char **args, char *out, size_t size)
{
	size_t len = strcspn(*args, " ");
	if (len == 0 || len >= size)
		return -EINVAL;
	memcpy(out, *args, len);
	out[len] = '\0';
	*args += len;
	*args += strspn(*args, " ");
	return 0;
}

int status_valid_parse(const char *args, struct status_valid *ret)
{
	char signer[TRUST_FINGERPRINT_MAX + 1], kind[KIND_SIZE];
	unsigned char byte;
	if (take_field(&args, signer, sizeof(signer)) < 0)
		return -EINVAL;
	for (int i = 1; i < KIND_FIELD; i++) {
		args += strcspn(args, " ");
		args += strspn(args, " ");
	}
	if (take_field(&args, kind, sizeof(kind)) < 0 || hex_decode(kind, &byte, 1) < 0)
		return -EINVAL;
	struct status_valid valid = { .kind = byte };
	if (trust_copy_fingerprint(valid.signer, signer) < 0)
		return -EINVAL;
	*ret = valid;
	return 0;
}
