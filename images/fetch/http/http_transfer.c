/* SPDX-License-Identifier: Apache-2.0 */
#include "images/fetch/http/http_transfer.h"

#include <curl/curl.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/str.h"

/* Bytes that are received at once; more makes nothing faster on what husk runs on. */
#define RECEIVE_SIZE (128L * 1024)

#define EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

struct http_client {
	CURL *curl;
	char error[CURL_ERROR_SIZE]; /* libcurl's words about the last failure */
	const struct http_transfer *t;
	struct http_head head;
	size_t n_header; /* bytes of header of this answer */
	bool in_body;    /* what follows in header lines are trailers */
	int stopped;     /* what a function of the caller ended the transfer with */
};

static void cleanup_slist(struct curl_slist **list)
{
	curl_slist_free_all(*list);
}

/* Takes the fields of the header that has just ended. */
static void read_head(struct http_client *c)
{
	struct curl_header *field = NULL;
	http_head_init(&c->head);
	while ((field = curl_easy_nextheader(c->curl, CURLH_HEADER, -1, field)))
		http_head_take(&c->head, field->name, field->value);
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
	struct http_client *c = ctx;
	size_t len = size * n;
	long status = 0;
	c->n_header += len;
	if (c->n_header > HTTP_HEADERS_MAX)
		return 0;
	curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &status);
	if (c->in_body || status < 200 || (line[0] != '\r' && line[0] != '\n'))
		return len;
	read_head(c);
	c->head.status = (int)status;
	c->in_body = true;
	c->stopped = c->t->on_head(c->t->ctx, &c->head);
	return c->stopped ? 0 : len;
}

static size_t take_body(char *data, size_t size, size_t n, void *ctx)
{
	struct http_client *c = ctx;
	size_t len = size * n;
	c->stopped = c->t->on_body(c->t->ctx, data, len);
	return c->stopped ? 0 : len;
}

static int take_tick(void *ctx, curl_off_t dltotal, curl_off_t dlnow, curl_off_t ultotal,
		     curl_off_t ulnow)
{
	struct http_client *c = ctx;
	(void)dltotal;
	(void)dlnow;
	(void)ultotal;
	(void)ulnow;
	c->t->on_tick(c->t->ctx);
	return 0;
}

/* libcurl's global state lives as long as the process: it cannot be taken down in part. */
static int init_once(struct err *e)
{
	static bool done;
	if (!done && curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, -EIO, "cannot start libcurl");
	done = true;
	return 0;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	curl_easy_cleanup(c->curl);
	free(c);
}

int http_client_new(struct http_client **ret, struct err *e)
{
	int r = init_once(e);
	if (r < 0)
		return r;
	struct http_client *c = calloc(1, sizeof(*c));
	if (c)
		c->curl = curl_easy_init();
	if (!c || !c->curl) {
		http_client_free(c);
		return err_set(e, -ENOMEM, "out of memory");
	}
	*ret = c;
	return 0;
}

/* Remembers the first failure of a row of settings. */
static void keep(CURLcode *first, CURLcode code)
{
	if (*first == CURLE_OK)
		*first = code;
}

/* What speaks for itself: how the connection is made and watched. */
static CURLcode set_connection(struct http_client *c, const struct http_transfer *t)
{
	CURL *h = c->curl;
	CURLcode r = CURLE_OK;
	keep(&r, curl_easy_setopt(h, CURLOPT_URL, t->url));
	keep(&r, curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https"));
	keep(&r, curl_easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L));
	/* One stream is enough, and its parser is the smaller one. */
	keep(&r, curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1));
	keep(&r, curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L));
	keep(&r, curl_easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)t->pace->connect_ms));
	keep(&r, curl_easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, (long)t->pace->slow_bytes));
	keep(&r, curl_easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)t->pace->slow_s));
	keep(&r, curl_easy_setopt(h, CURLOPT_BUFFERSIZE, RECEIVE_SIZE));
	/* The body is wanted as the server stores it. */
	keep(&r, curl_easy_setopt(h, CURLOPT_HTTP_CONTENT_DECODING, 0L));
	keep(&r, curl_easy_setopt(h, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L));
	keep(&r, curl_easy_setopt(h, CURLOPT_USERAGENT, "husk/" HUSK_VERSION));
	keep(&r, curl_easy_setopt(h, CURLOPT_ERRORBUFFER, c->error));
	return r;
}

static CURLcode set_callbacks(struct http_client *c)
{
	CURL *h = c->curl;
	CURLcode r = CURLE_OK;
	keep(&r, curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, take_header));
	keep(&r, curl_easy_setopt(h, CURLOPT_HEADERDATA, c));
	keep(&r, curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, take_body));
	keep(&r, curl_easy_setopt(h, CURLOPT_WRITEDATA, c));
	keep(&r, curl_easy_setopt(h, CURLOPT_XFERINFOFUNCTION, take_tick));
	keep(&r, curl_easy_setopt(h, CURLOPT_XFERINFODATA, c));
	keep(&r, curl_easy_setopt(h, CURLOPT_NOPROGRESS, 0L));
	return r;
}

/* SSL_CERT_FILE and SSL_CERT_DIR replace the system's, each its own, as with most programs. */
static CURLcode set_tls(CURL *h, const struct http_transfer *t)
{
	const char *file = secure_getenv("SSL_CERT_FILE"), *dir = secure_getenv("SSL_CERT_DIR");
	CURLcode r = CURLE_OK;
	keep(&r, curl_easy_setopt(h, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2));
	keep(&r, curl_easy_setopt(h, CURLOPT_SSL_VERIFYPEER, t->insecure_tls ? 0L : 1L));
	keep(&r, curl_easy_setopt(h, CURLOPT_SSL_VERIFYHOST, t->insecure_tls ? 0L : 2L));
	if (file && *file)
		keep(&r, curl_easy_setopt(h, CURLOPT_CAINFO, file));
	if (dir && *dir)
		keep(&r, curl_easy_setopt(h, CURLOPT_CAPATH, dir));
	return r;
}

/* AWS: Signature Version 4 for S3, as rkt signs. */
static CURLcode set_aws(CURL *h, const struct http_transfer *t)
{
	char region[HTTP_REGION_MAX + 1], scheme[HTTP_REGION_MAX + 32];
	CURLcode r = CURLE_OK;
	http_aws_region(t->origin.host, region);
	if (t->auth->aws_region && str_copy(region, sizeof(region), t->auth->aws_region) < 0)
		return CURLE_BAD_FUNCTION_ARGUMENT;
	snprintf(scheme, sizeof(scheme), "aws:amz:%s:s3", region);
	keep(&r, curl_easy_setopt(h, CURLOPT_AWS_SIGV4, scheme));
	keep(&r, curl_easy_setopt(h, CURLOPT_USERNAME, t->auth->access_key_id));
	keep(&r, curl_easy_setopt(h, CURLOPT_PASSWORD, t->auth->secret_access_key));
	return r;
}

static CURLcode set_auth(CURL *h, const struct http_transfer *t)
{
	CURLcode r = CURLE_OK;
	if (!t->auth)
		return CURLE_OK;
	switch (t->auth->type) {
	case AUTH_BASIC:
		keep(&r, curl_easy_setopt(h, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC));
		keep(&r, curl_easy_setopt(h, CURLOPT_USERNAME, t->auth->user));
		keep(&r, curl_easy_setopt(h, CURLOPT_PASSWORD, t->auth->password));
		return r;
	case AUTH_OAUTH:
		keep(&r, curl_easy_setopt(h, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER));
		keep(&r, curl_easy_setopt(h, CURLOPT_XOAUTH2_BEARER, t->auth->token));
		return r;
	case AUTH_AWS:
		return set_aws(h, t);
	case AUTH_TYPES:
		break;
	}
	return CURLE_BAD_FUNCTION_ARGUMENT;
}

static int add_field(struct curl_slist **list, const char *field)
{
	struct curl_slist *longer = curl_slist_append(*list, field);
	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

/* The header fields of the request, added to @list. */
static int add_fields(const struct http_transfer *t, struct curl_slist **list)
{
	int r = 0;
	for (size_t i = 0; r == 0 && t->fields[i] && i < HTTP_FIELDS_MAX; i++)
		r = add_field(list, t->fields[i]);
	/* S3 wants the digest of what is sent, which is nothing; libcurl takes it from here. */
	if (r == 0 && t->auth && t->auth->type == AUTH_AWS)
		r = add_field(list, "x-amz-content-sha256: " EMPTY_SHA256);
	return r;
}

/* The words of libcurl for what went wrong. */
static const char *words(const struct http_client *c, CURLcode code)
{
	return c->error[0] ? c->error : curl_easy_strerror(code);
}

static int explain_connect(struct http_client *c, CURLcode code, struct err *e)
{
	long os_errno = 0;
	curl_easy_getinfo(c->curl, CURLINFO_OS_ERRNO, &os_errno);
	if (os_errno == ECONNREFUSED)
		return err_set(
			e, -ECONNREFUSED,
			"connection refused (does the server run, is the port the right one?)");
	return err_set(e, -EHOSTUNREACH,
		       "cannot connect: %s (check the network and the proxy variables)",
		       words(c, code));
}

static int explain_tls(struct http_client *c, CURLcode code, struct err *e)
{
	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return err_set(
			e, -EACCES,
			"TLS: %s (if the server is the right one, check this machine's clock, "
			"or name the CA of the server in SSL_CERT_FILE)",
			words(c, code));
	if (code == CURLE_SSL_CACERT_BADFILE)
		return err_set(e, -EACCES,
			       "TLS: %s (install ca-certificates, or check SSL_CERT_FILE and "
			       "SSL_CERT_DIR)",
			       words(c, code));
	return err_set(e, -EPROTO, "TLS: %s (does the server speak TLS 1.2 or later on this port?)",
		       words(c, code));
}

static int explain_timeout(struct http_client *c, struct err *e)
{
	curl_off_t connected = 0;
	curl_easy_getinfo(c->curl, CURLINFO_PRETRANSFER_TIME_T, &connected);
	if (connected == 0)
		return err_set(e, -ETIMEDOUT,
			       "no connection within %u seconds (check the network and the proxy "
			       "variables)",
			       (c->t->pace->connect_ms + 999) / 1000);
	err_set(e, -ETIMEDOUT, "the server sends less than %u bytes a second for %u seconds",
		c->t->pace->slow_bytes, c->t->pace->slow_s);
	return HTTP_TRANSFER_SLOW;
}

/* True if @code means that the connection ended before the answer did. */
static bool is_break(CURLcode code)
{
	return code == CURLE_PARTIAL_FILE || code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR ||
	       code == CURLE_GOT_NOTHING;
}

/* Makes an error of what libcurl says. */
static int http_transfer_explain(struct http_client *c, CURLcode code, struct err *e)
{
	if (code == CURLE_OUT_OF_MEMORY)
		return err_set(e, -ENOMEM, "out of memory");
	if (c->n_header > HTTP_HEADERS_MAX)
		return err_set(
			e, -EPROTO,
			"the server sends more than %zu bytes of header (this is not a place "
			"to download from)",
			HTTP_HEADERS_MAX);
	if (is_break(code)) {
		err_set(e, -ECONNRESET, "the connection broke: %s", words(c, code));
		return HTTP_TRANSFER_BROKEN;
	}
	switch ((int)code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return err_set(e, -EHOSTUNREACH, "host \"%s\" not found (check the name and DNS)",
			       c->t->origin.host);
	case CURLE_COULDNT_RESOLVE_PROXY:
		return err_set(e, -EHOSTUNREACH, "%s (check http_proxy and https_proxy)",
			       words(c, code));
	case CURLE_COULDNT_CONNECT:
		return explain_connect(c, code, e);
	case CURLE_OPERATION_TIMEDOUT:
		return explain_timeout(c, e);
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_ISSUER_ERROR:
	case CURLE_SSL_CIPHER:
		return explain_tls(c, code, e);
	case CURLE_UNSUPPORTED_PROTOCOL:
	case CURLE_WEIRD_SERVER_REPLY:
	case CURLE_BAD_CONTENT_ENCODING:
		return err_set(e, -EPROTO,
			       "the answer is not HTTP: %s (does a web server listen there?)",
			       words(c, code));
	default:
		return err_set(e, -EIO, "%s", words(c, code));
	}
}

int http_client_transfer(struct http_client *c, const struct http_transfer *t, struct err *e)
{
	CLEANUP(cleanup_slist) struct curl_slist *fields = NULL;
	CURLcode code = CURLE_OK;
	c->t = t;
	c->n_header = 0;
	c->in_body = false;
	c->stopped = 0;
	c->error[0] = '\0';
	curl_easy_reset(c->curl);
	if (add_fields(t, &fields) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	keep(&code, set_connection(c, t));
	keep(&code, set_callbacks(c));
	keep(&code, curl_easy_setopt(c->curl, CURLOPT_NOBODY, t->head_only ? 1L : 0L));
	keep(&code, set_tls(c->curl, t));
	keep(&code, set_auth(c->curl, t));
	keep(&code, curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, fields));
	if (code != CURLE_OK)
		return err_set(e, code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL,
			       "cannot prepare the request: %s", curl_easy_strerror(code));
	code = curl_easy_perform(c->curl);
	if (c->stopped)
		return c->stopped;
	if (code == CURLE_OK && !c->in_body)
		return err_set(e, -EPROTO,
			       "the answer is not HTTP (does a web server listen there?)");
	return code == CURLE_OK ? 0 : http_transfer_explain(c, code, e);
}
