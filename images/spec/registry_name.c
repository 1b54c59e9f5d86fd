/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/registry_name.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/num.h"
#include "lib/base/str.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGIT "0123456789"

static bool is_alnum(char c)
{
	return c != '\0' && strchr(LOWER DIGIT, c) != NULL;
}

/* One part of a host name (after RFC 1123): letters, digits and, inside, hyphens. */
static bool is_label(const char *s, size_t len)
{
	return len > 0 && strspn(s, LOWER DIGIT "-") >= len && s[0] != '-' && s[len - 1] != '-';
}

static bool is_host(const char *s, size_t len)
{
	for (;;) {
		size_t n = strcspn(s, ".");
		if (n >= len)
			return is_label(s, len);
		if (!is_label(s, n))
			return false;
		s += n + 1;
		len -= n + 1;
	}
}

static bool is_registry(const char *s)
{
	uint64_t port;
	const char *colon = strchr(s, ':');
	if (colon && (num_parse_u64(colon + 1, UINT16_MAX, &port) < 0 || port == 0))
		return false;
	return is_host(s, colon ? (size_t)(colon - s) : strlen(s));
}

/* What may stand between letters and digits of a repository: ".", "_", "__", or hyphens. */
static size_t separator(const char *s)
{
	size_t hyphens = strspn(s, "-");
	if (hyphens > 0)
		return hyphens;
	if (s[0] == '_' && s[1] == '_')
		return 2;
	return s[0] == '_' || s[0] == '.' || s[0] == '/';
}

/* [a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*, joined by slashes. */
static bool is_repository(const char *s)
{
	for (;;) {
		if (!is_alnum(*s))
			return false;
		s += strspn(s, LOWER DIGIT);
		if (*s == '\0')
			return true;
		size_t n = separator(s);
		if (n == 0)
			return false;
		s += n;
	}
}

static bool is_tag(const char *s)
{
	return *s != '\0' && *s != '.' && *s != '-' &&
	       s[strspn(s, LOWER UPPER DIGIT "_.-")] == '\0';
}

/* Cuts "@DIGEST" off @text. */
static int cut_digest(char *text, struct registry_name *n, struct err *e)
{
	char *at = strchr(text, '@');
	if (!at)
		return 0;
	*at = '\0';
	int r = digest_parse(at + 1, &n->digest);
	if (r == DIGEST_E_ALGORITHM)
		return err_set(
			e, -EOPNOTSUPP,
			"its digest is not a sha256 one, husk has no other (name it by tag)");
	return r < 0 ? err_set(e, -EINVAL,
			       "what follows the @ is not a digest (sha256: and %d hexadecimal "
			       "digits in lower case)",
			       DIGEST_HEX_LEN)
		     : 0;
}

/* Cuts ":TAG" off @text. */
static int cut_tag(char *text, struct registry_name *n, struct err *e)
{
	char *slash = strrchr(text, '/');
	char *colon = strchr(slash ? slash : text, ':');
	const char *tag = *n->digest.hex ? "" : REGISTRY_DEFAULT_TAG;
	if (colon) {
		*colon = '\0';
		tag = colon + 1;
		if (strlen(tag) > REGISTRY_TAG_MAX)
			return err_set(e, -ENAMETOOLONG, "its tag is longer than %zu bytes",
				       REGISTRY_TAG_MAX);
		if (!is_tag(tag))
			return err_set(e, -EINVAL,
				       "the tag behind the colon is empty or has other characters "
				       "than letters, digits, \"_\", \".\" and \"-\"");
	}
	return str_copy(n->tag, sizeof(n->tag), tag);
}

static void registry_name_lower(char *s)
{
	for (; *s; s++)
		if (*s >= 'A' && *s <= 'Z')
			*s = (char)(*s - 'A' + 'a');
}

/* Cuts "REGISTRY/" off @text; the rest is *ret. */
static int cut_registry(char *text, struct registry_name *n, char **ret, struct err *e)
{
	char *slash = strchr(text, '/');
	*ret = text;
	if (slash)
		*slash = '\0';
	if (!slash || (!strpbrk(text, ".:[") && strcmp(text, "localhost") != 0)) {
		if (slash)
			*slash = '/';
		return str_copy(n->registry, sizeof(n->registry), REGISTRY_DEFAULT);
	}
	*ret = slash + 1;
	registry_name_lower(text);
	if (!is_registry(text))
		return err_set(
			e, -EINVAL,
			"\"%s\" is not a registry (a host name or IPv4 address, perhaps with "
			":PORT)",
			text);
	bool index = strcmp(text, "index.docker.io") == 0;
	int r = str_copy(n->registry, sizeof(n->registry), index ? REGISTRY_DEFAULT : text);
	return r < 0 ? err_set(e, r, "its registry is longer than %zu bytes", REGISTRY_NAME_MAX)
		     : 0;
}

static int take_repository(const char *text, struct registry_name *n, struct err *e)
{
	bool official = strcmp(n->registry, REGISTRY_DEFAULT) == 0 && !strchr(text, '/');
	if (!is_repository(text))
		return err_set(
			e, -EINVAL,
			"\"%s\" is not a repository (lower-case letters and digits, joined by "
			"\".\", \"_\", \"__\" or \"-\", and slashes)",
			text);
	int len = snprintf(n->repository, sizeof(n->repository), "%s%s", official ? "library/" : "",
			   text);
	if (len < 0 || (size_t)len + 1 + strlen(n->registry) > REGISTRY_NAME_MAX)
		return err_set(e, -ENAMETOOLONG,
			       "registry and repository are longer than %zu bytes",
			       REGISTRY_NAME_MAX);
	return 0;
}

/* Consumes @text, a copy. */
static int take_apart(char *text, struct registry_name *n, struct err *e)
{
	char *rest = text;
	if (strstr(text, "://"))
		return err_set(e, -EINVAL,
			       "there is a second scheme in it (give docker://REGISTRY/"
			       "REPOSITORY:TAG, https is meant)");
	int r = cut_digest(text, n, e);
	if (r == 0)
		r = cut_tag(text, n, e);
	if (r == 0)
		r = cut_registry(text, n, &rest, e);
	return r < 0 ? r : take_repository(rest, n, e);
}

int registry_name_parse(const char *text, struct registry_name *ret, struct err *e)
{
	char copy[REGISTRY_TEXT_MAX + 1];
	struct registry_name n = { .registry = "" };
	int r = str_copy(copy, sizeof(copy), text);
	if (r < 0)
		err_set(e, r, "longer than %zu bytes", REGISTRY_TEXT_MAX);
	else
		r = take_apart(copy, &n, e);
	if (r < 0) {
		err_context(e, "image name \"%.300s\"", text);
		return r;
	}
	*ret = n;
	return 0;
}

/*
 * Registry and repository share a maximum, so nothing is ever cut; the compiler wants to be told.
 */
static void must_fit(int len, size_t size, char *out)
{
	if (len < 0 || (size_t)len >= size)
		out[0] = '\0';
}

void registry_name_text(const struct registry_name *n, char out[REGISTRY_TEXT_MAX + 1])
{
	const char *colon = *n->tag ? ":" : "", *at = *n->digest.hex ? "@sha256:" : "";
	int len = snprintf(out, REGISTRY_TEXT_MAX + 1, "%s/%s%s%s%s%s", n->registry, n->repository,
			   colon, n->tag, at, n->digest.hex);
	must_fit(len, REGISTRY_TEXT_MAX + 1, out);
}

void registry_name_operand(const struct registry_name *n, const struct digest *digest,
			   char out[REGISTRY_OPERAND_MAX + 1])
{
	const struct digest *d = digest ? digest : &n->digest;
	bool exact = *d->hex != '\0';
	int len = snprintf(out, REGISTRY_OPERAND_MAX + 1, "docker://%s/%s%s%s", n->registry,
			   n->repository, exact ? "@sha256:" : ":", exact ? d->hex : n->tag);
	must_fit(len, REGISTRY_OPERAND_MAX + 1, out);
}

const char *registry_name_bare(const char *text)
{
	static const char *const schemes[] = { "docker://", "docker:", "oci://" };
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (str_starts(text, schemes[i]))
			return text + strlen(schemes[i]);
	return text;
}

bool registry_name_normal(const char *text, char out[REGISTRY_TEXT_MAX + 1])
{
	struct registry_name n;
	text = registry_name_bare(text);
	if (registry_name_parse(text, &n, NULL) == 0) {
		registry_name_text(&n, out);
		return true;
	}
	if (str_copy(out, REGISTRY_TEXT_MAX + 1, text) < 0)
		out[0] = '\0';
	return false;
}
