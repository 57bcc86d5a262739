# SPDX-License-Identifier: BSD-2-Clause
# Security class 2: Kerberos tickets and fcrypt. Sources and private headers, one pair a line.

rx_sources +=
