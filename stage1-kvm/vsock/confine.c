/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1-kvm/vsock/confine.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/macros.h"
#include "lib/os/sandbox.h"

static const int allowed_syscalls[] = {
	SYS_epoll_wait,  /* the loop waits for all descriptors */
	SYS_epoll_pwait, /* the same, on architectures without epoll_wait */
	SYS_epoll_ctl,   /* connections and kick descriptors come and go */
	SYS_accept4,     /* host programs connect */
	SYS_recvfrom,    /* their CONNECT line; what is left when a connection ends */
	SYS_readv,       /* from a host program straight into the guest's buffers */
	SYS_sendmsg,  /* from the guest's buffers straight to a host program; replies to the VMM */
	SYS_sendto,   /* the OK line and backlogs to host programs */
	SYS_recvmsg,  /* requests of the VMM, with descriptors */
	SYS_write,    /* notifications of the guest; lines on stderr */
	SYS_shutdown, /* half-close */
	SYS_close,    /* connections, descriptors of queues and memory */
	SYS_fcntl,    /* O_NONBLOCK on descriptors that the VMM sends */
	SYS_fstat,    /* size of memory files */
	SYS_newfstatat,      /* what fstat(3) of newer C libraries calls */
	SYS_mmap,            /* guest memory; malloc(3). Never executable: see sandbox.h */
	SYS_munmap,          /* guest memory of earlier tables; free(3) */
	SYS_mremap,          /* realloc(3) of large backlogs */
	SYS_brk,             /* malloc(3) */
	SYS_clock_gettime,   /* where the vDSO cannot answer */
	SYS_restart_syscall, /* epoll_wait(2) continued after a stop signal */
	SYS_exit_group,      /* the end */
};

int confine_process(struct err *e)
{
	if (!CONFINE_WORKS)
		return 0;
	int r = sandbox_drop_capabilities();
	if (r < 0)
		return err_sys(e, r, "cannot drop capabilities");
	r = sandbox_no_files();
	if (r < 0)
		return err_sys(e, r, "cannot give up files");
	r = sandbox_seccomp(allowed_syscalls, ARRAY_SIZE(allowed_syscalls));
	if (r < 0)
		return err_sys(e, r, "cannot install the system call filter");
	malloc_trim(0); /* building the filter took more memory than the device ever will */
	return 0;
}

static void on_bus_error(int signo)
{
	static const char line[] = "husk-vsock: guest memory was truncated by the VMM: giving up\n";
	(void)signo;
	if (write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		_exit(1);
	_exit(1);
}

int confine_catch_bus_error(void)
{
	struct sigaction action = { .sa_handler = on_bus_error };
	return sigaction(SIGBUS, &action, NULL) < 0 ? -errno : 0;
}
