/* SPDX-License-Identifier: BSD-2-Clause */
/* Running handlers, and the table through which lower modules call higher ones. */
#ifndef RXW_ENGINE_SERVE_H
#define RXW_ENGINE_SERVE_H

#include "engine/core/refs.h"

extern const struct rxw_upcalls rxw_upcalls;

#endif
