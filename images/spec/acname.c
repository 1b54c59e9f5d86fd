/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/acname.h"

#include <errno.h>
#include <string.h>

#include "lib/base/str.h"
#include "lib/wire/pod_image.h"

const char acname_host_arch[] = POD_HOST_ARCH;

#define VERSION "version"

/* Room for one label as the user wrote it. */
#define LABEL_TEXT_MAX (ACNAME_LABEL_MAX + 1 + ACNAME_VALUE_MAX)

bool acname_is_identifier(const char *s, size_t max)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	size_t len = strnlen(s, max + 1);
	if (len == 0 || len > max)
		return false;
	for (;;) {
		size_t n = strspn(s, letters);
		if (n == 0)
			return false;
		s += n;
		if (!*s)
			return true;
		size_t run = strspn(s, "-_~");
		if (run == 0 && *s != '.' && *s != '/')
			return false;
		s += MAX(run, (size_t)1);
	}
}

static bool is_value(const char *s)
{
	return str_is_printable(s, ACNAME_VALUE_MAX) && !strpbrk(s, " :,");
}

static struct acname_label *acname_find(struct acname *n, const char *label)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->labels[i].name, label) == 0)
			return &n->labels[i];
	return NULL;
}

bool acname_has_host(const char *text)
{
	struct acname n;
	if (acname_parse(text, &n, NULL) < 0)
		return false;
	size_t host = strcspn(n.name, "/");
	return memchr(n.name, '.', host) || strncmp(n.name, "localhost/", host + 1) == 0;
}

const char *acname_get(const struct acname *n, const char *label)
{
	for (size_t i = 0; i < n->n; i++)
		if (strcmp(n->labels[i].name, label) == 0)
			return n->labels[i].value;
	return NULL;
}

int acname_set(struct acname *n, const char *label, const char *value, struct err *e)
{
	/* "name" is what the labels are labels of; a template has one place for both. */
	if (!acname_is_identifier(label, ACNAME_LABEL_MAX) || strcmp(label, "name") == 0)
		return err_set(e, -EINVAL,
			       "\"%s\" is not a name of a label (lower-case letters, digits, and "
			       "-._~/ between them)",
			       label);
	if (!is_value(value))
		return err_set(e, -EINVAL,
			       "label \"%s\" has no usable value (1 to %zu printable characters "
			       "without blanks, colons and commas)",
			       label, ACNAME_VALUE_MAX);
	struct acname_label *slot = acname_find(n, label);
	if (!slot && n->n == ACNAME_LABELS_MAX)
		return err_set(e, -E2BIG, "more than %zu labels", ACNAME_LABELS_MAX);
	if (!slot)
		slot = &n->labels[n->n++];
	memcpy(slot->name, label, strlen(label) + 1);
	memcpy(slot->value, value, strlen(value) + 1);
	return 0;
}

/* Like acname_set(), but for a label that must not be there yet. */
static int acname_add(struct acname *n, const char *label, const char *value, struct err *e)
{
	if (acname_find(n, label))
		return err_set(e, -EINVAL, "label \"%s\" is given twice", label);
	return acname_set(n, label, value, e);
}

/* Copies @len bytes of @text, which fit or are too long for everything that they could be. */
static int copy_part(char *out, size_t size, const char *text, size_t len, struct err *e)
{
	if (len >= size)
		return err_set(e, -EINVAL, "a part of it has more than %zu bytes", size - 1);
	memcpy(out, text, len);
	out[len] = '\0';
	return 0;
}

/* One ",label=value". */
static int parse_label(struct acname *n, const char *text, size_t len, struct err *e)
{
	char label[LABEL_TEXT_MAX + 1];
	int r = copy_part(label, sizeof(label), text, len, e);
	if (r < 0)
		return r;
	char *value = strchr(label, '=');
	if (!value)
		return err_set(e, -EINVAL, "label \"%s\" has no value (write %s=VALUE)", label,
			       len ? label : "NAME");
	*value++ = '\0';
	return acname_add(n, label, value, e);
}

static int parse_version(struct acname *n, const char *text, size_t len, struct err *e)
{
	char version[ACNAME_VALUE_MAX + 1];
	int r = copy_part(version, sizeof(version), text, len, e);
	return r < 0 ? r : acname_add(n, VERSION, version, e);
}

static int parse(const char *text, struct acname *n, struct err *e)
{
	size_t len = strcspn(text, ":,");
	int r = copy_part(n->name, sizeof(n->name), text, len, e);
	if (r < 0)
		return r;
	if (!acname_is_identifier(n->name, ACNAME_MAX))
		return err_set(
			e, -EINVAL,
			"\"%s\" is not a name (lower-case letters, digits, and -._~/ between "
			"them: example.com/app)",
			n->name);
	text += len;
	if (*text == ':') {
		len = strcspn(text, ",");
		r = parse_version(n, text + 1, len - 1, e);
		text += len;
	}
	while (r == 0 && *text == ',') {
		text++;
		len = strcspn(text, ",");
		r = parse_label(n, text, len, e);
		text += len;
	}
	return r;
}

int acname_parse(const char *text, struct acname *ret, struct err *e)
{
	struct acname n = { .n = 0 };
	int r = parse(text, &n, e);
	if (r < 0) {
		err_context(e, "image name \"%.300s\"", text);
		return -EINVAL;
	}
	*ret = n;
	return 0;
}

const struct acname_label *acname_missing(const struct acname *have, const struct acname *want)
{
	for (size_t i = 0; i < want->n; i++) {
		const struct acname_label *l = &want->labels[i];
		const char *value = acname_get(have, l->name);
		bool latest = strcmp(l->name, VERSION) == 0 && strcmp(l->value, "latest") == 0;
		if (value ? strcmp(value, l->value) != 0 : !latest)
			return l;
	}
	return NULL;
}

int acname_format(const struct acname *n, struct buf *out)
{
	const char *version = acname_get(n, VERSION);
	int r = buf_puts(out, n->name);
	if (r == 0 && version)
		r = buf_printf(out, ":%s", version);
	for (size_t i = 0; r == 0 && i < n->n; i++)
		if (strcmp(n->labels[i].name, VERSION) != 0)
			r = buf_printf(out, ",%s=%s", n->labels[i].name, n->labels[i].value);
	return r;
}
