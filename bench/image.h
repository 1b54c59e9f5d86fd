/* SPDX-License-Identifier: Apache-2.0 */
/* The image that all contenders run: in husk's store, and as a directory for the others. */
#ifndef BENCH_IMAGE_H
#define BENCH_IMAGE_H

#include <stdbool.h>

#include "bench/contender.h"
#include "lib/base/err.h"

/*
 * Brings @ref, which husk fetch understands, into the store of @site and its files into a directory
 * of @site. With NULL it makes an image from programs of this host, with a file and a program for
 * the suite "disk" if @for_disk. Fills in the image and the rootfs of @site. 0 or -errno with @e.
 */
int image_prepare(struct site *site, const char *ref, bool for_disk, struct err *e);

#endif
