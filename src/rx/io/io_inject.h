/* SPDX-License-Identifier: BSD-2-Clause */
/* Private to io/: faults that tests inject into the operations of a socket. */
#ifndef RXW_IO_IO_INJECT_H
#define RXW_IO_IO_INJECT_H

#include <stdbool.h>
#include <stdint.h>

struct rxw_io_sock;

/*
 * One rule of fault injection: the `at`-th operation of its kind fails, or that and all later ones.
 */
enum rxw_io_fault_kind { RXW_IO_FAULT_GSO, RXW_IO_FAULT_SEND, RXW_IO_FAULT_GRO,
			 RXW_IO_FAULT_STEER, RXW_IO_FAULT_REUSEPORT, RXW_IO_FAULT_KINDS };
#define RXW_IO_FAULTS 8u
struct rxw_io_fault {
	enum rxw_io_fault_kind kind;
	int error;
	bool onward;
	uint64_t at; /* 0: when the socket is set up */
};

/* Parse the rules. 0, or -EINVAL if one is invalid. */
int rxw_io_inject_parse(struct rxw_io_sock *s, const char *text);
/* The errno to inject into the operation of this kind that follows `ahead` others, or 0. */
int rxw_io_inject_peek(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind, uint64_t ahead);
/* The errno to inject into this step of the set-up, or 0. */
int rxw_io_inject_setup(const struct rxw_io_sock *s, enum rxw_io_fault_kind kind);

#endif
