# SPDX-License-Identifier: BSD-2-Clause
# Security class 4: tokens, RFC 3961 ciphers, the negotiation service. Each source with its private header.

rx_public_headers += src/rx/include/rxwire/rxgk.h
rx_sources += src/rx/rxgk/client.h src/rx/rxgk/rxgk_class.c src/rx/rxgk/rxgk_conn.h
rx_sources += src/rx/rxgk/common.c
rx_sources += src/rx/rxgk/crypto.c src/rx/rxgk/crypto.h
rx_sources += src/rx/rxgk/rxgk_exchange.c
rx_sources += src/rx/rxgk/keyring.c
rx_sources += src/rx/rxgk/rxgk_packet.c
rx_sources += src/rx/rxgk/rxgk_token.c src/rx/rxgk/rxgk_token.h
rx_sources += src/rx/rxgk/negotiate.c src/rx/rxgk/negotiate.h
rx_sources += src/rx/rxgk/negotiate_client.c
rx_sources += src/rx/rxgk/negotiate_server.c
