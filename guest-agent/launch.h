/* The child that becomes an app. */
#ifndef GUEST_AGENT_LAUNCH_H
#define GUEST_AGENT_LAUNCH_H

#include "guest-agent/rootfs.h"
#include "lib/wire/agent.h"

#define LAUNCH_EXIT_CODE 203 /* the program could not be executed (systemd's EXIT_EXEC) */

struct launch {
	const struct rootfs_config *rootfs;
	const char *hostname;
	const struct agent_app_add *spec;
	int stdio[3];
	int devpts_fd; /* detached devpts mount of the app's terminal, or -EBADF */
};

/*
 * Forks the process that becomes the app. It mounts the app's root directory, says on *ret_channel
 * how that went, and waits for launch_release(). It ends with LAUNCH_EXIT_CODE if anything fails
 * after that and before its program's first instruction; it says why, too. *ret_channel, which does
 * not block, is the caller's; when it is closed, a process that still waits ends. What it needs of
 * @l it has copied; the descriptors stay the caller's. 0 or FAULT_SET.
 */
int launch(const struct launch *l, pid_t *ret_pid, int *ret_channel, struct fault *f);

/*
 * The next thing that the process has said: that it has mounted (code 0) or what failed. 0, -EAGAIN
 * if there is nothing yet, -EPIPE if it will say no more (the program runs, or the process is gone).
 */
int launch_hear(int channel, struct fault *ret);

/* Lets the process go on as soon as it has mounted. 0 or -errno. */
int launch_release(int channel);

/*
 * Why execve(2) of @path, which is @err otherwise, found nothing: names the interpreter that @path
 * asks for if that is what is missing. Writes to @f a message like
 *   Unable to open "/foo-not-there": No such file or directory
 */
void launch_explain(const char *path, int err, struct fault *f);

#endif
