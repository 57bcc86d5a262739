/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager. */
#ifndef TOOLS_MANAGER_H
#define TOOLS_MANAGER_H

/*
 * Send a state to $NOTIFY_SOCKET: "READY=1", "STOPPING=1\nSTATUS=...". Returns 1 if it was sent, 0
 * if the variable is not set, -1 with errno. Any thread.
 */
int tools_tell_manager(const char *state);

#endif
