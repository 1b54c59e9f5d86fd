/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/stage1-kvm/vsock/vmm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/os/fd.h"
#include "lib/os/spawn.h"
#include "lib/os/unix.h"
#include "stage1-kvm/vsock/vhost_user.h"
#include "tests/support/cmocka.h"

/* Numbers of the descriptors in the device. */
#define VHOST_FD  3
#define LISTEN_FD 4
#define READY_FD  5

/* The device's end: it is connected, or listens, and the VMM connects by path. */
static int make_ends(const char *dir, bool connects, int *ret_ours)
{
	char path[108];
	int ends[2];
	if (!connects) {
		assert_int_equal(unix_pair(ends), 0);
		*ret_ours = ends[0];
		return ends[1];
	}
	snprintf(path, sizeof(path), "%s/vhost", dir);
	ends[1] = unix_listen(path, 0600);
	assert_true(ends[1] >= 0);
	*ret_ours = unix_connect(path);
	assert_true(*ret_ours >= 0);
	assert_int_equal(unlink(path), 0);
	return ends[1];
}

void vmm_start(struct vmm *v, const char *program, const char *dir, bool connects)
{
	char name[] = "husk-vsock", vhost[] = "--vhost-fd=3", listen[] = "--listen-fd=4",
	     ready[] = "--ready-fd=5", cid[] = "--guest-cid=7";
	char *argv[] = { name, vhost, listen, ready, cid, NULL };
	struct spawn_plan plan = { .program = program, .argv = argv, .die_with_parent = true };
	int log[2], up[2];
	*v = (struct vmm){ 0 };
	snprintf(v->path, sizeof(v->path), "%s/vsock", dir);
	cleanup_fd int listener = unix_listen(v->path, 0600);
	assert_true(listener >= 0);
	cleanup_fd int device = make_ends(dir, connects, &v->sock);
	assert_int_equal(pipe2(log, O_CLOEXEC), 0);
	assert_int_equal(pipe2(up, O_CLOEXEC), 0);
	assert_int_equal(spawn_plan_fd(&plan, log[1], STDERR_FILENO), 0);
	assert_int_equal(spawn_plan_fd(&plan, device, VHOST_FD), 0);
	assert_int_equal(spawn_plan_fd(&plan, listener, LISTEN_FD), 0);
	assert_int_equal(spawn_plan_fd(&plan, up[1], READY_FD), 0);
	assert_int_equal(spawn(&plan, &v->pid, NULL), 0);
	v->log = log[0];
	close(log[1]);
	close(up[1]);
	char byte;
	assert_int_equal(read(up[0], &byte, 1), 1);
	assert_int_equal(read(up[0], &byte, 1), 0);
	close(up[0]);
}

void vmm_send_raw(struct vmm *v, const void *bytes, size_t len, const int *fds, size_t n_fds)
{
	size_t sent;
	assert_int_equal(unix_send_fds(v->sock, bytes, len, fds, n_fds, &sent), 0);
	assert_int_equal(sent, len);
}

static void send_request(struct vmm *v, uint32_t request, uint32_t flags, const void *payload,
			 size_t len, const int *fds, size_t n_fds)
{
	unsigned char m[VHOST_USER_MESSAGE_MAX];
	uint32_t head[3] = { request, flags, (uint32_t)len };
	assert_true(len <= VHOST_USER_PAYLOAD_MAX);
	memcpy(m, head, sizeof(head));
	if (len > 0)
		memcpy(m + sizeof(head), payload, len);
	vmm_send_raw(v, m, sizeof(head) + len, fds, n_fds);
}

static void read_reply(struct vmm *v, uint32_t request, void *reply, size_t len)
{
	uint32_t head[3];
	size_t got;
	assert_int_equal(fd_read_full(v->sock, head, sizeof(head), &got), 0);
	assert_int_equal(got, sizeof(head));
	assert_int_equal(head[0], request);
	assert_int_equal(head[1], 5);
	assert_int_equal(head[2], len);
	assert_int_equal(fd_read_full(v->sock, reply, len, &got), 0);
	assert_int_equal(got, len);
}

void vmm_set(struct vmm *v, uint32_t request, const void *payload, size_t len, const int *fds,
	     size_t n_fds)
{
	uint64_t status = 99;
	send_request(v, request, 9, payload, len, fds, n_fds);
	read_reply(v, request, &status, sizeof(status));
	assert_int_equal(status, 0);
}

void vmm_get(struct vmm *v, uint32_t request, const void *payload, size_t len, void *reply,
	     size_t reply_len)
{
	send_request(v, request, 1, payload, len, NULL, 0);
	read_reply(v, request, reply, reply_len);
}

void vmm_run_queues(struct vmm *v, struct guest *g, const uint16_t base[DEVICE_QUEUES])
{
	for (uint32_t i = 0; i < DEVICE_QUEUES; i++) {
		struct device_queue_plan p = guest_plan(i, base[i]);
		uint32_t num[2] = { i, p.size }, from[2] = { i, base[i] }, on[2] = { i, 1 };
		uint64_t addr[5] = { i, p.desc, p.used, p.avail, 0 }, index = i;
		vmm_set(v, 8, num, sizeof(num), NULL, 0);
		vmm_set(v, 10, from, sizeof(from), NULL, 0);
		vmm_set(v, 9, addr, sizeof(addr), NULL, 0);
		vmm_set(v, 12, &index, sizeof(index), &g->q[i].kick, 1);
		vmm_set(v, 13, &index, sizeof(index), &g->q[i].call, 1);
		vmm_set(v, 18, on, sizeof(on), NULL, 0);
	}
}

void vmm_plug(struct vmm *v, struct guest *g)
{
	static const uint16_t zero[DEVICE_QUEUES];
	struct guest_region r = guest_region();
	uint64_t features, table[5] = { 1, r.guest_addr, r.size, r.user_addr, r.file_offset };
	unsigned char config[20] = { [4] = 8 };
	vmm_get(v, 1, NULL, 0, &features, sizeof(features));
	vmm_get(v, 15, NULL, 0, &features, sizeof(features));
	/* Until acknowledgements are negotiated there are none. */
	send_request(v, 16, 1, &features, sizeof(features), NULL, 0);
	vmm_set(v, 3, NULL, 0, NULL, 0);
	vmm_get(v, 24, config, sizeof(config), config, sizeof(config));
	assert_int_equal(config[12], GUEST_CID);
	features = GUEST_FEATURES | UINT64_C(1) << 30;
	vmm_set(v, 2, &features, sizeof(features), NULL, 0);
	vmm_set(v, 5, table, sizeof(table), &g->memfd, 1);
	vmm_run_queues(v, g, zero);
}

void vmm_stop_queues(struct vmm *v, uint16_t base[DEVICE_QUEUES])
{
	for (uint32_t i = 0; i < DEVICE_QUEUES; i++) {
		uint32_t state[2] = { i, 0 };
		vmm_get(v, 11, state, sizeof(state), state, sizeof(state));
		base[i] = (uint16_t)state[1];
	}
}

int vmm_dial(struct vmm *v, const char *line)
{
	int fd = unix_connect(v->path);
	assert_true(fd >= 0);
	ssize_t n = send(fd, line, strlen(line), MSG_NOSIGNAL);
	assert_true(n == (ssize_t)strlen(line) || errno == EPIPE); /* refused already */
	return fd;
}

void vmm_hang_up(struct vmm *v)
{
	v->sock = fd_close(v->sock);
}

int vmm_wait(struct vmm *v)
{
	int status;
	size_t got;
	assert_int_equal(fd_read_full(v->log, v->stderr_text, sizeof(v->stderr_text) - 1, &got), 0);
	v->stderr_text[got] = '\0';
	v->log = fd_close(v->log);
	assert_int_equal(spawn_wait(v->pid, &status), 0);
	vmm_hang_up(v);
	unlink(v->path);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
