/* SPDX-License-Identifier: Apache-2.0 */
/* What an image says about itself, whatever format it came in, and the limits of that. */
#ifndef IMAGES_SPEC_CONFIG_H
#define IMAGES_SPEC_CONFIG_H

#include <stddef.h>

#include "lib/base/str.h"

#define IMAGE_NAME_MAX ((size_t)255) /* name for people: a tag or a file name */
#define IMAGE_ID_LEN   ((size_t)71)  /* "sha256-" and 64 hex digits */
/* What an app can be given (lib/wire/agent.h): members of entrypoint, of cmd and of env, ... */
#define IMAGE_ARGS_MAX ((size_t)65536)
#define IMAGE_ENV_MAX  ((size_t)16384)
#define IMAGE_ARG_MAX  ((size_t)131071) /* ... and bytes of one */
#define IMAGE_PATH_MAX ((size_t)4095)   /* working directory */
#define IMAGE_USER_MAX ((size_t)255)
/* Ports that are looked at; "EXPOSE 16384-32768/udp" makes one member of each. */
#define IMAGE_PORTS_MAX ((size_t)256)
#define IMAGE_VOLUMES_MAX \
	((size_t)64) /* "VOLUME" lines that are looked at; images have one or two */

/* What an image asks for. Members are borrowed from the image. */
struct image_config {
	struct strv entrypoint;  /* may be empty */
	struct strv cmd;         /* may be empty */
	struct strv env;         /* "NAME=value" */
	struct strv ports;       /* "80/tcp", see pod_port_parse(); names for --port, no more */
	struct strv volumes;     /* paths at which it wants volumes */
	int stop_signal;         /* asks the app to end; 0: it says none */
	const char *working_dir; /* "" if the image names none; not necessarily absolute */
	const char *user; /* as in the configuration: "", "user", "uid:gid", ...; the guest */
			  /* looks names up, never the host */
};

#endif
