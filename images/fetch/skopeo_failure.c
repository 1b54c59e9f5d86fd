/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/skopeo_failure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/str.h"

/* As logrus prints it to what is not a terminal: time="..." level=fatal msg="..." */
static const char fatal[] = "level=fatal msg=";

/*
 * What is searched for, in this order: the cause nearest to the user first. They have blanks and
 * colons where a name of an image, which skopeo puts into its messages, cannot have them. In @text
 * "%R" is the registry and "%Q" what skopeo says behind the needle. One without a text means what
 * the next one does.
 */
static const struct {
	const char *needle;
	int code;
	bool again;
	const char *text;
} causes[] = {
	{ "no space left on device", -ENOSPC, false,
	  "the disk is full (make room; blobs that are complete are not fetched again)" },
	{ "disk quota exceeded", -EDQUOT, false,
	  "the disk quota is used up (make room; blobs that are complete are not fetched again)" },
	{ "file too large", -EFBIG, false,
	  "registry \"%R\" sends more than the manifest says (do not use this image)" },
	{ "Error loading trust policy: ", -EINVAL, false,
	  "skopeo cannot read its signature policy: %Q (see containers-policy.json(5), Debian's is in "
	  "the package golang-github-containers-common; or use --insecure-options=image)" },
	{ "Source image rejected: ", -EPERM, false,
	  "rejected by the host's signature policy: %Q (see containers-policy.json(5); or use "
	  "--insecure-options=image)" },
	{ "Digest did not match", -EBADMSG, false,
	  "registry \"%R\" sends a blob with another digest than the manifest says (the copy over "
	  "there is damaged or forged: tell its owner, or name another image)" },
	{ "exceeded maximum allowed size", -EFBIG, false,
	  "registry \"%R\" has a manifest or configuration that is larger than 4 MiB" },
	{ ": x509: ", -EPROTO, false,
	  "the certificate of registry \"%R\" cannot be trusted: %Q (put its authority into "
	  "/etc/containers/certs.d/%R/ca.crt, or use --insecure-options=tls)" },
	{ "server gave HTTP response to HTTPS client", -EPROTO, false,
	  "registry \"%R\" speaks plain HTTP (if that is as it should be: --insecure-options=tls)" },
	{ "first record does not look like a TLS handshake", -EPROTO, false,
	  "registry \"%R\" does not speak HTTPS (if that is as it should be: "
	  "--insecure-options=tls)" },
	{ "client sent an HTTP request to an HTTPS server", -EPROTO, false,
	  "registry \"%R\" speaks HTTPS only" },
	{ "no such host", -EHOSTUNREACH, false,
	  "there is no host of the name of registry \"%R\" (check the spelling, and the network)" },
	{ "connection refused", -ECONNREFUSED, true,
	  "nobody answers at registry \"%R\" (connection refused: check host and port)" },
	{ ": manifest unknown", -ENOENT, false,
	  "registry \"%R\" has no such image or tag (check repository and tag)" },
	{ ": name unknown", -ENOENT, false,
	  "registry \"%R\" has no such repository (check the spelling)" },
	{ "requested access to the resource is denied", -EACCES, false,
	  "registry \"%R\" has no such repository, or only for those who log in (check the "
	  "spelling; a dockerAuth file in auth.d, or \"skopeo login %R\")" },
	{ "authentication required", -EACCES, false,
	  "registry \"%R\" wants a user and a password, or others than it got (a dockerAuth file in "
	  "auth.d, or \"skopeo login %R\")" },
	{ "invalid username/password", -EACCES, false,
	  "registry \"%R\" does not accept user and password (correct the dockerAuth file in auth.d, "
	  "or \"skopeo login %R\")" },
	{ .needle = ": unauthorized: " },
	{ ": denied: ", -EACCES, false,
	  "registry \"%R\" does not let us in: %Q (a dockerAuth file in auth.d, or \"skopeo login %R\")" },
	{ "401 (Unauthorized)", -EACCES, false,
	  "registry \"%R\" wants other credentials (a dockerAuth file in auth.d, or \"skopeo login "
	  "%R\")" },
	{ "403 (Forbidden)", -EACCES, false,
	  "registry \"%R\" forbids it (a dockerAuth file in auth.d, or \"skopeo login %R\")" },
	{ .needle = "StatusCode: 429" },
	{ ": toomanyrequests: ", -EBUSY, false,
	  "registry \"%R\" has had too many requests from here (try again later, or log in: "
	  "\"skopeo login %R\")" },
	{ "blob: invalid status code from registry 404", -ENOENT, false,
	  "registry \"%R\" does not have a blob that the manifest names (the image over there is "
	  "damaged: tell its owner)" },
	{ .needle = "received unexpected HTTP status: 5" },
	{ "invalid status code from registry 5", -EIO, true,
	  "registry \"%R\" has an internal error (try again later)" },
	{ .needle = "unexpected EOF" },
	{ .needle = "connection reset by peer" },
	{ "broken pipe", -ECONNRESET, true,
	  "registry \"%R\" ended the connection too early (try again)" },
	{ "stream error: ", -ECONNRESET, true,
	  "registry \"%R\" ended the transfer too early (try again)" },
	{ "server sent GOAWAY", -ECONNRESET, true,
	  "registry \"%R\" ended the connection too early (try again)" },
	{ .needle = "i/o timeout" },
	{ .needle = "TLS handshake timeout" },
	{ .needle = ": timeout awaiting " },
	{ .needle = "connection timed out" },
	{ "(Client.Timeout", -ETIMEDOUT, true,
	  "registry \"%R\" does not answer in time (try again; is a proxy needed?)" },
	{ "server misbehaving", -EHOSTUNREACH, true,
	  "the name server cannot say where registry \"%R\" is (try again)" },
	{ "network is unreachable", -ENETUNREACH, true,
	  "there is no network on which registry \"%R\" could be reached (is a proxy needed?)" },
	{ "no route to host", -EHOSTUNREACH, true,
	  "the network cannot reach registry \"%R\" (is a proxy needed?)" },
	{ "\": EOF", -ECONNRESET, true,
	  "registry \"%R\" ended the connection without an answer (try again)" },
};

/* Undoes Go's quoting of one character behind a backslash; what is not a text becomes a blank. */
static char unescape(char c)
{
	return c == '"' || c == '\\' ? c : ' ';
}

/* The part of a log that counts. */
struct part {
	const char *start, *end;
	bool is_quoted;
};

/* The message of the last fatal line of @log, or its last line that is not empty. */
static struct part find_part(const char *log, size_t len)
{
	const char *stop = log + len;
	struct part p = { .start = stop, .end = stop };
	for (const char *line = log, *end; line < stop; line = end + 1) {
		end = memchr(line, '\n', (size_t)(stop - line));
		end = end ? end : stop;
		const char *found = memmem(line, (size_t)(end - line), fatal, sizeof(fatal) - 1);
		if (found)
			p = (struct part){ found + sizeof(fatal) - 1, end, true };
		else if (!p.is_quoted && end > line)
			p = (struct part){ line, end, false };
	}
	return p;
}

/* The text of @p, without its quotes. NULL if memory is short. The caller frees it. */
static char *read_part(const struct part *p)
{
	size_t n = 0;
	char *words = calloc(1, (size_t)(p->end - p->start) + 1);
	if (!words)
		return NULL;
	const char *s = p->start;
	if (p->is_quoted && s < p->end && *s == '"')
		s++;
	for (; s < p->end && !(p->is_quoted && *s == '"'); s++) {
		bool escaped = p->is_quoted && *s == '\\' && s + 1 < p->end;
		s += escaped;
		char c = escaped ? unescape(*s) : *s;
		words[n++] = c == '\0' || c == '\t' || c == '\r' ? ' ' : c;
	}
	return words;
}

/* Fills @out with @text, "%R" being @registry and "%Q" @quote. What does not fit is left away. */
static void fill_in(const char *text, const char *registry, const char *quote, char *out,
		    size_t size)
{
	size_t n = 0;
	for (; *text && n + 1 < size; text++) {
		const char *value = str_starts(text, "%R")   ? registry
				    : str_starts(text, "%Q") ? quote
							     : NULL;
		size_t len = value ? strnlen(value, size - 1 - n) : 1;
		memcpy(out + n, value ? value : text, len);
		n += len;
		text += value != NULL;
	}
	out[n] = '\0';
}

int skopeo_failure(const char *log, size_t len, const struct registry_name *n, struct err *e)
{
	char text[ERR_TEXT_MAX], quote[SKOPEO_QUOTE_MAX + 1];
	const struct part part = find_part(log, len);
	cleanup_free char *words = read_part(&part);
	if (!words)
		return err_set(e, -ENOMEM, "out of memory");
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		const char *found = strstr(words, causes[i].needle);
		if (!found)
			continue;
		str_copy_text(quote, sizeof(quote), found + strlen(causes[i].needle));
		while (!causes[i].text)
			i++;
		fill_in(causes[i].text, n->registry, quote, text, sizeof(text));
		err_set(e, causes[i].code, "%s", text);
		return causes[i].again ? SKOPEO_E_AGAIN : causes[i].code;
	}
	str_copy_text(quote, sizeof(quote), words);
	return err_set(e, -EIO, "skopeo failed at registry \"%s\": %s", n->registry,
		       *quote ? quote : "it did not say why");
}
