/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw yardstick: what its two files share. */
#ifndef RXW_BENCH_RAW_H
#define RXW_BENCH_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define RAW_BATCH      64u    /* messages of one system call */
#define RAW_SEGMENTS   64u    /* datagrams of one train */
#define RAW_MAX_TRAIN  65507u
#define RAW_MAX_WINDOW 4096u

/* How datagrams are sent, and how they are received. */
enum raw_mode { RAW_MSG, RAW_MMSG, RAW_GSO_MMSG, RAW_GSO_GRO, RAW_MODES };

struct raw_options {
	enum raw_mode mode;
	bool ipv6, connect, poll, merge;
	unsigned size;       /* bytes of a datagram */
	unsigned window;     /* datagrams */
	unsigned send_room;  /* send when the window has this much room */
	unsigned ack_every;  /* acknowledge when so many are owed; 0: once for each receive batch */
	int sender_cpu, receiver_cpu; /* -1: not pinned */
	uint64_t bytes;
};

/* What one end used, from its first datagram to its last. */
struct raw_usage {
	double user_s, sys_s;
	uint64_t syscalls, switches;
	uint64_t messages; /* datagrams and trains of data */
	uint64_t acks;
};

/* A socket on loopback, with large buffers. Ends the program with a message on failure. */
int raw_socket(const struct raw_options *o, struct sockaddr_storage *bound, bool receiver);

/* Send all, and wait until all is acknowledged. 0, or -1: something was lost. */
int raw_send_all(const struct raw_options *o, int fd, const struct sockaddr_storage *to,
		 struct raw_usage *u);
/* Receive all and acknowledge. The same. */
int raw_receive_all(const struct raw_options *o, int fd, struct raw_usage *u);

/* One line on stderr, exit status 1. */
void raw_fail(const char *what, const char *why) __attribute__((noreturn));

#endif
