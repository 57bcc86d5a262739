/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Session keys of rxkad as keys of OpenAFS's DES functions. For sources of OpenAFS that include its
 * header of these functions first.
 */
#ifndef RXWIRE_CLASSIC_RXKAD_CONVERT_H
#define RXWIRE_CLASSIC_RXKAD_CONVERT_H

struct ktc_encryptionKey;

#define ktc_to_cblock(key)	    ((DES_cblock *)(struct ktc_encryptionKey *)(key))
#define ktc_to_cblockptr(key)	    ((DES_cblock *)(struct ktc_encryptionKey *)(key))
#define ktc_to_charptr(key)	    ((char *)(struct ktc_encryptionKey *)(key))
#define charptr_to_cblock(bytes)    ((DES_cblock *)(char *)(bytes))
#define charptr_to_cblockptr(bytes) ((DES_cblock *)(char *)(bytes))

#endif
