/* SPDX-License-Identifier: BSD-2-Clause */
/* The complete public interface of librxwire. */
#ifndef RXWIRE_RXWIRE_H
#define RXWIRE_RXWIRE_H

#include <rxwire/call.h>
#include <rxwire/config.h>
#include <rxwire/connection.h>
#include <rxwire/connpool.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/file.h>
#include <rxwire/keys.h>
#include <rxwire/queue.h>
#include <rxwire/rpc.h>
#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>
#include <rxwire/security.h>
#include <rxwire/service.h>
#include <rxwire/stats.h>
#include <rxwire/token.h>
#include <rxwire/trace.h>
#include <rxwire/types.h>
#include <rxwire/xdr.h>

#endif
