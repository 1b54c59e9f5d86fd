/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/memory.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/macros.h"

void guest_memory_deinit(struct guest_memory *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n; i++)
		munmap(m->host[i], (size_t)m->region[i].size);
	*m = GUEST_MEMORY_INIT;
}

static int check_region(const struct guest_region *r, struct err *e)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t end;
	if (r->size == 0 || r->size > SIZE_MAX)
		return err_set(e, -EINVAL, "memory region of %#llx bytes",
			       (unsigned long long)r->size);
	if (__builtin_add_overflow(r->guest_addr, r->size, &end) ||
	    __builtin_add_overflow(r->user_addr, r->size, &end) ||
	    __builtin_add_overflow(r->file_offset, r->size, &end) || end > INT64_MAX)
		return err_set(e, -EINVAL, "memory region at %#llx wraps around",
			       (unsigned long long)r->guest_addr);
	if (r->file_offset % page != 0)
		return err_set(e, -EINVAL, "memory region at %#llx: file offset %#llx not aligned",
			       (unsigned long long)r->guest_addr,
			       (unsigned long long)r->file_offset);
	return 0;
}

/* A mapping behind the end of its file would raise SIGBUS when touched. */
static int check_file(const struct guest_region *r, int fd, struct err *e)
{
	struct stat st;
	if (fstat(fd, &st) < 0)
		return err_sys(e, -errno, "memory region at %#llx: fstat",
			       (unsigned long long)r->guest_addr);
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "memory region at %#llx: not a file",
			       (unsigned long long)r->guest_addr);
	if (r->file_offset + r->size > (uint64_t)st.st_size)
		return err_set(e, -EINVAL, "memory region at %#llx: beyond the end of its file",
			       (unsigned long long)r->guest_addr);
	return 0;
}

int guest_memory_add(struct guest_memory *m, const struct guest_region *region, int fd,
		     struct err *e)
{
	if (m->n >= GUEST_MEMORY_REGIONS_MAX)
		return err_set(e, -E2BIG, "more than %d memory regions", GUEST_MEMORY_REGIONS_MAX);
	int r = check_region(region, e);
	if (r == 0)
		r = check_file(region, fd, e);
	if (r < 0)
		return r;
	void *host = mmap(NULL, (size_t)region->size, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_NORESERVE, fd, (off_t)region->file_offset);
	if (host == MAP_FAILED)
		return err_sys(e, -errno, "memory region at %#llx: mmap",
			       (unsigned long long)region->guest_addr);
	m->region[m->n] = *region;
	m->host[m->n] = host;
	m->n++;
	return 0;
}

/* The first region that holds @addr, or NULL. Sizes and ends were checked when it was added. */
static const struct guest_region *find_region(const struct guest_memory *m, uint64_t addr)
{
	for (size_t i = 0; i < m->n; i++)
		if (addr - m->region[i].guest_addr < m->region[i].size)
			return &m->region[i];
	return NULL;
}

int guest_memory_iov(const struct guest_memory *m, uint64_t addr, uint64_t len, struct iovec *iov,
		     size_t max, size_t *ret_n)
{
	size_t n = 0;
	while (len > 0) {
		const struct guest_region *r = find_region(m, addr);
		if (!r)
			return -EFAULT;
		if (n >= max)
			return -E2BIG;
		uint64_t inside = addr - r->guest_addr;
		uint64_t part = MIN(len, r->size - inside);
		iov[n].iov_base = m->host[r - m->region] + inside;
		iov[n].iov_len = (size_t)part;
		n++;
		addr += part; /* may wrap to 0, which is then simply the next address looked up */
		len -= part;
	}
	*ret_n = n;
	return 0;
}

void *guest_memory_at(const struct guest_memory *m, uint64_t addr, uint64_t len)
{
	const struct guest_region *r = find_region(m, addr);
	if (!r || len > r->size - (addr - r->guest_addr))
		return NULL;
	return m->host[r - m->region] + (addr - r->guest_addr);
}

void *guest_memory_at_user(const struct guest_memory *m, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < m->n; i++) {
		uint64_t inside = addr - m->region[i].user_addr;
		if (inside < m->region[i].size && len <= m->region[i].size - inside)
			return m->host[i] + inside;
	}
	return NULL;
}
