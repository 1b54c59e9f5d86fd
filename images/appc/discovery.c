/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/discovery.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "images/appc/meta.h"
#include "images/fetch/http/http.h"
#include "lib/os/fd.h"

#define EXT_IMAGE     "aci"
#define EXT_SIGNATURE "aci.asc"

void discovery_init(struct discovery *d)
{
	strv_init(&d->images, DISCOVERY_URLS_MAX);
	strv_init(&d->signatures, DISCOVERY_URLS_MAX);
	strv_init(&d->keys, DISCOVERY_URLS_MAX);
}

void discovery_deinit(struct discovery *d)
{
	strv_deinit(&d->images);
	strv_deinit(&d->signatures);
	strv_deinit(&d->keys);
}

/* What the variable of a template stands for. NULL if nothing. */
static const char *variable(const char *name, const struct acname *n, const char *ext)
{
	if (strcmp(name, "name") == 0)
		return n->name;
	return strcmp(name, "ext") == 0 ? ext : acname_get(n, name);
}

/* Appends @c, as %XX if it would end or change the part of the URL that it stands in. */
static int put_escaped(struct buf *out, char c)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789-._~/+:@,=!$'()*;";
	return strchr(plain, c) ? buf_append(out, &c, 1)
				: buf_printf(out, "%%%02X", (unsigned char)c);
}

/* Appends the value of the variable at @text, behind whose "}" *@ret_end is. */
static int put_variable(struct buf *out, const char *text, const struct acname *n, const char *ext,
			const char **ret_end)
{
	char name[ACNAME_LABEL_MAX + 1] = "";
	size_t len = strcspn(text, "}");
	if (text[len] != '}' || len >= sizeof(name))
		return -ENOENT;
	memcpy(name, text, len);
	const char *value = variable(name, n, ext);
	if (!value)
		return -ENOENT;
	*ret_end = text + len + 1;
	int r = 0;
	for (; r == 0 && *value; value++)
		r = put_escaped(out, *value);
	return r;
}

int discovery_render(const char *template, const struct acname *n, const char *ext,
		     char ret[HTTP_URL_MAX + 1])
{
	cleanup_buf struct buf out;
	buf_init(&out, HTTP_URL_MAX);
	int r = 0;
	while (r == 0 && *template) {
		if (*template == '{') {
			r = put_variable(&out, template + 1, n, ext, &template);
		} else {
			size_t len = strcspn(template, "{");
			r = buf_append(&out, template, len);
			template += len;
		}
	}
	if (r < 0)
		return r == -EMSGSIZE ? -ENAMETOOLONG : r;
	if (buf_len(&out) > 0)
		memcpy(ret, buf_data(&out), buf_len(&out));
	ret[buf_len(&out)] = '\0';
	return 0;
}

/* Splits "PREFIX TEMPLATE". NULL unless it concerns @name. */
static const char *find_template(char *content, const char *name)
{
	static const char blanks[] = " \t\n\f\r";
	char *prefix = content + strspn(content, blanks);
	char *template = prefix + strcspn(prefix, blanks);
	if (template == prefix || !*template)
		return NULL;
	*template ++ = '\0';
	template += strspn(template, blanks);
	/* The end of a URL is not its blanks. */
	for (size_t len = strlen(template); len > 0 && strchr(blanks, template[len - 1]); len--)
		template[len - 1] = '\0';
	return *template && str_starts(name, prefix) ? template : NULL;
}

static bool is_wanted_url(const char *url, bool insecure_http)
{
	return strlen(url) <= HTTP_URL_MAX && str_is_printable(url, HTTP_URL_MAX) &&
	       (str_starts(url, "https://") || (insecure_http && str_starts(url, "http://")));
}

/* 0 also for what is one too many. */
static int add_url(struct strv *list, const char *url)
{
	int r = strv_add(list, url);
	return r == -E2BIG ? 0 : r;
}

static int add_image(const char *template, const struct acname *n, bool insecure_http,
		     struct discovery *ret)
{
	char image[HTTP_URL_MAX + 1], signature[HTTP_URL_MAX + 1];
	int r = discovery_render(template, n, EXT_IMAGE, image);
	if (r == 0)
		r = discovery_render(template, n, EXT_SIGNATURE, signature);
	if (r == -ENOMEM)
		return r;
	/* Without {ext} there is no signature: the specification wants it. */
	if (r < 0 || strcmp(image, signature) == 0 || !is_wanted_url(image, insecure_http))
		return 0;
	r = add_url(&ret->images, image);
	return r < 0 ? r : add_url(&ret->signatures, signature);
}

int discovery_parse(const char *html, size_t len, const struct acname *n, bool insecure_http,
		    struct discovery *ret)
{
	struct meta_scan scan = { html, html + len };
	struct meta_tag tag;
	int r = 0;
	while (r == 0 && meta_next(&scan, &tag)) {
		const char *template = find_template(tag.content, n->name);
		if (!template)
			continue;
		if (strcmp(tag.name, "ac-discovery") == 0)
			r = add_image(template, n, insecure_http, ret);
		else if (strcmp(tag.name, "ac-discovery-pubkeys") == 0 &&
			 is_wanted_url(template, insecure_http))
			r = add_url(&ret->keys, template);
	}
	return r;
}

/* A search under way. */
struct search {
	const struct acname *name; /* with all labels */
	enum discovery_wanted wanted;
	struct fetch_options o;
	struct discovery *ret;
};

static bool has_wanted(const struct search *s)
{
	return (s->wanted == DISCOVERY_KEYS ? s->ret->keys.n : s->ret->images.n) > 0;
}

/* Reads the page in @fd. */
static int read_page(struct search *s, int fd, size_t size, struct err *e)
{
	cleanup_free char *html = malloc(size + 1);
	size_t got = 0;
	if (!html)
		return err_set(e, -ENOMEM, "out of memory");
	int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : fd_read_full(fd, html, size, &got);
	if (r < 0)
		return err_sys(e, r, "cannot read the page");
	discovery_deinit(s->ret);
	if (discovery_parse(html, got, s->name, s->o.insecure_http, s->ret) < 0)
		return err_set(e, -ENOMEM, "out of memory");
	return 0;
}

/* Asks for one page. 0 with what is wanted. */
static int discovery_ask(struct search *s, const char *url, struct err *e)
{
	struct http_result result;
	cleanup_fd int fd = memfd_create("page", MFD_CLOEXEC);
	if (fd < 0)
		return err_sys(e, -errno, "cannot create a temporary file");
	const struct http_request q = {
		.url = url,
		.accept = "text/html, */*;q=0.1",
		.size_max = DISCOVERY_PAGE_MAX,
		.cut = true,
		.fd = fd,
	};
	int r = http_get(&q, &s->o, &result, e);
	if (r == 0)
		r = read_page(s, fd, (size_t)result.size, e);
	if (r < 0 || has_wanted(s))
		return r;
	return err_set(e, -ENOENT,
		       "\"%s\": no meta tag \"%s\" there that fits \"%s\" with its labels", url,
		       s->wanted == DISCOVERY_KEYS ? "ac-discovery-pubkeys" : "ac-discovery",
		       s->name->name);
}

/* Asks for the page of @name, with TLS and then perhaps without. */
static int ask_both(struct search *s, const char *name, struct err *e)
{
	char url[ACNAME_MAX + 64];
	struct err plain = ERR_INIT;
	snprintf(url, sizeof(url), "https://%s?ac-discovery=1", name);
	int r = discovery_ask(s, url, e);
	if (r == 0 || !s->o.insecure_http)
		return r;
	fetch_note(&s->o, "%s", e->text);
	snprintf(url, sizeof(url), "http://%s?ac-discovery=1", name);
	if (discovery_ask(s, url, &plain) == 0)
		return 0;
	struct err tls = *e;
	return err_set(e, r, "%.480s; %.480s", tls.text, plain.text);
}

/* Fills in the labels that are not given. */
static int discovery_complete(struct acname *n, struct err *e)
{
	static const struct {
		const char *label, *value;
	} defaults[] = {
		{ "version", "latest" },
		{ "os", ACNAME_HOST_OS },
		{ "arch", acname_host_arch },
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(defaults); i++)
		if (!acname_get(n, defaults[i].label))
			r = acname_set(n, defaults[i].label, defaults[i].value, e);
	return r;
}

/* Asks from @name up to its host. @e is the first failure. */
static int discovery_walk(struct search *s, char *name, struct err *e)
{
	int r = 0;
	for (size_t step = 0; step < DISCOVERY_STEPS_MAX; step++) {
		struct err later = ERR_INIT;
		int now = ask_both(s, name, step == 0 ? e : &later);
		if (now == 0)
			return 0;
		fetch_note(&s->o, "%s", step == 0 ? e->text : later.text);
		r = step == 0 ? now : r;
		char *slash = strrchr(name, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	return r;
}

int discovery_find(const struct acname *n, enum discovery_wanted wanted,
		   const struct fetch_options *o, struct discovery *ret, struct err *e)
{
	struct err own = ERR_INIT;
	struct acname full = *n;
	char name[ACNAME_MAX + 1];
	struct search s = { .name = &full, .wanted = wanted, .o = *o, .ret = ret };
	s.o.progress = NULL; /* pages are small, and most are not there */
	int r = discovery_complete(&full, &own);
	if (r == 0) {
		memcpy(name, n->name, sizeof(name));
		r = discovery_walk(&s, name, &own);
	}
	if (r < 0 && e) {
		*e = own;
		err_context(e, "discovery failed for \"%s\"", n->name);
	}
	return r;
}
