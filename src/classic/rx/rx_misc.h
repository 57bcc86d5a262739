/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes that differ between systems, on their way between a handler and the network. */
#ifndef RXWIRE_CLASSIC_MISC_H
#define RXWIRE_CLASSIC_MISC_H

#include <rx/rx_types.h>

/* Sent for a full disk and an exceeded quota, in place of ENOSPC and EDQUOT. */
#define VDISKFULL  108
#define VOVERQUOTA 109

/* ENOSPC and EDQUOT to the numbers above and back; all others unchanged. Any thread. */
extern int hton_syserr_conv(afs_int32 code);
extern int ntoh_syserr_conv(int code);

#endif
