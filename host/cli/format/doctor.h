/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result of checks: what works, what does not, what to do about it. Collected from stage0's own
 * checks and from the JSON that the doctor entrypoint of a stage1 prints:
 * {"checks": [{"name", "ok", "value"?, "detail"?, "remedy"?}, ...]}.
 */
#ifndef HOST_CLI_FORMAT_DOCTOR_H
#define HOST_CLI_FORMAT_DOCTOR_H

#include <json-c/json_object.h>
#include <stdbool.h>
#include <stddef.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

#define DOCTOR_CHECKS_MAX ((size_t)64) /* stage0 and stage1 together make about twenty */
#define DOCTOR_NAME_MAX   63
#define DOCTOR_TEXT_MAX   511
/* Longest text that is taken from a stage1, and then cut: some sentences with two paths. */
#define DOCTOR_INPUT_TEXT_MAX 16384

struct doctor_check {
	char name[DOCTOR_NAME_MAX + 1];
	bool ok;
	char value[DOCTOR_TEXT_MAX + 1];  /* what was found */
	char detail[DOCTOR_TEXT_MAX + 1]; /* what it means */
	char remedy[DOCTOR_TEXT_MAX + 1]; /* what to do; shown if not ok */
};

struct doctor {
	struct doctor_check *checks; /* owned */
	size_t n;
};

#define DOCTOR_INIT ((struct doctor){ 0 })

/* Accepts DOCTOR_INIT. */
void doctor_deinit(struct doctor *d);

/*
 * Adds a check with its texts cut to their limits; NULL means empty. -E2BIG at DOCTOR_CHECKS_MAX,
 * -ENOMEM.
 */
int doctor_add(struct doctor *d, const char *name, bool ok, const char *value, const char *detail,
	       const char *remedy);

/* Adds the checks of a stage1's output. 0, or -errno and @e; checks before a bad one stay. */
int doctor_add_json(struct doctor *d, const char *text, size_t len, struct err *e);

/*
 * Appends a table: mark, name, value and detail per line, and a line with the remedy under each
 * miss. Errors as buf_append().
 */
int doctor_format(const struct doctor *d, struct buf *out);

/* {"ok": @ok, "checks": [...]}, owned by the caller; NULL if memory is short. */
struct json_object *doctor_json(const struct doctor *d, bool ok);

#endif
