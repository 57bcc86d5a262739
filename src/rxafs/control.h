/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What rxafsctl asks of the daemon: by ioctl(2) on an open file or directory of the mount. So the kernel says who asks, and about
 * which object; no socket is needed.
 */
#ifndef RXAFS_CONTROL_H
#define RXAFS_CONTROL_H

#include <stdint.h>
#include <sys/ioctl.h>

#define CONTROL_TEXT 8000
#define CONTROL_DATA 8192

struct control {
	/* A command and its arguments, each with a NUL, and an empty one at the end. Answer: JSON with a NUL. */
	char text[CONTROL_TEXT];
	uint32_t size; /* of `data` */
	uint8_t data[CONTROL_DATA];
};

#define CONTROL_IOCTL _IOWR('A', 0x46, struct control)

#endif
