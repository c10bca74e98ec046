#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Print contract.rst: for each clause of the contract, and for each case from the
# field, the tests that name it. With --count, only how many have tests. A test
# names its clauses and then its cases at the beginning of its name, as in
# d2_d3_case15_stall. To name what there is not is an error.

cd "$(dirname "$0")/.." || exit

# What a test is called, by the ways in which tests are declared here.
tests() {
	grep -oE '"([a-j][0-9]+_)+[a-z0-9_]+"' harness/*.c | tr -d '"'
	grep -ohE 'KUNIT_CASE[A-Z_]*\([a-z0-9_]+' kunit/*.c |
		sed 's/.*(/kunit:/'
	grep -oE '\bTEST(_F|_F_TIMEOUT|_F_SIGNAL|_SIGNAL)?\([A-Za-z0-9_, ]+' \
		selftests/*.c |
		sed -E 's/:TEST\(/:/; s/:TEST_SIGNAL\(([^,]*).*/:\1/
			s/:TEST_F[A-Z_]*\([^,]*, *([^,]*).*/:\1/'
	grep -oE 'result "[a-j][0-9]+_[a-z0-9_]+' selftests/run.sh \
		selftests/canary/leaks.sh | sed 's/:result "/:/'
	# a program whose checks have no names
	for clause in a3 a11 b2 b3 c2 c3 c4 c5 e1 e7 f1 f6; do
		echo "samples/spots.c:${clause}_"
	done
}

# names MODE KIND FILE: with MODE 'list' each line of FILE, and below it the tests
# that name what the line begins with; else how many of the lines have any.
names() {
	tests | awk -v mode="$1" -v kind="$2" '
	# the tests first
	FILENAME == "-" {
		file = $0
		sub(/:.*/, "", file)
		name = rest = substr($0, length(file) + 2)
		if (file == "kunit")
			file = "kunit/"
		while (match(rest, /^([a-j]|case)[0-9]+_/)) {
			word = toupper(substr(rest, 1, RLENGTH - 1))
			rest = substr(rest, RLENGTH + 1)
			if (sub(/^CASE/, "", word) != (kind ~ /case/))
				continue
			line = "         " file (rest == "" ? "" : ": " name)
			if (!((word, line) in seen)) {
				seen[word, line] = 1
				found[word] = found[word] line "\n"
			}
		}
		next
	}
	{
		known[$1] = 1
		if ($1 in found)
			tested++
		else
			missing = missing " " $1
		if (mode != "list")
			next
		printf "%s    %s\n", (FNR > 1 ? "\n" : ""), $0
		printf "%s", ($1 in found ? found[$1] : "         not yet\n")
	}
	END {
		for (word in found) {
			if (word in known)
				continue
			print "there is no " word ":\n" found[word] | "cat >&2"
			status = 1
		}
		if (mode != "list")
			printf "%d of %d %s%s", tested, FNR, kind,
			       missing ? " (missing:" missing ")" : ""
		exit status
	}' - "$3"
}

if [ "$1" = --count ]; then
	status=0
	names count 'clauses have tests' Documentation/contract.txt || status=1
	printf ', '
	names count cases Documentation/cases.txt || status=1
	echo
	exit $status
fi

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
names list clauses Documentation/contract.txt || exit

cat <<'END'

Cases from the field
====================

Faults that other timer systems have had, as what is not to happen here, and the
tests for them.

::

END
names list cases Documentation/cases.txt
