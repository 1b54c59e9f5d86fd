/* SPDX-License-Identifier: Apache-2.0 */
#include "images/appc/trust/keystore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "images/appc/trust/gpg.h"
#include "images/appc/trust/home.h"
#include "images/appc/trust/keyring.h"
#include "images/appc/trust/worker.h"
#include "lib/os/fd.h"
#include "lib/os/file.h"
#include "lib/os/path.h"

#define KEY_MODE  0644
#define BASE_MODE 0755

/* Writes the key into the directory @subdir of the local directory. */
static int write_key(const char *local_dir, const char *subdir, const struct trust_key *key)
{
	const char *name = key->info.fingerprint;
	cleanup_fd int base = path_make_dirs(local_dir, BASE_MODE);
	cleanup_fd int dir = base < 0 ? base : keyring_open_dir(base, subdir, true);
	if (dir < 0)
		return dir;
	int r = file_write_at(dir, name, key->text, key->len, KEY_MODE);
	if (r < 0)
		return r;
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* Whatever the umask is: other users verify, too. */
	return fd < 0 || fchmod(fd, KEY_MODE) < 0 ? -errno : 0;
}

static int cannot_add(int r, const char *path, struct err *e)
{
	if (r == -EACCES || r == -EPERM || r == -EROFS)
		return err_set(e, r,
			       "cannot add the key at \"%s\": %s (do it as root, or choose another "
			       "directory with --local-config)",
			       path, strerror(-r));
	if (r == -ENOTDIR)
		return err_set(
			e, r,
			"cannot add the key at \"%s\": something on the way is not a directory "
			"(make it one; symbolic links are not followed)",
			path);
	return err_sys(e, r, "cannot add the key at \"%s\"", path);
}

int keystore_add(const char *local_dir, const char *prefix, const struct trust_key *key,
		 char ret_path[PATH_MAX], struct err *e)
{
	char subdir[sizeof(KEYRING_PREFIX_DIR) + 1 + TRUST_NAME_MAX] = KEYRING_ROOT_DIR;
	char path[PATH_MAX];
	int r = prefix ? trust_check_name("the prefix", prefix, e) : 0;
	if (r < 0)
		return r;
	if (!local_dir || !*local_dir)
		return err_set(e, -EINVAL,
			       "no local configuration directory, which keys are added to (choose "
			       "one with --local-config)");
	if (prefix)
		snprintf(subdir, sizeof(subdir), KEYRING_PREFIX_DIR "/%s", prefix);
	int n = snprintf(path, sizeof(path), "%s/%s/%s", local_dir, subdir, key->info.fingerprint);
	if (n < 0 || (size_t)n >= sizeof(path))
		return err_sys(e, -ENAMETOOLONG, "cannot add a key below \"%s\"", local_dir);
	r = write_key(local_dir, subdir, key);
	if (r < 0)
		return cannot_add(r, path, e);
	memcpy(ret_path, path, sizeof(path));
	return 0;
}

/* What a worker does in a home of its own: it tells about a key, or checks a signature. */
struct work {
	const struct gpg_home *home;
	const struct keyring *ring;
	int signed_fd;
	const char *text; /* the key, or the signature */
	size_t len;
};

static int run_inspection(void *ctx, void *result, struct err *e)
{
	const struct work *w = ctx;
	return gpg_inspect(w->home, w->text, w->len, result, e);
}

static int run_verification(void *ctx, void *result, struct err *e)
{
	const struct work *w = ctx;
	return gpg_verify(w->home, w->ring, w->signed_fd, w->text, w->len, result, e);
}

static void clear_home(void *ctx)
{
	const struct work *w = ctx;
	gpg_home_clear(w->home);
}

/* Runs @fn in a home below @tmp_dir. Results as @fn. */
static int keystore_run(worker_fn fn, struct work w, const char *tmp_dir, void *result, size_t size,
			struct err *e)
{
	cleanup_gpg_home struct gpg_home home = GPG_HOME_INIT;
	int r = gpg_home_make(tmp_dir, &home, e);
	if (r != 0)
		return r;
	w.home = &home;
	const struct worker_plan plan = {
		.fn = fn,
		.ctx = &w,
		.home = home.path,
		.fds = &w.signed_fd,
		.n_fds = w.ring ? 1 : 0,
		.last = clear_home,
	};
	return worker_run(&plan, result, size, e);
}

int trust_key_inspect(const char *text, size_t len, const char *tmp_dir, struct trust_key *ret,
		      struct err *e)
{
	cleanup_trust_key struct trust_key key = TRUST_KEY_INIT;
	size_t start;
	int r = armour_find_key(text, len, &start, &key.len, e);
	if (r < 0)
		return r;
	key.text = malloc(key.len);
	if (!key.text)
		return err_sys(e, -ENOMEM, "cannot read it");
	memcpy(key.text, text + start, key.len);
	struct work work = { .text = key.text, .len = key.len };
	r = keystore_run(run_inspection, work, tmp_dir, &key.info, sizeof(key.info), e);
	if (r != 0)
		return r;
	*ret = key;
	key = TRUST_KEY_INIT;
	return 0;
}

/* Reads the signature into @mem, TRUST_SIGNATURE_MAX + 1 bytes. */
static int read_signature(int fd, char *mem, size_t *ret_len, struct err *e)
{
	size_t len = 0;
	int r = fd_read_at(fd, mem, TRUST_SIGNATURE_MAX + 1, 0, &len);
	if (r < 0)
		return err_sys(e, r, "cannot read the signature");
	if (len > TRUST_SIGNATURE_MAX) {
		err_set(e, -EFBIG,
			"the signature has more than %zu bytes (give a detached one: gpg "
			"--detach-sign)",
			TRUST_SIGNATURE_MAX);
		return TRUST_E_MALFORMED;
	}
	*ret_len = len;
	return 0;
}

static int no_keys(const char *image_name, struct err *e)
{
	if (image_name)
		err_set(e, -ENOKEY,
			"no key is trusted for \"%s\": openpgp: signature made by unknown entity "
			"(run husk trust --prefix=\"%s\" with the publisher's key)",
			image_name, image_name);
	else
		err_set(e, -ENOKEY,
			"no key is trusted for all names: openpgp: signature made by unknown "
			"entity (run husk trust --root with the publisher's key)");
	return TRUST_E_NO_KEYS;
}

/* Checks the signature with the keys of @ring. */
static int verify(const struct keyring *ring, int signed_fd, int signature_fd, const char *tmp_dir,
		  struct trust_verdict *ret, struct err *e)
{
	cleanup_free char *signature = malloc(TRUST_SIGNATURE_MAX + 1);
	struct work work = { .ring = ring, .signed_fd = signed_fd, .text = signature };
	if (!signature)
		return err_sys(e, -ENOMEM, "cannot read the signature");
	int r = read_signature(signature_fd, signature, &work.len, e);
	return r != 0 ? r : keystore_run(run_verification, work, tmp_dir, ret, sizeof(*ret), e);
}

int keystore_verify(const struct trust_dirs *dirs, const char *image_name, int signed_fd,
		    int signature_fd, const char *tmp_dir, struct trust_verdict *ret, struct err *e)
{
	cleanup_keyring struct keyring ring = KEYRING_INIT;
	int r = image_name ? trust_check_name("the name of the image", image_name, e) : 0;
	if (r == 0)
		r = keyring_read(dirs->system, dirs->local, image_name, &ring, e);
	if (r < 0)
		return r;
	if (ring.n == 0)
		return no_keys(image_name, e);
	return verify(&ring, signed_fd, signature_fd, tmp_dir, ret, e);
}
