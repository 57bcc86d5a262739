/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole public interface of librxwire. */
#ifndef RXWIRE_RXWIRE_H
#define RXWIRE_RXWIRE_H

#include <rxwire/call.h>
#include <rxwire/config.h>
#include <rxwire/endpoint.h>
#include <rxwire/engine.h>
#include <rxwire/error.h>
#include <rxwire/security.h>
#include <rxwire/service.h>
#include <rxwire/stats.h>
#include <rxwire/types.h>
#include <rxwire/xdr.h>

#endif
