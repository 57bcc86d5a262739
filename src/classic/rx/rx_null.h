/* SPDX-License-Identifier: BSD-2-Clause */
/* The null class: no authentication and no protection. */
#ifndef RXWIRE_CLASSIC_NULL_H
#define RXWIRE_CLASSIC_NULL_H

struct rx_securityClass;

/* The caller owns one reference: rxs_Release(). Never NULL. Any thread. */
extern struct rx_securityClass *rxnull_NewServerSecurityObject(void);
extern struct rx_securityClass *rxnull_NewClientSecurityObject(void);

#endif
