/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/images/export/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/macros.h"
#include "tests/support/cmocka.h"

#define TEXT_MAX ((size_t)1024 * 1024)

int disk_make(const char *path, const char *features, const char *commands)
{
	char command[4096], name[4096];
	snprintf(name, sizeof(name), "%s/commands", path);
	FILE *f = fopen(name, "we");
	assert_non_null(f);
	fputs(commands, f);
	fclose(f);
	snprintf(
		command, sizeof(command),
		"cd '%s' && PATH=$PATH:/usr/sbin:/sbin && command -v debugfs >/dev/null || exit 99; "
		"rm -f disk; truncate -s 4M disk && mkfs.ext4 -q -F -m 0 -O '%s' disk && "
		"debugfs -w -f commands disk >out 2>&1; ! grep -v '^debugfs' out | grep -v '^Allocated' >&2",
		path, features);
	int status = system(command);
	if (status == 99 << 8)
		fail_msg("no debugfs (install the package e2fsprogs)");
	assert_int_equal(status, 0);
	snprintf(name, sizeof(name), "%s/disk", path);
	int fd = open(name, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void put_inode(struct buf *out, const struct tree_inode *inode, const char *path)
{
	static const char letters[] = "?pc?d?b?f?l?s";
	buf_printf(out, "%c %04o %u:%u %u %s", letters[inode->mode >> 12], inode->mode & 07777,
		   tree_uid(inode), tree_gid(inode), inode->mtime, path);
	if (S_ISREG(inode->mode))
		buf_printf(out, " %llu", (unsigned long long)tree_size(inode));
	else if (S_ISLNK(inode->mode))
		buf_printf(out, " ->%s", tree_target(inode));
	else if (S_ISCHR(inode->mode) || S_ISBLK(inode->mode))
		buf_printf(out, " %u,%u", tree_major(inode), tree_minor(inode));
	for (const struct tree_xattr *x = tree_xattrs(inode); x; x = tree_next_xattr(x))
		buf_printf(out, " %s=%.*s", x->name, (int)x->size,
			   (const char *)tree_xattr_value(x));
	buf_puts(out, "\n");
}

static void put_node(struct buf *out, struct tree_node *n, const char *parent)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s%s%s", parent, *parent ? "/" : "", n->name);
	put_inode(out, tree_inode_of(n), *path ? path : ".");
	tree_sort(n);
	for (struct tree_node *c = tree_children(n); c; c = tree_next(c))
		put_node(out, c, path);
}

char *tree_text(const struct tree *t)
{
	struct buf out;
	buf_init(&out, TEXT_MAX);
	put_node(&out, tree_root(t), "");
	char *text = buf_take_string(&out);
	assert_non_null(text);
	return text;
}

struct tree_inode *tree_put(struct tree *t, const char *path, uint32_t mode)
{
	struct tree_node *dir = tree_root(t), *node;
	struct tree_inode *inode;
	const char *slash;
	for (; (slash = strchr(path, '/')); path = slash + 1) {
		dir = tree_find(t, dir, path, (size_t)(slash - path));
		assert_non_null(dir);
	}
	assert_int_equal(tree_inode_new(t, &inode), 0);
	inode->mode = (uint16_t)mode;
	assert_int_equal(tree_add(t, dir, path, strlen(path), inode, &node), 0);
	return inode;
}

void tree_put_xattr(struct tree *t, struct tree_inode *inode, const char *name, const char *value)
{
	assert_int_equal(tree_add_xattr(t, inode, name, value, strlen(value)), 0);
}
