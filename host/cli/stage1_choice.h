/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stage1 a pod has, and which a new one gets: rkt's options --stage1-..., our --stage1, the
 * configuration.
 */
#ifndef HOST_CLI_STAGE1_CHOICE_H
#define HOST_CLI_STAGE1_CHOICE_H

#include "host/cli/cli.h"
#include "host/cli/flags/flags.h"
#include "host/cli/stage1_choice.h"
#include "host/launch/stage1.h"
#include "host/pod/pod.h"
#include "images/images.h"

/* The one option --stage1-... that was given. */
struct stage1_choice {
	const char *flag; /* its name; NULL: none */
	const char *value;
};

/* Setter of these options, of a struct stage1_choice at the offset. */
int stage1_choice_set(void *opts, const struct flag *f, const char *value, struct err *e);

/*
 * Opens the stage1 that @choice, else --stage1, else the configuration names, else the one beside
 * husk. Images are fetched if need be, as @policy says; see stage1_image_open(). 0, or -errno and
 * @e.
 */
int stage1_choose(struct cli *c, const struct stage1_choice *choice, enum pull_policy policy,
		  struct stage1 *ret, struct err *e);

/*
 * Opens the stage1 that the pod was made with, if nobody but root and us can change it, or if
 * flags, configuration or installation name it anyway; of a pod that does not say, what
 * stage1_choose() finds without fetching. In place of one that is gone or not trusted --stage1 is
 * taken if it is given. 0 and *ret, which the caller frees, or -errno and @e.
 */
int cli_pod_stage1(struct cli *c, const struct pod *p, struct stage1 **ret, struct err *e);

#endif
