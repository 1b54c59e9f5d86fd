/*
 * Is KVM really usable? That /dev/kvm opens proves nothing: there are hosts whose KVM runs only
 * paravirtual guests and emulates every instruction of an ordinary one, 1,000 times too slow.
 *
 * So the probe runs a counted loop of 64-bit code in a machine of one page and looks at its speed.
 */
#ifndef STAGE1_KVM_RUN_PROBE_H
#define STAGE1_KVM_RUN_PROBE_H

#include <stdint.h>

/*
 * Slower than this is no virtualization. Observed: instruction-by-instruction emulation 1 M/s;
 * hardware virtualization that is itself software-emulated 20 to 90 M/s; real hardware beyond
 * 1,000 M/s. 5 M/s is 5 times the first and a quarter of the slowest second.
 */
#define PROBE_MIN_PER_SEC INT64_C(5000000)

/* No run inside the guest lasts longer; a KVM that hangs is interrupted by a signal. */
#define PROBE_TIMEOUT_MS 250

#define PROBE_REASON_MAX 255

enum probe_verdict {
	PROBE_USABLE,
	PROBE_ABSENT,        /* no /dev/kvm */
	PROBE_NO_PERMISSION, /* it may not be opened */
	PROBE_TOO_SLOW,      /* emulated instruction by instruction, or timed out */
	PROBE_BROKEN,        /* a step failed */
};

struct probe_result {
	enum probe_verdict verdict;
	int64_t per_sec; /* instructions per second; 0 if not measured */
	int64_t cost_ns; /* how long the probe took */
	/* One line for people: what was seen and, unless usable, what to do. */
	char reason[PROBE_REASON_MAX + 1];
};

/*
 * Examines @device ("/dev/kvm"). Never fails: what goes wrong is the verdict. Opens no descriptor
 * that survives the call. Uses a thread-directed timer signal (SIGALRM) while it runs and restores
 * its disposition; the calling program must have no other use of SIGALRM.
 */
void probe_kvm(const char *device, struct probe_result *ret);

/* "usable", "absent", "no permission", "too slow", "broken". */
const char *probe_verdict_name(enum probe_verdict verdict);

#endif
