/* SPDX-License-Identifier: BSD-2-Clause */
/* Checksum of cached bytes: finds torn and damaged ones, not forged ones. */
#ifndef CLIENT_DISK_SUM_H
#define CLIENT_DISK_SUM_H

#include <stddef.h>
#include <stdint.h>

/* Each word changes its lane by a bijection, so one changed word is found for certain, others but for one case in 2^64. */
uint64_t disk_sum(uint64_t seed, const void *bytes, size_t length);

#endif
