# SPDX-License-Identifier: BSD-2-Clause
# The Python package rxwire, for modules that `rxwgen --python` writes: doc/python.md. Nothing is compiled.

python_files = \
	src/python/rxwire/__init__.py src/python/rxwire/__init__.pyi \
	src/python/rxwire/_abi.py src/python/rxwire/_metrics.py \
	src/python/rxwire/aio.py src/python/rxwire/aio.pyi \
	src/python/rxwire/core.py src/python/rxwire/core.pyi \
	src/python/rxwire/errors.py src/python/rxwire/errors.pyi \
	src/python/rxwire/rpc.py src/python/rxwire/rpc.pyi \
	src/python/rxwire/xdr.py src/python/rxwire/xdr.pyi \
	src/python/rxwire/py.typed
EXTRA_DIST += $(python_files) src/python/pyproject.toml

if PYTHON_PACKAGE
rxwirepydir = $(pythondir)/rxwire
rxwirepy_DATA = $(python_files)
endif
