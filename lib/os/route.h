/* SPDX-License-Identifier: Apache-2.0 */
/* Whether this host reaches others. */
#ifndef LIB_OS_ROUTE_H
#define LIB_OS_ROUTE_H

#include <stdbool.h>

/* Whether the caller's network namespace has a way to the world, for AF_INET or AF_INET6. */
bool route_to_world(int family);

#endif
