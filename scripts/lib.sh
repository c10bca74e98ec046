# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What the scripts share: getting packages, kernels and sources, and building
# the module. Sourced, never run.

set -euo pipefail
shopt -s inherit_errexit

# The Debian series that we support: the oldest, the main one and the newest.
# The first two have headers and images for this distribution release; of the
# newest only the source can be used, from the backports of the next release.
OLDEST=6.1
MAIN=6.12
NEWEST=7.3
NEWEST_SUITE=trixie-backports

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${SPOTTIMER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/spottimer}
JOBS=${JOBS:-$(nproc)}

# Our callers may be run by make; a kernel build must not inherit its flags.
unset MAKEFLAGS MFLAGS MAKELEVEL MAKEOVERRIDES
export LC_ALL=C

say() { printf '%s\n' "# $*" >&2; }
die() { printf '%s\n' "${0##*/}: $*" >&2; exit 1; }

# A private work directory beside the cached things, so that what is finished
# can be renamed into place. What a killed run left is removed after a day.
mkdir -p "$CACHE"
find "$CACHE" -maxdepth 1 -name 'tmp.*' -mmin +1440 -exec rm -rf {} +
WORK=$(mktemp -d "$CACHE/tmp.XXXXXX")
trap 'rm -rf "$WORK"' EXIT

# cached PATH COMMAND…: unless PATH exists, have COMMAND fill a new directory
# (given to it as last argument) and name that PATH. Never half done, and done
# by one process at a time.
cached() {
	local path=$1 new lock
	shift
	[[ ! -e $path ]] || return 0
	mkdir -p "${path%/*}"
	exec {lock}>"$path.lock"
	flock "$lock"
	if [[ ! -e $path ]]; then
		new=$(mktemp -d "$WORK/new.XXXXXX")
		chmod 755 "$new"
		"$@" "$new"
		mv -T "$new" "$path"
	fi
	exec {lock}>&-
}

# ---- packages ----

as_root() {
	if [[ $(id -u) = 0 ]]; then
		"$@"
	else
		sudo "$@"
	fi
}

# try_updated COMMAND…: run one of apt's commands. A package list that is missing
# or out of date makes it fail; then update the lists once and try again.
try_updated() {
	"$@" >"$WORK/apt.log" 2>&1 && return
	update_lists
	"$@" >"$WORK/apt.log" 2>&1 && return
	cat "$WORK/apt.log" >&2
	die "failed: $*"
}

update_lists() {
	local opts as=as_root
	mapfile -t opts < <(apt_opts)
	[[ -z ${APT_PRIVATE:-} ]] || as=
	say "updating the package lists"
	quietly $as apt-get "${opts[@]}" update
}

apt_install() {
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
		--no-install-recommends -o DPkg::Lock::Timeout=600 "$@"
}

# need THING:PACKAGE…: install the packages whose THING is missing; a THING is
# a command, or a file when it has a slash.
need() {
	local item missing=()
	for item; do
		if [[ $item = */* ]]; then
			[[ -e ${item%:*} ]] || missing+=("${item##*:}")
		else
			command -v "${item%:*}" >/dev/null || missing+=("${item##*:}")
		fi
	done
	[[ ${#missing[@]} != 0 ]] || return 0
	say "installing ${missing[*]}"
	try_updated apt_install "${missing[@]}"
}

need_compiler() {
	need gcc:gcc /usr/include/stdio.h:libc6-dev make:make
}

# For programs of 32 bits, too.
need_compiler_32() {
	need /usr/lib32/libc.a:libc6-dev-i386 /usr/include/asm:gcc-multilib
}

# What building a whole kernel takes, beyond a module.
need_kernel_tools() {
	need_compiler
	need flex:flex bison:bison bc:bc perl:perl python3:python3 xz:xz-utils \
		/usr/include/gelf.h:libelf-dev \
		/usr/include/openssl/opensslv.h:libssl-dev
}

# apt_opts: options for apt, one a line. With APT_PRIVATE set they point to a
# list of sources of our own.
apt_opts() {
	[[ $(id -u) != 0 ]] || printf '%s\n' -oAPT::Sandbox::User=root
	[[ -z ${APT_PRIVATE:-} ]] || printf '%s\n' \
		-oDir::Etc::sourcelist="$APT_PRIVATE/sources.list" \
		-oDir::Etc::sourceparts=- \
		-oDir::State::Lists="$APT_PRIVATE/lists" \
		-oDir::Cache="$APT_PRIVATE/cache"
}

# deb_unpack PACKAGE DIR: download a package and unpack it, without installing.
deb_unpack() {
	local deb opts
	mapfile -t opts < <(apt_opts)
	deb=$(mktemp -d "$WORK/deb.XXXXXX")
	say "downloading $1"
	(cd "$deb" && try_updated apt-get "${opts[@]}" download "$1")
	dpkg -x "$deb"/*.deb "$2"
	rm -r "$deb"
}

# ---- kernels ----

# kernel_release SERIES: the release (uname -r) that the series now has.
kernel_release() {
	local meta=linux-image-$1-amd64 release
	[[ $1 != "$OLDEST" ]] || meta=linux-image-amd64
	try_updated apt-cache show "$meta"
	release=$(apt-cache depends "$meta" |
		sed -n 's/^ *Depends: linux-image-//p' | head -n 1)
	[[ $release = "$1".* ]] ||
		die "$meta is ${release:-nothing} here, not $1: this needs Debian 12"
	printf '%s\n' "$release"
}

# kernel_headers SERIES: the directory to build modules against.
kernel_headers() {
	local release
	release=$(kernel_release "$1")
	need "/lib/modules/$release/build/Makefile:linux-headers-$release"
	printf '%s\n' "/lib/modules/$release/build"
}

# kernel_image SERIES: a bootable kernel of the distribution.
kernel_image() {
	local release
	release=$(kernel_release "$1")
	cached "$CACHE/image/$release" unpack_image "$release"
	printf '%s\n' "$CACHE/image/$release/vmlinuz"
}

unpack_image() {
	mkdir "$WORK/image"
	deb_unpack "linux-image-$1" "$WORK/image"
	mv "$WORK/image/boot/vmlinuz-$1" "$2/vmlinuz"
	rm -r "$WORK/image"
}

# kernel_source SERIES: the unpacked source of the distribution's kernel.
kernel_source() {
	local package=linux-source-$1 version opts APT_PRIVATE=
	need xz:xz-utils
	[[ $1 != "$NEWEST" ]] || use_backports
	mapfile -t opts < <(apt_opts)
	try_updated apt-cache "${opts[@]}" show "$package"
	version=$(apt-cache "${opts[@]}" show --no-all-versions "$package" |
		sed -n 's/^Version: //p')
	[[ -n $version ]] || die "there is no package $package"
	cached "$CACHE/source/$version" unpack_source "$package"
	printf '%s\n' "$CACHE/source/$version"
}

unpack_source() {
	mkdir "$WORK/source"
	deb_unpack "$1" "$WORK/source"
	say "unpacking $1"
	tar -xf "$WORK/source/usr/src/$1.tar.xz" -C "$2" --strip-components=1
	rm -r "$WORK/source"
}

# The suite with the newest kernel is not one of this machine's: give apt a
# list of its own with that suite, from the mirror that the machine uses.
use_backports() {
	cached "$CACHE/apt/$NEWEST_SUITE" make_private_list
	APT_PRIVATE=$CACHE/apt/$NEWEST_SUITE
}

make_private_list() {
	local mirror
	mirror=$(debian_mirror)
	if [[ -z $mirror ]]; then
		update_lists
		mirror=$(debian_mirror)
	fi
	[[ -n $mirror ]] || die "apt has no source with the label Debian"
	mkdir -p "$1/lists/partial" "$1/cache/archives/partial"
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"$mirror $NEWEST_SUITE main" >"$1/sources.list"
	APT_PRIVATE=$1
	update_lists
	APT_PRIVATE=
}

# Let apt itself read this machine's sources: it knows both of their formats.
debian_mirror() {
	# shellcheck disable=SC2016 # the names are apt's
	apt-get indextargets --format '$(LABEL) $(COMPONENT) $(REPO_URI)' \
		'Created-By: Packages' | sed -n 's/^Debian main //p' | head -n 1
}

# ---- the project ----

# stage DIR: copy what the kernel builds into DIR. Everything is built from
# such a copy: no object of another build can lie in it, and nothing is ever
# written into the checkout. All files get the current time, so that no object
# in a kept build directory can look newer than a changed source.
stage() {
	mkdir -p "$1"
	(cd "$TOP" && find Kbuild Kconfig Makefile ./*.[ch] kunit uapi \
		samples/watchdog bench/module -type f \
		\( -name '*.[ch]' -o -name 'K*' -o -name Makefile \) \
		! -name '*.mod.c' -print0 |
		tar -c --null -T - -f -) | tar -x -m -C "$1" -f -
}

# build_module SERIES DIR [MAKE-ARG…]: build spottimer.ko in a fresh copy, and the
# modules that use it, in samples/watchdog and bench/module.
build_module() {
	local headers dir=$2
	headers=$(kernel_headers "$1")
	need_compiler
	stage "$dir"
	make -C "$dir" -j "$JOBS" KDIR="$headers" "${@:3}" samples
}

# build_program SOURCE PROGRAM [CC-ARG…]: a static program for the guest.
build_program() {
	gcc -O2 -g -Wall -Wextra -Werror -static -pthread -I "$TOP/uapi" \
		-o "$2" "$1" "${@:3}"
}

# build_programs: all selftests and samples, into $WORK; their paths are put into
# the array $programs. The linker takes of liburing what a program needs, if any.
build_programs() {
	local source file program
	need_compiler
	need /usr/include/liburing.h:liburing-dev
	source=$(kernel_source "$MAIN")
	programs=()
	for file in "$TOP"/selftests/*.c "$TOP"/samples/*.c; do
		program=$WORK/$(basename "$file" .c)
		build_program "$file" "$program" \
			-isystem "$source/tools/testing/selftests" -luring
		programs+=("$program")
	done
}

# attempt COMMAND…: run it and put its status into $attempted. In 'COMMAND ||'
# bash would ignore every failure inside of a function but the last.
attempt() {
	set +e
	(
		set -e
		"$@"
	)
	attempted=$?
	set -e
}

# quietly COMMAND…: show what it printed only if it failed.
quietly() {
	attempt "$@" >"$WORK/quiet.log" 2>&1
	[[ $attempted != 0 ]] || return 0
	cat "$WORK/quiet.log" >&2
	die "failed: $*"
}

# in_tree SERIES COMMAND…: run COMMAND in the source of a kernel with the
# project in it. The place is always the same, as the objects in a build
# directory are tied to it, but no other process sees anything there.
in_tree() {
	local source ns=(--mount --pid --fork --kill-child --mount-proc)
	source=$(kernel_source "$1")
	[[ $(id -u) = 0 ]] || ns+=(--map-root-user)
	rm -rf "$WORK/project"
	stage "$WORK/project"
	mkdir -p "$CACHE/mnt/upper" "$CACHE/mnt/linux"
	setpriv --pdeathsig KILL unshare "${ns[@]}" "$TOP/scripts/join" \
		"$source" "$WORK/project" "$CACHE/mnt" "${@:2}"
}

# build_dir NAME SERIES CONFIG: the directory in which that kernel is built with
# that configuration and this compiler. An interrupted build continues there.
build_dir() {
	local source key dir
	source=$(kernel_source "$2")
	key=$( (echo "$source $CACHE"; gcc --version; cat "$3") | sha256sum)
	dir=$CACHE/build/$1-$2-${key:0:12}
	mkdir -p "$dir"
	printf '%s\n' "$dir"
}

# has_config FRAGMENT CONFIG: Kconfig silently drops what lacks a dependency, so
# see that each symbol asked for has become what was asked.
has_config() {
	local line symbol value wrong=0
	while IFS= read -r line; do
		[[ $line = CONFIG_* ]] || continue
		symbol=${line%%=*} value=${line#*=}
		if [[ $value = n ]]; then
			! grep -q "^$symbol=" "$2" && continue
		else
			grep -qxF "$line" "$2" && continue
		fi
		say "not in the configuration: $line"
		wrong=1
	done <"$1"
	return "$wrong"
}

# configure SERIES BUILD FRAGMENT: begin with a kernel in that build directory.
configure() {
	quietly in_tree "$1" make O="$2" KCONFIG_ALLCONFIG="$3" allnoconfig
	has_config "$3" "$2/.config" || die "unusable configuration"
}

# What the kernel says when something went wrong.
SPLAT='BUG:|WARNING:|Oops|KASAN:|KCSAN:|UBSAN:|ODEBUG:|general protection'
SPLAT+='|kernel BUG at|Kernel panic|soft lockup|hard LOCKUP|detected stall'
SPLAT+='|rcu.*(stall|self-detected)|blocked for more than|workqueue lockup'
SPLAT+='|possible (circular|recursive|irq|deadlock)|suspicious RCU usage'
SPLAT+='|inconsistent lock state|bad unlock balance|INFO: possible'
SPLAT+='|Call Trace:|kmemleak: [0-9]+ new|refcount_t:|scheduling while atomic'
# shellcheck disable=SC2034 # used by those who source this
readonly SPLAT OLDEST MAIN NEWEST
