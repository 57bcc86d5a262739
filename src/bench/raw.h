/* SPDX-License-Identifier: BSD-2-Clause */
/* The raw yardstick: what its files and the one of small calls share. */
#ifndef RXW_BENCH_RAW_H
#define RXW_BENCH_RAW_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define RAW_BATCH       64u    /* messages of one system call */
#define RAW_BURSTS	16u    /* bursts received by one */
#define RAW_SEGMENTS	64u    /* datagrams of one burst */
#define RAW_MAX_BURST	65507u
#define RAW_MAX_WINDOW  4096u
#define RAW_MAX_STREAMS 4096u

/* How datagrams are sent, and how they are received. */
enum raw_mode { RAW_MSG, RAW_MMSG, RAW_GSO_MMSG, RAW_GSO_GRO, RAW_MODES };

struct raw_options {
	enum raw_mode mode;
	bool ipv6, connect, poll, merge;
	unsigned streams;    /* of one socket and thread at either end */
	unsigned size;       /* bytes of a datagram */
	unsigned window;     /* datagrams */
	unsigned send_room;  /* send when the window has this much room */
	unsigned ack_every;  /* acknowledge when so many are owed; 0: once for each receive batch */
	int sender_cpu, receiver_cpu; /* -1: not pinned */
	uint64_t bytes;      /* of all streams; each moves the same */
};

/* Datagrams of one stream. */
uint64_t raw_datagrams(const struct raw_options *o);

/* What one end used, from its first datagram to its last. */
struct raw_usage {
	double user_s, sys_s;
	uint64_t syscalls, switches;
	uint64_t messages; /* datagrams and bursts of data */
	uint64_t acks;
};

/*
 * A socket on loopback, with buffers for all windows of its streams. Ends the program with a
 * message on failure.
 */
int raw_socket(const struct raw_options *o, struct sockaddr_storage *bound, bool receiver);

/* Buffers of a socket in either direction: so many bytes, or what the system permits. */
void raw_set_buffers(int fd, int size);
/* Have the kernel deliver several datagrams in one message. Ends the program if it cannot. */
void raw_receive_bursts(int fd);

/* Room for the control message of one send or receive. */
union raw_control {
	struct cmsghdr align;
	uint8_t bytes[CMSG_SPACE(sizeof(int))];
};
/* Have the kernel cut what `m` sends into datagrams of `size` bytes. */
void raw_put_segment(struct msghdr *m, union raw_control *c, uint16_t size);

/* Send all streams, and wait until all is acknowledged. 0, or -1: something was lost. */
int raw_send_all(const struct raw_options *o, int fd, const struct sockaddr_storage *to,
		 struct raw_usage *u);
/* Receive all and acknowledge. The same. */
int raw_receive_all(const struct raw_options *o, int fd, struct raw_usage *u);

/* One line on stderr, exit status 1. */
void raw_fail(const char *what, const char *why) __attribute__((noreturn));
/* One line on stderr, exit status 2: an option that cannot be. */
void raw_usage_error(const char *what, const char *value) __attribute__((noreturn));

/* A number of least to most, K, M and G multiply; or a usage error. */
uint64_t raw_number(const char *option, const char *text, uint64_t least, uint64_t most);
/* The value of --pin, CPU,CPU, into sender_cpu and receiver_cpu. */
void raw_parse_pin(struct raw_options *o, const char *text);
/* Keep this process on a CPU; -1: wherever it likes. */
void raw_pin(int cpu);
/* Seconds of the monotonic clock. */
double raw_now(void);
/* Add (sign 1) or take away (sign -1) what this process used so far. */
void raw_measure(struct raw_usage *u, int sign);

#endif
