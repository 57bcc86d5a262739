/* SPDX-License-Identifier: BSD-2-Clause */
/* The protection service: look-ups and changes in the database of users and groups. */
#ifndef FILESERVER_PT_H
#define FILESERVER_PT_H

#include <stdbool.h>
#include <stdint.h>

#include <rxwire/types.h>

#include "protection/protection.h"

struct fsd_audit;
struct fsd_guard;
struct fsd_pt;

/* `guard` and `audit` may be NULL; they and `prot` outlive it. NULL: no memory. */
struct fsd_pt *fsd_pt_create(struct prot *prot, struct fsd_guard *guard, struct fsd_audit *audit);
void fsd_pt_stop(struct fsd_pt *pt);	/* changes that wait for their turn are refused */
void fsd_pt_destroy(struct fsd_pt *pt); /* NULL is allowed */

/* A handler for rxw_service_add(), whose context is the service. */
int32_t fsd_pt_serve(rxw_call *call, void *pt);

/* The user of a caller; PROT_ADMINISTRATORS, with *service, if that is the service itself; else PROT_ANONYMOUS. */
int32_t fsd_pt_caller(const struct prot *prot, const struct prot_view *view, const rxw_call *call,
		      bool *service);

#endif
