/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http_url.h"

#include <ctype.h>
#include <curl/curl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/base/str.h"

static void cleanup_curlu(CURLU **u)
{
	curl_url_cleanup(*u);
}

static void cleanup_curl_text(char **text)
{
	curl_free(*text);
}

/*
 * Where the authority of @url begins: behind "SCHEME:" and its slashes, of which libcurl takes any
 * few.
 */
static const char *find_authority(const char *url)
{
	const char *colon = url + strcspn(url, "/?#:");
	return str_starts(colon, ":/") ? colon + 1 + strspn(colon + 1, "/") : url;
}

/* Appends @n bytes of @s to @out, cut. */
static void http_url_append(char *out, size_t size, const char *s, size_t n)
{
	size_t used = strlen(out);
	size_t take = MIN(n, size - 1 - used);
	memcpy(out + used, s, take);
	out[used + take] = '\0';
}

void http_url_show(const char *url, char out[HTTP_SHOWN_MAX + 1])
{
	char whole[HTTP_SHOWN_MAX + 1] = "";
	const char *authority = find_authority(url);
	size_t len = strcspn(authority, "/?#\\");
	const char *at = memrchr(authority, '@', len);
	const char *host = at ? at + 1 : authority;
	size_t rest = strcspn(host, "?#");
	http_url_append(whole, sizeof(whole), url, (size_t)(authority - url));
	http_url_append(whole, sizeof(whole), host, rest);
	if (host[rest] == '?')
		http_url_append(whole, sizeof(whole), "?...", 4);
	if (strlen(whole) == HTTP_SHOWN_MAX)
		memcpy(whole + HTTP_SHOWN_MAX - 3, "...", 3);
	str_copy_text(out, HTTP_SHOWN_MAX + 1, whole);
}

/* A new URL from @text. NULL with @e. */
static CURLU *parse_url(const char *text, struct err *e)
{
	CLEANUP(cleanup_curlu) CURLU *u = curl_url();
	if (strlen(text) > HTTP_URL_MAX) {
		err_set(e, -EINVAL, "URL of more than %zu bytes", HTTP_URL_MAX);
		return NULL;
	}
	CURLUcode code = u ? curl_url_set(u, CURLUPART_URL, text, CURLU_NON_SUPPORT_SCHEME)
			   : CURLUE_OUT_OF_MEMORY;
	if (code == CURLUE_OUT_OF_MEMORY)
		err_set(e, -ENOMEM, "out of memory");
	else if (code != CURLUE_OK)
		err_set(e, -EINVAL, "not a URL (write it as https://HOST/PATH): %s",
			curl_url_strerror(code));
	return code == CURLUE_OK ? TAKE_PTR(u) : NULL;
}

/* Copies a part of @u, in lower case. */
static int copy_part(CURLU *u, CURLUPart part, unsigned flags, char *out, size_t size,
		     struct err *e)
{
	CLEANUP(cleanup_curl_text) char *text = NULL;
	CURLUcode code = curl_url_get(u, part, &text, flags);
	if (code == CURLUE_OUT_OF_MEMORY)
		return err_set(e, -ENOMEM, "out of memory");
	if (code != CURLUE_OK || str_copy(out, size, text) < 0)
		return err_set(e, -EINVAL, "the URL has no usable host or port");
	for (; *out; out++)
		*out = (char)tolower((unsigned char)*out);
	return 0;
}

static int check_scheme(CURLU *u, bool *ret_tls, int code, struct err *e)
{
	CLEANUP(cleanup_curl_text) char *scheme = NULL;
	if (curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK)
		return err_set(e, -ENOMEM, "out of memory");
	*ret_tls = strcasecmp(scheme, "https") == 0;
	if (!*ret_tls && strcasecmp(scheme, "http") != 0)
		return err_set(e, code, "scheme \"%s\" is not http or https", scheme);
	return 0;
}

int http_url_origin(const char *url, struct http_origin *ret, struct err *e)
{
	struct http_origin origin = { 0 };
	CLEANUP(cleanup_curlu) CURLU *u = parse_url(url, e);
	if (!u)
		return -EINVAL;
	int r = check_scheme(u, &origin.tls, -EINVAL, e);
	if (r == 0)
		r = copy_part(u, CURLUPART_HOST, 0, origin.host, sizeof(origin.host), e);
	if (r == 0)
		r = copy_part(u, CURLUPART_PORT, CURLU_DEFAULT_PORT, origin.port,
			      sizeof(origin.port), e);
	if (r < 0)
		return r;
	origin.default_port = strcmp(origin.port, origin.tls ? "443" : "80") == 0;
	*ret = origin;
	return 0;
}

bool http_origin_equal(const struct http_origin *a, const struct http_origin *b)
{
	return a->tls == b->tls && strcmp(a->host, b->host) == 0 && strcmp(a->port, b->port) == 0;
}

const struct auth *http_origin_auth(const struct auths *list, const struct http_origin *origin)
{
	char with_port[HTTP_HOST_MAX + sizeof(origin->port) + 2];
	snprintf(with_port, sizeof(with_port), "%s:%s", origin->host, origin->port);
	for (size_t i = 0; list && i < list->n; i++)
		if (strcasecmp(list->v[i].host, with_port) == 0 ||
		    (origin->default_port && strcasecmp(list->v[i].host, origin->host) == 0))
			return &list->v[i];
	return NULL;
}

int http_url_follow(const char *base, const char *location, char ret[HTTP_URL_MAX + 1],
		    struct err *e)
{
	CLEANUP(cleanup_curl_text) char *text = NULL;
	bool tls;
	CLEANUP(cleanup_curlu) CURLU *u = parse_url(base, e);
	if (!u)
		return -EINVAL;
	CURLUcode code = curl_url_set(u, CURLUPART_URL, location,
				      CURLU_URLENCODE | CURLU_NON_SUPPORT_SCHEME);
	int r = code == CURLUE_OK ? check_scheme(u, &tls, -EPROTO, e) : 0;
	if (r < 0)
		return r;
	if (code == CURLUE_OK)
		code = curl_url_set(u, CURLUPART_USER, NULL, 0);
	if (code == CURLUE_OK)
		code = curl_url_set(u, CURLUPART_PASSWORD, NULL, 0);
	if (code == CURLUE_OK)
		code = curl_url_set(u, CURLUPART_FRAGMENT, NULL, 0);
	if (code == CURLUE_OK)
		code = curl_url_get(u, CURLUPART_URL, &text, 0);
	if (code == CURLUE_OUT_OF_MEMORY)
		return err_set(e, -ENOMEM, "out of memory");
	if (code != CURLUE_OK || strlen(text) > HTTP_URL_MAX)
		return err_set(e, -EPROTO, "the server redirects to something that is not a URL");
	memcpy(ret, text, strlen(text) + 1);
	return 0;
}

/* True if @s of @len bytes could be the name of a region. */
static bool is_region(const char *s, size_t len)
{
	return len > 0 && len <= HTTP_REGION_MAX &&
	       strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-") >= len;
}

void http_aws_region(const char *host, char ret[HTTP_REGION_MAX + 1])
{
	static const char domain[] = ".amazonaws.com";
	char name[HTTP_HOST_MAX + 1];
	memcpy(ret, "us-east-1", sizeof("us-east-1"));
	if (str_copy(name, sizeof(name), host) < 0 || !str_ends(name, domain))
		return;
	name[strlen(name) - strlen(domain)] = '\0';
	char *dot = strrchr(name, '.');
	char *last = dot ? dot + 1 : name;
	const char *region = last;
	if (str_starts(last, "s3-") && strcmp(last, "s3-external-1") != 0) {
		region = last + 3;
	} else {
		/* "s3.REGION", perhaps with a bucket before it. */
		if (!dot)
			return;
		*dot = '\0';
		if (strcmp(name, "s3") != 0 && !str_ends(name, ".s3"))
			return;
	}
	if (is_region(region, strlen(region)))
		memcpy(ret, region, strlen(region) + 1);
}
