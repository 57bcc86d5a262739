/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that programs for classic Rx use for memory, sockets and interrupt levels. */
#ifndef RXWIRE_CLASSIC_USER_H
#define RXWIRE_CLASSIC_USER_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include <rx/rx_types.h>

/* OpenAFS's sources rely on rx.h for this one, too. */
#if defined(RXWIRE_CLASSIC_WITH_OPENAFS) && __has_include(<lwp.h>)
#	include <lwp.h>
#endif

/* Interrupt levels of kernels: nothing. */
#define SPLVAR
#define NETPRI
#define USERPRI
#define AFS_GLOCK()
#define AFS_GUNLOCK()
#define AFS_ASSERT_GLOCK()
#ifndef ISAFS_GLOCK
#	define ISAFS_GLOCK() 0
#endif

/* A UDP socket of the program. */
typedef afs_int32 osi_socket;
#define OSI_NULLSOCKET ((osi_socket)-1)

#ifndef osi_Alloc
#	define osi_Alloc(size) malloc(size)
#endif
#ifndef osi_Free
#	define osi_Free(pointer, size) free(pointer)
#endif
#define osi_GetTime(time) gettimeofday(time, NULL)

#ifdef opr_Assert
#	define osi_Assert(condition) opr_Assert(condition)
#else
#	define osi_Assert(condition)                                                          \
		do {                                                                           \
			if (!(condition))                                                      \
				osi_Panic("%s:%d: assertion failed: %s\n", __FILE__, __LINE__, \
					  #condition);                                         \
		} while (0)
#endif

#endif
