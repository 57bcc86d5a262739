/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel that lacks something: its system calls are refused to this process and what it starts. */
#ifndef TESTS_PORTS_REFUSE_H
#define TESTS_PORTS_REFUSE_H

/*
 * What may be refused, joined by ",": "gso" (UDP_SEGMENT), "gro" (UDP_GRO), "steer"
 * (SO_ATTACH_REUSEPORT_*), "reuseport" (SO_REUSEPORT), with ENOPROTOOPT; "mmsg" (sendmmsg, recvmmsg)
 * with ENOSYS, "mmsg-filtered" with EPERM; "all" but the last. Cannot be taken back. Returns 0;
 * -EINVAL: no such thing; -ENOTSUP: calls of this machine cannot be told apart (i386 and
 * emulators); another negative errno of the kernel.
 */
int refuse(const char *what);

#endif
