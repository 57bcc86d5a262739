/* SPDX-License-Identifier: BSD-2-Clause */
/* Engines: configuration and packet memory of endpoints. See rxw_engine_create(3). */
#ifndef RXWIRE_ENGINE_H
#define RXWIRE_ENGINE_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Version of these headers, for #if: 1.2.3 is 10203. rxw_version() returns that of the library,
 * which may differ.
 */
#define RXW_VERSION_MAJOR  0
#define RXW_VERSION_MINOR  1
#define RXW_VERSION_PATCH  0
#define RXW_VERSION_NUMBER (RXW_VERSION_MAJOR * 10000 + RXW_VERSION_MINOR * 100 + RXW_VERSION_PATCH)

/* Version of the library, "0.1.0". Static. Any thread. */
RXW_CONST const char *rxw_version(void);

/*
 * Create an engine. `config` is copied; NULL means the defaults. The caller owns the engine.
 * Threads of the library block all signals but SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS and
 * SIGPROF. In the child of a fork() all functions refuse what belongs to an engine of the parent:
 * -RXW_ESTATE, or RXW_INVALID_OPERATION as a code; destroying it closes the child's descriptors.
 * Errors: -RXW_EINVAL, -RXW_ENOMEM, -RXW_ESYS (errno). Any thread.
 */
RXW_MUST_USE int rxw_engine_create(const struct rxw_config *config, rxw_engine **engine);

/*
 * Destroy an engine, after all its endpoints. NULL is ignored. Returns 0, -RXW_ESTATE (an
 * endpoint still exists) or -RXW_EDEADLK (called from a handler or callback).
 */
int rxw_engine_destroy(rxw_engine *engine);

/*
 * Packet memory in use, and its highest value so far in *peak (may be NULL), in bytes. Any
 * thread.
 */
size_t rxw_engine_memory(const rxw_engine *engine, size_t *peak);

#ifdef __cplusplus
}
#endif
#endif
