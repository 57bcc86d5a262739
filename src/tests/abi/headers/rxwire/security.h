/* SPDX-License-Identifier: BSD-2-Clause */
/* Security classes as applications see them. */
#ifndef RXWIRE_SECURITY_H
#define RXWIRE_SECURITY_H

#include <rxwire/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The null class, index 0: no protection. Static; need not be released. */
rxw_security *rxw_security_null(void);

#ifdef __cplusplus
}
#endif
#endif
