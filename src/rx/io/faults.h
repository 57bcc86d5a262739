/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults that tests inject into the operations of sockets. */
#ifndef RXW_IO_FAULTS_H
#define RXW_IO_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum rxw_io_fault_kind {
	RXW_IO_FAULT_GSO,  /* a segmented message is sent */
	RXW_IO_FAULT_SEND, /* another one is sent */
	RXW_IO_FAULT_GRO,
	RXW_IO_FAULT_STEER,
	RXW_IO_FAULT_REUSEPORT,
	RXW_IO_FAULT_KINDS
};
struct rxw_io_faults {
	unsigned count;
	struct rxw_io_fault {
		enum rxw_io_fault_kind kind;
		int error;
		bool onward; /* that operation and all later ones */
		uint64_t at; /* the number of the operation that fails, from 1; 0: the set-up */
	} fault[8];
};

#endif
