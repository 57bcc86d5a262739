/* SPDX-License-Identifier: BSD-2-Clause */
/* Engines: the threads, timers and buffers that endpoints share. */
#ifndef RXWIRE_ENGINE_H
#define RXWIRE_ENGINE_H

#include <rxwire/config.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of these headers, for #if: 1.2.3 is 10203. The library that runs may be another one: rxw_version(). */
#define RXW_VERSION_MAJOR 0
#define RXW_VERSION_MINOR 1
#define RXW_VERSION_PATCH 0
#define RXW_VERSION_NUMBER (RXW_VERSION_MAJOR * 10000 + RXW_VERSION_MINOR * 100 + RXW_VERSION_PATCH)

/* Version of the library, "0.1.0". Static storage. */
const char *rxw_version(void);

/*
 * Create an engine. `config` may be NULL for the defaults; it is copied. Threads of the library
 * block all signals. After fork() the child may only exec or _exit. Errors: -RXW_EINVAL,
 * -RXW_ENOMEM, -RXW_ESYS.
 */
int rxw_engine_create(const struct rxw_config *config, rxw_engine **engine);

/*
 * Destroy an engine. All its endpoints must be destroyed before. Returns 0, -RXW_ESTATE (an
 * endpoint is left), -RXW_EDEADLK (called from a handler or callback of the engine).
 */
int rxw_engine_destroy(rxw_engine *engine);

/* Memory of all buffers that the engine holds now, and its highest value; bytes. Any thread. */
size_t rxw_engine_memory(const rxw_engine *engine, size_t *peak);

#ifdef __cplusplus
}
#endif
#endif
