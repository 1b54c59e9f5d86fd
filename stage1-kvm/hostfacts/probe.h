/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is KVM really usable? That /dev/kvm opens proves nothing: there are hosts whose KVM runs only
 * paravirtual guests and emulates every instruction of an ordinary one, 1,000 times too slow.
 *
 * So the probe asks the processor whether it virtualizes (CPUID), and runs a counted loop of 64-bit
 * code in a machine of one page to look at its speed.
 */
#ifndef STAGE1_KVM_HOSTFACTS_PROBE_H
#define STAGE1_KVM_HOSTFACTS_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"

/*
 * Slower than this is not a virtualization. Observed: instruction-by-instruction emulation 1 to 2
 * M/s; hardware virtualization that is itself software-emulated at least 20 M/s, mostly 400 M/s;
 * real hardware beyond 1,000 M/s. 5 M/s keeps its distance from both.
 */
#define PROBE_MIN_PER_SEC INT64_C(5000000)

/* No run inside the guest lasts longer; a KVM that hangs is interrupted by a signal. */
#define PROBE_TIMEOUT_MS 250

#define PROBE_REASON_MAX ERR_TEXT_MAX /* it may quote an error */

enum probe_verdict {
	PROBE_USABLE,
	PROBE_ABSENT,        /* no /dev/kvm */
	PROBE_NO_PERMISSION, /* it may not be opened */
	PROBE_NO_HARDWARE,   /* the processor has neither VMX nor SVM */
	PROBE_TOO_SLOW,      /* emulated instruction by instruction, or timed out */
	PROBE_BROKEN,        /* a step failed */
};

struct probe_result {
	enum probe_verdict verdict;
	int64_t per_sec;                   /* instructions per second; 0 if not measured */
	int64_t cost_ns;                   /* how long the probe took */
	char reason[PROBE_REASON_MAX + 1]; /* one line for people: what was seen */
};

/*
 * Examines @device ("/dev/kvm"). Never fails: what goes wrong is the verdict. With @thorough the
 * speed is measured even if the processor has already said no. Opens no descriptor that survives
 * the call. Uses a timer with SIGALRM and restores that signal's disposition and the signal mask;
 * the program must have no other use of SIGALRM. Costs some 20 us if the processor says no, else
 * 1 to 50 ms, most of it for the kernel to set up and tear down a machine.
 */
void probe_kvm(const char *device, bool thorough, struct probe_result *ret);

/* "usable", "absent", "no permission", "no hardware", "too slow", "broken". */
const char *probe_verdict_name(enum probe_verdict verdict);

/* What a person can do about it; "" if it is usable. */
const char *probe_verdict_remedy(enum probe_verdict verdict);

#endif
