/* SPDX-License-Identifier: BSD-2-Clause */
/* A TUN device in a network namespace, with the packets that a network card would cut. */
#ifndef RXW_TESTS_LINK_DEVICE_H
#define RXW_TESTS_LINK_DEVICE_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct device {
	int fd;		/* not blocking; each packet has a struct virtio_net_hdr in front */
	int statistics; /* /proc/net/dev of the namespace */
	char name[16];
};

/*
 * Moves this thread to the namespace in the file `ns`, and makes the device there. False: `why` says
 * what failed.
 */
bool device_open(struct device *d, const char *ns, const char *name, unsigned mtu, bool offload,
		 char *why, size_t why_size);
void device_close(struct device *d);

/* Packets that the namespace could not hand over, because the emulator did not read fast enough. */
uint64_t device_dropped(const struct device *d);

#endif
