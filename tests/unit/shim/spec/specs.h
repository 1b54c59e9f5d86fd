/* SPDX-License-Identifier: Apache-2.0 */
/* Whole specifications, as the shim reads them. */
#ifndef TESTS_UNIT_SHIM_SPEC_SPECS_H
#define TESTS_UNIT_SHIM_SPEC_SPECS_H

#include "shim/spec/oci_spec.h"

/* Reads one into @ret, which is the caller's to free whatever comes of it. As oci_spec_parse(). */
int parse(const char *text, struct oci_spec *ret, struct err *e);

/* It has to be refused with @code, and @want in what is said of it. */
void refuse(const char *text, int code, const char *want);

#endif
