/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variants of a platform, as image indexes have them: "v3" of amd64 (x86-64-v3 of the psABI), "v8"
 * of arm64.
 */
#ifndef IMAGES_SPEC_VARIANT_H
#define IMAGES_SPEC_VARIANT_H

/* How well an image of a variant fits, the best first. */
enum variant_fit {
	VARIANT_NONE,    /* it names none: for every machine of the architecture */
	VARIANT_BASE,    /* that is what all machines of the architecture have */
	VARIANT_FITS,    /* more than that, and the processor has it */
	VARIANT_UNKNOWN, /* nobody can tell */
	VARIANT_TOO_NEW, /* the processor lacks what it needs */
};

/* How @variant ("" for none) of @architecture fits a processor of the amd64 level @level. */
enum variant_fit variant_fit(const char *architecture, const char *variant, unsigned int level);

/* The level of this machine's processor: 1 to 4 for amd64, 0 for others. */
unsigned int variant_level(void);

#endif
