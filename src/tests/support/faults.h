/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults in socket operations, as text. */
#ifndef TESTS_SUPPORT_FAULTS_H
#define TESTS_SUPPORT_FAULTS_H

#include <stdbool.h>

#include "io/faults.h"

/*
 * "gso:EIO@N" fails a socket's Nth attempt to send a segmented message, "gso:EIO@N+" that and all
 * later ones; "send:ENOBUFS@N", "send:EMSGSIZE@N" the same for single sends; rules are joined by
 * ",". N counts from 1; N = 0 fails the set-up: "gso:ENOPROTOOPT@0", "gro:...@0", "steer:...@0",
 * "reuseport:...@0". NULL or "": none. False: a rule is invalid.
 */
bool test_faults_parse(struct rxw_io_faults *faults, const char *text);

#endif
