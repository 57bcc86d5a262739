# SPDX-License-Identifier: BSD-2-Clause
"""Tests yet to come."""
