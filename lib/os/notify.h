/* SPDX-License-Identifier: Apache-2.0 */
/* Telling a service manager how far a service is, as sd_notify(3) does. */
#ifndef LIB_OS_NOTIFY_H
#define LIB_OS_NOTIFY_H

/* Environment variable that names the socket of the service manager. */
#define NOTIFY_ENV "NOTIFY_SOCKET"

/*
 * Sends @text ("READY=1") to the datagram socket @socket, an absolute path of at most 107 bytes, or
 * "@" and an abstract name. NULL: nobody wants to know. 0 or -errno; never blocks.
 */
int notify_send(const char *socket, const char *text);

#endif
