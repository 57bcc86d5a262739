# SPDX-License-Identifier: BSD-2-Clause
# Security class 4: tokens, RFC 3961 ciphers, the negotiation service. Sources and private headers, one pair a line.

rx_sources += src/rx/rxgk/crypto.c src/rx/rxgk/crypto.h
rx_sources += src/rx/rxgk/mac.c src/rx/rxgk/mac.h
