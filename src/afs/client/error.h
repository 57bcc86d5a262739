/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of the client side report failures by these structures. */
#ifndef AFS_CLIENT_ERROR_H
#define AFS_CLIENT_ERROR_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/call.h>

/* The remedy for an error: see afs_client_recover(). */
enum afs_remedy {
	AFS_REMEDY_NONE,
	AFS_REMEDY_WAIT,   /* to ask again after a pause, another server or the same */
	AFS_REMEDY_OTHER,  /* to ask another server */
	AFS_REMEDY_LOCATE  /* to ask where the volume is now */
};

/*
 * Why something failed: one line that names the thing, and the code of the call if there was one.
 * Functions here return 0 (or a count), or -1 with *error filled. All of them block, and each
 * client is for one thread at a time; several clients may share an engine.
 */
struct afs_error {
	int32_t code;           /* of the call; 0 if it never came to one */
	enum rxw_origin origin;
	int result;             /* negative result of the library that led to it; 0 = none */
	int number;             /* errno value that describes it; 0 = there is none */
	enum afs_remedy remedy;
	bool interrupted;       /* by afs_client_cancel() */
	bool resent;		/* packets of the request were sent twice: see change_decide() */
	bool explained;         /* a caller has added to the text */
	char text[480];
};

#endif
