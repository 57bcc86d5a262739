/* SPDX-License-Identifier: BSD-2-Clause */
/* Failures of functions that store a line of text for the user in a buffer of the caller. */
#ifndef COMMON_FAILURE_H
#define COMMON_FAILURE_H

#include <stdio.h>

/* `result`, after a line of text was stored in message[size]. */
#define fail_with(result, message, size, ...) (snprintf(message, size, __VA_ARGS__), (result))

#endif
