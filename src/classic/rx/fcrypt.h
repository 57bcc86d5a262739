/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of rxkad's cipher, which the library does not offer to programs. */
#ifndef RXWIRE_CLASSIC_FCRYPT_H
#define RXWIRE_CLASSIC_FCRYPT_H

#include <rx/rx_types.h>

#define ENCRYPTIONBLOCKSIZE 8
typedef afs_int32 fc_InitializationVector[ENCRYPTIONBLOCKSIZE / 4];
typedef afs_int32 fc_KeySchedule[16];
#define FCRYPT_ENCRYPT 1
#define FCRYPT_DECRYPT 0

#endif
