/* SPDX-License-Identifier: Apache-2.0 */
#include "images/spec/digest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/base/hex.h"
#include "lib/base/str.h"

/* "algorithm:encoded" as the image-spec's grammar has it, any algorithm. */
static bool looks_like_digest(const char *text)
{
	size_t algorithm = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+._-");
	if (algorithm == 0 || text[algorithm] != ':')
		return false;
	const char *encoded = text + algorithm + 1;
	size_t n = strspn(encoded, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789=_-");
	return n > 0 && encoded[n] == '\0';
}

int digest_parse(const char *text, struct digest *ret)
{
	static const char prefix[] = "sha256:";
	if (!str_starts(text, prefix))
		return looks_like_digest(text) ? DIGEST_E_ALGORITHM : -EINVAL;
	return digest_from_hex(text + sizeof(prefix) - 1, ret);
}

int digest_from_hex(const char *hex, struct digest *ret)
{
	if (!hex_is_valid(hex, DIGEST_HEX_LEN))
		return -EINVAL;
	memcpy(ret->hex, hex, sizeof(ret->hex));
	return 0;
}

void digest_appc_id(const struct digest *d, char out[DIGEST_APPC_ID_LEN + 1])
{
	char text[sizeof("sha256:") + DIGEST_HEX_LEN], hex[2 * SHA512_DIGEST_SIZE + 1];
	unsigned char hash[SHA512_DIGEST_SIZE];
	struct sha512_ctx ctx;
	int len = snprintf(text, sizeof(text), "sha256:%s", d->hex);
	sha512_init(&ctx);
	sha512_update(&ctx, (size_t)len, (const unsigned char *)text);
	sha512_digest(&ctx, sizeof(hash), hash);
	hex_encode(hash, sizeof(hash), hex);
	snprintf(out, DIGEST_APPC_ID_LEN + 1, "sha512-%.*s", DIGEST_HEX_LEN, hex);
}

bool digest_equal(const struct digest *a, const struct digest *b)
{
	return strcmp(a->hex, b->hex) == 0;
}

void digest_of(const void *data, size_t len, struct digest *ret)
{
	struct hasher h;
	hasher_init(&h);
	hasher_update(&h, data, len);
	hasher_finish(&h, ret);
}

void hasher_init(struct hasher *h)
{
	sha256_init(&h->ctx);
}

void hasher_update(struct hasher *h, const void *data, size_t len)
{
	sha256_update(&h->ctx, len, data);
}

void hasher_finish(struct hasher *h, struct digest *ret)
{
	unsigned char bytes[SHA256_DIGEST_SIZE];
	sha256_digest(&h->ctx, sizeof(bytes), bytes);
	hex_encode(bytes, sizeof(bytes), ret->hex);
}

void digest_chain(const struct digest *diff_ids, size_t n, struct digest *ret)
{
	struct digest chain = diff_ids[0];
	for (size_t i = 1; i < n; i++) {
		char text[2 * (sizeof("sha256:") + DIGEST_HEX_LEN) + 2];
		int len = snprintf(text, sizeof(text), "sha256:%s sha256:%s", chain.hex,
				   diff_ids[i].hex);
		digest_of(text, (size_t)len, &chain);
	}
	*ret = chain;
}
