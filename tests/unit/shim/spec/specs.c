/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/shim/spec/specs.h"

#include <string.h>

#include "tests/support/fixture.h"

int parse(const char *text, struct oci_spec *ret, struct err *e)
{
	oci_spec_init(ret);
	return oci_spec_parse(text, strlen(text), ret, e);
}

void refuse(const char *text, int code, const char *want)
{
	struct oci_spec s;
	struct err e = ERR_INIT;
	int r = parse(text, &s, &e);
	if (r != code || !strstr(e.text, want))
		fail_msg("%s: %d \"%s\" instead of %d \"%s\"", text, r, e.text, code, want);
	oci_spec_deinit(&s);
}
