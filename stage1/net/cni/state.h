/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has to be undone, whoever does it and whenever: the file "cni.json" of the pod directory. It
 * is there before the first plugin runs, has all that DEL needs without any other file, and goes
 * when all has been undone.
 *
 * It names programs that root executes: only a file is believed that belongs to us, that nobody
 * else can write, and that has no second name.
 */
#ifndef STAGE1_NET_CNI_STATE_H
#define STAGE1_NET_CNI_STATE_H

#include "lib/base/uuid.h"
#include "stage1/net/cni/attachment.h"
#include "stage1/net/cni/plugin.h"

#define CNI_STATE_FILE "cni.json" /* 0600 */
/*
 * Bytes: for each network a configuration, a result, and values for both of their size; the rest.
 */
#define CNI_STATE_MAX       ((size_t)2 * 1024 * 1024)
#define CNI_PLUGIN_DIRS_MAX 16                /* directories of plugins; usually one or two */
#define CNI_NETNS_MAX       NET_INFO_TEXT_MAX /* bytes of the path of the namespace */

struct cni_state {
	struct uuid container; /* the pod's UUID */
	char netns[CNI_NETNS_MAX + 1];
	struct strv dirs; /* of plugins */
	struct cni_attachments attachments;
};

/* CNI_STATE_NONE: there is no such file. */
enum {
	CNI_STATE_NONE = 1,
};

/* An empty state, and what frees one. Freeing accepts NULL. */
void cni_state_init(struct cni_state *s);
void cni_state_deinit(struct cni_state *s);

/* Appends the file's content to @out. 0; -EILSEQ (a path is not UTF-8); errors as buf_append(). */
int cni_state_format(const struct cni_state *s, struct buf *out);

/*
 * Fills the initialised @ret from the file's content; on failure it may have part of it. 0;
 * -EBADMSG, -ENOMEM, with @e.
 */
int cni_state_parse(const char *text, size_t len, struct cni_state *ret, struct err *e);

/* Writes the file, durably, old or new after a crash. 0, or -errno and @e. */
int cni_state_save(int pod_fd, const struct cni_state *s, struct err *e);

/*
 * Reads it into the initialised @ret, as above, and believes it only if it is safe to, and of the
 * pod @container. 0, CNI_STATE_NONE; -EPERM, -EBADMSG, -errno, with @e.
 */
int cni_state_load(int pod_fd, const char *container, struct cni_state *ret, struct err *e);

/* Removes it, durably; also if it is not there. 0, or -errno and @e. */
int cni_state_remove(int pod_fd, struct err *e);

#endif
