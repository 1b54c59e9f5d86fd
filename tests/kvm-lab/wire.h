/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the lab's host program and its counterpart in the first-level machine say to each other over
 * one virtio-serial port. Both are built from the same tree, so there is no version.
 *
 * Host to machine, once: struct lab_spec, then as many bytes of NUL-terminated strings as it says:
 * the working directory, the command's words, the rest is its environment. Then a byte of no
 * meaning every LAB_BEAT_MS, for the sake of its interrupt (host.c). Machine to host: frames, a
 * struct lab_frame and as many bytes as it says. One ordered stream carries the command's output
 * and its end, so that nothing can get lost behind the end.
 */
#ifndef TESTS_KVM_LAB_WIRE_H
#define TESTS_KVM_LAB_WIRE_H

#include <stdint.h>

#define LAB_SPEC_MAX    (1u << 20) /* bytes of strings; more than ARG_MAX of one word allows */
#define LAB_STRINGS_MAX 4096       /* words and variables */
#define LAB_FRAME_MAX   32760      /* with its head one buffer of the guest's port driver */

struct lab_spec {
	uint32_t n_words; /* of the command */
	uint32_t n_bytes; /* of strings that follow */
};

#define LAB_BEAT_MS 250

enum lab_kind {
	LAB_STARTED = 1, /* empty: the command runs from now on */
	LAB_STDOUT = 2,
	LAB_STDERR = 3,
	LAB_EXIT = 4, /* int32_t: the command's exit code, 128 + n after signal n */
};

struct lab_frame {
	uint32_t kind; /* enum lab_kind */
	uint32_t len;  /* bytes that follow, at most LAB_FRAME_MAX */
};

#endif
