/* SPDX-License-Identifier: Apache-2.0 */
#include "stage1/apps/appfilter_sets.h"

#include <linux/capability.h>
#include <stddef.h>
#include <string.h>

#include "lib/base/macros.h"

/*
 * The system calls of containers' everyday programs: docker's default profile as of 2025, for
 * 64-bit architectures and kernels from 4.8 on, without io_uring, which opens sockets past any
 * filter.
 */
const char appfilter_default[] =
	"accept accept4 access adjtimex alarm arch_prctl bind brk cachestat capget capset "
	"chdir chmod chown clock_adjtime clock_getres clock_gettime clock_nanosleep close "
	"close_range connect copy_file_range creat dup dup2 dup3 epoll_create epoll_create1 "
	"epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd "
	"eventfd2 execve execveat exit exit_group faccessat faccessat2 fadvise64 fallocate "
	"fanotify_mark fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync "
	"fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstatfs fsync ftruncate "
	"futex futex_requeue futex_wait futex_waitv futex_wake futimesat get_robust_list "
	"get_thread_area getcpu getcwd getdents getdents64 getegid geteuid getgid getgroups "
	"getitimer getpeername getpgid getpgrp getpid getppid getpriority getrandom getresgid "
	"getresuid getrlimit getrusage getsid getsockname getsockopt gettid gettimeofday "
	"getuid getxattr getxattrat inotify_add_watch inotify_init inotify_init1 "
	"inotify_rm_watch io_cancel io_destroy io_getevents io_pgetevents io_setup io_submit "
	"ioctl ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset "
	"landlock_restrict_self lchown lgetxattr link linkat listen listxattr listxattrat "
	"llistxattr lremovexattr lseek lsetxattr lstat madvise map_shadow_stack membarrier "
	"memfd_create memfd_secret mincore mkdir mkdirat mknod mknodat mlock mlock2 mlockall "
	"mmap modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive "
	"mq_timedsend mq_unlink mremap mseal msgctl msgget msgrcv msgsnd msync munlock "
	"munlockall munmap name_to_handle_at nanosleep newfstatat open openat openat2 pause "
	"pidfd_open pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll "
	"ppoll prctl pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv "
	"process_vm_writev pselect6 ptrace pwrite64 pwritev pwritev2 read readahead readlink "
	"readlinkat readv recvfrom recvmmsg recvmsg remap_file_pages removexattr "
	"removexattrat rename renameat renameat2 restart_syscall rmdir rseq rt_sigaction "
	"rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend "
	"rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min "
	"sched_getaffinity sched_getattr sched_getparam sched_getscheduler "
	"sched_rr_get_interval sched_setaffinity sched_setattr sched_setparam "
	"sched_setscheduler sched_yield seccomp select semctl semget semop semtimedop "
	"sendfile sendmmsg sendmsg sendto set_robust_list set_thread_area set_tid_address "
	"setfsgid setfsuid setgid setgroups setitimer setpgid setpriority setregid setresgid "
	"setresuid setreuid setrlimit setsid setsockopt setuid setxattr setxattrat shmat "
	"shmctl shmdt shmget shutdown sigaltstack signalfd signalfd4 socket socketpair splice "
	"stat statfs statx symlink symlinkat sync sync_file_range syncfs sysinfo tee tgkill "
	"time timer_create timer_delete timer_getoverrun timer_gettime timer_settime "
	"timerfd_create timerfd_gettime timerfd_settime times tkill truncate umask uname "
	"unlink unlinkat utime utimensat utimes vfork vmsplice wait4 waitid write writev";

/* What docker once listed as refused, which rkt took over. */
static const char blacklist[] =
	"_sysctl acct add_key adjtimex bpf clock_adjtime clock_settime create_module "
	"delete_module finit_module get_kernel_syms get_mempolicy init_module ioperm iopl "
	"kcmp kexec_file_load kexec_load keyctl lookup_dcookie mbind mount move_pages "
	"name_to_handle_at nfsservctl open_by_handle_at perf_event_open pivot_root "
	"process_vm_readv process_vm_writev ptrace query_module quotactl reboot request_key "
	"set_mempolicy setns settimeofday swapoff swapon sysfs umount2 unshare uselib "
	"userfaultfd ustat";

/* Groups of systemd 252, see systemd-analyze(1), syscall-filter. */
static const char sd_clock[] = "adjtimex clock_adjtime clock_settime settimeofday";

static const char sd_default[] =
	"arch_prctl brk clock_getres clock_gettime clock_nanosleep execve exit exit_group "
	"futex futex_waitv get_robust_list get_thread_area getegid geteuid getgid getgroups "
	"getpgid getpgrp getpid getppid getrandom getresgid getresuid getrlimit getsid gettid "
	"gettimeofday getuid membarrier mmap mprotect munmap nanosleep pause prlimit64 "
	"restart_syscall rseq rt_sigreturn sched_getaffinity sched_yield set_robust_list "
	"set_thread_area set_tid_address time";

static const char sd_mount[] =
	"chroot fsconfig fsmount fsopen fspick mount mount_setattr move_mount open_tree "
	"pivot_root umount2";

static const char sd_network_io[] =
	"accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom "
	"recvmmsg recvmsg sendmmsg sendmsg sendto setsockopt shutdown socket socketpair";

static const char sd_obsolete[] =
	"_sysctl afs_syscall create_module get_kernel_syms getpmsg putpmsg query_module "
	"security sysfs tuxcall uselib ustat vserver";

static const char sd_privileged[] =
	"_sysctl acct adjtimex bpf capset chown chroot clock_adjtime clock_settime "
	"delete_module fanotify_init fanotify_mark fchown fchownat finit_module init_module "
	"ioperm iopl kexec_file_load kexec_load lchown nfsservctl open_by_handle_at "
	"pivot_root quotactl quotactl_fd reboot setdomainname setfsuid setgroups sethostname "
	"setresuid setreuid settimeofday setuid swapoff swapon vhangup";

static const char sd_process[] =
	"capget clone clone3 execveat fork getrusage kill pidfd_open pidfd_send_signal prctl "
	"rt_sigqueueinfo rt_tgsigqueueinfo setns tgkill times tkill unshare vfork wait4 "
	"waitid";

static const char sd_raw_io[] = "ioperm iopl";

const struct appfilter_grant appfilter_grants[] = {
	{ CAP_DAC_READ_SEARCH, "open_by_handle_at" },
	{ CAP_SYS_ADMIN,
	  "bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick listmount "
	  "lookup_dcookie mount mount_setattr move_mount open_tree perf_event_open quotactl "
	  "quotactl_fd setdomainname sethostname setns statmount syslog umount2 unshare" },
	{ CAP_SYS_BOOT, "reboot" },
	{ CAP_SYS_CHROOT, "chroot" },
	{ CAP_SYS_MODULE, "delete_module finit_module init_module" },
	{ CAP_SYS_PACCT, "acct" },
	{ CAP_SYS_PTRACE, "kcmp pidfd_getfd process_madvise" },
	{ CAP_SYS_RAWIO, "ioperm iopl" },
	{ CAP_SYS_TIME, "clock_settime settimeofday" },
	{ CAP_SYS_TTY_CONFIG, "vhangup" },
	{ CAP_SYS_NICE, "get_mempolicy mbind set_mempolicy set_mempolicy_home_node" },
	{ CAP_SYSLOG, "syslog" },
	{ CAP_BPF, "bpf" },
	{ CAP_PERFMON, "perf_event_open" },
};
const size_t appfilter_n_grants = ARRAY_SIZE(appfilter_grants);

const char *appfilter_set(const char *wildcard)
{
	static const struct {
		const char *name, *calls;
	} sets[] = {
		{ "@docker/default-blacklist", blacklist },
		{ "@rkt/default-blacklist", blacklist },
		{ "@systemd/clock", sd_clock },
		{ "@systemd/default-whitelist", sd_default },
		{ "@systemd/mount", sd_mount },
		{ "@systemd/network-io", sd_network_io },
		{ "@systemd/obsolete", sd_obsolete },
		{ "@systemd/privileged", sd_privileged },
		{ "@systemd/process", sd_process },
		{ "@systemd/raw-io", sd_raw_io },
	};
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		if (strcmp(sets[i].name, wildcard) == 0)
			return sets[i].calls;
	return NULL;
}
