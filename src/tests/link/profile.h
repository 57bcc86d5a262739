/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptions of emulated links: named profiles in a file, and settings by name. The file
 * `profiles` explains the settings.
 */
#ifndef RXW_TESTS_LINK_PROFILE_H
#define RXW_TESTS_LINK_PROFILE_H

#include <stddef.h>

#include "way.h"

#define LINK_UP	       0 /* from side a to side b */
#define LINK_DOWN      1
#define LINK_CHANGES   64
#define LINK_ADDRESSES 8

/* A setting that changes during a run. */
struct link_change {
	uint64_t at; /* ns since the start */
	char name[32], value[32];
};

/* The treatment of the ECN bits of a packet that enters. */
enum link_ecn {
	LINK_ECN_KEPT,
	LINK_ECN_CLEARED,
	LINK_ECN_CE,   /* ECN-capable packets are marked */
	LINK_ECN_ECT1, /* ECT(0) becomes ECT(1) */
	LINK_ECN_LOST  /* ECN-capable packets are lost */
};

struct link_direction {
	struct link_options way;
	double queue_bdp;    /* the queue as a multiple of rate and round trip; 0: as given */
	uint64_t queue_time; /* the queue as a time at the rate */
	/*
	 * Packets that are longer than `mtu` are dropped, or cut into fragments if they may be.
	 * 0: as long as the device permits.
	 */
	uint64_t mtu;
	uint64_t icmp; /* ... and reported to the sender */
	uint64_t mute; /* drops ICMP errors that pass */
	uint64_t ecn_bits; /* enum link_ecn */
};

struct link_profile {
	char name[64], about[160];
	struct link_direction way[2];
	uint64_t device_mtu;
	uint64_t offload; /* the kernel may hand over large packets to be cut */
	uint64_t seed;
	uint64_t behind, fix_checksum; /* of corruption */
	uint64_t grain;		       /* packets leave in batches of this time */
	uint64_t rebind; /* the NAT forgets its mappings that often; 0: on request only */
	char nat[LINK_ADDRESSES][48]; /* outside addresses of the NAT in front of side a */
	unsigned nat_count;
	struct link_change change[LINK_CHANGES];
	unsigned change_count;
};

void link_profile_init(struct link_profile *p);

/*
 * Sets what `name` says, in both directions, or in one by a name that begins with "up-" or "down-".
 * False: `why` says what is wrong.
 */
bool link_profile_set(struct link_profile *p, const char *name, const char *value, char *why,
		      size_t why_size);

/* Reads a profile of a file of profiles, in the syntax of INI files. */
bool link_profile_load(struct link_profile *p, const char *file, const char *name, char *why,
		       size_t why_size);

/* Calls `each` with the names in a file. */
bool link_profile_list(const char *file, void (*each)(void *arg, const char *name), void *arg,
		       char *why, size_t why_size);

/* To be called after the last setting: turns queue sizes into bytes. */
void link_profile_finish(struct link_profile *p);

/* Sum of the delays, ns. */
uint64_t link_profile_rtt(const struct link_profile *p);

#endif
