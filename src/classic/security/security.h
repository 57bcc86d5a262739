/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects: each wraps a class of the library. */
#ifndef RXWIRE_CLASSIC_SECURITY_H
#define RXWIRE_CLASSIC_SECURITY_H

#include <stdatomic.h>

#include <rx/rx.h>

#include "../classic.h"

/*
 * Objects that were compiled with OpenAFS's own headers close a security object through a table:
 * its first function. They skip the others where they are NULL.
 */
struct classic_security_ops {
	int (*close)(struct rx_securityClass *klass);
	int (*others[14])(void);
};

/*
 * A security object. Programs see a pointer only. The first three members lie where OpenAFS's own
 * headers have them, for objects that were compiled with those. Only `refs` changes.
 */
struct rx_securityClass {
	const struct classic_security_ops *ops;
	void *private_data; /* NULL */
	atomic_int refs;
	/* with a reference, which goes with the last of `refs`; NULL: the null class, which stays */
	rxw_security *security;
	void (*dots)(struct rx_securityClass *klass, bool allow); /* NULL: the class has no names */
};

/*
 * Make an object with one reference for a class of the library, whose reference it takes over.
 * NULL without memory; the reference is dropped.
 */
struct rx_securityClass *classic_security_create(rxw_security *security);

#endif
