/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a context is GPGME with one program and one home. All keys are imported at
 * once, then listed: the list must be exactly the keys that the caller vouches for, by fingerprint,
 * and it is what signers are looked up in. Nothing that gpg says about trust counts.
 *
 * GPGME reports for each signature a status, digest and fingerprint. It does not report the kind,
 * so a callback collects it from the raw status lines (status.h); a good signature whose kind was
 * not seen to be the right one does not count.
 */
#include "images/appc/trust/gpg.h"

#include <errno.h>
#include <gpgme.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/trust/status.h"
#include "images/appc/trust/worker.h"
#include "lib/base/str.h"
#include "lib/os/fd.h"

/*
 * Processor time of gpg. Reading the largest keyring takes some seconds; but a small key can be
 * made that takes hours. Checking a signature takes a moment, and hashing a MiB some milliseconds.
 */
#define KEYS_SECONDS      30
#define SIGNATURE_SECONDS 30
#define SLOWEST_HASH      ((uint64_t)8 * 1024 * 1024) /* bytes a second, on a slow machine */

#define READ_SIZE "65536" /* bytes of the signed file per write to gpg; a pipe holds as much */

/* The keys in a home. One more than may be there, so that this shows. */
struct keys {
	gpgme_key_t v[KEYRING_KEYS_MAX + 1];
	size_t n;
};

/* The kinds of the valid signatures. */
struct kinds {
	struct status_valid v[TRUST_SIGNATURES_MAX];
	size_t n;
	bool odd; /* more than these, or one that could not be read */
};

/* The signed file. */
struct source {
	int fd;
	uint64_t at;
	int error; /* -errno of a failed read */
};

static void cleanup_ctx(gpgme_ctx_t *ctx)
{
	if (*ctx)
		gpgme_release(*ctx);
}

static void cleanup_data(gpgme_data_t *data)
{
	if (*data)
		gpgme_data_release(*data);
}

static void cleanup_keys(struct keys *keys)
{
	for (size_t i = 0; i < keys->n; i++)
		gpgme_key_unref(keys->v[i]);
}

/* gpg or GPGME could not do @what. */
static int gpg_fail(gpgme_error_t error, const char *what, struct err *e)
{
	int number = gpgme_err_code_to_errno(gpgme_err_code(error));
	return err_set(e, number > 0 ? -number : -EIO, "gpg cannot %s: %s (try again)", what,
		       gpgme_strerror(error));
}

/* Opens a context for reading keys, and limits the time of that. */
static gpgme_error_t open_ctx(const struct gpg_home *home, gpgme_ctx_t *ctx)
{
	int r = worker_limit_time(KEYS_SECONDS);
	if (r < 0)
		return gpgme_error_from_errno(-r);
	/* The program is known; gpgconf(1) would be asked for it. */
	gpgme_set_global_flag("disable-gpgconf", "1");
	if (!gpgme_check_version(NULL))
		return gpgme_error(GPG_ERR_ENGINE_TOO_OLD);
	gpgme_error_t error = gpgme_new(ctx);
	if (!error)
		error = gpgme_ctx_set_engine_info(*ctx, GPGME_PROTOCOL_OpenPGP, home->program,
						  home->path);
	if (!error)
		error = gpgme_set_protocol(*ctx, GPGME_PROTOCOL_OpenPGP);
	if (!error)
		error = gpgme_set_ctx_flag(*ctx, "full-status", "1");
	if (!error)
		gpgme_set_offline(*ctx, 1);
	return error;
}

static gpgme_error_t import(gpgme_ctx_t ctx, gpgme_data_t data, int *ret_secret)
{
	gpgme_error_t error = gpgme_op_import(ctx, data);
	gpgme_import_result_t result = error ? NULL : gpgme_op_import_result(ctx);
	*ret_secret = result ? result->secret_read : 0;
	/* Whether what was wanted is there now shows in the list. */
	return gpgme_err_code(error) == GPG_ERR_NO_DATA ? 0 : error;
}

static gpgme_error_t list_keys(gpgme_ctx_t ctx, struct keys *keys)
{
	gpgme_error_t error = gpgme_op_keylist_start(ctx, NULL, 0);
	while (!error && keys->n < ARRAY_SIZE(keys->v)) {
		gpgme_key_t key = NULL;
		error = gpgme_op_keylist_next(ctx, &key);
		if (!error)
			keys->v[keys->n++] = key;
	}
	bool ended = gpgme_err_code(error) == GPG_ERR_EOF;
	gpgme_op_keylist_end(ctx);
	return ended ? 0 : error;
}

static void add_identity(struct key_info *info, const char *uid)
{
	if (info->n_identities < TRUST_IDENTITIES_MAX)
		trust_copy_identity(info->identities[info->n_identities++], uid);
	else
		info->n_more++;
}

static int gpg_describe(gpgme_key_t key, struct key_info *info)
{
	if (!key->fpr || trust_copy_fingerprint(info->fingerprint, key->fpr) < 0)
		return -EINVAL;
	for (gpgme_user_id_t uid = key->uids; uid; uid = uid->next)
		if (!uid->revoked && !uid->invalid && uid->uid)
			add_identity(info, uid->uid);
	return 0;
}

/* Checks that the key can be trusted at all. */
static int check_usable(gpgme_key_t key, struct err *e)
{
	if (key->revoked)
		return err_set(e, -EINVAL,
			       "the key is revoked (ask the publisher for the new one)");
	if (key->expired)
		return err_set(e, -EINVAL,
			       "the key is expired (get it again from the publisher, who may have "
			       "extended it)");
	if (key->invalid || key->disabled)
		return err_set(e, -EINVAL, "gpg finds the key invalid (get it again)");
	if (!key->can_sign)
		return err_set(e, -EINVAL,
			       "the key cannot make signatures (give the one that images are "
			       "signed with)");
	return 0;
}

int gpg_inspect(const struct gpg_home *home, const char *text, size_t len, struct key_info *ret,
		struct err *e)
{
	CLEANUP(cleanup_ctx) gpgme_ctx_t ctx = NULL;
	CLEANUP(cleanup_data) gpgme_data_t data = NULL;
	CLEANUP(cleanup_keys) struct keys keys = { .n = 0 };
	struct key_info info = { .n_identities = 0 };
	int secret = 0;
	gpgme_error_t error = open_ctx(home, &ctx);
	if (!error)
		error = gpgme_data_new_from_mem(&data, text, len, 0);
	if (!error)
		error = import(ctx, data, &secret);
	if (!error)
		error = list_keys(ctx, &keys);
	if (error)
		return gpg_fail(error, "read the key", e);
	if (secret > 0)
		return err_set(
			e, -EINVAL,
			"it holds a private key (export the public one: gpg --armor --export)");
	if (keys.n == 0)
		return err_set(e, -EINVAL, "gpg finds no valid public key in it (get it again)");
	if (keys.n > 1)
		return err_set(e, -EINVAL, "it holds more than one key (give one key per file)");
	int r = check_usable(keys.v[0], e);
	if (r == 0 && gpg_describe(keys.v[0], &info) < 0)
		r = err_set(e, -EINVAL, "it has a fingerprint of an unknown kind");
	if (r == 0)
		*ret = info;
	return r;
}

static gpgme_error_t import_ring(gpgme_ctx_t ctx, const struct keyring *ring)
{
	CLEANUP(cleanup_data) gpgme_data_t data = NULL;
	int secret;
	gpgme_error_t error = gpgme_data_new(&data);
	for (size_t i = 0; !error && i < ring->n; i++) {
		const struct keyring_key *key = &ring->v[i];
		if (gpgme_data_write(data, key->text + key->start, key->len) < 0 ||
		    gpgme_data_write(data, "\n", 1) < 0)
			error = gpgme_error_from_errno(errno);
	}
	if (!error && gpgme_data_seek(data, 0, SEEK_SET) < 0)
		error = gpgme_error_from_errno(errno);
	return error ? error : import(ctx, data, &secret);
}

/* Checks that the home has exactly the keys that the files are named after. */
static int check_keys(const struct keys *keys, const struct keyring *ring, struct err *e)
{
	bool there[KEYRING_KEYS_MAX] = { false };
	for (size_t i = 0; i < keys->n; i++) {
		char fingerprint[TRUST_FINGERPRINT_MAX + 1] = "";
		if (keys->v[i]->fpr)
			trust_copy_fingerprint(fingerprint, keys->v[i]->fpr);
		const struct keyring_key *key = keyring_find(ring, fingerprint);
		if (!key)
			return err_set(e, -EINVAL,
				       "a trusted key has the fingerprint %s, but no file is named "
				       "so (each key belongs into a file that is named after it)",
				       fingerprint);
		there[key - ring->v] = true;
	}
	for (size_t i = 0; i < ring->n; i++)
		if (!there[i])
			return err_set(e, -EINVAL,
				       "trusted key \"%s\": gpg finds no valid key of that "
				       "fingerprint in it (replace or remove it)",
				       ring->v[i].path);
	return 0;
}

static gpgme_error_t take_status(void *ctx, const char *keyword, const char *args)
{
	struct kinds *kinds = ctx;
	if (strcmp(keyword, "VALIDSIG") != 0)
		return 0;
	if (kinds->n < ARRAY_SIZE(kinds->v) && status_valid_parse(args, &kinds->v[kinds->n]) == 0)
		kinds->n++;
	else
		kinds->odd = true;
	return 0;
}

/* True if all valid signatures of @signer are over bytes. */
static bool is_binary(const struct kinds *kinds, const char *signer)
{
	size_t seen = 0;
	for (size_t i = 0; i < kinds->n; i++) {
		if (strcmp(kinds->v[i].signer, signer) != 0)
			continue;
		if (kinds->v[i].kind != STATUS_BINARY)
			return false;
		seen++;
	}
	return seen > 0 && !kinds->odd;
}

static ssize_t read_source(void *handle, void *mem, size_t len)
{
	struct source *s = handle;
	size_t got = 0;
	s->error = fd_read_at(s->fd, mem, len, s->at, &got);
	s->at += got;
	return s->error < 0 ? -1 : (ssize_t)got;
}

/*
 * The key and subkey that @id names: a fingerprint, or the end of one as gpg has it of bad
 * signatures.
 */
static gpgme_subkey_t find_signer(const struct keys *keys, const char *id, gpgme_key_t *ret_key)
{
	size_t len = id ? strlen(id) : 0;
	for (size_t i = 0; len > 0 && i < keys->n; i++) {
		for (gpgme_subkey_t sub = keys->v[i]->subkeys; sub; sub = sub->next) {
			if (!sub->fpr || !str_ends(sub->fpr, id))
				continue;
			*ret_key = keys->v[i];
			return sub;
		}
	}
	return NULL;
}

static bool is_strong(gpgme_hash_algo_t algorithm)
{
	return algorithm == GPGME_MD_SHA256 || algorithm == GPGME_MD_SHA384 ||
	       algorithm == GPGME_MD_SHA512 || algorithm == GPGME_MD_SHA224;
}

/*
 * What is against a signature that gpg finds good, by the key that its full fingerprint names; or
 * 0.
 */
static int judge_good(gpgme_signature_t s, gpgme_key_t key, gpgme_subkey_t sub,
		      const struct kinds *kinds)
{
	char signer[TRUST_FINGERPRINT_MAX + 1];
	if (strcmp(sub->fpr, s->fpr) != 0 || trust_copy_fingerprint(signer, s->fpr) < 0)
		return TRUST_E_MALFORMED;
	if (key->revoked || sub->revoked)
		return TRUST_E_REVOKED;
	if (key->expired || sub->expired)
		return TRUST_E_EXPIRED;
	if (!is_strong(s->hash_algo))
		return TRUST_E_WEAK;
	if (!is_binary(kinds, signer))
		return TRUST_E_TYPE;
	const unsigned against = GPGME_SIGSUM_RED | GPGME_SIGSUM_KEY_REVOKED |
				 GPGME_SIGSUM_KEY_EXPIRED | GPGME_SIGSUM_SIG_EXPIRED |
				 GPGME_SIGSUM_KEY_MISSING | GPGME_SIGSUM_SYS_ERROR;
	if (key->disabled || key->invalid || sub->disabled || sub->invalid || s->wrong_key_usage ||
	    (s->summary & against))
		return TRUST_E_MALFORMED;
	return 0;
}

/* 0 if the signature counts, else why it does not, a TRUST_E_ code. */
static int gpg_judge(gpgme_signature_t s, const struct keys *keys, const struct kinds *kinds,
		     gpgme_key_t *ret_key)
{
	gpgme_key_t key = NULL;
	gpgme_subkey_t sub = find_signer(keys, s->fpr, &key);
	if (!sub)
		return TRUST_E_UNKNOWN;
	*ret_key = key;
	switch ((int)gpgme_err_code(s->status)) {
	case GPG_ERR_NO_ERROR:
		return judge_good(s, key, sub, kinds);
	case GPG_ERR_BAD_SIGNATURE:
		return TRUST_E_BAD;
	case GPG_ERR_SIG_EXPIRED:
	case GPG_ERR_KEY_EXPIRED:
		return TRUST_E_EXPIRED;
	case GPG_ERR_CERT_REVOKED:
		return TRUST_E_REVOKED;
	case GPG_ERR_DIGEST_ALGO:
		return TRUST_E_WEAK;
	case GPG_ERR_NO_PUBKEY:
		return TRUST_E_UNKNOWN;
	default:
		return TRUST_E_MALFORMED;
	}
}

/* Why a signature does not count, the most important reason last. */
static const struct reason {
	int code, error;
	const char *before, *behind; /* the key's fingerprint is between them */
} reasons[] = {
	{ TRUST_E_UNKNOWN, ENOKEY, "openpgp: signature made by unknown entity, key ",
	  " (if that is the publisher's, run husk trust --prefix=PREFIX with it)" },
	{ TRUST_E_MALFORMED, EBADMSG, NULL, NULL },
	{ TRUST_E_TYPE, EBADMSG, NULL,
	  "it is not a detached signature over binary content (make one with gpg --detach-sign, "
	  "without --textmode)" },
	{ TRUST_E_WEAK, EBADMSG, "the signature by key ",
	  " uses a digest that can be forged, like SHA-1 (have it signed with SHA-256 or "
	  "SHA-512)" },
	{ TRUST_E_EXPIRED, EKEYEXPIRED, "the signature by key ",
	  " or that key is expired (get the key again if it was extended, or a new signature)" },
	{ TRUST_E_REVOKED, EKEYREVOKED, "the signature is by key ",
	  ", which is revoked (get one by a current key)" },
	{ TRUST_E_BAD, EBADMSG, "bad signature by key ",
	  ": the content is not what was signed (get both again)" },
};

static const struct reason *find_reason(int code)
{
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].code == code)
			return &reasons[i];
	return NULL;
}

/* Says why no signature counted; @s is the one to tell of, NULL if there is none. */
static int gpg_refuse(int code, gpgme_signature_t s, struct err *e)
{
	const char *by = s && s->fpr ? s->fpr : "?";
	const struct reason *why = find_reason(code);
	if (why && why->behind)
		err_set(e, -why->error, "%s%s%s", why->before ? why->before : "",
			why->before ? by : "", why->behind);
	else if (s)
		err_set(e, -EBADMSG,
			"gpg does not accept the signature by key %s: %s (get it again)", by,
			gpgme_strerror(s->status));
	else
		err_set(e, -EBADMSG, "gpg finds no signature that it understands (get it again)");
	return why ? code : TRUST_E_MALFORMED;
}

/* One that counts makes the verdict, unless one by a trusted key is bad. */
static int decide(gpgme_signature_t first, const struct keys *keys, const struct kinds *kinds,
		  struct trust_verdict *ret, struct err *e)
{
	struct trust_verdict verdict = { .signer = "" };
	gpgme_signature_t worst = NULL;
	bool good = false;
	int code = 0;
	size_t n = 0;
	for (gpgme_signature_t s = first; s; s = s->next) {
		gpgme_key_t key = NULL;
		int why = gpg_judge(s, keys, kinds, &key);
		if (++n > TRUST_SIGNATURES_MAX) {
			err_set(e, -E2BIG, "more than %zu signatures in one file (give fewer)",
				TRUST_SIGNATURES_MAX);
			return TRUST_E_MALFORMED;
		}
		if (why == 0 && !good) {
			good = gpg_describe(key, &verdict.key) == 0 &&
			       trust_copy_fingerprint(verdict.signer, s->fpr) == 0;
		} else if (why != 0 && (code == 0 || find_reason(why) > find_reason(code))) {
			code = why;
			worst = s;
		}
	}
	if (good && code != TRUST_E_BAD) {
		*ret = verdict;
		return 0;
	}
	/* gpg read signatures or data, but none that is detached. */
	return gpg_refuse(n == 0 ? TRUST_E_TYPE : code, worst, e);
}

/* True if gpg failed because of what it was given, which it has no exact word for. */
static bool is_about_signature(gpgme_error_t error)
{
	int code = (int)gpgme_err_code(error);
	return code == GPG_ERR_NO_DATA || code == GPG_ERR_BAD_DATA || code == GPG_ERR_GENERAL;
}

/* Gives gpg the time that hashing the signed file takes. */
static gpgme_error_t limit_check(int signed_fd)
{
	struct stat st;
	int r = fstat(signed_fd, &st) < 0 ? -errno : 0;
	if (r == 0)
		r = worker_limit_time(SIGNATURE_SECONDS + (uint64_t)st.st_size / SLOWEST_HASH);
	return r < 0 ? gpgme_error_from_errno(-r) : 0;
}

static gpgme_error_t gpg_check(gpgme_ctx_t ctx, struct source *source, const void *signature,
			       size_t signature_len)
{
	static struct gpgme_data_cbs callbacks = { .read = read_source };
	CLEANUP(cleanup_data) gpgme_data_t content = NULL;
	CLEANUP(cleanup_data) gpgme_data_t data = NULL;
	gpgme_error_t error = limit_check(source->fd);
	if (!error)
		error = gpgme_data_new_from_cbs(&content, &callbacks, source);
	if (!error)
		error = gpgme_data_set_flag(content, "io-buffer-size", READ_SIZE);
	if (!error)
		error = gpgme_data_new_from_mem(&data, signature, signature_len, 0);
	return error ? error : gpgme_op_verify(ctx, data, content, NULL);
}

int gpg_verify(const struct gpg_home *home, const struct keyring *ring, int signed_fd,
	       const void *signature, size_t signature_len, struct trust_verdict *ret,
	       struct err *e)
{
	CLEANUP(cleanup_ctx) gpgme_ctx_t ctx = NULL;
	CLEANUP(cleanup_keys) struct keys keys = { .n = 0 };
	struct source source = { .fd = signed_fd };
	struct kinds kinds = { .n = 0 };
	gpgme_error_t error = open_ctx(home, &ctx);
	if (!error)
		error = import_ring(ctx, ring);
	if (!error)
		error = list_keys(ctx, &keys);
	if (error)
		return gpg_fail(error, "read the trusted keys", e);
	int r = check_keys(&keys, ring, e);
	if (r < 0)
		return r;
	gpgme_set_status_cb(ctx, take_status, &kinds);
	error = gpg_check(ctx, &source, signature, signature_len);
	if (source.error)
		return err_sys(e, source.error, "cannot read the signed file");
	gpgme_verify_result_t result = gpgme_op_verify_result(ctx);
	if (is_about_signature(error))
		return gpg_refuse(TRUST_E_MALFORMED, NULL, e);
	if (error || !result)
		return gpg_fail(error, "check the signature", e);
	return decide(result->signatures, &keys, &kinds, ret, e);
}
