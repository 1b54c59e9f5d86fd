/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/dirwatch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/os/fd.h"

#define PROC_LINK_SIZE 32 /* "/proc/self/fd/" and a number */

int dirwatch_init(struct dirwatch *w)
{
	*w = (struct dirwatch){ .fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK) };
	return w->fd < 0 ? -errno : 0;
}

void dirwatch_deinit(struct dirwatch *w)
{
	w->fd = fd_close(w->fd);
	free(w->entries);
	w->entries = NULL;
	w->n = 0;
}

/* Where the watch @wd is, or would be. */
static size_t place_of(const struct dirwatch *w, int wd)
{
	size_t low = 0, high = w->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (w->entries[mid].wd < wd)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static struct dirwatch_entry *dirwatch_find(const struct dirwatch *w, int wd)
{
	size_t at = place_of(w, wd);
	return at < w->n && w->entries[at].wd == wd ? &w->entries[at] : NULL;
}

static void dirwatch_forget(struct dirwatch *w, int wd)
{
	struct dirwatch_entry *entry = dirwatch_find(w, wd);
	if (!entry)
		return;
	w->n--;
	size_t behind = (size_t)(w->entries + w->n - entry);
	memmove(entry, entry + 1, behind * sizeof(*entry));
}

int dirwatch_add(struct dirwatch *w, int fd, uint32_t mask, void *owner, int kind)
{
	char link[PROC_LINK_SIZE];
	if (!GROW(w->entries, w->n))
		return -ENOMEM;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	int wd = inotify_add_watch(w->fd, link, mask | IN_ONLYDIR | IN_MASK_CREATE);
	if (wd < 0)
		return -errno;
	size_t at = place_of(w, wd);
	memmove(&w->entries[at + 1], &w->entries[at], (w->n - at) * sizeof(*w->entries));
	w->entries[at] = (struct dirwatch_entry){ .wd = wd, .kind = kind, .owner = owner };
	w->n++;
	return wd;
}

void dirwatch_drop(struct dirwatch *w, int *wd)
{
	if (*wd == DIRWATCH_NONE)
		return;
	dirwatch_forget(w, *wd);
	inotify_rm_watch(w->fd, *wd);
	*wd = DIRWATCH_NONE;
}

static void dirwatch_take(struct dirwatch *w, const struct inotify_event *ev, dirwatch_fn fn,
			  void *ctx)
{
	if (ev->mask & IN_Q_OVERFLOW) {
		fn(ctx, NULL, IN_Q_OVERFLOW, "");
		return;
	}
	const struct dirwatch_entry *found = dirwatch_find(w, ev->wd);
	if (!found)
		return; /* dropped meanwhile */
	struct dirwatch_entry entry = *found;
	if (ev->mask & IN_IGNORED)
		dirwatch_forget(w, ev->wd);
	fn(ctx, &entry, ev->mask, ev->len > 0 ? ev->name : "");
}

int dirwatch_read(struct dirwatch *w, dirwatch_fn fn, void *ctx)
{
	char mem[DIRWATCH_READ_SIZE] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(w->fd, mem, sizeof(mem));
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *ev = (const void *)(mem + at);
		at += (ssize_t)(sizeof(*ev) + ev->len);
		dirwatch_take(w, ev, fn, ctx);
	}
	return 0;
}
