/* SPDX-License-Identifier: BSD-2-Clause */
/* Security objects: each wraps a class of the library. */
#ifndef RXWIRE_CLASSIC_SECURITY_H
#define RXWIRE_CLASSIC_SECURITY_H

#include <stdatomic.h>

#include <rx/rx.h>

#include "../classic.h"

/* A security object. Programs see a pointer only. Only `refs` changes. */
struct rx_securityClass {
	/* with a reference, which goes with the last of `refs`; NULL: the null class, which stays */
	rxw_security *security;
	atomic_int refs;
	void (*dots)(struct rx_securityClass *klass, bool allow); /* NULL: the class has no names */
};

/*
 * Make an object with one reference for a class of the library, whose reference it takes over.
 * NULL without memory; the reference is dropped.
 */
struct rx_securityClass *classic_security_create(rxw_security *security);

#endif
