/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What containerd asks for: the configuration of a container as the OCI runtime specification has
 * it (config.json of a bundle), as an app of a pod. Pure.
 *
 * What an app cannot have, or only as every app has it anyway, is refused or taken as said, never
 * passed over: see oci_spec_parse().
 */
#ifndef SHIM_SPEC_OCI_SPEC_H
#define SHIM_SPEC_OCI_SPEC_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "host/manifest/compose.h"
#include "lib/base/err.h"

#define OCI_SPEC_SIZE_MAX ((size_t)4 << 20) /* what ttrpc can carry; Kubernetes writes 20 KiB */
#define OCI_SPEC_CONTAINERS_MAX \
	((size_t)64 * 1024) /* objects and lists: 1,000 mounts, and filters */
#define OCI_SPEC_MOUNTS_MAX 1024
#define OCI_SPEC_ID_MAX     ((size_t)255) /* of a container: a file's name */
#define OCI_SPEC_CGROUP_MAX ((size_t)511) /* of a control group's path: a kubelet's have some 200 */
/* What pods may ask for by annotations: "husk/cpus", "husk/kernel" by a name, "husk/memory". */
#define OCI_SPEC_WISHES_MAX ((size_t)3)

struct oci_spec {
	struct json_object *document; /* owned; the rest borrows from it */
	struct app_options app;       /* owned; without an image, name and streams */
	bool terminal;
	int oom_score_adj;    /* -1000 to 1000, of what the pod is on the host */
	int rows, columns;    /* of the terminal at first; 0: as it comes */
	const char *root;     /* path of the root directory, relative to the bundle or absolute */
	const char *hostname; /* NULL: none */
	const char *netns;    /* path of the network namespace; NULL: of its own, without network */
	int64_t cpu_period;   /* microseconds, of which a quota is a part */
	char cgroup[OCI_SPEC_CGROUP_MAX + 2]; /* its own, as --cgroup-parent takes it; or empty */
	int64_t pod_memory;     /* bytes that all its containers may have; 0: not said */
	int64_t pod_cpu_millis; /* likewise, thousandths of a processor */
	struct strv sysctls;    /* owned; of the pod, "NAME=VALUE" (lib/wire/sysctls.h) */
	struct strv wishes;     /* owned; options of a stage1, "NAME=VALUE": OCI_SPEC_WISHES_MAX */
	bool is_sandbox;        /* a pod without an app, for others to be in */
	const char *sandbox_id; /* the container that is the sandbox of this one; NULL: none */
	const char *container_name; /* as people have it in Kubernetes; NULL: none */
};

/* An empty one, and freeing what it holds. */
void oci_spec_init(struct oci_spec *s);
void oci_spec_deinit(struct oci_spec *s);

/*
 * Reads a config.json of @len bytes into @ret (initialised). 0; -EBADMSG for what is none,
 * -EOPNOTSUPP for what a pod of husk cannot do, -E2BIG, -ENOMEM; @e then says which member, and
 * why.
 */
int oci_spec_parse(const char *text, size_t len, struct oci_spec *ret, struct err *e);

/*
 * Reads only where the container belongs, into is_sandbox, sandbox_id and container_name. As above.
 */
int oci_annotations_parse(const char *text, size_t len, struct oci_spec *ret, struct err *e);

/*
 * Reads a further process of the container @in, as "process" of a config.json has it, into @ret
 * (initialised), of which the rest stays empty. As above; -EOPNOTSUPP, too, for other privileges
 * than those of the container.
 */
int oci_process_parse(const char *text, size_t len, const struct oci_spec *in, struct oci_spec *ret,
		      struct err *e);

/*
 * Reads the limits of "linux.resources" that are to be changed: bit N of *ret_changed for enum
 * isolator N, and what it is to be in @ret (initialised), where it is not if there is to be none.
 * *period, of the container, becomes the one that is said. As oci_spec_parse().
 */
int oci_resources_parse(const char *text, size_t len, int64_t *period, struct isolators *ret,
			unsigned *ret_changed, struct err *e);

#endif
