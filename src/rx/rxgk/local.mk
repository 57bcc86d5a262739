# SPDX-License-Identifier: BSD-2-Clause
# Security class 4: tokens, RFC 3961 ciphers, the negotiation service. Sources and private headers, one pair a line.

rx_sources +=
