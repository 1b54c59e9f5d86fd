/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libnl can look up by name, and nobody here asks it to. Those of the C library, in whose
 * place these are, would load shared libraries, which a static program cannot (the linker warns),
 * and add 160 KB to the agent.
 */
#include <netdb.h>
#include <stddef.h>

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): glibc names them __name */

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
		struct addrinfo **ret)
{
	(void)node;
	(void)service;
	(void)hints;
	(void)ret;
	return EAI_FAIL;
}

void freeaddrinfo(struct addrinfo *a)
{
	(void)a;
}

int getnameinfo(const struct sockaddr *address, socklen_t len, char *host, socklen_t host_len,
		char *service, socklen_t service_len, int flags)
{
	(void)address;
	(void)len;
	(void)host;
	(void)host_len;
	(void)service;
	(void)service_len;
	(void)flags;
	return EAI_FAIL;
}

struct protoent *getprotobyname(const char *name)
{
	(void)name;
	return NULL;
}

struct protoent *getprotobynumber(int protocol)
{
	(void)protocol;
	return NULL;
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
