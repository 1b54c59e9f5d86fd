/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/os/random.h"

#include <errno.h>
#include <sys/random.h>

int random_bytes(void *mem, size_t len)
{
	ssize_t n;
	do
		n = getrandom(mem, len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}
