/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <json-c/linkhash.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "shim/spec/oci_spec_int.h"

#define ANN_TYPE    "io.kubernetes.cri.container-type"
#define ANN_SANDBOX "io.kubernetes.cri.sandbox-id"
#define ANN_NAME    "io.kubernetes.cri.container-name"

#define ANN_MEMORY "io.kubernetes.cri.sandbox-memory"
#define ANN_QUOTA  "io.kubernetes.cri.sandbox-cpu-quota"
#define ANN_PERIOD "io.kubernetes.cri.sandbox-cpu-period"

#define ANN_OURS "husk/" /* as pods, and containers by themselves, have it */

#define WISH_MAX ((size_t)63) /* bytes of a value: as in the configuration */

/* A number in an annotation, which may be negative where there is no limit: 0. */
static int take_amount(struct json_object *annotations, const char *name, uint64_t max,
		       int64_t *ret, struct err *e)
{
	const char *text = "0";
	uint64_t n = 0;
	int r = json_get_str(annotations, name, 24, &text);
	if ((r < 0 && r != -ENOENT) || (text[0] != '-' && num_parse_u64(text, max, &n) < 0))
		return err_set(e, -EBADMSG, "annotation \"%s\": not a number up to %" PRIu64, name,
			       max);
	*ret = (int64_t)n;
	return 0;
}

/* What the containers of a pod may have together, for the size of its machine. */
static int take_sizes(struct json_object *annotations, struct oci_spec *s, struct err *e)
{
	const uint64_t second = 1000000;
	int64_t quota = 0, period = 0;
	int r = take_amount(annotations, ANN_MEMORY, ISOLATOR_MEMORY_MAX, &s->pod_memory, e);
	if (r == 0)
		r = take_amount(annotations, ANN_QUOTA, second * ISOLATOR_CPU_MAX, &quota, e);
	if (r == 0)
		r = take_amount(annotations, ANN_PERIOD, second, &period, e);
	if (r == 0 && quota > 0)
		s->pod_cpu_millis = spec_millis_of(quota, period > 0 ? period : SPEC_CPU_PERIOD);
	return r;
}

int spec_take_annotations(struct json_object *annotations, struct oci_spec *s, struct err *e)
{
	static const char what[] = "an object of texts";
	const char *type = "";
	int r = spec_optional(json_get_str(annotations, ANN_TYPE, 32, &type), "annotations", what,
			      e);
	if (r == 0)
		r = spec_optional(
			json_get_str(annotations, ANN_SANDBOX, OCI_SPEC_ID_MAX, &s->sandbox_id),
			"annotations", what, e);
	if (r == 0)
		r = spec_optional(
			json_get_str(annotations, ANN_NAME, OCI_SPEC_ID_MAX, &s->container_name),
			"annotations", what, e);
	s->is_sandbox = strcmp(type, "sandbox") == 0;
	if (s->is_sandbox)
		s->sandbox_id = NULL;
	return r;
}

static bool is_number(const char *value)
{
	int64_t millis;
	return quantity_parse(value, &millis) == 0;
}

static bool is_size(const char *value)
{
	uint64_t bytes;
	return size_parse(value, 1, INT64_MAX, &bytes) == 0;
}

/* A kernel has a name: the path of one would be the pod's to choose, and the host's to read. */
static bool is_kernel(const char *value)
{
	return strcmp(value, "auto") == 0 || strcmp(value, "small") == 0 ||
	       strcmp(value, "packaged") == 0;
}

/* How many, and how much is possible the stage1 knows. */
static const struct wish {
	const char *name;
	bool (*is_valid)(const char *value);
	const char *what;
} known[OCI_SPEC_WISHES_MAX] = {
	{ "cpus", is_number, "a number of processors" },
	{ "kernel", is_kernel, "a kernel, which are auto, small and packaged" },
	{ "memory", is_size, "a size such as 1Gi" },
};

static int take_wish(struct json_object *annotations, const char *key, struct strv *wishes,
		     struct err *e)
{
	const char *name = key + strlen(ANN_OURS), *value = NULL;
	const struct wish *w = known;
	while (w < known + ARRAY_SIZE(known) && strcmp(w->name, name) != 0)
		w++;
	if (w == known + ARRAY_SIZE(known))
		return err_set(e, -EOPNOTSUPP,
			       "annotation \"%.80s\": there is none of that name (husk/cpus, "
			       "husk/kernel and husk/memory are)",
			       key);
	int r = json_get_str(annotations, key, WISH_MAX, &value);
	if (r < 0 || !w->is_valid(value))
		return err_set(e, -EBADMSG, "annotation \"%s\": not %s", key, w->what);
	r = strv_addf(wishes, "%s=%s", name, value);
	return r < 0 ? err_sys(e, r, "annotation \"%s\"", key) : 0;
}

static int take_wishes(struct json_object *annotations, struct strv *wishes, struct err *e)
{
	int r = 0;
	if (!json_object_is_type(annotations, json_type_object))
		return 0;
	json_object_object_foreach(annotations, key, value)
	{
		(void)value;
		if (r == 0 && str_starts(key, ANN_OURS))
			r = take_wish(annotations, key, wishes, e);
	}
	return r;
}

int spec_take_machine(struct json_object *annotations, struct oci_spec *s, struct err *e)
{
	if (s->sandbox_id) /* it is there already */
		return 0;
	int r = s->is_sandbox ? take_sizes(annotations, s, e) : 0;
	return r == 0 ? take_wishes(annotations, &s->wishes, e) : r;
}
