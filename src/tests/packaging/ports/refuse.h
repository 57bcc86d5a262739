/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel without certain features: refuses system calls to this process and its children. */
#ifndef TESTS_PORTS_REFUSE_H
#define TESTS_PORTS_REFUSE_H

/*
 * Features to refuse, joined by ",": "gso" (UDP_SEGMENT), "gro" (UDP_GRO), "steer"
 * (SO_ATTACH_REUSEPORT_*), "reuseport" (SO_REUSEPORT), with ENOPROTOOPT; "mmsg" (sendmmsg,
 * recvmmsg) with ENOSYS, "mmsg-filtered" with EPERM; "all" but the last. Cannot be undone. Returns
 * 0; -EINVAL: unknown word; -ENOTSUP: calls of this machine cannot be distinguished (i386 and
 * emulators); another negative errno of the kernel.
 */
int refuse(const char *what);

#endif
