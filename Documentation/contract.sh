#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Print contract.rst: for each clause of the contract the tests that name it. A
# test names its clauses at the beginning of its name, as in d2_d3_burst.

cd "$(dirname "$0")/.." || exit

cat <<'END'
.. SPDX-License-Identifier: GPL-2.0

============
The contract
============

The clauses that the module keeps, in a word each, and the tests for each of
them. Made by Documentation/contract.sh from the names of the tests; a clause for
which there is none says 'not yet'.

The tests in ``harness/`` run as normal programs with sanitizers, those in
``kunit/`` in a kernel built for them, those in ``selftests/`` and ``samples/``
against the device in virtual machines with stock kernels.

::

END

# What a test is called, by the ways in which tests are declared here.
tests() {
	grep -oE '"([a-j][0-9]+_)+[a-z0-9_]+"' harness/*.c | tr -d '"'
	grep -ohE 'KUNIT_CASE[A-Z_]*\([a-z0-9_]+' kunit/*.c /dev/null |
		sed 's/.*(/kunit:/'
	grep -oE '\bTEST(_F|_F_TIMEOUT|_F_SIGNAL|_SIGNAL)?\([A-Za-z0-9_, ]+' \
		selftests/*.c /dev/null |
		sed -E 's/:TEST\(/:/; s/:TEST_SIGNAL\(([^,]*).*/:\1/
			s/:TEST_F[A-Z_]*\([^,]*, *([^,]*).*/:\1/'
	grep -oE 'result "[a-j][0-9]+_[a-z0-9_]+' selftests/run.sh /dev/null |
		sed 's/:result "/:/'
	# a program whose checks have no names
	for clause in a3 a11 b2 b3 c2 c3 c4 c5 e1 e7 f1 f6; do
		echo "samples/spots.c:${clause}_"
	done
} 2>/dev/null

tests | awk '
	# the tests, then the clauses
	FILENAME == "-" {
		file = $0
		sub(/:.*/, "", file)
		name = substr($0, length(file) + 2)
		if (file == "kunit")
			file = "kunit/"
		rest = name
		while (match(rest, /^[a-j][0-9]+_/)) {
			clause = toupper(substr(rest, 1, RLENGTH - 1))
			rest = substr(rest, RLENGTH + 1)
			line = "         " file (rest == "" ? "" : ": " name)
			if (!((clause, line) in seen)) {
				seen[clause, line] = 1
				found[clause] = found[clause] line "\n"
			}
		}
		next
	}
	{
		printf "%s    %s\n", (FNR > 1 ? "\n" : ""), $0
		printf "%s", ($1 in found ? found[$1] : "         not yet\n")
	}
' - Documentation/contract.txt
