/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/supervise/check.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/wire/stage1.h"
#include "stage1/supervise/options.h"

int check_options(const struct backend *backend, int argc, char **argv)
{
	struct err e = ERR_INIT;
	CLEANUP(options_deinit) struct options options;
	struct network_choice network;
	struct backend_wishes wishes = { 0 };
	struct backend_pod *pod = backend->create();
	options_init(&options);
	int r = pod ? fd_fill_stdio() : -ENOMEM;
	if (r < 0)
		err_sys(&e, r, "pod");
	if (r == 0)
		r = options_parse(argc, argv, backend, pod, &options, &e);
	if (r == 0)
		r = network_choose(&options.network, backend, geteuid() == 0, &network, &e);
	if (r == 0) {
		wishes.shares_net = network.kind == NETWORK_HOST || options.network.netns;
		wishes.host_volumes = options.host_volumes;
		wishes.block_volumes = options.block_volumes;
		wishes.open_paths = options.disable_paths;
		r = backend->check(pod, &wishes, &e);
	}
	if (r < 0)
		fprintf(stderr, "stage1: check: %s\n", e.text);
	backend->free(pod);
	return r < 0 ? EXIT_HUSK_FAILURE : 0;
}
