/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench-usage COMMAND...: runs it without output, prints how many page faults it took and how many
 * KiB of memory it had at most. A small static program: what execve(2) finds in the process counts
 * as the command's, too.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	posix_spawn_file_actions_t files;
	struct rusage usage;
	pid_t child;
	int status;
	if (argc < 2 || posix_spawn_file_actions_init(&files) != 0)
		return 2;
	for (int fd = 0; fd <= 2; fd++)
		if (posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0) != 0)
			return 2;
	if (posix_spawn(&child, argv[1], &files, NULL, argv + 1, environ) != 0 ||
	    wait4(child, &status, 0, &usage) < 0)
		return 2;
	printf("%ld %ld\n", usage.ru_minflt, usage.ru_maxrss);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
