/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vmm/qemu/qmp_disk.h"

#include <errno.h>
#include <stdio.h>

#include "lib/base/json.h"
#include "lib/wire/agent.h"
#include "stage1-kvm/vmm/qemu/argv.h"

/* "disk255" or "/dev/fdset/2147483647" */
#define NAME_SIZE 32

static int disk_name(int lun, char out[NAME_SIZE])
{
	if (lun < 0 || lun > AGENT_LUN_MAX)
		return -EINVAL;
	snprintf(out, NAME_SIZE, "disk%d", lun);
	return 0;
}

/* A command whose only argument names the disk. */
static int command_on_disk(struct qmp *q, struct buf *out, const char *command, const char *key,
			   int lun, int64_t *ret_id)
{
	cleanup_json struct json_object *args = json_object_new_object();
	char name[NAME_SIZE];
	int r;

	if ((r = disk_name(lun, name)) < 0 || (r = json_put_str(args, key, name)) < 0)
		return r;
	return qmp_command(q, out, command, TAKE_PTR(args), ret_id);
}

static int command_on_set(struct qmp *q, struct buf *out, const char *command, int64_t set,
			  int64_t *ret_id)
{
	cleanup_json struct json_object *args = json_object_new_object();
	int r;

	if (set < 0 || set > QMP_FDSET_MAX)
		return -EINVAL;
	if ((r = json_put_int(args, "fdset-id", set)) < 0)
		return r;
	return qmp_command(q, out, command, TAKE_PTR(args), ret_id);
}

int qmp_disk_fd_add(struct qmp *q, struct buf *out, int64_t set, int64_t *ret_id)
{
	return command_on_set(q, out, "add-fd", set, ret_id);
}

int qmp_disk_fd_remove(struct qmp *q, struct buf *out, int64_t set, int64_t *ret_id)
{
	return command_on_set(q, out, "remove-fd", set, ret_id);
}

int qmp_disk_node_add(struct qmp *q, struct buf *out, int64_t set, int lun, bool read_only,
		      int64_t *ret_id)
{
	cleanup_json struct json_object *args = json_object_new_object();
	char name[NAME_SIZE], file[NAME_SIZE];
	int r;

	if (set < 0 || set > QMP_FDSET_MAX)
		return -EINVAL;
	snprintf(file, sizeof(file), "/dev/fdset/%d", (int)set);
	if ((r = disk_name(lun, name)) < 0 || (r = json_put_str(args, "node-name", name)) < 0 ||
	    (r = json_put_str(args, "driver", "file")) < 0 ||
	    (r = json_put_str(args, "filename", file)) < 0 ||
	    (r = json_put_bool(args, "read-only", read_only)) < 0 ||
	    (r = json_put_str(args, "discard", read_only ? "ignore" : "unmap")) < 0)
		return r;
	return qmp_command(q, out, "blockdev-add", TAKE_PTR(args), ret_id);
}

int qmp_disk_node_del(struct qmp *q, struct buf *out, int lun, int64_t *ret_id)
{
	return command_on_disk(q, out, "blockdev-del", "node-name", lun, ret_id);
}

int qmp_disk_device_add(struct qmp *q, struct buf *out, int lun, int64_t *ret_id)
{
	cleanup_json struct json_object *args = json_object_new_object();
	char name[NAME_SIZE];
	int r;

	if ((r = disk_name(lun, name)) < 0 || (r = json_put_str(args, "driver", "scsi-hd")) < 0 ||
	    (r = json_put_str(args, "bus", ARGV_ID_SCSI ".0")) < 0 ||
	    (r = json_put_str(args, "id", name)) < 0 ||
	    (r = json_put_str(args, "drive", name)) < 0 ||
	    (r = json_put_int(args, "scsi-id", 0)) < 0 || (r = json_put_int(args, "lun", lun)) < 0)
		return r;
	return qmp_command(q, out, "device_add", TAKE_PTR(args), ret_id);
}

int qmp_disk_device_del(struct qmp *q, struct buf *out, int lun, int64_t *ret_id)
{
	return command_on_disk(q, out, "device_del", "id", lun, ret_id);
}
