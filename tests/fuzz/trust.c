/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What images/appc/trust reads itself before and after gpg does. The first byte says which parser
 * gets the rest. Properties: what is refused names a cause; a name that is accepted stays below its
 * directory; an armour that is found is all there is, found again in itself; identities can be
 * shown.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "images/appc/trust/armour.h"
#include "images/appc/trust/names.h"
#include "images/appc/trust/status.h"
#include "lib/base/macros.h"
#include "lib/base/str.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static void fuzz_armour(const char *text, size_t len)
{
	struct err e = ERR_INIT;
	size_t start, n, again, again_n;
	int r = armour_find_key(text, len, &start, &n, &e);
	check((r < 0) == (e.text[0] != '\0'));
	if (r < 0)
		return;
	check(start < len && n <= len - start);
	check(armour_find_key(text + start, n, &again, &again_n, NULL) == 0);
	check(again == 0 && again_n == n);
}

static void fuzz_name(const char *name)
{
	struct err e = ERR_INIT;
	int r = trust_check_name("--prefix", name, &e);
	check((r < 0) == (e.text[0] != '\0'));
	if (r < 0)
		return;
	check(strlen(name) <= TRUST_NAME_MAX && name[0] != '/' && !strstr(name, "//"));
	check(!strstr(name, "/.") && name[0] != '.' && str_is_printable(name, TRUST_NAME_MAX));
}

static void fuzz_fingerprint(const char *text)
{
	char out[TRUST_FINGERPRINT_MAX + 1], formatted[TRUST_FORMATTED_MAX + 1];
	if (trust_copy_fingerprint(out, text) < 0)
		return;
	check(trust_is_fingerprint(out));
	trust_format_fingerprint(out, formatted);
	check(strlen(formatted) == strlen(out) + strlen(out) / 4);
}

static void fuzz_identity(const char *text)
{
	char out[TRUST_IDENTITY_MAX + 1], again[TRUST_IDENTITY_MAX + 1];
	trust_copy_identity(out, text);
	check(str_is_utf8(out));
	for (const char *c = out; *c; c++)
		check((unsigned char)*c >= 0x20 && *c != 0x7f);
	trust_copy_identity(again, out);
	check(strcmp(out, again) == 0);
}

static void fuzz_status(const char *text)
{
	struct status_valid valid;
	if (status_valid_parse(text, &valid) == 0)
		check(trust_is_fingerprint(valid.signer) && valid.kind <= UINT8_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	cleanup_free char *text = strndup((const char *)data + 1, size - 1);
	check(text != NULL);
	switch (data[0]) {
	case 'a':
		fuzz_armour((const char *)data + 1, size - 1);
		break;
	case 'n':
		fuzz_name(text);
		break;
	case 'f':
		fuzz_fingerprint(text);
		break;
	case 'i':
		fuzz_identity(text);
		break;
	default:
		fuzz_status(text);
	}
	return 0;
}
