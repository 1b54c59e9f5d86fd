/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/variant.h"

#include <string.h>

enum variant_fit variant_fit(const char *architecture, const char *variant, unsigned int level)
{
	if (!*variant)
		return VARIANT_NONE;
	if (strcmp(architecture, "arm64") == 0 && strcmp(variant, "v8") == 0)
		return VARIANT_BASE;
	if (strcmp(architecture, "amd64") != 0 || variant[0] != 'v' || variant[1] < '1' ||
	    variant[1] > '9' || variant[2])
		return VARIANT_UNKNOWN;
	unsigned int wants = (unsigned int)(variant[1] - '0');
	if (wants == 1)
		return VARIANT_BASE;
	return wants <= level ? VARIANT_FITS : VARIANT_TOO_NEW;
}

unsigned int variant_level(void)
{
#if defined(__x86_64__)
	/* What tells the levels apart; no processor has these without the rest of the level. */
	if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("popcnt"))
		return 1;
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("bmi2") ||
	    !__builtin_cpu_supports("fma"))
		return 2;
	return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vl")
		       ? 4
		       : 3;
#else
	return 0;
#endif
}
