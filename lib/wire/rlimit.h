/* Resource limits as text: "nofile=1024:4096". */
#ifndef LIB_WIRE_RLIMIT_H
#define LIB_WIRE_RLIMIT_H

#include <stdint.h>

struct rlimit_spec {
	int resource;        /* RLIMIT_ constant */
	uint64_t soft, hard; /* RLIM_INFINITY for "unlimited"; soft is at most hard */
};

/*
 * Parses NAME=SOFT[:HARD]. NAME is that of setrlimit(2) in lower case without RLIMIT_; the values are
 * decimal numbers or "unlimited"; one alone is both. 0 or -EINVAL.
 */
int rlimit_parse(const char *text, struct rlimit_spec *ret);

#endif
