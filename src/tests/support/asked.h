/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the bytes that the objects of a program ask the allocator for, by the linker's --wrap (the flags
 * are $(support_asked_flags)). Shared libraries and what the allocator adds for itself do not count, so that the figure
 * is the same on every machine.
 */
#ifndef RXW_TESTS_SUPPORT_ASKED_H
#define RXW_TESTS_SUPPORT_ASKED_H

#include <stddef.h>

/* Bytes asked for and not freed. Any thread may ask for and free memory meanwhile. */
size_t asked_bytes(void);

#endif
