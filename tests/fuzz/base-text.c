/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small parsers of lib/base and lib/wire: numbers, hexadecimal, UUIDs, JSON, resource limits,
 * keys. The first byte chooses, the rest is the text. Properties: what is accepted is written back
 * the same, or reads the same again.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/json.h"
#include "lib/base/num.h"
#include "lib/base/quantity.h"
#include "lib/base/signame.h"
#include "lib/base/str.h"
#include "lib/base/uuid.h"
#include "lib/wire/detach_keys.h"
#include "lib/wire/rlimit.h"
#include "lib/wire/volumes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool property)
{
	if (!property)
		abort();
}

static void try_numbers(const char *s)
{
	uint64_t n = 0, size = 0;
	int64_t quantity = 0;
	if (quantity_parse(s, &quantity) == 0)
		check(quantity >= 0);
	if (num_parse_u64(s, UINT64_MAX, &n) == 0)
		check(n > INT64_MAX / QUANTITY_UNIT ||
		      (size_parse(s, 0, UINT64_MAX, &size) == 0 && size == n));
	if (size_parse(s, 10, 1000, &size) == 0)
		check(size >= 10 && size <= 1000);
}

static void try_signal(const char *s)
{
	char name[SIGNAME_MAX + 1];
	int n = signame_parse(s);
	if (n >= 0)
		check(n >= 1 && n <= 64 && signame_parse(signame_format(n, name)) == n);
}

static void try_hex(const char *s)
{
	unsigned char bytes[32];
	char again[2 * sizeof(bytes) + 1];
	for (size_t len = 0; len <= sizeof(bytes); len++) {
		int r = hex_decode(s, bytes, len);
		check((r == 0) == hex_is_valid(s, 2 * len));
		if (r < 0)
			continue;
		hex_encode(bytes, len, again);
		check(strcmp(again, s) == 0);
	}
	if (uuid_is_valid(s))
		check(strlen(s) == UUID_TEXT_LEN);
}

static void try_text(const char *s)
{
	char copy[24];
	str_copy_text(copy, sizeof(copy), s);
	check(str_is_utf8(copy));
	if (str_is_utf8(s) && strlen(s) < sizeof(copy))
		check(strcmp(copy, s) == 0);
}

static const char *limit(uint64_t n, char ret[24])
{
	if (n == RLIMIT_UNLIMITED)
		return "unlimited";
	snprintf(ret, 24, "%" PRIu64, n);
	return ret;
}

static void try_rlimit(const char *s)
{
	struct rlimit_spec spec, again;
	char text[80], soft[24], hard[24];
	if (rlimit_parse(s, &spec) < 0)
		return;
	check(spec.soft <= spec.hard && rlimit_name(spec.resource));
	snprintf(text, sizeof(text), "%s=%s:%s", rlimit_name(spec.resource), limit(spec.soft, soft),
		 limit(spec.hard, hard));
	check(rlimit_parse(text, &again) == 0 && again.resource == spec.resource &&
	      again.soft == spec.soft && again.hard == spec.hard);
}

/* Whoever types a sequence leaves, and nothing of it goes on. */
static void try_detach_keys(const char *s)
{
	struct detach_keys k, typed;
	char out[2 * DETACH_KEYS_MAX];
	size_t n = 0;
	if (detach_keys_parse(s, &k) < 0)
		return;
	check(k.n <= DETACH_KEYS_MAX);
	typed = k;
	check(detach_keys_feed(&k, typed.key, typed.n, out, &n) == (k.n > 0) && n == 0);
}

/* The accessors on whatever it is, with keys that the corpus uses. */
static void try_accessors(struct json_object *obj)
{
	const char *s;
	int64_t n;
	bool b;
	cleanup_strv struct strv sv;
	strv_init(&sv, 8);
	if (json_get_str(obj, "s", 16, &s) == 0)
		check(strlen(s) <= 16);
	if (json_get_int(obj, "n", -5, 100, &n) == 0)
		check(n >= -5 && n <= 100);
	(void)json_get_bool(obj, "b", &b);
	if (json_get_strv(obj, "l", 16, &sv) == 0)
		check(sv.n <= 8);
}

static void try_json(const char *text, size_t len)
{
	cleanup_json struct json_object *obj = NULL, *again = NULL;
	cleanup_buf struct buf out;
	buf_init(&out, 16 * (len + 64) * JSON_DEPTH_MAX);
	if (json_parse(text, len, &obj) != 0)
		return;
	try_accessors(obj);
	int r = json_write(obj, (len & 1) != 0, &out);
	check(r == 0 || r == -EINVAL); /* a floating-point number */
	if (r < 0)
		return;
	check(json_parse(buf_data(&out), buf_len(&out), &again) == 0);
	check(json_object_equal(obj, again));
}

static void try_volume(const char *text)
{
	enum volume_kind kind;
	enum volume_format format;
	int64_t mode = 0;
	cleanup_free char *clean = NULL, *again = NULL;
	if (volume_kind_parse("empty", text, &kind) == 0)
		check(kind <= VOLUME_IMAGE);
	if (volume_format_parse(text, &format) == 0)
		check(format <= VOLUME_QCOW2);
	if (volume_mode_parse(text, &mode) == 0)
		check(mode >= 0 && mode <= AGENT_MODE_MAX);
	if (volume_path_clean(text, &clean) < 0)
		return;
	check(volume_path_clean(clean, &again) == 0 && strcmp(clean, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t len = size - 1;
	cleanup_free char *exact = malloc(len ? len : 1);
	cleanup_free char *text = malloc(len + 1);
	check(exact && text);
	memcpy(exact, data + 1, len);
	memcpy(text, data + 1, len);
	text[len] = '\0';
	switch (data[0] % 4) {
	case 0:
		try_numbers(text);
		break;
	case 1:
		try_hex(text);
		break;
	case 2:
		try_text(text);
		try_rlimit(text);
		try_signal(text);
		try_detach_keys(text);
		try_volume(text);
		break;
	default:
		try_json(exact, len); /* no NUL behind it */
		break;
	}
	return 0;
}
