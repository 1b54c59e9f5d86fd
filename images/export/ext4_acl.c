/* SPDX-License-Identifier: Apache-2.0 */
#include "images/export/ext4_acl.h"

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <stdint.h>
#include <string.h>

#define DISK_VERSION 1

/* On the disk; those that are about one user or group have a number behind. */
struct disk_entry {
	uint16_t tag, perm;
};

bool ext4_acl_is(const char *name)
{
	return strcmp(name, "system.posix_acl_access") == 0 ||
	       strcmp(name, "system.posix_acl_default") == 0;
}

/* Takes one entry off @disk. The number of bytes that it has there, or -EBADMSG. */
static int take_entry(const unsigned char *disk, size_t size, struct posix_acl_xattr_entry *ret)
{
	struct disk_entry entry;
	uint32_t id = htole32((uint32_t)ACL_UNDEFINED_ID);
	size_t len = sizeof(entry);
	if (size < len)
		return -EBADMSG;
	memcpy(&entry, disk, len);
	switch (le16toh(entry.tag)) {
	case ACL_USER:
	case ACL_GROUP:
		if (size < len + sizeof(id))
			return -EBADMSG;
		memcpy(&id, disk + len, sizeof(id));
		len += sizeof(id);
		break;
	case ACL_USER_OBJ:
	case ACL_GROUP_OBJ:
	case ACL_MASK:
	case ACL_OTHER:
		break;
	default:
		return -EBADMSG;
	}
	*ret = (struct posix_acl_xattr_entry){ entry.tag, entry.perm, id };
	return (int)len;
}

int ext4_acl_convert(const void *disk, size_t size, void *ret, size_t max)
{
	const struct posix_acl_xattr_header head = { htole32(POSIX_ACL_XATTR_VERSION) };
	const unsigned char *from = disk;
	unsigned char *to = ret;
	uint32_t version;
	size_t at = sizeof(version), done = sizeof(head);
	if (size < sizeof(version))
		return -EBADMSG;
	memcpy(&version, from, sizeof(version));
	if (le32toh(version) != DISK_VERSION)
		return -EBADMSG;
	if (max < sizeof(head))
		return -E2BIG;
	memcpy(to, &head, sizeof(head));
	while (at < size) {
		struct posix_acl_xattr_entry entry;
		int len = take_entry(from + at, size - at, &entry);
		if (len < 0)
			return len;
		if (max - done < sizeof(entry))
			return -E2BIG;
		memcpy(to + done, &entry, sizeof(entry));
		at += (size_t)len;
		done += sizeof(entry);
	}
	return (int)done;
}
