/* SPDX-License-Identifier: Apache-2.0 */
#include "host/config/location.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"

#define FILE_SCHEME "file"

static const char *const schemes[] = { "docker", FILE_SCHEME, "http", "https" };

/* The length of the scheme in front of a colon (RFC 3986, 3.1), 0 if there is none. */
static size_t scheme_length(const char *location)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	static const char others[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.";
	size_t len = strspn(location, others);
	return len > 0 && location[len] == ':' && strchr(letters, location[0]) ? len : 0;
}

static bool has_scheme(const char *location, const char *scheme)
{
	size_t len = scheme_length(location);
	return len == strlen(scheme) && strncasecmp(location, scheme, len) == 0;
}

/* The value of a hexadecimal digit, 16 of anything else. */
static unsigned digit_value(char c)
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";
	const char *found = c ? strchr(digits, c) : NULL;
	return found ? (unsigned)(found - digits) % 16 : 16;
}

/* Copies @s with %XX replaced into @out. False if it does not fit or has a bad or zero %XX. */
static bool decode_percent(const char *s, char out[PATH_MAX])
{
	size_t n = 0;
	for (; *s && n < PATH_MAX - 1; s++, n++) {
		out[n] = *s;
		if (*s != '%')
			continue;
		unsigned high = digit_value(s[1]), low = high < 16 ? digit_value(s[2]) : 16;
		if (low > 15 || (high == 0 && low == 0))
			return false;
		out[n] = (char)(high * 16 + low);
		s += 2;
	}
	out[n] = '\0';
	return *s == '\0';
}

/* The path of a file URL (RFC 8089): file:/path, file:///path, file://localhost/path. */
static int file_url_path(const char *url, char out[PATH_MAX], struct err *e)
{
	const char *rest = url + strlen(FILE_SCHEME ":");
	if (str_starts(rest, "//")) {
		rest += 2;
		if (strncasecmp(rest, "localhost/", strlen("localhost/")) == 0)
			rest += strlen("localhost");
	}
	if (*rest != '/' || strpbrk(rest, "?#") || !decode_percent(rest, out))
		return err_set(e, -EINVAL,
			       "location \"%s\" is not the URL of a file on this host "
			       "(write it as file:///PATH)",
			       url);
	return 0;
}

int location_check(const char *location, struct err *e)
{
	char path[PATH_MAX];
	if (location[0] == '/')
		return 0;
	size_t len = scheme_length(location);
	if (len == 0)
		return err_set(e, -EINVAL,
			       "location \"%s\": default stage1 image location is either a "
			       "relative path or a URL without scheme (write it as /PATH or "
			       "file:///PATH)",
			       location);
	if (has_scheme(location, FILE_SCHEME))
		return file_url_path(location, path, e);
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (has_scheme(location, schemes[i]) && location[len + 1])
			return 0;
	return err_set(e, -EINVAL,
		       "location \"%s\" is not a URL of scheme docker, file, http or https "
		       "(write it as /PATH or file:///PATH)",
		       location);
}

int location_path(const char *location, char out[PATH_MAX])
{
	bool is_path = location[0] == '/' ? str_copy(out, PATH_MAX, location) == 0
					  : has_scheme(location, FILE_SCHEME) &&
						    file_url_path(location, out, NULL) == 0;
	return is_path ? 0 : LOCATION_E_REMOTE;
}
