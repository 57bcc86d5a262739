/* SPDX-License-Identifier: BSD-2-Clause */
/* Why something failed: a line for the user, and what the code and the number of it mean. */
#ifndef COPY_FAILURE_H
#define COPY_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/call.h>

/* `text` names the thing. */
struct afs_error {
	int32_t code; /* of the call; 0 if it never came to one */
	enum rxw_origin origin;
	int number;	  /* errno value that describes it; 0 = there is none */
	bool passing;	  /* it may succeed after a pause */
	bool interrupted; /* by a signal */
	bool explained;	  /* a caller has added to the text */
	char text[480];
};

/* Fill *error from the code of a call. */
void afs_error_code(struct afs_error *error, const char *what, int32_t code,
		    enum rxw_origin origin);
/* An error with this text. */
void afs_error_text(struct afs_error *error, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
